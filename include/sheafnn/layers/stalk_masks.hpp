/// \file
/// StalkMasks: stalks of nodes and edges with dimensions of their own, d_v ≤ D and d_e ≤ D.
///
/// The map of an incident pair is the leading d_e × d_v block of a D × D matrix, whose other entries are 0. Features of node
/// v are 0 from coordinate d_v on. Then Q_e = F_uᵀ F_v and D_u have zeros outside their d_u × d_v and d_u × d_u blocks,
/// which are the blocks of the sheaf with the smaller stalks. math: "Types of nodes and edges" (3.73).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn::layers {

/// Dimensions of the stalks of every node and edge. Unchecked: indices of nodes and blocks, and that sides are 0 or 1.
template <class S>
class StalkMasks {
 public:
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;

  /// Unchecked: that dimensions are 1 … D, and `blocks` the graph's.
  ///
  /// \param of_nodes, of_edges  dimension of each type; empty: all have D
  /// \throws std::invalid_argument  a graph with another number of types
  StalkMasks(const Graph& graph, const EdgeBlocks<S>& blocks, int D, std::span<const Index> of_nodes,
             std::span<const Index> of_edges)
      : largest_(D), node_(static_cast<std::size_t>(graph.node_count()), D) {
    check("node types of the graph", graph.node_type_count(), of_nodes);
    check("edge types of the graph", graph.edge_type_count(), of_edges);
    if (!of_nodes.empty()) {
      for (std::size_t u = 0; u < node_.size(); ++u) {
        node_[u] = of_nodes[static_cast<std::size_t>(graph.node_types()[u])];
      }
    }
    rows_.resize(blocks.block_count() * W);
    columns_.resize(blocks.block_count() * 2 * W);
    for (Index block = 0; block < blocks.block_count(); ++block) {
      for (int lane = 0; lane < W; ++lane) {
        const auto e = static_cast<std::size_t>(std::min(block * W + lane, graph.edge_count() - 1));
        const Index d = of_edges.empty() ? Index{D} : of_edges[static_cast<std::size_t>(graph.edge_types()[e])];
        rows_[block * W + lane] = static_cast<S>(d);
        for (int side = 0; side < 2; ++side) {
          columns_[(block * 2 + side) * W + lane] =
              static_cast<S>(node_[static_cast<std::size_t>(blocks.nodes(block, side)[lane])]);
        }
      }
    }
  }

  /// 1 where the maps of a block and side have the entry of coordinate k of their chart, else 0.
  template <class Family>
  [[nodiscard]] P present(Index block, int side, int k) const {
    constexpr int D = Family::stalk_dimension;
    constexpr bool dense = Family::coordinate_count > D;
    const int i = dense ? k / D : k, j = dense ? k % D : k;
    const P rows = P::load(rows_.data() + block * W), columns = P::load(columns_.data() + (block * 2 + side) * W);
    return select(rows > P(S(i)), select(columns > P(S(j)), P(S(1)), P(S(0))), P(S(0)));
  }
  /// Sets absent entries of maps, or of their derivatives, to 0.
  template <class Family>
  void mask(Index block, int side, typename Family::template Map<P>& map) const {
    if constexpr (sheaf::may_be_residual<Family>) {
      P z[Family::coordinate_count];
      Family::to_coordinates(map, z);
      for (int k = 0; k < Family::coordinate_count; ++k) {
        z[k] = select(present<Family>(block, side, k) > P(S(0)), z[k], P(S(0)));
      }
      Family::from_coordinates(z, map);
    }
  }

  /// Copies features, with 0 for absent coordinates. Unchecked: that both have the same shape.
  ///
  /// \param nodes  of the first rows; the rows after them are copied unchanged
  /// \param from   rows of d' × f values, of which the first D × f are the stalk's
  /// \param to     may be the same array
  void mask(Execution execution, const NodeSelection& nodes, const MatrixView<const S>& from,
            const MatrixView<S>& to, Index channels) const {
    parallel_for(execution, from.rows(), 64, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) {
        S* const row = to.row(r).data();
        if (from.row(r).data() != row) std::copy_n(from.row(r).data(), from.columns(), row);
        if (r >= nodes.count()) continue;
        const Index d = node_[static_cast<std::size_t>(nodes[r])];
        std::fill(row + d * channels, row + largest_ * channels, S(0));
      }
    });
  }

 private:
  static void check(std::string_view name, Index count, std::span<const Index> dimensions) {
    require(dimensions.empty() || count == static_cast<Index>(dimensions.size()), name, count,
            detail::concat("the network has stalks for ", dimensions.size()));
  }

  Index largest_;
  std::vector<Index> node_;   ///< d_v of every node
  Buffer<S> rows_, columns_;  ///< d_e of every edge and d_v of its ends, lanes-innermost
};

}  // namespace sheafnn::layers
