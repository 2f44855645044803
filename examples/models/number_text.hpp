/// \file
/// Numbers as text.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

namespace programs {

/// A number by a printf format for double.
[[nodiscard]] inline std::string text(const char* format, double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

/// The same, or `unknown` where it is NaN.
[[nodiscard]] inline std::string text_or(const char* unknown, const char* format, double value) {
  return std::isnan(value) ? unknown : text(format, value);
}

}  // namespace programs
