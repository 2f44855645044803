/// \file
/// The batch engine on the host against the golden values (golden_batch.hpp).
#include <doctest/doctest.h>

#include "golden_batch.hpp"
#include "sheafnn/batch/host_executor.hpp"

namespace test_batch_golden {

TEST_CASE("golden values: the batch engine on the host") {
  using namespace sheafnn;
  batch::HostExecutor executor;
  golden::check_batch<Bsnn<Diagonal<3>, double>>(executor, "bsnn_diag3_lp", golden::double_bounds);
  golden::check_batch<Bsnn<SpecialOrthogonal<3>, double>>(executor, "bsnn_so3_hp", golden::double_bounds);
  golden::check_batch<Nsd<GeneralLinear<3>, double>>(executor, "nsd_gen3", golden::double_bounds);
}

TEST_CASE("golden values: polynomial filters in the batch engine on the host") {
  using namespace sheafnn;
  batch::HostExecutor executor;
  golden2::check_batch<Nsd<Diagonal<2>, double>>(executor, "poly_nsd_diag2_chebyshev1", golden::double_bounds);
  golden2::check_batch<Nsd<SpecialOrthogonal<3>, double>>(executor, "poly_nsd_so3_legendre_hp", golden::double_bounds);
  golden2::check_batch<Nsd<GeneralLinear<2>, double>>(executor, "poly_nsd_gen2_jacobi_lp", golden::double_bounds);
  golden2::check_batch<Bsnn<Diagonal<3>, double>>(executor, "poly_bsnn_diag3_chebyshev1_lp", golden::double_bounds);
  golden2::check_batch<Bsnn<SpecialOrthogonal<3>, double>>(executor, "poly_bsnn_so3_gegenbauer",
                                                           golden::double_bounds);
  golden2::check_batch<Bsnn<GeneralLinear<2>, double>>(executor, "poly_bsnn_gen2_interpolation",
                                                       golden::double_bounds);
}

TEST_CASE("golden values: options of the sheaf learner in the batch engine on the host") {
  using namespace sheafnn;
  batch::HostExecutor executor;
  golden2::check_batch<Nsd<Diagonal<3>, double>>(executor, "poly_nsd_diag3_options", golden::double_bounds);
  golden2::check_batch<Nsd<GeneralLinear<2>, double>>(executor, "poly_nsd_gen2_attention", golden::double_bounds);
  golden2::check_batch<Nsd<SpecialOrthogonal<2>, double>>(executor, "poly_nsd_so2_summed_published",
                                                          golden::double_bounds);
}

}  // namespace test_batch_golden
