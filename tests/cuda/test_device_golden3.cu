/// \file
/// Other layers, connections, bundles and hypergraphs on the GPU against the golden values of golden3/ (golden3_case.hpp).
#include <doctest/doctest.h>

#include <string>

#include "golden3_case.hpp"
#include "golden_batch.hpp"
#include "sheafnn/cuda.hpp"
#include "sheafnn/every_layer.hpp"

namespace test_device_golden3 {

TEST_CASE("golden values on the GPU: other layers and networks") {
  using namespace sheafnn;
  // Outputs to 1e-9, gradients as on the CPU.
  constexpr golden::Bounds device_bounds{1e-9, 1e-8};
  batch::DeviceExecutor executor;
  golden::check_batch<SheafAttention<Diagonal<2>, double>>(executor, golden3::layer_form("res_san_diag2_heads"),
                                                           device_bounds);
  golden::check_batch<BayesianDirectedSheafNetwork<Diagonal<2>, double>>(executor,
                                                                         golden3::directed("bdsnn_diag2"),
                                                                         device_bounds);
  using Connection = Bgsnn<SpecialOrthogonal<3>, double>;
  const golden::Case connection = golden3::connection("bconn_so3_lp");
  golden::check_batch<Connection>(executor, connection, device_bounds,
                                  Connection::Posterior(golden3::connection_of<SpecialOrthogonal<3>>(connection)));
  using Bundle = Bunn<3, double>;
  const golden::Case bundle = golden3::read("bunn_d3_feedforward");
  golden::check_batch<Bundle>(executor, bundle, device_bounds, golden3::bundle_model<Bundle>(bundle),
                              bundle.graph);
  using Hyper = SheafHyperGnn<SpecialOrthogonal<3>, double>;
  const golden::Case hypergraph = golden3::read("hyper_so3_nonlinear");
  golden::check_batch<Hyper>(executor, hypergraph, device_bounds, golden3::hypergraph_model<Hyper>(hypergraph),
                             golden3::hypergraph_of(hypergraph));
}

}  // namespace test_device_golden3
