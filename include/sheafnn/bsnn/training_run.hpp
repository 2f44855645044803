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
#include "sheafnn/bsnn/training_record.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/layers/flow_options.hpp"

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
  [[nodiscard]] const std::vector<double>& best_predictions() const noexcept { return record_.best_predictions; }

 private:
  using Record = TrainingRecord<S>;
  using Clock = typename Record::Clock;
  /// The mean predictions of the epoch.
  [[nodiscard]] MatrixView<const double> predictions() const {
    return {record_.predictions.data(), static_cast<Index>(record_.predictions.size()) / outputs_, outputs_};
  }

  /// The loop of the file comment.
  TrainResult trained() {
    const auto begin = Clock::now();
    const auto objective = [&](const BegunPass<Network<Model>>& pass) { compute_objective(pass); };
    if (options_.resume != nullptr) {
      cut_batches(0);
      record_.restore(*options_.resume, step_count());
    }
    const Index first = record_.epochs();
    bool go_on = first == 0 || !record_.is_last(first - 1);
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
                                      .compress_layers = options_.compress_layers,
                                      .nodes = nodes_of_targets(loss_, evaluated_)};
      const bool last = epoch + 1 == options_.epochs;
      if (!last) prepare(epoch + 1);
      go_on = schedule_.run(
          evaluation, last ? nullptr : &pass_, [&](const BegunPass<Network<Model>>& pass) { evaluate(pass); },
          [&] { return record_.finish_epoch(schedule_.execution(), epoch); }, objective);
    }
    record_.finish(begin, first);
    return std::move(record_.result);
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
    pass_.compress_layers = options_.compress_layers;
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
    batches_ = target_batches(std::move(nodes), size, options_.seed, epoch);
  }
  /// The number of steps of an epoch.
  [[nodiscard]] Index step_count() const { return std::max<Index>(1, static_cast<Index>(batches_.size())); }

  /// L and its derivative.
  void compute_objective(const BegunPass<Network<Model>>& pass) {
    const auto start = Clock::now();
    elbo_ =
        elbo_of_begun(pass, loss_, targets_,
                      {kl_weight_, options_.kl_estimator, options_.training_samples, options_.sample_loss}, work_);
    record_.result.train_seconds += Record::seconds_since(start);
  }

  /// θ ← Adam(θ, ∇L); begins the epoch's report.
  void step(Index epoch) {
    const auto start = Clock::now();
    check_finite(elbo_, epoch, record_.adam.step_count > 0);
    record_.step(schedule_.execution(), schedule_.network().gradient(), epoch);
    const double share = 1 / static_cast<double>(step_count());
    of_epoch_.objective += share * elbo_.objective;
    of_epoch_.loss += share * elbo_.loss;
    of_epoch_.kl += share * elbo_.kl;
    record_.report = {epoch, of_epoch_.objective, of_epoch_.loss, of_epoch_.kl, kl_weight_};
    record_.result.train_seconds += Record::seconds_since(start);
  }

  /// Mean predictions over posterior samples with the current parameters, for the report.
  void evaluate(const BegunPass<Network<Model>>& pass) {
    const auto start = Clock::now();
    Network<Model>& network = pass.network();
    EpochReport& report = record_.report;
    std::vector<double>& means = record_.predictions;
    const MatrixView<double> sums(means.data(), predictions().rows(), outputs_);
    std::fill(means.begin(), means.end(), 0.0);
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
    for (double& p : means) p /= count;
    check_finite(means, report.epoch);
    const Score validation = score_of(loss_, predictions(), split_.validation);
    report.validation_loss = validation.loss;
    report.validation_accuracy = validation.score;
    report.test_accuracy = score_of(loss_, predictions(), split_.test).score;
    stop_metric_.report(predictions(), report);
    record_.result.evaluate_seconds += Record::seconds_since(start);
  }

  PlanOfTraining<Model> plan_;  ///< constructed before the networks, which need it
  const LossType& loss_;
  const Split& split_;
  const TrainOptions& options_;
  Index outputs_;  ///< C, or the values per prediction
  EpochSchedule<Model> schedule_;
  bool validated_, tested_;  ///< are there validation and test nodes?
  Record record_;
  std::vector<std::int32_t> evaluated_;  ///< validation and test nodes; empty: all nodes
  StopMetric<LossType> stop_metric_;
  LossWork<LossType, Model> work_, evaluation_work_;
  ForwardPass<S> pass_;
  std::span<const std::int32_t> targets_;  ///< of the step
  double kl_weight_ = 0;
  std::vector<std::vector<std::int32_t>> batches_;  ///< of the epoch; empty: one step takes all training nodes
  Elbo elbo_, of_epoch_;                            ///< of a step, and the mean over the epoch's steps
};

template <class Model, class LossType>
TrainingRun<Model, LossType>::TrainingRun(Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                                          const LossType& loss, const Split& split, const TrainOptions& options)
    : plan_(model, graph, features, split.train),
      loss_(loss),
      split_(split),
      options_(options),
      outputs_(prediction_columns(loss, model.options().classes)),
      schedule_(model, graph, features, options.threads > 0 ? options.threads : suggested_threads(model, graph)),
      validated_(has_nodes(loss, split.validation)),
      tested_(has_nodes(loss, split.test)),
      record_(model.parameters(), options, validated_, target_count(loss, output_rows<Model>(graph)) * outputs_),
      stop_metric_(loss, split, options.stop_on) {
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
    record_.restore_first_values();
    throw std::runtime_error(concat("training diverged in epoch ", record_.epochs(), ": ", error.what()));
  } catch (...) {
    record_.restore_first_values();
    throw;
  }
}

}  // namespace sheafnn::detail
