/// \file
/// ModelParts: what every kind of model holds besides its types: resolved options, the places of its parameters, and their values.
#pragma once

#include <concepts>
#include <utility>

#include "sheafnn/bsnn/shared_options.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::detail {

/// Base of models.
///
/// \tparam Layout  the places of the parameters that the weights of the kind declare
template <class OptionsType, class Layout, std::floating_point S>
class ModelParts {
 public:
  using Options = OptionsType;
  using Scalar = S;

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  /// What happens to the features that networks of the model read. Empty: the first network makes the plan.
  ///
  /// \throws std::invalid_argument  a plan of another number of columns
  void set_feature_plan(FeaturePlan plan) {
    check_plan(plan, options_.features);
    options_.feature_plan = std::move(plan);
  }
  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] layers::ParameterSet<S>& parameters() noexcept { return parameters_; }
  [[nodiscard]] const layers::ParameterSet<S>& parameters() const noexcept { return parameters_; }

 protected:
  explicit ModelParts(Options options) : options_(std::move(options)) {}

  Options options_;
  Layout layout_;
  layers::ParameterSet<S> parameters_;
};

}  // namespace sheafnn::detail
