/// \file
/// Restriction maps of a deterministic model, from the raw outputs of a sheaf learner, with backward (math: "The
/// model").
#pragma once

#include "sheafnn/bsnn/network_sheaf.hpp"
#include "sheafnn/bsnn/sheaf_learner.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/posterior/point_map.hpp"

namespace sheafnn {

/// Both sides' maps of one block of edges.
template <class Family, class S>
void mean_maps(const SheafLearner<S>& learner, const PointMap<Family>& point, Index block,
               typename NetworkSheaf<Family, S>::Map (&map)[2]) {
  constexpr int size = PointMap<Family>::size;
  for (int side = 0; side < 2; ++side) {
    typename NetworkSheaf<Family, S>::P raw[detail::array_size(size)];
    load_lanes<size>(learner.raw(block, side), raw);
    point.map(raw, map[side]);
  }
}

/// From the derivative of one side's map to that of the raw outputs.
template <class Family, class S>
void mean_map_backward(SheafLearner<S>& learner, const PointMap<Family>& point, Index block, int side,
                       const typename NetworkSheaf<Family, S>::Map& map_bar) {
  constexpr int size = PointMap<Family>::size;
  typename NetworkSheaf<Family, S>::P raw[detail::array_size(size)], raw_bar[detail::array_size(size)];
  load_lanes<size>(learner.raw(block, side), raw);
  point.backward(raw, map_bar, raw_bar);
  store_lanes<size>(raw_bar, learner.raw_bar(block, side));
}

}  // namespace sheafnn
