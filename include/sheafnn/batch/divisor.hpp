/// \file
/// Divisor: division by an integer that is known before a kernel is launched, as a product and a shift. A division of
/// 64-bit numbers is about eighty instructions on a GPU, and of 32-bit numbers about twenty.
///
/// Unchecked: numbers in [0, 2³¹); sizes of networks are checked where they are built.
#pragma once

#include <cstdint>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::batch {

/// A divisor from 1 to 2³¹ − 1. n / divisor and n % divisor are exact for 0 ≤ n < 2³¹.
///
/// With 2^{s−1} < d ≤ 2^s and M = ⌈2^{31+s}/d⌉ < 2³²: ⌊n/d⌋ = ⌊nM/2^{31+s}⌋, because M exceeds 2^{31+s}/d by less than
/// 2^s/d, and n < 2³¹.
class Divisor {
 public:
  /// One.
  constexpr Divisor() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): kernels are given sizes
  constexpr Divisor(Index value) : value_(static_cast<std::uint32_t>(value)) {
    while (value > Index{1} << shift_) ++shift_;
    if (value > 1) {
      const std::uint64_t divisor = static_cast<std::uint64_t>(value);
      multiplier_ = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + shift_)) + divisor - 1) / divisor);
    }
  }

  // NOLINTNEXTLINE(google-explicit-constructor): as above
  [[nodiscard]] SHEAFNN_HD constexpr operator Index() const noexcept { return static_cast<Index>(value_); }
  [[nodiscard]] SHEAFNN_HD constexpr std::uint32_t value() const noexcept { return value_; }

  [[nodiscard]] SHEAFNN_HD constexpr std::uint32_t quotient(std::uint32_t n) const noexcept {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(2 * n) * multiplier_) >> 32) >> shift_;
  }
  [[nodiscard]] SHEAFNN_HD friend constexpr Index operator/(Index n, const Divisor& d) noexcept {
    return static_cast<Index>(d.quotient(static_cast<std::uint32_t>(n)));
  }
  [[nodiscard]] SHEAFNN_HD friend constexpr Index operator%(Index n, const Divisor& d) noexcept {
    const std::uint32_t number = static_cast<std::uint32_t>(n);
    return static_cast<Index>(number - d.quotient(number) * d.value_);
  }

 private:
  std::uint32_t value_ = 1, multiplier_ = std::uint32_t{1} << 31, shift_ = 0;
};

namespace detail {

/// \throws std::invalid_argument  2³¹ or more of something that kernels count in 32 bits
inline void require_countable(std::string_view what, Index count) {
  require(count < Index{1} << 31, sheafnn::detail::concat("number of ", what), count,
          "kernels count them in 32 bits: must be below 2^31");
}

}  // namespace detail

}  // namespace sheafnn::batch
