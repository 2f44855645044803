/// \file
/// convert_ogb(): the task of an OGB folder (ogb.hpp) as a folder of .npy arrays (folder_rows.hpp), for graphs that do not fit
/// into memory. Tables and archives are read in pieces.
///
/// Arcs are distributed to files of ranges of sources, each of which is then sorted in memory. Their temporary files take 8
/// bytes an arc, besides the new folder.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sheafnn/core/caller.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/masks.hpp"
#include "sheafnn/io/new_folder.hpp"
#include "sheafnn/io/npy_stream.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "sheafnn/io/ogb.hpp"

namespace sheafnn::io {

/// How convert_ogb() reads.
struct OgbConversion {
  std::string split = {};  ///< name of a folder in split/; empty: the only one
  Index arcs =
      Index{1} << 24;  ///< that are sorted at a time, ≥ 1; at least 1/100 of all arcs, and all arcs of a node
  std::function<void()> between_pieces = {};  ///< called again and again; what it throws ends the conversion
};

/// What convert_ogb() wrote.
struct OgbConverted {
  Index nodes = 0, edges = 0, features = 0;
  Index self_loops = 0, duplicates = 0;  ///< listed pairs that were left out or merged
  std::vector<std::string> class_names;  ///< of the classes 0, 1, …; empty where these are the labels
};

namespace detail {

/// Arcs in files of ranges of their sources.
class ArcFiles {
 public:
  /// \param degree  about the number of arcs of every node
  ArcFiles(const NewFolder& folder, std::span<const std::uint32_t> degree, Index arcs) {
    constexpr Index share = 100;  // at most twice as many files are open, and systems allow 256
    Index total = 0;
    for (const std::uint32_t d : degree) total += d;
    const Index size = std::max(arcs, total / share + 1);
    Index in_last = size;
    for (std::size_t u = 0; u < degree.size(); ++u) {
      if (first_.empty() || (in_last > 0 && in_last + Index{degree[u]} > size)) {
        in_last = 0;
        first_.push_back(static_cast<std::int32_t>(u));
      }
      in_last += Index{degree[u]};
    }
    for (std::size_t i = 0; i < first_.size(); ++i) {
      names_.push_back(folder / sheafnn::detail::concat("arcs", i));
      files_.emplace_back(names_.back(), std::ios::binary);
    }
  }
  [[nodiscard]] std::size_t count() const noexcept { return first_.size(); }
  /// \throws std::runtime_error  it cannot be written
  void add(std::int32_t from, std::int32_t to) {
    const auto i =
        static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), from) - first_.begin() - 1);
    const std::uint64_t arc = static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to);
    files_[i].write(reinterpret_cast<const char*>(&arc), sizeof(arc));
    if (!files_[i]) fail(names_[i].string(), "cannot be written; ", system_reason());
    ++size_;
  }
  /// Arcs that were added.
  [[nodiscard]] Index size() const noexcept { return size_; }
  /// The different arcs of range i, sorted: source · 2³² + target. Removes its file.
  [[nodiscard]] std::vector<std::uint64_t> take(std::size_t i) {
    files_[i].close();
    if (!files_[i]) fail(names_[i].string(), "cannot be written; ", system_reason());
    std::vector<std::uint64_t> r(
        static_cast<std::size_t>(std::filesystem::file_size(names_[i]) / sizeof(std::uint64_t)));
    std::ifstream file(names_[i], std::ios::binary);
    file.read(reinterpret_cast<char*>(r.data()), static_cast<std::streamsize>(r.size() * sizeof(std::uint64_t)));
    if (!file) fail(names_[i].string(), "cannot be read; ", system_reason());
    std::filesystem::remove(names_[i]);
    std::sort(r.begin(), r.end());
    r.erase(std::unique(r.begin(), r.end()), r.end());
    return r;
  }

 private:
  std::vector<std::int32_t> first_;  ///< source of every range
  std::vector<std::filesystem::path> names_;
  std::vector<std::ofstream> files_;
  Index size_ = 0;
};

/// Number of elements that are read at a time.
inline constexpr Index ogb_piece = Index{1} << 18;

/// Calls OgbConversion::between_pieces once for ogb_piece elements.
class OgbPieces {
 public:
  explicit OgbPieces(const std::function<void()>& call) : call_(&call) {}
  void add(Index numbers) {
    read_ += numbers;
    if (read_ < ogb_piece) return;
    read_ = 0;
    if (*call_) (*call_)();
  }

 private:
  const std::function<void()>* call_;
  Index read_ = 0;
};

/// Calls pair(u, v) for every listed edge. \param archive  null: of tables
template <class Pair>
void for_ogb_edges(const std::filesystem::path& raw, const NpzArchive* archive, Index n, OgbPieces& pieces,
                   const Pair& pair) {
  if (archive == nullptr) {
    for (OgbTable table(raw / "edge"); table.next(2); pieces.add(2)) pair(table.node(0, n), table.node(1, n));
    return;
  }
  NpyStream from = archive->numbers("edge_index");
  check_ogb_shape(from, 2, -1);
  const Index edges = from.shape()[1];
  const auto end = [&](Index edge, std::int64_t node) { return ogb_end(from.where(), edge, node, n); };
  if (from.fortran_order()) {  // the ends of an edge are adjacent
    for (Index first = 0; first < edges;) {
      const std::vector<std::int64_t> ends = from.next(2 * ogb_piece).numbers();
      for (std::size_t k = 0; k < ends.size(); k += 2, ++first) pair(end(first, ends[k]), end(first, ends[k + 1]));
      pieces.add(static_cast<Index>(ends.size()));
    }
    return;
  }
  NpyStream to = archive->numbers("edge_index");
  to.skip(edges);
  for (Index first = 0; first < edges;) {
    const Index count = std::min(ogb_piece, edges - first);
    const std::vector<std::int64_t> sources = from.next(count).numbers(), targets = to.next(count).numbers();
    for (std::size_t k = 0; k < sources.size(); ++k, ++first) pair(end(first, sources[k]), end(first, targets[k]));
    pieces.add(2 * count);
  }
}

/// Writes indptr.npy and indices.npy.
inline void write_ogb_graph(const NewFolder& folder, const std::filesystem::path& raw, const NpzArchive* archive,
                            Index n, Index arcs, OgbPieces& pieces, OgbConverted& counts) {
  std::vector<std::uint32_t> degree(static_cast<std::size_t>(n));
  for_ogb_edges(raw, archive, n, pieces, [&](std::int32_t u, std::int32_t v) {
    for (const std::int32_t end : {u, v}) {
      std::uint32_t& of_end = degree[static_cast<std::size_t>(end)];
      if (of_end < std::numeric_limits<std::uint32_t>::max()) ++of_end;
    }
  });
  ArcFiles files(folder, degree, arcs);
  degree = {};
  for_ogb_edges(raw, archive, n, pieces, [&](std::int32_t u, std::int32_t v) {
    if (u == v) {
      ++counts.self_loops;
      return;
    }
    files.add(u, v);
    files.add(v, u);
  });
  NpyStreamWriter<std::int64_t> indptr(folder / "indptr.npy");
  NpyStreamWriter<std::int32_t> indices(folder / "indices.npy");
  std::int64_t end = 0;
  std::vector<std::int64_t> ends;  // of the nodes up to the last source
  Index node = 0;                  // whose beginning is not written yet
  for (std::size_t i = 0; i < files.count(); ++i) {
    const std::vector<std::uint64_t> sorted = files.take(i);
    std::vector<std::int32_t> targets;
    targets.reserve(sorted.size());
    ends.clear();
    for (const std::uint64_t arc : sorted) {
      for (; node <= static_cast<Index>(arc >> 32); ++node) ends.push_back(end);
      targets.push_back(static_cast<std::int32_t>(arc & 0xffffffffU));
      ++end;
    }
    indices.write(targets);
    indptr.write(ends);
    pieces.add(static_cast<Index>(targets.size()));
  }
  ends.assign(static_cast<std::size_t>(n + 1 - node), end);
  indptr.write(ends);
  indptr.finish();
  indices.finish();
  counts.edges = end / 2;
  counts.duplicates = (files.size() - end) / 2;
}

/// Writes features.npy, in single precision. \returns p
inline Index write_ogb_features(const NewFolder& folder, const std::filesystem::path& raw,
                                const NpzArchive* archive, Index n, OgbPieces& pieces) {
  std::optional<NpyStreamWriter<float>> file;
  std::vector<float> numbers;
  const auto open = [&](Index columns) {
    sheafnn::detail::require_feature_columns("feature columns", columns);
    file.emplace(folder / "features.npy", columns);
  };
  const auto write = [&] {
    file->write(numbers);
    pieces.add(static_cast<Index>(numbers.size()));
    numbers.clear();
  };
  Index columns = 0;
  if (archive == nullptr) {
    columns = for_ogb_features(raw, n, [&](std::span<const double> row, const OgbTable& table) {
      if (!file) open(static_cast<Index>(row.size()));
      for (std::size_t j = 0; j < row.size(); ++j) {
        numbers.push_back(static_cast<float>(row[j]));
        if (std::isfinite(numbers.back())) continue;
        fail(table.where(), "feature ", j, " is ", row[j], ", which is too large for single precision");
      }
      if (static_cast<Index>(numbers.size()) >= ogb_piece) write();
    });
  } else {
    NpyStream stream = archive->numbers("node_feat");
    check_ogb_shape(stream, n, -1);
    stream.require_rows();
    columns = stream.shape()[1];
    open(columns);
    for (Index at = 0; stream.left() > 0; write()) {
      numbers = stream.next(ogb_piece).values<float>();
      for (const float number : numbers) {
        if (!std::isfinite(number)) {
          fail(stream.where(), "feature ", at % columns, " of node ", at / columns, " is ", number,
               "; it must be a finite number");
        }
        ++at;
      }
    }
  }
  write();
  file->finish();
  return columns;
}

/// Writes labels.npy. A label is a number among the different texts, until all are known: 4 bytes a node.
inline void write_ogb_labels(const NewFolder& folder, const std::filesystem::path& raw, bool arrays, Dataset& data,
                             const MissingLabels& missing, OgbPieces& pieces) {
  const Index n = data.node_count();
  std::unordered_map<std::string, std::int32_t> number_of;
  std::vector<std::string> texts;
  std::vector<Index> first;  // node with each of them
  const auto add = [&](std::string text) {
    const auto [found, inserted] = number_of.emplace(std::move(text), static_cast<std::int32_t>(texts.size()));
    if (inserted) {
      texts.push_back(found->first);
      first.push_back(static_cast<Index>(data.labels.size()));
    }
    data.labels.push_back(found->second);
    pieces.add(1);
  };
  if (!arrays) {
    for_ogb_labels(raw, n, add);
  } else if (const auto file = ogb_label_file(raw)) {
    const NpzArchive archive = NpzArchive::mapped(*file);
    NpyStream stream = archive.numbers("node_label");
    check_ogb_shape(stream, n, 1);
    while (stream.left() > 0) {
      for (const double label : stream.next(ogb_piece).values<double>()) add(ogb_label(stream.where(), label));
    }
  }
  const std::string name = ogb_label_name(raw, arrays);
  if (data.labels.empty()) fail(name, "is missing; training needs a class for some nodes");
  std::vector<std::int32_t> of_node = std::move(data.labels);
  take_labels(data, read_label_texts(texts, missing, name,
                                     [&](std::size_t i) { return ogb_label_place(name, first[i]); }));
  for (std::int32_t& label : of_node) label = data.labels[static_cast<std::size_t>(label)];
  data.labels = std::move(of_node);
  sheafnn::detail::check_labels(data);
  NpyStreamWriter<std::int32_t> file(folder / "labels.npy");
  file.write(data.labels);
  file.finish();
}

inline void write_masks(const NewFolder& folder, const Split& split, Index n) {
  const std::pair<const char*, const std::vector<std::int32_t>*> sets[] = {{"train_mask.npy", &split.train},
                                                                           {"val_mask.npy", &split.validation},
                                                                           {"test_mask.npy", &split.test}};
  for (const auto& [name, nodes] : sets) {
    std::vector<std::int32_t> mask(static_cast<std::size_t>(n));
    for (const std::int32_t u : *nodes) mask[static_cast<std::size_t>(u)] = 1;
    NpyStreamWriter<std::int32_t> file(folder / name);
    file.write(mask);
    file.finish();
  }
}

/// The folder of the split with this name, or of the only one.
[[nodiscard]] inline std::filesystem::path ogb_split_folder(const std::filesystem::path& folder,
                                                            std::string_view name) {
  const std::vector<std::filesystem::path> all = ogb_split_folders(folder);
  std::string names;
  for (const std::filesystem::path& split : all) {
    if (split.filename() == name) return split;
    names += sheafnn::detail::concat(names.empty() ? "" : ", ", printable(split.filename().string()));
  }
  const std::string where = (folder / "split").string();
  if (all.empty()) fail(where, "has no split; training needs one");
  if (!name.empty()) fail(where, "has no split '", printable(name), "'; it has ", names);
  if (all.size() > 1)
    fail(where, "has ", all.size(), " splits, ", names, "; name one of them (", caller_name::ogb_split.text(),
         ')');
  return all.front();
}

}  // namespace detail

/// Makes a folder of .npy arrays from an OGB folder: indptr, indices, features in single precision, labels, and the masks of
/// one split. In memory are pieces of the files, `arcs` arcs, and some 16 bytes a node. Needs a POSIX system where the numbers
/// are in data.npz.
///
/// \param folder   a new folder, or an empty one. It exists with all files, or not at all
/// \param missing  the texts that are unknown labels, besides `nan`
/// \throws std::invalid_argument  options out of range
/// \throws std::runtime_error     as load_ogb() in training. Also missing labels or splits, or several splits without a name.
///                                Features in Fortran order, or too large for single precision. A folder that exists
///                                already or cannot be written
inline OgbConverted convert_ogb(const std::filesystem::path& ogb, const std::filesystem::path& folder,
                                const OgbConversion& options = {}, const MissingLabels& missing = {}) {
  require(options.arcs >= 1, "arcs", options.arcs, "must be at least 1");
  std::error_code error;
  if (!std::filesystem::is_directory(ogb, error)) detail::fail_to_open(ogb, "no such folder");
  return detail::naming_file(ogb.string(), [&] {
    const std::filesystem::path raw = ogb / "raw";
    const bool arrays = detail::has_ogb_arrays(raw);
    std::optional<NpzArchive> archive;
    if (arrays) archive.emplace(NpzArchive::mapped(raw / "data.npz"));
    const NpzArchive* const numbers = archive ? &*archive : nullptr;
    OgbConverted r;
    r.nodes = archive ? detail::ogb_nodes(*archive) : detail::only_number(raw / "num-node-list");
    detail::NewFolder made(folder);
    detail::OgbPieces pieces(options.between_pieces);
    {  // what is small is refused first
      const Split split = detail::read_ogb_split(detail::ogb_split_folder(ogb, options.split), r.nodes);
      validate(split, r.nodes, "splits[0]");
      detail::write_masks(made, split, r.nodes);
    }
    Dataset data;  // of nodes with labels
    data.graph = Graph(r.nodes, {});
    detail::write_ogb_labels(made, raw, arrays, data, missing, pieces);
    r.class_names = std::move(data.class_names);
    data = {};
    r.features = detail::write_ogb_features(made, raw, numbers, r.nodes, pieces);
    detail::write_ogb_graph(made, raw, numbers, r.nodes, options.arcs, pieces, r);
    if (options.between_pieces) options.between_pieces();
    made.finish();
    return r;
  });
}

}  // namespace sheafnn::io
