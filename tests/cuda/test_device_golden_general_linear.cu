/// \file
/// Networks with general linear maps on the GPU against the golden values (golden_case.hpp).
#include <doctest/doctest.h>

#include "golden_batch.hpp"
#include "sheafnn/cuda.hpp"

namespace test_device_golden_general_linear {

TEST_CASE("golden values on the GPU: general linear maps") {
  using namespace sheafnn;
  // Outputs to 1e-9, gradients as on the CPU.
  constexpr golden::Bounds device_bounds{1e-9, 1e-8};
  batch::DeviceExecutor executor;
  golden::check_batch<Nsd<GeneralLinear<2>, double>>(executor, "nsd_gen2", device_bounds);
  golden::check_batch<Nsd<GeneralLinear<3>, double>>(executor, "nsd_gen3", device_bounds);
  golden::check_batch<Bsnn<GeneralLinear<2>, double>>(executor, "bsnn_gen2", device_bounds);
  golden::check_batch<Bsnn<GeneralLinear<3>, double>>(executor, "bsnn_gen3", device_bounds);
  golden2::check_batch<Nsd<GeneralLinear<2>, double>>(executor, "poly_nsd_gen2_jacobi_lp", device_bounds);
}

}  // namespace test_device_golden_general_linear
