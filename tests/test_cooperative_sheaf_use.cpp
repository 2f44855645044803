/// \file
/// Is the sheaf of a cooperative network used: maps that are given to a network, figures of maps that are the same at all
/// nodes, and the score of maps that are not.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "shared_networks.hpp"
#include "sheafnn/bsnn/cooperative_sheaf_use.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_cooperative_sheaf_use {
namespace {

using sheafnn::Bcsnn;
using sheafnn::Csnn;
using sheafnn::Index;
using sheafnn::SheafUse;

/// Of double.
constexpr double epsilon = std::numeric_limits<double>::epsilon();

sheafnn::Dataset tiny_data() {
  const tiny::Task task;
  sheafnn::Dataset data{"tiny", task.graph, task.sparse, task.labels, task.classes, {}};
  data.splits.push_back({task.train, {}, {}});
  return data;
}
sheafnn::CooperativeOptions tiny_options() {
  sheafnn::CooperativeOptions options;
  options.features = tiny::Task::features;
  options.classes = tiny::Task::classes;
  options.channels = 2;
  options.layers = 2;
  return options;
}
template <class Model>
Model disturbed() {
  Model model(tiny_options(), 5);
  tiny::disturb(model.parameters(), 6, 0.5);
  return model;
}
/// Raw outputs of the learners are 0 at every node.
template <class Model>
Model constant_model() {
  Model model = disturbed<Model>();
  for (std::size_t id = 0; id < model.parameters().info().size(); ++id) {
    const sheafnn::layers::ParameterInfo& info = model.parameters().info()[id];
    if (info.group != sheafnn::layers::ParameterGroup::sheaf_learner) continue;
    std::fill_n(model.parameters().data(static_cast<sheafnn::layers::ParameterId>(id)), info.size, 0);
  }
  return model;
}

template <class Model>
std::vector<double> outputs_of(const sheafnn::BegunPass<sheafnn::Network<Model>>& pass) {
  const auto outputs = pass.draw().view();
  std::vector<double> r;
  for (Index u = 0; u < outputs.rows(); ++u) {
    for (Index c = 0; c < outputs.columns(); ++c) r.push_back(outputs(u, c));
  }
  return r;
}

template <class Model>
void check_given_maps() {
  CAPTURE(Model::kind);
  const sheafnn::Dataset data = tiny_data();
  const Model model = disturbed<Model>();
  sheafnn::Network<Model> network(model, data.graph, data.features);
  const auto pass = network.begin({.seed = 3});
  const std::vector<double> before = outputs_of(pass);
  const auto rows = [&] { return std::vector{network.node_maps(0).rows(), network.node_maps(1).rows()}; };
  const auto own = rows();
  const auto difference = [&](const std::vector<double>& other) {
    double worst = 0, size = 1;
    for (std::size_t i = 0; i < before.size(); ++i) {
      worst = test::worse(worst, std::abs(other[i] - before[i]));
      size = std::max(size, std::abs(before[i]));
    }
    return worst / size;
  };
  // Scales are divided out of the maps and multiplied into them again.
  network.give_maps(own);
  CHECK(difference(outputs_of(pass)) <= 1024 * epsilon);
  const sheafnn::layers::NodeMapRows<2, double> trivial(network.node_maps(0).degrees());
  network.give_maps({trivial, trivial});
  CHECK(difference(outputs_of(pass)) > 1e-3);
  CHECK(network.node_maps(1).map(sheafnn::layers::MapSide::in, 2)[0] == 1);
  CHECK(network.node_maps(1).map(sheafnn::layers::MapSide::in, 2)[1] == 0);
  CHECK_THROWS_WITH(network.begin({.training = true}),
                    "training: true is not allowed; given maps are for evaluations");
  CHECK_THROWS_WITH(network.give_maps({trivial}),
                    "maps: 1 is not allowed; must be 0, or one for each of 2 layers");
  network.give_maps({});
  CHECK(outputs_of(network.begin({.seed = 3})) == before);
}

TEST_CASE("a cooperative network takes maps in place of its own") {
  check_given_maps<Csnn<2, double>>();
  check_given_maps<Bcsnn<2, double>>();
}

TEST_CASE("node maps that are the same everywhere") {
  const sheafnn::Dataset data = tiny_data();
  const auto& nodes = data.splits[0].train;
  const SheafUse fixed = sheafnn::sheaf_use(constant_model<Csnn<2, double>>(), data, nodes, {.samples = 2});
  CHECK(!fixed.bayesian);
  CHECK(std::isnan(fixed.kl));
  CHECK(fixed.turn.high <= 180 * 64 * epsilon);
  CHECK(fixed.nodes == 6);
  CHECK(std::abs(fixed.permuted.rise) <= 4096 * epsilon);
  CHECK(std::abs(fixed.identity.rise) <= 4096 * epsilon);  // raw outputs of 0 are identity maps
  CHECK(std::abs(fixed.prior.rise) > 1e-6);
  CHECK(sheafnn::is_unused(fixed));
  CHECK(sheafnn::warning(fixed).starts_with("the sheaf is not used: with its maps permuted between nodes "));
  CHECK(sheafnn::warning(fixed).find("KL weight") == std::string::npos);
  CHECK(sheafnn::warning(fixed).find("identity maps") == std::string::npos);

  const auto drawn = sheafnn::sheaf_use(constant_model<Bcsnn<2, double>>(), data, nodes, {.samples = 20});
  CHECK(drawn.bayesian);
  REQUIRE(drawn.spread.size() == 2);
  CHECK(drawn.spread[0].name == "kappa");
  CHECK(drawn.spread[0].values.low == drawn.spread[0].values.high);
  CHECK(drawn.spread[1].name == "sigma");
  CHECK(drawn.spread[1].values.deviation <= 4 * epsilon);
  CHECK(drawn.kl >= 0);
  CHECK(drawn.turn.high <= 180 * 64 * epsilon);
}

TEST_CASE("node maps that matter") {
  const sheafnn::Dataset data = tiny_data();
  const auto& nodes = data.splits[0].train;
  const auto model = disturbed<Csnn<2, double>>();
  const SheafUse use = sheafnn::sheaf_use(model, data, nodes, {.samples = 3, .seed = 2, .threads = 1});
  CHECK(std::abs(use.permuted.rise) > 1e-6);
  CHECK(use.turn.high > use.turn.low);
  const sheafnn::Prediction prediction = sheafnn::predict(model, data);
  double loss = 0;
  for (const std::int32_t u : nodes) {
    const auto label = static_cast<std::size_t>(data.labels[static_cast<std::size_t>(u)]);
    loss -= std::log(prediction.probabilities[static_cast<std::size_t>(3 * u) + label]) / 6;
  }
  CHECK(use.loss == doctest::Approx(loss).epsilon(1e-12));
  const SheafUse again = sheafnn::sheaf_use(model, data, nodes, {.samples = 3, .seed = 2, .threads = 2});
  CHECK(again.permuted.loss == use.permuted.loss);
  CHECK(again.prior.loss == use.prior.loss);

  const auto bayesian = disturbed<Bcsnn<2, double>>();
  const SheafUse drawn = sheafnn::sheaf_use(bayesian, data, nodes, {.samples = 4, .seed = 2, .epoch = 1});
  const auto predicted = sheafnn::predict(bayesian, data, {.samples = 4, .seed = 2, .epoch = 1});
  loss = 0;
  for (const std::int32_t u : nodes) {
    const auto label = static_cast<std::size_t>(data.labels[static_cast<std::size_t>(u)]);
    loss -= std::log(predicted.probabilities[static_cast<std::size_t>(3 * u) + label]) / 6;
  }
  CHECK(drawn.loss == doctest::Approx(loss).epsilon(1e-12));
  CHECK(std::isnan(sheafnn::sheaf_use(model, data, {}).loss));
}

}  // namespace
}  // namespace test_cooperative_sheaf_use
