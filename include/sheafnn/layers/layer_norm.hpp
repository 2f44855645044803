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

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/kernels/norm.hpp"
#include "sheafnn/layers/node_chunks.hpp"
#include "sheafnn/layers/weights.hpp"

namespace sheafnn::detail {

/// Calls body.template operator()<Packs>() with the number of packs in a row. It is a constant if packs fill the row and the
/// number is a common one, otherwise 0.
template <class S, class Body>
SHEAFNN_INLINE void with_packs(Index width, const Body& body) {
  constexpr Index W = row_lanes<S>;
  if (width == 2 * W) {
    body.template operator()<2>();
  } else if (width == 3 * W) {
    body.template operator()<3>();
  } else if (width == 4 * W) {
    body.template operator()<4>();
  } else {
    body.template operator()<0>();
  }
}
/// for_tiles() over a row, without a loop where the number of packs is a constant.
template <class S, int Packs, class Body>
SHEAFNN_INLINE void for_row_tiles(Index width, const Body& body) {
  if constexpr (Packs > 0) {
    using P = Pack<S, row_lanes<S>>;
    SHEAFNN_UNROLL for (int i = 0; i < Packs; ++i) body.template operator()<P>(TileAt<P>(i * P::width));
  } else {
    for_tiles<S>(0, width, body);
  }
}

/// sum[k] = Σ_c terms(c)[k] over the columns of a row: terms(c, T (&out)[Count]) for tiles c of packs T.
template <int Packs, int Count, class S, class Terms>
SHEAFNN_INLINE void row_sums(Index width, const Terms& terms, S (&sum)[Count]) {
  using P = Pack<S, row_lanes<S>>;
  P total[Count];
  for (int k = 0; k < Count; ++k) total[k] = P(S(0));
  for (int k = 0; k < Count; ++k) sum[k] = S(0);
  for_row_tiles<S, Packs>(width, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
    T term[Count];
    terms(c, term);
    for (int k = 0; k < Count; ++k) {
      if constexpr (std::is_same_v<T, P>) {
        total[k] += c.only(term[k]);
      } else {
        sum[k] += reduce_add(c.only(term[k]));
      }
    }
  });
  for (int k = 0; k < Count; ++k) sum[k] += reduce_add(total[k]);
}

/// Mean of a row and 1/√(var + ε). The mean is computed from the differences to the first value, which are as small as
/// the spread. A row of equal numbers therefore has x̂ = 0, however large they are.
template <class S>
using RowMoments = kernels::Moments<S>;
template <int Packs, class S>
[[nodiscard]] SHEAFNN_INLINE RowMoments<S> row_moments(Index width, const S* x, double epsilon) {
  const S share = S(1) / static_cast<S>(width);
  S sum[1], squares[1];
  row_sums<Packs, 1>(
      width, [&]<class T>(auto c, T(&term)[1]) SHEAFNN_INLINE_LAMBDA { term[0] = c.load(x + c) - T(x[0]); }, sum);
  const S mean = x[0] + sum[0] * share;
  row_sums<Packs, 1>(
      width,
      [&]<class T>(auto c, T(&term)[1]) SHEAFNN_INLINE_LAMBDA {
        const T centred = c.load(x + c) - T(mean);
        term[0] = centred * centred;
      },
      squares);
  return {mean, S(1) / std::sqrt(squares[0] * share + static_cast<S>(epsilon))};
}

/// row_moments() of four rows of Packs packs, which follow each other. A row's chain of additions, root and division takes longer than
/// its share of the arithmetic: four of them run side by side. The results are the same.
template <int Packs, class S>
SHEAFNN_INLINE void four_row_moments(const S* x, double epsilon, RowMoments<S>* out) {
  using P = Pack<S, row_lanes<S>>;
  constexpr Index width = Packs * row_lanes<S>;
  const S share = S(1) / static_cast<S>(width);
  P total[4];
  S sum[4], mean[4];
  SHEAFNN_UNROLL for (int k = 0; k < 4; ++k) {
    total[k] = P(S(0));
    for_row_tiles<S, Packs>(width, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
      total[k] += c.load(x + k * width + c) - T(x[k * width]);
    });
  }
  four_sums(total, sum);
  for (int k = 0; k < 4; ++k) mean[k] = x[k * width] + sum[k] * share;
  SHEAFNN_UNROLL for (int k = 0; k < 4; ++k) {
    total[k] = P(S(0));
    for_row_tiles<S, Packs>(width, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
      const T centred = c.load(x + k * width + c) - T(mean[k]);
      total[k] += centred * centred;
    });
  }
  four_sums(total, sum);
  for (int k = 0; k < 4; ++k) sum[k] = sum[k] * share + static_cast<S>(epsilon);
  const Pack<S, 4> inverse = Pack<S, 4>(S(1)) / math::sqrt(Pack<S, 4>::load(sum));
  inverse.store(sum);
  for (int k = 0; k < 4; ++k) out[k] = {mean[k], sum[k]};
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Buffers of a normalisation of at most `rows` rows of `width` values.
template <class S>
class LayerNorm {
 public:
  static constexpr double epsilon = 1e-5;

  LayerNorm() = default;
  /// \throws std::invalid_argument  negative rows, or a width below 1
  LayerNorm(Index rows, Index width)
      : width_(checked_extent("width", width)), max_rows_(checked_extent("rows", rows, 0)) {}

  /// y of the last forward(), rows × h.
  [[nodiscard]] MatrixView<const S> output() const noexcept { return {output_.data(), rows_, width_}; }

  /// Allocates what forward() writes, which the first forward() does otherwise.
  void reserve() {
    moments_.resize(max_rows_, to_be_written);
    output_.resize(max_rows_ * width_, to_be_written);
  }
  /// The memory of output().
  [[nodiscard]] Buffer<S>& output_memory() noexcept { return output_; }
  /// Computes output() from x (at most `rows` rows), which must not change until backward().
  ///
  /// \throws std::invalid_argument  x or weights of another shape
  void forward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x) {
    begin(weights, x);
    parallel_for(execution, rows_, 16, [&](Index begin, Index end) {
      forward_rows(weights, end - begin, x.data() + begin * width_, output_.data() + begin * width_,
                   moments_.data() + begin);
    });
  }

  /// Computes the derivatives of x (overwritten) and of the weights (added to) from the derivative of output().
  ///
  /// \param x      of forward()
  /// \param bar    of the shape of x; may be x_bar
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<const S>& bar, const MatrixView<S>& x_bar, const NormWeights<S>& weights_bar);

  // The same for some rows, one after the other, by the calling thread.

  /// y, which may be x. Unchecked: the sizes of arrays and weights. \param moments  of these rows, written where it is
  /// not null
  void forward_rows(const NormWeights<const S>& weights, Index count, const S* x, S* y,
                    detail::RowMoments<S>* moments = nullptr) const;
  /// x̄, which may be ȳ. partial += the share of these rows in the derivatives of w and b, partial_size() values.
  /// Unchecked: the sizes of arrays and weights.
  /// \param moments  of forward_rows()
  void backward_rows(const NormWeights<const S>& weights, Index count, const S* x,
                     const detail::RowMoments<S>* moments, const S* bar, S* x_bar, S* partial) const;
  [[nodiscard]] Index partial_size() const noexcept { return 2 * width_; }
  /// Adds sums of backward_rows() to derivatives. \throws std::invalid_argument  weights of another shape
  void add_partial(const S* partial, const NormWeights<S>& weights_bar) const {
    weights_bar.add(partial, width_);
  }

 private:
  /// backward_rows() of four rows of Packs packs, side by side as in four_row_moments().
  template <int Packs>
  static void four_rows_back(const S* scale, const S* x, const detail::RowMoments<S>* moments, const S* bar,
                             S* x_bar, S* partial);
  void begin(const NormWeights<const S>& weights, const MatrixView<const S>& x) {
    weights.check(width_);
    require_array(x, std::min(x.rows(), max_rows_), width_, "x");
    rows_ = x.rows();
    if (output_.empty()) reserve();
  }

  Index width_ = 0, rows_ = 0, max_rows_ = 0;
  // Allocated by reserve(), or by the first forward() and backward():
  Buffer<S> output_;
  Buffer<detail::RowMoments<S>> moments_;
  Buffer<S> partial_;  ///< per chunk of rows: derivatives of w and b
};

template <class S>
void LayerNorm<S>::forward_rows(const NormWeights<const S>& weights, Index count, const S* x, S* y,
                                detail::RowMoments<S>* moments) const {
  const S* scale = weights.scale.data();
  const S* shift = weights.shift.data();
  detail::with_packs<S>(width_, [&]<int Packs>() {
    const Index width = Packs > 0 ? Packs * row_lanes<S> : width_;
    const auto write_row = [&](const detail::RowMoments<S>& of_row) SHEAFNN_INLINE_LAMBDA {
      detail::for_row_tiles<S, Packs>(width, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
        const kernels::Moments<T> norm{T(of_row.mean), T(of_row.inverse)};
        c.store(y + c, norm.forward(c.load(scale + c), c.load(shift + c), c.load(x + c)));
      });
      x += width;
      y += width;
    };
    Index u = 0;
    if constexpr (Packs > 0) {
      for (; count - u >= 4; u += 4) {
        detail::RowMoments<S> near[4];
        detail::four_row_moments<Packs>(x, epsilon, near);
        if (moments != nullptr) std::copy_n(near, 4, moments + u);
        for (const detail::RowMoments<S>& of_row : near) write_row(of_row);
      }
    }
    for (; u < count; ++u) {
      const detail::RowMoments<S> of_row = detail::row_moments<Packs>(width, x, epsilon);
      if (moments != nullptr) moments[u] = of_row;
      write_row(of_row);
    }
  });
}

template <class S>
template <int Packs>
void LayerNorm<S>::four_rows_back(const S* scale, const S* x, const detail::RowMoments<S>* moments, const S* bar,
                                  S* x_bar, S* partial) {
  using P = Pack<S, row_lanes<S>>;
  constexpr Index width = Packs * row_lanes<S>;
  const S share = S(1) / static_cast<S>(width);
  S* shift_sum = partial + width;
  P total[2][4];
  for (auto& of : total) {
    for (P& one : of) one = P(S(0));
  }
  detail::for_row_tiles<S, Packs>(width, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
    T scale_bar = c.load(partial + c), shift_bar = c.load(shift_sum + c);
    SHEAFNN_UNROLL for (int k = 0; k < 4; ++k) {
      const T hat = kernels::Moments<T>{T(moments[k].mean), T(moments[k].inverse)}.hat(c.load(x + k * width + c));
      const T one = c.load(bar + k * width + c);
      const T g = c.load(scale + c) * one;
      total[0][k] += g;
      total[1][k] += g * hat;
      scale_bar = scale_bar + one * hat;
      shift_bar = shift_bar + one;
    }
    c.store(partial + c, scale_bar);
    c.store(shift_sum + c, shift_bar);
  });
  S sum[2][4];
  for (int i = 0; i < 2; ++i) detail::four_sums(total[i], sum[i]);
  SHEAFNN_UNROLL for (int k = 0; k < 4; ++k) {
    detail::for_row_tiles<S, Packs>(width, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
      const kernels::Moments<T> norm{T(moments[k].mean), T(moments[k].inverse)};
      const Index at = k * width + c;
      const T g = c.load(scale + c) * c.load(bar + at);
      c.store(x_bar + at, norm.backward(g, c.load(x + at), T(sum[0][k] * share), T(sum[1][k] * share)));
    });
  }
}

template <class S>
void LayerNorm<S>::backward_rows(const NormWeights<const S>& weights, Index count, const S* x,
                                 const detail::RowMoments<S>* moments, const S* bar, S* x_bar, S* partial) const {
  const S* scale = weights.scale.data();
  detail::with_packs<S>(width_, [&]<int Packs>() {
    const Index width = Packs > 0 ? Packs * row_lanes<S> : width_;
    const S share = S(1) / static_cast<S>(width);
    S* shift_sum = partial + width;
    Index u = 0;
    if constexpr (Packs > 0) {
      for (; count - u >= 4; u += 4, x += 4 * width, bar += 4 * width, x_bar += 4 * width) {
        four_rows_back<Packs>(scale, x, moments + u, bar, x_bar, partial);
      }
    }
    for (; u < count; ++u, x += width, bar += width, x_bar += width) {
      const S mean = moments[u].mean, inverse = moments[u].inverse;
      S sum[2];
      detail::row_sums<Packs, 2>(
          width,
          [&]<class T>(auto c, T(&term)[2]) SHEAFNN_INLINE_LAMBDA {
            const T hat = kernels::Moments<T>{T(mean), T(inverse)}.hat(c.load(x + c));
            const T one = c.load(bar + c);
            term[0] = c.load(scale + c) * one;
            term[1] = term[0] * hat;
            c.store(partial + c, c.load(partial + c) + one * hat);
            c.store(shift_sum + c, c.load(shift_sum + c) + one);
          },
          sum);
      detail::for_row_tiles<S, Packs>(width, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
        const kernels::Moments<T> norm{T(mean), T(inverse)};
        const T g = c.load(scale + c) * c.load(bar + c);
        c.store(x_bar + c, norm.backward(g, c.load(x + c), T(sum[0] * share), T(sum[1] * share)));
      });
    }
  });
}

template <class S>
void LayerNorm<S>::backward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x,
                            const MatrixView<const S>& bar, const MatrixView<S>& x_bar,
                            const NormWeights<S>& weights_bar) {
  weights.check(width_);
  require_array(x, rows_, width_, "x");
  require_array(bar, rows_, width_, "output_bar");
  require_array(x_bar, rows_, width_, "x_bar");
  const NodeChunks chunks = {rows_, std::clamp<Index>(rows_ / 64, 1, 64)};
  if (partial_.empty()) partial_.resize(64 * partial_size());
  chunks.for_each(execution, [&](Index chunk, Index begin, Index end) {
    S* partial = partial_.data() + chunk * partial_size();
    std::fill_n(partial, partial_size(), S(0));
    backward_rows(weights, end - begin, x.data() + begin * width_, moments_.data() + begin,
                  bar.data() + begin * width_, x_bar.data() + begin * width_, partial);
  });
  for (Index chunk = 0; chunk < chunks.count; ++chunk)
    add_partial(partial_.data() + chunk * partial_size(), weights_bar);
}

}  // namespace sheafnn::layers
