/// \file
/// Dense products for the shapes of the networks: tall times small, and the reduction over many rows that a weight
/// gradient is. Register-tiled over packs; no memory of its own.
#pragma once

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/multiply_add.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"

namespace sheafnn::detail {

/// A factor of a product, read element by element: element (i, j) is data[i·row_stride + j·column_stride].
template <class S>
struct StridedMatrix {
  const S* data;
  Index rows, columns;
  Index row_stride, column_stride;

  StridedMatrix(const S* first, Index row_count, Index column_count, Index rows_apart,
                Index columns_apart) noexcept
      : data(first),
        rows(row_count),
        columns(column_count),
        row_stride(rows_apart),
        column_stride(columns_apart) {}
  template <class T>
    requires std::is_same_v<std::remove_const_t<T>, S>
    // NOLINTNEXTLINE(google-explicit-constructor): every view of a matrix can be read
    StridedMatrix(const MatrixView<T>& m)
  noexcept : StridedMatrix(m.data(), m.rows(), m.columns(), m.stride(), 1) {}

  [[nodiscard]] StridedMatrix middle_rows(Index first, Index count) const noexcept {
    return {data + first * row_stride, count, columns, row_stride, column_stride};
  }
  [[nodiscard]] StridedMatrix middle_columns(Index first, Index count) const noexcept {
    return {data + first * column_stride, rows, count, row_stride, column_stride};
  }
};

/// mᵀ as a factor.
template <class T>
[[nodiscard]] StridedMatrix<std::remove_const_t<T>> transposed(const MatrixView<T>& m) noexcept {
  return {m.data(), m.columns(), m.rows(), 1, m.stride()};
}

/// C = start + A B in tiles that are accumulated in registers. For so few columns of A that as many rows of B stay in
/// cache.
template <class S>
struct ProductStrip {
  StridedMatrix<S> a;
  MatrixView<const S> b;
  const S* start;  ///< may be C; null: zeros
  Index start_stride;
  MatrixView<S> c;

  /// Rows × (a tile of columns) entries of C, with the same bits for any number of rows.
  template <int Rows, class T, bool Whole>
  SHEAFNN_INLINE void tile(Index row, const TileAt<T, Whole>& column) const {
    T sum[Rows];
    if (start != nullptr) {
      SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) sum[r] =
          column.load(start + (row + r) * start_stride + column);
    } else {
      SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) sum[r] = T(S(0));
    }
    // Many rows of A are read from two addresses on: as few distances between rows as registers can hold.
    constexpr int middle = Rows > 8 ? Rows / 2 : 0;
    const S *low = a.data + row * a.row_stride, *high = low + middle * a.row_stride;
    const S* right = b.data() + column;
    for (Index k = 0; k < a.columns; ++k) {
      const T value = column.load(right);
      SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) sum[r] =
          multiply_add(T(r < middle ? low[r * a.row_stride] : high[(r - middle) * a.row_stride]), value, sum[r]);
      low += a.column_stride;
      high += a.column_stride;
      right += b.stride();
    }
    SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) column.store(c.data() + (row + r) * c.stride() + column, sum[r]);
  }

  /// Rows [row, row + Rows) of C.
  template <int Rows>
  SHEAFNN_INLINE void rows(Index row) const {
    // Two registers side by side share what is read of A. More than 8 rows are of one register.
    using T = Pack<S, 2 * register_bytes / static_cast<int>(sizeof(S))>;
    const Index columns = c.columns();
    Index first = 0;
    if constexpr (Rows > 1 && Rows <= 8) {
      for (; first + T::width <= columns; first += T::width) tile<Rows>(row, TileAt<T>(first));
      if (2 * (columns - first) > T::width) {
        tile<Rows>(row, TileAt<T, false>(first, columns - first));
        return;
      }
    }
    for_tiles<S>(first, columns, [&]<class>(auto column) { tile<Rows>(row, column); });
  }
};

/// C = start + A B by the calling thread: the product of a few rows.
///
/// \param a      rows × depth, any strides
/// \param b      depth × columns
/// \param start  rows × columns, row-major; may be c, or a row that is repeated (row_stride 0), a bias; null: zeros
/// \param c      rows × columns; must not overlap a or b
template <class S>
SHEAFNN_NOINLINE void multiply_block_from(const StridedMatrix<std::type_identity_t<S>>& a,
                                          const MatrixView<const std::type_identity_t<S>>& b,
                                          const StridedMatrix<std::type_identity_t<S>>& start,
                                          const MatrixView<S>& c) {
  assert(a.rows == c.rows() && a.columns == b.rows() && b.columns() == c.columns());
  constexpr Index depth_block = 512;  // keeps the strip of B in cache and the partial sums short
  for (Index from = 0; from < std::max<Index>(a.columns, 1); from += depth_block) {
    const Index count = std::min(a.columns - from, depth_block);
    const bool first = from == 0;
    const ProductStrip<S> strip{a.middle_columns(from, count), b.middle_rows(from, count),
                                first ? start.data : c.data(), first ? start.row_stride : c.stride(), c};
    // As many sums as leave registers for what they are made of.
    constexpr int most = register_bytes == 64 ? 8 : 6;
    Index row = 0;
    if (c.columns() <= register_bytes / static_cast<Index>(sizeof(S))) {  // one register for each row
      for (; row + 2 * most <= a.rows; row += 2 * most) strip.template rows<2 * most>(row);
    }
    for (; row + most <= a.rows; row += most) strip.template rows<most>(row);
    if (most > 6 && row + 6 <= a.rows) {
      strip.template rows<6>(row);
      row += 6;
    }
    if (row + 4 <= a.rows) {
      strip.template rows<4>(row);
      row += 4;
    }
    if (row + 2 <= a.rows) {
      strip.template rows<2>(row);
      row += 2;
    }
    for (; row < a.rows; ++row) strip.template rows<1>(row);
  }
}
/// C = A B, or C += A B: see above.
///
/// \param accumulate  add to C instead of overwriting it
template <class S>
void multiply_block(const StridedMatrix<std::type_identity_t<S>>& a,
                    const MatrixView<const std::type_identity_t<S>>& b, const MatrixView<S>& c, bool accumulate) {
  multiply_block_from(a, b, {accumulate ? c.data() : nullptr, c.rows(), c.columns(), c.stride(), 1}, c);
}

/// multiply_block() by several threads. Every element is summed in the same order for any number of threads.
template <class S>
void multiply_dense(Execution execution, const StridedMatrix<std::type_identity_t<S>>& a,
                    const MatrixView<const std::type_identity_t<S>>& b, const MatrixView<S>& c, bool accumulate) {
  const Index row_work = std::max<Index>(1, c.columns() * a.columns);
  const Index grain = std::max<Index>(8, 16384 / row_work / 8 * 8);
  parallel_for(execution, c.rows(), grain, [&](Index begin, Index end) {
    multiply_block(a.middle_rows(begin, end - begin), b, c.middle_rows(begin, end - begin), accumulate);
  });
}

/// out[j] += Σ_i m(i, j): column sums of a rows × columns row-major matrix, for bias gradients.
template <class S>
SHEAFNN_NOINLINE void add_column_sums(Index rows, Index columns, const S* m, Index stride, S* out) {
  constexpr Index block = 256;  // partial sums keep the rounding error flat
  for_tiles<S>(0, columns, [&]<class T>(auto column) {
    T total = T(S(0));
    for (Index from = 0; from < rows; from += block) {
      T partial = T(S(0));
      for (Index i = from; i < std::min(rows, from + block); ++i) partial += column.load(m + i * stride + column);
      total += partial;
    }
    column.store(out + column, column.load(out + column) + total);
  });
}

/// out (rows × columns) += m, whose rows are `stride` apart.
template <class S>
void add_rows(Index rows, Index columns, const S* m, Index stride, S* out) {
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) out[i * columns + j] += m[i * stride + j];
  }
}

/// to = from, or to += from, row by row. \param from, to  of one shape, with any strides
template <bool Add = false, class S>
void copy_rows(Execution execution, const MatrixView<const std::type_identity_t<S>>& from, const MatrixView<S>& to) {
  assert(from.rows() == to.rows() && from.columns() == to.columns());
  const Index grain = std::max<Index>(1, 2048 / std::max<Index>(1, to.columns()));
  parallel_for(execution, to.rows(), grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const S* in = from.data() + i * from.stride();
      S* out = to.data() + i * to.stride();
      for (Index j = 0; j < to.columns(); ++j) out[j] = Add ? out[j] + in[j] : in[j];
    }
  });
}

/// out += in, for long arrays.
template <class S>
void add_array(Execution execution, Index count, const S* in, S* out) {
  parallel_for(execution, count, 2048, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) out[i] += in[i];
  });
}

/// out (columns × out_stride) = inᵀ for a rows × columns row-major matrix.
template <class S>
void transpose_into(Index rows, Index columns, const S* in, S* out, Index out_stride) {
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) out[j * out_stride + i] = in[i * columns + j];
  }
}

}  // namespace sheafnn::detail
