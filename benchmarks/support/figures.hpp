/// \file
/// Measurements as names with figures.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace benchmarks {

/// One line of results.
struct Measurement {
  std::string name;                      ///< parts separated by /, e.g. "film/bsnn/diagonal"
  std::map<std::string, double> values;  ///< the counters

  /// A figure, or 0 where it was not measured.
  [[nodiscard]] double operator[](const std::string& value) const {
    const auto found = values.find(value);
    return found == values.end() ? 0 : found->second;
  }
  /// Part i = 0, 1, … of the name; empty behind the last.
  [[nodiscard]] std::string part(std::size_t i) const {
    std::size_t begin = 0;
    for (; i > 0 && begin != std::string::npos; --i) {
      begin = name.find('/', begin);
      if (begin != std::string::npos) ++begin;
    }
    return begin == std::string::npos ? "" : name.substr(begin, name.find('/', begin) - begin);
  }
};

/// The measurement of that name; null when there is none.
[[nodiscard]] inline const Measurement* find(const std::vector<Measurement>& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Measurement& m) { return m.name == name; });
  return found == all.end() ? nullptr : &*found;
}

/// Middle of the values (mean of the two middle ones), 0 when there are none.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace benchmarks
