/// \file
/// A seeded task with a planted sheaf on a surface: the sphere S², tangent planes in frames of any direction, and parallel
/// transport. The rule of the labels: planted_task.hpp, with D = 2.
///
/// Node u is a point p_u, uniform on the sphere, with a right-handed orthonormal frame E_u = (a_u, p_u × a_u) of its tangent
/// plane, a_u in a uniform direction. Parallel transport along the great circle from q to p takes a tangent vector t at q to
/// t − ⟨p, t⟩/(1 + ⟨p, q⟩) (p + q). So in these frames it is
///
///     T_{pq} = E_pᵀ (I − (p + q) pᵀ / (1 + ⟨p, q⟩)) E_q ∈ SO(2).
///
/// Around a triangle it turns vectors by the triangle's area: no choice of frames makes all transports the identity.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "sheafnn/sheaf/planted_task.hpp"

namespace sheafnn {

namespace detail {

using SpacePoint = Column<double, 3>;

/// A point of the sphere and the first vector of a frame of its tangent plane.
struct TangentFrame {
  SpacePoint point, first;
};

[[nodiscard]] inline SpacePoint unit(const SpacePoint& x) { return x / std::sqrt(inner_product(x, x)); }

/// a × b.
[[nodiscard]] inline SpacePoint cross_product(const SpacePoint& a, const SpacePoint& b) {
  return {a(1) * b(2) - a(2) * b(1), a(2) * b(0) - a(0) * b(2), a(0) * b(1) - a(1) * b(0)};
}

[[nodiscard]] inline std::vector<TangentFrame> tangent_frames(const PlantedOptions& o) {
  const Stream stream = generator_stream(o.seed, GeneratorPart::frames);
  std::vector<TangentFrame> frames(static_cast<std::size_t>(o.nodes));
  for (std::size_t u = 0; u < frames.size(); ++u) {
    double z[6];
    fill_normals<6, double>(z, stream, static_cast<std::uint32_t>(u));
    TangentFrame& frame = frames[u];
    frame.point = unit({z[0], z[1], z[2]});
    const SpacePoint direction(z[3], z[4], z[5]);
    frame.first = unit(direction - inner_product(direction, frame.point) * frame.point);
  }
  return frames;
}

/// Pairs of points whose squared distance is at most `most`, by a grid of cells of that side.
[[nodiscard]] inline std::vector<Edge> close_pairs(const std::vector<TangentFrame>& frames, double most) {
  const double cells = std::clamp(std::floor(2 / std::sqrt(most)), 1.0, 1048576.0);
  const auto cell_of = [&](const SpacePoint& p) {
    std::array<std::int64_t, 3> cell;
    for (int i = 0; i < 3; ++i) {
      cell[static_cast<std::size_t>(i)] =
          static_cast<std::int64_t>(std::clamp(std::floor((p(i) + 1) / 2 * cells), 0.0, cells - 1));
    }
    return cell;
  };
  const auto key_of = [](std::int64_t x, std::int64_t y, std::int64_t z) { return x << 42 | y << 21 | z; };
  std::vector<std::pair<std::int64_t, std::int32_t>> sorted(frames.size());
  for (std::size_t u = 0; u < frames.size(); ++u) {
    const auto [x, y, z] = cell_of(frames[u].point);
    sorted[u] = {key_of(x, y, z), static_cast<std::int32_t>(u)};
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<Edge> pairs;
  const std::int64_t last = static_cast<std::int64_t>(cells) - 1;
  for (std::size_t u = 0; u < frames.size(); ++u) {
    const auto [x, y, z] = cell_of(frames[u].point);
    for (std::int64_t i = std::max<std::int64_t>(0, x - 1); i <= std::min(last, x + 1); ++i) {
      for (std::int64_t j = std::max<std::int64_t>(0, y - 1); j <= std::min(last, y + 1); ++j) {
        // Cells in a row along the last axis are neighbours in the sorted list.
        const std::int64_t begin = key_of(i, j, std::max<std::int64_t>(0, z - 1));
        const std::int64_t end = key_of(i, j, std::min(last, z + 1));
        auto near = std::lower_bound(sorted.begin(), sorted.end(), std::pair(begin, std::int32_t{0}));
        for (; near != sorted.end() && near->first <= end; ++near) {
          const SpacePoint difference = frames[u].point - frames[static_cast<std::size_t>(near->second)].point;
          if (near->second <= static_cast<std::int32_t>(u) || inner_product(difference, difference) > most)
            continue;
          pairs.push_back({static_cast<std::int32_t>(u), near->second});
        }
      }
    }
  }
  return pairs;
}

}  // namespace detail

/// Parallel transport from q to p as a rotation of coordinates: the equation on top of this file.
///
/// \param point_p, first_p  a point of the unit sphere and the first vector of its frame.
/// Unchecked: that the points are unit vectors and not opposite, and the vectors tangent ones of length 1.
[[nodiscard]] inline SquareMatrix<double, 2> sphere_transport(const math::Column<double, 3>& point_p,
                                                              const math::Column<double, 3>& first_p,
                                                              const math::Column<double, 3>& point_q,
                                                              const math::Column<double, 3>& first_q) {
  const math::Column<double, 3> to[2] = {first_p, detail::cross_product(point_p, first_p)};
  const math::Column<double, 3> from[2] = {first_q, detail::cross_product(point_q, first_q)};
  const double factor = 1 / (1 + math::inner_product(point_p, point_q));
  SquareMatrix<double, 2> r;
  for (int j = 0; j < 2; ++j) {
    const double along = factor * math::inner_product(point_p, from[j]);
    for (int i = 0; i < 2; ++i)
      r(i, j) = math::inner_product(to[i], from[j]) - along * math::inner_product(to[i], point_q);
  }
  return r;
}

/// Tangent vectors on the sphere. Edges join nodes within the angle whose cap contains, on average, `degree` other
/// nodes. F_{u⊴e} = I at the smaller node u of an edge and F_{v⊴e} = T_{uv} at the other, so that F_uᵀ F_v is the
/// transport. Features: (p_u, a_u, x_u), 3 + 3 + 2 columns. A node without neighbours has no label, −1. Does not use
/// the spread.
///
/// \throws std::invalid_argument  an option outside its range (PlantedOptions), or a size that does not fit in memory
[[nodiscard]] inline PlantedTask<SpecialOrthogonal<2>> planted_geometric(const PlantedOptions& options = {}) {
  using Family = SpecialOrthogonal<2>;
  detail::check_planted<Family>(options, 6);
  const std::vector<detail::TangentFrame> frames = detail::tangent_frames(options);
  // A cap whose rim is at distance c from its centre has c²/4 of the sphere's area.
  const double squared_distance = 4 * options.degree / static_cast<double>(options.nodes - 1);
  CellularSheaf<Family> sheaf(Graph(options.nodes, detail::close_pairs(frames, squared_distance)));
  const Graph& graph = sheaf.graph();
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const detail::TangentFrame& u = frames[static_cast<std::size_t>(graph.edge(e).u)];
    const detail::TangentFrame& v = frames[static_cast<std::size_t>(graph.edge(e).v)];
    sheaf.set_map(graph.reverse(graph.forward_arc(e)), sphere_transport(u.point, u.first, v.point, v.first));
  }
  std::vector<double> readable;
  readable.reserve(6 * frames.size());
  for (const detail::TangentFrame& frame : frames) {
    for (const detail::SpacePoint* x : {&frame.point, &frame.first}) {
      readable.insert(readable.end(), x->data(), x->data() + 3);
    }
  }
  return detail::planted_task("planted-geometric", options, std::move(sheaf), std::move(readable));
}

}  // namespace sheafnn
