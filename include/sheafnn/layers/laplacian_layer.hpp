/// \file
/// LaplacianLayer: a layer from its equation at one value, X' = φ(X̃, Δ X̃, X_1; θ) with X̃ = dropout(X), or of mixed features
/// Y = (I ⊗ A) X̃ Bᵀ, X' = φ(X, Y, Δ Y, X_{l−1}, b; θ). The equation is written once (kernels/layer_equation.hpp). This is the
/// layer on the CPU; batches and devices run the same equation (batch/laplacian_layer.hpp). Math: "Diffusion in three steps"
/// (3.15) for Δ.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/kernels/layer_equation.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/laplacian_step.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/dropout_mask.hpp"
#include "sheafnn/nn/parameter_list.hpp"

namespace sheafnn::layers {

/// The weights of an equation: A, B and b where it mixes, then d' values for each of its own. \tparam T const S, S or ParameterSlot
template <template <class> class Equation>
struct EquationWeights {
  template <class T>
  struct Views : BiasedWeights<T> {
    static constexpr bool mixes = kernels::mixes<Equation<float>>, has_bias = kernels::has_bias<Equation<float>>;
    /// The weights in the order of the equation's declaration.
    std::array<WeightVector<T>, static_cast<std::size_t>(kernels::weight_count<Equation<float>>)> of;

    /// Unchecked: the number of coordinates, a model's.
    void declare(ParameterList<T>& list, const LayerSetting& setting) {
      if constexpr (mixes) BiasedWeights<T>::declare(list, setting, has_bias);
      if constexpr (constexpr int count = kernels::weight_count<Equation<float>>; count > 0) {
        for (std::size_t k = 0; k < of.size(); ++k) {
          const EquationWeight& weight = Equation<float>::weights[k];
          list.vector(of[k], weight.name, {setting.coordinates}, constant_values(weight.initial));
        }
      }
    }
    /// \throws std::invalid_argument  a weight of another shape
    void check(const LayerSetting& setting) const {
      if constexpr (mixes) BiasedWeights<T>::check(setting, has_bias);
    }
  };
};
/// The equation of layers with ε.
template <>
struct EquationWeights<kernels::DiffusionEnd> {
  template <class T>
  using Views = DiffusionWeights<T>;
};

/// See the file comment. \tparam FormOf  the form that it is
template <template <class> class Equation, RestrictionMapFamily Family, class S,
          LayerForm FormOf = LayerForm::diffusion>
class LaplacianLayer : public WeightedLayer<Family, S, EquationWeights<Equation>::template Views> {
  static_assert(LayerEquation<Equation<S>, S>,
                "an equation has a constructor from rates, forward() and backward(): see "
                "sheafnn/kernels/layer_equation.hpp");
  using Base = WeightedLayer<Family, S, EquationWeights<Equation>::template Views>;
  using Base::graph_, Base::diffusion_, Base::setting_, Base::weights_, Base::weights_bar_, Base::nodes_,
      Base::output_;

  static constexpr int count = kernels::weight_count<Equation<S>>, room = kernels::weight_room<Equation<S>>;
  static constexpr bool with_first = kernels::reads_first<Equation<S>>,
                        with_before = kernels::reads_before<Equation<S>>, mixes = kernels::mixes<Equation<S>>,
                        with_mixed = kernels::reads_mixed<Equation<S>>, has_bias = kernels::has_bias<Equation<S>>;
  static_assert(mixes || !(with_mixed || has_bias), "only equations that mix have Y and a bias");
  static constexpr bool shares_rows = mixes && !with_mixed;  // Y is read by the backward pass of Δ alone

 public:
  static constexpr LayerForm form = FormOf;

  /// Takes any setting.
  [[nodiscard]] static bool suits(const LayerSetting& of) {
    return form == LayerForm::diffusion ? Base::suits(of) : of.form == form;
  }
  /// `graph` and `shape` must outlive the layer.
  ///
  /// \throws std::invalid_argument  a shape of another graph or family
  LaplacianLayer(const Graph& graph, const DiffusionShape<S>& shape, const LayerSetting& setting)
      : Base(graph, shape, setting),
        mixing_(graph.own_node_count(), shape.coordinates, shape.channels, mixes && setting.diffusion.left,
                mixes && setting.diffusion.right),
        step_(graph, shape, true),
        partial_(step_.chunks().count * partial_size()) {
    setting_.diffusion.residual = std::is_same_v<decltype(weights_), DiffusionWeights<const S>>;
  }
  LaplacianLayer(const Graph&&, const DiffusionShape<S>&, const LayerSetting&) = delete;  // they would dangle
  LaplacianLayer(const Graph&, const DiffusionShape<S>&&, const LayerSetting&) = delete;

  [[nodiscard]] FeatureView<S> output_place() noexcept override {
    return {output_.data(), graph_->node_count(), diffusion_->coordinates, diffusion_->channels};
  }
  /// Takes any list.
  void list_memory(std::vector<Buffer<S>*>& list) override {
    Base::list_memory(list);
    mixing_.list_memory(list);
    step_.list_memory(list);
  }
  [[nodiscard]] DropoutMask& mask() noexcept override { return mixing_.mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override {
    return {.first = with_first, .before = with_before, .work = !shares_rows};
  }

  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void forward(const LayerCall<Family, S>& call) override {
    this->begin(call);
    this->check_scratch(call);
    weights_.check(setting_);
    input_ = call.x.data();
    first_ = call.first.data();
    before_ = call.before.data();
    take_rows(call);
    step_.begin(call, rows_ != nullptr ? rows_->scaled.data() : nullptr);
    if (!call.training && call.mixing == MixedFeatures::reuse) {
      step_.scale(call, mixing_.output());
    } else {
      const bool keep =
          !mixes || with_mixed || call.training || call.mixing == MixedFeatures::compute_and_keep;
      mixing_.forward(call.execution, mixing_of(weights_), input_, call.active_dropout(), keep,
                      scaling(call.sheaf));
    }
    const Rates rates = this->rates();
    const bool activation = setting_.diffusion.activation;
    step_.diffuse(call, mixing_.output(), output_.data(),
                  [&, activation]<class T>(const auto& c, Index in, Index i, const T& z) SHEAFNN_INLINE_LAMBDA {
                    return kernels::equation_of<Equation<T>>(rates.of[i], activation).forward(values(c, z, in));
                  });
  }
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void backward(const LayerBackwardCall<Family, S>& call) override {
    this->check(call);
    this->check_scratch(call);
    weights_.check(setting_);
    weights_bar_.check(setting_);
    const Index row = diffusion_->row();
    const Rates rates = this->rates();
    if (rows_ != nullptr && rows_->owner != this)
      mixing_.forward_again(call.execution, mixing_of(weights_), scaling(call.sheaf));
    S *const x_bar = call.x_bar.data(), *const through = call.scratch[0].data();
    end_backward(call, rates);
    add_sums(rates);
    step_.end_backward(call, through);
    if (rows_ != nullptr) rows_->owner = nullptr;  // `through` may be in place of Y
    if constexpr (mixes && !with_mixed) {
      mixing_.backward(call.execution, mixing_of(weights_), detail::unit_gain<S>.data(), through, x_bar,
                       mixing_of(weights_bar_));
    } else {
      mixing_.backward(call.execution, mixing_of(weights_), nullptr, detail::sum_of_rows(x_bar, through, row),
                       x_bar, mixing_of(weights_bar_));
    }
    detail::clear_halo(*graph_, x_bar, row);
  }

 private:
  /// The memory for W and Y of this pass.
  void take_rows(const LayerCall<Family, S>& call) {
    rows_ = shares_rows ? call.rows : nullptr;
    if (rows_ != nullptr) {
      rows_->take(graph_->node_count() * diffusion_->row());
      rows_->owner = this;
    }
    mixing_.keep_in(rows_ != nullptr ? rows_->mixed.data() : nullptr);
  }
  /// W from rows of Y.
  [[nodiscard]] auto scaling(const SheafBlocks<Family, S>& sheaf) {
    return [this, &sheaf](Index first, Index nodes, const S* y) { step_.scale(sheaf, first, nodes, y); };
  }

  struct Rates {
    S of[max_coordinates][room] = {};
  };
  [[nodiscard]] Rates rates() const {
    Rates r;
    for (Index i = 0; i < diffusion_->coordinates; ++i) {
      S own[room] = {};
      for (int k = 0; k < count; ++k) own[k] = own_weight(weights_, k)[static_cast<std::size_t>(i)];
      kernels::rates_of<Equation<S>>(own, Index{1}, r.of[i]);
    }
    return r;
  }
  /// A and B; empty where the equation does not mix.
  template <class Weights>
  [[nodiscard]] static const auto& mixing_of(const Weights& weights) {
    if constexpr (requires { weights.mixing; }) {
      return weights.mixing;
    } else {
      return weights;
    }
  }
  template <class Weights>
  [[nodiscard]] static const auto& own_weight(const Weights& weights, int k) {
    if constexpr (requires { weights.of; }) {
      return weights.of[static_cast<std::size_t>(k)];
    } else {
      return weights.epsilon;
    }
  }
  /// What the equation reads at element `in` of the features.
  template <class Tile, class T>
  [[nodiscard]] SHEAFNN_INLINE LayerValues<T> values(const Tile& c, const T& z, Index in) const {
    LayerValues<T> r;
    r.z = z;
    if constexpr (with_mixed) {
      r.mixed = c.load(mixing_.output() + in);
    } else {
      r.x = c.load((mixes ? input_ : mixing_.output()) + in);
    }
    if constexpr (with_first) r.first = c.load(first_ + in);
    if constexpr (with_before) r.before = c.load(before_ + in);
    if constexpr (has_bias) r.bias = c.load(weights_.bias.data() + c);
    return r;
  }

  /// Computes from output_bar: r̄ = S z̄, S̄_u, sums for the rates and b, X̄_1 and X̄_before. x_bar then holds the derivative of
  /// what the equation has as x or Y.
  void end_backward(const LayerBackwardCall<Family, S>& call, const Rates& rates) {
    const Index d = diffusion_->coordinates;
    const bool activation = setting_.diffusion.activation;
    const S* const bar = call.output_bar.data();
    S *const x_bar = call.x_bar.data(), *const first_bar = call.first_bar.data(),
             *const before_bar = call.before_bar.data();
    step_.chunks().for_each(call.execution, [&](Index chunk, Index begin, Index end) {
      S *const partial = partial_.data() + chunk * partial_size(),
               *const bias_bar = partial + count * max_coordinates;
      std::fill_n(partial, partial_size(), S(0));
      step_.template begin_backward<true>(call, begin, end, x_bar, [&]<class T>(const auto& walk) {
        T sums[room][max_coordinates] = {};
        walk([&](const auto& c, Index in, Index at, Index i, const T& z) SHEAFNN_INLINE_LAMBDA {
          T rates_bar[room] = {};
          const LayerValues<T> bars = kernels::equation_of<Equation<T>>(rates.of[i], activation)
                                          .backward(values(c, z, in), c.load(bar + at), rates_bar);
          c.store(x_bar + in, with_mixed ? bars.mixed : bars.x);
          if constexpr (with_first) c.store(first_bar + in, c.load(first_bar + in) + bars.first);
          if constexpr (with_before) c.store(before_bar + in, c.load(before_bar + in) + bars.before);
          if constexpr (has_bias) c.store(bias_bar + c, c.load(bias_bar + c) + bars.bias);
          for (int k = 0; k < count; ++k) sums[k][i] += c.only(rates_bar[k]);
          return c.only(bars.z);
        });
        for (int k = 0; k < count; ++k) {
          for (Index i = 0; i < d; ++i) partial[k * max_coordinates + i] += reduce_add(sums[k][i]);
        }
      });
    });
    for (Index chunk = 1; chunk < step_.chunks().count; ++chunk) {
      for (Index k = 0; k < partial_size(); ++k) partial_[k] += partial_[chunk * partial_size() + k];
    }
  }
  /// Derivatives of the weights += these sums, times the slope of tanh where it is.
  void add_sums(const Rates& rates) {
    if constexpr (count > 0) {
      for (int k = 0; k < count; ++k) {
        for (Index i = 0; i < diffusion_->coordinates; ++i) {
          const S slope = Equation<S>::weights[k].tanh ? kernels::gain_slope(rates.of[i][k]) : S(1);
          own_weight(weights_bar_, k)[static_cast<std::size_t>(i)] += slope * partial_[k * max_coordinates + i];
        }
      }
    }
    if constexpr (has_bias) {
      for (Index c = 0; c < diffusion_->channels; ++c)
        weights_bar_.bias[static_cast<std::size_t>(c)] += partial_[count * max_coordinates + c];
    }
  }
  [[nodiscard]] Index partial_size() const noexcept {
    return count * max_coordinates + (has_bias ? diffusion_->channels : 0);
  }

  FeatureMixing<S> mixing_;  ///< Y, which is X̃ where the equation does not mix
  LaplacianStep<Family, S> step_;
  Buffer<S> partial_;  ///< per chunk of nodes: derivatives of the rates, then of b
  SharedRows<S>* rows_ = nullptr;  ///< of the last pass
  const S *input_ = nullptr, *first_ = nullptr, *before_ = nullptr;
};

}  // namespace sheafnn::layers
