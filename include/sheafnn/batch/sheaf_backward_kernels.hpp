/// \file
/// Kernels of the sheaf's backward pass, from the blocks of the Laplacian to the learner's raw outputs (forward,
/// and what they are made of: sheaf_kernels.hpp).
#pragma once

#include "sheafnn/batch/sheaf_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/edge.hpp"
#include "sheafnn/sheaf/family.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::batch::detail {

/// Derivatives of a sheaf's blocks and, where layers read maps, of its maps, by slot.
template <class S>
struct BlockGradient {
  S* off_diagonal;  ///< m padded rows: of L_uv = −Q_e
  S* degree;        ///< n padded rows: of D_u
  S* scale;         ///< n padded rows: of S_u, not symmetrised
  S* map;           ///< pairs × map, entry by entry; null: no layer reads maps
};

/// Adds the derivative through S_u to the derivative of D_u; item: node, group: a sheaf of an instance.
template <class Family, class S>
struct BackwardNodes {
  using Sizes = sheaf::BlockSizes<Family>;
  SheafRange range;
  SheafView<Family, S> sheaf;
  BlockGradient<S> gradient;
  Normalisation normalisation;

  SHEAFNN_HD void operator()(Index u, Index group) const {
    const Index slot = range.slot(group), index = slot * sheaf.nodes + u, row = index * BlockRows<Family>::gram;
    sheaf::NodeScaling<Family, S> scaling;
    scaling.scale = load_padded<sheaf::Gram<Family, S>>(sheaf.scale_of(slot, u));
    if constexpr (Sizes::dense_gram) {
      const S* eigen = sheaf.eigen + index * Sizes::eigen;
      scaling.vectors = load_block<SquareMatrix<S, Sizes::dimension>>(eigen);
      scaling.root = load_block<math::Column<S, Sizes::dimension>>(eigen + Sizes::gram);
    }
    const sheaf::Gram<Family, S> scale_bar = load_padded<sheaf::Gram<Family, S>>(gradient.scale + row);
    sheaf::Gram<Family, S> degree_bar = load_padded<sheaf::Gram<Family, S>>(gradient.degree + row);
    sheaf::node_scaling_backward<Family, S>(normalisation, scaling, scale_bar, degree_bar);
    store_padded(degree_bar, gradient.degree + row);
  }
};

/// The incident pairs of the backward pass, edge by edge, so that neighbouring threads read the same edges: item 2e +
/// side.
struct EdgeSide {
  static constexpr bool weighted = true;  ///< may its edge have a weight?
  Index edge;
  int side;
  explicit SHEAFNN_HD EdgeSide(Index item) : edge(item >> 1), side(static_cast<int>(item & 1)) {}
  [[nodiscard]] SHEAFNN_HD Index pair(Index edges) const { return side * edges + edge; }
};
/// The same of a hypergraph: a pair, which is its own item.
struct IncidentPair {
  static constexpr bool weighted = false;
  Index number;
  explicit SHEAFNN_HD IncidentPair(Index item) : number(item) {}
  [[nodiscard]] SHEAFNN_HD Index pair(Index) const { return number; }
};
/// The items of kernels over the maps of a view: sides of the edges of a graph, or incident pairs of a hypergraph.
template <class View>
struct SideOf {
  using type = EdgeSide;
};
template <class S>
struct SideOf<IncidenceView<S>> {
  using type = IncidentPair;
};

/// Adds the derivative of a pair's map that layers have computed.
template <class Family, class S>
SHEAFNN_HD SHEAFNN_INLINE void add_map_bar(const SheafView<Family, S>& sheaf, const BlockGradient<S>& gradient,
                                           Index slot, Index pair, typename Family::template Map<S>& map_bar) {
  constexpr int size = SheafView<Family, S>::Sizes::map;
  const S* own = gradient.map + slot * sheaf.pairs * size + pair;
  SHEAFNN_UNROLL for (int k = 0; k < size; ++k) map_bar.data()[k] += own[k * sheaf.pairs];
}

/// Derivatives of the map of one side of an edge from the derivatives of the blocks, and of the weight where the edge
/// has one. One side at a time: both do not fit into the registers of a thread at D = 5.
template <class Family, class S>
SHEAFNN_HD SHEAFNN_INLINE void backward_side(const GraphView<S>& graph, const SheafView<Family, S>& sheaf,
                                             const BlockGradient<S>& gradient, Index slot, const EdgeSide& at,
                                             const S* edge_weight, typename Family::template Map<S>& map,
                                             typename Family::template Map<S>& map_bar, S& weight_bar) {
  using Rows = BlockRows<Family>;
  using Map = typename Family::template Map<S>;
  const Index m = graph.edges, pair = at.pair(m), other_pair = at.side == 0 ? m + at.edge : at.edge;
  const auto degree_bar_of = [&](Index p) {
    return load_padded<sheaf::Gram<Family, S>>(gradient.degree +
                                               (slot * graph.nodes + graph.edge_node[p]) * Rows::gram);
  };
  map = sheaf.load_map(slot, pair);
  map_bar = Map::Constant(S(0));
  const Map other = sheaf.load_map(slot, other_pair);
  Map unused = Map::Constant(S(0));
  sheaf::Transport<Family, S> q_bar =
      load_padded<sheaf::Transport<Family, S>>(gradient.off_diagonal + (slot * m + at.edge) * Rows::transport);
  q_bar = -q_bar;
  S square = S(1);
  if (edge_weight != nullptr) {
    const sheaf::Transport<Family, S> q =
        at.side == 0 ? sheaf::transport<Family, S>(map, other) : sheaf::transport<Family, S>(other, map);
    const S own_part = math::inner_product(degree_bar_of(pair), sheaf::gram<Family, S>(map));
    const S other_part = math::inner_product(degree_bar_of(other_pair), sheaf::gram<Family, S>(other));
    weight_bar += S(2) * *edge_weight * (math::inner_product(q_bar, q) + (own_part + other_part));
    square = *edge_weight * *edge_weight;
    q_bar *= square;
  }
  if (at.side == 0) {
    sheaf::transport_backward<Family, S>(map, other, q_bar, map_bar, unused);
  } else {
    sheaf::transport_backward<Family, S>(other, map, q_bar, unused, map_bar);
  }
  if constexpr (!sheaf::is_orthogonal<Family>) {
    sheaf::Gram<Family, S> degree_bar = degree_bar_of(pair);
    if (edge_weight != nullptr) degree_bar *= square;
    sheaf::gram_backward<Family, S>(map, degree_bar, map_bar);
  }
  if (gradient.map != nullptr) add_map_bar(sheaf, gradient, slot, pair, map_bar);
}
/// The same of a pair of a hypergraph, which has no weight to learn.
template <class Family, class S>
SHEAFNN_HD SHEAFNN_INLINE void backward_side(const IncidenceView<S>& graph, const SheafView<Family, S>& sheaf,
                                             const BlockGradient<S>& gradient, Index slot, const IncidentPair& at,
                                             const S*, typename Family::template Map<S>& map,
                                             typename Family::template Map<S>& map_bar, S&) {
  const Index pair = at.number;
  map = sheaf.load_map(slot, pair);
  map_bar = Family::template Map<S>::Constant(S(0));
  add_map_bar(sheaf, gradient, slot, pair, map_bar);
  if constexpr (!sheaf::is_orthogonal<Family>) {
    const Index row = (slot * graph.nodes + graph.edge_node[pair]) * BlockRows<Family>::gram;
    sheaf::Gram<Family, S> degree_bar = load_padded<sheaf::Gram<Family, S>>(gradient.degree + row);
    if (graph.pair_weight != nullptr) degree_bar *= graph.pair_weight[pair];
    sheaf::gram_backward<Family, S>(map, degree_bar, map_bar);
  }
}

/// Derivative of ω·[Z_u‖Z_v] of one side of an edge from the derivative of its weight.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S logit_bar(const S* factors, Index edges, const EdgeSide& at,
                                                    const S& weight_bar) {
  const S own = factors[at.pair(edges)], other = factors[(1 - at.side) * edges + at.edge];
  return kernels::edge_logit_bar(weight_bar, own, other);
}

/// Computes the derivatives of raw outputs, KL term included, from the derivatives of the blocks of all sheaves of a run.
/// A team per EdgeSide, or IncidentPair, lanes over its sheaves; group: run.
template <class Q, class S, class View = GraphView<S>>
struct BackwardSampledEdges {
  using Side = typename SideOf<View>::type;
  using Family = typename Q::family;
  using Scalar = S;
  /// Sums: derivatives in the distribution's parameters; in the edge's weight; log q − log p.
  static constexpr int weight_sum = Q::gradient_size, kl_sum = weight_sum + 1, outputs = kl_sum + 1;
  View graph;
  SheafView<Family, S> sheaf;
  BlockGradient<S> gradient;
  const Run* runs;
  Index copies;
  Divisor sheaves;
  PairArray<S> raw, raw_bar;
  SampledMaps<Q, S, View> maps;  ///< as they were drawn
  const S* edge_weight;          ///< null: 1
  const S* edge_factor;          ///< null: edge weights are not learned
  S* edge_logit_bar;
  bool closed_form;
  S* kl;  ///< log q − log p per incident pair, when not closed_form
  int lanes;
  double pair_share;  ///< 1/(2m), of an incident pair in the mean KL term: divisions cost registers
  double draw_share;  ///< 1 / (copies · sheaves)

  /// Lanes for `count` sheaves: a large graph has enough edges for all threads, and neighbouring threads should
  /// read neighbouring edges.
  [[nodiscard]] static int lanes_for(const View& graph, Index count) noexcept {
    int r = 1;
    while (graph.edges < 100'000 && r < count && r < max_lanes) r *= 2;
    return r;
  }

  SHEAFNN_HD void part(Index item, Index run, int lane, S* sums) const {
    using Map = typename Family::template Map<S>;
    const Side at(item);
    const Index m = graph.edges, pair = at.pair(m), count = copies * sheaves;
    const S* weight = nullptr;
    if constexpr (Side::weighted) {
      if (edge_weight != nullptr) weight = edge_weight + run * m + at.edge;
    }
    const S monte_carlo_share = static_cast<S>(closed_form ? 0.0 : kl_share(run) * draw_share);
    SHEAFNN_NO_UNROLL for (Index i = lane; i < count; i += lanes) {
      Map map, map_bar;
      backward_side<Family, S>(graph, sheaf, gradient, run * count + i, at, weight, map, map_bar,
                               sums[weight_sum]);
      S draw[Q::noise_size];
      const S* noise = nullptr;
      if constexpr (needs_noise<Q>) {
        maps.draw_noise(run * copies + i / sheaves, i % sheaves, pair, draw);
        noise = draw;
      }
      // Loaded where they are read, twice, because they are many.
      S in[Q::parameter_size];
      load_parameters(run, pair, in);
      const auto& drawn = maps.centre.deviation(pair, map);
      maps.posterior.sample_backward(in, noise, drawn, maps.centre.deviation_bar(pair, map_bar), monte_carlo_share,
                                     sums);
      if (!closed_form) {
        load_parameters(run, pair, in);
        sums[kl_sum] += maps.posterior.log_ratio(in, noise, drawn);
      }
    }
  }
  SHEAFNN_HD void finish(Index item, Index run, S* sums) const {
    constexpr int raw_size = Q::mean_size + Q::spread_size;
    const Side at(item);
    const Index m = graph.edges, pair = at.pair(m);
    S in[Q::parameter_size], raw_in[raw_size], out[raw_size];
    load_parameters(run, pair, in);
    if constexpr (Q::closed_form_kl) {
      if (closed_form && runs[run].kl_weight != 0) {
        maps.posterior.kl_backward(in, static_cast<S>(kl_share(run)), sums);
      }
    }
    load_raw(maps.posterior, raw, run, pair, raw_in);
    maps.posterior.activate_backward(raw_in, in, sums, out);
    const int missing = missing_outputs(maps.posterior);
    SHEAFNN_UNROLL for (int k = 0; k < raw_size; ++k) {
      if (k >= missing) raw_bar.at(run, pair, k - missing) = out[k];
    }
    if (!closed_form) kl[run * graph.pairs() + pair] = sums[kl_sum] * static_cast<S>(draw_share);
    if constexpr (Side::weighted) {
      if (edge_factor != nullptr) {
        edge_logit_bar[run * 2 * m + pair] = logit_bar(edge_factor + run * 2 * m, m, at, sums[weight_sum]);
      }
    }
  }

 private:
  /// λ per incident pair.
  [[nodiscard]] SHEAFNN_HD double kl_share(Index run) const { return runs[run].kl_weight * pair_share; }
  SHEAFNN_HD void load_parameters(Index run, Index pair, S* out) const {
    SHEAFNN_UNROLL for (int k = 0; k < Q::parameter_size; ++k) out[k] = maps.parameters.at(run, pair, k);
  }
};

/// The same for deterministic maps of one sheaf. item: EdgeSide, or IncidentPair, group: instance.
template <class Family, class S, class View = GraphView<S>>
struct BackwardMeanEdges {
  using Side = typename SideOf<View>::type;
  View graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  BlockGradient<S> gradient;
  PairArray<S> raw, raw_bar;
  PointMap<Family> point;
  const S* edge_weight;
  const S* edge_factor;
  S* edge_logit_bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    constexpr int size = PointMap<Family>::size, raw_size = sheafnn::detail::array_size(size);
    const Side at(item);
    const Index m = graph.edges, pair = at.pair(m);
    const S* weight = nullptr;
    if constexpr (Side::weighted) {
      if (edge_weight != nullptr) weight = edge_weight + instance * m + at.edge;
    }
    typename Family::template Map<S> map, map_bar;
    S weight_bar = S(0);
    backward_side<Family, S>(graph, sheaf, gradient, range.slot(instance), at, weight, map, map_bar, weight_bar);
    S raw_in[raw_size], out[raw_size];
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) raw_in[k] = raw.at(instance, pair, k);
    point.backward(raw_in, map_bar, out);
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) raw_bar.at(instance, pair, k) = out[k];
    if constexpr (Side::weighted) {
      if (weight != nullptr) {
        edge_logit_bar[instance * 2 * m + pair] = logit_bar(edge_factor + instance * 2 * m, m, at, weight_bar);
      }
    }
  }
};

}  // namespace sheafnn::batch::detail
