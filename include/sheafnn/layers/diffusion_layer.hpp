/// \file
/// DiffusionLayer: X' = (1 + tanh ε) ∘ X − ELU(Δ (I ⊗ A) dropout(X) Bᵀ), with its backward pass (math: "The
/// model" (3.6), "Backward pass of one diffusion step" (3.19); paper, sheaf diffusion layer).
#pragma once

#include <algorithm>
#include <string_view>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn {

/// math: "The model" (3.6).
template <RestrictionMapFamily Family, class S>
class DiffusionLayer final : public WeightedLayer<Family, S, DiffusionWeights> {
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
  /// w = S (I ⊗ A) dropout(X) Bᵀ.
  void mix_and_scale(Execution execution, const DiffusionWeights<const S>& weights,
                     const SheafBlocks<Family, S>& sheaf, const S* x, const Dropout& dropout, bool keep, S* w) {
    const Index row = diffusion_->row();
    mixing_.forward(execution, weights, x, dropout, keep, [&](Index first, Index nodes, const S* y) {
      detail::scale_rows<Family>(*diffusion_, sheaf, first, nodes, y, w + first * row);
    });
  }
  /// output() from X and W, whose rows of the halo are written, and R = L W where it is to be kept.
  void diffuse_and_activate(Execution execution, const DiffusionWeights<const S>& weights,
                            const SheafBlocks<Family, S>& sheaf, const S* x, S* w, bool keep) {
    const NodeSelection nodes = nodes_;
    const Index f = diffusion_->channels, row = diffusion_->row();
    S gain[max_coordinates];
    gains(weights, gain);
    S* out = output_.data();
    S* diffused = diffused_.data();
    const bool activation = setting_.diffusion.activation;
    detail::with_halo(*graph_, nodes, w, row, [&](Index from, Index to) {
      detail::apply_laplacian<Family>(
          execution, *graph_, *diffusion_, sheaf, nodes, from, to, w,
          [=, &gain]<class T, int N>(Index index, Index i, auto c, const T* r, const T* z) {
            const Index in = nodes[index] * row + i * f + c, at = index * row + i * f + c;
            T step[N];
            SHEAFNN_UNROLL for (int k = 0; k < N; ++k) step[k] = kernels::activated(z[k], activation);
            if (keep) {
              SHEAFNN_UNROLL for (int k = 0; k < N; ++k) c.store(diffused + at + k * f, r[k]);
            }
            SHEAFNN_UNROLL for (int k = 0; k < N; ++k) {
              const T own = c.load(x + in + k * f);
              c.store(out + at + k * f, kernels::gated(T(gain[i + k]), own, step[k]));
            }
          });
    });
  }

  /// 1 + tanh ε_i.
  void gains(const DiffusionWeights<const S>& weights, S* gain) const {
    const S* epsilon = weights.epsilon.data();
    for (Index i = 0; i < diffusion_->coordinates; ++i) gain[i] = kernels::gain(epsilon[i]);
  }

  /// z̄ = −x̄ ∘ ELU′(S r), r̄ = S z̄, S̄_u = z̄_u r_uᵀ, and ε̄_i = (1 − tanh² ε_i) Σ_{u, c} x x̄, where x̄ is output_bar or,
  /// at nodes that were not computed, 0.
  void backward_activation(Execution execution, const SheafBlocks<Family, S>& sheaf, const S* gain,
                           const S* output_bar, S* x_bar, S* r_bar, SheafBlocksGradient<Family, S>& sheaf_gradient,
                           bool accumulate, const DiffusionWeights<S>& weights_bar) {
    constexpr int gram = BlockSizes<Family>::gram;
    const Index f = diffusion_->channels, d = diffusion_->coordinates, row = d * f;
    const bool activation = setting_.diffusion.activation;
    const bool moves = output_bar != x_bar;
    mixing_.chunks().for_each(execution, [&](Index chunk, Index begin, Index end) {
      S* sum = partial_.data() + chunk * max_coordinates;
      std::fill_n(sum, d, S(0));
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        const bool add = accumulate || c > 0;
        T products[max_coordinates];
        for (Index i = 0; i < d; ++i) products[i] = T(S(0));
        Index index = nodes_.lower_bound(begin);
        for (Index u = begin; u < end; ++u) {
          const Index at = u * row + c;
          S* scale_bar = sheaf_gradient.scale_bar.data() + u * gram;
          if (index == nodes_.count() || nodes_[index] != u) {
            detail::clear_node<Family>(c, *diffusion_, at, x_bar, r_bar, scale_bar, add);
            continue;
          }
          const Index from = index++ * row + c;
          detail::scaling_backward<Family, true>(c, *diffusion_, sheaf, u, diffused_.data() + from, r_bar + at,
                                                 scale_bar, add, [&](Index i, const T& z) SHEAFNN_INLINE_LAMBDA {
                                                   const T bar = c.load(output_bar + from + i * f);
                                                   if (moves) c.store(x_bar + at + i * f, bar);
                                                   products[i] += c.load(input_ + at + i * f) * bar;
                                                   return kernels::activated_bar(bar, z, activation);
                                                 });
        }
        for (Index i = 0; i < d; ++i) sum[i] += reduce_add(products[i]);
      });
    });
    S* out = weights_bar.epsilon.data();
    for (Index i = 0; i < d; ++i) {
      S sum = S(0);
      for (Index chunk = 0; chunk < mixing_.chunks().count; ++chunk) sum += partial_[chunk * max_coordinates + i];
      out[i] += kernels::gain_slope(gain[i] - S(1)) * sum;
    }
  }

  FeatureMixing<S> mixing_;
  Buffer<S> scaled_;    ///< W = S Y
  Buffer<S> diffused_;  ///< R = L W, before the second scaling
  Buffer<S> partial_;   ///< per chunk of nodes: Σ x x̄ of each coordinate
  const S* input_ = nullptr;
};

template <RestrictionMapFamily Family, class S>
DiffusionLayer<Family, S>::DiffusionLayer(const Graph& graph, const DiffusionShape<S>& diffusion,
                                          const LayerSetting& setting)
    : Base(graph, diffusion, setting),
      mixing_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, setting.diffusion.left,
              setting.diffusion.right),
      scaled_(graph.node_count() * diffusion.row()),
      diffused_(scaled_.size()),
      partial_(mixing_.chunks().count * max_coordinates) {
  setting_.diffusion.residual = true;  // this layer has ε
}

template <RestrictionMapFamily Family, class S>
void DiffusionLayer<Family, S>::forward(const LayerCall<Family, S>& call) {
  this->begin(call);
  weights_.check(setting_);
  if (!call.training) this->check_features(call.scratch, "scratch");
  const S* const x = call.x.data();
  S* const w = call.training ? scaled_.data() : call.scratch.data();
  input_ = x;
  if (!call.training && call.mixing == MixedFeatures::reuse) {
    detail::scale_features<Family>(call.execution, *graph_, *diffusion_, call.sheaf, mixing_.output(), w);
  } else {
    const bool keep = call.training || call.mixing == MixedFeatures::compute_and_keep;
    mix_and_scale(call.execution, weights_, call.sheaf, x, call.active_dropout(), keep, w);
  }
  diffuse_and_activate(call.execution, weights_, call.sheaf, x, w, call.training);
}

template <RestrictionMapFamily Family, class S>
void DiffusionLayer<Family, S>::backward(const LayerBackwardCall<Family, S>& call) {
  this->check(call);
  this->check_scratch(call);
  weights_.check(setting_);
  weights_bar_.check(setting_);
  S gain[max_coordinates];
  gains(weights_, gain);
  S *const x_bar = call.x_bar.data(), *const y_bar = call.scratch[0].data(), *const r_bar = call.scratch[1].data();
  backward_activation(call.execution, call.sheaf, gain, call.output_bar.data(), x_bar, r_bar, call.sheaf_gradient,
                      call.accumulate, weights_bar_);
  const NodeSelection all(graph_->node_count());
  detail::with_halo(*graph_, all, r_bar, diffusion_->row(), [&](Index from, Index to) {
    detail::apply_laplacian_backward<Family>(call.execution, *graph_, *diffusion_, call.sheaf, from, to,
                                             {mixing_.output(), scaled_.data(), r_bar}, y_bar, call.sheaf_gradient,
                                             call.accumulate);
  });
  detail::clear_halo(*graph_, x_bar, diffusion_->row());
  mixing_.backward(call.execution, weights_, gain, y_bar, x_bar, weights_bar_);
}

}  // namespace sheafnn
