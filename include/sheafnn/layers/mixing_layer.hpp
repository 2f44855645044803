/// \file
/// MixingLayer: a layer that diffuses mixed features, Y = (I ⊗ A) dropout(X) Bᵀ and Z = Δ Y. It has a backward pass, and
/// ends with one of the equations of kernels/layer_end.hpp:
///
///     ConvolutionLayer  X' = ELU(Y − Z + b)            math: "Convolutions and waves" (3.43); Hansen and Gebhart 2020
///     WaveLayer         X' = 2X − X_before − ELU(Z)    math: "Convolutions and waves" (3.44); Suk et al. 2022
///
/// X_before is the input of the layer before, of the first layer its own. With identity maps, augmented, D = 1 and
/// without A a convolution is a layer of GCN. For fixed filters the caller of a convolution negates
/// diffusion.filter_sign, since a convolution has I − Δ where other layers have Δ.
#pragma once

#include <algorithm>
#include <type_traits>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/laplacian_step.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn::layers {

/// See the file comment.
///
/// \tparam End       ConvolutionEnd or WaveEnd, over a tile
/// \tparam FormOf    the form that it is
/// \tparam WeightsOf BiasedWeights where End has a bias, otherwise UnbiasedWeights
template <template <class> class End, LayerForm FormOf, template <class> class WeightsOf,
          RestrictionMapFamily Family, class S>
class MixingLayer : public WeightedLayer<Family, S, WeightsOf> {
  using Base = WeightedLayer<Family, S, WeightsOf>;
  using Base::graph_, Base::diffusion_, Base::setting_, Base::weights_, Base::weights_bar_, Base::nodes_,
      Base::output_;
  static constexpr bool reads_input = End<S>::reads_input, reads_before = End<S>::reads_before,
                        has_bias = End<S>::has_bias;

 public:
  static constexpr LayerForm form = FormOf;

  /// Takes any setting.
  [[nodiscard]] static bool suits(const LayerSetting& of) { return of.form == form; }
  /// `graph` and `diffusion` must outlive the layer.
  ///
  /// \throws std::invalid_argument  a shape of another graph or family
  MixingLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const LayerSetting& setting)
      : Base(graph, diffusion, setting),
        mixing_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, setting.diffusion.left,
                setting.diffusion.right),
        step_(graph, diffusion, true),
        partial_(has_bias ? step_.chunks().count * diffusion.channels : 0) {
    setting_.diffusion.residual = false;  // these layers have no ε
  }
  MixingLayer(const Graph&&, const DiffusionShape<S>&, const LayerSetting&) = delete;  // they would dangle
  MixingLayer(const Graph&, const DiffusionShape<S>&&, const LayerSetting&) = delete;

  [[nodiscard]] DropoutMask& mask() noexcept override { return mixing_.mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override { return {.before = reads_before}; }

  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void forward(const LayerCall<Family, S>& call) override {
    this->begin(call);
    this->check_scratch(call);
    weights_.check(setting_);
    input_ = call.x.data();
    before_ = call.before.data();
    step_.begin(call);
    if (!call.training && call.mixing == MixedFeatures::reuse) {
      step_.scale(call, mixing_.output());
    } else {
      const bool keep = !reads_input || call.training || call.mixing == MixedFeatures::compute_and_keep;
      mixing_.forward(call.execution, weights_.mixing, input_, call.active_dropout(), keep,
                      [&](Index first, Index nodes, const S* y) { step_.scale(call.sheaf, first, nodes, y); });
    }
    step_.diffuse(call, mixing_.output(), output_.data(),
                  [this]<class T>(const auto& c, Index in, Index, const T& z)
                      SHEAFNN_INLINE_LAMBDA { return this->template end<T>().forward(this->values(c, in, z)); });
  }
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void backward(const LayerBackwardCall<Family, S>& call) override {
    this->check(call);
    this->check_scratch(call);
    weights_.check(setting_);
    weights_bar_.check(setting_);
    const Index row = diffusion_->row();
    S *const x_bar = call.x_bar.data(), *const y_bar = call.scratch[0].data();
    end_backward(call);
    step_.end_backward(call, y_bar);
    detail::clear_halo(*graph_, x_bar, row);
    if constexpr (reads_input) {
      mixing_.backward(call.execution, weights_.mixing, detail::unit_gain<S>.data(), y_bar, x_bar,
                       weights_bar_.mixing);
    } else {
      mixing_.backward(call.execution, weights_.mixing, nullptr, detail::sum_of_rows(x_bar, y_bar, row), x_bar,
                       weights_bar_.mixing);
    }
  }

 private:
  template <class T>
  [[nodiscard]] SHEAFNN_INLINE End<T> end() const {
    return {setting_.diffusion.activation};
  }
  /// What the end reads at number `in` of the features.
  template <class Tile, class T>
  [[nodiscard]] SHEAFNN_INLINE LayerValues<T> values(const Tile& c, Index in, const T& z) const {
    LayerValues<T> r;
    r.z = z;
    if constexpr (reads_input) {
      r.x = c.load(input_ + in);
    } else {
      r.mixed = c.load(mixing_.output() + in);
    }
    if constexpr (reads_before) r.before = c.load(before_ + in);
    if constexpr (has_bias) r.bias = c.load(weights_.bias.data() + c);
    return r;
  }

  /// From output_bar to r̄ = S z̄, S̄_u, b̄, X̄_before, and in x_bar the derivative of x, or of Y where the end reads that.
  void end_backward(const LayerBackwardCall<Family, S>& call) {
    const Index f = diffusion_->channels;
    const S* const output_bar = call.output_bar.data();
    S *const x_bar = call.x_bar.data(), *const before_bar = call.before_bar.data();
    const NodeChunks chunks = step_.chunks();
    chunks.for_each(call.execution, [&](Index chunk, Index begin, Index end_of_chunk) {
      S* const sum = partial_.data() + (has_bias ? chunk * f : 0);
      if constexpr (has_bias) std::fill_n(sum, f, S(0));
      step_.template begin_backward<true>(call, begin, end_of_chunk, x_bar, [&]<class T>(const auto& walk) {
        walk([&](const auto& c, Index in, Index at, Index, const T& z) SHEAFNN_INLINE_LAMBDA {
          const LayerValues<T> bars = end<T>().backward(values(c, in, z), c.load(output_bar + at));
          if constexpr (reads_input) {
            c.store(x_bar + in, bars.x);
          } else {
            c.store(x_bar + in, bars.mixed);
          }
          if constexpr (reads_before) c.store(before_bar + in, c.load(before_bar + in) + bars.before);
          if constexpr (has_bias) c.store(sum + c, c.load(sum + c) + bars.bias);
          return c.only(bars.z);
        });
      });
    });
    if constexpr (has_bias) {
      for (Index chunk = 0; chunk < chunks.count; ++chunk) {
        for (Index c = 0; c < f; ++c) weights_bar_.bias[static_cast<std::size_t>(c)] += partial_[chunk * f + c];
      }
    }
  }

  FeatureMixing<S> mixing_;
  LaplacianStep<Family, S> step_;
  Buffer<S> partial_;  ///< per chunk of nodes: b̄
  const S *input_ = nullptr, *before_ = nullptr;
};

/// math: "Convolutions and waves" (3.43).
template <RestrictionMapFamily Family, class S>
using ConvolutionLayer = MixingLayer<kernels::ConvolutionEnd, LayerForm::convolution, BiasedWeights, Family, S>;
/// math: "Convolutions and waves" (3.44).
template <RestrictionMapFamily Family, class S>
using WaveLayer = MixingLayer<kernels::WaveEnd, LayerForm::wave, UnbiasedWeights, Family, S>;

}  // namespace sheafnn::layers
