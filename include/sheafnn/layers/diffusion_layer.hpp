/// \file
/// DiffusionLayer: X' = (1 + tanh ε) ∘ X − ELU(Δ (I ⊗ A) dropout(X) Bᵀ), with its backward pass. X is n × d' × f,
/// A d' × d', B f × f, and ε has d' numbers. Source: paper, sheaf diffusion layer; math: "The model" (3.6),
/// "Backward pass of one diffusion step" (3.19).
///
/// In formulas S_u scales node u (Δ = S L S, W = S Y, R = L W, Z = S R); in code S is the scalar type.
#pragma once

#include <algorithm>
#include <string_view>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/laplacian_step.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn::layers {

/// Buffers of one layer on one graph; A, B, ε: DiffusionWeights.
template <RestrictionMapFamily Family, class S>
class DiffusionLayer : public WeightedLayer<Family, S, DiffusionWeights> {
  using Base = WeightedLayer<Family, S, DiffusionWeights>;
  using Base::graph_, Base::diffusion_, Base::setting_, Base::weights_, Base::weights_bar_, Base::nodes_,
      Base::output_;

 public:
  /// `graph` and `diffusion` must outlive the layer.
  ///
  /// \throws std::invalid_argument  a shape of another graph or family
  DiffusionLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const LayerSetting& setting = {});
  DiffusionLayer(const Graph&&, const DiffusionShape<S>&, const LayerSetting& = {}) = delete;  // they would dangle
  DiffusionLayer(const Graph&, const DiffusionShape<S>&&, const LayerSetting& = {}) = delete;

  [[nodiscard]] DropoutMask& mask() noexcept override { return mixing_.mask(); }
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void forward(const LayerCall<Family, S>& call) override;
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void backward(const LayerBackwardCall<Family, S>& call) override;

 private:
  /// 1 + tanh ε_i.
  void gains(const DiffusionWeights<const S>& weights, S* gain) const {
    const S* epsilon = weights.epsilon.data();
    for (Index i = 0; i < diffusion_->coordinates; ++i) gain[i] = kernels::gain(epsilon[i]);
  }

  /// z̄ = −x̄ ∘ ELU′(z), r̄ = S z̄, S̄_u = z̄_u r_uᵀ, and ε̄_i = (1 − tanh² ε_i) Σ_{u, c} x x̄, where x̄ is output_bar or,
  /// at nodes that were not computed, 0.
  void backward_to_r(const LayerBackwardCall<Family, S>& call, const S* gain) {
    const Index d = diffusion_->coordinates;
    const bool activation = setting_.diffusion.activation;
    const S* const output_bar = call.output_bar.data();
    S* const x_bar = call.x_bar.data();
    mixing_.chunks().for_each(call.execution, [&](Index chunk, Index begin, Index end) {
      S* sum = partial_.data() + chunk * max_coordinates;
      std::fill_n(sum, d, S(0));
      step_.template begin_backward<true>(call, begin, end, x_bar, [&]<class T>(const auto& walk) {
        T products[max_coordinates];
        for (Index i = 0; i < d; ++i) products[i] = T(S(0));
        walk([&](const auto& c, Index in, Index at, Index i, const T& z) SHEAFNN_INLINE_LAMBDA {
          const T bar = c.load(output_bar + at);
          c.store(x_bar + in, bar);
          products[i] += c.load(input_ + in) * bar;
          return kernels::activated_bar(bar, z, activation);
        });
        for (Index i = 0; i < d; ++i) sum[i] += reduce_add(products[i]);
      });
    });
    S* out = weights_bar_.epsilon.data();
    for (Index i = 0; i < d; ++i) {
      S sum = S(0);
      for (Index chunk = 0; chunk < mixing_.chunks().count; ++chunk) sum += partial_[chunk * max_coordinates + i];
      out[i] += kernels::gain_slope(gain[i] - S(1) /* tanh ε */) * sum;
    }
  }

  FeatureMixing<S> mixing_;
  LaplacianStep<Family, S> step_;
  Buffer<S> partial_;  ///< per chunk of nodes: Σ x x̄ of each coordinate
  const S* input_ = nullptr;
};

template <RestrictionMapFamily Family, class S>
DiffusionLayer<Family, S>::DiffusionLayer(const Graph& graph, const DiffusionShape<S>& diffusion,
                                          const LayerSetting& setting)
    : Base(graph, diffusion, setting),
      mixing_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, setting.diffusion.left,
              setting.diffusion.right),
      step_(graph, diffusion, /*gives_z*/ true),
      partial_(mixing_.chunks().count * max_coordinates) {
  setting_.diffusion.residual = true;  // this layer has ε
}

template <RestrictionMapFamily Family, class S>
void DiffusionLayer<Family, S>::forward(const LayerCall<Family, S>& call) {
  this->begin(call);
  weights_.check(setting_);
  this->check_scratch(call);
  const S* const x = call.x.data();
  input_ = x;
  step_.begin(call);
  // Y = (I ⊗ A) dropout(X) Bᵀ and W = S Y, group by group.
  if (!call.training && call.mixing == MixedFeatures::reuse) {
    step_.scale(call, mixing_.output());
  } else {
    const bool keep = call.training || call.mixing == MixedFeatures::compute_and_keep;
    mixing_.forward(call.execution, weights_, x, call.active_dropout(), keep,
                    [&](Index first, Index nodes, const S* y) { step_.scale(call.sheaf, first, nodes, y); });
  }
  S gain[max_coordinates];
  gains(weights_, gain);
  const bool activation = setting_.diffusion.activation;
  // Z = S L W;  X' = gain X − ELU(Z).
  step_.diffuse(call, mixing_.output(), output_.data(),
                [=, &gain]<class T>(const auto& c, Index in, Index i, const T& z) SHEAFNN_INLINE_LAMBDA {
                  return kernels::gated(T(gain[i]), c.load(x + in), kernels::activated(z, activation));
                });
}

template <RestrictionMapFamily Family, class S>
void DiffusionLayer<Family, S>::backward(const LayerBackwardCall<Family, S>& call) {
  this->check(call);
  this->check_scratch(call);
  weights_.check(setting_);
  weights_bar_.check(setting_);
  S gain[max_coordinates];
  gains(weights_, gain);
  S *const x_bar = call.x_bar.data(), *const y_bar = call.scratch[0].data();
  backward_to_r(call, gain);  // r̄ = S z̄ into scratch[1]
  step_.end_backward(call, y_bar);
  detail::clear_halo(*graph_, x_bar, diffusion_->row());
  mixing_.backward(call.execution, weights_, gain, y_bar, x_bar, weights_bar_);
}

}  // namespace sheafnn::layers
