/// \file
/// Exponential and Cayley rotations of large parameters: exact values in every dimension, derivatives, packs, refusals.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/exponential_jacobian.hpp"
#include "sheafnn/rotation/inverse_cayley_transform.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/skew_functions.hpp"
#include "sheafnn/rotation/tangent_normal.hpp"

namespace test_rotation_large {
namespace {

using namespace rotation_checks;
using sheafnn::rotation::rotation_parameters;
using sheafnn::rotation::RotationParameters;
using sheafnn::SquareMatrix;

template <class S>
constexpr double unit = static_cast<double>(std::numeric_limits<S>::epsilon());

/// X = Q diag(θ_1 J, …) Q with the reflection Q = I − 2/N 1 1ᵀ, and functions of it. N Q has integers, so that X has integers
/// times `size` where θ_j is an integer times N² size: X is exact.
template <int N>
struct Known {
  SquareMatrix<long double, N> basis;
  long double angle[N / 2];

  long double size_;  ///< a power of 2

  explicit Known(double size) : size_(size) {
    for (int j = 0; j < N; ++j) {
      for (int i = 0; i < N; ++i) basis(i, j) = (i == j ? 1.0L : 0.0L) - 2.0L / N;
    }
    for (int j = 0; j < N / 2; ++j) angle[j] = static_cast<long double>(size) * (N * N * (j == 1 ? 1 : 3 + j));
  }
  /// Q diag(c_j I + s_j J, 1) Q of f(θ_j) = (c_j, s_j).
  template <class F>
  [[nodiscard]] SquareMatrix<long double, N> of(const F& f, long double last) const {
    SquareMatrix<long double, N> d = SquareMatrix<long double, N>::Zero();
    if (N % 2 == 1) d(N - 1, N - 1) = last;
    for (int j = 0; j < N / 2; ++j) {
      const auto [c, s] = f(angle[j]);
      d(2 * j, 2 * j) = d(2 * j + 1, 2 * j + 1) = c;
      d(2 * j + 1, 2 * j) = s;
      d(2 * j, 2 * j + 1) = -s;
    }
    return basis * d * basis;
  }
  template <class S>
  [[nodiscard]] RotationParameters<S, N> phi() const {
    const SquareMatrix<long double, N> x =
        of([](long double theta) { return std::pair<long double, long double>(0, theta); }, 0);
    RotationParameters<S, N> r;
    int k = 0;
    for (int j = 0; j < N; ++j) {
      for (int i = j + 1; i < N; ++i) r(k++) = static_cast<S>(std::round(x(i, j) / size_) * size_);
    }
    return r;
  }
  [[nodiscard]] long double largest() const {
    long double r = 0;
    for (const long double theta : angle) r = std::max(r, theta);
    return r;
  }
  [[nodiscard]] SquareMatrix<long double, N> exponential() const {
    return of([](long double theta) { return std::pair(std::cos(theta), std::sin(theta)); }, 1);
  }
  [[nodiscard]] SquareMatrix<long double, N> cayley() const {
    return of(
        [](long double theta) {
          const long double t = theta > 1 ? 1 / theta : theta, sign = theta > 1 ? -1 : 1;
          return std::pair(sign * (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t));
        },
        1);
  }
};

template <class S, int N>
double distance(const SquareMatrix<S, N>& a, const SquareMatrix<long double, N>& b) {
  return static_cast<double>((a.template cast<long double>() - b).norm());
}

template <class S, int N>
void check_values() {
  CAPTURE(N);
  for (const int power : {-1000, -600, -100, -20, -6, -5, -4, -3, -2, 0, 3, 7, 12, 20, 40, 100, 500, 1000}) {
    CAPTURE(power);
    if (std::abs(power) > std::numeric_limits<S>::max_exponent - 24) continue;
    const Known<N> known(std::ldexp(1.0, power));
    const RotationParameters<S, N> phi = known.template phi<S>();
    const SquareMatrix<S, N> x = sheafnn::rotation::skew_matrix<S, N>(phi);
    const double theta = static_cast<double>(known.largest());

    const SquareMatrix<S, N> e = sheafnn::rotation::rotation_exp<S, N>(x);
    CHECK(static_cast<double>(sheafnn::rotation::orthogonality_defect<S, N>(e)) <=
          8 * N * unit<S> * (1 + std::min(theta, 16.0)));
    CHECK(static_cast<double>(sheafnn::detail::pivoted_determinant<S, N>(e)) > 0.99);
    const double digits = N == 2 || (N == 3 && theta * unit<S> < 0.1) ? std::min(theta, 16.0) : theta;
    const double error = distance<S, N>(e, known.exponential());
    CHECK((error <= 8 * N * unit<S> * (1 + digits) || (N > 2 && digits * unit<S> > 0.1)));

    const SquareMatrix<S, N> c = sheafnn::rotation::rotation_cayley<S, N>(x);
    const double condition = std::min(theta * theta, 16.0);  // of elimination, where it is still used
    CHECK(distance<S, N>(c, known.cayley()) <= 8 * N * unit<S> * (1 + condition));
    CHECK(distance<S, N>(sheafnn::rotation::cayley_transform<S, N>(x), known.cayley()) <=
          8 * N * unit<S> * (1 + condition));
    CHECK(static_cast<double>(sheafnn::rotation::orthogonality_defect<S, N>(c)) <= 8 * N * unit<S> * (1 + condition));
  }
}

/// Largest numbers in every entry, one infinite entry, one NaN.
template <class S, int N>
void check_limits() {
  CAPTURE(N);
  constexpr int P = rotation_parameters<N>;
  constexpr S most = std::numeric_limits<S>::max();
  for (const S size : {most, most / 2, std::sqrt(most), std::numeric_limits<S>::denorm_min()}) {
    RotationParameters<S, N> phi;
    for (int k = 0; k < P; ++k) phi(k) = k % 3 == 1 ? -size : size;
    const SquareMatrix<S, N> x = sheafnn::rotation::skew_matrix<S, N>(phi);
    const double bound = 64 * N * unit<S>;
    CHECK(static_cast<double>(
              sheafnn::rotation::orthogonality_defect<S, N>(sheafnn::rotation::rotation_exp<S, N>(x))) <= bound);
    CHECK(static_cast<double>(sheafnn::rotation::orthogonality_defect<S, N>(
              sheafnn::rotation::rotation_cayley<S, N>(x))) <= bound);
    CHECK(static_cast<double>(sheafnn::rotation::orthogonality_defect<S, N>(
              sheafnn::rotation::cayley_transform<S, N>(x))) <= bound);
    RotationParameters<S, N> gradient = RotationParameters<S, N>::Zero();
    const SquareMatrix<S, N> cotangent = SquareMatrix<S, N>::Constant(S(1)) + sheafnn::math::identity_matrix<S, N>();
    sheafnn::rotation::exponential_rotation_backward<S, N>(phi, cotangent, gradient);
    sheafnn::rotation::cayley_rotation_backward<S, N>(phi, cotangent, gradient);
    CHECK(std::isfinite(sheafnn::rotation::exponential_log_jacobian_backward<S, N>(phi, S(1), gradient)));
    CHECK(gradient.allFinite());
    for (const S wrong : {std::numeric_limits<S>::infinity(), std::numeric_limits<S>::quiet_NaN()}) {
      RotationParameters<S, N> bad = phi;
      bad(P - 1) = wrong;
      CHECK(!sheafnn::rotation::exponential_rotation<S, N>(bad).allFinite());
      CHECK(!sheafnn::rotation::cayley_rotation<S, N>(bad).allFinite());
    }
  }
}

/// Adjoints and the volume of exp along every coordinate, about and above the length where the normal form takes over.
template <int N>
void check_derivatives() {
  CAPTURE(N);
  constexpr int P = rotation_parameters<N>;
  std::mt19937 engine(700 + N);
  for (const double size : {3.9, 4.1, 14.3, 14.5, 60.0, 400.0}) {
    CAPTURE(size);
    RotationParameters<double, N> phi = random_matrix<P, 1>(engine);
    phi *= size / phi.norm();
    const SquareMatrix<double, N> cotangent = random_matrix<N, N>(engine);
    const double bound = difference_bound * cotangent.norm() * (1 + size);
    RotationParameters<double, N> e = RotationParameters<double, N>::Constant(0.25), c = e, v = e;
    sheafnn::rotation::exponential_rotation_backward<double, N>(phi, cotangent, e);
    sheafnn::rotation::cayley_rotation_backward<double, N>(phi, cotangent, c);
    const double volume = sheafnn::rotation::exponential_log_jacobian_backward<double, N>(phi, 1.5, v);
    CHECK(volume == sheafnn::rotation::exponential_log_jacobian<double, N>(phi));
    for (int k = 0; k < P; ++k) {
      const double e_expected = central_difference(phi(k), [&] {
        return frobenius(cotangent, sheafnn::rotation::exponential_rotation<double, N>(phi));
      });
      const double c_expected = central_difference(phi(k), [&] {
        return frobenius(cotangent, sheafnn::rotation::cayley_rotation<double, N>(phi));
      });
      CHECK(std::abs(e(k) - 0.25 - e_expected) <= bound);
      CHECK(std::abs(c(k) - 0.25 - c_expected) <= bound);
    }
    // exp is an isometry along φ: volumes are compared with the product of the derivative's singular values.
    Eigen::Matrix<double, N * N, P> rows;
    for (int k = 0; k < N * N; ++k) {
      SquareMatrix<double, N> entry = SquareMatrix<double, N>::Zero();
      entry.data()[k] = 1;
      RotationParameters<double, N> row = RotationParameters<double, N>::Zero();
      sheafnn::rotation::exponential_rotation_backward<double, N>(phi, entry, row);
      rows.row(k) = row.transpose() / std::sqrt(2.0);
    }
    const Eigen::Matrix<double, P, P> gram = rows.transpose() * rows;
    const double determinant = sheafnn::detail::pivoted_determinant<double, P>(gram);
    if (determinant > 1e-6) CHECK(std::abs(0.5 * std::log(determinant) - volume) <= 1e-8 * (1 + size));
  }
}

/// Near and far lanes side by side.
template <class T, int N>
void check_packs() {
  CAPTURE(N);
  using S = sheafnn::math::scalar_of_t<T>;
  constexpr int P = rotation_parameters<N>;
  std::mt19937 engine(800 + N);
  std::vector<Eigen::Matrix<double, P, 1>> lanes;
  std::vector<SquareMatrix<double, N>> cotangents;
  for (int l = 0; l < lane_count<T>; ++l) {
    Eigen::Matrix<double, P, 1> phi = random_matrix<P, 1>(engine);
    lanes.push_back(phi * (l % 3 == 2 ? std::ldexp(1.0, 4 * l) : 0.5 * l));
    cotangents.push_back(random_matrix<N, N>(engine));
  }
  const auto phi = from_lanes<T, P, 1>(lanes);
  const auto cotangent = from_lanes<T, N, N>(cotangents);
  RotationParameters<T, N> e_slope = RotationParameters<T, N>::Constant(T(1)), c_slope = e_slope,
                           v_slope = e_slope;
  const auto e = sheafnn::rotation::exponential_rotation<T, N>(phi);
  const auto c = sheafnn::rotation::cayley_rotation<T, N>(phi);
  sheafnn::rotation::exponential_rotation_backward<T, N>(phi, cotangent, e_slope);
  sheafnn::rotation::cayley_rotation_backward<T, N>(phi, cotangent, c_slope);
  const T v = sheafnn::rotation::exponential_log_jacobian_backward<T, N>(phi, T(2), v_slope);
  for (int l = 0; l < lane_count<T>; ++l) {
    CAPTURE(l);
    const RotationParameters<S, N> own = lanes[static_cast<std::size_t>(l)].template cast<S>();
    const SquareMatrix<S, N> own_cotangent = cotangents[static_cast<std::size_t>(l)].template cast<S>();
    RotationParameters<S, N> e_own = RotationParameters<S, N>::Constant(S(1)), c_own = e_own, v_own = e_own;
    sheafnn::rotation::exponential_rotation_backward<S, N>(own, own_cotangent, e_own);
    sheafnn::rotation::cayley_rotation_backward<S, N>(own, own_cotangent, c_own);
    const double v_value =
        static_cast<double>(sheafnn::rotation::exponential_log_jacobian_backward<S, N>(own, S(2), v_own));
    const double bound = 64 * N * N * unit<S>;
    const auto close = [&](const auto& a, const auto& b) {
      CHECK((a - b.template cast<double>()).norm() <= bound * (1 + static_cast<double>(b.norm())));
    };
    close(one_lane(e, l), sheafnn::rotation::exponential_rotation<S, N>(own));
    close(one_lane(c, l), sheafnn::rotation::cayley_rotation<S, N>(own));
    close(one_lane(e_slope, l), e_own);
    close(one_lane(c_slope, l), c_own);
    // This slope has poles, beside which the last digits of φ decide much of it: more than the bound, in float.
    double decided = 0;
    if (v_own.norm() > 32) {
      const auto slope = [](const RotationParameters<double, N>& at) {
        RotationParameters<double, N> r = RotationParameters<double, N>::Constant(1);
        sheafnn::rotation::exponential_log_jacobian_backward<double, N>(at, 2.0, r);
        return r;
      };
      const RotationParameters<double, N> phi_own = own.template cast<double>();
      decided = (slope(phi_own * (1 + 64 * unit<S>)) - slope(phi_own)).norm();
    }
    CHECK((one_lane(v_slope, l) - v_own.template cast<double>()).norm() <=
          bound * (1 + static_cast<double>(v_own.norm())) + decided);
    CHECK(std::abs(get_lane(v, l) - v_value) <= bound * (1 + std::abs(v_value)));
  }
}

struct Reference {
  double size, values[3];  ///< entries (1, 0), (N − 1, 1), (N − 1, N − 1)
};
/// φ_k = size ((7k + 3) mod 11 − 4.5)/8, values with mpmath.
template <int N, class F>
void check_references(const F& f, const std::vector<Reference>& references, bool conditioned) {
  CAPTURE(N);
  for (const Reference& reference : references) {
    CAPTURE(reference.size);
    RotationParameters<double, N> phi;
    for (int k = 0; k < rotation_parameters<N>; ++k) phi(k) = reference.size * (((7 * k + 3) % 11) - 4.5) / 8;
    const SquareMatrix<double, N> r = f(sheafnn::rotation::skew_matrix<double, N>(phi));
    const double bound = 4 * N * epsilon * (1 + (conditioned ? phi.norm() : 0));
    CHECK(std::abs(r(1, 0) - reference.values[0]) <= bound);
    CHECK(std::abs(r(N - 1, 1) - reference.values[1]) <= bound);
    CHECK(std::abs(r(N - 1, N - 1) - reference.values[2]) <= bound);
  }
}

template <int N>
SquareMatrix<double, N> exponential(const SquareMatrix<double, N>& x) {
  return sheafnn::rotation::rotation_exp<double, N>(x);
}
template <int N>
SquareMatrix<double, N> cayley(const SquareMatrix<double, N>& x) {
  return sheafnn::rotation::cayley_transform<double, N>(x);
}

}  // namespace

TEST_CASE("exponential and Cayley rotations of any size against values with mpmath") {
  check_references<3>(exponential<3>,
                      {{0x1p6, {-0.4656616596984130423054, 0.4656616596984130423054, -0.8699171620108633027413}},
                       {0x1p20, {-0.5819978577188327389305, 0.5819978577188327389305, -0.4713158729003597473347}},
                       {0x1p45, {-0.2381874649089884998532, 0.2381874649089884998532, -0.6205070898926946337937}}},
                      false);
  check_references<4>(exponential<4>,
                      {{0x1p6, {-0.3911771941405882837793, -0.4722536004921476350684, 0.7052825229955214847132}},
                       {0x1p20,
                        {-0.003287792940189242766919, 0.5274557706825946321352, 0.7302173199127374664971}}},
                      true);
  check_references<5>(exponential<5>,
                      {{0x1p6, {-0.2144846149120017793956, -0.1995898146751584204342, 0.9494667181028228556657}},
                       {0x1p20,
                        {-0.4623287614015529230136, -0.07365863466727691759422, 0.5384763173565752621035}}},
                      true);
  check_references<8>(exponential<8>,
                      {{0x1p6, {0.0004996692633173927335124, -0.5035875330657853232598, 0.1379725301179638317137}},
                       {0x1p20, {0.1283434159551986310612, 0.1109881845407370760976, 0.920823921333005607945}}},
                      true);
  check_references<3>(cayley<3>,
                      {{0x1p6, {-0.4853932584269662921348, 0.4853932584269662921348, -0.8696629213483146067416}},
                       {0x1p20, {-0.4748208025368620299779, 0.4748208025368620299779, -0.8705035971191689888023}},
                       {0x1p1000,
                        {-0.4748201438848920863309, 0.4748201438848920863309, -0.8705035971223021582734}}},
                      false);
  check_references<4>(
      cayley<4>,
      {{0x1p6, {-0.004020156650431930259517, 0.04701280185022978228047, -0.9985856482345828674172}},
       {0x1p20, {-2.608330485875763096963e-7, 0.000002869174147813555576589, -0.9999999999947273358512}},
       {0x1p1000, {-2.552515879666923429716e-302, 2.807767467633615772688e-301, -1.0}}},
      false);
  check_references<5>(
      cayley<5>,
      {{0x1p6, {-0.9219037278680544176727, -0.05477859829927054321729, -0.9977318388702226155403}},
       {0x1p20, {-0.915910515880495200016, -0.03550156481992490025168, -0.9986450231667002478784}},
       {0x1p60, {-0.9159101379366412837778, -0.03550039294328067096636, -0.9986450231701037912252}},
       {0x1p1000, {-0.9159101379366412834341, -0.03550039294328066990054, -0.9986450231701037912252}}},
      false);
  check_references<8>(
      cayley<8>,
      {{0x1p6, {-0.03374239095829336327921, -0.0006117779756590244235133, -0.9970839117802051570018}},
       {0x1p20, {-0.000001801660923130336176207, 9.103900472152579804217e-8, -0.9999999999890106981682}}},
      false);
}

TEST_CASE_TEMPLATE("rotations of parameters of every size and dimension", S, double, float) {
  check_values<S, 2>();
  check_values<S, 3>();
  check_values<S, 4>();
  check_values<S, 5>();
  check_values<S, 6>();
  check_values<S, 7>();
  check_values<S, 8>();
  check_limits<S, 2>();
  check_limits<S, 3>();
  check_limits<S, 4>();
  check_limits<S, 5>();
  check_limits<S, 6>();
  check_limits<S, 7>();
  check_limits<S, 8>();
}

TEST_CASE("derivatives of rotations of large parameters") {
  check_derivatives<2>();
  check_derivatives<3>();
  check_derivatives<4>();
  check_derivatives<5>();
  check_derivatives<6>();
  check_derivatives<7>();
}

TEST_CASE("packs with small and large lanes") {
  check_packs<sheafnn::math::Pack<double, 8>, 2>();
  check_packs<sheafnn::math::Pack<double, 8>, 3>();
  check_packs<sheafnn::math::Pack<float, 16>, 3>();
  check_packs<sheafnn::math::Pack<double, 8>, 4>();
  check_packs<sheafnn::math::Pack<float, 16>, 5>();
  check_packs<sheafnn::math::Pack<double, 8>, 6>();
}

TEST_CASE("a turn in one coordinate plane keeps all digits, beside a small one in another") {
  for (const double large : {1e5, 1e8, 1e15, 1e300, 1.7e308}) {
    CAPTURE(large);
    SquareMatrix<double, 5> x = SquareMatrix<double, 5>::Zero();
    x(3, 0) = large;
    x(0, 3) = -large;
    x(4, 2) = 0.5;
    x(2, 4) = -0.5;
    const SquareMatrix<double, 5> e = sheafnn::rotation::rotation_exp<double, 5>(x),
                                  c = sheafnn::rotation::rotation_cayley<double, 5>(x);
    CHECK(std::abs(e(0, 0) - std::cos(large)) <= 4 * epsilon);
    CHECK(std::abs(e(3, 0) - std::sin(large)) <= 4 * epsilon);
    CHECK(std::abs(e(4, 2) - std::sin(0.5)) <= 4 * epsilon);
    CHECK(e(1, 1) == 1);
    CHECK(std::abs(c(4, 2) - 0.8) <= 4 * epsilon);
    CHECK(std::abs(c(0, 0) + 1) <= 4 * epsilon + 2 / large / large);
  }
}

/// 2^60 in one plane makes a half turn there, to 2^-59; the other axes turn as if that plane did not exist.
TEST_CASE("one large entry does not round the others away") {
  constexpr double small[10] = {0.5, -0.25, 1.5, 0.75, -1.25, 2, 0.375, -0.625, 1, -1.75};
  for (int axis = 0; axis < 5; ++axis) {
    for (int other = axis + 1; other < 5; ++other) {
      CAPTURE(axis);
      CAPTURE(other);
      RotationParameters<double, 5> phi;
      for (int k = 0; k < 10; ++k) phi(k) = small[k];
      phi(sheafnn::detail::column_by_column<5>(other, axis)) = 0x1p60;
      const SquareMatrix<double, 5> c =
          sheafnn::rotation::cayley_transform<double, 5>(sheafnn::rotation::skew_matrix<double, 5>(phi));
      CHECK(std::abs(c(axis, axis) + 1) <= 32 * epsilon);
      CHECK(std::abs(c(other, other) + 1) <= 32 * epsilon);
      SquareMatrix<double, 3> rest, found;
      int axes[3], count = 0;
      for (int i = 0; i < 5; ++i) {
        if (i != axis && i != other) axes[count++] = i;
      }
      const SquareMatrix<double, 5> x = sheafnn::rotation::skew_matrix<double, 5>(phi);
      for (int j = 0; j < 3; ++j) {
        for (int i = 0; i < 3; ++i) {
          rest(i, j) = x(axes[i], axes[j]);
          found(i, j) = c(axes[i], axes[j]);
        }
      }
      CHECK((sheafnn::rotation::cayley_transform<double, 3>(rest) - found).norm() <= 32 * epsilon);
    }
  }
}

TEST_CASE("skew-symmetric matrices from outside are checked") {
  SquareMatrix<double, 3> a = SquareMatrix<double, 3>::Zero();
  a(2, 1) = std::nan("");
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::rotation_exp<double, 3>(a)),
                       "rotation_exp: A(2, 1): nan is not allowed; entries must be finite", std::invalid_argument);
  a(2, 1) = -std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::rotation_cayley<double, 3>(a)),
                       "rotation_cayley: A(2, 1): -inf is not allowed; entries must be finite",
                       std::invalid_argument);
  a(2, 1) = 0.25;
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::rotation_exp<double, 3>(a)),
                       "rotation_exp: A + A^T (2, 1): 0.25 is not allowed; must be zero", std::invalid_argument);
  a = SquareMatrix<double, 3>::Constant(std::numeric_limits<double>::max());
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::rotation_exp<double, 3>(a)), std::invalid_argument);
}

TEST_CASE("normal samples in the tangent space with large deviations are rotations with a density") {
  RotationParameters<double, 4> sigma = RotationParameters<double, 4>::Constant(1e9), noise;
  noise << 0.3, -1.2, 0.7, 2.1, -0.4, 0.9;
  const SquareMatrix<double, 4> y =
      sheafnn::rotation::tangent_normal_sample<double, 4>(sheafnn::math::identity_matrix<double, 4>(), sigma, noise);
  CHECK(sheafnn::rotation::orthogonality_defect<double, 4>(y) <= 64 * epsilon);
  CHECK(std::isfinite(sheafnn::rotation::tangent_normal_logpdf<double, 4>(sigma, noise)));
}

}  // namespace test_rotation_large
