/// \file
/// The fixed list of settings that a search tries (bsnn/search.hpp). They differ in network, family of maps and depth.
/// The list includes the identity sheaf and a network without edges. The best setting for a graph is not known
/// beforehand.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/presets.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/graph/feature_treatment.hpp"

namespace sheafnn {

/// One setting: a network, by its names in programs and checkpoints, and its options.
struct SearchSetting {
  std::string_view name;
  std::string_view model, maps;  ///< "nsd", "diagonal"
  int stalk_dimension = 1;
  Index layers = 2, channels = 16;
  bool add_lp = false, add_hp = false, use_edges = true;
  LearnerInput learner = LearnerInput::concatenation;  ///< option of bsnn and nsd
  Normalisation normalisation = Normalisation::augmented;
  PolynomialBasis filter = PolynomialBasis::none;
  FeatureTreatment features = FeatureTreatment::automatic;
  NodeLearnerKind node_learner = NodeLearnerKind::mlp;  ///< option of csnn and bcsnn
  detail::TrainingValues training = {};
};

namespace detail {

// Rate, decays, dropouts, KL weight, epochs, patience.
inline constexpr TrainingValues light_decay = {0.01, 5e-4, 5e-4, 0.5, 0.5, 0.01, 300, 60};
inline constexpr TrainingValues strong_decay = {0.01, 5e-3, 5e-3, 0.5, 0.5, 0.01, 300, 60};
inline constexpr TrainingValues all_features = {0.01, 5e-4, 5e-4, 0, 0.5, 0.01, 300, 60};
inline constexpr TrainingValues much_dropout = {0.02, 5e-4, 5e-4, 0.7, 0.5, 0.01, 300, 60};
inline constexpr TrainingValues no_dropout = {0.01, 1e-3, 1e-4, 0, 0, 0.01, 400, 100};

inline constexpr std::array all_search_settings = {
    SearchSetting{.name = "nodes alone",
                  .model = "nsd",
                  .maps = "identity",
                  .layers = 1,
                  .channels = 64,
                  .use_edges = false,
                  .training = all_features},
    SearchSetting{.name = "nodes alone, strong decay",
                  .model = "nsd",
                  .maps = "identity",
                  .layers = 1,
                  .channels = 64,
                  .use_edges = false,
                  .features = FeatureTreatment::columns,
                  .training = strong_decay},
    SearchSetting{.name = "identity sheaf, low-pass",
                  .model = "nsd",
                  .maps = "identity",
                  .channels = 32,
                  .add_lp = true,
                  .training = light_decay},
    SearchSetting{.name = "rotations, both filters",
                  .model = "bsnn",
                  .maps = "special-orthogonal",
                  .stalk_dimension = 3,
                  .add_lp = true,
                  .add_hp = true,
                  .training = light_decay},
    SearchSetting{.name = "diagonal, both filters",
                  .model = "nsd",
                  .maps = "diagonal",
                  .stalk_dimension = 2,
                  .add_lp = true,
                  .add_hp = true,
                  .training = light_decay},
    SearchSetting{.name = "cooperative",
                  .model = "csnn",
                  .maps = "cooperative",
                  .stalk_dimension = 2,
                  .layers = 1,
                  .features = FeatureTreatment::columns,
                  .training = strong_decay},
    SearchSetting{.name = "cooperative, neighbours",
                  .model = "csnn",
                  .maps = "cooperative",
                  .stalk_dimension = 3,
                  .features = FeatureTreatment::columns,
                  .node_learner = NodeLearnerKind::sage,
                  .training = strong_decay},
    SearchSetting{.name = "diagonal, low-pass",
                  .model = "bsnn",
                  .maps = "diagonal",
                  .stalk_dimension = 2,
                  .add_lp = true,
                  .training = much_dropout},
    SearchSetting{.name = "rotations, summed learner",
                  .model = "nsd",
                  .maps = "special-orthogonal",
                  .stalk_dimension = 2,
                  .add_lp = true,
                  .add_hp = true,
                  .learner = LearnerInput::summed,
                  .training = light_decay},
    SearchSetting{.name = "general, both filters",
                  .model = "nsd",
                  .maps = "general-linear",
                  .stalk_dimension = 2,
                  .add_lp = true,
                  .add_hp = true,
                  .features = FeatureTreatment::columns,
                  .training = strong_decay},
    SearchSetting{.name = "diagonal, four layers",
                  .model = "nsd",
                  .maps = "diagonal",
                  .stalk_dimension = 3,
                  .layers = 4,
                  .add_lp = true,
                  .add_hp = true,
                  .features = FeatureTreatment::columns,
                  .training = strong_decay},
    SearchSetting{.name = "rotations, high-pass",
                  .model = "bsnn",
                  .maps = "special-orthogonal",
                  .stalk_dimension = 2,
                  .add_hp = true,
                  .training = strong_decay},
    SearchSetting{.name = "diagonal, block",
                  .model = "nsd",
                  .maps = "diagonal",
                  .stalk_dimension = 2,
                  .add_lp = true,
                  .normalisation = Normalisation::block,
                  .training = light_decay},
    SearchSetting{.name = "identity sheaf, Chebyshev",
                  .model = "nsd",
                  .maps = "identity",
                  .channels = 32,
                  .filter = PolynomialBasis::chebyshev,
                  .training = light_decay},
    SearchSetting{.name = "rotations, no dropout",
                  .model = "bsnn",
                  .maps = "special-orthogonal",
                  .stalk_dimension = 3,
                  .training = no_dropout},
    SearchSetting{.name = "cooperative, Bayesian",
                  .model = "bcsnn",
                  .maps = "cooperative",
                  .stalk_dimension = 3,
                  .features = FeatureTreatment::columns,
                  .training = strong_decay},
};

}  // namespace detail

/// The settings, in the order in which they should be tried if there is little time.
[[nodiscard]] constexpr std::span<const SearchSetting> search_settings() noexcept {
  return detail::all_search_settings;
}

/// The measure by which every training of a search chooses its best epoch.
///
/// \throws std::invalid_argument  as choose_stop_on()
[[nodiscard]] inline StopOn search_stop_on(const Dataset& data) { return choose_stop_on(data, StopOn::accuracy); }

/// Sets the options of a network with maps per incident pair, and of its training, from a setting. The caller sets
/// training.stop_on to search_stop_on(data). Takes any options.
inline void apply(const SearchSetting& setting, ModelOptions& model, TrainOptions& training) {
  model.layers = setting.layers;
  model.channels = setting.channels;
  model.feature_treatment = setting.features;
  model.add_lp = setting.add_lp;
  model.add_hp = setting.add_hp;
  model.use_edges = setting.use_edges;
  model.learner = setting.learner;
  model.normalisation = setting.normalisation;
  model.filter.basis = setting.filter;
  setting.training.set(training, model.features);
}
/// The same for a cooperative network.
inline void apply(const SearchSetting& setting, CooperativeOptions& model, TrainOptions& training) {
  model.layers = setting.layers;
  model.channels = setting.channels;
  model.feature_treatment = setting.features;
  model.learner = setting.node_learner;
  model.layer_learners = setting.model == "bcsnn";
  setting.training.set(training, model.features, /*cooperative*/ true);
}

}  // namespace sheafnn
