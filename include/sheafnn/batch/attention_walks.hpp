/// \file
/// Kernels of features of an attention layer, M_u = S_u (Λ_uu W_u + Σ over arcs u → v of Λ_uv Q_uv W_v) with W = S Y, and of
/// its backward pass. Source: math: "Sheaf attention" (3.47, 3.49). Scores: attention_kernels.hpp. For one network:
/// layers/attention_layer.hpp. S is the identity unless transports are normalised. Features as in feature_kernels.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/attention_kernels.hpp"
#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/neighbour_sums.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/layer_end.hpp"

namespace sheafnn::batch::detail {

/// S of the nodes, or nothing. There are no fixed filters.
template <class Family, class S>
struct AttentionScaling {
  static constexpr int learned = Family::stalk_dimension, max_coordinates = learned + 2,
                       size = sheaf::BlockSizes<Family>::gram;
  SheafRange range;
  SheafView<Family, S> sheaf;
  bool normalised;

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void operator()(const NodeChannels& at, const Tile<S>* x, Tile<S>* y) const {
    scale(range.slot(at.instance), at.node, x, y);
    SHEAFNN_UNROLL for (int i = learned; i < max_coordinates; ++i) y[i] = x[i];
  }
  /// The learned coordinates alone.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void scale(Index slot, Index u, const Tile<S>* x, Tile<S>* y) const {
    if (normalised) {
      S block[size];
      load_row<size>(sheaf.scale_of(slot, u), block);
      kernels::block_times<learned, size>(block, x, y);
    } else {
      SHEAFNN_UNROLL for (int i = 0; i < learned; ++i) y[i] = x[i];
    }
  }
  /// sum += Q_uv x for the pair u → v.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_transported(Index slot, Index pair, const Tile<S>* x,
                                                        Tile<S>* sum) const {
    constexpr int numbers = sheaf::BlockSizes<Family>::transport;
    const bool turned = pair >= sheaf.edges;
    S block[numbers];
    load_row<numbers>(sheaf.transport_of(slot, turned ? pair - sheaf.edges : pair), block);
    if (turned) {
      kernels::add_block_times<learned, numbers, true, false>(block, x, sum);
    } else {
      kernels::add_block_times<learned, numbers, false, false>(block, x, sum);
    }
  }
};

/// What a walk multiplies the coordinates of neighbours v of u with: Q_uv times the weight of the score uv, or vu.
template <class Family, class S>
struct WeightedTransports {
  using Transports = SheafTransports<Family, S>;
  static constexpr int learned = Transports::learned, max_coordinates = Transports::max_coordinates;
  Transports transports;
  ScoreShape<S> scores;
  const S* weight;
  Index step;     ///< from one score to the next
  bool reversed;  ///< vu

  /// The arrays of an instance.
  struct Numbers {
    const S *transport, *weight;
    Index step;
    bool reversed;
  };
  [[nodiscard]] SHEAFNN_HD Index slot(Index instance) const { return transports.slot(instance); }
  [[nodiscard]] SHEAFNN_HD Numbers of(Index instance) const {
    return {transports.of(instance), weight + instance * scores.count() * step, step, reversed};
  }
  [[nodiscard]] SHEAFNN_HD S own_weight(Index instance, Index u) const {
    return of(instance).weight[scores.own(u) * step];
  }

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE static void add(const Numbers& of, std::uint32_t edges, std::uint32_t edge,
                                                   bool turned, const Tile<S>* x, Tile<S>* sums) {
    const Index pair = turned != of.reversed ? edges + edge : edge;
    const Tile<S> share(-of.weight[pair * of.step]);  // Transports::add() subtracts
    Tile<S> value[learned];
    SHEAFNN_UNROLL for (int i = 0; i < learned; ++i) value[i] = share * x[i];
    Transports::add(of.transport, edges, edge, turned, value, sums);
  }
};

/// A walk, and the node's own term.
template <class Family, class S>
struct WeightedWalk : WalkTeam<NeighbourSums<WeightedTransports<Family, S>, S>, S> {
  using Team = WalkTeam<NeighbourSums<WeightedTransports<Family, S>, S>, S>;
  using Team::max_coordinates, Team::diffusion;
  using typename Team::Place;

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void total(const Place& place, const S* sums,
                                              Tile<S> (&out)[max_coordinates]) const {
    const Tile<S> share(diffusion.blocks.own_weight(place.at.instance, place.at.node));
    unpack(sums, out);
    Tile<S> own[max_coordinates];
    load_stalk(diffusion.shape, place.at, diffusion.features, own);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) out[i] += share * own[i];
  }
};

/// M and X' from W.
template <class Family, class S>
struct AttentionForward : WeightedWalk<Family, S> {
  using Walk = WeightedWalk<Family, S>;
  using typename Walk::Place;
  using Walk::max_coordinates, Walk::diffusion;
  AttentionScaling<Family, S> scaling;
  kernels::AttentionEnd end;
  const S *x, *y;
  S* gathered;  ///< M before its own S; null: not kept
  S* change;    ///< of X; null: not kept
  LayerOutput<S> output;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    Tile<S> sum[max_coordinates], value[max_coordinates], old[max_coordinates] = {}, mixed[max_coordinates] = {};
    this->total(place, sums, sum);
    if (gathered != nullptr) store_stalk(shape, place.at, sum, gathered);
    scaling(place.at, sum, value);
    if (end.residual) {
      load_stalk(shape, place.at, x, old);
      load_stalk(shape, place.at, y, mixed);
    }
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) mixed[i] = end.change(value[i], mixed[i]);
    if (change != nullptr) store_stalk(shape, place.at, mixed, change);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) value[i] = end.forward(old[i], mixed[i]);
    output.store_value(shape, place.at, value);
  }
};

/// S x. item (node, channels), group: instance.
template <class Family, class S>
struct ScaleFeatures {
  AttentionScaling<Family, S> scaling;
  FeatureShape<S> shape;
  const S* x;
  S* out;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int max_coordinates = AttentionScaling<Family, S>::max_coordinates;
    Tile<S> value[max_coordinates], scaled[max_coordinates];
    load_stalk(shape, at, x, value);
    scaling(at, value, scaled);
    store_stalk(shape, at, scaled, out);
  }
};

/// ⟨a_u, Q_uv b_v⟩ over coordinates and channels, of scores: a team, lanes over channels.
template <class Family, class S>
struct ScoreProducts {
  static constexpr int learned = Family::stalk_dimension;
  using Scalar = S;
  static constexpr int outputs = 1;
  ScoreShape<S> scores;
  AttentionScaling<Family, S> scaling;
  FeatureShape<S> shape;
  const S* b;
  int lanes;

  /// \param load  load(reader, first channel, tiles) reads a_u
  template <class Load>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add(Index score, Index instance, int lane, S* sums,
                                            const Load& load) const {
    const Index slot = scaling.range.slot(instance);
    const S* from = b + instance * shape.size() + scores.target(score) * shape.row();
    for_lane_tiles<learned>(shape, lane, lanes, [&](std::uint32_t c, const auto& reader) {
      Tile<S> own[learned], other[learned], moved[learned] = {};
      load(reader, c, own);
      reader.load(from + c, other);
      if (score < scores.graph.pairs()) {
        scaling.add_transported(slot, score, other, moved);
      } else {
        SHEAFNN_UNROLL for (int i = 0; i < learned; ++i) moved[i] = other[i];
      }
      SHEAFNN_UNROLL for (int i = 0; i < learned; ++i) sums[0] += kernels::dot(own[i], moved[i]);
    });
  }
};
/// t_uv = ⟨q_k, Â_uv x_v⟩; item: (score, k), group: instance.
template <class Family, class S>
struct TransportedScores : ScoreProducts<Family, S> {
  using ScoreProducts<Family, S>::learned, ScoreProducts<Family, S>::scores;
  const S* queries;  ///< of run 0
  Index run_stride;
  Divisor copies;
  S* out;

  SHEAFNN_HD void part(Index item, Index instance, int lane, S* sums) const {
    const Index score = item / scores.heads, slot = this->scaling.range.slot(instance);
    const S* query = queries + instance / copies * run_stride + item % scores.heads * this->shape.row();
    this->add(score, instance, lane, sums, [&](const auto& reader, std::uint32_t c, Tile<S>(&own)[learned]) {
      Tile<S> plain[learned];
      reader.load(query + c, plain);
      this->scaling.scale(slot, scores.node(score), plain, own);
    });
  }
  SHEAFNN_HD void finish(Index item, Index instance, const S* sums) const {
    out[instance * scores.numbers() + item] = sums[0];
  }
};
/// Λ̄ from M̄ scaled by S and W; item: score, group: instance.
template <class Family, class S>
struct MeanBars : ScoreProducts<Family, S> {
  using ScoreProducts<Family, S>::learned, ScoreProducts<Family, S>::scores;
  const S* r_bar;
  S* out;

  SHEAFNN_HD void part(Index score, Index instance, int lane, S* sums) const {
    const S* bar = r_bar + instance * this->shape.size() + scores.node(score) * this->shape.row();
    this->add(score, instance, lane, sums,
              [&](const auto& reader, std::uint32_t c, Tile<S>(&own)[learned]) { reader.load(bar + c, own); });
  }
  SHEAFNN_HD void finish(Index score, Index instance, const S* sums) const {
    out[instance * scores.count() + score] = sums[0];
  }
};

/// M̄ and S M̄ from x̄'. item (node, channels), group: instance.
template <class Family, class S>
struct AttentionEndBackward {
  AttentionScaling<Family, S> scaling;
  FeatureShape<S> shape;
  kernels::AttentionEnd end;
  const S *change, *output_bar;
  S* m_bar;
  S* r_bar;  ///< null: it is M̄

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int max_coordinates = AttentionScaling<Family, S>::max_coordinates;
    Tile<S> value[max_coordinates], bar[max_coordinates];
    load_stalk(shape, at, change, value);
    load_stalk(shape, at, output_bar, bar);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] = end.backward(value[i], bar[i]);
    store_stalk(shape, at, bar, m_bar);
    if (r_bar == nullptr) return;
    scaling(at, bar, value);
    store_stalk(shape, at, value, r_bar);
  }
};

/// Computes the total of a walk, and S times the total minus what is given. Backwards, with weights vu: W̄ and Ȳ = S W̄,
/// minus M̄ with the option `residual`.
template <class Family, class S>
struct ScaledWalk : WeightedWalk<Family, S> {
  using Walk = WeightedWalk<Family, S>;
  using typename Walk::Place;
  using Walk::max_coordinates, Walk::diffusion;
  AttentionScaling<Family, S> scaling;
  const S* less;  ///< null: nothing
  S* plain;       ///< null: not kept
  S* out;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    Tile<S> sum[max_coordinates], value[max_coordinates], own[max_coordinates] = {};
    this->total(place, sums, sum);
    if (plain != nullptr) store_stalk(shape, place.at, sum, plain);
    scaling(place.at, sum, value);
    if (less != nullptr) load_stalk(shape, place.at, less, own);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) value[i] -= own[i];
    store_stalk(shape, place.at, value, out);
  }
};

/// What scores hand back to the features: Σ_k bar_k S_u q_k.
template <class Family, class S>
struct QuerySums {
  static constexpr int learned = Family::stalk_dimension;
  AttentionScaling<Family, S> scaling;
  FeatureShape<S> shape;
  ScoreShape<S> scores;
  const S* bar;      ///< of s + t
  const S* queries;  ///< of run 0
  Index run_stride;
  Divisor copies;

  /// Adds to `out` what the scores of the score's node give back. \param c  the first channel
  template <class Reader>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void sum(Index instance, Index score, std::uint32_t c, const Reader& reader,
                                            Tile<S> (&out)[learned]) const {
    const Index heads = scores.heads;
    const S* query = queries + instance / copies * run_stride + c;
    const S* of = bar + instance * scores.numbers() + score * heads;
    Tile<S> plain[learned] = {}, one[learned];
    for (Index k = 0; k < heads; ++k) {
      reader.load(query + k * shape.row(), one);
      SHEAFNN_UNROLL for (int i = 0; i < learned; ++i) plain[i] += of[k] * one[i];
    }
    scaling.scale(scaling.range.slot(instance), scores.node(score), plain, out);
  }
};

/// The derivative of what transported scores read of a node, before and after its S. A team per item (node, channels), lanes
/// over its arcs; group: instance.
template <class Family, class S>
struct SourceBackward {
  using Scalar = S;
  static constexpr int learned = Family::stalk_dimension, max_coordinates = learned + 2, outputs = 4 * learned;
  QuerySums<Family, S> queries;
  S* plain;  ///< null: not kept
  S* out;
  int lanes;

  [[nodiscard]] SHEAFNN_HD NodeChannels place(Index item, Index instance) const {
    return queries.shape.place(item, instance);
  }
  SHEAFNN_HD void part(const NodeChannels& at, int lane, S* sums) const {
    const GraphView<S>& graph = queries.scores.graph;
    const Index slot = queries.scaling.range.slot(at.instance);
    Tile<S> sum[learned] = {};
    for (std::int32_t arc = graph.offset[at.node] + lane; arc < graph.offset[at.node + 1]; arc += lanes) {
      const Index pair = graph.arc_pair[arc];
      Tile<S> other[learned];
      load(at, queries.scores.reverse(pair), other);
      queries.scaling.add_transported(slot, pair, other, sum);
    }
    add_numbers(sum, sums);
  }
  SHEAFNN_HD void finish(const NodeChannels& at, const S* sums) const {
    Tile<S> sum[learned], own[learned], all[max_coordinates] = {}, scaled[max_coordinates] = {};
    unpack(sums, sum);
    load(at, queries.scores.own(at.node), own);
    SHEAFNN_UNROLL for (int i = 0; i < learned; ++i) all[i] = sum[i] + own[i];
    if (plain != nullptr) store_stalk(queries.shape, at, all, plain);
    queries.scaling(at, all, scaled);
    store_stalk(queries.shape, at, scaled, out);
  }

 private:
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void load(const NodeChannels& at, Index score,
                                             Tile<S> (&out_tiles)[learned]) const {
    const std::uint32_t f = queries.shape.stride(), c = static_cast<std::uint32_t>(at.channel);
    at.range.choose([&](auto range) {
      queries.sum(at.instance, score, c, StalkReader<learned, decltype(range), S>{f, range}, out_tiles);
    });
  }
};

}  // namespace sheafnn::batch::detail
