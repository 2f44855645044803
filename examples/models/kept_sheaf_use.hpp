/// \file
/// Figures of a trained model's sheaf: in the outcome of its training and in its checkpoint.
#pragma once

#include <sheafnn/bsnn/sheaf_use_figures.hpp>
#include <sheafnn/io/sheaf_use_text.hpp>
#include <utility>

#include "models/registry.hpp"

namespace programs {

/// Keeps the figures with the outcome and, where a model with a sheaf is kept as well, in its checkpoint.
inline void keep_sheaf_use(TrainOutcome& outcome, sheafnn::SheafUse use) {
  if (!outcome.checkpoint.tensors.empty() && sheafnn::has_figures(use)) {
    outcome.checkpoint.metadata[sheafnn::io::sheaf_use_key] = sheafnn::io::to_text(use);
  }
  outcome.sheaf_use = std::move(use);
}

}  // namespace programs
