/// \file
/// ResidualOptions: what a diffusion layer adds to the diffused features, its own input or the first layer's input.
/// Source: math: "Deep networks" (3.39); Chen et al. 2020, Simple and Deep Graph Convolutional Networks, (5).
#pragma once

#include <array>
#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"

namespace sheafnn::layers {

/// The forms of a layer's residual.
enum class ResidualForm {
  gated,   ///< X_{l+1} = (1 + tanh ε_l) ∘ X_l − ELU(Δ Y)
  initial  ///< X_{l+1} = ELU of the mixed (1 − α)(X_l − Δ X_l) + α X_1
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(ResidualForm) { return std::array{"gated", "initial"}; }

/// The form, and the two numbers that the initial one has.
struct ResidualOptions {
  ResidualForm form = ResidualForm::gated;
  double alpha = 0.1;  ///< α, weight of X_1
  double theta = 0.5;  ///< θ, from which β_l = log(1 + θ/l), weight of the mixing of layer l

  [[nodiscard]] bool initial() const noexcept { return form == ResidualForm::initial; }
  /// β of the layer with this index, 0 for the first. Unchecked: at least 0.
  [[nodiscard]] double beta(Index layer) const noexcept {
    return std::log1p(theta / static_cast<double>(layer + 1));
  }

  friend bool operator==(const ResidualOptions&, const ResidualOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<ResidualOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  visit({.key = "residual_form",
         .summary =
             "what layers add to the diffused features: their own input (gated), or the first layer's input, for "
             "deep networks (initial)",
         .flag = "--residual",
         .field = "residual.form",
         .since = "0.2"},
        options.form...);
  visit({.key = "residual_alpha",
         .summary = "with the residual initial: weight of the first layer's input",
         .range = Range::between(0, 1),
         .field = "residual.alpha",
         .since = "0.2"},
        options.alpha...);
  visit({.key = "residual_theta",
         .summary = "with the residual initial: layer l mixes with weight log(1 + theta/l)",
         .range = Range::between(0, 1.7, ", where log(1 + theta) is at most 1"),
         .field = "residual.theta",
         .since = "0.2"},
        options.theta...);
}

/// \throws std::invalid_argument  α or θ out of range
inline void validate(const ResidualOptions& options) { check_ranges(options); }

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::ResidualForm;
using layers::ResidualOptions;

}  // namespace sheafnn
