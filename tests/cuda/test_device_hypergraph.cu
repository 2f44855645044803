/// \file
/// Hypergraph networks on the GPU: batches against the host (device_batch.hpp), and trainings side by side.
#include "device_batch.hpp"
#include "sheafnn/graph/synthetic_hypergraph.hpp"

namespace test_device_hypergraph {
using namespace sheafnn;
using batch_checks::compare_executors;

TEST_CASE("batches on the GPU agree with the host: hypergraph networks") {
  const batch_checks::Problem problem = batch_checks::hypergraph_problem();
  HypergraphOptions o = batch_checks::small_hypergraph_options();
  compare_executors<SheafHyperGnn<GeneralLinear<3>, double>>(o, {}, problem);
  compare_executors<BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>>(o, {.samples = 2}, problem);
  o.channels = 8;
  o.laplacian = HypergraphLaplacian::published;
  o.update = HypergraphUpdate::residual;
  o.learner = HypergraphLearner::averaged;
  o.readout_layers = 2;
  compare_executors<SheafHyperGnn<SpecialOrthogonal<2>, double>>(o, {}, problem);
  o.static_sheaf = true;
  compare_executors<BayesianSheafHyperGnn<Diagonal<2>, double>>(
      o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, problem);
  o.laplacian = HypergraphLaplacian::nonlinear;
  compare_executors<SheafHyperGnn<GeneralLinear<3>, double>>(o, {}, problem);
  o.mediators = true;
  o.projection = random_projection(o.channels);
  compare_executors<BayesianSheafHyperGnn<Diagonal<2>, double>>(o, {.samples = 2}, problem);
}

TEST_CASE("hypergraph networks train on the GPU as on the host, several seeds side by side") {
  const HypergraphDataset data =
      synthetic_hypergraph({.nodes = 60, .classes = 3, .features = 20, .words = 5, .hyperedges = 50});
  HypergraphOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = 4;
  const auto check = [&]<class Model>(Model*) {
    batch::HostExecutor host;
    batch::DeviceExecutor device;
    const auto train = [&](auto& executor, std::uint64_t count) {
      return batch_checks::losses_side_by_side<Model>(executor, data, options, {.epochs = 10}, 0, count);
    };
    const std::vector<double> expected = train(host, 3), own = train(device, 3), one = train(device, 1);
    CHECK(expected.size() == 30);
    CHECK(batch_checks::relative(own, expected) <= 1e-4);  // single precision
    CHECK(std::vector<double>(own.begin(), own.begin() + 10) == one);
  };
  check(static_cast<SheafHyperGnn<Diagonal<2>>*>(nullptr));
  check(static_cast<BayesianSheafHyperGnn<SpecialOrthogonal<3>>*>(nullptr));
}

}  // namespace test_device_hypergraph
