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

}  // namespace test_batch_golden
