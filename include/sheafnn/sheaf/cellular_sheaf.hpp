/// \file
/// CellularSheaf: a graph with a stalk R^D on every node and edge and a restriction map F_{u⊴e} for every incident
/// pair.
///
/// Spaces: C⁰ = R^{nD} (one stalk per node) and C¹ = R^{mD} (one per edge), each with any number of channels. A
/// cochain is a row-major matrix with one row per stalk coordinate: node by node (edge by edge), coordinate by
/// coordinate, channels innermost. Source: paper, "Cellular sheaves"; math: "Graph, incident pairs, arcs".
#pragma once

#include <cassert>
#include <cmath>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace sheafnn::sheaf {

/// Values on the nodes ((nD) × f) or edges ((mD) × f) of a sheaf: row u·D + i holds coordinate i of stalk u.
template <class Scalar>
using Cochain = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// A cochain to read: any row-major matrix with contiguous rows.
template <class Scalar>
using CochainRef = Eigen::Ref<const Cochain<Scalar>>;

}  // namespace sheafnn::sheaf

namespace sheafnn::detail {

/// The map F = I of a family.
template <class Family, class Scalar>
[[nodiscard]] typename Family::template Map<Scalar> identity_map() {
  using Map = typename Family::template Map<Scalar>;
  if constexpr (is_dense_block<Map>) {
    return Map::Identity();
  } else {
    return Map::Ones();
  }
}
/// A map from its entries row by row. Unchecked: there are map_size entries.
template <class Family, class Scalar>
[[nodiscard]] typename Family::template Map<Scalar> map_of_rows(const Scalar* row_major) {
  typename Family::template Map<Scalar> r;
  for (Index i = 0; i < r.rows(); ++i) {
    for (Index j = 0; j < r.cols(); ++j) r(i, j) = row_major[i * r.cols() + j];
  }
  return r;
}
/// Checks map `index` of `count`, `what` one of which it belongs to ("arc").
///
/// \throws std::invalid_argument  index out of range, an entry that is NaN or infinite, or a map that is not of the family
template <class Family, class Map>
void check_map(Index index, Index count, std::string_view what, const Map& value) {
  if (index < 0 || index >= count) throw_invalid_argument(what, index, concat("must be between 0 and ", count - 1));
  for (Index j = 0; j < value.cols(); ++j) {
    for (Index i = 0; i < value.rows(); ++i) {
      if (!std::isfinite(value(i, j))) {
        throw_invalid_argument(concat("maps[", index, "](", i, ", ", j, ")"), value(i, j), "entries must be finite");
      }
    }
  }
  if constexpr (requires { Family::validate(index, value); }) Family::validate(index, value);
}
/// \throws std::invalid_argument  unless there are map_size entries for each of `count` arcs (or whatever `what` are)
template <class Family>
void check_map_numbers(std::size_t size, Index count, std::string_view what) {
  require(static_cast<Index>(size) == count * Family::map_size, "maps", size,
          concat("expected ", count, " ", what, " * ", Family::map_size, " numbers per ", Family::name, " map"));
}

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// Restriction maps of one family over a graph. Owns (a share of) its graph, so nothing it refers to can go away.
///
/// The map of the incident pair u ⊴ e is addressed by its arc a = (u→v), e = {u, v}, or by (u, e). Rotations may
/// carry a positive edge weight: F_{u⊴e} = w_e R_a and F_{v⊴e} = w_e R_{rev a}.
template <RestrictionMapFamily Family, class Scalar = double>
class CellularSheaf {
  static_assert(std::is_floating_point_v<Scalar>, "a sheaf's scalars are float or double");

 public:
  static constexpr int stalk_dimension = Family::stalk_dimension;
  static constexpr bool has_edge_weights = may_have_edge_weights<Family>;
  using Map = typename Family::template Map<Scalar>;
  static constexpr int edge_stalk_dimension = sheaf::edge_stalk_dimension<Family>;
  using DenseMap = Eigen::Matrix<Scalar, edge_stalk_dimension, stalk_dimension>;

  /// The trivial sheaf: every map the identity, every weight 1.
  explicit CellularSheaf(Graph graph) : CellularSheaf(std::make_shared<const Graph>(std::move(graph))) {}
  /// As above, with a graph that several sheaves share. \throws std::invalid_argument  a null pointer
  explicit CellularSheaf(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {
    require(graph_ != nullptr, "graph", "a null pointer", "a sheaf needs a graph");
    maps_.assign(static_cast<std::size_t>(graph_->arc_count()), detail::identity_map<Family, Scalar>());
    if constexpr (has_edge_weights) weights_.assign(static_cast<std::size_t>(graph_->edge_count()), Scalar(1));
  }

  /// Takes all maps at once.
  ///
  /// \param maps          2m × map_size entries, arc by arc; D × D maps row by row
  /// \param edge_weights  m weights w_e (rotations only), or empty: all 1
  /// \throws std::invalid_argument  wrong size, or a map or weight that set_map or set_edge_weight refuses
  CellularSheaf(Graph graph, std::span<const Scalar> maps, std::span<const Scalar> edge_weights = {})
      : CellularSheaf(std::make_shared<const Graph>(std::move(graph)), maps, edge_weights) {}
  /// As above, with a graph that several sheaves share. \throws std::invalid_argument  also a null pointer
  CellularSheaf(std::shared_ptr<const Graph> graph, std::span<const Scalar> maps,
                std::span<const Scalar> edge_weights = {})
      : CellularSheaf(std::move(graph)) {
    const Index arcs = graph_->arc_count();
    detail::check_map_numbers<Family>(maps.size(), arcs, "arcs");
    if constexpr (Family::map_size > 0) {
      for (Index a = 0; a < arcs; ++a) set_map(a, detail::map_of_rows<Family>(maps.data() + a * Family::map_size));
    }
    if (edge_weights.empty()) return;
    require(has_edge_weights, "edge_weights", edge_weights.size(),
            detail::concat(Family::name, " maps have no edge weights"));
    require(static_cast<Index>(edge_weights.size()) == graph_->edge_count(), "edge_weights", edge_weights.size(),
            detail::concat("expected one per edge, ", graph_->edge_count()));
    if constexpr (has_edge_weights) {
      for (Index e = 0; e < graph_->edge_count(); ++e)
        set_edge_weight(e, edge_weights[static_cast<std::size_t>(e)]);
    }
  }

  [[nodiscard]] const Graph& graph() const noexcept { return *graph_; }
  [[nodiscard]] const std::shared_ptr<const Graph>& shared_graph() const noexcept { return graph_; }
  /// dim C⁰ = nD.
  [[nodiscard]] Index node_dimension() const noexcept { return graph_->node_count() * stalk_dimension; }
  /// dim C¹ = mD, or of edge stalks of another dimension mE.
  [[nodiscard]] Index edge_dimension() const noexcept { return graph_->edge_count() * edge_stalk_dimension; }

  /// The arc of the incident pair u ⊴ e. \throws std::invalid_argument  no such edge, or u is not one of its ends
  [[nodiscard]] Index arc_of(Index node, Index edge) const {
    check_edge(edge);
    const Edge ends = graph_->edge(edge);
    if (node != ends.u && node != ends.v) {
      throw_invalid_argument("node", node, detail::concat("edge ", edge, " joins nodes ", ends.u, " and ", ends.v));
    }
    const Index forward = graph_->forward_arc(edge);
    return node == ends.u ? forward : graph_->reverse(forward);
  }

  /// The family's own form of the map, without edge weight: R_a for rotations, the diagonal for diagonal maps.
  /// Unchecked: the arc; an assertion says so.
  [[nodiscard]] const Map& map(Index arc) const noexcept {
    assert(0 <= arc && arc < graph_->arc_count());
    return maps_[static_cast<std::size_t>(arc)];
  }
  /// The map of an incident pair. \throws std::invalid_argument  as arc_of()
  [[nodiscard]] const Map& map(Index node, Index edge) const { return map(arc_of(node, edge)); }

  /// F_a as a D × D matrix, edge weight included. Unchecked: the arc.
  [[nodiscard]] DenseMap restriction_map(Index arc) const {
    const DenseMap dense = Family::dense(map(arc));
    if constexpr (has_edge_weights) {
      return edge_weight(graph_->edge_of(arc)) * dense;
    } else {
      return dense;
    }
  }

  /// Sets the map of an arc (for rotations R_a; the edge weight stays).
  ///
  /// \throws std::invalid_argument  arc out of range, an entry that is NaN or infinite, or a map that is not of the
  ///         family (Family::validate)
  void set_map(Index arc, const Map& value) {
    detail::check_map<Family>(arc, graph_->arc_count(), "arc", value);
    maps_[static_cast<std::size_t>(arc)] = value;
  }
  /// As above, for an incident pair. \throws std::invalid_argument  also as arc_of()
  void set_map(Index node, Index edge, const Map& value) { set_map(arc_of(node, edge), value); }

  /// w_e; 1 for families without edge weights. Unchecked: the edge; an assertion says so.
  [[nodiscard]] Scalar edge_weight(Index edge) const noexcept {
    assert(0 <= edge && edge < graph_->edge_count());
    if constexpr (has_edge_weights) {
      return weights_[static_cast<std::size_t>(edge)];
    } else {
      return Scalar(1);
    }
  }
  /// \throws std::invalid_argument  edge out of range, or a weight that is not positive or whose square over- or
  ///         underflows
  void set_edge_weight(Index edge, Scalar weight) requires has_edge_weights {
    check_edge(edge);
    if (!(weight > 0) || !std::isnormal(weight * weight)) {
      throw_invalid_argument(detail::concat("edge_weights[", edge, "]"), weight,
                             "must be positive and finite, and so must be its square");
    }
    weights_[static_cast<std::size_t>(edge)] = weight;
  }

 private:
  void check_edge(Index edge) const {
    if (edge < 0 || edge >= graph_->edge_count()) {
      throw_invalid_argument("edge", edge, detail::concat("must be between 0 and ", graph_->edge_count() - 1));
    }
  }

  std::shared_ptr<const Graph> graph_;
  std::vector<Map> maps_;        ///< by arc
  std::vector<Scalar> weights_;  ///< by edge; rotations only
};

}  // namespace sheafnn::sheaf

namespace sheafnn::detail {

/// \throws std::invalid_argument  unless a cochain has `rows` rows; rows are named after the space they belong to
template <class Scalar>
void require_rows(const CochainRef<Scalar>& x, Index rows, std::string_view space, std::string_view name = "x") {
  require(x.rows() == rows, concat("rows of ", name), x.rows(),
          concat("must equal the dimension of ", space, ", ", rows));
}
/// \throws std::invalid_argument  naming the first entry of a cochain that is NaN or infinite
template <class Scalar>
void require_finite(const CochainRef<Scalar>& x, std::string_view name) {
  if (x.allFinite()) return;
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index j = 0; j < x.cols(); ++j) {
      require(std::isfinite(x(i, j)), concat(name, '(', i, ", ", j, ')'), x(i, j), "must be finite");
    }
  }
}

}  // namespace sheafnn::detail

namespace sheafnn {

using sheaf::CellularSheaf;
using sheaf::Cochain;
using sheaf::CochainRef;

}  // namespace sheafnn
