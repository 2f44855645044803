/// \file
/// GlobalNorm: a whole matrix with mean 0 and standard deviation 1, then a scale and a shift per column and ReLU,
///
///     y = ReLU(w ∘ x̂ + b),   x̂ = (x − m) / (s + ε),   ε = 10⁻⁵,
///
/// with m and s of all its entries together, and its backward pass: for g = w ∘ ȳ, N entries and c = x − m,
/// x̄ = (g − mean(g))/(s + ε) − ⟨g, c⟩ c / (N s (s + ε)²). Source: math: "Learners of node maps".
#pragma once

#include <algorithm>
#include <cmath>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/node_chunks.hpp"

namespace sheafnn {

/// Buffers of a normalisation of `rows` rows of `width` numbers.
template <class S>
class GlobalNorm {
 public:
  static constexpr double epsilon = 1e-5;

  GlobalNorm() = default;
  GlobalNorm(Index rows, Index width)
      : rows_(rows),
        width_(width),
        chunks_{rows, std::clamp<Index>(rows / 64, 1, 64)},
        output_(rows * width),
        partial_(chunks_.count * 2 * width),
        sum_(chunks_.count * 2) {}

  /// y of the last forward().
  [[nodiscard]] MatrixView<const S> output() const noexcept { return {output_.data(), rows_, width_}; }

  /// Computes output() from x (rows × width), which must not change until backward().
  ///
  /// \throws std::invalid_argument  x or weights of another shape
  void forward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x) {
    check(weights);
    require_array(x, rows_, width_, "x");
    const double count = static_cast<double>(std::max<Index>(1, rows_ * width_));
    mean_ = total(execution, [&](const S* row) {
      S sum[1];
      detail::row_sums<1>(width_, [&]<class T>(Index c, T (&term)[1]) { term[0] = detail::load<T>(row + c); }, sum);
      return sum[0];
    }, x.data()) / count;
    const S mean = static_cast<S>(mean_);
    deviation_ = std::sqrt(total(execution, [&](const S* row) {
      S sum[1];
      detail::row_sums<1>(width_, [&]<class T>(Index c, T (&term)[1]) {
        const T centred = detail::load<T>(row + c) - T(mean);
        term[0] = centred * centred;
      }, sum);
      return sum[0];
    }, x.data()) / count);
    const S inverse = static_cast<S>(1 / (deviation_ + epsilon));
    const S* scale = weights.scale.data();
    const S* shift = weights.shift.data();
    parallel_for(execution, rows_, 16, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        const S* in = x.data() + u * width_;
        S* out = output_.data() + u * width_;
        detail::for_tiles<S>(0, width_, [&]<class T>(Index c) {
          const T hat = (detail::load<T>(in + c) - T(mean)) * T(inverse);
          const T y = detail::load<T>(scale + c) * hat + detail::load<T>(shift + c);
          detail::store(out + c, select(y > T(S(0)), y, T(S(0))));
        });
      }
    });
  }

  /// From the derivative of output() (overwritten by that of x) to those of the weights (added to).
  ///
  /// \param x  of forward()
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<S>& bar, const NormWeights<S>& weights_bar) {
    check(weights);
    check(weights_bar);
    require_array(x, rows_, width_, "x");
    require_array(bar, rows_, width_, "output_bar");
    const S mean = static_cast<S>(mean_), inverse = static_cast<S>(1 / (deviation_ + epsilon));
    const S* scale = weights.scale.data();
    chunks_.for_each(execution, [&](Index chunk, Index begin, Index end) {
      S* scale_sum = partial_.data() + chunk * 2 * width_;
      S* shift_sum = scale_sum + width_;
      std::fill_n(scale_sum, 2 * width_, S(0));
      double g_sum = 0, gx_sum = 0;
      for (Index u = begin; u < end; ++u) {
        const S* in = x.data() + u * width_;
        const S* out = output_.data() + u * width_;
        S* g = bar.data() + u * width_;
        S sum[2];
        detail::row_sums<2>(width_, [&]<class T>(Index c, T (&term)[2]) {
          const T hat = (detail::load<T>(in + c) - T(mean)) * T(inverse);
          const T one = select(detail::load<T>(out + c) > T(S(0)), detail::load<T>(g + c), T(S(0)));
          detail::store(scale_sum + c, detail::load<T>(scale_sum + c) + one * hat);
          detail::store(shift_sum + c, detail::load<T>(shift_sum + c) + one);
          term[0] = detail::load<T>(scale + c) * one;
          term[1] = term[0] * hat;
          detail::store(g + c, term[0]);
        }, sum);
        g_sum += static_cast<double>(sum[0]);
        gx_sum += static_cast<double>(sum[1]);
      }
      sum_[2 * chunk] = g_sum;
      sum_[2 * chunk + 1] = gx_sum;
    });
    double g_sum = 0, gx_sum = 0;
    for (Index chunk = 0; chunk < chunks_.count; ++chunk) {
      g_sum += sum_[2 * chunk];
      gx_sum += sum_[2 * chunk + 1];
      const S* scale_sum = partial_.data() + chunk * 2 * width_;
      for (Index c = 0; c < width_; ++c) weights_bar.scale[static_cast<std::size_t>(c)] += scale_sum[c];
      for (Index c = 0; c < width_; ++c) weights_bar.shift[static_cast<std::size_t>(c)] += scale_sum[width_ + c];
    }
    const double count = static_cast<double>(std::max<Index>(1, rows_ * width_));
    const S centre = static_cast<S>(g_sum / count);
    // ⟨g, x̂⟩ c / (N s (s + ε)) is what c's part of x̄ is times 1/(s + ε); a constant matrix has none.
    const S slope = deviation_ > 0 ? static_cast<S>(gx_sum / (count * deviation_)) : S(0);
    parallel_for(execution, rows_ * width_, 2048, [&](Index begin, Index end) {
      detail::for_tiles<S>(begin, end, [&]<class T>(Index i) {
        const T centred = detail::load<T>(x.data() + i) - T(mean);
        detail::store(bar.data() + i,
                      T(inverse) * (detail::load<T>(bar.data() + i) - T(centre) - T(slope) * centred));
      });
    });
  }

 private:
  template <class T>
  void check(const NormWeights<T>& weights) const {
    require_size(weights.scale, width_, "norm scale");
    require_size(weights.shift, width_, "norm shift");
  }
  template <class OfRow>
  [[nodiscard]] double total(Execution execution, const OfRow& of_row, const S* x) {
    chunks_.for_each(execution, [&](Index chunk, Index begin, Index end) {
      double sum = 0;
      for (Index u = begin; u < end; ++u) sum += static_cast<double>(of_row(x + u * width_));
      sum_[chunk] = sum;
    });
    double r = 0;
    for (Index chunk = 0; chunk < chunks_.count; ++chunk) r += sum_[chunk];
    return r;
  }

  Index rows_ = 0, width_ = 0;
  NodeChunks chunks_;
  Buffer<S> output_;
  Buffer<S> partial_;   ///< per chunk of rows: derivatives of w and b
  Buffer<double> sum_;  ///< per chunk of rows
  double mean_ = 0, deviation_ = 0;
};

}  // namespace sheafnn
