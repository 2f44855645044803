/// \file
/// partition_folder(): a folder of read_folder() (graph_folder.hpp) renumbered, so that contiguous ranges of its nodes are
/// the parts of METIS. The nodes are sorted by part, and by their old indices within a part.
///
///     parts.npy     P + 1   nodes parts[p] … parts[p + 1] − 1 are part p
///     original.npy  N       index that every node has in the folder it comes from
///
/// METIS needs the graph, but nothing else, on rank 0. That is 4 or 8 bytes per arc (METIS's integers), and a few times as
/// much within METIS. Every rank holds 20 bytes per node and the rows of one range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/graph_folder.hpp"
#include "sheafnn/distributed/metis.hpp"
#include "sheafnn/distributed/npy_file.hpp"

namespace sheafnn::distributed {

/// What partition_folder() has done.
struct FolderPartition {
  Index nodes = 0, edges = 0;
  Index cut = 0;  ///< edges between parts
};

namespace detail {

/// METIS's owners of a folder's nodes, on rank 0; elsewhere nothing.
[[nodiscard]] inline std::vector<std::int32_t> owners_of_folder(NpyFile& indptr, NpyFile& indices, int parts,
                                                                Index range, int seed) {
  const Index n = indptr.rows() - 1;
  std::vector<idx_t> offset = {0}, target;
  offset.reserve(static_cast<std::size_t>(n + 1));
  target.reserve(static_cast<std::size_t>(indices.rows()));
  for (Index first = 0; first < n; first += range) {
    const OwnRows rows = read_rows(indptr, indices, first, std::min(n, first + range));
    for (std::size_t u = 0; u < rows.node.size(); ++u) {
      offset.push_back(
          static_cast<idx_t>(offset.back() + static_cast<idx_t>(rows.offset[u + 1] - rows.offset[u])));
    }
    for (const Index v : rows.target) target.push_back(static_cast<idx_t>(v));
  }
  return metis_owners(offset, target, parts, seed);
}

/// Moves rows from one folder to another: row i of the new one is row from[i] of the old one.
class RowMover {
 public:
  /// Unchecked: the sizes, and that `old_of` is a permutation.
  RowMover(Communicator& ranks, const std::filesystem::path& from, const std::filesystem::path& to,
           std::span<const std::int64_t> old_of, Index range)
      : ranks_(&ranks), from_(from), to_(to), old_of_(old_of), range_(range) {}

  [[nodiscard]] bool has(const char* name) const { return std::filesystem::exists(from_ / name); }
  void barrier() const { static_cast<void>(ranks_->all<std::int32_t>(0)); }

  /// An array with a row per node, of any type.
  void move_rows(const char* name) const {
    NpyFile file(from_ / name);
    const Index n = static_cast<Index>(old_of_.size());
    require(file.rows() == n, file.name(), file.rows(),
            concat("the number of rows must be the number of nodes, ", n));
    if (ranks_->is_root()) create_like(name, file, n);
    barrier();
    for_ranges([&](Index first, Index last) {
      std::vector<char> bytes;
      for_runs(first, last, [&](Index u, Index count) { file.append_bytes(u, count, bytes); });
      write_bytes(to_ / name, first, bytes);
    });
  }
  /// Arrays with a row per entry, whose first ones of every node are in `offsets`, which is made as well.
  ///
  /// \param targets  name of the one that holds node numbers: these become new_of[…], increasing within a node; or null
  void move_entries(const char* offsets, const char* targets, std::span<const char* const> others,
                    std::span<const std::int64_t> new_of) const {
    NpyFile indptr(from_ / offsets);
    const Index n = static_cast<Index>(old_of_.size());
    require(indptr.rows() == n + 1, indptr.name(), indptr.rows(),
            concat("the number of entries must be nodes + 1 = ", n + 1));
    if (ranks_->is_root()) write_offsets(offsets, indptr);
    barrier();
    if (targets != nullptr) {
      NpyFile file(from_ / targets);
      if (ranks_->is_root()) create_node_numbers(to_ / targets, n, file.rows());
      barrier();
      for_ranges([&](Index first, Index last) {
        std::vector<std::int64_t> moved;
        for_runs(first, last, [&](Index u, Index count) {
          const std::vector<std::int64_t> begin = indptr.read_numbers(u, count + 1);
          const std::vector<std::int64_t> old = file.read_numbers(begin.front(), begin.back() - begin.front());
          for (std::size_t i = 0; i + 1 < begin.size(); ++i) {
            const std::size_t row = moved.size();
            for (Index k = begin[i] - begin[0]; k < begin[i + 1] - begin[0]; ++k)
              moved.push_back(new_of[static_cast<std::size_t>(old[static_cast<std::size_t>(k)])]);
            std::sort(moved.begin() + static_cast<Index>(row), moved.end());
          }
        });
        write_node_numbers(to_ / targets, NpyFile(to_ / offsets).at(first), moved);
      });
    }
    for (const char* name : others) {
      NpyFile file(from_ / name);
      check_ends(indptr, file);
      if (ranks_->is_root()) create_like(name, file, file.rows());
      barrier();
      for_ranges([&](Index first, Index last) {
        std::vector<char> bytes;
        for_runs(first, last, [&](Index u, Index count) {
          const Index begin = indptr.at(u);
          file.append_bytes(begin, indptr.at(u + count) - begin, bytes);
        });
        write_bytes(to_ / name, NpyFile(to_ / offsets).at(first), bytes);
      });
    }
  }

 private:
  /// body(first, past the last new node) for the ranges of this rank.
  template <class Body>
  void for_ranges(const Body& body) const {
    const Index n = static_cast<Index>(old_of_.size());
    for (Index first = ranks_->rank() * range_; first < n; first += ranks_->size() * range_)
      body(first, std::min(n, first + range_));
    barrier();
  }
  /// body(first old node, how many) for each contiguous range of the old folder.
  template <class Body>
  void for_runs(Index first, Index last, const Body& body) const {
    for (Index i = first; i < last;) {
      Index end = i + 1;
      while (end < last &&
             old_of_[static_cast<std::size_t>(end)] == old_of_[static_cast<std::size_t>(end - 1)] + 1)
        ++end;
      body(old_of_[static_cast<std::size_t>(i)], end - i);
      i = end;
    }
  }
  void create_like(const char* name, const NpyFile& file, Index rows) const {
    const Index shape[] = {rows, file.columns()};
    create_npy(to_ / name, file.dtype(),
               file.row_bytes() / static_cast<std::size_t>(std::max<Index>(1, file.columns())),
               std::span<const Index>(shape, file.dimensions()));
  }
  void write_offsets(const char* name, NpyFile& old) const {
    const Index n = static_cast<Index>(old_of_.size()), shape[] = {n + 1};
    create_npy<std::int64_t>(to_ / name, shape);
    std::int64_t end = 0;
    for (Index first = 0; first < n; first += range_) {
      std::vector<std::int64_t> ends;
      for_runs(first, std::min(n, first + range_), [&](Index u, Index count) {
        const std::vector<std::int64_t> begin = old.read_numbers(u, count + 1);
        for (std::size_t i = 0; i + 1 < begin.size(); ++i) ends.push_back(end += begin[i + 1] - begin[i]);
      });
      write_rows<std::int64_t>(to_ / name, first + 1, ends);
    }
  }

  Communicator* ranks_;
  std::filesystem::path from_, to_;
  std::span<const std::int64_t> old_of_;
  Index range_;
};

}  // namespace detail

/// Writes a renumbered copy of a folder; see the file comment. All ranks call it; the files do not depend on their number.
///
/// \param parts  of METIS. A training on a number of ranks that divides it takes several parts per rank
/// \param range  nodes whose rows a rank holds at a time
/// \throws std::invalid_argument  parts not between 1 and the number of nodes, range below 1, the same folder twice, or a
///         graph too large for METIS's integers
/// \throws std::runtime_error     as read_folder(), METIS's errors, a file that cannot be written
inline FolderPartition partition_folder(Communicator& ranks, const std::filesystem::path& folder,
                                        const std::filesystem::path& output, int parts, Index range = 65536,
                                        int seed = 0) {
  detail::GraphFiles files(folder);
  NpyFile &indptr = files.indptr, &indices = files.indices;
  const Index n = files.nodes();
  require_between("parts", Index{parts}, 1, n);
  require(range >= 1, "range", range, "must be at least 1");
  detail::require_metis_counts(n, indices.rows());
  require(!std::filesystem::exists(output) || !std::filesystem::equivalent(folder, output), "output",
          output.string(), "must be another folder");
  std::vector<std::int32_t> owner(static_cast<std::size_t>(n));
  if (ranks.is_root()) {
    std::filesystem::create_directories(output);
    owner = detail::owners_of_folder(indptr, indices, parts, range, seed);
  }
  ranks.broadcast(std::span<std::int32_t>(owner));
  std::vector<std::int64_t> first(static_cast<std::size_t>(parts) + 1), old_of(owner.size()), new_of(owner.size());
  for (const std::int32_t p : owner) ++first[static_cast<std::size_t>(p) + 1];
  for (std::size_t p = 1; p < first.size(); ++p) first[p] += first[p - 1];
  std::vector<std::int64_t> next = first;
  for (std::size_t u = 0; u < owner.size(); ++u) {
    const std::int64_t to = next[static_cast<std::size_t>(owner[u])]++;
    old_of[static_cast<std::size_t>(to)] = static_cast<std::int64_t>(u);
    new_of[u] = to;
  }
  const detail::RowMover mover(ranks, folder, output, old_of, range);
  mover.barrier();  // the folder exists
  mover.move_entries("indptr.npy", "indices.npy", {}, new_of);
  for (const char* name : {"features.npy", "labels.npy", "train_mask.npy", "val_mask.npy", "test_mask.npy"}) {
    if (mover.has(name)) mover.move_rows(name);
  }
  if (mover.has("features_indptr.npy")) {
    const char* entries[] = {"features_indices.npy", "features_values.npy"};
    mover.move_entries("features_indptr.npy", nullptr, entries, {});
  }
  FolderPartition r{n, indices.rows() / 2, 0};
  // A rank counts the cut edges of its ranges, in both directions.
  std::int64_t cut = 0;
  for (Index at = ranks.rank() * range; at < n; at += ranks.size() * range) {
    const OwnRows rows = detail::read_rows(indptr, indices, at, std::min(n, at + range));
    for (std::size_t u = 0; u < rows.node.size(); ++u) {
      for (Index k = rows.offset[u]; k < rows.offset[u + 1]; ++k) {
        const std::size_t v = static_cast<std::size_t>(rows.target[static_cast<std::size_t>(k)]);
        cut += owner[v] != owner[static_cast<std::size_t>(rows.node[u])] ? 1 : 0;
      }
    }
  }
  for (const std::int64_t of_rank : ranks.all(cut)) r.cut += of_rank;
  r.cut /= 2;
  if (ranks.is_root()) {
    if (mover.has("features_columns.npy")) {
      std::filesystem::copy_file(folder / "features_columns.npy", output / "features_columns.npy",
                                 std::filesystem::copy_options::overwrite_existing);
    }
    const Index all[] = {n}, ends[] = {static_cast<Index>(parts) + 1};
    std::vector<std::int64_t> original = old_of;
    if (std::filesystem::exists(folder / "original.npy")) {  // of a folder that was renumbered before
      const std::vector<std::int64_t> before = detail::open_numbers(folder / "original.npy", n).read_numbers(0, n);
      for (std::int64_t& u : original) u = before[static_cast<std::size_t>(u)];
    }
    create_npy<std::int64_t>(output / "original.npy", all);
    write_rows<std::int64_t>(output / "original.npy", 0, original);
    create_npy<std::int64_t>(output / "parts.npy", ends);
    write_rows<std::int64_t>(output / "parts.npy", 0, first);
  }
  mover.barrier();
  return r;
}

}  // namespace sheafnn::distributed
