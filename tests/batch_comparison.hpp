/// \file
/// A batch of networks by the batch engine on the host against the networks of the CPU (batch_checks.hpp).
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "batch_checks.hpp"
#include "network_passes.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/bsnn/network.hpp"

namespace batch_checks {

/// Numbers of run or instance `i` of a batch, `count` each.
inline std::vector<double> part(const std::vector<double>& all, Index i, Index count) {
  return {all.begin() + i * count, all.begin() + (i + 1) * count};
}

/// A batch against the CPU, one run after the other.
template <class Model>
void compare(const typename Model::Options& options, const Step& step, double bound,
             const Problem& problem = small_problem(), const typename Model::Posterior& posterior = {}) {
  using S = typename Model::Scalar;
  sheafnn::batch::HostExecutor executor;
  const BatchOutcome own = run_batch<Model>(executor, problem, options, step, posterior);
  const Index n = problem.graph.node_count(), classes = options.classes;
  for (Index r = 0; r < batch_runs; ++r) {
    CAPTURE(r);
    const Model model = disturbed<Model>(options, r, posterior);
    sheafnn::Network<Model> network(model, graph_of<Model>(problem), problem.features);
    test::TrainingPass<S> pass;
    pass.labels = problem.labels;
    pass.nodes = problem.training;
    pass.seed = first_seed + static_cast<std::uint64_t>(r);
    pass.epoch = step.epoch;
    pass.input_dropout = rate_of(step.input_dropout, r);
    pass.dropout = rate_of(step.dropout, r);
    pass.kl_weight = kl_weight_of(step, r);
    pass.kl_estimator = step.estimator;
    pass.samples = step.samples;
    const test::PassResult result = test::train_pass(network, pass);
    const std::size_t run = static_cast<std::size_t>(r);
    CHECK(std::abs(own.nll[run] - result.nll) <= bound * result.nll);
    if (!own.kl.empty()) CHECK(std::abs(own.kl[run] - result.kl) <= bound * std::abs(result.kl));
    // What is 0 but for rounding is compared with the rounding of the rest.
    double largest = 0;
    for (const S value : network.gradient()) largest = std::max(largest, std::abs(static_cast<double>(value)));
    const std::vector<double> gradient = part(own.gradient, r, model.parameters().size());
    for (const sheafnn::layers::ParameterInfo& info : model.parameters().info()) {
      CAPTURE(info.name);
      const S* other = network.gradient().data() + info.offset;
      CHECK(relative({gradient.begin() + info.offset, gradient.begin() + info.offset + info.size},
                     {other, other + info.size}, 1e-4 * largest) <= bound);
    }
    const auto log_probabilities = [&] { return test::last_outputs(network); };
    // The CPU keeps the log-probabilities of the last sample.
    const Index last = (r + 1) * own.size.training_copies - 1;
    CHECK(relative(part(own.log_probabilities, last, n * classes), log_probabilities()) <= bound);
    std::vector<double> expected(static_cast<std::size_t>(n * classes));
    const Index drawn = test::evaluate(network, pass.seed, step.epoch, evaluation_samples, [&](Index) {
      const std::vector<double> rows = log_probabilities();
      for (std::size_t i = 0; i < rows.size(); ++i) expected[i] += std::exp(rows[i]);
    });
    for (double& p : expected) p /= static_cast<double>(drawn);
    CHECK(relative(part(own.probabilities, r, n * classes), expected) <= bound);
  }
}

/// The same bits, whether kernels take their items and groups forwards or backwards.
template <class Model>
void compare_orders(const typename Model::Options& options, const Problem& problem = small_problem(),
                    const typename Model::Posterior& posterior = {}) {
  using sheafnn::batch::HostExecutor;
  HostExecutor forward(HostExecutor::Order::forward), backward(HostExecutor::Order::backward);
  const BatchOutcome one = run_batch<Model>(forward, problem, options, {.samples = 2}, posterior);
  const BatchOutcome other = run_batch<Model>(backward, problem, options, {.samples = 2}, posterior);
  CHECK(one.gradient == other.gradient);
  CHECK(one.nll == other.nll);
  CHECK(one.kl == other.kl);
  CHECK(one.probabilities == other.probabilities);
}

}  // namespace batch_checks
