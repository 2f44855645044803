/// \file
/// Kernels of the stages of a flow, K_i = −q ELU(q Δ (I ⊗ A) X_i Bᵀ), and of their backward pass, around the kernels of a
/// diffusion layer. Equations: kernels/flow.hpp. Features as in feature_kernels.hpp.
///
/// Unchecked: numbers of items, runs, instances and lanes, and the sizes of arrays behind pointers and views.
/// BatchNetwork and BatchTrainer check their arguments.
#pragma once

#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/flow.hpp"

namespace sheafnn::batch::detail {

/// Adds a sum of arrays to the coordinates of a node at some channels.
template <int Max, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_sum(const FeatureShape<S>& shape, const NodeChannels& at,
                                              const kernels::StageSum<S>& sum, Tile<S> (&values)[Max]) {
  at.range.choose([&](auto range) {
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
      if (!shape.template has<Max>(i)) continue;
      const Index place = at.index + static_cast<Index>(static_cast<std::uint32_t>(i) * shape.stride());
      values[i] =
          sum.at(values[i], [&](const S* array) SHEAFNN_INLINE_LAMBDA { return range.load(array + place); });
    }
  });
}

/// What a stage ends with: K_i, and with it the next stage's X or, after the last one, X⁺.
template <class S>
struct StageOutput {
  kernels::FlowSlope<S> function;
  S* slope;                   ///< K_i
  kernels::StageSum<S> step;  ///< what is added to X
  const S* x;
  S* next;

  /// See LayerOutput. \param z  becomes what is written last
  template <int Max>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const FeatureShape<S>& shape, const NodeChannels& at,
                                              Tile<S> (&z)[Max]) const {
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) z[i] = function.forward(z[i]);
    store_stalk(shape, at, z, slope);
    load_stalk(shape, at, x, z);
    add_sum(shape, at, step, z);
    store_stalk(shape, at, z, next);
  }
};

/// K̄_i, then z̄ and r̄ = S z̄. item (node, channels), group: instance.
template <class Family, class S>
struct StageBackward : ActivationBackward<Family, S> {
  kernels::FlowSlope<S> function;
  kernels::StageSum<S> slope_bar;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> bar[ActivationBackward<Family, S>::max_coordinates] = {};
    add_sum(this->shape, at, slope_bar, bar);
    this->store(at, bar, [this](const Tile<S>& k_bar, const Tile<S>& z) SHEAFNN_INLINE_LAMBDA {
      return function.backward(k_bar, z);
    });
  }
};

/// From Ȳ: P̄ and X̄_i = P̄ B, and at the first stage, which comes last, x̄. item (node, channels), group: instance.
template <class Family, class S>
struct StageMixBackward {
  MixBackward<Family, S> mixing;
  S* stage_bar;                ///< X̄_i
  kernels::StageSum<S> start;  ///< what is added to x̄⁺
  S* x_bar;                    ///< x̄⁺, which becomes x̄; null at other stages

  [[nodiscard]] SHEAFNN_HD NodeChannels place(Index item, Index instance) const {
    return mixing.place(item, instance);
  }

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> bar[MixBackward<Family, S>::max_coordinates];
    mixing.through_mixing(at, bar);
    store_stalk(mixing.shape, at, bar, stage_bar);
    if (x_bar == nullptr) return;
    load_stalk(mixing.shape, at, static_cast<const S*>(x_bar), bar);
    add_sum(mixing.shape, at, start, bar);
    store_stalk(mixing.shape, at, bar, x_bar);
  }
};

}  // namespace sheafnn::batch::detail
