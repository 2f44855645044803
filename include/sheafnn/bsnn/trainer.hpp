/// \file
/// train(): epochs of θ ← Adam(θ, ∇L(θ)), with two weight decays, cyclical KL annealing and early stopping on
/// validation nodes. L: elbo.hpp; Adam: nn/adam.hpp; losses: losses.hpp; the loop: training_run.hpp. Your own loops can use
/// them as well. train() throws std::invalid_argument for options, data or targets that do not fit, and std::runtime_error
/// for a training that diverged.
///
/// Source: math: "The model", "Loss", "Optimiser"; paper, experiments.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/bsnn/conventions.hpp"
#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/stop_metric.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/bsnn/training_checks.hpp"
#include "sheafnn/bsnn/training_run.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/uncertainty/metrics.hpp"

namespace sheafnn {

namespace detail {

/// The ECE of the nodes with a known label; NaN without nodes.
[[nodiscard]] inline double calibration_error(std::span<const double> probabilities, Index classes,
                                              std::span<const std::int32_t> labels,
                                              std::span<const std::int32_t> nodes) {
  if (nodes.empty()) return std::numeric_limits<double>::quiet_NaN();
  return expected_calibration_error(probabilities, classes, labels, labelled_nodes(labels, nodes));
}

}  // namespace detail

/// Trains `model` with any loss on the training nodes of `split` and leaves it with the parameters of the best epoch. A
/// training that on_epoch stops ends in the same way; options.resume continues a training from its state. The accuracies of
/// the result are the scores of the loss. test_nll is the loss on the test nodes, test_ece the ECE of classifications. Nodes
/// without a known target never count.
///
/// Without validation nodes there is no early stopping: the last epoch counts as the best, and `patience` has no effect.
/// Results for validation or test nodes are NaN if the split has no such nodes.
///
/// \param loss  a Loss over the model's scalars (losses.hpp), or a loss with its own targets (loss_parts.hpp). The
///              split then has indices of targets, and the model gets the loss's parameters if it lacks them
/// \throws std::invalid_argument  an option out of range, or data or targets that do not fit the model
/// \throws std::runtime_error     the training diverged: names the epoch and the first quantity that is not finite, or
///                                why a flow does not reach its end
/// \throws exceptions of options.on_epoch and options.on_checkpoint, and std::bad_alloc. After any exception the model
///         has its original parameters, and perhaps the loss's parameters at their initial values
template <class Model, LossOf<Model> LossType>
TrainResult train(Model& model, const GraphOf<Model>& graph, const NodeFeatures& features, const LossType& loss,
                  const Split& split, const TrainOptions& options = {}) {
  const Index n = target_count(loss, detail::output_rows<Model>(graph));
  const Index outputs = prediction_columns(loss, model.options().classes);
  validate(options);
  if constexpr (has_own_targets<LossType>) loss.validate(model, graph.node_count());
  detail::check_targets(loss, n, outputs, split, "split");
  detail::check_stop_on(loss, split, options.stop_on);
  static_cast<void>(uses_closed_form<typename Model::Posterior>(options.kl_estimator));
  detail::check_sample_loss<LossType, typename Model::Scalar>(options.sample_loss);
  if constexpr (has_own_targets<LossType>) loss.prepare(model, options.seed);
  if (options.resume != nullptr) {
    detail::check_conventions(options.resume->conventions, model.options());
    detail::check_state(*options.resume, options, model.parameters().size(), n * outputs,
                        !split.validation.empty());
    if constexpr (detail::has_classes<LossType>) {
      detail::check_evaluated(*options.resume, loss, split, outputs);
    }
  }
  detail::TrainingRun<Model, LossType> run(model, graph, features, loss, split, options);
  return run.run([&](TrainResult& result) {
    const std::vector<double>& best = run.best_predictions();
    result.test_nll = detail::score_of(loss, MatrixView<const double>(best.data(), n, outputs), split.test).loss;
    if constexpr (detail::has_classes<LossType>) {
      result.test_ece = detail::calibration_error(best, outputs, loss.labels(), split.test);
      detail::add_test_metrics(result, loss, best, outputs, split.test);
    }
  });
}

/// Trains `model` to classify the labelled nodes of a dataset.
///
/// \throws as above
template <class Model>
TrainResult train(Model& model, const NodeDataset<GraphOf<Model>>& data, const Split& split,
                  const TrainOptions& options = {}) {
  validate(options);
  validate(data);
  validate(split, data.node_count(), detail::part_name(data, "split"));
  require(model.options().classes >= data.class_count, "classes", model.options().classes,
          detail::concat("the data have ", data.class_count, " classes"));
  return train(model, data.graph, data.features, Classification(data.labels), split, options);
}

}  // namespace sheafnn
