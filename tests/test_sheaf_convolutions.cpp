/// \file
/// Convolutions on given sheaves: golden3/, gradients along every coordinate over families and options, threads, graph
/// convolutional networks, isolated nodes, training, files, refusals.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "golden_case.hpp"
#include "model_gradient.hpp"
#include "network_passes.hpp"
#include "sheafnn/bsnn/convolution_network.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/sheaf/labelled_sheaf.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_sheaf_convolutions {
namespace {

using sheafnn::Activation;
using sheafnn::AroundGiven;
using sheafnn::BayesianSheafConvolutions;
using sheafnn::CellularSheaf;
using sheafnn::ConvolutionOptions;
using sheafnn::DeviationSource;
using sheafnn::Diagonal;
using sheafnn::EdgeLabels;
using sheafnn::GeneralLinear;
using sheafnn::GivenMaps;
using sheafnn::Index;
using sheafnn::Normalisation;
using sheafnn::Orthogonal;
using sheafnn::SheafConvolutions;
using sheafnn::SpecialOrthogonal;
using sheafnn::Stream;

/// Options of a file of golden3/; config = d, L, norm, act, encoder, readout, bayes, family, learned, bias.
ConvolutionOptions options_of(const golden::Case& given) {
  const std::vector<double>& config = given.file.at("config").values;
  REQUIRE(config.size() == 10);
  constexpr Normalisation norms[] = {Normalisation::augmented, Normalisation::block, Normalisation::none};
  constexpr Activation activations[] = {Activation::elu, Activation::relu, Activation::gelu, Activation::tanh,
                                        Activation::identity};
  ConvolutionOptions r;
  r.features = given.features.columns();
  r.classes = given.file.at("log_probabilities").shape.at(1);
  r.layers = static_cast<Index>(config[1]);
  r.normalisation = norms[static_cast<std::size_t>(config[2])];
  r.activation = activations[static_cast<std::size_t>(config[3])];
  r.encoder = config[4] != 0;
  r.readout = config[5] != 0;
  r.bias = config[9] != 0;
  r.spread = sheafnn::SpreadRange::published;
  r.feature_treatment = sheafnn::FeatureTreatment::none;
  for (const double width : given.file.at("channels").values) r.widths.push_back(static_cast<Index>(width));
  return r;
}

/// The given maps of a file. Diagonal maps are D × D there.
template <class Family>
CellularSheaf<Family> sheaf_of(const golden::Case& given) {
  constexpr int D = Family::stalk_dimension;
  CellularSheaf<Family> r(given.graph);
  const std::vector<double>& maps = given.file.at("given_maps").values;
  REQUIRE(static_cast<Index>(maps.size()) == given.graph.arc_count() * D * D);
  for (Index a = 0; a < given.graph.arc_count(); ++a) {
    typename CellularSheaf<Family>::Map map;
    for (Index i = 0; i < map.rows(); ++i) {
      for (Index j = 0; j < map.cols(); ++j) map(i, j) = maps[static_cast<std::size_t>((a * D + i) * D + (map.cols() == 1 ? i : j))];
    }
    r.set_map(a, map);
  }
  return r;
}
template <class Posterior>
Posterior posterior_of(const golden::Case& given) {
  using Family = typename Posterior::family;
  auto sheaf = sheaf_of<Family>(given);
  if constexpr (sheafnn::is_around_given<Posterior>) {
    EdgeLabels labels;
    for (const double label : given.file.at("edge_labels").values) {
      labels.of_edge.push_back(static_cast<std::int32_t>(label));
      labels.count = std::max<Index>(labels.count, labels.of_edge.back() + 1);
    }
    const bool learned = given.file.at("config").values.at(8) != 0;
    Posterior r = learned ? Posterior(std::move(sheaf), DeviationSource::arcs_and_means)
                          : Posterior(std::move(sheaf), std::move(labels));
    if constexpr (!sheafnn::sheaf::is_orthogonal<Family>) r.prior = {0.0, given.file.at("prior_scale").values.at(0)};
    return r;
  } else {
    return Posterior(std::move(sheaf));
  }
}

template <class Model>
void check(const std::string& name) {
  CAPTURE(name);
  const golden::Case given = golden::read_inputs("golden3", name);
  REQUIRE(given.file.at("model").values.at(0) == 2);
  REQUIRE((given.file.at("config").values.at(6) != 0) == Model::bayesian);
  Model model(options_of(given), 0, posterior_of<typename Model::Posterior>(given));
  auto& parameters = model.parameters();
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    parameters.set(parameters.find(info.name), golden::numbers<double>(given, "param." + info.name));
  }
  std::vector<std::vector<double>> noise;
  for (Index l = 0; Model::bayesian && l < model.options().layers; ++l) {
    noise.push_back(golden::numbers<double>(given, "noise." + std::to_string(l)));
  }
  test::TrainingPass<double> pass;
  for (const auto& layer : noise) pass.noise.emplace_back(layer);
  pass.labels = given.labels;
  pass.nodes = given.nodes;
  pass.kl_weight = given.file.at("kl_weight").values.at(0);
  golden::Outcome outcome;
  sheafnn::Network<Model> network(model, given.graph, given.features, 1);
  outcome.result = test::train_pass(network, pass);
  outcome.log_probabilities = test::last_outputs(network);
  golden::store_gradients(parameters, network.gradient(), outcome);
  golden::compare(given, outcome, golden::double_bounds);

  sheafnn::Network<Model> threaded(model, given.graph, given.features, 2);
  CHECK(test::train_pass(threaded, pass).loss == outcome.result.loss);
  CHECK(std::equal(network.gradient().begin(), network.gradient().end(), threaded.gradient().begin()));

  test::evaluate(network, 0, 0, 1, [](Index) {}, {noise.begin(), noise.end()});
  for (Index l = 0; l <= model.options().layers; ++l) {
    const auto x = network.features_after(l);
    const std::vector<double>& expected = given.file.at("hidden." + std::to_string(l)).values;
    REQUIRE(static_cast<Index>(expected.size()) == x.size());
    double worst = 0, largest = 1;
    for (Index i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::abs(expected[static_cast<std::size_t>(i)]));
      worst = test::worse(worst, std::abs(x.data()[i] - expected[static_cast<std::size_t>(i)]));
    }
    CHECK(worst <= golden::double_bounds.output * largest);
  }
}

TEST_CASE("golden: convolutions on given sheaves") {
  check<SheafConvolutions<Diagonal<1>, double>>("snn_signed");
  check<SheafConvolutions<GeneralLinear<3>, double>>("snn_labelled_gen3");
  check<BayesianSheafConvolutions<SpecialOrthogonal<3>, double>>("bsnn_given_so3");
}

}  // namespace
}  // namespace test_sheaf_convolutions
