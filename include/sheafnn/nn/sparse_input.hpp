/// \file
/// Sparse input layer: y = x Wᵀ + b for sparse node features x, with dropout on the stored entries.
#pragma once

#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/features.hpp"

namespace sheafnn {

/// The features of one graph in the two orders the layer needs: by node (forward) and by column (weight gradient).
template <class S>
class SparseInput {
 public:
  explicit SparseInput(const NodeFeatures& features)
      : rows_(features.rows()),
        columns_(features.columns()),
        row_offset_(features.rows() + 1),
        column_(features.entries()),
        value_(features.entries()),
        column_offset_(features.columns() + 1),
        row_(features.entries()),
        entry_(features.entries()) {
    std::copy(features.offsets().begin(), features.offsets().end(), row_offset_.begin());
    std::copy(features.column_of().begin(), features.column_of().end(), column_.begin());
    std::transform(features.values().begin(), features.values().end(), value_.begin(),
                   [](double value) { return static_cast<S>(value); });
    for (const std::int32_t j : column_) ++column_offset_[j + 1];
    for (Index j = 0; j < columns_; ++j) column_offset_[j + 1] += column_offset_[j];
    Buffer<Index> next = column_offset_;
    for (Index u = 0; u < rows_; ++u) {
      for (Index k = row_offset_[u]; k < row_offset_[u + 1]; ++k) {
        const Index place = next[column_[k]]++;
        row_[place] = static_cast<std::int32_t>(u);
        entry_[place] = k;
      }
    }
  }

  [[nodiscard]] Index rows() const noexcept { return rows_; }
  [[nodiscard]] Index columns() const noexcept { return columns_; }
  [[nodiscard]] Index entries() const noexcept { return value_.size(); }
  [[nodiscard]] const S* values() const noexcept { return value_.data(); }

  /// out (n × width) = X W + 1 bᵀ.
  ///
  /// \param values  entries of X in stored order (values(), or a copy with dropout applied)
  /// \param weight  columns() × width, row-major: the transposed weight of the layer
  void forward(int threads, const S* values, const S* weight, const S* bias, Index width, S* out) const {
    parallel_for(threads, rows_, 64, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        for_tiles<S>(0, width, [&]<class T>(Index c) {
          T sum = load<T>(bias + c);
          for (Index k = row_offset_[u]; k < row_offset_[u + 1]; ++k) {
            sum += T(values[k]) * load<T>(weight + column_[k] * width + c);
          }
          store(out + u * width + c, sum);
        });
      }
    });
  }

  /// weight_bar (columns() × width) += Xᵀ out_bar. Each column is summed by one thread in a fixed order.
  void backward(int threads, const S* values, const S* out_bar, Index width, S* weight_bar) const {
    parallel_for(threads, columns_, 64, [&](Index begin, Index end) {
      for (Index j = begin; j < end; ++j) {
        if (column_offset_[j] == column_offset_[j + 1]) continue;
        for_tiles<S>(0, width, [&]<class T>(Index c) {
          T sum = T(S(0));
          for (Index k = column_offset_[j]; k < column_offset_[j + 1]; ++k) {
            sum += T(values[entry_[k]]) * load<T>(out_bar + row_[k] * width + c);
          }
          store(weight_bar + j * width + c, load<T>(weight_bar + j * width + c) + sum);
        });
      }
    });
  }

 private:
  Index rows_, columns_;
  Buffer<Index> row_offset_;
  Buffer<std::int32_t> column_;
  Buffer<S> value_;
  Buffer<Index> column_offset_;
  Buffer<std::int32_t> row_;
  Buffer<Index> entry_;
};

}  // namespace sheafnn
