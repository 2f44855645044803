/// \file
/// Where and when a program ran, for reports.
#pragma once

#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <string>
#include <thread>

namespace programs {

/// The commit that the program was built from, or "unknown".
[[nodiscard]] std::string build_commit();

/// Processor, system and number of hardware threads.
[[nodiscard]] inline std::string machine() {
  std::string processor, line;
  for (std::ifstream in("/proc/cpuinfo"); processor.empty() && std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) processor = line.substr(colon + 2);
  }
  utsname system = {};
  const bool known = uname(&system) >= 0;
  if (processor.empty()) processor = known ? system.machine : "unknown processor";
  return processor + ", " + (known ? std::string(system.sysname) + " " + system.release : "unknown system") +
         ", " + std::to_string(std::thread::hardware_concurrency()) + " threads";
}

/// The current time in UTC, as in 2026-01-31T12:00:00Z.
[[nodiscard]] inline std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace programs
