/// \file
/// Text of the tables.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace benchmarks {

/// Printf into a string.
template <class... Arguments>
[[nodiscard]] std::string format(const char* pattern, const Arguments&... arguments) {
  std::string text(static_cast<std::size_t>(std::snprintf(nullptr, 0, pattern, arguments...)) + 1, '\0');
  std::snprintf(text.data(), text.size(), pattern, arguments...);
  text.pop_back();
  return text;
}

/// A positive number with three digits that count: "1230", "45.6", "0.789".
[[nodiscard]] inline std::string figure(double value) {
  const int digits = value < 1e-9 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(value))), 0, 9);
  return format("%.*f", digits, value);
}

/// One line of a markdown table.
[[nodiscard]] inline std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text.append(" ").append(cell).append(" |");
  return text.append("\n");
}

/// The first two lines of a markdown table.
[[nodiscard]] inline std::string head(const std::vector<std::string>& cells) {
  return row(cells).append(row(std::vector<std::string>(cells.size(), "---")));
}

}  // namespace benchmarks
