/// \file
/// GivenMapArrays: the maps of a given sheaf as plain arrays, beside the dataset whose graph they are over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// Rows follow the arcs of the graph, sorted by source and target, and its edges.
struct GivenMapArrays {
  std::vector<double> maps;               ///< 2m × map_size numbers; D × D maps row by row
  std::vector<double> edge_weights;       ///< m; empty: all 1
  std::vector<std::int32_t> edge_labels;  ///< m; empty: no numbers
  Index label_count = 0;                  ///< labels are 0 … label_count − 1

  static constexpr std::int64_t largest_label = (1 << 20) - 1;

  /// \throws std::invalid_argument  a label that is not between 0 and largest_label
  void set_edge_labels(std::span<const std::int64_t> labels) {
    edge_labels.clear();
    label_count = 0;
    for (std::size_t e = 0; e < labels.size(); ++e) {
      if (labels[e] < 0 || labels[e] > largest_label) {
        throw_invalid_argument(detail::concat("edge_labels[", e, "]"), labels[e],
                               detail::concat("must be between 0 and ", largest_label));
      }
      edge_labels.push_back(static_cast<std::int32_t>(labels[e]));
      label_count = std::max<Index>(label_count, labels[e] + 1);
    }
  }
};

}  // namespace sheafnn
