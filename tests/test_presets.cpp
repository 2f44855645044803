/// \file
/// Presets: the choice by size and homophily, which does not look at test labels, and what a preset sets.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheafnn/bsnn/presets.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/graph/statistics.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace test_presets {
namespace {

using sheafnn::Preset;

sheafnn::Dataset graph_of(sheafnn::Index nodes, double homophily) {
  return sheafnn::synthetic({.nodes = nodes, .classes = 3, .features = 30, .homophily = homophily, .splits = 1});
}

}  // namespace

TEST_CASE("the preset of a graph") {
  using sheafnn::choose_preset;
  CHECK(choose_preset(999, 0.49) == Preset::small);
  CHECK(choose_preset(1000, 0.49) == Preset::heterophilic);
  CHECK(choose_preset(9999, 0.49) == Preset::heterophilic);
  CHECK(choose_preset(30, 0.5) == Preset::citation);
  CHECK(choose_preset(9999, 0.9) == Preset::citation);
  CHECK(choose_preset(10'000, 0.9) == Preset::large);
  CHECK(choose_preset(10'000, 0.1) == Preset::large);
  CHECK(choose_preset(30, std::nullopt) == Preset::citation);
  for (const sheafnn::Index n : {30, 9999}) {
    CHECK(choose_preset(n, 0.49, 10) == Preset::dense);
    CHECK(choose_preset(n, 0.49, 9.9) != Preset::dense);
    CHECK(choose_preset(n, 0.5, 100) == Preset::citation);
  }
  CHECK(choose_preset(10'000, 0.1, 100) == Preset::large);

  for (const double homophily : {0.1, 0.8}) {
    const sheafnn::Dataset data = graph_of(400, homophily);
    const std::optional<double> seen = sheafnn::seen_homophily(data, data.splits[0]);
    REQUIRE(seen.has_value());
    CHECK(std::abs(*seen - homophily) < 0.1);
    CHECK(choose_preset(data, data.splits[0]) == (homophily < 0.5 ? Preset::small : Preset::citation));
  }
}

TEST_CASE("the choice does not look at the labels of test nodes") {
  sheafnn::Dataset data = graph_of(400, 0.6);
  const sheafnn::Split& split = data.splits[0];
  const std::optional<double> before = sheafnn::seen_homophily(data, split);
  for (const std::int32_t u : split.test) {
    std::int32_t& label = data.labels[static_cast<std::size_t>(u)];
    label = (label + 1) % 3;
  }
  CHECK(sheafnn::seen_homophily(data, split) == before);
  // It is the homophily of what training and validation nodes span, counted here once more.
  std::vector<bool> known(400);
  for (const auto* set : {&split.train, &split.validation}) {
    for (const std::int32_t u : *set) known[static_cast<std::size_t>(u)] = true;
  }
  double same = 0, all = 0;
  for (const sheafnn::Edge& e : data.graph.edges()) {
    const std::size_t u = static_cast<std::size_t>(e.u), v = static_cast<std::size_t>(e.v);
    if (!known[u] || !known[v]) continue;
    all += 1;
    same += data.labels[u] == data.labels[v] ? 1 : 0;
  }
  CHECK(before == same / all);
  // No edge among them, no homophily.
  sheafnn::Split apart = sheafnn::karate_club().splits[0];
  apart.train = {14};
  apart.validation = {15};  // both know 32 and 33 only
  CHECK_FALSE(sheafnn::seen_homophily(sheafnn::karate_club(), apart).has_value());
  apart.validation = {34};
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::seen_homophily(sheafnn::karate_club(), apart)),
                       "karate: split.validation: 34 is not allowed; must be between 0 and 33",
                       std::invalid_argument);
}

TEST_CASE("a preset sets its options and leaves the others as they are") {
  for (std::size_t i = 0; i < names_of(sheafnn::Preset()).size(); ++i) {
    const Preset preset = static_cast<Preset>(i);
    CAPTURE(to_string(preset));
    sheafnn::ModelOptions model{.features = 70, .classes = 3};
    model.learner_layers = 2;
    sheafnn::TrainOptions training;
    training.seed = 5;
    training.samples = 9;
    sheafnn::apply(preset, model, training);
    CHECK(model.features == 70);
    CHECK(model.classes == 3);
    CHECK(model.learner_layers == 2);
    CHECK(training.seed == 5);
    CHECK(training.samples == 9);
    CHECK_NOTHROW(sheafnn::validate(training));
    CHECK(training.weight_decay == training.sheaf_decay);
    CHECK(training.patience < training.epochs);
    CHECK(model.add_lp == (preset != Preset::large));
    CHECK(model.add_hp == (preset != Preset::citation));

    const double input_dropout = training.input_dropout;
    for (const sheafnn::Index features :
         {1, 29, 30, 0}) {  // of few columns none is dropped; of an unknown number as of many
      sheafnn::ModelOptions other{.features = features};
      sheafnn::apply(preset, other, training);
      CHECK(training.input_dropout == (features > 0 && features < 30 ? 0 : input_dropout));
    }

    sheafnn::FlowOptions flow{.features = 7, .classes = 3};
    flow.fixed_steps = 5;
    sheafnn::apply(preset, flow, training);
    CHECK(flow.features == 7);
    CHECK(flow.fixed_steps == 5);
    CHECK(flow.add_lp == (preset == Preset::citation || preset == Preset::dense));
    CHECK_NOTHROW(static_cast<void>(sheafnn::resolve<sheafnn::Diagonal<2>>(flow, true)));
    CHECK_NOTHROW(sheafnn::validate(training));
    CHECK(training.patience < training.epochs);

    for (const bool bayesian : {false, true}) {
      sheafnn::CooperativeOptions cooperative{.features = 7, .classes = 3};
      cooperative.directed = true;
      sheafnn::apply(preset, cooperative, bayesian, training);
      CHECK(cooperative.features == 7);
      CHECK(cooperative.directed);
      CHECK(cooperative.layer_learners == bayesian);
      CHECK((cooperative.learner == sheafnn::NodeLearnerKind::sage_projected) == (preset == Preset::large));
      CHECK_NOTHROW(static_cast<void>(sheafnn::resolve(cooperative, 3, bayesian)));
      CHECK_NOTHROW(sheafnn::validate(training));
      CHECK(training.patience < training.epochs);
      CHECK(training.seed == 5);
    }
  }
}

TEST_CASE("two unequal classes are measured by the ROC AUC") {
  using sheafnn::StopOn;
  sheafnn::Dataset data = sheafnn::synthetic({.nodes = 90, .classes = 2, .features = 30, .splits = 2});
  const auto label = [&](auto of) {
    for (std::size_t u = 0; u < 90; ++u) data.labels[u] = of(u) ? 1 : 0;
  };
  // Of the nodes that are looked at, the first 60 here, a third of one class is enough, more is not.
  for (sheafnn::Split& split : data.splits) {
    split.train.clear();
    split.validation.clear();
    for (std::int32_t u = 0; u < 60; ++u) (u < 30 ? split.train : split.validation).push_back(u);
  }
  label([](std::size_t u) { return u % 3 == 0; });
  CHECK(sheafnn::choose_stop_on(data) == StopOn::roc_auc);
  label([](std::size_t u) { return u % 3 == 0 || u == 1; });
  CHECK(sheafnn::choose_stop_on(data) == StopOn::loss);
  label([](std::size_t u) { return u % 3 == 0 || u > 60; });  // test nodes do not count
  CHECK(sheafnn::choose_stop_on(data) == StopOn::roc_auc);
  label([](std::size_t u) { return u % 3 != 0; });
  CHECK(sheafnn::choose_stop_on(data) == StopOn::roc_auc);
  // Every split needs both classes among its validation nodes.
  label([](std::size_t u) { return u < 10 || u == 40; });
  CHECK(sheafnn::choose_stop_on(data) == StopOn::roc_auc);
  data.splits[1].validation = {30, 31};
  CHECK(sheafnn::choose_stop_on(data) == StopOn::loss);
  data.splits[1].validation.clear();
  CHECK(sheafnn::choose_stop_on(data) == StopOn::loss);
  data.splits[1].validation = {90};
  CHECK_THROWS_AS(static_cast<void>(sheafnn::choose_stop_on(data)), std::invalid_argument);
  data.splits.clear();
  CHECK(sheafnn::choose_stop_on(data) == StopOn::loss);
  CHECK(sheafnn::choose_stop_on(graph_of(400, 0.1)) == StopOn::loss);  // three classes
  // Of presets dense alone has the accuracy where others have the loss.
  for (std::size_t i = 0; i < names_of(sheafnn::Preset()).size(); ++i) {
    const Preset preset = static_cast<Preset>(i);
    CHECK(sheafnn::choose_stop_on(graph_of(400, 0.1), preset) ==
          (preset == Preset::dense ? StopOn::accuracy : StopOn::loss));
  }
  CHECK(sheafnn::choose_stop_on(data, StopOn::accuracy) == StopOn::accuracy);
}

}  // namespace test_presets
