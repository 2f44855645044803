/// \file
/// Explicit Runge–Kutta methods for dX/dt = f(X),
///
///     X_i = X + h Σ_{j<i} a_ij K_j,   K_i = f(X_i),   X⁺ = X + h Σ_i b_i K_i,
///
/// and the sums of arrays that their steps, and the adjoints of these, are made of (math: "Continuous-time
/// diffusion" (3.32)).
#pragma once

#include <array>
#include <cstddef>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/layers/flow_options.hpp"

namespace sheafnn {

namespace detail {

/// Coefficients of a method.
struct RungeKuttaTableau {
  static constexpr int max_stages = 6;
  int stages = 0;
  std::array<std::array<double, max_stages>, max_stages> a{};  ///< a_ij, j < i
  std::array<double, max_stages> b{};
};

/// The coefficients of a method.
[[nodiscard]] inline const RungeKuttaTableau& tableau(FlowMethod method) {
  // The method of order 5; its seventh stage, f(X⁺), serves the error estimate alone. Source: Dormand, Prince (1980), "A
  // family of embedded Runge–Kutta formulae".
  static const RungeKuttaTableau dormand_prince{
      6,
      {{{},
        {1.0 / 5},
        {3.0 / 40, 9.0 / 40},
        {44.0 / 45, -56.0 / 15, 32.0 / 9},
        {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
        {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656}}},
      {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
  static const RungeKuttaTableau runge_kutta{4,
                                             {{{}, {1.0 / 2}, {0, 1.0 / 2}, {0, 0, 1}}},
                                             {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}};
  static const RungeKuttaTableau euler{1, {}, {1}};
  return method == FlowMethod::euler ? euler : method == FlowMethod::runge_kutta ? runge_kutta : dormand_prince;
}

/// Σ_j factor_j array_j; terms with a factor of 0 are left out.
template <class S>
struct ArraySum {
  std::array<S, RungeKuttaTableau::max_stages + 1> factor{};
  std::array<const S*, RungeKuttaTableau::max_stages + 1> array{};
  std::size_t terms = 0;

  void add(double by, const S* values) {
    if (by == 0) return;
    factor[terms] = static_cast<S>(by);
    array[terms++] = values;
  }
  /// base + the sum at tile c, whose numbers are from number i on; null: 0.
  template <class T, bool Whole>
  [[nodiscard]] T at(const TileAt<T, Whole>& c, const S* base, Index i) const {
    T sum = base != nullptr ? c.load(base + i) : T(S(0));
    for (std::size_t j = 0; j < terms; ++j) sum += T(factor[j]) * c.load(array[j] + i);
    return sum;
  }
  /// out = base + the sum for numbers [begin, end), by the calling thread. \param out  may be base or a term
  void write_range(Index begin, Index end, const S* base, S* out) const {
    for_tiles<S>(begin, end, [&]<class T>(auto i) { i.store(out + i, at(i, base, i)); });
  }
  /// The same for all numbers.
  void write(Execution execution, Index size, const S* base, S* out) const {
    parallel_for(execution, size, 2048, [&](Index begin, Index end) { write_range(begin, end, base, out); });
  }
};

}  // namespace detail

}  // namespace sheafnn
