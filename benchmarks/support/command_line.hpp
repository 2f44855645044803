/// \file
/// Options of the benchmark programs.
#pragma once

#include <algorithm>
#include <charconv>
#include <sheafnn/core/errors.hpp>
#include <string_view>
#include <system_error>

namespace benchmarks {

/// Takes "--NAME VALUE" out of the command line; `fallback` when it is not there.
///
/// \throws std::invalid_argument  a value that is no number of [min, max]
[[nodiscard]] inline double take_option(int& argc, char** argv, std::string_view name, double fallback, double min,
                                        double max) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i] != name) continue;
    const std::string_view text = i + 1 < argc ? argv[i + 1] : "";
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    sheafnn::require(error == std::errc{} && end == text.data() + text.size() && value >= min && value <= max,
                     name, text, sheafnn::detail::concat("must be a number between ", min, " and ", max));
    std::copy(argv + std::min(i + 2, argc), argv + argc, argv + i);
    argc = std::max(i, argc - 2);
    return value;
  }
  return fallback;
}

}  // namespace benchmarks
