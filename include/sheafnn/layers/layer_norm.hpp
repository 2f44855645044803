/// \file
/// LayerNorm: every row of a matrix with mean 0 and variance 1, then a scale and a shift per column,
///
///     y = w ∘ x̂ + b,  x̂ = (x − mean(x)) / √(var(x) + ε),  ε = 10⁻⁵, the variance with divisor h,
///
/// with its backward pass, x̄ = (g − mean(g) − x̂ mean(g ∘ x̂)) / √(var(x) + ε) for g = w ∘ ȳ.
/// Source: Layer Normalization (Ba, Kiros, Hinton).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/layers/node_chunks.hpp"

namespace sheafnn {

/// Scale w and shift b of a normalisation, h numbers each.
template <class T>
struct NormWeights {
  std::span<T> scale, shift;
};

namespace detail {

/// sum[k] = Σ_c terms(c)[k] over the columns of a row: term.template operator()<T>(c, T (&out)[Count]) for T a pack or
/// a scalar.
template <int Count, class S, class Terms>
SHEAFNN_INLINE void row_sums(Index width, const Terms& terms, S (&sum)[Count]) {
  constexpr int W = lanes<S>;
  Pack<S, W> total[Count];
  for (int k = 0; k < Count; ++k) total[k] = Pack<S, W>(S(0));
  Index c = 0;
  for (; c + W <= width; c += W) {
    Pack<S, W> term[Count];
    terms(c, term);
    for (int k = 0; k < Count; ++k) total[k] += term[k];
  }
  for (int k = 0; k < Count; ++k) sum[k] = reduce_add(total[k]);
  for (; c < width; ++c) {
    S term[Count];
    terms(c, term);
    for (int k = 0; k < Count; ++k) sum[k] += term[k];
  }
}

}  // namespace detail

/// Buffers of a normalisation of at most `rows` rows of `width` numbers.
template <class S>
class LayerNorm {
 public:
  static constexpr double epsilon = 1e-5;

  LayerNorm() = default;
  LayerNorm(Index rows, Index width)
      : width_(width), output_(rows * width), mean_(rows), inverse_(rows), partial_(64 * 2 * width) {}

  /// y of the last forward(), rows × h.
  [[nodiscard]] MatrixView<const S> output() const noexcept { return {output_.data(), rows_, width_}; }

  /// Computes output() from x (at most `rows` rows), which must not change until backward().
  ///
  /// \throws std::invalid_argument  x or weights of another shape
  void forward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x);

  /// From the derivative of output() to that of x (overwritten) and to those of the weights (added to).
  ///
  /// \param x      of forward()
  /// \param bar    of the shape of x; may be x_bar
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<const S>& bar, const MatrixView<S>& x_bar, const NormWeights<S>& weights_bar);

 private:
  template <class T>
  void check(const NormWeights<T>& weights) const {
    require_size(weights.scale, width_, "norm scale");
    require_size(weights.shift, width_, "norm shift");
  }

  Index width_ = 0, rows_ = 0;
  Buffer<S> output_, mean_, inverse_;  ///< per row: mean and 1/√(var + ε)
  Buffer<S> partial_;                  ///< per chunk of rows: derivatives of w and b
};

template <class S>
void LayerNorm<S>::forward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x) {
  check(weights);
  require_shape(x, std::min(x.rows(), mean_.size()), width_, "x");
  rows_ = x.rows();
  const S* scale = weights.scale.data();
  const S* shift = weights.shift.data();
  const S share = S(1) / static_cast<S>(width_);
  parallel_for(execution, rows_, 16, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      const S* in = x.row(u).data();
      S sum[1], squares[1];
      detail::row_sums<1>(width_, [&]<class T>(Index c, T (&term)[1]) { term[0] = detail::load<T>(in + c); }, sum);
      const S mean = sum[0] * share;
      detail::row_sums<1>(width_, [&]<class T>(Index c, T (&term)[1]) {
        const T centred = detail::load<T>(in + c) - T(mean);
        term[0] = centred * centred;
      }, squares);
      const S inverse = S(1) / std::sqrt(squares[0] * share + static_cast<S>(epsilon));
      mean_[u] = mean;
      inverse_[u] = inverse;
      S* out = output_.data() + u * width_;
      detail::for_tiles<S>(0, width_, [&]<class T>(Index c) {
        const T hat = (detail::load<T>(in + c) - T(mean)) * T(inverse);
        detail::store(out + c, detail::load<T>(scale + c) * hat + detail::load<T>(shift + c));
      });
    }
  });
}

template <class S>
void LayerNorm<S>::backward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x,
                            const MatrixView<const S>& bar, const MatrixView<S>& x_bar,
                            const NormWeights<S>& weights_bar) {
  check(weights);
  check(weights_bar);
  require_shape(x, rows_, width_, "x");
  require_shape(bar, rows_, width_, "output_bar");
  require_shape(x_bar, rows_, width_, "x_bar");
  const S* scale = weights.scale.data();
  const S share = S(1) / static_cast<S>(width_);
  const NodeChunks chunks = {rows_, std::clamp<Index>(rows_ / 64, 1, 64)};
  chunks.for_each(execution, [&](Index chunk, Index begin, Index end) {
    S* scale_sum = partial_.data() + chunk * 2 * width_;
    S* shift_sum = scale_sum + width_;
    std::fill_n(scale_sum, 2 * width_, S(0));
    for (Index u = begin; u < end; ++u) {
      const S* in = x.row(u).data();
      const S* from = bar.row(u).data();
      S* to = x_bar.row(u).data();
      const S mean = mean_[u], inverse = inverse_[u];
      S sum[2];
      detail::row_sums<2>(width_, [&]<class T>(Index c, T (&term)[2]) {
        const T hat = (detail::load<T>(in + c) - T(mean)) * T(inverse);
        const T one = detail::load<T>(from + c);
        term[0] = detail::load<T>(scale + c) * one;
        term[1] = term[0] * hat;
        detail::store(scale_sum + c, detail::load<T>(scale_sum + c) + one * hat);
        detail::store(shift_sum + c, detail::load<T>(shift_sum + c) + one);
      }, sum);
      detail::for_tiles<S>(0, width_, [&]<class T>(Index c) {
        const T hat = (detail::load<T>(in + c) - T(mean)) * T(inverse);
        const T g = detail::load<T>(scale + c) * detail::load<T>(from + c);
        detail::store(to + c, T(inverse) * (g - T(sum[0] * share) - hat * T(sum[1] * share)));
      });
    }
  });
  for (Index chunk = 0; chunk < chunks.count; ++chunk) {
    const S* scale_sum = partial_.data() + chunk * 2 * width_;
    for (Index c = 0; c < width_; ++c) weights_bar.scale[static_cast<std::size_t>(c)] += scale_sum[c];
    for (Index c = 0; c < width_; ++c) weights_bar.shift[static_cast<std::size_t>(c)] += scale_sum[width_ + c];
  }
}

}  // namespace sheafnn
