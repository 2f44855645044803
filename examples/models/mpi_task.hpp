/// \file
/// What train_mpi trains on one rank, and how it trains a model: compiled once per model (instantiate_mpi.cpp.in).
#pragma once

#include <map>
#include <optional>
#include <sheafnn/distributed.hpp>
#include <sheafnn/distributed/checkpoint.hpp>
#include <sheafnn/io/training_state.hpp>
#include <string>
#include <string_view>
#include <tuple>

#include "models/kept_sheaf_use.hpp"
#include "models/model_on.hpp"
#include "models/outcome.hpp"
#include "models/registry.hpp"
#include "models/shared.hpp"
#include "models/sheaf_use_of.hpp"

namespace programs {

/// What is trained, on one rank.
struct MpiTask {
  NetworkOptions models;  ///< what is asked for, of each kind, for the training to come
  sheafnn::TrainOptions train;
  bool bayesian = false, keeps_model = false;
  std::string checkpoint, resume;  ///< files, or empty
  double shard_above = 0;          ///< distributed/checkpoint.hpp
  NodeData whole;                  ///< of a folder: without nodes, with one empty split
  sheafnn::distributed::DistributedNodes& part;             ///< on the same type of graph
  std::optional<sheafnn::Split> own;                        ///< of a folder: the owned nodes of its masks
  std::optional<sheafnn::distributed::Partition> clusters;  ///< of --clusters
  sheafnn::Index clusters_per_step;
  std::map<std::string, std::string>
      decisive;  ///< the settings that a resumed training must share with the interrupted one

  /// What a checkpoint of a split stores in addition to the state.
  [[nodiscard]] std::map<std::string, std::string> notes(std::size_t split) const {
    std::map<std::string, std::string> r = decisive;
    r["split"] = std::to_string(split);
    return r;
  }
  /// The state of --resume, if any. \param outputs  of the model
  [[nodiscard]] std::optional<sheafnn::TrainingState> state(std::size_t split, sheafnn::Index outputs) const {
    if (resume.empty()) return {};
    sheafnn::io::TrainingFile file = sheafnn::distributed::read_checkpoint(part, resume, outputs);
    for (const auto& [key, value] : notes(split)) {
      const auto found = file.metadata.find(key);
      if (key == "split" && found == file.metadata.end()) continue;  // older files do not say
      const std::string before = found == file.metadata.end() ? "nothing" : found->second;
      if (before == value) continue;
      throw std::runtime_error(sheafnn::detail::concat(resume, ": ", key, " was '", before, "' and is '", value,
                                                       "' now; this training cannot resume"));
    }
    return std::move(file.state);
  }
};

/// A family of maps and a stalk dimension, as ModelEntry.
struct MpiModel {
  std::string_view bayesian, deterministic, maps;
  int stalk_dimension;
  TrainOutcome (*train)(const MpiTask& task, std::size_t split, std::uint64_t seed, sheafnn::TrainResult& result);
};

template <class Model>
TrainOutcome train_on_ranks(const MpiTask& task, std::size_t split_number, std::uint64_t seed,
                            sheafnn::TrainResult& result) {
  namespace mpi = sheafnn::distributed;
  using Options = typename Model::Options;
  const sheafnn::Split& split = task.whole.splits[split_number];
  sheafnn::TrainOptions options = task.train;
  options.seed = seed;
  auto& part = static_cast<mpi::DistributedDataOf<Model>&>(task.part);
  Model model = model_on<Model>(task.whole, std::get<Options>(task.models), seed);
  const sheafnn::Index outputs = model.options().classes;
  const std::optional<sheafnn::TrainingState> state = task.state(split_number, outputs);
  mpi::OwnStates states;
  if (state) states.resume = &*state;
  if (!task.checkpoint.empty()) {
    states.on_checkpoint = [&](const sheafnn::TrainingState& own) {
      mpi::write_checkpoint(task.part, task.checkpoint, own, outputs, task.notes(split_number), task.shard_above);
    };
  }
  TrainOutcome r;
  const auto find_sheaf_use = [&] {
    keep_sheaf_use(r, sheaf_use_of(model, task.whole, split.validation,
                                   best_epoch_options(options, result.best_epoch)));
  };
  if constexpr (!sheafnn::is_on_hypergraphs(Model::kind)) {
    if (task.clusters) {
      result = mpi::train_in_clusters(model, task.whole.on<sheafnn::Graph>(), *task.clusters,
                                      task.clusters_per_step, split, options);
      r.parameters = model.parameters().size();
      std::get<Options>(r.resolved) = model.options();
      find_sheaf_use();
      return r;
    }
  }
  result = task.own ? mpi::train_owned(model, part, *task.own, options, states)
                    : mpi::train(model, part, split, options, states);
  sheafnn::Prediction prediction;
  if (!task.own) {
    prediction = mpi::predict(model, part, best_epoch_options(options, result.best_epoch));
  }
  if (part.ranks().is_root()) {
    r = outcome_of(model, result.best_epoch, [&] { return std::move(prediction); }, task.whole, split,
                   {.model = task.keeps_model});
    if (!task.own) find_sheaf_use();  // of the whole graph, which of a folder no rank has
  }
  if (state) r.epochs_before = static_cast<sheafnn::Index>(state->history.size());
  return r;
}

}  // namespace programs
