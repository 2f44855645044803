/// \file
/// Priors over rotations, for CayleyPosterior and TangentNormalPosterior: the uniform distribution, and C(M₀, κ₀).
///
/// A prior of dimension N says whether its divergence from a Cayley distribution is elementary (closed_form), and
/// has kl(M, κ), kl_backward(M, κ, weight, M̄, κ̄), log_density(Y), log_density_backward(Y, weight, Ȳ), all over
/// T = float, double or Pack; backward functions add. Source: paper, "Cayley distributions"; math: "KL to a Cayley
/// prior".
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/cayley_kl.hpp"

namespace sheafnn {

/// The uniform (Haar) distribution, the paper's.
template <int N>
struct HaarPrior {
  static constexpr bool closed_form = true;

  template <class T>
  [[nodiscard]] SHEAFNN_HD T kl(const SquareMatrix<T, N>&, const T& kappa) const {
    return cayley_kl<N>(kappa);
  }
  template <class T>
  SHEAFNN_HD void kl_backward(const SquareMatrix<T, N>&, const T& kappa, const T& weight, SquareMatrix<T, N>&,
                              T& kappa_bar) const {
    kappa_bar += weight * cayley_kl_derivative<N>(kappa);
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD T log_density(const SquareMatrix<T, N>&) const {
    return T(0);
  }
  template <class T>
  SHEAFNN_HD void log_density_backward(const SquareMatrix<T, N>&, const T&, SquareMatrix<T, N>&) const {}
};

}  // namespace sheafnn
