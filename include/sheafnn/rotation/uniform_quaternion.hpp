/// \file
/// Uniform unit quaternions, and the uniform rotations of R³ they stand for, from three random words, without
/// logarithms.
///
/// Source: Shoemake, "Uniform random rotations", Graphics Gems III, 1992. A unit quaternion is a pair of complex numbers of
/// angles θ₁ and θ₂ whose squared sizes are 1 − u and u. It is uniform when u, θ₁ and θ₂ are (math, "Rotations").
#pragma once

#include <cmath>
#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/philox.hpp"
#include "sheafnn/random/turns.hpp"
#include "sheafnn/random/words.hpp"

namespace sheafnn::detail {

/// A cosine, uniform on (−1, 1), as 1 − `rest` with the sign of `negative`. Where it is near ±1, `rest` still has the word's
/// 31 bits (float: 24 bits).
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

/// Shoemake's uniform quaternion (√(1−u) (cos, sin) θ₁, √u (sin, cos) θ₂); u = (1 − cosine)/2 from the first word,
/// the angles from the next two.
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
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE SquareMatrix<T, 3> haar_from_words(
    const PhiloxBlock<word_of_t<T>>& block) {
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

}  // namespace sheafnn::detail
