/// \file
/// Random sheaves: independent maps for every incident pair, a pure function of the stream.
#pragma once

#include <cstdint>

#include "sheafnn/random/stream.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"

namespace sheafnn::sheaf {

/// A random restriction map: Family::random_map where the family has one (rotations: uniform), otherwise N(0, 1)
/// coordinates.
///
/// \param id  index of the incident pair (arc)
template <RestrictionMapFamily Family, class Scalar = double>
[[nodiscard]] typename Family::template Map<Scalar> random_map(const Stream& stream, std::uint32_t id) {
  if constexpr (requires { Family::template random_map<Scalar>(stream, id); }) {
    return Family::template random_map<Scalar>(stream, id);
  } else {
    typename Family::template Map<Scalar> map;
    Scalar z[Family::coordinate_count > 0 ? Family::coordinate_count : 1];
    if constexpr (Family::coordinate_count > 0) fill_normals<Family::coordinate_count>(z, stream, id);
    Family::from_coordinates(z, map);
    return map;
  }
}

/// A sheaf with a random_map for every arc, whose index is the id; edge weights are 1.
///
/// \param stream  e.g. Stream{.seed = 7}, which has Purpose::user
template <RestrictionMapFamily Family, class Scalar = double>
[[nodiscard]] CellularSheaf<Family, Scalar> random_sheaf(Graph graph, const Stream& stream) {
  CellularSheaf<Family, Scalar> sheaf(std::move(graph));
  for (Index a = 0; a < sheaf.graph().arc_count(); ++a) {
    sheaf.set_map(a, random_map<Family, Scalar>(stream, static_cast<std::uint32_t>(a)));
  }
  return sheaf;
}

}  // namespace sheafnn::sheaf
