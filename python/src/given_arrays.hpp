/// \file
/// The maps of a given sheaf from NumPy arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <sheafnn/core/config.hpp>
#include <sheafnn/graph/given_map_arrays.hpp>

#include "arrays.hpp"

namespace python {

/// \param maps         2m × map_size entries, of the arcs in the order of the graph
/// \param weights      m, or empty: all 1
/// \param labels       m labels of the edges, or empty
/// \param label_count  where there are more labels than edges have
/// \throws std::invalid_argument  a label out of range; networks check the maps, whose family they know
[[nodiscard]] inline sheafnn::GivenMapArrays given_arrays(const Input<double>& maps, const Input<double>& weights,
                                                          const Input<std::int64_t>& labels,
                                                          sheafnn::Index label_count = 0) {
  sheafnn::GivenMapArrays r;
  r.maps = vector_of(maps);
  r.edge_weights = vector_of(weights);
  r.set_edge_labels(span_of(labels));
  r.label_count = std::max(r.label_count, label_count);
  return r;
}

}  // namespace python
