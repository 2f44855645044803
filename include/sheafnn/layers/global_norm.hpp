/// \file
/// GlobalNorm: a whole matrix with mean 0 and standard deviation 1, then a scale and a shift per column and ReLU,
///
///     y = ReLU(w ∘ x̂ + b),   x̂ = (x − m) / (s + ε),   ε = 10⁻⁵,
///
/// with m and s of all its entries together, and its backward pass: for g = w ∘ ȳ where y > 0, N entries and c = x − m,
/// x̄ = (g − mean(g))/(s + ε) − ⟨g, c⟩ c / (N s (s + ε)²). Works on groups of rows; between the steps that need sums
/// of all of them the caller calls finish_…(). Source: math: "Learners of node maps".
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/kernels/norm.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/node_chunks.hpp"

namespace sheafnn::layers {

/// A normalisation of `rows` rows of `width` values, which may be part of longer rows: all views of rows are `stride`
/// apart. Unchecked: in what works on groups of rows, their indices and the sizes of arrays.
template <class S>
class GlobalNorm {
 public:
  static constexpr double epsilon = 1e-5;

  GlobalNorm() = default;
  /// \param chunks  most chunks of a backward pass
  /// \param part    null, or the part of the graph whose owned nodes are the rows; mean and deviation are taken over
  ///                all parts
  GlobalNorm(Index rows, Index width, Index stride, Index chunks, GraphPart* part = nullptr)
      : part_(part),
        rows_(rows),
        width_(width),
        stride_(stride),
        sum_((rows + detail::row_group - 1) / detail::row_group * 2),
        chunk_sum_(2 * chunks) {}

  /// Takes the weights of a pass. \throws std::invalid_argument  weights of another shape
  void bind(const NormWeights<const S>& weights) {
    weights.check(width_);
    weights_ = weights;
  }

  /// The share of a group of rows in mean and deviation. \param first  a multiple of row_group
  void add_rows(Index first, Index count, const S* x) {
    const double size = static_cast<double>(count * width_);
    // Of differences from the first value, which are of the order of the spread.
    const S first_number = x[0];
    const double mean = static_cast<double>(first_number) +
                        total(count, x, [&]<class T>(const T& value) { return value - T(first_number); }) / size;
    const S centre = static_cast<S>(mean);
    double* sums = sum_.data() + first / detail::row_group * 2;
    sums[0] = mean;
    sums[1] = total(count, x, [&]<class T>(const T& value) {
      const T centred = value - T(centre);
      return centred * centred;
    });
  }
  /// Mean and deviation, after add_rows() of all groups.
  void finish_statistics() {
    const double all = count();
    const auto weighted = [&](const auto& of_group) {
      double sum = 0;
      for (Index first = 0; first < rows_; first += detail::row_group) {
        const double* sums = sum_.data() + first / detail::row_group * 2;
        sum +=
            of_group(static_cast<double>(std::min(detail::row_group, rows_ - first) * width_), sums[0], sums[1]);
      }
      return over_parts(sum) / all;
    };
    const double start = sum_.empty() || part_ != nullptr ? 0 : sum_[0];
    mean_ = start + weighted([&](double size, double mean, double) { return size * (mean - start); });
    deviation_ = std::sqrt(weighted([&](double size, double mean, double squares) {
      return squares + size * (mean - mean_) * (mean - mean_);
    }));
  }

  /// Computes some rows of y; they may overwrite the rows of x.
  void forward_rows(Index count, const S* x, S* y) const {
    for (Index u = 0; u < count; ++u, x += stride_, y += stride_) {
      detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
        const T value = moments<T>().forward(c.load(weights_.scale.data() + c), c.load(weights_.shift.data() + c),
                                             c.load(x + c));
        c.store(y + c, select(value > T(S(0)), value, T(S(0))));
      });
    }
  }

  /// Number of sums that gate_rows() adds to.
  [[nodiscard]] Index partial_size() const noexcept { return 2 * width_; }
  /// Must be called before the first gate_rows() of a chunk.
  void begin_chunk(Index chunk) { chunk_sum_[2 * chunk] = chunk_sum_[2 * chunk + 1] = 0; }
  /// ȳ becomes g at some rows. partial += their share in the derivatives of w and b.
  ///
  /// \param x, y  of the forward pass
  void gate_rows(Index chunk, Index count, const S* x, const S* y, S* bar, S* partial) {
    const S* scale = weights_.scale.data();
    detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
      T one_sum = T(S(0)), product_sum = T(S(0));  // of the columns, over the rows
      for (Index at = c, u = 0; u < count; ++u, at += stride_) {
        const T hat = moments<T>().hat(c.load(x + at));
        const T one = select(c.load(y + at) > T(S(0)), c.load(bar + at), T(S(0)));
        one_sum += one;
        product_sum += one * hat;
        c.store(bar + at, c.load(scale + c) * one);
      }
      c.store(partial + c, c.load(partial + c) + product_sum);
      c.store(partial + width_ + c, c.load(partial + width_ + c) + one_sum);
      // g = w ∘ one.
      chunk_sum_[2 * chunk] += static_cast<double>(reduce_add(c.load(scale + c) * one_sum));
      chunk_sum_[2 * chunk + 1] += static_cast<double>(reduce_add(c.load(scale + c) * product_sum));
    });
  }
  /// Adds sums of gate_rows() to derivatives. \throws std::invalid_argument  weights of another shape
  void add_partial(const S* partial, const NormWeights<S>& weights_bar) const {
    weights_bar.add(partial, width_);
  }
  /// mean(g) and mean(g x̂), after gate_rows() of all rows. \param chunks  of the backward pass
  void finish_gates(Index chunks) {
    double sum = 0, product = 0;
    for (Index chunk = 0; chunk < chunks; ++chunk) {
      sum += chunk_sum_[2 * chunk];
      product += chunk_sum_[2 * chunk + 1];
    }
    sum = over_parts(sum);
    product = over_parts(product);
    centre_ = sum / count();
    product_mean_ = product / count() * kernels::stretch_of(deviation_, epsilon);
  }
  /// g becomes x̄ at some rows.
  void backward_rows(Index count, const S* x, S* bar) const {
    const S centre = static_cast<S>(centre_), product_mean = static_cast<S>(product_mean_);
    for (Index u = 0; u < count; ++u, x += stride_, bar += stride_) {
      detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
        c.store(bar + c, moments<T>().backward(c.load(bar + c), c.load(x + c), T(centre), T(product_mean)));
      });
    }
  }

 private:
  template <class T>
  [[nodiscard]] SHEAFNN_INLINE kernels::Moments<T> moments() const {
    return {T(static_cast<S>(mean_)), T(static_cast<S>(1 / (deviation_ + epsilon)))};
  }
  /// Number of values in all rows, and their sum over the parts.
  [[nodiscard]] double count() const {
    return static_cast<double>(
        std::max<Index>(1, (part_ == nullptr ? rows_ : part_->numbers().total_nodes) * width_));
  }
  [[nodiscard]] double over_parts(double value) const {
    if (part_ != nullptr) part_->sum(std::span<double>(&value, 1), {});
    return value;
  }
  /// Σ of(x) over some rows.
  template <class Of>
  [[nodiscard]] double total(Index count, const S* x, const Of& of) const {
    double r = 0;
    detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
      T even = T(S(0)), odd = T(S(0));
      Index u = 0;
      for (; u + 1 < count; u += 2) {
        even += of(c.load(x + u * stride_ + c));
        odd += of(c.load(x + (u + 1) * stride_ + c));
      }
      if (u < count) even += of(c.load(x + u * stride_ + c));
      r += static_cast<double>(reduce_add(c.only(even + odd)));
    });
    return r;
  }

  GraphPart* part_ = nullptr;
  Index rows_ = 0, width_ = 0, stride_ = 0;
  NormWeights<const S> weights_;
  Buffer<double> sum_;        ///< per group of rows: mean, and squares around it
  Buffer<double> chunk_sum_;  ///< per chunk of rows: Σ g and ⟨g, x̂⟩
  double mean_ = 0, deviation_ = 0, centre_ = 0, product_mean_ = 0;
};

}  // namespace sheafnn::layers
