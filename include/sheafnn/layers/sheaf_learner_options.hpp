/// \file
/// SheafLearnerOptions: the sizes of a sheaf learner.
#pragma once

#include "sheafnn/core/config.hpp"

namespace sheafnn {

/// Sizes of a sheaf learner.
struct SheafLearnerOptions {
  Index inputs = 0;         ///< h, width of node embeddings
  Index mean = 0;           ///< raw outputs for the mean
  Index spread = 0;         ///< raw outputs for the spread (0: deterministic)
  Index hidden_layers = 0;  ///< with ELU, 0 … 8
  Index width = 0;          ///< of hidden layers
  bool edge_weights = false;

  [[nodiscard]] Index outputs() const noexcept { return mean + spread; }
  /// Rows of weights that read [Z_u ‖ Z_v].
  [[nodiscard]] Index first_outputs() const noexcept {
    return (hidden_layers == 0 ? outputs() : width) + (edge_weights ? 1 : 0);
  }
};

}  // namespace sheafnn
