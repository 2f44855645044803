/// \file
/// Pack<T, W>: W values side by side that behave like a scalar.
///
/// Per-arc and per-node mathematics is written once over a scalar type T. With T = float or double it is the plain
/// reference. With T = Pack<float, 16> (AVX-512) or Pack<float, 8> (elsewhere) the same code treats sixteen or eight arcs at
/// a time in vector registers. A Pack is made of compiler vectors of the width the target has, so that it lives in
/// registers. Exponentials come from core/pack_functions.hpp, other functions from Eigen. Branches become select(mask, a,
/// b).
///
/// Translation units that exchange packs must be compiled for the same instruction set.
///
/// Unchecked: pointers to W values, indices of lanes, and numbers of bits to shift. Arithmetic takes every number, NaN
/// and infinities included, as IEEE 754 has it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/eigen.hpp"
#include "sheafnn/core/pack_functions.hpp"
#include "sheafnn/core/vector_sqrt.hpp"

#if defined(__AVX512DQ__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace sheafnn::detail {

#if SHEAFNN_VECTOR_TYPES
/// The compiler vector of T that fills one register (or the whole pack, when that is smaller).
template <class T, int W>
struct VectorOf {
  static constexpr int bytes =
      static_cast<int>(sizeof(T)) * W < register_bytes ? static_cast<int>(sizeof(T)) * W : register_bytes;
  typedef T type __attribute__((vector_size(bytes)));
  static constexpr int count = static_cast<int>(sizeof(T)) * W / bytes;
};

#if defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
template <class V, std::size_t... I>
SHEAFNN_INLINE auto halves_added(const V& v, std::index_sequence<I...>) {
  return __builtin_shufflevector(v, v, static_cast<int>(I)...) +
         __builtin_shufflevector(v, v, static_cast<int>(I + sizeof...(I))...);
}
/// Sum of the W elements of a compiler vector, by halves.
template <class T, int W, class V>
SHEAFNN_INLINE T sum_halves(const V& v) {
  if constexpr (W == 1) {
    return v[0];
  } else if constexpr (W == 2) {
    return v[0] + v[1];
  } else {
    return sum_halves<T, W / 2>(halves_added(v, std::make_index_sequence<W / 2>{}));
  }
}
#endif
#else
template <class T, int W>
struct VectorOf {
  using type = T;
  static constexpr int count = W;
};
#endif

#if SHEAFNN_AVX2
/// Bytes of the register that one chunk of a pack of floats is; may it use the functions of core/pack_functions.hpp?
template <int W>
inline constexpr int float_chunk_bytes = VectorOf<float, W>::bytes;
template <int W>
inline constexpr bool pack_has_functions = has_float_functions<float_chunk_bytes<W>>;
#endif

/// Where there are no compiler vectors, packs are read and written in parts of 16 bytes.
template <class T, int W>
inline constexpr std::size_t pack_alignment = SHEAFNN_VECTOR_TYPES != 0 || sizeof(T) * W < 16
                                                  ? alignof(typename VectorOf<T, W>::type)
                                                  : 16;

/// Do functions of packs take lane after lane? On devices, which have no other.
#if defined(__CUDACC__)
inline constexpr bool one_by_one = true;
#else
inline constexpr bool one_by_one = false;
#endif

}  // namespace sheafnn::detail

namespace sheafnn::math {

/// Result of comparing two packs: one boolean per lane, for select().
template <class T, int W>
struct PackMask {
  using Chunk = decltype(typename detail::VectorOf<T, W>::type{} < typename detail::VectorOf<T, W>::type{});
  static constexpr int chunks = detail::VectorOf<T, W>::count;
  Chunk chunk[chunks];

  friend SHEAFNN_HD SHEAFNN_INLINE PackMask operator&(const PackMask& a, const PackMask& b) {
    PackMask r;
    SHEAFNN_EACH(i, chunks, r.chunk[i] = a.chunk[i] & b.chunk[i];)
    return r;
  }
};

/// W lanes of T (float, double, std::int32_t or std::uint32_t) with lane-wise arithmetic.
template <class T, int W>
struct alignas(detail::pack_alignment<T, W>) Pack {
  static_assert(W > 0 && (W & (W - 1)) == 0, "the number of lanes is a power of two");
  using value_type = T;
  using Chunk = typename detail::VectorOf<T, W>::type;
  static constexpr int width = W;
  static constexpr int chunks = detail::VectorOf<T, W>::count;

  Chunk chunk[chunks];

  Pack() = default;
  /// The same value in every lane. (x − 0 is x for every x, as compilers know; 0 + x is not.)
  // NOLINTNEXTLINE(google-explicit-constructor): a number is a pack of equal lanes
  SHEAFNN_HD SHEAFNN_INLINE Pack(T value) { SHEAFNN_EACH(i, chunks, chunk[i] = value - Chunk{};) }
  /// The same value in every lane, converted to T (lets generic code write T(2), x * 0.5, Matrix::Constant(0),
  /// ...).
  template <class U>
    requires(std::is_arithmetic_v<U> && !std::is_same_v<U, T>)
  // NOLINTNEXTLINE(google-explicit-constructor): a number is a pack of equal lanes
  SHEAFNN_HD SHEAFNN_INLINE Pack(U value) : Pack(static_cast<T>(value)) {}

  /// Reads W consecutive values; `p` needs no alignment.
  [[nodiscard]] static SHEAFNN_HD SHEAFNN_INLINE Pack load(const T* p) {
    // A copy per register: g++ copies a longer array in parts of 16 bytes through the stack.
    Pack r;
    SHEAFNN_EACH(i, chunks, { std::memcpy(&r.chunk[i], p + i * (W / chunks), sizeof(Chunk)); })
    return r;
  }
  /// Writes W consecutive values; `p` needs no alignment.
  SHEAFNN_HD SHEAFNN_INLINE void store(T* p) const {
    SHEAFNN_EACH(i, chunks, { std::memcpy(p + i * (W / chunks), &chunk[i], sizeof(Chunk)); })
  }

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T lane(int i) const {
#if SHEAFNN_VECTOR_TYPES
    T values[W];
    store(values);
    return values[i];
#else
    return chunk[i];
#endif
  }
  SHEAFNN_HD SHEAFNN_INLINE void set_lane(int i, T value) {
    T values[W];
    store(values);
    values[i] = value;
    std::memcpy(chunk, values, sizeof chunk);
  }

  /// The first and the second half of the lanes, of packs of an even number of registers.
  [[nodiscard]] SHEAFNN_INLINE Pack<T, W / 2> lower() const { return half(0); }
  [[nodiscard]] SHEAFNN_INLINE Pack<T, W / 2> upper() const { return half(chunks / 2); }

#define SHEAFNN_PACK_OPERATOR(op)                                                   \
  friend SHEAFNN_HD SHEAFNN_INLINE Pack operator op(const Pack& a, const Pack& b) { \
    Pack r;                                                                         \
    SHEAFNN_EACH(i, chunks, r.chunk[i] = a.chunk[i] op b.chunk[i];)                 \
    return r;                                                                       \
  }                                                                                 \
  SHEAFNN_HD SHEAFNN_INLINE Pack& operator op##=(const Pack& b) { return *this = *this op b; }
  SHEAFNN_PACK_OPERATOR(+)
  SHEAFNN_PACK_OPERATOR(-)
  SHEAFNN_PACK_OPERATOR(*)
  SHEAFNN_PACK_OPERATOR(/)
#undef SHEAFNN_PACK_OPERATOR

  friend SHEAFNN_HD SHEAFNN_INLINE Pack operator-(const Pack& a) {
    Pack r;
    SHEAFNN_EACH(i, chunks, r.chunk[i] = -a.chunk[i];)
    return r;
  }
  friend SHEAFNN_HD SHEAFNN_INLINE Pack operator^(const Pack& a, const Pack& b) requires std::is_integral_v<T> {
    Pack r;
    SHEAFNN_EACH(i, chunks, r.chunk[i] = a.chunk[i] ^ b.chunk[i];)
    return r;
  }
  friend SHEAFNN_HD SHEAFNN_INLINE Pack operator&(const Pack& a, const Pack& b) requires std::is_integral_v<T> {
    Pack r;
    SHEAFNN_EACH(i, chunks, r.chunk[i] = a.chunk[i] & b.chunk[i];)
    return r;
  }
  friend SHEAFNN_HD SHEAFNN_INLINE Pack operator<<(const Pack& a, int bits) requires std::is_integral_v<T> {
    Pack r;
    SHEAFNN_EACH(i, chunks, r.chunk[i] = a.chunk[i] << bits;)
    return r;
  }
  friend SHEAFNN_HD SHEAFNN_INLINE Pack operator>>(const Pack& a, int bits) requires std::is_integral_v<T> {
    Pack r;
    SHEAFNN_EACH(i, chunks, r.chunk[i] = a.chunk[i] >> bits;)
    return r;
  }

#define SHEAFNN_PACK_COMPARISON(op)                                                           \
  friend SHEAFNN_HD SHEAFNN_INLINE PackMask<T, W> operator op(const Pack& a, const Pack& b) { \
    PackMask<T, W> r;                                                                         \
    SHEAFNN_EACH(i, chunks, r.chunk[i] = a.chunk[i] op b.chunk[i];)                           \
    return r;                                                                                 \
  }
  SHEAFNN_PACK_COMPARISON(<)
  SHEAFNN_PACK_COMPARISON(<=)
  SHEAFNN_PACK_COMPARISON(>)
  SHEAFNN_PACK_COMPARISON(>=)
#undef SHEAFNN_PACK_COMPARISON

 private:
  [[nodiscard]] SHEAFNN_INLINE Pack<T, W / 2> half(int first) const {
    static_assert(chunks % 2 == 0);
    Pack<T, W / 2> r;
    SHEAFNN_EACH(i, chunks / 2, r.chunk[i] = chunk[first + i];)
    return r;
  }
};

/// Lane by lane: mask ? a : b. The scalar form lets the same code run on float and double.
template <class T, int W>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Pack<T, W> select(const PackMask<T, W>& mask, const Pack<T, W>& a,
                                                          const Pack<T, W>& b) {
  Pack<T, W> r;
  SHEAFNN_EACH(i, (Pack<T, W>::chunks), { r.chunk[i] = mask.chunk[i] ? a.chunk[i] : b.chunk[i]; })
  return r;
}
/// As above, for scalars.
template <class T>
  requires std::is_arithmetic_v<T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T select(bool mask, T a, T b) { return mask ? a : b; }

/// The scalar under T: float for float and for Pack<float, W>.
template <class T>
struct ScalarOf {
  using type = T;
};
template <class T, int W>
struct ScalarOf<Pack<T, W>> {
  using type = T;
};
/// The scalar type of a Pack; of a scalar type itself.
template <class T>
using scalar_of_t = typename ScalarOf<T>::type;

// Eigen 5 vectorises sines and cosines in double precision, with errors of thousands of units in the last place near their
// zeros: these go lane by lane.
#define SHEAFNN_PACK_FUNCTION(name, function, lane_by_lane)                      \
  template <class T, int W>                                                      \
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Pack<T, W> name(const Pack<T, W>& a) { \
    if constexpr (detail::one_by_one || lane_by_lane) {                          \
      using std::function;                                                       \
      T x[W];                                                                    \
      a.store(x);                                                                \
      SHEAFNN_UNROLL for (int i = 0; i < W; ++i) x[i] = function(x[i]);          \
      return Pack<T, W>::load(x);                                                \
    } else {                                                                     \
      Eigen::Array<T, W, 1> x;                                                   \
      a.store(x.data());                                                         \
      x = x.function().eval();                                                   \
      return Pack<T, W>::load(x.data());                                         \
    }                                                                            \
  }
SHEAFNN_PACK_FUNCTION(expm1, expm1, false)
SHEAFNN_PACK_FUNCTION(log1p, log1p, false)
SHEAFNN_PACK_FUNCTION(sin, sin, (std::is_same_v<T, double>))
SHEAFNN_PACK_FUNCTION(cos, cos, (std::is_same_v<T, double>))
SHEAFNN_PACK_FUNCTION(tanh, tanh, false)
SHEAFNN_PACK_FUNCTION(usual_exp, exp, false)
SHEAFNN_PACK_FUNCTION(usual_log, log, false)
#undef SHEAFNN_PACK_FUNCTION

/// e^a, lane by lane, within two units of the last place. Below half of the least normal number it is 0; Eigen's stands
/// still there. Takes any numbers.
template <class T, int W>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Pack<T, W> exp(const Pack<T, W>& a) {
  constexpr T end = static_cast<T>(std::is_same_v<T, float> ? -88.02 : -709.08);
  return select(a < Pack<T, W>(end), Pack<T, W>(T(0)), usual_exp(a));
}
/// log a, lane by lane, within two units of the last place. Eigen's knows no subnormal numbers. Takes any numbers.
template <class T, int W>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Pack<T, W> log(const Pack<T, W>& a) {
  constexpr T power = static_cast<T>(0x1p64), shift = static_cast<T>(44.36141955583650);  // log 2^64
  const auto low = a < Pack<T, W>(std::numeric_limits<T>::min());
  return usual_log(select(low, a * power, a)) - select(low, Pack<T, W>(shift), Pack<T, W>(T(0)));
}
/// e^min(a, 0), T = float, double or Pack.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T exp_of_negative(const T& a) {
  using std::exp;
  return exp(select(a > T(0), T(0), a));
}
#if SHEAFNN_AVX2
template <int W>
  requires detail::pack_has_functions<W>
[[nodiscard]] SHEAFNN_INLINE Pack<float, W> exp(const Pack<float, W>& a) {
  Pack<float, W> r;
  SHEAFNN_EACH(i, (Pack<float, W>::chunks),
               { r.chunk[i] = detail::exp_of<detail::float_chunk_bytes<W>>(a.chunk[i]); })
  return r;
}
template <int W>
  requires detail::pack_has_functions<W>
[[nodiscard]] SHEAFNN_INLINE Pack<float, W> exp_of_negative(const Pack<float, W>& a) {
  Pack<float, W> r;
  SHEAFNN_EACH(i, (Pack<float, W>::chunks),
               { r.chunk[i] = detail::exp_of_negative_of<detail::float_chunk_bytes<W>>(a.chunk[i]); })
  return r;
}
#endif

/// √a, lane by lane. Takes any numbers.
template <class T, int W>
[[nodiscard]] SHEAFNN_INLINE Pack<T, W> sqrt(const Pack<T, W>& a) {
  Pack<T, W> r;
  SHEAFNN_EACH(i, (Pack<T, W>::chunks), r.chunk[i] = detail::vector_sqrt<T>(a.chunk[i]);)
  return r;
}

/// |a|, lane by lane. Takes any numbers.
template <class T, int W>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Pack<T, W> abs(const Pack<T, W>& a) {
  return select(a < Pack<T, W>(T(0)), -a, a);
}
/// The larger value, lane by lane; a if a or b is NaN. Takes any numbers.
template <class T, int W>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Pack<T, W> max(const Pack<T, W>& a, const Pack<T, W>& b) {
  return select(a < b, b, a);
}
/// The smaller value, lane by lane; a if a or b is NaN. Takes any numbers.
template <class T, int W>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Pack<T, W> min(const Pack<T, W>& a, const Pack<T, W>& b) {
  return select(b < a, b, a);
}

/// Angle of the point (x, y), lane by lane: Eigen has no vectorised one.
template <class T, int W>
[[nodiscard]] SHEAFNN_INLINE Pack<T, W> atan2(const Pack<T, W>& y, const Pack<T, W>& x) {
  T a[W], b[W];
  y.store(a);
  x.store(b);
  for (int i = 0; i < W; ++i) a[i] = std::atan2(a[i], b[i]);
  return Pack<T, W>::load(a);
}

/// A scalar is its own value.
template <class T>
  requires std::is_floating_point_v<T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T reduce_add(T a) { return a; }
#if SHEAFNN_VECTOR_TYPES && defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
/// What reduce_add() begins with: the sum of the chunks.
template <class T, int W>
[[nodiscard]] SHEAFNN_INLINE typename Pack<T, W>::Chunk chunks_added(const Pack<T, W>& a) {
  typename Pack<T, W>::Chunk sum[Pack<T, W>::chunks];
  SHEAFNN_EACH(i, (Pack<T, W>::chunks), sum[i] = a.chunk[i];)
  SHEAFNN_UNROLL for (int half = Pack<T, W>::chunks / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  }
  return sum[0];
}
#endif
/// Sum of all lanes: lane i and lane i + W/2 first, and so on by halves.
template <class T, int W>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T reduce_add(const Pack<T, W>& a) {
#if SHEAFNN_VECTOR_TYPES && defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
  return detail::sum_halves<T, W / Pack<T, W>::chunks>(chunks_added(a));
#else
  T values[W];
  a.store(values);
  SHEAFNN_UNROLL for (int half = W / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) values[i] += values[i + half];
  }
  return values[0];
#endif
}

}  // namespace sheafnn::math

/// Eigen may hold packs in its matrices: cheap, real, uninitialised like a float.
template <class T, int W>
struct Eigen::NumTraits<sheafnn::math::Pack<T, W>> : Eigen::GenericNumTraits<T> {
  using Real = sheafnn::math::Pack<T, W>;
  using NonInteger = sheafnn::math::Pack<T, W>;
  using Nested = sheafnn::math::Pack<T, W>;
  using Literal = T;
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 0,
    ReadCost = 1,
    AddCost = 1,
    MulCost = 1
  };
};
