/// \file
/// Sheaves whose maps follow from a label of each edge: signed graphs, and typed edges with a table of pairs of maps.
/// Source: Sheaf Neural Networks (Hansen and Gebhart, arXiv 2012.06333); math: "Convolutions on given sheaves".
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/families/diagonal.hpp"

namespace sheafnn::sheaf {

/// The sheaf of a signed graph: F = 1 at the smaller endpoint of an edge and its sign at the larger, so that L_uv = −sign.
///
/// \param signs  m numbers, 1 or −1
/// \throws std::invalid_argument  a wrong number of signs, or a value other than ±1
[[nodiscard]] inline CellularSheaf<Diagonal<1>> signed_sheaf(Graph graph, std::span<const double> signs) {
  CellularSheaf<Diagonal<1>> r(std::move(graph));
  const Index m = r.graph().edge_count();
  require(static_cast<Index>(signs.size()) == m, "signs", signs.size(),
          detail::concat("expected one for each of ", m, " edges"));
  for (Index e = 0; e < m; ++e) {
    const double sign = signs[static_cast<std::size_t>(e)];
    require(sign == 1 || sign == -1, ArgumentName({}, "signs", static_cast<std::size_t>(e)), sign,
            "must be 1 or -1");
    r.set_map(r.graph().reverse(r.graph().forward_arc(e)), Eigen::Matrix<double, 1, 1>(sign));
  }
  return r;
}

/// The sheaf of labelled edges: R_t at the smaller endpoint of an edge with label t, R'_t at the larger; of directed edges R_t at
/// the tail.
///
/// \param labels    m labels, 0 … T − 1
/// \param table     T pairs (R_t, R'_t) of maps, map_size numbers each, D × D maps row by row
/// \param directed  an edge that is listed one way (Graph::listed()) has its tail in place of the smaller endpoint
/// \throws std::invalid_argument  another number of labels, one out of range, a table that is no number of pairs, or maps that
///                                the family refuses
template <RestrictionMapFamily Family>
[[nodiscard]] CellularSheaf<Family> labelled_sheaf(Graph graph, std::span<const std::int32_t> labels,
                                                   std::span<const double> table, bool directed = false) {
  constexpr Index size = Family::map_size;
  CellularSheaf<Family> r(std::move(graph));
  const Graph& over = r.graph();
  require(static_cast<Index>(labels.size()) == over.edge_count(), "labels", labels.size(),
          detail::concat("expected one for each of ", over.edge_count(), " edges"));
  require(!table.empty() && static_cast<Index>(table.size()) % (2 * size) == 0, "table", table.size(),
          detail::concat("expected pairs of maps, 2 * ", size, " numbers for each label"));
  const Index count = static_cast<Index>(table.size()) / (2 * size);
  for (Index e = 0; e < over.edge_count(); ++e) {
    const std::int32_t label = labels[static_cast<std::size_t>(e)];
    require(label >= 0 && label < count, ArgumentName({}, "labels", static_cast<std::size_t>(e)), label,
            detail::concat("must be between 0 and ", count - 1));
    const Index forward = over.forward_arc(e), backward = over.reverse(forward);
    const bool turned = directed && !over.listed(forward) && over.listed(backward);
    const double* pair = table.data() + label * 2 * size;
    for (int end = 0; end < 2; ++end) {
      typename CellularSheaf<Family>::Map map;
      for (Index i = 0; i < map.rows(); ++i) {
        for (Index j = 0; j < map.cols(); ++j) map(i, j) = pair[end * size + i * map.cols() + j];
      }
      r.set_map((end == 0) != turned ? forward : backward, map);
    }
  }
  return r;
}

}  // namespace sheafnn::sheaf

namespace sheafnn {

using sheaf::labelled_sheaf;
using sheaf::signed_sheaf;

}  // namespace sheafnn
