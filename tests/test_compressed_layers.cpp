/// \file
/// Passes that keep layers in 16 bits (ForwardPass::compress_layers): the outputs of other passes, and nearly their derivatives.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "refusal.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/core/bfloat16.hpp"
#include "sheafnn/every_layer.hpp"
#include "sheafnn/graph/synthetic.hpp"

namespace test_compressed_layers {
namespace {

using sheafnn::AnyBsnn;
using sheafnn::AnyNsd;
using sheafnn::Index;
using sheafnn::LayerForm;
using sheafnn::ModelOptions;
using sheafnn::Network;
using sheafnn::detail::from_bfloat16;
using sheafnn::detail::to_bfloat16;
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
  if (r.layers == ModelOptions().layers) r.layers = layers;
  return r;
}

struct Results {
  Numbers exact;  ///< loss, KL term and outputs of an evaluation
  Numbers gradient;
};
/// What a training pass and an evaluation give.
template <class Model>
Results results(Network<Model>& network, std::uint32_t epoch, bool compress, bool overwrites = true) {
  const std::vector<std::int32_t>& nodes = task().splits[0].train;
  Results r;
  const sheafnn::Elbo elbo =
      sheafnn::elbo(network,
                    {.epoch = epoch,
                     .training = true,
                     .overwrites = overwrites,
                     .compress_layers = compress,
                     .input_dropout = 0.4,
                     .dropout = 0.3,
                     .nodes = nodes},
                    sheafnn::Classification(task().labels), nodes, {.kl_weight = 0.5, .samples = 2});
  r.exact = {static_cast<float>(elbo.loss), static_cast<float>(elbo.kl)};
  r.gradient.assign(network.gradient().begin(), network.gradient().end());
  network.begin({.epoch = epoch, .compress_layers = compress}).draw_samples(2, [&](const auto& outputs) {
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
/// a sum of products of a few of them for every layer above. An array that is mixed up has an error of the order of 1.
template <class Model>
void check_close(const Model& model, const Numbers& rounded, const Numbers& plain) {
  constexpr double bound = layers * 0x1p-8;
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
  Network<Model> plain(model, task().graph, task().features, 1), other(model, task().graph, task().features, 1),
      threaded(model, task().graph, task().features, 2);
  for (std::uint32_t epoch = 0; const bool compress : {true, false, true, true}) {
    CAPTURE(epoch);
    for (const bool overwrites : {true, false}) {
      CAPTURE(overwrites);
      const Results expected = results(plain, epoch, false, overwrites),
                    r = results(other, epoch, compress, overwrites),
                    same = results(threaded, epoch, compress, overwrites);
      CHECK(r.exact == expected.exact);
      CHECK(same.exact == expected.exact);
      CHECK(same.gradient == r.gradient);
      if (compress) {
        check_close(model, r.gradient, expected.gradient);
      } else {
        CHECK(r.gradient == expected.gradient);
      }
    }
    ++epoch;
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

TEST_CASE("16 bits: values round to the nearest, and special values stay") {
  using Limits = std::numeric_limits<float>;
  for (const float value :
       {0.0f, -0.0f, 1.0f, -1.5f, 0x1.8p-132f, 0x1.fep127f, Limits::infinity(), -Limits::infinity()}) {
    CAPTURE(value);
    CHECK(from_bfloat16(to_bfloat16(value)) == value);
    CHECK(std::signbit(from_bfloat16(to_bfloat16(value))) == std::signbit(value));
  }
  for (const float nan : {Limits::quiet_NaN(), -Limits::quiet_NaN(), std::bit_cast<float>(0x7f800001u)}) {
    CHECK(std::isnan(from_bfloat16(to_bfloat16(nan))));
  }
  CHECK(from_bfloat16(to_bfloat16(Limits::max())) == Limits::infinity());
  CHECK(from_bfloat16(to_bfloat16(0x1.01p0f)) == 0x1.00p0f);  // ties go to the even neighbour
  CHECK(from_bfloat16(to_bfloat16(0x1.03p0f)) == 0x1.04p0f);
  CHECK(from_bfloat16(to_bfloat16(0x1.0101p0f)) == 0x1.02p0f);
  CHECK(from_bfloat16(to_bfloat16(0x1.ffp0f)) == 0x1p1f);
  for (std::uint32_t bits = 0x00800000u; bits < 0x7f7f0000u; bits += 0x1235u) {  // all exponents of normal values
    const float value = std::bit_cast<float>(bits), rounded = from_bfloat16(to_bfloat16(value));
    if (!(std::abs(rounded - value) <= 0x1p-8f * value)) CHECK(rounded == value);
  }
}
TEST_CASE("16 bits: arrays of any length") {
  for (const Index size : {0, 1, 63, 64, 65, 5000}) {
    CAPTURE(size);
    std::vector<double> values(static_cast<std::size_t>(size)), back(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i) + 1);
    std::vector<std::uint16_t> halves(values.size());
    sheafnn::detail::to_bfloat16(2, size, values.data(), halves.data());
    sheafnn::detail::from_bfloat16(2, size, halves.data(), back.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      CHECK(back[i] == double{from_bfloat16(to_bfloat16(static_cast<float>(values[i])))});
    }
  }
}

TEST_CASE("layers in 16 bits: diffusion") {
  check_both([](ModelOptions&) {});
  check_both([](ModelOptions& of) { of.linear = true; });
  check_both([](ModelOptions& of) {
    of.layer_norm = true;
    of.add_lp = of.add_hp = true;
    of.learner_layers = 2;
  });
  check_both([](ModelOptions& of) { of.layers = 1; });
}
TEST_CASE("layers in 16 bits: filters and initial residuals") {
  check_both([](ModelOptions& of) { of.filter = {.basis = sheafnn::PolynomialBasis::legendre, .degree = 3}; });
  check_both([](ModelOptions& of) { of.residual.form = sheafnn::ResidualForm::initial; });
}
TEST_CASE("layers in 16 bits: other forms") {
  for (const LayerForm form :
       {LayerForm::wave, LayerForm::convolution, LayerForm::copresheaf, LayerForm::directed}) {
    CAPTURE(to_string(form));
    check_both([&](ModelOptions& of) {
      of.layer = form;
      of.directed.random = true;
    });
  }
  for (const bool normalised : {false, true}) {
    check_both([&](ModelOptions& of) {
      of.layer = LayerForm::attention;
      of.attention = {.heads = 2, .width = 2};
      of.attention.normalised = normalised;
      of.attention.random = true;
    });
  }
}
TEST_CASE("layers in 16 bits: kinds of layers side by side") {
  using Model = sheafnn::SheafModel<Rotations, sheafnn::PointMass<Rotations>, float,
                                    sheafnn::LayerKinds<EvenDiffusion, OddWave>>;
  check<Model>({});
}

TEST_CASE("a training that keeps layers in 16 bits learns as well, with the same bits for any number of threads") {
  using Model = sheafnn::Bsnn<Diagonal>;
  const auto trained = [](bool compress, int threads) {
    Model model(fitted(), 1);
    const sheafnn::TrainResult result = sheafnn::train(
        model, task(), task().splits[0],
        {.epochs = 30, .kl_maximum = 0.1, .compress_layers = compress, .samples = 2, .threads = threads});
    Numbers r(model.parameters().values().begin(), model.parameters().values().end());
    r.push_back(static_cast<float>(result.history.front().loss));
    r.push_back(static_cast<float>(result.history.back().loss));
    return r;
  };
  const Numbers plain = trained(false, 1), rounded = trained(true, 1);
  CHECK(rounded[rounded.size() - 2] == plain[plain.size() - 2]);  // the loss of the first epoch
  CHECK(rounded != plain);
  CHECK(rounded.back() < 0.8f * rounded[rounded.size() - 2]);
  CHECK(rounded.back() == doctest::Approx(plain.back()).epsilon(0.1));
  CHECK(trained(true, 2) == rounded);
}

TEST_CASE("what networks that keep layers in 16 bits refuse") {
  using test::message_of;
  using Nsd = sheafnn::Nsd<Rotations>;
  const Nsd model(fitted(), 1);
  Network<Nsd> network(model, task().graph, task().features, 1);
  network.forward({.compress_layers = true});
  CHECK(network.features_after(0).nodes() == task().node_count());
  CHECK(network.features_after(layers).nodes() == task().node_count());
  CHECK(message_of<std::logic_error>([&] { static_cast<void>(network.features_after(1)); }) ==
        "features_after() of inner layers needs a pass with compress_layers = false");
  CHECK(
      message_of([&] { network.forward({.recompute_layers = 2, .compress_layers = true}); }) ==
      "compress_layers: true is not allowed; recompute_layers is 2, and layers are either kept or computed again");

  sheafnn::CooperativeOptions options;
  options.features = task().feature_count();
  options.classes = task().class_count;
  sheafnn::Csnn<2> cooperative(options, 1);
  CHECK(message_of([&] {
          sheafnn::train(cooperative, task(), task().splits[0], {.epochs = 2, .compress_layers = true});
        }) == "compress_layers: true is not allowed; networks of kind csnn keep layers as they are computed");

  Nsd trained = model;
  const sheafnn::batch::Training<Nsd> training[] = {{&trained, &task().splits[0], {.compress_layers = true}}};
  CHECK(message_of([&] {
          sheafnn::batch::HostExecutor executor;
          const sheafnn::batch::BatchTrainer<sheafnn::batch::HostExecutor, Nsd> trainer(executor, task(),
                                                                                        training);
        }) ==
        "trainings[0].compress_layers: true is not allowed; the batch engine keeps layers as they are computed");
}

}  // namespace test_compressed_layers
