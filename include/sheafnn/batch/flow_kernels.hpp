/// \file
/// Kernels of the stages of a flow, K_i = −q ELU(q Δ (I ⊗ A) X_i Bᵀ), and of their backward pass, around the kernels of a
/// diffusion layer. Equations: kernels/flow.hpp. Features as in feature_kernels.hpp.
#pragma once

#include <limits>

#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/flow.hpp"

namespace sheafnn::batch::detail {

/// Adds a sum of arrays to the coordinates of a node at some channels.
///
/// \param sizes  lengths of the step of every instance, of which the sum is a multiple; null: its factors have them
template <int Max, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_sum(const FeatureShape<S>& shape, const NodeChannels& at,
                                              const kernels::StageSum<S>& sum, const S* sizes,
                                              Tile<S> (&values)[Max]) {
  at.range.choose([&](auto range) {
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
      if (!shape.template has<Max>(i)) continue;
      const Index place = at.index + static_cast<Index>(static_cast<std::uint32_t>(i) * shape.stride());
      const auto load = [&](const S* array) SHEAFNN_INLINE_LAMBDA { return range.load(array + place); };
      if (sizes == nullptr) {
        values[i] = sum.at(values[i], load);
      } else {
        values[i] += Tile<S>(sizes[at.instance]) * sum.at(Tile<S>(S(0)), load);
      }
    }
  });
}

/// What a stage ends with: K_i, and with it the next stage's X or, after the last one, X⁺.
template <class S>
struct StageOutput {
  kernels::FlowSlope<S> function;
  S* slope;                   ///< K_i
  kernels::StageSum<S> step;  ///< what is added to X
  const S* sizes;             ///< see add_sum()
  const S* x;
  S* next;  ///< null: nothing follows K_i

  /// See LayerOutput. \param z  becomes what is written last
  template <int Max>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const FeatureShape<S>& shape, const NodeChannels& at,
                                              Tile<S> (&z)[Max]) const {
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) z[i] = function.forward(z[i]);
    store_stalk(shape, at, z, slope);
    if (next == nullptr) return;
    load_stalk(shape, at, x, z);
    add_sum(shape, at, step, sizes, z);
    store_stalk(shape, at, z, next);
  }
};

/// K̄_i, then z̄ and r̄ = S z̄. item (node, channels), group: instance.
template <class Family, class S>
struct StageBackward : ActivationBackward<Family, S> {
  kernels::FlowSlope<S> function;
  kernels::StageSum<S> slope_bar;
  const S* sizes;  ///< see add_sum()

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> bar[ActivationBackward<Family, S>::max_coordinates] = {};
    add_sum(this->shape, at, slope_bar, sizes, bar);
    this->store(at, bar, [this](const Tile<S>& k_bar, const Tile<S>& z) SHEAFNN_INLINE_LAMBDA {
      return function.backward(k_bar, z);
    });
  }
};

/// Computes P̄ and X̄_i = P̄ B from Ȳ, and x̄ at the first stage, which comes last. item (node, channels), group: instance.
template <class Family, class S>
struct StageMixBackward {
  MixBackward<Family, S> mixing;
  S* stage_bar;                ///< X̄_i
  kernels::StageSum<S> start;  ///< what is added to x̄⁺
  S* x_bar;                    ///< x̄⁺, which becomes x̄; null at other stages

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> bar[MixBackward<Family, S>::max_coordinates];
    mixing.through_mixing(at, bar);
    store_stalk(mixing.shape, at, bar, stage_bar);
    if (x_bar == nullptr) return;
    load_stalk(mixing.shape, at, static_cast<const S*>(x_bar), bar);
    add_sum(mixing.shape, at, start, static_cast<const S*>(nullptr), bar);
    store_stalk(mixing.shape, at, bar, x_bar);
  }
};

/// The largest |x| of a chunk of an instance or, with slopes, the largest error relative to what the tolerances allow.
/// Infinity if a value is not finite. item: chunk, group: instance.
template <class S>
struct LargestOfChunk {
  Index size, chunks;
  const S* x;
  kernels::StageSum<S> error;                  ///< of a step of length 1; without terms: |x|
  const S *slope = nullptr, *sizes = nullptr;  ///< K_1, and the lengths of the step of every instance
  S absolute = S(0), relative = S(0);          ///< tolerances
  S* out;

  SHEAFNN_HD void operator()(Index chunk, Index instance) const {
    S r = S(0);
    for (Index i = chunk; i < size; i += chunks) {
      const Index at = instance * size + i;
      S value = magnitude(x[at]);
      if (error.terms > 0) {
        const S h = sizes[instance];
        const S found = h * error.at(S(0), [&](const S* array) SHEAFNN_INLINE_LAMBDA { return array[at]; });
        value = magnitude(found) / (absolute + relative * (value + h * magnitude(slope[at])));
      }
      r = value <= r ? r : value > r ? value : std::numeric_limits<S>::infinity();
    }
    out[instance * chunks + chunk] = r;
  }
  [[nodiscard]] SHEAFNN_HD static S magnitude(S value) { return value < S(0) ? -value : value; }
};

/// X in place of X⁺ where an instance takes a step of length 0. item: element, group: instance.
template <class S>
struct StayInPlace {
  Index size;
  const S *sizes, *x;
  S* next;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    if (sizes[instance] != S(0)) return;
    const Index at = instance * size + item;
    next[at] = x[at];
  }
};

}  // namespace sheafnn::batch::detail
