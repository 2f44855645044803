/// \file
/// The learned weights of a heat operator (heat_operator.hpp): a time for every bundle, or how it mixes powers of Â.
/// Source: math: "Heat on a flat bundle" (9.4).
///
/// Unchecked: as for other weights (weights.hpp).
#pragma once

#include <span>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/layers/heat_options.hpp"
#include "sheafnn/nn/initial_values.hpp"
#include "sheafnn/nn/parameter_list.hpp"
#include "sheafnn/random/words.hpp"

namespace sheafnn::detail {

/// See HeatStart.
[[nodiscard]] SHEAFNN_NOINLINE inline InitialValues heat_times(const HeatOptions& options) {
  return [start = options.start, t = options.time](const Stream& stream, std::span<double> values) {
    if (start == HeatStart::spread) {
      uniform_values(4)(stream, values);  // ± ½
      for (double& one : values) one += t;
      return;
    }
    for (std::size_t b = 0; b < values.size(); ++b) {
      const double share = static_cast<double>(b + 1) / static_cast<double>(values.size());
      values[b] = start == HeatStart::range ? share * t : t;
    }
  };
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// \tparam T  const S, S or ParameterSlot
template <class T>
struct HeatWeights {
  WeightVector<T> time;  ///< B values, of which negative values count as 0; empty where the time is not learned
  WeightMatrix<T> hops;  ///< a, B × powers; empty without hops

  /// \param number  index of the layer
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, const HeatOptions& options, Index bundles, Index number) {
    if (options.timed() && options.learned) {
      list.vector(time, detail::concat("time.", number), {bundles}, detail::heat_times(options));
    } else if (options.expansion == HeatExpansion::hops) {
      list.matrix(hops, detail::concat("hops.", number), bundles, static_cast<Index>(hop_powers.size()), {});
    }
  }
};

}  // namespace sheafnn::layers
