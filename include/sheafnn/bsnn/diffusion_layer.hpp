/// \file
/// DiffusionLayer: X' = (1 + tanh ε) ∘ X − ELU(Δ (I ⊗ A) dropout(X) Bᵀ), with its backward pass (math: "The
/// model", "Backward pass of one diffusion step"; paper, sheaf diffusion layer).
#pragma once

#include <algorithm>
#include <cmath>

#include "sheafnn/bsnn/diffusion.hpp"
#include "sheafnn/bsnn/feature_mixing.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/node_selection.hpp"
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
        scaled_(graph.node_count() * diffusion.row()),
        diffused_(scaled_.size()),
        output_(scaled_.size()),
        partial_(mixing_.chunks().count * most_coordinates) {}

  /// Rows of d' × f, one for each place of the nodes they were asked for.
  [[nodiscard]] const S* output() const noexcept { return output_.data(); }

  /// That of the dropout of X.
  [[nodiscard]] DropoutMask& mask() noexcept { return mixing_.mask(); }

  /// Computes output() at some nodes from x (n × d' × f), which has to stay in place until backward().
  void forward(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf, const S* x,
               const Dropout& dropout, const NodeSelection& nodes) {
    input_ = x;
    nodes_ = nodes;
    mix_and_scale(threads, parameters, sheaf, x, dropout, true, scaled_.data());
    diffuse_and_activate(threads, parameters, sheaf, nodes, x, scaled_.data(), true);
  }

  /// Computes output() without dropout, and nothing that only backward() needs.
  ///
  /// \param mixed  what is known of Y = (I ⊗ A) X Bᵀ: nothing, nothing but it will be wanted again, or all
  /// \param w      a buffer of the size of x to work in
  enum class Mixed { no, wanted, known };
  void evaluate(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf, const S* x,
                const NodeSelection& nodes, Mixed mixed, S* w) {
    if (mixed == Mixed::known) {
      scale_features<Family>(threads, *graph_, *diffusion_, sheaf, mixing_.output(), w);
    } else {
      mix_and_scale(threads, parameters, sheaf, x, Dropout{}, mixed == Mixed::wanted, w);
    }
    diffuse_and_activate(threads, parameters, sheaf, nodes, x, w, false);
  }

  /// From the derivative of output() to that of the input, and to the gradients of weights (added to) and of the
  /// sheaf's blocks.
  ///
  /// \param accumulate    add to sheaf_gradient instead of overwriting it
  /// \param output_bar    of the same shape as output(); where that has all nodes, may be x_bar
  /// \param x_bar         n × d' × f, overwritten
  /// \param y_bar, r_bar  two buffers of the same size to work in; y_bar may be output_bar
  void backward(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf,
                NetworkSheafGradient<Family, S>& sheaf_gradient, bool accumulate, const S* output_bar, S* x_bar,
                S* y_bar, S* r_bar, Buffer<S>& gradient) {
    S gain[most_coordinates];
    gains(parameters, gain);
    backward_activation(threads, parameters, sheaf, gain, output_bar, x_bar, r_bar, sheaf_gradient, accumulate,
                        gradient);
    diffuse_backward<Family>(threads, *graph_, *diffusion_, sheaf, {mixing_.output(), scaled_.data(), r_bar},
                             y_bar, sheaf_gradient, accumulate);
    mixing_.backward(threads, parameters, gain, y_bar, x_bar, gradient);
  }

 private:
  /// w = S (I ⊗ A) dropout(X) Bᵀ.
  void mix_and_scale(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf,
                     const S* x, const Dropout& dropout, bool keep, S* w) {
    const Index row = diffusion_->row();
    mixing_.forward(threads, parameters, x, dropout, keep, [&](Index first, Index nodes, const S* y) {
      scale_rows<Family>(*diffusion_, sheaf, first, nodes, y, w + first * row);
    });
  }
  /// output() from X and W, and R = L W where it is to be kept.
  void diffuse_and_activate(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf,
                            const NodeSelection& nodes, const S* x, const S* w, bool keep) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    S gain[most_coordinates];
    gains(parameters, gain);
    S* out = output_.data();
    S* diffused = diffused_.data();
    const bool activation = shape_.activation;
    diffuse<Family>(threads, *graph_, *diffusion_, sheaf, nodes, w,
                    [=, &gain]<class T, int N>(Index place, Index i, Index c, const T* r, const T* z) {
                      const Index in = nodes[place] * row + i * f + c, to = place * row + i * f + c;
                      T step[N];
                      SHEAFNN_UNROLL for (int k = 0; k < N; ++k) step[k] = z[k];
                      if (activation) {
                        SHEAFNN_UNROLL for (int k = 0; k < N; ++k) step[k] = elu(z[k]);
                      }
                      if (keep) {
                        SHEAFNN_UNROLL for (int k = 0; k < N; ++k) store(diffused + to + k * f, r[k]);
                      }
                      SHEAFNN_UNROLL for (int k = 0; k < N; ++k) {
                        store(out + to + k * f, T(gain[i + k]) * load<T>(x + in + k * f) - step[k]);
                      }
                    });
  }

  /// 1 + tanh ε_i.
  void gains(const ParameterSet<S>& parameters, S* gain) const {
    const S* epsilon = parameters.data(shape_.epsilon);
    for (Index i = 0; i < diffusion_->coordinates; ++i) gain[i] = S(1) + std::tanh(epsilon[i]);
  }

  /// z̄ = −x̄ ∘ ELU′(S r), r̄ = S z̄, S̄_u = z̄_u r_uᵀ, and ε̄_i = (1 − tanh² ε_i) Σ_{u, c} x x̄, where x̄ is output_bar or,
  /// at nodes that were not asked for, 0.
  void backward_activation(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf,
                           const S* gain, const S* output_bar, S* x_bar, S* r_bar,
                           NetworkSheafGradient<Family, S>& sheaf_gradient, bool accumulate, Buffer<S>& gradient) {
    constexpr int D = Family::stalk_dimension;
    constexpr int gram = BlockSizes<Family>::gram;
    const Index f = diffusion_->channels, d = diffusion_->coordinates, row = d * f;
    const bool activation = shape_.activation;
    mixing_.chunks().for_each(threads, [&](Index chunk, Index begin, Index end) {
      S* sum = partial_.data() + chunk * most_coordinates;
      std::fill_n(sum, d, S(0));
      for_tiles<S>(0, f, [&]<class T>(Index c) {
        const bool add = accumulate || c > 0;
        T products[most_coordinates];
        for (Index i = 0; i < d; ++i) products[i] = T(S(0));
        Index place = nodes_.place(begin);
        for (Index u = begin; u < end; ++u) {
          const Index at = u * row + c;
          S* scale_bar = sheaf_gradient.scale_bar.data() + u * gram;
          if (place == nodes_.count() || nodes_[place] != u) {
            for (Index i = 0; i < d; ++i) {
              store(x_bar + at + i * f, T(S(0)));
              store(r_bar + at + i * f, T(S(0)));
            }
            if (is_learned<Family> && !add) std::fill_n(scale_bar, gram, S(0));
            continue;
          }
          const Index from = place++ * row + c;
          T r[D], z[D], bar[D], scaled[D];
          load_coordinates<D>(diffused_.data() + from, f, r);
          load_coordinates<D>(output_bar + from, f, bar);
          detail::scale_block<Family>(sheaf.scale(u), r, z);
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
            store(x_bar + at + i * f, bar[i]);
            products[i] += load<T>(input_ + at + i * f) * bar[i];
            bar[i] = -bar[i];
          }
          if (activation) {
            SHEAFNN_UNROLL for (int i = 0; i < D; ++i) bar[i] *= elu_derivative(z[i]);
          }
          if constexpr (is_learned<Family>) channel_products<D, gram>(bar, r, scale_bar, add);
          detail::scale_block<Family>(sheaf.scale(u), bar, scaled);
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) store(r_bar + at + i * f, scaled[i]);
          for (Index i = D; i < d; ++i) {
            const T root = T(diffusion_->inverse_root[u]);
            T one = load<T>(output_bar + from + i * f);
            store(x_bar + at + i * f, one);
            products[i] += load<T>(input_ + at + i * f) * one;
            one = activation ? -one * elu_derivative(root * load<T>(diffused_.data() + from + i * f)) : -one;
            store(r_bar + at + i * f, root * one);
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
  Buffer<S> scaled_;    ///< W = S Y
  Buffer<S> diffused_;  ///< R = L W, before the second scaling
  Buffer<S> output_;
  Buffer<S> partial_;  ///< per chunk of nodes: Σ x x̄ of each coordinate
  const S* input_ = nullptr;
  NodeSelection nodes_;  ///< at which forward() computed output()
};

}  // namespace sheafnn
