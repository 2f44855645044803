/// \file
/// Finite mixtures Σ w_k f_k of the distributions in rotation/, all of one family: density, responsibilities, score, samples.
///
/// Families are the rotations', AngularCentralGaussian (vectors) and WrappedCauchy (angles). Fits: mixture_fit.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/sample_many.hpp"

namespace sheafnn::detail {

/// The dimension of rotations of a distribution, 0 of one that has none.
template <class D>
[[nodiscard]] constexpr int dimension_of() {
  if constexpr (requires { D::dimension; }) {
    return D::dimension;
  } else {
    return 0;
  }
}

/// log Σ e^{x_k}, −∞ where all x_k are. Takes any numbers.
[[nodiscard]] inline double log_sum_exp(std::span<const double> x) {
  const double largest = *std::max_element(x.begin(), x.end());
  if (!(largest > -std::numeric_limits<double>::infinity())) return largest;
  double sum = 0;
  for (const double one : x) sum += std::exp(one - largest);
  return largest + std::log(sum);
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// A mixture of distributions D with weights that sum to 1.
template <class D>
class Mixture {
 public:
  using Component = D;
  using Scalar = typename D::Scalar;
  using Sample = detail::SampleOf<D>;
  using Matrix = Sample;  ///< of rotations
  static constexpr int dimension = detail::dimension_of<D>();

  /// \param components  at least one
  /// \param weights     one for each, finite and at least 0, of any scale; none: all are equal
  /// \throws std::invalid_argument  an argument is out of its range
  explicit Mixture(std::vector<D> components, std::span<const double> weights = {})
      : components_(std::move(components)) {
    require(!components_.empty(), "Mixture: components", "an empty list", "at least one is needed");
    require(weights.empty() || weights.size() == components_.size(), "Mixture: weights",
            detail::concat(weights.size(), " of them"),
            detail::concat("there are ", components_.size(), " components"));
    double sum = 0;
    for (std::size_t k = 0; k < components_.size(); ++k) {
      const double w = weights.empty() ? 1.0 : weights[k];
      require(std::isfinite(w) && w >= 0, {"Mixture", "weights", k}, w, "must be finite and at least 0");
      weights_.push_back(w);
      sum += w;
    }
    require(sum > 0 && std::isfinite(sum), "Mixture: weights", detail::concat("a sum of ", sum),
            "must be positive and finite");
    for (double& w : weights_) w /= sum;
  }

  [[nodiscard]] const std::vector<D>& components() const noexcept { return components_; }
  /// Their sum is 1 to rounding.
  [[nodiscard]] const std::vector<double>& weights() const noexcept { return weights_; }

 private:
  std::vector<D> components_;
  std::vector<double> weights_;
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// log w_k f_k(p) of all components; angles have no options.
template <class D>
[[nodiscard]] std::vector<double> weighted_log_densities(
    const rotation::Mixture<D>& mixture, const SampleOf<D>& p,
    const rotation::SampleOptions<typename D::Scalar>& options) {
  std::vector<double> r;
  for (std::size_t k = 0; k < mixture.components().size(); ++k) {
    const D& component = mixture.components()[k];
    if constexpr (std::is_floating_point_v<SampleOf<D>>) {
      r.push_back(static_cast<double>(logpdf(component, p)));
    } else {
      r.push_back(static_cast<double>(logpdf(component, p, options)));
    }
    r.back() += std::log(mixture.weights()[k]);
  }
  return r;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// log Σ w_k f_k(p). \throws std::invalid_argument  as logpdf() of the components
template <class D>
[[nodiscard]] typename D::Scalar logpdf(const Mixture<D>& mixture,
                                        const std::type_identity_t<detail::SampleOf<D>>& p,
                                        const SampleOptions<typename D::Scalar>& options = {}) {
  return static_cast<typename D::Scalar>(detail::log_sum_exp(detail::weighted_log_densities(mixture, p, options)));
}

/// Σ w_k f_k(p). \throws std::invalid_argument  as logpdf() of the components
template <class D>
[[nodiscard]] typename D::Scalar pdf(const Mixture<D>& mixture, const std::type_identity_t<detail::SampleOf<D>>& p,
                                     const SampleOptions<typename D::Scalar>& options = {}) {
  return std::exp(logpdf(mixture, p, options));
}

/// The probability of each component given p, w_k f_k(p)/Σ w_j f_j(p); the weights where the density is 0.
///
/// \throws std::invalid_argument  as logpdf() of the components
template <class D>
[[nodiscard]] std::vector<double> responsibilities(const Mixture<D>& mixture,
                                                   const std::type_identity_t<detail::SampleOf<D>>& p,
                                                   const SampleOptions<typename D::Scalar>& options = {}) {
  std::vector<double> r = detail::weighted_log_densities(mixture, p, options);
  const double total = detail::log_sum_exp(r);
  if (!std::isfinite(total)) return mixture.weights();
  for (double& one : r) one = std::exp(one - total);
  return r;
}

/// Derivatives of log f(P) of a mixture.
template <class D>
struct MixtureGradient {
  std::vector<double> log_weights;  ///< ∂/∂ log w_k of free weights: the responsibility r_k
  detail::SampleOf<D> argument;     ///< P̄ = Σ r_k P̄_k, of a free matrix; score() is the one along SO(N)
};

/// The derivative in the parameters of component k is r_k times the derivative of its own log density.
///
/// \throws std::invalid_argument  as logpdf_gradient() of the components
template <class D>
[[nodiscard]] MixtureGradient<D> logpdf_gradient(const Mixture<D>& mixture,
                                                 const std::type_identity_t<detail::SampleOf<D>>& p,
                                                 const SampleOptions<typename D::Scalar>& options = {}) {
  using Scalar = typename D::Scalar;
  MixtureGradient<D> r{responsibilities(mixture, p, options), detail::SampleOf<D>::Zero()};
  for (std::size_t k = 0; k < mixture.components().size(); ++k) {
    if (r.log_weights[k] == 0) continue;
    r.argument +=
        static_cast<Scalar>(r.log_weights[k]) * logpdf_gradient(mixture.components()[k], p, options).argument;
  }
  return r;
}

/// A sample, exact: a pure function of (stream, id). The first draw chooses the component, which takes the next ones.
template <class D>
[[nodiscard]] detail::SampleOf<D> sample(const Mixture<D>& mixture, const Stream& stream, std::uint32_t id,
                                         std::uint32_t first_draw = 0) {
  const auto words = stream.words(id, first_draw);
  double rest = random::fine_uniform(words.word[0], words.word[1]);
  std::size_t chosen = 0, k = 0;
  for (const double w : mixture.weights()) {
    if (w > 0) chosen = k;  // rounding of the sum leaves the last one
    if (rest < w) break;
    rest -= w;
    ++k;
  }
  return sample(mixture.components()[chosen], stream, id, first_draw + 1);
}

/// E[P] = Σ w_k E_k[P].
template <class D>
[[nodiscard]] detail::SampleOf<D> mean(const Mixture<D>& mixture) {
  detail::SampleOf<D> sum = static_cast<typename D::Scalar>(mixture.weights()[0]) * mean(mixture.components()[0]);
  for (std::size_t k = 1; k < mixture.components().size(); ++k) {
    sum += static_cast<typename D::Scalar>(mixture.weights()[k]) * mean(mixture.components()[k]);
  }
  return sum;
}

}  // namespace sheafnn::rotation
