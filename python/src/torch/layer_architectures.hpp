/// \file
/// What sheafnn.torch knows of layers that are not part of a network, whatever computes their passes. They are a diffusion layer with
/// given maps, and a sheaf learner with its maps.
#pragma once

#include <cstdint>
#include <map>
#include <sheafnn/io/option_text.hpp>
#include <sheafnn/layers/sheaf_diffusion_layer.hpp>
#include <sheafnn/layers/sheaf_learner.hpp>
#include <sheafnn/nn/parameters.hpp>
#include <sheafnn/posterior/point_map.hpp>
#include <string>
#include <vector>

#include "network_architecture.hpp"
#include "pass.hpp"

namespace python {

/// \param use  use(key, field) for the options that texts can set
template <class Use>
void for_diffusion_options(sheafnn::layers::SheafDiffusionOptions& options, const Use& use) {
  use("channels", options.channels);
  use("left_weights", options.left);
  use("right_weights", options.right);
  use("activation", options.activation);
  use("normalisation", options.normalisation);
  use("add_lp", options.add_lp);
  use("add_hp", options.add_hp);
}

template <class Family, class S>
class DiffusionArchitecture : public Architecture {
 public:
  explicit DiffusionArchitecture(const Setting& setting) {
    std::map<std::string, std::string> texts = setting.options;
    const auto take = [&](const char* key, auto& field) {
      const auto found = texts.extract(key);
      if (!found.empty()) sheafnn::io::parse_option(key, found.mapped(), field);
    };
    for_diffusion_options(options_, take);
    take("edge_weights", weighted_);
    if (!texts.empty()) {
      sheafnn::throw_invalid_argument(sheafnn::detail::concat("options['", texts.begin()->first, "']"),
                                      texts.begin()->second, "a diffusion layer has no such option");
    }
    setting_.diffusion = {options_.left, options_.right, options_.activation};
    setting_.coordinates = Family::stalk_dimension + (options_.add_lp ? 1 : 0) + (options_.add_hp ? 1 : 0);
    setting_.channels = options_.channels;
    sheafnn::require_between("channels", options_.channels, 1, sheafnn::layers::max_channels);
    sheafnn::layers::ParameterList<sheafnn::layers::ParameterSlot> list(parameters_);
    at_.declare(list, setting_);
  }

  [[nodiscard]] Shapes parameters() const override { return shapes_of(parameters_); }
  [[nodiscard]] std::vector<std::vector<double>> initial(std::uint64_t seed) const override {
    return initial_of(parameters_, seed);
  }
  [[nodiscard]] Index width() const override { return setting_.coordinates * setting_.channels; }
  [[nodiscard]] std::map<std::string, std::string> metadata() const override { return {}; }

 protected:
  sheafnn::layers::SheafDiffusionOptions options_;
  bool weighted_ = false;
  sheafnn::layers::LayerSetting setting_;
  sheafnn::layers::ParameterSet<double> parameters_;
  sheafnn::layers::DiffusionWeights<sheafnn::layers::ParameterSlot> at_;  ///< their places
};

/// The setting from which a learner is built, as the options of a network with one layer.
template <class Model>
struct LearnerSetting {
  explicit LearnerSetting(const Model& model)
      : sizes(model.layout().learner),
        point{*model.options().parametrisation, *model.options().sheaf_activation} {}

  sheafnn::layers::SheafLearnerOptions sizes;
  sheafnn::PointMap<typename Model::Family> point;
};

/// The options belong to a network that has the learner.
///
/// \tparam Model  a deterministic network with maps per incident pair
template <class Model>
class LearnerArchitecture : public ModelArchitecture<Model> {
 public:
  explicit LearnerArchitecture(const Setting& setting)
      : ModelArchitecture<Model>(setting), setting_(this->model()) {
    sheafnn::layers::ParameterList<sheafnn::layers::ParameterSlot> list(parameters_);
    at_.declare(list, setting_.sizes, 0);
  }

  [[nodiscard]] Shapes parameters() const override { return shapes_of(parameters_); }
  [[nodiscard]] std::vector<std::vector<double>> initial(std::uint64_t seed) const override {
    return initial_of(parameters_, seed);
  }
  [[nodiscard]] Index width() const override { return setting_.sizes.inputs; }
  [[nodiscard]] Index row() const override { return width(); }

 protected:
  LearnerSetting<Model> setting_;
  sheafnn::layers::ParameterSet<typename Model::Scalar> parameters_;
  sheafnn::layers::SheafLearnerWeights<sheafnn::layers::ParameterSlot> at_;  ///< their places
};

}  // namespace python
