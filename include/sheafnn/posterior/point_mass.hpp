/// \file
/// PointMass: the posterior of deterministic models (neural sheaf diffusion), a learned map without a distribution.
#pragma once

#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"

namespace sheafnn {

/// A sheaf learner per layer predicts the maps themselves.
template <RestrictionMapFamily Family>
struct PointMass : PointMap<Family> {
  using family = Family;
  static constexpr std::string_view name = "point";
  static constexpr int mean_size = Family::coordinate_count;
  static constexpr int spread_size = 0;
};

template <class Family>
inline constexpr bool is_point_mass<PointMass<Family>> = true;

}  // namespace sheafnn
