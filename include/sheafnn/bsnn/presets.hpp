/// \file
/// Presets: options that do well on a kind of graph, and the choice among them by size and homophily.
///
///     const sheafnn::Preset preset = sheafnn::choose_preset(data, data.splits[0]);
///     sheafnn::ModelOptions model{.features = data.feature_count(), .classes = data.class_count};
///     sheafnn::TrainOptions training;
///     sheafnn::apply(preset, model, training);  // the same for FlowOptions
///     training.stop_on = sheafnn::choose_stop_on(data, preset);
///
/// For CooperativeOptions it is apply(preset, model, bayesian, training). "Filters" below are the fixed filters, add_lp
/// and add_hp. The presets are described in docs/training.md, the origin of their numbers in docs/notebook/presets.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/bundle_options.hpp"
#include "sheafnn/bsnn/convolution_options.hpp"
#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/flow_model_options.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/statistics.hpp"

namespace sheafnn {

/// Kinds of graphs. A graph is homophilic when at least half of its edges join nodes of one class.
enum class Preset : std::uint8_t {
  small,         ///< below 1000 nodes, not homophilic: web pages of one university
  citation,      ///< below 10000 nodes, homophilic: papers that cite each other
  heterophilic,  ///< 1000 to 10000 nodes, not homophilic
  large,         ///< from 10000 nodes
  dense          ///< below 10000 nodes, not homophilic, mean degree of 10 or more: pages that link to many others
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(Preset) {
  return std::array{"small", "citation", "heterophilic", "large", "dense"};
}

/// The share of edges between training and validation nodes that join nodes of one class. Without such edges there is
/// no share. The labels of test nodes are not read.
///
/// \throws std::invalid_argument  labels or node numbers that do not fit the graph
[[nodiscard]] inline std::optional<double> seen_homophily(const Dataset& data, const Split& split) {
  require(static_cast<Index>(data.labels.size()) == data.node_count(), detail::part_name(data, "labels"),
          data.labels.size(), detail::concat("must equal the number of nodes, ", data.node_count()));
  std::vector<std::int32_t> seen(data.labels.size(), -1);
  for (const auto& [name, set] :
       {std::pair{"split.train", &split.train}, std::pair{"split.validation", &split.validation}}) {
    const std::string where = detail::part_name(data, name);
    for (const std::int32_t u : *set) {
      require_between<Index>(where, u, 0, data.node_count() - 1);
      seen[static_cast<std::size_t>(u)] = data.labels[static_cast<std::size_t>(u)];
    }
  }
  for (const Edge& e : data.graph.edges()) {
    if (seen[static_cast<std::size_t>(e.u)] >= 0 && seen[static_cast<std::size_t>(e.v)] >= 0) {
      return edge_homophily(data.graph, seen);
    }
  }
  return {};
}

/// The preset for a graph of n nodes. Graphs of unknown homophily count as homophilic. Takes any numbers.
///
/// \param degree  mean degree; 0 where it is unknown
[[nodiscard]] constexpr Preset choose_preset(Index n, std::optional<double> homophily, double degree = 0) {
  if (n >= 10'000) return Preset::large;
  if (homophily.value_or(1) >= 0.5) return Preset::citation;
  if (degree >= 10) return Preset::dense;
  return n < 1000 ? Preset::small : Preset::heterophilic;
}
/// The preset for a graph whose nodes have targets: targets have no homophily. Takes any.
[[nodiscard]] inline Preset choose_preset(const Graph& graph, std::optional<double> homophily = {}) {
  const double edges = static_cast<double>(graph.edge_count());
  const double nodes = static_cast<double>(std::max<Index>(graph.node_count(), 1));
  return choose_preset(graph.node_count(), homophily, 2 * edges / nodes);
}
/// The preset for a dataset, which depends on the labels of training and validation nodes only.
///
/// \throws std::invalid_argument  as seen_homophily()
[[nodiscard]] inline Preset choose_preset(const Dataset& data, const Split& split) {
  if (!data.target_names.empty()) return choose_preset(data.graph);
  return choose_preset(data.graph, seen_homophily(data, split));
}

/// The measure by which a training chooses its best epoch. It is the ROC AUC if one of two classes has at least two thirds
/// of the training and validation nodes of the first split. Otherwise it is `otherwise`, also if the validation nodes of a
/// split are all of one class and have no ROC AUC.
///
/// \throws std::invalid_argument  as seen_homophily()
[[nodiscard]] inline StopOn choose_stop_on(const Dataset& data, StopOn otherwise = StopOn::loss) {
  if (data.class_count != 2 || data.splits.empty()) return otherwise;
  const std::string where = detail::part_name(data, "split.validation");
  const auto label = [&](std::int32_t u) {
    require_between<Index>(where, u, 0, static_cast<Index>(data.labels.size()) - 1);
    return data.labels[static_cast<std::size_t>(u)];
  };
  for (const Split& split : data.splits) {
    const auto has = [&](std::int32_t c) {
      return std::any_of(split.validation.begin(), split.validation.end(),
                         [&](std::int32_t u) { return label(u) == c; });
    };
    if (!has(0) || !has(1)) return otherwise;
  }
  std::array<Index, 2> count = {0, 0};
  for (const auto* set : {&data.splits[0].train, &data.splits[0].validation}) {
    for (const std::int32_t u : *set) {
      if (label(u) == 0 || label(u) == 1) ++count[static_cast<std::size_t>(label(u))];
    }
  }
  const Index larger = std::max(count[0], count[1]);
  return 3 * larger >= 2 * (count[0] + count[1]) ? StopOn::roc_auc : otherwise;
}

/// The same for a training with a preset. For `dense`, the accuracy replaces the loss, because the loss is smallest
/// long before the accuracy is largest.
///
/// \throws std::invalid_argument  as seen_homophily()
[[nodiscard]] inline StopOn choose_stop_on(const Dataset& data, Preset preset) {
  return choose_stop_on(data, preset == Preset::dense ? StopOn::accuracy : StopOn::loss);
}

namespace detail {

/// Sets the training options that the presets of all networks have in common.
struct TrainingValues {
  double learning_rate, weight_decay, sheaf_decay, input_dropout, dropout, kl_maximum;
  Index epochs, patience;

  /// \param features  number of columns; 0 if it is unknown. With few columns every column counts: no column is
  ///                  dropped, and hidden features, from which the sheaf is learned, have a low dropout rate.
  /// \param one_rate  whether the learners have the learning rate of the other weights
  void set(TrainOptions& training, Index features, bool one_rate = false) const {
    const bool few = features > 0 && features < 30;
    training.learning_rate = learning_rate;
    if (one_rate) training.sheaf_learning_rate = 0;
    training.weight_decay = weight_decay;
    training.sheaf_decay = sheaf_decay;
    training.input_dropout = few ? 0 : input_dropout;
    training.dropout = few ? std::min(dropout, 0.3) : dropout;
    training.kl_maximum = kl_maximum;
    training.epochs = epochs;
    training.patience = patience;
  }
};

}  // namespace detail

/// Sets layers, channels, filters (if model.layer supports them), feature treatment, rates, decays, dropouts, KL
/// weight, epochs and patience. All other options stay the same. If model.features is below 30, no column is dropped
/// out, and the dropout rate of hidden features is at most 0.3. Takes any options.
inline void apply(Preset preset, ModelOptions& model, TrainOptions& training) {
  struct Values {
    Index layers, channels;
    bool add_lp, add_hp;
    FeatureTreatment features;
    detail::TrainingValues training;
  };
  using enum FeatureTreatment;
  constexpr std::array<Values, 5> values = {{
      {4, 20, true, true, automatic, {0.02, 5e-3, 5e-3, 0, 0.7, 0.003, 300, 100}},    // small
      {2, 16, true, false, automatic, {0.02, 5e-4, 5e-4, 0.7, 0.5, 0.003, 200, 60}},  // citation
      {2, 16, true, true, automatic, {0.01, 5e-4, 5e-4, 0, 0.7, 0.003, 300, 60}},     // heterophilic
      {4, 32, false, true, columns, {0.01, 0, 0, 0, 0.2, 0.003, 300, 100}},           // large
      {2, 16, true, true, automatic, {0.01, 5e-4, 5e-4, 0.5, 0.5, 0.003, 300, 60}},   // dense
  }};
  const Values& v = values[static_cast<std::size_t>(preset)];
  const bool filters = layers::has_fixed_filters(model.layer.value_or(LayerForm::diffusion));
  model.layers = v.layers;
  model.channels = v.channels;
  model.add_lp = v.add_lp && filters;
  model.add_hp = v.add_hp && filters;
  model.feature_treatment = v.features;
  v.training.set(training, model.features);
}

/// Sets the options of a continuous-time network: channels, filters, feature treatment, and the training options as
/// above. Takes any options.
inline void apply(Preset preset, FlowOptions& model, TrainOptions& training) {
  struct Values {
    Index channels;
    bool add_lp, add_hp;
    detail::TrainingValues training;
  };
  constexpr std::array<Values, 5> values = {{
      {16, false, true, {0.01, 2e-2, 5e-3, 0, 0.5, 0.01, 300, 60}},    // small
      {16, true, false, {0.01, 2e-2, 5e-3, 0.7, 0.5, 0.01, 200, 60}},  // citation
      {16, false, true, {0.01, 5e-3, 5e-3, 0, 0.5, 0.01, 200, 60}},    // heterophilic
      {32, false, true, {0.01, 0, 0, 0, 0.2, 0.01, 300, 100}},         // large
      {16, true, true, {0.01, 5e-3, 5e-3, 0.5, 0.5, 0.01, 200, 60}},   // dense
  }};
  const Values& v = values[static_cast<std::size_t>(preset)];
  model.channels = v.channels;
  model.add_lp = v.add_lp;
  model.add_hp = v.add_hp;
  model.feature_treatment = FeatureTreatment::columns;
  v.training.set(training, model.features);
}

/// Sets the options of convolutions on a given sheaf: two layers, and channels, feature treatment and training options
/// as for networks of layers. Takes any options.
inline void apply(Preset preset, ConvolutionOptions& model, TrainOptions& training) {
  ModelOptions of;
  of.features = model.features;
  apply(preset, of, training);
  model.layers = 2;
  model.channels = of.channels;
  model.feature_treatment = of.feature_treatment;
}

/// Sets the options of a cooperative network: layers, channels, feature treatment, norm, left weights, and the training
/// options as above. The learners have the learning rate of the other weights. Takes any options.
///
/// \param bayesian  for Bayesian networks, also sets whether every layer has learners
inline void apply(Preset preset, CooperativeOptions& model, bool bayesian, TrainOptions& training) {
  struct Values {
    Index layers, channels;
    bool layer_norm, left_weights;
    NodeLearnerKind learner;
    Index learner_layers, learner_width;
    detail::TrainingValues training;
  };
  using enum NodeLearnerKind;
  constexpr std::array<Values, 5> values = {{
      {1, 16, false, true, mlp, 1, 32, {0.01, 2e-2, 5e-3, 0, 0.5, 0.01, 300, 60}},                  // small
      {2, 16, false, true, sage, 1, 32, {0.01, 5e-3, 5e-3, 0.7, 0.5, 0.01, 200, 60}},               // citation
      {2, 16, false, true, mlp, 1, 32, {0.01, 5e-3, 5e-3, 0, 0.5, 0.01, 200, 60}},                  // heterophilic
      {5, 32, true, false, sage_projected, 5, 64, {0.002, 1e-7, 1e-7, 0.2, 0.2, 0.001, 400, 100}},  // large
      {1, 16, false, true, mlp, 1, 32, {0.01, 5e-3, 5e-3, 0.5, 0.5, 0.01, 300, 60}},                // dense
  }};
  const Values& v = values[static_cast<std::size_t>(preset)];
  model.layers = v.layers;
  model.channels = v.channels;
  model.feature_treatment = FeatureTreatment::columns;
  model.norm = v.layer_norm ? FeatureNorm::layer : FeatureNorm::none;
  model.left_weights = v.left_weights;
  model.learner = v.learner;
  model.learner_layers = v.learner_layers;
  model.learner_width = v.learner_width;
  model.layer_learners = bayesian;
  v.training.set(training, model.features, /*one_rate*/ true);
}

/// Sets the options of a bundle network: layers, bundles, feature treatment, and the training options as above. The
/// learners have the learning rate of the other weights. Published settings for five graphs: bundle_settings.hpp. Takes
/// any options.
inline void apply(Preset preset, BundleOptions& model, TrainOptions& training) {
  struct Values {
    Index layers, bundles;
    BundleLearnerKind learner;
    Index learner_layers;
    detail::TrainingValues training;
  };
  using enum BundleLearnerKind;
  constexpr std::array<Values, 5> values = {{
      {2, 16, mlp, 1, {0.003, 5e-3, 5e-3, 0, 0.5, 0.003, 300, 100}},      // small
      {2, 32, sage, 1, {0.003, 5e-4, 5e-4, 0.5, 0.5, 0.003, 200, 60}},    // citation
      {2, 32, sage, 1, {0.003, 5e-4, 5e-4, 0, 0.5, 0.003, 300, 60}},      // heterophilic
      {5, 32, sage_residual, 5, {0.001, 0, 0, 0, 0.2, 0.003, 400, 100}},  // large
      {1, 32, mlp, 1, {0.003, 5e-4, 5e-4, 0.5, 0.5, 0.003, 300, 60}},     // dense
  }};
  const Values& v = values[static_cast<std::size_t>(preset)];
  model.layers = v.layers;
  model.bundles = v.bundles;
  model.feature_treatment = FeatureTreatment::columns;
  model.learner = v.learner;
  model.learner_layers = v.learner_layers;
  v.training.set(training, model.features, /*one_rate*/ true);
}

/// The same for networks of any kind. `bayesian` matters only for cooperative networks. Takes any options.
template <class Options>
void apply(Preset preset, Options& model, bool, TrainOptions& training) {
  apply(preset, model, training);
}

}  // namespace sheafnn
