/// \file
/// Sparse input layer: y = x Wᵀ + b for sparse node features x, with dropout on the stored entries.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/mask_bits.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn {

/// Dropout of the stored entries of sparse features: which are kept, and what was kept of them.
template <class S>
struct EntryDropout {
  EntryDropout() = default;
  explicit EntryDropout(Index entries) : mask(Dropout::mask_size(entries)), values(entries) {}

  /// Decides which entries are kept; SparseInput::forward() writes their values.
  void draw(int threads, const Dropout& dropout) {
    dropout.fill_mask(threads, values.size(), mask.data());
    factor = static_cast<S>(dropout.scale());
  }

  Buffer<std::uint8_t> mask;
  Buffer<S> values;  ///< 0 where an entry was dropped
  S factor = S(1);   ///< of those kept
};

/// What is to be done with rows that are computed: nothing.
struct LeaveRows {
  void operator()(Index, Index) const noexcept {}
};

/// The features of one graph in the two orders the layer needs: by node (forward) and by column (weight gradient).
template <class S>
class SparseInput {
 public:
  using P = Pack<S, lanes<S>>;

  explicit SparseInput(const NodeFeatures& features)
      : rows_(features.rows()),
        columns_(features.columns()),
        row_offset_(features.rows() + 1),
        column_(features.entries() + P::width),
        value_(features.entries() + P::width),
        column_offset_(features.columns() + 1),
        row_(features.entries()),
        entry_(features.entries()) {
    std::copy(features.offsets().begin(), features.offsets().end(), row_offset_.begin());
    std::copy(features.column_of().begin(), features.column_of().end(), column_.begin());
    std::transform(features.values().begin(), features.values().end(), value_.begin(),
                   [](double value) { return static_cast<S>(value); });
    for (const std::int32_t j : features.column_of()) ++column_offset_[j + 1];
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
  [[nodiscard]] Index entries() const noexcept { return entry_.size(); }
  [[nodiscard]] const S* values() const noexcept { return value_.data(); }

  /// out (n × width) = X W + 1 bᵀ.
  ///
  /// \param weight  columns() × width, row-major: the transposed weight of the layer
  /// \param finish  called as finish(first row, past the last one) for disjoint ranges of rows that are ready,
  ///                from any thread
  template <class Finish = LeaveRows>
  void forward(int threads, const S* weight, const S* bias, Index width, S* out, const Finish& finish = {}) const {
    parallel_for(threads, rows_, 16, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        const Index first = row_offset_[u], count = row_offset_[u + 1] - first;
        add_row(count, column_.data() + first, value_.data() + first, weight, bias, width, out + u * width);
      }
      finish(begin, end);
    });
  }
  /// The same for dropout(X), whose mask is given.
  ///
  /// \param dropped  its values are written
  template <class Finish = LeaveRows>
  void forward(int threads, EntryDropout<S>& dropped, const S* weight, const S* bias, Index width, S* out,
               const Finish& finish = {}) const {
    parallel_for(threads, rows_, 16, [&](Index begin, Index end) {
      for_tiles<S>(row_offset_[begin], row_offset_[end], [&]<class T>(Index k) {
        store(dropped.values.data() + k,
              sheafnn::dropped(load<T>(value_.data() + k), dropped.mask.data(), k, dropped.factor));
      });
      S value[kept_room + P::width];
      std::int32_t column[kept_room + P::width];
      for (Index u = begin; u < end; ++u) {
        const S* start = bias;
        Index first = row_offset_[u];
        const Index last = row_offset_[u + 1];
        if (last - first <= short_row) {
          add_row(last - first, column_.data() + first, dropped.values.data() + first, weight, bias, width,
                  out + u * width);
          continue;
        }
        for (; first < last; first += kept_room) {
          const Index kept = keep(first, std::min(last, first + kept_room), dropped, column, value);
          add_row(kept, column, value, weight, start, width, out + u * width);
          start = out + u * width;
        }
      }
      finish(begin, end);
    });
  }

  /// weight_bar (columns() × width) = Xᵀ out_bar. Each column is summed by one thread in a fixed order.
  ///
  /// \param values  entries of X in stored order: values(), or those of an EntryDropout
  void backward(int threads, const S* values, const S* out_bar, Index width, S* weight_bar) const {
    parallel_for(threads, columns_, 64, [&](Index begin, Index end) {
      const std::int32_t* row = row_.data();
      const Index* entry = entry_.data();
      for_tile_groups(width, [&]<class T, int Tiles>(Index c) {
        for (Index j = begin; j < end; ++j) {
          const Index first = column_offset_[j], last = column_offset_[j + 1];
          T sum[Tiles];
          for (int t = 0; t < Tiles; ++t) sum[t] = T(S(0));
          for (Index k = first; k < last; ++k) {
            add_scaled<T, Tiles>(values[entry[k]], out_bar + row[k] * width + c, sum);
          }
          for (int t = 0; t < Tiles; ++t) {
            store(weight_bar + j * width + c + t * tile<T>, sum[t]);
          }
        }
      });
    });
  }

 private:
  static constexpr Index kept_room = 256;  ///< entries of a row that are looked through at a time
  static constexpr Index short_row = 12;   ///< so few are not worth it: products with 0 cost less

  /// The entries of [begin, end) that dropout keeps, as columns and values one behind the other; returns how many.
  Index keep(Index begin, Index end, const EntryDropout<S>& dropped, std::int32_t* column, S* value) const {
    Index kept = 0;
    for (Index k = begin; k < end; k += P::width) {
      std::uint32_t bits = kept_bits(dropped.mask.data(), k);
      if (end - k < P::width) bits &= (1U << (end - k)) - 1U;
      store_kept(Pack<std::int32_t, P::width>::load(column_.data() + k), bits, column + kept);
      kept += store_kept(P::load(value_.data() + k) * P(dropped.factor), bits, value + kept);
    }
    return kept;
  }
  /// out = start + Σ_k value_k · weight row column_k, for a row of `width` numbers; start and out may be the same.
  static SHEAFNN_INLINE void add_row(Index count, const std::int32_t* column, const S* value, const S* weight,
                                     const S* start, Index width, S* out) {
    for_tile_groups(width, [&]<class T, int Tiles>(Index c) {
      T sum[Tiles];
      for (int t = 0; t < Tiles; ++t) sum[t] = load<T>(start + c + t * tile<T>);
      for (Index k = 0; k < count; ++k) add_scaled<T, Tiles>(value[k], weight + column[k] * width + c, sum);
      for (int t = 0; t < Tiles; ++t) store(out + c + t * tile<T>, sum[t]);
    });
  }
  /// Lanes of a tile of columns.
  template <class T>
  static constexpr int tile = static_cast<int>(sizeof(T) / sizeof(S));

  /// Calls body.template operator()<T, Tiles>(c) for groups of Tiles tiles from column c on: several sums at a
  /// time hide each other's latency.
  template <class Body>
  static SHEAFNN_INLINE void for_tile_groups(Index width, const Body& body) {
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
  Buffer<std::int32_t> column_;  ///< of every entry, as its value; with a pack's room behind them
  Buffer<S> value_;
  Buffer<Index> column_offset_;
  Buffer<std::int32_t> row_;
  Buffer<Index> entry_;
};

}  // namespace sheafnn
