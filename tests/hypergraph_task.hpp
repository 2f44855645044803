/// \file
/// A node classification task on a hypergraph, so small that every derivative can be checked, and the settings of networks
/// that the tests walk through.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sheafnn/bsnn/hypergraph_options.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "tiny_setting.hpp"
#include "tiny_task.hpp"

namespace tiny {

/// The features and labels of Task on six hyperedges of 0, 1, 2, 3, 4 and 5 nodes, with more pairs than a pack has lanes;
/// node 6 is in none.
struct HypergraphTask : Task {
  sheafnn::Hypergraph hypergraph;

  explicit HypergraphTask(std::uint64_t seed = 1) : Task(seed) {
    const std::vector<std::int32_t> members[] = {{1, 4, 0}, {2}, {5, 3}, {}, {0, 2, 3, 5}, {0, 1, 2, 4, 5}};
    hypergraph = sheafnn::hypergraph_of_members(nodes, members);
  }
};

using HypergraphSetting = SettingOf<sheafnn::HypergraphOptions>;

/// Every option alone, and mixtures of them.
inline std::vector<HypergraphSetting> hypergraph_settings(bool bayesian) {
  using sheafnn::HypergraphLaplacian, sheafnn::HypergraphUpdate;
  using Setting = HypergraphSetting;
  Setting plain;
  plain.name = "plain";
  plain.model.features = Task::features;
  plain.model.classes = Task::classes;
  plain.model.channels = 2;
  plain.model.layers = 2;
  plain.model.feature_treatment = sheafnn::FeatureTreatment::none;
  std::vector<Setting> r = {plain};
  const auto add = [&](const std::string& name, const std::function<void(Setting&)>& change) {
    r.push_back(plain);
    r.back().name = name;
    change(r.back());
  };
  const auto residual = [](Setting& s) { s.model.update = HypergraphUpdate::residual; };
  const auto nonlinear = [](Setting& s) { s.model.laplacian = HypergraphLaplacian::nonlinear; };
  const auto published = [](Setting& s) { s.model.laplacian = HypergraphLaplacian::published; };
  add("residual", residual);
  add("published", published);
  add("published, residual", [=](Setting& s) {
    published(s);
    residual(s);
  });
  add("nonlinear", nonlinear);
  add("nonlinear, mediators", [=](Setting& s) {
    nonlinear(s);
    s.model.mediators = true;
  });
  add("nonlinear, projection, residual", [=](Setting& s) {
    nonlinear(s);
    residual(s);
    s.model.projection = {0.3, 0.8};
  });
  add("nonlinear, mediators, projection, static", [=](Setting& s) {
    nonlinear(s);
    s.model.mediators = s.model.static_sheaf = true;
    s.model.projection = {0.3, -0.8};
    s.model.layers = 3;
  });
  add("averaged", [](Setting& s) { s.model.learner = sheafnn::HypergraphLearner::averaged; });
  add("static", [](Setting& s) {
    s.model.static_sheaf = true;
    s.model.layers = 3;
  });
  add("no bias", [](Setting& s) { s.model.bias = false; });
  add("no bias, residual", [=](Setting& s) {
    residual(s);
    s.model.bias = false;
  });
  add("no left_weights", [](Setting& s) { s.model.left_weights = false; });
  add("neither left_weights nor right_weights", [=](Setting& s) {
    s.model.left_weights = s.model.right_weights = false;
    residual(s);
  });
  add("2 readout layers", [](Setting& s) { s.model.readout_layers = 2; });
  add("9 channels, 1 layer", [](Setting& s) {
    s.model.channels = 9;
    s.model.layers = 1;
  });
  add("published spread", [](Setting& s) { s.model.spread = sheafnn::SpreadRange::published; });
  add("dropout", [](Setting& s) {
    s.input_dropout = 0.3;
    s.dropout = 0.4;
  });
  add("dropout, residual, some nodes", [=](Setting& s) {
    residual(s);
    s.input_dropout = 0.3;
    s.dropout = 0.4;
    s.only_nodes = true;
  });
  add("everything", [=](Setting& s) {
    nonlinear(s);
    residual(s);
    s.model.mediators = true;
    s.model.learner = sheafnn::HypergraphLearner::averaged;
    s.model.readout_layers = 2;
    s.dropout = 0.2;
    s.only_nodes = true;
    if (!bayesian) return;
    s.model.separate_encoder = true;
    s.kl_estimator = sheafnn::KlEstimator::monte_carlo;
    s.samples = 2;
  });
  if (bayesian) {
    add("no separate_encoder", [](Setting& s) { s.model.separate_encoder = false; });
    add("separate_encoder", [](Setting& s) { s.model.separate_encoder = true; });
    add("Monte Carlo KL", [](Setting& s) { s.kl_estimator = sheafnn::KlEstimator::monte_carlo; });
    add("3 samples, static", [](Setting& s) {
      s.samples = 3;
      s.model.static_sheaf = true;
    });
  }
  return r;
}

}  // namespace tiny
