/// \file
/// Logarithm of rotations, R ↦ φ with exp(X_φ) = R, its derivative, and the adjoint of that, for N = 2 to 5.
///
/// The principal logarithm: all rotation angles θ_i are in [0, π]. With ad Y = X_φ Y − Y X_φ and turns from the left,
///     log(exp(X_δ) R) = φ + J(φ) δ + O(δ²),   J = f(ad),   f(x) = x/(eˣ − 1).
/// N = 3 has a closed form by the quaternion of R, with J δ = δ − ½ φ×δ + c φ×(φ×δ), c = (1 − (θ/2) cot(θ/2))/θ². N = 4
/// has one by the pair of quaternions, R v = p v q*, where so(4) = so(3) + so(3). The case N = 5 is N = 4 after a
/// reflection that takes the fixed axis of R to the last one. Source: math: "Logarithm" (2.31).
///
/// Cut locus: a rotation with an angle π has several principal logarithms, and one of them is returned. Logarithms of
/// rotations near it may be far apart. J is the derivative of the branch and exists there, except for two angles π (N ≥ 4).
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/quaternion.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail {

using Vector3 = Column<double, 3>;

/// l = a u of a unit quaternion exp(l) = cos a + u sin a, a in [0, π]; at −1 one of many.
[[nodiscard]] inline Vector3 quaternion_log(const Column<double, 4>& q) {
  const double sine = std::hypot(q(1), q(2), q(3));
  if (sine == 0) return Vector3(q(0) < 0 ? 3.1415926535897932384626433832795 : 0, 0, 0);
  const double ratio = std::atan2(sine, q(0)) / sine;
  return {ratio * q(1), ratio * q(2), ratio * q(3)};
}

/// X_φ of R⁴ as v ↦ l v − v r for quaternions v, with purely imaginary l and r: θ = |l| ± |r|.
struct QuaternionPair {
  Vector3 left, right;

  [[nodiscard]] static QuaternionPair from(const RotationParameters<double, 4>& phi) {
    return {0.5 * Vector3(phi(5) + phi(0), phi(1) - phi(4), phi(3) + phi(2)),
            0.5 * Vector3(phi(5) - phi(0), -phi(4) - phi(1), phi(3) - phi(2))};
  }
  [[nodiscard]] RotationParameters<double, 4> parameters() const {
    RotationParameters<double, 4> phi;
    phi << left(0) - right(0), left(1) - right(1), left(2) - right(2), left(2) + right(2), -left(1) - right(1),
        left(0) + right(0);
    return phi;
  }
};

/// φ of a rotation of R⁴. Its 16 components in the orthogonal matrices v ↦ e_i v e_j* are the products p_i q_j.
[[nodiscard]] inline RotationParameters<double, 4> rotation_log_4(const SquareMatrix<double, 4>& r) {
  SquareMatrix<double, 4> products;
  const SquareMatrix<double, 4> unit = identity_matrix<double, 4>();
  int row = 0, column = 0;
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 4; ++i) {
      products(i, j) = 0.25 * inner_product(quaternion_pair_rotation<double>(unit.col(i), unit.col(j)), r);
      if (std::abs(products(i, j)) > std::abs(products(row, column))) row = i, column = j;
    }
  }
  Column<double, 4> p = products.col(column).normalized(), q = products.row(row).transpose().normalized();
  if (products(row, column) < 0) q = -q;
  const auto half_angle = [](const Column<double, 4>& z) {
    return std::atan2(std::hypot(z(1), z(2), z(3)), z(0));
  };
  // (p, q) and (−p, −q) are the same rotation: the pair with |l| + |r| ≤ π.
  if (half_angle(p) + half_angle(q) > 3.1415926535897932384626433832795) p = -p, q = -q;
  return QuaternionPair{quaternion_log(p), quaternion_log(q)}.parameters();
}

/// A unit vector v with A v = 0 to rounding, for a singular A: elimination with complete pivoting.
[[nodiscard]] inline Column<double, 5> null_vector(SquareMatrix<double, 5> a) {
  int order[5] = {0, 1, 2, 3, 4};  // of the columns
  int rank = 0;
  for (; rank < 4; ++rank) {
    int row = rank, column = rank;
    for (int j = rank; j < 5; ++j) {
      for (int i = rank; i < 5; ++i) {
        if (std::abs(a(i, j)) > std::abs(a(row, column))) row = i, column = j;
      }
    }
    if (a(row, column) == 0) break;
    a.row(rank).swap(a.row(row));
    a.col(rank).swap(a.col(column));
    std::swap(order[rank], order[column]);
    for (int i = rank + 1; i < 5; ++i) {
      const double factor = a(i, rank) / a(rank, rank);
      for (int j = rank + 1; j < 5; ++j) a(i, j) -= factor * a(rank, j);
    }
  }
  Column<double, 5> x = Column<double, 5>::Zero(), v;
  x(rank) = 1;
  for (int i = rank - 1; i >= 0; --i) {
    for (int j = i + 1; j <= rank; ++j) x(i) -= a(i, j) * x(j) / a(i, i);
  }
  for (int i = 0; i < 5; ++i) v(order[i]) = x(i);
  return v.normalized();
}

/// The symmetric reflection that takes the unit vector v to the last axis or minus it.
[[nodiscard]] inline SquareMatrix<double, 5> reflection_to_last(const Column<double, 5>& v) {
  Column<double, 5> w = v;
  w(4) += v(4) < 0 ? -1 : 1;
  return identity_matrix<double, 5>() - 2 / w.squaredNorm() * w * w.transpose();
}

/// (α/2) cot(α/2). \throws std::invalid_argument  α is a multiple of 2π but 0: exp is not invertible there
[[nodiscard]] inline double half_cotangent(double alpha) {
  const double half = 0.5 * alpha;
  if (half == 0) return 1;
  const double sine = std::sin(half);
  require(std::abs(sine) > 8 * std::numeric_limits<double>::epsilon() * std::abs(half), "rotation_log: phi",
          concat("a rotation with ", std::abs(alpha), " as an angle, or as a sum or difference of angles"),
          "the logarithm has no derivative where this number is a multiple of 2 pi");
  return half * std::cos(half) / sine;
}

[[nodiscard]] inline Vector3 cross(const Vector3& a, const Vector3& b) {
  return {a(1) * b(2) - a(2) * b(1), a(2) * b(0) - a(0) * b(2), a(0) * b(1) - a(1) * b(0)};
}

/// f(ad) for a Lie algebra with ad y = x × y.
class CrossDerivative {
 public:
  explicit CrossDerivative(const Vector3& x) : x_(x) {
    const double squared = x.squaredNorm();
    second_ = squared < 1e-8 ? 1.0 / 12 + squared / 720 : (1 - half_cotangent(std::sqrt(squared))) / squared;
  }
  [[nodiscard]] Vector3 operator()(const Vector3& y) const {
    const Vector3 once = cross(x_, y);
    return y - 0.5 * once + second_ * cross(x_, once);
  }

 private:
  Vector3 x_;
  double second_;
};

/// J(φ) of each N, ready for several δ.
template <int N>
class LogDerivative;

template <>
class LogDerivative<2> {
 public:
  explicit LogDerivative(const RotationParameters<double, 2>&) {}
  [[nodiscard]] RotationParameters<double, 2> operator()(const RotationParameters<double, 2>& y) const {
    return y;
  }
};

/// [X_φ, X_ψ] = X_{φ×ψ} in the coordinates φ.
template <>
class LogDerivative<3> : public CrossDerivative {
 public:
  using CrossDerivative::CrossDerivative;
};

/// [v ↦ l v, v ↦ m v] = (v ↦ 2 (l×m) v), and the same on the right.
template <>
class LogDerivative<4> {
 public:
  explicit LogDerivative(const QuaternionPair& x) : left_(2 * x.left), right_(2 * x.right) {}
  explicit LogDerivative(const RotationParameters<double, 4>& phi) : LogDerivative(QuaternionPair::from(phi)) {}
  [[nodiscard]] RotationParameters<double, 4> operator()(const RotationParameters<double, 4>& psi) const {
    const QuaternionPair y = QuaternionPair::from(psi);
    return QuaternionPair{left_(y.left), right_(y.right)}.parameters();
  }

 private:
  CrossDerivative left_, right_;
};

/// With X_φ = H (X ⊕ 0) H and H Y H = (B, y; −yᵀ, 0): J acts on B as for N = 4 and on y as f(X). For X = aL + bR, unit
/// l and r, LR has eigenvalue −1 where θ = a + b and 1 where θ = a − b.
template <>
class LogDerivative<5> {
 public:
  explicit LogDerivative(const RotationParameters<double, 5>& phi)
      : reflection_(reflection_to_last(null_vector(skew_matrix<double, 5>(phi)))),
        inner_(multiply(reflection_, multiply(skew_matrix<double, 5>(phi), reflection_)).topLeftCorner<4, 4>()),
        pair_(QuaternionPair::from(skew_parameters<double, 4>(inner_))),
        block_(pair_) {
    const double a = pair_.left.norm(), b = pair_.right.norm();
    const double sum = half_cotangent(a + b), difference = half_cotangent(a - b);
    Column<double, 4> p(0, 1, 0, 0), q = p;
    if (a > 0) p.tail<3>() = pair_.left / a;
    if (b > 0) q.tail<3>() = pair_.right / b;
    outer_ = 0.5 * (difference - sum) * quaternion_pair_rotation<double>(p, q) - 0.5 * inner_;
    for (int i = 0; i < 4; ++i) outer_(i, i) += 0.5 * (sum + difference);
  }
  [[nodiscard]] RotationParameters<double, 5> operator()(const RotationParameters<double, 5>& psi) const {
    const SquareMatrix<double, 5> y = multiply(reflection_, multiply(skew_matrix<double, 5>(psi), reflection_));
    SquareMatrix<double, 5> image = SquareMatrix<double, 5>::Zero();
    const SquareMatrix<double, 4> b = y.topLeftCorner<4, 4>();
    image.topLeftCorner<4, 4>() = skew_matrix<double, 4>(block_(skew_parameters<double, 4>(b)));
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < 4; ++i) image(i, 4) += outer_(i, j) * y(j, 4);
    }
    for (int i = 0; i < 4; ++i) image(4, i) = -image(i, 4);
    return skew_parameters<double, 5>(multiply(reflection_, multiply(image, reflection_)));
  }

 private:
  SquareMatrix<double, 5> reflection_;  ///< H
  SquareMatrix<double, 4> inner_;       ///< X
  QuaternionPair pair_;
  LogDerivative<4> block_;
  SquareMatrix<double, 4> outer_;  ///< f(X)
};

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// φ with exp(X_φ) = R and all rotation angles in [0, π] (N = 2: φ in [−π, π]).
/// math: "Logarithm" (2.31).
///
/// exp(X_φ) differs from R by rounding for every R. φ itself is as accurate as R for N ≤ 3, near I relative to ‖φ‖. For N ≥
/// 4 its error grows like ε/(2π − θ_i − θ_j) where two angles come near π.
///
/// \param options  how far from orthogonal R may be
/// \throws std::invalid_argument  R is not a rotation
template <class Scalar, int N>
[[nodiscard]] RotationParameters<Scalar, N> rotation_log(
    const SquareMatrix<Scalar, N>& r, const std::type_identity_t<SampleOptions<Scalar>>& options = {}) {
  static_assert(N >= 2 && N <= 5, "logarithms are offered for SO(2) to SO(5)");
  const SquareMatrix<double, N> rotation = orthonormalisation_step<double, N>(
      orthonormalised<Scalar, N>("rotation_log: r", r, options).template cast<double>());
  if constexpr (N == 2) {
    const double angle = std::atan2(rotation(1, 0) - rotation(0, 1), rotation(0, 0) + rotation(1, 1));
    return RotationParameters<Scalar, N>::Constant(static_cast<Scalar>(angle));
  } else if constexpr (N == 3) {
    const detail::Vector3 half = detail::quaternion_log(rotation_quaternion<double>(rotation));
    // φ turns about the axes z, −y, x.
    return (2 * detail::Vector3(half(2), -half(1), half(0))).template cast<Scalar>();
  } else if constexpr (N == 4) {
    return detail::rotation_log_4(rotation).template cast<Scalar>();
  } else {
    // R − I is reflected, not R: near I its digits would be lost in the digits of I. There the axis comes from the
    // skew part, since the diagonal has rounded squares of angles away.
    const SquareMatrix<double, N> rest = rotation - identity_matrix<double, N>();
    const bool near = rest.squaredNorm() < 0.01;
    const SquareMatrix<double, N> h =
        detail::reflection_to_last(detail::null_vector(near ? (rest - rest.transpose()).eval() : rest));
    const SquareMatrix<double, 4> block =
        identity_matrix<double, 4>() + multiply(h, multiply(rest, h)).template topLeftCorner<4, 4>();
    SquareMatrix<double, N> x = SquareMatrix<double, N>::Zero();
    x.template topLeftCorner<4, 4>() = skew_matrix<double, 4>(detail::rotation_log_4(block));
    return skew_parameters<double, N>(multiply(h, multiply(x, h))).template cast<Scalar>();
  }
}

/// J(φ), N(N−1)/2 square: log(exp(X_δ) R) = φ + J δ + O(δ²) at R = exp(X_φ). The derivative for turns from the right,
/// R exp(X_δ), is J(−φ) = Jᵀ.
///
/// \param phi  rotation_log(R), or any φ: the inverse of the derivative of exp
/// \throws std::invalid_argument  a θ_i ± θ_j (N = 3: the angle) is a multiple of 2π but 0
template <class Scalar, int N>
[[nodiscard]] SquareMatrix<Scalar, rotation_parameters<N>> rotation_log_jacobian(
    const RotationParameters<Scalar, N>& phi) {
  constexpr int P = rotation_parameters<N>;
  const detail::LogDerivative<N> derivative(phi.template cast<double>());
  SquareMatrix<Scalar, P> jacobian;
  for (int k = 0; k < P; ++k) {
    RotationParameters<double, N> delta = RotationParameters<double, N>::Zero();
    delta(k) = 1;
    jacobian.col(k) = derivative(delta).template cast<Scalar>();
  }
  return jacobian;
}

/// R̄, given the cotangent φ̄ of φ = rotation_log(R): ⟨R̄, dR⟩ = φ̄ᵀdφ for every dR = X_δ R. R̄ = ½ X_w R, w = Jᵀφ̄.
///
/// \throws std::invalid_argument  as rotation_log_jacobian
template <class Scalar, int N>
[[nodiscard]] SquareMatrix<Scalar, N> rotation_log_backward(
    const SquareMatrix<Scalar, N>& r, const std::type_identity_t<RotationParameters<Scalar, N>>& phi,
    const std::type_identity_t<RotationParameters<Scalar, N>>& cotangent) {
  const RotationParameters<double, N> back = -phi.template cast<double>();
  const RotationParameters<double, N> w = detail::LogDerivative<N>(back)(cotangent.template cast<double>());
  return Scalar(0.5) * multiply(skew_matrix<Scalar, N>(w.template cast<Scalar>()), r);
}

}  // namespace sheafnn::rotation
