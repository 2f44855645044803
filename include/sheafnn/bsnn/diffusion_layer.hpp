/// \file
/// DiffusionLayer: X' = (1 + tanh ε) ∘ X − ELU(Δ (I ⊗ A) dropout(X) Bᵀ), with its backward pass (math: "The model",
/// "Backward pass of one diffusion step"; paper, sheaf diffusion layer).
#pragma once

#include <algorithm>
#include <cmath>

#include "sheafnn/bsnn/diffusion.hpp"
#include "sheafnn/bsnn/feature_mixing.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn {

/// Weights of a diffusion layer; −1 where the architecture leaves one out.
struct DiffusionLayerShape {
  ParameterId left = -1;     ///< A, d' × d'
  ParameterId right = -1;    ///< B, f × f
  ParameterId epsilon = -1;  ///< ε, d'
  bool activation = true;
};

/// Buffers of one layer on one graph. Features are n × d' × f, channels innermost.
template <RestrictionMapFamily Family, class S>
class DiffusionLayer {
 public:
  DiffusionLayer() = default;
  DiffusionLayer(const Graph& graph, const DiffusionShape<S>& diffusion, DiffusionLayerShape shape)
      : graph_(&graph),
        diffusion_(&diffusion),
        shape_(shape),
        mixing_(graph.node_count(), diffusion.coordinates, diffusion.channels, shape.left, shape.right),
        activated_(graph.node_count() * diffusion.row()),
        output_(activated_.size()),
        partial_(mixing_.chunks().count * most_coordinates) {}

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }

  /// Computes output() from x (n × d' × f), which has to stay in place until backward().
  void forward(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf, const S* x,
               const Dropout& dropout) {
    const Index f = diffusion_->channels, d = diffusion_->coordinates;
    input_ = x;
    mixing_.forward(threads, parameters, x, dropout);
    S gain[most_coordinates];
    gains(parameters, gain);
    S* out = output_.data();
    S* activated = activated_.data();
    const bool activation = shape_.activation;
    diffuse<Family>(threads, *graph_, *diffusion_, sheaf, mixing_.output(),
                    [=, &gain]<class T>(Index u, Index i, Index c, const T& value) {
                      const Index place = (u * d + i) * f + c;
                      const T flow = activation ? elu(value) : value;
                      store(activated + place, flow);
                      store(out + place, T(gain[i]) * load<T>(x + place) - flow);
                    });
  }

  /// From the derivative of output() to that of the input, in place, and to the gradients of weights and of the
  /// sheaf's blocks (added to).
  ///
  /// \param x_bar         n × d' × f, replaced
  /// \param z_bar, y_bar  two buffers of the same size to work in
  void backward(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf,
                NetworkSheafGradient<Family, S>& sheaf_gradient, S* x_bar, S* z_bar, S* y_bar,
                Buffer<S>& gradient) {
    const Index f = diffusion_->channels, d = diffusion_->coordinates;
    S gain[most_coordinates];
    gains(parameters, gain);
    backward_activation(threads, parameters, gain, x_bar, z_bar, gradient);
    if constexpr (Family::kind != MapKind::fixed) {
      add_block_gradient<Family>(threads, *graph_, *diffusion_, mixing_.output(), z_bar, sheaf_gradient);
    }
    diffuse<Family>(threads, *graph_, *diffusion_, sheaf, z_bar,
                    [=]<class T>(Index u, Index i, Index c, const T& value) {
                      store(y_bar + (u * d + i) * f + c, value);
                    });
    mixing_.backward(threads, parameters, gain, y_bar, x_bar, gradient);
  }

 private:
  /// 1 + tanh ε_i.
  void gains(const ParameterSet<S>& parameters, S* gain) const {
    const S* epsilon = parameters.data(shape_.epsilon);
    for (Index i = 0; i < diffusion_->coordinates; ++i) gain[i] = S(1) + std::tanh(epsilon[i]);
  }

  /// z̄ = −x̄ ∘ ELU′, and ε̄_i = (1 − tanh² ε_i) Σ_{u, c} x x̄.
  void backward_activation(int threads, const ParameterSet<S>& parameters, const S* gain, const S* x_bar,
                           S* z_bar, Buffer<S>& gradient) {
    const Index f = diffusion_->channels, d = diffusion_->coordinates;
    const S* activated = shape_.activation ? activated_.data() : nullptr;
    mixing_.chunks().for_each(threads, [&](Index chunk, Index begin, Index end) {
      S* sum = partial_.data() + chunk * most_coordinates;
      std::fill_n(sum, d, S(0));
      constexpr Index group = 16;  // nodes that stay in the nearest cache while each coordinate is summed
      for (Index first = begin; first < end; first += group) {
        const Index last = std::min(end, first + group);
        for (Index i = 0; i < d; ++i) {
          for_tiles<S>(0, f, [&]<class T>(Index c) {
            T products = T(S(0));
            for (Index place = (first * d + i) * f + c; place < last * d * f; place += d * f) {
              const T bar = load<T>(x_bar + place);
              products += load<T>(input_ + place) * bar;
              store(z_bar + place, activated != nullptr ? -bar * elu_slope(load<T>(activated + place)) : -bar);
            }
            sum[i] += reduce_add(products);
          });
        }
      }
    });
    S* out = gradient.data() + parameters.info(shape_.epsilon).offset;
    for (Index i = 0; i < d; ++i) {
      const S tangent = gain[i] - S(1);
      S sum = S(0);
      for (Index chunk = 0; chunk < mixing_.chunks().count; ++chunk) sum += partial_[chunk * most_coordinates + i];
      out[i] += (S(1) - tangent * tangent) * sum;
    }
  }

  const Graph* graph_ = nullptr;
  const DiffusionShape<S>* diffusion_ = nullptr;
  DiffusionLayerShape shape_;
  FeatureMixing<S> mixing_;
  Buffer<S> activated_;  ///< ELU(Δ Y)
  Buffer<S> output_;
  Buffer<S> partial_;  ///< per chunk of nodes: Σ x x̄ of each coordinate
  const S* input_ = nullptr;
};

}  // namespace sheafnn
