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
#include "sheafnn/random/turns.hpp"
#include "sheafnn/random/words.hpp"
#include "sheafnn/rotation/quaternion.hpp"

namespace sheafnn {

namespace detail {

/// Normal numbers behind a uniform rotation (N = 2 takes a uniform one instead).
template <int N>
inline constexpr int haar_normals = N <= 2   ? 0
                                    : N == 3 ? 4
                                    : N == 4 ? 8
                                             : N*(N + 1) / 2 - 1;

/// A cosine, uniform on (−1, 1), as 1 − `rest` with the sign of `negative`: where it is near ±1, `rest` still has the
/// word's 31 bits (float: 24 of them).
template <class T>
struct UniformCosine {
  T rest;
  decltype(highest_bit<T>(word_of_t<T>{})) negative;
};
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE UniformCosine<T> uniform_cosine(const word_of_t<T>& word) {
  using S = scalar_of_t<T>;
  const auto negative = highest_bit<T>(word);
  const T number = (signed_number<T>(word) + T(S(0.5))) * T(S(1.0 / 2147483648.0));
  return {select(negative, -number, number), negative};
}

/// Shoemake's uniform quaternion (√(1−u) (cos, sin) θ₁, √u (sin, cos) θ₂); u = (1 − cosine)/2 from the first word, the
/// angles from the next two.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Column<T, 4> uniform_quaternion(const PhiloxBlock<word_of_t<T>>& block) {
  using std::sqrt;
  const UniformCosine<T> cosine = uniform_cosine<T>(block.word[0]);
  const T half = T(scalar_of_t<T>(0.5)) * cosine.rest;
  const T less = sqrt(half);
  const T more = sqrt(T(1) - half);
  const T first = select(cosine.negative, less, more);
  const T second = select(cosine.negative, more, less);
  T sine1, cosine1, sine2, cosine2;
  sin_cos_of_word<T>(block.word[1], sine1, cosine1);
  sin_cos_of_word<T>(block.word[2], sine2, cosine2);
  return Column<T, 4>(first * cosine1, first * sine1, second * sine2, second * cosine2);
}

/// The rotation of uniform_quaternion, from the angles α = θ₁ − θ₂ and β = θ₁ + θ₂ and the cosine c = 1 − 2u of γ:
/// R_x(α) R_z(γ) R_x(β), with a single root.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE SquareMatrix<T, 3> haar_from_words(const PhiloxBlock<word_of_t<T>>& block) {
  using std::sqrt;
  const UniformCosine<T> cosine = uniform_cosine<T>(block.word[0]);
  const T less = T(1) - cosine.rest;
  const T c = select(cosine.negative, -less, less);
  const T s = sqrt(cosine.rest * (T(2) - cosine.rest));
  T sa, ca, sb, cb;
  sin_cos_of_word<T>(block.word[1] - block.word[2], sa, ca);
  sin_cos_of_word<T>(block.word[1] + block.word[2], sb, cb);
  const T cac = ca * c;
  const T sac = sa * c;
  SquareMatrix<T, 3> r;
  r(0, 0) = c;
  r(1, 0) = ca * s;
  r(2, 0) = sa * s;
  r(0, 1) = -(s * cb);
  r(1, 1) = cac * cb - sa * sb;
  r(2, 1) = sac * cb + ca * sb;
  r(0, 2) = s * sb;
  r(1, 2) = -(cac * sb) - sa * cb;
  r(2, 2) = ca * cb - sac * sb;
  return r;
}

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

}  // namespace sheafnn
