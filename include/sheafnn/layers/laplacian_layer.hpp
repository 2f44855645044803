/// \file
/// LaplacianLayer: a layer from its equation at a number, X' = φ(X̃, Δ X̃, X_1; θ) with X̃ = dropout(X), which is written once
/// (kernels/layer_equation.hpp). This is the layer on the CPU; batches and devices run the same equation
/// (batch/laplacian_layer.hpp). Math: "Diffusion in three steps" (3.15) for Δ.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/kernels/layer_equation.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/laplacian_step.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/nn/parameter_list.hpp"

namespace sheafnn::layers {

/// The weights of an equation, d' numbers each. \tparam T const S, S or ParameterSlot
template <template <class> class Equation>
struct EquationWeights {
  /// Views of the weights, in the order of the equation's declaration.
  template <class T>
  struct Views {
    std::array<WeightVector<T>, static_cast<std::size_t>(kernels::weight_count<Equation<float>>)> of;

    /// Unchecked: the number of coordinates, a model's.
    void declare(ParameterList<T>& list, const LayerSetting& setting) {
      if constexpr (constexpr int count = kernels::weight_count<Equation<float>>; count > 0) {
        for (std::size_t k = 0; k < of.size(); ++k) {
          const EquationWeight& weight = Equation<float>::weights[k];
          list.vector(of[k], weight.name, {setting.coordinates}, constant_values(weight.initial));
        }
      }
    }
  };
};

/// See the file comment.
template <template <class> class Equation, RestrictionMapFamily Family, class S>
class LaplacianLayer : public WeightedLayer<Family, S, EquationWeights<Equation>::template Views> {
  static_assert(LayerEquation<Equation<S>, S>,
                "an equation has a constructor from rates, forward() and backward(): see "
                "sheafnn/kernels/layer_equation.hpp");
  using Base = WeightedLayer<Family, S, EquationWeights<Equation>::template Views>;
  using Base::graph_, Base::diffusion_, Base::weights_, Base::weights_bar_, Base::nodes_, Base::output_;

  static constexpr int count = kernels::weight_count<Equation<S>>;
  static constexpr bool with_first = kernels::reads_first<Equation<S>>,
                        with_before = kernels::reads_before<Equation<S>>;

 public:
  /// `graph` and `shape` must outlive the layer.
  ///
  /// \throws std::invalid_argument  a shape of another graph or family
  LaplacianLayer(const Graph& graph, const DiffusionShape<S>& shape, const LayerSetting& setting)
      : Base(graph, shape, setting),
        dropping_(graph.own_node_count(), shape.coordinates, shape.channels, false, false),
        step_(graph, shape, true),
        partial_(step_.chunks().count * count * max_coordinates) {}

  [[nodiscard]] DropoutMask& mask() noexcept override { return dropping_.mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override { return {.first = with_first, .before = with_before}; }

  /// \throws std::invalid_argument  see Layer
  void forward(const LayerCall<Family, S>& call) override {
    this->begin(call);
    this->check_scratch(call);
    first_ = call.first.data();
    before_ = call.before.data();
    step_.begin(call);
    dropping_.forward(call.execution, {}, call.x.data(), call.active_dropout(), true,
                      [&](Index begin, Index nodes, const S* rows) {
                        step_.scale(call.sheaf, begin, nodes, rows);
                      });
    const Rates rates = this->rates();
    const S* const x = dropping_.output();
    step_.diffuse(call, x, output_.data(),
                  [=, this, &rates]<class T>(const auto& c, Index in, Index i, const T& z) SHEAFNN_INLINE_LAMBDA {
                    return Equation<T>(rates.of[i]).forward(this->values(c, x, z, in));
                  });
  }
  /// \throws std::invalid_argument  see Layer
  void backward(const LayerBackwardCall<Family, S>& call) override {
    this->check(call);
    this->check_scratch(call);
    const Index row = diffusion_->row(), d = diffusion_->coordinates;
    const Rates rates = this->rates();
    const S *const x = dropping_.output(), *const bar = call.output_bar.data();
    S *const x_bar = call.x_bar.data(), *const through = call.scratch[0].data();
    const NodeChunks chunks = step_.chunks();
    chunks.for_each(call.execution, [&](Index chunk, Index begin, Index end) {
      S* const partial = partial_.data() + chunk * count * max_coordinates;
      std::fill_n(partial, count * max_coordinates, S(0));
      step_.template begin_backward<true>(call, begin, end, x_bar, [&]<class T>(const auto& walk) {
        T sums[kernels::weight_room<Equation<S>>][max_coordinates] = {};
        walk([&](const auto& c, Index in, Index at, Index i, const T& z) SHEAFNN_INLINE_LAMBDA {
          T rates_bar[kernels::weight_room<Equation<S>>] = {};
          const LayerValues<T> bars =
              Equation<T>(rates.of[i]).backward(values(c, x, z, in), c.load(bar + at), rates_bar);
          c.store(x_bar + in, bars.x);
          if constexpr (with_first) {
            S* const to = call.first_bar.data() + in;
            c.store(to, c.load(to) + bars.first);
          }
          if constexpr (with_before) {
            S* const to = call.before_bar.data() + in;
            c.store(to, c.load(to) + bars.before);
          }
          for (int k = 0; k < count; ++k) sums[k][i] += c.only(rates_bar[k]);
          return c.only(bars.z);
        });
        for (int k = 0; k < count; ++k) {
          for (Index i = 0; i < d; ++i) partial[k * max_coordinates + i] += reduce_add(sums[k][i]);
        }
      });
    });
    add_sums(chunks.count, rates);
    step_.end_backward(call, through);
    dropping_.backward(call.execution, {}, nullptr, detail::sum_of_rows(x_bar, through, row), x_bar, {});
    detail::clear_halo(*graph_, x_bar, row);
  }

 private:
  struct Rates {
    S of[max_coordinates][kernels::weight_room<Equation<S>>] = {};
  };
  [[nodiscard]] Rates rates() const {
    Rates r;
    for (Index i = 0; i < diffusion_->coordinates; ++i) {
      S own[kernels::weight_room<Equation<S>>] = {};
      for (int k = 0; k < count; ++k)
        own[k] = weights_.of[static_cast<std::size_t>(k)][static_cast<std::size_t>(i)];
      kernels::rates_of<Equation<S>>(own, Index{1}, r.of[i]);
    }
    return r;
  }
  template <class Tile, class T>
  [[nodiscard]] SHEAFNN_INLINE LayerValues<T> values(const Tile& c, const S* x, const T& z, Index in) const {
    LayerValues<T> r{c.load(x + in), z};
    if constexpr (with_first) r.first = c.load(first_ + in);
    if constexpr (with_before) r.before = c.load(before_ + in);
    return r;
  }
  /// Derivatives of the weights += sums over the chunks, times the slope of tanh where it is.
  void add_sums(Index chunks, const Rates& rates) {
    if constexpr (count > 0) {
      for (int k = 0; k < count; ++k) {
        for (Index i = 0; i < diffusion_->coordinates; ++i) {
          S sum = S(0);
          for (Index c = 0; c < chunks; ++c) sum += partial_[(c * count + k) * max_coordinates + i];
          if (Equation<S>::weights[k].tanh) sum *= kernels::gain_slope(rates.of[i][k]);
          weights_bar_.of[static_cast<std::size_t>(k)][static_cast<std::size_t>(i)] += sum;
        }
      }
    }
  }

  FeatureMixing<S> dropping_;  ///< X̃ = dropout(X)
  LaplacianStep<Family, S> step_;
  Buffer<S> partial_;  ///< per chunk of nodes: derivatives of the rates
  const S *first_ = nullptr, *before_ = nullptr;
};

}  // namespace sheafnn::layers
