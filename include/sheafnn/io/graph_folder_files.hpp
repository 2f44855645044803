/// \file
/// The arrays of a folder with a graph (distributed/graph_folder.hpp lists them), checked: for readers of ranges of rows
/// (distributed/npy_file.hpp) and of mapped rows (mapped_array.hpp).
///
/// File below is a type of these: it has name(), dimensions(), rows() and at(i), element i of an array of one dimension.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "sheafnn/core/config.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io {

/// Whether a folder has the arcs of a graph in .npy arrays. Takes any path.
[[nodiscard]] inline bool is_graph_folder(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / "indptr.npy", error);
}

}  // namespace sheafnn::io

namespace sheafnn::io::detail {

/// Opens an array of one dimension. \param rows  that it must have; −1: any number
///
/// \throws std::runtime_error  as File, or another shape
template <class File>
[[nodiscard]] File open_numbers(const std::filesystem::path& path, Index rows = -1) {
  File file(path);
  if (file.dimensions() != 1) fail(file.name(), file.dimensions(), " dimensions; must have one");
  if (rows >= 0 && file.rows() != rows) fail(file.name(), file.rows(), " entries; must be ", rows);
  return file;
}
/// Refuses offsets that do not begin at 0 or end at the number of entries. Unchecked: that there is one.
template <class File>
void check_ends(File& offsets, const File& entries) {
  const Index last = offsets.rows() - 1;
  for (const auto& [i, expected] : {std::pair(Index{0}, Index{0}), std::pair(last, entries.rows())}) {
    const Index offset = offsets.at(i);
    if (offset == expected) continue;
    fail(offsets.name(), "entry ", i, " is ", offset, "; must be ", expected, i == last ? ", the entries of " : "",
         i == last ? entries.name() : "");
  }
}
/// indptr.npy and indices.npy, whose ends are checked. \throws std::runtime_error  as above, or no entry
template <class File>
struct GraphFiles {
  File indptr, indices;

  explicit GraphFiles(const std::filesystem::path& folder)
      : indptr(open_numbers<File>(folder / "indptr.npy")), indices(open_numbers<File>(folder / "indices.npy")) {
    if (indptr.rows() < 1) fail(indptr.name(), "0 entries; must be nodes + 1");
    check_ends(indptr, indices);
  }
  [[nodiscard]] Index nodes() const noexcept { return indptr.rows() - 1; }
};

/// Refuses a row [begin, end) that is none of `entries` entries. \param u  number of `begin` in the array `name`
inline void check_offsets(const std::string& name, Index u, Index begin, Index end, Index entries) {
  if (begin >= 0 && begin <= end && end <= entries) return;
  fail(name, "entries ", u, " and ", u + 1, " are ", begin, " and ", end,
       "; offsets must not decrease and end at ", entries);
}
/// Refuses a neighbour of u that is not another node, or not above the one before. \param before  −1: it is the first
inline void check_neighbour(const std::string& name, Index u, Index neighbour, Index before, Index nodes) {
  if (neighbour < 0 || neighbour >= nodes) {
    fail(name, "node ", u, " has a neighbour ", neighbour, "; there are ", nodes, " nodes");
  }
  if (neighbour == u) fail(name, "node ", u, " has a self-loop");
  if (before >= neighbour) fail(name, "node ", u, " has neighbours that do not increase");
}

}  // namespace sheafnn::io::detail
