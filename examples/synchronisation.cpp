// Synchronisation: rotations of nodes from noisy measurements of their differences, by the sheaf Laplacian.
//
// Every node u has an unknown rotation T_u; an edge measures T_u T_vᵀ with Cayley noise of concentration κ, and a share
// of the edges measures anything. With F_{u⊴e} = I and F_{v⊴e} = (the measurement) the rotations are a section, and with
// noise an approximate one: the three smallest eigenvectors of Δ, rounded node by node. No rotations at all disagree less
// with the measurements than 2m (λ_1 + λ_2 + λ_3), so the method says itself how far from the best it can be.
#include <cmath>
#include <cstdio>
#include <sheafnn/graph/statistics.hpp>
#include <sheafnn/rotation/cayley_distribution.hpp>
#include <sheafnn/rotation/rotation_angle.hpp>
#include <sheafnn/sheaf/approximate_sections.hpp>
#include <stdexcept>
#include <vector>

#include "models/program.hpp"

namespace {

using sheafnn::Index;
using sheafnn::Stream;
using Rotation = sheafnn::SquareMatrix<double, 3>;
using Rotations = sheafnn::Cochain<double>;  // 3n × 3
using Sheaf = sheafnn::CellularSheaf<sheafnn::SpecialOrthogonal<3>>;

struct Options {
  std::int32_t nodes = 200;
  double degree = 10;
  std::uint64_t seed = 1;
  std::vector<double> concentrations = {0.999, 0.99, 0.9, 0.7};
  std::vector<double> outliers = {0, 0.1, 0.3};
};

/// Streams that share no numbers: one per part of the problem.
Stream stream_of(const Options& options, std::uint32_t part) { return {.seed = options.seed, .layer = part}; }

/// Nodes are points of the unit square, drawn at random. Nodes within a distance r are joined, r such that a node away from
/// the border has `degree` neighbours in the mean. A path through all nodes, from left to right, connects them.
sheafnn::Graph random_geometric_graph(const Options& options) {
  const double radius = std::sqrt(options.degree / (std::acos(-1.0) * options.nodes));
  std::vector<std::pair<double, double>> points;
  for (std::int32_t u = 0; u < options.nodes; ++u) {
    const auto words = stream_of(options, 0).words(static_cast<std::uint32_t>(u), 0);
    points.emplace_back(std::ldexp(words.word[0], -32), std::ldexp(words.word[1], -32));
  }
  std::sort(points.begin(), points.end());
  std::vector<sheafnn::Edge> edges;
  for (std::int32_t u = 0; u < options.nodes; ++u) {
    const auto [x, y] = points[static_cast<std::size_t>(u)];
    for (std::int32_t v = u + 1; v < options.nodes; ++v) {
      const auto [a, b] = points[static_cast<std::size_t>(v)];
      if (v == u + 1 || std::hypot(x - a, y - b) <= radius) edges.push_back({u, v});
    }
  }
  return sheafnn::Graph(options.nodes, edges);
}

/// Measurements of all edges as a sheaf. \returns how many are outliers
Index measure(Sheaf& sheaf, const Rotations& truth, double kappa, double outliers, const Options& options) {
  const sheafnn::rotation::CayleyDistribution<3> noise(Rotation::Identity(), kappa);
  Index count = 0;
  for (Index e = 0; e < sheaf.graph().edge_count(); ++e) {
    const auto [u, v] = sheaf.graph().edge(e);
    const std::uint32_t id = static_cast<std::uint32_t>(e);
    Rotation measured = sample(noise, stream_of(options, 2), id) * truth.middleRows<3>(3 * u) *
                        truth.middleRows<3>(3 * v).transpose();
    if (std::ldexp(stream_of(options, 3).words(id, 0).word[0], -32) < outliers) {
      measured = sheafnn::rotation::haar_rotation<double, 3>(stream_of(options, 4), id);
      ++count;
    }
    sheaf.set_map(v, e, measured);
  }
  return count;
}

/// Mean angle in degrees between estimate and truth, after the best common rotation.
double mean_error(const Rotations& estimate, const Rotations& truth) {
  const Rotation common = sheafnn::rotation::nearest_rotation<double, 3>(estimate.transpose() * truth);
  double sum = 0;
  for (Index row = 0; row < truth.rows(); row += 3) {
    const Rotation aligned = estimate.middleRows<3>(row) * common;
    sum += sheafnn::rotation::rotation_angle<double, 3>(aligned.transpose() * truth.middleRows<3>(row));
  }
  return sum / static_cast<double>(truth.rows() / 3) * 180 / std::acos(-1.0);
}

/// The table; disagreements are ‖F_u X_u − F_v X_v‖² in the mean over the edges, between 0 and 8.
void run(const Options& options) {
  const sheafnn::Graph graph = random_geometric_graph(options);
  Rotations truth(3 * options.nodes, 3);
  for (std::int32_t u = 0; u < options.nodes; ++u) {
    truth.middleRows<3>(3 * u) =
        sheafnn::rotation::haar_rotation<double, 3>(stream_of(options, 1), static_cast<std::uint32_t>(u));
  }
  std::printf("%d nodes, %td edges\n\n", options.nodes, graph.edge_count());
  std::printf("                                  disagreement of the          spectral\n");
  std::printf("   kappa  outliers  mean error      truth    estimate     bound   estimate / bound\n");
  const double edges = static_cast<double>(graph.edge_count());
  bool holds = true;
  for (const double share : options.outliers) {
    for (const double kappa : options.concentrations) {
      Sheaf sheaf(graph);
      const Index outliers = measure(sheaf, truth, kappa, share, options);
      const sheafnn::SheafLaplacian laplacian(sheaf, sheafnn::Normalisation::block);
      const auto section = sheafnn::sheaf::nearest_section(laplacian);
      std::printf("%8g %8.1f%% %9.2f deg %10.5f %11.5f %9.5f %18.3f\n", kappa,
                  100 * static_cast<double>(outliers) / edges, mean_error(section.rotations, truth),
                  disagreement(laplacian, truth) / edges, section.disagreement / edges, section.bound / edges,
                  section.disagreement / section.bound);
      holds = holds && section.bound <= section.disagreement && section.bound <= disagreement(laplacian, truth);
    }
  }
  if (!holds) throw std::runtime_error("a disagreement is below the spectral bound");
  std::printf("\nNo disagreement is below the spectral bound.\n");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Rotations of nodes from noisy relative rotations, by the smallest eigenvectors of a sheaf Laplacian.",
      "synchronisation");
  app.add_option("--nodes", options.nodes, "number of nodes, 10 to 20000")
      ->capture_default_str()
      ->check(programs::between<sheafnn::Index>(10, 20000));
  app.add_option("--degree", options.degree, "mean number of neighbours, 1 to 100")
      ->capture_default_str()
      ->check(programs::between<double>(1, 100));
  app.add_option("--kappa", options.concentrations, "concentrations of the noise, below 1")->capture_default_str();
  app.add_option("--outliers", options.outliers, "shares of edges with a random measurement, 0 to 1")
      ->capture_default_str()
      ->check(programs::between<double>(0, 1));
  app.add_option("--seed", options.seed, "seed of the graph, the rotations and the noise")->capture_default_str();
  return programs::run_program(app, argc, argv, [&] { run(options); });
}
