/// \file
/// Networks with diagonal maps on the GPU against the golden values (golden_case.hpp).
#include <doctest/doctest.h>

#include "golden_batch.hpp"
#include "sheafnn/cuda.hpp"

namespace test_device_golden_diagonal {

TEST_CASE("golden values on the GPU: diagonal maps") {
  using namespace sheafnn;
  // Outputs to 1e-9, gradients as on the CPU.
  constexpr golden::Bounds device_bounds{1e-9, 1e-8};
  batch::DeviceExecutor executor;
  golden::check_batch<Nsd<Diagonal<2>, double>>(executor, "nsd_diag2", device_bounds);
  golden::check_batch<Nsd<Diagonal<3>, double>>(executor, "nsd_diag3_lp", device_bounds);
  golden::check_batch<Bsnn<Diagonal<2>, double>>(executor, "bsnn_diag2", device_bounds);
  golden::check_batch<Bsnn<Diagonal<3>, double>>(executor, "bsnn_diag3_lp", device_bounds);
  golden2::check_batch<Bsnn<Diagonal<3>, double>>(executor, "poly_bsnn_diag3_chebyshev1_lp", device_bounds);
}

}  // namespace test_device_golden_diagonal
