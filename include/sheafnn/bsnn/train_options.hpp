/// \file
/// TrainOptions and TrainResult: the options of a training and its result.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/epoch_report.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/stop_on.hpp"
#include "sheafnn/bsnn/training_state.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/nn/adam.hpp"

namespace sheafnn {

/// What a callback asks for: the next epoch, or the end of the training with the best parameters so far.
enum class EpochAction { keep_training, stop };

/// A function of an EpochReport that returns an EpochAction, or nothing to continue. It must not change the model.
class EpochCallback {
 public:
  EpochCallback() = default;
  EpochCallback(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)

  // clang-tidy does not see the constraint.
  // NOLINTBEGIN(google-explicit-constructor, bugprone-forwarding-reference-overload)
  template <class Call>
    requires(!std::same_as<std::remove_cvref_t<Call>, EpochCallback>)
  &&std::invocable<std::remove_cvref_t<Call>&, const EpochReport&> EpochCallback(Call&& call) {
    // NOLINTEND(google-explicit-constructor, bugprone-forwarding-reference-overload)
    using Own = std::remove_cvref_t<Call>;
    if constexpr (requires { static_cast<bool>(call == nullptr); }) {
      if (call == nullptr) return;
    }
    if constexpr (std::same_as<std::invoke_result_t<Own&, const EpochReport&>, EpochAction>) {
      call_ = std::forward<Call>(call);
    } else {
      static_assert(std::is_void_v<std::invoke_result_t<Own&, const EpochReport&>>,
                    "on_epoch returns EpochAction or nothing");
      call_ = [own = Own(std::forward<Call>(call))](const EpochReport& report) mutable {
        own(report);
        return EpochAction::keep_training;
      };
    }
  }

  /// Is there anything to call?
  [[nodiscard]] explicit operator bool() const noexcept { return call_ != nullptr; }
  /// \throws std::bad_function_call  there is nothing to call
  EpochAction operator()(const EpochReport& report) const { return call_(report); }

 private:
  std::function<EpochAction(const EpochReport&)> call_;
};

/// Options of train().
struct TrainOptions {
  Index epochs = 500;    ///< largest number of epochs
  Index patience = 200;  ///< stop after this many epochs without a better one; needs validation nodes
  StopOn stop_on = StopOn::loss;
  double learning_rate = 0.01;
  /// Rate of the sheaf learner's weights; 0: learning_rate (default: 0.3 learning_rate, so that the other weights settle
  /// first; math: "A posterior that is learned").
  std::optional<double> sheaf_learning_rate = {};
  double weight_decay = 5e-4;           ///< L2 decay of all weights except the sheaf learner's
  double sheaf_decay = 5e-4;            ///< L2 decay of the sheaf learner's weights
  WeightDecay decay = WeightDecay::l2;  ///< as L2 terms of the loss, or decoupled (AdamW)
  double input_dropout = 0.5;           ///< dropout rate of features
  double dropout = 0.3;                 ///< dropout rate of hidden features
  KlSchedule kl_schedule = KlSchedule::cyclical;
  double kl_maximum = 0.003;  ///< largest λ
  KlEstimator kl_estimator = KlEstimator::automatic;
  Index training_samples = 1;  ///< K, number of sheaves drawn per training step
  SampleLoss sample_loss = SampleLoss::expected;
  /// Number of training nodes or graphs in a step; an epoch takes all, in a new order. 0: one step with all.
  Index batch_size = 0;
  /// Number of layers in a row that the backward pass computes again, from the input of the first: less memory, the same
  /// results. 0: it keeps what all layers have computed.
  Index recompute_layers = 0;
  /// Keep in 16 bits what the backward pass reads of layers. This takes less memory, and derivatives are computed from values with 8
  /// significant bits. Not with recompute_layers.
  bool compress_layers = false;
  Index samples = 3;            ///< number of posterior samples averaged at evaluation
  std::uint64_t seed = 0;       ///< seed of dropout and noise; initial weights have another (SheafModel)
  int threads = 0;              ///< number of threads, at most; 0: chosen by the size of the graph. Results do not depend on it
  EpochCallback on_epoch = {};  ///< called after every epoch; may stop the training
  /// Called every `checkpoint_every` epochs and after the last one, before train() returns.
  std::function<void(const TrainingState&)> on_checkpoint = {};
  Index checkpoint_every = 10;
  /// The state to resume from; null: the training starts from the beginning. With the same model, data and options, the
  /// result has the same bits as an uninterrupted training. `epochs` and `patience` may grow.
  const TrainingState* resume = nullptr;

  /// The rate of the sheaf learner's weights.
  [[nodiscard]] double sheaf_rate() const noexcept {
    const double rate = sheaf_learning_rate.value_or(0.3 * learning_rate);
    return rate > 0 ? rate : learning_rate;
  }
};

/// Declares the options: see core/option.hpp. Callbacks and `resume` are not options. Takes any options.
template <class Visit, OptionsOf<TrainOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  constexpr double many = 1'000'000'000;
  visit({"epochs", "largest number of epochs", Range::between(1, many)}, options.epochs...);
  visit({"patience", "number of epochs without improvement after which training stops", Range::between(1, many)},
        options.patience...);
  visit({"stop_on",
         "validation metric that chooses the best epoch; presets take roc-auc where one of two classes has at "
         "least two thirds of the nodes"},
        options.stop_on...);
  visit({.key = "learning_rate", .summary = "Adam's learning rate", .range = Range::above(0), .flag = "--lr"},
        options.learning_rate...);
  visit({.key = "sheaf_learning_rate",
         .summary = "learning rate of the sheaf learner's weights",
         .range = Range::at_least(0, " (0: the rate of the other weights)"),
         .flag = "--sheaf-lr",
         .automatic = "0.3 of the other weights' rate",
         .since = "0.2"},
        options.sheaf_learning_rate...);
  visit({"weight_decay", "L2 decay of all weights but the sheaf learner's", Range::at_least(0)},
        options.weight_decay...);
  visit({"sheaf_decay", "L2 decay of the sheaf learner's weights", Range::at_least(0)}, options.sheaf_decay...);
  visit({.key = "decay",
         .summary = "how decays act: as L2 terms of the loss, or decoupled from the loss as in AdamW",
         .flag = ""},
        options.decay...);
  visit({"input_dropout", "dropout of features", Range::below(0, 1)}, options.input_dropout...);
  visit({"dropout", "dropout of hidden features", Range::below(0, 1)}, options.dropout...);
  visit({"kl_schedule",
         "weight of the KL term over the epochs: rising in cycles (cyclical), constant, or 0 (off)"},
        options.kl_schedule...);
  visit({.key = "kl_maximum",
         .summary = "largest weight of the KL term",
         .range = Range::at_least(0),
         .flag = "--kl-weight"},
        options.kl_maximum...);
  visit({"kl_estimator", "how the KL term is computed; automatic takes the closed form where there is one"},
        options.kl_estimator...);
  visit({.key = "sample_loss",
         .summary = "loss of several training samples: the mean of their losses (expected), or the loss of their "
                    "mean prediction (predictive)",
         .since = "0.2"},
        options.sample_loss...);
  visit({"training_samples", "number of sheaves drawn per training step", Range::between(1, 1024)},
        options.training_samples...);
  visit({.key = "batch_size",
         .summary = "number of training nodes or graphs in a step",
         .range = Range::between(0, many, " (0: all)"),
         .since = "0.3"},
        options.batch_size...);
  visit({.key = "recompute_layers",
         .summary = "number of layers in a row that the backward pass computes again, to take less memory",
         .range = Range::between(0, many, " (0: none)"),
         .since = "0.3"},
        options.recompute_layers...);
  visit({.key = "compress_layers",
         .summary = "keep what the backward pass reads of layers in 16 bits, to take less memory",
         .since = "0.3"},
        options.compress_layers...);
  visit({"samples", "number of posterior samples averaged at evaluation", Range::between(1, 1024)},
        options.samples...);
  visit({"seed", "seed of weights, dropout and noise"}, options.seed...);
  visit({"threads", "largest number of threads", Range::at_least(0, " (0: as many as the graph is worth)")},
        options.threads...);
  visit({.key = "checkpoint_every",
         .summary = "number of epochs between two checkpoints",
         .range = Range::between(1, many),
         .flag = "--every"},
        options.checkpoint_every...);
}

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const TrainOptions& options) {
  detail::require_rates(options.learning_rate, options.sheaf_learning_rate.value_or(0));
  check_ranges(options);
}

/// Why a training ended: its last epoch, no better epoch for `patience` epochs, or on_epoch.
enum class StopReason { epochs, patience, callback };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(StopReason) { return std::array{"epochs", "patience", "callback"}; }

/// The result of a training. The model ends with the parameters of the best epoch.
struct TrainResult {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  Index best_epoch = 0;                                 ///< the last epoch without validation nodes
  double validation_loss = 0, validation_accuracy = 0;  ///< of the best epoch; NaN without validation nodes
  double test_accuracy = 0, test_nll = 0;               ///< of the best epoch; NaN without test nodes
  /// The metric of stop_on in the best epoch, as in EpochReport.
  double validation_metric = unknown, test_metric = unknown;
  /// Figures of a classification's best epoch; the ECE has 15 bins. They are NaN without test nodes and for other losses;
  /// ROC AUC and average precision also where the test nodes are all of one class.
  double test_ece = unknown, test_roc_auc = unknown, test_average_precision = unknown, test_macro_f1 = unknown,
         test_brier = unknown;
  StopReason stop_reason = StopReason::epochs;
  std::vector<EpochReport> history;  ///< all epochs, including the epochs before `resume`
  double epoch_seconds = 0;          ///< mean time of an epoch of this call, without callbacks
  double train_seconds = 0;          ///< its share for embeddings for both, forward, backward, Adam
  double evaluate_seconds = 0;       ///< and prediction with `samples` samples; the two may overlap
};

}  // namespace sheafnn
