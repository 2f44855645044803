/// \file
/// BatchLayerSetting: what a layer of a batch is made from (for one network LayerSetting, layers/layer_setting.hpp).
///
/// Unchecked: indices of layers and instances. BatchNetwork and BatchTrainer check their arguments.
#pragma once

#include <cstddef>
#include <utility>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/graph.hpp"
#include "sheafnn/batch/polynomial_filter.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/layers/layer_form.hpp"
#include "sheafnn/layers/residual_options.hpp"

namespace sheafnn::batch::detail {

/// Rows of the KL terms of layers that draw something: the layout, and how many there are.
class KlRows {
 public:
  /// \returns the first of `count` rows
  Index reserve(Index count) noexcept { return std::exchange(count_, count_ + count); }
  [[nodiscard]] Index count() const noexcept { return count_; }

 private:
  Index count_ = 0;
};

/// See the file comment. Refers to parts of its network. \tparam View  of the graph
template <class Executor, class S, class View = GraphView<S>>
struct BatchLayerSetting {
  std::size_t number;  ///< of the layer, which is one of `layout`
  Executor& executor;
  const View& graph;
  const FeatureShape<S>& shape;
  const ModelLayout& layout;
  bool activation, left_weights, right_weights;
  const BatchFilter<Executor, S>& filter;  ///< the network's, which outlives the layer
  const ResidualOptions& residual;
  const AttentionOptions& attention;
  const DirectedOptions& directed;
  const layers::ParameterSet<S>& parameters;
  const BatchSize& batch;
  bool dropout;
  PartialSums& sums;
  KlRows& kl_rows;

  /// An array with n × d' × f values for each of some instances.
  [[nodiscard]] Array<Executor, S> features(Index instances) const {
    return Array<Executor, S>(executor, "layers", instances * shape.size());
  }
};

}  // namespace sheafnn::batch::detail
