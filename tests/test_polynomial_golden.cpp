/// \file
/// Networks with polynomial filters against the golden values (golden2_case.hpp).
#include <doctest/doctest.h>

#include "golden2_case.hpp"

namespace test_polynomial_golden {

TEST_CASE("golden values: polynomial filters") {
  using namespace sheafnn;
  golden2::check<Nsd<Diagonal<2>, double>>("poly_nsd_diag2_chebyshev1");
  golden2::check<Nsd<SpecialOrthogonal<3>, double>>("poly_nsd_so3_legendre_hp");
  golden2::check<Nsd<GeneralLinear<2>, double>>("poly_nsd_gen2_jacobi_lp");
  golden2::check<Bsnn<Diagonal<3>, double>>("poly_bsnn_diag3_chebyshev1_lp");
  golden2::check<Bsnn<SpecialOrthogonal<3>, double>>("poly_bsnn_so3_gegenbauer");
  golden2::check<Bsnn<GeneralLinear<2>, double>>("poly_bsnn_gen2_interpolation");
}

TEST_CASE("golden values: options of the sheaf learner") {
  using namespace sheafnn;
  golden2::check<Nsd<Diagonal<3>, double>>("poly_nsd_diag3_options");
  golden2::check<Nsd<GeneralLinear<2>, double>>("poly_nsd_gen2_attention");
  golden2::check<Nsd<SpecialOrthogonal<2>, double>>("poly_nsd_so2_summed_published");
}

}  // namespace test_polynomial_golden
