/// \file
/// Transposes of the matrices B that layers multiply channels with.
#pragma once

#include <algorithm>
#include <span>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/divisor.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Bᵀ of all layers, so that neighbouring channels read neighbouring values; item (layer, k, c), group: run.
template <class S>
struct TransposeRight {
  static constexpr int max_layers = 64;
  Index offset[max_layers];  ///< of B in the parameters
  Divisor channels, square;  ///< f, f²
  Index layers;
  const S* parameters;
  Index parameter_stride;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index f = channels, layer = item / square, entry = item % square, k = entry / channels,
                c = entry % channels;
    out[run * layers * square + item] = parameters[run * parameter_stride + offset[layer] + c * f + k];
  }
};

/// Transposes of the matrices B of all layers, f × f each and layer by layer, for every run. In the place of a layer without
/// B there are f² values that nobody reads.
template <class Executor, class S>
class RightTransposes {
 public:
  RightTransposes() = default;
  RightTransposes(Executor& executor, std::span<const layers::DiffusionWeights<layers::ParameterSlot>> layers,
                  const layers::ParameterSet<S>& parameters, Index channels, Index runs)
      : runs_(runs) {
    const auto has_right = [](const layers::DiffusionWeights<layers::ParameterSlot>& layer) {
      return layer.right >= 0;
    };
    if (std::none_of(layers.begin(), layers.end(), has_right)) return;
    require_countable("weights of all layers", static_cast<Index>(layers.size()) * channels * channels);
    transpose_.channels = channels;
    transpose_.square = channels * channels;
    for (const layers::DiffusionWeights<layers::ParameterSlot>& layer : layers) {
      transpose_.offset[transpose_.layers++] = has_right(layer) ? parameters.info(layer.right).offset : 0;
    }
    values_ = Array<Executor, S>(executor, "layers", runs * run_stride());
  }

  /// Writes them; to be launched before layer() is read.
  [[nodiscard]] Items<TransposeRight<S>> transpose(const ParameterView<S>& parameters) {
    transpose_.parameters = parameters.value;
    transpose_.parameter_stride = parameters.stride;
    transpose_.out = values_.data();
    return {values_.size() > 0 ? run_stride() : 0, runs_, transpose_};
  }
  /// Bᵀ of a layer for run 0; null without B.
  [[nodiscard]] const S* layer(Index l) const noexcept {
    return values_.size() > 0 ? values_.data() + l * transpose_.square : nullptr;
  }
  [[nodiscard]] Index run_stride() const noexcept { return transpose_.layers * transpose_.square; }

 private:
  TransposeRight<S> transpose_{};
  Index runs_ = 0;
  Array<Executor, S> values_;
};

}  // namespace sheafnn::batch::detail
