// Cooperative networks against golden2/: an independent implementation with automatic differentiation. What its files
// hold is what those of golden/ hold (golden_case.hpp), with config = d, f, L, bayes, learner, depth, act, conformal,
// norm, left, right, residual, separate_encoder, heads, directed, and noise.l.{out, in}.{rotation, scale}.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "golden_case.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "worst.hpp"

namespace cooperative_golden_test {

using sheafnn::Index;
template <class T>
using Rows = std::vector<std::vector<T>>;

/// golden::Case without its options, which are of another kind.
struct Case : golden::Case {
  sheafnn::CooperativeOptions cooperative;
  std::vector<sheafnn::Edge> arcs;
};

Case read(const std::string& name, int dimension, bool bayesian) {
  const sheafnn::io::NpzArchive archive(std::string(SHEAFNN_TEST_DATA) + "/golden2/" + name + ".npz");
  Case r;
  r.name = name;
  for (const std::string& key : archive.names()) {
    const sheafnn::io::NpyArray array = archive.array(key);
    r.file[key] = {array.shape(), array.values<double>()};
  }
  const auto values = [&](const std::string& key) -> const std::vector<double>& { return r.file.at(key).values; };
  const std::vector<double>& config = values("config");
  REQUIRE(config.size() == 15);
  REQUIRE(config[0] == dimension);
  REQUIRE((config[3] != 0) == bayesian);
  const auto flag = [&](std::size_t i) { return config[i] != 0; };
  const Index n = static_cast<Index>(values("n_nodes").at(0));
  for (std::size_t i = 0; i < values("edges").size(); i += 2) {
    r.arcs.push_back(
        {static_cast<std::int32_t>(values("edges")[i]), static_cast<std::int32_t>(values("edges")[i + 1])});
  }
  r.graph = sheafnn::Graph(n, r.arcs);
  const golden::Array& x = r.file.at("features");
  r.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(x.values), n, x.shape.at(1));
  for (const double label : values("labels")) r.labels.push_back(static_cast<std::int32_t>(label));
  for (Index u = 0; u < n; ++u) {
    if (values("train_mask").at(static_cast<std::size_t>(u)) != 0) r.nodes.push_back(static_cast<std::int32_t>(u));
  }
  auto& o = r.cooperative;
  o.features = x.shape.at(1);
  o.classes = r.file.at("param.lin2.weight").shape.at(0);
  o.channels = static_cast<Index>(config[1]);
  o.layers = static_cast<Index>(config[2]);
  o.feature_treatment = sheafnn::FeatureTreatment::none;
  o.learner = static_cast<sheafnn::NodeLearnerKind>(config[4]);
  o.learner_layers = static_cast<Index>(config[5]);
  const std::string learner = bayesian ? "param.out" : "param.out.0";
  if (o.learner == sheafnn::NodeLearnerKind::mlp) o.learner_width = r.file.at(learner + ".hidden.weight").shape.at(0);
  o.activation = static_cast<sheafnn::Activation>(config[6]);
  o.conformal = flag(7);
  o.norm = static_cast<sheafnn::FeatureNorm>(config[8]);
  o.left_weights = flag(9);
  o.right_weights = flag(10);
  o.residual = flag(11);
  o.separate_encoder = flag(12);
  o.readout_layers = static_cast<Index>(config[13]);
  o.directed = flag(14);
  return r;
}

/// The file's noise as ForwardPass takes it.
template <class S>
Rows<S> noise_of(const Case& given, int d) {
  Rows<S> r;
  for (Index l = 0; l < given.cooperative.layers; ++l) {
    std::vector<S>& noise = r.emplace_back();
    for (const std::string side : {"out", "in"}) {
      const std::string key = sheafnn::detail::concat("noise.", l, ".", side);
      const std::vector<double>&rotation = given.file.at(key + ".rotation").values,
            &scale = given.file.at(key + ".scale").values;
      for (std::size_t u = 0; u < scale.size(); ++u) {
        const std::size_t size = static_cast<std::size_t>(d * d);
        for (std::size_t k = 0; k < size; ++k) noise.push_back(static_cast<S>(rotation[u * size + k]));
        noise.push_back(static_cast<S>(scale[u]));
      }
    }
  }
  return r;
}

/// The largest difference, relative to the file's largest number or, where that is larger, to `least`.
void compare(const Case& given, const std::string& key, const std::vector<double>& own, double bound,
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
  const Case given = read(name, Model::stalk_dimension, Model::bayesian);
  Model model(given.cooperative);
  auto& parameters = model.parameters();
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    parameters.set(parameters.find(info.name), golden::numbers<S>(given, "param." + info.name));
  }
  const Rows<S> noise = Model::bayesian ? noise_of<S>(given, Model::stalk_dimension) : Rows<S>();
  test::TrainingPass<S> pass;
  for (const std::vector<S>& layer : noise) pass.noise.emplace_back(layer);
  pass.labels = given.labels;
  pass.nodes = given.nodes;
  pass.kl_weight = given.file.at("kl_weight").values.at(0);

  sheafnn::Network<Model> network(model, given.graph, given.features);
  const test::PassResult result = test::train_pass(network, pass);
  compare(given, "kl", {result.kl}, bounds.output);
  compare(given, "loss", {result.loss}, bounds.output);
  compare(given, "log_probabilities", test::last_outputs(network), bounds.output);
  for (Index l = 0; l <= given.cooperative.layers; ++l) {
    const auto features = network.features_after(l);
    compare(given, sheafnn::detail::concat("hidden.", l), {features.data(), features.data() + features.size()},
            bounds.output);
  }
  std::size_t in_file = 0;
  for (const auto& entry : given.file) in_file += entry.first.starts_with("param.") ? 1 : 0;
  CHECK(in_file == parameters.info().size());
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    CHECK(given.file.at("param." + info.name).shape == info.shape);
    const std::vector<S> own = parameters.get(parameters.find(info.name), network.gradient());
    compare(given, "grad." + info.name, {own.begin(), own.end()}, bounds.gradient, 1e-3);
  }
}

}  // namespace cooperative_golden_test

TEST_CASE("golden: cooperative networks") {
  using namespace cooperative_golden_test;
  check_case<sheafnn::Csnn<2, double>>("csnn_mlp2", golden::double_bounds);
  check_case<sheafnn::Csnn<3, double>>("csnn_sage3_layernorm", golden::double_bounds);
  check_case<sheafnn::Csnn<3, double>>("csnn_mlp3_directed", golden::double_bounds);
}
TEST_CASE("golden: Bayesian cooperative networks") {
  using namespace cooperative_golden_test;
  check_case<sheafnn::Bcsnn<2, double>>("bcsnn_sage2", golden::double_bounds);
  check_case<sheafnn::Bcsnn<3, double>>("bcsnn_mlp3", golden::double_bounds);
}
TEST_CASE("golden: cooperative networks in single precision") {
  using namespace cooperative_golden_test;
  check_case<sheafnn::Csnn<3, float>>("csnn_sage3_layernorm", golden::float_bounds);
  check_case<sheafnn::Bcsnn<3, float>>("bcsnn_mlp3", golden::float_bounds);
}
