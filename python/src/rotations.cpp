/// \file
/// Distributions of rotations of R² to R⁵ on arrays of matrices, and functions of rotations.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sheafnn/rotation/bingham_distribution.hpp>
#include <sheafnn/rotation/cayley_distribution.hpp>
#include <sheafnn/rotation/cayley_fit.hpp>
#include <sheafnn/rotation/cayley_gradient.hpp>
#include <sheafnn/rotation/fit.hpp>
#include <sheafnn/rotation/haar_distribution.hpp>
#include <sheafnn/rotation/isotropic_gaussian_fit.hpp>
#include <sheafnn/rotation/leon_distribution.hpp>
#include <sheafnn/rotation/leon_fit.hpp>
#include <sheafnn/rotation/matrix_bingham_distribution.hpp>
#include <sheafnn/rotation/matrix_bingham_fit.hpp>
#include <sheafnn/rotation/matrix_fisher_distribution.hpp>
#include <sheafnn/rotation/matrix_fisher_fit.hpp>
#include <sheafnn/rotation/nearest_rotation.hpp>
#include <sheafnn/rotation/orthonormalise.hpp>
#include <sheafnn/rotation/rotation_log.hpp>
#include <sheafnn/rotation/sample_many.hpp>
#include <sheafnn/rotation/score.hpp>
#include <sheafnn/rotation/skew_functions.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "module.hpp"
#include "rotation_distributions.hpp"

namespace python {

namespace {

template <template <int, class> class D>
[[nodiscard]] Owned located(const Input<double>& location, double concentration) {
  return with_dimension(dimension_of(location), [&]<int N>() -> Owned {
    using Own = D<N, double>;
    return std::make_unique<Of<Own, N>>(Own(load<N>(location.data()), concentration));
  });
}
[[nodiscard]] Owned haar(Index dimension) {
  return with_dimension(dimension, []<int N>() -> Owned {
    using Own = sheafnn::rotation::HaarDistribution<N, double>;
    return std::make_unique<Of<Own, N>>(Own());
  });
}
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

/// location, concentration and their errors
template <template <int, class> class D>
[[nodiscard]] nb::dict fit_located(const Input<double>& samples, const Input<double>& weights, bool moments) {
  return with_dimension(dimension_of(samples), [&]<int N>() {
    using Own = D<N, double>;
    const auto rotations = load_all<N>(samples);
    const auto fit = [&] {
      const GilRelease release;
      return moments ? sheafnn::rotation::fit_moments<Own>(rotations, span_of(weights))
                     : sheafnn::rotation::fit<Own>(rotations, span_of(weights));
    }();
    nb::dict d = parameters_of(fit.distribution);
    d["location_error"] = fit.location_error;
    d["concentration_error"] = fit.concentration_error;
    add_common(d, fit);
    return d;
  });
}

/// The parameters of a distribution of R² or R³ that has no errors in Python.
template <template <int, class> class D>
[[nodiscard]] nb::dict fit_parameters(const Input<double>& samples, const Input<double>& weights) {
  return with_plane_or_space(dimension_of(samples), [&]<int N>() {
    const auto rotations = load_all<N>(samples);
    const auto fit = [&] {
      const GilRelease release;
      return sheafnn::rotation::fit<D<N, double>>(rotations, span_of(weights));
    }();
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

/// A function of matrices, one by one; f.operator()<N>(matrix) returns one.
///
/// \param name  what messages call the matrices
template <class F>
[[nodiscard]] Output<double> matrix_by_matrix(const char* name, const Input<double>& matrices, const F& f) {
  return with_dimension(dimension_of(matrices), [&]<int N>() {
    std::vector<double> r(matrices.size());
    {
      const GilRelease release;
      for_each_matrix(name, r.size() / (N * N), [&](std::size_t i) {
        store<N>(f.template operator()<N>(load<N>(matrices.data() + i * N * N)), r.data() + i * N * N);
      });
    }
    return to_numpy(std::move(r), {matrices.size() / (N * N), N, N});
  });
}

}  // namespace

void bind_rotations(nb::module_& module) {
  nb::class_<Distribution>(module, "RotationDistribution")
      .def_prop_ro("dimension", &Distribution::dimension)
      .def("log_density",
           [](const Distribution& d, const Input<double>& matrices) {
             const Index n = d.dimension();
             sheafnn::require(dimension_of(matrices) == n, "rotations", matrices.shape(matrices.ndim() - 1),
                              sheafnn::detail::concat("must be matrices of ", n, " rows and columns"));
             std::vector<double> r(matrices.size() / static_cast<std::size_t>(n * n));
             {
               const GilRelease release;
               d.log_density(matrices.data(), r.size(), r.data());
             }
             const std::size_t count = r.size();
             return to_numpy(std::move(r), {count});
           })
      .def("score",
           [](const Distribution& d, const Input<double>& matrices) {
             const Index n = d.dimension();
             sheafnn::require(dimension_of(matrices) == n, "rotations", matrices.shape(matrices.ndim() - 1),
                              sheafnn::detail::concat("must be matrices of ", n, " rows and columns"));
             const std::size_t count = matrices.size() / static_cast<std::size_t>(n * n);
             const auto parameters = static_cast<std::size_t>(n * (n - 1) / 2);
             std::vector<double> r(count * parameters);
             {
               const GilRelease release;
               d.score(matrices.data(), count, r.data());
             }
             return to_numpy(std::move(r), {count, parameters});
           })
      .def("draw",
           [](const Distribution& d, std::size_t count, std::uint64_t seed) {
             const auto n = static_cast<std::size_t>(d.dimension());
             sheafnn::require(count <= 0xffffffffU, "size", count, "must be at most 4294967295");
             std::vector<double> r(count * n * n);
             {
               const GilRelease release;
               d.draw(seed, count, r.data());
             }
             return to_numpy(std::move(r), {count, n, n});
           })
      .def("mean",
           [](const Distribution& d) {
             std::vector<double> r(static_cast<std::size_t>(d.dimension() * d.dimension()));
             d.mean(r.data());
             return matrix_array(std::move(r), d.dimension());
           })
      .def("location",
           [](const Distribution& d) {
             std::vector<double> r(static_cast<std::size_t>(d.dimension() * d.dimension()));
             d.location(r.data());
             return matrix_array(std::move(r), d.dimension());
           })
      .def("entropy", &Distribution::entropy)
      .def("kl_to_uniform", &Distribution::kl_to_uniform)
      .def("mean_resultant", &Distribution::mean_resultant);
  module.def("cayley", &located<sheafnn::rotation::CayleyDistribution>);
  module.def("leon_cayley", &located<sheafnn::rotation::LeonCayleyDistribution>);
  module.def("haar", &haar);
  module.def("matrix_fisher", &matrix_fisher);
  module.def("isotropic_gaussian", &isotropic_gaussian);
  module.def("bingham", &bingham);
  module.def("matrix_bingham", &matrix_bingham);
  module.def("fit_isotropic_gaussian", &fit_isotropic_gaussian);
  module.def("fit_bingham", &fit_bingham);
  module.def("fit_cayley", &fit_located<sheafnn::rotation::CayleyDistribution>);
  module.def("fit_leon_cayley", &fit_located<sheafnn::rotation::LeonCayleyDistribution>);
  module.def("fit_matrix_fisher", &fit_parameters<sheafnn::rotation::MatrixFisherDistribution>);
  module.def("fit_matrix_bingham", &fit_parameters<sheafnn::rotation::MatrixBinghamDistribution>);
  module.def("cayley_transform", [](const Input<double>& skew) {
    return matrix_by_matrix("skew", skew, []<int N>(const SquareMatrix<double, N>& a) {
      return sheafnn::rotation::cayley_rotation<double, N>(
          sheafnn::rotation::parameters_of_skew<double, N>("A", a));
    });
  });
  module.def("nearest_rotation", [](const Input<double>& matrices) {
    return matrix_by_matrix("matrices", matrices, []<int N>(const SquareMatrix<double, N>& a) {
      return sheafnn::rotation::nearest_rotation<double, N>(a);
    });
  });
  module.def("orthonormalised", [](const std::string& name, const Input<double>& matrices, double tolerance) {
    return matrix_by_matrix(name.c_str(), matrices, [&]<int N>(const SquareMatrix<double, N>& r) {
      return sheafnn::rotation::orthonormalised<double, N>("rotation", r, {.tolerance = tolerance});
    });
  });
  module.def("rotation_exp", [](const Input<double>& skew) {
    return matrix_by_matrix("skew", skew, []<int N>(const SquareMatrix<double, N>& a) {
      return sheafnn::rotation::exponential_rotation<double, N>(
          sheafnn::rotation::parameters_of_skew<double, N>("A", a));
    });
  });
  module.def("rotation_log", [](const Input<double>& matrices) {
    return matrix_by_matrix("matrices", matrices, []<int N>(const SquareMatrix<double, N>& r) {
      return sheafnn::rotation::skew_matrix<double, N>(sheafnn::rotation::rotation_log<double, N>(r));
    });
  });
}

}  // namespace python
