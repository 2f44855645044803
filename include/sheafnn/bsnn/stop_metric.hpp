/// \file
/// StopMetric: the metric by which a training chooses its best epoch, if it is neither loss nor accuracy. Also the metrics
/// of the test nodes at the end.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/uncertainty/ranking_metrics.hpp"

namespace sheafnn::detail {

/// Checks that a loss and its validation nodes allow a choice of the best epoch.
///
/// \throws std::invalid_argument  a metric of classes with another loss, or one that ranks nodes of a single class
template <class LossType>
void check_stop_on(const LossType& loss, const Split& split, StopOn stop_on) {
  if (!is_metric(stop_on)) return;
  if constexpr (has_classes<LossType>) {
    if (split.validation.empty() || (stop_on != StopOn::roc_auc && stop_on != StopOn::average_precision)) return;
    const std::vector<std::int32_t> nodes = labelled_nodes(loss.labels(), split.validation);
    const auto label = [&](std::int32_t u) { return loss.labels()[static_cast<std::size_t>(u)]; };
    for (const std::int32_t u : nodes) {
      if (label(u) != label(nodes.front())) return;
    }
    throw_invalid_argument("stop_on", to_string(stop_on), "the validation nodes are all of one class");
  } else {
    throw_invalid_argument("stop_on", to_string(stop_on),
                           concat("a metric of classes; the loss is ", LossType::name,
                                  ", which has loss and accuracy"));
  }
}

/// A metric of probabilities (n × C, rows of nodes) at labelled nodes. Unchecked: `stop_on` is a metric, and there is
/// at least one node.
[[nodiscard]] inline double metric_of(StopOn stop_on, std::span<const double> p, Index classes,
                                      std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes,
                                      MetricWorkspace& work) {
  switch (stop_on) {
    case StopOn::roc_auc:
      return roc_auc(p, classes, labels, nodes, work);
    case StopOn::average_precision:
      return average_precision(p, classes, labels, nodes, work);
    case StopOn::macro_f1:
      return macro_f1(p, classes, labels, nodes, work);
    default:
      return brier_score(p, classes, labels, nodes);
  }
}

/// See the file comment. Without a metric it holds no data and does nothing. A loss that spans parts computes the
/// metric itself: metric(stop_on, probabilities, nodes), NaN without nodes.
template <class LossType>
class StopMetric {
 public:
  StopMetric(const LossType& loss, const Split& split, StopOn stop_on) : loss_(&loss), stop_on_(stop_on) {
    if (!is_metric(stop_on)) return;
    if constexpr (has_classes<LossType>) {
      labels_ = loss.labels();
      validation_ = labelled_nodes(labels_, split.validation);
      test_ = labelled_nodes(labels_, split.test);
    } else if constexpr (spans_parts<LossType>) {
      validation_ = split.validation;
      test_ = split.test;
    }
  }

  /// Writes the metric of probabilities (n × C) into a report; NaN without nodes or metric.
  void report(const MatrixView<const double>& probabilities, EpochReport& report) {
    report.validation_metric = value(probabilities, validation_);
    report.test_metric = value(probabilities, test_);
  }

 private:
  [[nodiscard]] double value(const MatrixView<const double>& probabilities, std::span<const std::int32_t> nodes) {
    if constexpr (spans_parts<LossType>) {
      if (is_metric(stop_on_)) return loss_->metric(stop_on_, probabilities, nodes);
    }
    if (nodes.empty() || spans_parts<LossType>) return std::numeric_limits<double>::quiet_NaN();
    const Index classes = probabilities.columns();
    const std::span<const double> p(probabilities.data(),
                                    static_cast<std::size_t>(probabilities.rows() * classes));
    return metric_of(stop_on_, p, classes, labels_, nodes, work_);
  }

  const LossType* loss_;
  StopOn stop_on_;
  std::span<const std::int32_t> labels_;
  std::vector<std::int32_t> validation_, test_;  ///< labelled nodes; empty if there is no metric
  MetricWorkspace work_;
};

/// Writes the metrics of a classification's best epoch on the test nodes into its result; without such nodes it
/// changes nothing.
///
/// \param probabilities  n × C
template <class LossType>
void add_test_metrics(TrainResult& result, const LossType& loss, std::span<const double> probabilities,
                      Index classes, std::span<const std::int32_t> test) {
  const std::vector<std::int32_t> nodes = labelled_nodes(loss.labels(), test);
  if (nodes.empty()) return;
  MetricWorkspace work;
  result.test_roc_auc = roc_auc(probabilities, classes, loss.labels(), nodes, work);
  result.test_average_precision = average_precision(probabilities, classes, loss.labels(), nodes, work);
  result.test_macro_f1 = macro_f1(probabilities, classes, loss.labels(), nodes, work);
  result.test_brier = brier_score(probabilities, classes, loss.labels(), nodes);
}

}  // namespace sheafnn::detail
