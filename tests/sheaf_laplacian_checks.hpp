// Checks of a sheaf Laplacian in all its forms: δᵀδ assembled, blocks, matrix-free products, sparse assembly;
// spectrum.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "map_kind.hpp"
#include "sheaf_checks.hpp"
#include "sheafnn/sheaf/coboundary.hpp"
#include "sheafnn/sheaf/laplacian.hpp"

namespace sheaf_checks {

inline constexpr double epsilon = std::numeric_limits<double>::epsilon();

// One Laplacian in all its forms, as plain matrices. The checks are defined in test_sheaf_laplacian.cpp.
struct Forms {
  std::string name;
  Dense delta;       // δ
  Dense scale;       // blockdiag(S_u)
  Dense assembled;   // sparse assembly of Δ
  Dense x, delta_x;  // a node cochain and Δx, matrix-free
  double bound;      // spectral_bound
  double condition;  // max ‖S_u‖² ‖D_u‖
  int stalk_dimension;
  int largest_degree;
  bool at_most_two;  // spectrum in [0, 2]
};

void check_forms(const Forms& f);
// δ and δᵀ, matrix-free and assembled.
void check_coboundary(const Dense& delta, const Dense& x, const Dense& delta_x, const Dense& y,
                      const Dense& transpose_y, double terms);

template <class Family>
void check_sheaf(const CellularSheaf<Family>& sheaf, const std::string& what) {
  constexpr int D = Family::stalk_dimension;
  const Graph& graph = sheaf.graph();
  const Dense delta = coboundary_matrix(sheaf);
  const Cochain<double> x = random_cochain(sheaf.node_dimension(), 3, 41);
  const Cochain<double> y = random_cochain(sheaf.edge_dimension(), 2, 42);
  INFO(Family::name, " ", D, " ", what);
  // D terms per edge, at most 8 edges per node.
  check_coboundary(delta, x, coboundary(sheaf, x), y, coboundary_transpose(sheaf, y, 2), 4.0 * (D + 8));
  for (const Normalisation n : all_normalisations) {
    const SheafLaplacian<Family> laplacian(sheaf, n);
    Forms f{sheafnn::detail::concat(Family::name, " ", D, " ", what, " ", to_string(n)),
            delta,
            Dense::Zero(x.rows(), x.rows()),
            laplacian.matrix(),
            x,
            laplacian.apply(x),
            laplacian.spectral_bound(),
            1,
            D,
            0,
            n == Normalisation::block || n == Normalisation::augmented};
    const Dense degrees = product(delta.transpose(), delta);
    for (Index u = 0; u < graph.node_count(); ++u) {
      f.scale.block(u * D, u * D, D, D) = detail::dense_block<D>(laplacian.scale(u));
      f.condition = std::max(f.condition, f.scale.block(u * D, u * D, D, D).squaredNorm() *
                                              degrees.block(u * D, u * D, D, D).norm());
      f.largest_degree = std::max(f.largest_degree, static_cast<int>(graph.degree(u)));
    }
    check_forms(f);
  }
}

template <class Family>
void check_family() {
  const Graph graph = random_graph(9, 14, 3);
  check_sheaf(sized_sheaf<Family>(graph, 1, 1), "random");
  if constexpr (test::kind_of<Family> != test::MapKind::fixed) {
    check_sheaf(sized_sheaf<Family>(graph, 1e-6, 2), "tiny");
    check_sheaf(sized_sheaf<Family>(graph, 1e6, 3), "huge");
  }
  if constexpr (test::kind_of<Family> == test::MapKind::diagonal || test::kind_of<Family> == test::MapKind::dense) {
    CellularSheaf<Family> singular = sized_sheaf<Family>(graph, 1, 4);
    for (Index a = 0; a < graph.arc_count(); ++a) {
      auto map = singular.map(a);
      map.row(map.rows() - 1).setZero();
      if (a % 4 == 0) map.setZero();
      singular.set_map(a, map);
    }
    check_sheaf(singular, "rank deficient");
  }
}

}  // namespace sheaf_checks
