/// \file
/// Hypergraphs in files: a list of hyperedges with a node table as delimited text, or one .npz file. docs/data.md describes
/// the files.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/graph/synthetic_hypergraph.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/csv_nodes.hpp"
#include "sheafnn/io/npz.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "sheafnn/io/npz_keys.hpp"
#include "sheafnn/io/table_options.hpp"
#include "sheafnn/io/text_dataset.hpp"

namespace sheafnn::io {

namespace detail {

/// One hyperedge per line, the names of its members; lines that begin with # or % are comments, empty fields hold nothing.
[[nodiscard]] inline Hypergraph read_hyperedges(CsvReader csv, const NodeNumbers& nodes) {
  csv.read_as_edges("#%");
  std::vector<Incidence> pairs;
  std::int32_t hyperedge = 0;
  std::vector<std::int32_t> members;
  for (; csv.next(); ++hyperedge) {
    members.clear();
    for (const std::string& name : csv.fields()) {
      if (name.empty()) continue;
      const std::int32_t node = nodes.find(name);
      if (node < 0) nodes.refuse(csv.where(), name);
      if (std::find(members.begin(), members.end(), node) != members.end()) {
        fail(csv.where(), "lists node '", printable(name), "' twice; a node may belong to a hyperedge only once");
      }
      members.push_back(node);
      pairs.push_back({node, hyperedge});
    }
  }
  if (pairs.empty()) fail(csv.file(), "lists no hyperedge; at least one with a member is needed");
  return {nodes.count(), hyperedge, pairs};
}

/// Incident pairs of shape nnz × 2 (node, hyperedge), or 2 × nnz where nnz ≠ 2; hyperedges are numbered from 0.
[[nodiscard]] inline Hypergraph read_incidence(const NpzArchive& archive, Index n) {
  const NpyArray array = archive.array(key_or(archive, incidence_keys, "incidence"));
  const std::vector<Index>& shape = array.shape();
  const bool by_pair = shape.size() == 2 && shape[1] == 2,
             by_part = !by_pair && shape.size() == 2 && shape[0] == 2;
  if (array.size() == 0) fail(array.where(), "has shape ", array.shape_text(), "; at least one pair is needed");
  if (!by_pair && !by_part) fail(array.where(), "has shape ", array.shape_text(), "; expected incident pairs x 2");
  const std::vector<std::int64_t> values = array.numbers();
  const std::size_t count = values.size() / 2;
  std::vector<Incidence> pairs(count);
  std::int64_t hyperedges = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t node = values[by_pair ? 2 * i : i], hyperedge = values[by_pair ? 2 * i + 1 : count + i];
    if (node < 0 || node >= n) {
      fail(array.where(), "pair ", i, " has node ", node, "; node numbers must be between 0 and ", n - 1);
    }
    // Numbers far beyond the number of pairs would ask for memory that no hyperedge needs.
    const std::int64_t most = 16 * static_cast<std::int64_t>(count) + 1024;
    if (hyperedge < 0 || hyperedge > most) {
      fail(array.where(), "pair ", i, " has hyperedge ", hyperedge, "; hyperedges are numbered from 0, and of ",
           count, " pairs none may be above ", most);
    }
    pairs[i] = {static_cast<std::int32_t>(node), static_cast<std::int32_t>(hyperedge)};
    hyperedges = std::max(hyperedges, hyperedge + 1);
  }
  return naming_file(array.where(), [&] { return Hypergraph(n, static_cast<Index>(hyperedges), pairs); });
}

inline constexpr std::array<std::string_view, 3> hyperedge_files = {"hyperedges.csv", "hyperedges.tsv",
                                                                    "hyperedges.txt"};

}  // namespace detail

/// Loads a dataset from a list of hyperedges, one per line with the names of its members, and a node table
/// (read_node_table). Nodes without names are numbered from 0.
///
/// \param use  for prediction, labels may be missing
/// \throws std::runtime_error  one line that names the file, the line, the column, the value and the limit
[[nodiscard]] inline HypergraphDataset load_hypergraph_csv(const std::filesystem::path& hyperedges,
                                                           const std::filesystem::path& nodes,
                                                           const TextOptions& options = {},
                                                           DatasetUse use = DatasetUse::training) {
  const detail::TextFiles files{hyperedges, nodes, {}};
  return detail::read_text_tables<Hypergraph>(
      nodes.string(), nodes.stem().string(), files, options, use, [&](const NodeTable& table, Index n) {
        return detail::read_hyperedges(CsvReader(hyperedges), detail::numbers_of(files, table, n));
      });
}

/// Loads a dataset from an .npz file with the keys of load_npz(), except edges. In place of edges, `incidence` (or
/// hyperedge_index) holds the incident pairs (node, hyperedge), nnz × 2 or 2 × nnz.
///
/// \param use, targets  as for load_npz()
/// \throws std::runtime_error  one line that names the file, the key, the index, the value and the limit
[[nodiscard]] inline HypergraphDataset load_hypergraph_npz(const std::filesystem::path& path,
                                                           DatasetUse use = DatasetUse::training,
                                                           const MissingLabels& missing = {},
                                                           std::span<const std::string> targets = {}) {
  return detail::read_tables<Hypergraph>(NpzArchive(path), path.stem().string(), use, missing,
                                         detail::read_incidence, targets);
}

/// What joins the nodes of a dataset in files.
struct JoinedBy {
  bool edges = false, hyperedges = false;
};
/// What a folder of text files or an .npz file has: edges, hyperedges, both or neither. Takes any path.
///
/// \throws std::runtime_error  an .npz file that cannot be read
[[nodiscard]] inline JoinedBy joined_by(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const bool hyperedges =
        std::any_of(detail::hyperedge_files.begin(), detail::hyperedge_files.end(),
                    [&](std::string_view name) { return std::filesystem::exists(path / name, error); });
    return {is_text_folder(path), hyperedges};
  }
  if (path.extension() != ".npz" || !std::filesystem::exists(path, error)) return {};
  const NpzArchive archive(path);
  const auto has = [&](std::span<const std::string_view> keys) {
    return !detail::find_key(archive, keys).empty();
  };
  return {has(detail::edge_keys), has(detail::incidence_keys)};
}

/// Loads a dataset on a hypergraph.
///
/// \param name_or_path  "synthetic", the path of an .npz file, or of a folder with hyperedges.csv (.tsv, .txt) and
///                      nodes.csv (.tsv)
/// \param options       what "synthetic" generates
/// \throws MissingFile            no such name, file or folder
/// \throws std::runtime_error     bad input
/// \throws std::invalid_argument  an option of the synthetic hypergraph outside its range
[[nodiscard]] inline HypergraphDataset load_hypergraph(std::string_view name_or_path,
                                                       const SyntheticHypergraphOptions& options = {},
                                                       DatasetUse use = DatasetUse::training,
                                                       const TextOptions& text = {}) {
  if (name_or_path == "synthetic") {
    detail::refuse_table_options(name_or_path, text);
    HypergraphDataset data = synthetic_hypergraph(options);
    if (text.targets.empty()) return data;
    if (use != DatasetUse::prediction) {
      detail::fail(name_or_path, "has no targets '", detail::printable(text.targets.front()),
                   "'; files have targets");
    }
    detail::set_unknown_targets(data, text.targets);
    return data;
  }
  const std::filesystem::path path(name_or_path);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const std::filesystem::path hyperedges = detail::find_one(path, detail::hyperedge_files);
    const std::filesystem::path nodes = detail::find_one(path, detail::node_files);
    if (hyperedges.empty()) detail::fail(name_or_path, "has no hyperedges.csv (.tsv, .txt)");
    if (nodes.empty()) detail::fail(name_or_path, "has hyperedges, but no nodes.csv (or .tsv)");
    HypergraphDataset data = load_hypergraph_csv(hyperedges, nodes, text, use);
    data.name = folder_name(path);
    return data;
  }
  if (path.extension() == ".npz") {
    detail::refuse_table_options(name_or_path, text);
    return load_hypergraph_npz(path, use, text.missing_labels, text.targets);
  }
  detail::fail_to_open(
      path, "no such hypergraph; choose synthetic, an .npz file, or a folder with hyperedges.csv and nodes.csv");
}

}  // namespace sheafnn::io
