/// \file
/// Families of restriction maps: blocks, charts and their derivatives, packs against scalars; what Conformal refuses.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "family_checks.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace test_families {

using family_checks::check_family;
using sheafnn::Conformal;
using sheafnn::SquareMatrix;

TEST_CASE("families: blocks, derivatives, packs") {
  check_family<sheafnn::Identity<2>>();
  check_family<sheafnn::Diagonal<1>>();
  check_family<sheafnn::Diagonal<3>>();
  check_family<sheafnn::SpecialOrthogonal<1>>();
  check_family<sheafnn::SpecialOrthogonal<3>>();
  check_family<sheafnn::GeneralLinear<1>>();
  check_family<sheafnn::GeneralLinear<3>>();
}

TEST_CASE("conformal maps: blocks, derivatives, packs") {
  check_family<Conformal<1>>();
  check_family<Conformal<2>>();
  check_family<Conformal<3>>();
  check_family<Conformal<4>>();
}

TEST_CASE("conformal maps are positive multiples of rotations") {
  using F = Conformal<3>;
  const auto map = F::random_map<double>(sheafnn::Stream{5}, 2);
  F::validate(0, map);
  const double scale = std::sqrt(F::gram(map)(0));
  CHECK((map.transpose() * map - scale * scale * SquareMatrix<double, 3>::Identity()).norm() <=
        64 * std::numeric_limits<double>::epsilon() * scale * scale);
  CHECK(map.determinant() > 0);
  const auto refuse = [](const SquareMatrix<double, 3>& m) {
    CHECK_THROWS_WITH_AS(F::validate(7, m), doctest::Contains("maps[7]"), std::invalid_argument);
  };
  refuse(-map);
  refuse(0 * map);
  refuse(map / 0.0);
  SquareMatrix<double, 3> stretched = map;
  stretched.col(0) *= 1.01;
  refuse(stretched);
}

}  // namespace test_families
