/// \file
/// Training takes its memory at the beginning: after the first epoch, no training step and no evaluation
/// allocates.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "counted_memory.hpp"
#include "map_kind.hpp"
#include "shared_networks.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn/bundle_network.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/pooled_network.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/kept_memory.hpp"
#include "sheafnn/flow.hpp"
#include "sheafnn/graph/synthetic.hpp"

namespace test_allocations {
namespace {

using heap::allocations;
using sheafnn::Bsnn;
using sheafnn::Index;
using sheafnn::ModelOptions;
using sheafnn::Nsd;

/// A graph on which two threads have something to do.
const sheafnn::Dataset& task() {
  static const sheafnn::Dataset data = [] {
    sheafnn::Dataset r = sheafnn::synthetic({.nodes = 300, .classes = 3, .features = 60, .splits = 1});
    r.graph.set_arc_features(std::vector<double>(static_cast<std::size_t>(2 * r.graph.arc_count()), 0.5), 2);
    return r;
  }();
  return data;
}

/// Trains for a few epochs; the number of allocations between the end of the first and the end of the last.
template <class Model, class Options>
std::size_t allocations_of_epochs(Options options, const sheafnn::TrainOptions& how, int threads) {
  constexpr Index epochs = 6;
  options.features = task().feature_count();
  options.classes = task().class_count;
  options.channels = 8;
  if constexpr (requires { options.layers = 2; }) options.layers = 2;
  Model model(options, 1);
  std::size_t first = 0, last = 0;
  sheafnn::TrainOptions train = how;
  train.epochs = epochs;
  train.threads = threads;
  train.on_epoch = [&](const sheafnn::EpochReport& report) {
    if (report.epoch == 0) first = allocations;
    last = allocations;
  };
  sheafnn::train(model, task(), task().splits[0], train);
  return last - first;
}

/// Small options and all that a model can have, one thread and, where loops do not start threads anew, two.
template <class Model>
void check_model() {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  const bool learned = test::kind_of<typename Model::Family> != test::MapKind::fixed;
  ModelOptions everything;
  everything.add_lp = everything.add_hp = true;
  everything.second_linear = true;
  everything.learner_layers = learned ? 2 : 0;
  everything.separate_encoder = everything.degree_input = Model::bayesian && learned;
  everything.layer_norm = true;
  everything.readout_layers = 3;
  if (learned) {
    everything.learner = sheafnn::LearnerInput::summed;
    everything.sheaf_activation = sheafnn::SheafActivation::elu;
    everything.edge_features = 2;
  }
  sheafnn::TrainOptions sampling;
  sampling.kl_estimator = sheafnn::KlEstimator::monte_carlo;
  sampling.training_samples = 2;
  sampling.stop_on = sheafnn::StopOn::roc_auc;
#if defined(_OPENMP)
  constexpr int max_threads = 2;
#else
  constexpr int max_threads = 1;
#endif
  for (int threads = 1; threads <= max_threads; ++threads) {
    CAPTURE(threads);
    CHECK(allocations_of_epochs<Model>(ModelOptions{}, {}, threads) == 0);
    CHECK(allocations_of_epochs<Model>(everything, sampling, threads) == 0);
    everything.filter = {.basis = sheafnn::PolynomialBasis::legendre, .degree = 4};
    CHECK(allocations_of_epochs<Model>(everything, sampling, threads) == 0);
    everything.filter = {};
    everything.residual.form = sheafnn::ResidualForm::initial;
    CHECK(allocations_of_epochs<Model>(everything, sampling, threads) == 0);
    everything.residual = {};
    sampling.compress_layers = true;
    CHECK(allocations_of_epochs<Model>(everything, sampling, threads) == 0);
    sampling.compress_layers = false;
    sampling.recompute_layers = 1;
    CHECK(allocations_of_epochs<Model>(everything, sampling, threads) == 0);
    sampling.recompute_layers = 0;
  }
}

/// The same for a cooperative model.
template <class Model>
void check_cooperative_model() {
  CAPTURE(Model::kind);
  sheafnn::CooperativeOptions everything;
  everything.learner = sheafnn::NodeLearnerKind::sage_projected;
  everything.learner_layers = 2;
  everything.norm = sheafnn::FeatureNorm::layer;
  everything.readout_layers = 2;
  everything.separate_encoder = Model::bayesian;
  sheafnn::CooperativeOptions sage;
  sage.learner = sheafnn::NodeLearnerKind::sage;
  sage.learner_layers = 2;
  sage.layer_learners = Model::bayesian;
  sheafnn::TrainOptions sampling;
  sampling.kl_estimator = sheafnn::KlEstimator::monte_carlo;
  sampling.training_samples = 2;
#if defined(_OPENMP)
  constexpr int max_threads = 2;
#else
  constexpr int max_threads = 1;
#endif
  for (int threads = 1; threads <= max_threads; ++threads) {
    CAPTURE(threads);
    CHECK(allocations_of_epochs<Model>(sheafnn::CooperativeOptions{}, {}, threads) == 0);
    CHECK(allocations_of_epochs<Model>(sage, sampling, threads) == 0);
    CHECK(allocations_of_epochs<Model>(everything, sampling, threads) == 0);
  }
}

/// The same for a flow whose number of steps does not change.
template <class Model>
void check_flow() {
  CAPTURE(Model::kind);
  sheafnn::FlowOptions equal;
  equal.method = sheafnn::FlowMethod::runge_kutta;
  equal.add_hp = true;
  sheafnn::FlowOptions one_step;
  one_step.absolute_tolerance = 1000;
  one_step.first_step = one_step.time;
  sheafnn::TrainOptions sampling;
  sampling.training_samples = 2;
  CHECK(allocations_of_epochs<Model>(equal, sampling, 1) == 0);
  CHECK(allocations_of_epochs<Model>(one_step, sampling, 1) == 0);
}

#if defined(SHEAFNN_TEST_OWN_MALLOC)
/// Bytes of a network after a training step.
template <class Model>
long bytes_of_network(const sheafnn::Dataset& data, Index layers, bool overwrites = true, Index recompute = 0,
                      bool compress = false) {
  ModelOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = 8;
  options.layers = layers;
  const Model model(options, 1);
  const std::vector<std::int32_t>& nodes = data.splits[0].train;
  const sheafnn::Classification loss(data.labels);
  const long before = heap::live_bytes();
  sheafnn::Network<Model> network(model, data.graph, data.features, 1);
  static_cast<void>(sheafnn::elbo(network,
                                  {.training = true,
                                   .overwrites = overwrites,
                                   .recompute_layers = recompute,
                                   .compress_layers = compress,
                                   .input_dropout = 0.5,
                                   .dropout = 0.3,
                                   .nodes = nodes},
                                  loss, nodes, {}));
  return heap::live_bytes() - before;
}
#endif

}  // namespace

#if defined(SHEAFNN_TEST_OWN_MALLOC)
TEST_CASE(
    "a layer more takes memory for two arrays of features, its mask, its transports and what its learner keeps") {
  using Rotations = sheafnn::SpecialOrthogonal<3>;
  const sheafnn::Dataset data = sheafnn::synthetic({.nodes = 3000, .classes = 3, .features = 60, .splits = 1});
  const long nodes = data.node_count(), edges = data.graph.edge_count(), row = 3 * 8, number = sizeof(float);
  const long small = 3 << 14;  // weights, their derivatives, and sums of groups of nodes
  const long features = nodes * row * number, mask = nodes * row / 8;
  const long layer = 2 * features + mask + (edges * 9 + nodes * 2) * number;
  const auto more = [&]<class Model>() {
    return (bytes_of_network<Model>(data, 4) - bytes_of_network<Model>(data, 2)) / 2;
  };
  const long bayesian = more.template operator()<Bsnn<Rotations>>();
  CHECK(bayesian >= layer);
  CHECK(bayesian <= layer + small);
  // One learner per layer: dropout of its input, raw outputs of three numbers, two factors and the weight.
  const long learner = features + mask + edges * (2 * 3 + 2 + 1) * number;
  const long deterministic = more.template operator()<Nsd<Rotations>>();
  CHECK(deterministic >= layer + learner);
  CHECK(deterministic <= layer + learner + small);
}

TEST_CASE("a layer more that is computed again takes memory for its mask and a part of an array of features") {
  using Rotations = sheafnn::SpecialOrthogonal<3>;
  const sheafnn::Dataset data = sheafnn::synthetic({.nodes = 3000, .classes = 3, .features = 60, .splits = 1});
  const long features = data.node_count() * 3 * 8 * 4, mask = features / 32, small = 3 << 14;
  const auto check = [&]<class Model>(long of_first) {
    const long two = bytes_of_network<Model>(data, 2), four = bytes_of_network<Model>(data, 4, true, 2),
               eight = bytes_of_network<Model>(data, 8, true, 2);
    CHECK(four <= two + of_first + features + 2 * mask + 2 * small);
    CHECK(eight - four >= 2 * features + 4 * mask);
    CHECK(eight - four <= 2 * features + 4 * mask + 4 * small);
  };
  // Sheaves are drawn again before all of them have given their derivatives to the posterior's parameters, which keep them.
  check.operator()<Bsnn<Rotations>>(data.graph.edge_count() * 2 * 10 * 4);
  // The learner of a first layer has no dropout.
  check.operator()<Nsd<Rotations>>(features + mask);
}

TEST_CASE("a layer more that is kept in 16 bits takes half of its memory") {
  using Rotations = sheafnn::SpecialOrthogonal<3>;
  const sheafnn::Dataset data = sheafnn::synthetic({.nodes = 3000, .classes = 3, .features = 60, .splits = 1});
  const long mask = data.node_count() * 3 * 8 / 8, small = 3 << 14;
  const auto check = [&]<class Model>(long masks) {
    const long layer = (bytes_of_network<Model>(data, 10) - bytes_of_network<Model>(data, 6)) / 4,
               compressed = (bytes_of_network<Model>(data, 10, true, 0, true) -
                             bytes_of_network<Model>(data, 6, true, 0, true)) / 4;
    CHECK(compressed >= (layer - masks * mask) / 2 + masks * mask - small);
    CHECK(compressed <= (layer - masks * mask) / 2 + masks * mask + small);
  };
  check.operator()<Bsnn<Rotations>>(1);
  check.operator()<Nsd<Rotations>>(2);
}

TEST_CASE(
    "a pass that overwrites keeps no derivative of the last features, and none of the posterior's parameters") {
  using Rotations = sheafnn::SpecialOrthogonal<3>;
  const sheafnn::Dataset data = sheafnn::synthetic({.nodes = 3000, .classes = 3, .features = 60, .splits = 1});
  const long features = data.node_count() * 3 * 8 * 4, parameters = data.graph.edge_count() * 2 * 10 * 4;
  const auto less = [&]<class Model>() {
    return bytes_of_network<Model>(data, 2, false) - bytes_of_network<Model>(data, 2, true);
  };
  const long objects = 1 << 10;  // that own arrays, and are no numbers
  CHECK(less.template operator()<Bsnn<Rotations>>() >= features + parameters - objects);
  CHECK(less.template operator()<Nsd<Rotations>>() >= features - objects);
}
#endif

TEST_CASE(
    "memory of Buffers is kept for the next ones in its thread, and given back when no use needs it for long") {
  using sheafnn::Buffer;
  using sheafnn::detail::KeptMemory;
  const long blocks_before = heap::live_blocks();
  {
    KeptMemory memory;
    std::optional<Buffer<double>> outlives;
    const auto address_of = [&](Index size) {
      const KeptMemory::Use use(memory);
      Buffer<double> buffer(size);
      const bool zero = std::all_of(buffer.begin(), buffer.end(), [](double x) { return x == 0; });
      CHECK(zero);
      CHECK(buffer.size() == size);
      buffer.fill(3);
      return static_cast<const void*>(buffer.data());
    };
    const void* const first = address_of(1000);
    const Buffer<double> elsewhere(1000);  // of no Use
    CHECK(static_cast<const void*>(elsewhere.data()) != first);
    CHECK(address_of(700) == first);
    CHECK(address_of(1000) == first);
    {
      const KeptMemory::Use use(memory);
      const Buffer<double> small(499);  // less than half of it
      CHECK(static_cast<const void*>(small.data()) != first);
      outlives.emplace(1000);
      CHECK(static_cast<const void*>(outlives->data()) == first);
      *outlives = Buffer<double>(2000);
      Buffer<double> moved = std::move(*outlives), copied = moved;
      CHECK(static_cast<const void*>(copied.data()) != first);
      outlives.emplace(std::move(copied));
    }
    const long kept = heap::live_blocks();
    for (std::size_t i = 1; i < KeptMemory::idle_uses; ++i) {  // they take nothing
      const KeptMemory::Use use(memory);
    }
    CHECK(heap::live_blocks() == kept);
    { const KeptMemory::Use use(memory); }
    CHECK(heap::live_blocks() == kept - 3);
    CHECK(outlives->size() == 2000);
  }
  CHECK(heap::live_blocks() == blocks_before);
}

#if defined(SHEAFNN_TEST_OWN_MALLOC)
TEST_CASE("mini-batches of graphs do not take more memory with every step") {
  using Model = sheafnn::PooledModel<Nsd<sheafnn::GeneralLinear<2>>>;
  sheafnn::Dataset data = sheafnn::synthetic({.nodes = 3000, .classes = 3, .features = 10, .splits = 1});
  std::vector<sheafnn::Edge> inside;  // of graphs of 30 nodes
  for (Index e = 0; e < data.graph.edge_count(); ++e) {
    if (data.graph.edge(e).u / 30 == data.graph.edge(e).v / 30) inside.push_back(data.graph.edge(e));
  }
  for (std::int32_t u = 0; u + 1 < 3000; ++u) {
    if ((u + 1) % 30 != 0) inside.push_back({u, u + 1});
  }
  data.graph = sheafnn::Graph(3000, inside);
  std::vector<std::int32_t> offsets, labels;
  for (std::int32_t g = 0; g <= 100; ++g) offsets.push_back(30 * g);
  for (std::int32_t g = 0; g < 100; ++g) labels.push_back(g % 3);
  data.graph.set_graphs(offsets);
  const Model model(
      sheafnn::PooledOptions{{.features = data.feature_count(), .channels = 8, .layers = 3, .classes = 3}, sheafnn::Pooling::mean},
      1);
  sheafnn::Network<Model> network(model, data.graph, data.features, 1);
  const sheafnn::Classification loss(labels);
  long after_few = 0;
  for (std::int32_t step = 0; step < 40; ++step) {
    std::vector<std::int32_t> graphs;
    for (std::int32_t g = step % 10; g < 100; g += 10) graphs.push_back(g);
    static_cast<void>(sheafnn::elbo(network, {.training = true, .dropout = 0.3, .nodes = graphs}, loss, graphs, {}));
    if (step == 4) after_few = heap::live_bytes();
  }
  CHECK(heap::live_bytes() <= after_few + after_few / 4);
}
#endif

TEST_CASE("allocations are counted") {
  const std::size_t before = allocations;
  const std::vector<double> numbers(3);
  CHECK(allocations.load() == before + 1);
  const sheafnn::Buffer<float> buffer(3);
  CHECK(allocations.load() == before + 2);
  const auto array = std::make_unique<int[]>(3);
  CHECK(allocations.load() == before + 3);
  const Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(3, 3);
#if defined(SHEAFNN_TEST_OWN_MALLOC)  // Eigen calls malloc
  CHECK(allocations.load() == before + 4);
#endif
  CHECK(matrix(2, 2) + buffer[2] + array[2] == numbers[2]);
}

TEST_CASE("epochs do not allocate: identity") {
  check_model<Bsnn<sheafnn::Identity<3>>>();
  check_model<Nsd<sheafnn::Identity<3>>>();
}
TEST_CASE("epochs do not allocate: diagonal") {
  check_model<Bsnn<sheafnn::Diagonal<3>>>();
  check_model<Nsd<sheafnn::Diagonal<3>>>();
}
TEST_CASE("epochs do not allocate: special orthogonal") {
  check_model<Bsnn<sheafnn::SpecialOrthogonal<3>>>();
  check_model<Nsd<sheafnn::SpecialOrthogonal<3>>>();
}
TEST_CASE("epochs do not allocate: general linear") {
  check_model<Bsnn<sheafnn::GeneralLinear<3>>>();
  check_model<Nsd<sheafnn::GeneralLinear<3>>>();
}
TEST_CASE("epochs do not allocate: batches") {
  using Model = Bsnn<sheafnn::SpecialOrthogonal<3>>;
  ModelOptions options;
  options.features = task().feature_count();
  options.classes = task().class_count;
  options.filter = {.basis = sheafnn::PolynomialBasis::chebyshev_interpolation, .degree = 3};
  Model first(options, 1), second(options, 2);
  const sheafnn::TrainOptions train = {.dropout = 0.3, .training_samples = 2};
  const sheafnn::batch::Training<Model> trainings[] = {{&first, &task().splits[0], train},
                                                       {&second, &task().splits[0], train}};
  sheafnn::batch::HostExecutor executor;
  sheafnn::batch::BatchTrainer<sheafnn::batch::HostExecutor, Model> trainer(executor, task(), trainings);
  trainer.record_epoch();
  const std::size_t before = allocations;
  for (int epoch = 0; epoch < 3; ++epoch) executor.replay();
  CHECK(allocations - before == 0);
}
TEST_CASE("epochs do not allocate: cooperative") {
  check_cooperative_model<sheafnn::Csnn<3>>();
  check_cooperative_model<sheafnn::Bcsnn<3>>();
}
TEST_CASE("epochs do not allocate: bundles") {
  sheafnn::BundleOptions everything;
  everything.bundles = 4;
  everything.learner = sheafnn::BundleLearnerKind::sage_residual;
  everything.learner_layers = 2;
  everything.expansion = sheafnn::HeatExpansion::spectral;
  everything.mixing = sheafnn::BundleMixing::linear;
  const sheafnn::TrainOptions sampling{.kl_estimator = sheafnn::KlEstimator::monte_carlo, .training_samples = 2};
  CHECK(allocations_of_epochs<sheafnn::Bunn<2>>(sheafnn::BundleOptions{}, {}, 1) == 0);
  CHECK(allocations_of_epochs<sheafnn::Bunn<2>>(everything, {}, 1) == 0);
  CHECK(allocations_of_epochs<sheafnn::BayesianBunn<2>>(everything, sampling, 1) == 0);
}
TEST_CASE("epochs do not allocate: continuous time") {
  check_flow<sheafnn::BayesianSheafFlow<sheafnn::Diagonal<3>>>();
  check_flow<sheafnn::SheafFlow<sheafnn::Diagonal<3>>>();
}

}  // namespace test_allocations
