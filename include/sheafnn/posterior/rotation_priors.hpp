/// \file
/// Priors over rotations, for CayleyPosterior and TangentNormalPosterior: the uniform distribution, and C(M₀, κ₀).
///
/// A prior of dimension N says whether its divergence from a Cayley distribution is elementary (closed_form). It has kl(M,
/// κ), kl_backward(M, κ, weight, M̄, κ̄), log_density(Y), log_density_backward(Y, weight, Ȳ), all over T = float, double or
/// Pack. Backward functions add. Source: paper, "Cayley distributions"; math: "KL to a Cayley prior".
/// Unchecked: see posterior/sheaf_posterior.hpp.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/cayley_kl.hpp"
#include "sheafnn/rotation/cayley_prior_kl.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"

namespace sheafnn {

/// The uniform (Haar) distribution, the paper's.
template <int N>
struct HaarPrior {
  static constexpr bool closed_form = true;

  template <class T>
  [[nodiscard]] SHEAFNN_HD T kl(const SquareMatrix<T, N>&, const T& kappa) const {
    return rotation::cayley_kl<N>(kappa);
  }
  template <class T>
  SHEAFNN_HD void kl_backward(const SquareMatrix<T, N>&, const T& kappa, const T& weight, SquareMatrix<T, N>&,
                              T& kappa_bar) const {
    kappa_bar += weight * rotation::cayley_kl_derivative<N>(kappa);
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD T log_density(const SquareMatrix<T, N>&) const {
    return T(0);
  }
  template <class T>
  SHEAFNN_HD void log_density_backward(const SquareMatrix<T, N>&, const T&, SquareMatrix<T, N>&) const {}
  friend bool operator==(const HaarPrior&, const HaarPrior&) = default;
};

/// C(M₀, κ₀) for all incident pairs; κ₀ = 0 is the uniform distribution. KL from a Cayley distribution is elementary
/// for N ≤ 3; beyond, the evidence bound takes log q − log p of the maps drawn.
template <int N>
class CayleyPrior {
 public:
  static constexpr bool closed_form = rotation::has_elementary_cayley_kl<N>;

  /// The uniform distribution.
  CayleyPrior() : CayleyPrior(SquareMatrix<double, N>::Identity(), 0.0) {}
  /// \param location       M₀, orthogonal within rotation_tolerance; rounding of its entries is taken out
  /// \param concentration  κ₀ in [0, 1), below 1 in single precision too
  /// \throws std::invalid_argument  an argument is out of its range
  CayleyPrior(const SquareMatrix<double, N>& location, double concentration) : concentration_(concentration) {
    require(concentration >= 0 && static_cast<float>(concentration) < 1, "CayleyPrior: concentration",
            concentration, "must be in [0, 1) in single precision");
    const SquareMatrix<double, N> m = rotation::orthonormalised<double, N>("CayleyPrior: location", location);
    for (int k = 0; k < N * N; ++k) location_[k] = m(k % N, k / N);
  }

  /// M₀ and κ₀ over T.
  template <class T = double>
  [[nodiscard]] SHEAFNN_HD SquareMatrix<T, N> location() const {
    SquareMatrix<T, N> r;
    for (int k = 0; k < N * N; ++k) r(k % N, k / N) = T(static_cast<math::scalar_of_t<T>>(location_[k]));
    return r;
  }
  template <class T = double>
  [[nodiscard]] SHEAFNN_HD T concentration() const {
    return T(static_cast<math::scalar_of_t<T>>(concentration_));
  }

  template <class T>
  [[nodiscard]] SHEAFNN_HD T kl(const SquareMatrix<T, N>& m, const T& kappa) const requires closed_form {
    return rotation::cayley_prior_kl<T, N>(m, kappa, location<T>(), concentration<T>());
  }
  template <class T>
  SHEAFNN_HD void kl_backward(const SquareMatrix<T, N>& m, const T& kappa, const T& weight,
                              SquareMatrix<T, N>& m_bar, T& kappa_bar) const requires closed_form {
    rotation::cayley_prior_kl_backward<T, N>(m, kappa, location<T>(), concentration<T>(), weight, m_bar,
                                             kappa_bar);
  }
  /// log p(Y) with respect to normalised Haar measure.
  template <class T>
  [[nodiscard]] SHEAFNN_HD T log_density(const SquareMatrix<T, N>& y) const {
    return rotation::cayley_logpdf<T, N>(math::multiply_nt(y, location<T>()), concentration<T>());
  }
  template <class T>
  SHEAFNN_HD void log_density_backward(const SquareMatrix<T, N>& y, const T& weight,
                                       SquareMatrix<T, N>& y_bar) const {
    const SquareMatrix<T, N> slope =
        rotation::cayley_logpdf_gradient<T, N>(y, location<T>(), concentration<T>()).argument;
    for (int k = 0; k < N * N; ++k) y_bar(k % N, k / N) += weight * slope(k % N, k / N);
  }

  friend bool operator==(const CayleyPrior&, const CayleyPrior&) = default;

 private:
  double location_[N * N];  ///< column by column
  double concentration_;
};

}  // namespace sheafnn
