/// \file
/// Mixtures of distributions of rotations, of one dimension and any families, and their fits.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <sheafnn/rotation/bingham_distribution.hpp>
#include <sheafnn/rotation/cayley_fit.hpp>
#include <sheafnn/rotation/isotropic_gaussian_fit.hpp>
#include <sheafnn/rotation/leon_fit.hpp>
#include <sheafnn/rotation/matrix_bingham_fit.hpp>
#include <sheafnn/rotation/matrix_fisher_fit.hpp>
#include <sheafnn/rotation/mixture_fit.hpp>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "module.hpp"
#include "rotation_distributions.hpp"

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

/// What Python makes a mixture of, its responsibilities and BIC, and with `select` the BIC of all numbers of components.
template <class Own>
[[nodiscard]] nb::dict fit_family(const Input<double>& samples, const Input<double>& weights,
                                  const sheafnn::rotation::MixtureOptions& options, bool select) {
  const auto rotations = load_all<Own::dimension>(samples);
  std::vector<double> bic;
  const auto fit = [&] {
    const GilRelease release;
    if (!select) return sheafnn::rotation::fit_mixture<Own>(rotations, options, span_of(weights));
    auto selection = sheafnn::rotation::select_mixture<Own>(rotations, options, span_of(weights));
    bic = std::move(selection.bic);
    return std::move(selection.best);
  }();
  nb::list components;
  for (const Own& one : fit.distribution.components()) components.append(parameters_of(one));
  nb::dict d;
  d["components"] = components;
  const std::size_t count = fit.distribution.components().size();
  d["weights"] = to_numpy(std::vector<double>(fit.distribution.weights()), {count});
  d["responsibilities"] = to_numpy(std::vector<double>(fit.responsibilities), {rotations.size(), count});
  d["log_likelihood"] = fit.log_likelihood;
  d["effective_samples"] = fit.effective_samples;
  d["iterations"] = fit.iterations;
  d["converged"] = fit.converged;
  d["bic"] = fit.bic();
  const std::size_t fitted = bic.size();
  d["all_bic"] = to_numpy(std::move(bic), {fitted});
  return d;
}

/// \param family  the class in Python
[[nodiscard]] nb::dict fit_mixture(const std::string& family, const Input<double>& samples,
                                   const Input<double>& weights, int components, int starts, int max_iterations,
                                   std::uint64_t seed, bool select) {
  using namespace sheafnn::rotation;
  const MixtureOptions options{.components = components,
                               .starts = starts,
                               .max_iterations = max_iterations,
                               .seed = seed};
  const Index n = dimension_of(samples);
  const auto fit = [&]<class Own>() { return fit_family<Own>(samples, weights, options, select); };
  if (family == "Cayley") {
    return with_dimension(n, [&]<int N>() { return fit.template operator()<CayleyDistribution<N>>(); });
  }
  if (family == "LeonCayley") {
    return with_dimension(n, [&]<int N>() { return fit.template operator()<LeonCayleyDistribution<N>>(); });
  }
  if (family == "MatrixFisher") {
    return with_plane_or_space(n, [&]<int N>() { return fit.template operator()<MatrixFisherDistribution<N>>(); });
  }
  if (family == "MatrixBingham") {
    return with_plane_or_space(n, [&]<int N>() { return fit.template operator()<MatrixBinghamDistribution<N>>(); });
  }
  sheafnn::require_between("dimension", n, 3, 3);
  if (family == "IsotropicGaussian") return fit.template operator()<IsotropicGaussian<3>>();
  if (family == "Bingham") return fit.template operator()<BinghamDistribution<3>>();
  sheafnn::throw_invalid_argument("family", family, "it has no fit");
}

}  // namespace

void bind_rotation_mixtures(nb::module_& module) {
  module.def("mixture", &mixture);
  module.def("fit_mixture", &fit_mixture);
}

}  // namespace python
