/// \file
/// Log-softmax and the negative log-likelihood of labelled nodes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"

namespace sheafnn {

/// Replaces each row of `logits` (rows × classes, row stride `stride`) by its logarithmic softmax.
template <class S>
void log_softmax_rows(int threads, Index rows, Index classes, S* logits, Index stride) {
  parallel_for(threads, rows, 1024, [=](Index begin, Index end) {
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

/// −(1/|nodes|) Σ_{u ∈ nodes} log p(label u | u); `log_probabilities` has row stride `stride`.
template <class S>
[[nodiscard]] double mean_negative_log_likelihood(const S* log_probabilities, Index stride,
                                                  std::span<const std::int32_t> labels,
                                                  std::span<const std::int32_t> nodes) {
  double sum = 0;
  for (const std::int32_t u : nodes) {
    sum -= static_cast<double>(log_probabilities[u * stride + labels[static_cast<std::size_t>(u)]]);
  }
  return sum / static_cast<double>(nodes.size());
}

/// Derivative of weight · mean_negative_log_likelihood with respect to the logits, written to logits_bar (same shape,
/// zero outside `nodes`): weight/|nodes| · (softmax − one-hot label).
template <class S>
void negative_log_likelihood_backward(Index rows, Index classes, const S* log_probabilities, Index stride,
                                      std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes,
                                      S weight, S* logits_bar) {
  std::fill_n(logits_bar, rows * stride, S(0));
  const S share = weight / static_cast<S>(nodes.size());
  for (const std::int32_t u : nodes) {
    S* row = logits_bar + u * stride;
    for (Index c = 0; c < classes; ++c) row[c] = share * std::exp(log_probabilities[u * stride + c]);
    row[labels[static_cast<std::size_t>(u)]] -= share;
  }
}

}  // namespace sheafnn
