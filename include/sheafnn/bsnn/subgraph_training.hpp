/// \file
/// The training of a model on subgraphs, of which one is in memory at a time:
///
///     an epoch: for each subgraph G_s of a source  θ ← Adam(θ, ∇L(θ; G_s, its targets));   then predictions, subgraph by subgraph
///
/// What a subgraph leaves out, the network does not see, so this is another training than the whole graph's. The KL term is
/// a mean over the incident pairs of a subgraph. The sources are clusters (distributed/cluster_training.hpp) and drawn
/// neighbours (sampled_training.hpp).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "sheafnn/bsnn/seen_features.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/core/kept_memory.hpp"
#include "sheafnn/graph/graph_rows.hpp"

namespace sheafnn::detail {

/// A subgraph, and what is computed for it.
struct SubgraphBatch {
  Subgraph graph;
  std::vector<std::int32_t> targets;  ///< nodes that are trained or predicted, by their indices here
};

/// Where the subgraphs of a training come from.
class SubgraphSource {
 public:
  virtual ~SubgraphSource() = default;
  /// \returns the number of its steps
  virtual Index begin_epoch(Index epoch) = 0;
  /// \param step  of all epochs, for random numbers \param number  of the epoch's step
  [[nodiscard]] virtual SubgraphBatch training(std::uint32_t step, Index number) = 0;
  /// Number of subgraphs that are predicted; their targets together are EvaluatedNodes::node.
  [[nodiscard]] virtual Index evaluations() const = 0;
  [[nodiscard]] virtual SubgraphBatch evaluation(Index number) = 0;
};

/// The nodes that a training predicts, and their labels. Indices in `split` count these nodes.
struct EvaluatedNodes {
  std::vector<std::int32_t> node;  ///< increasing
  std::vector<std::int32_t> labels;
  Split split;  ///< its train is empty

  /// Validation and test nodes. If there are neither, training nodes, to check that predictions are finite.
  ///
  /// \param most  of these training nodes
  EvaluatedNodes(const GraphRows& rows, const Split& of, Index most = std::numeric_limits<Index>::max()) {
    std::merge(of.validation.begin(), of.validation.end(), of.test.begin(), of.test.end(),
               std::back_inserter(node));
    if (node.empty()) {
      node.assign(of.train.begin(), of.train.begin() + std::min(static_cast<Index>(of.train.size()), most));
    }
    for (const std::int32_t u : node) labels.push_back(rows.labels()[static_cast<std::size_t>(u)]);
    for (const std::int32_t u : of.validation) split.validation.push_back(static_cast<std::int32_t>(number(u)));
    for (const std::int32_t u : of.test) split.test.push_back(static_cast<std::int32_t>(number(u)));
  }
  /// Unchecked: u is one of them.
  [[nodiscard]] Index number(std::int32_t u) const {
    return std::lower_bound(node.begin(), node.end(), u) - node.begin();
  }
};

/// A plan of features from all nodes in memory, or from at most 65536 nodes at equal distances.
template <class Model>
[[nodiscard]] PlanOfTraining<Model> plan_of_rows(Model& model, const GraphRows& rows) {
  if (const Dataset* data = rows.dataset()) return PlanOfTraining<Model>(model, data->graph, data->features);
  constexpr Index most = 65536;
  const Index n = rows.node_count(), count = std::min(n, most);
  std::vector<std::int32_t> nodes;
  for (Index i = 0; i < count; ++i) nodes.push_back(static_cast<std::int32_t>(i * n / count));
  return PlanOfTraining<Model>(model, Graph(count, {}), features_of(rows, nodes));
}

/// See the file comment; when this throws, the model is as it was. Evaluates the nodes of the split that `evaluated` has.
///
/// Unchecked: that options are in range, and that labels and split fit the model (check_targets()).
///
/// \throws std::invalid_argument  an option that does not exist here (resume, on_checkpoint, a metric of
///         classes as stop_on), or data that do not fit the model
/// \throws std::runtime_error     a diverged training, or rows that cannot be read
template <class Model>
TrainResult train_on_subgraphs(Model& model, const GraphRows& rows, const Split& split,
                               const EvaluatedNodes& evaluated, SubgraphSource& source,
                               const TrainOptions& options) {
  using S = typename Model::Scalar;
  const Index outputs = model.options().classes;
  require(options.resume == nullptr && !options.on_checkpoint, "resume, on_checkpoint", "given",
          "a training on subgraphs has no checkpoints");
  require(!is_metric(options.stop_on), "stop_on", to_string(options.stop_on),
          "a training on subgraphs chooses the best epoch by loss or accuracy");

  PlanOfTraining<Model> plan = plan_of_rows(model, rows);
  layers::ParameterSet<S>& parameters = model.parameters();
  const auto copy = [](const Buffer<S>& from, Buffer<S>& to) {  // without memory, which may have run out
    std::copy(from.begin(), from.end(), to.begin());
  };
  const Buffer<S> first_values = parameters.values();
  Buffer<S> best_values = parameters.values();
  layers::Adam<S> adam(parameters.size(), options.learning_rate);
  adam.sheaf_learning_rate = options.sheaf_rate();
  const Classification loss(evaluated.labels);
  const Index scored = static_cast<Index>(evaluated.node.size());
  std::vector<double> predictions(static_cast<std::size_t>(scored * outputs)), best_predictions = predictions;
  const auto view = [&](const std::vector<double>& of) {
    return MatrixView<const double>(of.data(), scored, outputs);
  };
  TrainResult result;
  double best_score = std::numeric_limits<double>::infinity();
  std::uint32_t step = 0;  ///< steps taken
  KeptMemory memory;       ///< of the networks
  const auto begin = std::chrono::steady_clock::now();
  const auto threads = [&](const Subgraph& of) {
    return options.threads > 0 ? options.threads : suggested_threads(model, of.graph);
  };

  /// One Adam step; adds the batch's share to the report.
  const auto train_batch = [&](const SubgraphBatch& batch, EpochReport& report, double& total) {
    const double labelled = static_cast<double>(labelled_nodes(batch.graph.labels, batch.targets).size());
    if (labelled == 0) return;
    const KeptMemory::Use use(memory);
    Network<Model> network(model, batch.graph.graph, batch.graph.features, threads(batch.graph));
    const ForwardPass<S> pass{.seed = options.seed,
                              .epoch = step++,
                              .training = true,
                              .overwrites = true,
                              .recompute_layers = options.recompute_layers,
                              .compress_layers = options.compress_layers,
                              .input_dropout = options.input_dropout,
                              .dropout = options.dropout,
                              .nodes = batch.targets};
    const Elbo objective =
        elbo(network, pass, Classification(batch.graph.labels), batch.targets,
             {report.kl_weight, options.kl_estimator, options.training_samples, options.sample_loss});
    const bool stepped = adam.step_count > 0;
    check_finite(objective, report.epoch, stepped);
    const bool finite = adam.step(network.execution(), parameters, network.gradient(), options.weight_decay,
                                  options.sheaf_decay, options.decay);
    if (!finite) throw_not_finite(parameters, network.gradient(), report.epoch, stepped);
    report.loss += labelled * objective.objective;
    report.nll += labelled * objective.loss;
    report.kl += labelled * objective.kl;
    total += labelled;
  };
  /// Mean predictions of the batch's targets.
  const auto evaluate_batch = [&](const SubgraphBatch& batch) {
    if (batch.targets.empty()) return;
    const Index nodes = batch.graph.graph.node_count();
    const KeptMemory::Use use(memory);
    Network<Model> network(model, batch.graph.graph, batch.graph.features, threads(batch.graph));
    const Classification of_batch(batch.graph.labels);
    std::vector<double> sums(static_cast<std::size_t>(nodes * outputs));
    const auto pass = network.begin({.seed = options.seed,
                                     .epoch = step - 1,  // of the last step
                                     .recompute_layers = options.recompute_layers,
                                     .compress_layers = options.compress_layers,
                                     .nodes = batch.targets});
    pass.draw_samples(options.samples, [&](const MatrixView<S>& out) {
      of_batch.predict(network.execution(), out, network.nodes(), MatrixView<double>(sums.data(), nodes, outputs));
    });
    const double count = static_cast<double>(network.sample_count(options.samples));
    for (const std::int32_t u : batch.targets) {
      const Index row = evaluated.number(batch.graph.node[static_cast<std::size_t>(u)]);
      for (Index c = 0; c < outputs; ++c) {
        predictions[static_cast<std::size_t>(row * outputs + c)] =
            sums[static_cast<std::size_t>(u * outputs + c)] / count;
      }
    }
  };

  try {
    for (Index epoch = 0; epoch < options.epochs; ++epoch) {
      EpochReport report{.epoch = epoch};
      report.kl_weight = Model::bayesian ? kl_weight(options.kl_schedule, options.kl_maximum, epoch) : 0.0;
      double total = 0;
      const Index steps = source.begin_epoch(epoch);
      for (Index s = 0; s < steps; ++s) train_batch(source.training(step, s), report, total);
      for (double* sum : {&report.loss, &report.nll, &report.kl}) *sum /= total;
      for (Index e = 0; e < source.evaluations(); ++e) evaluate_batch(source.evaluation(e));
      check_finite(predictions, epoch);
      const Score validation = score_of(loss, view(predictions), evaluated.split.validation);
      report.validation_loss = validation.loss;
      report.validation_accuracy = validation.score;
      report.test_accuracy = score_of(loss, view(predictions), evaluated.split.test).score;
      result.history.push_back(report);
      const double score = options.stop_on == StopOn::loss ? validation.loss : -validation.score;
      if (split.validation.empty() ||
          is_better_epoch(epoch == 0, score, validation.loss, best_score, result.validation_loss)) {
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
    result.test_nll = score_of(loss, view(best_predictions), evaluated.split.test).loss;
    result.test_ece = calibration_error(best_predictions, outputs, evaluated.labels, evaluated.split.test);
    add_test_metrics(result, loss, best_predictions, outputs, evaluated.split.test);
  } catch (...) {
    copy(first_values, parameters.values());
    throw;
  }
  copy(best_values, parameters.values());
  plan.keep();
  return result;
}

}  // namespace sheafnn::detail
