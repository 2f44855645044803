/// \file
/// Passes of a network as the tests compare them: a training pass of the classification ELBO, an evaluation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shared_networks.hpp"
#include "sheafnn/bsnn/elbo.hpp"

namespace test {

using sheafnn::Index;

/// Settings of a training pass.
template <class S>
struct TrainingPass {
  std::span<const std::int32_t> labels;  ///< of all nodes
  std::span<const std::int32_t> nodes;   ///< training nodes
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  double input_dropout = 0, dropout = 0;
  double kl_weight = 0;
  sheafnn::KlEstimator kl_estimator = sheafnn::KlEstimator::automatic;
  Index samples = 1;
  bool only_nodes = false;                     ///< outputs of the training nodes alone
  std::vector<std::span<const S>> noise = {};  ///< see ForwardPass
  std::vector<std::span<const S>> layer_noise = {};

  [[nodiscard]] sheafnn::ForwardPass<S> forward() const {
    sheafnn::ForwardPass<S> r;
    r.seed = seed;
    r.epoch = epoch;
    r.training = true;
    r.input_dropout = input_dropout;
    r.dropout = dropout;
    if (only_nodes) r.nodes = nodes;
    r.noise = noise;
    r.layer_noise = layer_noise;
    return r;
  }
};
/// loss = nll + λ · kl.
struct PassResult {
  double nll = 0, kl = 0, loss = 0;
};

/// Loss and, in the network, gradient and the log-probabilities of the last sample.
template <class Model>
PassResult train_pass(sheafnn::Network<Model>& network, const TrainingPass<typename Model::Scalar>& pass) {
  const sheafnn::Elbo r = sheafnn::elbo(network, pass.forward(), sheafnn::Classification(pass.labels), pass.nodes,
                                        {pass.kl_weight, pass.kl_estimator, pass.samples});
  return {r.loss, r.kl, r.objective};
}

/// use(k) after sample k of an evaluation, with its log-probabilities in the network. \returns samples drawn
template <class Model, class Use>
Index evaluate(sheafnn::Network<Model>& network, std::uint64_t seed, std::uint32_t epoch, Index samples,
               const Use& use, const std::vector<std::span<const typename Model::Scalar>>& noise = {},
               std::span<const std::int32_t> nodes = {},
               const std::vector<std::span<const typename Model::Scalar>>& layer_noise = {}) {
  const auto pass =
      network.begin({.seed = seed, .epoch = epoch, .nodes = nodes, .noise = noise, .layer_noise = layer_noise});
  Index k = 0;
  pass.draw_samples(samples, [&](const auto& outputs) {
    sheafnn::layers::log_softmax_rows(network.execution(), outputs.rows(), outputs.columns(), outputs.data(),
                                      outputs.stride());
    use(k++);
  });
  return k;
}

/// Rows of the network's last outputs, without gaps.
template <class Model>
std::vector<double> last_outputs(const sheafnn::Network<Model>& network) {
  std::vector<double> r;
  const auto outputs = network.outputs();
  for (Index u = 0; u < outputs.rows(); ++u) {
    const auto row = outputs.row(u);
    r.insert(r.end(), row.begin(), row.end());
  }
  return r;
}

}  // namespace test
