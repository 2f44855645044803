/// \file
/// Spectra of given sheaves: smallest eigenpairs, harmonic space, approximate sections, synchronisation of rotations.
#include <nanobind/stl/string.h>

#include <cstdint>
#include <sheafnn/sheaf/approximate_sections.hpp>
#include <sheafnn/sheaf/eigenpairs.hpp>
#include <sheafnn/sheaf/harmonic.hpp>

#include "interpreter.hpp"
#include "models/decompositions.hpp"
#include "module.hpp"
#include "sheaf_arrays.hpp"

namespace python {

namespace {

[[nodiscard]] Output<double> numbers(const Eigen::VectorXd& values) {
  const auto count = static_cast<std::size_t>(values.size());
  return to_numpy(std::span<const double>(values.data(), count), {count});
}

/// \return  k eigenvalues, and eigenvectors, n × D × k
[[nodiscard]] nb::tuple eigenpairs(const GivenSheaf& given, Index count, double tolerance, std::uint64_t seed) {
  const auto pairs = [&] {
    const GilRelease release;
    return with_laplacian(given, [&](const auto& own) {
      return sheafnn::sheaf::smallest_eigenpairs(own, count, {.tolerance = tolerance, .seed = seed});
    });
  }();
  return nb::make_tuple(numbers(pairs.values), node_rows(pairs.vectors, given.dimension));
}

/// \return  k disagreements, and sections, n × D × k
[[nodiscard]] nb::tuple sections(const GivenSheaf& given, Index count, double tolerance, std::uint64_t seed) {
  const auto found = [&] {
    const GilRelease release;
    return with_laplacian(given, [&](const auto& own) {
      return sheafnn::sheaf::approximate_sections(own, count, {.tolerance = tolerance, .seed = seed});
    });
  }();
  return nb::make_tuple(numbers(found.disagreement), node_rows(found.sections, given.dimension));
}

/// \return  an orthonormal basis, n × D × dim
[[nodiscard]] Output<double> harmonic_basis(const GivenSheaf& given, double tolerance) {
  const sheafnn::Cochain<double> basis = [&] {
    const GilRelease release;
    return with_laplacian(given, [&](const auto& own) {
      return sheafnn::sheaf::harmonic_space(own, {.tolerance = tolerance}).basis();
    });
  }();
  return node_rows(basis, given.dimension);
}

/// \return  rotations, n × D × D, their disagreement, its lower bound, and D eigenvalues
[[nodiscard]] nb::tuple nearest(const GivenSheaf& given, double tolerance, std::uint64_t seed) {
  sheafnn::require(given.family == "special-orthogonal" || given.family == "identity", "family", given.family,
                   "only rotations are synchronised: special-orthogonal or identity");
  const auto found = [&] {
    const GilRelease release;
    return with_laplacian(given, [&](const auto& own) -> sheafnn::sheaf::NearestSection<double> {
      if constexpr (requires { sheafnn::sheaf::nearest_section(own); }) {
        return sheafnn::sheaf::nearest_section(own, {.tolerance = tolerance, .seed = seed});
      } else {
        return {};  // the families that were refused above
      }
    });
  }();
  return nb::make_tuple(node_rows(found.rotations, given.dimension), found.disagreement, found.bound,
                        numbers(found.eigenvalues));
}

}  // namespace

void bind_sections(nb::module_& module) {
  def_of_sheaf(module, "eigenpairs", &eigenpairs);
  def_of_sheaf(module, "approximate_sections", &sections);
  def_of_sheaf(module, "harmonic_basis", &harmonic_basis);
  def_of_sheaf(module, "nearest_section", &nearest);
}

}  // namespace python
