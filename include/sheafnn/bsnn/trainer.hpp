/// \file
/// train(): epochs of θ ← Adam(θ, ∇L(θ)), with two weight decays, cyclical KL annealing and early stopping on
/// validation nodes. L: elbo.hpp; Adam: nn/adam.hpp; losses: losses.hpp; the loop: training_run.hpp. Your own loops can use
/// them as well. train() throws std::invalid_argument for options, data or targets that do not fit, and std::runtime_error
/// for a training that diverged.
///
/// Source: math: "The model", "Loss", "Optimiser"; paper, experiments.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/conventions.hpp"
#include "sheafnn/bsnn/loss_parts.hpp"
#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/stop_metric.hpp"
#include "sheafnn/bsnn/stop_on.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/bsnn/training_run.hpp"
#include "sheafnn/bsnn/training_state.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/uncertainty/metrics.hpp"

namespace sheafnn {

namespace detail {

/// Checks a loss and a split of n nodes; `name` is what messages call the split.
///
/// \throws std::invalid_argument  targets that do not fit, an invalid set of the split, or a set of nodes without any
///         known target
template <class LossType>
void check_targets(const LossType& loss, Index n, Index outputs, const Split& split, std::string_view name) {
  if constexpr (!has_own_targets<LossType>) loss.validate(n, outputs);
  validate(split, n, name);
  const auto check = [&](const std::vector<std::int32_t>& nodes, const char* part) {
    if (nodes.empty()) return;
    if (std::none_of(nodes.begin(), nodes.end(), [&](std::int32_t u) { return loss.known(u); })) {
      throw_invalid_argument(concat(name, ".", part), concat(nodes.size(), " nodes"),
                             "none of them has a known target");
    }
  };
  check(split.train, "train");
  check(split.validation, "validation");
  check(split.test, "test");
}

/// Checks that a training of P parameters with `predictions` = n · C values can resume from a state.
///
/// \param validated  the split has validation nodes
/// \throws std::invalid_argument  naming the part that does not fit
inline void check_state(const TrainingState& state, const TrainOptions& options, Index parameters,
                        Index predictions, bool validated) {
  const Index epochs = static_cast<Index>(state.history.size());
  require(epochs >= 1, "resume.history", epochs, "at least one epoch is needed");
  require(epochs <= options.epochs, "epochs", options.epochs,
          concat("the training to resume has ", epochs, " epochs already"));
  require(state.best_epoch >= 0 && state.best_epoch < epochs, "resume.best_epoch", state.best_epoch,
          concat("must be between 0 and ", epochs - 1));
  require(state.seed == options.seed, "resume.seed", state.seed, concat("the options have ", options.seed));
  const auto check = [](const char* name, const std::vector<double>& values, Index size, double least) {
    require(static_cast<Index>(values.size()) == size, name, values.size(), concat("expected ", size, " numbers"));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i]) && values[i] >= least) continue;
      throw_invalid_argument(concat(name, "[", i, "]"), values[i],
                             least == 0 ? "must be finite and at least 0" : "must be finite");
    }
  };
  constexpr double any = std::numeric_limits<double>::lowest();
  check("resume.parameters", state.parameters, parameters, any);
  check("resume.first_moment", state.first_moment, parameters, any);
  check("resume.second_moment", state.second_moment, parameters, 0);  // a mean of squares
  check("resume.best_parameters", state.best_parameters, parameters, any);
  check("resume.best_predictions", state.best_predictions, predictions, any);
  for (Index t = 0; t < epochs; ++t) {
    const Index epoch = state.history[static_cast<std::size_t>(t)].epoch;
    if (epoch != t) throw_invalid_argument(concat("resume.history[", t, "].epoch"), epoch, concat("must be ", t));
  }
  require(!state.stop_on || *state.stop_on == options.stop_on, "stop_on", to_string(options.stop_on),
          concat("the training to resume chose its best epoch by ",
                 state.stop_on ? to_string(*state.stop_on) : ""));
  const bool has_metric = !std::isnan(state.history[static_cast<std::size_t>(state.best_epoch)].validation_metric);
  require(!validated || has_metric == is_metric(options.stop_on), "stop_on", to_string(options.stop_on),
          concat("the training to resume chose its best epoch by ", has_metric ? "a metric" : "loss or accuracy"));
}

/// Refuses a classification that resumes with another split. The state has probabilities of the best epoch only
/// for the nodes that were evaluated then, and 0 for other nodes.
///
/// \throws std::invalid_argument  a validation or test node without probabilities
template <class LossType>
void check_evaluated(const TrainingState& state, const LossType& loss, const Split& split, Index classes) {
  for (const auto* nodes : {&split.validation, &split.test}) {
    for (const std::int32_t u : *nodes) {
      const double* row = state.best_predictions.data() + u * classes;
      if (!loss.known(u) || std::any_of(row, row + classes, [](double p) { return p > 0; })) continue;
      throw_invalid_argument("split", concat("one with node ", u, " among the nodes to evaluate"),
                             "the training to resume had another split");
    }
  }
}

}  // namespace detail

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
