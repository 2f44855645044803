// The sheaf Laplacian in all its forms: identity, diagonal and rotation maps.
#include <doctest/doctest.h>

#include "sheaf_laplacian_checks.hpp"

namespace sheaf_checks {

void check_forms(const Forms& f) {
  INFO(f.name);
  // Componentwise rounding bound of S δᵀδ S: D-term products in each factor and a sum over the edges of a node.
  const double terms = 4.0 * (3 * f.stalk_dimension + f.largest_degree);
  const Dense half = product(f.delta, f.scale), expected = product(half.transpose(), half);
  const Dense absolute_half = product(f.delta.cwiseAbs(), f.scale.cwiseAbs());
  const Dense size = product(absolute_half.transpose(), absolute_half);
  CHECK(within(f.assembled, expected, terms * epsilon * size));
  CHECK((f.assembled == f.assembled.transpose()));
  const Dense product_size = product(f.assembled.cwiseAbs(), f.x.cwiseAbs());
  CHECK(within(f.delta_x, product(f.assembled, f.x), terms * epsilon * product_size));
  // Positive semidefinite and bounded: an eigenvalue moves by at most the norm of the rounding error.
  const Eigen::VectorXd eigenvalues = spectrum(f.assembled);
  const double rounding = terms * static_cast<double>(f.assembled.rows()) * epsilon * std::max(f.condition, 1.0);
  CHECK(eigenvalues.minCoeff() >= -rounding * eigenvalues.maxCoeff());
  CHECK(eigenvalues.maxCoeff() <= f.bound * (1 + rounding));
  if (f.at_most_two) CHECK(eigenvalues.maxCoeff() <= 2 + rounding);
}

void check_coboundary(const Dense& delta, const Dense& x, const Dense& delta_x, const Dense& y,
                                    const Dense& transpose_y, double terms) {
  CHECK(within(delta_x, product(delta, x), terms * epsilon * product(delta.cwiseAbs(), x.cwiseAbs())));
  const Dense size = product(delta.transpose().cwiseAbs(), y.cwiseAbs());
  CHECK(within(transpose_y, product(delta.transpose(), y), terms * epsilon * size));
}

TEST_CASE("the Laplacian is the same in all its forms: identity and diagonal maps") {
  check_family<Identity<1>>();
  check_family<Identity<3>>();
  check_family<Diagonal<1>>();
  check_family<Diagonal<2>>();
  check_family<Diagonal<5>>();
  check_family<Diagonal<8>>();
}

TEST_CASE("the Laplacian is the same in all its forms: rotations") {
  check_family<SpecialOrthogonal<1>>();
  check_family<SpecialOrthogonal<2>>();
  check_family<SpecialOrthogonal<3>>();
  check_family<SpecialOrthogonal<8>>();
}

}  // namespace sheaf_checks
