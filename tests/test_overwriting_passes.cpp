/// \file
/// Passes that may overwrite what training does not read any more (ForwardPass::overwrites) give the same bits as others.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/layers/encoder.hpp"

namespace test_overwriting_passes {
namespace {

using sheafnn::Bsnn;
using sheafnn::Buffer;
using sheafnn::Index;
using sheafnn::ModelOptions;
using sheafnn::Network;
using sheafnn::Nsd;
using Numbers = std::vector<float>;
using Rotations = sheafnn::SpecialOrthogonal<3>;

/// \param size  0: a few nodes; 1: with 64 channels embeddings take more than 2 MiB, and nodes have more neighbours than features
const sheafnn::Dataset& task(int size) {
  static const std::vector<sheafnn::Dataset> tasks = [] {
    std::vector<sheafnn::Dataset> r;
    for (const Index nodes : {90, 2800}) {
      sheafnn::SyntheticOptions options;
      options.nodes = nodes;
      options.degree = 12;
      options.classes = 3;
      options.features = 40;
      options.splits = 1;
      r.push_back(sheafnn::synthetic(options));
    }
    return r;
  }();
  return tasks[static_cast<std::size_t>(size)];
}
ModelOptions fitted(ModelOptions r, const sheafnn::Dataset& data) {
  r.features = data.feature_count();
  r.classes = data.class_count;
  return r;
}
sheafnn::ForwardPass<float> training_pass(std::uint32_t epoch, const sheafnn::Dataset& data, bool overwrites) {
  return {.epoch = epoch,
          .training = true,
          .overwrites = overwrites,
          .input_dropout = 0.4,
          .dropout = 0.3,
          .nodes = data.splits[0].train};
}
template <class Model>
void add(const Network<Model>& network, Numbers& to) {
  const Buffer<float>& gradient = network.gradient();
  to.insert(to.end(), gradient.begin(), gradient.end());
}

/// The derivatives and KL terms of two passes.
template <class Model>
Numbers derivatives(int size, const ModelOptions& options, const sheafnn::BackwardOptions& how, bool overwrites) {
  const sheafnn::Dataset& data = task(size);
  const Model model(fitted(options, data), 3);
  Network<Model> network(model, data.graph, data.features, 1);
  Numbers r;
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    const sheafnn::Elbo elbo = sheafnn::elbo(network, training_pass(epoch, data, overwrites),
                                             sheafnn::Classification(data.labels), data.splits[0].train, how);
    r.push_back(static_cast<float>(elbo.kl));
    add(network, r);
  }
  return r;
}
template <class Model>
void check(int size, const ModelOptions& options, const sheafnn::BackwardOptions& how = {.kl_weight = 0.5}) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  CHECK(derivatives<Model>(size, options, how, true) == derivatives<Model>(size, options, how, false));
}

}  // namespace

TEST_CASE("passes that overwrite give the same derivatives") {
  const auto check_all = [](const ModelOptions& options, const sheafnn::BackwardOptions& how) {
    check<Bsnn<Rotations>>(0, options, how);
    check<Nsd<Rotations>>(0, options, how);
    check<Bsnn<sheafnn::Diagonal<3>>>(0, options, how);
    check<Nsd<sheafnn::Diagonal<3>>>(0, options, how);
  };
  check_all({.layers = 3}, {.kl_weight = 0.5});
  check_all({.layers = 2}, {.kl_weight = 0.5, .kl_estimator = sheafnn::KlEstimator::monte_carlo, .samples = 3});
  ModelOptions other{.layers = 2};
  other.learner_layers = 2;
  other.readout_layers = 3;
  other.second_linear = true;
  check_all(other, {.kl_weight = 0.5});
  other.layer_norm = true;
  check_all(other, {.kl_weight = 0.5});
}

TEST_CASE("passes that overwrite give the same derivatives: embeddings that are computed again") {
  check<Bsnn<Rotations>>(1, {.channels = 64, .layers = 2});
  ModelOptions other{.channels = 64, .layers = 2};
  other.second_linear = true;
  check<Bsnn<Rotations>>(1, other);
  check<Nsd<Rotations>>(1, other);
}

TEST_CASE("every backward pass of one forward pass gives the same derivatives") {
  const auto check_model = []<class Model>(bool overwrites) {
    CAPTURE(Model::Family::name);
    CAPTURE(Model::bayesian);
    CAPTURE(overwrites);
    const sheafnn::Dataset& data = task(0);
    const Model model(fitted({.layers = 2}, data), 3);
    Network<Model> network(model, data.graph, data.features, 1);
    const auto pass = network.begin(training_pass(0, data, overwrites));
    std::vector<Numbers> of_passes(3);
    for (Numbers& numbers : of_passes) {
      auto backward = pass.begin_backward({.kl_weight = 0.5});
      const auto sample = pass.draw(0);
      const auto bar = network.output_bar();
      for (Index u = 0; u < bar.rows(); ++u) {
        for (float& number : bar.row(u)) number = 0.1F * static_cast<float>(u % 7) - 0.2F;
      }
      backward.add(sample, bar);
      static_cast<void>(backward.finish());
      add(network, numbers);
    }
    CHECK(of_passes[1] == of_passes[0]);
    CHECK(of_passes[2] == of_passes[0]);
  };
  for (const bool overwrites : {false, true}) {
    check_model.operator()<Bsnn<Rotations>>(overwrites);
    check_model.operator()<Bsnn<sheafnn::Diagonal<3>>>(overwrites);
    check_model.operator()<Nsd<Rotations>>(overwrites);
  }
}

TEST_CASE("passes that overwrite may draw before they finish, and may be given up") {
  using Model = Bsnn<Rotations>;
  const sheafnn::Dataset& data = task(0);
  const Model model(fitted({.layers = 2}, data), 3);
  const auto derivatives_of = [&](bool overwrites) {
    Network<Model> network(model, data.graph, data.features, 1);
    const auto run = [&](std::uint32_t epoch, bool draws, bool finishes) {
      const auto pass = network.begin(training_pass(epoch, data, overwrites));
      auto backward = pass.begin_backward({.kl_weight = 0.5});
      const auto sample = pass.draw();
      const auto bar = network.output_bar();
      for (Index u = 0; u < bar.rows(); ++u) {
        for (float& number : bar.row(u)) number = 0.1F * static_cast<float>(u % 7) - 0.2F;
      }
      backward.add(sample, bar);
      if (draws) static_cast<void>(pass.draw(1));
      if (finishes) static_cast<void>(backward.finish());
    };
    Numbers r;
    run(0, true, true);
    add(network, r);
    run(1, false, false);
    run(2, false, true);
    add(network, r);
    return r;
  };
  CHECK(derivatives_of(true) == derivatives_of(false));
}

TEST_CASE("an encoder computes again what was in memory of others") {
  const sheafnn::Dataset& data = task(0);
  const sheafnn::layers::SparseInput<float> input(data.features);
  constexpr Index width = 20;
  const Index size = data.node_count() * width;
  Numbers weight, bias(width, 0.25F);
  for (Index i = 0; i < data.feature_count() * width; ++i)
    weight.push_back(0.05F * static_cast<float>(i % 11) - 0.2F);
  const sheafnn::layers::LinearWeights<const float> weights{{weight.data(), data.feature_count(), width}, bias};
  for (const double rate : {0.0, 0.4}) {
    const auto derivatives_of = [&](bool elsewhere) {
      sheafnn::layers::Encoder<float> encoder(input, data.graph, {.width = width});
      Buffer<float> memory(size), bar(size);
      encoder.forward(1, weights, {rate, {}}, {rate, {7}}, false, elsewhere ? memory.data() : nullptr);
      memory.fill(std::numeric_limits<float>::quiet_NaN());
      encoder.forward_again(1, weights);
      for (Index i = 0; i < size; ++i) bar[i] = static_cast<float>(i % 5) - 2;
      Numbers weight_bar(weight.size()), bias_bar(width);
      encoder.backward(1, {bar.data(), data.node_count(), width},
                       {{weight_bar.data(), data.feature_count(), width}, bias_bar});
      weight_bar.insert(weight_bar.end(), bias_bar.begin(), bias_bar.end());
      return weight_bar;
    };
    CHECK(derivatives_of(true) == derivatives_of(false));
  }
}

}  // namespace test_overwriting_passes
