/// \file
/// Training: Adam with two weight decays, cyclical KL annealing, early stopping on the validation nodes.
///
/// Source: math.md "The model" (loss, annealing, optimiser); paper, experiments.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/epoch_report.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/core/fastest_way.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/nn/adam.hpp"
#include "sheafnn/nn/softmax.hpp"
#include "sheafnn/uncertainty/metrics.hpp"

namespace sheafnn {

/// What the best epoch is chosen by.
enum class StopOn { loss, accuracy };
inline constexpr std::array<std::string_view, 2> stop_on_names = {"loss", "accuracy"};
[[nodiscard]] constexpr std::string_view to_string(StopOn stop_on) {
  return stop_on_names[static_cast<std::size_t>(stop_on)];
}

struct TrainOptions {
  Index epochs = 500;    ///< at most so many, ≥ 1
  Index patience = 200;  ///< stop after so many epochs without a better one, ≥ 1
  StopOn stop_on = StopOn::loss;
  double learning_rate = 0.01;  ///< > 0
  double weight_decay = 5e-4;   ///< L2, of all weights but the sheaf learner's, ≥ 0
  double sheaf_decay = 5e-4;    ///< L2, of the sheaf learner's weights, ≥ 0
  double input_dropout = 0.5;   ///< of features, in [0, 1)
  double dropout = 0.3;         ///< of hidden features, in [0, 1)
  KlSchedule kl_schedule = KlSchedule::cyclical;
  double kl_maximum = 1;  ///< largest λ, ≥ 0
  KlEstimator kl_estimator = KlEstimator::closed_form;
  Index training_samples = 1;  ///< sheaves drawn per training step, 1 … 1024
  Index samples = 3;           ///< posterior samples averaged at evaluation, 1 … 1024
  std::uint64_t seed = 0;      ///< of dropout and noise; initial weights have their own (SheafModel)
  int threads = 0;             ///< at most; 0: as many as the graph is worth. Results do not depend on it
  std::function<void(const EpochReport&)> on_epoch = {};  ///< called after every epoch; must not change the model
};

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const TrainOptions& options) {
  const auto at_least_one = [](std::string_view name, Index value, Index most) {
    require(value >= 1 && value <= most, name, value, concat("must be between 1 and ", most));
  };
  const auto rate = [](std::string_view name, double value) {
    require(value >= 0 && value < 1, name, value, "must be at least 0 and below 1");
  };
  const auto not_negative = [](std::string_view name, double value) {
    require(value >= 0 && std::isfinite(value), name, value, "must be finite and at least 0");
  };
  at_least_one("epochs", options.epochs, 1'000'000'000);
  at_least_one("patience", options.patience, 1'000'000'000);
  at_least_one("training_samples", options.training_samples, 1024);
  at_least_one("samples", options.samples, 1024);
  require(options.learning_rate > 0 && std::isfinite(options.learning_rate), "learning_rate",
          options.learning_rate, "must be finite and above 0");
  not_negative("weight_decay", options.weight_decay);
  not_negative("sheaf_decay", options.sheaf_decay);
  not_negative("kl_maximum", options.kl_maximum);
  rate("input_dropout", options.input_dropout);
  rate("dropout", options.dropout);
  require(options.threads >= 0, "threads", options.threads,
          "must be at least 0 (0: as many as the graph is worth)");
}

/// Outcome of training. The model ends with the parameters of the best epoch.
struct TrainResult {
  Index best_epoch = 0;
  double validation_loss = 0, validation_accuracy = 0;   ///< of the best epoch
  double test_accuracy = 0, test_nll = 0, test_ece = 0;  ///< of the best epoch; ECE with 15 bins
  std::vector<EpochReport> history;
  double epoch_seconds = 0;     ///< per epoch, on average, without on_epoch
  double train_seconds = 0;     ///< of that embeddings for both, forward, backward, Adam
  double evaluate_seconds = 0;  ///< and prediction with `samples` samples; the two may overlap
};

namespace detail {

/// Mean over posterior samples of the class probabilities of some nodes (one at least, in increasing order); n × C
/// row-major, 0 for the others.
template <class Model>
void mean_probabilities(Network<Model>& network, const ParameterSet<typename Model::Scalar>& parameters,
                        std::uint64_t seed, std::uint32_t epoch, Index samples, Index classes,
                        std::span<const std::int32_t> nodes, std::vector<double>& probabilities,
                        const Network<Model>* begun = nullptr) {
  std::fill(probabilities.begin(), probabilities.end(), 0.0);
  const auto add = [&](Index) {
    add_probabilities(network.threads(), NodeSelection(nodes), classes, network.log_probabilities(),
                      network.class_stride(), probabilities.data());
  };
  const Index drawn = network.evaluate(parameters, seed, epoch, samples, add, {}, begun, nodes);
  for (double& p : probabilities) p /= static_cast<double>(drawn);
}

[[noreturn]] inline void throw_diverged(Index epoch, const std::string& quantity, double value) {
  throw std::runtime_error(concat("training diverged in epoch ", epoch, ": ", quantity, " is ", value,
                                  "; a smaller learning rate may help"));
}

/// How an epoch may be run; the numbers are the same. Its evaluation may run beside the training pass of the next
/// epoch, which starts from the same parameters.
struct EpochWay {
  int threads;  ///< of its loops
  bool beside;
};
/// The ways worth trying: a small graph may be faster with one thread, or with an evaluation aside, which takes
/// buffers of its own.
template <class Model>
[[nodiscard]] std::vector<EpochWay> epoch_ways(const Model& model, const Graph& graph, int threads) {
  constexpr Index small = 1'000'000;
  if (threads == 1 || moved_features(model, graph) > small) return {{threads, false}};
  return {{threads, false}, {threads, true}, {1, false}};
}

/// Stop a diverged run, naming the epoch and the first quantity that is not finite: after the training pass, …
inline void check_finite(const PassResult& pass, Index epoch) {
  if (!std::isfinite(pass.nll)) throw_diverged(epoch, "the negative log-likelihood", pass.nll);
  if (!std::isfinite(pass.kl)) throw_diverged(epoch, "the KL term", pass.kl);
}
/// … after the step, when it found a gradient that is not finite, …
template <class S>
void check_finite(const ParameterSet<S>& parameters, const Buffer<S>& gradient, Index epoch) {
  for (const ParameterInfo& info : parameters.info()) {
    for (Index i = info.offset; i < info.offset + info.size; ++i) {
      const double value = static_cast<double>(gradient[i]);
      if (!std::isfinite(value)) throw_diverged(epoch, "the gradient of " + info.name, value);
    }
  }
}
/// … and after the evaluation that follows the step.
inline void check_finite(const std::vector<double>& probabilities, Index epoch) {
  for (const double p : probabilities) {
    if (!std::isfinite(p)) throw_diverged(epoch, "a predicted probability", p);
  }
}

/// One training: what train() does.
template <class Model>
class TrainingRun {
 public:
  using S = typename Model::Scalar;

  TrainingRun(Model& model, const Dataset& data, const Split& split, const TrainOptions& options)
      : model_(model),
        parameters_(model.parameters()),
        data_(data),
        split_(split),
        options_(options),
        threads_(options.threads > 0 ? options.threads : suggested_threads(model, data.graph)),
        ways_(epoch_ways(model, data.graph, threads_)),
        fastest_(static_cast<int>(ways_.size())),
        network_(model, data.graph, data.features, threads_),
        adam_(parameters_.size(), options.learning_rate),
        first_values_(parameters_.values()),
        best_values_(parameters_.values()),
        probabilities_(static_cast<std::size_t>(data.node_count() * model.options().classes)),
        best_probabilities_(probabilities_) {
    if (ways_.size() > 1) aside_.emplace(model, data.graph, data.features);
    constexpr Index long_training = 10'000;  // the history of a longer one is moved now and then
    result_.history.reserve(static_cast<std::size_t>(std::min(options.epochs, long_training)));
    pass_.labels = data.labels;
    pass_.nodes = split.train;
    pass_.only_nodes = true;
    std::merge(split.validation.begin(), split.validation.end(), split.test.begin(), split.test.end(),
               std::back_inserter(evaluated_));
    pass_.seed = options.seed;
    pass_.input_dropout = options.input_dropout;
    pass_.dropout = options.dropout;
    pass_.kl_estimator = options.kl_estimator;
    pass_.samples = options.training_samples;
  }

  /// Whatever goes wrong, the model is left as it was.
  TrainResult run() {
    try {
      return trained();
    } catch (...) {
      std::copy(first_values_.begin(), first_values_.end(), parameters_.values().begin());
      throw;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  TrainResult trained() {
    const auto begin = Clock::now();
    double told = 0;
    begin_pass(0);
    train_pass();
    for (Index epoch = 0; epoch < options_.epochs; ++epoch) {
      const auto start = Clock::now();
      const EpochWay way = ways_[static_cast<std::size_t>(fastest_.way())];
      const bool last = epoch + 1 == options_.epochs, beside = way.beside && !last;
      network_.set_threads(way.threads);
      step(epoch);
      pass_.begun = false;
      if (!last) begin_pass(epoch + 1);
      if (beside) {
        std::atomic<bool> pass_done = false;
        run_beside(
            threads_,
            [&] {
              evaluate(*aside_);
              TrainingPass<S> next = pass_;
              ++next.epoch;
              network_.draw_masks_ahead(next, [&] { return !pass_done.load(std::memory_order_relaxed); });
            },
            [&] {
              train_pass();
              pass_done.store(true, std::memory_order_relaxed);
            });
      } else {
        evaluate(network_);
      }
      result_.history.push_back(report_);
      keep_if_best();
      const auto telling = Clock::now();
      if (options_.on_epoch) options_.on_epoch(report_);
      const double told_now = seconds_since(telling);
      told += told_now;
      if (epoch - result_.best_epoch >= options_.patience) break;
      if (!beside && !last) train_pass();
      fastest_.record(seconds_since(start) - told_now);
    }
    std::copy(best_values_.begin(), best_values_.end(), parameters_.values().begin());
    const Index classes = model_.options().classes;
    result_.test_nll = negative_log_likelihood(best_probabilities_, classes, data_.labels, split_.test);
    result_.test_ece = expected_calibration_error(best_probabilities_, classes, data_.labels, split_.test);
    const double count = static_cast<double>(result_.history.size());
    result_.epoch_seconds = (seconds_since(begin) - told) / count;
    result_.train_seconds /= count;
    result_.evaluate_seconds /= count;
    return std::move(result_);
  }

  /// What the training pass of an epoch shares with the evaluation of the epoch before.
  void begin_pass(Index epoch) {
    const auto start = Clock::now();
    pass_.epoch = static_cast<std::uint32_t>(epoch);
    pass_.kl_weight = Model::bayesian ? kl_weight(options_.kl_schedule, options_.kl_maximum, epoch) : 0.0;
    network_.begin(parameters_, pass_);
    pass_.begun = true;
    result_.train_seconds += seconds_since(start);
  }

  /// Forward and backward pass of the epoch that begin_pass() named.
  void train_pass() {
    const auto start = Clock::now();
    loss_ = network_.train_pass(parameters_, pass_);
    result_.train_seconds += seconds_since(start);
  }

  [[nodiscard]] double decay_of(const ParameterInfo& info) const noexcept {
    return info.group == ParameterGroup::sheaf_learner ? options_.sheaf_decay : options_.weight_decay;
  }

  /// Adam's step after the pass of an epoch; begins the epoch's report.
  void step(Index epoch) {
    const auto start = Clock::now();
    check_finite(loss_, epoch);
    adam_.begin_step();
    const Buffer<S>& gradient = network_.gradient();
    bool finite = true;
    for (const ParameterInfo& info : parameters_.info()) {
      finite &= adam_.update(network_.threads(), info.offset, info.offset + info.size, decay_of(info),
                             gradient.data(), parameters_.values().data());
    }
    if (!finite) check_finite(parameters_, gradient, epoch);
    report_ = {epoch, loss_.loss, loss_.nll, loss_.kl, pass_.kl_weight};
    result_.train_seconds += seconds_since(start);
  }

  /// Predictions with the present parameters, for the report.
  void evaluate(Network<Model>& network) {
    const auto start = Clock::now();
    const Index classes = model_.options().classes;
    mean_probabilities(network, parameters_, options_.seed, static_cast<std::uint32_t>(report_.epoch),
                       options_.samples, classes, evaluated_, probabilities_, pass_.begun ? &network_ : nullptr);
    check_finite(probabilities_, report_.epoch);
    report_.validation_loss = negative_log_likelihood(probabilities_, classes, data_.labels, split_.validation);
    report_.validation_accuracy = accuracy(probabilities_, classes, data_.labels, split_.validation);
    report_.test_accuracy = accuracy(probabilities_, classes, data_.labels, split_.test);
    result_.evaluate_seconds += seconds_since(start);
  }

  void keep_if_best() {
    const double score = options_.stop_on == StopOn::loss ? report_.validation_loss : -report_.validation_accuracy;
    const bool better =
        score < best_score_ || (score == best_score_ && report_.validation_loss < result_.validation_loss);
    if (!better) return;
    best_score_ = score;
    result_.best_epoch = report_.epoch;
    result_.validation_loss = report_.validation_loss;
    result_.validation_accuracy = report_.validation_accuracy;
    result_.test_accuracy = report_.test_accuracy;
    std::copy(probabilities_.begin(), probabilities_.end(), best_probabilities_.begin());
    const S* values = parameters_.values().data();
    S* best = best_values_.data();
    for (const ParameterInfo& info : parameters_.info()) {  // cut among threads as Adam cuts them
      parallel_for(network_.threads(), info.size, adam_grain, [&](Index begin, Index end) {
        std::copy(values + info.offset + begin, values + info.offset + end, best + info.offset + begin);
      });
    }
  }

  Model& model_;
  ParameterSet<S>& parameters_;
  const Dataset& data_;
  const Split& split_;
  const TrainOptions& options_;
  int threads_;
  std::vector<EpochWay> ways_;
  FastestWay fastest_;
  Network<Model> network_;
  std::optional<Network<Model>> aside_;  ///< for evaluations beside a training pass
  Adam<S> adam_;
  Buffer<S> first_values_, best_values_;
  std::vector<std::int32_t> evaluated_;  ///< validation and test nodes
  std::vector<double> probabilities_, best_probabilities_;
  TrainingPass<S> pass_;
  PassResult loss_;
  EpochReport report_;
  TrainResult result_;
  double best_score_ = std::numeric_limits<double>::infinity();
};

}  // namespace detail

/// Trains `model` on the training nodes of `split` and leaves it with the parameters of the best epoch.
///
/// \throws std::invalid_argument  an option out of range, or data that do not fit the model
/// \throws std::runtime_error     a diverged run: names the epoch and the first non-finite quantity
/// \throws what options.on_epoch throws; after any of these the model is as it was
template <class Model>
TrainResult train(Model& model, const Dataset& data, const Split& split, const TrainOptions& options = {}) {
  validate(options);
  validate(data);
  validate(split, data.node_count(), data.name + ": split");
  require(model.options().classes >= data.class_count, "classes", model.options().classes,
          concat("the data have ", data.class_count, " classes"));
  return detail::TrainingRun<Model>(model, data, split, options).run();
}

}  // namespace sheafnn
