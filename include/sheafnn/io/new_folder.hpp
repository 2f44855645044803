/// \file
/// NewFolder: a folder that is written under a temporary name, and renamed when all of its files are on disk.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "sheafnn/io/file.hpp"

namespace sheafnn::io::detail {

/// A folder that exists with all of its files, or not at all.
class NewFolder {
 public:
  /// \throws std::runtime_error  something with that name exists, or the folder cannot be made
  explicit NewFolder(const std::filesystem::path& path)
      : path_(path.has_filename() ? path : path.parent_path()), temporary_(temporary_path(path_)) {
    std::error_code error;
    if (path_.filename() == "." || path_.filename() == "..") fail(path_.string(), "has no name; name a new folder");
    const bool empty = std::filesystem::is_directory(path_, error) && std::filesystem::is_empty(path_, error);
    if (std::filesystem::exists(path_, error) && !empty) {
      fail(path_.string(), "exists already; name a new folder");
    }
    if (!std::filesystem::create_directory(temporary_, error)) {
      give_up(error.message());
    }
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
  }
  /// Where its files are written.
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return temporary_ / name; }
  /// Brings the files to the disk, and renames the folder.
  ///
  /// \throws std::runtime_error  naming the folder and the system's reason
  void finish() {
    std::error_code error;
    errno = 0;
    for (const std::filesystem::path& file : list_folder(temporary_)) {
      if (!sync_to_disk(file)) give_up(system_reason());
    }
    if (!sync_to_disk(temporary_)) give_up(system_reason());
    const std::filesystem::path parent = path_.parent_path();  // takes memory: before the renaming
    std::filesystem::remove(path_, error);                     // an empty folder
    std::filesystem::rename(temporary_, path_, error);
    if (error) give_up(error.message());
    temporary_.clear();
    sync_to_disk(parent);
  }

 private:
  [[noreturn]] void give_up(std::string_view reason) const { fail(path_.string(), "cannot be made; ", reason); }

  std::filesystem::path path_, temporary_;
};

}  // namespace sheafnn::io::detail
