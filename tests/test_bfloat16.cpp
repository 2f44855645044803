/// \file
/// bfloat16: rounding, special values, arrays.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sheafnn/core/bfloat16.hpp"

namespace test_bfloat16 {

using sheafnn::Index;
using sheafnn::detail::from_bfloat16;
using sheafnn::detail::to_bfloat16;

TEST_CASE("bfloat16: values round to the nearest, and special values stay") {
  using Limits = std::numeric_limits<float>;
  for (const float value :
       {0.0f, -0.0f, 1.0f, -1.5f, 0x1.8p-132f, 0x1.fep127f, Limits::infinity(), -Limits::infinity()}) {
    CAPTURE(value);
    CHECK(from_bfloat16(to_bfloat16(value)) == value);
    CHECK(std::signbit(from_bfloat16(to_bfloat16(value))) == std::signbit(value));
  }
  for (const float nan : {Limits::quiet_NaN(), -Limits::quiet_NaN(), std::bit_cast<float>(0x7f800001u)}) {
    CHECK(std::isnan(from_bfloat16(to_bfloat16(nan))));
  }
  CHECK(from_bfloat16(to_bfloat16(Limits::max())) == Limits::infinity());
  CHECK(from_bfloat16(to_bfloat16(0x1.01p0f)) == 0x1.00p0f);  // ties go to the even neighbour
  CHECK(from_bfloat16(to_bfloat16(0x1.03p0f)) == 0x1.04p0f);
  CHECK(from_bfloat16(to_bfloat16(0x1.0101p0f)) == 0x1.02p0f);
  CHECK(from_bfloat16(to_bfloat16(0x1.ffp0f)) == 0x1p1f);
  for (std::uint32_t bits = 0x00800000u; bits < 0x7f7f0000u; bits += 0x1235u) {  // all exponents of normal values
    const float value = std::bit_cast<float>(bits), rounded = from_bfloat16(to_bfloat16(value));
    if (!(std::abs(rounded - value) <= 0x1p-8f * value)) CHECK(rounded == value);
  }
}
TEST_CASE("bfloat16: arrays of any length") {
  for (const Index size : {0, 1, 63, 64, 65, 5000}) {
    CAPTURE(size);
    std::vector<double> values(static_cast<std::size_t>(size)), back(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i) + 1);
    std::vector<std::uint16_t> halves(values.size());
    sheafnn::detail::to_bfloat16(2, size, values.data(), halves.data());
    sheafnn::detail::from_bfloat16(2, size, halves.data(), back.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      CHECK(back[i] == double{from_bfloat16(to_bfloat16(static_cast<float>(values[i])))});
    }
  }
}

}  // namespace test_bfloat16
