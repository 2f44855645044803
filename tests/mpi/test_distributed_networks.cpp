/// \file
/// Networks without learned maps on edges, on several ranks against one process: given sheaves, connections, convolutions on
/// given sheaves and bundles.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "part_steps.hpp"
#include "sheafnn/bsnn/connection_model.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/bundle.hpp"
#include "sheafnn/convolution.hpp"
#include "sheafnn/graph/part_components.hpp"
#include "sheafnn/layers/heat_operator.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"

namespace test_distributed_networks {
namespace {

using namespace part_steps;
using sheafnn::BundleOptions;
using sheafnn::ConnectionModelOptions;
using sheafnn::ConvolutionOptions;
using sheafnn::GeneralLinear;
using sheafnn::HeatExpansion;
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
       {"sage of two layers, two channels, linear mixing, self-loops",
        [](auto& o) {
          o.learner_layers = 2;
          o.channels = 2;
          o.mixing = sheafnn::BundleMixing::linear;
          o.self_loops = true;
          o.layer_norm = o.residual = false;
        }},
       {"eigenpairs", [](auto& o) { o.expansion = HeatExpansion::spectral; }},
       {"all eigenpairs, random walk, linear mixing, one time for all",
        [](auto& o) {
          o.expansion = HeatExpansion::spectral;
          o.terms = 200;
          o.normalisation = sheafnn::AdjacencyNormalisation::random_walk;
          o.mixing = sheafnn::BundleMixing::linear;
          o.learned_time = false;
        }},
       {"limit", [](auto& o) { o.expansion = HeatExpansion::limit; }},
       {"limit of a random walk with self-loops, two channels", [](auto& o) {
          o.expansion = HeatExpansion::limit;
          o.normalisation = sheafnn::AdjacencyNormalisation::random_walk;
          o.self_loops = true;
          o.channels = 2;
        }}});
  check_steps<sheafnn::Bunn<2, double>>(settings);
  check_steps<sheafnn::BayesianBunn<2, double>>(settings);
  check_faults(sheafnn::BayesianBunn<2, double>(settings[0].model, 7), settings[0], test::cooperative_faults);
  for (const std::size_t projected : {3, 5}) {
    BundleOptions options = settings[projected].model;
    options.feature_treatment = sheafnn::FeatureTreatment::none;  // whose sums the exchange leaves out otherwise
    check_faults(sheafnn::Bunn<2, double>(options, 7), settings[projected], test::projection_faults);
  }
}
TEST_CASE("a training of bundle networks is the training of one process") {
  check_training<sheafnn::BayesianBunn<2, double>>(
      {.features = 20, .bundles = 3, .layers = 2, .classes = 3, .terms = 3});
}
TEST_CASE("a training of bundle networks with eigenpairs, and in the limit, is the training of one process") {
  BundleOptions options{.features = 20, .bundles = 3, .layers = 2, .classes = 3, .terms = 7};
  options.expansion = HeatExpansion::spectral;
  check_training<sheafnn::BayesianBunn<2, double>>(options);
  options.expansion = HeatExpansion::limit;
  check_training<sheafnn::Bunn<2, double>>(options);
}

/// A ring of 12 nodes whose numbers are 3 apart, a path of 5, two triangles, a pair and isolated nodes: components of one part
/// and of several.
sheafnn::Graph scattered_components() {
  std::vector<sheafnn::Edge> edges;
  for (std::int32_t u = 0; u < 12; ++u) edges.push_back({3 * u, 3 * ((u + 1) % 12)});
  for (std::int32_t u = 36; u < 40; ++u) edges.push_back({u, u + 1});
  for (const std::int32_t u : {1, 11}) {
    edges.insert(edges.end(), {{u, u + 3}, {u + 3, u + 6}, {u + 6, u}});
  }
  edges.push_back({44, 48});
  return sheafnn::Graph(50, edges);
}
/// This rank's part of a graph: of ranges of nodes, or of nodes of random owners.
class PartOf {
 public:
  PartOf(const sheafnn::Graph& graph, std::uint64_t seed)
      : part_(mpi::local_part(graph,
                              seed == 0 ? mpi::contiguous_partition(graph, ranks().size())
                                        : random_partition(graph.node_count(), seed),
                              ranks().rank())),
        exchange_(ranks(), part_.numbers, part_.neighbours) {
    part_.graph.set_part(&exchange_);
  }
  const sheafnn::Graph& graph() const { return part_.graph; }
  const sheafnn::PartNumbers& numbers() const { return exchange_.numbers(); }

 private:
  mpi::LocalPart part_;
  mpi::RowExchange exchange_;
};
/// As a part has them: rows of its owned nodes.
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
Rows owned_rows(const sheafnn::PartNumbers& numbers, const Rows& whole) {
  Rows r(numbers.own, whole.cols());
  for (Index u = 0; u < numbers.own; ++u) r.row(u) = whole.row(numbers.node[static_cast<std::size_t>(u)]);
  return r;
}

TEST_CASE("components of the whole graph on its parts") {
  const sheafnn::Graph graph = scattered_components();
  const sheafnn::Components whole = sheafnn::connected_components(graph);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const PartOf part(graph, seed);
    const sheafnn::detail::PartComponents found = sheafnn::detail::part_components(part.graph());
    // Of every component of the whole: its number here, and how many parts have nodes of it.
    bool same = true;
    std::vector<double> owners(static_cast<std::size_t>(whole.count)), number(owners.size(), -1.0);
    for (std::size_t u = 0; u < static_cast<std::size_t>(part.numbers().own); ++u) {
      const auto of_whole =
          static_cast<std::size_t>(whole.component_of[static_cast<std::size_t>(part.numbers().node[u])]);
      const double here = found.component_of[u];
      same = same && (number[of_whole] < 0 || number[of_whole] == here) && here < static_cast<double>(found.count);
      number[of_whole] = here;
      owners[of_whole] = 1;
    }
    ranks().sum(std::span<double>(owners));
    std::vector<double> largest = number;
    ranks().largest(largest);
    Index shared = 0, expected_count = 0;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] > 1) ++shared;
      if (owners[i] > 1 || number[i] >= 0) ++expected_count;
      if (number[i] < 0) continue;
      same = same && (owners[i] > 1) == (number[i] < static_cast<double>(found.shared));
      if (owners[i] > 1) same = same && number[i] == largest[i];
    }
    CHECK(everywhere(same && found.shared == shared && found.count == expected_count));
    if (ranks().size() > 1) CHECK(shared > 0);
  }
}

TEST_CASE("heat by eigenpairs and in the limit on parts is the whole graph's") {
  const sheafnn::Graph graph = scattered_components();
  const Index bundles = 2, row = 3;
  Rows x(graph.node_count(), bundles * row), y_bar(x.rows(), x.cols());
  for (Index i = 0; i < x.size(); ++i) {
    x.data()[i] = tiny::number(31, i);
    y_bar.data()[i] = tiny::number(32, i);
  }
  const std::vector<double> time = {0.7, 1.9};
  for (const auto expansion : {HeatExpansion::spectral, HeatExpansion::limit}) {
    for (const auto normalisation :
         {sheafnn::AdjacencyNormalisation::symmetric, sheafnn::AdjacencyNormalisation::random_walk}) {
      for (const bool self_loops : {false, true}) {
        const sheafnn::layers::HeatOptions options{expansion, normalisation, self_loops, 9};
        const auto apply = [&](const sheafnn::Graph& on, const Rows& x_here, const Rows& bar_here) {
          sheafnn::layers::HeatOperator<double> heat(1, on, options, bundles, row);
          std::vector<double> time_bar = {0.25, -0.5};
          sheafnn::layers::HeatWeights<const double> weights;
          sheafnn::layers::HeatWeights<double> weights_bar;
          if (options.timed()) {
            weights.time = time;
            weights_bar.time = time_bar;
          }
          Rows y(x_here.rows(), x_here.cols()), x_bar = y;
          heat.forward(1, weights, sheafnn::MatrixView<const double>(x_here), sheafnn::MatrixView<double>(y));
          heat.backward(1, weights, sheafnn::MatrixView<const double>(x_here),
                        sheafnn::MatrixView<const double>(bar_here), sheafnn::MatrixView<double>(x_bar),
                        weights_bar);
          for (std::size_t b = 0; b < time_bar.size(); ++b) time_bar[b] -= b == 0 ? 0.25 : -0.5;  // added to
          return std::tuple(y, x_bar, time_bar);
        };
        const auto [y, x_bar, time_bar] = apply(graph, x, y_bar);
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          const PartOf part(graph, seed);
          const auto rows = [&](const Rows& whole) { return owned_rows(part.numbers(), whole); };
          auto [y_here, x_bar_here, share] = apply(part.graph(), rows(x), rows(y_bar));
          ranks().sum(std::span<double>(share));
          double apart =
              std::max((y_here - rows(y)).cwiseAbs().maxCoeff(), (x_bar_here - rows(x_bar)).cwiseAbs().maxCoeff());
          for (std::size_t b = 0; b < share.size(); ++b) apart = std::max(apart, std::abs(share[b] - time_bar[b]));
          CAPTURE(apart);
          CHECK(everywhere(apart < 1e-13));
          if (expansion != HeatExpansion::spectral) continue;
          // Eigenvectors have the bits of one process.
          const sheafnn::layers::HeatSpectrum<double> whole(1, graph, options, 9),
              here(1, part.graph(), options, 9);
          bool same = here.values == whole.values;
          for (Index u = 0; u < part.numbers().own; ++u) {
            const Index v = part.numbers().node[static_cast<std::size_t>(u)];
            for (Index j = 0; j < 9; ++j) {
              same =
                  same && here.in[u * 9 + j] == whole.in[v * 9 + j] && here.out[u * 9 + j] == whole.out[v * 9 + j];
            }
          }
          CHECK(everywhere(same));
        }
      }
    }
  }
}

}  // namespace
}  // namespace test_distributed_networks
