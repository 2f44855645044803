/// \file
/// Networks of convolutions on given sheaves in the batch engine on the host against the CPU's: losses, gradients,
/// predictions (batch_checks.hpp), gradients along every coordinate, trainings, and what is refused.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "batch_comparison.hpp"
#include "batch_gradient.hpp"
#include "given_sheaves.hpp"
#include "refusal.hpp"
#include "sheafnn/batch/convolution_network.hpp"
#include "sheafnn/convolution.hpp"
#include "training_comparison.hpp"

namespace test_batch_convolutions {
namespace {

using namespace sheafnn;
using batch_checks::compare;
using batch_checks::small_problem;
using given_sheaves::around_maps;
using given_sheaves::deviation_sources;
using given_sheaves::maps_of_layers;
using given_sheaves::maps_over;
using training_comparison::compare_training_of;

constexpr double bound = 1e-11;  // as in test_batch_network.cpp

/// Architectures with each part of a network, for stalk dimension d.
std::vector<ConvolutionOptions> architectures(const ConvolutionOptions& plain, Index d) {
  std::vector<ConvolutionOptions> r(5, plain);
  r[1].layers = 3;
  r[1].widths = {3, 7, 4, 6};
  r[1].bias = false;
  r[1].activation = Activation::tanh;
  r[1].normalisation = Normalisation::block;
  r[2].left_weights = false;
  r[2].activation = Activation::gelu;
  r[2].normalisation = Normalisation::none;
  r[3].layers = 1;
  r[3].activation = Activation::identity;
  r[4].widths = {plain.features / d, 8, d == 1 ? plain.classes : 5};
  r[4].activation = Activation::elu;
  r[4].readout = d > 1;
  if (plain.features % d == 0) r[3].encoder = r[4].encoder = false;
  return r;
}
std::vector<ConvolutionOptions> small_architectures(Index d) {
  return architectures(batch_checks::small_options<ConvolutionOptions>(), d);
}
ConvolutionOptions karate_options(const Dataset& data) {
  ConvolutionOptions r;
  r.features = data.feature_count();
  r.classes = data.class_count;
  r.channels = 4;
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("convolutions in a batch agree with the CPU: given maps", Family, Diagonal<1>, Diagonal<2>,
                   SpecialOrthogonal<2>, SpecialOrthogonal<3>, Orthogonal<2>, GeneralLinear<1>, GeneralLinear<3>,
                   RectangularLinear<3, 2>, Identity<2>) {
  using Model = SheafConvolutions<Family, double>;
  const batch_checks::Problem problem = small_problem();
  for (const ConvolutionOptions& o : small_architectures(Family::stalk_dimension)) {
    CAPTURE(o.layers);
    compare<Model>(o, {}, bound, problem, maps_over<Family>(problem.graph));
  }
  const ConvolutionOptions three = small_architectures(Family::stalk_dimension)[1];
  compare<Model>(three, {.input_dropout = 0, .dropout = 0}, bound, problem,
                 maps_of_layers<Family>(problem.graph, 3));
}

TEST_CASE_TEMPLATE("convolutions in a batch agree with the CPU: distributions around given maps", Family,
                   Diagonal<1>, Diagonal<2>, SpecialOrthogonal<2>, SpecialOrthogonal<3>, Orthogonal<2>,
                   GeneralLinear<2>, RectangularLinear<3, 2>) {
  using Model = BayesianSheafConvolutions<Family, double>;
  const batch_checks::Problem problem = small_problem();
  for (const DeviationSource source : deviation_sources) {
    CAPTURE(to_string(source));
    const AroundGiven<Family> around = around_maps<Family>(problem.graph, source);
    ConvolutionOptions o = small_architectures(Family::stalk_dimension)[4];
    compare<Model>(o, {.samples = 2}, bound, problem, around);
    compare<Model>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, bound, problem, around);
    o.encoder = true;
    compare<Model>(o, {.input_dropout = 0, .dropout = 0, .kl_weight = 0}, bound, problem, around);
    if (source != DeviationSource::arcs) continue;
    for (const ConvolutionOptions& each : small_architectures(Family::stalk_dimension)) {
      CAPTURE(each.layers);
      compare<Model>(each, {.samples = 2}, bound, problem, around);
    }
  }
}

TEST_CASE_TEMPLATE("convolutions in a batch agree with the CPU: graphs and sizes", Model,
                   SheafConvolutions<GeneralLinear<2>, double>,
                   BayesianSheafConvolutions<SpecialOrthogonal<3>, double>) {
  using Family = typename Model::Family;
  batch_checks::Problem problem = small_problem();
  ConvolutionOptions o = batch_checks::small_options<ConvolutionOptions>();
  SUBCASE("no edges") { problem = small_problem(true); }
  SUBCASE("arcs of a node in segments, whole tiles of channels") {
    problem = small_problem(false, 300);
    o.widths = {8, 4, 12};
  }
  SUBCASE("one channel, many classes") {
    o.widths = {1, 9, 1};
    o.classes = 11;
  }
  SUBCASE("the published spread") { o.spread = SpreadRange::published; }
  SUBCASE("Cayley's rotations, no sheaf activation") {
    o.parametrisation = rotation::RotationParametrisation::cayley;
    o.sheaf_activation = SheafActivation::identity;
  }
  if constexpr (Model::bayesian) {
    for (const DeviationSource source : deviation_sources)
      compare<Model>(o, {}, bound, problem, around_maps<Family>(problem.graph, source));
  } else {
    compare<Model>(o, {}, bound, problem, maps_over<Family>(problem.graph));
  }
}

TEST_CASE("convolutions in a batch agree with the CPU: many outputs of the last layer") {
  using Family = Diagonal<1>;
  const batch_checks::Problem problem = small_problem();
  ConvolutionOptions o = batch_checks::small_options<ConvolutionOptions>();
  o.classes = 11;
  o.readout = false;
  compare<SheafConvolutions<Family, double>>(o, {}, bound, problem, maps_over<Family>(problem.graph));
  compare<BayesianSheafConvolutions<Family, double>>(o, {.samples = 3}, bound, problem,
                                                     around_maps<Family>(problem.graph, DeviationSource::labels));
}

TEST_CASE("convolutions in a batch agree with the CPU: single precision") {
  using Family = SpecialOrthogonal<3>;
  const batch_checks::Problem problem = small_problem();
  const ConvolutionOptions o = batch_checks::small_options<ConvolutionOptions>();
  compare<SheafConvolutions<Family>>(o, {}, 2e-4, problem, maps_over<Family>(problem.graph));
  compare<BayesianSheafConvolutions<Family>>(o, {}, 2e-4, problem,
                                             around_maps<Family>(problem.graph, DeviationSource::labels));
}

TEST_CASE_TEMPLATE("the order of items and groups does not matter to the kernels of convolutions", Family,
                   Diagonal<1>, GeneralLinear<2>) {
  const batch_checks::Problem problem = small_problem();
  for (const ConvolutionOptions& o : small_architectures(Family::stalk_dimension)) {
    batch_checks::compare_orders<SheafConvolutions<Family, double>>(o, problem, maps_over<Family>(problem.graph));
    for (const DeviationSource source : deviation_sources) {
      batch_checks::compare_orders<BayesianSheafConvolutions<Family, double>>(o, problem,
                                                                              around_maps<Family>(problem.graph,
                                                                                                  source));
    }
  }
}

TEST_CASE_TEMPLATE("gradients of convolutions in a batch are derivatives of the loss, along every coordinate",
                   Family, Diagonal<1>, SpecialOrthogonal<2>, GeneralLinear<2>, RectangularLinear<3, 2>) {
  const tiny::Task task;
  ConvolutionOptions plain;
  plain.features = tiny::Task::features;
  plain.classes = tiny::Task::classes;
  plain.channels = 2;
  plain.activation = Activation::tanh;
  for (const ConvolutionOptions& o : architectures(plain, Family::stalk_dimension)) {
    batch_checks::compare_gradient<SheafConvolutions<Family, double>>(o, maps_over<Family>(task.graph));
    for (const DeviationSource source : deviation_sources) {
      batch_checks::compare_gradient<BayesianSheafConvolutions<Family, double>>(o, around_maps<Family>(task.graph,
                                                                                                       source));
    }
  }
}

TEST_CASE("training convolutions by the batch engine follows the CPU for twenty epochs") {
  const Dataset data = karate_club();
  ConvolutionOptions o = karate_options(data);
  TrainOptions training = {.epochs = 20, .dropout = 0.2, .seed = 9};
  using Rotations = SpecialOrthogonal<3>;
  compare_training_of(SheafConvolutions<Rotations, double>(o, 3, maps_over<Rotations>(data.graph)), training, 1e-9,
                      data);
  training.kl_schedule = KlSchedule::constant;
  training.kl_maximum = 0.1;
  training.samples = training.training_samples = 2;
  compare_training_of(BayesianSheafConvolutions<Rotations, double>(o, 3,
                                                                   around_maps<Rotations>(data.graph,
                                                                                          DeviationSource::arcs)),
                      training, 1e-9, data, {1, 2.5});
  using Signs = Diagonal<1>;
  o.encoder = o.readout = false;
  o.activation = Activation::elu;
  training.input_dropout = 0.3;
  compare_training_of(SheafConvolutions<Signs, double>(o, 3, maps_over<Signs>(data.graph)), training, 1e-9, data);
  compare_training_of(
      BayesianSheafConvolutions<Signs, double>(o, 3, around_maps<Signs>(data.graph, DeviationSource::labels)),
      training, 1e-9, data);
}

TEST_CASE("three networks of convolutions side by side have the bits of single ones, also by way of checkpoints") {
  const Dataset data = karate_club();
  ConvolutionOptions o = karate_options(data);
  using Matrices = GeneralLinear<2>;
  training_comparison::compare_seeds<SheafConvolutions<Matrices, double>>(o, data,
                                                                          maps_over<Matrices>(data.graph));
  training_comparison::compare_seeds<BayesianSheafConvolutions<Matrices, double>>(
      o, data, around_maps<Matrices>(data.graph, DeviationSource::labels));
  using Signs = Diagonal<1>;
  o.encoder = o.readout = false;
  training_comparison::compare_seeds<SheafConvolutions<Signs, double>>(o, data, maps_over<Signs>(data.graph));
  training_comparison::compare_seeds<BayesianSheafConvolutions<Signs, double>>(
      o, data, around_maps<Signs>(data.graph, DeviationSource::arcs_and_means));
}

TEST_CASE("batches of convolutions take equal maps of several models, and refuse other ones and other graphs") {
  using Family = Diagonal<2>;
  using Model = SheafConvolutions<Family, double>;
  const Dataset data = karate_club();
  const ConvolutionOptions o = karate_options(data);
  const auto train_two = [&](const GivenMaps<Family>& first, const GivenMaps<Family>& second) {
    Model one(o, 0, first), other(o, 1, second);
    const std::vector<batch::Training<Model>> trainings = {{&one, &data.splits[0], {.epochs = 2}},
                                                           {&other, &data.splits[1], {.epochs = 2}}};
    batch::HostExecutor executor;
    return batch::train_batch<batch::HostExecutor, Model>(executor, data, trainings).size();
  };
  CHECK(train_two(maps_over<Family>(data.graph), maps_over<Family>(data.graph)) == 2);
  CHECK(
      test::message_of([&] { train_two(maps_over<Family>(data.graph), maps_over<Family>(data.graph, 5)); }) ==
      "trainings[1].model: another posterior is not allowed; the models of a batch must have the same posterior");
  const Graph other(data.graph.node_count(), std::vector<Edge>{{0, 1}, {1, 2}});
  CHECK(test::message_of([&] { train_two(maps_over<Family>(other), maps_over<Family>(other)); }) ==
        sheafnn::detail::concat("edges of sheaves[0]: 2 is not allowed; the network's graph has ",
                                data.graph.edge_count()));
}

}  // namespace test_batch_convolutions
