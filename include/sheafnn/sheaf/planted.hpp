/// \file
/// Seeded tasks with a planted sheaf on random graphs: frames, unreliable relations, diagonal and general-linear maps,
/// signs. The rule of the labels: planted_task.hpp. A task on a surface: planted_geometric.hpp.
///
/// Every node u has its own map F_u, and F_{u⊴e} = F_u, except for unreliable relations, frames with curvature, and
/// signs. Such a sheaf is flat. A network that multiplies every node's vector by its own map before it sums, and by the
/// transpose after it, needs no other maps. Graphs: random_regular_graph(). Every generator takes time proportional to the
/// edges. It throws std::invalid_argument that names an option outside its range (PlantedOptions), or a size that does not
/// fit in memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/graph/regular_graph.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/random/words.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/skew.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "sheafnn/sheaf/planted_task.hpp"

namespace sheafnn {

/// Vectors of R¹ that every node of planted_signed() has.
inline constexpr int signed_columns = 5;

namespace detail {

/// w_u ~ N(0, spread² I) of every node, n × D(D − 1)/2.
template <int D>
[[nodiscard]] std::vector<double> frame_parameters(const PlantedOptions& o) {
  constexpr int P = rotation_parameters<D>;
  const Stream stream = generator_stream(o.seed, GeneratorPart::frames);
  std::vector<double> w(static_cast<std::size_t>(o.nodes * P));
  for (std::size_t u = 0; u < static_cast<std::size_t>(o.nodes); ++u) {
    fill_normals<P, double>(w.data() + u * P, stream, static_cast<std::uint32_t>(u));
  }
  for (double& entry : w) entry *= o.spread;
  return w;
}

/// R_u = exp([w_u]).
template <int D>
[[nodiscard]] std::vector<SquareMatrix<double, D>> frames_of(const std::vector<double>& w) {
  constexpr int P = rotation_parameters<D>;
  std::vector<SquareMatrix<double, D>> frames(w.size() / P);
  for (std::size_t u = 0; u < frames.size(); ++u) {
    RotationParameters<double, D> phi;
    for (int k = 0; k < P; ++k) phi(k) = w[u * P + static_cast<std::size_t>(k)];
    frames[u] = exponential_rotation<double, D>(phi);
  }
  return frames;
}

/// The sheaf with F_{u⊴e} = F_u on a random regular graph.
template <RestrictionMapFamily Family>
[[nodiscard]] CellularSheaf<Family> sheaf_of_node_maps(
    const PlantedOptions& o, const std::vector<typename Family::template Map<double>>& maps) {
  CellularSheaf<Family> sheaf(random_regular_graph(o.nodes, o.degree, o.seed));
  const Graph& graph = sheaf.graph();
  for (Index a = 0; a < graph.arc_count(); ++a) {
    sheaf.set_map(a, maps[static_cast<std::size_t>(graph.source(a))]);
  }
  return sheaf;
}

/// Multiplies the map of every edge's larger node by turn(e) from the left.
template <RestrictionMapFamily Family, class Turn>
void turn_edges(CellularSheaf<Family>& sheaf, const Turn& turn) {
  for (Index e = 0; e < sheaf.graph().edge_count(); ++e) {
    const Index arc = sheaf.graph().reverse(sheaf.graph().forward_arc(e));
    sheaf.set_map(arc, multiply(turn(e), sheaf.map(arc)));
  }
}

}  // namespace detail

/// Local frames: F_u = R_u = exp(W_u), W_u the skew matrix of w_u ~ N(0, spread² I), D(D − 1)/2 values (skew_matrix()).
/// Features: (w_u, x_u). With curvature c the transport from v to u is R_uᵀ exp(c (W_u W_v − W_v W_u)) R_v, whose holonomy no
/// choice of frames removes. Then F_{u⊴e} = R_u at the smaller node u of an edge. In the plane it is flat all the same. With a
/// neighbour share labels are drawn, and x_u shows the class of u or of a neighbour (planted_task.hpp).
///
/// \throws std::invalid_argument  see the top of this file
template <int D>
  requires(D >= 2 && D <= 5)
[[nodiscard]] PlantedTask<SpecialOrthogonal<D>> planted_frames(const PlantedOptions& options = {}) {
  using Family = SpecialOrthogonal<D>;
  detail::check_planted<Family>(options, rotation::rotation_parameters<D>);
  std::vector<double> w = detail::frame_parameters<D>(options);
  CellularSheaf<Family> sheaf = detail::sheaf_of_node_maps<Family>(options, detail::frames_of<D>(w));
  if (options.curvature > 0) {
    const auto skew = [&](Index u) {
      const Eigen::Map<const rotation::RotationParameters<double, D>> phi(w.data() +
                                                                          u * rotation::rotation_parameters<D>);
      return rotation::skew_matrix<double, D>(phi);
    };
    detail::turn_edges(sheaf, [&](Index e) {
      const auto [u, v] = sheaf.graph().edge(e);
      const SquareMatrix<double, D> product = math::multiply(skew(u), skew(v));
      rotation::RotationParameters<double, D> phi =
          rotation::skew_parameters<double, D>(product);  // of half the commutator
      phi *= 2 * options.curvature;
      return rotation::exponential_rotation<double, D>(phi);
    });
  }
  if (options.neighbour_share == 0) {
    return detail::planted_task("planted-frames", options, std::move(sheaf), std::move(w));
  }
  auto nodes = detail::vectors_of_labels<Family>(options, sheaf);
  return detail::planted_task("planted-frames", options, std::move(sheaf), std::move(nodes), std::move(w));
}

/// Unreliable relations: as planted_frames(), but the transport from v to u is R_uᵀ N_e R_v for u < v, and its transpose
/// back, with N_e ~ C_D(I, κ_e): F_{u⊴e} = R_u and F_{v⊴e} = N_e R_v. Nodes have reliabilities r_u, uniform in [0, 1], and
/// κ_e = least + (most − least) / (1 + exp(8 − 8 r_u − 8 r_v)), near the least or the largest value for most edges. So the transport is C_D(R_uᵀ R_v, κ_e), given the features (w_u, r_u, x_u); what
/// was drawn is not among them.
///
/// \throws std::invalid_argument  see the top of this file
template <int D>
  requires(D >= 2 && D <= 5)
[[nodiscard]] PlantedTask<SpecialOrthogonal<D>> planted_unreliable(const PlantedOptions& options = {}) {
  using Family = SpecialOrthogonal<D>;
  constexpr std::size_t P = rotation::rotation_parameters<D>;
  detail::check_planted<Family>(options, P + 1);
  const std::vector<double> w = detail::frame_parameters<D>(options);
  const Stream reliability = detail::generator_stream(options.seed, detail::GeneratorPart::reliability);
  std::vector<double> readable;
  readable.reserve(static_cast<std::size_t>(options.nodes) * (P + 1));
  for (std::size_t u = 0; u < static_cast<std::size_t>(options.nodes); ++u) {
    readable.insert(readable.end(), w.begin() + static_cast<Index>(u * P),
                    w.begin() + static_cast<Index>(u * P + P));
    readable.push_back(random::uniform_from_word<double>(reliability.words(static_cast<std::uint32_t>(u), 0).word[0]));
  }
  CellularSheaf<Family> sheaf = detail::sheaf_of_node_maps<Family>(options, detail::frames_of<D>(w));
  const Graph& graph = sheaf.graph();
  const Stream transports = detail::generator_stream(options.seed, detail::GeneratorPart::transports);
  std::vector<double> concentration(static_cast<std::size_t>(graph.edge_count()));
  const auto r = [&](std::int32_t u) { return readable[static_cast<std::size_t>(u) * (P + 1) + P]; };
  detail::turn_edges(sheaf, [&](Index e) {
    const auto [u, v] = graph.edge(e);
    const double share = 1 / (1 + std::exp(8 - 8 * r(u) - 8 * r(v)));
    const double kappa =
        options.least_concentration + (options.most_concentration - options.least_concentration) * share;
    concentration[static_cast<std::size_t>(e)] = kappa;
    const rotation::CayleyDistribution<D> noise(math::identity_matrix<double, D>(), kappa);
    return sample(noise, transports, static_cast<std::uint32_t>(e));
  });
  return detail::planted_task("planted-unreliable", options, std::move(sheaf), std::move(readable),
                              std::move(concentration));
}

/// Diagonal maps: F_u = diag(a_u) with entries a = ± exp(spread · z / 2), z ~ N(0, 1), both signs equally likely; with spread 0
/// they are signs. Features: (a_u, x_u).
///
/// \throws std::invalid_argument  see the top of this file
template <int D>
  requires(D >= 1 && D <= 5)
[[nodiscard]] PlantedTask<Diagonal<D>> planted_diagonal(const PlantedOptions& options = {}) {
  using Family = Diagonal<D>;
  detail::check_planted<Family>(options, D);
  const Stream stream = detail::generator_stream(options.seed, detail::GeneratorPart::frames);
  std::vector<math::Column<double, D>> maps(static_cast<std::size_t>(options.nodes));
  std::vector<double> readable;
  readable.reserve(maps.size() * D);
  for (std::size_t u = 0; u < maps.size(); ++u) {
    double z[2 * D];
    fill_normals<2 * D, double>(z, stream, static_cast<std::uint32_t>(u));
    for (int k = 0; k < D; ++k) {
      maps[u](k) = std::copysign(std::exp(0.5 * options.spread * z[k]), z[D + k]);
      readable.push_back(maps[u](k));
    }
  }
  return detail::planted_task("planted-diagonal", options, detail::sheaf_of_node_maps<Family>(options, maps),
                              std::move(readable));
}

/// Signed graphs: D = 1. Every node belongs to one of three groups, each equally likely. Edges within a group have the sign
/// +1, edges between groups −1. A triangle of three groups has the product −1: no signs of nodes explain the edges.
/// F_{u⊴e} = 1 at the smaller node u of an edge and ±1 at the other. A node has signed_columns vectors of R¹; x_u holds
/// them, and is uniform on the unit sphere. The directions are the corners of a simplex of R^signed_columns. Features: the
/// group as three columns of 0 and 1, and x_u. Does not use the spread.
///
/// \throws std::invalid_argument  see the top of this file
[[nodiscard]] inline PlantedTask<Diagonal<1>> planted_signed(const PlantedOptions& options = {}) {
  using Family = Diagonal<1>;
  constexpr std::size_t groups = 3;
  detail::check_planted<Family, signed_columns>(options, groups);
  const Stream stream = detail::generator_stream(options.seed, detail::GeneratorPart::frames);
  std::vector<std::size_t> group(static_cast<std::size_t>(options.nodes));
  std::vector<double> readable(group.size() * groups, 0.0);
  for (std::size_t u = 0; u < group.size(); ++u) {
    const double uniform = random::uniform_from_word<double>(stream.words(static_cast<std::uint32_t>(u), 0).word[0]);
    group[u] = std::min(groups - 1, static_cast<std::size_t>(uniform * groups));
    readable[u * groups + group[u]] = 1;
  }
  CellularSheaf<Family> sheaf(random_regular_graph(options.nodes, options.degree, options.seed));
  const Graph& graph = sheaf.graph();
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const auto [u, v] = graph.edge(e);
    const bool same = group[static_cast<std::size_t>(u)] == group[static_cast<std::size_t>(v)];
    sheaf.set_map(graph.forward_arc(e), math::Column<double, 1>(1));
    sheaf.set_map(graph.reverse(graph.forward_arc(e)), math::Column<double, 1>(same ? 1 : -1));
  }
  return detail::planted_task<Family, signed_columns>("planted-signed", options, std::move(sheaf),
                                                      std::move(readable));
}

/// General-linear maps: F_u = R_u diag(2^{z_u}) with R_u as planted_frames() has them and z uniform in [−1, 1]: condition
/// numbers are at most 4. Features: (w_u, z_u, x_u).
///
/// \throws std::invalid_argument  see the top of this file
template <int D>
  requires(D >= 2 && D <= 5)
[[nodiscard]] PlantedTask<GeneralLinear<D>> planted_general_linear(const PlantedOptions& options = {}) {
  using Family = GeneralLinear<D>;
  constexpr std::size_t P = rotation::rotation_parameters<D>;
  detail::check_planted<Family>(options, P + D);
  const std::vector<double> w = detail::frame_parameters<D>(options);
  std::vector<SquareMatrix<double, D>> maps = detail::frames_of<D>(w);
  const Stream stream = detail::generator_stream(options.seed, detail::GeneratorPart::reliability);
  std::vector<double> readable;
  readable.reserve(maps.size() * (P + D));
  for (std::size_t u = 0; u < maps.size(); ++u) {
    readable.insert(readable.end(), w.begin() + static_cast<Index>(u * P),
                    w.begin() + static_cast<Index>(u * P + P));
    for (int k = 0; k < D; ++k) {
      const auto block = stream.words(static_cast<std::uint32_t>(u), static_cast<std::uint32_t>(k / 4));
      const double z = 2 * random::uniform_from_word<double>(block.word[k % 4]) - 1;
      for (int i = 0; i < D; ++i) maps[u](i, k) *= std::exp2(z);
      readable.push_back(z);
    }
  }
  return detail::planted_task("planted-general-linear", options, detail::sheaf_of_node_maps<Family>(options, maps),
                              std::move(readable));
}

}  // namespace sheafnn
