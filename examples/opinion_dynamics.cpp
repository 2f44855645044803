// Opinion dynamics on discourse sheaves (Hansen, Ghrist): agents keep private opinions in R³ and voice, towards each
// neighbour, what a restriction map makes of them. Opinions move to where neighbours hear what they say themselves,
//
//     Ẋ = −L X,     with stubborn agents   Ẋ_U = −(L X)_U.
//
// The first ends in a section: the projection of X(0) on H⁰. The second ends in the harmonic extension of what the
// stubborn agents say. Here all agents see the world from frames of their own, so that H⁰ has dimension 3 although
// private opinions never agree.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sheafnn/graph/karate.hpp>
#include <sheafnn/sheaf/coboundary.hpp>
#include <sheafnn/sheaf/diffusion.hpp>
#include <sheafnn/sheaf/harmonic_extension.hpp>
#include <span>
#include <stdexcept>
#include <vector>

#include "models/program.hpp"

namespace {

using sheafnn::Index;
using sheafnn::Stream;
using Rotations = sheafnn::SpecialOrthogonal<3>;
using Sheaf = sheafnn::CellularSheaf<Rotations>;
using Laplacian = sheafnn::SheafLaplacian<Rotations>;
using Opinions = sheafnn::Cochain<double>;  // 3n × 1

struct Options {
  double time = 80;
  int rows = 7;
  std::vector<std::int32_t> stubborn = {0, 33};  ///< the two leaders of the karate club
  std::uint64_t seed = 1;
};

/// F_{u⊴e} = O_uᵀ with a frame O_u per agent; sections are x_u = O_u h.
Sheaf discourse_sheaf(const sheafnn::Graph& graph, std::uint64_t seed) {
  Sheaf sheaf(graph);
  for (Index a = 0; a < graph.arc_count(); ++a) {
    const auto agent = static_cast<std::uint32_t>(graph.source(a));
    sheaf.set_map(a, sheafnn::rotation::haar_rotation<double, 3>(Stream{.seed = seed}, agent).transpose());
  }
  return sheaf;
}

/// What neighbours hear and what they say differ by this: ‖δX‖² / m.
double disagreement(const Sheaf& sheaf, const Opinions& x) {
  return coboundary(sheaf, x).squaredNorm() / static_cast<double>(sheaf.graph().edge_count());
}

/// Euler steps with fixed agents, whose opinions never change.
void diffuse_with(const Laplacian& laplacian, std::span<const std::int32_t> fixed, double step, Index steps,
                  Opinions& x) {
  Opinions change(x.rows(), x.cols());
  for (Index i = 0; i < steps; ++i) {
    laplacian.apply(x, change);
    for (const std::int32_t u : fixed) change.middleRows<3>(3 * u).setZero();
    x -= step * change;
  }
}

/// A table of X(t) at t = 0 and at times that double, up to options.time. \returns distance to the limit at the end
double show(const Sheaf& sheaf, std::span<const std::int32_t> fixed, Opinions x, const Opinions& limit,
            const Options& options) {
  const Laplacian laplacian(sheaf);
  const double step = 1.0 / laplacian.spectral_bound();
  std::printf("     time  disagreement    |X - limit|\n");
  Index done = 0;
  for (int row = options.rows - 1; row >= 0; --row) {
    std::printf("%9.2f %13.2e %14.2e\n", static_cast<double>(done) * step, disagreement(sheaf, x),
                (x - limit).norm());
    if (row == 0) break;
    const Index until = static_cast<Index>(std::ldexp(options.time / step, 1 - row));
    diffuse_with(laplacian, fixed, step, until - done, x);
    done = until;
  }
  std::printf("    limit %13.2e\n", disagreement(sheaf, limit));
  return (x - limit).norm();
}

void run(const Options& options) {
  const sheafnn::Graph graph = sheafnn::karate_club().graph;
  for (const std::int32_t u : options.stubborn) {
    sheafnn::require(0 <= u && u < graph.node_count(), "--stubborn", u, "agents are numbered from 0 to 33");
    sheafnn::require(std::count(options.stubborn.begin(), options.stubborn.end(), u) == 1, "--stubborn", u,
                     "appears twice");
  }
  const Sheaf sheaf = discourse_sheaf(graph, options.seed);
  const Laplacian laplacian(sheaf);
  Opinions x(laplacian.rows(), 1);
  for (Index i = 0; i < x.rows(); ++i) {
    sheafnn::fill_normals<1>(x.data() + i, Stream{.seed = options.seed, .layer = 1},
                             static_cast<std::uint32_t>(i));
  }
  const auto harmonic = sheafnn::sheaf::harmonic_space(laplacian);
  std::printf("%td agents, %td pairs that talk, opinions in R^3; dim H0 = %td\n\n", graph.node_count(),
              graph.edge_count(), harmonic.dimension());
  std::printf("Everybody listens; the limit is the projection of X(0) on H0:\n");
  const double free_distance = show(sheaf, {}, x, harmonic.project(x), options);

  Opinions said(3 * static_cast<Index>(options.stubborn.size()), 1);
  for (std::size_t i = 0; i < options.stubborn.size(); ++i) {
    const std::int32_t u = options.stubborn[i];
    said.middleRows<3>(3 * static_cast<Index>(i)) = x.middleRows<3>(3 * u);
  }
  const Opinions extension = sheafnn::sheaf::harmonic_extension(laplacian, options.stubborn, said);
  std::printf("\n%zu stubborn agents; the limit is the harmonic extension of their opinions:\n",
              options.stubborn.size());
  const double fixed_distance = show(sheaf, options.stubborn, x, extension, options);

  const bool agree = free_distance < 1e-8 && fixed_distance < 1e-8;
  std::printf("\n%s\n",
              agree ? "Both limits are reached." : "The limits are not reached yet; --time gives them longer.");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Opinions that diffuse on a discourse sheaf over the karate club, with and without stubborn agents.",
      "opinion_dynamics");
  app.add_option("--time", options.time, "end of the diffusion, 1 to 100000")
      ->capture_default_str()
      ->check(programs::between<double>(1, 1e5));
  app.add_option("--rows", options.rows, "number of rows of each table, 2 to 30")
      ->capture_default_str()
      ->check(programs::between<sheafnn::Index>(2, 30));
  app.add_option("--stubborn", options.stubborn, "number of agents that keep their opinions, 0 to 33")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "seed of frames and opinions")->capture_default_str();
  return programs::run_program(app, argc, argv, [&] { run(options); });
}
