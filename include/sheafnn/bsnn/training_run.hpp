/// \file
/// TrainingRun: trains until patience, a callback or the last epoch, then takes the best epoch's parameters. trained() is the
/// loop. Epoch t:
///
///     for each batch b, by default one:  θ ← Adam(θ, ∇L_{t,b}(θ))
///     validation loss of θ;  L_{t+1,1}(θ) and its derivative
///
/// L: elbo.hpp. EpochSchedule chooses the faster order of the two parts of the last line, or runs them at the same time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/epoch_schedule.hpp"
#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/seen_features.hpp"
#include "sheafnn/bsnn/stop_metric.hpp"
#include "sheafnn/bsnn/target_batches.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/bsnn/training_errors.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/layers/flow_options.hpp"
#include "sheafnn/nn/adam.hpp"

namespace sheafnn::detail {

/// See the file comment. \tparam LossType  a Loss over the model's scalars
template <class Model, class LossType>
class TrainingRun {
 public:
  using S = typename Model::Scalar;

  TrainingRun(Model& model, const GraphOf<Model>& graph, const NodeFeatures& features, const LossType& loss,
              const Split& split, const TrainOptions& options);

  /// Trains, and calls finish(result), which completes the result. After an exception the model has its original
  /// parameters.
  template <class Finish>
  TrainResult run(const Finish& finish);
  /// Mean predictions of the best epoch, n × C, for validation and test nodes; for all nodes if there are neither.
  [[nodiscard]] const std::vector<double>& best_predictions() const noexcept { return best_predictions_; }

 private:
  using Clock = std::chrono::steady_clock;
  using View = MatrixView<const double>;

  /// The loop of the file comment.
  TrainResult trained() {
    const auto begin = Clock::now();
    const auto objective = [&](const BegunPass<Network<Model>>& pass) { compute_objective(pass); };
    if (options_.resume != nullptr) restore(*options_.resume);
    const Index first = static_cast<Index>(result_.history.size());
    bool go_on = first == 0 || !is_last(first - 1);
    if (go_on) {
      prepare(first);
      schedule_.first(pass_, objective);
    }
    for (Index epoch = first; go_on; ++epoch) {
      schedule_.begin_epoch();
      step(epoch);
      for (std::size_t b = 1; b < batches_.size(); ++b) {
        take(batches_[b]);
        pass_.seed += step_seed;  // every step draws its own dropouts and sheaves
        compute_objective(schedule_.network().begin(pass_));
        step(epoch);
      }
      const ForwardPass<S> evaluation{.seed = options_.seed,
                                      .epoch = pass_.epoch,
                                      .recompute_layers = options_.recompute_layers,
                                      .nodes = nodes_of_targets(loss_, evaluated_)};
      const bool last = epoch + 1 == options_.epochs;
      if (!last) prepare(epoch + 1);
      go_on = schedule_.run(
          evaluation, last ? nullptr : &pass_, [&](const BegunPass<Network<Model>>& pass) { evaluate(pass); },
          [&] { return finish_epoch(epoch); }, objective);
    }
    std::copy(best_values_.begin(), best_values_.end(), parameters_.values().begin());
    const double count =
        static_cast<double>(std::max<Index>(1, static_cast<Index>(result_.history.size()) - first));
    result_.epoch_seconds = (seconds_since(begin) - callback_seconds_) / count;
    result_.train_seconds /= count;
    result_.evaluate_seconds /= count;
    return std::move(result_);
  }

  /// Difference between the seeds of an epoch's steps. It is odd, so all seeds are different.
  static constexpr std::uint64_t step_seed = 0x9E3779B97F4A7C15;

  /// Sets the pass, the batches and λ of an epoch.
  void prepare(Index epoch) {
    pass_.seed = options_.seed;
    pass_.epoch = static_cast<std::uint32_t>(epoch);
    pass_.training = true;
    pass_.overwrites = !has_own_targets<LossType>;  // a loss of pairs reads what the sheaf learner reads
    pass_.recompute_layers = options_.recompute_layers;
    pass_.input_dropout = options_.input_dropout;
    pass_.dropout = options_.dropout;
    cut_batches(epoch);
    take(batches_.empty() ? split_.train : batches_.front());
    of_epoch_ = {};
    const bool draws = Model::bayesian || schedule_.network().draws();
    kl_weight_ = draws ? kl_weight(options_.kl_schedule, options_.kl_maximum, epoch) : 0.0;
  }

  /// Sets the targets of a step.
  void take(const std::vector<std::int32_t>& targets) {
    targets_ = targets;
    pass_.nodes = nodes_of_targets(loss_, targets);
  }
  /// Sets the training nodes of the epoch's steps, in an order that depends on seed and epoch. Empty: one step takes all nodes.
  void cut_batches(Index epoch) {
    const Index size = options_.batch_size;
    batches_.clear();
    if (size == 0 || size >= static_cast<Index>(split_.train.size())) return;
    std::vector<std::int32_t> nodes;
    std::copy_if(split_.train.begin(), split_.train.end(), std::back_inserter(nodes),
                 [&](std::int32_t u) { return loss_.known(u); });
    const std::vector<std::int32_t> order = target_order(std::move(nodes), options_.seed, epoch);
    for (Index b = 0; b < target_batch_count(order, size); ++b) batches_.push_back(target_batch(order, size, b));
  }
  /// The number of steps of an epoch.
  [[nodiscard]] Index step_count() const { return std::max<Index>(1, static_cast<Index>(batches_.size())); }

  /// L and its derivative.
  void compute_objective(const BegunPass<Network<Model>>& pass) {
    const auto start = Clock::now();
    elbo_ =
        elbo_of_begun(pass, loss_, targets_,
                      {kl_weight_, options_.kl_estimator, options_.training_samples, options_.sample_loss}, work_);
    result_.train_seconds += seconds_since(start);
  }

  /// θ ← Adam(θ, ∇L); begins the epoch's report.
  void step(Index epoch) {
    const auto start = Clock::now();
    const bool stepped = adam_.step_count > 0;
    check_finite(elbo_, epoch, stepped);
    const Buffer<S>& gradient = schedule_.network().gradient();
    const bool finite = adam_.step(schedule_.execution(), parameters_, gradient, options_.weight_decay,
                                   options_.sheaf_decay, options_.decay);
    if (!finite) throw_not_finite(parameters_, gradient, epoch, stepped);
    const double share = 1 / static_cast<double>(step_count());
    of_epoch_.objective += share * elbo_.objective;
    of_epoch_.loss += share * elbo_.loss;
    of_epoch_.kl += share * elbo_.kl;
    report_ = {epoch, of_epoch_.objective, of_epoch_.loss, of_epoch_.kl, kl_weight_};
    result_.train_seconds += seconds_since(start);
  }

  /// Mean predictions over posterior samples with the current parameters, for the report.
  void evaluate(const BegunPass<Network<Model>>& pass) {
    const auto start = Clock::now();
    Network<Model>& network = pass.network();
    const MatrixView<double> sums(predictions_.data(), view(predictions_).rows(), outputs_);
    std::fill(predictions_.begin(), predictions_.end(), 0.0);
    // Without nodes to score, one sample of all nodes is computed, to check that the parameters give finite outputs.
    const Index samples = validated_ || tested_ ? options_.samples : 1;
    begin_loss(network, loss_, evaluated_, evaluation_work_);
    pass.draw_samples(samples, [&](const MatrixView<S>& outputs) {
      if constexpr (has_own_targets<LossType>) {
        loss_.predict(network, outputs, evaluated_, sums, evaluation_work_);
      } else {
        loss_.predict(network.execution(), outputs, network.nodes(), sums);
      }
    });
    const double count = static_cast<double>(network.sample_count(samples));
    for (double& p : predictions_) p /= count;
    check_finite(predictions_, report_.epoch);
    const Score validation = score_of(loss_, view(predictions_), split_.validation);
    report_.validation_loss = validation.loss;
    report_.validation_accuracy = validation.score;
    report_.test_accuracy = score_of(loss_, view(predictions_), split_.test).score;
    stop_metric_.report(view(predictions_), report_);
    result_.evaluate_seconds += seconds_since(start);
  }

  /// \returns whether training continues
  bool finish_epoch(Index epoch) {
    result_.history.push_back(report_);
    keep_if_best();
    const auto start = Clock::now();
    bool last = is_last(epoch);
    if (options_.on_epoch && options_.on_epoch(report_) == EpochAction::stop && !last) {
      result_.stop_reason = StopReason::callback;
      last = true;
    }
    if (options_.on_checkpoint && (last || (epoch + 1) % options_.checkpoint_every == 0)) {
      options_.on_checkpoint(state());
    }
    callback_seconds_ += seconds_since(start);
    return !last;
  }

  /// Is a training over after this epoch?
  bool is_last(Index epoch) {
    if (epoch + 1 >= options_.epochs) return true;  // the stop reason of a new result
    if (epoch - result_.best_epoch < options_.patience) return false;
    result_.stop_reason = StopReason::patience;
    return true;
  }

  [[nodiscard]] TrainingState state() const {
    const auto numbers = [](const Buffer<S>& values) { return std::vector<double>(values.begin(), values.end()); };
    return {options_.seed,
            result_.history,
            numbers(parameters_.values()),
            numbers(adam_.first_moment),
            numbers(adam_.second_moment),
            result_.best_epoch,
            numbers(best_values_),
            best_predictions_,
            options_.stop_on};
  }
  void restore(const TrainingState& state) {
    const auto copy = [](const std::vector<double>& from, Buffer<S>& to) {
      std::transform(from.begin(), from.end(), to.begin(), [](double x) { return static_cast<S>(x); });
    };
    copy(state.parameters, parameters_.values());
    copy(state.first_moment, adam_.first_moment);
    copy(state.second_moment, adam_.second_moment);
    copy(state.best_parameters, best_values_);
    cut_batches(0);
    adam_.step_count = static_cast<Index>(state.history.size()) * step_count();
    best_predictions_ = state.best_predictions;
    result_.history.assign(state.history.begin(), state.history.end());
    set_best(state.history[static_cast<std::size_t>(state.best_epoch)]);
  }

  void restore_first_values() {
    std::copy(first_values_.begin(), first_values_.end(), parameters_.values().begin());
  }

  [[nodiscard]] double stopping_score(const EpochReport& report) const {
    if (options_.stop_on == StopOn::loss) return report.validation_loss;
    if (options_.stop_on == StopOn::accuracy) return -report.validation_accuracy;
    return -metric_score(options_.stop_on, report.validation_metric);
  }
  void set_best(const EpochReport& report) {
    best_score_ = stopping_score(report);
    result_.best_epoch = report.epoch;
    result_.validation_loss = report.validation_loss;
    result_.validation_accuracy = report.validation_accuracy;
    result_.test_accuracy = report.test_accuracy;
    result_.validation_metric = report.validation_metric;
    result_.test_metric = report.test_metric;
  }

  /// Without validation nodes every epoch is the best so far.
  [[nodiscard]] bool is_best() const {
    return !validated_ || is_better_epoch(report_.epoch == 0, stopping_score(report_), report_.validation_loss,
                                          best_score_, result_.validation_loss);
  }
  void keep_if_best() {
    if (!is_best()) return;
    set_best(report_);
    std::copy(predictions_.begin(), predictions_.end(), best_predictions_.begin());
    const S* values = parameters_.values().data();
    S* best = best_values_.data();
    for (const ParameterInfo& info : parameters_.info()) {  // cut among threads as Adam cuts them
      parallel_for(schedule_.execution(), info.size, adam_grain, [&](Index begin, Index end) {
        std::copy(values + info.offset + begin, values + info.offset + end, best + info.offset + begin);
      });
    }
  }

  [[nodiscard]] static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  [[nodiscard]] View view(const std::vector<double>& predictions) const {
    return {predictions.data(), static_cast<Index>(predictions.size()) / outputs_, outputs_};
  }

  PlanOfTraining<Model> plan_;  ///< constructed before the networks, which need it
  ParameterSet<S>& parameters_;
  const LossType& loss_;
  const Split& split_;
  const TrainOptions& options_;
  Index outputs_;  ///< C, or the values per prediction
  EpochSchedule<Model> schedule_;
  Adam<S> adam_;
  Buffer<S> first_values_, best_values_;
  std::vector<std::int32_t> evaluated_;  ///< validation and test nodes; empty: all nodes
  bool validated_, tested_;              ///< are there such nodes?
  std::vector<double> predictions_, best_predictions_;
  StopMetric<LossType> stop_metric_;
  LossWork<LossType, Model> work_, evaluation_work_;
  ForwardPass<S> pass_;
  std::span<const std::int32_t> targets_;  ///< of the step
  double kl_weight_ = 0;
  std::vector<std::vector<std::int32_t>> batches_;  ///< of the epoch; empty: one step takes all training nodes
  Elbo elbo_, of_epoch_;                            ///< of a step, and the mean over the epoch's steps
  EpochReport report_;
  TrainResult result_;
  double best_score_ = std::numeric_limits<double>::infinity();
  double callback_seconds_ = 0;
};

template <class Model, class LossType>
TrainingRun<Model, LossType>::TrainingRun(Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                                          const LossType& loss, const Split& split, const TrainOptions& options)
    : plan_(model, graph, features, split.train),
      parameters_(model.parameters()),
      loss_(loss),
      split_(split),
      options_(options),
      outputs_(prediction_columns(loss, model.options().classes)),
      schedule_(model, graph, features, options.threads > 0 ? options.threads : suggested_threads(model, graph)),
      adam_(parameters_.size(), options.learning_rate),
      first_values_(parameters_.values()),
      best_values_(parameters_.values()),
      validated_(has_nodes(loss, split.validation)),
      tested_(has_nodes(loss, split.test)),
      predictions_(static_cast<std::size_t>(target_count(loss, output_rows<Model>(graph)) * outputs_)),
      best_predictions_(predictions_),
      stop_metric_(loss, split, options.stop_on) {
  constexpr Index long_training = 10'000;  // epochs; the history of a longer training is reallocated as it grows
  adam_.sheaf_learning_rate = options.sheaf_rate();
  result_.history.reserve(static_cast<std::size_t>(std::min(options.epochs, long_training)));
  std::merge(split.validation.begin(), split.validation.end(), split.test.begin(), split.test.end(),
             std::back_inserter(evaluated_));
}

template <class Model, class LossType>
template <class Finish>
TrainResult TrainingRun<Model, LossType>::run(const Finish& finish) {
  try {
    TrainResult result = trained();
    finish(result);
    plan_.keep();
    return result;
  } catch (const FlowError& error) {
    restore_first_values();
    throw std::runtime_error(concat("training diverged in epoch ", result_.history.size(), ": ", error.what()));
  } catch (...) {
    restore_first_values();
    throw;
  }
}

}  // namespace sheafnn::detail
