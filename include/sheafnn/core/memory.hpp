/// \file
/// How much memory there is, and the refusal of arrays that cannot fit into it before they are allocated. Systems grant more
/// memory than they have, and end the process when it is written to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <istream>
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

namespace detail {

/// The least memory limit of control groups of Linux, in bytes; infinite without a limit.
///
/// \param groups  /proc/self/cgroup: lines "ID:CONTROLLERS:/PATH". CONTROLLERS is empty in version 2, and "memory",
///                among others, in version 1.
/// \param root    /sys/fs/cgroup. Every folder from it down to the path counts: a group is limited by the groups around it.
///                In a container the path may be a path of the outside.
[[nodiscard]] inline double memory_limit_of_groups(std::istream& groups, const std::string& root) {
  double least = std::numeric_limits<double>::infinity();
  const auto read = [&](const std::string& folder, std::string path, const char* file) {
    for (;; path.resize(path.find_last_of('/'))) {
      double limit = 0;  // "max" is not a number
      if (std::ifstream(folder + path + file) >> limit && limit > 0) least = std::min(least, limit);
      if (path.find('/') == std::string::npos) return;
    }
  };
  read(root, "", "/memory.max");
  read(root, "/memory", "/memory.limit_in_bytes");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',',
                      path = line.substr(second + 1);
    if (controllers == ",,") read(root, path, "/memory.max");
    if (controllers.find(",memory,") != std::string::npos) read(root + "/memory", path, "/memory.limit_in_bytes");
  }
  return least;
}

}  // namespace detail

/// Bytes of memory that a process may use: the machine's memory, or the limit of its control groups on Linux. They are
/// infinite if the system does not report it. The groups are read once. A double, so that products of sizes cannot overflow.
[[nodiscard]] inline double memory_limit() {
  double limit = std::numeric_limits<double>::infinity();
#if (defined(__unix__) || defined(__APPLE__)) && defined(_SC_PHYS_PAGES)
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_size = ::sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page_size > 0) limit = static_cast<double>(pages) * static_cast<double>(page_size);
#endif
#if defined(__linux__)
  static const double of_groups = [] {
    std::ifstream groups("/proc/self/cgroup");
    return detail::memory_limit_of_groups(groups, "/sys/fs/cgroup");
  }();
  limit = std::min(limit, of_groups);
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
