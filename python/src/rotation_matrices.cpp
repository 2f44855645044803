/// \file
/// Distributions of rotations of R² and R³ and their fits: matrix Fisher, matrix Bingham, isotropic Gaussian and Bingham.
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/rotation/bingham_distribution.hpp>
#include <sheafnn/rotation/fit.hpp>
#include <sheafnn/rotation/isotropic_gaussian_fit.hpp>
#include <sheafnn/rotation/matrix_bingham_distribution.hpp>
#include <sheafnn/rotation/matrix_bingham_fit.hpp>
#include <sheafnn/rotation/matrix_fisher_distribution.hpp>
#include <sheafnn/rotation/matrix_fisher_fit.hpp>
#include <string_view>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "module.hpp"
#include "rotation_distributions.hpp"
#include "rotation_families.hpp"

namespace python {

namespace {

[[nodiscard]] Owned matrix_fisher(const Input<double>& parameter) {
  return with_plane_or_space(dimension_of(parameter), [&]<int N>() -> Owned {
    using Own = sheafnn::rotation::MatrixFisherDistribution<N, double>;
    return std::make_unique<Of<Own, N>>(Own(load<N>(parameter.data())));
  });
}
[[nodiscard]] Owned matrix_bingham(const Input<double>& outer, const Input<double>& inner) {
  const Index n = dimension_of(outer);
  sheafnn::require(dimension_of(inner) == n, "inner", dimension_of(inner),
                   sheafnn::detail::concat("must have ", n, " rows and columns, as outer has"));
  return with_plane_or_space(n, [&]<int N>() -> Owned {
    using Own = sheafnn::rotation::MatrixBinghamDistribution<N, double>;
    return std::make_unique<Of<Own, N>>(Own(load<N>(outer.data()), load<N>(inner.data())));
  });
}

/// \throws std::invalid_argument  another dimension than 3
void require_space(Index dimension) { sheafnn::require(dimension == 3, "dimension", dimension, "must be 3"); }

/// Distributions of rotations of R³.
[[nodiscard]] Owned isotropic_gaussian(const Input<double>& location, double scale) {
  require_space(dimension_of(location));
  using Own = sheafnn::rotation::IsotropicGaussian<3, double>;
  return std::make_unique<Of<Own, 3>>(Own(load<3>(location.data()), scale));
}
[[nodiscard]] Owned bingham(const Input<double>& parameter) {
  sheafnn::require(dimension_of(parameter) == 4, "rows of the parameter", dimension_of(parameter), "must be 4");
  using Own = sheafnn::rotation::BinghamDistribution<3, double>;
  return std::make_unique<Of<Own, 3>>(Own(load<4>(parameter.data())));
}

/// The parameters of a distribution of R² or R³ that has no errors in Python.
template <template <int, class> class D>
[[nodiscard]] nb::dict fit_parameters(const Input<double>& samples, const Input<double>& weights) {
  return with_plane_or_space(dimension_of(samples), [&]<int N>() {
    const auto rotations = load_all<N>(samples);
    const auto fit = without_lock(
        [&] { return sheafnn::rotation::fit<D<N, double>>(rotations, span_of(weights)); });
    nb::dict d = parameters_of(fit.distribution);
    add_common(d, fit);
    return d;
  });
}

template <class Own>
[[nodiscard]] auto fit_space(const Input<double>& samples, const Input<double>& weights, bool moments) {
  require_space(dimension_of(samples));
  const auto rotations = load_all<3>(samples);
  const GilRelease release;
  return moments ? sheafnn::rotation::fit_moments<Own>(rotations, span_of(weights))
                 : sheafnn::rotation::fit<Own>(rotations, span_of(weights));
}
[[nodiscard]] nb::dict fit_isotropic_gaussian(const Input<double>& samples, const Input<double>& weights,
                                              bool moments) {
  const auto fit = fit_space<sheafnn::rotation::IsotropicGaussian<3, double>>(samples, weights, moments);
  nb::dict d = parameters_of(fit.distribution);
  d["location_error"] = fit.location_error;
  d["scale_error"] = fit.scale_error;
  add_common(d, fit);
  return d;
}
[[nodiscard]] nb::dict fit_bingham(const Input<double>& samples, const Input<double>& weights) {
  const auto fit = fit_space<sheafnn::rotation::BinghamDistribution<3, double>>(samples, weights, false);
  nb::dict d = parameters_of(fit.distribution);
  add_common(d, fit);
  return d;
}

template <template <int, class> class D>
[[nodiscard]] nb::dict fit_mixture_of(const MixtureSamples& given) {
  return with_plane_or_space(dimension_of(given.samples),
                             [&]<int N>() { return fit_family<D<N, double>>(given); });
}
template <class Own>
[[nodiscard]] nb::dict fit_mixture_of_space(const MixtureSamples& given) {
  require_space(dimension_of(given.samples));
  return fit_family<Own>(given);
}

}  // namespace

std::optional<nb::dict> fit_matrix_mixture(std::string_view family, const MixtureSamples& given) {
  using namespace sheafnn::rotation;
  if (family == "MatrixFisher") return fit_mixture_of<MatrixFisherDistribution>(given);
  if (family == "MatrixBingham") return fit_mixture_of<MatrixBinghamDistribution>(given);
  if (family == "IsotropicGaussian") return fit_mixture_of_space<IsotropicGaussian<3, double>>(given);
  if (family == "Bingham") return fit_mixture_of_space<BinghamDistribution<3, double>>(given);
  return std::nullopt;
}

void bind_rotation_matrices(nb::module_& module) {
  module.def("matrix_fisher", &matrix_fisher);
  module.def("isotropic_gaussian", &isotropic_gaussian);
  module.def("bingham", &bingham);
  module.def("matrix_bingham", &matrix_bingham);
  module.def("fit_isotropic_gaussian", &fit_isotropic_gaussian);
  module.def("fit_bingham", &fit_bingham);
  module.def("fit_matrix_fisher", &fit_parameters<sheafnn::rotation::MatrixFisherDistribution>);
  module.def("fit_matrix_bingham", &fit_parameters<sheafnn::rotation::MatrixBinghamDistribution>);
}

}  // namespace python
