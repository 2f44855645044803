/// \file
/// train() and predict() on several ranks: the functions of bsnn/trainer.hpp and bsnn/prediction.hpp on a DistributedData or, of
/// networks on hypergraphs, a DistributedHypergraph. Every
/// rank computes its own nodes; weights and Adam are the same on all ranks, since all have the same bits of the gradient.
///
/// Source: math: "The model", "Loss", "Optimiser"; what is exchanged: docs/notebook/mpi.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/distributed/agreement.hpp"
#include "sheafnn/distributed/distributed_data.hpp"
#include "sheafnn/distributed/part_classification.hpp"

namespace sheafnn::distributed {

namespace detail {

/// Threads of a rank: chosen by the size of its part, but at most its share of the computer.
template <class Model>
[[nodiscard]] int threads_of_rank(const Model& model, DistributedDataOf<Model>& data, int requested) {
  if (requested > 0) return requested;
  const int share = std::max(1, hardware_threads() / data.ranks().ranks_here());
  return std::min(share, suggested_threads(model, data.graph()));
}

/// Does rank 0 say so?
[[nodiscard]] inline bool root_says(Communicator& ranks, bool yes) {
  std::int32_t answer = yes ? 1 : 0;
  ranks.broadcast(std::span<std::int32_t>(&answer, 1));
  return answer != 0;
}

/// Checks the owned nodes of a split. All ranks call it.
///
/// \throws std::invalid_argument  a set that is not in order, on the rank that finds it; one with nodes of which none has a
///                                label, on all ranks. Messages name nodes by their indices in the whole graph
inline void check_owned(DistributedNodes& data, const Split& own) {
  const PartNumbers& numbers = data.numbers();
  const std::pair<const char*, const std::vector<std::int32_t>*> sets[] = {{"split.train", &own.train},
                                                                           {"split.validation", &own.validation},
                                                                           {"split.test", &own.test}};
  std::vector<std::int8_t> taken(static_cast<std::size_t>(numbers.own), 0);
  std::vector<double> counts;  // of each set: its nodes, and its nodes with a label
  for (const auto& [name, nodes] : sets) {
    sheafnn::detail::check_set(*nodes, taken, name,
                               [&](std::int32_t u) { return numbers.node[static_cast<std::size_t>(u)]; });
    const auto labelled = std::count_if(nodes->begin(), nodes->end(), [&](std::int32_t u) {
      return data.labels()[static_cast<std::size_t>(u)] >= 0;
    });
    counts.insert(counts.end(), {static_cast<double>(nodes->size()), static_cast<double>(labelled)});
  }
  data.ranks().sum(std::span<double>(counts));
  for (std::size_t k = 0; k < std::size(sets); ++k) {
    if (counts[2 * k] == 0 || counts[2 * k + 1] > 0) continue;
    throw_invalid_argument(sets[k].first, concat(counts[2 * k], " nodes"), "none of them has a known target");
  }
}

/// The figures of the best epoch that need the predictions of all test nodes: rank 0 computes them for all.
///
/// \param test  owned test nodes
inline void add_test_figures(DistributedNodes& data, std::span<const std::int32_t> test,
                             std::span<const double> best, Index outputs, TrainResult& result) {
  // Per node its label, or −2 if it is not a test node.
  std::vector<double> targets(static_cast<std::size_t>(data.node_count()), -2);
  for (const std::int32_t u : test)
    targets[static_cast<std::size_t>(u)] = data.labels()[static_cast<std::size_t>(u)];
  const std::vector<double> probabilities = data.gather(best, outputs), numbers = data.gather(targets, 1);
  if (data.ranks().is_root()) {
    std::vector<std::int32_t> labels, nodes;
    for (std::size_t u = 0; u < numbers.size(); ++u) {
      labels.push_back(std::max(-1, static_cast<std::int32_t>(numbers[u])));
      if (numbers[u] >= -1) nodes.push_back(static_cast<std::int32_t>(u));
    }
    const Classification loss(labels);
    const MatrixView<const double> view(probabilities.data(), data.numbers().total_nodes, outputs);
    result.test_nll = sheafnn::detail::score_of(loss, view, nodes).loss;
    result.test_ece = sheafnn::detail::calibration_error(probabilities, outputs, labels, nodes);
    sheafnn::detail::add_test_metrics(result, loss, probabilities, outputs, nodes);
  }
  double* const figures[] = {&result.test_nll,      &result.test_ece,   &result.test_roc_auc,
                             &result.test_macro_f1, &result.test_brier, &result.test_average_precision};
  for (double* figure : figures) data.ranks().broadcast(std::span<double>(figure, 1));
}

/// What all ranks must have in common but the split. \param resume  the state to resume from; null: a new training
template <class Model>
[[nodiscard]] Settings settings_of(const Model& model, const TrainOptions& options, const TrainingState* resume) {
  Settings r = settings_of(model);
  const Settings more = settings_of(options);
  r.insert(r.end(), more.begin(), more.end());
  r.emplace_back("epochs to resume from", std::to_string(resume == nullptr ? 0 : resume->history.size()));
  return r;
}

}  // namespace detail

/// States whose predictions stay with the ranks (checkpoint.hpp), in place of the states of TrainOptions.
struct OwnStates {
  /// Called on all ranks, with the predictions of the part's nodes. Empty: TrainOptions::on_checkpoint
  std::function<void(const TrainingState&)> on_checkpoint;
  const TrainingState* resume = nullptr;  ///< likewise; null: TrainOptions::resume
};

/// Trains `model` to classify the labelled nodes; see sheafnn::train(). All ranks call it with the same model and options
/// and end with the same parameters and result; times are each rank's own.
///
/// on_epoch and on_checkpoint are called on rank 0 only, what on_epoch answers holds for all. States are states of
/// sheafnn::train(), with the predictions of all nodes: a training resumes on any number of ranks, also on one without MPI.
/// Every rank gives the state to resume from. A training that stops on a metric of classes gathers the probabilities of
/// validation and test nodes on rank 0, every epoch.
///
/// \param own     owned nodes of the split, by their indices in the part (DistributedNodes::owned()); sets may be empty
/// \param states  all ranks give some, or none
/// \throws std::invalid_argument  an option out of range, data that do not fit the model, or a split that is not in order
/// \throws std::runtime_error     ranks that do not agree (require_agreement()); a diverged run; too little memory, naming
///                                the part's size. Rank 0 alone throws what callbacks throw, so that a program ends all
///                                ranks (run())
template <class Model>
TrainResult train_owned(Model& model, DistributedDataOf<Model>& data, const Split& own,
                        const TrainOptions& given = {}, const OwnStates& states = {}) {
  Communicator& ranks = data.ranks();
  const PartNumbers& numbers = data.numbers();
  const Index outputs = model.options().classes;
  const TrainingState* const resume = states.resume != nullptr ? states.resume : given.resume;
  require_agreement(ranks, detail::settings_of(model, given, resume));
  validate(given);
  require(outputs >= data.class_count(), "classes", outputs,
          detail::concat("the data have ", data.class_count(), " classes"));
  static_cast<void>(uses_closed_form<typename Model::Posterior>(given.kl_estimator));
  require(given.batch_size == 0, "batch_size", given.batch_size, "ranks take all training nodes in one step");
  sheafnn::detail::check_sample_loss<PartClassification, typename Model::Scalar>(given.sample_loss);

  TrainOptions options = given;
  options.threads = detail::threads_of_rank(model, data, given.threads);
  if (detail::root_says(ranks, static_cast<bool>(given.on_epoch))) {
    options.on_epoch = [&](const EpochReport& report) {
      const bool stop = ranks.is_root() && given.on_epoch(report) == EpochAction::stop;
      return detail::root_says(ranks, stop) ? EpochAction::stop : EpochAction::keep_training;
    };
  }
  if (states.on_checkpoint) {
    options.on_checkpoint = states.on_checkpoint;
  } else if (detail::root_says(ranks, static_cast<bool>(given.on_checkpoint))) {
    options.on_checkpoint = [&](const TrainingState& of_rank) {
      TrainingState whole = of_rank;
      whole.best_predictions = data.gather(of_rank.best_predictions, outputs);
      if (ranks.is_root()) given.on_checkpoint(whole);
    };
  }
  detail::check_owned(data, own);
  try {
    const PartClassification loss(data, own.train);
    loss.validate(data.node_count(), outputs);
    loss.check_stop_on(given.stop_on, own.validation);
    std::optional<TrainingState> state;
    if (resume != nullptr) {
      const bool of_part = states.resume != nullptr;
      const Index nodes = of_part ? data.node_count() : numbers.total_nodes;
      sheafnn::detail::check_conventions(resume->conventions, model.options());
      sheafnn::detail::check_state(*resume, given, model.parameters().size(), nodes * outputs,
                                   loss.has_nodes(own.validation));
      options.resume = resume;
      if (!of_part) {
        state = *resume;
        state->best_predictions = data.own_rows(resume->best_predictions, outputs);
        options.resume = &*state;
      }
    }
    sheafnn::detail::TrainingRun<Model, PartClassification> run(model, data.graph(), data.features(), loss, own,
                                                                options);
    return run.run([&](TrainResult& result) {
      detail::add_test_figures(data, own.test, run.best_predictions(), outputs, result);
    });
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(detail::concat("out of memory for a part of ", numbers.own, " nodes, ",
                                            data.node_count() - numbers.own, " in the halo, and ",
                                            sheafnn::detail::pairs_of(data.graph()),
                                            " incident pairs; more ranks on more computers have smaller parts"));
  }
}

/// The same with a split of the whole graph, which all ranks give.
///
/// \throws std::invalid_argument, std::runtime_error  as above; a split that is not in order
template <class Model>
TrainResult train(Model& model, DistributedDataOf<Model>& data, const Split& split,
                  const TrainOptions& options = {}, const OwnStates& states = {}) {
  require_agreement(data.ranks(), detail::settings_of(split));
  validate(split, data.numbers().total_nodes, "split");
  return train_owned(model, data, data.owned(split), options, states);
}

/// Predicts every node; see sheafnn::predict(). All ranks call it; rank 0 has the prediction of all nodes, elsewhere it is
/// empty.
///
/// \throws std::invalid_argument  an option out of range, or data that do not fit the model
template <class Model>
[[nodiscard]] Prediction predict(const Model& model, DistributedDataOf<Model>& data,
                                 const PredictOptions& given = {}) {
  PredictOptions options = given;
  if (given.threads == 0) options.threads = detail::threads_of_rank(model, data, 0);
  const Prediction own = sheafnn::predict(model, data.graph(), data.features(), options);
  Prediction r;
  r.class_count = own.class_count;
  r.probabilities = data.gather(own.probabilities, own.class_count);
  r.entropy = data.gather(own.entropy, 1);
  r.epistemic_variance = data.gather(own.epistemic_variance, 1);
  r.mutual_information = data.gather(own.mutual_information, 1);
  for (std::size_t u = 0; u < r.entropy.size(); ++u) {
    r.label.push_back(static_cast<std::int32_t>(
        sheafnn::detail::most_probable(r.probabilities, r.class_count, static_cast<Index>(u))));
  }
  return r;
}

}  // namespace sheafnn::distributed
