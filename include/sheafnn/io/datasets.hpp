/// \file
/// Any dataset by name or path.
#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>

#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/io/geom_gcn.hpp"
#include "sheafnn/io/npz.hpp"
#include "sheafnn/io/ogb.hpp"
#include "sheafnn/io/table_options.hpp"
#include "sheafnn/io/text_dataset.hpp"

namespace sheafnn::io {

/// Loads a dataset.
///
/// \param name_or_path  "karate", "synthetic", or the path of an .npz file (see load_npz). Or the path of a folder with
///                      edges.csv (see load_text_folder), of Geom-GCN (see load_geom_gcn) or of OGB (see load_ogb)
/// \param options       what "synthetic" generates
/// \param use           for prediction, a file or folder need have graph and features only
/// \param text          how to read text files; its missing_labels hold for every file, its targets and types for .npz
///                      files too. For prediction, targets of what has none are unknown
/// \throws MissingFile            no such name, file or folder
/// \throws std::runtime_error     bad input, or types, targets or options of tables for what has none
/// \throws std::invalid_argument  an option of the synthetic graph outside its range
[[nodiscard]] inline Dataset load_dataset(std::string_view name_or_path, const SyntheticOptions& options = {},
                                          DatasetUse use = DatasetUse::training, const TextOptions& text = {}) {
  const auto without_types_and_targets = [&](Dataset data) {
    detail::refuse_table_options(name_or_path, text);
    if (text.edge_types || text.node_types) {
      detail::fail(name_or_path, "has no types of ", text.edge_types ? "edges" : "nodes",
                   "; folders with edges.csv and nodes.csv, and .npz files, have types");
    }
    if (text.targets.empty()) return data;
    if (use != DatasetUse::prediction) {
      detail::fail(name_or_path, "has no targets '", detail::printable(text.targets.front()),
                   "'; folders with nodes.csv and .npz files have targets");
    }
    detail::set_unknown_targets(data, text.targets);
    return data;
  };
  if (name_or_path == "karate") return without_types_and_targets(karate_club());
  if (name_or_path == "synthetic") return without_types_and_targets(synthetic(options));
  const std::filesystem::path path(name_or_path);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    if (is_text_folder(path)) return load_text_folder(path, text, use);
    if (is_geom_gcn_folder(path)) {
      return without_types_and_targets(load_geom_gcn(path, GeomGcnFeatures::automatic, use, text.missing_labels));
    }
    if (is_ogb_folder(path)) return without_types_and_targets(load_ogb(path, use, text.missing_labels));
    detail::fail(name_or_path,
                 "has neither edges.csv (.tsv, .txt, .edgelist, .mtx) nor the files of a Geom-GCN or OGB folder");
  }
  if (path.extension() == ".npz") {
    detail::refuse_table_options(name_or_path, text);
    return load_npz(path, use, text.missing_labels, text.targets,
                    {text.edge_types, text.node_types, text.edge_labels, text.edge_target});
  }
  detail::fail_to_open(path,
                       "no such dataset; choose karate, synthetic, an .npz file, a folder with edges.csv and ",
                       "nodes.csv, or a Geom-GCN or OGB folder");
}

}  // namespace sheafnn::io
