/// \file
/// Whole files: read into memory, written so that a reader sees the old content or the new, never a part.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sheafnn/core/caller.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/memory.hpp"
#include "sheafnn/core/text.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace sheafnn::io {

/// Content of a file.
using Bytes = std::vector<unsigned char>;

/// The name of a folder, whose path may end with a separator. Takes any path.
[[nodiscard]] inline std::string folder_name(const std::filesystem::path& folder) {
  return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
}

/// There is no file or folder at a path, which the message names.
class MissingFile : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

/// Throws std::runtime_error saying "WHERE: PARTS…".
template <class... Parts>
[[noreturn]] void fail(std::string_view where, const Parts&... parts) {
  throw std::runtime_error(sheafnn::detail::concat(where, ": ", parts...));
}
/// The same of a path that cannot be opened. If nothing exists there, the error is a MissingFile.
template <class... Parts>
[[noreturn]] void fail_to_open(const std::filesystem::path& path, const Parts&... parts) {
  std::error_code error;
  if (std::filesystem::status(path, error).type() != std::filesystem::file_type::not_found) {
    fail(path.string(), parts...);
  }
  throw MissingFile(sheafnn::detail::concat(path.string(), ": ", parts...));
}

using sheafnn::detail::CallerName;
using sheafnn::detail::printable;
namespace caller_name = sheafnn::detail::caller_name;

/// Refuses a carriage return inside a line of text; a file of one line may be one of the old Macintosh.
[[noreturn]] inline void refuse_carriage_return(std::string_view file, Index line) {
  fail(sheafnn::detail::concat(file, ":", line),
       "has a carriage return that ends no line. Save the file with the line ends of Unix or Windows");
}

/// Runs `body` and returns its result; errors that do not name the file yet are rethrown as std::runtime_error
/// that does.
template <class Body>
auto naming_file(const std::string& file, const Body& body) {
  try {
    return body();
  } catch (const std::invalid_argument& error) {
    fail(file, error.what());
  } catch (const std::bad_alloc&) {
    fail(file, "not enough memory for its content");
  } catch (const std::length_error&) {
    fail(file, "not enough memory for its content");
  }
}

/// Refuses content that takes more than `limit` bytes of memory; `where` names it.
inline void check_memory(std::string_view where, double bytes, double limit = memory_limit()) {
  if (bytes > limit) fail(where, "needs ", memory_text(bytes), " of memory; there are ", memory_text(limit));
}

/// The number of elements of an array that is to be written; `name` is what messages call its shape.
///
/// \throws std::invalid_argument  a negative extent, or a product that readers refuse: they bound it even where an extent
///                                is 0
[[nodiscard]] inline Index element_count(std::string_view name, std::span<const Index> shape) {
  constexpr Index most = std::numeric_limits<Index>::max() / 16;
  Index bound = 1, count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Index extent = shape[i];
    if (extent < 0 || std::max<Index>(extent, 1) > most / bound) {
      throw_invalid_argument(
          ArgumentName({}, name, i), extent,
          sheafnn::detail::concat(
              "an extent must be at least 0, and the product of the extents that are not 0 at most ", most));
    }
    bound *= std::max<Index>(extent, 1);
    count *= extent;
  }
  return count;
}

/// Unsigned number stored lowest byte first.
template <class U>
[[nodiscard]] U load_little(const unsigned char* from) {
  U value = 0;
  for (std::size_t i = sizeof(U); i-- > 0;) {
    value = static_cast<U>(static_cast<std::uint64_t>(value) << 8 | from[i]);
  }
  return value;
}
/// Appends an unsigned number, lowest byte first.
template <class U>
void append_little(Bytes& to, U value) {
  for (std::size_t i = 0; i < sizeof(U); ++i) {
    to.push_back(static_cast<unsigned char>(std::uint64_t{value} >> (8 * i)));
  }
}

/// A regular file that is open for reading.
class OpenFile {
#if defined(__unix__) || defined(__APPLE__)
 public:
  /// \throws std::runtime_error  it cannot be opened
  explicit OpenFile(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    const bool open = descriptor_ >= 0 && ::fstat(descriptor_, &status_) == 0;
    if (open && S_ISREG(status_.st_mode)) return;
    const int error = errno;
    close();
    fail(path.string(), "cannot be opened for reading; ",
         open ? "it is not a regular file" : std::generic_category().message(error));
  }
  ~OpenFile() { close(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] std::uintmax_t size() const noexcept { return static_cast<std::uintmax_t>(status_.st_size); }
  /// Fills `to` from the beginning of the file. \returns how many bytes there were
  [[nodiscard]] std::size_t read(std::span<unsigned char> to) noexcept {
    std::size_t done = 0;
    while (done < to.size()) {
      const auto count = ::read(descriptor_, to.data() + done, std::min(to.size() - done, std::size_t{1} << 30));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      done += static_cast<std::size_t>(count);
    }
    return done;
  }
  /// Since it was opened: its size, or the time of its last change.
  [[nodiscard]] bool has_changed() const noexcept {
    struct stat now {};
    if (::fstat(descriptor_, &now) != 0) return true;
#if defined(__APPLE__)
    const auto &then_changed = status_.st_mtimespec, &now_changed = now.st_mtimespec;
#else
    const auto &then_changed = status_.st_mtim, &now_changed = now.st_mtim;
#endif
    return now.st_size != status_.st_size || now_changed.tv_sec != then_changed.tv_sec ||
           now_changed.tv_nsec != then_changed.tv_nsec;
  }

 private:
  void close() noexcept {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int descriptor_;
  struct stat status_ {};
#else
 public:
  explicit OpenFile(const std::filesystem::path& path) : in_(path, std::ios::binary | std::ios::ate) {
    const std::streamoff end = in_ ? std::streamoff(in_.tellg()) : -1;
    if (end < 0) fail(path.string(), "cannot be opened for reading");
    size_ = static_cast<std::uintmax_t>(end);
    in_.seekg(0);
  }
  [[nodiscard]] std::uintmax_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t read(std::span<unsigned char> to) {
    in_.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
    return static_cast<std::size_t>(in_.gcount());
  }
  [[nodiscard]] bool has_changed() { return in_.peek() != std::ifstream::traits_type::eof(); }

 private:
  std::ifstream in_;
  std::uintmax_t size_ = 0;
#endif
};

}  // namespace detail

/// Reads a regular file: the content when it was opened, also when another takes its place meanwhile.
///
/// \throws MissingFile         no such file
/// \throws std::runtime_error  it is a folder or device, cannot be read, is larger than the memory, or changed during the
///                             reading (by its size and time)
[[nodiscard]] inline Bytes read_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::none) detail::fail(name, "cannot be read; ", error.message());
  if (!std::filesystem::exists(status)) detail::fail_to_open(path, "no such file");
  if (std::filesystem::is_directory(status)) detail::fail(name, "is a folder, not a file");
  if (!std::filesystem::is_regular_file(status)) detail::fail(name, "is not a regular file");
  detail::OpenFile file(path);
  const std::uintmax_t size = file.size();
  detail::check_memory(name, static_cast<double>(size));
  return detail::naming_file(name, [&] {
    if (size > static_cast<std::uintmax_t>(std::numeric_limits<std::streamsize>::max())) throw std::bad_alloc();
    Bytes content(static_cast<std::size_t>(size));
    const std::size_t read = file.read(content);
    if (read != content.size()) detail::fail(name, "only ", read, " of ", size, " bytes could be read");
    if (file.has_changed()) detail::fail(name, "changed while it was read");
    return content;
  });
}

/// What lies in a folder, in any order.
///
/// \throws MissingFile         no such folder
/// \throws std::runtime_error  the folder cannot be read
[[nodiscard]] inline std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> r;
#if defined(__unix__) || \
    defined(__APPLE__)  // libstdc++'s directory_iterator ends the process when memory runs out
  const auto close = [](DIR* open) { static_cast<void>(::closedir(open)); };
  const std::unique_ptr<DIR, decltype(close)> listing(::opendir(folder.c_str()), close);
  errno = listing == nullptr ? errno : 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this listing
  while (const dirent* entry = listing == nullptr ? nullptr : ::readdir(listing.get())) {
    const std::string_view name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") r.push_back(folder / name);
    errno = 0;
  }
  const std::error_code error(errno, std::generic_category());
#else
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    r.push_back(entry->path());
#endif
  if (error) detail::fail_to_open(folder, "cannot be listed; ", error.message());
  return r;
}

namespace detail {

/// The file that a path leads to through symbolic links, whether it exists or not. Links that go in circles lead to one
/// of themselves.
[[nodiscard]] inline std::filesystem::path without_links(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; links < 64 && std::filesystem::is_symlink(std::filesystem::symlink_status(path, error));
       ++links) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return path;
}

/// The system's reason for the last failure.
[[nodiscard]] inline std::string system_reason() {
  return std::error_code(errno, std::generic_category()).message();
}

/// A name in the folder of `path` for an unfinished file.
[[nodiscard]] inline std::filesystem::path temporary_path(std::filesystem::path path) {
  path += sheafnn::detail::concat(".", std::random_device{}(), ".tmp");
  return path;
}

/// Brings a file, or the names in a folder, to the disk. \returns whether the system did, or says that it never does there
inline bool sync_to_disk([[maybe_unused]] const std::filesystem::path& path) {
#if defined(__unix__) || defined(__APPLE__)
  const int descriptor = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool done = ::fsync(descriptor) == 0 || errno == EINVAL;
  ::close(descriptor);
  return done;
#else
  return true;
#endif
}

/// A new file in the folder of the file to which `path` leads. It will replace that file by renaming, and gets its
/// permissions. Removed unless it did.
class TemporaryFile {
 public:
  /// \throws std::runtime_error  naming `path` and the system's reason
  explicit TemporaryFile(const std::filesystem::path& path)
      : name_(path.string()), path_(without_links(path)), temporary_(temporary_path(path_)) {
    std::error_code error;
    const std::filesystem::file_status old = std::filesystem::status(path_, error);
    if (old.type() == std::filesystem::file_type::none) fail(name_, "cannot be written; ", error.message());
    if (std::filesystem::exists(old) && !std::filesystem::is_regular_file(old)) {
      fail(name_, "cannot be written; it exists and is not a regular file");
    }
    errno = 0;
    file_ = std::fopen(temporary_.string().c_str(), "wbx");
    if (file_ == nullptr) give_up();
    if (std::filesystem::exists(old)) {  // there are file systems without permissions
      std::filesystem::permissions(temporary_, old.permissions() & std::filesystem::perms::all, error);
    }
  }
  ~TemporaryFile() {
    if (file_ != nullptr) std::fclose(file_);
    std::error_code ignored;
    if (!temporary_.empty()) std::filesystem::remove(temporary_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::span<const unsigned char> bytes) {
    if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) give_up();
  }
  /// Brings the content to the disk and renames the file to `path`.
  void finish() {
    const std::filesystem::path folder = path_.parent_path();  // takes memory: before the renaming
    if (std::fflush(file_) != 0) give_up();
#if defined(__unix__) || defined(__APPLE__)
    if (::fsync(::fileno(file_)) != 0) give_up();
#endif
    if (std::fclose(std::exchange(file_, nullptr)) != 0) give_up();
    std::error_code error;
    std::filesystem::rename(temporary_, path_, error);
    if (error) fail(name_, "cannot be written; ", error.message());
    temporary_.clear();
    sync_to_disk(folder);  // where the file system can
  }

 private:
  [[noreturn]] void give_up() const { fail(name_, "cannot be written; ", system_reason()); }

  std::string name_;
  std::filesystem::path path_, temporary_;
  std::FILE* file_ = nullptr;
};

}  // namespace detail

/// Writes `parts` one after the other to a temporary file in the same folder, brings it to the disk and renames it
/// to `path`. When anything fails the temporary file is removed and an existing file at `path` is left as it was. Where
/// `path` is a symbolic link, all this is about the file that it leads to, be it there or not. A file that is replaced
/// hands on its permissions.
///
/// \throws std::runtime_error  naming the file and the system's reason
inline void write_file(const std::filesystem::path& path, std::span<const std::span<const unsigned char>> parts) {
  detail::TemporaryFile file(path);
  for (const std::span<const unsigned char> part : parts) file.write(part);
  file.finish();
}

/// write_file() of a text. \throws std::runtime_error  as there
inline void write_text(const std::filesystem::path& path, std::string_view text) {
  const std::span<const unsigned char> bytes(reinterpret_cast<const unsigned char*>(text.data()), text.size());
  write_file(path, std::span(&bytes, 1));
}

/// Tests whether write_file() could write a file there, as far as possible without its content. Leaves no file behind.
///
/// \throws std::runtime_error  naming the file and the system's reason
inline void require_writable(const std::filesystem::path& path) { const detail::TemporaryFile file(path); }

}  // namespace sheafnn::io
