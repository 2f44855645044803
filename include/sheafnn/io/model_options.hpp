/// \file
/// Options of all kinds of models as texts, key by key, as checkpoints hold them.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/flow_model_options.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/shared_options.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/feature_plan_text.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io {

namespace detail {

/// Those that sheaf models and flows have.
template <class Options, class Visit>
void for_each_sheaf_option(Options& options, const Visit& visit) {
  sheafnn::detail::for_each_shared_option(options, options,
                                          [&](const char* key, auto& field, auto&) { visit(key, field); });
}

/// Calls visit(key, field) for every option.
template <class Options, class Visit>
void for_each_option(Options& options, const Visit& visit) {
  for_each_sheaf_option(options, visit);
  visit("layers", options.layers);
  visit("linear", options.linear);
  visit("layer_norm", options.layer_norm);
  visit("use_edges", options.use_edges);
  visit("filter", options.filter.basis);
  visit("filter_degree", options.filter.degree);
  visit("filter_coefficients", options.filter.coefficients);
  visit("filter_skip", options.filter.skip);
  visit("filter_published", options.filter.published);
  visit("filter_jacobi_alpha", options.filter.jacobi_alpha);
  visit("filter_jacobi_beta", options.filter.jacobi_beta);
  visit("filter_gegenbauer_lambda", options.filter.gegenbauer_lambda);
  visit("filter_largest_eigenvalue", options.filter.largest_eigenvalue);
  visit("residual_form", options.residual.form);
  visit("residual_alpha", options.residual.alpha);
  visit("residual_theta", options.residual.theta);
}

template <class Options, class Visit>
  requires std::same_as<std::remove_const_t<Options>, FlowOptions>
void for_each_option(Options& options, const Visit& visit) {
  for_each_sheaf_option(options, visit);
  visit("time", options.time);
  visit("method", options.method);
  visit("absolute_tolerance", options.absolute_tolerance);
  visit("relative_tolerance", options.relative_tolerance);
  visit("first_step", options.first_step);
  visit("max_steps", options.max_steps);
  visit("fixed_steps", options.fixed_steps);
  visit("negate_inside", options.negate_inside);
}

template <class Options, class Visit>
  requires std::same_as<std::remove_const_t<Options>, CooperativeOptions>
void for_each_option(Options& options, const Visit& visit) {
  visit("features", options.features);
  visit("channels", options.channels);
  visit("layers", options.layers);
  visit("classes", options.classes);
  visit("feature_treatment", options.feature_treatment);
  visit("feature_plan", options.feature_plan);
  visit("learner", options.learner);
  visit("learner_layers", options.learner_layers);
  visit("learner_width", options.learner_width);
  visit("learner_dropout", options.learner_dropout);
  visit("conformal", options.conformal);
  visit("activation", options.activation);
  visit("norm", options.norm);
  visit("left_weights", options.left_weights);
  visit("right_weights", options.right_weights);
  visit("residual", options.residual);
  visit("directed", options.directed);
  visit("in_degree_diagonal", options.in_degree_diagonal);
  visit("layer_learners", options.layer_learners);
  visit("separate_encoder", options.separate_encoder);
  visit("readout_layers", options.readout_layers);
  visit("negate_diffused", options.negate_diffused);
}

inline std::string option_text(Index value) { return std::to_string(value); }
inline std::string option_text(bool value) { return value ? "true" : "false"; }
inline std::string option_text(const std::optional<bool>& value) { return option_text(value.value_or(false)); }
inline std::string option_text(Normalisation value) { return std::string(to_string(value)); }
inline std::string option_text(std::optional<RotationParametrisation> value) {
  return std::string(to_string(value.value_or(RotationParametrisation::householder)));
}
inline std::string option_text(Activation value) { return std::string(to_string(value)); }
inline std::string option_text(NodeLearnerKind value) { return std::string(to_string(value)); }
inline std::string option_text(FlowMethod value) { return std::string(to_string(value)); }
inline std::string option_text(FeatureNorm value) { return std::string(to_string(value)); }
inline std::string option_text(double value) { return sheafnn::detail::shortest_text(value); }

inline std::string option_text(FeatureTreatment value) { return std::string(to_string(value)); }
inline std::string option_text(const FeaturePlan& value) { return to_text(value); }
inline std::string option_text(SpreadRange value) { return std::string(to_string(value)); }
inline std::string option_text(std::optional<SheafActivation> value) {
  return std::string(to_string(value.value_or(SheafActivation::tanh)));
}
inline std::string option_text(LearnerInput value) { return std::string(to_string(value)); }
inline std::string option_text(PolynomialBasis value) { return std::string(to_string(value)); }
inline std::string option_text(PolynomialCoefficients value) { return std::string(to_string(value)); }
inline std::string option_text(HighPassSkip value) { return std::string(to_string(value)); }
inline std::string option_text(ResidualForm value) { return std::string(to_string(value)); }

/// Options that files of older versions do not have: they keep their defaults.
[[nodiscard]] inline bool is_newer_option(std::string_view key) {
  for (const std::string_view newer :
       {"sheaf_activation", "learner", "edge_features", "layer_norm", "readout_layers", "directed",
        "in_degree_diagonal", "layer_learners", "negate_diffused", "augmented_filters", "use_edges",
        "feature_treatment", "feature_plan", "spread"}) {
    if (key == newer) return true;
  }
  return key.starts_with("filter") || key.starts_with("residual_");
}

inline void parse_option(const std::string& key, const std::string& text, Index& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), key, text, "must be a whole number");
}
inline void parse_option(const std::string& key, const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), key, text, "must be a number");
}
inline void parse_option(const std::string& key, const std::string& text, PolynomialBasis& value) {
  value = parse_name<PolynomialBasis>(key, text, polynomial_basis_names);
}
inline void parse_option(const std::string& key, const std::string& text, PolynomialCoefficients& value) {
  value = parse_name<PolynomialCoefficients>(key, text, polynomial_coefficients_names);
}
inline void parse_option(const std::string& key, const std::string& text, LearnerInput& value) {
  value = parse_name<LearnerInput>(key, text, learner_input_names);
}
inline void parse_option(const std::string& key, const std::string& text, std::optional<SheafActivation>& value) {
  value = parse_name<SheafActivation>(key, text, sheaf_activation_names);
}
inline void parse_option(const std::string& key, const std::string& text, SpreadRange& value) {
  value = parse_name<SpreadRange>(key, text, spread_range_names);
}
inline void parse_option(const std::string& key, const std::string& text, HighPassSkip& value) {
  value = parse_name<HighPassSkip>(key, text, high_pass_skip_names);
}
inline void parse_option(const std::string& key, const std::string& text, ResidualForm& value) {
  value = parse_name<ResidualForm>(key, text, residual_form_names);
}
inline void parse_option(const std::string& key, const std::string& text, FeatureTreatment& value) {
  value = parse_name<FeatureTreatment>(key, text, feature_treatment_names);
}
inline void parse_option(const std::string&, const std::string& text, FeaturePlan& value) {
  value = parse_feature_plan(text);
}
inline void parse_option(const std::string& key, const std::string& text, bool& value) {
  require(text == "true" || text == "false", key, text, "must be true or false");
  value = text == "true";
}
inline void parse_option(const std::string& key, const std::string& text, std::optional<bool>& value) {
  bool flag = false;
  parse_option(key, text, flag);
  value = flag;
}
inline void parse_option(const std::string&, const std::string& text, Normalisation& value) {
  value = parse_normalisation(text);
}
inline void parse_option(const std::string&, const std::string& text, std::optional<RotationParametrisation>& value) {
  value = parse_rotation_parametrisation(text);
}
inline void parse_option(const std::string& key, const std::string& text, Activation& value) {
  value = parse_name<Activation>(key, text, activation_names);
}
inline void parse_option(const std::string& key, const std::string& text, NodeLearnerKind& value) {
  value = parse_name<NodeLearnerKind>(key, text, node_learner_names);
}
inline void parse_option(const std::string& key, const std::string& text, FlowMethod& value) {
  value = parse_name<FlowMethod>(key, text, flow_method_names);
}
inline void parse_option(const std::string& key, const std::string& text, FeatureNorm& value) {
  value = parse_name<FeatureNorm>(key, text, feature_norm_names);
}

/// Options that older files have in place of newer ones, whether rows are scaled to sum 1; and those whose default was another
/// when they were not in files: the sheaf activation.
///
/// \throws std::invalid_argument  a text that is no value of such an option
template <class Options>
void read_older_options(const std::map<std::string, std::string>& texts, Options& options) {
  if constexpr (requires { options.sheaf_activation; }) {
    if (!options.sheaf_activation) options.sheaf_activation = SheafActivation::tanh;
  }
  const auto found = texts.find("normalise_features");
  if (found == texts.end() || texts.contains("feature_treatment")) return;
  bool rows = false;
  parse_option(found->first, printable(found->second), rows);
  options.feature_treatment = rows ? FeatureTreatment::rows : FeatureTreatment::none;
  options.feature_plan = FeaturePlan(options.feature_treatment, {{FeatureColumn{}, options.features}});
}

}  // namespace detail

}  // namespace sheafnn::io
