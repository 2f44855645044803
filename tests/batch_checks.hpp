/// \file
/// Comparison of a batch of networks, run by the kernels of the device on the host, with one network of the CPU at a time.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/cuda/host_executor.hpp"
#include "sheafnn/cuda/network.hpp"
#include "tiny_task.hpp"

namespace batch_checks {

using sheafnn::Index;

/// A ring with chords, an isolated node, and sparse features.
struct Problem {
  sheafnn::Graph graph;
  sheafnn::NodeFeatures features;
  std::vector<std::int32_t> labels, training;
  std::vector<std::uint8_t> roles;
};
Problem small_problem(Index nodes = 83, Index columns = 7, Index classes = 3);

/// What a training step is asked for.
struct Step {
  double input_dropout = 0.5, dropout = 0.3, kl_weight = 0.7;
  sheafnn::KlEstimator estimator = sheafnn::KlEstimator::closed_form;
  Index samples = 1;
  std::uint32_t epoch = 3;
};

/// Largest difference, relative to the largest of `expected` (or absolute where all of them are 0).
double relative(const std::vector<double>& values, const std::vector<double>& expected);

/// A model whose parameters are at no special values.
template <class Model>
Model disturbed(const sheafnn::ModelOptions& options, Index run) {
  Model model(options, static_cast<std::uint64_t>(5 + run));
  tiny::disturb(model.parameters(), static_cast<std::uint64_t>(11 + run), 0.3);
  return model;
}

/// Two runs with different parameters, seeds and rates side by side against the CPU, one after the other.
template <class Model>
void compare(const sheafnn::ModelOptions& options, const Step& step, double bound) {
  using S = typename Model::Scalar;
  const Problem problem = small_problem();
  constexpr Index runs = 2, evaluation_samples = 4;
  sheafnn::cuda::HostExecutor executor;
  const Model shape(options);
  using Batch = sheafnn::cuda::BatchNetwork<sheafnn::cuda::HostExecutor, Model>;
  const sheafnn::cuda::BatchSize size{runs, Batch::samples(step.samples), std::max<Index>(2, step.samples)};
  Batch batch(executor, shape, problem.graph, problem.features, problem.labels, problem.roles, size);

  std::vector<S> parameters;
  std::vector<sheafnn::cuda::Run> run(runs);
  for (Index r = 0; r < runs; ++r) {
    const Model model = disturbed<Model>(options, r);
    parameters.insert(parameters.end(), model.parameters().values().begin(), model.parameters().values().end());
    sheafnn::cuda::Run& state = run[static_cast<std::size_t>(r)];
    state.seed = static_cast<std::uint64_t>(70 + r);
    state.epoch = step.epoch;
    // The second run drops half as much.
    state.input_dropout = sheafnn::cuda::DropoutRule(step.input_dropout / static_cast<double>(1 + r));
    state.dropout = sheafnn::cuda::DropoutRule(step.dropout / static_cast<double>(1 + r));
    state.training_share = 1 / static_cast<double>(problem.training.size());
    state.kl_weight = step.kl_weight * static_cast<double>(1 + r);
  }
  batch.parameters().upload(parameters);
  batch.runs().upload(run);
  batch.train_pass(step.input_dropout > 0, step.dropout > 0, step.estimator);
  const std::vector<S> gradient = batch.gradient().download();
  const std::vector<S> log_probabilities = batch.log_probabilities().download();

  const auto numbers = [](auto first, auto last) { return std::vector<double>(first, last); };
  const Index n = problem.graph.node_count(), classes = options.classes, count = batch.parameter_count();
  for (Index r = 0; r < runs; ++r) {
    CAPTURE(r);
    const Model model = disturbed<Model>(options, r);
    sheafnn::Network<Model> network(model, problem.graph, problem.features);
    sheafnn::TrainingPass<S> pass;
    pass.labels = problem.labels;
    pass.nodes = problem.training;
    pass.seed = static_cast<std::uint64_t>(70 + r);
    pass.epoch = step.epoch;
    pass.input_dropout = step.input_dropout / static_cast<double>(1 + r);
    pass.dropout = step.dropout / static_cast<double>(1 + r);
    pass.kl_weight = step.kl_weight * static_cast<double>(1 + r);
    pass.kl_estimator = step.estimator;
    pass.samples = step.samples;
    const sheafnn::PassResult result = network.train_pass(model.parameters(), pass);
    const auto& nll = batch.nll();
    double sum = 0;
    for (Index k = 0; k < nll.rows(); ++k) sum += nll.result()[r * nll.stride() + k];
    CHECK(std::abs(sum - result.nll) <= bound * result.nll);
    if (result.kl > 0) {
      double kl = 0;
      for (Index k = 0; k < batch.kl().rows(); ++k) kl += batch.kl().result()[r * batch.kl().stride() + k];
      CHECK(std::abs(kl / static_cast<double>(batch.pairs()) - result.kl) <= bound * std::abs(result.kl));
    }
    for (const sheafnn::ParameterInfo& info : model.parameters().info()) {
      CAPTURE(info.name);
      const auto own = gradient.begin() + r * count + info.offset;
      const S* other = network.gradient().data() + info.offset;
      CHECK(relative(numbers(own, own + info.size), numbers(other, other + info.size)) <= bound);
    }
    // The CPU keeps the last sample's log-probabilities.
    const Index copy = r * size.training_copies + size.training_copies - 1;
    std::vector<double> expected;
    for (Index u = 0; u < n; ++u) {
      const S* row = network.log_probabilities() + u * network.class_stride();
      expected.insert(expected.end(), row, row + classes);
    }
    const auto own = log_probabilities.begin() + copy * n * classes;
    CHECK(relative(numbers(own, own + n * classes), expected) <= bound);
  }

  // Evaluation: the mean over samples, drawn two or more at a time.
  sheafnn::cuda::Array<sheafnn::cuda::HostExecutor, double> probability(executor, "test", runs * n * classes);
  sheafnn::cuda::Array<sheafnn::cuda::HostExecutor, double> report(executor, "test",
                                                                   runs * n * sheafnn::cuda::evaluation_columns);
  batch.evaluate(evaluation_samples, [&](const sheafnn::cuda::Pass& pass, bool first, bool last, Index total) {
    executor.launch(n, runs,
                    sheafnn::cuda::EvaluationOutput<S>{batch.targets(), batch.runs().data(), pass,
                                                       batch.parameter(shape.layout().output_bias), count,
                                                       batch.logits(), probability.data(), first, last, total,
                                                       report.data()});
  });
  for (Index r = 0; r < runs; ++r) {
    CAPTURE(r);
    const Model model = disturbed<Model>(options, r);
    sheafnn::Network<Model> network(model, problem.graph, problem.features);
    std::vector<double> expected(static_cast<std::size_t>(n * classes));
    const Index drawn =
        network.evaluate(model.parameters(), static_cast<std::uint64_t>(70 + r), step.epoch, evaluation_samples,
                         [&](Index) {
                           for (Index i = 0; i < n * classes; ++i) {
                             const S* row = network.log_probabilities() + i / classes * network.class_stride();
                             expected[static_cast<std::size_t>(i)] +=
                                 std::exp(static_cast<double>(row[i % classes]));
                           }
                         });
    for (double& p : expected) p /= static_cast<double>(drawn);
    const double* own = probability.data() + r * n * classes;
    CHECK(relative(numbers(own, own + n * classes), expected) <= bound);
  }
}

}  // namespace batch_checks
