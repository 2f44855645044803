/// \file
/// GivenMapArrays: the maps of a given sheaf as plain arrays, apart from the dataset with their graph. Also the arrays of
/// labelled and signed edges.
/// Source: math: "Convolutions on given sheaves".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"

namespace sheafnn {

/// Rows follow the arcs of the graph, sorted by source and target, and its edges.
struct GivenMapArrays {
  std::vector<double> maps;               ///< 2m × map_size entries; D × D maps row by row
  std::vector<double> edge_weights;       ///< m; empty: all 1
  std::vector<std::int32_t> edge_labels;  ///< m; empty: none
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

/// Maps of labelled edges, 2m × size: R_t at the smaller endpoint of an edge with label t, R'_t at the larger. Directed
/// edges have R_t at the tail.
///
/// \param labels    m labels, 0 … T − 1
/// \param table     T pairs (R_t, R'_t) of maps, `size` entries each
/// \param directed  an edge that is listed one way (Graph::listed()) has its tail in place of the smaller endpoint
/// \throws std::invalid_argument  another number of labels, one out of range, or a table whose size is not a multiple of a pair's
[[nodiscard]] inline std::vector<double> labelled_maps(const Graph& graph, std::span<const std::int32_t> labels,
                                                       std::span<const double> table, Index size,
                                                       bool directed = false) {
  const Index m = graph.edge_count();
  require(static_cast<Index>(labels.size()) == m, "labels", labels.size(),
          detail::concat("expected one for each of ", m, " edges"));
  require(size > 0 && !table.empty() && static_cast<Index>(table.size()) % (2 * size) == 0, "table", table.size(),
          detail::concat("expected pairs of maps, 2 * ", size, " numbers for each label"));
  const Index count = static_cast<Index>(table.size()) / (2 * size);
  std::vector<double> r(static_cast<std::size_t>(graph.arc_count() * size));
  for (Index e = 0; e < m; ++e) {
    const std::int32_t label = labels[static_cast<std::size_t>(e)];
    require(label >= 0 && label < count, ArgumentName({}, "labels", static_cast<std::size_t>(e)), label,
            detail::concat("must be between 0 and ", count - 1));
    const Index forward = graph.forward_arc(e), backward = graph.reverse(forward);
    const bool turned = directed && !graph.listed(forward) && graph.listed(backward);
    const double* pair = table.data() + label * 2 * size;
    std::copy_n(pair, size, r.data() + (turned ? backward : forward) * size);
    std::copy_n(pair + size, size, r.data() + (turned ? forward : backward) * size);
  }
  return r;
}

/// The table of a signed graph. The label 0 is the sign 1, the label 1 the sign −1, at the larger endpoint of an edge.
inline constexpr double sign_table[] = {1, 1, 1, -1};

/// The labels of a signed graph.
///
/// \param signs  m values, 1 or −1
/// \throws std::invalid_argument  a wrong number of signs, or a value other than ±1
[[nodiscard]] inline std::vector<std::int32_t> sign_labels(const Graph& graph, std::span<const double> signs) {
  require(static_cast<Index>(signs.size()) == graph.edge_count(), "signs", signs.size(),
          detail::concat("expected one for each of ", graph.edge_count(), " edges"));
  std::vector<std::int32_t> r;
  for (std::size_t e = 0; e < signs.size(); ++e) {
    require(signs[e] == 1 || signs[e] == -1, ArgumentName({}, "signs", e), signs[e], "must be 1 or -1");
    r.push_back(signs[e] > 0 ? 0 : 1);
  }
  return r;
}

}  // namespace sheafnn
