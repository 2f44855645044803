/// \file
/// Largest sizes that the layers keep on the stack.
#pragma once

#include <algorithm>

#include "sheafnn/core/config.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn::layers {

/// Most feature channels of a layer.
inline constexpr Index max_channels = 1024;
/// Most stalk coordinates of a layer: a learned stalk and two fixed filters.
inline constexpr Index max_coordinates = max_stalk_dimension + 2;
/// Most hidden layers of a sheaf learner, and layers of a learner of node maps.
inline constexpr Index max_learner_layers = 8;

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// Length of an array on the stack for rows of intermediate results.
inline constexpr Index row_scratch = 2 * max_coordinates * max_channels;
/// Most inputs, hidden units and outputs of a learner: rows of a pair of them fit there.
inline constexpr Index max_learner_size = row_scratch / 2;
/// How many rows of `width` values fit into such an array, 1 … most. The number is a multiple of eight if eight rows
/// fit. A width below 1 counts as 1. Unchecked: most is at least 1, width at most row_scratch.
[[nodiscard]] constexpr Index scratch_rows(Index width, Index most) noexcept {
  const Index fit = row_scratch / std::max<Index>(1, width);
  return std::clamp<Index>(fit >= 8 ? fit / 8 * 8 : fit, 1, most);
}

}  // namespace sheafnn::detail
