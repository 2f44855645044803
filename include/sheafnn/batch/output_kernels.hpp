/// \file
/// Kernels of the network's output: log-softmax with its loss and derivative, and class probabilities averaged
/// over posterior samples (for one network nn/softmax.hpp and bsnn/losses.hpp).
///
/// Unchecked: numbers of items, runs, instances and lanes, and the room behind pointers and views; BatchNetwork and
/// BatchTrainer check what they are given.
#pragma once

#include <cmath>
#include <cstdint>

#include "sheafnn/batch/run.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Labels and roles of the nodes. A node with a role has a label.
struct NodeTargets {
  Index nodes = 0, classes = 0;
  const std::int32_t* label = nullptr;
  const std::uint8_t* role = nullptr;    ///< NodeRole bits, one row of nodes per split
  const double* class_weight = nullptr;  ///< of each class, in the loss
};

/// Derivative of the logits, n × C per instance, and the weights that they are made with, h × C per run.
template <class S>
struct LogitsBar {
  const S* bar = nullptr;
  const S* weight = nullptr;
  Index parameter_stride = 0, classes = 0;
};

/// logits + bias → log-softmax, in place.
template <class S>
SHEAFNN_HD SHEAFNN_INLINE void log_softmax_in_place(S* row, const S* bias, Index classes) {
  using std::exp;
  using std::log;
  for (Index c = 0; c < classes; ++c) row[c] += bias[c];
  S largest = row[0];
  for (Index c = 1; c < classes; ++c) largest = row[c] > largest ? row[c] : largest;
  S sum = S(0);
  for (Index c = 0; c < classes; ++c) sum += exp(row[c] - largest);
  const S shift = largest + log(sum);
  for (Index c = 0; c < classes; ++c) row[c] -= shift;
}

/// Logits, which become log-probabilities, and what is known of their nodes.
template <class S>
struct OutputRows {
  NodeTargets targets;
  const Run* runs;
  Pass pass;
  const S* bias;
  Index parameter_stride;
  S* logits;  ///< n × C per instance

  /// The log-probabilities of a node, in the place of its logits.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S* log_probabilities(Index u, Index instance, Index run) const {
    S* row = logits + (instance * targets.nodes + u) * targets.classes;
    log_softmax_in_place(row, bias + run * parameter_stride, targets.classes);
    return row;
  }
  /// NodeRole bits of a node.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE int role(Index u, Index run) const {
    return targets.role[runs[run].split * targets.nodes + u];
  }
};

/// Log-probabilities, each training node's share of the loss, and the derivative of the loss in the logits.
/// item: node, group: instance.
template <class S>
struct TrainingOutput : OutputRows<S> {
  using OutputRows<S>::targets, OutputRows<S>::runs, OutputRows<S>::pass;
  S* logits_bar;  ///< n × C per instance
  double* nll;  ///< n per instance: −w log p(label) / Σ w / copies, w of the node's class; 0 unless in training

  SHEAFNN_HD void operator()(Index u, Index instance) const {
    using std::exp;
    const Index run = pass.run_of(instance), classes = targets.classes;
    const Index index = instance * targets.nodes + u;
    const S* row = this->log_probabilities(u, instance, run);
    S* bar = logits_bar + index * classes;
    if ((this->role(u, run) & training_node) == 0) {
      for (Index c = 0; c < classes; ++c) bar[c] = S(0);
      nll[index] = 0;
      return;
    }
    const std::int32_t label = targets.label[u];
    const double weight =
        runs[run].training_share * targets.class_weight[label] / static_cast<double>(pass.copies);
    const S share = static_cast<S>(weight);
    for (Index c = 0; c < classes; ++c) bar[c] = share * exp(row[c]);
    bar[label] -= share;
    nll[index] = -static_cast<double>(row[label]) * weight;
  }
};

/// TrainingOutput of a few classes, and before it the logits without bias: a team per node, lanes over the inputs;
/// group: instance.
template <class S>
struct FewClassesOutput {
  using Scalar = S;
  static constexpr int max_classes = 8, outputs = max_classes;
  TrainingOutput<S> output;
  Index inputs;
  const S* x;       ///< n × h per instance
  const S* weight;  ///< h × C
  int lanes;

  SHEAFNN_HD void part(Index u, Index instance, int lane, S* sums) const {
    const Index classes = output.targets.classes;
    const S* row = x + (instance * output.targets.nodes + u) * inputs;
    const S* w = weight + output.pass.run_of(instance) * output.parameter_stride;
    for (Index k = lane; k < inputs; k += lanes) {
      const S value = row[k];
      SHEAFNN_UNROLL for (int c = 0; c < max_classes; ++c) {
        if (c < classes) sums[c] += value * w[k * classes + c];
      }
    }
  }
  SHEAFNN_HD void finish(Index u, Index instance, const S* sums) const {
    const Index classes = output.targets.classes;
    S* row = output.logits + (instance * output.targets.nodes + u) * classes;
    SHEAFNN_UNROLL for (int c = 0; c < max_classes; ++c) {
      if (c < classes) row[c] = sums[c];
    }
    output(u, instance);
  }
};

/// Sums of a node that the evaluation reports, one column each.
enum EvaluationColumn { validation_nll, validation_correct, test_correct, not_finite, evaluation_columns };

/// Log-probabilities of all copies, added to the mean probabilities; with the last of `total` samples also the
/// node's part of what is reported. item: node, group: run.
template <class S>
struct EvaluationOutput : OutputRows<S> {
  using OutputRows<S>::targets, OutputRows<S>::pass;
  double* probability;  ///< n × C per run
  Index total;
  double* report;  ///< n × evaluation_columns per run

  SHEAFNN_HD void operator()(Index u, Index run) const {
    using std::exp;
    const Index classes = targets.classes;
    double* mean = probability + (run * targets.nodes + u) * classes;
    const Index first_sample = static_cast<Index>(pass.first_sample);
    if (first_sample == 0) {
      for (Index c = 0; c < classes; ++c) mean[c] = 0;
    }
    for (Index copy = 0; copy < pass.copies; ++copy) {
      const S* row = this->log_probabilities(u, run * pass.copies + copy, run);
      for (Index c = 0; c < classes; ++c) mean[c] += static_cast<double>(exp(row[c]));
    }
    if (first_sample + pass.copies == total) finish(u, run, mean);
  }

 private:
  SHEAFNN_HD void finish(Index u, Index run, double* mean) const {
    using std::log;
    constexpr double smallest = 2.2250738585072014e-308;  // as uncertainty/metrics.hpp
    const Index classes = targets.classes;
    Index best = 0;
    bool finite = true;
    for (Index c = 0; c < classes; ++c) {
      mean[c] /= static_cast<double>(total);
      if (mean[c] > mean[best]) best = c;
      finite = finite && mean[c] - mean[c] == 0;
    }
    const int role = this->role(u, run);
    const std::int32_t label = role != 0 ? targets.label[u] : 0;  // other nodes may have none
    const double p = mean[label] > smallest ? mean[label] : smallest;
    const bool correct = best == label;
    double* out = report + (run * targets.nodes + u) * evaluation_columns;
    out[validation_nll] = (role & validation_node) != 0 ? -targets.class_weight[label] * log(p) : 0.0;
    out[validation_correct] = (role & validation_node) != 0 && correct ? 1.0 : 0.0;
    out[test_correct] = (role & test_node) != 0 && correct ? 1.0 : 0.0;
    out[not_finite] = finite ? 0.0 : 1.0;
  }
};

/// EvaluationOutput of a few classes and copies, and before it the logits without bias: a team per node, lanes over the
/// inputs; group: run.
template <class S>
struct FewClassesEvaluation {
  using Scalar = S;
  static constexpr int max_classes = FewClassesOutput<S>::max_classes, max_copies = 4;
  static constexpr int outputs = max_classes * max_copies;
  EvaluationOutput<S> output;
  Index inputs;
  const S* x;       ///< n × h per instance
  const S* weight;  ///< h × C
  int lanes;

  SHEAFNN_HD void part(Index u, Index run, int lane, S* sums) const {
    const int classes = static_cast<int>(output.targets.classes), copies = static_cast<int>(output.pass.copies);
    const Index nodes = output.targets.nodes;
    const S* rows = x + (run * output.pass.copies * nodes + u) * inputs;
    const S* w = weight + run * output.parameter_stride;
    for (Index k = lane; k < inputs; k += lanes) {
      SHEAFNN_UNROLL for (int copy = 0; copy < max_copies; ++copy) {
        if (copy < copies) {
          const S value = rows[copy * nodes * inputs + k];
          SHEAFNN_UNROLL for (int c = 0; c < max_classes; ++c) {
            if (c < classes) sums[copy * max_classes + c] += value * w[k * classes + c];
          }
        }
      }
    }
  }
  SHEAFNN_HD void finish(Index u, Index run, const S* sums) const {
    const int classes = static_cast<int>(output.targets.classes), copies = static_cast<int>(output.pass.copies);
    const Index nodes = output.targets.nodes;
    S* rows = output.logits + (run * output.pass.copies * nodes + u) * classes;
    SHEAFNN_UNROLL for (int copy = 0; copy < max_copies; ++copy) {
      SHEAFNN_UNROLL for (int c = 0; c < max_classes; ++c) {
        if (copy < copies && c < classes) rows[copy * nodes * classes + c] = sums[copy * max_classes + c];
      }
    }
    output(u, run);
  }
};

}  // namespace sheafnn::batch::detail
