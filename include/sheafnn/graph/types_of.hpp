/// \file
/// TypesOf: the types of a graph's nodes or edges. take_attributes() gives a part of a graph the attributes that its arcs,
/// edges and nodes have in the whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// One integer in 0 … count − 1 each; or nothing: there are no types.
struct TypesOf {
  std::vector<std::int32_t> values;
  Index count = 0;

  /// \param of  "edge" or "node", with `size` elements
  /// \throws std::invalid_argument  another number of types, or a type outside 0 … number − 1
  void set(std::string_view of, std::span<const std::int32_t> types, Index number, Index size) {
    const std::string name = detail::concat(of, " types");
    constexpr Index most = std::numeric_limits<std::int32_t>::max();
    require(number >= 0 && number <= most, name, number, "their number must be between 0 and 2147483647");
    const Index expected = number == 0 ? 0 : size;
    require(static_cast<Index>(types.size()) == expected, name, types.size(),
            detail::concat("expected one per ", of, ", ", expected));
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] >= 0 && types[i] < number) continue;
      throw_invalid_argument(detail::concat(name, "[", i, "]"), types[i],
                             detail::concat("must be between 0 and ", number - 1));
    }
    values = std::vector<std::int32_t>(types.begin(), types.end());  // they may be the graph's own
    count = number;
  }
};

namespace detail {

/// The index of each text among the sorted names, which are all different texts.
[[nodiscard]] inline std::vector<std::int32_t> numbered_names(const std::vector<std::string>& texts,
                                                              std::vector<std::string>& names) {
  names = texts;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<std::int32_t> r;
  for (const std::string& text : texts) {
    r.push_back(static_cast<std::int32_t>(std::lower_bound(names.begin(), names.end(), text) - names.begin()));
  }
  return r;
}

/// Gives arcs, edges and nodes of a graph the features and types that they have in a whole. Unchecked: arc_of
/// and node_of give indices in the whole.
///
/// \param arc_of   arc_of(a): index in the whole of arc a
/// \param node_of  likewise of a node
template <class GraphType, class ArcOf, class NodeOf>
void take_attributes(GraphType& to, const GraphType& whole, const ArcOf& arc_of, const NodeOf& node_of) {
  if (const Index count = whole.arc_feature_count(); count > 0) {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(to.arc_count() * count));
    for (Index arc = 0; arc < to.arc_count(); ++arc) {
      const auto row = whole.arc_features().subspan(static_cast<std::size_t>(Index(arc_of(arc)) * count),
                                                    static_cast<std::size_t>(count));
      values.insert(values.end(), row.begin(), row.end());
    }
    to.set_arc_features(values, count);
  }
  std::vector<std::int32_t> types;
  if (whole.edge_type_count() > 0) {
    for (Index e = 0; e < to.edge_count(); ++e) {
      const Index edge = whole.edge_of(Index(arc_of(to.forward_arc(e))));
      types.push_back(whole.edge_types()[static_cast<std::size_t>(edge)]);
    }
    to.set_edge_types(types, whole.edge_type_count());
  }
  if (whole.node_type_count() > 0) {
    types.clear();
    for (Index u = 0; u < to.node_count(); ++u) {
      types.push_back(whole.node_types()[static_cast<std::size_t>(Index(node_of(u)))]);
    }
    to.set_node_types(types, whole.node_type_count());
  }
}

}  // namespace detail

}  // namespace sheafnn
