/// \file
/// GivenMapArrays: the maps of a given sheaf as plain arrays, beside the dataset whose graph they are over.
#pragma once

#include <cstdint>
#include <vector>

#include "sheafnn/core/config.hpp"

namespace sheafnn {

/// Rows follow the arcs of the graph, sorted by source and target, and its edges.
struct GivenMapArrays {
  std::vector<double> maps;               ///< 2m × map_size numbers; D × D maps row by row
  std::vector<double> edge_weights;       ///< m; empty: all 1
  std::vector<std::int32_t> edge_labels;  ///< m; empty: no numbers
  Index label_count = 0;                  ///< labels are 0 … label_count − 1
};

}  // namespace sheafnn
