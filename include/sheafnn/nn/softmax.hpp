/// \file
/// Log-softmax of rows, and probabilities from it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/node_selection.hpp"

namespace sheafnn::detail {

/// log Σ e^v over the values of a row, without overflow.
///
/// \param largest  one of them, or −∞
/// \param each     each(use) calls use(v) for every value v
template <class T, class Each>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T log_sum_exp(T largest, const Each& each) {
  using std::exp;
  using std::log;
  T sum = T(0);
  each([&](const T& value) { largest = select(largest < value, value, largest); });
  each([&](const T& value) { sum += exp(value - largest); });
  return largest + log(sum);
}

/// Logarithmic softmax of W rows, or of fewer, side by side; four columns at a time, which the stride has room
/// for.
template <class S>
void log_softmax_block(int count, Index classes, S* logits, Index stride) {
  constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  P quad[4];
  const auto columns = [&](Index column, const auto& use) {
    const auto row = [&](int lane) { return static_cast<const S*>(logits) + lane * stride + column; };
    rows_to_lanes<4>(count, row, quad);
    for (int k = 0; k < static_cast<int>(std::min<Index>(4, classes - column)); ++k) use(quad[k]);
  };
  const P shift = log_sum_exp(P(-std::numeric_limits<S>::infinity()), [&](const auto& use) {
    for (Index c = 0; c < classes; c += 4) columns(c, use);
  });
  for (Index c = 0; c < classes; c += 4) {
    columns(c, [&](P& value) { value = value - shift; });
    lanes_to_rows<4>(quad, count, [&](int lane) { return logits + lane * stride + c; });
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Replaces each row of `logits` (rows × classes, row stride `stride`) by its logarithmic softmax.
/// Unchecked: the memory of the rows, and at least one class. A row with NaN or +∞ becomes NaN.
template <class S>
SHEAFNN_NOINLINE void log_softmax_rows(Execution execution, Index rows, Index classes, S* logits, Index stride) {
  constexpr Index W = lanes<S>;
  parallel_for(execution, rows, 64, [=](Index begin, Index end) {
    if (stride % 4 == 0) {
      for (Index u = begin; u < end; u += W) {
        detail::log_softmax_block(static_cast<int>(std::min(W, end - u)), classes, logits + u * stride, stride);
      }
      return;
    }
    for (Index u = begin; u < end; ++u) {
      S* row = logits + u * stride;
      const S shift = detail::log_sum_exp(row[0], [=](const auto& use) {
        for (Index c = 0; c < classes; ++c) use(row[c]);
      });
      for (Index c = 0; c < classes; ++c) row[c] -= shift;
    }
  });
}

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// sum (a row of `classes` values per node) += e^log_probabilities (a row per node of `nodes`, row stride `stride`,
/// which is finite where it fills up).
template <class S>
void add_probabilities(Execution execution, const NodeSelection& nodes, Index classes, const S* log_probabilities,
                       Index stride, double* sum) {
  parallel_for(execution, nodes.count(), 64, [=](Index begin, Index end) {
    for (Index index = begin; index < end; ++index) {
      double* out = sum + nodes[index] * classes;
      S value[64];
      for (Index from = 0; from < classes; from += 64) {
        const Index count = std::min<Index>(64, classes - from);
        const Index filled = std::min((count + 7) / 8 * 8, stride - from);  // whole tiles
        for_tiles<S>(0, filled, [&]<class T>(auto c) {
          using std::exp;
          c.store(value + c, exp(c.load(log_probabilities + index * stride + from + c)));
        });
        for (Index c = 0; c < count; ++c) out[from + c] += static_cast<double>(value[c]);
      }
    }
  });
}

}  // namespace sheafnn::detail
