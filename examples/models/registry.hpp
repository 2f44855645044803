/// \file
/// Models chosen at run time: one entry for each network, kind of maps and stalk dimension, compiled on its own.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sheafnn/bsnn/cooperative_options.hpp>
#include <sheafnn/bsnn/flow_model_options.hpp>
#include <sheafnn/bsnn/options.hpp>
#include <sheafnn/bsnn/sheaf_use_figures.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/npz_writer.hpp>
#include <sheafnn/io/tensor_file.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <sheafnn/uncertainty/sampling.hpp>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace sheafnn {
struct TrainOptions;
struct TrainResult;
struct PredictOptions;
struct Prediction;
}  // namespace sheafnn

namespace programs {

/// The architecture of a network: of one with maps per incident pair (nsd, bsnn), of one with maps per node (csnn,
/// bcsnn), and of one in continuous time (flow, bflow); a model takes its own.
using NetworkOptions = std::tuple<sheafnn::ModelOptions, sheafnn::CooperativeOptions, sheafnn::FlowOptions>;

// Of what --model and checkpoints call bsnn, nsd, bcsnn, csnn, bflow and flow.
inline constexpr std::array<std::string_view, 6> model_names = {"bsnn", "nsd", "bcsnn", "csnn", "bflow", "flow"};
// Of what --maps and checkpoints call the maps per incident pair.
inline constexpr std::array<std::string_view, 4> maps_names = {"diagonal", "special-orthogonal", "general-linear",
                                                               "identity"};
[[nodiscard]] inline bool is_cooperative(std::string_view model) { return model == "csnn" || model == "bcsnn"; }
[[nodiscard]] inline bool is_bayesian(std::string_view model) {
  return model == "bsnn" || model == "bcsnn" || model == sheafnn::bayesian_flow_kind;
}
[[nodiscard]] inline bool is_flow(std::string_view model) {
  return model == sheafnn::flow_kind || model == sheafnn::bayesian_flow_kind;
}
/// Calls f with that of three options, or of three of anything, which belongs to a kind of network.
template <class Pairs, class Cooperative, class Flow, class F>
decltype(auto) with_kind(std::string_view model, Pairs& pairs, Cooperative& cooperative, Flow& flow, const F& f) {
  return is_cooperative(model) ? f(cooperative) : is_flow(model) ? f(flow) : f(pairs);
}
/// What find_model() calls the maps per node.
inline constexpr std::string_view cooperative_maps = "cooperative";

/// What a training returns beside its figures.
struct Keep {
  bool model = false;       ///< the trained model
  bool prediction = false;  ///< its predictions of all nodes
  bool sheaf_use = false;   ///< figures that show whether its sheaf is used
};

/// One training run.
struct TrainJob {
  const sheafnn::Dataset& data;
  const sheafnn::Split& split;
  const NetworkOptions& model;
  const sheafnn::TrainOptions& train;
  bool bayesian = true;
  std::uint64_t seed = 0;  ///< of the initial weights
  Keep keep;
};

/// What is left of it.
struct TrainOutcome {
  sheafnn::Index parameters = 0;                     ///< number of trained values
  NetworkOptions resolved;                           ///< with all defaults filled in
  std::vector<sheafnn::uncertainty::ReliabilityBin> reliability;  ///< of the test nodes; empty where there are none
  std::vector<sheafnn::Index> confusion;             ///< C × C, of the test nodes: rows are labels; or empty
  sheafnn::io::TensorFile checkpoint;                ///< the trained model, if it was to be kept
  sheafnn::uncertainty::SampledPrediction prediction;  ///< of all nodes, in the best epoch; if it was to be kept
  std::optional<sheafnn::SheafUse> sheaf_use;        ///< with the score of the validation nodes; if it was to be kept
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
                                 bool bayesian, const sheafnn::Dataset& data,
                                 const sheafnn::PredictOptions& options);
  /// What the model of a checkpoint has learned and predicts (io::learned_arrays), and the figures of its training
  /// where the checkpoint has them.
  sheafnn::io::NpzWriter (*learned)(const std::filesystem::path& path, const sheafnn::io::TensorFile& checkpoint,
                                    bool bayesian, const sheafnn::Dataset& data,
                                    const sheafnn::PredictOptions& options, sheafnn::Index layer);
  /// Figures of the sheaf of a checkpoint's model, with the score of these nodes.
  sheafnn::SheafUse (*sheaf_use)(const std::filesystem::path& path, const sheafnn::io::TensorFile& checkpoint,
                                 bool bayesian, const sheafnn::Dataset& data, std::span<const std::int32_t> nodes,
                                 const sheafnn::PredictOptions& options);
};

/// \param model  as --model and checkpoints name it
/// \throws std::invalid_argument  no such family or dimension, or not in this build
[[nodiscard]] const ModelEntry& find_model(std::string_view model, std::string_view maps, int stalk_dimension);

}  // namespace programs
