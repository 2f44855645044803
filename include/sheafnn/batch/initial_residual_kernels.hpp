/// \file
/// Kernels of a diffusion layer with an initial residual and an identity mapping,
///
///     W = S X̃,   R = L W,   G = (1 − α)(X̃ − S R) + α X₁,   X' = ELU(V),   V = (I ⊗ A_β) G B_βᵀ,
///     A_β = (1 − β) I + β A,   B_β = (1 − β) I + β B,
///
/// and of its backward pass (math: "Deep networks" (3.39, 3.40); for one network layers/initial_residual_layer.hpp).
/// X̃ is the input after dropout and X₁ the first layer's. Features as in feature_kernels.hpp.
#pragma once

#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/laplacian_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::batch::detail {

/// Weights of a layer's residual and of its mixing.
template <class S>
struct InitialResidual {
  S alpha = S(0), beta = S(1);
};

/// R and G from W; R is for the derivatives of learned maps only.
template <class Family, class S>
using InitialDiffuseForward = EquationForward<ShareEquation<S>, StalkOutput<S>, Family, S>;

/// What a MixForward from G ends with: X' from V = (I ⊗ A_β) P with P = G B_βᵀ. If the next layer's sheaf has been built, its first
/// step follows, W = S X̃.
template <class Family, class S>
struct InitialEnding {
  static constexpr bool ends_layer = true;
  static constexpr int max_coordinates = Family::stalk_dimension + 2;
  S beta;
  FeatureShape<S> shape;
  LayerOutput<S> output;
  bool go_on = false;  ///< with the next layer
  MixForward<Family, S> next{};

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void operator()(const NodeChannels& at, const Tile<S>* v, Tile<S>*) const {
    Tile<S> value[max_coordinates];
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) value[i] =
        kernels::activated(v[i], output.activation);
    output.store_value(shape, at, value);
    if (go_on) next.store(at, value);
  }
};

/// v̄ = x̄' ∘ ELU′(V), from X'. item (node, channels), group: instance.
template <class Family, class S>
struct InitialActivationBackward {
  static constexpr int max_coordinates = Family::stalk_dimension + 2;
  FeatureShape<S> shape;
  bool activation;
  const S *output, *output_bar;
  S* v_bar;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> bar[max_coordinates];
    load_stalk(shape, at, output_bar, bar);
    store(at, bar);
  }
  /// Replaces x̄' at a node and some channels by v̄.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const NodeChannels& at, Tile<S> (&bar)[max_coordinates]) const {
    Tile<S> value[max_coordinates];
    load_stalk(shape, at, output, value);
    if (activation) {
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) { bar[i] *= layers::elu_slope(value[i]); }
    }
    store_stalk(shape, at, bar, v_bar);
  }
};

/// Computes P̄ = (I ⊗ A_β)ᵀ v̄, for B's gradient; Ḡ = P̄ B_β, of which X̄₁ gets α Ḡ, z̄ = −(1 − α) Ḡ and r̄ = S z̄. item
/// (node, channels), group: instance.
template <class Family, class S>
struct InitialMixBackward {
  MixBackward<Family, S> mixing;  ///< from v̄
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  InitialResidual<S> residual;
  bool add;      ///< to first_bar, instead of setting it
  S* first_bar;  ///< X̄₁
  S *z_bar, *r_bar;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int max_coordinates = MixBackward<Family, S>::max_coordinates;
    const FeatureShape<S>& shape = mixing.shape;
    Tile<S> own[max_coordinates], bar[max_coordinates], other[max_coordinates];
    mixing.template through_mixing<true>(at, bar, residual.beta);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) own[i] = {};
    if (add) load_stalk(shape, at, static_cast<const S*>(first_bar), own);
    const kernels::ResidualShare<Tile<S>> share(residual.alpha);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      const layers::LayerValues<Tile<S>> bars = share.backward(bar[i]);
      own[i] += bars.first;
      bar[i] = bars.z;
    }
    store_stalk(shape, at, own, first_bar);
    store_stalk(shape, at, bar, z_bar);
    node_times<Family>(sheaf.scale_of(range.slot(at.instance), at.node), graph.inverse_root[at.node], bar, other);
    store_stalk(shape, at, other, r_bar);
  }
};

/// The first step of the layer below, where that needs no more than x̄ at the same node and channels.
template <class Family, class S>
struct InitialLayerBelow {
  bool goes_on = false;
  InitialActivationBackward<Family, S> step{};

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void go_on(const NodeChannels& at,
                                              Tile<S> (&bar)[Family::stalk_dimension + 2]) const {
    if (goes_on) step.store(at, bar);
  }
};

/// Computes x̄ from r̄: S W̄ − z̄, through the dropout.
template <class Family, class S>
using InitialDiffuseBackward = EquationDiffuseBackward<InitialLayerBelow<Family, S>, Family, S>;

}  // namespace sheafnn::batch::detail
