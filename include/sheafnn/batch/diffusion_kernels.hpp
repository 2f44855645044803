/// \file
/// Kernels of a diffusion layer that walk along edges, X' = (1 + tanh ε) ∘ X − ELU(Δ Y) in three steps W = S Y, R = L W, Z =
/// S R, and their backward pass. Source: math: "Diffusion in three steps". For one network: layers/diffusion.hpp and
/// layers/diffusion_layer.hpp. Features as in feature_kernels.hpp; the derivatives of the sheaf's blocks:
/// block_gradient_kernels.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/neighbour_sums.hpp"
#include "sheafnn/batch/output_kernels.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// L at one node and some channels: the sum over neighbours, then R = L W and Z = S R, for D learned coordinates and the
/// fixed filters after them.
template <class Family, class S>
struct Diffusion : NeighbourSums<SheafTransports<Family, S>, S> {
  using Sums = NeighbourSums<SheafTransports<Family, S>, S>;
  using Sums::graph, Sums::shape, Sums::features, Sums::max_coordinates;
  using typename Sums::Place;
  static constexpr int D = Family::stalk_dimension;

  [[nodiscard]] SHEAFNN_HD const SheafView<Family, S>& sheaf() const { return this->blocks.sheaf; }
  /// R and Z from the sum.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void finish(const Place& place, const S* sums, Tile<S> (&r)[max_coordinates],
                                               Tile<S> (&z)[max_coordinates]) const {
    const std::int32_t u = place.at.node;
    Tile<S> own[max_coordinates];
    load_stalk(shape, place.at, features, own);
    node_times<Family>(sheaf().degree_block_of(place.slot, u), graph.degree[u], own, r);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      const S sign = i < D ? S(1) : shape.filter_sign[i < D ? 0 : i - D];
      r[i] += sign * Tile<S>::load(sums + 4 * i);
    }
    node_times<Family>(sheaf().scale_of(place.slot, u), graph.inverse_root[u], r, z);
  }
};

template <class Family, class S>
using SegmentNeighbours = ArcSegmentSums<SheafTransports<Family, S>, S>;
template <class Family, class S>
using DiffusionTeam = WalkTeam<Diffusion<Family, S>, S>;

/// The diffusion of `features`, after sums over the arcs of high-degree nodes in segments (begin_sums()).
template <class Executor, class Family, class S>
[[nodiscard]] Diffusion<Family, S> begin_diffusion(Executor& executor, Index instances, const GraphView<S>& graph,
                                                   const SheafRange& range, const SheafView<Family, S>& sheaf,
                                                   const FeatureShape<S>& shape, const S* features, S* segments) {
  return {
      begin_sums(executor, instances, graph, SheafTransports<Family, S>{range, sheaf}, shape, features, segments)};
}

/// What a layer ends with, for other kernels: X' = (1 + tanh ε) ∘ X − ELU(Z), or an X' that they have computed
/// (store_value()).
template <class S>
struct LayerOutput {
  const S* epsilon = nullptr;  ///< null with an initial residual: then only store_value()
  Index parameter_stride = 0;
  bool activation = true;
  const S* x = nullptr;
  S* out = nullptr;
  const Run* runs = nullptr;
  Pass pass;
  std::uint32_t next_layer = 0;
  S* dropped = nullptr;  ///< X' after the next layer's dropout; null: no such array

  /// Stores X' at a node and some channels. \param z  of the coordinates, at most Max; becomes what the next layer reads, X' or what
  /// is left of it after dropout
  template <int Max>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const FeatureShape<S>& shape, const NodeChannels& at,
                                              Tile<S> (&z)[Max]) const {
    const S* eps = epsilon + pass.run_of(at.instance) * parameter_stride;
    Tile<S> own[Max];
    load_stalk(shape, at, x, own);
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
      if (shape.template has<Max>(i)) {
        z[i] = kernels::gated(Tile<S>(kernels::gain(eps[i])), own[i], kernels::activated(z[i], activation));
      }
    }
    store_value(shape, at, z);
  }
  /// Stores X'. \param value  becomes what the next layer reads
  template <int Max>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store_value(const FeatureShape<S>& shape, const NodeChannels& at,
                                                    Tile<S> (&value)[Max]) const {
    store_stalk(shape, at, value, out);
    if (dropped == nullptr) return;
    drop_stalk(shape, at, pass.dropout<S>(runs, Purpose::layer_dropout, next_layer, at.instance), value);
    store_stalk(shape, at, value, dropped);
  }
};

/// Forward: R and X' from W. \tparam Output  store(shape, at, z), as LayerOutput has it
template <class Family, class S, class Output = LayerOutput<S>>
struct DiffuseForward : DiffusionTeam<Family, S> {
  using typename DiffusionTeam<Family, S>::Place;
  using DiffusionTeam<Family, S>::max_coordinates, DiffusionTeam<Family, S>::diffusion;
  S* r;
  Output output;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    Tile<S> value[max_coordinates];
    if (!place.left_out) store(place, sums, value);
  }
  /// \param value  becomes what the next layer reads
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const Place& place, const S* sums,
                                              Tile<S> (&value)[max_coordinates]) const {
    Tile<S> diffused[max_coordinates];
    diffusion.finish(place, sums, diffused, value);
    store_stalk(diffusion.shape, place.at, diffused, r);
    output.store(diffusion.shape, place.at, value);
  }
};

/// x̄ of the last layer from a few logits, ȳ Wᵀ, and the first step of the layer's backward pass. item (node, channels),
/// group: instance.
template <class Family, class S>
struct EnterLayers {
  LogitsBar<S> logits;
  Pass pass;
  ActivationBackward<Family, S> layer;
  S* x_bar;

  [[nodiscard]] SHEAFNN_HD NodeChannels place(Index item, Index instance) const {
    return layer.shape.place(item, instance);
  }

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int max_coordinates = Family::stalk_dimension + 2;
    const FeatureShape<S>& shape = layer.shape;
    const int classes = static_cast<int>(logits.classes), f = static_cast<int>(shape.channels);
    const S* y_bar = logits.bar + (at.instance * shape.nodes + at.node) * classes;
    const S* w = logits.weight + pass.run_of(at.instance) * logits.parameter_stride + at.channel * classes;
    S numbers[4 * max_coordinates] = {};
    SHEAFNN_NO_UNROLL for (int k = 0; k < classes; ++k) {
      const S value = y_bar[k];
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
        SHEAFNN_UNROLL for (int c = 0; c < 4; ++c) {
          if (shape.template has<max_coordinates>(i) && c < at.range.count)
            numbers[4 * i + c] += value * w[(i * f + c) * classes + k];
        }
      }
    }
    Tile<S> bar[max_coordinates];
    unpack(numbers, bar);
    store_stalk(shape, at, bar, x_bar);
    layer.store(at, bar);
  }
};

/// Backward of the three steps, which are symmetric: W̄ = L R̄ and Ȳ = S W̄, from R̄. \tparam Walk  applies Δ
template <class Family, class S, class Walk = Diffusion<Family, S>>
struct DiffuseBackward : WalkTeam<Walk, S> {
  using typename WalkTeam<Walk, S>::Place;
  using WalkTeam<Walk, S>::max_coordinates, WalkTeam<Walk, S>::diffusion;
  S* w_bar;
  S* y_bar;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    Tile<S> diffused[max_coordinates], scaled[max_coordinates];
    diffusion.finish(place, sums, diffused, scaled);
    store_stalk(diffusion.shape, place.at, diffused, w_bar);
    store_stalk(diffusion.shape, place.at, scaled, y_bar);
  }
};

}  // namespace sheafnn::batch::detail
