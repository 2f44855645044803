// Sheaf hypergraph networks against golden3/: an independent implementation with automatic differentiation. What its files
// hold is what the files of golden/ hold (golden_case.hpp), with incidence in place of edges, config = d, f, L, bayes,
// separate_encoder, family, learner, laplacian, mediators, projection, update, static, bias, hidden.l, and of the non-linear
// Laplacian selection.l: the selected pairs, the most discrepant one of a hyperedge first, then its mediators.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "golden_case.hpp"
#include "sheafnn/bsnn/hypergraph_network.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "worst.hpp"

namespace hypergraph_golden_test {

using sheafnn::Index;

/// golden::Case without its options and graph, which are of another kind.
struct Case : golden::Case {
  sheafnn::HypergraphOptions hyper;
  sheafnn::Hypergraph hypergraph;
  Index sheaves = 0;
};

template <class Model>
Case read(const std::string& name) {
  const sheafnn::io::NpzArchive archive(std::string(SHEAFNN_TEST_DATA) + "/golden3/" + name + ".npz");
  Case r;
  r.name = name;
  for (const std::string& key : archive.names()) {
    const sheafnn::io::NpyArray array = archive.array(key);
    r.file[key] = {array.shape(), array.values<double>()};
  }
  const auto values = [&](const std::string& key) -> const std::vector<double>& { return r.file.at(key).values; };
  REQUIRE(values("model").at(0) == 6);
  const std::vector<double>& config = values("config");
  REQUIRE(config.size() == 13);
  REQUIRE(config[0] == Model::stalk_dimension);
  REQUIRE((config[3] != 0) == Model::bayesian);
  const auto flag = [&](std::size_t i) { return config[i] != 0; };
  const Index n = static_cast<Index>(values("n_nodes").at(0));
  std::vector<sheafnn::Incidence> pairs;
  Index hyperedges = 0;
  for (std::size_t i = 0; i < values("incidence").size(); i += 2) {
    pairs.push_back({static_cast<std::int32_t>(values("incidence")[i]),
                     static_cast<std::int32_t>(values("incidence")[i + 1])});
    hyperedges = std::max<Index>(hyperedges, pairs.back().hyperedge + 1);
  }
  r.hypergraph = sheafnn::Hypergraph(n, hyperedges, pairs);
  const golden::Array& x = r.file.at("features");
  r.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(x.values), n, x.shape.at(1));
  for (const double label : values("labels")) r.labels.push_back(static_cast<std::int32_t>(label));
  for (Index u = 0; u < n; ++u) {
    if (values("train_mask").at(static_cast<std::size_t>(u)) != 0) r.nodes.push_back(static_cast<std::int32_t>(u));
  }
  auto& o = r.hyper;
  o.features = x.shape.at(1);
  o.classes = r.file.at("param.lin2.weight").shape.at(0);
  o.channels = static_cast<Index>(config[1]);
  o.layers = static_cast<Index>(config[2]);
  o.feature_treatment = sheafnn::FeatureTreatment::none;
  if (Model::bayesian) o.separate_encoder = flag(4);
  o.learner = static_cast<sheafnn::HypergraphLearner>(config[6]);
  o.laplacian = static_cast<sheafnn::HypergraphLaplacian>(config[7]);
  o.mediators = flag(8);
  if (flag(9)) o.projection = values("projection");
  o.update = static_cast<sheafnn::HypergraphUpdate>(config[10]);
  o.static_sheaf = flag(11);
  o.bias = flag(12);
  o.spread = sheafnn::SpreadRange::published;
  o.sheaf_activation = sheafnn::SheafActivation::tanh;
  o.parametrisation = sheafnn::rotation::RotationParametrisation::householder;
  return r;
}

void compare(const Case& given, const std::string& key, const std::vector<double>& own, double bound) {
  CAPTURE(key);
  const std::vector<double>& exact = given.file.at(key).values;
  REQUIRE(own.size() == exact.size());
  double largest = 1, worst = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    largest = std::max(largest, std::abs(exact[i]));
    worst = test::worse(worst, std::abs(own[i] - exact[i]));
  }
  CHECK(worst <= bound * largest);
}

/// Compares the pairs that the layers have selected.
template <class Model>
void compare_selections(const Case& given, const sheafnn::Network<Model>& network) {
  for (Index l = 0; l < given.hyper.layers; ++l) {
    std::vector<double> selected;
    const auto add = [&](Index a, Index b) {
      selected.push_back(static_cast<double>(a));
      selected.push_back(static_cast<double>(b));
    };
    const sheafnn::Hypergraph& hypergraph = given.hypergraph;
    for (Index e = 0; e < hypergraph.hyperedge_count(); ++e) {
      const auto [p, q] = network.layer(l).terms().ends(e);
      if (p < 0) continue;
      add(p, q);
      for (Index k = hypergraph.first_member(e); given.hyper.mediators && k < hypergraph.first_member(e + 1);
           ++k) {
        const Index other = hypergraph.member(k);
        if (other == p || other == q) continue;
        add(p, other);
        add(q, other);
      }
    }
    compare(given, "selection." + std::to_string(l), selected, 0);
  }
}

template <class Model>
void check_case(const std::string& name, const golden::Bounds& bounds) {
  using S = typename Model::Scalar;
  CAPTURE(name);
  const Case given = read<Model>(name);
  Model model(given.hyper);
  auto& parameters = model.parameters();
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    parameters.set(parameters.find(info.name), golden::numbers<S>(given, "param." + info.name));
  }
  std::vector<std::vector<S>> noise;
  for (Index l = 0; Model::bayesian && l < model.sheaf_count(); ++l) {
    noise.push_back(golden::numbers<S>(given, "noise." + std::to_string(l)));
  }
  test::TrainingPass<S> pass;
  for (const std::vector<S>& layer : noise) pass.noise.emplace_back(layer);
  pass.labels = given.labels;
  pass.nodes = given.nodes;
  pass.kl_weight = given.file.at("kl_weight").values.at(0);

  sheafnn::Network<Model> network(model, given.hypergraph, given.features, 1);
  const test::PassResult result = test::train_pass(network, pass);
  compare(given, "kl", {result.kl}, bounds.output);
  compare(given, "loss", {result.loss}, bounds.output);
  compare(given, "log_probabilities", test::last_outputs(network), bounds.output);
  for (Index l = 0; l <= given.hyper.layers; ++l) {
    const auto features = network.features_after(l);
    compare(given, "hidden." + std::to_string(l), {features.data(), features.data() + features.size()},
            bounds.output);
  }
  if (given.hyper.laplacian == sheafnn::HypergraphLaplacian::nonlinear) compare_selections(given, network);
  std::size_t in_file = 0;
  for (const auto& entry : given.file) in_file += entry.first.starts_with("param.") ? 1 : 0;
  CHECK(in_file == parameters.info().size());
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    CHECK(given.file.at("param." + info.name).shape == info.shape);
    const std::vector<S> own = parameters.get(parameters.find(info.name), network.gradient());
    compare(given, "grad." + info.name, {own.begin(), own.end()}, bounds.gradient);
  }

  sheafnn::Network<Model> threaded(model, given.hypergraph, given.features, 2);
  CHECK(test::train_pass(threaded, pass).loss == result.loss);
  CHECK(std::equal(network.gradient().begin(), network.gradient().end(), threaded.gradient().begin()));
}

}  // namespace hypergraph_golden_test

TEST_CASE("golden: sheaf hypergraph networks") {
  using namespace hypergraph_golden_test;
  check_case<sheafnn::SheafHyperGnn<sheafnn::Diagonal<2>, double>>("hyper_diag2", golden::double_bounds);
  check_case<sheafnn::SheafHyperGnn<sheafnn::Diagonal<3>, double>>("hyper_diag3_published", golden::double_bounds);
  check_case<sheafnn::SheafHyperGnn<sheafnn::SpecialOrthogonal<3>, double>>("hyper_so3_nonlinear",
                                                                            golden::double_bounds);
}
TEST_CASE("golden: Bayesian sheaf hypergraph networks") {
  using namespace hypergraph_golden_test;
  check_case<sheafnn::BayesianSheafHyperGnn<sheafnn::GeneralLinear<2>, double>>("bhyper_gen2",
                                                                                golden::double_bounds);
}
TEST_CASE("golden: sheaf hypergraph networks in single precision") {
  using namespace hypergraph_golden_test;
  check_case<sheafnn::SheafHyperGnn<sheafnn::Diagonal<2>, float>>("hyper_diag2", golden::float_bounds);
  check_case<sheafnn::BayesianSheafHyperGnn<sheafnn::GeneralLinear<2>, float>>("bhyper_gen2",
                                                                               golden::float_bounds);
}
