/// \file
/// The coefficients of a heat operator Σ_k c_k M^k or Σ_j c_j out_j in_jᵀ, the derivatives of their parameters, for both
/// engines:
///
///     series     c_k = t^k / k! with M = −𝓛, or e^{−t} t^k / k! with M = Â;
///     hops       c_k = softmax(a)_j, k the j-th power;
///     spectral   c_j = e^{−tλ_j}, λ_j the j-th eigenvalue of 𝓛.
///
/// Source: math: "Heat on a flat bundle" (9.4), (9.7). Unchecked: indices of powers, and the sizes of arrays.
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"

namespace sheafnn::kernels {

/// Calls take(k, c_k) for k = 0 … degree. \param of_laplacian  M = −𝓛
template <class Take>
SHEAFNN_HD void series_coefficients(bool of_laplacian, double t, Index degree, const Take& take) {
  using std::exp;
  double value = of_laplacian ? 1 : exp(-t);
  for (Index k = 0; k <= degree; ++k, value *= t / static_cast<double>(k)) take(k, value);
}
/// t̄ from c_k and c̄_k: ∂c_k/∂t is c_{k−1}, without c_k of a series in Â.
///
/// \param value, bar  functions of k
template <class Value, class Bar>
[[nodiscard]] SHEAFNN_HD double series_time_bar(bool of_laplacian, Index degree, const Value& value,
                                                const Bar& bar) {
  double sum = 0;
  for (Index k = 0; k <= degree; ++k) {
    const double before = k > 0 ? value(k - 1) : 0;
    sum += bar(k) * (of_laplacian ? before : before - value(k));
  }
  return sum;
}

/// e^{−tλ}.
[[nodiscard]] SHEAFNN_HD inline double spectral_coefficient(double lambda, double t) {
  using std::exp;
  return exp(-lambda * t);
}
/// t̄ from c_j and c̄_j: ∂c_j/∂t is −λ_j c_j.
///
/// \param lambda, value, bar  functions of j
template <class Lambda, class Value, class Bar>
[[nodiscard]] SHEAFNN_HD double spectral_time_bar(Index count, const Lambda& lambda, const Value& value,
                                                  const Bar& bar) {
  double sum = 0;
  for (Index j = 0; j < count; ++j) sum += lambda(j) * value(j) * bar(j);
  return -sum;
}

/// softmax(logits). \tparam N  how many there are
template <int N, class S>
SHEAFNN_HD void hop_shares(const S* logits, double* share) {
  using std::exp;
  double largest = static_cast<double>(logits[0]);
  for (int j = 1; j < N; ++j) {
    if (static_cast<double>(logits[j]) > largest) largest = static_cast<double>(logits[j]);
  }
  double sum = 0;
  for (int j = 0; j < N; ++j) {
    share[j] = exp(static_cast<double>(logits[j]) - largest);
    sum += share[j];
  }
  for (int j = 0; j < N; ++j) share[j] /= sum;
}
/// Derivatives of the logits from derivatives of the shares: take(j, ā_j).
///
/// \param bar  a function of j
template <int N, class Bar, class Take>
SHEAFNN_HD void hop_logits_bar(const double* share, const Bar& bar, const Take& take) {
  double mean = 0;
  for (int j = 0; j < N; ++j) mean += share[j] * bar(j);
  for (int j = 0; j < N; ++j) take(j, share[j] * (bar(j) - mean));
}

}  // namespace sheafnn::kernels
