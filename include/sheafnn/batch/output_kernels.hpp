/// \file
/// Kernels of the network's output: log-softmax with its loss and derivative, and class probabilities averaged
/// over posterior samples (for one network nn/softmax.hpp and bsnn/losses.hpp).
#pragma once

#include <cmath>
#include <cstdint>

#include "sheafnn/batch/run.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/nn/softmax.hpp"

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

/// f(c) for each class. A known largest number of them, Max > 0, keeps arrays of that size in registers.
template <int Max, class F>
SHEAFNN_HD SHEAFNN_INLINE void for_each_class(Index classes, const F& f) {
  if constexpr (Max > 0) {
    SHEAFNN_UNROLL for (int c = 0; c < Max; ++c) {
      if (c < classes) f(c);
    }
  } else {
    for (Index c = 0; c < classes; ++c) f(c);
  }
}

/// logits + bias → log-softmax, in place.
template <int Max, class S>
SHEAFNN_HD SHEAFNN_INLINE void log_softmax_in_place(S* row, const S* bias, Index classes) {
  for_each_class<Max>(classes, [&](auto c) { row[c] += bias[c]; });
  const S shift = sheafnn::detail::log_sum_exp(row[0], [&](const auto& use) {
    for_each_class<Max>(classes, [&](auto c) { use(row[c]); });
  });
  for_each_class<Max>(classes, [&](auto c) { row[c] -= shift; });
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

  /// Where the logits of a node are.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S* row_of(Index u, Index instance) const {
    return logits + (instance * targets.nodes + u) * targets.classes;
  }
  /// The log-probabilities of a node, in place of its logits: of row_of(), or of a copy of at most Max of them.
  template <int Max>
  SHEAFNN_HD SHEAFNN_INLINE void normalise(S* row, Index run) const {
    log_softmax_in_place<Max>(row, bias + run * parameter_stride, targets.classes);
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
    S* row = this->row_of(u, instance);
    this->template normalise<0>(row, pass.run_of(instance));
    store_loss<0>(u, instance, row);
  }
  /// The loss and its derivative from the log-probabilities.
  template <int Max>
  SHEAFNN_HD SHEAFNN_INLINE void store_loss(Index u, Index instance, const S* row) const {
    using std::exp;
    const Index run = pass.run_of(instance), classes = targets.classes;
    const Index index = instance * targets.nodes + u;
    const bool trained = (this->role(u, run) & training_node) != 0;
    const Index label = trained ? targets.label[u] : -1;
    const double weight =
        trained ? runs[run].training_share * targets.class_weight[label] / static_cast<double>(pass.copies) : 0.0;
    const S share = static_cast<S>(weight);
    S* bar = logits_bar + index * classes;
    S of_label = S(0);
    for_each_class<Max>(classes, [&](auto c) {
      if (c == label) of_label = row[c];
      bar[c] = trained ? share * exp(row[c]) - (c == label ? share : S(0)) : S(0);
    });
    nll[index] = -static_cast<double>(of_label) * weight;
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
      for_each_class<max_classes>(classes, [&](auto c) { sums[c] += value * w[k * classes + c]; });
    }
  }
  SHEAFNN_HD void finish(Index u, Index instance, const S* sums) const {
    const Index classes = output.targets.classes;
    S row[max_classes];
    SHEAFNN_UNROLL for (int c = 0; c < max_classes; ++c) row[c] = sums[c];
    output.template normalise<max_classes>(row, output.pass.run_of(instance));
    S* out = output.row_of(u, instance);
    for_each_class<max_classes>(classes, [&](auto c) { out[c] = row[c]; });
    output.template store_loss<max_classes>(u, instance, row);
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
    double* mean = mean_of(u, run);
    if (first()) {
      for (Index c = 0; c < targets.classes; ++c) mean[c] = 0;
    }
    for (Index copy = 0; copy < pass.copies; ++copy) {
      S* row = this->row_of(u, run * pass.copies + copy);
      this->template normalise<0>(row, run);
      add<0>(row, mean);
    }
    if (last()) finish<0>(u, run, mean);
  }
  /// n × C per run
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE double* mean_of(Index u, Index run) const {
    return probability + (run * targets.nodes + u) * targets.classes;
  }
  /// Is this pass the first, the last of the evaluation?
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE bool first() const { return pass.first_sample == 0; }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE bool last() const {
    return static_cast<Index>(pass.first_sample) + pass.copies == total;
  }
  /// Adds the probabilities of one copy.
  template <int Max>
  SHEAFNN_HD SHEAFNN_INLINE void add(const S* log_probabilities, double* mean) const {
    using std::exp;
    for_each_class<Max>(targets.classes,
                        [&](auto c) { mean[c] += static_cast<double>(exp(log_probabilities[c])); });
  }
  /// The mean from the sum of all samples, and what is reported.
  template <int Max>
  SHEAFNN_HD SHEAFNN_INLINE void finish(Index u, Index run, double* mean) const {
    using std::log;
    constexpr double smallest = 2.2250738585072014e-308;  // as uncertainty/metrics.hpp
    const int role = this->role(u, run);
    const std::int32_t label = role != 0 ? targets.label[u] : 0;  // other nodes may have none
    Index best = 0;
    bool finite = true;
    double largest = 0, of_label = 0;
    for_each_class<Max>(targets.classes, [&](auto c) {
      mean[c] /= static_cast<double>(total);
      if (c == 0 || mean[c] > largest) {
        best = c;
        largest = mean[c];
      }
      if (c == label) of_label = mean[c];
      finite = finite && mean[c] - mean[c] == 0;
    });
    const double p = of_label > smallest ? of_label : smallest;
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
          for_each_class<max_classes>(classes,
                                      [&](auto c) { sums[copy * max_classes + c] += value * w[k * classes + c]; });
        }
      }
    }
  }
  SHEAFNN_HD void finish(Index u, Index run, const S* sums) const {
    const Index classes = output.targets.classes, copies = output.pass.copies;
    double* stored = output.mean_of(u, run);
    double mean[max_classes];
    for_each_class<max_classes>(classes, [&](auto c) { mean[c] = output.first() ? 0.0 : stored[c]; });
    SHEAFNN_UNROLL for (int copy = 0; copy < max_copies; ++copy) {
      if (copy < copies) {
        S row[max_classes];
        SHEAFNN_UNROLL for (int c = 0; c < max_classes; ++c) row[c] = sums[copy * max_classes + c];
        output.template normalise<max_classes>(row, run);
        S* out = output.row_of(u, run * copies + copy);
        for_each_class<max_classes>(classes, [&](auto c) { out[c] = row[c]; });
        output.template add<max_classes>(row, mean);
      }
    }
    if (output.last()) output.template finish<max_classes>(u, run, mean);
    for_each_class<max_classes>(classes, [&](auto c) { stored[c] = mean[c]; });
  }
};

}  // namespace sheafnn::batch::detail
