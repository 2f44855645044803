/// \file
/// Options of a cooperative layer.
#pragma once

#include "sheafnn/nn/activation.hpp"

namespace sheafnn::layers {

/// Which parts a cooperative layer has.
struct CooperativeLayerOptions {
  bool left = true;      ///< A, mixing stalk coordinates
  bool right = true;     ///< B, mixing channels
  bool residual = true;  ///< (1 + tanh ε) ∘ X
  Activation activation = Activation::gelu;
  bool negate_diffused = false;  ///< without the residual X' = −act(…); see CooperativeOptions
};

}  // namespace sheafnn::layers
