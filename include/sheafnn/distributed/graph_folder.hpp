/// \file
/// read_folder(): a dataset as a folder of .npy arrays, of which every rank reads only the rows of its own nodes.
///
///     indptr.npy    N + 1   arcs of node u are indptr[u] … indptr[u + 1] − 1
///     indices.npy   2M      their targets, increasing within a node; every edge in both directions, no self-loops.
///                           The graph is undirected: a network on directed arcs has both arcs of every edge
///     features.npy  N × p   dense features, or, as CSR arrays, features_indptr.npy, features_indices.npy and
///                           features_values.npy with the number of columns as the only number of features_columns.npy
///     labels.npy    N       −1 where unknown
///     train_mask.npy, val_mask.npy, test_mask.npy   N booleans, 0 or 1; the last two may be missing
///     parts.npy, original.npy                       of a folder of partition_folder() (folder_partition.hpp)
///
/// Ranks own contiguous ranges: as many parts of parts.npy each, where their number divides the number of parts, else
/// ranges of equal work (partition.hpp). A rank needs memory for its part: its rows, and for every edge between parts the
/// index of the entering arc. The other rank sends that index.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/distributed_data.hpp"
#include "sheafnn/distributed/local_part.hpp"
#include "sheafnn/distributed/npy_file.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/io/graph_folder_files.hpp"

namespace sheafnn::distributed {

/// What a rank reads.
struct FolderPiece {
  DataPiece piece;
  Split own;  ///< owned nodes of the masks, by their indices in the part
  std::vector<Index>
      original;           ///< of owned nodes: index before the folder was renumbered; without, that in the whole
  bool by_parts = false;  ///< do the ranges come from parts.npy?
};

namespace detail {

using GraphFiles = io::detail::GraphFiles<NpyFile>;
using io::detail::check_ends;

/// See io::detail::open_numbers().
[[nodiscard]] inline NpyFile open_numbers(const std::filesystem::path& path, Index rows = -1) {
  return io::detail::open_numbers<NpyFile>(path, rows);
}

/// The ranges of parts.npy, if it has ranges for this number of ranks; else empty.
[[nodiscard]] inline std::vector<Index> ranges_of_parts(const std::filesystem::path& folder, Index nodes,
                                                        Index ranks) {
  std::vector<Index> r;
  if (!std::filesystem::exists(folder / "parts.npy")) return r;
  NpyFile file = open_numbers(folder / "parts.npy");
  const Index parts = file.rows() - 1;
  if (parts < 1)
    throw std::runtime_error(concat(file.name(), ": ", file.rows(), " entries; at least 2 are needed"));
  const std::vector<std::int64_t> first = file.read_numbers(0, parts + 1);
  for (std::size_t p = 0; p < first.size(); ++p) {
    const bool begins = p > 0 || first[p] == 0, ends = p + 1 < first.size() || first[p] == nodes;
    if (begins && ends && (p == 0 || first[p - 1] <= first[p])) continue;
    throw std::runtime_error(concat(file.name(), ": entry ", p, " is ", first[p],
                                    "; parts increase from 0 to the number of nodes, ", nodes));
  }
  if (parts % ranks != 0) return r;
  for (Index rank = 0; rank <= ranks; ++rank) {
    r.push_back(first[static_cast<std::size_t>(parts / ranks * rank)]);
    require(rank == 0 || r.back() > r[static_cast<std::size_t>(rank - 1)], file.name(), r.back(),
            concat("rank ", rank - 1, " would have no nodes; use fewer ranks"));
  }
  return r;
}

/// First nodes of the ranks' ranges of equal work, and N.
[[nodiscard]] inline std::vector<Index> ranges_of(Communicator& ranks, NpyFile& indptr) {
  const Index n = indptr.rows() - 1, parts = ranks.size();
  require(n >= parts, indptr.name(), n,
          concat("the number of nodes must be at least the number of ranks, ", parts));
  const double total = static_cast<double>(indptr.at(n) + node_work * n);
  const double share = total * ranks.rank() / static_cast<double>(parts);
  Index low = 0, high = n;  // the first node whose work before it is at least the share
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (static_cast<double>(indptr.at(middle) + node_work * middle) >= share) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  std::vector<Index> begin = ranks.all(low);
  begin.push_back(n);
  for (Index p = 1; p < parts; ++p) {  // no part is empty
    Index& at = begin[static_cast<std::size_t>(p)];
    at = std::clamp(at, begin[static_cast<std::size_t>(p - 1)] + 1, n - (parts - p));
  }
  return begin;
}

/// Checked rows of nodes [begin, end).
[[nodiscard]] inline OwnRows read_rows(NpyFile& indptr, NpyFile& indices, Index begin, Index end) {
  OwnRows r;
  r.total_nodes = indptr.rows() - 1;
  r.total_edges = indices.rows() / 2;
  const std::vector<std::int64_t> offsets = indptr.read_numbers(begin, end - begin + 1);
  for (Index u = begin; u < end; ++u) {
    const std::size_t i = static_cast<std::size_t>(u - begin);
    io::detail::check_offsets(indptr.name(), u, offsets[i], offsets[i + 1], indices.rows());
    r.node.push_back(u);
    r.first_arc.push_back(offsets[i]);
    r.offset.push_back(offsets[i + 1] - offsets[0]);
  }
  r.target = indices.read_numbers(offsets.front(), offsets.back() - offsets.front());
  for (std::size_t i = 0; i < r.node.size(); ++i) {
    for (Index k = r.offset[i]; k < r.offset[i + 1]; ++k) {
      const Index before = k > r.offset[i] ? r.target[static_cast<std::size_t>(k - 1)] : Index{-1};
      io::detail::check_neighbour(indices.name(), r.node[i], r.target[static_cast<std::size_t>(k)], before,
                                  r.total_nodes);
    }
  }
  return r;
}

/// The indices of the arcs that enter a part, from the ranks that own their sources.
[[nodiscard]] inline std::vector<Index> entering_numbers(Communicator& ranks, const OwnRows& rows,
                                                         std::span<const HaloArc> entering,
                                                         std::span<const Index> begin) {
  const std::size_t size = static_cast<std::size_t>(ranks.size());
  std::vector<std::vector<Index>> sent(size), received(size);
  for (std::size_t u = 0; u < rows.node.size(); ++u) {
    for (Index k = rows.offset[u]; k < rows.offset[u + 1]; ++k) {
      const Index v = rows.target[static_cast<std::size_t>(k)];
      const std::size_t owner =
          static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), v) - begin.begin() - 1);
      if (owner != static_cast<std::size_t>(ranks.rank()))
        sent[owner].push_back(rows.first_arc[u] + k - rows.offset[u]);
    }
  }
  for (const HaloArc& arc : entering) received[static_cast<std::size_t>(arc.owner)].push_back(0);
  // Every edge is stored in both directions: as many arcs leave for a rank as come from it.
  std::vector<std::int64_t> leaving(size), arriving(size);
  for (std::size_t p = 0; p < size; ++p) leaving[p] = static_cast<std::int64_t>(sent[p].size());
  MPI_Alltoall(leaving.data(), 1, MPI_INT64_T, arriving.data(), 1, MPI_INT64_T, ranks.get());
  for (std::size_t p = 0; p < size; ++p) {
    if (arriving[p] == static_cast<std::int64_t>(received[p].size())) continue;
    throw std::runtime_error(concat("indices.npy: ", received[p].size(), " arcs leave for the nodes of rank ", p,
                                    " and ", arriving[p],
                                    " come from them; every edge must be listed in both directions"));
  }
  std::vector<MPI_Request> requests;
  for (std::size_t p = 0; p < size; ++p) {
    if (sent[p].empty()) continue;
    requests.resize(requests.size() + 2, MPI_REQUEST_NULL);
    MPI_Irecv(received[p].data(), mpi_count(arriving[p]), MPI_INT64_T, static_cast<int>(p), 3, ranks.get(),
              &requests[requests.size() - 2]);
    MPI_Isend(sent[p].data(), mpi_count(leaving[p]), MPI_INT64_T, static_cast<int>(p), 3, ranks.get(),
              &requests[requests.size() - 1]);
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  std::vector<Index> r;
  for (const std::vector<Index>& numbers : received) r.insert(r.end(), numbers.begin(), numbers.end());
  return r;
}

/// Features of nodes [begin, end) of n, and the index of the first stored one in the whole.
[[nodiscard]] inline std::pair<NodeFeatures, Index> read_features(Communicator& ranks,
                                                                  const std::filesystem::path& folder, Index n,
                                                                  Index begin, Index end) {
  if (std::filesystem::exists(folder / "features.npy")) {
    NpyFile file(folder / "features.npy");
    if (file.rows() != n) throw std::runtime_error(concat(file.name(), ": ", file.rows(), " rows; must be ", n));
    const std::vector<double> values = file.read<double>(begin, end - begin);
    NodeFeatures features = io::detail::naming_file(concat(file.name(), " from row ", begin, " on"), [&] {
      return NodeFeatures::from_dense(std::span<const double>(values), end - begin, file.columns());
    });
    Index before = 0;
    const std::vector<Index> entries = ranks.all(features.entries());
    for (int p = 0; p < ranks.rank(); ++p) before += entries[static_cast<std::size_t>(p)];
    return {std::move(features), before};
  }
  NpyFile indptr = open_numbers(folder / "features_indptr.npy", n + 1),
          indices = open_numbers(folder / "features_indices.npy"),
          numbers = open_numbers(folder / "features_values.npy", indices.rows()),
          column_count = open_numbers(folder / "features_columns.npy", 1);
  check_ends(indptr, indices);
  const Index columns = column_count.at(0);
  require_between(column_count.name(), columns, 0, std::numeric_limits<std::int32_t>::max());
  std::vector<std::int64_t> offsets = indptr.read_numbers(begin, end - begin + 1);
  const Index first = offsets.front(), count = offsets.back() - first;
  const std::vector<std::int64_t> wide = indices.read_numbers(first, count);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (wide[i] >= 0 && wide[i] < columns) continue;
    throw_invalid_argument(ArgumentName({}, indices.name(), static_cast<std::size_t>(first) + i), wide[i],
                           concat("must be at least 0 and below ", columns, ", the number of columns"));
  }
  for (std::int64_t& offset : offsets) offset -= first;
  return {io::detail::naming_file(concat(numbers.name(), " of the nodes from ", begin, " on"),
                                  [&] {
                                    return NodeFeatures::from_csr(std::vector<Index>(offsets.begin(),
                                                                                     offsets.end()),
                                                                  std::vector<std::int32_t>(wide.begin(),
                                                                                            wide.end()),
                                                                  numbers.read<double>(first, count), columns);
                                  }),
          first};
}

/// read_folder(), whose errors it has, and std::bad_alloc.
[[nodiscard]] inline FolderPiece read_own_rows(Communicator& ranks, const std::filesystem::path& folder) {
  GraphFiles files(folder);
  NpyFile &indptr = files.indptr, &indices = files.indices;
  const Index n = files.nodes();
  NpyFile labels = open_numbers(folder / "labels.npy", n);
  std::vector<Index> begin = detail::ranges_of_parts(folder, n, ranks.size());
  const bool by_parts = !begin.empty();
  if (!by_parts) begin = detail::ranges_of(ranks, indptr);
  const std::size_t rank = static_cast<std::size_t>(ranks.rank());
  const Index first = begin[rank], last = begin[rank + 1];
  const OwnRows rows = detail::read_rows(indptr, indices, first, last);
  const auto owner = [&](Index u) {
    return static_cast<int>(std::upper_bound(begin.begin(), begin.end(), u) - begin.begin() - 1);
  };
  const std::vector<HaloArc> entering = halo_arcs(rows, ranks.rank(), owner);
  FolderPiece r;
  r.by_parts = by_parts;
  r.piece.part = part_of_rows(rows, entering, detail::entering_numbers(ranks, rows, entering, begin));
  PartNumbers& numbers = r.piece.part.numbers;
  for (Index u = 0; u < numbers.own; ++u) {
    const std::size_t row = static_cast<std::size_t>(numbers.node[static_cast<std::size_t>(u)] - first);
    if (r.piece.part.graph.degree(u) == rows.offset[row + 1] - rows.offset[row]) continue;
    throw std::runtime_error(detail::concat(indices.name(), ": an edge of node ", first + static_cast<Index>(row),
                                            " is listed in one direction only"));
  }
  const auto [features, entry] = detail::read_features(ranks, folder, n, first, last);
  r.piece.features = part_features(features, numbers, first, entry);

  const std::vector<std::int64_t> own_labels = labels.read<std::int64_t>(first, last - first);
  Index classes = 1;
  for (std::size_t i = 0; i < own_labels.size(); ++i) {
    const std::int64_t label = own_labels[i];
    require(label >= -1 && label < 1'000'000'000,
            ArgumentName({}, labels.name(), static_cast<std::size_t>(first) + i), label,
            "a label is −1 or a number of a class, below 1000000000");
    classes = std::max<Index>(classes, label + 1);
  }
  for (const Index count : ranks.all(classes)) r.piece.class_count = std::max(r.piece.class_count, count);
  const auto read_mask = [&](const char* name, std::vector<std::int32_t>& nodes) {
    NpyFile mask = open_numbers(folder / name, n);
    const std::vector<std::int64_t> of_node = mask.read<std::int64_t>(first, last - first);
    for (std::size_t i = 0; i < of_node.size(); ++i) {
      require(of_node[i] == 0 || of_node[i] == 1,
              ArgumentName({}, mask.name(), static_cast<std::size_t>(first) + i), of_node[i], "must be 0 or 1");
    }
    for (Index u = 0; u < numbers.own; ++u) {
      if (of_node[static_cast<std::size_t>(numbers.node[static_cast<std::size_t>(u)] - first)] != 0)
        nodes.push_back(static_cast<std::int32_t>(u));
    }
  };
  for (Index u = 0; u < numbers.own; ++u) {
    r.piece.labels.push_back(static_cast<std::int32_t>(
        own_labels[static_cast<std::size_t>(numbers.node[static_cast<std::size_t>(u)] - first)]));
  }
  r.original.assign(numbers.node.begin(), numbers.node.begin() + numbers.own);
  if (std::filesystem::exists(folder / "original.npy")) {
    const std::vector<std::int64_t> before =
        open_numbers(folder / "original.npy", n).read_numbers(first, last - first);
    for (Index& u : r.original) u = before[static_cast<std::size_t>(u - first)];
  }
  read_mask("train_mask.npy", r.own.train);
  if (std::filesystem::exists(folder / "val_mask.npy")) read_mask("val_mask.npy", r.own.validation);
  if (std::filesystem::exists(folder / "test_mask.npy")) read_mask("test_mask.npy", r.own.test);
  return r;
}

}  // namespace detail

/// This rank's part of a folder; see the file comment. All ranks call it.
///
/// \throws std::runtime_error     on the rank that finds it: a file that is missing, too short, damaged or of another shape
///                                or length than the others. Or offsets and rows that are not in order, an edge in one
///                                direction only, or too little memory
/// \throws std::invalid_argument  features, labels or masks out of range, fewer nodes than ranks, too large a graph
[[nodiscard]] inline FolderPiece read_folder(Communicator& ranks, const std::filesystem::path& folder) {
  const Index nodes = NpyFile(folder / "indptr.npy").rows() - 1;
  try {
    return detail::read_own_rows(ranks, folder);
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(detail::concat("out of memory for the rows that this rank reads of ", folder.string(),
                                            ", ", nodes, " nodes on ", ranks.size(),
                                            " ranks; more ranks on more computers read fewer each"));
  }
}

}  // namespace sheafnn::distributed
