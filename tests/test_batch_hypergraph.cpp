/// \file
/// Hypergraph networks in the batch engine on the host against the CPU's: losses, gradients, predictions (batch_checks.hpp),
/// and trainings.
#include <doctest/doctest.h>

#include "batch_comparison.hpp"
#include "batch_gradient.hpp"
#include "sheafnn/batch/hypergraph_layer.hpp"
#include "sheafnn/graph/synthetic_hypergraph.hpp"
#include "sheafnn/hypergraph.hpp"
#include "training_comparison.hpp"

namespace test_batch_hypergraph {
namespace {

using namespace sheafnn;
using batch_checks::hypergraph_problem;
using batch_checks::small_hypergraph_options;
using batch_checks::Step;
using training_comparison::compare_training_of;

// Sums of some dozens of terms through two or three layers, in another order than on the CPU.
constexpr double bound = 1e-11;

template <class Model>
void compare(const HypergraphOptions& options, const Step& step = {}, double within = bound) {
  batch_checks::compare<Model>(options, step, within, hypergraph_problem());
}

HypergraphDataset small_data() {
  return synthetic_hypergraph({.nodes = 60, .classes = 3, .features = 20, .words = 5, .hyperedges = 50});
}
HypergraphOptions options_for(const HypergraphDataset& data) {
  HypergraphOptions r;
  r.features = data.feature_count();
  r.classes = data.class_count;
  r.channels = 4;
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("hypergraph networks in a batch agree with the CPU: families", Model,
                   SheafHyperGnn<Diagonal<1>, double>, SheafHyperGnn<Diagonal<2>, double>,
                   SheafHyperGnn<SpecialOrthogonal<2>, double>, SheafHyperGnn<GeneralLinear<2>, double>,
                   SheafHyperGnn<GeneralLinear<3>, double>, BayesianSheafHyperGnn<Diagonal<3>, double>,
                   BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>,
                   BayesianSheafHyperGnn<GeneralLinear<2>, double>, BayesianSheafHyperGnn<Conformal<2>, double>) {
  HypergraphOptions o = small_hypergraph_options();
  compare<Model>(o);
  o.laplacian = HypergraphLaplacian::published;
  o.update = HypergraphUpdate::residual;
  compare<Model>(o);
  o.laplacian = HypergraphLaplacian::nonlinear;
  compare<Model>(o);
  o.mediators = true;
  compare<Model>(o);
}

TEST_CASE_TEMPLATE("hypergraph networks in a batch agree with the CPU: options", Model,
                   SheafHyperGnn<GeneralLinear<2>, double>, BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>,
                   BayesianSheafHyperGnn<Diagonal<3>, double>) {
  HypergraphOptions o = small_hypergraph_options();
  SUBCASE("residual, three layers") {
    o.update = HypergraphUpdate::residual;
    o.layers = 3;
  }
  SUBCASE("published") { o.laplacian = HypergraphLaplacian::published; }
  SUBCASE("non-linear") {
    o.laplacian = HypergraphLaplacian::nonlinear;
    compare<Model>(o);
    o.update = HypergraphUpdate::residual;
    o.mediators = true;
  }
  SUBCASE("non-linear with a projection, one sheaf for all layers") {
    o.laplacian = HypergraphLaplacian::nonlinear;
    o.static_sheaf = true;
    o.layers = 3;
    o.projection = random_projection(o.channels);
    compare<Model>(o);
    o.mediators = true;
  }
  SUBCASE("averages of stalk coordinates, no dropout") {
    o.learner = HypergraphLearner::averaged;
    compare<Model>(o, {.input_dropout = 0, .dropout = 0});
  }
  SUBCASE("one sheaf for all layers") {
    o.static_sheaf = true;
    o.layers = 3;
    compare<Model>(o);
    o.laplacian = HypergraphLaplacian::published;
  }
  SUBCASE("no bias") {
    o.bias = false;
    compare<Model>(o);
    o.update = HypergraphUpdate::residual;
  }
  SUBCASE("no weights of stalk coordinates, whole tiles of channels") {
    o.left_weights = false;
    o.channels = 8;
  }
  SUBCASE("neither weights of stalk coordinates nor of channels") { o.left_weights = o.right_weights = false; }
  SUBCASE("hidden layers of the readout, many classes, several samples, no KL") {
    o.readout_layers = 3;
    o.classes = 11;
    compare<Model>(o, {.input_dropout = 0, .kl_weight = 0, .samples = 3});
  }
  SUBCASE("one layer, one channel") {
    o.layers = 1;
    o.channels = 1;
  }
  SUBCASE("another encoder") {
    if (Model::bayesian) o.separate_encoder = Model::stalk_dimension == 2;
  }
  compare<Model>(o, {.samples = 2});
}

TEST_CASE("hypergraph networks in a batch agree with the CPU: the KL term estimated") {
  HypergraphOptions o = small_hypergraph_options();
  compare<BayesianSheafHyperGnn<GeneralLinear<2>, double>>(o, {.estimator = KlEstimator::monte_carlo});
  compare<BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>>(o, {.estimator = KlEstimator::monte_carlo,
                                                                   .samples = 2});
}

TEST_CASE_TEMPLATE("hypergraph networks in a batch agree with the CPU: no incident pair", Model,
                   SheafHyperGnn<GeneralLinear<2>, double>, BayesianSheafHyperGnn<Diagonal<3>, double>) {
  batch_checks::Problem problem = batch_checks::small_problem();
  problem.hypergraph = Hypergraph(problem.graph.node_count(), 2, {});
  batch_checks::compare<Model>(small_hypergraph_options(), {}, bound, problem);
}

TEST_CASE("hypergraph networks in a batch agree with the CPU: single precision") {
  HypergraphOptions o = small_hypergraph_options();
  compare<BayesianSheafHyperGnn<SpecialOrthogonal<3>>>(o, {}, 512 * 1.2e-7);
}

TEST_CASE_TEMPLATE("the order of items and groups does not matter to the kernels of hypergraph networks", Model,
                   SheafHyperGnn<GeneralLinear<2>, double>, BayesianSheafHyperGnn<Diagonal<3>, double>) {
  HypergraphOptions o = small_hypergraph_options();
  SUBCASE("plain") {}
  SUBCASE("published, residual, one sheaf") {
    o.laplacian = HypergraphLaplacian::published;
    o.update = HypergraphUpdate::residual;
    o.static_sheaf = true;
  }
  SUBCASE("non-linear") { o.laplacian = HypergraphLaplacian::nonlinear; }
  batch_checks::compare_orders<Model>(o, hypergraph_problem());
}

TEST_CASE_TEMPLATE(
    "gradients of hypergraph networks in a batch are derivatives of the loss, along every coordinate", Model,
    SheafHyperGnn<GeneralLinear<2>, double>, BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>) {
  HypergraphOptions o = small_hypergraph_options();
  o.features = tiny::Task::features;
  o.channels = 2;
  batch_checks::compare_gradient<Model>(o);
  o.update = HypergraphUpdate::residual;
  o.learner = HypergraphLearner::averaged;
  batch_checks::compare_gradient<Model>(o);
  o.laplacian = HypergraphLaplacian::published;
  batch_checks::compare_gradient<Model>(o);
  o.laplacian = HypergraphLaplacian::nonlinear;
  batch_checks::compare_gradient<Model>(o);
  o.mediators = true;
  batch_checks::compare_gradient<Model>(o);
}

TEST_CASE("training hypergraph networks by the batch engine follows the CPU for twenty epochs") {
  const HypergraphDataset data = small_data();
  HypergraphOptions o = options_for(data);
  TrainOptions options;
  options.epochs = 20;
  options.seed = 9;
  compare_training_of(SheafHyperGnn<GeneralLinear<2>, double>(o, 3), options, 1e-9, data);
  o.update = HypergraphUpdate::residual;
  compare_training_of(SheafHyperGnn<GeneralLinear<2>, double>(o, 3), options, 1e-9, data, {1, 2.5, 1});
  options.kl_schedule = KlSchedule::constant;
  options.kl_maximum = 0.1;
  compare_training_of(BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>(o, 3), options, 1e-9, data);
  options.samples = options.training_samples = 2;
  o.laplacian = HypergraphLaplacian::published;
  compare_training_of(BayesianSheafHyperGnn<Diagonal<3>, double>(o, 3), options, 1e-9, data);
  o.laplacian = HypergraphLaplacian::nonlinear;
  compare_training_of(BayesianSheafHyperGnn<Diagonal<3>, double>(o, 3), options, 1e-9, data);
}

TEST_CASE("three hypergraph networks side by side have the bits of single ones") {
  const HypergraphDataset data = small_data();
  HypergraphOptions o = options_for(data);
  training_comparison::compare_seeds<SheafHyperGnn<GeneralLinear<2>, double>>(o, data);
  o.laplacian = HypergraphLaplacian::nonlinear;
  training_comparison::compare_seeds<BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>>(o, data);
}

}  // namespace test_batch_hypergraph
