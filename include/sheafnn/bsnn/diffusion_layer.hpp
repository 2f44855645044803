/// \file
/// DiffusionLayer: X' = (1 + tanh ε) ∘ X − ELU(Δ (I ⊗ A) dropout(X) Bᵀ), with its backward pass (math: "The model",
/// "Backward pass of one diffusion step"; paper, sheaf diffusion layer).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sheafnn/bsnn/diffusion.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dense.hpp"
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
  static constexpr Index most_coordinates = max_stalk_dimension + 2;

  DiffusionLayer() = default;
  DiffusionLayer(const Graph& graph, const DiffusionShape<S>& diffusion, DiffusionLayerShape shape)
      : graph_(&graph),
        diffusion_(&diffusion),
        shape_(shape),
        size_(graph.node_count() * diffusion.row()),
        dropped_(size_),
        mask_(Dropout::mask_size(size_)),
        mixed_(shape.right >= 0 ? size_ : 0),
        diffused_(shape.left >= 0 ? size_ : 0),
        activated_(size_),
        output_(size_),
        right_transposed_(diffusion.channels * diffusion.channels),
        chunks_(std::clamp<Index>(graph.node_count() / 256, 1, 64)),
        partial_(chunks_ * most_coordinates * (most_coordinates + 1)) {}

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }

  /// Computes output() from x (n × d' × f), which has to stay in place until backward().
  void forward(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf, const S* x,
               const Dropout& dropout) {
    const Index f = diffusion_->channels, d = diffusion_->coordinates, n = graph_->node_count();
    input_ = x;
    source_ = x;
    scale_ = 1;
    if (dropout.active()) {
      scale_ = dropout.scale();
      dropout.fill_mask(threads, size_, mask_.data());
      apply_dropout(threads, size_, x, mask_.data(), scale_, dropped_.data());
      source_ = dropped_.data();
    }
    const S* mixed = source_;
    if (shape_.right >= 0) {
      transpose_into(f, f, parameters.data(shape_.right), right_transposed_.data(), f);
      multiply_dense<S>(threads, n * d, f, f, {source_, f, 1}, right_transposed_.data(), f, mixed_.data(), f,
                        false);
      mixed = mixed_.data();
    }
    y_ = mixed;
    if (shape_.left >= 0) {
      multiply_coordinates<false>(threads, parameters.data(shape_.left), mixed, diffused_.data());
      y_ = diffused_.data();
    }
    S gain[most_coordinates];
    gains(parameters, gain);
    S* out = output_.data();
    S* activated = activated_.data();
    const bool activation = shape_.activation;
    diffuse<Family>(threads, *graph_, *diffusion_, sheaf, y_,
                    [=]<class T>(Index u, Index i, Index c, const T& value) {
                      const Index place = (u * d + i) * f + c;
                      const T flow = activation ? elu(value) : value;
                      store(activated + place, flow);
                      store(out + place, T(gain[i]) * load<T>(x + place) - flow);
                    });
  }

  /// From the derivative of output() to that of the input, in place, and to the gradients of weights and of the
  /// sheaf's blocks (added to).
  ///
  /// \param x_bar    n × d' × f, replaced
  /// \param scratch  two buffers of the same size
  void backward(int threads, const ParameterSet<S>& parameters, const NetworkSheaf<Family, S>& sheaf,
                NetworkSheafGradient<Family, S>& sheaf_gradient, S* x_bar, S* scratch, S* other_scratch,
                Buffer<S>& gradient) {
    const Index f = diffusion_->channels, d = diffusion_->coordinates, n = graph_->node_count();
    S gain[most_coordinates];
    gains(parameters, gain);
    add_epsilon_gradient(threads, parameters, gain, x_bar, gradient);
    S* z_bar = scratch;
    parallel_for(threads, size_, 8192, [&](Index begin, Index end) {
      for_tiles<S>(begin, end, [&]<class T>(Index i) {
        const T bar = -load<T>(x_bar + i);
        store(z_bar + i, shape_.activation ? bar * elu_slope(load<T>(activated_.data() + i)) : bar);
      });
    });
    if constexpr (Family::kind != MapKind::fixed) {
      add_block_gradient<Family>(threads, *graph_, *diffusion_, y_, z_bar, sheaf_gradient);
    }
    S* y_bar = other_scratch;
    diffuse<Family>(threads, *graph_, *diffusion_, sheaf, z_bar,
                    [=]<class T>(Index u, Index i, Index c, const T& value) {
                      store(y_bar + (u * d + i) * f + c, value);
                    });
    S* mixed_bar = y_bar;
    if (shape_.left >= 0) {
      add_left_gradient(threads, parameters, y_bar, gradient);
      multiply_coordinates<true>(threads, parameters.data(shape_.left), y_bar, scratch);
      mixed_bar = scratch;
    }
    const S* source_bar = mixed_bar;
    if (shape_.right >= 0) {
      multiply_dense<S>(threads, f, f, n * d, {mixed_bar, 1, f}, source_, f,
                        gradient.data() + parameters.info(shape_.right).offset, f, true);
      S* target = mixed_bar == scratch ? other_scratch : scratch;
      multiply_dense<S>(threads, n * d, f, f, {mixed_bar, f, 1}, parameters.data(shape_.right), f, target, f,
                        false);
      source_bar = target;
    }
    const bool dropped = source_ != input_;
    const S factor = static_cast<S>(scale_);
    parallel_for(threads, n, 128, [&](Index begin, Index end) {
      for (Index row = begin * d; row < end * d; ++row) {
        const S g = gain[row % d];
        for (Index place = row * f; place < (row + 1) * f; ++place) {
          const S kept = dropped ? (mask_[place] != 0 ? factor : S(0)) : S(1);
          x_bar[place] = g * x_bar[place] + kept * source_bar[place];
        }
      }
    });
  }

 private:
  /// 1 + tanh ε_i.
  void gains(const ParameterSet<S>& parameters, S* gain) const {
    const S* epsilon = parameters.data(shape_.epsilon);
    for (Index i = 0; i < diffusion_->coordinates; ++i) gain[i] = S(1) + std::tanh(epsilon[i]);
  }

  /// out_u = A in_u (or Aᵀ in_u) for every node.
  template <bool Transposed>
  void multiply_coordinates(int threads, const S* a, const S* in, S* out) const {
    const Index f = diffusion_->channels, d = diffusion_->coordinates;
    parallel_for(threads, graph_->node_count(), 128, [=](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        for_tiles<S>(0, f, [=]<class T>(Index c) {
          for (Index i = 0; i < d; ++i) {
            T sum = T(S(0));
            for (Index j = 0; j < d; ++j) {
              sum += T(Transposed ? a[j * d + i] : a[i * d + j]) * load<T>(in + (u * d + j) * f + c);
            }
            store(out + (u * d + i) * f + c, sum);
          }
        });
      }
    });
  }

  /// ε̄_i = (1 − tanh² ε_i) Σ_{u, c} x x̄.
  void add_epsilon_gradient(int threads, const ParameterSet<S>& parameters, const S* gain, const S* x_bar,
                            Buffer<S>& gradient) {
    const Index f = diffusion_->channels, d = diffusion_->coordinates;
    S* out = gradient.data() + parameters.info(shape_.epsilon).offset;
    reduce_over_nodes(threads, d, [&](Index u, S* sum) {
      for (Index i = 0; i < d; ++i) {
        const Index row = (u * d + i) * f;
        for_tiles<S>(row, row + f,
                     [&]<class T>(Index k) { sum[i] += reduce_add(load<T>(input_ + k) * load<T>(x_bar + k)); });
      }
    });
    for (Index i = 0; i < d; ++i) {
      const S tangent = gain[i] - S(1);
      out[i] += (S(1) - tangent * tangent) * partial_[i];
    }
  }

  /// Ā_ij = Σ_{u, c} ȳ_i (X Bᵀ)_j.
  void add_left_gradient(int threads, const ParameterSet<S>& parameters, const S* y_bar, Buffer<S>& gradient) {
    const Index f = diffusion_->channels, d = diffusion_->coordinates;
    const S* mixed = shape_.right >= 0 ? mixed_.data() : source_;
    reduce_over_nodes(threads, d * d, [&](Index u, S* sum) {
      for (Index i = 0; i < d; ++i) {
        for (Index j = 0; j < d; ++j) {
          S inner = S(0);
          for_tiles<S>(0, f, [&]<class T>(Index c) {
            inner += reduce_add(load<T>(y_bar + (u * d + i) * f + c) * load<T>(mixed + (u * d + j) * f + c));
          });
          sum[i * d + j] += inner;
        }
      }
    });
    S* out = gradient.data() + parameters.info(shape_.left).offset;
    for (Index k = 0; k < d * d; ++k) out[k] += partial_[k];
  }

  /// partial_[0 … count) = Σ_u of what body(u, sum) adds, in a partition that does not depend on the threads.
  template <class Body>
  void reduce_over_nodes(int threads, Index count, const Body& body) {
    constexpr Index stride = most_coordinates * (most_coordinates + 1);
    const Index n = graph_->node_count();
    parallel_for(threads, chunks_, 1, [&](Index begin, Index end) {
      for (Index chunk = begin; chunk < end; ++chunk) {
        S* sum = partial_.data() + chunk * stride;
        std::fill_n(sum, count, S(0));
        for (Index u = n * chunk / chunks_; u < n * (chunk + 1) / chunks_; ++u) body(u, sum);
      }
    });
    for (Index chunk = 1; chunk < chunks_; ++chunk) {
      for (Index k = 0; k < count; ++k) partial_[k] += partial_[chunk * stride + k];
    }
  }

  const Graph* graph_ = nullptr;
  const DiffusionShape<S>* diffusion_ = nullptr;
  DiffusionLayerShape shape_;
  Index size_ = 0;
  Buffer<S> dropped_;  ///< dropout(X)
  Buffer<std::uint8_t> mask_;
  Buffer<S> mixed_;      ///< dropout(X) Bᵀ
  Buffer<S> diffused_;   ///< (I ⊗ A) dropout(X) Bᵀ
  Buffer<S> activated_;  ///< ELU(Δ Y)
  Buffer<S> output_;
  Buffer<S> right_transposed_;
  Index chunks_ = 1;
  Buffer<S> partial_;
  const S* input_ = nullptr;
  const S* source_ = nullptr;
  const S* y_ = nullptr;
  double scale_ = 1;
};

}  // namespace sheafnn
