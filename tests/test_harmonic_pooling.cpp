/// \file
/// HarmonicPooling under an orthogonal change of the basis of every stalk: pooled numbers stay, and derivatives turn with the features.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "shared_rotations.hpp"
#include "sheaf_checks.hpp"
#include "sheafnn/layers/graph_pooling.hpp"
#include "sheafnn/layers/harmonic_pooling.hpp"

namespace test_harmonic_pooling {
using namespace sheaf_checks;
using namespace sheafnn::layers;

namespace {

using Matrix = Cochain<double>;

/// Graphs of 4, 1 and 5 nodes.
Graph union_of_graphs() {
  Graph graph(10,
              std::vector<Edge>{{0, 1}, {1, 2}, {2, 3}, {0, 3}, {0, 2}, {5, 6}, {5, 7}, {6, 7}, {7, 8}, {8, 9}});
  graph.set_graphs({0, 4, 5, 10});
  return graph;
}

/// An orthogonal matrix for each id, every other one a reflection where maps need no determinant of 1.
template <class Family>
SquareMatrix<double, Family::stalk_dimension> turn(std::uint64_t seed, Index id) {
  SquareMatrix<double, Family::stalk_dimension> r =
      haar_rotation<double, Family::stalk_dimension>(Stream{.seed = seed}, static_cast<std::uint32_t>(id));
  if (std::is_same_v<Family, GeneralLinear<Family::stalk_dimension>> && id % 2 == 1) r.col(0) = -r.col(0).eval();
  return r;
}

/// Results of the poolings of a sheaf and features.
struct Pooled {
  Matrix harmonic, mean;  ///< graphs × d f
  Matrix x_bar;           ///< derivative of the features, for some derivative of harmonic
};

template <class Family>
Pooled pool(const CellularSheaf<Family>& sheaf, const Matrix& x, Normalisation normalisation) {
  constexpr Index D = Family::stalk_dimension;
  const Graph& graph = sheaf.graph();
  const Index n = graph.node_count(), f = x.cols();
  const EdgeBlocks<double> edges(graph);
  const DiffusionShape<double> shape(graph, D, false, false, f, normalisation != Normalisation::block);
  SheafBlocks<Family, double> blocks(graph, edges, normalisation);
  blocks.build(1, nullptr, true, [&](Index block, auto& map) {
    for (int side = 0; side < 2; ++side) {
      for (int lane = 0; lane < edges.width; ++lane) {
        const auto& own = sheaf.map(edges.arcs(block, side)[lane]);
        for (Index k = 0; k < own.size(); ++k) map[side].data()[k].set_lane(lane, own.data()[k]);
      }
    }
  });
  HarmonicPooling<Family, double> pooling(graph, shape, 5);
  pooling.forward({.execution = 1, .sheaf = blocks, .x = {x, D}, .nodes = NodeSelection(n)});
  Pooled r;
  r.harmonic = pooling.output().eigen();
  Matrix bar(r.harmonic.rows(), r.harmonic.cols()), scratch[2] = {x, x};
  for (Index i = 0; i < bar.size(); ++i) bar.data()[i] = std::sin(1.0 + static_cast<double>(i));
  SheafBlocksGradient<Family, double> gradient(graph, edges);
  r.x_bar = x;
  pooling.backward({.execution = 1,
                    .sheaf = blocks,
                    .sheaf_gradient = gradient,
                    .output_bar = {},
                    .x_bar = {r.x_bar, D},
                    .scratch = {{scratch[0], D}, {scratch[1], D}}},
                   {bar.data(), bar.rows(), bar.cols()});
  GraphPooling<double> mean(graph, D * f, Pooling::mean);
  mean.forward(1, {x.data(), n, D * f}, {});
  r.mean = mean.output().eigen();
  return r;
}

template <class Family>
void check_invariance(Normalisation normalisation) {
  constexpr Index D = Family::stalk_dimension;
  CAPTURE(Family::name);
  CAPTURE(to_string(normalisation));
  const Graph graph = union_of_graphs();
  const Index n = graph.node_count();
  const CellularSheaf<Family> sheaf = random_sheaf<Family>(graph, Stream{.seed = 11});
  const Matrix x = random_cochain(n * D, 4, 12);
  // x_u → Q_u x_u and F_{u⊴e} → R_e F_{u⊴e} Q_uᵀ.
  CellularSheaf<Family> turned_sheaf(graph);
  for (Index a = 0; a < graph.arc_count(); ++a) {
    turned_sheaf.set_map(a, turn<Family>(13, graph.edge_of(a)) * sheaf.restriction_map(a) *
                                turn<Family>(14, graph.source(a)).transpose());
  }
  const auto turned = [&](const Matrix& rows) {
    Matrix r = rows;
    for (Index u = 0; u < n; ++u) r.middleRows(D * u, D) = turn<Family>(14, u) * rows.middleRows(D * u, D);
    return r;
  };
  const Pooled before = pool(sheaf, x, normalisation), after = pool(turned_sheaf, turned(x), normalisation);
  CHECK((after.harmonic - before.harmonic).cwiseAbs().maxCoeff() < 1e-13);
  CHECK((after.x_bar - turned(before.x_bar)).cwiseAbs().maxCoeff() < 1e-12);
  // What reads coordinates changes, and so does harmonic pooling where the maps do not turn with the features.
  CHECK((after.mean - before.mean).cwiseAbs().maxCoeff() > 0.1);
  CHECK((pool(sheaf, turned(x), normalisation).harmonic - before.harmonic).cwiseAbs().maxCoeff() > 0.01);
}

}  // namespace

TEST_CASE("harmonic pooling reads no coordinates of stalks") {
  for (const Normalisation normalisation : {Normalisation::augmented, Normalisation::block}) {
    check_invariance<SpecialOrthogonal<3>>(normalisation);
    check_invariance<SpecialOrthogonal<2>>(normalisation);
    check_invariance<GeneralLinear<3>>(normalisation);
    check_invariance<GeneralLinear<2>>(normalisation);
  }
}

}  // namespace test_harmonic_pooling
