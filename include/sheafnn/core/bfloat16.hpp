/// \file
/// Arrays in 16 bits: bfloat16 is the upper half of a float's bits, so that it has a float's range and 8 significant bits. A
/// value is rounded to the nearest, of two to the even one, with a relative error of 2⁻⁸ at most. Values of a magnitude
/// from 3.396e38 on become infinite, and NaN stays NaN.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "sheafnn/core/parallel.hpp"

namespace sheafnn::detail {

/// Takes any.
[[nodiscard]] constexpr std::uint16_t to_bfloat16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);  // may carry into the exponent, as it should
  return static_cast<std::uint16_t>((is_nan ? bits | 0x400000u : rounded) >> 16);
}
/// Takes any.
[[nodiscard]] constexpr float from_bfloat16(std::uint16_t half) noexcept {
  return std::bit_cast<float>(std::uint32_t{half} << 16);
}

/// Calls convert(i) for i = 0 … size − 1. Loops of a constant length, which compilers make wide.
template <class Convert>
void for_each_converted(Execution execution, Index size, const Convert& convert) {
  constexpr Index tile = 64;
  parallel_for(execution, size / tile, 64, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      for (Index i = 0; i < tile; ++i) convert(t * tile + i);
    }
  });
  for (Index i = size / tile * tile; i < size; ++i) convert(i);
}
/// Unchecked: `size` values in both arrays, which do not overlap.
template <class S>
SHEAFNN_NOINLINE void to_bfloat16(Execution execution, Index size, const S* from, std::uint16_t* to) {
  for_each_converted(execution, size, [=](Index i) { to[i] = to_bfloat16(static_cast<float>(from[i])); });
}
/// Unchecked: as to_bfloat16().
template <class S>
SHEAFNN_NOINLINE void from_bfloat16(Execution execution, Index size, const std::uint16_t* from, S* to) {
  for_each_converted(execution, size, [=](Index i) { to[i] = static_cast<S>(from_bfloat16(from[i])); });
}

}  // namespace sheafnn::detail
