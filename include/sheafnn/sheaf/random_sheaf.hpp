/// \file
/// Random sheaves: independent maps for every incident pair, a pure function of the stream.
#pragma once

#include <cstdint>

#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"

namespace sheafnn {

/// A random restriction map: N(0, 1) entries for diagonal and general maps, a uniform (Haar) rotation for
/// rotations.
///
/// \param id  number of the incident pair (arc)
template <RestrictionMapFamily Family, class Scalar = double>
[[nodiscard]] typename Family::template Map<Scalar> random_map(const Stream& stream, std::uint32_t id) {
  typename Family::template Map<Scalar> map;
  if constexpr (Family::kind == MapKind::fixed) {
    map.setOnes();
  } else if constexpr (Family::kind == MapKind::rotation) {
    map = haar_rotation<Scalar, Family::stalk_dimension>(stream, id);
  } else {
    fill_normals<Family::map_size>(map.data(), stream, id);
  }
  return map;
}

/// A sheaf with a random_map for every arc, whose number is the id; edge weights are 1.
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

}  // namespace sheafnn
