/// \file
/// Networks whose sheaf is given: the trivial one against fixed identity maps, a model's own sheaves against the model,
/// gradients, training with a true sheaf on a task that needs one, files, refused sheaves.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "frames_task.hpp"
#include "model_gradient.hpp"
#include "network_passes.hpp"
#include "refusal.hpp"
#include "sheafnn/bsnn/given_sheaf.hpp"
#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/flow.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_given_sheaf {
namespace {

using sheafnn::Bsnn;
using sheafnn::CellularSheaf;
using sheafnn::Diagonal;
using sheafnn::Edge;
using sheafnn::GeneralLinear;
using sheafnn::GivenMaps;
using sheafnn::Graph;
using sheafnn::Identity;
using sheafnn::Index;
using sheafnn::ModelOptions;
using sheafnn::Nsd;
using sheafnn::Snn;
using sheafnn::SpecialOrthogonal;
using sheafnn::Stream;
using test::message_of;

using Doubles = std::vector<double>;

template <class Model>
Model disturbed(const typename Model::Options& options) {
  Model model(options, 5);
  tiny::disturb(model.parameters(), 6, 0.3);
  return model;
}

template <class Model>
Doubles probabilities(const Model& model, const tiny::Task& task) {
  return sheafnn::predict(model, task.graph, task.sparse, {.samples = 1, .seed = 3, .epoch = 4}).probabilities;
}

double largest_difference(const Doubles& a, const Doubles& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = test::worse(worst, std::abs(a[i] - b[i]));
  return worst;
}

/// Options with each part of a network that reads a sheaf.
std::vector<ModelOptions> architectures() {
  std::vector<ModelOptions> r(5, tiny::options());
  r[1].linear = true;
  r[2].normalisation = sheafnn::Normalisation::block;
  r[2].add_lp = true;
  r[3].filter.basis = sheafnn::PolynomialBasis::chebyshev;
  r[3].filter.degree = 3;
  r[4].residual.form = sheafnn::ResidualForm::initial;
  return r;
}

/// The drawn (or learned) sheaves of a model given to another one with its other parameters.
template <class Model>
void check_own_sheaves() {
  CAPTURE(Model::kind);
  CAPTURE(Model::Family::name);
  const tiny::Task task;
  for (const ModelOptions& options : architectures()) {
    const Model model = disturbed<Model>(options);
    std::vector<CellularSheaf<typename Model::Family>> sheaves;
    for (Index l = 0; l < model.sheaf_count(); ++l) {
      sheaves.push_back(
          sheafnn::draw_sheaf(model, task.graph, task.sparse, {.sample = 0, .layer = l, .seed = 3, .epoch = 4}));
    }
    const auto given = sheafnn::with_sheaves(model, GivenMaps(std::move(sheaves)));
    // Maps go through double and, of rotations, to the nearest ones; all else is the same.
    const double epsilon = static_cast<double>(std::numeric_limits<typename Model::Scalar>::epsilon());
    const double bound = 256 * static_cast<double>(model.hidden_width()) * epsilon;
    CHECK(largest_difference(probabilities(given, task), probabilities(model, task)) <= bound);
    // And the sheaf is what counts: another one gives something else.
    const auto other = sheafnn::with_sheaves(
        model, GivenMaps(sheafnn::sheaf::random_sheaf<typename Model::Family>(task.graph, Stream{.seed = 9})));
    CHECK(largest_difference(probabilities(other, task), probabilities(model, task)) > 1e-3);
  }
}

TEST_CASE("the trivial sheaf given is the identity") {
  const tiny::Task task;
  for (const ModelOptions& options : architectures()) {
    const auto identity = disturbed<Nsd<Identity<3>, double>>(options);
    const auto check = [&]<class Family>(Family) {
      Snn<Family, double> given(options, 0, GivenMaps(CellularSheaf<Family>(task.graph)));
      REQUIRE(given.parameters().size() == identity.parameters().size());
      given.parameters().values() = identity.parameters().values();
      CHECK(largest_difference(probabilities(given, task), probabilities(identity, task)) <=
            256 * static_cast<double>(identity.hidden_width()) * std::numeric_limits<double>::epsilon());
    };
    check(Identity<3>{});
    check(Diagonal<3>{});
    check(SpecialOrthogonal<3>{});
    check(GeneralLinear<3>{});
  }
}

TEST_CASE("a model's own sheaves given predict as the model does") {
  check_own_sheaves<Nsd<Diagonal<2>, double>>();
  check_own_sheaves<Nsd<SpecialOrthogonal<3>>>();
  check_own_sheaves<Nsd<GeneralLinear<2>, double>>();
  check_own_sheaves<Bsnn<Diagonal<3>>>();
  check_own_sheaves<Bsnn<SpecialOrthogonal<3>, double>>();
  check_own_sheaves<Bsnn<GeneralLinear<2>, double>>();
}

TEST_CASE("flows along given sheaves") {
  const tiny::Task task;
  sheafnn::FlowOptions options;
  options.features = task.features;
  options.classes = task.classes;
  options.channels = 2;
  const auto model = disturbed<sheafnn::BayesianSheafFlow<SpecialOrthogonal<3>, double>>(options);
  const auto sheaf = sheafnn::draw_sheaf(model, task.graph, task.sparse, {.seed = 3, .epoch = 4});
  const auto given = sheafnn::with_sheaves(model, GivenMaps(sheaf));
  CHECK(largest_difference(probabilities(given, task), probabilities(model, task)) <=
        256 * static_cast<double>(model.hidden_width()) * std::numeric_limits<double>::epsilon());
  const auto trivial = sheafnn::with_sheaves(model, GivenMaps(CellularSheaf<SpecialOrthogonal<3>>(task.graph)));
  CHECK(largest_difference(probabilities(trivial, task), probabilities(model, task)) > 1e-3);
  CHECK(message_of([&] {
          static_cast<void>(sheafnn::with_sheaves(model, GivenMaps(std::vector{sheaf, sheaf})));
        }) == "sheaves: 2 is not allowed; the model has one sheaf");
}

template <class Family>
void check_gradient() {
  CAPTURE(Family::name);
  const tiny::Task task;
  for (const ModelOptions& options : architectures()) {
    CellularSheaf<Family> sheaf = sheafnn::sheaf::random_sheaf<Family>(task.graph, Stream{.seed = 2});
    if constexpr (sheafnn::sheaf::may_have_edge_weights<Family>) {
      for (Index e = 0; e < task.graph.edge_count(); ++e) sheaf.set_edge_weight(e, 0.6 + 0.4 * tiny::number(3, e));
    }
    Snn<Family, double> model(options, 7, GivenMaps(sheaf));
    tiny::disturb(model.parameters(), 8, 0.3);
    test::TrainingPass<double> pass = tiny::training_pass(task);
    pass.dropout = 0.2;
    sheafnn::Network<Snn<Family, double>> network(model, task.graph, task.sparse);
    const test::PassResult result = model_gradient::check_gradient(model, network, pass);
    CHECK(result.kl == 0);
    // The sheaf that the network reads is the one that was given, to the last bit.
    const auto read = sheafnn::learned_sheaf(model, task.graph, task.sparse);
    for (Index a = 0; a < task.graph.arc_count(); ++a) CHECK(read.restriction_map(a) == sheaf.restriction_map(a));
  }
}

TEST_CASE("gradients with a given sheaf") {
  check_gradient<Diagonal<2>>();
  check_gradient<SpecialOrthogonal<3>>();
  check_gradient<GeneralLinear<2>>();
}

TEST_CASE("a true sheaf that is given is worth more than the identity") {
  const test::FramesTask task(1500);
  sheafnn::TrainOptions training;
  training.epochs = 400;
  training.patience = 400;
  training.learning_rate = 0.02;
  training.dropout = training.input_dropout = 0;
  training.threads = 1;
  const auto accuracy = [&](const CellularSheaf<SpecialOrthogonal<3>>& sheaf) {
    Snn<SpecialOrthogonal<3>> model(task.options(), 1, GivenMaps(sheaf));
    return sheafnn::train(model, task.data, task.data.splits[0], training).test_accuracy;
  };
  // Without the truth half of 500 nodes are right, with a standard deviation of 0.022.
  CHECK(accuracy(task.truth) > 0.8);
  CHECK(accuracy(CellularSheaf<SpecialOrthogonal<3>>(task.data.graph)) < 0.6);
}

TEST_CASE("a checkpoint holds what is learned, and the sheaf is given again") {
  const tiny::Task task;
  const GivenMaps maps(sheafnn::sheaf::random_sheaf<Diagonal<2>>(task.graph, Stream{.seed = 2}));
  Snn<Diagonal<2>> model(tiny::options(), 7, maps);
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "given.safetensors";
  sheafnn::io::save_checkpoint(path, model);
  const auto loaded = sheafnn::io::load_checkpoint<Snn<Diagonal<2>>>(path, maps);
  CHECK(probabilities(loaded, task) == probabilities(model, task));
}

TEST_CASE("sheaves that do not fit are refused") {
  const tiny::Task task;
  using Family = SpecialOrthogonal<3>;
  using Model = Snn<Family, double>;
  const ModelOptions two = tiny::options();
  const CellularSheaf<Family> sheaf(task.graph);
  CHECK(message_of([&] { Model(two, 0); }) ==
        "sheaves: 0 is not allowed; a model with given maps needs a sheaf: give it as the posterior");
  CHECK(message_of([&] { Model(two, 0, GivenMaps(std::vector(3, sheaf))); }) ==
        "sheaves: 3 is not allowed; must be 1, for all layers, or 2, one per sheaf of the model");
  ModelOptions options = two;
  options.linear = true;
  CHECK(message_of([&] { Model(options, 0, GivenMaps(std::vector(2, sheaf))); }) ==
        "sheaves: 2 is not allowed; the model has one sheaf");
  options = two;
  options.edge_weights = true;
  CHECK(message_of([&] { Model(options, 0, GivenMaps(sheaf)); }) ==
        "edge_weights: true is not allowed; given sheaves have edge weights of their own");
  options = two;
  options.use_edges = false;
  CHECK(message_of([&] { Model(options, 0, GivenMaps(sheaf)); }) ==
        "use_edges: false is not allowed; a network without edges has no sheaf");

  const auto on = [&](const Graph& graph) {
    const Model model(two, 0, GivenMaps(std::vector{sheaf, CellularSheaf<Family>(graph)}));
    return message_of([&] { sheafnn::Network<Model>(model, task.graph, task.sparse); });
  };
  std::vector<Edge> edges(task.graph.edges().begin(), task.graph.edges().end());
  CHECK(on(Graph(8, edges)) == "nodes of sheaves[1]: 8 is not allowed; the network's graph has 7");
  edges[0] = {0, 6};
  CHECK(on(Graph(7, edges)) == "edge 0 of sheaves[1]: 0 – 2 is not allowed; the network's graph has 0 – 1");
  edges.pop_back();
  CHECK(on(Graph(7, edges)) == "edges of sheaves[1]: 8 is not allowed; the network's graph has 9");
}

}  // namespace
}  // namespace test_given_sheaf
