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

namespace python {

namespace {

using sheafnn::Index;
using sheafnn::SquareMatrix;

/// Calls f(i) for 0 … count − 1; an exception says for which one.
template <class F>
void for_each_matrix(const char* name, std::size_t count, const F& f) {
  for (std::size_t i = 0; i < count; ++i) {
    try {
      f(i);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(sheafnn::detail::concat(name, "[", i, "]: ", error.what()));
    }
  }
}

template <int N>
[[nodiscard]] SquareMatrix<double, N> load(const double* row_major) {
  SquareMatrix<double, N> r;
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) r(i, j) = row_major[i * N + j];
  }
  return r;
}
template <int N>
void store(const SquareMatrix<double, N>& m, double* row_major) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) row_major[i * N + j] = m(i, j);
  }
}

/// Calls f.template operator()<N>() for a dimension of 2 to 5.
template <class F>
decltype(auto) with_dimension(Index n, const F& f) {
  sheafnn::require_between("dimension", n, 2, 5);
  switch (n) {
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    default:
      return f.template operator()<5>();
  }
}

/// The dimension of an array of n × n matrices.
[[nodiscard]] Index dimension_of(const Input<double>& matrices) {
  const std::size_t axes = matrices.ndim();
  sheafnn::require(axes >= 2 && matrices.shape(axes - 1) == matrices.shape(axes - 2), "shape of the matrices",
                   axes < 2 ? 0 : matrices.shape(axes - 1), "the last two axes must have the same length");
  return static_cast<Index>(matrices.shape(axes - 1));
}

/// A distribution of rotations of any family and dimension.
class Distribution {
 public:
  virtual ~Distribution() = default;
  [[nodiscard]] virtual Index dimension() const = 0;
  virtual void log_density(const double* matrices, std::size_t count, double* out) const = 0;
  virtual void score(const double* matrices, std::size_t count, double* out) const = 0;
  virtual void draw(std::uint64_t seed, std::size_t count, double* out) const = 0;
  virtual void mean(double* out) const = 0;
  virtual void location(double* out) const = 0;
  [[nodiscard]] virtual double entropy() const = 0;
  [[nodiscard]] virtual double kl_to_uniform() const = 0;
  [[nodiscard]] virtual double mean_resultant() const = 0;
};

template <class D, int N>
class Of final : public Distribution {
 public:
  explicit Of(const D& distribution) : distribution_(distribution) {}
  [[nodiscard]] Index dimension() const override { return N; }
  void log_density(const double* matrices, std::size_t count, double* out) const override {
    for_each_matrix("rotations", count,
                    [&](std::size_t i) { out[i] = logpdf(distribution_, load<N>(matrices + i * N * N)); });
  }
  void score(const double* matrices, std::size_t count, double* out) const override {
    constexpr int parameters = sheafnn::rotation::rotation_parameters<N>;
    for_each_matrix("rotations", count, [&](std::size_t i) {
      const SquareMatrix<double, N> p = load<N>(matrices + i * N * N);
      sheafnn::rotation::RotationParameters<double, N> slope;
      if constexpr (std::is_same_v<D, sheafnn::rotation::HaarDistribution<N, double>>) {
        slope.setZero();
      } else {
        slope = sheafnn::rotation::score(distribution_, p);
      }
      for (int k = 0; k < parameters; ++k) out[i * parameters + static_cast<std::size_t>(k)] = slope(k);
    });
  }
  void draw(std::uint64_t seed, std::size_t count, double* out) const override {
    std::vector<SquareMatrix<double, N>> samples(count);
    sheafnn::rotation::sample_many(distribution_, {.seed = seed}, 0, samples);
    for (std::size_t i = 0; i < count; ++i) store<N>(samples[i], out + i * N * N);
  }
  void mean(double* out) const override { store<N>(sheafnn::rotation::mean(distribution_), out); }
  void location(double* out) const override { store<N>(distribution_.location(), out); }
  [[nodiscard]] double entropy() const override { return sheafnn::rotation::entropy(distribution_); }
  [[nodiscard]] double kl_to_uniform() const override { return sheafnn::rotation::kl_to_uniform(distribution_); }
  [[nodiscard]] double mean_resultant() const override { return sheafnn::rotation::mean_resultant(distribution_); }

 private:
  D distribution_;
};

using Owned = std::unique_ptr<Distribution>;

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
  const Index n = dimension_of(parameter);
  sheafnn::require_between("dimension", n, 2, 3);
  const auto make = [&]<int N>() -> Owned {
    using Own = sheafnn::rotation::MatrixFisherDistribution<N, double>;
    return std::make_unique<Of<Own, N>>(Own(load<N>(parameter.data())));
  };
  return n == 2 ? make.operator()<2>() : make.operator()<3>();
}

/// Distributions of rotations of R³.
[[nodiscard]] Owned isotropic_gaussian(const Input<double>& location, double scale) {
  sheafnn::require_between("dimension", dimension_of(location), 3, 3);
  using Own = sheafnn::rotation::IsotropicGaussian<3, double>;
  return std::make_unique<Of<Own, 3>>(Own(load<3>(location.data()), scale));
}
[[nodiscard]] Owned bingham(const Input<double>& parameter) {
  sheafnn::require_between("rows of the parameter", dimension_of(parameter), 4, 4);
  using Own = sheafnn::rotation::BinghamDistribution<3, double>;
  return std::make_unique<Of<Own, 3>>(Own(load<4>(parameter.data())));
}

template <int N>
[[nodiscard]] std::vector<SquareMatrix<double, N>> load_all(const Input<double>& matrices) {
  std::vector<SquareMatrix<double, N>> r(matrices.size() / (N * N));
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = load<N>(matrices.data() + i * N * N);
  return r;
}

[[nodiscard]] Output<double> matrix_array(std::vector<double> values, Index n) {
  return to_numpy(std::move(values), {static_cast<std::size_t>(n), static_cast<std::size_t>(n)});
}

/// What all fits have.
template <class Fit>
void add_common(nb::dict& d, const Fit& fit) {
  d["log_likelihood"] = fit.log_likelihood;
  d["effective_samples"] = fit.effective_samples;
  d["iterations"] = fit.iterations;
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
    nb::dict d;
    std::vector<double> location(N * N);
    store<N>(fit.distribution.location(), location.data());
    d["location"] = matrix_array(std::move(location), N);
    d["concentration"] = fit.distribution.concentration();
    d["location_error"] = fit.location_error;
    d["concentration_error"] = fit.concentration_error;
    add_common(d, fit);
    return d;
  });
}

template <int N>
[[nodiscard]] nb::dict fit_matrix_fisher_of(const Input<double>& samples, const Input<double>& weights) {
  const auto rotations = load_all<N>(samples);
  const auto fit = [&] {
    const GilRelease release;
    return sheafnn::rotation::fit<sheafnn::rotation::MatrixFisherDistribution<N, double>>(rotations, span_of(weights));
  }();
  nb::dict d;
  std::vector<double> parameter(N * N);
  store<N>(fit.distribution.parameter(), parameter.data());
  d["parameter"] = matrix_array(std::move(parameter), N);
  add_common(d, fit);
  return d;
}
[[nodiscard]] nb::dict fit_matrix_fisher(const Input<double>& samples, const Input<double>& weights) {
  const Index n = dimension_of(samples);
  sheafnn::require_between("dimension", n, 2, 3);
  return n == 2 ? fit_matrix_fisher_of<2>(samples, weights) : fit_matrix_fisher_of<3>(samples, weights);
}

template <class Own>
[[nodiscard]] auto fit_space(const Input<double>& samples, const Input<double>& weights, bool moments) {
  sheafnn::require_between("dimension", dimension_of(samples), 3, 3);
  const auto rotations = load_all<3>(samples);
  const GilRelease release;
  return moments ? sheafnn::rotation::fit_moments<Own>(rotations, span_of(weights))
                 : sheafnn::rotation::fit<Own>(rotations, span_of(weights));
}
[[nodiscard]] nb::dict fit_isotropic_gaussian(const Input<double>& samples, const Input<double>& weights, bool moments) {
  const auto fit = fit_space<sheafnn::rotation::IsotropicGaussian<3, double>>(samples, weights, moments);
  nb::dict d;
  std::vector<double> location(9);
  store<3>(fit.distribution.location(), location.data());
  d["location"] = matrix_array(std::move(location), 3);
  d["scale"] = fit.distribution.scale();
  d["location_error"] = fit.location_error;
  d["scale_error"] = fit.scale_error;
  add_common(d, fit);
  return d;
}
[[nodiscard]] nb::dict fit_bingham(const Input<double>& samples, const Input<double>& weights) {
  const auto fit = fit_space<sheafnn::rotation::BinghamDistribution<3, double>>(samples, weights, false);
  nb::dict d;
  std::vector<double> parameter(16);
  store<4>(fit.distribution.parameter(), parameter.data());
  d["parameter"] = matrix_array(std::move(parameter), 4);
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
  module.def("fit_isotropic_gaussian", &fit_isotropic_gaussian);
  module.def("fit_bingham", &fit_bingham);
  module.def("fit_cayley", &fit_located<sheafnn::rotation::CayleyDistribution>);
  module.def("fit_leon_cayley", &fit_located<sheafnn::rotation::LeonCayleyDistribution>);
  module.def("fit_matrix_fisher", &fit_matrix_fisher);
  module.def("cayley_transform", [](const Input<double>& skew) {
    return matrix_by_matrix("skew", skew, []<int N>(const SquareMatrix<double, N>& a) {
      return sheafnn::rotation::cayley_rotation<double, N>(sheafnn::rotation::parameters_of_skew<double, N>("A", a));
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
