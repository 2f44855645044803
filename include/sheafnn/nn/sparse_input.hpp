/// \file
/// Sparse input layer: y = x Wᵀ + b for sparse node features x, with dropout on the stored entries. Features without zeros
/// are multiplied as dense matrices, with the same bits.
///
/// Unchecked: widths of at least 1, the sizes of arrays, and that masks belong to the same entries. Encoder checks its
/// arguments.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/multiply_add.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"

namespace sheafnn::layers {

/// Dropout of the stored entries of sparse features: which are kept, and what was kept of them.
template <class S>
struct EntryDropout {
  EntryDropout() = default;
  explicit EntryDropout(Index count) : entries(count), mask(count) {}

  /// Decides which entries are kept; SparseInput::forward() writes their values.
  void draw(Execution execution, const Dropout& dropout) {
    mask.draw(execution, dropout);
    if (values.size() != entries) values.resize(entries, to_be_written);
    factor = static_cast<S>(dropout.scale());
  }

  Index entries = 0;
  DropoutMask mask;
  Buffer<S> values;  ///< 0 where an entry was dropped; taken by the first draw()
  S factor = S(1);   ///< of the entries that are kept
};

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// What is to be done with rows that are computed: nothing.
struct LeaveRows {
  void operator()(Index, Index) const noexcept {}
};

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// The features of one graph in the two orders the layer needs: by node (forward) and by column (weight gradient).
template <class S>
class SparseInput {
 public:
  /// \throws std::invalid_argument  a feature that is infinite as a number of type S
  explicit SparseInput(const NodeFeatures& features);

  [[nodiscard]] Index rows() const noexcept { return rows_; }
  [[nodiscard]] Index columns() const noexcept { return columns_; }
  [[nodiscard]] Index entries() const noexcept { return value_.size(); }
  /// Stored entries of row u.
  [[nodiscard]] Index row_size(Index u) const noexcept { return row_offset_[u + 1] - row_offset_[u]; }
  [[nodiscard]] const S* values() const noexcept { return value_.data(); }

  /// Size of the working memory that forward() needs for `outputs` products of some width.
  [[nodiscard]] Index work_size(Index width, int outputs) const noexcept {
    return parts_ > 1 ? outputs * parts_ * rows_ * width : 0;
  }

  /// out (n × width) = X W + 1 bᵀ.
  ///
  /// \param weight  columns() × width, row-major: the transposed weight of the layer
  /// \param work    work_size(width, 1) values
  /// \param finish  called as finish(first row, past the last one) for disjoint ranges of rows that are ready,
  ///                from any thread
  template <class Finish = detail::LeaveRows>
  void forward(Execution execution, const S* weight, const S* bias, Index width, S* out, S* work,
               const Finish& finish = {}) const {
    products<1>(execution, {value_.data()}, nullptr, weight, bias, width, {out}, work, finish);
  }
  /// The same for dropout(X), whose mask is given.
  ///
  /// \param dropped  its values are written
  template <class Finish = detail::LeaveRows>
  void forward(Execution execution, EntryDropout<S>& dropped, const S* weight, const S* bias, Index width, S* out,
               S* work, const Finish& finish = {}) const {
    products<1>(execution, {dropped.values.data()}, &dropped, weight, bias, width, {out}, work, finish);
  }
  /// Both in one walk over X: dropped_out for dropout(X), and out.
  ///
  /// \param work  work_size(width, 2) values
  template <class Finish = detail::LeaveRows>
  void forward_both(Execution execution, EntryDropout<S>& dropped, const S* weight, const S* bias, Index width,
                    S* dropped_out, S* out, S* work, const Finish& finish = {}) const {
    products<2>(execution, {dropped.values.data(), value_.data()}, &dropped, weight, bias, width,
                {dropped_out, out}, work, finish);
  }

  /// weight_bar (columns() × width) = Xᵀ out_bar. Each column is summed by one thread in a fixed order.
  ///
  /// \param values  entries of X in stored order: values(), or the values of an EntryDropout
  void backward(Execution execution, const S* values, const S* out_bar, Index width, S* weight_bar) const;

 private:
  static constexpr Index column_grain = 64;

  /// One array for each product.
  template <int Outputs>
  using Values = std::array<const S*, Outputs>;
  template <int Outputs>
  using Rows = std::array<S*, Outputs>;

  /// The rows of values in stored order, where dense_.
  [[nodiscard]] MatrixView<const S> dense(const S* values) const noexcept { return {values, rows_, columns_}; }
  /// The first column of a part; the same as of a range of backward() with as many threads.
  [[nodiscard]] Index part_begin(Index part) const noexcept {
    const Index steps = (columns_ + column_grain - 1) / column_grain;
    return std::min(columns_, steps * part / parts_ * column_grain);
  }

  /// forward() for one or two arrays of values, one of which may be what `dropped` keeps.
  template <int Outputs, class Finish>
  void products(Execution execution, const Values<Outputs>& value, EntryDropout<S>* dropped, const S* weight,
                const S* bias, Index width, const Rows<Outputs>& out, S* work, const Finish& finish) const {
    if (parts_ == 1) {
      parallel_for(execution, rows_, 16, [&](Index begin, Index end) {
        if (dropped != nullptr) drop(row_offset_[begin], row_offset_[end], *dropped);
        if (dense_) {
          for (std::size_t o = 0; o < Outputs; ++o) {
            detail::multiply_block_from<S>(dense(value[o]).middle_rows(begin, end - begin),
                                           {weight, columns_, width}, {bias, end - begin, width, 0, 1},
                                           {out[o] + begin * width, end - begin, width});
          }
        } else {
          for (Index u = begin; u < end; ++u) {
            add_row<Outputs>(row_offset_[u], row_offset_[u + 1], value, weight, bias, width,
                             row_of(out, u * width));
          }
        }
        finish(begin, end);
      });
      return;
    }
    const Index size = rows_ * width;
    const auto share = [&](Index part) {
      Rows<Outputs> r;
      for (int o = 0; o < Outputs; ++o) r[static_cast<std::size_t>(o)] = work + (part * Outputs + o) * size;
      return r;
    };
    parallel_for(execution, parts_, 1, [&](Index begin, Index end) {
      for (Index part = begin; part < end; ++part) {
        for (Index u = 0; u < rows_; ++u) {
          const Index first = part_offset_[u * parts_ + part];
          const Index last = part + 1 < parts_ ? part_offset_[u * parts_ + part + 1] : row_offset_[u + 1];
          if (dropped != nullptr) drop(first, last, *dropped);
          add_row<Outputs>(first, last, value, weight, part == 0 ? bias : nullptr, width,
                           row_of(share(part), u * width));
        }
      }
    });
    parallel_for(execution, rows_, 16, [&](Index begin, Index end) {
      for (int o = 0; o < Outputs; ++o) {
        detail::for_tiles<S>(begin * width, end * width, [&]<class T>(auto i) {
          T sum = i.load(work + o * size + i);
          for (Index part = 1; part < parts_; ++part) sum += i.load(work + (part * Outputs + o) * size + i);
          i.store(out[static_cast<std::size_t>(o)] + i, sum);
        });
      }
      finish(begin, end);
    });
  }
  template <std::size_t Outputs>
  [[nodiscard]] static std::array<S*, Outputs> row_of(std::array<S*, Outputs> out, Index offset) {
    for (S*& one : out) one += offset;
    return out;
  }
  /// Writes dropped.values for entries [begin, end).
  void drop(Index begin, Index end, EntryDropout<S>& dropped) const {
    detail::for_tiles<S>(begin, end, [&]<class T>(auto k) {
      k.store(dropped.values.data() + k,
              sheafnn::detail::dropped(k.load(value_.data() + k), dropped.mask.bits(), k, dropped.factor));
    });
  }
  /// Fills column_offset_, row_ and entry_.
  void sort_by_columns() {
    for (const std::int32_t j : column_) ++column_offset_[j + 1];
    for (Index j = 0; j < columns_; ++j) column_offset_[j + 1] += column_offset_[j];
    Buffer<Index> next = column_offset_;
    for (Index u = 0; u < rows_; ++u) {
      for (Index k = row_offset_[u]; k < row_offset_[u + 1]; ++k) {
        const Index position = next[column_[k]]++;
        row_[position] = static_cast<std::int32_t>(u);
        entry_[position] = k;
      }
    }
  }
  /// out[o] = start + Σ value[o]_k · weight row of entry k's column, over entries [begin, end), for rows of `width`
  /// numbers.
  ///
  /// \param start  null: 0
  template <int Outputs>
  SHEAFNN_INLINE void add_row(Index begin, Index end, const Values<Outputs>& value, const S* weight,
                              const S* start, Index width, const Rows<Outputs>& out) const {
    detail::for_tile_groups<S, 3>(width, [&]<class T, int Tiles>(auto c) {
      T sum[Outputs][Tiles];
      SHEAFNN_UNROLL for (int o = 0; o < Outputs; ++o) {
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) {
          sum[o][t] = start != nullptr ? c.load(t, start + c) : T(S(0));
        }
      }
      for (Index k = begin; k < end; ++k) {
        const S* row = weight + column_[k] * width + c;
        SHEAFNN_UNROLL for (int o = 0; o < Outputs; ++o) {
          add_scaled(c, value[static_cast<std::size_t>(o)][k], row, sum[o]);
        }
      }
      SHEAFNN_UNROLL for (int o = 0; o < Outputs; ++o) {
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) {
          c.store(t, out[static_cast<std::size_t>(o)] + c, sum[o][t]);
        }
      }
    });
  }
  /// sum += value · row, with the same bits for one output and for two, for all entries and for the kept ones alone.
  template <class T, int Tiles, bool Whole>
  static SHEAFNN_INLINE void add_scaled(const detail::TileGroupAt<T, Tiles, Whole>& c, S value, const S* row,
                                        T* sum) {
    SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) {
      sum[t] = detail::multiply_add(T(value), c.load(t, row), sum[t]);
    }
  }

  Index rows_, columns_;
  bool dense_;  ///< has every row all columns?
  Buffer<Index> row_offset_;
  Buffer<std::int32_t> column_;  ///< of every entry, as its value
  Buffer<S> value_;
  /// The entries by columns; empty where dense_.
  Buffer<Index> column_offset_;
  Buffer<std::int32_t> row_;
  Buffer<Index> entry_;
  /// Ranges of columns whose shares of X W are summed apart: two for a small graph with many more features than
  /// nodes. Each of two threads has the weights of its range in its processor's cache, since it computed their gradient and
  /// updated them. Instead of weights, they fetch each other's sums.
  Index parts_;
  Buffer<Index> part_offset_;  ///< first entry of a row in each part
};

template <class S>
SparseInput<S>::SparseInput(const NodeFeatures& features)
    : rows_(features.rows()),
      columns_(features.columns()),
      dense_(features.entries() == rows_ * columns_),
      row_offset_(features.rows() + 1),
      column_(features.entries()),
      value_(features.entries()),
      column_offset_(dense_ ? 0 : features.columns() + 1),
      row_(dense_ ? 0 : features.entries()),
      entry_(dense_ ? 0 : features.entries()),
      parts_(rows_ <= 4096 && columns_ >= 4 * rows_ ? 2 : 1),
      part_offset_(parts_ > 1 ? rows_ * parts_ : 0) {
  detail::require_finite_as<S>(features);
  std::copy(features.offsets().begin(), features.offsets().end(), row_offset_.begin());
  std::copy(features.column_of().begin(), features.column_of().end(), column_.begin());
  std::transform(features.values().begin(), features.values().end(), value_.begin(),
                 [](double value) { return static_cast<S>(value); });
  if (!dense_) sort_by_columns();
  if (parts_ == 1) return;
  for (Index u = 0; u < rows_; ++u) {
    const std::int32_t* begin = column_.data() + row_offset_[u];
    const std::int32_t* end = column_.data() + row_offset_[u + 1];
    for (Index part = 0; part < parts_; ++part) {
      part_offset_[u * parts_ + part] = std::lower_bound(begin, end, part_begin(part)) - column_.data();
    }
  }
}

template <class S>
void SparseInput<S>::backward(Execution execution, const S* values, const S* out_bar, Index width,
                              S* weight_bar) const {
  if (dense_) {
    detail::multiply_dense<S>(execution, detail::transposed(dense(values)), {out_bar, rows_, width},
                              {weight_bar, columns_, width}, false);
    return;
  }
  parallel_for(execution, columns_, column_grain, [&](Index begin, Index end) {
    const std::int32_t* row = row_.data();
    const Index* entry = entry_.data();
    detail::for_tile_groups<S, 3>(width, [&]<class T, int Tiles>(auto c) {
      for (Index j = begin; j < end; ++j) {
        const Index first = column_offset_[j], last = column_offset_[j + 1];
        T sum[Tiles];
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) sum[t] = T(S(0));
        for (Index k = first; k < last; ++k) {
          add_scaled(c, values[entry[k]], out_bar + row[k] * width + c, sum);
        }
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) { c.store(t, weight_bar + j * width + c, sum[t]); }
      }
    });
  });
}

}  // namespace sheafnn::layers
