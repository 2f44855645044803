/// \file
/// The gradient of a network of the batch engine on the host by finite differences.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "batch_checks.hpp"
#include "hypergraph_task.hpp"
#include "model_gradient.hpp"
#include "sheafnn/batch/host_executor.hpp"

namespace batch_checks {

/// The gradient of a training step of one model, with dropout, by finite differences along every coordinate.
template <class Model>
void compare_gradient(const typename Model::Options& options, const typename Model::Posterior& posterior = {}) {
  using sheafnn::batch::HostExecutor;
  const tiny::HypergraphTask task;
  Model model = made<Model>(options, 3, posterior);
  tiny::disturb(model.parameters(), 4, 0.3);
  std::vector<std::uint8_t> roles(static_cast<std::size_t>(tiny::Task::nodes));
  for (const std::int32_t u : task.train) roles[static_cast<std::size_t>(u)] = sheafnn::batch::training_node;
  HostExecutor executor;
  using Batch = sheafnn::batch::BatchNetwork<HostExecutor, Model>;
  Batch networks(executor, model, graph_of<Model>(task), task.sparse, {task.labels, roles}, {1, 1, 1});
  sheafnn::batch::Run run;
  run.seed = 5;
  run.dropout = sheafnn::batch::DropoutRule(0.3);
  run.training_share = 1 / static_cast<double>(task.train.size());
  run.kl_weight = Batch::draws(model) ? 0.2 : 0;
  networks.runs().upload(std::span<const sheafnn::batch::Run>(&run, 1));
  const auto loss = [&] {
    networks.parameters().upload(model.parameters().values().view());
    networks.train_pass(false, true, sheafnn::KlEstimator::closed_form);
    double value = sums(executor, networks.output().nll(), 1).front();
    if (Batch::draws(model)) {
      std::vector<double> kl = {sums(executor, networks.kl(), 1).front() / static_cast<double>(networks.pairs())};
      add_kl_of_layers(executor, networks, kl);
      value += run.kl_weight * kl.front();
    }
    return value;
  };
  static_cast<void>(loss());
  const std::vector<double> values = networks.gradient().download();
  sheafnn::Buffer<double> gradient(static_cast<Index>(values.size()));
  std::copy(values.begin(), values.end(), gradient.begin());
  const auto comparison = model_gradient::compare_gradient(model.parameters(), gradient, loss);
  INFO(comparison.where);
  CHECK(comparison.worst <= 1);
}

}  // namespace batch_checks
