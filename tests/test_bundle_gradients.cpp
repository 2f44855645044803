// The gradient of bundle networks against central differences along every coordinate, for every option alone and for several
// together.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "model_gradient.hpp"
#include "sheafnn/bsnn/bundle_network.hpp"

namespace bundle_gradients_test {

using sheafnn::BundleLearnerKind;
using sheafnn::BundleMixing;
using sheafnn::HeatExpansion;
using sheafnn::Index;

using Setting = tiny::SettingOf<sheafnn::BundleOptions>;

std::vector<Setting> settings(int dimension, bool bayesian) {
  using Change = std::function<void(Setting&)>;
  Setting plain;
  plain.name = "plain";
  plain.kl_estimator = sheafnn::KlEstimator::closed_form;
  plain.model.features = tiny::Task::features;
  plain.model.classes = tiny::Task::classes;
  plain.model.channels = 1;
  plain.model.bundles = 2;
  plain.model.layers = 2;
  plain.model.learner_width = 3;
  plain.model.terms = 4;
  plain.model.activation = sheafnn::Activation::gelu;
  std::vector<Setting> r = {plain};
  const auto add = [&](const std::string& name, const Change& change) {
    r.push_back(plain);
    r.back().name = name;
    change(r.back());
  };
  add("linear mixing", [](Setting& s) { s.model.mixing = BundleMixing::linear; });
  add("linear mixing, 3 channels, nothing added", [](Setting& s) {
    s.model.mixing = BundleMixing::linear;
    s.model.channels = 3;
    s.model.residual = s.model.layer_norm = false;
    s.only_nodes = true;
  });
  if (dimension > 3) return r;
  add("mlp", [](Setting& s) { s.model.learner = BundleLearnerKind::mlp; });
  for (const auto learner : {BundleLearnerKind::sage, BundleLearnerKind::sage_residual}) {
    for (const Index layers : {1, 2, 3}) {
      add(sheafnn::detail::concat(to_string(learner), " ", layers), [=](Setting& s) {
        s.model.learner = learner;
        s.model.learner_layers = layers;
        s.dropout = layers == 2 ? 0.3 : 0;
      });
    }
  }
  for (const auto parametrisation : {sheafnn::rotation::RotationParametrisation::householder,
                                     sheafnn::rotation::RotationParametrisation::cayley,
                                     sheafnn::rotation::RotationParametrisation::exponential,
                                     sheafnn::rotation::RotationParametrisation::euler}) {
    add(std::string(to_string(parametrisation)), [=](Setting& s) { s.model.parametrisation = parametrisation; });
  }
  for (const auto expansion : {HeatExpansion::taylor, HeatExpansion::shifted, HeatExpansion::spectral,
                               HeatExpansion::limit, HeatExpansion::hops}) {
    for (const auto normalisation :
         {sheafnn::AdjacencyNormalisation::symmetric, sheafnn::AdjacencyNormalisation::random_walk}) {
      add(sheafnn::detail::concat(to_string(expansion), " ", to_string(normalisation)), [=](Setting& s) {
        s.model.expansion = expansion;
        s.model.normalisation = normalisation;
        s.model.self_loops = expansion == HeatExpansion::shifted;
        if (normalisation == sheafnn::AdjacencyNormalisation::random_walk) s.model.mixing = BundleMixing::linear;
      });
    }
  }
  add("self loops", [](Setting& s) { s.model.self_loops = true; });
  add("no terms", [](Setting& s) { s.model.terms = 0; });
  add("times that are given", [](Setting& s) { s.model.learned_time = false; });
  add("times that are negative",
      [](Setting& s) { s.model.time_start = sheafnn::HeatStart::spread, s.model.time = 0; });
  add("times in a range", [](Setting& s) { s.model.time_start = sheafnn::HeatStart::range, s.model.time = 3; });
  add("no norm", [](Setting& s) { s.model.layer_norm = false; });
  add("no residual", [](Setting& s) { s.model.residual = false; });
  add("3 readout layers", [](Setting& s) { s.model.readout_layers = 3; });
  add("17 channels", [](Setting& s) {
    s.model.channels = 17;
    s.model.layers = s.model.bundles = 1;
    s.model.learner = BundleLearnerKind::mlp;
    s.model.mixing = BundleMixing::linear;
  });
  add("dropout", [](Setting& s) {
    s.input_dropout = 0.3;
    s.dropout = 0.4;
  });
  for (const auto activation : {sheafnn::Activation::elu, sheafnn::Activation::relu, sheafnn::Activation::tanh,
                                sheafnn::Activation::sigmoid, sheafnn::Activation::identity}) {
    if (dimension > 2) continue;
    add(std::string(to_string(activation)), [=](Setting& s) {
      s.model.mixing = BundleMixing::linear;
      s.model.activation = activation;
    });
  }
  if (bayesian) {
    add("Monte Carlo KL", [](Setting& s) { s.kl_estimator = sheafnn::KlEstimator::monte_carlo; });
    add("3 samples", [](Setting& s) { s.samples = 3; });
  }
  add("everything", [=](Setting& s) {
    s.model.learner = BundleLearnerKind::sage_residual;
    s.model.learner_layers = 2;
    s.model.readout_layers = 2;
    s.input_dropout = s.dropout = 0.2;
    s.samples = bayesian ? 2 : 1;
    s.only_nodes = true;
    if (bayesian) s.kl_estimator = sheafnn::KlEstimator::monte_carlo;
  });
  return r;
}

template <class Model>
void check_model() {
  const tiny::Task task;
  for (const Setting& setting : settings(Model::stalk_dimension, Model::bayesian)) {
    model_gradient::check_setting<Model>(setting, task, task.graph, 3);
  }
}

}  // namespace bundle_gradients_test

TEST_CASE("gradient of bundle networks") {
  bundle_gradients_test::check_model<sheafnn::Bunn<2, double>>();
  bundle_gradients_test::check_model<sheafnn::Bunn<3, double>>();
}
TEST_CASE("gradient of bundle networks of higher dimension") {
  bundle_gradients_test::check_model<sheafnn::Bunn<4, double>>();
  bundle_gradients_test::check_model<sheafnn::BayesianBunn<5, double>>();
}
TEST_CASE("gradient of Bayesian bundle networks") {
  bundle_gradients_test::check_model<sheafnn::BayesianBunn<2, double>>();
  bundle_gradients_test::check_model<sheafnn::BayesianBunn<3, double>>();
}
