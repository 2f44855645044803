/// \file
/// Kernels of the sheaf learner over a hypergraph, raw_i = W_a z_v + W_b z̄_e: from node projections to raw outputs per
/// incident pair, and back. Source: math: "Hypergraphs". For one network: layers/incidence_learner.hpp, for graphs
/// learner_kernels.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/hypergraph.hpp"
#include "sheafnn/batch/learner_kernels.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Rows of a matrix of each run: entry c of row r at data + run · of_run + r · row + c.
template <class S>
struct RunRows {
  S* data = nullptr;
  Index row = 0, of_run = 0;

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S& at(Index run, Index r, Index c) const {
    return data[run * of_run + r * row + c];
  }
};

/// For every node or hyperedge the sum of rows over its pairs, times its factor. A team per (row of `out`, column), lanes
/// over pairs; group: run.
template <class S>
struct SumOverPairs {
  using Scalar = S;
  static constexpr int outputs = 1;
  const std::int32_t* offset;  ///< first pair of each row of `out`
  const std::int32_t* pair;    ///< the pair at a position of the list; null: the position itself
  const std::int32_t* row_of;  ///< of a pair: its row of `in`; null: itself
  const S* factor;             ///< per row of `out`; null: 1
  RunRows<const S> in;
  RunRows<S> out;
  Divisor columns;
  int lanes;

  SHEAFNN_HD void part(Index item, Index run, int lane, S* sums) const {
    const Index row = item / columns, column = item % columns;
    SHEAFNN_UNROLL_FOUR for (std::int32_t k = offset[row] + lane; k < offset[row + 1]; k += lanes) {
      const std::int32_t i = pair != nullptr ? pair[k] : k;
      sums[0] += in.at(run, row_of != nullptr ? row_of[i] : i, column);
    }
  }
  SHEAFNN_HD void finish(Index item, Index run, const S* sums) const {
    const Index row = item / columns;
    out.at(run, row, item % columns) = factor != nullptr ? factor[row] * sums[0] : sums[0];
  }
};

/// The raw outputs of a pair; item: pair, group: run.
template <class S>
struct ProjectIncidences {
  static constexpr bool both_pairs = false;
  IncidenceView<S> graph;
  RunRows<const S> of_node, of_hyperedge;
  Index outputs;
  PairArray<S> out;

  SHEAFNN_HD void operator()(Index pair, Index run) const {
    for (Index k = 0; k < outputs; ++k) {
      out.at(run, pair, k) =
          of_node.at(run, graph.edge_node[pair], k) + of_hyperedge.at(run, graph.hyperedge[pair], k);
    }
  }
};

}  // namespace sheafnn::batch::detail
