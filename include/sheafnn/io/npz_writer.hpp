/// \file
/// NpzWriter: named arrays as a NumPy .npz file, a zip archive of stored .npy files.
///
///     io::NpzWriter writer;
///     writer.add<double>("maps", {arcs, 3, 3}, maps);
///     writer.write("sheaf.npz");
///
/// Source: PKWARE APPNOTE 6.3, section 4.3 (records). Without zip64, so that any reader understands it.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npy_writer.hpp"

namespace sheafnn::io {

/// Collects arrays in memory; write() makes the file.
class NpzWriter {
 public:
  /// T = float, double, std::int32_t, std::int64_t or std::uint64_t.
  ///
  /// \param key     letters, digits and _
  /// \param values  in row-major order
  /// \throws std::invalid_argument  a key that exists already or has other characters; more than 4 GiB in all
  /// \throws std::invalid_argument  a number of values that the shape does not have; a shape that NpyArray refuses
  template <class T>
  void add(std::string_view key, std::initializer_list<Index> shape, std::span<const T> values) {
    add_entry(key, to_npy<T>(std::span<const Index>(shape.begin(), shape.size()), values));
  }
  /// One printable ASCII text. \throws std::invalid_argument  as above
  void add(std::string_view key, std::string_view text) { add_entry(key, to_npy(text)); }

  /// Writes to a temporary file first, which then takes the place of `path`.
  ///
  /// \throws std::runtime_error  the file cannot be written; an old one is left as it was
  void write(const std::filesystem::path& path) const {
    const Bytes directory = central_directory();
    write_file(path, parts(directory));
  }
  /// The content of that file.
  [[nodiscard]] Bytes bytes() const {
    const Bytes directory = central_directory();
    Bytes r;
    for (const std::span<const unsigned char> part : parts(directory)) r.insert(r.end(), part.begin(), part.end());
    return r;
  }

 private:
  struct Entry {
    std::string name;
    std::uint32_t crc = 0;
    Bytes header, content;
  };

  void add_entry(std::string_view key, Bytes content) {
    const bool good = !key.empty() && key.size() <= 100 &&
                      key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
                          std::string_view::npos;
    require(good, "key", detail::printable(key), "must be 1 to 100 letters, digits or _");
    Entry entry{sheafnn::detail::concat(key, ".npy"), 0, {}, std::move(content)};
    for (const Entry& other : entries_) require(other.name != entry.name, "key", key, "an array has it already");
    entry.crc =
        static_cast<std::uint32_t>(crc32_z(crc32_z(0, nullptr, 0), entry.content.data(), entry.content.size()));
    detail::append_little(entry.header, std::uint32_t{0x04034b50});
    // 32-bit offsets: local and central headers of all entries, each at most 300 bytes.
    constexpr std::size_t limit = std::numeric_limits<std::uint32_t>::max();
    const std::size_t room = limit - size_;
    require(entry.content.size() + 600 <= room && entries_.size() < 1000, sheafnn::detail::concat("size of ", key),
            entry.content.size(), "an .npz file takes 4 GiB and 1000 arrays");
    append_fields(entry.header, entry);
    entry.header.insert(entry.header.end(), entry.name.begin(), entry.name.end());
    size_ += entry.content.size() + 600;
    entries_.push_back(std::move(entry));
  }
  /// The headers of all entries, and what ends the archive.
  [[nodiscard]] Bytes central_directory() const {
    Bytes directory;
    std::uint32_t offset = 0;
    for (const Entry& entry : entries_) {
      detail::append_little(directory, std::uint32_t{0x02014b50});
      detail::append_little(directory, std::uint16_t{20});  // made by version 2.0
      append_fields(directory, entry);
      for (int i = 0; i < 3; ++i) detail::append_little(directory, std::uint16_t{0});  // comment, disk, attributes
      detail::append_little(directory, std::uint32_t{0});
      detail::append_little(directory, offset);
      directory.insert(directory.end(), entry.name.begin(), entry.name.end());
      offset += static_cast<std::uint32_t>(entry.header.size() + entry.content.size());
    }
    const std::uint32_t directory_size = static_cast<std::uint32_t>(directory.size());
    const std::uint16_t count = static_cast<std::uint16_t>(entries_.size());
    detail::append_little(directory, std::uint32_t{0x06054b50});
    detail::append_little(directory, std::uint32_t{0});  // disks
    detail::append_little(directory, count);
    detail::append_little(directory, count);
    detail::append_little(directory, directory_size);
    detail::append_little(directory, offset);
    detail::append_little(directory, std::uint16_t{0});  // comment
    return directory;
  }
  [[nodiscard]] std::vector<std::span<const unsigned char>> parts(const Bytes& directory) const {
    std::vector<std::span<const unsigned char>> r;
    for (const Entry& entry : entries_) {
      r.push_back(entry.header);
      r.push_back(entry.content);
    }
    r.push_back(directory);
    return r;
  }
  /// What local and central headers have in common.
  static void append_fields(Bytes& to, const Entry& entry) {
    const std::uint32_t size = static_cast<std::uint32_t>(entry.content.size());
    detail::append_little(to, std::uint16_t{20});          // needs version 2.0
    detail::append_little(to, std::uint16_t{0});           // flags
    detail::append_little(to, std::uint16_t{0});           // stored
    detail::append_little(to, std::uint32_t{0x00210000});  // 1980-01-01 00:00: the same input gives the same file
    detail::append_little(to, entry.crc);
    detail::append_little(to, size);
    detail::append_little(to, size);
    detail::append_little(to, static_cast<std::uint16_t>(entry.name.size()));
    detail::append_little(to, std::uint16_t{0});  // extra field
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 22;
};

}  // namespace sheafnn::io
