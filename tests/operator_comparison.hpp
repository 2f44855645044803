/// \file
/// NetworkOperator on the host against the networks of the CPU: outputs, KL term, and derivatives from derivatives of the
/// outputs, of networks and of layers that read embeddings.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "operator_checks.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/bsnn/network.hpp"

namespace operator_checks {

using batch_checks::Problem;

// As of batches: sums of some dozens of terms through two or three layers, in another order than on the CPU.
inline constexpr double bound = 1e-11;

/// Numbers of the derivative of the outputs, times a sign.
template <class S>
[[nodiscard]] std::vector<S> bar_of(Index count, S sign) {
  std::vector<S> bar = numbers<S>(32, count);
  for (S& x : bar) x *= sign;
  return bar;
}
/// Outputs of a layer that reads embeddings, and their derivatives, by the CPU's network.
template <class Model>
Outcome layer_on_cpu(sheafnn::Network<Model>& network, const Model& model, Index nodes, const Call& call) {
  using S = typename Model::Scalar;
  const S sign = call.kl_bar < 0 ? S(-1) : S(1);
  Outcome r;
  const std::vector<S> embedding = numbers<S>(31, nodes * model.hidden_width());
  const auto pass =
      network.begin(call.pass<S>(), sheafnn::MatrixView<const S>(embedding.data(), nodes, model.hidden_width()));
  const auto sample = pass.diffuse();
  const auto x = sample.view().rows();
  std::vector<S> slopes;
  for (Index u = 0; u < x.rows(); ++u) {
    for (const S value : x.row(u)) {
      S& slope = slopes.emplace_back();
      r.outputs.push_back(static_cast<double>(sheafnn::layers::activate_with_slope(*call.layer, value, slope)));
    }
  }
  const std::vector<S> bar = bar_of(static_cast<Index>(slopes.size()), sign);
  auto backward = pass.begin_backward({.kl_weight = std::abs(call.kl_bar)});
  const sheafnn::FeatureView<S> features_bar = network.features_bar();
  for (std::size_t i = 0; i < bar.size(); ++i) features_bar.data()[i] = bar[i] * slopes[i];
  backward.add(sample, features_bar);
  std::vector<S> embedding_bar(embedding.size());
  backward.finish(sheafnn::MatrixView<S>(embedding_bar.data(), nodes, model.hidden_width()));
  for (S& x_bar : embedding_bar) x_bar *= sign;
  r.embedding_bar = in_doubles(embedding_bar);
  return r;
}
/// The same of a network.
template <class Model>
Outcome network_on_cpu(sheafnn::Network<Model>& network, const Model& model, Index nodes, const Call& call) {
  using S = typename Model::Scalar;
  Outcome r;
  const sheafnn::MatrixView<S> outputs = network.forward(call.pass<S>());
  for (Index u = 0; u < nodes; ++u) {
    for (const S value : outputs.row(u)) r.outputs.push_back(static_cast<double>(value));
  }
  const std::vector<S> bar = bar_of(nodes * model.options().classes, call.kl_bar < 0 ? S(-1) : S(1));
  network.backward(sheafnn::MatrixView<const S>(bar.data(), nodes, model.options().classes),
                   {.kl_weight = std::abs(call.kl_bar)});
  return r;
}
/// What an operator gives, by the CPU's network. Its KL weight is not negative: of a negative one all derivatives are the
/// negatives'.
template <class Model>
Outcome on_cpu(const Model& model, const Problem& problem, const Call& call) {
  using S = typename Model::Scalar;
  sheafnn::Network<Model> network(model, batch_checks::graph_of<Model>(problem), problem.features);
  const Index nodes = problem.graph.node_count();
  Outcome r;
  if constexpr (requires { network.features_bar(); }) {
    if (call.layer) r = layer_on_cpu(network, model, nodes, call);
  }
  if (!call.layer) r = network_on_cpu(network, model, nodes, call);
  r.kl = {network.kl() + network.kl_of_layers()};
  const S sign = call.kl_bar < 0 ? S(-1) : S(1);
  for (std::size_t i = 0; i < model.parameters().info().size(); ++i) {
    for (const S value : model.parameters().get(static_cast<sheafnn::layers::ParameterId>(i), network.gradient()))
      r.gradient.push_back(static_cast<double>(sign * value));
  }
  return r;
}

template <class Model>
void agree(const typename Model::Options& options, const Call& call = {}, double within = bound,
           const Problem& problem = batch_checks::small_problem(),
           const typename Model::Posterior& posterior = {}) {
  const Model model = batch_checks::disturbed<Model>(options, 0, posterior);
  sheafnn::batch::HostExecutor executor;
  Caller<sheafnn::batch::HostExecutor, Model> caller(executor, model, batch_checks::graph_of<Model>(problem),
                                                     problem.features);
  const Outcome own = caller.run(call), expected = on_cpu(model, problem, call);
  CHECK(batch_checks::relative(own.outputs, expected.outputs) <= within);
  CHECK(batch_checks::relative(own.kl, expected.kl) <= within);
  CHECK(batch_checks::relative(own.gradient, expected.gradient) <= within);
  CHECK(batch_checks::relative(own.embedding_bar, expected.embedding_bar) <= within);
}

}  // namespace operator_checks
