/// \file
/// BatchLayerCall: what a pass of a layer of a batch gets (for one network LayerCall, layers/layer.hpp).
#pragma once

#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/right_transposes.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

template <class Executor, class Family, class S>
class BatchDiffusionLayer;

/// See the file comment. The adjoining layer is the next one in a forward pass, and the one below in a backward pass.
/// \tparam View  of the graph
template <class Executor, class Family, class S, class View = GraphView<S>>
struct BatchLayerCall {
  Executor& executor;
  const Run* runs;
  const Pass& pass;
  const ParameterView<S>& parameters;
  const RightTransposes<Executor, S>& right;
  BatchSheaf<Executor, Family, S, View>& sheaf;
  SheafRange range;  ///< of the layer's sheaves
  LayerScratch<Executor, S>& scratch;
  bool begun;  ///< the layer before this one has done its first step
  BatchDiffusionLayer<Executor, Family, S>*
      adjoins;                 ///< to continue with; null: nothing may share launches with this layer
  SheafRange adjoining_range;  ///< of its sheaves
  const S* before = nullptr;   ///< forward: X_{l−1}, of the first layer X_1; stays in place until backward()
  double* kl = nullptr;        ///< rows of the KL terms of layers that draw something, of run 0
  Index kl_stride = 0;         ///< from one run to the next

  /// A layer's row of the KL terms; null in networks that only evaluate.
  [[nodiscard]] double* kl_row(Index row) const noexcept { return kl == nullptr ? nullptr : kl + row; }
};

}  // namespace sheafnn::batch::detail
