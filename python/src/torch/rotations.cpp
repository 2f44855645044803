/// \file
/// Distributions of rotations with derivatives, over arrays of matrices that come as addresses, row-major.
#include "rotations.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/random/stream.hpp>
#include <sheafnn/rotation/cayley_distribution.hpp>
#include <sheafnn/rotation/cayley_gradient.hpp>
#include <sheafnn/rotation/haar_distribution.hpp>
#include <sheafnn/rotation/isotropic_gaussian.hpp>
#include <sheafnn/rotation/leon_distribution.hpp>
#include <sheafnn/rotation/matrix_fisher_distribution.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "../interpreter.hpp"

namespace python {

namespace {

using sheafnn::Index;
using sheafnn::SquareMatrix;

/// Arrays of one call, `count` matrices or numbers each; null if there is no such array. What ends in bar is
/// overwritten.
template <class S>
struct Arrays {
  Index count = 0;
  const S *parameter = nullptr, *concentration = nullptr, *value = nullptr;
  S *out = nullptr, *parameter_bar = nullptr, *concentration_bar = nullptr, *value_bar = nullptr;
};

template <int N, class S>
[[nodiscard]] SquareMatrix<S, N> load(const S* array, Index i) {
  SquareMatrix<S, N> r;
  for (int k = 0; k < N * N; ++k) r(k / N, k % N) = array[i * N * N + k];
  return r;
}
template <int N, class S>
void store(const SquareMatrix<S, N>& matrix, S* array, Index i) {
  for (int k = 0; k < N * N; ++k) array[i * N * N + k] = matrix(k / N, k % N);
}

/// Calls f(i) for all; an exception says for which one.
template <class F>
void for_each(Index count, const F& f) {
  for (Index i = 0; i < count; ++i) {
    try {
      f(i);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(sheafnn::detail::concat("[", i, "]: ", error.what()));
    }
  }
}

struct Cayley {
  template <int N, class S>
  using Distribution = sheafnn::rotation::CayleyDistribution<N, S>;
};
struct Leon {
  template <int N, class S>
  using Distribution = sheafnn::rotation::LeonCayleyDistribution<N, S>;
};
struct Fisher {
  template <int N, class S>
  using Distribution = sheafnn::rotation::MatrixFisherDistribution<N, S>;
};
struct Gaussian {
  template <int N, class S>
  using Distribution = sheafnn::rotation::IsotropicGaussian<N, S>;
};
struct Haar {
  template <int N, class S>
  using Distribution = sheafnn::rotation::HaarDistribution<N, S>;
};

template <class Kind, int N, class S>
[[nodiscard]] typename Kind::template Distribution<N, S> distribution(const Arrays<S>& of, Index i) {
  if constexpr (std::is_same_v<Kind, Haar>) {
    return {};
  } else if constexpr (std::is_same_v<Kind, Fisher>) {
    return typename Kind::template Distribution<N, S>(load<N>(of.parameter, i));
  } else {
    return {load<N>(of.parameter, i), of.concentration[i]};
  }
}

/// Calls f.template operator()<Kind, N>().
template <class F>
void with_kind(const std::string& kind, Index n, const F& f) {
  const auto with_dimension = [&]<class Kind>() {
    sheafnn::require_between("dimension", n, 2, std::is_same_v<Kind, Fisher> ? 3 : 5);
    if (n == 2) return f.template operator()<Kind, 2>();
    if (n == 3) return f.template operator()<Kind, 3>();
    if constexpr (!std::is_same_v<Kind, Fisher>) {
      if (n == 4) return f.template operator()<Kind, 4>();
      f.template operator()<Kind, 5>();
    }
  };
  if (kind == "cayley") return with_dimension.template operator()<Cayley>();
  if (kind == "leon") return with_dimension.template operator()<Leon>();
  if (kind == "isotropic-gaussian") {
    sheafnn::require_between("dimension", n, 3, 3);
    return f.template operator()<Gaussian, 3>();
  }
  if (kind == "matrix-fisher") return with_dimension.template operator()<Fisher>();
  with_dimension.template operator()<Haar>();
}

/// log f(P), and its derivatives.
template <class Kind, int N, class S>
void log_prob(const Arrays<S>& of) {
  for_each(of.count, [&](Index i) {
    const auto d = distribution<Kind, N>(of, i);
    const SquareMatrix<S, N> p = load<N>(of.value, i);
    of.out[i] = logpdf(d, p);
    if constexpr (std::is_same_v<Kind, Fisher>) {
      const auto g = logpdf_gradient(d, p);
      store<N>(g.parameter, of.parameter_bar, i);
      store<N>(g.argument, of.value_bar, i);
    } else if constexpr (!std::is_same_v<Kind, Haar>) {
      const auto g = logpdf_gradient(d, p);
      store<N>(g.location, of.parameter_bar, i);
      if constexpr (std::is_same_v<Kind, Gaussian>) {
        of.concentration_bar[i] = g.scale;
      } else {
        of.concentration_bar[i] = g.concentration;
      }
      store<N>(g.argument, of.value_bar, i);
    }
  });
}

/// Samples, number i of the stream.
template <class Kind, int N, class S>
void sample_all(const Arrays<S>& of, const sheafnn::Stream& stream) {
  for_each(of.count, [&](Index i) {
    store<N>(sample(distribution<Kind, N>(of, i), stream, static_cast<std::uint32_t>(i)), of.out, i);
  });
}

/// Computes the derivatives of the parameters from the derivatives of Cayley samples in `value`.
template <int N, class S>
void cayley_sample_backward(const Arrays<S>& of, const sheafnn::Stream& stream) {
  for_each(of.count, [&](Index i) {
    const auto d = distribution<Cayley, N>(of, i);
    const auto bar = sample_backward(d, sheafnn::rotation::haar_rotation<S, N>(stream, static_cast<std::uint32_t>(i)),
                                     load<N>(of.value, i));
    store<N>(bar.location, of.parameter_bar, i);
    of.concentration_bar[i] = bar.concentration;
  });
}

/// The same for isotropic Gaussian samples.
template <class S>
void gaussian_sample_backward(const Arrays<S>& of, const sheafnn::Stream& stream) {
  for_each(of.count, [&](Index i) {
    const auto d = distribution<Gaussian, 3>(of, i);
    const auto bar = sample_backward(d, sample(d, stream, static_cast<std::uint32_t>(i)), load<3>(of.value, i));
    store<3>(bar.location, of.parameter_bar, i);
    of.concentration_bar[i] = bar.scale;
  });
}

/// KL to the uniform distribution and its derivative in the concentration, of Fisher's in the matrix.
template <class Kind, int N, class S>
void kl(const Arrays<S>& of) {
  for_each(of.count, [&](Index i) {
    const auto d = distribution<Kind, N>(of, i);
    of.out[i] = kl_to_uniform(d);
    if constexpr (std::is_same_v<Kind, Cayley>) {
      of.concentration_bar[i] = sheafnn::rotation::cayley_kl_derivative<N>(d.concentration());
    } else if constexpr (std::is_same_v<Kind, Gaussian>) {
      of.concentration_bar[i] = kl_derivative(d);
    } else if constexpr (std::is_same_v<Kind, Leon>) {
      of.concentration_bar[i] = d.concentration() * fisher_information(d).concentration;
    } else if constexpr (std::is_same_v<Kind, Fisher>) {
      // The derivative in s of ⟨s, ∇ log c⟩ − log c is ∇² log c s.
      const auto& s = d.singular_values();
      const sheafnn::math::Column<double, N> slope = d.normaliser().hessian * s;
      const SquareMatrix<double, N> bar = d.svd().u * slope.asDiagonal() * d.svd().v.transpose();
      store<N>(SquareMatrix<S, N>(bar.template cast<S>()), of.parameter_bar, i);
    }
  });
}

/// E P.
template <class Kind, int N, class S>
void mean_of(const Arrays<S>& of) {
  for_each(of.count, [&](Index i) { store<N>(mean(distribution<Kind, N>(of, i)), of.out, i); });
}

/// The arguments of a call from Python.
struct Call {
  std::string kind;
  Index dimension;
  bool wide;
  Index count;
  std::uintptr_t parameter, concentration, value, out, parameter_bar, concentration_bar, value_bar;
};

template <class S>
[[nodiscard]] Arrays<S> arrays_of(const Call& call) {
  const auto read = [](std::uintptr_t address) { return reinterpret_cast<const S*>(address); };
  const auto write = [](std::uintptr_t address) { return reinterpret_cast<S*>(address); };
  return {call.count,      read(call.parameter),      read(call.concentration),      read(call.value),
          write(call.out), write(call.parameter_bar), write(call.concentration_bar), write(call.value_bar)};
}

/// Runs what is asked for.
///
/// \param what  "log_prob", "sample", "sample_backward", "kl", "mean"
void run(const std::string& what, const std::string& kind, Index dimension, bool wide, Index count,
         std::uint64_t seed, std::uint32_t step, std::uintptr_t parameter, std::uintptr_t concentration,
         std::uintptr_t value, std::uintptr_t out, std::uintptr_t parameter_bar, std::uintptr_t concentration_bar,
         std::uintptr_t value_bar) {
  const GilRelease release;
  sheafnn::require(count <= 0xffffffffLL, "number of matrices", count, "must be at most 4294967295");
  const Call call{kind,          dimension,         wide,     count, parameter, concentration, value, out,
                  parameter_bar, concentration_bar, value_bar};
  const sheafnn::Stream stream{.seed = seed, .epoch = step};
  const auto in = [&]<class S>() {
    const Arrays<S> arrays = arrays_of<S>(call);
    with_kind(kind, dimension, [&]<class Kind, int N>() {
      if (what == "log_prob") return log_prob<Kind, N>(arrays);
      if (what == "sample") return sample_all<Kind, N>(arrays, stream);
      if (what == "kl") return kl<Kind, N>(arrays);
      if (what == "mean") return mean_of<Kind, N>(arrays);
      if constexpr (std::is_same_v<Kind, Cayley>) cayley_sample_backward<N>(arrays, stream);
      if constexpr (std::is_same_v<Kind, Gaussian>) gaussian_sample_backward(arrays, stream);
    });
  };
  wide ? in.operator()<double>() : in.operator()<float>();
}

}  // namespace

void bind_torch_rotations(nanobind::module_& module) { module.def("rotations", &run); }

}  // namespace python
