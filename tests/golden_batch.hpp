/// \file
/// The golden cases (golden_case.hpp, golden2_case.hpp) on an executor of the batch engine.
#pragma once

#include <algorithm>
#include <span>

#include "batch_checks.hpp"
#include "golden2_case.hpp"
#include "golden_case.hpp"
#include "map_kind.hpp"
#include "sheafnn/batch/network.hpp"

namespace golden {

/// Outputs and gradients of a case as the batch engine computes them.
///
/// \param model  with the case's parameters
/// \param graph  of the case
template <class Model, class Executor>
void check_batch(Executor& executor, const Case& given, const Bounds& bounds, const Model& model,
                 const sheafnn::GraphOf<Model>& graph) {
  namespace batch = sheafnn::batch;
  using S = typename Model::Scalar;
  CAPTURE(given.name);
  const auto& parameters = model.parameters();
  Outcome outcome;
  std::vector<std::uint8_t> roles(given.labels.size());
  for (const std::int32_t u : given.nodes) roles[static_cast<std::size_t>(u)] = batch::training_node;
  batch::BatchNetwork<Executor, Model> network(executor, model, graph, given.features, {given.labels, roles}, {});
  network.parameters().upload(parameters.values().view());
  const Noise<S> given_noise = noise_of(given, model);
  std::vector<S> noise;
  for (const std::vector<S>& maps : given_noise.maps) noise.insert(noise.end(), maps.begin(), maps.end());
  if constexpr (requires { network.set_noise(noise); }) {
    if (!noise.empty()) network.set_noise(noise);
  } else {
    REQUIRE(noise.empty());
  }
  batch::Run run;
  run.training_share = 1 / static_cast<double>(given.nodes.size());
  run.kl_weight = given.file.at("kl_weight").values.at(0);
  network.runs().upload(std::span<const batch::Run>(&run, 1));
  network.train_pass(false, false, sheafnn::KlEstimator::closed_form);

  const auto sum = [&](const auto& tree) { return batch_checks::sums(executor, tree, 1).front(); };
  outcome.result.nll = sum(network.output().nll());
  std::vector<double> kl = {0};
  if (Model::bayesian) kl.front() = sum(network.kl()) / static_cast<double>(network.pairs());
  batch_checks::add_kl_of_layers(executor, network, kl);
  outcome.result.kl = kl.front();
  outcome.result.loss = outcome.result.nll + run.kl_weight * outcome.result.kl;
  const std::vector<S> log_probabilities = network.output().log_probabilities().download();
  outcome.log_probabilities.assign(log_probabilities.begin(), log_probabilities.end());
  sheafnn::Buffer<S> all(parameters.size());
  const std::vector<S> downloaded = network.gradient().download();
  std::copy(downloaded.begin(), downloaded.end(), all.begin());
  store_gradients(parameters, all, outcome);
  compare(given, outcome, bounds);
}
/// The same with the case's options and graph.
template <class Model, class Executor>
void check_batch(Executor& executor, const Case& given, const Bounds& bounds,
                 const typename Model::Posterior& posterior = {}) {
  check_batch<Model>(executor, given, bounds, model_of<Model>(given, posterior), given.graph);
}
/// The same for golden/NAME.npz.
template <class Model, class Executor>
void check_batch(Executor& executor, const std::string& name, const Bounds& bounds) {
  check_batch<Model>(executor,
                     read(name, test::kind_of<typename Model::Family>, Model::stalk_dimension, Model::bayesian),
                     bounds);
}

}  // namespace golden

namespace golden2 {

/// The same for golden2/NAME.npz.
template <class Model, class Executor>
void check_batch(Executor& executor, const std::string& name, const golden::Bounds& bounds) {
  golden::check_batch<Model>(executor,
                             read(name, test::kind_of<typename Model::Family>, Model::stalk_dimension,
                                  Model::bayesian),
                             bounds);
}

}  // namespace golden2
