/// \file
/// SheafBlocks and sheaf diffusion, all families and normalisations, against dense Laplacians built from the same
/// maps (reference_network.hpp).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "map_kind.hpp"
#include "reference_network.hpp"
#include "shared_networks.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_network_sheaf {
namespace {

using sheafnn::Buffer;
using sheafnn::Graph;
using sheafnn::Index;
using test::MapKind;
using sheafnn::Normalisation;

constexpr Normalisation normalisations[] = {Normalisation::none, Normalisation::block, Normalisation::augmented,
                                            Normalisation::degree};

/// 30 nodes, of which 5 without edges and one with a single edge.
Graph some_graph() {
  std::vector<sheafnn::Edge> edges = {{0, 24}};
  for (std::int32_t u = 0; u < 24; ++u) {
    edges.push_back({u, (u + 1) % 24});
    edges.push_back({u, (u * u + 3) % 24});
    if (u % 3 == 0) edges.push_back({u, 5});
  }
  return Graph(30, edges);
}

/// A map of the family for an arc: entries between −1 and 1, or a uniform rotation.
template <class Family, class S>
typename Family::template Map<S> some_map(Index arc) {
  constexpr int D = Family::stalk_dimension;
  typename Family::template Map<S> map;
  if constexpr (test::kind_of<Family> == MapKind::rotation) {
    map = sheafnn::rotation::haar_rotation<double, D>({3, sheafnn::Purpose::user}, static_cast<std::uint32_t>(arc))
              .template cast<S>();
  } else if constexpr (test::kind_of<Family> == MapKind::fixed) {
    map(0, 0) = S(1);
  } else {
    for (Index k = 0; k < map.size(); ++k) map.data()[k] = static_cast<S>(tiny::number(4, arc * 64 + k));
  }
  return map;
}

/// What is the same for all families: dense matrices against numbers of a network sheaf.
struct Case {
  MapKind kind = MapKind::fixed;
  int dimension = 1;
  Normalisation normalisation = Normalisation::none;
  reference::Matrix delta;  ///< Δ, (nD) × (nD)
  bool lp = false, hp = false;
  Index channels = 1;
  std::vector<double> y, z;  ///< n × d' × f
  double epsilon = 0;        ///< of the scalar type
};

/// Largest error of Z = ΔY in multiples of its bound.
double worst_error(const Graph& graph, const Case& c) {
  const Index n = graph.node_count(), D = c.dimension, d = D + (c.lp ? 1 : 0) + (c.hp ? 1 : 0);
  const reference::Real shift = c.normalisation == Normalisation::block ? 0 : 1;
  const reference::Matrix filters[] = {reference::fixed_filter(graph, 1, shift),
                                       reference::fixed_filter(graph, -1, shift)};
  const auto value = [&](Index u, Index i, Index channel) {
    return static_cast<reference::Real>(c.y[static_cast<std::size_t>((u * d + i) * c.channels + channel)]);
  };
  double worst = 0;
  for (Index u = 0; u < n; ++u) {
    for (Index i = 0; i < d; ++i) {
      for (Index channel = 0; channel < c.channels; ++channel) {
        reference::Real sum = 0;
        if (i < D) {
          for (Index k = 0; k < n * D; ++k) sum += c.delta(u * D + i, k) * value(k / D, k % D, channel);
        } else {
          const reference::Matrix& filter = filters[c.lp && i == D ? 0 : 1];
          for (Index v = 0; v < n; ++v) sum += filter(u, v) * value(v, i, channel);
        }
        const double z = c.z[static_cast<std::size_t>((u * d + i) * c.channels + channel)];
        worst = test::worse(worst, static_cast<double>(std::abs(static_cast<reference::Real>(z) - sum)));
      }
    }
  }
  // Up to a dozen blocks in a row, each of two scalings and a product of maps. D_u of dense maps is far from a
  // multiple of the identity at nodes with few edges: D_u^{-1/2} has a condition of its own.
  const bool conditioned = c.normalisation == Normalisation::block && c.kind != MapKind::rotation;
  const double size = std::max(1.0, static_cast<double>(c.delta.cwiseAbs().maxCoeff()));
  return worst / ((conditioned ? 4096 : 64) * static_cast<double>(D) * size * c.epsilon);
}

template <class Family, class S>
void check_family() {
  constexpr int D = Family::stalk_dimension;
  constexpr int W = sheafnn::lanes<S>;
  constexpr MapKind kind = test::kind_of<Family>;
  CAPTURE(Family::name);
  CAPTURE(D);
  CAPTURE(sizeof(S));
  const Graph graph = some_graph();
  const sheafnn::layers::EdgeBlocks<S> blocks(graph);
  Buffer<S> weight(blocks.block_count() * W);
  for (Index i = 0; i < weight.size(); ++i) weight[i] = static_cast<S>(0.6 + 0.4 * tiny::number(5, i));
  for (const bool weighted : {false, true}) {
    if (weighted && kind != MapKind::rotation) continue;
    Case c;
    c.kind = kind;
    c.dimension = D;
    c.epsilon = static_cast<double>(std::numeric_limits<S>::epsilon());
    std::vector<reference::Matrix> maps;
    for (Index a = 0; a < graph.arc_count(); ++a) {
      const auto map = some_map<Family, S>(a);
      reference::Matrix& dense = maps.emplace_back(reference::Matrix::Identity(D, D));
      for (int k = 0; k < Family::map_size; ++k) {
        (kind == MapKind::diagonal ? dense(k, k) : dense(k % D, k / D)) =
            static_cast<reference::Real>(map.data()[k]);
      }
      if (weighted) dense *= static_cast<reference::Real>(weight[graph.edge_of(a)]);
    }
    for (const Normalisation normalisation : normalisations) {
      c.normalisation = normalisation;
      c.delta = reference::laplacian(graph, D, kind, normalisation, maps);
      CAPTURE(weighted);
      CAPTURE(to_string(normalisation));
      sheafnn::layers::SheafBlocks<Family, S> sheaf(graph, blocks, normalisation);
      for (Index block = 0; block < blocks.block_count(); ++block) {
        for (int side = 0; side < 2; ++side) {
          for (int lane = 0; lane < W; ++lane) {
            const auto map = some_map<Family, S>(blocks.arcs(block, side)[lane]);
            for (int k = 0; k < Family::map_size; ++k) sheaf.maps(block, side)[k * W + lane] = map.data()[k];
          }
        }
      }
      sheaf.build(1, weighted ? weight.data() : nullptr);
      for (const int filters : {0, 1, 2}) {
        c.lp = filters == 2;
        c.hp = filters == 1 || (filters == 2 && D == 2);
        // As many channels as a pack has lanes, without filters: rows of constant length.
        c.channels = filters == 0 ? sheafnn::lanes<S> : D == 3 ? 21 : 5;
        const sheafnn::layers::DiffusionShape<S> shape(graph, D, c.lp, c.hp, c.channels,
                                               normalisation != Normalisation::block);
        const Index d = D + (c.lp ? 1 : 0) + (c.hp ? 1 : 0), channels = c.channels;
        CHECK(shape.row() == d * channels);
        Buffer<S> y(graph.node_count() * shape.row());
        for (Index i = 0; i < y.size(); ++i) y[i] = static_cast<S>(tiny::number(6, i));
        Buffer<S> w(y.size()), z(y.size()), threaded(y.size());
        for (const int threads : {1, 2}) {
          S* out = (threads == 1 ? z : threaded).data();
          sheafnn::detail::scale_features<Family>(threads, graph, shape, sheaf, y.data(), w.data());
          sheafnn::detail::apply_laplacian<Family>(threads, graph, shape, sheaf, sheafnn::NodeSelection(graph.node_count()),
                                   w.data(),
                                   [=]<class T, int N>(Index u, Index i, auto channel, const T*, const T* value) {
                                     for (int k = 0; k < N; ++k)
                                       channel.store(out + (u * d + i + k) * channels + channel, value[k]);
                                   });
        }
        CHECK(std::equal(z.begin(), z.end(), threaded.begin()));
        c.y.assign(y.begin(), y.end());
        c.z.assign(z.begin(), z.end());
        CHECK(worst_error(graph, c) <= 1);
      }
    }
  }
}

template <template <int> class Family>
void check_dimensions() {
  check_family<Family<1>, double>();
  check_family<Family<2>, double>();
  check_family<Family<3>, double>();
  check_family<Family<8>, double>();
  check_family<Family<3>, float>();
}

}  // namespace

TEST_CASE("diffusion with identity maps") { check_dimensions<sheafnn::Identity>(); }
TEST_CASE("diffusion with diagonal maps") { check_dimensions<sheafnn::Diagonal>(); }
TEST_CASE("diffusion with special orthogonal maps") { check_dimensions<sheafnn::SpecialOrthogonal>(); }
TEST_CASE("diffusion with general linear maps") { check_dimensions<sheafnn::GeneralLinear>(); }

TEST_CASE("edge blocks: every edge in its lane, the last block filled up") {
  const Graph graph = some_graph();
  const sheafnn::layers::EdgeBlocks<float> blocks(graph);
  CHECK(blocks.block_count() == (graph.edge_count() + blocks.width - 1) / blocks.width);
  Index edge = 0;
  bool right = true;
  for (Index block = 0; block < blocks.block_count(); ++block) {
    for (int lane = 0; lane < blocks.width; ++lane, ++edge) {
      const Index e = std::min(edge, graph.edge_count() - 1);
      right = right && (lane < blocks.lane_count(block)) == (edge < graph.edge_count());
      right = right && blocks.nodes(block, 0)[lane] == graph.edge(e).u &&
              blocks.nodes(block, 1)[lane] == graph.edge(e).v;
      for (int side = 0; side < 2; ++side) {
        const Index arc = blocks.arcs(block, side)[lane];
        right = right && graph.source(arc) == blocks.nodes(block, side)[lane] &&
                graph.target(arc) == blocks.nodes(block, 1 - side)[lane];
      }
    }
  }
  CHECK(right);
  CHECK(sheafnn::layers::EdgeBlocks<double>(Graph(3, {})).block_count() == 0);
}

}  // namespace test_network_sheaf
