/// \file
/// Networks without learned maps on edges, on several ranks against one process: given sheaves, connections, convolutions on
/// given sheaves and bundles.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "part_steps.hpp"
#include "sheafnn/bsnn/connection_model.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/bundle.hpp"
#include "sheafnn/convolution.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"

namespace test_distributed_networks {
namespace {

using namespace part_steps;
using sheafnn::BundleOptions;
using sheafnn::ConnectionModelOptions;
using sheafnn::ConvolutionOptions;
using sheafnn::GeneralLinear;
using sheafnn::SpecialOrthogonal;

/// Another map for every arc and, of rotations, another weight for every edge.
template <class Family>
sheafnn::CellularSheaf<Family> given_sheaf(const sheafnn::Graph& graph, std::uint64_t seed) {
  sheafnn::CellularSheaf<Family> r = sheafnn::sheaf::random_sheaf<Family>(graph, {.seed = seed});
  if constexpr (sheafnn::CellularSheaf<Family>::has_edge_weights) {
    for (Index e = 0; e < graph.edge_count(); ++e) r.set_edge_weight(e, 1 + 0.5 * tiny::number(seed, e));
  }
  return r;
}

template <class Options>
std::vector<SettingOf<Options>> with(const Options& plain,
                                     std::initializer_list<std::pair<const char*, void (*)(Options&)>> changes) {
  std::vector<SettingOf<Options>> r;
  for (const auto& [name, change] : changes) {
    r.push_back({name, plain});
    change(r.back().model);
  }
  return r;
}

/// A training's losses, and predictions behind it, on the ranks and in one process.
template <class Model>
void check_training(const typename Model::Options& options) {
  const sheafnn::Dataset data = dataset();
  mpi::DistributedData part(ranks(), data, random_partition(data.node_count(), 5));
  const sheafnn::TrainOptions training{.epochs = 4, .learning_rate = 0.02, .training_samples = 2, .seed = 4};
  Model one(options, 7), on_ranks(options, 7);
  const sheafnn::TrainResult expected = sheafnn::train(one, data, data.splits[0], training),
                             result = mpi::train(on_ranks, part, data.splits[0], training);
  REQUIRE(result.history.size() == expected.history.size());
  double apart = std::abs(result.test_nll - expected.test_nll);
  for (std::size_t t = 0; t < result.history.size(); ++t) {
    apart = std::max(apart, std::abs(result.history[t].loss - expected.history[t].loss));
    apart = std::max(apart, std::abs(result.history[t].validation_loss - expected.history[t].validation_loss));
  }
  const sheafnn::PredictOptions predicting{.samples = 2, .seed = 9};
  const sheafnn::Prediction whole = sheafnn::predict(one, data, predicting),
                            gathered = mpi::predict(on_ranks, part, predicting);
  if (ranks().is_root()) {
    REQUIRE(gathered.probabilities.size() == whole.probabilities.size());
    for (std::size_t i = 0; i < whole.probabilities.size(); ++i) {
      apart = std::max(apart, std::abs(gathered.probabilities[i] - whole.probabilities[i]));
    }
  }
  CAPTURE(apart);
  CHECK(everywhere(apart < 1e-8));
}

TEST_CASE("steps with given sheaves are those of one process") {
  using Model = sheafnn::Snn<SpecialOrthogonal<2>, double>;
  const auto settings = with<sheafnn::ModelOptions>({.features = 20, .channels = 3, .layers = 2, .classes = 3},
                                                    {{"plain", [](auto&) {}},
                                                     {"filters", [](auto& o) { o.add_lp = o.add_hp = true; }}});
  const sheafnn::Graph graph = dataset().graph;
  check_steps<Model>(settings, [&](const auto& setting) {
    return Model(setting.model, 7,
                 typename Model::Posterior(
                     {given_sheaf<SpecialOrthogonal<2>>(graph, 2), given_sheaf<SpecialOrthogonal<2>>(graph, 3)}));
  });
  // Sheaves over other graphs are refused: one with fewer edges, and one with the nodes in another order.
  mpi::DistributedData part(ranks(), dataset(), random_partition(graph.node_count(), 1));
  std::vector<sheafnn::Edge> fewer(graph.edges().begin(), graph.edges().end()), turned = fewer;
  fewer.pop_back();
  const auto last = static_cast<std::int32_t>(graph.node_count() - 1);
  for (sheafnn::Edge& edge : turned) edge = {last - edge.u, last - edge.v};
  for (const auto& [edges, text] :
       {std::pair(fewer, "edges of sheaves[0]: "), std::pair(turned, " of sheaves[0]: ")}) {
    const Model other(settings[0].model, 7,
                      typename Model::Posterior(sheafnn::CellularSheaf<SpecialOrthogonal<2>>(
                          sheafnn::Graph(graph.node_count(), edges))));
    bool refused = false;
    try {
      sheafnn::Network<Model> network(other, part.graph(), part.features());
    } catch (const std::invalid_argument& e) {
      const std::string_view message = e.what();
      refused = message.find(text) != std::string_view::npos &&
                message.find("the network's graph has") != std::string_view::npos;
    }
    CHECK(everywhere(refused));
  }
}

TEST_CASE("steps on connections are those of one process") {
  const auto settings = with<ConnectionModelOptions>(
      ConnectionModelOptions{{.features = 20, .channels = 3, .layers = 2, .classes = 3}},
      {{"plain", [](auto&) {}},
       {"rotations, pivots",
        [](auto& o) { o.connection = {.special = true, .gauge = sheafnn::FrameGauge::pivots}; }},
       {"random edges", [](auto& o) { o.connection.source = sheafnn::ConnectionSource::random_edges; }}});
  check_steps<sheafnn::ConnNsd<2, double>>(settings);
  check_steps<sheafnn::BconnNsd<2, double>>(settings);
}
TEST_CASE("a training on a connection is the training of one process") {
  check_training<sheafnn::ConnNsd<2, double>>(
      ConnectionModelOptions{{.features = 20, .channels = 3, .layers = 2, .classes = 3}});
}

TEST_CASE("steps of convolutions on given sheaves are those of one process") {
  const auto settings =
      with<ConvolutionOptions>({.features = 20, .channels = 3, .layers = 3, .classes = 3},
                               {{"plain", [](auto&) {}}, {"no encoder, other widths", [](auto& o) {
                                                            o.encoder = false;
                                                            o.widths = {10, 4, 2, 3};
                                                            o.left_weights = false;
                                                          }}});
  const sheafnn::Graph graph = dataset().graph;
  using Given = sheafnn::SheafConvolutions<GeneralLinear<2>, double>;
  check_steps<Given>(settings, [&](const auto& setting) {
    return Given(setting.model, 7, typename Given::Posterior(given_sheaf<GeneralLinear<2>>(graph, 2)));
  });
  using Bayesian = sheafnn::BayesianSheafConvolutions<SpecialOrthogonal<2>, double>;
  sheafnn::EdgeLabels labels{{}, 3};
  for (Index e = 0; e < graph.edge_count(); ++e) labels.of_edge.push_back(static_cast<std::int32_t>(e % 3));
  for (const bool labelled : {false, true}) {
    check_steps<Bayesian>(settings, [&](const auto& setting) {
      const auto centre = given_sheaf<SpecialOrthogonal<2>>(graph, 2);
      using Posterior = typename Bayesian::Posterior;
      return Bayesian(setting.model, 7,
                      labelled ? Posterior(centre, labels)
                               : Posterior(centre, sheafnn::DeviationSource::arcs_and_means));
    });
  }
}

TEST_CASE("steps of bundle networks are those of one process") {
  const auto settings = with<BundleOptions>(
      {.features = 20, .channels = 1, .bundles = 3, .layers = 2, .classes = 3, .learner_width = 5, .terms = 3},
      {{"plain", [](auto&) {}},
       {"residual learner, Taylor, random walk",
        [](auto& o) {
          o.learner = sheafnn::BundleLearnerKind::sage_residual;
          o.learner_layers = 2;
          o.expansion = sheafnn::HeatExpansion::taylor;
          o.normalisation = sheafnn::AdjacencyNormalisation::random_walk;
          o.readout_layers = 2;
        }},
       {"sage of two layers, two channels, linear mixing, self-loops", [](auto& o) {
          o.learner_layers = 2;
          o.channels = 2;
          o.mixing = sheafnn::BundleMixing::linear;
          o.self_loops = true;
          o.layer_norm = o.residual = false;
        }}});
  check_steps<sheafnn::Bunn<2, double>>(settings);
  check_steps<sheafnn::BayesianBunn<2, double>>(settings);
  check_faults(sheafnn::BayesianBunn<2, double>(settings[0].model, 7), settings[0], test::cooperative_faults);
}
TEST_CASE("a training of bundle networks is the training of one process") {
  check_training<sheafnn::BayesianBunn<2, double>>(
      {.features = 20, .bundles = 3, .layers = 2, .classes = 3, .terms = 3});
}
TEST_CASE("heat by eigenpairs or in the limit is refused on a part of a graph") {
  const sheafnn::Dataset data = dataset();
  mpi::DistributedData part(ranks(), data, mpi::contiguous_partition(data.graph, ranks().size()));
  for (const sheafnn::HeatExpansion expansion :
       {sheafnn::HeatExpansion::spectral, sheafnn::HeatExpansion::limit}) {
    BundleOptions options{.features = 20, .bundles = 2, .layers = 1, .classes = 3};
    options.expansion = expansion;
    options.learned_time = false;
    const sheafnn::Bunn<2, double> model(options, 1);
    CHECK_THROWS_WITH_AS((sheafnn::Network<sheafnn::Bunn<2, double>>(model, part.graph(), part.features())),
                         doctest::Contains("is not allowed; needs a whole graph: ranks have parts of one"),
                         std::invalid_argument);
  }
}

}  // namespace
}  // namespace test_distributed_networks
