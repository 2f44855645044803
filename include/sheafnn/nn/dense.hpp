/// \file
/// Dense products for the shapes of the networks: tall times small, and the reduction over many rows that a weight
/// gradient is. Register-tiled over packs; no memory of its own.
#pragma once

#include <algorithm>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"

namespace sheafnn {

namespace detail {

/// A matrix that is read element by element: element (i, j) is data[i·row_stride + j·column_stride].
template <class S>
struct StridedMatrix {
  const S* data;
  Index row_stride;
  Index column_stride;
};

/// Rows × (width of T) tile of C = (start +) A B, accumulated in registers over k.
///
/// \param start  what row 0 of C starts from, rows `start_stride` apart; null: zeros
template <int Rows, class T, class S>
SHEAFNN_INLINE void product_tile(const StridedMatrix<S>& a, Index row, Index depth_begin, Index depth_end, const S* b,
                                 Index b_stride, const S* start, Index start_stride, S* c, Index c_stride,
                                 Index column) {
  T sum[Rows];
  if (start != nullptr) {
    SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) sum[r] = load<T>(start + (row + r) * start_stride + column);
  } else {
    SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) sum[r] = T(S(0));
  }
  const S* left = a.data + row * a.row_stride + depth_begin * a.column_stride;
  const S* right = b + depth_begin * b_stride + column;
  for (Index k = depth_begin; k < depth_end; ++k) {
    const T value = load<T>(right);
    SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) sum[r] += T(left[r * a.row_stride]) * value;
    left += a.column_stride;
    right += b_stride;
  }
  SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) store(c + (row + r) * c_stride + column, sum[r]);
}

/// The same for two tiles side by side, which share what is read of A: where registers suffice.
template <int Rows, class T, class S>
SHEAFNN_INLINE void product_tiles(const StridedMatrix<S>& a, Index row, Index depth_begin, Index depth_end, const S* b,
                                  Index b_stride, const S* start, Index start_stride, S* c, Index c_stride,
                                  Index column) {
  T sum[2][Rows];
  if (start != nullptr) {
    SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) {
      const S* at = start + (row + r) * start_stride + column;
      SHEAFNN_UNROLL for (int half = 0; half < 2; ++half) sum[half][r] = load<T>(at + half * T::width);
    }
  } else {
    SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) sum[0][r] = sum[1][r] = T(S(0));
  }
  const S* left = a.data + row * a.row_stride + depth_begin * a.column_stride;
  const S* right = b + depth_begin * b_stride + column;
  for (Index k = depth_begin; k < depth_end; ++k) {
    const T first = load<T>(right), second = load<T>(right + T::width);
    SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) {
      const T factor = T(left[r * a.row_stride]);
      sum[0][r] += factor * first;
      sum[1][r] += factor * second;
    }
    left += a.column_stride;
    right += b_stride;
  }
  SHEAFNN_UNROLL for (int r = 0; r < Rows; ++r) {
    S* at = c + (row + r) * c_stride + column;
    SHEAFNN_UNROLL for (int half = 0; half < 2; ++half) store(at + half * T::width, sum[half][r]);
  }
}

/// Rows [row, row + Rows) of C = (start +) A B.
template <int Rows, class S>
SHEAFNN_INLINE void product_rows(const StridedMatrix<S>& a, Index row, Index depth_begin, Index depth_end, const S* b,
                                 Index b_stride, const S* start, Index start_stride, S* c, Index c_stride,
                                 Index columns) {
  Index first = 0;
  if constexpr (register_bytes == 64 && Rows > 1) {
    using T = Pack<S, lanes<S>>;
    for (; first + 2 * T::width <= columns; first += 2 * T::width) {
      product_tiles<Rows, T>(a, row, depth_begin, depth_end, b, b_stride, start, start_stride, c, c_stride, first);
    }
  }
  for_tiles<S>(first, columns, [&]<class T>(Index column) {
    product_tile<Rows, T>(a, row, depth_begin, depth_end, b, b_stride, start, start_stride, c, c_stride, column);
  });
}

/// C = start + A B by the calling thread: the product of a few rows. With start_stride = 0 all rows start from the same
/// numbers, a bias.
///
/// \param a         rows × depth, any strides (a transposed matrix is one with swapped strides)
/// \param b         depth × columns, row-major with stride b_stride
/// \param start     rows × columns, row-major with stride start_stride; may be c; null: zeros
/// \param c         rows × columns, row-major with stride c_stride; must not overlap a or b
template <class S>
SHEAFNN_NOINLINE void multiply_block_from(Index rows, Index columns, Index depth, const StridedMatrix<S>& a, const S* b,
                                          Index b_stride, const S* start, Index start_stride, S* c, Index c_stride) {
  constexpr Index depth_block = 512;  // keeps the strip of B in cache and the partial sums short
  for (Index from = 0; from < std::max<Index>(depth, 1); from += depth_block) {
    const Index to = std::min(depth, from + depth_block);
    if (from > 0) {
      start = c;
      start_stride = c_stride;
    }
    Index row = 0;
    for (; row + 8 <= rows; row += 8) {
      product_rows<8>(a, row, from, to, b, b_stride, start, start_stride, c, c_stride, columns);
    }
    if (row + 4 <= rows) {
      product_rows<4>(a, row, from, to, b, b_stride, start, start_stride, c, c_stride, columns);
      row += 4;
    }
    for (; row < rows; ++row) {
      product_rows<1>(a, row, from, to, b, b_stride, start, start_stride, c, c_stride, columns);
    }
  }
}
/// C = A B, or C += A B: see above.
///
/// \param accumulate  add to C instead of overwriting it
template <class S>
void multiply_block(Index rows, Index columns, Index depth, const StridedMatrix<S>& a, const S* b, Index b_stride, S* c,
                    Index c_stride, bool accumulate) {
  multiply_block_from<S>(rows, columns, depth, a, b, b_stride, accumulate ? c : nullptr, c_stride, c, c_stride);
}

/// multiply_block() by several threads. Every element is summed in the same order for any number of them.
template <class S>
void multiply_dense(Execution execution, Index rows, Index columns, Index depth, const StridedMatrix<S>& a,
                    const S* b, Index b_stride, S* c, Index c_stride, bool accumulate) {
  const Index row_work = std::max<Index>(1, columns * depth);
  const Index grain = std::max<Index>(8, 16384 / row_work / 8 * 8);
  parallel_for(execution, rows, grain, [&](Index begin, Index end) {
    multiply_block<S>(end - begin, columns, depth, {a.data + begin * a.row_stride, a.row_stride, a.column_stride},
                      b, b_stride, c + begin * c_stride, c_stride, accumulate);
  });
}

/// out[j] += Σ_i m(i, j): column sums of a rows × columns row-major matrix, for bias gradients.
template <class S>
SHEAFNN_NOINLINE void add_column_sums(Index rows, Index columns, const S* m, Index stride, S* out) {
  constexpr Index block = 256;  // partial sums keep the rounding error flat
  for_tiles<S>(0, columns, [&]<class T>(Index column) {
    T total = T(S(0));
    for (Index from = 0; from < rows; from += block) {
      T partial = T(S(0));
      for (Index i = from; i < std::min(rows, from + block); ++i) partial += load<T>(m + i * stride + column);
      total += partial;
    }
    store(out + column, load<T>(out + column) + total);
  });
}

/// out (rows × columns) += m, whose rows are `stride` apart.
template <class S>
void add_rows(Index rows, Index columns, const S* m, Index stride, S* out) {
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) out[i * columns + j] += m[i * stride + j];
  }
}

/// out += in, for long arrays.
template <class S>
void add_array(Execution execution, Index count, const S* in, S* out) {
  parallel_for(execution, count, 2048, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) out[i] += in[i];
  });
}

/// Rounds up to whole packs, so that rows of small matrices can be treated without a remainder.
template <class S>
[[nodiscard]] constexpr Index padded(Index count) {
  return (count + lanes<S> - 1) / lanes<S> * lanes<S>;
}

/// out (columns × out_stride) = inᵀ for a rows × columns row-major matrix.
template <class S>
void transpose_into(Index rows, Index columns, const S* in, S* out, Index out_stride) {
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) out[j * out_stride + i] = in[i * columns + j];
  }
}

}  // namespace detail

}  // namespace sheafnn
