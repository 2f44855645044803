/// \file
/// Samples Y₀ of C_N(I, κ) over T = float, double or Pack: what batches and device code draw.
///
/// The same function of (stream, id) as haar_rotation followed by moebius, up to rounding. Small dimensions take a shorter
/// way: N = 2 maps half angles, N = 3 scales the real part of a quaternion by γ. Those, unlike an elimination, keep full
/// accuracy as κ → 1. Source: math, "Sampling without the singularity" (2.7).
#pragma once

#include <cmath>
#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/moebius.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/quaternion.hpp"

namespace sheafnn::rotation {

/// Y₀ ~ C_N(I, κ).
///
/// \param kappa  in [0, 1), the same in all lanes
/// \param first_draw  the draws first_draw … first_draw + haar_draws<N> − 1 are consumed
/// Unchecked: the range of κ.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SquareMatrix<T, N> centred_cayley_sample(const Stream& stream, const word_of_t<T>& id,
                                                                  scalar_of_t<T> kappa,
                                                                  std::uint32_t first_draw = 0) {
  using Scalar = scalar_of_t<T>;
  if constexpr (N == 2) {
    using std::cos;
    using std::sin;
    const T half =
        T(3.1415926535897932384626433832795) * uniform_from_word<T>(stream.words(id, first_draw).word[0]);
    const T a = T(1 + kappa) * cos(half);
    const T b = T(1 - kappa) * sin(half);
    const T inverse = T(1) / (a * a + b * b);
    SquareMatrix<T, 2> y;
    y(0, 0) = y(1, 1) = (a * a - b * b) * inverse;
    y(1, 0) = T(2) * a * b * inverse;
    y(0, 1) = -y(1, 0);
    return y;
  } else if constexpr (N == 3) {
    using std::sqrt;
    // ‖(γw, x, y, z)‖² = 1 + (γ² − 1) w² for a unit quaternion.
    const Scalar gamma = (1 + kappa) / (1 - kappa);
    const Column<T, 4> q = detail::uniform_quaternion<T>(stream.words(id, first_draw));
    const T inverse = T(1) / sqrt(T(1) + T(gamma * gamma - 1) * q(0) * q(0));
    return quaternion_rotation<T>(
        Column<T, 4>(T(gamma) * inverse * q(0), inverse * q(1), inverse * q(2), inverse * q(3)));
  } else {
    SquareMatrix<T, N> y = moebius<T, N>(haar_rotation<T, N>(stream, id, first_draw), T(kappa));
    // Rounding grows with 1/(1 − κ) where U has an eigenvalue near −1.
    const int steps = kappa > Scalar(0.99) ? 4 : kappa > Scalar(0.9) ? 1 : 0;
    for (int step = 0; step < steps; ++step) y = orthonormalisation_step<T, N>(y);
    return y;
  }
}

}  // namespace sheafnn::rotation
