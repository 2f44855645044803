/// \file
/// Files for readers that take paths, in a folder in memory where the system has one: as quick as their contents allow.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "contract.hpp"

namespace fuzz {

/// A folder that is removed at the end of the program, with files that can be given a new content.
class MemoryFolder {
 public:
  MemoryFolder() {
    const std::filesystem::path shared = "/dev/shm";
    std::error_code error;
    const bool in_memory = std::filesystem::is_directory(shared, error) && ::access(shared.c_str(), W_OK) == 0;
    std::string name =
        ((in_memory ? shared : std::filesystem::temp_directory_path()) / "sheafnn-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) broken("no temporary folder", name);
    path_ = name;
  }
  ~MemoryFolder() {
    for (const auto& [name, descriptor] : files_) ::close(descriptor);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file of the folder anew. \returns its path
  std::filesystem::path write(const std::string& name, Input content) {
    const std::filesystem::path file = path_ / name;
    const auto [position, fresh] = files_.emplace(name, -1);
    if (fresh) position->second = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const int descriptor = position->second;
    if (descriptor < 0 || ::ftruncate(descriptor, 0) != 0 ||
        ::pwrite(descriptor, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size())) {
      broken("a temporary file cannot be written", file.string());
    }
    return file;
  }

 private:
  std::filesystem::path path_;
  std::map<std::string, int> files_;
};

inline MemoryFolder& folder() {
  static MemoryFolder one;
  return one;
}

}  // namespace fuzz
