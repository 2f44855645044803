// Bundle networks against golden3/: an independent implementation with automatic differentiation. What its files hold is what
// the files of golden/ hold (golden_case.hpp), and hidden.l, with config = d, B, f, L, bayes, learner, orth, normalisation,
// self_loops, expansion, K, mix, norm, residual, act.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "golden_case.hpp"
#include "sheafnn/bsnn/bundle_network.hpp"
#include "worst.hpp"

namespace bundle_golden_test {

using sheafnn::Index;

sheafnn::BundleOptions options_of(const golden::Case& given, int dimension, bool bayesian) {
  using enum sheafnn::Activation;
  constexpr sheafnn::Activation activations[] = {elu, relu, gelu, tanh, identity};
  const std::vector<double>& config = given.file.at("config").values;
  REQUIRE(config.size() == 15);
  REQUIRE(config[0] == dimension);
  REQUIRE((config[4] != 0) == bayesian);
  const auto index = [&](std::size_t i) { return static_cast<Index>(config[i]); };
  sheafnn::BundleOptions r;
  r.features = given.options.features;
  r.classes = given.options.classes;
  r.feature_treatment = sheafnn::FeatureTreatment::none;
  r.bundles = index(1);
  r.channels = index(2);
  r.layers = index(3);
  r.learner = config[5] == 0 ? sheafnn::BundleLearnerKind::mlp : sheafnn::BundleLearnerKind::sage;
  if (config[5] == 0) {
    r.learner_width =
        given.file.at(bayesian ? "param.maps.hidden.weight" : "param.maps.0.hidden.weight").shape.at(0);
  }
  r.parametrisation = config[6] == 0 ? sheafnn::rotation::RotationParametrisation::householder
                                     : sheafnn::rotation::RotationParametrisation::euler;
  r.normalisation = static_cast<sheafnn::AdjacencyNormalisation>(config[7]);
  r.self_loops = config[8] != 0;
  r.expansion = static_cast<sheafnn::HeatExpansion>(config[9]);
  r.terms = index(10);
  r.mixing = static_cast<sheafnn::BundleMixing>(config[11]);
  r.layer_norm = config[12] != 0;
  r.residual = config[13] != 0;
  r.activation = activations[static_cast<std::size_t>(config[14])];
  return r;
}

/// The largest difference, relative to the file's largest number or, where that is larger, to `least`.
void compare(const golden::Case& given, const std::string& key, const std::vector<double>& own, double bound,
             double least = 1) {
  CAPTURE(key);
  const std::vector<double>& exact = given.file.at(key).values;
  REQUIRE(own.size() == exact.size());
  double largest = least, worst = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    largest = std::max(largest, std::abs(exact[i]));
    worst = test::worse(worst, std::abs(own[i] - exact[i]));
  }
  CHECK(worst <= bound * largest);
}

template <class Model>
void check_case(const std::string& name, const golden::Bounds& bounds) {
  using S = typename Model::Scalar;
  CAPTURE(name);
  const golden::Case given = golden::read_inputs("golden3", name);
  Model model(options_of(given, Model::stalk_dimension, Model::bayesian));
  auto& parameters = model.parameters();
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    parameters.set(parameters.find(info.name), golden::numbers<S>(given, "param." + info.name));
  }
  std::vector<std::vector<S>> noise;
  for (Index l = 0; Model::bayesian && l < model.options().layers; ++l) {
    noise.push_back(golden::numbers<S>(given, "noise." + std::to_string(l)));
  }
  test::TrainingPass<S> pass;
  for (const std::vector<S>& layer : noise) pass.noise.emplace_back(layer);
  pass.labels = given.labels;
  pass.nodes = given.nodes;
  pass.kl_weight = given.file.at("kl_weight").values.at(0);

  sheafnn::Network<Model> network(model, given.graph, given.features, 1);
  const test::PassResult result = test::train_pass(network, pass);
  compare(given, "kl", {result.kl}, bounds.output);
  compare(given, "loss", {result.loss}, bounds.output);
  compare(given, "log_probabilities", test::last_outputs(network), bounds.output);
  for (Index l = 0; l <= model.options().layers; ++l) {
    const auto x = network.features_after(l);
    compare(given, "hidden." + std::to_string(l), {x.data(), x.data() + x.size()}, bounds.output);
  }
  std::size_t in_file = 0;
  for (const auto& entry : given.file) in_file += entry.first.starts_with("param.") ? 1 : 0;
  CHECK(in_file == parameters.info().size());
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    CHECK(given.file.at("param." + info.name).shape == info.shape);
    const std::vector<S> own = parameters.get(parameters.find(info.name), network.gradient());
    compare(given, "grad." + info.name, {own.begin(), own.end()}, bounds.gradient, 1e-3);
  }
  sheafnn::Network<Model> threaded(model, given.graph, given.features, 2);
  const bool same_loss = test::train_pass(threaded, pass).loss == result.loss;
  golden::check_same(same_loss && std::equal(network.gradient().begin(), network.gradient().end(),
                                             threaded.gradient().begin()),
                     name);
}

}  // namespace bundle_golden_test

TEST_CASE("golden: bundle networks") {
  using namespace bundle_golden_test;
  check_case<sheafnn::Bunn<2, double>>("bunn_planar", golden::double_bounds);
  check_case<sheafnn::Bunn<3, double>>("bunn_d3_feedforward", golden::double_bounds);
}
TEST_CASE("golden: Bayesian bundle networks") {
  using namespace bundle_golden_test;
  check_case<sheafnn::BayesianBunn<3, double>>("bbunn_d3_spectral", golden::double_bounds);
}
TEST_CASE("golden: bundle networks in single precision") {
  using namespace bundle_golden_test;
  check_case<sheafnn::Bunn<3, float>>("bunn_d3_feedforward", golden::float_bounds);
}
