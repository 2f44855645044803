/// \file
/// Explicit Runge–Kutta methods for dX/dt = f(X),
///
///     X_i = X + h Σ_{j<i} a_ij K_j,   K_i = f(X_i),   X⁺ = X + h Σ_i b_i K_i,
///
/// and the sums of arrays that their steps, and the adjoints of these, are made of (math: "Continuous-time
/// diffusion" (3.32)).
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/kernels/flow.hpp"
#include "sheafnn/layers/flow_options.hpp"

namespace sheafnn::detail {

/// Coefficients of a method.
struct RungeKuttaTableau {
  int stages = 0;
  double a[kernels::max_stages][kernels::max_stages] = {};  ///< a_ij, j < i
  double b[kernels::max_stages] = {};
  double error[kernels::max_stages + 1] = {};  ///< of an error estimate, h Σ_i error_i K_i with K_{s+1} = f(X⁺)
};

/// The coefficients of a method.
[[nodiscard]] inline const RungeKuttaTableau& tableau(FlowMethod method) {
  // The method of order 5; its seventh stage, f(X⁺), serves the error estimate alone. Source: Dormand, Prince (1980), "A
  // family of embedded Runge–Kutta formulae".
  static const RungeKuttaTableau dormand_prince{
      6,
      {{},
       {1.0 / 5},
       {3.0 / 40, 9.0 / 40},
       {44.0 / 45, -56.0 / 15, 32.0 / 9},
       {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
       {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656}},
      {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84},
      {35.0 / 384 - 5179.0 / 57600, 0, 500.0 / 1113 - 7571.0 / 16695, 125.0 / 192 - 393.0 / 640,
       -2187.0 / 6784 + 92097.0 / 339200, 11.0 / 84 - 187.0 / 2100, -1.0 / 40}};
  static const RungeKuttaTableau runge_kutta{4,
                                             {{}, {1.0 / 2}, {0, 1.0 / 2}, {0, 0, 1}},
                                             {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}};
  static const RungeKuttaTableau euler{1, {}, {1}};
  return method == FlowMethod::euler ? euler : method == FlowMethod::runge_kutta ? runge_kutta : dormand_prince;
}

/// The sum over a CPU's arrays.
template <class S>
struct ArraySum : kernels::StageSum<S> {
  /// base + the sum at tile c, whose values begin at element i; null: 0.
  template <class T, bool Whole>
  [[nodiscard]] T at(const TileAt<T, Whole>& c, const S* base, Index i) const {
    return kernels::StageSum<S>::at(base != nullptr ? c.load(base + i) : T(S(0)),
                                    [&](const S* from) SHEAFNN_INLINE_LAMBDA { return c.load(from + i); });
  }
  /// out = base + the sum for elements [begin, end), by the calling thread. \param out  may be base or a term
  void write_range(Index begin, Index end, const S* base, S* out) const {
    for_tiles<S>(begin, end, [&]<class T>(auto i) { i.store(out + i, at(i, base, i)); });
  }
  /// The same for all elements.
  void write(Execution execution, Index size, const S* base, S* out) const {
    parallel_for(execution, size, 2048, [&](Index begin, Index end) { write_range(begin, end, base, out); });
  }
};

/// X_i − X from the slopes K_j = slope(j), or X⁺ − X for i = stages.
template <class S, class Slope>
[[nodiscard]] ArraySum<S> stage_sum(const RungeKuttaTableau& method, double h, int i, const Slope& slope) {
  ArraySum<S> r;
  for (int j = 0; j < i; ++j) r.add(h * (i < method.stages ? method.a[i][j] : method.b[j]), slope(j));
  return r;
}
/// The error estimate of a step of length 1 from the slopes.
template <class S, class Slope>
[[nodiscard]] ArraySum<S> error_sum(const RungeKuttaTableau& method, const Slope& slope) {
  ArraySum<S> r;
  for (int j = 0; j <= method.stages; ++j) r.add(method.error[j], slope(j));
  return r;
}
/// K̄_i from x̄⁺ and X̄_l = stage_bar(l), l > i (3.34).
template <class S, class StageBar>
[[nodiscard]] ArraySum<S> slope_bar_sum(const RungeKuttaTableau& method, double h, int i, const S* end_bar,
                                        const StageBar& stage_bar) {
  ArraySum<S> r;
  r.add(h * method.b[i], end_bar);
  for (int l = i + 1; l < method.stages; ++l) r.add(h * method.a[l][i], stage_bar(l));
  return r;
}
/// x̄ − x̄⁺ from all X̄_l.
template <class S, class StageBar>
[[nodiscard]] ArraySum<S> start_bar_sum(const RungeKuttaTableau& method, const StageBar& stage_bar) {
  ArraySum<S> r;
  for (int l = 0; l < method.stages; ++l) r.add(1, stage_bar(l));
  return r;
}

}  // namespace sheafnn::detail
