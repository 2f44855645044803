/// \file
/// NpzArchive: the named arrays of NumPy's .npz format, a zip archive of .npy files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npy.hpp"
#include "sheafnn/io/npy_stream.hpp"
#include "sheafnn/io/zip.hpp"

namespace sheafnn::io {

/// Arrays by key, as numpy.savez and numpy.savez_compressed write them. Arrays are unpacked when they are read.
class NpzArchive {
 public:
  /// Opens a file.
  ///
  /// \throws std::runtime_error  it cannot be read, or is not an intact zip archive
  explicit NpzArchive(const std::filesystem::path& path) : NpzArchive(path.string(), read_file(path)) {}
  /// Takes the content of a file; `name` is what messages call it. \throws std::runtime_error  as above
  NpzArchive(std::string name, Bytes content) : NpzArchive(ZipArchive(std::move(name), std::move(content))) {}

  /// An archive that is not read into memory, for numbers(). Unchecked: that the file stays as it is.
  ///
  /// \throws MissingFile  no such file \throws std::runtime_error  as above
  [[nodiscard]] static NpzArchive mapped(const std::filesystem::path& path) {
    return NpzArchive(ZipArchive(path.string(), MappedFile(path)));
  }

  [[nodiscard]] const std::string& file() const noexcept { return zip_.name(); }
  /// Keys in the order of the file.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  /// Takes any key.
  [[nodiscard]] bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }

  /// The array of that key.
  ///
  /// \throws std::runtime_error  no such key, a corrupt entry, or an element type that is not numeric
  [[nodiscard]] NpyArray array(std::string_view key) const {
    const ZipEntry& entry = entry_of(key);
    return NpyArray(where(key), zip_.read(entry));
  }
  /// The elements of that key, which are read in pieces. \throws std::runtime_error  as array()
  [[nodiscard]] NpyStream numbers(std::string_view key) const {
    return NpyStream(where(key), std::make_unique<ZipEntryReader>(zip_, entry_of(key)));
  }
  /// The single text of that key. \throws std::runtime_error  no such key, a corrupt entry, or something else there
  [[nodiscard]] std::string text(std::string_view key) const {
    const ZipEntry& entry = entry_of(key);
    return npy_text(where(key), zip_.read(entry));
  }

  /// Whether the array of that key holds texts. \throws std::runtime_error  no such key, or a corrupt entry
  [[nodiscard]] bool holds_texts(std::string_view key) const {
    const std::string dtype = detail::read_npy_header(where(key), zip_.read(entry_of(key))).dtype;
    return dtype.size() > 2 && (dtype[1] == 'U' || dtype[1] == 'S');
  }
  /// The texts of that key. \throws std::runtime_error  no such key, a corrupt entry, or something else there
  [[nodiscard]] NpyTexts texts(std::string_view key) const {
    return npy_texts(where(key), zip_.read(entry_of(key)));
  }

 private:
  static constexpr std::string_view suffix = ".npy";

  explicit NpzArchive(ZipArchive zip) : zip_(std::move(zip)) {
    for (const ZipEntry& entry : zip_.entries()) {
      if (entry.name.ends_with(suffix)) names_.push_back(entry.name.substr(0, entry.name.size() - suffix.size()));
    }
  }

  [[nodiscard]] std::string where(std::string_view key) const {
    return sheafnn::detail::concat(file(), ": ", detail::printable(key));
  }
  [[nodiscard]] const ZipEntry& entry_of(std::string_view key) const {
    const ZipEntry* entry = find(key);
    if (entry == nullptr) detail::fail(file(), "key '", key, "' is missing; the file has ", list_names());
    return *entry;
  }
  [[nodiscard]] const ZipEntry* find(std::string_view key) const noexcept {
    for (const ZipEntry& entry : zip_.entries()) {
      if (entry.name.size() == key.size() + suffix.size() && entry.name.starts_with(key) &&
          entry.name.ends_with(suffix)) {
        return &entry;
      }
    }
    return nullptr;
  }
  [[nodiscard]] std::string list_names() const {
    constexpr std::size_t most = 12;
    std::string r;
    for (std::size_t i = 0; i < names_.size() && i < most; ++i) {
      r += sheafnn::detail::concat(i > 0 ? ", " : "", detail::printable(names_[i]));
    }
    if (names_.size() > most) r += sheafnn::detail::concat(" and ", names_.size() - most, " more");
    return names_.empty() ? "no array" : r;
  }

  ZipArchive zip_;
  std::vector<std::string> names_;
};

}  // namespace sheafnn::io
