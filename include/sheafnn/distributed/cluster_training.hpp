/// \file
/// train_in_clusters(): training by parts of a graph on one machine, for graphs whose activations do not fit into memory.
/// A step sees a few parts of a partition, their nodes and the edges among these:
///
///     an epoch: the parts in a random order, q at a time;   for each batch  θ ← Adam(θ, ∇L(θ; subgraph))
///
/// Only one batch's network is in memory. Edges between batches are left out, so that this is not the training of the
/// whole graph, unless q is all parts: then it is, to the bit. The KL term is a mean over the incident pairs of a batch.
/// Source: Cluster-GCN (Chiang et al., 2019), algorithm 1.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/seen_features.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::distributed {

namespace detail {

/// Some nodes of a dataset and the edges among them.
struct Subgraph {
  std::vector<std::int32_t> node;  ///< their numbers in the whole, increasing
  Graph graph;
  NodeFeatures features;
  std::vector<std::int32_t> labels;

  /// Of these nodes of the whole the ones that are here, by their numbers here. Unchecked: that `nodes` increase.
  [[nodiscard]] std::vector<std::int32_t> local(std::span<const std::int32_t> nodes) const {
    std::vector<std::int32_t> r;
    std::size_t i = 0;
    for (const std::int32_t u : nodes) {
      while (i < node.size() && node[i] < u) ++i;
      if (i < node.size() && node[i] == u) r.push_back(static_cast<std::int32_t>(i));
    }
    return r;
  }
};

/// \param chosen  of each part: is it in the subgraph?
[[nodiscard]] inline Subgraph subgraph(const Dataset& data, const Partition& parts,
                                       const std::vector<bool>& chosen) {
  Subgraph r;
  const auto has = [&](Index u) {
    return chosen[static_cast<std::size_t>(parts.owner[static_cast<std::size_t>(u)])];
  };
  for (Index u = 0; u < data.node_count(); ++u) {
    if (has(u)) r.node.push_back(static_cast<std::int32_t>(u));
  }
  const auto number = [&](Index u) {
    return static_cast<std::int32_t>(std::lower_bound(r.node.begin(), r.node.end(), u) - r.node.begin());
  };
  std::vector<Edge> edges;
  std::vector<std::size_t> arcs;  // in the order of the subgraph's: sources and targets keep their order
  for (std::size_t i = 0; i < r.node.size(); ++i) {
    const Index u = r.node[i];
    for (Index arc = data.graph.first_arc(u); arc < data.graph.first_arc(u + 1); ++arc) {
      const Index v = data.graph.target(arc);
      if (!has(v)) continue;
      arcs.push_back(static_cast<std::size_t>(arc));
      if (data.graph.listed(arc)) edges.push_back({static_cast<std::int32_t>(i), number(v)});
    }
  }
  r.graph = graph_of_entries(static_cast<Index>(r.node.size()), std::move(edges));
  if (const std::size_t count = static_cast<std::size_t>(data.graph.arc_feature_count()); count > 0) {
    std::vector<double> values;
    for (const std::size_t arc : arcs) {
      const auto row = data.graph.arc_features().subspan(arc * count, count);
      values.insert(values.end(), row.begin(), row.end());
    }
    r.graph.set_arc_features(values, data.graph.arc_feature_count());
  }
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  for (const std::int32_t u : r.node) {
    const std::size_t begin = static_cast<std::size_t>(data.features.offsets()[static_cast<std::size_t>(u)]);
    const std::size_t count =
        static_cast<std::size_t>(data.features.offsets()[static_cast<std::size_t>(u) + 1]) - begin;
    const auto of_row = data.features.column_of().subspan(begin, count);
    const auto numbers = data.features.values().subspan(begin, count);
    columns.insert(columns.end(), of_row.begin(), of_row.end());
    values.insert(values.end(), numbers.begin(), numbers.end());
    offsets.push_back(static_cast<Index>(values.size()));
    r.labels.push_back(data.labels[static_cast<std::size_t>(u)]);
  }
  r.features =
      NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), data.features.columns());
  r.features.set_indicators({data.features.indicators().begin(), data.features.indicators().end()});
  return r;
}

/// Groups of `size` parts, in an order that is random for each epoch; in the order of their numbers for evaluations.
[[nodiscard]] inline std::vector<std::vector<bool>> batches(int parts, Index size, std::uint64_t seed, Index epoch,
                                                            bool shuffled) {
  std::vector<std::pair<std::uint32_t, std::size_t>> order;
  const Stream stream{seed, Purpose::user, static_cast<std::uint32_t>(epoch), 1023};
  for (std::uint32_t p = 0; p < static_cast<std::uint32_t>(parts); ++p) {
    order.emplace_back(shuffled ? stream.words(p, 0).word[0] : 0, p);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::vector<bool>> r;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i % static_cast<std::size_t>(size) == 0) r.emplace_back(order.size());
    r.back()[order[i].second] = true;
  }
  return r;
}

}  // namespace detail

/// Trains `model` to classify the nodes of a dataset, `parts_per_step` parts at a time; see the file comment. Evaluations,
/// too, see batches of parts, in the order of their numbers. The rest is as in sheafnn::train(), with an Adam step for
/// every batch that has labelled training nodes. When this throws, the model is as it was.
///
/// \param parts  of the data's graph, e.g. metis_partition()'s
/// \throws std::invalid_argument  an option out of range or one that there is not here (resume, on_checkpoint, a metric of
///         classes as stop_on), or data that do not fit the model
/// \throws std::runtime_error     a diverged run
template <class Model>
TrainResult train_in_clusters(Model& model, const Dataset& data, const Partition& parts, Index parts_per_step,
                              const Split& split, const TrainOptions& options = {}) {
  using S = typename Model::Scalar;
  validate(options);
  validate(data);
  validate(parts, data.node_count());
  const Classification whole(data.labels);
  const Index n = data.node_count(), outputs = model.options().classes;
  sheafnn::detail::check_targets(whole, n, outputs, split, "split");
  require_between("parts_per_step", parts_per_step, 1, parts.parts);
  require(options.resume == nullptr && !options.on_checkpoint, "resume, on_checkpoint", "given",
          "a training in clusters has no checkpoints");
  require(!is_metric(options.stop_on), "stop_on", to_string(options.stop_on),
          "a training in clusters chooses the best epoch by loss or accuracy");

  sheafnn::detail::PlanOfTraining<Model> plan(model, data.graph, data.features);  // of the whole
  layers::ParameterSet<S>& parameters = model.parameters();
  const auto copy = [](const Buffer<S>& from, Buffer<S>& to) {  // without memory, which may have run out
    std::copy(from.begin(), from.end(), to.begin());
  };
  const Buffer<S> first_values = parameters.values();
  Buffer<S> best_values = parameters.values();
  layers::Adam<S> adam(parameters.size(), options.learning_rate);
  adam.sheaf_learning_rate = options.sheaf_rate();
  std::vector<double> predictions(static_cast<std::size_t>(n * outputs)), best_predictions = predictions;
  const MatrixView<const double> view(predictions.data(), n, outputs);
  TrainResult result;
  double best_score = std::numeric_limits<double>::infinity();
  std::uint32_t step = 0;  ///< steps taken
  const auto begin = std::chrono::steady_clock::now();

  /// One Adam step; adds the batch's share to the report.
  const auto train_batch = [&](const detail::Subgraph& batch, EpochReport& report, double& total) {
    const std::vector<std::int32_t> train = batch.local(split.train);
    const double labelled = static_cast<double>(labelled_nodes(batch.labels, train).size());
    if (labelled == 0) return;
    Network<Model> network(model, batch.graph, batch.features,
                           options.threads > 0 ? options.threads : suggested_threads(model, batch.graph));
    const ForwardPass<S> pass{.seed = options.seed,
                              .epoch = step++,
                              .training = true,
                              .input_dropout = options.input_dropout,
                              .dropout = options.dropout,
                              .nodes = train};
    const Elbo objective = elbo(network, pass, Classification(batch.labels), train,
                                {report.kl_weight, options.kl_estimator, options.training_samples});
    const bool stepped = adam.step_count > 0;
    sheafnn::detail::check_finite(objective, report.epoch, stepped);
    const bool finite = adam.step(network.execution(), parameters, network.gradient(), options.weight_decay,
                                  options.sheaf_decay, options.decay);
    if (!finite) sheafnn::detail::check_finite(parameters, network.gradient(), report.epoch, stepped);
    report.loss += labelled * objective.objective;
    report.nll += labelled * objective.loss;
    report.kl += labelled * objective.kl;
    total += labelled;
  };
  /// Mean predictions of the batch's nodes.
  const auto evaluate_batch = [&](const detail::Subgraph& batch) {
    Network<Model> network(model, batch.graph, batch.features,
                           options.threads > 0 ? options.threads : suggested_threads(model, batch.graph));
    const Classification loss(batch.labels);
    std::vector<double> sums(static_cast<std::size_t>(batch.graph.node_count() * outputs));
    network.begin({.seed = options.seed, .epoch = step - 1});  // of the last step
    network.draw_samples(options.samples, [&](const MatrixView<S>& out) {
      loss.predict(network.execution(), out, network.nodes(),
                   MatrixView<double>(sums.data(), batch.graph.node_count(), outputs));
    });
    const double count = static_cast<double>(network.sample_count(options.samples));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::size_t u = i / static_cast<std::size_t>(outputs), c = i % static_cast<std::size_t>(outputs);
      predictions[static_cast<std::size_t>(batch.node[u] * outputs) + c] = sums[i] / count;
    }
  };

  try {
    for (Index epoch = 0; epoch < options.epochs; ++epoch) {
      EpochReport report{.epoch = epoch};
      report.kl_weight = Model::bayesian ? kl_weight(options.kl_schedule, options.kl_maximum, epoch) : 0.0;
      double total = 0;
      for (const auto& chosen : detail::batches(parts.parts, parts_per_step, options.seed, epoch, true)) {
        train_batch(detail::subgraph(data, parts, chosen), report, total);
      }
      for (double* sum : {&report.loss, &report.nll, &report.kl}) *sum /= total;
      for (const auto& chosen : detail::batches(parts.parts, parts_per_step, options.seed, epoch, false)) {
        evaluate_batch(detail::subgraph(data, parts, chosen));
      }
      sheafnn::detail::check_finite(predictions, epoch);
      const Score validation = sheafnn::detail::score_of(whole, view, split.validation);
      report.validation_loss = validation.loss;
      report.validation_accuracy = validation.score;
      report.test_accuracy = sheafnn::detail::score_of(whole, view, split.test).score;
      result.history.push_back(report);
      const double score = options.stop_on == StopOn::loss ? validation.loss : -validation.score;
      if (split.validation.empty() || sheafnn::detail::is_better_epoch(epoch == 0, score, validation.loss,
                                                                       best_score, result.validation_loss)) {
        best_score = score;
        result.best_epoch = epoch;
        result.validation_loss = report.validation_loss;
        result.validation_accuracy = report.validation_accuracy;
        result.test_accuracy = report.test_accuracy;
        copy(parameters.values(), best_values);
        best_predictions = predictions;
      }
      if (options.on_epoch && options.on_epoch(report) == EpochAction::stop && epoch + 1 < options.epochs) {
        result.stop_reason = StopReason::callback;
        break;
      }
      if (epoch + 1 < options.epochs && epoch - result.best_epoch >= options.patience) {
        result.stop_reason = StopReason::patience;
        break;
      }
    }
    result.epoch_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
                           static_cast<double>(result.history.size());
    result.test_nll =
        sheafnn::detail::score_of(whole, MatrixView<const double>(best_predictions.data(), n, outputs), split.test)
            .loss;
    result.test_ece = sheafnn::detail::calibration_error(best_predictions, outputs, data.labels, split.test);
    sheafnn::detail::add_test_metrics(result, whole, best_predictions, outputs, split.test);
  } catch (...) {
    copy(first_values, parameters.values());
    throw;
  }
  copy(best_values, parameters.values());
  plan.keep();
  return result;
}

}  // namespace sheafnn::distributed
