/// \file
/// Flows on the GPU: batches against the host (device_batch.hpp), and trainings.
#include <vector>

#include "device_batch.hpp"
#include "sheafnn/graph/karate.hpp"

namespace test_device_flow {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_flow_options;

TEST_CASE("batches on the GPU agree with the host: flows") {
  FlowOptions o = small_flow_options();
  compare_executors<BayesianSheafFlow<SpecialOrthogonal<3>, double>>(o, {.samples = 2});
  o.add_lp = o.negate_inside = true;
  o.channels = 8;
  compare_executors<SheafFlow<GeneralLinear<2>, double>>(o, {}, batch_checks::small_problem(false, 330));
  o.method = FlowMethod::euler;
  o.left_weights = false;
  compare_executors<SheafFlow<Diagonal<2>, double>>(o, {});
  o.method = FlowMethod::dormand_prince;
  o.absolute_tolerance = o.relative_tolerance = 1e-6;
  o.first_step = o.time;  // which is rejected
  compare_executors<BayesianSheafFlow<SpecialOrthogonal<3>, double>>(o, {.samples = 2});
}

TEST_CASE("flows train on the GPU as on the host, and side by side to the bits of single trainings") {
  using Model = SheafFlow<SpecialOrthogonal<2>>;
  const Dataset data = karate_club();
  const FlowOptions options{.features = data.feature_count(),
                            .channels = 8,
                            .classes = data.class_count,
                            .method = FlowMethod::runge_kutta,
                            .fixed_steps = 3};
  const auto train = [&](auto& executor, std::uint64_t first, std::uint64_t last) {
    return batch_checks::losses_side_by_side<Model>(executor, data, options, {.epochs = 10, .dropout = 0.2}, first,
                                                    last);
  };
  batch::HostExecutor host;
  batch::DeviceExecutor device;
  const std::vector<double> expected = train(host, 0, 3), own = train(device, 0, 3);
  CHECK(expected.size() == 30);
  CHECK(batch_checks::relative(own, expected) <= 1e-4);  // single precision
  std::vector<double> single;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    for (const double loss : train(device, seed, seed + 1)) single.push_back(loss);
  }
  CHECK(single == own);
}

}  // namespace test_device_flow
