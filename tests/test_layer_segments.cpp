/// \file
/// Networks whose layers share arrays. Backward passes that compute layers again (ForwardPass::recompute_layers) give the same bits as
/// others. Passes that keep layers in 16 bits (compress_layers) have the same outputs, and nearly the same derivatives.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string_view>
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

namespace test_layer_segments {
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
/// How layers share arrays.
struct Sharing {
  Index recompute = 0;
  bool compress = false;
};
struct Results {
  Numbers exact;  ///< loss, KL term and outputs of an evaluation
  Numbers gradient;
  bool operator==(const Results&) const = default;
};
/// What a training pass and an evaluation give.
template <class Model>
Results results(Network<Model>& network, std::uint32_t epoch, const Sharing& sharing, bool overwrites = true) {
  const std::vector<std::int32_t>& nodes = task().splits[0].train;
  Results r;
  const sheafnn::Elbo elbo =
      sheafnn::elbo(network,
                    {.epoch = epoch,
                     .training = true,
                     .overwrites = overwrites,
                     .recompute_layers = sharing.recompute,
                     .compress_layers = sharing.compress,
                     .input_dropout = 0.4,
                     .dropout = 0.3,
                     .nodes = nodes},
                    sheafnn::Classification(task().labels), nodes, {.kl_weight = 0.5, .samples = 2});
  r.exact = {static_cast<float>(elbo.loss), static_cast<float>(elbo.kl)};
  r.gradient.assign(network.gradient().begin(), network.gradient().end());
  network.begin({.epoch = epoch, .recompute_layers = sharing.recompute, .compress_layers = sharing.compress})
      .draw_samples(2, [&](const auto& outputs) {
        r.exact.insert(r.exact.end(), outputs.data(), outputs.data() + outputs.rows() * outputs.columns());
      });
  return r;
}
double norm(const float* values, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += double{values[i]} * double{values[i]};
  return std::sqrt(sum);
}
/// Compares the derivative of every parameter array. A value that a backward pass reads has a relative error of 2⁻⁸. A derivative is
/// a sum of products, with two such factors for every layer above: what the layer multiplies, and its maps. An array that is mixed
/// up has an error of the order of 1.
template <class Model>
void check_close(const Model& model, const Numbers& rounded, const Numbers& plain) {
  constexpr double bound = 2 * layers * 0x1p-8;
  Numbers error(plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) error[i] = rounded[i] - plain[i];
  const double whole = norm(plain.data(), plain.size());
  CHECK((norm(error.data(), error.size()) > 0) == (model.options().layers > 1));  // something was rounded
  for (const sheafnn::layers::ParameterInfo& array : model.parameters().info()) {
    CAPTURE(array.name);
    const std::size_t at = static_cast<std::size_t>(array.offset), size = static_cast<std::size_t>(array.size);
    CHECK(norm(error.data() + at, size) <= bound * (norm(plain.data() + at, size) + 0.01 * whole));
  }
}
template <class Model>
void check(const ModelOptions& options) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  const Model model(fitted(options), 3);
  Numbers of_one_thread;  // a gradient with compressed layers
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    Network<Model> plain(model, task().graph, task().features, threads);
    Network<Model> other(model, task().graph, task().features, threads);  // shares as it is told at the time
    const auto check_compressed = [&](std::uint32_t epoch, bool overwrites) {
      const Results expected = results(plain, epoch, {}, overwrites);
      const Results r = results(other, epoch, {.compress = true}, overwrites);
      CHECK(r.exact == expected.exact);
      check_close(model, r.gradient, expected.gradient);
      Network<Model> fresh(model, task().graph, task().features, threads);
      CHECK(results(fresh, epoch, {.compress = true}, overwrites) == r);
      return r.gradient;
    };
    for (std::uint32_t epoch = 0; const Index recompute : {2, 1, 0, 3, 4, 5, 2}) {
      CAPTURE(recompute);
      const Results expected = results(plain, epoch, {});
      CHECK(results(other, epoch, {recompute}) == expected);
      Network<Model> fresh(model, task().graph, task().features, threads);
      CHECK(results(fresh, epoch, {recompute}) == expected);
      ++epoch;
      if (recompute < 2) check_compressed(epoch, recompute == 1);
    }
    const Numbers gradient = check_compressed(0, true);
    check_compressed(1, true);
    if (threads == 1) of_one_thread = gradient;
    CHECK(gradient == of_one_thread);
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

TEST_CASE("layers that share arrays: diffusion") {
  check_both([](ModelOptions&) {});
  check_both([](ModelOptions& of) { of.linear = true; });
  check_both([](ModelOptions& of) {
    of.layer_norm = true;
    of.add_lp = of.add_hp = true;
    of.learner_layers = 2;
  });
}
TEST_CASE("layers that share arrays: filters and initial residuals") {
  for (const Index degree : {2, 5}) {
    check_both(
        [&](ModelOptions& of) { of.filter = {.basis = sheafnn::PolynomialBasis::legendre, .degree = degree}; });
  }
  check_both([](ModelOptions& of) { of.residual.form = sheafnn::ResidualForm::initial; });
}
TEST_CASE("layers that share arrays: other forms") {
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
TEST_CASE("layers that share arrays: kinds of layers side by side") {
  using Model = sheafnn::SheafModel<Rotations, sheafnn::PointMass<Rotations>, float,
                                    sheafnn::LayerKinds<EvenDiffusion, OddWave>>;
  check<Model>({});
}

/// Parameters, then losses of all epochs of a training.
Numbers trained(const Sharing& sharing, int threads) {
  sheafnn::Bsnn<Diagonal> model(fitted(), 1);
  const sheafnn::TrainResult result = sheafnn::train(model, task(), task().splits[0],
                                                     {.epochs = 30,
                                                      .kl_maximum = 0.1,
                                                      .recompute_layers = sharing.recompute,
                                                      .compress_layers = sharing.compress,
                                                      .samples = 2,
                                                      .threads = threads});
  Numbers r(model.parameters().values().begin(), model.parameters().values().end());
  for (const sheafnn::EpochReport& report : result.history) {
    r.push_back(static_cast<float>(report.validation_loss));
    r.push_back(static_cast<float>(report.loss));
  }
  return r;
}
TEST_CASE("a training that computes layers again gives the same model") {
  const Numbers plain = trained({}, 1);
  CHECK(trained({2}, 1) == plain);
  CHECK(trained({2}, 2) == plain);
}
TEST_CASE("a training that keeps layers in 16 bits learns as well, with the same bits for any number of threads") {
  const Numbers plain = trained({}, 1), rounded = trained({.compress = true}, 1);
  CHECK(rounded != plain);
  REQUIRE(rounded.size() == plain.size());
  const std::size_t first = plain.size() - 59;
  CHECK(rounded[first] == plain[first]);  // no step came before
  CHECK(rounded.back() < 0.8f * rounded[first]);
  CHECK(rounded.back() == doctest::Approx(plain.back()).epsilon(0.1));
  CHECK(trained({.compress = true}, 2) == rounded);
}

TEST_CASE("what networks whose layers share arrays refuse") {
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
  network.forward({.compress_layers = true});
  CHECK(network.features_after(layers).nodes() == task().node_count());
  CHECK(message_of<std::logic_error>([&] { static_cast<void>(network.features_after(1)); }) ==
        "features_after() of inner layers needs a pass with compress_layers = false");
  CHECK(
      message_of([&] { network.forward({.recompute_layers = 2, .compress_layers = true}); }) ==
      "compress_layers: true is not allowed; recompute_layers is 2, and layers are either kept or computed again");

  const sheafnn::TrainOptions again = {.epochs = 2, .recompute_layers = 2},
                              halved = {.epochs = 2, .compress_layers = true};
  const auto refuses = [&](auto& other, std::string_view kind) {
    const auto message = [&](const sheafnn::TrainOptions& options) {
      return message_of([&] { sheafnn::train(other, task(), task().splits[0], options); });
    };
    CHECK(message(again) == sheafnn::detail::concat("recompute_layers: 2 is not allowed; networks of kind ", kind,
                                                    " keep all layers"));
    CHECK(message(halved) == sheafnn::detail::concat("compress_layers: true is not allowed; networks of kind ",
                                                     kind, " keep layers as they are computed"));
  };
  sheafnn::CooperativeOptions options;
  options.features = task().feature_count();
  options.classes = task().class_count;
  sheafnn::Csnn<2> cooperative(options, 1);
  refuses(cooperative, "csnn");

  sheafnn::FlowOptions of_flow;
  of_flow.features = task().feature_count();
  of_flow.classes = task().class_count;
  sheafnn::SheafFlow<Rotations> flow(of_flow, 1);
  refuses(flow, "flow");

  Nsd trained_beside = model;
  const auto message_of_batch = [&](const sheafnn::TrainOptions& of) {
    const sheafnn::batch::Training<Nsd> training[] = {{&trained_beside, &task().splits[0], of}};
    return message_of([&] {
      sheafnn::batch::HostExecutor executor;
      const sheafnn::batch::BatchTrainer<sheafnn::batch::HostExecutor, Nsd> trainer(executor, task(), training);
    });
  };
  CHECK(message_of_batch(again) ==
        "trainings[0].recompute_layers: 2 is not allowed; the batch engine keeps all layers");
  CHECK(message_of_batch(halved) ==
        "trainings[0].compress_layers: true is not allowed; the batch engine keeps layers as they are computed");
}

}  // namespace test_layer_segments
