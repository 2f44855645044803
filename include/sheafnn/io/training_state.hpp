/// \file
/// A training under way as a safetensors file: TrainingState, and texts that say what it belongs to.
///
/// | tensor | shape | numbers |
/// | --- | --- | --- |
/// | parameters, first_moment, second_moment, best_parameters | P | F64 |
/// | best_predictions | n · C | F64 |
/// | history | epochs × 7 | F64: loss, nll, kl, λ, validation loss, validation accuracy, test accuracy |
///
/// Metadata: format "sheafnn training", seed, best_epoch, and what the writer added.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/training_state.hpp"
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
/// The columns of `history`, in order.
inline constexpr std::array<double EpochReport::*, 7> history_columns = {&EpochReport::loss,
                                                                         &EpochReport::nll,
                                                                         &EpochReport::kl,
                                                                         &EpochReport::kl_weight,
                                                                         &EpochReport::validation_loss,
                                                                         &EpochReport::validation_accuracy,
                                                                         &EpochReport::test_accuracy};

/// A whole number from the metadata.
template <class T>
[[nodiscard]] T metadata_number(const std::string& file, const std::map<std::string, std::string>& metadata,
                                const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) fail(file, "metadata key '", key, "' is missing");
  const std::string& text = found->second;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(file, "metadata: ", key, " is '", printable(text), "'; it must be a whole number");
  }
  return value;
}

/// The numbers of a tensor of one or two axes. \param columns  of a matrix; 0 for a vector
[[nodiscard]] inline std::vector<double> training_numbers(const std::string& file, const TensorFile& tensors,
                                                          const char* name, Index columns = 0) {
  const Tensor* tensor = tensors.find(name);
  if (tensor == nullptr) fail(file, "tensor '", name, "' is missing");
  const bool fits =
      columns == 0 ? tensor->shape.size() == 1 : tensor->shape.size() == 2 && tensor->shape.back() == columns;
  if (!fits) fail(file, "tensor '", name, "' has a wrong shape");
  return tensor->values<double>();
}

}  // namespace detail

/// Writes a state: to a temporary file first, which then takes the place of `path`.
///
/// \param more  further entries for the metadata, say what the training belongs to
/// \throws std::invalid_argument  a key of `more` that the format uses itself
/// \throws std::runtime_error     the file cannot be written; an old one is left as it was
inline void write_training_state(const std::filesystem::path& path, const TrainingState& state,
                                 const std::map<std::string, std::string>& more = {}) {
  TensorFile file;
  file.metadata = {{"format", std::string(detail::training_format)},
                   {"sheafnn_version", SHEAFNN_VERSION_STRING},
                   {"seed", std::to_string(state.seed)},
                   {"best_epoch", std::to_string(state.best_epoch)}};
  for (const auto& [key, value] : more) {
    require(file.metadata.emplace(key, value).second, "metadata key", key, "is one of the format's own");
  }
  const auto add = [&](const char* name, const std::vector<double>& values) {
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
/// \throws std::runtime_error  the file cannot be read, is not one of write_training_state(), or contradicts itself
[[nodiscard]] inline TrainingFile read_training_state(const std::filesystem::path& path) {
  const std::string name = path.string();
  const TensorFile file = read_safetensors(path);
  if (const auto found = file.metadata.find("format");
      found == file.metadata.end() || found->second != detail::training_format) {
    detail::fail(name, "is not the checkpoint of a training");
  }
  TrainingFile r;
  r.metadata = file.metadata;
  r.state.seed = detail::metadata_number<std::uint64_t>(name, file.metadata, "seed");
  r.state.best_epoch = detail::metadata_number<Index>(name, file.metadata, "best_epoch");
  const std::initializer_list<std::pair<const char*, std::vector<double>*>> vectors = {
      {"parameters", &r.state.parameters},
      {"first_moment", &r.state.first_moment},
      {"second_moment", &r.state.second_moment},
      {"best_parameters", &r.state.best_parameters},
      {"best_predictions", &r.state.best_predictions}};
  for (const auto& [key, values] : vectors) {
    *values = detail::training_numbers(name, file, key);
    for (const double value : *values) {
      if (!std::isfinite(value)) detail::fail(name, "tensor '", key, "' holds a number that is not finite");
    }
  }
  const Index columns = static_cast<Index>(detail::history_columns.size());
  const std::vector<double> history = detail::training_numbers(name, file, "history", columns);
  r.state.history.resize(history.size() / detail::history_columns.size());
  for (std::size_t t = 0; t < r.state.history.size(); ++t) {
    r.state.history[t].epoch = static_cast<Index>(t);
    for (std::size_t c = 0; c < detail::history_columns.size(); ++c) {
      r.state.history[t].*detail::history_columns[c] = history[t * detail::history_columns.size() + c];
    }
  }
  return r;
}

}  // namespace sheafnn::io
