/// \file
/// Distributions of rotations of R² to R⁵ of any family, as Python holds them, and arrays of their matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/core/small_matrix.hpp>
#include <sheafnn/random/stream.hpp>
#include <sheafnn/rotation/haar_distribution.hpp>
#include <sheafnn/rotation/sample_many.hpp>
#include <sheafnn/rotation/score.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"

namespace python {

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

/// Calls f.template operator()<N>() for a dimension of 2 or 3.
template <class F>
decltype(auto) with_plane_or_space(Index n, const F& f) {
  sheafnn::require_between("dimension", n, 2, 3);
  return n == 2 ? f.template operator()<2>() : f.template operator()<3>();
}

/// The dimension of an array of n × n matrices.
[[nodiscard]] inline Index dimension_of(const Input<double>& matrices) {
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

/// One of any family of rotations of R^N, as mixtures take their components.
template <int N>
class OfDimension : public Distribution {
 public:
  using Matrix = SquareMatrix<double, N>;
  [[nodiscard]] Index dimension() const override { return N; }
  [[nodiscard]] virtual double log_density_at(const Matrix& p) const = 0;
  /// The derivative of a free matrix P.
  [[nodiscard]] virtual Matrix argument_gradient(const Matrix& p) const = 0;
  [[nodiscard]] virtual Matrix draw_one(const sheafnn::Stream& stream, std::uint32_t id,
                                        std::uint32_t first_draw) const = 0;
  [[nodiscard]] virtual Matrix mean_matrix() const = 0;
  [[nodiscard]] virtual std::shared_ptr<const OfDimension> clone() const = 0;
};

/// Throws where mixtures do not have an operation; Python offers it for other distributions only.
[[noreturn]] inline void throw_no_operation(const char* name) {
  throw std::invalid_argument(sheafnn::detail::concat("Mixture: ", name, " is not offered"));
}

template <class D, int N>
class Of final : public OfDimension<N> {
 public:
  explicit Of(const D& distribution) : distribution_(distribution) {}
  [[nodiscard]] double log_density_at(const SquareMatrix<double, N>& p) const override {
    return logpdf(distribution_, p);
  }
  [[nodiscard]] SquareMatrix<double, N> argument_gradient(const SquareMatrix<double, N>& p) const override {
    if constexpr (uniform) {
      return SquareMatrix<double, N>::Zero();
    } else {
      return logpdf_gradient(distribution_, p).argument;
    }
  }
  [[nodiscard]] SquareMatrix<double, N> draw_one(const sheafnn::Stream& stream, std::uint32_t id,
                                                 std::uint32_t first_draw) const override {
    return sample(distribution_, stream, id, first_draw);
  }
  [[nodiscard]] SquareMatrix<double, N> mean_matrix() const override {
    return sheafnn::rotation::mean(distribution_);
  }
  [[nodiscard]] std::shared_ptr<const OfDimension<N>> clone() const override {
    return std::make_shared<Of>(distribution_);
  }
  void log_density(const double* matrices, std::size_t count, double* out) const override {
    for_each_matrix("rotations", count,
                    [&](std::size_t i) { out[i] = logpdf(distribution_, load<N>(matrices + i * N * N)); });
  }
  void score(const double* matrices, std::size_t count, double* out) const override {
    constexpr int parameters = sheafnn::rotation::rotation_parameters<N>;
    for_each_matrix("rotations", count, [&](std::size_t i) {
      const SquareMatrix<double, N> p = load<N>(matrices + i * N * N);
      sheafnn::rotation::RotationParameters<double, N> slope;
      if constexpr (uniform) {
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
  void location(double* out) const override {
    if constexpr (requires { distribution_.location(); }) {
      store<N>(distribution_.location(), out);
    } else {
      throw_no_operation("location");
    }
  }
  [[nodiscard]] double entropy() const override { return 0 - kl_to_uniform(); }
  [[nodiscard]] double kl_to_uniform() const override {
    if constexpr (requires { sheafnn::rotation::kl_to_uniform(distribution_); }) {
      return sheafnn::rotation::kl_to_uniform(distribution_);
    } else {
      throw_no_operation("kl_to_uniform");
    }
  }
  [[nodiscard]] double mean_resultant() const override {
    if constexpr (requires { sheafnn::rotation::mean_resultant(distribution_); }) {
      return sheafnn::rotation::mean_resultant(distribution_);
    } else {
      throw_no_operation("mean_resultant");
    }
  }

 private:
  static constexpr bool uniform = std::is_same_v<D, sheafnn::rotation::HaarDistribution<N, double>>;
  D distribution_;
};

using Owned = std::unique_ptr<Distribution>;

template <int N>
[[nodiscard]] std::vector<SquareMatrix<double, N>> load_all(const Input<double>& matrices) {
  std::vector<SquareMatrix<double, N>> r(matrices.size() / (N * N));
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = load<N>(matrices.data() + i * N * N);
  return r;
}

[[nodiscard]] inline Output<double> matrix_array(std::vector<double> values, Index n) {
  return to_numpy(std::move(values), {static_cast<std::size_t>(n), static_cast<std::size_t>(n)});
}

/// What all fits have.
template <class Fit>
void add_common(nb::dict& d, const Fit& fit) {
  d["log_likelihood"] = fit.log_likelihood;
  d["effective_samples"] = fit.effective_samples;
  d["iterations"] = fit.iterations;
}

/// The parameters of a distribution, by the names that Python's constructors have.
template <class D>
[[nodiscard]] nb::dict parameters_of(const D& distribution) {
  const auto matrix = [](const auto& m) {
    constexpr int rows = std::remove_cvref_t<decltype(m)>::RowsAtCompileTime;
    std::vector<double> values(rows * rows);
    store<rows>(m, values.data());
    return matrix_array(std::move(values), rows);
  };
  nb::dict d;
  if constexpr (requires { distribution.parameter(); }) {
    d["parameter"] = matrix(distribution.parameter());
  } else if constexpr (requires { distribution.outer(); }) {
    d["outer"] = matrix(distribution.outer());
    d["inner"] = matrix(distribution.inner());
  } else {
    d["location"] = matrix(distribution.location());
    if constexpr (requires { distribution.scale(); }) {
      d["scale"] = distribution.scale();
    } else {
      d["concentration"] = distribution.concentration();
    }
  }
  return d;
}

}  // namespace python
