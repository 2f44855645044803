// Sheaf diffusion by Euler steps against its limit, the projection on the harmonic space.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "map_kind.hpp"
#include "sheaf_checks.hpp"
#include "sheafnn/sheaf/diffusion.hpp"

namespace test_sheaf_diffusion {
using namespace sheaf_checks;

TEST_CASE_TEMPLATE("Euler diffusion converges to the projection", Family, Diagonal<2>, SpecialOrthogonal<3>,
                   GeneralLinear<2>) {
  const Graph graph = cycle_graph(7, 3);
  CellularSheaf<Family> sheaf(graph);
  for (Index a = 0; a < graph.arc_count(); ++a) {  // F_{u⊴e} = A_u has the sections x_u = A_u⁻¹ h
    auto map = random_map<Family>(Stream{.seed = 82}, static_cast<std::uint32_t>(graph.source(a)));
    if constexpr (test::kind_of<Family> == test::MapKind::diagonal || test::kind_of<Family> == test::MapKind::dense) {
      for (Index i = 0; i < map.rows(); ++i) {  // away from singular maps
        double& entry = map(i, map.cols() == 1 ? 0 : i);
        entry += entry < 0 ? -2 : 2;
      }
    }
    sheaf.set_map(a, map);
  }
  for (const Normalisation n : all_normalisations) {
    INFO(Family::name, " ", to_string(n));
    const SheafLaplacian<Family> laplacian(sheaf, n);
    const Cochain<double> x = random_cochain(laplacian.rows(), 3, 83);
    const HarmonicSpace<double> space = harmonic_space(laplacian);
    REQUIRE(space.dimension() == Family::stalk_dimension);
    const double step = 1.9 / laplacian.spectral_bound();
    const Cochain<double> limit = space.project(x), late = diffuse(laplacian, x, step, 4000);
    // Rounding accumulates to at most ε per step in the kernel.
    CHECK((late - limit).cwiseAbs().maxCoeff() <=
          4000 * std::numeric_limits<double>::epsilon() * x.cwiseAbs().maxCoeff());
    CHECK((diffuse(laplacian, x, step, 50, 3) == diffuse(laplacian, x, step, 50)));
    CHECK((diffuse(laplacian, x, step, 0) == x));
    CHECK((diffuse(laplacian, x, step, 1) - (x - step * laplacian.apply(x))).cwiseAbs().maxCoeff() <=
          16 * std::numeric_limits<double>::epsilon() * x.cwiseAbs().maxCoeff());
  }
}

TEST_CASE("unstable Euler steps are refused") {
  const SheafLaplacian<Identity<1>> laplacian(CellularSheaf<Identity<1>>(cycle_graph(4)), Normalisation::block);
  const Cochain<double> x = Cochain<double>::Ones(4, 1);
  CHECK_THROWS_WITH_AS((void)diffuse(laplacian, x, 1.5, 3),
                       "step: 1.5 is not allowed; Euler steps are stable for 0 < step < 2 / spectral_bound() = 1",
                       std::invalid_argument);
  CHECK_THROWS_AS((void)diffuse(laplacian, x, 0.0, 3), std::invalid_argument);
  CHECK_THROWS_AS((void)diffuse(laplacian, x, std::nan(""), 3), std::invalid_argument);
  CHECK_THROWS_AS((void)diffuse(laplacian, x, 0.5, -1), std::invalid_argument);
  CHECK_THROWS_AS((void)diffuse(laplacian, Cochain<double>::Ones(3, 1), 0.5, 1), std::invalid_argument);
}

}  // namespace test_sheaf_diffusion
