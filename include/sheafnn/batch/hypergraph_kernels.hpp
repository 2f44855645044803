/// \file
/// Kernels of a layer over a hypergraph: the Laplacian as a walk over hyperedges and one over nodes, and the derivatives of
/// the maps. The end of the layer is an equation (laplacian_kernels.hpp). Source: math: "Hypergraphs" (7.5), (7.6), (7.8).
/// For one network: layers/hypergraph_terms.hpp and layers/hypergraph_layer.hpp. Features as in feature_kernels.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/hypergraph.hpp"
#include "sheafnn/batch/hypergraph_selection.hpp"
#include "sheafnn/batch/laplacian_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/layer_end.hpp"

namespace sheafnn::batch::detail {

/// Adds F x, or −Fᵀ x, of a pair's map F. \param x  first of the D coordinates, `stride` values apart, at some channels
template <bool Back, class Family, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_image(const SheafView<Family, S>& sheaf, Index slot, Index pair,
                                                const ChannelRange& range, const S* x, std::uint32_t stride,
                                                Tile<S>* sum) {
  constexpr int D = Family::stalk_dimension;
  const typename Family::template Map<S> map = sheaf.load_map(slot, pair);
  Tile<S> value[D];
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) value[i] = range.load(x + static_cast<std::uint32_t>(i) * stride);
  kernels::add_block_times<D, sheaf::BlockSizes<Family>::map, Back, Back>(map.data(), value, sum);
}

/// m of every slot, a sum of F_j w over members: a team per item (slot, channels), lanes over members; group: instance.
template <class Family, class S>
struct SlotSums {
  using Scalar = S;
  static constexpr int D = Family::stalk_dimension, outputs = 4 * D;
  IncidenceView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  IncidenceTerms<S> terms;
  FeatureShape<S> shape;  ///< of m, with slots in place of nodes
  const S* features;      ///< W
  S* m;
  int lanes;

  using Place = NodeChannels;
  [[nodiscard]] SHEAFNN_HD Place place(Index item, Index instance) const { return shape.place(item, instance); }

  SHEAFNN_HD void part(const Place& at, int lane, S* sums) const {
    const Index row = shape.row(), slot = range.slot(at.instance), e = hyperedge(at);
    const S* first = features + at.instance * graph.nodes * row + at.channel;
    Tile<S> own[D] = {};
    const auto add = [&](std::int32_t pair) {
      add_image<false>(sheaf, slot, pair, at.range, first + graph.edge_node[pair] * row, shape.stride(), own);
    };
    if (!terms.selected() || kernels::sums_all(at.node & 1, terms.mediators)) {
      SHEAFNN_NO_UNROLL for (std::int32_t k = graph.member_offset[e] + lane; k < graph.member_offset[e + 1];
                             k += lanes) {
        add(graph.member[k]);
      }
    } else {
      const std::int32_t* end = terms.end + (at.instance * graph.hyperedges + e) * 2;
      SHEAFNN_NO_UNROLL for (int side = lane; side < 2; side += lanes) {
        if (end[side] >= 0 && kernels::sends(side, at.node & 1, terms.mediators)) add(end[side]);
      }
    }
    add_numbers(own, sums);
  }
  SHEAFNN_HD void finish(const Place& at, const S* sums) const {
    const Index e = hyperedge(at);
    const S factor =
        terms.selected()
            ? kernels::selected_weight<S>(graph.member_offset[e + 1] - graph.member_offset[e], terms.mediators)
            : graph.share[e];
    Tile<S> own[D];
    unpack(sums, own);
    at.range.choose([&](auto tile) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i)
          tile.store(factor * own[i], m + at.index + static_cast<std::uint32_t>(i) * shape.stride());
    });
  }

 private:
  [[nodiscard]] SHEAFNN_HD Index hyperedge(const Place& at) const {
    return terms.selected() ? at.node / 2 : at.node;
  }
};

/// L at one node and some channels, from the vectors m that its pairs read: R = D̃ W − Σ F_iᵀ m and Z = S R; of the published
/// Laplacian Z = V − W + S R, where W = S V. For WalkTeam.
template <class Family, class S>
struct IncidenceWalk {
  static constexpr int D = Family::stalk_dimension, max_coordinates = D + 2;
  IncidenceView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  IncidenceTerms<S> terms;
  FeatureShape<S> shape;
  const S* features;                    ///< W
  const S* m;                           ///< from SlotSums of W
  const S* unscaled;                    ///< V
  const std::int32_t* nodes = nullptr;  ///< no node is an item elsewhere

  struct Place {
    NodeChannels at;
    Index slot = 0;
    static constexpr bool left_out = false;
  };
  [[nodiscard]] SHEAFNN_HD Place place(Index item, Index instance) const {
    return {shape.place(item, instance, nodes), range.slot(instance)};
  }

  /// A lane's part of the sum over pairs, coordinate by coordinate.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void gather(const Place& place, int lane, int lanes, S* sums) const {
    const NodeChannels& at = place.at;
    const Index row = shape.row();
    const S* first = m + at.instance * graph.slots * row + at.channel;
    Tile<S> own[max_coordinates] = {};
    SHEAFNN_NO_UNROLL for (std::int32_t pair = graph.offset[at.node] + lane; pair < graph.offset[at.node + 1];
                           pair += lanes) {
      const std::int32_t slot = terms.slot_of(graph, at.instance, pair);
      if (slot >= 0) add_image<true>(sheaf, place.slot, pair, at.range, first + slot * row, shape.stride(), own);
    }
    add_numbers(own, sums);
  }
  /// R and Z from the sum.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void finish(const Place& place, const S* sums, Tile<S> (&r)[max_coordinates],
                                               Tile<S> (&z)[max_coordinates]) const {
    Tile<S> own[max_coordinates];
    load_stalk(shape, place.at, features, own);
    const S* degree = terms.selected() ? terms.degree + (place.at.instance * graph.nodes + place.at.node) *
                                                            BlockRows<Family>::gram
                                       : sheaf.degree_block_of(place.slot, place.at.node);
    node_times<Family>(degree, S(0), own, r);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) r[i] += Tile<S>::load(sums + 4 * i);
    node_times<Family>(sheaf.scale_of(place.slot, place.at.node), S(0), r, z);
    if (graph.pair_weight == nullptr) return;
    Tile<S> whole[max_coordinates];
    load_stalk(shape, place.at, unscaled, whole);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) z[i] = whole[i] - own[i] + z[i];
  }
};

/// Derivatives of the maps except through S, and except through D of a linear Laplacian. They are −(m̄ wᵀ + m r̄ᵀ) summed
/// over channels, and what comes through D̃ where it has terms of its own. A team per pair, lanes over channels; group:
/// instance.
template <class Family, class S>
struct IncidenceGradient {
  using Scalar = S;
  static constexpr int D = Family::stalk_dimension, size = sheaf::BlockSizes<Family>::map, outputs = size;
  IncidenceView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  IncidenceTerms<S> terms;
  FeatureShape<S> shape;
  const S *w, *r_bar;
  const S *m, *m_bar;   ///< of W and R̄
  const S* degree_bar;  ///< of D̃_v, padded rows of an instance, where pairs are selected
  S* out;               ///< BlockGradient::map
  bool add;             ///< another layer has the same sheaf
  int lanes;

  SHEAFNN_HD void part(Index pair, Index instance, int lane, S* sums) const {
    const std::int32_t slot = terms.slot_of(graph, instance, pair);
    if (slot < 0) return;
    const Index row = shape.row(), node = (instance * graph.nodes + graph.edge_node[pair]) * row,
                read = (instance * graph.slots + slot) * row;
    for_lane_tiles<D>(shape, lane, lanes, [&](std::uint32_t c, const auto& reader) {
      Tile<S> own[D], own_bar[D], sum[D], sum_bar[D];
      reader.load(w + node + c, own);
      reader.load(r_bar + node + c, own_bar);
      reader.load(m + read + c, sum);
      reader.load(m_bar + read + c, sum_bar);
      kernels::add_products<D, size>(sum_bar, own, sum, own_bar, sums);
    });
  }
  SHEAFNN_HD void finish(Index pair, Index instance, const S* sums) const {
    using Map = typename Family::template Map<S>;
    const Index pairs = graph.pairs(), slot = range.slot(instance);
    Map bar = Map::Constant(S(0));
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) bar.data()[k] = -sums[k];
    if constexpr (!sheaf::is_orthogonal<Family>) {
      if (terms.selected()) {
        const S* row = degree_bar + (instance * graph.nodes + graph.edge_node[pair]) * BlockRows<Family>::gram;
        const sheaf::Gram<Family, S> own =
            load_padded<sheaf::Gram<Family, S>>(row) * terms.weight[instance * pairs + pair];
        sheaf::gram_backward<Family, S>(sheaf.load_map(slot, pair), own, bar);
      }
    }
    S* to = out + slot * pairs * size + pair;
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) to[k * pairs] = (add ? to[k * pairs] : S(0)) + bar.data()[k];
  }
};

/// The derivative of D̃ of a layer that selects pairs, of D zeros; item: node, group: instance.
template <class Family, class S>
struct TakeDegreeBars {
  static constexpr int size = sheaf::BlockSizes<Family>::gram, row = BlockRows<Family>::gram;
  SheafRange range;
  Index nodes;
  S* degree;  ///< BlockGradient::degree, with the derivative of D̃
  S* out;     ///< rows of instances

  SHEAFNN_HD void operator()(Index v, Index instance) const {
    S numbers[size];
    S* from = degree + (range.slot(instance) * nodes + v) * row;
    load_row<size>(from, numbers);
    store_row<size>(numbers, out + (instance * nodes + v) * row);
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) numbers[k] = S(0);
    store_row<size>(numbers, from);
  }
};

}  // namespace sheafnn::batch::detail
