/// \file
/// Checkpoints: a trained model as a safetensors file, readable from Python as well. See model_tensors.hpp for
/// what such a file holds.
#pragma once

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/io/model_tensors.hpp"
#include "sheafnn/io/safetensors.hpp"

namespace sheafnn::io {

/// Reads kind, family, dimension and options of a checkpoint.
///
/// \throws std::runtime_error  the file cannot be read or is not a checkpoint
[[nodiscard]] inline CheckpointInfo read_checkpoint_info(const std::filesystem::path& path) {
  return checkpoint_info(path, read_safetensors(path));
}

/// Writes a model: to a temporary file first, which then takes the place of `path`.
///
/// \param more  further entries for the metadata map; must not use the keys of the model's own
/// \throws std::invalid_argument  as to_tensors(), before anything is written
/// \throws std::runtime_error     the file cannot be written; an old one is left as it was
template <class Model>
void save_checkpoint(const std::filesystem::path& path, const Model& model,
                     const std::map<std::string, std::string>& more = {}) {
  write_safetensors(path, to_tensors(model, more));
}

/// Reads a model of the given type.
///
/// \param posterior  the posterior's own state, such as a prior, which files do not hold: the state of the model that was saved
/// \throws std::runtime_error  the file cannot be read, is not a checkpoint, or holds another kind of model, another
///         family, stalk dimension or shape: both sides are named
template <class Model>
[[nodiscard]] Model load_checkpoint(const std::filesystem::path& path,
                                    const typename Model::Posterior& posterior = {}) {
  return from_tensors<Model>(path, read_safetensors(path), posterior);
}

/// Replaces the parameters and the feature plan of an existing model, which keeps its prior; on an error it is left as it was.
///
/// \throws std::runtime_error  as load_checkpoint(), also when the architectures differ
template <class Model>
void load_checkpoint_into(const std::filesystem::path& path, Model& model) {
  const TensorFile file = read_safetensors(path);
  const CheckpointInfo info = checkpoint_info(path, file);
  detail::check_kind<Model>(path, info);
  const std::map<std::string, std::string> found = option_texts(info.options<typename Model::Options>());
  const bool has_plan = !info.options<typename Model::Options>().feature_plan.empty();
  for (const auto& [key, value] : option_texts(model.options())) {
    if (key == "feature_plan" || (key == "feature_treatment" && has_plan)) continue;  // belong to the parameters
    if (found.at(key) != value) {
      detail::fail(path.string(), key, " is ", found.at(key), " in the file, but ", value, " in the model");
    }
  }
  FeaturePlan plan = info.options<typename Model::Options>().feature_plan;
  detail::load_parameters(path, file, model);
  model.set_feature_plan(std::move(plan));
}

}  // namespace sheafnn::io
