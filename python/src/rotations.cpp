/// \file
/// Any distribution of rotations of R² to R⁵ on arrays of matrices, the uniform one, and functions of rotations.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/rotation/cayley_transform.hpp>
#include <sheafnn/rotation/exponential.hpp>
#include <sheafnn/rotation/haar_distribution.hpp>
#include <sheafnn/rotation/nearest_rotation.hpp>
#include <sheafnn/rotation/orthonormalise.hpp>
#include <sheafnn/rotation/rotation_log.hpp>
#include <sheafnn/rotation/skew_functions.hpp>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "module.hpp"
#include "rotation_distributions.hpp"

namespace python {

namespace {

[[nodiscard]] Owned haar(Index dimension) {
  return with_dimension(dimension, []<int N>() -> Owned {
    using Own = sheafnn::rotation::HaarDistribution<N, double>;
    return std::make_unique<Of<Own, N>>(Own());
  });
}

/// A function of matrices, one by one; f.operator()<N>(matrix) returns one.
///
/// \param name  what messages call the matrices
template <class F>
[[nodiscard]] Output<double> matrix_by_matrix(const char* name, const Input<double>& matrices, const F& f) {
  return with_dimension(dimension_of(matrices), [&]<int N>() {
    std::vector<double> r(matrices.size());
    without_lock([&] {
      for_each_matrix(name, r.size() / (N * N), [&](std::size_t i) {
        store<N>(f.template operator()<N>(load<N>(matrices.data() + i * N * N)), r.data() + i * N * N);
      });
    });
    return to_numpy(std::move(r), {matrices.size() / (N * N), N, N});
  });
}

/// The number of matrices. \throws std::invalid_argument  matrices of another size than the distribution's
std::size_t count_of(const Distribution& d, const Input<double>& matrices) {
  const Index n = d.dimension();
  sheafnn::require(dimension_of(matrices) == n, "rotations", matrices.shape(matrices.ndim() - 1),
                   sheafnn::detail::concat("must be matrices of ", n, " rows and columns"));
  return matrices.size() / static_cast<std::size_t>(n * n);
}
/// A matrix of the distribution. \tparam Write  writes it
template <void (Distribution::*Write)(double*) const>
auto matrix_of(const Distribution& d) {
  std::vector<double> r(static_cast<std::size_t>(d.dimension() * d.dimension()));
  (d.*Write)(r.data());
  return matrix_array(std::move(r), d.dimension());
}

}  // namespace

void bind_rotations(nb::module_& module) {
  nb::class_<Distribution>(module, "RotationDistribution")
      .def_prop_ro("dimension", &Distribution::dimension)
      .def("log_density",
           [](const Distribution& d, const Input<double>& matrices) {
             const std::size_t count = count_of(d, matrices);
             std::vector<double> r(count);
             without_lock([&] { d.log_density(matrices.data(), count, r.data()); });
             return to_numpy(std::move(r), {count});
           })
      .def("score",
           [](const Distribution& d, const Input<double>& matrices) {
             const std::size_t count = count_of(d, matrices);
             const auto parameters = static_cast<std::size_t>(d.dimension() * (d.dimension() - 1) / 2);
             std::vector<double> r(count * parameters);
             without_lock([&] { d.score(matrices.data(), count, r.data()); });
             return to_numpy(std::move(r), {count, parameters});
           })
      .def("draw",
           [](const Distribution& d, std::size_t count, std::uint64_t seed) {
             const auto n = static_cast<std::size_t>(d.dimension());
             sheafnn::require(count <= 0xffffffffU, "size", count, "must be at most 4294967295");
             std::vector<double> r(count * n * n);
             without_lock([&] { d.draw(seed, count, r.data()); });
             return to_numpy(std::move(r), {count, n, n});
           })
      .def("mean", &matrix_of<&Distribution::mean>)
      .def("location", &matrix_of<&Distribution::location>)
      .def("entropy", &Distribution::entropy)
      .def("kl_to_uniform", &Distribution::kl_to_uniform)
      .def("mean_resultant", &Distribution::mean_resultant);
  module.def("haar", &haar);
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
