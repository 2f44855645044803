// The sheaf Laplacian in all its forms: general maps.
#include <doctest/doctest.h>

#include "sheaf_laplacian_checks.hpp"

namespace test_sheaf_laplacian_general {
using namespace sheaf_checks;

TEST_CASE("the Laplacian is the same in all its forms: general maps") {
  check_family<GeneralLinear<1>>();
  check_family<GeneralLinear<2>>();
  check_family<GeneralLinear<3>>();
  check_family<GeneralLinear<5>>();
  check_family<GeneralLinear<8>>();
}

}  // namespace test_sheaf_laplacian_general
