/// \file
/// A program in a build for several levels of processors (levels.cmake). It becomes the program of the same name in the folder of
/// a level. As in python/sheafnn/_level.py, that is the highest level that the processor supports, or the level in the environment
/// variable SHEAFNN_CPU_LEVEL. With --cpu-level alone it prints the level. It is compiled for every processor.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "processor_levels.hpp"

namespace {

using Levels = std::vector<std::string>;

bool has(const Levels& levels, const std::string& level) {
  return std::find(levels.begin(), levels.end(), level) != levels.end();
}
std::string joined(const Levels& levels) {
  std::string r;
  for (const std::string& level : levels) r += (r.empty() ? "" : ", ") + level;
  return r;
}

/// \param wanted     null or empty: the highest of those present that the processor supports
/// \param present    with a program of this name
/// \param supported  by the processor
/// \throws std::runtime_error  there is no such level
std::string chosen(const char* wanted, const Levels& present, const Levels& supported) {
  Levels usable;
  for (const std::string& level : supported) {
    if (has(present, level)) usable.push_back(level);
  }
  const std::string name = wanted == nullptr ? "" : wanted;
  if (has(usable, name)) return name;
  if (name.empty() && !usable.empty()) return usable.back();
  const std::string both = "this program has " + (present.empty() ? "none" : joined(present)) +
                           ", and this processor supports " + joined(supported);
  if (name.empty()) throw std::runtime_error("there is no program for this processor: " + both);
  throw std::runtime_error("SHEAFNN_CPU_LEVEL: '" + name + "' is not allowed; " + both);
}

/// \param self  the file of this program
void launch(const std::filesystem::path& self, int argc, char** argv) {
  const auto program = [&](const std::string& level) { return self.parent_path() / level / self.filename(); };
  Levels present, supported;
  programs::for_supported_levels([&](const char* level) { supported.emplace_back(level); });
  for (const char* level : {SHEAFNN_CPU_LEVEL_NAMES}) {
    if (std::filesystem::exists(program(level))) present.emplace_back(level);
  }
  const std::string level = chosen(std::getenv("SHEAFNN_CPU_LEVEL"), present, supported);
  if (argc == 2 && std::string_view(argv[1]) == "--cpu-level") {
    std::puts(level.c_str());
    return;
  }
  execv(program(level).c_str(), argv);
  throw std::runtime_error(program(level).string() + ": " + std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) self = argv[0];
  try {
    launch(self, argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", self.filename().c_str(), e.what());
    return 2;
  }
}
