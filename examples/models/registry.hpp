/// \file
/// Models chosen at run time: one entry for each network, kind of maps and stalk dimension, compiled on its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sheafnn/bsnn/network_options.hpp>
#include <sheafnn/bsnn/sheaf_use_figures.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/npz_writer.hpp>
#include <sheafnn/io/tensor_file.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <sheafnn/uncertainty/sampling.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/node_data.hpp"

namespace sheafnn {
class GraphRows;
struct TrainOptions;
struct TrainResult;
struct PredictOptions;
struct Prediction;
}  // namespace sheafnn

namespace programs {

using sheafnn::is_bayesian;
using sheafnn::NetworkOptions;
using sheafnn::with_options_of;

/// What --model and checkpoints call the models.
inline constexpr auto model_names = [] {
  std::array<std::string_view, 2 * sheafnn::network_kinds.size()> r{};
  for (std::size_t i = 0; i < sheafnn::network_kinds.size(); ++i) {
    r[2 * i] = sheafnn::network_kinds[i].bayesian;
    r[2 * i + 1] = sheafnn::network_kinds[i].deterministic;
  }
  return r;
}();
/// The models whose maps are given with the data.
[[nodiscard]] inline std::string given_sheaf_models() {
  std::string r;
  for (const std::string_view model : model_names) {
    if (sheafnn::has_given_sheaf(model)) r += (r.empty() ? "" : ", ") + std::string(model);
  }
  return r;
}
// Of what --maps and checkpoints call the maps per incident pair.
inline constexpr std::array<std::string_view, 4> maps_names = {"diagonal", "special-orthogonal", "general-linear",
                                                               "identity"};
[[nodiscard]] inline bool is_cooperative(std::string_view model) {
  return sheafnn::CooperativeOptions::kind.has(model);
}
[[nodiscard]] inline bool is_flow(std::string_view model) { return sheafnn::FlowOptions::kind.has(model); }
/// Are the maps of a family that --maps chooses?
[[nodiscard]] inline bool has_family(std::string_view model) { return sheafnn::kind_of(model).own_maps.empty(); }
/// Are there figures of the sheaf that a network learns? On hypergraphs there are none.
[[nodiscard]] constexpr bool has_sheaf_use(std::string_view model) {
  return sheafnn::kind_of(model).learned_maps && !sheafnn::is_on_hypergraphs(model);
}
/// Does a network have learners of its nodes' maps?
template <class Options>
inline constexpr bool has_node_learner = !Options::kind.own_maps.empty() && requires(const Options& o) {
  o.learner_width;
};
/// What find_model() calls the maps of a network. \param maps  the family that is chosen
[[nodiscard]] inline std::string_view maps_of(std::string_view model, std::string_view maps) {
  return has_family(model) ? maps : sheafnn::kind_of(model).own_maps;
}

/// The names of the types of edges and nodes that a network knows. \param networks  a tuple like NetworkOptions
template <class Tuple>
[[nodiscard]] std::array<std::vector<std::string>, 2> types_of(std::string_view model, const Tuple& networks) {
  return with_options_of(model, networks, [](const auto& options) -> std::array<std::vector<std::string>, 2> {
    if constexpr (requires { options.edge_types; }) {
      return {options.edge_types, options.node_types};
    } else {
      return {};
    }
  });
}

/// What a training returns besides its figures.
struct Keep {
  bool model = false;       ///< the trained model
  bool prediction = false;  ///< its predictions of all nodes
  bool sheaf_use = false;   ///< figures that show whether its sheaf is used
};

class TargetLoss;
struct SampledJob;
struct NetworkOutcome;

/// One training run.
struct TrainJob {
  NodeData data;
  const sheafnn::Split& split;
  const NetworkOptions& model;
  const sheafnn::TrainOptions& train;
  bool bayesian = true;
  std::uint64_t seed = 0;  ///< of the initial weights
  Keep keep;
  const TargetLoss* loss = nullptr;  ///< of targets, in place of the classes of the labels; null: classes
};

/// What is left of it.
struct TrainOutcome {
  sheafnn::Index parameters = 0;                                  ///< number of trained values
  NetworkOptions resolved;                                        ///< with all defaults filled in
  std::vector<sheafnn::uncertainty::ReliabilityBin> reliability;  ///< of the test nodes; empty without test nodes
  std::vector<sheafnn::Index> confusion;               ///< C × C, of the test nodes: rows are labels; or empty
  sheafnn::io::TensorFile checkpoint;                  ///< the trained model, if it was to be kept
  sheafnn::uncertainty::SampledPrediction prediction;  ///< of all nodes, in the best epoch; if it was to be kept
  std::optional<sheafnn::SheafUse> sheaf_use;  ///< with the score of the validation nodes; if it was to be kept
  std::vector<double> targets;  ///< of a training on targets, their predictions in the best epoch: n × outputs
  sheafnn::Index epochs_before = 0;  ///< of the state that train_mpi resumed from
};

/// A network with a family of maps, or cooperative ones, and a stalk dimension.
struct ModelEntry {
  std::string_view bayesian, deterministic;  ///< what --model calls its two kinds
  std::string_view maps;
  int stalk_dimension;
  /// \throws std::invalid_argument  options that the model does not have, or out of range
  void (*check)(const NetworkOptions& options, bool bayesian);
  /// Trains a model; `result` is filled in.
  TrainOutcome (*train)(const TrainJob& job, sheafnn::TrainResult& result);
  /// Predicts every node with the model of a checkpoint; `path` is where it comes from.
  sheafnn::Prediction (*predict)(const std::filesystem::path& path, const sheafnn::io::TensorFile& checkpoint,
                                 bool bayesian, const NodeData& data, const sheafnn::PredictOptions& options);
  /// What the model of a checkpoint that was trained on targets predicts: n × outputs. `loss` need not know targets.
  std::vector<double> (*predict_targets)(const std::filesystem::path& path,
                                         const sheafnn::io::TensorFile& checkpoint, bool bayesian,
                                         const NodeData& data, const TargetLoss& loss,
                                         const sheafnn::PredictOptions& options);
  /// What the model of a checkpoint has learned and predicts (io::learned_arrays), and the figures of its training
  /// where the checkpoint has them.
  sheafnn::io::NpzWriter (*learned)(const std::filesystem::path& path, const sheafnn::io::TensorFile& checkpoint,
                                    bool bayesian, const NodeData& data, const sheafnn::PredictOptions& options,
                                    sheafnn::Index layer);
  /// Figures of the sheaf of a checkpoint's model, with the score of these nodes.
  sheafnn::SheafUse (*sheaf_use)(const std::filesystem::path& path, const sheafnn::io::TensorFile& checkpoint,
                                 bool bayesian, const NodeData& data, std::span<const std::int32_t> nodes,
                                 const sheafnn::PredictOptions& options);
  /// Trains a model on drawn neighbours.
  ///
  /// \throws std::invalid_argument  a network with maps that are given, and as sheafnn::train_on_samples()
  NetworkOutcome (*train_on_samples)(const SampledJob& job);
  /// Predicts some nodes with the model of a checkpoint, on drawn neighbours; see sheafnn::predict_on_samples().
  sheafnn::Prediction (*predict_on_samples)(const std::filesystem::path& path,
                                            const sheafnn::io::TensorFile& checkpoint, bool bayesian,
                                            const sheafnn::GraphRows& rows, std::span<const std::int32_t> nodes,
                                            std::span<const sheafnn::Index> fan_outs,
                                            const sheafnn::PredictOptions& options);
};

/// \param model  as --model and checkpoints name it
/// \throws std::invalid_argument  no such family or dimension, or not in this build
[[nodiscard]] const ModelEntry& find_model(std::string_view model, std::string_view maps, int stalk_dimension);

}  // namespace programs
