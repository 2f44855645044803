/// \file
/// The training objective: the negative evidence lower bound, per training node and incident pair,
///
///     L = (1/K) Σ_k loss(f(X; F_k), y) + λ · KL(q(F | X) ‖ p(F)),   F_1 … F_K ~ q(F | X)
///
/// and its derivative. Deterministic models have K = 1 and no second term. Source: paper, "variational inference";
/// math: "Loss" (3.35), "KL estimators" (3.38).
#pragma once

#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/network.hpp"

namespace sheafnn {

/// L = loss + kl_weight · kl.
struct Elbo {
  double objective = 0;  ///< L
  double loss = 0;       ///< mean over samples and nodes
  double kl = 0;         ///< mean over incident pairs; of cooperative networks as their kl()
};

namespace detail {

/// elbo() of a network whose pass has begun, with a loss that fits.
template <class Model, class LossType>
Elbo elbo_of_begun(Network<Model>& network, const LossType& loss, std::span<const std::int32_t> nodes,
                   BackwardOptions options) {
  options.samples = network.sample_count(options.samples);
  const double share = 1 / static_cast<double>(options.samples);
  Elbo r;
  network.begin_backward(options);
  for (Index k = 0; k < options.samples; ++k) {
    const auto outputs = network.draw(k);  // f(X; F_k)
    const auto outputs_bar = network.output_bar();
    r.loss += share *
              loss.value_and_derivative(network.execution(), outputs, network.nodes(), nodes, share, outputs_bar);
    network.accumulate(outputs_bar);
  }
  r.kl = network.finish_backward();
  network.sum_over_parts(r.loss, r.kl);
  r.objective = r.loss + options.kl_weight * r.kl;
  return r;
}

}  // namespace detail

/// Computes L and, in network.gradient(), its derivative with respect to every parameter. math: "Loss" (3.35).
///
/// \param pass   with training = true; its sample does not matter
/// \param nodes  training nodes, in increasing order, among those of the pass
/// \throws std::invalid_argument  a loss that does not fit the network or the nodes, options out of range, and what
///         Network::begin() throws
/// \throws std::logic_error       a pass with training = false
template <class Model, Loss<typename Model::Scalar> LossType>
Elbo elbo(Network<Model>& network, const ForwardPass<typename Model::Scalar>& pass, const LossType& loss,
          std::span<const std::int32_t> nodes, const BackwardOptions& options = {}) {
  network.begin(pass);
  check_loss(loss, network.graph().node_count(), network.model().options().classes, network.nodes(), nodes);
  return detail::elbo_of_begun(network, loss, nodes, options);
}

}  // namespace sheafnn
