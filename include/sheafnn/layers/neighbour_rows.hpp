/// \file
/// A loop over the rows of a node's neighbours that prefetches the rows of the next few arcs.
#pragma once

#include <algorithm>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/directed_arcs.hpp"

namespace sheafnn::detail {

/// Calls body(v, row of v) for the neighbours v of node u.
///
/// Unchecked: node numbers, and the size of the array.
///
/// \tparam Numbers  length of the part of a row that is read
/// \param nodes     of the lists
/// \param rows      the first row; rows are `stride` apart
template <Index Numbers, class S, class Body>
SHEAFNN_INLINE void for_neighbour_rows(const NeighbourLists& lists, Index nodes, Index u, const S* rows,
                                       Index stride, const Body& body) {
  constexpr Index ahead = 16, line = 64 / sizeof(S);
  const Index end = lists.offset[u + 1], last = lists.offset[nodes] - 1;
  for (Index k = lists.offset[u]; k < end; ++k) {
    const S* coming = rows + static_cast<Index>(lists.node[std::min(k + ahead, last)]) * stride;
    SHEAFNN_UNROLL for (Index i = 0; i < Numbers; i += line) SHEAFNN_PREFETCH(coming + i);
    body(lists.node[k], rows + static_cast<Index>(lists.node[k]) * stride);
  }
}

}  // namespace sheafnn::detail
