/// \file
/// LayerSetting: what the layers of a network are made from, besides their graph and the shape of its features.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/layers/layer_form.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/layers/residual_options.hpp"

namespace sheafnn::layers {

/// Which parts a diffusion layer has.
struct DiffusionOptions {
  bool left = true;        ///< A, mixing stalk coordinates
  bool right = true;       ///< B, mixing channels
  bool activation = true;  ///< ELU
  bool residual = true;    ///< ε; not a choice of the layers, which have it or not
};

/// The same options with or without ε. Takes any options.
[[nodiscard]] constexpr DiffusionOptions with_residual(DiffusionOptions of, bool residual) {
  of.residual = residual;
  return of;
}

/// What becomes of the terms V_1 … V_K of a polynomial layer between the passes.
enum class FilterTerms {
  keep,      ///< K arrays of the size of the features
  recompute  ///< V_{K−1} and V_K; the downward recurrence recomputes the other terms
};

/// Options of a network that concern its layers, and of which layer they are.
struct LayerSetting {
  DiffusionOptions diffusion = {};
  PolynomialOptions filter = {};
  ResidualOptions residual = {};
  FilterTerms terms = FilterTerms::keep;
  Index number = 0;       ///< l, from 0
  Index coordinates = 0;  ///< d'
  Index channels = 0;     ///< f; complex channels have two values each
  LayerForm form = LayerForm::diffusion;
  AttentionOptions attention = {};
  DirectedOptions directed = {};

  /// Values per node.
  [[nodiscard]] Index row() const noexcept { return coordinates * channels * parts_of(form); }
};

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::FilterTerms;

}  // namespace sheafnn
