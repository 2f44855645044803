/// \file
/// Networks with given maps, on connections and with posteriors around given maps in the batch engine on the host: against
/// the networks of the CPU, gradients along every coordinate, trainings against sheafnn::train, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "batch_comparison.hpp"
#include "batch_gradient.hpp"
#include "given_sheaves.hpp"
#include "refusal.hpp"
#include "sheafnn/batch/connection_layers.hpp"
#include "sheafnn/batch/flow_layer.hpp"
#include "sheafnn/bsnn/given_sheaf.hpp"
#include "sheafnn/every_layer.hpp"
#include "sheafnn/flow.hpp"
#include "training_comparison.hpp"

namespace test_batch_given {
namespace {

using namespace sheafnn;
using batch_checks::compare;
using batch_checks::small_options;
using batch_checks::small_problem;
using given_sheaves::around_maps;
using given_sheaves::deviation_sources;
using given_sheaves::maps_of_layers;
using given_sheaves::maps_over;
using given_sheaves::sheaf_over;

constexpr double bound = 1e-11;  // as in test_batch_network.cpp

ConnectionModelOptions connection_options(ModelOptions options = small_options()) {
  ConnectionModelOptions r;
  static_cast<ModelOptions&>(r) = std::move(options);
  return r;
}
template <class Options = ModelOptions>
Options karate_options(const Dataset& data) {
  Options r;
  r.features = data.feature_count();
  r.classes = data.class_count;
  r.channels = 4;
  if constexpr (requires { r.layers = 2; }) r.layers = 2;
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: given maps", Family, Diagonal<2>, Diagonal<3>,
                   SpecialOrthogonal<2>, SpecialOrthogonal<3>, GeneralLinear<2>, GeneralLinear<3>, Orthogonal<3>,
                   Identity<2>) {
  using Model = Snn<Family, double>;
  const batch_checks::Problem problem = small_problem();
  const GivenMaps<Family> maps = maps_over<Family>(problem.graph);
  ModelOptions o = small_options();
  compare<Model>(o, {}, bound, problem, maps);
  o.layers = 3;
  o.layer_norm = true;
  o.right_weights = false;
  compare<Model>(o, {}, bound, problem, maps_of_layers<Family>(problem.graph, 3));
  o.layer_norm = false;
  o.left_weights = false;
  o.right_weights = true;
  o.add_lp = o.add_hp = true;
  compare<Model>(o, {.input_dropout = 0, .dropout = 0}, bound, problem, maps);
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: options of given maps", Family, SpecialOrthogonal<3>,
                   GeneralLinear<2>) {
  using Model = Snn<Family, double>;
  batch_checks::Problem problem = small_problem();
  ModelOptions o = small_options();
  o.layers = 3;
  SUBCASE("initial residuals") { o.residual.form = ResidualForm::initial; }
  SUBCASE("initial residuals and layer norm") {
    o.residual.form = ResidualForm::initial;
    o.layer_norm = true;
  }
  SUBCASE("a filter") { o.filter = {PolynomialBasis::chebyshev_interpolation, 3}; }
  SUBCASE("one sheaf of all layers, which share launches") {
    o.linear = true;
    o.channels = 8;
  }
  SUBCASE("no activation, degree normalisation, a second linear layer, hidden layers of the readout") {
    o.activation = false;
    o.normalisation = Normalisation::degree;
    o.second_linear = true;
    o.readout_layers = 2;
  }
  SUBCASE("arcs of a node in segments") { problem = small_problem(false, 300); }
  SUBCASE("no edges") { problem = small_problem(true); }
  compare<Model>(o, {}, bound, problem, maps_over<Family>(problem.graph));
  if (!o.linear) compare<Model>(o, {}, bound, problem, maps_of_layers<Family>(problem.graph, 3));
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: other layers on given maps", Family, Diagonal<2>,
                   GeneralLinear<2>) {
  using Model = AnySnn<Family, double>;
  const batch_checks::Problem problem = small_problem();
  ModelOptions o = small_options();
  o.layers = 3;
  for (const LayerForm form : {LayerForm::convolution, LayerForm::wave, LayerForm::copresheaf,
                               LayerForm::attention, LayerForm::directed}) {
    CAPTURE(to_string(form));
    o.layer = form;
    o.attention = {.heads = 2, .width = 2, .transported = true, .residual = true, .normalised = true};
    compare<Model>(o, {}, bound, problem, maps_of_layers<Family>(problem.graph, 3));
  }
  o.layer = LayerForm::attention;
  o.attention.random = true;
  compare<Model>(o, {.samples = 2}, bound, problem, maps_of_layers<Family>(problem.graph, 3));
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: flows on given maps", Family, Diagonal<2>,
                   SpecialOrthogonal<3>, Identity<2>) {
  using Model = GivenSheafFlow<Family, double>;
  const batch_checks::Problem problem = small_problem();
  FlowOptions o = batch_checks::small_flow_options();
  compare<Model>(o, {}, bound, problem, maps_over<Family>(problem.graph));
  o.left_weights = false;
  o.add_lp = true;
  compare<Model>(o, {}, bound, problem, maps_over<Family>(problem.graph, 9));
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: connections", Model, ConnNsd<2, double>,
                   ConnNsd<3, double>, BconnNsd<2, double>, BconnNsd<3, double>) {
  ConnectionModelOptions o = connection_options();
  compare<Model>(o, {.samples = 2}, bound);
  o.connection.special = true;
  o.layers = 3;
  o.layer_norm = true;
  compare<Model>(o, {}, bound);
  o.layer_norm = false;
  o.feature_treatment = FeatureTreatment::columns;  // the connection is of the treated features
  o.residual.form = ResidualForm::initial;
  compare<Model>(o, {}, bound);
  o.residual = {};
  o.filter = {PolynomialBasis::chebyshev_interpolation, 2};
  o.connection.source = ConnectionSource::random_nodes;
  compare<Model>(o, {}, bound);
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: distributions around given maps", Family, Diagonal<2>,
                   SpecialOrthogonal<2>, SpecialOrthogonal<3>, GeneralLinear<2>, Orthogonal<3>) {
  using Model = Bgsnn<Family, double>;
  using Posterior = AroundGiven<Family>;
  const batch_checks::Problem problem = small_problem();
  for (const DeviationSource source : deviation_sources) {
    CAPTURE(to_string(source));
    const Posterior around = around_maps<Family>(problem.graph, source);
    ModelOptions o = small_options();
    compare<Model>(o, {.samples = 2}, bound, problem, around);
    compare<Model>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, bound, problem, around);
    o.separate_encoder = true;
    o.learner_layers = 2;
    o.learner_width = 6;
    o.linear = true;
    compare<Model>(o, {}, bound, problem, around);
  }
}

TEST_CASE("networks with given maps in single precision") {
  const batch_checks::Problem problem = small_problem();
  compare<Snn<SpecialOrthogonal<3>>>(small_options(), {}, 2e-4, problem,
                                     maps_over<SpecialOrthogonal<3>>(problem.graph));
}

TEST_CASE_TEMPLATE("gradients of networks with given maps in the batch engine, along every coordinate", Family,
                   Diagonal<2>, SpecialOrthogonal<3>, GeneralLinear<2>) {
  const tiny::Task task;
  ModelOptions o = tiny::options();
  batch_checks::compare_gradient<Snn<Family, double>>(o, maps_of_layers<Family>(task.graph, o.layers));
  for (const DeviationSource source : deviation_sources) {
    batch_checks::compare_gradient<Bgsnn<Family, double>>(o, around_maps<Family>(task.graph, source));
  }
}

TEST_CASE_TEMPLATE("the order of items changes no bit: given maps", Model, Snn<GeneralLinear<2>, double>,
                   Bgsnn<SpecialOrthogonal<3>, double>) {
  using Family = typename Model::Family;
  const batch_checks::Problem problem = small_problem();
  const typename Model::Posterior posterior(sheaf_over<Family>(problem.graph));
  batch_checks::compare_orders<Model>(small_options(), problem, posterior);
}

TEST_CASE_TEMPLATE("training by the batch engine follows the CPU: given maps", Family, SpecialOrthogonal<3>,
                   GeneralLinear<2>) {
  const Dataset data = karate_club();
  const ModelOptions o = karate_options(data);
  const TrainOptions training = {.epochs = 12, .dropout = 0.2};
  training_comparison::compare_training_of(Snn<Family, double>(o, 3, maps_of_layers<Family>(data.graph, 2)),
                                           training, bound, data);
  training_comparison::compare_training_of(
      Bgsnn<Family, double>(o, 3, AroundGiven<Family>(sheaf_over<Family>(data.graph))), training, 1e-10, data);
}

TEST_CASE("training by the batch engine follows the CPU: connections and flows on given maps") {
  const Dataset data = karate_club();
  const TrainOptions training = {.epochs = 12, .dropout = 0.2};
  const auto o = karate_options<ConnectionModelOptions>(data);
  training_comparison::compare_training_of(ConnNsd<2, double>(o, 3), training, bound, data);
  training_comparison::compare_training_of(BconnNsd<2, double>(o, 3), training, 1e-10, data);
  FlowOptions flow = karate_options<FlowOptions>(data);
  flow.method = FlowMethod::euler;
  flow.fixed_steps = 2;
  training_comparison::compare_training_of(GivenSheafFlow<Diagonal<2>, double>(flow, 3,
                                                                               maps_over<Diagonal<2>>(data.graph)),
                                           training, bound, data);
}

TEST_CASE("a batch of three seeds with given maps: three single trainings, and checkpoints") {
  const Dataset data = karate_club();
  training_comparison::compare_seeds<Snn<GeneralLinear<2>, double>>(karate_options(data), data,
                                                                    maps_over<GeneralLinear<2>>(data.graph));
  training_comparison::compare_seeds<ConnNsd<2, double>>(karate_options<ConnectionModelOptions>(data), data);
  training_comparison::compare_seeds<BconnNsd<2, double>>(karate_options<ConnectionModelOptions>(data), data);
}

TEST_CASE("batches take equal maps of several models, and refuse other ones and other graphs") {
  using Model = Snn<SpecialOrthogonal<3>, double>;
  using Around = Bgsnn<GeneralLinear<2>, double>;
  const Dataset data = karate_club();
  const ModelOptions o = karate_options(data);
  const auto train_two = [&]<class M>(M one, M other) {
    std::vector<batch::Training<M>> trainings = {{&one, &data.splits[0], {.epochs = 2}},
                                                 {&other, &data.splits[1], {.epochs = 2}}};
    batch::HostExecutor executor;
    return batch::train_batch<batch::HostExecutor, M>(executor, data,
                                                      std::span<const batch::Training<M>>(trainings))
        .size();
  };
  const auto maps = [&](std::uint64_t seed) { return maps_over<SpecialOrthogonal<3>>(data.graph, seed); };
  CHECK(train_two(Model(o, 0, maps(4)), Model(o, 1, maps(4))) == 2);
  constexpr const char* other_posterior =
      "trainings[1].model: another posterior is not allowed; the models of a batch must have the same posterior";
  CHECK(test::message_of([&] { train_two(Model(o, 0, maps(4)), Model(o, 1, maps(5))); }) == other_posterior);
  CellularSheaf<SpecialOrthogonal<3>> heavier = sheaf_over<SpecialOrthogonal<3>>(data.graph);
  heavier.set_edge_weight(7, 3);
  CHECK(test::message_of([&] {
          train_two(Model(o, 0, maps(4)), Model(o, 1, GivenMaps<SpecialOrthogonal<3>>(heavier)));
        }) == other_posterior);
  const AroundGiven<GeneralLinear<2>> around(sheaf_over<GeneralLinear<2>>(data.graph)),
      with_means(sheaf_over<GeneralLinear<2>>(data.graph), DeviationSource::arcs_and_means),
      elsewhere(sheaf_over<GeneralLinear<2>>(data.graph, 5));
  CHECK(train_two(Around(o, 0, around), Around(o, 1, around)) == 2);
  CHECK(test::message_of([&] { train_two(Around(o, 0, around), Around(o, 1, elsewhere)); }) == other_posterior);

  const AroundGiven<GeneralLinear<2>> by_label =
                                          around_maps<GeneralLinear<2>>(data.graph, DeviationSource::labels),
                                      by_other(sheaf_over<GeneralLinear<2>>(data.graph),
                                               given_sheaves::edge_labels(data.graph, 2));
  CHECK(train_two(Around(o, 0, by_label), Around(o, 1, by_label)) == 2);
  CHECK(test::message_of([&] { train_two(Around(o, 0, by_label), Around(o, 1, by_other)); }) == other_posterior);
  CHECK_FALSE(with_means == around);

  const Graph other(data.graph.node_count(), std::vector<Edge>{{0, 1}, {1, 2}});
  CHECK(test::message_of([&] {
          const auto foreign = maps_over<SpecialOrthogonal<3>>(other);
          train_two(Model(o, 0, foreign), Model(o, 1, foreign));
        }) == sheafnn::detail::concat("edges of sheaves[0]: 2 is not allowed; the network's graph has ",
                                      data.graph.edge_count()));
}

}  // namespace test_batch_given
