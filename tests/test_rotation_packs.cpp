/// \file
/// Every parametrisation of rotations in float and in packs agrees, lane by lane, with double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/parametrisation.hpp"

namespace test_rotation_packs {
namespace {

using namespace rotation_checks;
using sheafnn::math::Pack;
using sheafnn::rotation::RotationParameters;
using sheafnn::rotation::RotationParametrisation;
using sheafnn::SquareMatrix;

template <class T>
const double unit = static_cast<double>(std::numeric_limits<sheafnn::math::scalar_of_t<T>>::epsilon());

/// Rounding errors of a few N × N products and one elimination, entry by entry, for numbers of size 1.
template <class T, int N>
const double bound = 16 * N* unit<T>;

template <class T, int N>
void check_parametrisations() {
  CAPTURE(N);
  constexpr int P = sheafnn::rotation::rotation_parameters<N>;
  std::mt19937 engine(400 + N);
  for (const RotationParametrisation p : {RotationParametrisation::householder, RotationParametrisation::cayley,
                                          RotationParametrisation::exponential, RotationParametrisation::euler}) {
    if (p == RotationParametrisation::euler && !sheafnn::rotation::has_euler_angles<N>) continue;
    CAPTURE(to_string(p));
    // The lanes need different numbers of squarings.
    std::vector<Eigen::Matrix<double, P, 1>> phi;
    std::vector<SquareMatrix<double, N>> cotangent;
    for (int l = 0; l < lane_count<T>; ++l) {
      phi.push_back(random_matrix<P, 1>(engine, 0.25 * (l % 8)));
      cotangent.push_back(random_matrix<N, N>(engine));
    }
    const auto phi_lanes = from_lanes<T, P, 1>(phi);
    const auto q = sheafnn::rotation::rotation_from_parameters<T, N>(p, phi_lanes);
    RotationParameters<T, N> gradient = RotationParameters<T, N>::Constant(T(1));
    sheafnn::rotation::rotation_from_parameters_backward<T, N>(p, phi_lanes, from_lanes<T, N, N>(cotangent), gradient);
    for (int l = 0; l < lane_count<T>; ++l) {
      CAPTURE(l);
      const auto i = static_cast<std::size_t>(l);
      RotationParameters<double, N> expected = RotationParameters<double, N>::Ones();
      sheafnn::rotation::rotation_from_parameters_backward<double, N>(p, phi[i], cotangent[i], expected);
      const auto expected_q = sheafnn::rotation::rotation_from_parameters<double, N>(p, phi[i]);
      const double growth = 1 + phi[i].norm();
      CHECK((one_lane(q, l) - expected_q).norm() <= bound<T, N> * growth);
      CHECK((one_lane(gradient, l) - expected).norm() <= bound<T, N> * growth * (1 + cotangent[i].norm()));
    }
  }
}

template <class T>
void check_all() {
  check_parametrisations<T, 1>();
  check_parametrisations<T, 2>();
  check_parametrisations<T, 3>();
  check_parametrisations<T, 5>();
}

}  // namespace

TEST_CASE("parametrisations in float") { check_all<float>(); }
TEST_CASE("parametrisations in a pack of floats") { check_all<Pack<float, sheafnn::lanes<float>>>(); }
TEST_CASE("parametrisations in a pack of doubles") { check_all<Pack<double, sheafnn::lanes<double>>>(); }

}  // namespace test_rotation_packs
