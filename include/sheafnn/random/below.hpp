/// \file
/// Random words as whole numbers below a bound.
#pragma once

#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/random/philox.hpp"

namespace sheafnn::detail {

/// A word as a whole number in [0, bound); the bias is below bound / 2³².
[[nodiscard]] inline std::uint32_t below(std::uint32_t word, Index bound) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(bound)) >> 32);
}

/// ⌊a b / 2⁶⁴⌋.
[[nodiscard]] inline std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t low = 0xffffffffU;
  const std::uint64_t cross = (a & low) * (b & low) >> 32, left = (a >> 32) * (b & low) + cross;
  return (a >> 32) * (b >> 32) + (left >> 32) + (((a & low) * (b >> 32) + (left & low)) >> 32);
}

/// The first two words of a block as a whole number in [0, bound); the bias is below bound / 2⁶⁴.
[[nodiscard]] inline Index below(const random::PhiloxBlock<std::uint32_t>& block, Index bound) {
  const std::uint64_t word = static_cast<std::uint64_t>(block.word[0]) << 32 | block.word[1];
  return static_cast<Index>(high_product(word, static_cast<std::uint64_t>(bound)));
}

}  // namespace sheafnn::detail
