/// \file
/// Kernels of the sheaf's backward pass, from the blocks of the Laplacian to the learner's raw outputs (forward,
/// and what they are made of: sheaf_kernels.hpp).
///
/// Unchecked: numbers of items, runs, instances and lanes, and the room behind pointers and views; BatchNetwork and
/// BatchTrainer check what they are given.
#pragma once

#include "sheafnn/batch/sheaf_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/sheaf/family.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::batch::detail {

/// Derivatives of a sheaf's blocks, by slot.
template <class S>
struct BlockGradient {
  S* off_diagonal;  ///< m padded rows: of L_uv = −Q_e
  S* degree;        ///< n padded rows: of D_u
  S* scale;         ///< n padded rows: of S_u, not symmetrised
};

/// Adds the derivative through S_u to that of D_u; item: node, group: a sheaf of an instance.
template <class Family, class S>
struct BackwardNodes {
  using Sizes = BlockSizes<Family>;
  SheafRange range;
  SheafView<Family, S> sheaf;
  BlockGradient<S> gradient;
  Normalisation normalisation;

  SHEAFNN_HD void operator()(Index u, Index group) const {
    const Index slot = range.slot(group), index = slot * sheaf.nodes + u, row = index * BlockRows<Family>::gram;
    NodeScaling<Family, S> scaling;
    scaling.scale = load_padded<Gram<Family, S>>(sheaf.scale_of(slot, u));
    if constexpr (Sizes::dense_gram) {
      const S* eigen = sheaf.eigen + index * Sizes::eigen;
      scaling.vectors = load_block<SquareMatrix<S, Sizes::dimension>>(eigen);
      scaling.root = load_block<Column<S, Sizes::dimension>>(eigen + Sizes::gram);
    }
    const Gram<Family, S> scale_bar = load_padded<Gram<Family, S>>(gradient.scale + row);
    Gram<Family, S> degree_bar = load_padded<Gram<Family, S>>(gradient.degree + row);
    node_scaling_backward<Family, S>(normalisation, scaling, scale_bar, degree_bar);
    store_padded(degree_bar, gradient.degree + row);
  }
};

/// Derivatives of the two maps of an edge and, when it has one, of its weight, from those of the blocks.
template <class Family, class S>
SHEAFNN_HD SHEAFNN_INLINE void backward_edge(const GraphView<S>& graph, const SheafView<Family, S>& sheaf,
                                             const BlockGradient<S>& gradient, Index slot, Index edge,
                                             const S* edge_weight, typename Family::template Map<S> (&map)[2],
                                             typename Family::template Map<S> (&map_bar)[2], S& weight_bar) {
  using Rows = BlockRows<Family>;
  using Map = typename Family::template Map<S>;
  const Index m = graph.edges;
  SHEAFNN_UNROLL for (int side = 0; side < 2; ++side) {
    map[side] = sheaf.load_map(slot, side * m + edge);
    map_bar[side] = Map::Constant(S(0));
  }
  Transport<Family, S> q_bar =
      load_padded<Transport<Family, S>>(gradient.off_diagonal + (slot * m + edge) * Rows::transport);
  q_bar = -q_bar;
  S square_bar = S(0);
  if (edge_weight != nullptr) {
    square_bar = inner_product(q_bar, transport<Family, S>(map[0], map[1]));
    q_bar *= *edge_weight * *edge_weight;
  }
  transport_backward<Family, S>(map[0], map[1], q_bar, map_bar[0], map_bar[1]);
  SHEAFNN_UNROLL for (int side = 0; side < 2; ++side) {
    const Index u = graph.edge_node[side * m + edge];
    Gram<Family, S> degree_bar =
        load_padded<Gram<Family, S>>(gradient.degree + (slot * graph.nodes + u) * Rows::gram);
    if (edge_weight != nullptr) square_bar += inner_product(degree_bar, gram<Family, S>(map[side]));
    if constexpr (!is_orthogonal<Family>) {
      if (edge_weight != nullptr) degree_bar *= *edge_weight * *edge_weight;
      gram_backward<Family, S>(map[side], degree_bar, map_bar[side]);
    }
  }
  if (edge_weight != nullptr) weight_bar += S(2) * *edge_weight * square_bar;
}

/// Derivatives of ω·[Z_u‖Z_v] of both sides of an edge from that of its weight.
template <class S>
SHEAFNN_HD SHEAFNN_INLINE void store_logit_bars(const S* factors, Index edges, Index edge, const S& weight_bar,
                                                S* out) {
  for (int side = 0; side < 2; ++side) {
    const S own = factors[side * edges + edge], other = factors[(1 - side) * edges + edge];
    out[side * edges + edge] = weight_bar * other * own * (S(1) - own);
  }
}

/// From the derivatives of the blocks of all sheaves of a run to the raw outputs', KL term included.
/// A team per edge, lanes over its sheaves; group: run.
template <class Q, class S>
struct BackwardSampledEdges {
  using Family = typename Q::family;
  using Scalar = S;
  /// Sums: derivatives in the distributions of both sides; in the edge's weight; log q − log p of both sides.
  static constexpr int weight_sum = 2 * Q::gradient_size, kl_sums = weight_sum + 1, outputs = kl_sums + 2;
  GraphView<S> graph;
  SheafView<Family, S> sheaf;
  BlockGradient<S> gradient;
  const Run* runs;
  Index copies;
  Divisor sheaves;
  PairArray<S> raw, raw_bar;
  SampledMaps<Q, S> maps;  ///< as they were drawn
  const S* edge_weight;    ///< null: 1
  const S* edge_factor;
  S* edge_logit_bar;
  bool closed_form;
  S* kl;  ///< log q − log p per incident pair, when not closed_form
  int lanes;

  /// Lanes for `count` sheaves: a large graph has enough edges for all threads, and neighbouring threads should
  /// read neighbouring edges.
  [[nodiscard]] static int lanes_for(const GraphView<S>& graph, Index count) noexcept {
    int r = 1;
    while (graph.edges < 100'000 && r < count && r < max_lanes) r *= 2;
    return r;
  }

  SHEAFNN_HD void part(Index edge, Index run, int lane, S* sums) const {
    using Map = typename Family::template Map<S>;
    const Index m = graph.edges, count = copies * sheaves;
    const S* weight = edge_weight != nullptr ? edge_weight + run * m + edge : nullptr;
    const S monte_carlo_share = static_cast<S>(closed_form ? 0.0 : kl_share(run) / static_cast<double>(count));
    S in[2][Q::parameter_size];
    SHEAFNN_UNROLL for (int side = 0; side < 2; ++side) load_parameters(run, side * m + edge, in[side]);
    for (Index i = lane; i < count; i += lanes) {
      Map map[2], map_bar[2];
      backward_edge<Family, S>(graph, sheaf, gradient, run * count + i, edge, weight, map, map_bar,
                               sums[weight_sum]);
      SHEAFNN_UNROLL for (int side = 0; side < 2; ++side) {
        S draw[Q::noise_size];
        const S* noise = nullptr;
        if constexpr (needs_noise<Q>) {
          maps.draw_noise(run * copies + i / sheaves, i % sheaves, side * m + edge, draw);
          noise = draw;
        }
        maps.posterior.sample_backward(in[side], noise, map[side], map_bar[side], monte_carlo_share,
                                       sums + side * Q::gradient_size);
        if (!closed_form) sums[kl_sums + side] += maps.posterior.log_ratio(in[side], noise, map[side]);
      }
    }
  }
  SHEAFNN_HD void finish(Index edge, Index run, S* sums) const {
    constexpr int raw_size = Q::mean_size + Q::spread_size;
    const Index m = graph.edges;
    SHEAFNN_UNROLL for (int side = 0; side < 2; ++side) {
      const Index pair = side * m + edge;
      S in[Q::parameter_size], raw_in[raw_size], out[raw_size];
      S* bar = sums + side * Q::gradient_size;
      load_parameters(run, pair, in);
      if constexpr (Q::closed_form_kl) {
        if (closed_form && runs[run].kl_weight != 0) {
          maps.posterior.kl_backward(in, static_cast<S>(kl_share(run)), bar);
        }
      }
      for (int k = 0; k < raw_size; ++k) raw_in[k] = raw.at(run, pair, k);
      maps.posterior.activate_backward(raw_in, in, bar, out);
      for (int k = 0; k < raw_size; ++k) raw_bar.at(run, pair, k) = out[k];
      if (!closed_form) kl[run * 2 * m + pair] = sums[kl_sums + side] / static_cast<S>(copies * sheaves);
    }
    if (edge_weight != nullptr) {
      store_logit_bars(edge_factor + run * 2 * m, m, edge, sums[weight_sum], edge_logit_bar + run * 2 * m);
    }
  }

 private:
  /// λ per incident pair.
  [[nodiscard]] SHEAFNN_HD double kl_share(Index run) const {
    return runs[run].kl_weight / static_cast<double>(2 * graph.edges);
  }
  SHEAFNN_HD void load_parameters(Index run, Index pair, S* out) const {
    for (int k = 0; k < Q::parameter_size; ++k) out[k] = maps.parameters.at(run, pair, k);
  }
};

/// The same for deterministic maps of one sheaf. item: edge, group: run.
template <class Family, class S>
struct BackwardMeanEdges {
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  BlockGradient<S> gradient;
  PairArray<S> raw, raw_bar;
  PointMap<Family> point;
  const S* edge_weight;
  const S* edge_factor;
  S* edge_logit_bar;

  SHEAFNN_HD void operator()(Index edge, Index run) const {
    constexpr int size = PointMap<Family>::size, raw_size = sheafnn::detail::array_size(size);
    const Index m = graph.edges;
    const S* weight = edge_weight != nullptr ? edge_weight + run * m + edge : nullptr;
    typename Family::template Map<S> map[2], map_bar[2];
    S weight_bar = S(0);
    backward_edge<Family, S>(graph, sheaf, gradient, range.slot(run), edge, weight, map, map_bar, weight_bar);
    SHEAFNN_UNROLL for (int side = 0; side < 2; ++side) {
      const Index pair = side * m + edge;
      S raw_in[raw_size], out[raw_size];
      for (int k = 0; k < size; ++k) raw_in[k] = raw.at(run, pair, k);
      point.backward(raw_in, map_bar[side], out);
      for (int k = 0; k < size; ++k) raw_bar.at(run, pair, k) = out[k];
    }
    if (weight != nullptr) {
      store_logit_bars(edge_factor + run * 2 * m, m, edge, weight_bar, edge_logit_bar + run * 2 * m);
    }
  }
};

}  // namespace sheafnn::batch::detail
