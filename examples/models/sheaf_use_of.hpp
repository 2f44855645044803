/// \file
/// Figures of a model's sheaf, for code that is compiled once per model.
#pragma once

#include <cstdint>
#include <sheafnn/bsnn/bundle_sheaf_use.hpp>
#include <sheafnn/bsnn/cooperative_sheaf_use.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/sheaf_use.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <span>

namespace programs {

/// The figures. Their loss is the loss of a prediction with the same options.
template <class Model>
[[nodiscard]] sheafnn::SheafUse sheaf_use_of(const Model& model, const sheafnn::Dataset& data,
                                             std::span<const std::int32_t> nodes,
                                             const sheafnn::PredictOptions& options) {
  return sheafnn::sheaf_use(
      model, data, nodes,
      {.samples = options.samples, .seed = options.seed, .epoch = options.epoch, .threads = options.threads});
}

}  // namespace programs
