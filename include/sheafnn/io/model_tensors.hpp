/// \file
/// A model as named tensors and metadata, and back: the content of a checkpoint, without the file.
///
/// Tensors carry the parameters' names and out × in shapes. The metadata map holds the kind of model ("model": bsnn, nsd,
/// and the other names of bsnn/network_options.hpp) and the family ("maps"). It also holds the stalk dimension
/// ("stalk_dimension") and every field of the options as text. "format_version" says how to read it (format_version.hpp),
/// "sheafnn_version" who wrote it. Other entries, such as figures of the learned sheaf (sheaf_use_text.hpp), changes
/// no model.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/conventions.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/network_options.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/format_version.hpp"
#include "sheafnn/io/option_text.hpp"
#include "sheafnn/io/tensor_file.hpp"
#include "sheafnn/version.hpp"

namespace sheafnn::io {

/// What a checkpoint says about itself, before a model type is chosen.
struct CheckpointInfo {
  std::string model;             ///< "bsnn", "nsd", or another of network_kinds
  std::string posterior;         ///< its name; empty in files of versions that knew only the default
  std::string maps;              ///< name of the restriction-map family
  int stalk_dimension = 0;       ///< D
  StoredOptions networks;        ///< the options, in the struct of the model's kind
  std::map<std::string, std::string> metadata;  ///< everything, also what the writer added

  /// The options of a kind: ModelOptions, CooperativeOptions, … They have their defaults where the model is of another kind.
  template <class Options>
  [[nodiscard]] const Options& options() const noexcept {
    return std::get<Options>(networks);
  }
};

namespace detail {

[[nodiscard]] inline const std::string& metadata_value(const std::filesystem::path& path, const TensorFile& file,
                                                       const std::string& key) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) {
    fail(path.string(), "metadata key '", key, "' is missing; not a sheafnn checkpoint?");
  }
  return found->second;
}

/// Options that differ in files of earlier versions. One option is stored under another name: whether rows are scaled
/// to sum 1. Two options are missing and had another default: the sheaf activation and the form of the layers.
///
/// \throws std::invalid_argument  a text that is not a value of such an option
template <class Options>
void read_older_options(const std::map<std::string, std::string>& texts, Options& options) {
  if constexpr (requires { options.sheaf_activation; }) {
    if (!options.sheaf_activation) options.sheaf_activation = SheafActivation::tanh;
  }
  if constexpr (requires { options.layer = LayerForm::diffusion; }) {
    if (!options.layer) options.layer = LayerForm::diffusion;
  }
  const auto found = texts.find("normalise_features");
  if (found == texts.end() || texts.contains("feature_treatment")) return;
  bool rows = false;
  parse_option(found->first, printable(found->second), rows);
  options.feature_treatment = rows ? FeatureTreatment::rows : FeatureTreatment::none;
  options.feature_plan = FeaturePlan(options.feature_treatment, {{FeatureColumn{}, options.features}});
}

}  // namespace detail

/// Kind, family, dimension and options of a checkpoint.
///
/// \param path  the file it comes from, for messages
/// \throws std::runtime_error  it is not a checkpoint, or one of a later format version
[[nodiscard]] inline CheckpointInfo checkpoint_info(const std::filesystem::path& path, const TensorFile& file) {
  const Index version = detail::known_version(path.string(), file.metadata, checkpoint_version);
  CheckpointInfo info;
  info.model = detail::metadata_value(path, file, "model");
  // What networks of layers with given maps are called in files of versions that had no convolutions.
  if (info.model == ConvolutionOptions::kind.deterministic && !file.metadata.contains("widths")) {
    info.model = Snn<Diagonal<1>>::kind;
  }
  info.maps = detail::metadata_value(path, file, "maps");
  info.metadata = file.metadata;
  if (const auto found = file.metadata.find("posterior"); found != file.metadata.end()) {
    info.posterior = found->second;
  }
  try {
    Index dimension = 0;
    parse_option("stalk_dimension", detail::printable(detail::metadata_value(path, file, "stalk_dimension")),
                 dimension);
    require(dimension >= 1 && dimension <= sheaf::max_stalk_dimension, "stalk_dimension", dimension,
            "must be between 1 and 8");
    info.stalk_dimension = static_cast<int>(dimension);
    const auto read = [&](const Option& option, auto& field) {
      if (option.since != nullptr && !file.metadata.contains(option.key)) return;  // it keeps its default
      const std::string& text = detail::metadata_value(path, file, option.key);
      // An unprintable text is not an option and does not belong in a message; plans and lists are long, and check that themselves.
      using Field = std::remove_cvref_t<decltype(field)>;
      constexpr bool is_long = std::is_same_v<Field, FeaturePlan> || std::is_same_v<Field, std::vector<double>> ||
                               detail::is_name_list<Field>;
      parse_option(option.key, is_long ? text : detail::printable(text), field);
    };
    const auto read_all = [&](auto& options) {
      for_each_option(read, options);
      detail::read_older_options(file.metadata, options);
      if constexpr (requires { sheafnn::detail::use_conventions(version, options); }) {
        sheafnn::detail::use_conventions(version, options);
      }
    };
    with_options_of(info.model, info.networks, read_all);
  } catch (const std::invalid_argument& error) {
    detail::fail(path.string(), "metadata: ", error.what());
  }
  return info;
}

namespace detail {

[[nodiscard]] inline std::string shape_text(const std::vector<Index>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// The tensor of that name and shape.
[[nodiscard]] inline const Tensor& tensor_of(const std::filesystem::path& path, const TensorFile& file,
                                             const std::string& name, const std::vector<Index>& shape) {
  const Tensor* tensor = file.find(name);
  if (tensor == nullptr) {
    fail(path.string(), "tensor '", name, "' is missing; the model needs it");
  }
  if (tensor->shape != shape) {
    fail(path.string(), "tensor '", name, "' has shape ", shape_text(tensor->shape), " in the file, but ",
         shape_text(shape), " in the model");
  }
  return *tensor;
}

/// Adds the parameters of a loss that a file has after the model's own.
template <class S>
void add_loss_parameters(const TensorFile& file, layers::ParameterSet<S>& parameters) {
  for (const Tensor& tensor : file.tensors) {
    const auto is_same = [&](const layers::ParameterInfo& info) { return info.name == tensor.name; };
    if (!tensor.name.starts_with(layers::loss_prefix) || std::ranges::any_of(parameters.info(), is_same)) continue;
    parameters.add(printable(tensor.name), tensor.shape, layers::ParameterGroup::network);
  }
  parameters.finish();
}

/// Checks every tensor, then copies all tensors into the model.
template <class Model>
void load_parameters(const std::filesystem::path& path, const TensorFile& file, Model& model) {
  using S = typename Model::Scalar;
  const layers::ParameterSet<S>& layout = model.parameters();
  layers::ParameterSet<S> loaded = layout;
  add_loss_parameters(file, loaded);
  for (std::size_t i = 0; i < loaded.info().size(); ++i) {
    const layers::ParameterInfo& info = loaded.info()[i];
    loaded.set(static_cast<layers::ParameterId>(i),
               tensor_of(path, file, info.name, info.shape).template values<S>());
  }
  for (const Tensor& tensor : file.tensors) {
    bool known = false;
    for (const layers::ParameterInfo& info : loaded.info()) known = known || info.name == tensor.name;
    if (!known) {
      fail(path.string(), "tensor '", printable(tensor.name), "' is in the file, but not in the model");
    }
  }
  for (const layers::ParameterInfo& info : loaded.info()) {
    for (Index i = 0; i < info.size; ++i) {
      const S value = loaded.values()[info.offset + i];
      if (std::isfinite(value)) continue;
      fail(path.string(), "tensor '", info.name, "': number ", i, " is ", value, "; it must be finite");
    }
  }
  model.parameters() = std::move(loaded);
}

/// The posterior of files that do not name it.
template <class Model>
[[nodiscard]] std::string default_posterior_name() {
  using Family = typename Model::Family;
  return std::string(Model::bayesian ? DefaultPosterior<Family>::name : PointMass<Family>::name);
}

/// A model of these options, once the file has all of its tensors. Wrong metadata must not ask for more memory, nor for more
/// time, than the file's tensors.
template <class Model>
[[nodiscard]] Model make_model(const std::filesystem::path& path, const TensorFile& file,
                               const CheckpointInfo& info,
                               [[maybe_unused]] const typename Model::Posterior& posterior) {
  const auto check_tensors = [&](const Model& planned) {
    for (const layers::ParameterInfo& parameter : planned.parameters().info()) {
      static_cast<void>(tensor_of(path, file, parameter.name, parameter.shape));
    }
  };
  const auto& options = info.options<typename Model::Options>();
  if constexpr (std::is_constructible_v<Model, decltype(options), std::uint64_t, decltype(posterior)>) {
    check_tensors(Model(sheafnn::detail::LayoutOnly{}, options, posterior));
    return Model(options, 0, posterior);
  } else {  // a kind whose posterior has no state
    check_tensors(Model(sheafnn::detail::LayoutOnly{}, options));
    return Model(options);
  }
}

template <class Model>
void check_kind(const std::filesystem::path& path, const CheckpointInfo& info) {
  const auto check = [&](const char* key, const std::string& in_file, const std::string& in_program) {
    if (in_file != in_program) {
      fail(path.string(), key, " is ", printable(in_file), " in the file, but ", in_program, " in the program");
    }
  };
  check("model", info.model, std::string(Model::kind));
  check("maps", info.maps, std::string(Model::Family::name));
  check("stalk_dimension", std::to_string(info.stalk_dimension), std::to_string(Model::stalk_dimension));
  check("posterior", info.posterior.empty() ? default_posterior_name<Model>() : info.posterior,
        std::string(Model::Posterior::name));
}

}  // namespace detail

/// The content of a model's checkpoint.
///
/// \param more  further entries for the metadata map
/// \throws std::invalid_argument  one of them has a key of the model's own, or a parameter that is not finite: readers
///                                refuse it
template <class Model>
[[nodiscard]] TensorFile to_tensors(const Model& model, const std::map<std::string, std::string>& more = {}) {
  using S = typename Model::Scalar;
  TensorFile file;
  file.metadata = {{"format", "sheafnn"},
                   {"format_version", std::to_string(checkpoint_version)},
                   {"sheafnn_version", SHEAFNN_VERSION_STRING},
                   {"model", std::string(Model::kind)},
                   {"posterior", std::string(Model::Posterior::name)},
                   {"maps", std::string(Model::Family::name)},
                   {"stalk_dimension", std::to_string(Model::stalk_dimension)}};
  file.metadata.merge(option_texts(model.options()));
  for (const auto& [key, value] : more) {
    require(file.metadata.emplace(key, value).second, "metadata key", key, "is one of the model's own");
  }
  const layers::ParameterSet<S>& parameters = model.parameters();
  for (std::size_t i = 0; i < parameters.info().size(); ++i) {
    const layers::ParameterInfo& info = parameters.info()[i];
    const std::vector<S> values = parameters.get(static_cast<layers::ParameterId>(i), parameters.values());
    detail::require_finite(info.name, values);
    file.tensors.push_back(make_tensor<S>(info.name, info.shape, values));
  }
  return file;
}

/// The model of the given type from the content of a checkpoint.
///
/// \param path       the file it comes from, for messages
/// \param posterior  the posterior's own state, such as a prior, which files do not hold
/// \throws std::runtime_error  it is not a checkpoint, or holds another kind of model, another family, stalk
///         dimension or shape: both sides are named
template <class Model>
[[nodiscard]] Model from_tensors(const std::filesystem::path& path, const TensorFile& file,
                                 const typename Model::Posterior& posterior = {}) {
  const CheckpointInfo info = checkpoint_info(path, file);
  detail::check_kind<Model>(path, info);
  try {
    Model model = detail::make_model<Model>(path, file, info, posterior);
    detail::load_parameters(path, file, model);
    return model;
  } catch (const std::invalid_argument& error) {
    detail::fail(path.string(), error.what());
  }
}

}  // namespace sheafnn::io
