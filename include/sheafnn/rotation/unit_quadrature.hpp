/// \file
/// Integrals over [0, 1] whose integrands vary on scales down to 1e-30 at either end.
///
/// t = 1/(1 + e^{−x}) and the trapezoidal rule in x. Polynomial rules have to be refined for poles just outside
/// of the interval and for exponential layers at its ends. Here both stay at least π/2 from the real axis. So the error is
/// e^{−π²/h} for step h. For smooth integrands: Gauss's formula on equal parts. With weight 1/√(t(1−t)): the same
/// substitution, with x as a sum of exponentials beyond the scales of the integrand.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace sheafnn::detail {

/// The nodes of the rule: t from e^{−lower} to 1 − e^{−upper}.
struct UnitNodes {
  double lower = 48;
  double upper = 48;
  double step = 0.25;  ///< error 7e-18; 1/3 has 1e-13
};

/// Calls f(t, 1 − t, weight) for the nodes of ∫₀¹ … dt; both t and 1 − t are exact to rounding.
template <class F>
void for_unit_nodes(const F& f, const UnitNodes& nodes = {}) {
  const int first = -static_cast<int>(nodes.lower / nodes.step);
  const int last = static_cast<int>(nodes.upper / nodes.step);
  for (int i = first; i <= last; ++i) {
    const double e = std::exp(-std::abs(nodes.step * i));
    const double small = e / (1 + e);
    const double large = 1 / (1 + e);
    const double weight = nodes.step * small * large;
    i < 0 ? f(small, large, weight) : f(large, small, weight);
  }
}

/// ∫₀¹ f(t, 1 − t) dt.
template <class F>
[[nodiscard]] double integrate_unit(const F& f, const UnitNodes& nodes = {}) {
  double sum = 0;
  for_unit_nodes([&](double t, double rest, double weight) { sum += weight * f(t, rest); }, nodes);
  return sum;
}

/// t, 1 − t and the weight of f(t) in a sum; t and 1 − t are exact to rounding.
struct ArcsineNode {
  double t, rest, weight;
};

/// The nodes of ∫₀¹ f(t) e^{−decay·t} dt/√(t(1−t)). f may vary where log t is between `lower` and 0, or log(1 − t) between
/// −`upper` and 0. They are t = 1/(1 + e^{−x}), x = s + e^{s−upper−2} − e^{lower−2−s}, with the trapezoidal rule in s.
///
/// Nodes whose weight is below 1e-20 of the largest are left out.
/// Unchecked: lower ≤ 0, upper ≥ 0, decay ≥ 0, and that t does not underflow: lower ≥ −500.
[[nodiscard]] inline std::vector<ArcsineNode> arcsine_nodes(double lower, double upper, double decay) {
  constexpr double step = 0.25, onset = 2, tail = 4.5;  // e^4.5 = 90: √t falls by e^{−45}
  std::vector<ArcsineNode> nodes;
  double largest = 0;
  const double first = lower - onset - tail;
  const int count = static_cast<int>((upper + onset + tail - first) / step);
  for (int i = 0; i <= count; ++i) {
    const double s = first + step * i, right = std::exp(s - upper - onset), left = std::exp(lower - onset - s);
    const double x = s + right - left, e = std::exp(-std::abs(x)), small = e / (1 + e), large = 1 / (1 + e);
    const double t = x < 0 ? small : large;
    const double weight = step * (1 + right + left) * std::exp(-0.5 * std::abs(x)) * large * std::exp(-decay * t);
    nodes.push_back({t, x < 0 ? large : small, weight});
    largest = std::max(largest, weight);
  }
  std::erase_if(nodes, [&](const ArcsineNode& node) { return node.weight < 1e-20 * largest; });
  return nodes;
}

/// ∫ f(x) dx from begin to end, by Gauss's formula of eight points on equal parts; f returns numbers or vectors.
///
/// On one part of length h the error is below 6e-20 h¹⁷ max |f⁽¹⁶⁾|.
/// Unchecked: parts ≥ 0; the integral of no part is 0.
template <class F>
[[nodiscard]] auto integrate_parts(const F& f, double begin, double end, int parts) {
  constexpr double node[4] = {0.18343464249564981, 0.52553240991632899, 0.79666647741362674, 0.96028985649753623};
  constexpr double weight[4] = {0.36268378337836198, 0.31370664587788729, 0.22238103445337447,
                                0.10122853629037626};
  using Value = std::remove_cvref_t<decltype(f(begin))>;
  const double half = parts > 0 ? 0.5 * (end - begin) / parts : 0;
  Value sum = 0.0 * f(begin);
  for (int k = 0; k < parts; ++k) {
    const double middle = begin + (2 * k + 1) * half;
    for (int j = 0; j < 4; ++j) {
      sum += half * weight[j] * f(middle - node[j] * half);
      sum += half * weight[j] * f(middle + node[j] * half);
    }
  }
  return sum;
}

}  // namespace sheafnn::detail
