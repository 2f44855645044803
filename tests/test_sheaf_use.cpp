/// \file
/// Is a learned sheaf used: figures against hand-made sheaves and posteriors, the score of a network that needs its maps
/// and of one whose maps are all the same, priors, models without a sheaf.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "frames_task.hpp"
#include "shared_networks.hpp"
#include "sheafnn/bsnn/sheaf_use.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/posterior/rotation_priors.hpp"
#include "tiny_task.hpp"

namespace test_sheaf_use {
namespace {

using sheafnn::Bsnn;
using sheafnn::CellularSheaf;
using sheafnn::Dataset;
using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::GivenMaps;
using sheafnn::Identity;
using sheafnn::Index;
using sheafnn::Nsd;
using sheafnn::SheafUse;
using sheafnn::Snn;
using sheafnn::SpecialOrthogonal;
using sheafnn::Stream;

/// Of double.
constexpr double epsilon = std::numeric_limits<double>::epsilon();

Dataset tiny_data() {
  const tiny::Task task;
  Dataset data{"tiny", task.graph, task.sparse, task.labels, task.classes, {}};
  data.splits.push_back({task.train, {}, {}});
  return data;
}

/// A model whose sheaf learner has weights 0: its raw outputs are 0 for every arc.
template <class Model>
Model constant_model(const sheafnn::ModelOptions& options) {
  Model model(options, 5);
  tiny::disturb(model.parameters(), 6, 0.3);
  for (std::size_t id = 0; id < model.parameters().info().size(); ++id) {
    const sheafnn::layers::ParameterInfo& info = model.parameters().info()[id];
    if (info.group != sheafnn::layers::ParameterGroup::sheaf_learner) continue;
    std::fill_n(model.parameters().data(static_cast<sheafnn::layers::ParameterId>(id)), info.size, 0);
  }
  return model;
}

double degrees(double radians) { return radians * 180 / std::acos(-1.0); }

TEST_CASE("quantiles") {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  const auto all = sheafnn::detail::sheaf_quantiles(values);
  CHECK(all.low == doctest::Approx(5).epsilon(8 * epsilon));
  CHECK(all.median == 50);
  CHECK(all.high == doctest::Approx(95).epsilon(8 * epsilon));
  CHECK(all.deviation == doctest::Approx(std::sqrt((101.0 * 101 - 1) / 12)).epsilon(64 * epsilon));
  values = {1, 2};
  CHECK(sheafnn::detail::sheaf_quantiles(values).median == 1.5);
  values.clear();
  CHECK(std::isnan(sheafnn::detail::sheaf_quantiles(values).low));
}

/// Maps that are the same at all edges: no spread, no turn, and nothing changes where they are permuted.
template <class Family>
void check_constant_maps() {
  CAPTURE(Family::name);
  const Dataset data = tiny_data();
  const auto deterministic = constant_model<Nsd<Family, double>>(tiny::options());
  const SheafUse fixed = sheafnn::sheaf_use(deterministic, data, data.splits[0].train);
  CHECK(!fixed.bayesian);
  CHECK(std::isnan(fixed.kl));
  CHECK(fixed.spread.empty());
  CHECK(fixed.nodes == 6);
  const double rounding = 256 * static_cast<double>(deterministic.hidden_width()) * epsilon;
  CHECK(std::abs(fixed.permuted.rise) <= rounding);
  CHECK(fixed.permuted.standard_error <= rounding);
  CHECK(std::abs(fixed.prior.rise) > 1e-6);
  CHECK(sheafnn::warning(fixed).starts_with("the sheaf is not used: "));

  const auto bayesian = constant_model<Bsnn<Family, double>>(tiny::options());
  const SheafUse drawn = sheafnn::sheaf_use(bayesian, data, data.splits[0].train, {.samples = 50});
  CHECK(drawn.bayesian);
  REQUIRE(drawn.spread.size() == 1);
  CHECK(drawn.spread[0].values.low == drawn.spread[0].values.high);
  CHECK(drawn.spread[0].values.deviation <= 4 * epsilon);
  CHECK(drawn.turn.high == fixed.turn.high);
  CHECK(sheafnn::is_unused(drawn));
  CHECK(sheafnn::warning(drawn).find("smaller KL weight") != std::string::npos);
}

TEST_CASE("maps that are the same everywhere") {
  check_constant_maps<SpecialOrthogonal<3>>();
  const Dataset data = tiny_data();
  sheafnn::ModelOptions published = tiny::options();
  published.spread = sheafnn::SpreadRange::published;
  const auto rotations = constant_model<Bsnn<SpecialOrthogonal<3>, double>>(published);
  const SheafUse use = sheafnn::sheaf_use(rotations, data, data.splits[0].train);
  CHECK(use.spread[0].name == "kappa");
  CHECK(use.spread[0].values.median == doctest::Approx(1.0 / 3).epsilon(8 * epsilon));  // γ' = ½
  CHECK(use.kl == doctest::Approx(sheafnn::rotation::cayley_kl<3>(1.0 / 3)).epsilon(64 * epsilon));
  CHECK(use.turn.high <= degrees(64 * epsilon));
  CHECK(std::isnan(use.negative));
  // A raw output of 0 is a diagonal map 0, whose standard deviation is the prior's.
  const auto diagonals = constant_model<Bsnn<Diagonal<2>, double>>(published);
  const SheafUse zero = sheafnn::sheaf_use(diagonals, data, data.splits[0].train);
  CHECK(zero.spread[0].name == "sigma");
  CHECK(zero.spread[0].values.median == 1);
  CHECK(zero.kl == 0);
  CHECK(zero.negative == 0);
  CHECK(std::isnan(zero.turn.median));
}

TEST_CASE("a network that needs its maps") {
  const test::FramesTask task(900);
  const std::vector<std::int32_t>& nodes = task.data.splits[0].validation;
  sheafnn::TrainOptions training;
  training.epochs = training.patience = 300;
  training.learning_rate = 0.02;
  training.dropout = training.input_dropout = 0;
  training.threads = 1;
  Snn<SpecialOrthogonal<3>> model(task.options(), 1, GivenMaps(task.truth));
  const auto result = sheafnn::train(model, task.data, task.data.splits[0], training);
  const SheafUse use = sheafnn::sheaf_use(model, task.data, nodes, {.samples = 2, .seed = 4, .threads = 1});
  CHECK(use.nodes == 300);
  CHECK(use.loss == doctest::Approx(result.validation_loss).epsilon(1e-5));
  for (const sheafnn::ChangedSheafLoss& changed : {use.permuted, use.prior, use.identity}) {
    CHECK(changed.rise > 0.1);
    CHECK(changed.rise > 3 * changed.standard_error);
    CHECK(changed.loss - use.loss == doctest::Approx(changed.rise).epsilon(1e-9));
  }
  CHECK(!sheafnn::is_unused(use));
  CHECK(sheafnn::warning(use).empty());
  // Threads change nothing, and the seed chooses the permutation.
  CHECK(sheafnn::sheaf_use(model, task.data, nodes, {.samples = 2, .seed = 4, .threads = 2}).permuted.loss ==
        use.permuted.loss);
  CHECK(sheafnn::sheaf_use(model, task.data, nodes, {.samples = 2, .seed = 5}).permuted.loss != use.permuted.loss);
  // The identity's loss by hand.
  const auto trivial =
      sheafnn::with_sheaves(model, GivenMaps(CellularSheaf<SpecialOrthogonal<3>>(task.data.graph)));
  const sheafnn::Prediction prediction = sheafnn::predict(trivial, task.data);
  double loss = 0;
  for (const std::int32_t u : nodes) {
    const auto label = static_cast<std::size_t>(task.data.labels[static_cast<std::size_t>(u)]);
    loss -= std::log(prediction.probabilities[static_cast<std::size_t>(2 * u) + label]) / 300;
  }
  CHECK(use.identity.loss == doctest::Approx(loss).epsilon(1e-12));
}

/// The figures of a model of these maps: `out` for arcs from the smaller node, `in` for their reverses.
template <class Family, class Map>
SheafUse figures_of(const Map& out, const Map& in) {
  const Dataset data = tiny_data();
  CellularSheaf<Family> sheaf(data.graph);
  for (Index e = 0; e < data.graph.edge_count(); ++e) {
    sheaf.set_map(data.graph.forward_arc(e), out);
    sheaf.set_map(data.graph.reverse(data.graph.forward_arc(e)), in);
  }
  return sheafnn::sheaf_use(Snn<Family, double>(tiny::options(), 1, GivenMaps(sheaf)), data, {});
}

TEST_CASE("angles and signs of transports") {
  Eigen::Matrix2d turn;
  turn << std::cos(0.5), -std::sin(0.5), std::sin(0.5), std::cos(0.5);
  const Eigen::Matrix2d one = Eigen::Matrix2d::Identity();
  const SheafUse flat = figures_of<SpecialOrthogonal<2>>(turn, one);
  CHECK(flat.turn.low == doctest::Approx(degrees(0.5)).epsilon(64 * epsilon));
  CHECK(flat.turn.high == doctest::Approx(degrees(0.5)).epsilon(64 * epsilon));
  CHECK(flat.nodes == 0);  // there is no score without nodes
  CHECK(std::isnan(flat.permuted.rise));
  // 3 R is nearest to R; of 0 no rotation is nearest.
  CHECK(figures_of<GeneralLinear<2>>(Eigen::Matrix2d(3 * turn), one).turn.median ==
        doctest::Approx(degrees(0.5)).epsilon(64 * epsilon));
  CHECK(std::isnan(figures_of<GeneralLinear<2>>(Eigen::Matrix2d(0 * one), one).turn.median));
  Eigen::Matrix4d four = Eigen::Matrix4d::Identity();
  four.topLeftCorner<2, 2>() = turn;
  four.bottomRightCorner<2, 2>() = turn * turn;
  const Eigen::Matrix4d still = Eigen::Matrix4d::Identity();
  CHECK(figures_of<SpecialOrthogonal<4>>(four, still).turn.median == doctest::Approx(degrees(1)).epsilon(1e-12));
  CHECK(figures_of<Diagonal<2>>(Eigen::Vector2d(-1, 2), Eigen::Vector2d(3, 1)).negative == 0.5);
}

TEST_CASE("permuted sheaves keep the pairs of maps and the weights of edges") {
  const Dataset data = sheafnn::karate_club();
  CellularSheaf<SpecialOrthogonal<2>> sheaf(data.graph);
  const auto angle = [](const auto& of, Index a) { return std::atan2(of.map(a)(1, 0), of.map(a)(0, 0)); };
  for (Index e = 0; e < data.graph.edge_count(); ++e) {
    for (const int side : {0, 1}) {
      const double x = 0.01 * static_cast<double>(e + 1) * (side == 0 ? 1 : -1);
      Eigen::Matrix2d map;
      map << std::cos(x), -std::sin(x), std::sin(x), std::cos(x);
      const Index forward = data.graph.forward_arc(e);
      sheaf.set_map(side == 0 ? forward : data.graph.reverse(forward), map);
    }
    sheaf.set_edge_weight(e, static_cast<double>(e + 1));
  }
  const auto permuted = sheafnn::detail::permuted_sheaf(sheaf, Stream{.seed = 3});
  std::vector<double> before, after;
  Index moved = 0;
  for (Index e = 0; e < data.graph.edge_count(); ++e) {
    const Index forward = data.graph.forward_arc(e);
    CHECK(permuted.edge_weight(e) == sheaf.edge_weight(e));
    CHECK(angle(permuted, forward) > 0);
    CHECK(angle(permuted, data.graph.reverse(forward)) == -angle(permuted, forward));
    before.push_back(angle(sheaf, forward));
    after.push_back(angle(permuted, forward));
    moved += before.back() != after.back() ? 1 : 0;
  }
  CHECK(moved > data.graph.edge_count() / 2);
  std::sort(after.begin(), after.end());
  CHECK(after == before);
}

TEST_CASE("a loss that is not finite is no reason to warn") {
  const std::vector<std::int32_t> labels = {0, 1}, nodes = {0, 1};
  sheafnn::Prediction prediction;
  prediction.class_count = 2;
  prediction.probabilities = {0.5, 0.5, 1, 0};
  sheafnn::detail::NodeLosses own(labels, nodes, true), changed(labels, nodes, true);
  own.add(prediction);
  const std::vector<double> losses = own.losses();
  CHECK(losses[0] == doctest::Approx(std::log(2.0)).epsilon(4 * epsilon));
  CHECK(losses[1] == doctest::Approx(30 * std::log(10.0)).epsilon(4 * epsilon));
  changed.add(prediction);
  changed.add_unknown();
  SheafUse use;
  use.nodes = 2;
  use.permuted = sheafnn::detail::compare_losses(changed, losses);
  CHECK(std::isnan(use.permuted.rise));
  CHECK(std::isnan(use.permuted.accuracy));
  CHECK(sheafnn::warning(use).empty());
}

TEST_CASE("accuracies are of the mean prediction, or means over the predictions") {
  const std::vector<std::int32_t> labels = {0, 1}, nodes = {0, 1};
  sheafnn::Prediction first, second;
  first.class_count = second.class_count = 2;
  first.probabilities = {0.4, 0.6, 0.3, 0.7};   // wrong, right
  second.probabilities = {0.9, 0.1, 0.8, 0.2};  // right, wrong
  sheafnn::detail::NodeLosses mean(labels, nodes, true), each(labels, nodes, false);
  for (auto* losses : {&mean, &each}) {
    losses->add(first);
    losses->add(first);
    losses->add(second);
  }
  CHECK(mean.accuracy() == 1);                                      // (0.57, 0.43) and (0.47, 0.53)
  CHECK(each.accuracy() == doctest::Approx(0.5).epsilon(epsilon));  // 1 of 2, three times
}

TEST_CASE("the rule and the sentence") {
  SheafUse use;
  use.nodes = 100;
  use.permuted = {1, 0.02, 0.009};
  CHECK(!sheafnn::is_unused(use));
  use.permuted.standard_error = 0.011;  // two of them are more than the rise
  CHECK(sheafnn::is_unused(use));
  use.permuted = {1, -0.0012345, 0.0001};
  CHECK(sheafnn::warning(use) ==
        "the sheaf is not used: with its maps permuted between edges the loss changes by -0.0012 nats (standard error "
        "0.0001); try less dropout of hidden features, a smaller decay of the sheaf learner or a network with identity "
        "maps, which is cheaper");
  // What is to be tried fits the network.
  use.bayesian = true;
  CHECK(sheafnn::warning(use).ends_with(
      "; try a smaller KL weight, less dropout of hidden features, a smaller decay of the sheaf learner or a network "
      "with identity maps, which is cheaper"));
  use.of_nodes = true;
  CHECK(sheafnn::warning(use).starts_with("the sheaf is not used: with its maps permuted between nodes the loss"));
  CHECK(sheafnn::warning(use).ends_with(
      "; try a smaller KL weight, less dropout of hidden features or a smaller decay of the sheaf learner"));
  use.bayesian = false;
  CHECK(sheafnn::warning(use).ends_with(
      "; try less dropout of hidden features or a smaller decay of the sheaf learner"));
}

TEST_CASE("one sentence about several trainings") {
  SheafUse unused, used, unknown;
  unused.nodes = used.nodes = 100;
  unused.permuted = {1, 0.001, 0.001};
  used.permuted = {1, 0.5, 0.01};
  const auto said = [](const std::vector<SheafUse>& trainings) { return sheafnn::warning(std::span(trainings)); };
  CHECK(said({}).empty());
  CHECK(said({used, used}).empty());
  CHECK(said({unknown}).empty());
  CHECK(said({unused}) == sheafnn::warning(unused));
  CHECK(said({used, unused, unknown, unused}) ==
        "the sheaf is not used in 2 of 3 trainings: with its maps permuted between edges the loss rises by less than "
        "0.01 nats or 2 standard errors; try less dropout of hidden features, a smaller decay of the sheaf learner or "
        "a network with identity maps, which is cheaper");
}

TEST_CASE("maps of the prior") {
  using sheafnn::detail::prior_map;
  const Stream stream{.seed = 3};
  const sheafnn::NormalPosterior<Diagonal<2>, sheafnn::NormalPrior<2>> narrow{.prior = {3, 1e-9}};
  CHECK((prior_map(narrow, stream, 1) - Eigen::Vector2d(3, 3)).norm() < 1e-7);
  CHECK(prior_map(sheafnn::NormalPosterior<Diagonal<2>>{}, stream, 1) ==
        sheafnn::sheaf::random_map<Diagonal<2>>(stream, 1));
  const Eigen::Matrix3d location = sheafnn::sheaf::random_map<SpecialOrthogonal<3>>(stream, 7);
  using Near = sheafnn::CayleyPosterior<SpecialOrthogonal<3>, sheafnn::CayleyPrior<3>>;
  const Near near{.prior = {location, 0.9999999}};
  const Near uniform{.prior = {location, 0}};
  CHECK((prior_map(near, stream, 1) - location).norm() < 1e-3);
  CHECK((prior_map(uniform, stream, 1) - location).norm() > 0.1);
  CHECK(prior_map(sheafnn::CayleyPosterior<SpecialOrthogonal<3>>{}, stream, 1) ==
        sheafnn::sheaf::random_map<SpecialOrthogonal<3>>(stream, 1));
  CHECK(prior_map(sheafnn::PointMass<SpecialOrthogonal<3>>{}, stream, 1) ==
        sheafnn::sheaf::random_map<SpecialOrthogonal<3>>(stream, 1));
}

TEST_CASE("models without a sheaf have no figures, and wrong options are refused") {
  const Dataset data = tiny_data();
  const auto& nodes = data.splits[0].train;
  const auto check_none = [](const SheafUse& use) {
    CHECK(use.nodes == 0);
    CHECK(std::isnan(use.loss));
    CHECK(std::isnan(use.turn.median));
    CHECK(sheafnn::warning(use).empty());
  };
  check_none(sheafnn::sheaf_use(Nsd<Identity<3>, double>(tiny::options()), data, nodes));
  sheafnn::ModelOptions options = tiny::options();
  options.use_edges = false;
  const Nsd<Diagonal<2>, double> edgeless(options);
  check_none(sheafnn::sheaf_use(edgeless, data, nodes));
  const Nsd<Diagonal<2>, double> model(tiny::options());
  Dataset lonely = data;
  lonely.graph = sheafnn::Graph(data.node_count(), std::span<const sheafnn::Edge>());
  check_none(sheafnn::sheaf_use(model, lonely, nodes));
  CHECK_THROWS_WITH(static_cast<void>(sheafnn::sheaf_use(model, data, nodes, {.samples = 0})),
                    "samples: 0 is not allowed; must be between 1 and 32768");
  CHECK_THROWS_WITH(static_cast<void>(sheafnn::sheaf_use(model, data, std::vector<std::int32_t>{7})),
                    "node: 7 is not allowed; must be between 0 and 6");
}

}  // namespace
}  // namespace test_sheaf_use
