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
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/epoch_report.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/core/fastest_way.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/dataset.hpp"
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
  std::function<void(const EpochReport&)> on_epoch = {};  ///< called after every epoch
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
  double train_seconds = 0;     ///< per epoch: forward, backward, Adam
  double evaluate_seconds = 0;  ///< per epoch: prediction of all nodes with `samples` samples
};

namespace detail {

/// Mean over posterior samples of the class probabilities, n × C row-major.
template <class Model>
void mean_probabilities(Network<Model>& network, const ParameterSet<typename Model::Scalar>& parameters,
                        std::uint64_t seed, std::uint32_t epoch, Index samples, Index classes,
                        std::vector<double>& probabilities, const Network<Model>* learned = nullptr) {
  std::fill(probabilities.begin(), probabilities.end(), 0.0);
  const Index n = network.graph().node_count();
  const auto add = [&](Index) {
    add_probabilities(network.threads(), n, classes, network.log_probabilities(), network.class_stride(),
                      probabilities.data());
  };
  const Index drawn = network.evaluate(parameters, seed, epoch, samples, add, {}, learned);
  for (double& p : probabilities) p /= static_cast<double>(drawn);
}

[[noreturn]] inline void throw_diverged(Index epoch, const std::string& quantity, double value) {
  throw std::runtime_error(concat("training diverged in epoch ", epoch, ": ", quantity, " is ", value,
                                  "; a smaller learning rate may help"));
}

/// Is every number finite? 0 · x is 0 for finite x and not a number otherwise, and so is the sum.
template <class S>
[[nodiscard]] bool all_finite(int threads, Index count, const S* values) {
  std::atomic<bool> finite = true;
  parallel_for(threads, count, 4096, [&](Index begin, Index end) {
    using P = Pack<S, lanes<S>>;
    P total = P(S(0));
    Index i = begin;
    for (; i + P::width <= end; i += P::width) total += P(S(0)) * P::load(values + i);
    S sum = reduce_add(total);
    for (; i < end; ++i) sum += S(0) * values[i];
    if (sum != S(0)) finite = false;
  });
  return finite;
}

/// How an epoch may be run; the numbers are the same.
struct EpochWay {
  int threads;  ///< of its loops
  bool
      beside;  ///< its evaluation runs beside the training pass of the next epoch, which starts from the same parameters
};
/// The ways worth trying: a small graph may be faster with one thread, or with an evaluation aside, which takes buffers of
/// its own.
template <class Model>
[[nodiscard]] std::vector<EpochWay> epoch_ways(const Model& model, const Graph& graph, int threads) {
  constexpr Index small = 1'000'000;
  if (threads == 1 || moved_features(model, graph) > small) return {{threads, false}};
  return {{threads, false}, {threads, true}, {1, false}};
}

/// Stops a diverged run, naming the epoch and the first quantity that is not finite: after the training pass, …
template <class Model>
void check_finite(const Model& model, const Network<Model>& network, const PassResult& pass, Index epoch) {
  if (!std::isfinite(pass.nll)) throw_diverged(epoch, "the negative log-likelihood", pass.nll);
  if (!std::isfinite(pass.kl)) throw_diverged(epoch, "the KL term", pass.kl);
  const auto& all = network.gradient();
  if (all_finite(network.threads(), all.size(), all.data())) return;
  for (const ParameterInfo& info : model.parameters().info()) {
    for (Index i = info.offset; i < info.offset + info.size; ++i) {
      const double value = static_cast<double>(all[i]);
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

}  // namespace detail

/// Trains `model` on the training nodes of `split` and leaves it with the parameters of the best epoch.
///
/// \throws std::invalid_argument  an option out of range, or data that do not fit the model
/// \throws std::runtime_error     a diverged run: names the epoch and the first non-finite quantity
template <class Model>
TrainResult train(Model& model, const Dataset& data, const Split& split, const TrainOptions& options = {}) {
  using S = typename Model::Scalar;
  using Clock = std::chrono::steady_clock;
  validate(options);
  validate(data);
  validate(split, data.node_count(), data.name + ": split");
  require(model.options().classes >= data.class_count, "classes", model.options().classes,
          concat("the data have ", data.class_count, " classes"));
  const int threads = options.threads > 0 ? options.threads : suggested_threads(model, data.graph);
  const Index classes = model.options().classes;
  Network<Model> network(model, data.graph, data.features, threads);
  const std::vector<detail::EpochWay> ways = detail::epoch_ways(model, data.graph, threads);
  detail::FastestWay fastest(static_cast<int>(ways.size()));
  std::optional<Network<Model>> second;  // for evaluations aside
  if (ways.size() > 1) second.emplace(model, data.graph, data.features);
  ParameterSet<S>& parameters = model.parameters();
  Adam<S> adam(parameters.size(), options.learning_rate);
  Buffer<S> best_values = parameters.values();
  std::vector<double> probabilities(static_cast<std::size_t>(data.node_count() * classes));
  std::vector<double> best_probabilities = probabilities;
  TrainResult result;
  constexpr Index long_training = 10'000;  // the history of a longer one is moved now and then
  result.history.reserve(static_cast<std::size_t>(std::min(options.epochs, long_training)));
  double best = std::numeric_limits<double>::infinity(), best_loss = best;
  double train_time = 0, evaluate_time = 0;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };

  TrainingPass<S> pass;
  pass.labels = data.labels;
  pass.nodes = split.train;
  pass.seed = options.seed;
  pass.input_dropout = options.input_dropout;
  pass.dropout = options.dropout;
  pass.kl_estimator = options.kl_estimator;
  pass.samples = options.training_samples;
  PassResult loss;
  const auto train_epoch = [&](Index epoch) {
    const auto start = Clock::now();
    pass.epoch = static_cast<std::uint32_t>(epoch);
    pass.kl_weight = Model::bayesian ? kl_weight(options.kl_schedule, options.kl_maximum, epoch) : 0.0;
    loss = network.train_pass(parameters, pass);
    train_time += seconds_since(start);
  };
  EpochReport report;
  const auto evaluate_epoch = [&](Network<Model>& evaluating) {
    const auto start = Clock::now();
    detail::mean_probabilities(evaluating, parameters, options.seed, static_cast<std::uint32_t>(report.epoch),
                               options.samples, classes, probabilities, pass.learned ? &network : nullptr);
    report.validation_loss = negative_log_likelihood(probabilities, classes, data.labels, split.validation);
    report.validation_accuracy = accuracy(probabilities, classes, data.labels, split.validation);
    report.test_accuracy = accuracy(probabilities, classes, data.labels, split.test);
    evaluate_time += seconds_since(start);
  };

  train_epoch(0);
  for (Index epoch = 0; epoch < options.epochs; ++epoch) {
    const auto start = Clock::now();
    const detail::EpochWay way = ways[static_cast<std::size_t>(fastest.way())];
    const bool last = epoch + 1 == options.epochs;
    network.set_threads(way.threads);
    detail::check_finite(model, network, loss, epoch);
    adam.begin_step();
    for (const ParameterInfo& info : parameters.info()) {
      const double decay =
          info.group == ParameterGroup::sheaf_learner ? options.sheaf_decay : options.weight_decay;
      adam.update(way.threads, info.offset, info.offset + info.size, decay, network.gradient().data(),
                  parameters.values().data());
    }
    pass.learned = network.learn(parameters);
    train_time += seconds_since(start);
    report = {epoch, loss.loss, loss.nll, loss.kl, pass.kl_weight};
    const bool beside = way.beside && !last;
    if (beside) {
      run_beside(threads, [&] { evaluate_epoch(*second); }, [&] { train_epoch(epoch + 1); });
    } else {
      evaluate_epoch(network);
    }
    detail::check_finite(probabilities, epoch);
    result.history.push_back(report);

    const double score = options.stop_on == StopOn::loss ? report.validation_loss : -report.validation_accuracy;
    if (score < best || (score == best && report.validation_loss < best_loss)) {
      best = score;
      best_loss = report.validation_loss;
      result.best_epoch = epoch;
      result.validation_loss = report.validation_loss;
      result.validation_accuracy = report.validation_accuracy;
      result.test_accuracy = report.test_accuracy;
      std::copy(probabilities.begin(), probabilities.end(), best_probabilities.begin());
      std::copy(parameters.values().begin(), parameters.values().end(), best_values.begin());
    }
    const auto telling = Clock::now();
    if (options.on_epoch) options.on_epoch(report);
    const double told = seconds_since(telling);
    if (epoch - result.best_epoch >= options.patience) break;
    if (!beside && !last) train_epoch(epoch + 1);
    fastest.record(seconds_since(start) - told);
  }
  result.test_nll = negative_log_likelihood(best_probabilities, classes, data.labels, split.test);
  result.test_ece = expected_calibration_error(best_probabilities, classes, data.labels, split.test);
  std::copy(best_values.begin(), best_values.end(), parameters.values().begin());
  const double count = static_cast<double>(result.history.size());
  result.train_seconds = train_time / count;
  result.evaluate_seconds = evaluate_time / count;
  return result;
}

}  // namespace sheafnn
