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
  batch_checks::compare_seeds_on_device<SheafHyperGnn<Diagonal<2>>>(data, options);
  batch_checks::compare_seeds_on_device<BayesianSheafHyperGnn<SpecialOrthogonal<3>>>(data, options);
}

}  // namespace test_device_hypergraph
