/// \file
/// Training of a batch of models of one architecture on one graph, side by side, each with its own split, seed,
/// rates and early stopping. A step is θ ← Adam(θ, ∇L(θ)) (L: bsnn/elbo.hpp). An epoch of all of them, evaluation
/// and optimiser included, is recorded once and replayed. The host reads their progress every few epochs (for one
/// model on the CPU: bsnn/trainer.hpp). BatchTrainer() throws std::invalid_argument for options or data that do not
/// fit; a run that diverged has Outcome::error.
///
/// The evaluation of an epoch and the training pass of the next one read the same parameters. They are recorded
/// together, before the step of the optimiser; on small graphs they run side by side.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/batch/network.hpp"
#include "sheafnn/batch/optimiser.hpp"
#include "sheafnn/batch/training.hpp"
#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/stop_metric.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/bsnn/training_run.hpp"
#include "sheafnn/graph/dataset.hpp"

namespace sheafnn::batch {

/// When the evaluation of an epoch runs. Results are the same.
enum class EvaluationOrder {
  automatic,  ///< during the next training pass on small graphs
  beside,     ///< during the next training pass, with arrays of its own
  in_turn     ///< before the next training pass
};

/// A batch of trainings under way.
template <class Executor, BatchModel<Executor> Model>
class BatchTrainer {
 public:
  using S = typename Model::Scalar;

  /// Largest number of epochs between two readings of the progress; fewer where an epoch takes long.
  static constexpr Index window = 16;

  BatchTrainer(const BatchTrainer&) = delete;
  BatchTrainer& operator=(const BatchTrainer&) = delete;
  ~BatchTrainer() { executor_.forget(); }

  /// \param features  n × p, may be released afterwards
  /// \param loss      its labels and weights must outlive the trainer
  /// \throws std::invalid_argument  no training, data or options that do not fit, or models of different
  ///                                architecture
  BatchTrainer(Executor& executor, const GraphOf<Model>& graph, const NodeFeatures& features,
               const Classification& loss, std::span<const Training<Model>> trainings,
               EvaluationOrder order = EvaluationOrder::automatic)
      : executor_(executor),
        nodes_(graph.node_count()),
        loss_(loss),
        trainings_(trainings.begin(), trainings.end()),
        roles_(detail::checked_roles(nodes_, loss, trainings)),
        first_(*trainings.front().model),
        count_(static_cast<Index>(trainings.size())),
        recordable_(recordable(first_)),
        beside_(recordable_ &&
                (order == EvaluationOrder::automatic ? small(graph) : order == EvaluationOrder::beside)),
        network_(executor, first_, graph, features, targets(), batch_size(graph), any_dropout()),
        adam_(executor, first_.parameters(), count_),
        progress_(executor, "progress", std::vector<detail::Progress>(trainings.size())),
        losses_(executor, "history", count_),
        history_(executor, "history", count_ * window),
        best_(executor, "best parameters", count_ * first_.parameters().size()),
        best_probability_(executor, "predictions", count_ * predictions()),
        report_tree_(executor, count_, nodes_, detail::evaluation_columns) {
    if (beside_) evaluation_.emplace(network_, first_, targets(), evaluation_copies(graph));
    std::vector<S> values;
    std::vector<Run> runs;
    for (std::size_t i = 0; i < trainings_.size(); ++i) {
      const auto& own = trainings_[i].model->parameters().values();
      values.insert(values.end(), own.begin(), own.end());
      runs.push_back(run_of(i));
    }
    network_.parameters().upload(values);
    best_.upload(values);
    network_.runs().upload(runs);
  }

  /// The same for the labels of a dataset, which must outlive the trainer.
  BatchTrainer(Executor& executor, const NodeDataset<GraphOf<Model>>& data,
               std::span<const Training<Model>> trainings, EvaluationOrder order = EvaluationOrder::automatic)
      : BatchTrainer(executor, data.graph, data.features, detail::checked_loss(data, trainings), trainings,
                     order) {}
  BatchTrainer(Executor&, const NodeDataset<GraphOf<Model>>&&, std::span<const Training<Model>>,
               EvaluationOrder = EvaluationOrder::automatic) = delete;  // it would dangle

  /// Trains until every run has finished. A run that on_epoch stops ends with the epochs that are done by then, up to
  /// `window` - 1 more.
  std::vector<Outcome> train() {
    using Clock = std::chrono::steady_clock;
    std::vector<Outcome> outcomes(trainings_.size());
    std::vector<std::int64_t> seen(trainings_.size());
    record_epoch();
    Index longest = 0;  // the replay after the one that trains an epoch ends it
    for (const Training<Model>& t : trainings_) longest = std::max(longest, t.options.epochs + 1);
    const auto start = Clock::now();
    Clock::duration callbacks{};
    next_epoch();  // which ends no epoch
    Index replays = 1, step = 1;
    for (bool active = true; active;) {
      const auto before = Clock::now();
      const Index todo = std::min(step, longest - replays);
      for (Index k = 0; k < todo; ++k) next_epoch();
      replays += todo;
      std::vector<detail::Progress> progress = progress_.download();
      const std::vector<EpochReport> reports = history_.download();
      const auto done = Clock::now();
      bool stopped = false;
      active = false;
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const bool stop = take_history(i, progress[i], reports, seen[i], outcomes[i]) == EpochAction::stop;
        if (stop && (progress[i].active != 0 || progress[i].failure != detail::no_failure)) {
          progress[i].active = 0;
          progress[i].failure = detail::no_failure;  // of an epoch after that at which it was stopped
          outcomes[i].result.stop_reason = StopReason::callback;
          stopped = true;
        }
        active = active || progress[i].active != 0;
      }
      callbacks += Clock::now() - done;
      if (stopped) progress_.upload(progress);
      if (Clock::now() - before < std::chrono::milliseconds(50)) step = std::min(2 * step, window);
    }
    executor_.forget();
    const double seconds = std::chrono::duration<double>(Clock::now() - start - callbacks).count();
    finish(outcomes, seconds / static_cast<double>(replays));
    return outcomes;
  }

  /// Records epoch() for executor.replay(), after a trial with all runs at rest, which loads what the executor needs.
  void record_epoch() {
    if (recordable_) {
      std::vector<detail::Progress> resting(trainings_.size());
      for (detail::Progress& p : resting) p.active = 0;
      progress_.upload(resting);
      epoch();
      executor_.synchronise();
    }
    progress_.upload(std::vector<detail::Progress>(trainings_.size()));
    executor_.launch(1, count_, detail::BeginTraining{network_.runs().data(), weighs_kl()});
    if (recordable_) executor_.record([this] { epoch(); });  // the network reads no result of its launches
  }

  /// Enqueues the end of the last epoch of all runs and the beginning of the next epoch. These are evaluation and training
  /// pass, then the step of the optimiser.
  void epoch() {
    if (beside_) {
      executor_.side_by_side([&] { train_pass(); }, [&] { end_epoch(*evaluation_); });
    } else {
      end_epoch(network_);
      train_pass();
    }
    Run* runs = network_.runs().data();
    executor_.launch_together(
        adam_.step(runs, progress_.data(), network_.gradient().data(), network_.parameters().data()),
        Teams{1, count_, max_lanes,
              detail::EndStep{runs, progress_.data(), weighs_kl(), network_.output().nll().partial(),
                              network_.kl().partial(), kl_of_layers(), network_.pairs(), losses_.data()}});
  }

  [[nodiscard]] BatchNetwork<Executor, Model>& network() noexcept { return network_; }

 private:
  using Network = BatchNetwork<Executor, Model>;

  /// Are passes of its networks sequences of launches that do not depend on their results?
  [[nodiscard]] static bool recordable(const Model& model) {
    if constexpr (requires { detail::ModelLayers<Executor, Model>::recordable(model); }) {
      return detail::ModelLayers<Executor, Model>::recordable(model);
    } else {
      return true;
    }
  }
  void next_epoch() {
    if (recordable_) {
      executor_.replay();
    } else {
      epoch();
    }
  }
  void train_pass() {
    network_.train_pass(any(&TrainOptions::input_dropout), any(&TrainOptions::dropout),
                        trainings_.front().options.kl_estimator);
  }
  /// Ends the epoch of the last step: evaluates, reports, and keeps the best parameters so far.
  void end_epoch(Network& network) {
    network.evaluate(trainings_.front().options.samples, 1);
    const detail::BatchOutput<Executor, S>& output = network.output();
    report_tree_.run(executor_, output.report().data(), true);
    executor_.launch_teams(1, count_, max_lanes,
                           detail::EndEpoch{network_.runs().data(), progress_.data(), weighs_kl(), losses_.data(),
                                            report_tree_.partial(), adam_.failed(), adam_.tensors(),
                                            history_.data(), window});
    executor_.launch(network_.parameter_count() + predictions(), count_,
                     detail::KeepBest<S>{progress_.data(), network_.parameter_count(),
                                         network_.parameters().data(), best_.data(), predictions(),
                                         output.probabilities().data(), best_probability_.data()});
  }

  /// The KL terms of the layers, of networks whose layers may draw something.
  [[nodiscard]] detail::PartialRows kl_of_layers() const {
    if constexpr (requires { network_.kl_of_layers(); }) {
      return network_.kl_of_layers().partial();
    } else {
      return {};
    }
  }
  [[nodiscard]] NodeTargetLists targets() const { return {loss_.labels(), roles_.roles, loss_.class_weights()}; }
  /// Does the objective have a KL term?
  [[nodiscard]] bool weighs_kl() const { return Model::bayesian || Network::draws(first_); }
  /// How many samples passes draw.
  [[nodiscard]] Index samples(Index TrainOptions::*count) const {
    return Network::draws(first_) ? trainings_.front().options.*count : 1;
  }
  /// Does a device have room for an evaluation during a training pass?
  [[nodiscard]] bool small(const GraphOf<Model>& graph) const {
    return samples(&TrainOptions::samples) <= detail::samples_at_once(first_, graph, count_);
  }
  /// Samples of an evaluation that are computed at the same time.
  [[nodiscard]] Index evaluation_copies(const GraphOf<Model>& graph) const {
    return detail::max_copies(first_, graph, count_, samples(&TrainOptions::samples));
  }
  [[nodiscard]] BatchSize batch_size(const GraphOf<Model>& graph) const {
    const Index training = samples(&TrainOptions::training_samples);
    return {count_, training, beside_ ? training : std::max(training, evaluation_copies(graph))};
  }
  [[nodiscard]] bool any(double TrainOptions::*rate) const {
    return std::any_of(trainings_.begin(), trainings_.end(),
                       [=](const Training<Model>& t) { return t.options.*rate > 0; });
  }
  [[nodiscard]] bool any_dropout() const {
    return any(&TrainOptions::input_dropout) || any(&TrainOptions::dropout);
  }
  [[nodiscard]] Index predictions() const { return nodes_ * first_.options().classes; }

  [[nodiscard]] Run run_of(std::size_t i) const {
    const TrainOptions& options = trainings_[i].options;
    const Split& split = *trainings_[i].split;
    Run r;
    r.seed = options.seed;
    r.split = roles_.row[i];
    r.input_dropout = DropoutRule(options.input_dropout);
    r.dropout = DropoutRule(options.dropout);
    const detail::SetWeight validation = detail::set_weight(loss_, split.validation);
    r.training_share = 1 / detail::set_weight(loss_, split.train).weight;
    r.validation_weight = validation.weight;
    r.validation_nodes = validation.nodes;
    r.test_nodes = detail::set_weight(loss_, split.test).nodes;
    r.learning_rate = options.learning_rate;
    r.sheaf_learning_rate = options.sheaf_rate();
    r.weight_decay = options.weight_decay;
    r.sheaf_decay = options.sheaf_decay;
    r.decay = options.decay;
    r.kl_schedule = options.kl_schedule;
    r.kl_maximum = options.kl_maximum;
    r.by_accuracy = options.stop_on == StopOn::accuracy ? 1 : 0;
    r.epochs = options.epochs;
    r.patience = options.patience;
    return r;
  }

  /// Epochs that were finished since the last reading. \returns stop when on_epoch said so for one of them; it is not
  /// called again then
  EpochAction take_history(std::size_t i, const detail::Progress& progress,
                           const std::vector<EpochReport>& reports, std::int64_t& seen, Outcome& outcome) {
    EpochAction action = EpochAction::keep_training;
    const TrainOptions& options = trainings_[i].options;
    for (; seen < progress.epochs; ++seen) {
      outcome.result.history.push_back(
          reports[i * static_cast<std::size_t>(window) + static_cast<std::size_t>(seen % window)]);
      if (action != EpochAction::stop && options.on_epoch)
        action = options.on_epoch(outcome.result.history.back());
    }
    if (action != EpochAction::stop && progress.failure != detail::no_failure && outcome.error.empty()) {
      const bool stepped = progress.epochs > 0 || progress.failure == detail::probability_not_finite;
      outcome.error = sheafnn::detail::divergence(static_cast<Index>(progress.epochs),
                                                  failed_quantity(progress) + " is not finite", stepped);
    }
    outcome.result.best_epoch = static_cast<Index>(progress.best_epoch);
    return action;
  }
  [[nodiscard]] std::string failed_quantity(const detail::Progress& progress) const {
    switch (progress.failure) {
      case detail::nll_not_finite:
        return "the loss";
      case detail::kl_not_finite:
        return "the KL term";
      case detail::gradient_not_finite:
        return "the gradient of " + first_.parameters().info(progress.failed_tensor).name + ", or its square,";
      default:
        return "a prediction";
    }
  }

  /// Results of the best epochs, and their parameters into the models.
  void finish(std::vector<Outcome>& outcomes, double epoch_seconds) {
    const std::vector<S> best = best_.download();
    const std::vector<double> probability = best_probability_.download();
    const Index size = network_.parameter_count(), classes = first_.options().classes;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      TrainResult& r = outcomes[i].result;
      r.train_seconds = r.epoch_seconds = epoch_seconds;
      if (!outcomes[i].error.empty()) continue;
      const bool all_epochs = static_cast<Index>(r.history.size()) == trainings_[i].options.epochs;
      if (r.stop_reason != StopReason::callback && !all_epochs) r.stop_reason = StopReason::patience;
      const EpochReport& report = r.history.at(static_cast<std::size_t>(r.best_epoch));
      r.validation_loss = report.validation_loss;
      r.validation_accuracy = report.validation_accuracy;
      r.test_accuracy = report.test_accuracy;
      const Index run = static_cast<Index>(i);
      const std::span<const double> own(probability.data() + run * predictions(),
                                        static_cast<std::size_t>(predictions()));
      const std::vector<std::int32_t>& test = trainings_[i].split->test;
      r.test_nll =
          sheafnn::detail::score_of(loss_, MatrixView<const double>(own.data(), nodes_, classes), test).loss;
      r.test_ece = sheafnn::detail::calibration_error(own, classes, loss_.labels(), test);
      sheafnn::detail::add_test_metrics(r, loss_, own, classes, test);
    }
    std::vector<FeaturePlan> plans(outcomes.size(), network_.feature_plan());
    for (std::size_t i = 0; i < outcomes.size(); ++i) {  // when nothing can fail any more
      if (!outcomes[i].error.empty()) continue;
      trainings_[i].model->set_feature_plan(std::move(plans[i]));
      const auto from = best.begin() + static_cast<Index>(i) * size;
      std::copy_n(from, size, trainings_[i].model->parameters().values().begin());
    }
  }

  Executor& executor_;
  Index nodes_;
  Classification loss_;
  std::vector<Training<Model>> trainings_;
  detail::SplitRoles roles_;
  const Model& first_;
  Index count_;
  bool recordable_;
  bool beside_;  ///< evaluations run during training passes, in a network of their own
  BatchNetwork<Executor, Model> network_;
  std::optional<BatchNetwork<Executor, Model>> evaluation_;
  detail::BatchAdam<Executor, S> adam_;
  Array<Executor, detail::Progress> progress_;
  Array<Executor, detail::Losses> losses_;
  Array<Executor, EpochReport> history_;
  Array<Executor, S> best_;
  Array<Executor, double> best_probability_;
  detail::ColumnTree<Executor, double> report_tree_;
};

/// Trains a batch on an executor. Validation and test sets may be empty, as in sheafnn::train. When this throws, all
/// models are as they were.
///
/// \param loss  a Classification, with or without class weights; other losses are refused
/// \throws std::invalid_argument  see BatchTrainer
template <class Executor, BatchModel<Executor> Model, Loss<typename Model::Scalar> LossType>
std::vector<Outcome> train_batch(Executor& executor, const GraphOf<Model>& graph, const NodeFeatures& features,
                                 const LossType& loss, std::span<const Training<Model>> trainings) {
  return BatchTrainer<Executor, Model>(executor, graph, features, detail::classification(loss), trainings).train();
}
/// The same for the labels of a dataset.
template <class Executor, BatchModel<Executor> Model>
std::vector<Outcome> train_batch(Executor& executor, const NodeDataset<GraphOf<Model>>& data,
                                 std::span<const Training<Model>> trainings) {
  return BatchTrainer<Executor, Model>(executor, data, trainings).train();
}

/// Trains one model on an executor, as sheafnn::train does on the CPU. A diverged run leaves the model as it was.
///
/// \param loss  a Classification, with or without class weights; other losses are refused
/// \throws std::invalid_argument  an option out of range, or data that do not fit the model
/// \throws std::runtime_error     a diverged run: names the epoch and the first non-finite quantity
template <class Executor, BatchModel<Executor> Model, Loss<typename Model::Scalar> LossType>
TrainResult train(Executor& executor, Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                  const LossType& loss, const Split& split, const TrainOptions& options = {}) {
  const Training<Model> one[] = {{&model, &split, options}};
  return detail::only_result(train_batch<Executor, Model>(executor, graph, features, loss, one));
}
/// The same for the labels of a dataset.
template <class Executor, BatchModel<Executor> Model>
TrainResult train(Executor& executor, Model& model, const NodeDataset<GraphOf<Model>>& data, const Split& split,
                  const TrainOptions& options = {}) {
  const Training<Model> one[] = {{&model, &split, options}};
  return detail::only_result(train_batch<Executor, Model>(executor, data, one));
}

}  // namespace sheafnn::batch
