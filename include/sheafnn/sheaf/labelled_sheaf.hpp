/// \file
/// Sheaves whose maps follow from a label of each edge: signed graphs, and typed edges with a table of pairs of maps.
/// Source: Sheaf Neural Networks (Hansen and Gebhart, arXiv 2012.06333); math: "Convolutions on given sheaves".
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/graph/given_map_arrays.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/families/diagonal.hpp"

namespace sheafnn::sheaf {

/// The sheaf of labelled edges: R_t at the smaller endpoint of an edge with label t, R'_t at the larger. Directed edges have
/// R_t at the tail.
///
/// \param labels    m labels, 0 … T − 1
/// \param table     T pairs (R_t, R'_t) of maps, map_size entries each, D × D maps row by row
/// \param directed  an edge that is listed one way (Graph::listed()) has its tail in place of the smaller endpoint
/// \throws std::invalid_argument  as labelled_maps(), or maps that the family refuses
template <RestrictionMapFamily Family>
[[nodiscard]] CellularSheaf<Family> labelled_sheaf(Graph graph, std::span<const std::int32_t> labels,
                                                   std::span<const double> table, bool directed = false) {
  const std::vector<double> maps = labelled_maps(graph, labels, table, Family::map_size, directed);
  return CellularSheaf<Family>(std::move(graph), std::span<const double>(maps));
}

/// The sheaf of a signed graph: F = 1 at the smaller endpoint of an edge and its sign at the larger, so that L_uv = −sign.
///
/// \param signs  m values, 1 or −1
/// \throws std::invalid_argument  a wrong number of signs, or a value other than ±1
[[nodiscard]] inline CellularSheaf<Diagonal<1>> signed_sheaf(Graph graph, std::span<const double> signs) {
  const std::vector<std::int32_t> labels = sign_labels(graph, signs);
  return labelled_sheaf<Diagonal<1>>(std::move(graph), labels, sign_table);
}

}  // namespace sheafnn::sheaf

namespace sheafnn {

using sheaf::labelled_sheaf;
using sheaf::signed_sheaf;

}  // namespace sheafnn
