/// \file
/// TrainingRecord: what a training keeps whatever its model, and what is therefore compiled once for all models. These are the
/// optimiser, the history, the best epoch and its parameters.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <vector>

#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/bsnn/training_errors.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/nn/adam.hpp"

namespace sheafnn::detail {

/// See the file comment.
template <class S>
class TrainingRecord {
 public:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  /// \param parameters, options  must outlive the record
  /// \param validated            are there validation nodes?
  /// \param outputs              number of values of an epoch's predictions
  TrainingRecord(ParameterSet<S>& parameters, const TrainOptions& options, bool validated, Index outputs)
      : predictions(static_cast<std::size_t>(outputs)),
        best_predictions(predictions),
        adam(parameters.size(), options.learning_rate),
        parameters_(parameters),
        options_(options),
        first_values_(parameters.values()),
        best_values_(parameters.values()),
        validated_(validated) {
    constexpr Index long_training = 10'000;  // the history of a longer training is reallocated at times
    adam.sheaf_learning_rate = options.sheaf_rate();
    result.history.reserve(static_cast<std::size_t>(std::min(options.epochs, long_training)));
  }

  /// Number of completed epochs.
  [[nodiscard]] Index epochs() const { return static_cast<Index>(result.history.size()); }

  /// θ ← Adam(θ, ∇L). \throws std::runtime_error  a gradient that is not finite
  void step(Execution execution, const Buffer<S>& gradient, Index epoch) {
    const bool stepped = adam.step_count > 0;
    const bool finite =
        adam.step(execution, parameters_, gradient, options_.weight_decay, options_.sheaf_decay, options_.decay);
    if (!finite) throw_not_finite(parameters_, gradient, epoch, stepped);
  }
  /// Adds the report to the history, keeps the best epoch, and calls the options' functions. \returns whether training continues
  bool finish_epoch(Execution execution, Index epoch) {
    result.history.push_back(report);
    keep_if_best(execution);
    const auto start = Clock::now();
    bool last = is_last(epoch);
    if (options_.on_epoch && options_.on_epoch(report) == EpochAction::stop && !last) {
      result.stop_reason = StopReason::callback;
      last = true;
    }
    if (options_.on_checkpoint && (last || (epoch + 1) % options_.checkpoint_every == 0)) {
      options_.on_checkpoint(state());
    }
    callback_seconds_ += seconds_since(start);
    return !last;
  }
  /// Does the training end after this epoch?
  bool is_last(Index epoch) {
    if (epoch + 1 >= options_.epochs) return true;  // the stop reason of a new result
    if (epoch - result.best_epoch < options_.patience) return false;
    result.stop_reason = StopReason::patience;
    return true;
  }
  /// Gives the model the best epoch's parameters, and the result its mean times. \param first  epoch of this training
  void finish(Clock::time_point begin, Index first) {
    std::copy(best_values_.begin(), best_values_.end(), parameters_.values().begin());
    const double count = static_cast<double>(std::max<Index>(1, epochs() - first));
    result.epoch_seconds = (seconds_since(begin) - callback_seconds_) / count;
    result.train_seconds /= count;
    result.evaluate_seconds /= count;
  }

  /// Resumes from this state. \param steps  number of steps of an epoch
  void restore(const TrainingState& state, Index steps) {
    const auto copy = [](const std::vector<double>& from, Buffer<S>& to) {
      std::transform(from.begin(), from.end(), to.begin(), [](double x) { return static_cast<S>(x); });
    };
    copy(state.parameters, parameters_.values());
    copy(state.first_moment, adam.first_moment);
    copy(state.second_moment, adam.second_moment);
    copy(state.best_parameters, best_values_);
    adam.step_count = static_cast<Index>(state.history.size()) * steps;
    best_predictions = state.best_predictions;
    result.history.assign(state.history.begin(), state.history.end());
    set_best(state.history[static_cast<std::size_t>(state.best_epoch)]);
  }
  /// Gives the model the parameters that it had before.
  void restore_first_values() {
    std::copy(first_values_.begin(), first_values_.end(), parameters_.values().begin());
  }

  std::vector<double> predictions, best_predictions;  ///< means, of the last epoch and of the best one
  Adam<S> adam;
  EpochReport report;  ///< of the epoch
  TrainResult result;

 private:
  [[nodiscard]] TrainingState state() const {
    const auto numbers = [](const Buffer<S>& values) { return std::vector<double>(values.begin(), values.end()); };
    return {options_.seed,
            result.history,
            numbers(parameters_.values()),
            numbers(adam.first_moment),
            numbers(adam.second_moment),
            result.best_epoch,
            numbers(best_values_),
            best_predictions,
            options_.stop_on};
  }
  [[nodiscard]] double stopping_score(const EpochReport& of) const {
    if (options_.stop_on == StopOn::loss) return of.validation_loss;
    if (options_.stop_on == StopOn::accuracy) return -of.validation_accuracy;
    return -metric_score(options_.stop_on, of.validation_metric);
  }
  void set_best(const EpochReport& of) {
    best_score_ = stopping_score(of);
    result.best_epoch = of.epoch;
    result.validation_loss = of.validation_loss;
    result.validation_accuracy = of.validation_accuracy;
    result.test_accuracy = of.test_accuracy;
    result.validation_metric = of.validation_metric;
    result.test_metric = of.test_metric;
  }
  /// Without validation nodes every epoch is the best so far.
  [[nodiscard]] bool is_best() const {
    return !validated_ || is_better_epoch(report.epoch == 0, stopping_score(report), report.validation_loss,
                                          best_score_, result.validation_loss);
  }
  void keep_if_best(Execution execution) {
    if (!is_best()) return;
    set_best(report);
    std::copy(predictions.begin(), predictions.end(), best_predictions.begin());
    const S* values = parameters_.values().data();
    S* best = best_values_.data();
    for (const ParameterInfo& info : parameters_.info()) {  // cut among threads as Adam cuts them
      parallel_for(execution, info.size, adam_grain, [&](Index begin, Index end) {
        std::copy(values + info.offset + begin, values + info.offset + end, best + info.offset + begin);
      });
    }
  }

  ParameterSet<S>& parameters_;
  const TrainOptions& options_;
  Buffer<S> first_values_, best_values_;
  bool validated_;
  double best_score_ = std::numeric_limits<double>::infinity();
  double callback_seconds_ = 0;
};

}  // namespace sheafnn::detail
