/// \file
/// Largest sizes that the layers keep on the stack.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn {

/// Most feature channels of a layer.
inline constexpr Index max_channels = 1024;
/// Most stalk coordinates of a layer: a learned stalk and two fixed filters.
inline constexpr Index max_coordinates = max_stalk_dimension + 2;

}  // namespace sheafnn
