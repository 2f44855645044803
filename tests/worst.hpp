/// \file
/// The largest of many errors.
#pragma once

#include <algorithm>
#include <limits>

namespace test {

/// The larger error; NaN counts as infinite, so that it cannot be lost among others.
[[nodiscard]] inline double worse(double a, double b) {
  return a <= std::numeric_limits<double>::max() && b <= std::numeric_limits<double>::max()
             ? std::max(a, b)
             : std::numeric_limits<double>::infinity();
}

}  // namespace test
