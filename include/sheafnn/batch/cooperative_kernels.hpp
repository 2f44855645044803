/// \file
/// Kernels of a cooperative layer, X' = (1 + tanh ε) ∘ X − act(dropout(Δ_inᵀ Δ_out Y)), Y = (I ⊗ A) X Bᵀ, and their backward
/// pass (formulas: kernels/node_maps.hpp; for one network layers/cooperative_layer.hpp). Operator 0 is Δ_out, operator 1
/// Δ_inᵀ. Features as in feature_kernels.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/neighbour_sums.hpp"
#include "sheafnn/batch/node_map_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::batch::detail {

/// What follows MixForward: what the nodes send of Y.
template <int D, class S>
struct SendMixed {
  static constexpr int max_coordinates = D;
  NodeMapView<D, S> maps;

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void operator()(const NodeChannels& at, const Tile<S>* y, Tile<S>* sent) const {
    maps.of(at).send(0, y, sent);
  }
};

/// Plain sums over neighbours, for the kernels of a layer.
template <int D, class S>
using PlainTeam = WalkTeam<NeighbourSums<NoBlocks<D, S>, S>, S>;

/// Δ_out Y from what was sent, and what the nodes send of that.
template <int D, class S>
struct CrossForward : PlainTeam<D, S> {
  using typename PlainTeam<D, S>::Place;
  using PlainTeam<D, S>::diffusion;
  NodeMapView<D, S> maps;
  const S* y;
  S* sum;  ///< what the nodes received, for the backward pass; null: not kept
  S *first, *sent_on;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    const NodeMapRow<D, S> row = maps.of(place.at);
    Tile<S> received[D], own[D], value[D];
    unpack(sums, received);
    if (sum != nullptr) store_stalk(shape, place.at, received, sum);
    load_stalk(shape, place.at, y, own);
    row.receive(0, own, received, value);
    store_stalk(shape, place.at, value, first);
    row.send(1, value, own);
    store_stalk(shape, place.at, own, sent_on);
  }
};

/// What a layer ends with: X' from z = Δ_inᵀ Δ_out Y, or without the residual sign · act(dropout(z)).
template <class S>
struct CooperativeOutput {
  LayerOutput<S> layer;  ///< epsilon: null without the residual
  Activation activation;
  S sign;                 ///< of act(…) without the residual
  bool drop;              ///< z
  std::uint32_t dropout;  ///< number of that dropout
  S* slope;               ///< derivative of act(dropout(z)) in z; null: not kept

  template <int D>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const FeatureShape<S>& shape, const NodeChannels& at,
                                              Tile<S> (&z)[D]) const {
    const Pass& pass = layer.pass;
    Tile<S> kept[D], own[D];
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) kept[i] = Tile<S>(S(1));
    if (drop)
      drop_stalk(shape, at, pass.dropout<S>(layer.runs, Purpose::layer_dropout, dropout, at.instance), kept);
    load_stalk(shape, at, layer.x, own);
    const S* eps =
        layer.epsilon != nullptr ? layer.epsilon + pass.run_of(at.instance) * layer.parameter_stride : nullptr;
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      Tile<S> at_z;
      const Tile<S> step = layers::activate_with_slope(activation, kept[i] * z[i], at_z);
      kept[i] = kept[i] * at_z;
      z[i] = eps != nullptr ? kernels::gated(Tile<S>(kernels::gain(eps[i])), own[i], step) : Tile<S>(sign) * step;
    }
    if (slope != nullptr) store_stalk(shape, at, kept, slope);
    layer.store_value(shape, at, z);
  }
};

/// X' from what was sent of Δ_out Y.
template <int D, class S>
struct LeaveForward : PlainTeam<D, S> {
  using typename PlainTeam<D, S>::Place;
  using PlainTeam<D, S>::diffusion;
  NodeMapView<D, S> maps;
  const S* first;
  S* sum;  ///< null: not kept
  CooperativeOutput<S> output;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    Tile<S> received[D], own[D], z[D];
    unpack(sums, received);
    if (sum != nullptr) store_stalk(shape, place.at, received, sum);
    load_stalk(shape, place.at, first, own);
    maps.of(place.at).receive(1, own, received, z);
    output.store(shape, place.at, z);
  }
};

/// z̄ = sign · x̄' ∘ slope, and what the nodes return of it. item (node, channels), group: instance.
template <int D, class S>
struct LeaveBackward {
  FeatureShape<S> shape;
  NodeMapView<D, S> maps;
  S sign;  ///< of act(…) in X'
  const S *x_bar, *slope;
  S *z_bar, *returned;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> bar[D], slopes[D];
    load_stalk(shape, at, x_bar, bar);
    load_stalk(shape, at, slope, slopes);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) bar[i] = sign * bar[i] * slopes[i];
    store_stalk(shape, at, bar, z_bar);
    maps.of(at).give_back(1, bar, slopes);
    store_stalk(shape, at, slopes, returned);
  }
};

/// Backwards through what a node sends and through its own part in an operator. Gives x̄ = diagonal ȳ + w from the sum of
/// what was returned, and what the nodes return of x̄ to the operator below.
template <int D, class S>
struct TakeBack : PlainTeam<D, S> {
  using typename PlainTeam<D, S>::Place;
  using PlainTeam<D, S>::diffusion;
  NodeMapView<D, S> maps;
  int op;
  const S* y_bar;
  S *w, *x_bar;
  S* returned;  ///< null: there is no operator below

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    const NodeMapRow<D, S> row = maps.of(place.at);
    Tile<S> sum[D], bar[D], through[D];
    unpack(sums, sum);
    row.take_back(op, sum, through);
    store_stalk(shape, place.at, through, w);
    load_stalk(shape, place.at, y_bar, bar);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) bar[i] = row.diagonal(op) * bar[i] + through[i];
    store_stalk(shape, place.at, bar, x_bar);
    if (returned == nullptr) return;
    row.give_back(op - 1, bar, through);
    store_stalk(shape, place.at, through, returned);
  }
};

}  // namespace sheafnn::batch::detail
