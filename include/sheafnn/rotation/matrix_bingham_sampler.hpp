/// \file
/// Exact samples of the matrix Bingham distribution of SO(2) and SO(3) in the frames of A and B, by rejection.
///
/// For N = 2 the density is ∝ exp(−c sin²θ), a Bingham distribution of (cos θ, sin θ). The case N = 3 has the notation of
/// matrix_bingham_normaliser.hpp, with gaps α₁ ≥ α₂ of A and β of B (else A and B change their signs). The first row x has
/// density ∝ e^{−α₁β₁u − (α₁+α₂)β₂v} I₀ᵉ(y), 2y = α₂(β₁u + β₂(1 − v)). Since u ≥ x₂², v ≥ x₃² and I₀ᵉ(y) ≤ (1 + 2y)^{−1/2}, it is at
/// most (1 + α₂β₂)^{−1/2} times the Bingham density with concentrations 0, α₁β₁, α₁(β₁ + β₂) + ½α₂β₂. More than a fifth of the
/// proposals are accepted, as measured for gaps from 0 to 1e8. Given x, the second row is a Bingham sample on the plane. Math:
/// "Matrix Bingham distribution" (2.55).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/bingham_sampler.hpp"
#include "sheafnn/rotation/matrix_bingham_normaliser.hpp"
#include "sheafnn/rotation/scaled_bessel.hpp"

namespace sheafnn::detail {

template <int N>
class MatrixBinghamSampler;

template <>
class MatrixBinghamSampler<2> {
 public:
  MatrixBinghamSampler(const EigenvalueGaps<2>& a, const EigenvalueGaps<2>& b) : circle_({0, a(0) * b(0)}) {}

  /// S; two draws for each proposal.
  [[nodiscard]] SquareMatrix<double, 2> operator()(const Stream& stream, std::uint32_t id,
                                                   std::uint32_t first_draw) const {
    const Column<double, 2> x = circle_(stream, id, first_draw);
    SquareMatrix<double, 2> s;
    s << x(0), -x(1), x(1), x(0);
    return s;
  }

 private:
  BinghamSampler<2> circle_;
};

template <>
class MatrixBinghamSampler<3> {
 public:
  MatrixBinghamSampler(const EigenvalueGaps<3>& a, const EigenvalueGaps<3>& b)
      : reversed_(a(0) < a(1)),
        small_(std::min(a(0), a(1))),
        first_(reversed_ ? b(1) : b(0)),
        second_(reversed_ ? b(0) : b(1)),
        row_({0, std::max(a(0), a(1)) * first_,
              std::max(a(0), a(1)) * (first_ + second_) + 0.5 * small_ * second_}) {}

  /// S; two draws for each proposal of the first row, then two for each one of the second.
  ///
  /// \throws std::runtime_error  all draws of the id used up (probability below 2⁻³⁰⁰)
  [[nodiscard]] SquareMatrix<double, 3> operator()(const Stream& stream, std::uint32_t id,
                                                   std::uint32_t first_draw) const {
    const double scale = small_ * second_, bound = 0.5 * std::log1p(scale);
    for (std::uint32_t draw = first_draw; draw + 1 < 4096; draw += 2) {
      const auto proposal = row_.propose(stream, id, draw);
      const Column<double, 3>& x = proposal.x;
      const Plane plane(x, first_, second_);
      const double y = small_ * plane.half_length;
      const double third = x(2) * x(2);
      const double log_ratio = bound + scale * (0.5 * third - plane.v) + std::log(scaled_bessel_i0(y));
      if (!(proposal.log_uniform < proposal.log_acceptance + log_ratio)) continue;
      const Column<double, 2> turn = BinghamSampler<2>({0, 2 * y})(stream, id, draw + 2);
      SquareMatrix<double, 3> s;
      const Column<double, 3> other = turn(0) * plane.high + turn(1) * plane.low;
      s.row(0) = x.transpose();
      s.row(1) = other.transpose();
      s.row(2) = x.cross(other).transpose();
      return reversed_ ? SquareMatrix<double, 3>(s.reverse()) : s;
    }
    BinghamSampler<3>::throw_no_proposal();
  }

 private:
  /// diag(β₁ + β₂, β₂, 0) on the plane orthogonal to a unit vector x.
  struct Plane {
    Column<double, 3> high, low;  ///< unit eigenvectors of λ₊ and λ₋
    double half_length;           ///< (λ₊ − λ₋)/2
    double v;                     ///< λ₋/β₂, without cancellation

    Plane(const Column<double, 3>& x, double first, double second) {
      int least = 0;
      for (int i = 1; i < 3; ++i) {
        if (std::abs(x(i)) < std::abs(x(least))) least = i;
      }
      const Column<double, 3> e = x.cross(Column<double, 3>::Unit(least)).normalized();
      const Column<double, 3> f = x.cross(e);
      const double width = first + second;
      const double ee = width * e(0) * e(0) + second * e(1) * e(1);
      const double ff = width * f(0) * f(0) + second * f(1) * f(1);
      const double ef = width * e(0) * f(0) + second * e(1) * f(1);
      half_length = std::hypot(0.5 * (ee - ff), ef);
      const double angle = 0.5 * std::atan2(2 * ef, ee - ff);
      high = std::cos(angle) * e + std::sin(angle) * f;
      low = std::cos(angle) * f - std::sin(angle) * e;
      const double largest = 0.5 * (ee + ff) + half_length;  // λ₊ λ₋ = (β₁ + β₂)β₂ x₃²
      v = largest > 0 ? width / largest * x(2) * x(2) : 0;
    }
  };

  bool reversed_;          ///< the frames have their axes in reverse order
  double small_;           ///< α₂
  double first_, second_;  ///< β₁, β₂
  BinghamSampler<3> row_;
};

}  // namespace sheafnn::detail
