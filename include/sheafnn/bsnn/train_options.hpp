/// \file
/// TrainOptions and TrainResult: what a training is given, and what became of it.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <limits>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/epoch_callback.hpp"
#include "sheafnn/bsnn/epoch_report.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/stop_on.hpp"
#include "sheafnn/bsnn/training_state.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/nn/adam.hpp"

namespace sheafnn {

/// How train() trains.
struct TrainOptions {
  Index epochs = 500;    ///< maximum, ≥ 1
  Index patience = 200;  ///< stop after so many epochs without a better one, ≥ 1; not without validation nodes
  StopOn stop_on = StopOn::loss;
  double learning_rate = 0.01;          ///< > 0
  /// Of the sheaf learner's weights, ≥ 0; 0: learning_rate (default: 0.3 learning_rate, so that the other weights settle
  /// first; math: "A posterior that is learned").
  std::optional<double> sheaf_learning_rate = {};
  double weight_decay = 5e-4;           ///< L2, of all weights but the sheaf learner's, ≥ 0
  double sheaf_decay = 5e-4;            ///< L2, of the sheaf learner's weights, ≥ 0
  WeightDecay decay = WeightDecay::l2;  ///< L2 terms, or decoupled (AdamW)
  double input_dropout = 0.5;           ///< of features, in [0, 1)
  double dropout = 0.3;                 ///< of hidden features, in [0, 1)
  KlSchedule kl_schedule = KlSchedule::cyclical;
  double kl_maximum = 0.003;  ///< largest λ, ≥ 0
  KlEstimator kl_estimator = KlEstimator::automatic;
  Index training_samples = 1;  ///< K, sheaves drawn per training step, 1 … 1024
  SampleLoss sample_loss = SampleLoss::expected;
  Index samples = 3;           ///< posterior samples averaged at evaluation, 1 … 1024
  std::uint64_t seed = 0;      ///< of dropout and noise; initial weights have their own (SheafModel)
  int threads = 0;             ///< at most; 0: as many as the graph is worth. Results do not depend on it
  EpochCallback on_epoch = {};  ///< called after every epoch; may stop the training
  /// Called every `checkpoint_every` epochs (≥ 1) and after the last one, before train() returns.
  std::function<void(const TrainingState&)> on_checkpoint = {};
  Index checkpoint_every = 10;
  /// Where to go on; null: from the beginning. With the same model, data and options the result has the same bits as
  /// that of a training that was never stopped. `epochs` and `patience` may grow.
  const TrainingState* resume = nullptr;

  /// The rate of the sheaf learner's weights.
  [[nodiscard]] double sheaf_rate() const noexcept {
    const double rate = sheaf_learning_rate.value_or(0.3 * learning_rate);
    return rate > 0 ? rate : learning_rate;
  }
};

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const TrainOptions& options) {
  const auto at_least_one = [](std::string_view name, Index value, Index most) {
    require(value >= 1 && value <= most, name, value, detail::concat("must be between 1 and ", most));
  };
  const auto rate = [](std::string_view name, double value) {
    require(value >= 0 && value < 1, name, value, "must be at least 0 and below 1");
  };
  const auto not_negative = [](std::string_view name, double value) {
    require(value >= 0 && std::isfinite(value), name, value, "must be finite and at least 0");
  };
  at_least_one("epochs", options.epochs, 1'000'000'000);
  at_least_one("patience", options.patience, 1'000'000'000);
  at_least_one("checkpoint_every", options.checkpoint_every, 1'000'000'000);
  at_least_one("training_samples", options.training_samples, 1024);
  at_least_one("samples", options.samples, 1024);
  detail::require_rates(options.learning_rate, options.sheaf_learning_rate.value_or(0));
  not_negative("weight_decay", options.weight_decay);
  not_negative("sheaf_decay", options.sheaf_decay);
  not_negative("kl_maximum", options.kl_maximum);
  rate("input_dropout", options.input_dropout);
  rate("dropout", options.dropout);
  require(options.threads >= 0, "threads", options.threads,
          "must be at least 0 (0: as many as the graph is worth)");
}

/// Why a training ended: its last epoch, no better epoch for `patience` epochs, or on_epoch.
enum class StopReason { epochs, patience, callback };
/// Its texts, in the order of the enumeration.
inline constexpr std::array<std::string_view, 3> stop_reason_names = {"epochs", "patience", "callback"};
/// Its text.
[[nodiscard]] constexpr std::string_view to_string(StopReason reason) {
  return stop_reason_names[static_cast<std::size_t>(reason)];
}

/// Outcome of training. The model ends with the parameters of the best epoch.
struct TrainResult {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  Index best_epoch = 0;                                 ///< without validation nodes the last one
  double validation_loss = 0, validation_accuracy = 0;  ///< of the best epoch; NaN without validation nodes
  double test_accuracy = 0, test_nll = 0;  ///< of the best epoch; NaN without test nodes
  /// Of the best epoch: the metric of stop_on, as EpochReport has it.
  double validation_metric = unknown, test_metric = unknown;
  /// Of a classification's best epoch, ECE with 15 bins; NaN without test nodes and for other losses, ROC AUC and average
  /// precision also where the test nodes are all of one class.
  double test_ece = unknown, test_roc_auc = unknown, test_average_precision = unknown, test_macro_f1 = unknown,
         test_brier = unknown;
  StopReason stop_reason = StopReason::epochs;
  std::vector<EpochReport> history;  ///< of all epochs, also those before `resume`
  double epoch_seconds = 0;     ///< per epoch, on average, without callbacks; of the epochs of this call
  double train_seconds = 0;     ///< of that embeddings for both, forward, backward, Adam
  double evaluate_seconds = 0;  ///< and prediction with `samples` samples; the two may overlap
};

}  // namespace sheafnn
