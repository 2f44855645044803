/// \file
/// Log-softmax and the negative log-likelihood of labelled nodes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/node_selection.hpp"

namespace sheafnn {

namespace detail {

/// Logarithmic softmax of W rows, or of fewer, side by side; four columns at a time, which the stride has room
/// for.
template <class S>
void log_softmax_block(int count, Index classes, S* logits, Index stride) {
  constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  P largest = P(-std::numeric_limits<S>::infinity()), sum = P(S(0)), quad[4];
  const auto columns = [&](Index column, const auto& use) {
    const auto row = [&](int lane) { return static_cast<const S*>(logits) + lane * stride + column; };
    rows_to_lanes<4>(count, row, quad);
    for (int k = 0; k < static_cast<int>(std::min<Index>(4, classes - column)); ++k) use(quad[k]);
  };
  for (Index c = 0; c < classes; c += 4) columns(c, [&](const P& value) { largest = max(largest, value); });
  for (Index c = 0; c < classes; c += 4) columns(c, [&](const P& value) { sum += exp(value - largest); });
  const P shift = largest + log(sum);
  for (Index c = 0; c < classes; c += 4) {
    columns(c, [&](P& value) { value = value - shift; });
    lanes_to_rows<4>(quad, count, [&](int lane) { return logits + lane * stride + c; });
  }
}

}  // namespace detail

/// Replaces each row of `logits` (rows × classes, row stride `stride`) by its logarithmic softmax.
template <class S>
void log_softmax_rows(Execution execution, Index rows, Index classes, S* logits, Index stride) {
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
      const S largest = *std::max_element(row, row + classes);
      S sum = 0;
      for (Index c = 0; c < classes; ++c) sum += std::exp(row[c] - largest);
      const S shift = largest + std::log(sum);
      for (Index c = 0; c < classes; ++c) row[c] -= shift;
    }
  });
}

/// sum (a row of `classes` numbers per node) += e^log_probabilities (a row per place in `nodes`, row stride `stride`,
/// which is finite where it fills up).
template <class S>
void add_probabilities(Execution execution, const NodeSelection& nodes, Index classes, const S* log_probabilities,
                       Index stride, double* sum) {
  parallel_for(execution, nodes.count(), 64, [=](Index begin, Index end) {
    for (Index place = begin; place < end; ++place) {
      double* out = sum + nodes[place] * classes;
      S value[64];
      for (Index from = 0; from < classes; from += 64) {
        const Index count = std::min<Index>(64, classes - from);
        const Index filled = std::min((count + 7) / 8 * 8, stride - from);  // whole tiles
        for_tiles<S>(0, filled, [&]<class T>(Index c) {
          using std::exp;
          store(value + c, exp(load<T>(log_probabilities + place * stride + from + c)));
        });
        for (Index c = 0; c < count; ++c) out[from + c] += static_cast<double>(value[c]);
      }
    }
  });
}

/// −(1/|nodes|) Σ_{u ∈ nodes} log p(label u | u); `log_probabilities` has row stride `stride` and a row for each node
/// of the graph, or, when `only_nodes`, for each of `nodes`.
template <class S>
[[nodiscard]] double mean_negative_log_likelihood(const S* log_probabilities, Index stride,
                                                  std::span<const std::int32_t> labels,
                                                  std::span<const std::int32_t> nodes, bool only_nodes = false) {
  double sum = 0;
  Index place = 0;
  for (const std::int32_t u : nodes) {
    const Index row = only_nodes ? place++ : u;
    sum -= static_cast<double>(log_probabilities[row * stride + labels[static_cast<std::size_t>(u)]]);
  }
  return sum / static_cast<double>(nodes.size());
}

/// Derivative of weight · mean_negative_log_likelihood with respect to the logits, written to logits_bar (same
/// shape, zero outside `nodes`): weight/|nodes| · (softmax − one-hot label).
template <class S>
void negative_log_likelihood_backward(Index rows, Index classes, const S* log_probabilities, Index stride,
                                      std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes,
                                      S weight, S* logits_bar, bool only_nodes = false) {
  if (!only_nodes) std::fill_n(logits_bar, rows * stride, S(0));
  const S share = weight / static_cast<S>(nodes.size());
  Index place = 0;
  for (const std::int32_t u : nodes) {
    const Index at = (only_nodes ? place++ : u) * stride;
    S* row = logits_bar + at;
    for_tiles<S>(0, classes, [&]<class T>(Index c) {
      using std::exp;
      store(row + c, T(share) * exp(load<T>(log_probabilities + at + c)));
    });
    row[labels[static_cast<std::size_t>(u)]] -= share;
  }
}

}  // namespace sheafnn
