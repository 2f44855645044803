/// \file
/// The training objective: the negative evidence lower bound, per training node and incident pair,
///
///     L = (1/K) Σ_k loss(f(X; F_k), y) + λ · KL(q(F | X) ‖ p(F)),   F_1 … F_K ~ q(F | X)
///
/// and its derivative. Deterministic models have K = 1 and no second term. With SampleLoss::predictive, the first term
/// per node is −log (1/K) Σ_k p(y | f(X; F_k)). Source: paper, "variational inference"; math: "Loss" (3.35), "KL
/// estimators" (3.38).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/network.hpp"

namespace sheafnn {

/// L = loss + kl_weight · kl.
struct Elbo {
  double objective = 0;  ///< L
  double loss = 0;       ///< mean over samples and nodes
  double kl = 0;         ///< mean over incident pairs; for cooperative networks as in their kl()
};

/// Computes L and, in network.gradient(), its derivative with respect to every parameter. math: "Loss" (3.35).
///
/// \param pass   with training = true; its sample does not matter
/// \param nodes  training nodes, in increasing order, among the nodes of the pass; or indices of targets (loss_parts.hpp)
/// \throws std::invalid_argument  a loss that does not fit the network or the nodes, options out of range, and what
///         Network::begin() throws
/// \throws std::logic_error       a pass with training = false
template <class Model, LossOf<Model> LossType>
Elbo elbo(Network<Model>& network, const ForwardPass<typename Model::Scalar>& pass, const LossType& loss,
          std::span<const std::int32_t> nodes, const BackwardOptions& options = {});

namespace detail {

/// Losses ℓ_ku of nodes u in sample k, and the weights of the samples in the derivative of the predictive loss.
class PredictiveWeights {
 public:
  SHEAFNN_NOINLINE PredictiveWeights(Index samples, std::size_t nodes)
      : samples_(static_cast<std::size_t>(samples)), values_(samples_ * nodes), losses_(nodes) {}
  /// ℓ_ku before finish(), exp(−ℓ_ku)/Σ_k exp(−ℓ_ku) after it.
  [[nodiscard]] std::span<double> of(Index sample) {
    return std::span(values_).subspan(static_cast<std::size_t>(sample) * losses_.size(), losses_.size());
  }
  /// \returns −log (1/K) Σ_k exp(−ℓ_ku) of all nodes
  SHEAFNN_NOINLINE std::span<const double> finish() {
    const std::size_t n = losses_.size();
    for (std::size_t u = 0; u < n; ++u) {
      double least = std::numeric_limits<double>::infinity(), sum = 0;
      for (std::size_t k = 0; k < samples_; ++k) least = std::min(least, values_[k * n + u]);
      for (std::size_t k = 0; k < samples_; ++k) sum += std::exp(least - values_[k * n + u]);
      for (std::size_t k = 0; k < samples_; ++k) values_[k * n + u] = std::exp(least - values_[k * n + u]) / sum;
      losses_[u] = least - std::log(sum / static_cast<double>(samples_));
    }
    return losses_;
  }

 private:
  std::size_t samples_;
  std::vector<double> values_, losses_;
};

/// The predictive loss of a pass, and its derivative. Every sample is drawn twice, since the weight of a sample depends
/// on the losses of all samples.
template <class Model, class LossType>
double predictive_loss(const BegunPass<Network<Model>>& pass, BackwardPass<Network<Model>>& backward,
                       const LossType& loss, std::span<const std::int32_t> nodes, Index samples) {
  using S = typename Model::Scalar;
  Network<Model>& network = pass.network();
  PredictiveWeights weights(samples, nodes.size());
  for (Index k = 0; k < samples; ++k) {
    loss.node_losses(network.execution(), pass.draw(k).view(), network.nodes(), nodes, weights.of(k));
  }
  const double mean = loss.mean_loss(network.nodes(), nodes, weights.finish());
  for (Index k = 0; k < samples; ++k) {
    const auto sample = pass.draw(k);
    const auto outputs_bar = network.output_bar();
    static_cast<void>(loss.value_and_derivative(network.execution(), sample.view(), network.nodes(), nodes, 1.0,
                                                outputs_bar));
    const double* weight = weights.of(k).data();
    for_rows(network.nodes(), nodes, [&](Index, Index row) {
      for (S& bar : outputs_bar.row(row)) bar *= static_cast<S>(*weight);
      ++weight;
    });
    backward.add(sample, outputs_bar);
  }
  return mean;
}

/// \throws std::invalid_argument  several samples and SampleLoss::predictive, for a loss without node_losses()
template <class LossType, class S>
void check_sample_loss(SampleLoss sample_loss) {
  if constexpr (!NodewiseLoss<LossType, S>) {
    require(sample_loss == SampleLoss::expected, "sample_loss", to_string(sample_loss),
            concat("the loss ", LossType::name, " has no node_losses() and mean_loss()"));
  }
}

/// Finishes the backward pass and completes L from its loss.
template <class Model>
[[nodiscard]] Elbo finished(Network<Model>& network, BackwardPass<Network<Model>>& backward, Elbo r,
                            const BackwardOptions& options) {
  r.kl = backward.finish();
  network.sum_over_parts(r.loss, r.kl);
  r.objective = r.loss + options.kl_weight * r.kl;
  return r;
}

/// The loss of the drawn sample; outputs_bar becomes `share` times its derivative.
template <class Model, class LossType, class S = typename Model::Scalar>
double value_and_derivative(Network<Model>& network, const LossType& loss, const MatrixView<S>& outputs,
                            std::span<const std::int32_t> targets, double share, const MatrixView<S>& outputs_bar,
                            [[maybe_unused]] LossWork<LossType, Model>& work) {
  if constexpr (has_own_targets<LossType>) {
    return loss.value_and_derivative(network, outputs, targets, share, outputs_bar, work);
  } else {
    return loss.value_and_derivative(network.execution(), outputs, network.nodes(), targets, share, outputs_bar);
  }
}
/// Prepares a loss with its own targets for the draws of a pass.
template <class Model, class LossType>
void begin_loss(Network<Model>& network, const LossType& loss, std::span<const std::int32_t> targets,
                [[maybe_unused]] LossWork<LossType, Model>& work) {
  if constexpr (has_own_targets<LossType>) loss.begin(network, targets, work);
}

/// elbo() of a pass that has begun, after the checks of the loss.
template <class Model, class LossType>
Elbo elbo_of_begun(const BegunPass<Network<Model>>& pass, const LossType& loss, std::span<const std::int32_t> nodes,
                   BackwardOptions options, LossWork<LossType, Model>& work) {
  Network<Model>& network = pass.network();
  options.samples = network.sample_count(options.samples);
  const double share = 1 / static_cast<double>(options.samples);
  Elbo r;
  auto backward = pass.begin_backward(options);
  begin_loss(network, loss, nodes, work);
  if constexpr (NodewiseLoss<LossType, typename Model::Scalar>) {
    if (options.sample_loss == SampleLoss::predictive && options.samples > 1) {
      r.loss = predictive_loss(pass, backward, loss, nodes, options.samples);
      return finished(network, backward, r, options);
    }
  }
  for (Index k = 0; k < options.samples; ++k) {
    const auto sample = pass.draw(k);  // f(X; F_k)
    const auto outputs_bar = network.output_bar();
    r.loss += share * value_and_derivative(network, loss, sample.view(), nodes, share, outputs_bar, work);
    backward.add(sample, outputs_bar);
  }
  return finished(network, backward, r, options);
}
/// The same with working memory for this call only.
template <class Model, class LossType>
Elbo elbo_of_begun(const BegunPass<Network<Model>>& pass, const LossType& loss, std::span<const std::int32_t> nodes,
                   const BackwardOptions& options) {
  LossWork<LossType, Model> work;
  return elbo_of_begun(pass, loss, nodes, options, work);
}

/// \throws std::invalid_argument  a loss that does not fit the network or the targets
template <class Model, class LossType>
void check_loss_of(const Network<Model>& network, const LossType& loss, std::span<const std::int32_t> targets) {
  if constexpr (has_own_targets<LossType>) {
    loss.validate(network.model(), network.graph().node_count());
    require(network.nodes().all(), "nodes of the pass", network.nodes().count(),
            "a loss of pairs needs all nodes");
    check_increasing(targets, loss.target_count(), "target");
    require(std::any_of(targets.begin(), targets.end(), [&](Index t) { return loss.known(t); }), "targets",
            concat(targets.size(), " targets"), "none of them is known");
  } else {
    check_loss(loss, output_rows<Model>(network.graph()), network.model().options().classes, network.nodes(),
               targets);
  }
}

}  // namespace detail

/// \throws  as declared above
template <class Model, LossOf<Model> LossType>
Elbo elbo(Network<Model>& network, const ForwardPass<typename Model::Scalar>& pass, const LossType& loss,
          std::span<const std::int32_t> nodes, const BackwardOptions& options) {
  const auto begun = network.begin(pass);
  detail::check_loss_of(network, loss, nodes);
  detail::check_sample_loss<LossType, typename Model::Scalar>(options.sample_loss);
  return detail::elbo_of_begun(begun, loss, nodes, options);
}

}  // namespace sheafnn
