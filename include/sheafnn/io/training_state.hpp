/// \file
/// A training under way as a safetensors file: TrainingState, and texts that say what it belongs to.
///
/// | tensor | shape | numbers |
/// | --- | --- | --- |
/// | parameters, first_moment, second_moment, best_parameters | P | F64 |
/// | best_predictions | n · C | F64 |
/// | history | epochs × 9 | F64: loss, nll, kl, λ, validation loss, accuracy, test accuracy, metric: validation, test |
///
/// Older files lack the last two columns of `history`; a training resumes from them where it stops on loss or accuracy.
/// Metadata: format "sheafnn training", format_version (format_version.hpp), sheafnn_version, seed, best_epoch, best_by (TrainOptions::stop_on; older files lack it), and
/// what the writer added.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/stop_on.hpp"
#include "sheafnn/bsnn/training_state.hpp"
#include "sheafnn/io/format_version.hpp"
#include "sheafnn/io/safetensors.hpp"
#include "sheafnn/io/tensor_file.hpp"
#include "sheafnn/version.hpp"

namespace sheafnn::io {

/// A training state and the texts of its file.
struct TrainingFile {
  TrainingState state;
  std::map<std::string, std::string> metadata;  ///< everything, also what the writer added
};

namespace detail {

inline constexpr std::string_view training_format = "sheafnn training";
/// The columns of `history`, in order, and how many an older file has.
inline constexpr Index history_columns_before = 7;
inline constexpr std::array<double EpochReport::*, 9> history_columns = {&EpochReport::loss,
                                                                         &EpochReport::nll,
                                                                         &EpochReport::kl,
                                                                         &EpochReport::kl_weight,
                                                                         &EpochReport::validation_loss,
                                                                         &EpochReport::validation_accuracy,
                                                                         &EpochReport::test_accuracy,
                                                                         &EpochReport::validation_metric,
                                                                         &EpochReport::test_metric};

[[nodiscard]] inline const Tensor& training_tensor(const std::string& file, const TensorFile& tensors,
                                                   const char* name) {
  const Tensor* tensor = tensors.find(name);
  if (tensor == nullptr) fail(file, "tensor '", name, "' is missing");
  return *tensor;
}
[[noreturn]] inline void refuse_shape(const std::string& file, const char* name) {
  fail(file, "tensor '", name, "' has a wrong shape");
}
/// The values of a vector.
[[nodiscard]] inline std::vector<double> training_numbers(const std::string& file, const TensorFile& tensors,
                                                          const char* name) {
  const Tensor& tensor = training_tensor(file, tensors, name);
  if (tensor.shape.size() != 1) refuse_shape(file, name);
  return tensor.values<double>();
}
/// The epochs of `history`.
[[nodiscard]] inline std::vector<EpochReport> training_history(const std::string& file,
                                                               const TensorFile& tensors) {
  const Tensor& tensor = training_tensor(file, tensors, "history");
  const Index columns = tensor.shape.size() == 2 ? tensor.shape.back() : 0;
  if (columns != static_cast<Index>(history_columns.size()) && columns != history_columns_before)
    refuse_shape(file, "history");
  const std::vector<double> values = tensor.values<double>();
  std::vector<EpochReport> r(values.size() / static_cast<std::size_t>(columns));
  auto value = values.begin();
  for (std::size_t t = 0; t < r.size(); ++t) {
    r[t].epoch = static_cast<Index>(t);
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) r[t].*history_columns[c] = *value++;
  }
  return r;
}

}  // namespace detail

/// Writes a state: to a temporary file first, which then takes the place of `path`.
///
/// \param more  further entries for the metadata, say what the training belongs to
/// \throws std::invalid_argument  a key of `more` that the format uses itself; before anything is written
/// \throws std::invalid_argument  a number outside the history that is not finite, which readers refuse; as above
/// \throws std::runtime_error     the file cannot be written; an old one is left as it was
inline void write_training_state(const std::filesystem::path& path, const TrainingState& state,
                                 const std::map<std::string, std::string>& more = {}) {
  TensorFile file;
  file.metadata = {{"format", std::string(detail::training_format)},
                   {"format_version", std::to_string(state.conventions)},
                   {"sheafnn_version", SHEAFNN_VERSION_STRING},
                   {"seed", std::to_string(state.seed)},
                   {"best_epoch", std::to_string(state.best_epoch)}};
  if (state.stop_on) file.metadata.emplace("best_by", to_string(*state.stop_on));
  for (const auto& [key, value] : more) {
    require(file.metadata.emplace(key, value).second, "metadata key", key, "is one of the format's own");
  }
  const auto add = [&](const char* name, const std::vector<double>& values) {
    detail::require_finite(name, values);
    file.tensors.push_back(make_tensor<double>(name, {static_cast<Index>(values.size())}, values));
  };
  add("parameters", state.parameters);
  add("first_moment", state.first_moment);
  add("second_moment", state.second_moment);
  add("best_parameters", state.best_parameters);
  add("best_predictions", state.best_predictions);
  std::vector<double> history;
  for (const EpochReport& report : state.history) {
    for (const auto column : detail::history_columns) history.push_back(report.*column);
  }
  file.tensors.push_back(make_tensor<double>("history",
                                             {static_cast<Index>(state.history.size()),
                                              static_cast<Index>(detail::history_columns.size())},
                                             history));
  write_safetensors(path, file);
}

/// Reads a state. Whether it fits a model and its data is checked by train().
///
/// \throws std::runtime_error  the file cannot be read, is not one of write_training_state(), contradicts itself, or is
///                             of a later format version
[[nodiscard]] inline TrainingFile read_training_state(const std::filesystem::path& path) {
  const std::string name = path.string();
  const TensorFile file = read_safetensors(path);
  if (const auto found = file.metadata.find("format");
      found == file.metadata.end() || found->second != detail::training_format) {
    detail::fail(name, "is not the checkpoint of a training");
  }
  TrainingFile r;
  r.state.conventions = detail::known_version(name, file.metadata, training_state_version);
  r.metadata = file.metadata;
  r.state.seed = detail::metadata_number<std::uint64_t>(name, file.metadata, "seed");
  r.state.best_epoch = detail::metadata_number<Index>(name, file.metadata, "best_epoch");
  if (const auto found = file.metadata.find("best_by"); found != file.metadata.end()) {
    constexpr auto names = names_of(StopOn());
    const auto known = std::find(names.begin(), names.end(), found->second);
    if (known == names.end())
      detail::fail(name, "metadata: best_by is '", detail::printable(found->second), "'");
    r.state.stop_on = static_cast<StopOn>(known - names.begin());
  }
  const std::initializer_list<std::pair<const char*, std::vector<double>*>> vectors = {
      {"parameters", &r.state.parameters},
      {"first_moment", &r.state.first_moment},
      {"second_moment", &r.state.second_moment},
      {"best_parameters", &r.state.best_parameters},
      {"best_predictions", &r.state.best_predictions}};
  for (const auto& [key, values] : vectors) {
    *values = detail::training_numbers(name, file, key);
    for (std::size_t i = 0; i < values->size(); ++i) {
      if (std::isfinite((*values)[i])) continue;
      detail::fail(name, "tensor '", key, "': number ", i, " is ", (*values)[i], "; it must be finite");
    }
  }
  r.state.history = detail::training_history(name, file);
  return r;
}

}  // namespace sheafnn::io
