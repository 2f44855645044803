/// \file
/// Kernels that make the derivatives of a sheaf's blocks and of the input from the features of an attention layer and their
/// derivatives. Source: math: "Sheaf attention" (3.49). Features: attention_walks.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/attention_walks.hpp"
#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/block.hpp"

namespace sheafnn::batch::detail {

/// Derivative of L_uv = −Q_uv per edge, −Λ_uv R̄_u W_vᵀ − Λ_vu W_u R̄_vᵀ, and the same of transported scores: a team per edge,
/// lanes over channels; group: instance.
template <class Family, class S>
struct AttentionEdgeGradient {
  using Scalar = S;
  static constexpr int learned = Family::stalk_dimension, outputs = sheaf::BlockSizes<Family>::transport;
  QuerySums<Family, S> queries;
  const S *mean, *w, *r_bar;
  const S* source;  ///< what transported scores read, times S; null: they are not transported
  S* out;           ///< BlockGradient::off_diagonal
  bool add;         ///< another layer has the same sheaf
  int lanes;

  SHEAFNN_HD void part(Index edge, Index instance, int lane, S* sums) const {
    const FeatureShape<S>& shape = queries.shape;
    const ScoreShape<S>& scores = queries.scores;
    const Index base = instance * shape.size(), back = scores.reverse(edge);
    const Index u = base + scores.node(edge) * shape.row(), v = base + scores.target(edge) * shape.row();
    const S* weight = mean + instance * scores.count();
    for_lane_tiles<learned>(shape, lane, lanes, [&](std::uint32_t c, const auto& reader) {
      Tile<S> bar[learned], other[learned], here[learned], other_bar[learned];
      reader.load(r_bar + u + c, bar);
      reader.load(w + v + c, other);
      reader.load(w + u + c, here);
      reader.load(r_bar + v + c, other_bar);
      multiply(-weight[edge], bar);
      multiply(-weight[back], here);
      kernels::add_products<learned, outputs>(bar, other, here, other_bar, sums);
      if (source == nullptr) return;
      queries.sum(instance, edge, c, reader, bar);
      reader.load(source + v + c, other);
      reader.load(source + u + c, here);
      queries.sum(instance, back, c, reader, other_bar);
      multiply(S(-1), bar);
      multiply(S(-1), here);
      kernels::add_products<learned, outputs>(bar, other, here, other_bar, sums);
    });
  }
  SHEAFNN_HD void finish(Index edge, Index instance, const S* sums) const {
    const Index row = queries.scaling.range.slot(instance) * queries.scores.graph.edges + edge;
    store_sums<outputs>(sums, add, out + row * BlockRows<Family>::transport);
  }

 private:
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE static void multiply(S by, Tile<S>* x) {
    SHEAFNN_UNROLL for (int i = 0; i < learned; ++i) x[i] = by * x[i];
  }
};

/// Derivative of S_u where transports are normalised: M̄_u G_uᵀ + W̄_u Y_uᵀ with M = S G, and of transported scores the same
/// of what they read, and Σ_k κ_k q_kᵀ. A team per node, lanes over channels; group: instance. The derivative of D_u is 0 except for
/// S_u.
template <class Family, class S>
struct AttentionNodeGradient {
  using Scalar = S;
  static constexpr int learned = Family::stalk_dimension, outputs = sheaf::BlockSizes<Family>::gram;
  QuerySums<Family, S> queries;
  const S *m_bar, *gathered, *w_bar, *y;
  const S *source_bar, *source;  ///< of transported scores; null: they are not transported
  const S* kappa;                ///< of all heads
  Index head_stride;
  BlockGradient<S> out;
  bool add;
  int lanes;

  SHEAFNN_HD void part(Index u, Index instance, int lane, S* sums) const {
    if (!queries.scaling.normalised) return;
    const FeatureShape<S>& shape = queries.shape;
    const Index first = instance * shape.size() + u * shape.row();
    const S* query = queries.queries + instance / queries.copies * queries.run_stride;
    for_lane_tiles<learned>(shape, lane, lanes, [&](std::uint32_t c, const auto& reader) {
      const auto add_product = [&](const S* bar, const S* x) {
        Tile<S> a[learned], b[learned];
        reader.load(bar + c, a);
        reader.load(x + c, b);
        kernels::add_products<learned, outputs>(a, b, sums);
      };
      add_product(m_bar + first, gathered + first);
      add_product(w_bar + first, y + first);
      if (source == nullptr) return;
      add_product(source_bar + first, source + first);
      for (Index k = 0; k < queries.scores.heads; ++k) {
        add_product(kappa + k * head_stride + first, query + k * shape.row());
      }
    });
  }
  SHEAFNN_HD void finish(Index u, Index instance, const S* sums) const {
    const Index row = (queries.scaling.range.slot(instance) * queries.shape.nodes + u) * BlockRows<Family>::gram;
    const S nothing[outputs] = {};
    store_sums<outputs>(nothing, add, out.degree + row);
    store_sums<outputs>(sums, add, out.scale + row);
  }
};

/// Computes x̄ from Ȳ and the scores: P̄ = Aᵀ Ȳ, and x̄ ← dropout(P̄ B + what scores hand back). Where scores read the input
/// without dropout, x̄ ← dropout(P̄ B) + what they hand back. The option `residual` adds x̄'. item (node, channels), group:
/// instance.
template <class Family, class S>
struct AttentionMixBackward {
  MixBackward<Family, S> mixing;
  AttentionPlaces at_weights;
  bool residual, undropped;
  const S* keys;  ///< of run 0
  Index run_stride;
  const S* node_bar;    ///< s̄ and t̄
  const S* source_bar;  ///< in place of t̄ q; null: scores are not transported

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int max_coordinates = MixBackward<Family, S>::max_coordinates;
    const FeatureShape<S>& shape = mixing.shape;
    const Pass& pass = mixing.pass;
    Tile<S> bar[max_coordinates], back[max_coordinates], direct[max_coordinates] = {};
    mixing.through_mixing(at, bar);
    of_scores(at, back);
    if (residual) load_stalk(shape, at, static_cast<const S*>(mixing.x_bar), direct);
    Tile<S>* const to = undropped ? direct : bar;
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) to[i] += back[i];
    if (mixing.dropped) {
      drop_stalk(shape, at, pass.dropout<S>(mixing.runs, Purpose::layer_dropout, mixing.layer, at.instance), bar);
    }
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] += direct[i];
    store_stalk(shape, at, bar, mixing.x_bar);
  }

 private:
  template <int Max>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void of_scores(const NodeChannels& at, Tile<S> (&out)[Max]) const {
    const FeatureShape<S>& shape = mixing.shape;
    const Index heads = at_weights.heads, run = mixing.pass.run_of(at.instance);
    if (source_bar != nullptr) {
      load_stalk(shape, at, source_bar, out);
    } else {
      SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) out[i] = {};
    }
    NodeChannels line = at;  // of a key
    const S* bars = node_bar + (at.instance * shape.nodes + at.node) * 2 * heads;
    for (Index k = 0; k < (source_bar != nullptr ? heads : 2 * heads); ++k) {
      Tile<S> key[Max];
      line.index = run * run_stride + k * shape.row() + at.channel;
      load_stalk(shape, line, keys, key);
      SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) out[i] += bars[k] * key[i];
    }
  }
};

}  // namespace sheafnn::batch::detail
