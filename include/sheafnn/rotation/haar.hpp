/// \file
/// Uniform (Haar) rotations: a pure function of (stream, id), for any dimension.
///
/// N = 2 an angle, 3 a unit quaternion, 4 a pair of them (math, "Rotations"). Otherwise the orthogonal factor of a
/// matrix of normal numbers, with the sign fix that makes it uniform, without forming that matrix: what
/// Householder reflections leave of its columns is normal again (Stewart, "The efficient generation of random
/// orthogonal matrices", SIAM J. Numer. Anal. 17, 1980), so that reflector k comes from N − k fresh normal
/// numbers. The last column's sign makes the determinant +1.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/quaternion.hpp"

namespace sheafnn {

namespace detail {

/// Normal numbers behind a uniform rotation (N = 2 takes a uniform one instead).
template <int N>
inline constexpr int haar_normals = N <= 2   ? 0
                                    : N == 3 ? 4
                                    : N == 4 ? 8
                                             : N*(N + 1) / 2 - 1;

/// Uniform rotation from N(N+1)/2 − 1 normal numbers.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE SquareMatrix<T, N> haar_from_reflections(const T* normal) {
  using std::sqrt;
  SquareMatrix<T, N> q = identity_matrix<T, N>();
  // Reflector k maps x, its N − k normal numbers, to −s ‖x‖ e_k, s the sign of x_k. Times diag(−s, 1, …), which
  // has determinant s in all, it maps e_k to x/‖x‖.
  T sign = T(1);
  const T* x = normal;
  for (int k = 0; k < N - 1; ++k) {
    sign = select(x[0] < T(0), -sign, sign);
    x += N - k;
  }
  q(N - 1, N - 1) = sign;
  for (int k = N - 2; k >= 0; --k) {
    x -= N - k;
    T squared = x[0] * x[0];
    for (int i = 1; i < N - k; ++i) squared += x[i] * x[i];
    // All numbers zero (injected noise, underflow): x = e_k then.
    const auto usable = squared > T(std::numeric_limits<scalar_of_t<T>>::min());
    const T norm = select(usable, sqrt(select(usable, squared, T(1))), T(1));
    const T head = select(usable, x[0], T(1));
    const T inverse_norm = T(1) / norm;
    const T v = head + select(head < T(0), -norm, norm);      // v_k; the other entries of v are those of x
    const T scale = T(1) / (norm * select(v < T(0), -v, v));  // 2/‖v‖²
    for (int c = k + 1; c < N; ++c) {
      T sum = T(0);
      for (int i = k + 1; i < N; ++i) sum += x[i - k] * q(i, c);
      sum *= scale;
      q(k, c) = -sum * v;
      for (int i = k + 1; i < N; ++i) q(i, c) -= sum * x[i - k];
    }
    q(k, k) = head * inverse_norm;
    for (int i = k + 1; i < N; ++i) q(i, k) = x[i - k] * inverse_norm;
  }
  return q;
}

}  // namespace detail

/// Draws of a stream that haar_rotation<T, N> consumes.
template <int N>
inline constexpr std::uint32_t haar_draws = N == 1 ? 0u
                                            : N == 2
                                                ? 1u
                                                : static_cast<std::uint32_t>((detail::haar_normals<N> + 3) / 4);

/// Uniform on SO(N).
///
/// \param id          canonical number of the arc (T = Pack: one per lane)
/// \param first_draw  the draws first_draw … first_draw + haar_draws<N> − 1 are consumed
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> haar_rotation(const Stream& stream, const word_of_t<T>& id,
                                                                 std::uint32_t first_draw = 0) {
  static_assert(N >= 1);
  if constexpr (N == 1) {
    return identity_matrix<T, 1>();
  } else if constexpr (N == 2) {
    using std::cos;
    using std::sin;
    const T angle =
        T(6.283185307179586476925286766559) * uniform_from_word<T>(stream.words(id, first_draw).word[0]);
    SquareMatrix<T, 2> q;
    q(0, 0) = q(1, 1) = cos(angle);
    q(1, 0) = sin(angle);
    q(0, 1) = -q(1, 0);
    return q;
  } else {
    T normal[detail::haar_normals<N>];
    fill_normals<detail::haar_normals<N>, T>(normal, stream, id, first_draw);
    if constexpr (N == 3) {
      const Column<T, 4> z(normal[0], normal[1], normal[2], normal[3]);
      return quaternion_rotation<T>(normalised_quaternion<T>(z));
    } else if constexpr (N == 4) {
      const Column<T, 4> p(normal[0], normal[1], normal[2], normal[3]);
      const Column<T, 4> q(normal[4], normal[5], normal[6], normal[7]);
      return quaternion_pair_rotation<T>(normalised_quaternion<T>(p), normalised_quaternion<T>(q));
    } else {
      return detail::haar_from_reflections<T, N>(normal);
    }
  }
}

}  // namespace sheafnn
