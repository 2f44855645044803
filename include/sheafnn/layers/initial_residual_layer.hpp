/// \file
/// InitialResidualLayer: sheaf diffusion for deep networks, with an initial residual and an identity mapping,
///
///     G = (1 − α)(X̃ − Δ X̃) + α X₁,   X̃ = dropout(X),
///     X' = ELU((I ⊗ A_β) G B_βᵀ),    A_β = (1 − β) I + β A,  B_β = (1 − β) I + β B,
///
/// with its backward pass. X₁ is what the first layer gets. I − Δ averages over neighbours where Δ is normalised
/// (augmented, block); with other normalisations many layers of it grow without bound. With identity maps, augmented, D = 1
/// and without A it is a layer of GCNII.
/// Source: math: "Deep networks" (3.39, 3.40); Chen et al. 2020, Simple and Deep Graph Convolutional Networks, (5).
#pragma once

#include <algorithm>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/laplacian_step.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn::layers {

/// math: "Deep networks" (3.39).
template <RestrictionMapFamily Family, class S>
class InitialResidualLayer : public WeightedLayer<Family, S, DiffusionWeights> {
  using Base = WeightedLayer<Family, S, DiffusionWeights>;
  using Base::graph_, Base::diffusion_, Base::setting_, Base::weights_, Base::weights_bar_, Base::nodes_,
      Base::output_;

 public:
  /// Takes any setting.
  [[nodiscard]] static bool suits(const LayerSetting& of) { return of.residual.initial(); }
  /// `graph` and `diffusion` must outlive the layer. (3.39) diffuses with I − Δ where other layers have Δ. For fixed filters
  /// the caller negates diffusion.filter_sign, so that `lp` is a low pass here as well.
  ///
  /// \param alpha  weight of X₁, 0 … 1
  /// \param beta   weight of A and B, 0 … 1
  /// \throws std::invalid_argument  a weight out of range, a shape of another graph or family
  InitialResidualLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const DiffusionOptions& options,
                       double alpha, double beta);
  /// Layer of a network.
  ///
  /// \throws std::invalid_argument  as above
  InitialResidualLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const LayerSetting& of)
      : InitialResidualLayer(graph, diffusion, of.diffusion, of.residual.alpha, of.residual.beta(of.number)) {}
  InitialResidualLayer(const Graph&&, const DiffusionShape<S>&, const DiffusionOptions&, double, double) = delete;
  InitialResidualLayer(const Graph&, const DiffusionShape<S>&&, const DiffusionOptions&, double, double) = delete;

  /// Takes any list.
  void list_memory(std::vector<Buffer<S>*>& list) override {
    Base::list_memory(list);
    dropping_.list_memory(list);
    mixing_.list_memory(list);
    step_.list_memory(list);
  }
  [[nodiscard]] DropoutMask& mask() noexcept override { return dropping_.mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override { return {.first = true}; }
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void forward(const LayerCall<Family, S>& call) override;
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void backward(const LayerBackwardCall<Family, S>& call) override;

 private:
  /// (1 − β) I + β M.
  void map_identity(const MatrixView<const S>& m, Buffer<S>& out) const {
    for (Index k = 0; k < out.size(); ++k) out[k] = beta_ * m.data()[k];
    for (Index i = 0; i < m.rows(); ++i) out[i * m.rows() + i] += S(1) - beta_;
  }
  /// A_β and B_β.
  DiffusionWeights<const S> mapped(const DiffusionWeights<const S>& weights) {
    const Index d = diffusion_->coordinates, f = diffusion_->channels;
    DiffusionWeights<const S> r;
    if (setting_.diffusion.left) {
      map_identity(weights.left, left_);
      r.left = {left_.data(), d, d};
    }
    if (setting_.diffusion.right) {
      map_identity(weights.right, right_);
      r.right = {right_.data(), f, f};
    }
    return r;
  }

  /// X' = ELU((I ⊗ A_β) G B_βᵀ).
  void mix(Execution execution, const DiffusionWeights<const S>& weights) {
    const Index row = diffusion_->row();
    S* out = output_.data();
    const bool activation = setting_.diffusion.activation;
    const auto finish = [=](Index first, Index rows, const S* y) {
      detail::for_tiles<S>(0, rows * row, [&]<class T>(auto i) {
        const T value = i.load(y + i);
        i.store(out + first * row + i, kernels::activated(value, activation));
      });
    };
    mixing_.begin(execution, weights, mixing_.buffer(), {});
    parallel_for(execution, this->own_nodes().count(), 16,
                 [&](Index begin, Index end) { mixing_.forward_rows(weights, begin, end, nullptr, finish); });
  }

  /// Ḡ in the rows of output(), from output_bar; Ā and B̄ += β times the derivatives of A_β and B_β.
  void mix_backward(Execution execution, const DiffusionWeights<const S>& weights, const S* output_bar, S* g_bar,
                    const DiffusionWeights<S>& weights_bar) {
    const Index row = diffusion_->row(), size = mixing_.partial_size();
    const bool activation = setting_.diffusion.activation;
    const auto z_bar = [&](Index first, Index rows, S* scratch) -> const S* {
      const S *bar = output_bar + first * row, *value = output_.data() + first * row;
      if (!activation) return bar;
      detail::for_tiles<S>(0, rows * row, [&]<class T>(auto i) {
        i.store(scratch + i, i.load(bar + i) * elu_slope(i.load(value + i)));
      });
      return scratch;
    };
    const NodeChunks chunks{this->own_nodes().count(), mixing_.chunks().count};
    chunks.for_each(execution, [&](Index chunk, Index begin, Index end) {
      S* partial = partial_.data() + chunk * size;
      std::fill_n(partial, size, S(0));
      mixing_.backward_rows(weights, begin, end, nullptr, z_bar, g_bar, partial);
    });
    for (Index chunk = 1; chunk < chunks.count; ++chunk) {
      for (Index k = 0; k < size; ++k) partial_[k] += partial_[chunk * size + k];
    }
    for (Index k = 0; k < size; ++k) partial_[k] *= beta_;
    mixing_.add_partial(partial_.data(), weights_bar);
  }

  S alpha_ = S(0), beta_ = S(1);
  FeatureMixing<S> dropping_;  ///< X̃ = dropout(X)
  FeatureMixing<S> mixing_;    ///< (I ⊗ A_β) G B_βᵀ at the nodes of the pass; its buffer has G
  Buffer<S> left_, right_;     ///< A_β, d' × d', and B_β, f × f
  LaplacianStep<Family, S> step_;
  Buffer<S> partial_;  ///< per chunk of rows: derivatives of A_β and B_β
};

template <RestrictionMapFamily Family, class S>
InitialResidualLayer<Family, S>::InitialResidualLayer(const Graph& graph, const DiffusionShape<S>& diffusion,
                                                      const DiffusionOptions& options, double alpha, double beta)
    : Base(graph, diffusion, {.diffusion = with_residual(options, false)}),
      alpha_(static_cast<S>(alpha)),
      beta_(static_cast<S>(beta)),
      dropping_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, false, false),
      mixing_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, options.left, options.right),
      left_(options.left ? diffusion.coordinates * diffusion.coordinates : 0),
      right_(options.right ? diffusion.channels * diffusion.channels : 0),
      step_(graph, diffusion),
      partial_(mixing_.chunks().count * mixing_.partial_size()) {
  require(alpha >= 0 && alpha <= 1, "alpha", alpha, "must be between 0 and 1");
  require(beta >= 0 && beta <= 1, "beta", beta, "must be between 0 and 1");
}

template <RestrictionMapFamily Family, class S>
void InitialResidualLayer<Family, S>::forward(const LayerCall<Family, S>& call) {
  this->begin(call);
  this->check_scratch(call);
  weights_.check(setting_);
  step_.begin(call);
  dropping_.forward(call.execution, {}, call.x.data(), call.active_dropout(), true,
                    [&](Index begin, Index count, const S* rows) { step_.scale(call.sheaf, begin, count, rows); });
  const S alpha = alpha_, *const dropped = dropping_.output(), *const first = call.first.data();
  step_.diffuse(call, dropped, mixing_.buffer(),
                [=]<class T>(const auto& c, Index in, Index, const T& z) SHEAFNN_INLINE_LAMBDA {
                  return kernels::ResidualShare<T>(alpha).forward({c.load(dropped + in), z, c.load(first + in)});
                });
  mix(call.execution, mapped(weights_));
}

template <RestrictionMapFamily Family, class S>
void InitialResidualLayer<Family, S>::backward(const LayerBackwardCall<Family, S>& call) {
  this->check(call);
  this->check_scratch(call);
  weights_.check(setting_);
  weights_bar_.check(setting_);
  const Index row = diffusion_->row();
  const S alpha = alpha_;
  S *const x_bar = call.x_bar.data(), *const y_bar = call.scratch[0].data(),
           *const first_bar = call.first_bar.data();
  mix_backward(call.execution, mapped(weights_), call.output_bar.data(), y_bar, weights_bar_);
  // From Ḡ: x_bar = (1 − α) Ḡ = −Z̄ for Z = Δ X̃, X̄₁ += α Ḡ.
  parallel_for(call.execution, graph_->own_node_count(), 16, [&](Index begin, Index end) {
    step_.template begin_backward<false>(call, begin, end, x_bar, [&]<class T>(const auto& walk) {
      const kernels::ResidualShare<T> share(alpha);
      walk([=](const auto& c, Index in, Index at, Index, const T&) SHEAFNN_INLINE_LAMBDA {
        const LayerValues<T> bars = share.backward(c.load(y_bar + at));
        c.store(first_bar + in, c.load(first_bar + in) + bars.first);
        c.store(x_bar + in, bars.x);
        return bars.z;
      });
    });
  });
  step_.end_backward(call, y_bar);
  dropping_.backward(call.execution, {}, nullptr, detail::sum_of_rows(x_bar, y_bar, row), x_bar, {});
  detail::clear_halo(*graph_, x_bar, row);
}

}  // namespace sheafnn::layers
