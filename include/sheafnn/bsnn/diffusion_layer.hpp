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
        diffused_(graph.node_count() * diffusion.row()),
        output_(diffused_.size()),
        partial_(mixing_.chunks().count * most_coordinates) {}

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }

  /// Computes output() from x (n × d' × f), which has to stay in place until backward().
  ///
  /// \param w  a buffer of the same size to work in
  void forward(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf, const S* x,
               const Dropout& dropout, S* w) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    input_ = x;
    mixing_.forward(threads, parameters, x, dropout);
    scale_features<Family>(threads, *graph_, *diffusion_, sheaf, mixing_.output(), w);
    S gain[most_coordinates];
    gains(parameters, gain);
    S* out = output_.data();
    S* diffused = diffused_.data();
    const bool activation = shape_.activation;
    diffuse<Family>(threads, *graph_, *diffusion_, sheaf, w,
                    [=, &gain]<class T, int N>(Index u, Index i, Index c, const T* r, const T* z) {
                      SHEAFNN_UNROLL for (int k = 0; k < N; ++k) {
                        const Index place = u * row + (i + k) * f + c;
                        store(diffused + place, r[k]);
                        store(out + place, T(gain[i + k]) * load<T>(x + place) - (activation ? elu(z[k]) : z[k]));
                      }
                    });
  }

  /// From the derivative of output() to that of the input, in place, and to the gradients of weights and of the
  /// sheaf's blocks (added to).
  ///
  /// \param x_bar            n × d' × f, replaced
  /// \param w, z_bar, r_bar  three buffers of the same size to work in
  void backward(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf,
                NetworkSheafGradient<Family, S>& sheaf_gradient, S* x_bar, S* w, S* z_bar, S* r_bar,
                Buffer<S>& gradient) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    S gain[most_coordinates];
    gains(parameters, gain);
    const S* y = mixing_.output();
    backward_activation(threads, parameters, sheaf, gain, x_bar, z_bar, r_bar, gradient);
    if constexpr (Family::kind != MapKind::fixed) {
      scale_features<Family>(threads, *graph_, *diffusion_, sheaf, y, w);
      add_off_diagonal_gradient<Family>(threads, *graph_, *diffusion_, w, r_bar, sheaf_gradient);
    }
    const S* r = diffused_.data();
    NetworkSheafGradient<Family, S>* blocks = &sheaf_gradient;
    diffuse<Family>(threads, *graph_, *diffusion_, sheaf, r_bar,
                    [=]<class T, int N>(Index u, Index i, Index c, const T* w_bar, const T* y_bar) {
                      S* out = z_bar + u * row + i * f + c;
                      if constexpr (Family::kind != MapKind::fixed) {
                        if (i == 0) add_node_gradient<N>(*blocks, u, c, f, {y, w, r, z_bar, r_bar}, w_bar, row);
                      }
                      SHEAFNN_UNROLL for (int k = 0; k < N; ++k) store(out + k * f, y_bar[k]);
                    });
    mixing_.backward(threads, parameters, gain, z_bar, x_bar, gradient);
  }

 private:
  /// Features and derivatives of the three steps, n × d' × f each.
  struct Steps {
    const S *y, *w, *r, *z_bar, *r_bar;
  };

  /// Adds to the derivatives of D_u, R̄_u W_uᵀ, and of S_u, Z̄_u R_uᵀ + W̄_u Y_uᵀ, the part of a tile of channels.
  template <int N, class T>
  static SHEAFNN_INLINE void add_node_gradient(NetworkSheafGradient<Family, S>& blocks, Index u, Index c, Index f,
                                               const Steps& at, const T* w_bar, Index row) {
    constexpr int size = BlockSizes<Family>::gram;
    const Index place = u * row + c;
    T y[N], w[N], r[N], z_bar[N], r_bar[N];
    load_coordinates<N>(at.y + place, f, y);
    load_coordinates<N>(at.w + place, f, w);
    load_coordinates<N>(at.r + place, f, r);
    load_coordinates<N>(at.z_bar + place, f, z_bar);
    load_coordinates<N>(at.r_bar + place, f, r_bar);
    add_channel_products<N, size>(z_bar, r, w_bar, y, blocks.scale_bar.data() + u * size);
    add_channel_products<N, size>(r_bar, w, blocks.degree_bar.data() + u * size);
  }

  /// 1 + tanh ε_i.
  void gains(const ParameterSet<S>& parameters, S* gain) const {
    const S* epsilon = parameters.data(shape_.epsilon);
    for (Index i = 0; i < diffusion_->coordinates; ++i) gain[i] = S(1) + std::tanh(epsilon[i]);
  }

  /// z̄ = −x̄ ∘ ELU′(S r), r̄ = S z̄, and ε̄_i = (1 − tanh² ε_i) Σ_{u, c} x x̄.
  void backward_activation(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf,
                           const S* gain, const S* x_bar, S* z_bar, S* r_bar, Buffer<S>& gradient) {
    constexpr int D = Family::stalk_dimension;
    const Index f = diffusion_->channels, d = diffusion_->coordinates, row = d * f;
    const bool activation = shape_.activation;
    mixing_.chunks().for_each(threads, [&](Index chunk, Index begin, Index end) {
      S* sum = partial_.data() + chunk * most_coordinates;
      std::fill_n(sum, d, S(0));
      for_tiles<S>(0, f, [&]<class T>(Index c) {
        T products[most_coordinates];
        for (Index i = 0; i < d; ++i) products[i] = T(S(0));
        for (Index u = begin; u < end; ++u) {
          const Index place = u * row + c;
          T r[D], z[D], bar[D], scaled[D];
          load_coordinates<D>(diffused_.data() + place, f, r);
          detail::scale_block<Family>(sheaf.scale(u), r, z);
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
            bar[i] = load<T>(x_bar + place + i * f);
            products[i] += load<T>(input_ + place + i * f) * bar[i];
            bar[i] = activation ? -bar[i] * elu_derivative(z[i]) : -bar[i];
            store(z_bar + place + i * f, bar[i]);
          }
          detail::scale_block<Family>(sheaf.scale(u), bar, scaled);
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) store(r_bar + place + i * f, scaled[i]);
          for (Index i = D; i < d; ++i) {
            const T root = T(diffusion_->inverse_root[u]);
            T one = load<T>(x_bar + place + i * f);
            products[i] += load<T>(input_ + place + i * f) * one;
            one = activation ? -one * elu_derivative(root * load<T>(diffused_.data() + place + i * f)) : -one;
            store(z_bar + place + i * f, one);
            store(r_bar + place + i * f, root * one);
          }
        }
        for (Index i = 0; i < d; ++i) sum[i] += reduce_add(products[i]);
      });
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
  Buffer<S> diffused_;  ///< R = L S Y, before the second scaling
  Buffer<S> output_;
  Buffer<S> partial_;  ///< per chunk of nodes: Σ x x̄ of each coordinate
  const S* input_ = nullptr;
};

}  // namespace sheafnn
