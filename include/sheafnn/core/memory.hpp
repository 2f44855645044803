/// \file
/// How much memory there is, and the refusal of arrays that cannot fit into it before they are allocated: systems grant
/// more memory than they have, and end the process when it is written to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

#include "sheafnn/core/errors.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace sheafnn {

/// Bytes of memory that a process may use: those of the machine, or of its control group on Linux; infinite where the
/// system does not tell. A double, so that products of sizes cannot overflow.
[[nodiscard]] inline double memory_limit() {
  double limit = std::numeric_limits<double>::infinity();
#if (defined(__unix__) || defined(__APPLE__)) && defined(_SC_PHYS_PAGES)
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_size = ::sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page_size > 0) limit = static_cast<double>(pages) * static_cast<double>(page_size);
#endif
#if defined(__linux__)
  double group = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> group && group > 0) limit = std::min(limit, group);
#endif
  return limit;
}

/// "1.5 GiB". Takes any number.
[[nodiscard]] inline std::string memory_text(double bytes) {
  constexpr std::string_view units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  std::ostringstream text;
  text.exceptions(std::ios::badbit);
  text.precision(bytes < 1000 ? 3 : 4);
  text << bytes << ' ' << units[unit];
  return text.str();
}

/// Refuses an argument whose arrays would take more than `limit` bytes.
///
/// \throws std::invalid_argument  naming the argument, its value, what it needs and the limit
template <class Value>
void require_memory(std::string_view argument, const Value& value, double bytes, double limit = memory_limit()) {
  if (bytes <= limit) return;
  throw_invalid_argument(argument, value,
                         detail::concat("needs ", memory_text(bytes), " of memory; there are ",
                                        memory_text(limit)));
}

}  // namespace sheafnn
