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
    parallel_for(threads, rows_, 16, [&](Index begin, Index end) {
      const std::int32_t* column = column_.data();
      for_tile_groups(width, [&]<class T, int Tiles>(Index c) {
        for (Index u = begin; u < end; ++u) {
          T sum[Tiles];
          for (int t = 0; t < Tiles; ++t) sum[t] = load<T>(bias + c + t * tile<T>);
          for (Index k = row_offset_[u], last = row_offset_[u + 1]; k < last; ++k) {
            add_scaled<T, Tiles>(values[k], weight + column[k] * width + c, sum);
          }
          for (int t = 0; t < Tiles; ++t) store(out + u * width + c + t * tile<T>, sum[t]);
        }
      });
    });
  }

  /// weight_bar (columns() × width) += Xᵀ out_bar. Each column is summed by one thread in a fixed order.
  void backward(int threads, const S* values, const S* out_bar, Index width, S* weight_bar) const {
    parallel_for(threads, columns_, 64, [&](Index begin, Index end) {
      const std::int32_t* row = row_.data();
      const Index* entry = entry_.data();
      for_tile_groups(width, [&]<class T, int Tiles>(Index c) {
        for (Index j = begin; j < end; ++j) {
          const Index first = column_offset_[j], last = column_offset_[j + 1];
          if (first == last) continue;
          T sum[Tiles];
          for (int t = 0; t < Tiles; ++t) sum[t] = T(S(0));
          for (Index k = first; k < last; ++k) {
            add_scaled<T, Tiles>(values[entry[k]], out_bar + row[k] * width + c, sum);
          }
          for (int t = 0; t < Tiles; ++t) {
            S* place = weight_bar + j * width + c + t * tile<T>;
            store(place, load<T>(place) + sum[t]);
          }
        }
      });
    });
  }

 private:
  /// Lanes of a tile of columns.
  template <class T>
  static constexpr int tile = static_cast<int>(sizeof(T) / sizeof(S));

  /// Calls body.template operator()<T, Tiles>(c) for groups of Tiles tiles from column c on: several sums at a time hide
  /// each other's latency.
  template <class Body>
  static SHEAFNN_INLINE void for_tile_groups(Index width, const Body& body) {
    using P = Pack<S, lanes<S>>;
    Index c = 0;
    for (; c + 3 * P::width <= width; c += 3 * P::width) body.template operator()<P, 3>(c);
    for (; c + 2 * P::width <= width; c += 2 * P::width) body.template operator()<P, 2>(c);
    for_tiles<S>(c, width, [&]<class T>(Index from) { body.template operator()<T, 1>(from); });
  }
  /// sum += value · row.
  template <class T, int Tiles>
  static SHEAFNN_INLINE void add_scaled(S value, const S* row, T* sum) {
    SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) sum[t] += T(value) * load<T>(row + t * tile<T>);
  }

  Index rows_, columns_;
  Buffer<Index> row_offset_;
  Buffer<std::int32_t> column_;
  Buffer<S> value_;
  Buffer<Index> column_offset_;
  Buffer<std::int32_t> row_;
  Buffer<Index> entry_;
};

}  // namespace sheafnn
