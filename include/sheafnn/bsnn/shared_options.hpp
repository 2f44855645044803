/// \file
/// What the options of several kinds of networks have in common: the checks of their sizes, and a walk over those that
/// networks of layers and continuous-time ones share.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/layers/limits.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::detail {

/// \throws std::invalid_argument  features, channels, layers, classes or readout_layers out of range
template <class Options>
void check_sizes(const Options& options) {
  require_between("features", options.features, 1, 1 << 28);
  require_between("channels", options.channels, 1, max_channels);
  require_between("layers", options.layers, 1, 64);
  require_between("classes", options.classes, 1, 1 << 20);
  require_between("readout_layers", options.readout_layers, 1, 8);
}

/// Are fixed filters normalised by (deg + 1)^{-1/2}, instead of deg^{-1/2}? math: "Fixed filters".
template <class Options>
[[nodiscard]] bool has_augmented_filters(const Options& options) {
  return options.normalisation != Normalisation::block || options.augmented_filters;
}

/// \throws std::invalid_argument  a plan of another number of columns than the model reads
inline void check_plan(const FeaturePlan& plan, Index features) {
  if (plan.empty() || plan.columns() == features) return;
  throw_invalid_argument("feature_plan", concat(plan.columns(), " columns"), concat("the model reads ", features));
}

/// Calls visit(name, field of a, the same field of b) for the options that ModelOptions and FlowOptions share.
///
/// \tparam A, B  these, or const; to walk over one alone, give it twice
template <class A, class B, class Visit>
void for_each_shared_option(A& a, B& b, const Visit& visit) {
  visit("features", a.features, b.features);
  visit("channels", a.channels, b.channels);
  visit("classes", a.classes, b.classes);
  visit("feature_treatment", a.feature_treatment, b.feature_treatment);
  visit("feature_plan", a.feature_plan, b.feature_plan);
  visit("add_lp", a.add_lp, b.add_lp);
  visit("add_hp", a.add_hp, b.add_hp);
  visit("edge_weights", a.edge_weights, b.edge_weights);
  visit("separate_encoder", a.separate_encoder, b.separate_encoder);
  visit("degree_input", a.degree_input, b.degree_input);
  visit("learner_layers", a.learner_layers, b.learner_layers);
  visit("learner_width", a.learner_width, b.learner_width);
  visit("second_linear", a.second_linear, b.second_linear);
  visit("left_weights", a.left_weights, b.left_weights);
  visit("right_weights", a.right_weights, b.right_weights);
  visit("activation", a.activation, b.activation);
  visit("normalisation", a.normalisation, b.normalisation);
  visit("parametrisation", a.parametrisation, b.parametrisation);
  visit("sheaf_activation", a.sheaf_activation, b.sheaf_activation);
  visit("spread", a.spread, b.spread);
  visit("readout_layers", a.readout_layers, b.readout_layers);
  visit("learner", a.learner, b.learner);
  visit("edge_features", a.edge_features, b.edge_features);
  visit("augmented_filters", a.augmented_filters, b.augmented_filters);
}
/// Those of `from` to `to`.
template <class From, class To>
void copy_shared_options(const From& from, To& to) {
  for_each_shared_option(from, to, [](const char*, const auto& one, auto& other) { other = one; });
}

}  // namespace sheafnn::detail
