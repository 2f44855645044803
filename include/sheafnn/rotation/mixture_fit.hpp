/// \file
/// Fits of mixtures by expectation maximisation, and the number of components by BIC:
/// fit_mixture<CayleyDistribution<3>>(samples, {.components = 3}), select_mixture<…>(samples, {.components = 8}).
///
/// BIC = p log n − 2 Σ log f with p free parameters and n samples (Schwarz, Ann. Statist. 6, 1978): smaller is better.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/expectation_maximisation.hpp"
#include "sheafnn/rotation/fit.hpp"
#include "sheafnn/rotation/mixture.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/sample_weights.hpp"

namespace sheafnn::rotation {

/// A mixture fitted to samples.
template <class D>
struct MixtureFit {
  Mixture<D> distribution;  ///< at the estimates; fewer components than asked for where some were dropped
  std::vector<double> responsibilities;  ///< n × K, sample by sample
  double log_likelihood;                 ///< Σ w log f/Σ w at the estimates
  double effective_samples;              ///< (Σw)²/Σw²
  int iterations;
  bool converged;                       ///< before max_iterations
  std::vector<double> log_likelihoods;  ///< after each iteration

  /// K times the parameters of a component, and K − 1 shares.
  [[nodiscard]] int free_parameters() const {
    const int components = static_cast<int>(distribution.components().size());
    return components * Fitting<D>::free_parameters + components - 1;
  }
  [[nodiscard]] double bic() const {
    return free_parameters() * std::log(effective_samples) - 2 * effective_samples * log_likelihood;
  }
};

/// The mixture of the smallest BIC, and the BIC of all that were fitted.
template <class D>
struct MixtureSelection {
  MixtureFit<D> best;
  std::vector<double> bic;  ///< with k components at k − 1
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// Samples as fits and densities take them: checked once.
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, N> checked_sample(std::size_t i, const SquareMatrix<Scalar, N>& p,
                                                     const rotation::SampleOptions<Scalar>& options) {
  return rotation::orthonormalised<Scalar, N>({"fit_mixture", "samples", i}, p, options);
}
template <int P, class Scalar>
  requires(P > 1)
[[nodiscard]] Column<Scalar, P> checked_sample(std::size_t i, const Column<Scalar, P>& x,
                                               const rotation::SampleOptions<Scalar>& options) {
  return rotation::unit_vector<Scalar, P>({"fit_mixture", "samples", i}, x, options);
}
template <class Scalar>
  requires std::is_floating_point_v<Scalar>
[[nodiscard]] Scalar checked_sample(std::size_t i, Scalar angle, const rotation::SampleOptions<Scalar>&) {
  require(std::isfinite(angle), {"fit_mixture", "samples", i}, angle, "must be finite");
  return angle;
}

/// Squared distances of matrices, of axes and of angles.
template <class Sample>
[[nodiscard]] double squared_distance(const Sample& a, const Sample& b) {
  if constexpr (std::is_floating_point_v<Sample>) {
    return static_cast<double>(2 - 2 * std::cos(a - b));
  } else if constexpr (Sample::ColsAtCompileTime == 1) {
    const double cosine = static_cast<double>(a.dot(b));
    return std::max(0.0, 1 - cosine * cosine);
  } else {
    return static_cast<double>((a - b).squaredNorm());
  }
}

/// The components of a mixture of D, fitted to weighted samples.
template <class D>
class FittedComponents final : public MixtureComponents {
 public:
  using Scalar = typename D::Scalar;
  using Sample = SampleOf<D>;
  explicit FittedComponents(std::span<const Sample> samples) : samples_(samples) {}

  void log_densities(std::size_t k, std::span<double> out) const override { evaluate(components_[k], out); }
  bool fit_candidate(std::span<const double> weights) override {
    weights_.assign(weights.begin(), weights.end());
    try {
      candidate_ = rotation::fit<D>(samples_, weights_).distribution;
    } catch (const std::invalid_argument&) {  // no maximum, see fit
      return false;
    } catch (const std::runtime_error&) {
      return false;
    }
    return true;
  }
  void candidate_log_densities(std::span<double> out) const override { evaluate(*candidate_, out); }
  void take_candidate(std::size_t k) override {
    k < components_.size() ? void(components_[k] = *candidate_) : components_.push_back(*candidate_);
  }
  void drop(std::size_t k) override { components_.erase(components_.begin() + static_cast<std::ptrdiff_t>(k)); }

  [[nodiscard]] const std::vector<D>& components() const { return components_; }

 private:
  void evaluate(const D& component, std::span<double> out) const {
    for (std::size_t i = 0; i < samples_.size(); ++i) out[i] = static_cast<double>(logpdf(component, samples_[i]));
  }

  std::span<const Sample> samples_;
  std::vector<Scalar> weights_;
  std::vector<D> components_;
  std::optional<D> candidate_;
};

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// Maximum likelihood by expectation maximisation from `starts` sets of centres, a function of the samples and the seed.
///
/// A component whose samples have no fit (all equal, too few) is dropped: the mixture may have fewer than asked for.
///
/// \param samples  of the type D draws; a std::vector converts
/// \param weights  none, or one for each sample: finite, at least 0, one of them positive
/// \param taken    how far from orthogonal samples may be
/// \throws std::invalid_argument  a sample, weight or option that is none, or samples to which no component can be fitted
template <class D>
[[nodiscard]] MixtureFit<D> fit_mixture(std::span<const typename Fitting<D>::Sample> samples,
                                        const MixtureOptions& options = {},
                                        std::span<const typename D::Scalar> weights = {},
                                        const SampleOptions<typename D::Scalar>& taken = {}) {
  using Sample = detail::SampleOf<D>;
  check_ranges(options);
  taken.validate();
  const detail::SampleWeights shares("fit_mixture", samples.size(), weights, 2);
  std::vector<Sample> checked;
  for (std::size_t i = 0; i < samples.size(); ++i) checked.push_back(detail::checked_sample(i, samples[i], taken));
  std::optional<detail::FittedComponents<D>> model;
  detail::MixtureEstimate estimate;
  const int starts = options.components == 1 ? 1 : options.starts;
  for (int start = 0; start < starts; ++start) {
    detail::FittedComponents<D> tried(checked);
    detail::MixtureEstimate own;
    own.responsibilities =
        detail::starting_responsibilities(shares.weight, static_cast<std::size_t>(options.components),
                                          options.seed, static_cast<std::uint32_t>(start),
                                          [&](std::size_t i, std::size_t j) {
                                            return detail::squared_distance(checked[i], checked[j]);
                                          });
    detail::maximise_expectation(shares.weight, shares.effective, std::min(20, options.max_iterations),
                                 options.tolerance, own, tried);
    if (model && !(own.log_likelihoods.back() > estimate.log_likelihoods.back())) continue;
    model.emplace(std::move(tried));
    estimate = std::move(own);
  }
  const int done = static_cast<int>(estimate.log_likelihoods.size());
  detail::maximise_expectation(shares.weight, shares.effective, options.max_iterations - done, options.tolerance,
                               estimate, *model);
  return {Mixture<D>(model->components(), estimate.shares),
          std::move(estimate.responsibilities),
          estimate.log_likelihoods.back(),
          shares.effective,
          static_cast<int>(estimate.log_likelihoods.size()),
          estimate.converged,
          std::move(estimate.log_likelihoods)};
}

/// Fits mixtures of 1 to `components` components and takes the one of the smallest BIC. Of fits whose BIC differs by less than
/// what `tolerance` leaves open, it takes the first.
///
/// \throws std::invalid_argument  as fit_mixture()
template <class D>
[[nodiscard]] MixtureSelection<D> select_mixture(std::span<const typename Fitting<D>::Sample> samples,
                                                 const MixtureOptions& options = {},
                                                 std::span<const typename D::Scalar> weights = {},
                                                 const SampleOptions<typename D::Scalar>& taken = {}) {
  check_ranges(options);
  MixtureOptions one = options;
  std::optional<MixtureFit<D>> best;
  std::vector<double> bic;
  for (one.components = 1; one.components <= options.components; ++one.components) {
    MixtureFit<D> fitted = fit_mixture<D>(samples, one, weights, taken);
    bic.push_back(fitted.bic());
    const double open = 20 * fitted.effective_samples * options.tolerance;
    if (!best || bic.back() < best->bic() - open) best = std::move(fitted);
  }
  return {*std::move(best), std::move(bic)};
}

}  // namespace sheafnn::rotation
