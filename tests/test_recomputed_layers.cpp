/// \file
/// Backward passes that compute layers again (ForwardPass::recompute_layers) give the same bits as others.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "refusal.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/every_layer.hpp"
#include "sheafnn/flow.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/layers/layer_segments.hpp"

namespace test_recomputed_layers {
namespace {

using sheafnn::AnyBsnn;
using sheafnn::AnyNsd;
using sheafnn::Index;
using sheafnn::LayerForm;
using sheafnn::ModelOptions;
using sheafnn::Network;
using Numbers = std::vector<float>;
using Rotations = sheafnn::SpecialOrthogonal<2>;
using Diagonal = sheafnn::Diagonal<2>;

constexpr Index layers = 5;

const sheafnn::Dataset& task() {
  static const sheafnn::Dataset data =
      sheafnn::synthetic({.nodes = 70, .classes = 3, .features = 20, .degree = 6, .splits = 1});
  return data;
}
ModelOptions fitted(ModelOptions r = {}) {
  r.features = task().feature_count();
  r.classes = task().class_count;
  r.channels = 5;
  r.layers = layers;
  return r;
}
template <class Rows>
void add(const Rows& rows, Numbers& to) {
  to.insert(to.end(), rows.begin(), rows.end());
}

/// What a training pass and an evaluation give.
template <class Model>
Numbers results(Network<Model>& network, std::uint32_t epoch, Index recompute) {
  const std::vector<std::int32_t>& nodes = task().splits[0].train;
  Numbers r;
  const sheafnn::Elbo elbo =
      sheafnn::elbo(network,
                    {.epoch = epoch,
                     .training = true,
                     .overwrites = true,
                     .recompute_layers = recompute,
                     .input_dropout = 0.4,
                     .dropout = 0.3,
                     .nodes = nodes},
                    sheafnn::Classification(task().labels), nodes, {.kl_weight = 0.5, .samples = 2});
  r.push_back(static_cast<float>(elbo.loss));
  r.push_back(static_cast<float>(elbo.kl));
  add(network.gradient(), r);
  network.begin({.epoch = epoch, .recompute_layers = recompute}).draw_samples(2, [&](const auto& outputs) {
    r.insert(r.end(), outputs.data(), outputs.data() + outputs.rows() * outputs.columns());
  });
  return r;
}
template <class Model>
void check(const ModelOptions& options) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  const Model model(fitted(options), 3);
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    Network<Model> plain(model, task().graph, task().features, threads);
    Network<Model> other(model, task().graph, task().features, threads);  // as many as it is told at the time
    for (std::uint32_t epoch = 0; const Index recompute : {2, 1, 0, 3, 4, 5, 2}) {
      CAPTURE(recompute);
      CHECK(results(other, epoch, recompute) == results(plain, epoch, 0));
      Network<Model> fresh(model, task().graph, task().features, threads);
      CHECK(results(fresh, epoch, recompute) == results(plain, epoch, 0));
      ++epoch;
    }
  }
}
/// Of both kinds of models.
void check_both(const std::function<void(ModelOptions&)>& change) {
  ModelOptions options;
  change(options);
  check<AnyNsd<Rotations>>(options);
  check<AnyBsnn<Diagonal>>(options);
}

/// Layers in turn.
template <class Family, class S>
using OddWave = sheafnn::LayerWhere<sheafnn::layers::WaveLayer<Family, S>,
                                    [](const sheafnn::layers::LayerSetting& of) { return of.number % 2 == 1; }>;
template <class Family, class S>
using EvenDiffusion =
    sheafnn::LayerWhere<sheafnn::layers::DiffusionLayer<Family, S>,
                        [](const sheafnn::layers::LayerSetting& of) { return of.number % 2 == 0; }>;

}  // namespace

TEST_CASE("segments count from the last layer") {
  const sheafnn::layers::LayerSegments segments(7, 3), whole(7, 0), long_one(7, 9);
  const std::vector<Index> place = {2, 0, 1, 2, 0, 1, 2}, first = {0, 1, 1, 1, 4, 4, 4};
  for (Index l = 0; l < 7; ++l) {
    CHECK(segments.place(l) == place[static_cast<std::size_t>(l)]);
    CHECK(segments.first(l) == first[static_cast<std::size_t>(l)]);
    CHECK(segments.ends_before_others(l) == (l == 0 || l == 3));
    CHECK(whole.place(l) == l);
    CHECK(!whole.ends_before_others(l));
  }
  CHECK(whole.whole());
  CHECK(long_one == whole);
  CHECK(!segments.whole());
}

TEST_CASE("layers that are computed again have the same bits: diffusion") {
  check_both([](ModelOptions&) {});
  check_both([](ModelOptions& of) { of.linear = true; });
  check_both([](ModelOptions& of) {
    of.layer_norm = true;
    of.add_lp = of.add_hp = true;
    of.learner_layers = 2;
  });
}
TEST_CASE("layers that are computed again have the same bits: filters and initial residuals") {
  for (const Index degree : {2, 5}) {
    check_both(
        [&](ModelOptions& of) { of.filter = {.basis = sheafnn::PolynomialBasis::legendre, .degree = degree}; });
  }
  check_both([](ModelOptions& of) { of.residual.form = sheafnn::ResidualForm::initial; });
}
TEST_CASE("layers that are computed again have the same bits: other forms") {
  for (const LayerForm form :
       {LayerForm::wave, LayerForm::convolution, LayerForm::copresheaf, LayerForm::directed}) {
    CAPTURE(to_string(form));
    check_both([&](ModelOptions& of) {
      of.layer = form;
      of.directed.random = true;
    });
  }
  for (int choice = 0; choice < 16; choice += 3) {
    CAPTURE(choice);
    check_both([&](ModelOptions& of) {
      of.layer = LayerForm::attention;
      of.attention = {.heads = 2, .width = 2};
      of.attention.transported = (choice & 1) != 0;
      of.attention.residual = (choice & 2) != 0;
      of.attention.normalised = (choice & 4) != 0;
      of.attention.random = (choice & 8) != 0;
    });
  }
}
TEST_CASE("layers that are computed again have the same bits: kinds of layers side by side") {
  using Model = sheafnn::SheafModel<Rotations, sheafnn::PointMass<Rotations>, float,
                                    sheafnn::LayerKinds<EvenDiffusion, OddWave>>;
  check<Model>({});
}

TEST_CASE("a training that computes layers again gives the same model") {
  using Model = sheafnn::Bsnn<Diagonal>;
  const auto trained = [](Index recompute, int threads) {
    Model model(fitted(), 1);
    const sheafnn::TrainResult result = sheafnn::train(
        model, task(), task().splits[0],
        {.epochs = 12, .kl_maximum = 0.1, .recompute_layers = recompute, .samples = 2, .threads = threads});
    Numbers r(model.parameters().values().begin(), model.parameters().values().end());
    for (const sheafnn::EpochReport& report : result.history) {
      r.push_back(static_cast<float>(report.loss));
      r.push_back(static_cast<float>(report.validation_loss));
    }
    return r;
  };
  const Numbers plain = trained(0, 1);
  CHECK(trained(2, 1) == plain);
  CHECK(trained(2, 2) == plain);
}

TEST_CASE("what networks that compute layers again refuse") {
  using test::message_of;
  using Nsd = sheafnn::Nsd<Rotations>;
  const Nsd model(fitted(), 1);
  Network<Nsd> network(model, task().graph, task().features, 1);
  network.forward({.recompute_layers = 2});
  CHECK(network.features_after(0).nodes() == task().node_count());
  CHECK(network.features_after(layers).nodes() == task().node_count());
  CHECK(message_of<std::logic_error>([&] { static_cast<void>(network.features_after(1)); }) ==
        "features_after() of inner layers needs a pass with recompute_layers = 0");
  CHECK(message_of([&] { network.forward({.recompute_layers = -1}); }) ==
        "recompute_layers: -1 is not allowed; must be at least 0 (0: none)");

  sheafnn::CooperativeOptions options;
  options.features = task().feature_count();
  options.classes = task().class_count;
  sheafnn::Csnn<2> cooperative(options, 1);
  CHECK(message_of([&] {
          sheafnn::train(cooperative, task(), task().splits[0], {.epochs = 2, .recompute_layers = 2});
        }) == "recompute_layers: 2 is not allowed; networks of kind csnn keep all layers");

  sheafnn::FlowOptions of_flow;
  of_flow.features = task().feature_count();
  of_flow.classes = task().class_count;
  sheafnn::SheafFlow<Rotations> flow(of_flow, 1);
  CHECK(message_of([&] {
          sheafnn::train(flow, task(), task().splits[0], {.epochs = 2, .recompute_layers = 2});
        }) == "recompute_layers: 2 is not allowed; networks of kind flow keep all layers");

  Nsd trained = model;
  const sheafnn::batch::Training<Nsd> training[] = {{&trained, &task().splits[0], {.recompute_layers = 2}}};
  CHECK(message_of([&] {
          sheafnn::batch::HostExecutor executor;
          const sheafnn::batch::BatchTrainer<sheafnn::batch::HostExecutor, Nsd> trainer(executor, task(),
                                                                                        training);
        }) == "trainings[0].recompute_layers: 2 is not allowed; the batch engine keeps all layers");
}

}  // namespace test_recomputed_layers
