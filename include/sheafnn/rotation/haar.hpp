/// \file
/// Uniform (Haar) rotations: a pure function of (stream, id), for any dimension.
///
/// N = 2 an angle, 3 three angles, 4 a pair of quaternions (uniform_quaternion.hpp). Otherwise the orthogonal factor of a
/// matrix of normal numbers, with the sign fix that makes it uniform, without forming that matrix. What Householder
/// reflections leave of its columns is normal again (Stewart, "The efficient generation of random orthogonal matrices", SIAM
/// J. Numer. Anal. 17, 1980), so that reflector k comes from N − k fresh normal numbers. The last column's sign makes the
/// determinant +1.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/random/words.hpp"
#include "sheafnn/rotation/quaternion.hpp"
#include "sheafnn/rotation/uniform_quaternion.hpp"

namespace sheafnn::detail {

/// Normal numbers per uniform rotation of dimension 5 and more.
template <int N>
inline constexpr int haar_normals = (N * N + N) / 2 - 1;

/// Position of the N − k values of reflector k among them.
template <int N>
[[nodiscard]] SHEAFNN_HD constexpr int reflector_start(int k) {
  return k * N - k * (k - 1) / 2;
}

/// Uniform rotation from N(N+1)/2 − 1 normal numbers.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE SquareMatrix<T, N> haar_from_reflections(const T* normal) {
  using std::sqrt;
  // Reflector k maps x, its N − k normal numbers, to −s ‖x‖ e_k, s the sign of x_k. Times diag(−s, 1, …), which
  // has determinant s in all, it maps e_k to x/‖x‖.
  T diagonal[N], v[N], scale[N], inverse_norm[N];
  T sign = T(1);
  SHEAFNN_UNROLL for (int k = 0; k < N - 1; ++k) {
    const T* x = normal + reflector_start<N>(k);
    T squared = x[0] * x[0];
    SHEAFNN_UNROLL for (int i = 1; i < N - k; ++i) squared += x[i] * x[i];
    // All numbers zero (injected noise, underflow): x = e_k then.
    const auto usable = squared > T(std::numeric_limits<scalar_of_t<T>>::min());
    const T norm = select(usable, sqrt(select(usable, squared, T(1))), T(1));
    const T head = select(usable, x[0], T(1));
    const auto negative = head < T(0);
    const T size = norm + select(negative, -head, head);
    sign = select(negative, -sign, sign);
    v[k] = select(negative, -size, size);  // the other entries of v equal the entries of x
    scale[k] = T(1) / (norm * size);       // 2/‖v‖²
    inverse_norm[k] = scale[k] * size;
    diagonal[k] = head * inverse_norm[k];
  }
  diagonal[N - 1] = sign;
  // Column c: x/‖x‖ of reflector c, through the reflectors before it.
  SquareMatrix<T, N> q;
  SHEAFNN_UNROLL for (int c = 0; c < N; ++c) {
    T column[N];
    column[c] = diagonal[c];
    const T* own = normal + reflector_start<N>(c) - c;
    SHEAFNN_UNROLL for (int i = c + 1; i < N; ++i) column[i] = own[i] * inverse_norm[c];
    SHEAFNN_UNROLL for (int k = c - 1; k >= 0; --k) {
      const T* x = normal + reflector_start<N>(k) - k;
      T sum = x[k + 1] * column[k + 1];
      SHEAFNN_UNROLL for (int i = k + 2; i < N; ++i) sum += x[i] * column[i];
      sum *= scale[k];
      column[k] = -sum * v[k];
      SHEAFNN_UNROLL for (int i = k + 1; i < N; ++i) column[i] -= sum * x[i];
    }
    SHEAFNN_UNROLL for (int i = 0; i < N; ++i) q(i, c) = column[i];
  }
  return q;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// Draws of a stream that haar_rotation<T, N> consumes.
template <int N>
inline constexpr std::uint32_t haar_draws = N == 1   ? 0u
                                            : N <= 3 ? 1u
                                            : N == 4
                                                ? 2u
                                                : static_cast<std::uint32_t>((detail::haar_normals<N> + 3) / 4);

/// Uniform on SO(N).
///
/// \param id          canonical index of the arc (T = Pack: one per lane)
/// \param first_draw  the draws first_draw … first_draw + haar_draws<N> − 1 are consumed
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SquareMatrix<T, N> haar_rotation(const Stream& stream, const word_of_t<T>& id,
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
  } else if constexpr (N == 3) {
    return detail::haar_from_words<T>(stream.words(id, first_draw));
  } else if constexpr (N == 4) {
    return quaternion_pair_rotation<T>(detail::uniform_quaternion<T>(stream.words(id, first_draw)),
                                       detail::uniform_quaternion<T>(stream.words(id, first_draw + 1)));
  } else {
    T normal[detail::haar_normals<N>];
    fill_normals<detail::haar_normals<N>, T>(normal, stream, id, first_draw);
    return detail::haar_from_reflections<T, N>(normal);
  }
}

}  // namespace sheafnn::rotation
