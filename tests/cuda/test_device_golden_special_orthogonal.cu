/// \file
/// Networks with special orthogonal maps on the GPU against the golden values (golden_case.hpp).
#include <doctest/doctest.h>

#include "golden_batch.hpp"
#include "sheafnn/cuda.hpp"

namespace test_device_golden_special_orthogonal {

TEST_CASE("golden values on the GPU: special orthogonal maps") {
  using namespace sheafnn;
  // Outputs to 1e-9, gradients as on the CPU.
  constexpr golden::Bounds device_bounds{1e-9, 1e-8};
  batch::DeviceExecutor executor;
  golden::check_batch<Nsd<SpecialOrthogonal<2>, double>>(executor, "nsd_so2", device_bounds);
  golden::check_batch<Nsd<SpecialOrthogonal<3>, double>>(executor, "nsd_so3_hp", device_bounds);
  golden::check_batch<Nsd<SpecialOrthogonal<4>, double>>(executor, "nsd_so4", device_bounds);
  golden::check_batch<Bsnn<SpecialOrthogonal<2>, double>>(executor, "bsnn_so2", device_bounds);
  golden::check_batch<Bsnn<SpecialOrthogonal<3>, double>>(executor, "bsnn_so3_hp", device_bounds);
  golden::check_batch<Bsnn<SpecialOrthogonal<4>, double>>(executor, "bsnn_so4", device_bounds);
  golden2::check_batch<Nsd<SpecialOrthogonal<3>, double>>(executor, "poly_nsd_so3_legendre_hp", device_bounds);
}

}  // namespace test_device_golden_special_orthogonal
