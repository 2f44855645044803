/// \file
/// NodeChunks: a partition of the nodes for sums over them; and groups of rows that stay near while several steps work
/// on them.
#pragma once

#include <algorithm>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"

namespace sheafnn::detail {

/// Rows that are treated together: a multiple of every pack, so that groups are whole packs of nodes.
inline constexpr Index row_group = 48;

/// Calls body(first, count) for the groups of rows [begin, end). Unchecked: `begin` is a multiple of row_group.
template <class Body>
SHEAFNN_INLINE void for_row_groups(Index begin, Index end, const Body& body) {
  for (Index first = begin; first < end; first += row_group) body(first, std::min(row_group, end - first));
}
/// The same for all rows, by several threads. Takes any number; without nodes there are no groups.
template <class Body>
void for_row_groups(Execution execution, Index rows, const Body& body) {
  parallel_for(execution, rows, row_group, [&](Index begin, Index end) { for_row_groups(begin, end, body); });
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Sums over nodes in a fixed partition, so that they do not depend on the number of threads. Unchecked: indices of
/// chunks.
struct NodeChunks {
  Index nodes = 0;
  Index count = 1;
  Index grain = 1;  ///< chunks start at multiples of it

  [[nodiscard]] Index begin(Index chunk) const noexcept {
    return std::min(nodes, (nodes + grain - 1) / grain * chunk / count * grain);
  }
  [[nodiscard]] Index end(Index chunk) const noexcept { return begin(chunk + 1); }
  /// Calls body(chunk, first node, past the last node).
  template <class Body>
  void for_each(Execution execution, const Body& body) const {
    parallel_for(execution, count, 1, [&](Index from, Index to) {
      for (Index chunk = from; chunk < to; ++chunk) body(chunk, begin(chunk), end(chunk));
    });
  }
};

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// Chunks of whole groups of rows: at most 64, of four groups or more where there are enough for four chunks. Takes any
/// number of nodes.
[[nodiscard]] inline NodeChunks chunks_of_groups(Index nodes) noexcept {
  const Index groups = std::max<Index>(1, (nodes + row_group - 1) / row_group);
  return {nodes, std::clamp<Index>(groups / 4, std::min<Index>(4, groups), 64), row_group};
}

}  // namespace sheafnn::detail
