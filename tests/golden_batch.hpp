/// \file
/// The golden cases (golden_case.hpp) on an executor of the CUDA room.
#pragma once

#include <numeric>
#include <span>

#include "golden_case.hpp"
#include "sheafnn/cuda/network.hpp"

namespace golden {

/// Outputs and gradients of a case as the kernels of the device compute them.
template <class Model, class Executor>
void check_batch(Executor& executor, const std::string& name, const Bounds& bounds) {
  namespace cuda = sheafnn::cuda;
  using S = typename Model::Scalar;
  const Case given = read(name, Model::Family::kind, Model::stalk_dimension, Model::bayesian);
  Model model(given.options);
  auto& parameters = model.parameters();
  Outcome outcome;
  outcome.parameters = parameters.info();
  const auto convert = [](const std::vector<double>& values) {
    return std::vector<S>(values.begin(), values.end());
  };
  for (const sheafnn::ParameterInfo& info : parameters.info()) {
    parameters.set(parameters.find(info.name), convert(given.file.at("param." + info.name).values));
  }
  std::vector<std::uint8_t> roles(static_cast<std::size_t>(given.graph.node_count()));
  for (const std::int32_t u : given.nodes) roles[static_cast<std::size_t>(u)] = cuda::training_node;
  cuda::BatchNetwork<Executor, Model> network(executor, model, given.graph, given.features, given.labels, roles,
                                              {});
  network.parameters().upload(parameters.values().view());
  std::vector<S> noise;
  for (Index l = 0; Model::bayesian && l < given.options.layers; ++l) {
    const std::vector<S> layer = convert(given.file.at("noise." + std::to_string(l)).values);
    noise.insert(noise.end(), layer.begin(), layer.end());
  }
  if (!noise.empty()) network.set_noise(noise);
  cuda::Run run;
  run.training_share = 1 / static_cast<double>(given.nodes.size());
  run.kl_weight = given.file.at("kl_weight").values.at(0);
  network.runs().upload(std::span<const cuda::Run>(&run, 1));
  network.train_pass(false, false, sheafnn::KlEstimator::closed_form);

  const auto sum = [&]<class Tree>(const Tree& tree) {
    std::vector<double> rows(static_cast<std::size_t>(tree.left().count));
    executor.download(tree.left().rows, tree.left().count, rows.data());
    return std::accumulate(rows.begin(), rows.end(), 0.0);
  };
  outcome.result.nll = sum(network.output().nll());
  if (Model::bayesian) outcome.result.kl = sum(network.kl()) / static_cast<double>(network.pairs());
  outcome.result.loss = outcome.result.nll + run.kl_weight * outcome.result.kl;
  const std::vector<S> log_probabilities = network.output().log_probabilities().download();
  outcome.log_probabilities.assign(log_probabilities.begin(), log_probabilities.end());
  sheafnn::Buffer<S> all(parameters.size());
  const std::vector<S> downloaded = network.gradient().download();
  std::copy(downloaded.begin(), downloaded.end(), all.begin());
  for (const sheafnn::ParameterInfo& info : parameters.info()) {
    const std::vector<S> gradient = parameters.get(parameters.find(info.name), all);
    outcome.gradient[info.name].assign(gradient.begin(), gradient.end());
  }
  compare(given, outcome, bounds);
}

}  // namespace golden
