/// \file
/// Restriction maps of a deterministic model: the posterior's means, from the raw outputs of a sheaf learner, with backward
/// (math: "The model").
#pragma once

#include <iterator>

#include "sheafnn/bsnn/network_sheaf.hpp"
#include "sheafnn/bsnn/posterior.hpp"
#include "sheafnn/bsnn/sheaf_learner.hpp"
#include "sheafnn/core/lane_rows.hpp"

namespace sheafnn {

/// Both sides' maps of one block of edges.
template <class Family, class S>
void mean_maps(const SheafLearner<S>& learner, RotationParametrisation parametrisation, Index block,
               typename NetworkSheaf<Family, S>::Map (&map)[2]) {
  using Q = Posterior<Family>;
  for (int side = 0; side < 2; ++side) {
    if constexpr (Family::kind == MapKind::fixed) {
      map[side] = NetworkSheaf<Family, S>::load_map(nullptr);
    } else {
      typename NetworkSheaf<Family, S>::P raw[Q::mean_size > 0 ? Q::mean_size : 1];
      load_lanes<Q::mean_size>(learner.raw(block, side), raw);
      Q::mean_map(raw, parametrisation, map[side]);
    }
  }
}

/// From the derivative of one side's map to that of the raw outputs.
template <class Family, class S>
void mean_map_backward(SheafLearner<S>& learner, RotationParametrisation parametrisation, Index block, int side,
                       const typename NetworkSheaf<Family, S>::Map& map_bar) {
  using Q = Posterior<Family>;
  typename NetworkSheaf<Family, S>::P raw[Q::mean_size > 0 ? Q::mean_size : 1], raw_bar[std::size(raw)];
  load_lanes<Q::mean_size>(learner.raw(block, side), raw);
  Q::mean_map_backward(raw, parametrisation, map_bar, raw_bar);
  store_lanes<Q::mean_size>(raw_bar, learner.raw_bar(block, side));
}

}  // namespace sheafnn
