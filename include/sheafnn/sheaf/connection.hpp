/// \file
/// Connections: sheaves of orthogonal maps that are computed from features, before any training, and random ones to compare
/// them with.
///
///     T_uᵀT_v = U Σ Vᵀ,  O_uv = U Vᵀ ∈ O(d)  or  U diag(1, …, 1, det UVᵀ) Vᵀ ∈ SO(d)     argmin ‖T_u O − T_v‖ (Procrustes)
///     F_{u⊴e} = I,  F_{v⊴e} = O_uv  for e = {u, v}, u < v;   L_uv = −O_uv,  L_vu = −O_uvᵀ
///
/// with the frames T_u of sheaf/local_frames.hpp. O_uv carries v's coordinates into u's. With O_uv on one arc and O_uvᵀ
/// on the other the transport would be its square. Source: Sheaf Neural Networks with Connection Laplacians (Barbero et al.,
/// arXiv 2206.08702), section 3; math: "Connections".
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/families/orthogonal.hpp"
#include "sheafnn/sheaf/local_frames.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"

namespace sheafnn::sheaf {

/// What a connection is made from.
enum class ConnectionSource : std::uint8_t {
  features,      ///< local PCA and Procrustes
  random_edges,  ///< a control: a random map per edge
  random_nodes   ///< a control: a random frame per node
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(ConnectionSource) {
  return std::array{"features", "random-edges", "random-nodes"};
}

/// How a connection is computed.
struct ConnectionOptions {
  bool special = false;                  ///< rotations, SO(d), instead of the nearest orthogonal maps
  FrameGauge gauge = FrameGauge::signs;  ///< which bases of the tangent spaces
  ConnectionSource source = ConnectionSource::features;
  Index seed = 0;  ///< of the random ones

  friend bool operator==(const ConnectionOptions&, const ConnectionOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<ConnectionOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  visit({.key = "special",
         .summary = "restrict the maps to rotations, instead of orthogonal maps of either determinant",
         .since = "0.3"},
        options.special...);
  visit(
      {.key = "gauge",
       .summary =
           "bases of the tangent spaces: singular vectors with signs, or pivots, which depend on the space alone",
       .since = "0.3"},
      options.gauge...);
  visit({.key = "connection",
         .summary = "what the maps are computed from; random-edges and random-nodes serve for comparison",
         .field = "source",
         .since = "0.3"},
        options.source...);
  visit({.key = "connection_seed",
         .summary = "seed of random connections",
         .range = OptionRange::between(0, 1 << 30),
         .field = "seed",
         .since = "0.3"},
        options.seed...);
}

/// Orthogonal maps of the edges of a graph, with d known at run time.
struct Transports {
  Index dimension = 0;         ///< d
  std::vector<double> values;  ///< m × d × d: O_uv row by row, u < v
};

}  // namespace sheafnn::sheaf

namespace sheafnn::detail {

/// argmin ‖A − O‖ over O(d), or over SO(d). If it is not unique, the function returns one solution.
template <class Real>
[[nodiscard]] Eigen::MatrixX<Real> nearest_orthogonal(const Eigen::MatrixX<Real>& a, bool special) {
  const Eigen::JacobiSVD<Eigen::MatrixX<Real>> svd(a, Eigen::ComputeFullU | Eigen::ComputeFullV);
  Eigen::MatrixX<Real> u = svd.matrixU();
  if (special && u.determinant() * svd.matrixV().determinant() < 0) u.col(u.cols() - 1) *= -1;
  return u * svd.matrixV().transpose();
}

/// The edges whose maps one part of a graph computes.
class OwnEdges {
 public:
  /// \param graph  the whole \param part  null: there are no parts
  OwnEdges(const Graph& graph, const GraphPart* part) {
    if (part == nullptr) return;
    starts_.resize(static_cast<std::size_t>(graph.node_count()));
    reads_.resize(starts_.size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(part->numbers().own); ++i) {
      const Index u = part->numbers().node[i];
      starts_[static_cast<std::size_t>(u)] = reads_[static_cast<std::size_t>(u)] = true;
      for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
        if (graph.target(a) > u) reads_[static_cast<std::size_t>(graph.target(a))] = true;
      }
    }
  }
  /// Does the part compute the maps of edges to larger nodes than u?
  [[nodiscard]] bool starts_at(Index u) const { return starts_.empty() || starts_[static_cast<std::size_t>(u)]; }
  /// Does it need the frame of u?
  [[nodiscard]] bool reads(Index u) const { return reads_.empty() || reads_[static_cast<std::size_t>(u)]; }

 private:
  std::vector<bool> starts_, reads_;
};

/// Most entries of the frames that are written out at a time: 256 MiB in all, two blocks of nodes.
inline constexpr Index frame_numbers = Index{1} << 24;

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// O_uv of all edges. Frames are written out for two blocks of nodes at a time, so that memory does not grow with n p d.
///
/// \param block_nodes  nodes of a block; 0: as many as fit into 128 MiB
/// \param part         null: all edges. Otherwise all parts of the graph call this, and each computes the maps of the edges
///                     whose smaller node it owns. The parts put them together
/// \throws std::invalid_argument  block_nodes below 0
template <class Real>
[[nodiscard]] Transports connection_transports(const BasicLocalFrames<Real>& frames, bool special,
                                               Execution execution = {}, Index block_nodes = 0,
                                               GraphPart* part = nullptr) {
  require_between("block_nodes", block_nodes, 0, Index{1} << 31);
  const Graph& graph = frames.graph();
  const detail::OwnEdges own_edges(graph, part);
  const Index n = graph.node_count(), d = frames.dimension();
  const Index fit = std::max<Index>(1, detail::frame_numbers / (d * frames.features()));
  const Index block = block_nodes > 0 ? block_nodes : fit;
  Transports r{d, std::vector<double>(static_cast<std::size_t>(graph.edge_count() * d * d))};
  using Frames = std::vector<Eigen::MatrixX<Real>>;
  const auto frames_of = [&](Index first) {
    Frames of(static_cast<std::size_t>(std::min(block, n - first)));
    parallel_for(execution, static_cast<Index>(of.size()), 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        if (own_edges.reads(first + i)) of[static_cast<std::size_t>(i)] = frames.frame(first + i);
      }
    });
    return of;
  };
  for (Index first = 0; first < n; first += block) {
    const Frames own = frames_of(first);
    for (Index second = first; second < n; second += block) {
      bool joined = false;
      for (Index u = first; u < first + static_cast<Index>(own.size()); ++u) {
        if (!own_edges.starts_at(u)) continue;
        for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1) && !joined; ++a) {
          joined = graph.target(a) > u && graph.target(a) / block == second / block;
        }
      }
      if (!joined) continue;
      const Frames others = second == first ? Frames() : frames_of(second);
      const Frames& targets = second == first ? own : others;
      parallel_for(execution, static_cast<Index>(own.size()), 1, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
          const Index u = first + i;
          if (!own_edges.starts_at(u)) continue;
          for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
            const Index v = graph.target(a);
            if (v < u || v / block != second / block) continue;
            const Eigen::MatrixX<Real> o =
                detail::nearest_orthogonal<Real>(own[static_cast<std::size_t>(i)].transpose() *
                                                     targets[static_cast<std::size_t>(v - second)],
                                                 special);
            double* out = r.values.data() + graph.edge_of(a) * d * d;
            for (Index k = 0; k < d * d; ++k) out[k] = o(k / d, k % d);
          }
        }
      });
    }
  }
  if (part != nullptr) part->sum(std::span<double>(r.values), {});  // of one value and zeros
  return r;
}

/// The sheaf of maps of edges: F_{u⊴e} = I, F_{v⊴e} = O_uv for e = {u, v}, u < v.
///
/// \throws std::invalid_argument  maps of another dimension or number, or that the family refuses
template <RestrictionMapFamily Family>
[[nodiscard]] CellularSheaf<Family> sheaf_of_transports(std::shared_ptr<const Graph> graph,
                                                        const Transports& maps) {
  constexpr int D = Family::stalk_dimension;
  require(maps.dimension == D, "stalk dimension of the transports", maps.dimension,
          detail::concat("the family has ", D));
  CellularSheaf<Family> r(std::move(graph));
  const Index m = r.graph().edge_count();
  require(static_cast<Index>(maps.values.size()) == m * D * D, "transports", maps.values.size(),
          detail::concat("expected ", m, " edges * ", D * D));
  for (Index e = 0; e < m; ++e) {
    SquareMatrix<double, D> o;
    for (int k = 0; k < D * D; ++k) o(k / D, k % D) = maps.values[static_cast<std::size_t>(e * D * D + k)];
    r.set_map(r.graph().reverse(r.graph().forward_arc(e)), o);
  }
  return r;
}

/// A control: O_uv is a random map of the family for every edge, whose index is the address.
template <RestrictionMapFamily Family>
[[nodiscard]] CellularSheaf<Family> random_edge_sheaf(Graph graph, const Stream& stream) {
  CellularSheaf<Family> r(std::move(graph));
  for (Index e = 0; e < r.graph().edge_count(); ++e) {
    r.set_map(r.graph().reverse(r.graph().forward_arc(e)),
              random_map<Family>(stream, static_cast<std::uint32_t>(e)));
  }
  return r;
}

/// A control: O_uv = T_uᵀT_v with a random frame T_u for every node, whose index is the address. The product of the transports
/// around every cycle is I: a flat bundle.
///
/// \tparam Family  of orthogonal maps
template <RestrictionMapFamily Family>
  requires is_orthogonal<Family>
[[nodiscard]] CellularSheaf<Family> random_node_sheaf(Graph graph, const Stream& stream) {
  CellularSheaf<Family> r(std::move(graph));
  const auto frame = [&](Index u) { return random_map<Family>(stream, static_cast<std::uint32_t>(u)); };
  for (Index e = 0; e < r.graph().edge_count(); ++e) {
    const Edge ends = r.graph().edge(e);
    r.set_map(r.graph().reverse(r.graph().forward_arc(e)), frame(ends.u).transpose() * frame(ends.v));
  }
  return r;
}

/// The connection of a graph's features, or a random one. Features are not treated: scale their rows before, if the
/// network does so.
///
/// \tparam Family  Orthogonal<D>, or SpecialOrthogonal<D>, which needs options.special
/// \param part     see connection_transports(); the graph and the features are the whole's
/// \throws std::invalid_argument  features of another number of nodes or fewer than D, maps that the family refuses
template <RestrictionMapFamily Family>
[[nodiscard]] CellularSheaf<Family> connection_sheaf(const Graph& graph, const NodeFeatures& features,
                                                     const ConnectionOptions& options = {},
                                                     Execution execution = {}, GraphPart* part = nullptr) {
  constexpr int D = Family::stalk_dimension;
  const auto shared = std::make_shared<const Graph>(graph);
  const Stream stream{.seed = static_cast<std::uint64_t>(options.seed), .purpose = Purpose::sheaf_noise};
  const auto random = [&]<RestrictionMapFamily Of>(Of) {
    const CellularSheaf<Of> sheaf = options.source == ConnectionSource::random_edges
                                        ? random_edge_sheaf<Of>(graph, stream)
                                        : random_node_sheaf<Of>(graph, stream);
    CellularSheaf<Family> r(shared);
    for (Index a = 0; a < graph.arc_count(); ++a) r.set_map(a, sheaf.map(a));
    return r;
  };
  if (options.source != ConnectionSource::features) {
    return options.special ? random(SpecialOrthogonal<D>()) : random(Family());
  }
  const LocalFrames frames(*shared, features, D, options.gauge);
  return sheaf_of_transports<Family>(shared, connection_transports(frames, options.special, execution, 0, part));
}

}  // namespace sheafnn::sheaf

namespace sheafnn {

using sheaf::connection_sheaf;
using sheaf::ConnectionOptions;
using sheaf::ConnectionSource;
using sheaf::random_edge_sheaf;
using sheaf::random_node_sheaf;

}  // namespace sheafnn
