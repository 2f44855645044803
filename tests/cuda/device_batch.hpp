/// \file
/// Batches of networks on the GPU against the same kernels on the host (which tests/test_batch_network.cpp
/// compares with the CPU's networks).
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "batch_checks.hpp"
#include "models/decompositions.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/cuda.hpp"

namespace batch_checks {

/// Losses, gradients and predictions of both executors, and of the GPU once more, to the bit, with kernels that wait for
/// each other to end.
template <class Model>
void compare_executors(const typename Model::Options& options, const Step& step,
                       const Problem& problem = small_problem(), const typename Model::Posterior& posterior = {}) {
  // As on the host: sums of some dozens of terms through two or three layers.
  constexpr double bound = 1e-11;
  sheafnn::batch::HostExecutor host;
  sheafnn::batch::DeviceExecutor device;
  const BatchOutcome expected = run_batch<Model>(host, problem, options, step, posterior);
  const BatchOutcome own = run_batch<Model>(device, problem, options, step, posterior);
  CHECK(relative(own.nll, expected.nll) <= bound);
  CHECK(relative(own.kl, expected.kl) <= bound);
  CHECK(relative(own.gradient, expected.gradient) <= bound);
  CHECK(relative(own.log_probabilities, expected.log_probabilities) <= bound);
  CHECK(relative(own.probabilities, expected.probabilities) <= bound);
  sheafnn::batch::DeviceExecutor in_turn(0, sheafnn::batch::KernelStart::in_turn);
  const BatchOutcome again = run_batch<Model>(in_turn, problem, options, step, posterior);
  CHECK(again.gradient == own.gradient);
  CHECK(again.probabilities == own.probabilities);
}

/// Losses of all epochs of trainings side by side, one after another, on the first split: models and trainings with seeds
/// first … last − 1.
template <class Model, class Executor>
[[nodiscard]] std::vector<double> losses_side_by_side(Executor& executor,
                                                      const sheafnn::NodeDataset<sheafnn::GraphOf<Model>>& data,
                                                      const typename Model::Options& options,
                                                      sheafnn::TrainOptions training, std::uint64_t first,
                                                      std::uint64_t last,
                                                      const typename Model::Posterior& posterior = {}) {
  std::vector<Model> models;
  for (std::uint64_t seed = first; seed < last; ++seed) models.push_back(made<Model>(options, seed, posterior));
  std::vector<sheafnn::batch::Training<Model>> trainings;
  for (Model& model : models) {
    training.seed = first + trainings.size();
    trainings.push_back({&model, &data.splits[0], training});
  }
  std::vector<double> losses;
  for (const auto& outcome : sheafnn::batch::train_batch<Executor, Model>(executor, data, trainings)) {
    for (const sheafnn::EpochReport& report : outcome.result.history) losses.push_back(report.loss);
  }
  return losses;
}

/// Three seeds side by side train on the GPU as on the host, and one seed alone has the bits that it has beside others.
template <class Model>
void compare_seeds_on_device(const sheafnn::NodeDataset<sheafnn::GraphOf<Model>>& data,
                             const typename Model::Options& options,
                             const typename Model::Posterior& posterior = {}) {
  constexpr int epochs = 10;
  sheafnn::batch::HostExecutor host;
  sheafnn::batch::DeviceExecutor device;
  const auto train = [&](auto& executor, std::uint64_t count) {
    return losses_side_by_side<Model>(executor, data, options, {.epochs = epochs}, 0, count, posterior);
  };
  const std::vector<double> expected = train(host, 3), own = train(device, 3), one = train(device, 1);
  CHECK(expected.size() == 3 * epochs);
  CHECK(relative(own, expected) <= 1e-4);  // single precision
  CHECK(std::vector<double>(own.begin(), own.begin() + epochs) == one);
}

}  // namespace batch_checks
