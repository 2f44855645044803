/// \file
/// MappedFile: the bytes of a file where they lie, without memory for them. The operating system keeps in memory what it has
/// room for. Needs a POSIX system.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include <system_error>

#include "sheafnn/io/file.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace sheafnn::io {

/// See the file comment. Unchecked: that the file stays as it is.
class MappedFile {
 public:
  /// The whole file. \throws MissingFile  no such file \throws std::runtime_error  it cannot be mapped
  explicit MappedFile(const std::filesystem::path& path) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error) detail::fail_to_open(path, "cannot be opened");
    map(path, static_cast<std::size_t>(size));
  }
  /// The first bytes. Unchecked: that the file has as many. \throws std::runtime_error  it cannot be mapped
  MappedFile(const std::filesystem::path& path, std::size_t size) { map(path, size); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile() {
#if defined(__unix__) || defined(__APPLE__)
    if (!bytes_.empty()) ::munmap(const_cast<unsigned char*>(bytes_.data()), bytes_.size());
#endif
  }

  [[nodiscard]] std::span<const unsigned char> bytes() const noexcept { return bytes_; }

 private:
  void map(const std::filesystem::path& path, std::size_t size) {
#if defined(__unix__) || defined(__APPLE__)
    if (size == 0) return;
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) detail::fail(path.string(), "cannot be opened");
    void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    if (begin == MAP_FAILED) detail::fail(path.string(), "cannot be mapped into memory");
    bytes_ = {static_cast<const unsigned char*>(begin), size};
#else
    static_cast<void>(size);
    detail::fail(path.string(), "files are mapped on POSIX systems only");
#endif
  }

  std::span<const unsigned char> bytes_;
};

}  // namespace sheafnn::io
