/// \file
/// The uniform (Haar) distribution on SO(N), with the operations every distribution of rotations has.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace sheafnn::rotation {

/// Uniform on SO(N); densities of all distributions of rotations are with respect to it.
template <int N, class Dtype = double>
class HaarDistribution {
  static_assert(N >= 1);
  static_assert(std::is_floating_point_v<Dtype>, "a distribution's scalars are float or double");

 public:
  static constexpr int dimension = N;
  static constexpr bool isotropic = true;  ///< about its location
  using Scalar = Dtype;
  using Matrix = SquareMatrix<Scalar, N>;

  /// What angles are measured from: I, though any rotation would do.
  [[nodiscard]] static Matrix location() { return identity_matrix<Scalar, N>(); }
};

/// log f = 0, f = 1. \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] Scalar logpdf(const HaarDistribution<N, Scalar>&,
                            const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
                            const SampleOptions<Scalar>& options = {}) {
  require_rotation<Scalar, N>("logpdf: p", p, options);
  return Scalar(0);
}

/// A sample: a pure function of (stream, id), see haar_rotation.
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, N> sample(const HaarDistribution<N, Scalar>&, const Stream& stream,
                                             std::uint32_t id, std::uint32_t first_draw = 0) {
  return haar_rotation<Scalar, N>(stream, id, first_draw);
}

/// Entropy with respect to itself: 0, the largest of all distributions on SO(N).
template <int N, class Scalar>
[[nodiscard]] Scalar entropy(const HaarDistribution<N, Scalar>&) {
  return Scalar(0);
}

/// KL to itself: 0.
template <int N, class Scalar>
[[nodiscard]] Scalar kl_to_uniform(const HaarDistribution<N, Scalar>&) {
  return Scalar(0);
}

/// Length of the mean, E[P] = r I: 0 (1 for N = 1, where E[P] = I).
template <int N, class Scalar>
[[nodiscard]] Scalar mean_resultant(const HaarDistribution<N, Scalar>&) {
  return Scalar(N == 1 ? 1 : 0);
}

}  // namespace sheafnn::rotation
