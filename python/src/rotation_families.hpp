/// \file
/// Fits of mixtures of one family. They are compiled with the family's distributions. The time that g++ takes for matrices of
/// fixed size grows with the square of the number of their types.
#pragma once

#include <cstddef>
#include <optional>
#include <sheafnn/rotation/mixture_fit.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rotation_distributions.hpp"

namespace python {

/// What a mixture is fitted to, and how.
struct MixtureSamples {
  const Input<double>&samples, &weights;
  sheafnn::rotation::MixtureOptions options;
  bool select;
};

// Fits a mixture of the family that is a class of this name in Python; nothing for a family of another file.
[[nodiscard]] std::optional<nb::dict> fit_cayley_mixture(std::string_view family, const MixtureSamples& given);
[[nodiscard]] std::optional<nb::dict> fit_matrix_mixture(std::string_view family, const MixtureSamples& given);

/// What Python makes a mixture of, its responsibilities and BIC, and with `select` the BIC of all numbers of components.
template <class Own>
[[nodiscard]] nb::dict fit_family(const MixtureSamples& given) {
  const auto rotations = load_all<Own::dimension>(given.samples);
  const std::span<const double> weights = span_of(given.weights);
  std::vector<double> bic;
  const auto fit = [&] {
    const GilRelease release;
    if (!given.select) return sheafnn::rotation::fit_mixture<Own>(rotations, given.options, weights);
    auto selection = sheafnn::rotation::select_mixture<Own>(rotations, given.options, weights);
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

}  // namespace python
