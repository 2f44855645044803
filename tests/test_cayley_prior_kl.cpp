/// \file
/// KL of one Cayley distribution to another in closed form: against quadrature, limits, central differences,
/// packs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/cayley_divergence.hpp"
#include "sheafnn/rotation/cayley_kl.hpp"
#include "sheafnn/rotation/cayley_prior_kl.hpp"
#include "sheafnn/rotation/exponential.hpp"

namespace test_cayley_prior_kl {
namespace {

using namespace rotation_checks;
using sheafnn::rotation::CayleyDistribution;
using sheafnn::rotation::CayleyPriorKl;
using sheafnn::math::Pack;
using sheafnn::SquareMatrix;

constexpr double kappas[] = {0, 1e-9, 1e-4, 0.0127, 0.2, 0.49, 0.5, 0.51, 0.7, 0.7000001, 0.951, 0.98};
constexpr double angles[] = {0, 1e-9, 1e-4, 0.1, 1, 2, 3, 3.1415, std::numbers::pi};

/// A turn by `angle` about an axis that is none of the coordinate axes.
template <int N>
SquareMatrix<double, N> tilted_turn(double angle) {
  std::mt19937 engine(50 + N);
  Eigen::HouseholderQR<SquareMatrix<double, N>> qr(random_matrix<N, N>(engine));
  const SquareMatrix<double, N> q = qr.householderQ();
  return q * turn<N>(angle) * q.transpose();
}

/// Of kl_divergence, whose quadrature is relative to KL as well.
constexpr double quadrature_bound = 1e-12;

template <int N>
void check_against_quadrature() {
  for (const double kappa : kappas) {
    for (const double prior_kappa : kappas) {
      for (const double angle : angles) {
        const SquareMatrix<double, N> m = turn<N>(angle);
        const SquareMatrix<double, N> prior_m = SquareMatrix<double, N>::Identity();
        const double value = sheafnn::rotation::cayley_prior_kl<double, N>(m, kappa, prior_m, prior_kappa);
        const double expected = sheafnn::rotation::kl_divergence(CayleyDistribution<N>(m, kappa),
                                                                 CayleyDistribution<N>(prior_m, prior_kappa));
        CAPTURE(N);
        CAPTURE(kappa);
        CAPTURE(prior_kappa);
        CAPTURE(angle);
        CHECK(value >= 0);
        CHECK(std::abs(value - expected) <= quadrature_bound * expected);
      }
    }
  }
}

/// M and M₀ in general position: their closed form sees ‖M − M₀‖ only.
template <int N>
void check_general_matrices() {
  std::mt19937 engine(60 + N);
  for (const double angle : angles) {
    const SquareMatrix<double, N> prior_m = sheafnn::rotation::exponential_rotation<double, N>(
        random_matrix<sheafnn::rotation::rotation_parameters<N>, 1>(engine, 2));
    const SquareMatrix<double, N> m = tilted_turn<N>(angle) * prior_m;
    const double value = sheafnn::rotation::cayley_prior_kl<double, N>(m, 0.6, prior_m, 0.4);
    const double expected =
        sheafnn::rotation::cayley_prior_kl<N>(0.6, 0.4, std::sin(angle / 2) * std::sin(angle / 2)).value;
    CAPTURE(N);
    CAPTURE(angle);
    CHECK(std::abs(value - expected) <= 64 * epsilon * expected);
  }
}

/// Third derivatives in κ grow like (1 − κ)⁻³.
double growth(double kappa) { return 1 + std::pow(1 - kappa, -3); }

template <int N>
void check_gradient() {
  std::mt19937 engine(70 + N);
  for (const double angle : {1e-3, 0.5, 1.5, 3.0}) {
    for (double kappa : {0.0127, 0.3, 0.5, 0.8}) {
      for (const double prior_kappa : {0.0, 0.02, 0.3, 0.8}) {
        const SquareMatrix<double, N> prior_m = sheafnn::rotation::exponential_rotation<double, N>(
            random_matrix<sheafnn::rotation::rotation_parameters<N>, 1>(engine, 2));
        SquareMatrix<double, N> m = tilted_turn<N>(angle) * prior_m;
        const auto value = [&] {
          return sheafnn::rotation::cayley_prior_kl<double, N>(m, kappa, prior_m, prior_kappa);
        };
        constexpr double weight = 1.5;
        SquareMatrix<double, N> m_gradient = SquareMatrix<double, N>::Constant(2);
        double kappa_gradient = 3;
        const double returned = sheafnn::rotation::cayley_prior_kl_backward<double, N>(m, kappa, prior_m, prior_kappa,
                                                                             weight, m_gradient, kappa_gradient);
        const double bound = weight * difference_bound * growth(std::max(kappa, prior_kappa));
        CAPTURE(N);
        CAPTURE(angle);
        CAPTURE(kappa);
        CAPTURE(prior_kappa);
        CHECK(returned == value());
        CHECK(std::abs(kappa_gradient - 3 - weight * central_difference(kappa, value)) <= bound);
        for (int j = 0; j < N; ++j) {
          for (int i = 0; i < N; ++i) {
            CAPTURE(i);
            CAPTURE(j);
            CHECK(std::abs(m_gradient(i, j) - 2 - weight * central_difference(m(i, j), value)) <= bound);
          }
        }
      }
    }
  }
}

template <class T, int N>
void check_lanes() {
  std::mt19937 engine(80 + N);
  std::uniform_real_distribution<double> uniform(0, 1);
  const double bound = 32 * static_cast<double>(std::numeric_limits<sheafnn::math::scalar_of_t<T>>::epsilon());
  for (int repetition = 0; repetition < 40; ++repetition) {
    // Lanes on both sides of every branch: the same point, no prior, uniform prior, half turns.
    double kappa[lane_count<T>], prior_kappa[lane_count<T>], chord[lane_count<T>];
    T kappa_lanes{}, prior_lanes{}, chord_lanes{};
    for (int l = 0; l < lane_count<T>; ++l) {
      const int kind = (l + repetition) % 5;
      kappa[l] = static_cast<double>(static_cast<float>(0.98 * uniform(engine)));
      prior_kappa[l] = kind == 0   ? kappa[l]
                       : kind == 1 ? 0
                                   : static_cast<double>(static_cast<float>(0.98 * uniform(engine)));
      chord[l] = kind == 0 ? 0 : kind == 2 ? 1 : static_cast<double>(static_cast<float>(uniform(engine)));
      set_lane(kappa_lanes, l, kappa[l]);
      set_lane(prior_lanes, l, prior_kappa[l]);
      set_lane(chord_lanes, l, chord[l]);
    }
    const CayleyPriorKl<T> lanes = sheafnn::rotation::cayley_prior_kl<N>(kappa_lanes, prior_lanes, chord_lanes);
    for (int l = 0; l < lane_count<T>; ++l) {
      const CayleyPriorKl<double> expected = sheafnn::rotation::cayley_prior_kl<N>(kappa[l], prior_kappa[l], chord[l]);
      CAPTURE(N);
      CAPTURE(kappa[l]);
      CAPTURE(prior_kappa[l]);
      CAPTURE(chord[l]);
      CHECK(std::abs(get_lane(lanes.value, l) - expected.value) <= bound * expected.value);
      CHECK(std::abs(get_lane(lanes.squared_half_chord, l) - expected.squared_half_chord) <=
            bound * expected.squared_half_chord);
      // Two terms of opposite signs where κ < κ₀.
      CHECK(std::abs(get_lane(lanes.concentration, l) - expected.concentration) <=
            bound * (std::abs(expected.concentration) + 4 / ((1 - kappa[l]) * (1 - prior_kappa[l]))));
    }
  }
}

}  // namespace

TEST_CASE("KL to a Cayley prior equals the one by quadrature") {
  check_against_quadrature<2>();
  check_against_quadrature<3>();
  check_general_matrices<2>();
  check_general_matrices<3>();
}

TEST_CASE("KL to a Cayley prior: the uniform prior, the same distribution, one dimension") {
  static_assert(sheafnn::rotation::has_elementary_cayley_kl<1> && sheafnn::rotation::has_elementary_cayley_kl<3>);
  static_assert(!sheafnn::rotation::has_elementary_cayley_kl<4>);
  for (const double kappa : kappas) {
    CAPTURE(kappa);
    for (const double chord : {0.0, 0.3, 1.0}) {
      const CayleyPriorKl<double> two = sheafnn::rotation::cayley_prior_kl<2>(kappa, 0.0, chord);
      const CayleyPriorKl<double> three = sheafnn::rotation::cayley_prior_kl<3>(kappa, 0.0, chord);
      CHECK(std::abs(two.value - sheafnn::rotation::cayley_kl<2>(kappa)) <= 16 * epsilon * two.value);
      CHECK(std::abs(three.value - sheafnn::rotation::cayley_kl<3>(kappa)) <= 16 * epsilon * three.value);
      CHECK(std::abs(two.concentration - sheafnn::rotation::cayley_kl_derivative<2>(kappa)) <=
            16 * epsilon * two.concentration);
      CHECK(std::abs(three.concentration - sheafnn::rotation::cayley_kl_derivative<3>(kappa)) <=
            16 * epsilon * three.concentration);
      CHECK(two.squared_half_chord == 0);
      CHECK(three.squared_half_chord == 0);
    }
    // The minimum, where also the derivative in κ vanishes.
    for (const CayleyPriorKl<double>& same : {sheafnn::rotation::cayley_prior_kl<2>(kappa, kappa, 0.0),
                                              sheafnn::rotation::cayley_prior_kl<3>(kappa, kappa, 0.0)}) {
      CHECK(same.value == 0);
      CHECK(same.concentration == 0);
      CHECK(same.squared_half_chord >= 0);
    }
  }
  const SquareMatrix<double, 1> one = SquareMatrix<double, 1>::Ones();
  SquareMatrix<double, 1> gradient = SquareMatrix<double, 1>::Zero();
  double kappa_gradient = 0;
  CHECK(sheafnn::rotation::cayley_prior_kl_backward<double, 1>(one, 0.5, one, 0.7, 1.0, gradient, kappa_gradient) == 0);
  CHECK(gradient(0, 0) == 0);
  CHECK(kappa_gradient == 0);
}

TEST_CASE("KL to a Cayley prior: arctan deficit against its definition and its series") {
  for (const double v : {0.02, 0.3, 1.0, 7.0, 2400.0}) {
    CAPTURE(v);
    const double root = std::sqrt(v);
    const double value = 1 - std::atan(root) / root;
    const double slope = (v / (1 + v) - value) / (2 * v);
    const auto deficit = sheafnn::detail::arctan_deficit(v);
    CHECK(std::abs(deficit.value - value) <= 4 * epsilon);
    CHECK(std::abs(deficit.slope - slope) <= 8 * epsilon / v);
  }
  for (const double v : {0.0, 1e-300, 1e-12, 1e-6}) {
    CAPTURE(v);
    const auto deficit = sheafnn::detail::arctan_deficit(v);
    const double value = v * (1.0 / 3 - v * (1.0 / 5 - v / 7));
    const double slope = 1.0 / 3 - v * (2.0 / 5 - 3 * v / 7);
    CHECK(std::abs(deficit.value - value) <= 8 * epsilon * value);
    CHECK(std::abs(deficit.slope - slope) <= 8 * epsilon * slope);
  }
}

TEST_CASE("KL to a Cayley prior: derivatives in κ and in every entry of M by central differences") {
  check_gradient<2>();
  check_gradient<3>();
}

TEST_CASE("KL to a Cayley prior: float and packs agree with double, lane by lane") {
  check_lanes<float, 2>();
  check_lanes<float, 3>();
  check_lanes<Pack<float, 8>, 2>();
  check_lanes<Pack<float, 8>, 3>();
  check_lanes<Pack<double, 4>, 2>();
  check_lanes<Pack<double, 4>, 3>();
}

}  // namespace test_cayley_prior_kl
