/// \file
/// Models made for a dataset: where maps are given, they come with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <sheafnn/bsnn/given_posterior.hpp>
#include <sheafnn/bsnn/network_options.hpp>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/model_tensors.hpp>
#include <sheafnn/posterior/around_given.hpp>
#include <sheafnn/sheaf/cellular_sheaf.hpp>
#include <string_view>

#include "models/node_data.hpp"

namespace programs {

/// Does a model have maps that come with a dataset?
template <class Model>
inline constexpr bool reads_given_sheaf = sheafnn::has_given_sheaf(Model::kind);

/// What determines the distributions around the maps, if the options say it.
template <class Options>
[[nodiscard]] std::optional<sheafnn::DeviationSource> deviation_of(const Options& options) {
  if constexpr (requires { options.deviation; }) return options.deviation;
  return {};
}

/// Refuses such a model. \param data  that it does not know
[[noreturn]] inline void refuse_given_sheaf(std::string_view model, std::string_view data) {
  sheafnn::throw_invalid_argument(
      "model", model,
      sheafnn::detail::concat("its maps are given for the edges of a whole graph, not for ", data));
}

/// Refuses a network on hypergraphs. \param what  that does not exist for them
[[noreturn]] inline void refuse_hypergraphs(std::string_view model, std::string_view what) {
  sheafnn::throw_invalid_argument("model", model,
                                  sheafnn::detail::concat("it works on hypergraphs, for which there are no ",
                                                          what));
}

/// A new model.
///
/// \param like  null, or a model of this dataset with the same options, whose given maps the new model shares
template <class Model>
[[nodiscard]] Model model_on(const NodeData& data, const typename Model::Options& options, std::uint64_t seed,
                             const Model* like = nullptr) {
  if constexpr (reads_given_sheaf<Model>) {
    if (like != nullptr) return Model(options, seed, like->posterior());
    return Model(options, seed,
                 sheafnn::given_posterior<typename Model::Posterior>(data.on<sheafnn::Graph>(),
                                                                     deviation_of(options)));
  } else {
    return Model(options, seed);
  }
}
/// The model of a checkpoint.
template <class Model>
[[nodiscard]] Model loaded_on(const NodeData& data, const std::filesystem::path& path,
                              const sheafnn::io::TensorFile& checkpoint) {
  if constexpr (reads_given_sheaf<Model>) {
    const sheafnn::io::CheckpointInfo info = sheafnn::io::checkpoint_info(path, checkpoint);
    const auto& options = std::get<typename Model::Options>(info.networks);
    return sheafnn::io::from_tensors<Model>(
        path, checkpoint,
        sheafnn::given_posterior<typename Model::Posterior>(data.on<sheafnn::Graph>(), deviation_of(options)));
  } else {
    return sheafnn::io::from_tensors<Model>(path, checkpoint);
  }
}
/// Checks the options of a model.
///
/// \throws std::invalid_argument  options that the model does not have, or out of range
template <class Model>
void check_model_options(const typename Model::Options& options) {
  if constexpr (reads_given_sheaf<Model> && requires { options.deviation; }) {
    static_cast<void>(
        resolve(options, Model::stalk_dimension, sheafnn::sheaf::is_orthogonal<typename Model::Family>));
  } else if constexpr (reads_given_sheaf<Model>) {
    using Sheaf = sheafnn::CellularSheaf<typename Model::Family>;
    static_cast<void>(Model(options, 0, typename Model::Posterior(Sheaf(sheafnn::Graph()))));
  } else {
    static_cast<void>(Model(options));
  }
}

}  // namespace programs
