/// \file
/// BatchLayerSetting: what a layer of a batch is made from (for one network LayerSetting, layers/layer_setting.hpp).
///
/// Unchecked: numbers of layers and instances. BatchNetwork and BatchTrainer check their arguments.
#pragma once

#include <cstddef>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/graph.hpp"
#include "sheafnn/batch/polynomial_filter.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/layers/residual_options.hpp"

namespace sheafnn::batch::detail {

/// See the file comment. Refers to parts of its network.
template <class Executor, class S>
struct BatchLayerSetting {
  std::size_t number;  ///< of the layer, which is one of `layout`
  Executor& executor;
  const GraphView<S>& graph;
  const FeatureShape<S>& shape;
  const ModelLayout& layout;
  bool activation;
  const BatchFilter<Executor, S>& filter;  ///< the network's, which outlives the layer
  const ResidualOptions& residual;
  const layers::ParameterSet<S>& parameters;
  const BatchSize& batch;
  bool dropout;
  PartialSums& sums;

  /// An array with n × d' × f numbers for each of some instances.
  [[nodiscard]] Array<Executor, S> features(Index instances) const {
    return Array<Executor, S>(executor, "layers", instances * shape.size());
  }
};

}  // namespace sheafnn::batch::detail
