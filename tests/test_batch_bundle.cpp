/// \file
/// Bundle networks in the batch engine on the host against the CPU's: losses, gradients, predictions (batch_checks.hpp) and
/// trainings.
#include <doctest/doctest.h>

#include "batch_comparison.hpp"
#include "batch_gradient.hpp"
#include "sheafnn/batch/bundle_network.hpp"
#include "sheafnn/bundle.hpp"
#include "sheafnn/graph/karate.hpp"
#include "training_comparison.hpp"

namespace test_batch_bundle {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using batch_checks::compare;
using batch_checks::small_bundle_options;
using training_comparison::compare_training_of;

// Sums of some dozens of terms through two or three layers, in another order than on the CPU.
constexpr double bound = 1e-11;

BundleOptions karate_options(const Dataset& data) {
  BundleOptions r;
  r.features = data.features.columns();
  r.classes = data.class_count;
  r.bundles = 3;
  r.layers = 2;
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("bundle networks in a batch agree with the CPU: dimensions", Model, Bunn<2, double>,
                   Bunn<3, double>, Bunn<4, double>, BayesianBunn<2, double>, BayesianBunn<3, double>,
                   BayesianBunn<4, double>) {
  compare<Model>(small_bundle_options(), {}, bound);
}

TEST_CASE_TEMPLATE("bundle networks in a batch agree with the CPU: options", Model, Bunn<2, double>,
                   BayesianBunn<3, double>) {
  BundleOptions o = small_bundle_options();
  SUBCASE("Taylor terms, three layers") {
    o.expansion = HeatExpansion::taylor;
    o.layers = 3;
  }
  SUBCASE("powers, no dropout") {
    o.expansion = HeatExpansion::hops;
    compare<Model>(o, {.input_dropout = 0, .dropout = 0}, bound);
  }
  SUBCASE("powers by random walks with loops, wide bundles") {
    o.expansion = HeatExpansion::hops;
    o.normalisation = AdjacencyNormalisation::random_walk;
    o.self_loops = true;
    o.channels = 9;
  }
  SUBCASE("a fixed time, Taylor terms by random walks, whole tiles of channels") {
    o.learned_time = false;
    o.expansion = HeatExpansion::taylor;
    o.normalisation = AdjacencyNormalisation::random_walk;
    o.channels = 8;
    compare<Model>(o, {.input_dropout = 0.5, .dropout = 0}, bound);
  }
  SUBCASE("eigenpairs, several samples") {
    o.expansion = HeatExpansion::spectral;
    compare<Model>(o, {.samples = 2}, bound);
    o.terms = 100;  // more than nodes
    o.normalisation = AdjacencyNormalisation::random_walk;
    o.self_loops = true;
    compare<Model>(o, {.samples = 2}, bound);
    o.learned_time = false;
    o.mixing = BundleMixing::linear;
  }
  SUBCASE("the kernel of the Laplacian, several samples") {
    o.expansion = HeatExpansion::limit;
    compare<Model>(o, {.samples = 2}, bound);
    o.normalisation = AdjacencyNormalisation::random_walk;
    compare<Model>(o, {.samples = 2}, bound, batch_checks::small_problem(false, 330));
    o.self_loops = true;
    compare<Model>(o, {}, bound, batch_checks::small_problem(true));
    o.mixing = BundleMixing::linear;
  }
  SUBCASE("times below 0, one channel, no term but the first") {
    o.time = 0;
    o.time_start = HeatStart::spread;
    o.channels = 1;
    compare<Model>(o, {}, bound);
    o.terms = 0;
  }
  SUBCASE("linear mixing, no norms") {
    o.mixing = BundleMixing::linear;
    o.activation = Activation::tanh;
    o.layer_norm = false;
    compare<Model>(o, {}, bound);
    o.residual = false;
  }
  SUBCASE("linear mixing, hidden layers of the readout, many classes") {
    o.mixing = BundleMixing::linear;
    o.readout_layers = 3;
    o.classes = 11;
  }
  SUBCASE("no residual, several samples, no KL") {
    o.residual = false;
    compare<Model>(o, {.input_dropout = 0, .kl_weight = 0, .samples = 3}, bound);
  }
  SUBCASE("the other parametrisation") { o.parametrisation = rotation::RotationParametrisation::cayley; }
  compare<Model>(o, {}, bound);
}

TEST_CASE_TEMPLATE("bundle networks in a batch agree with the CPU: learners", Model, Bunn<3, double>,
                   BayesianBunn<2, double>) {
  BundleOptions o = small_bundle_options();
  SUBCASE("mlp") { o.learner = BundleLearnerKind::mlp; }
  SUBCASE("three convolutions") { o.learner_layers = 3; }
  SUBCASE("a block with a residual") { o.learner = BundleLearnerKind::sage_residual; }
  SUBCASE("three blocks with residuals") {
    o.learner = BundleLearnerKind::sage_residual;
    o.learner_layers = 3;
  }
  compare<Model>(o, {.samples = 2}, bound);
  compare<Model>(o, {.dropout = 0}, bound, batch_checks::small_problem(false, 330));
}

TEST_CASE("bundle networks in a batch agree with the CPU: the KL term estimated") {
  BundleOptions o = small_bundle_options();
  o.layers = 3;
  compare<BayesianBunn<2, double>>(o, {.estimator = KlEstimator::monte_carlo}, bound);
  compare<BayesianBunn<3, double>>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, bound);
}

TEST_CASE_TEMPLATE("bundle networks in a batch agree with the CPU: graphs", Model, Bunn<3, double>,
                   BayesianBunn<2, double>) {
  BundleOptions o = small_bundle_options();
  o.expansion = HeatExpansion::taylor;
  compare<Model>(o, {}, bound, batch_checks::small_problem(true));
  // A node whose arcs are summed in segments, with one, two and three of them.
  const auto problem =
      batch_checks::with_degrees(batch_checks::small_problem(false, 330), {{3, 28}, {21, 122}, {40, 250}});
  compare<Model>(o, {.samples = 2}, bound, problem);
}

TEST_CASE("bundle networks in a batch agree with the CPU: single precision") {
  BundleOptions o = small_bundle_options();
  for (const HeatExpansion expansion : {HeatExpansion::shifted, HeatExpansion::spectral, HeatExpansion::limit}) {
    CAPTURE(to_string(expansion));
    o.expansion = expansion;
    compare<BayesianBunn<2, float>>(o, {}, 512 * 1.2e-7);
  }
}

TEST_CASE_TEMPLATE("the order of items and groups does not matter to the kernels of bundle networks", Model,
                   Bunn<3, double>, BayesianBunn<3, double>) {
  BundleOptions o = small_bundle_options();
  o.learner = BundleLearnerKind::sage_residual;
  o.learner_layers = 2;
  SUBCASE("linear mixing, powers") {
    o.learner = BundleLearnerKind::sage;
    o.mixing = BundleMixing::linear;
    o.expansion = HeatExpansion::hops;
  }
  SUBCASE("eigenpairs") { o.expansion = HeatExpansion::spectral; }
  SUBCASE("the kernel of the Laplacian") { o.expansion = HeatExpansion::limit; }
  batch_checks::compare_orders<Model>(o);
}

TEST_CASE_TEMPLATE("gradients of bundle networks in a batch are derivatives of the loss, along every coordinate",
                   Model, Bunn<2, double>, BayesianBunn<3, double>) {
  BundleOptions o = small_bundle_options();
  o.features = tiny::Task::features;
  o.bundles = 2;
  o.channels = 1;
  o.learner_width = 0;
  batch_checks::compare_gradient<Model>(o);
  o.mixing = BundleMixing::linear;
  o.activation = Activation::tanh;
  for (const HeatExpansion expansion : {HeatExpansion::hops, HeatExpansion::spectral, HeatExpansion::limit}) {
    CAPTURE(to_string(expansion));
    o.expansion = expansion;
    batch_checks::compare_gradient<Model>(o);
  }
}

TEST_CASE("training bundle networks by the batch engine follows the CPU for twenty epochs") {
  const Dataset data = karate_club();
  BundleOptions o = karate_options(data);
  TrainOptions options;
  options.epochs = 20;
  options.seed = 9;
  compare_training_of(Bunn<2, double>(o, 3), options, 1e-9, data);
  o.expansion = HeatExpansion::taylor;
  o.learner = BundleLearnerKind::sage_residual;
  compare_training_of(Bunn<3, double>(o, 3), options, 1e-9, data, {1, 2.5});
  options.kl_schedule = KlSchedule::constant;
  options.kl_maximum = 0.1;
  compare_training_of(BayesianBunn<2, double>(o, 3), options, 1e-9, data);
  options.samples = options.training_samples = 2;
  o.expansion = HeatExpansion::hops;
  compare_training_of(BayesianBunn<3, double>(o, 3), options, 1e-9, data);
  o.expansion = HeatExpansion::spectral;
  compare_training_of(BayesianBunn<3, double>(o, 3), options, 1e-9, data);
  compare_training_of(Bunn<2, double>(o, 3), options, 1e-9, data);
  o.expansion = HeatExpansion::limit;
  compare_training_of(BayesianBunn<2, double>(o, 3), options, 1e-9, data);
  compare_training_of(Bunn<3, double>(o, 3), options, 1e-9, data);
}

TEST_CASE("three bundle networks side by side have the bits of single ones") {
  const Dataset data = karate_club();
  BundleOptions o = karate_options(data);
  training_comparison::compare_seeds<Bunn<2, double>>(o, data);
  training_comparison::compare_seeds<BayesianBunn<3, double>>(o, data);
  o.learner = BundleLearnerKind::sage_residual;
  o.expansion = HeatExpansion::hops;
  o.mixing = BundleMixing::linear;
  training_comparison::compare_seeds<Bunn<3, double>>(o, data);
  o.expansion = HeatExpansion::spectral;
  training_comparison::compare_seeds<BayesianBunn<3, double>>(o, data);
  o.expansion = HeatExpansion::limit;
  training_comparison::compare_seeds<Bunn<2, double>>(o, data);
}

}  // namespace test_batch_bundle
