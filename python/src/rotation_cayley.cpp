/// \file
/// Cayley distributions of rotations of R² to R⁵, centred and León's, and their fits.
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>
#include <sheafnn/rotation/cayley_distribution.hpp>
#include <sheafnn/rotation/cayley_fit.hpp>
#include <sheafnn/rotation/cayley_gradient.hpp>
#include <sheafnn/rotation/leon_distribution.hpp>
#include <sheafnn/rotation/leon_fit.hpp>
#include <string_view>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "module.hpp"
#include "rotation_distributions.hpp"
#include "rotation_families.hpp"

namespace python {

namespace {

using sheafnn::rotation::CayleyDistribution;
using sheafnn::rotation::LeonCayleyDistribution;

template <template <int, class> class D>
[[nodiscard]] Owned located(const Input<double>& location, double concentration) {
  return with_dimension(dimension_of(location), [&]<int N>() -> Owned {
    using Own = D<N, double>;
    return std::make_unique<Of<Own, N>>(Own(load<N>(location.data()), concentration));
  });
}
/// location, concentration and their errors
template <template <int, class> class D>
[[nodiscard]] nb::dict fit_located(const Input<double>& samples, const Input<double>& weights, bool moments) {
  return with_dimension(dimension_of(samples), [&]<int N>() {
    using Own = D<N, double>;
    const auto rotations = load_all<N>(samples);
    const auto fit = without_lock([&] {
      return moments ? sheafnn::rotation::fit_moments<Own>(rotations, span_of(weights))
                     : sheafnn::rotation::fit<Own>(rotations, span_of(weights));
    });
    nb::dict d = parameters_of(fit.distribution);
    d["location_error"] = fit.location_error;
    d["concentration_error"] = fit.concentration_error;
    add_common(d, fit);
    return d;
  });
}

template <template <int, class> class D>
[[nodiscard]] nb::dict fit_mixture_of(const MixtureSamples& given) {
  return with_dimension(dimension_of(given.samples), [&]<int N>() { return fit_family<D<N, double>>(given); });
}

}  // namespace

std::optional<nb::dict> fit_cayley_mixture(std::string_view family, const MixtureSamples& given) {
  if (family == "Cayley") return fit_mixture_of<CayleyDistribution>(given);
  if (family == "LeonCayley") return fit_mixture_of<LeonCayleyDistribution>(given);
  return std::nullopt;
}

void bind_rotation_cayley(nb::module_& module) {
  module.def("cayley", &located<CayleyDistribution>);
  module.def("leon_cayley", &located<LeonCayleyDistribution>);
  module.def("fit_cayley", &fit_located<CayleyDistribution>);
  module.def("fit_leon_cayley", &fit_located<LeonCayleyDistribution>);
}

}  // namespace python
