/// \file
/// Figures of a model's sheaf, for code that is compiled once per model.
#pragma once

#include <cstdint>
#include <sheafnn/bsnn/bundle_sheaf_use.hpp>
#include <sheafnn/bsnn/cooperative_sheaf_use.hpp>
#include <sheafnn/bsnn/network_options.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/sheaf_use.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <span>

#include "models/registry.hpp"

namespace programs {

/// The figures; empty if maps are not learned, and on hypergraphs. Their loss is the loss of a prediction with the same options.
template <class Model>
[[nodiscard]] sheafnn::SheafUse sheaf_use_of([[maybe_unused]] const Model& model,
                                             [[maybe_unused]] const NodeData& data,
                                             [[maybe_unused]] std::span<const std::int32_t> nodes,
                                             [[maybe_unused]] const sheafnn::PredictOptions& options) {
  if constexpr (has_sheaf_use(Model::kind)) {
    return sheafnn::sheaf_use(
        model, data.on<sheafnn::Graph>(), nodes,
        {.samples = options.samples, .seed = options.seed, .epoch = options.epoch, .threads = options.threads});
  } else {
    return {};
  }
}

}  // namespace programs
