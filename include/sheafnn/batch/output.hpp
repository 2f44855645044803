/// \file
/// The network's output for a batch of runs: logits X W + b, log-probabilities, the loss of the training nodes, and class
/// probabilities averaged over posterior samples. Source: math: "The model". For one network: nn/softmax.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/column_sums.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/linear.hpp"
#include "sheafnn/batch/output_kernels.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/batch/second_linear.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"

namespace sheafnn::batch {

/// Labels, roles and class weights, in host memory.
struct NodeTargetLists {
  std::span<const std::int32_t> labels;        ///< of all nodes
  std::span<const std::uint8_t> roles;         ///< NodeRole bits of all nodes, one row per split
  std::span<const double> class_weights = {};  ///< C, or empty: all 1
};

namespace detail {

/// Checks targets for n nodes and C classes.
///
/// \throws std::invalid_argument  another number of either, or a label or weight out of range
inline void check(const NodeTargetLists& targets, Index nodes, Index classes) {
  using sheafnn::detail::concat;
  require_size(targets.labels, nodes, "labels");
  for (std::size_t u = 0; u < targets.labels.size(); ++u) {
    if (targets.labels[u] >= -1 && targets.labels[u] < classes) continue;
    throw_invalid_argument(concat("labels[", u, "]"), targets.labels[u],
                           concat("must be between 0 and ", classes - 1, ", or -1 where unknown"));
  }
  require(nodes >= 1, "nodes of the graph", nodes, "a network needs at least one");
  const Index roles = static_cast<Index>(targets.roles.size());
  if (roles < nodes || roles % nodes != 0) {
    throw_invalid_argument("size of roles", roles, concat("must be a multiple of ", nodes));
  }
  for (std::size_t i = 0; i < targets.roles.size(); ++i) {
    const std::size_t u = i % static_cast<std::size_t>(nodes);
    if (targets.roles[i] == 0 || targets.labels[u] >= 0) continue;
    throw_invalid_argument(concat("roles[", i, "]"), static_cast<int>(targets.roles[i]),
                           concat("node ", u, " has no label"));
  }
  if (targets.class_weights.empty()) return;
  require_size(targets.class_weights, classes, "class_weights");
  for (const double w : targets.class_weights) {
    require(w > 0 && std::isfinite(w), "class_weights", w, "must be positive and finite");
  }
}

/// Buffers and passes of the output of all instances. W is h × C; without W and b the logits are X.
template <class Executor, class S>
class BatchOutput {
 public:
  BatchOutput(Executor& executor, const layers::LinearWeights<layers::ParameterSlot>& at,
              const layers::ParameterSet<S>& parameters, const NodeTargetLists& targets, Index nodes, Index width,
              Index classes, const BatchSize& batch, PartialSums& sums)
      : nodes_(nodes),
        classes_(classes),
        label_(executor, "labels", targets.labels),
        role_(executor, "labels", targets.roles),
        class_weight_(executor, "labels", class_weights(targets, classes)),
        logits_(executor, "outputs", batch.instances() * nodes * classes),
        logits_bar_(executor, "outputs", batch.training_instances() * nodes * classes),
        nll_(executor, "outputs", batch.training_instances() * nodes),
        nll_tree_(executor, batch.runs, batch.training_copies * nodes, 1),
        probability_(executor, "predictions", batch.runs * nodes * classes),
        report_(executor, "predictions", batch.runs * nodes * evaluation_columns) {
    if (at.weight >= 0) {
      linear_.emplace(at, parameters, batch.runs, batch.training_copies * nodes, width, classes, sums);
    } else {
      no_bias_ = Array<Executor, S>(executor, "outputs", classes);
    }
  }

  /// The log-probabilities of the last pass, n × C per instance.
  [[nodiscard]] const Array<Executor, S>& log_probabilities() const noexcept { return logits_; }
  /// Mean negative log-likelihood of the training nodes.
  [[nodiscard]] const ColumnTree<Executor, double>& nll() const noexcept { return nll_tree_; }
  /// The last evaluation's mean probabilities, n × C per run, and its sums, n × evaluation_columns per run.
  [[nodiscard]] const Array<Executor, double>& probabilities() const noexcept { return probability_; }
  [[nodiscard]] const Array<Executor, double>& report() const noexcept { return report_; }

  /// Logits without bias, which loss() or average() completes, or computes as well where there are few classes.
  ///
  /// \param x  n × h per instance; stays in place until backward()
  void forward(Executor& executor, const Pass& pass, const ParameterView<S>& parameters, const S* x) {
    input_ = x;
    if (pass.training ? few_classes() : few_rows(pass)) return;  // loss() or average() begins with x
    if (linear_) {
      linear_->forward(executor, parameters, pass.copies * nodes_, x, logits_.data());
    } else {
      copy(executor, pass, x, logits_.data());
    }
  }

  /// Log-probabilities, the loss and the derivatives of the logits.
  void loss(Executor& executor, const Run* runs, const Pass& pass, const ParameterView<S>& parameters) {
    const TrainingOutput<S> output{rows(runs, pass, parameters), logits_bar_.data(), nll_.data()};
    if (few_classes()) {
      const int lanes = team_lanes(linear_->inputs());
      executor.launch_teams(nodes_, pass.instances(), lanes,
                            FewClassesOutput<S>{output, linear_->inputs(), input_, linear_->weight(parameters),
                                                lanes});
    } else {
      executor.launch(nodes_, pass.instances(), output);
    }
    nll_tree_.run(executor, nll_.data(), true);
  }

  /// After loss(): the derivative of x, and partial sums of the gradients.
  void backward(Executor& executor, const Pass& pass, const ParameterView<S>& parameters, S* x_bar) const {
    if (linear_) {
      linear_->backward(executor, parameters, pass.copies * nodes_, logits_bar_.data(), x_bar);
    } else {
      copy(executor, pass, logits_bar_.data(), x_bar);
    }
  }
  /// The same for few classes, where the last layer begins in the same launch: see EnterLayers.
  [[nodiscard]] bool few_classes() const noexcept {
    return linear_ && classes_ <= FewClassesOutput<S>::max_classes;
  }
  [[nodiscard]] LogitsBar<S> logits_bar(const ParameterView<S>& parameters) const noexcept {
    return {logits_bar_.data(), linear_->weight(parameters), parameters.stride, classes_};
  }
  [[nodiscard]] Items<RowProducts<S>> weight_products(const Pass& pass, const ParameterView<S>& parameters) const {
    if (!linear_) return {};
    return linear_->weight_products(parameters, pass.copies * nodes_, input_, logits_bar_.data());
  }

  /// X W + b, for a loss that is computed elsewhere, which gives the derivatives to set_bar().
  ///
  /// \param x    as forward()
  /// \param out  n × C per instance
  void outputs(Executor& executor, const Pass& pass, const ParameterView<S>& parameters, const S* x, S* out) {
    input_ = x;
    if (!linear_) return copy(executor, pass, x, out);
    linear_->forward(executor, parameters, pass.copies * nodes_, x, out);
    const Index size = pass.copies * nodes_ * classes_;
    executor.launch(size, pass.runs,
                    AddBias<S>{linear_->bias(parameters), parameters.stride, classes_, size, out});
  }
  /// In the place of loss(). \param bar  derivatives of outputs()
  void set_bar(Executor& executor, const Pass& pass, const S* bar) {
    copy(executor, pass, bar, logits_bar_.data());
  }

  /// Evaluates `total` samples, as many at a time as fit: their logits without bias by forward(pass), log-probabilities and
  /// the mean over all; then after(pass). With the last pass also report().
  ///
  /// \param behind  epochs by which the runs' counters are ahead of the evaluated epoch
  template <class Forward, class After>
  void evaluate(Executor& executor, const Run* runs, const ParameterView<S>& parameters, const BatchSize& batch,
                Index total, std::uint32_t behind, const Forward& forward, const After& after) {
    for (Index begin = 0; begin < total;) {
      const Pass pass{batch.runs, std::min(batch.copies, total - begin), false, static_cast<std::uint32_t>(begin),
                      behind};
      forward(pass);
      average(executor, runs, pass, parameters, total);
      after(pass);
      begin += pass.copies;
    }
  }

 private:
  /// Log-probabilities, and their part of the mean over `total` samples; with the last of them also report().
  void average(Executor& executor, const Run* runs, const Pass& pass, const ParameterView<S>& parameters,
               Index total) {
    const EvaluationOutput<S> output{rows(runs, pass, parameters), probability_.data(), total, report_.data()};
    if (few_rows(pass)) {
      const int lanes = team_lanes(linear_->inputs());
      executor.launch_teams(nodes_, pass.runs, lanes,
                            FewClassesEvaluation<S>{output, linear_->inputs(), input_, linear_->weight(parameters),
                                                    lanes});
    } else {
      executor.launch(nodes_, pass.runs, output);
    }
  }
  /// Does one launch compute the logits of an evaluation and what follows? On large graphs a product and a launch take
  /// less time.
  [[nodiscard]] bool few_rows(const Pass& pass) const noexcept {
    return few_classes() && pass.copies <= FewClassesEvaluation<S>::max_copies &&
           pass.runs * nodes_ <= Index{1} << 16;
  }
  [[nodiscard]] OutputRows<S> rows(const Run* runs, const Pass& pass, const ParameterView<S>& parameters) {
    return {{nodes_, classes_, label_.data(), role_.data(), class_weight_.data()},
            runs,
            pass,
            linear_ ? linear_->bias(parameters) : no_bias_.data(),
            linear_ ? parameters.stride : 0,
            logits_.data()};
  }
  /// Between X and the logits, or of their derivatives, where they are equal.
  void copy(Executor& executor, const Pass& pass, const S* from, S* to) const {
    const Index size = nodes_ * classes_;
    executor.launch(size, pass.instances(), CopyToInstances<S>{from, size, 1, to});
  }
  [[nodiscard]] static std::vector<double> class_weights(const NodeTargetLists& targets, Index classes) {
    if (targets.class_weights.empty()) return std::vector<double>(static_cast<std::size_t>(classes), 1.0);
    return {targets.class_weights.begin(), targets.class_weights.end()};
  }

  std::optional<BatchLinear<S>> linear_;
  Array<Executor, S> no_bias_;  ///< zeros, without b
  Index nodes_, classes_;
  Array<Executor, std::int32_t> label_;
  Array<Executor, std::uint8_t> role_;
  Array<Executor, double> class_weight_;
  Array<Executor, S> logits_, logits_bar_;
  Array<Executor, double> nll_;
  ColumnTree<Executor, double> nll_tree_;
  Array<Executor, double> probability_, report_;
  const S* input_ = nullptr;
};

}  // namespace detail

}  // namespace sheafnn::batch
