/// \file
/// Mixtures of distributions of rotations, of one dimension and any families, and their fits.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/rotation/mixture.hpp>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "module.hpp"
#include "rotation_distributions.hpp"
#include "rotation_families.hpp"

namespace python {

namespace {

/// A distribution of any family as a component of the library's mixtures, which find these functions by its namespace.
template <int N>
struct Component {
  using Scalar = double;
  using Matrix = SquareMatrix<double, N>;
  static constexpr int dimension = N;
  std::shared_ptr<const OfDimension<N>> own;
};
template <int N>
struct ArgumentGradient {
  SquareMatrix<double, N> argument;
};
using Options = sheafnn::rotation::SampleOptions<double>;

template <int N>
double logpdf(const Component<N>& d, const SquareMatrix<double, N>& p, const Options& = {}) {
  return d.own->log_density_at(p);
}
template <int N>
ArgumentGradient<N> logpdf_gradient(const Component<N>& d, const SquareMatrix<double, N>& p, const Options& = {}) {
  return {d.own->argument_gradient(p)};
}
template <int N>
SquareMatrix<double, N> sample(const Component<N>& d, const sheafnn::Stream& stream, std::uint32_t id,
                               std::uint32_t first_draw = 0) {
  return d.own->draw_one(stream, id, first_draw);
}
template <int N>
SquareMatrix<double, N> mean(const Component<N>& d) {
  return d.own->mean_matrix();
}

[[nodiscard]] Owned mixture(const nb::list& components, const Input<double>& weights) {
  sheafnn::require(components.size() > 0, "components", "an empty list", "at least one is needed");
  const Index n = nb::cast<const Distribution&>(components[0]).dimension();
  return with_dimension(n, [&]<int N>() -> Owned {
    std::vector<Component<N>> own;
    for (std::size_t k = 0; k < components.size(); ++k) {
      const auto* one = dynamic_cast<const OfDimension<N>*>(&nb::cast<const Distribution&>(components[k]));
      sheafnn::require(one != nullptr, sheafnn::detail::concat("components[", k, "]"),
                       sheafnn::detail::concat("dimension ",
                                               nb::cast<const Distribution&>(components[k]).dimension()),
                       sheafnn::detail::concat("must be ", n, ", as of the first component"));
      own.push_back({one->clone()});
    }
    using Mixed = sheafnn::rotation::Mixture<Component<N>>;
    return std::make_unique<Of<Mixed, N>>(Mixed(std::move(own), span_of(weights)));
  });
}

/// \param family  the class in Python
[[nodiscard]] nb::dict fit_mixture(const std::string& family, const Input<double>& samples,
                                   const Input<double>& weights, int components, int starts, int max_iterations,
                                   std::uint64_t seed, bool select) {
  const MixtureSamples given{
      samples,
      weights,
      {.components = components, .starts = starts, .max_iterations = max_iterations, .seed = seed},
      select};
  if (auto fit = fit_cayley_mixture(family, given)) return *std::move(fit);
  if (auto fit = fit_matrix_mixture(family, given)) return *std::move(fit);
  sheafnn::throw_invalid_argument("family", family, "it has no fit");
}

}  // namespace

void bind_rotation_mixtures(nb::module_& module) {
  module.def("mixture", &mixture);
  module.def("fit_mixture", &fit_mixture);
}

}  // namespace python
