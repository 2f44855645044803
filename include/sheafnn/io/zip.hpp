/// \file
/// ZipArchive: reads the entries of a zip file (stored or deflated, zip64), checking everything that the file claims.
///
/// Source: PKWARE APPNOTE 6.3, sections 4.3 (records), 4.5.3 (zip64 sizes). Sizes come from the central directory.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sheafnn/core/memory.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io {

/// One file within a zip archive, as its central directory describes it.
struct ZipEntry {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;         ///< 0 stored, 8 deflated; others cannot be read
  std::uint32_t crc = 0;            ///< CRC-32 of the content
  std::uint64_t stored_size = 0;    ///< bytes in the archive
  std::uint64_t size = 0;           ///< bytes of the content
  std::uint64_t header_offset = 0;  ///< where its local header begins
};

/// A zip archive held in memory.
class ZipArchive {
 public:
  /// Reads the central directory.
  ///
  /// \param name     what messages call the archive, usually its path
  /// \param content  the whole file
  /// \throws std::runtime_error  not a zip archive, or a truncated or inconsistent one
  ZipArchive(std::string name, Bytes content) : name_(std::move(name)), content_(std::move(content)) {
    read_directory();
  }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<ZipEntry>& entries() const noexcept { return entries_; }
  /// The entry of that name, or nullptr. Takes any name.
  [[nodiscard]] const ZipEntry* find(std::string_view entry_name) const noexcept {
    for (const ZipEntry& entry : entries_) {
      if (entry.name == entry_name) return &entry;
    }
    return nullptr;
  }

  /// Content of an entry of this archive.
  ///
  /// \param memory  compressed content that is larger is refused before anything is allocated
  /// \throws std::runtime_error  encrypted, compressed by an unsupported method, truncated, corrupt or too large
  [[nodiscard]] Bytes read(const ZipEntry& entry, double memory = memory_limit()) const {
    const std::string where = sheafnn::detail::concat(name_, ": entry '", detail::printable(entry.name), "'");
    if ((entry.flags & 0x2041u) != 0) detail::fail(where, "is encrypted, which is not supported");
    if (entry.method != 0 && entry.method != 8) {
      detail::fail(where, "uses compression method ", entry.method,
                   "; only 0 (stored) and 8 (deflated) are supported");
    }
    const std::size_t begin = data_begin(entry, where);
    return detail::naming_file(where, [&] {
      Bytes r = entry.method == 0 ? stored(entry, begin, where) : inflated(entry, begin, where, memory);
      const std::uint32_t crc = checksum(r);
      if (crc != entry.crc) {
        detail::fail(where, "is corrupt; its CRC-32 is ", crc, ", the archive promises ", entry.crc);
      }
      return r;
    });
  }

 private:
  static constexpr std::size_t end_size = 22;      // end of central directory record
  static constexpr std::size_t entry_size = 46;    // central directory header
  static constexpr std::size_t local_size = 30;    // local file header
  static constexpr std::size_t locator_size = 20;  // zip64 end of central directory locator
  static constexpr std::size_t end64_size = 56;    // zip64 end of central directory record
  static constexpr std::uint32_t full32 = 0xFFFFFFFFu;

  template <class U>
  [[nodiscard]] U at(std::size_t offset) const {
    return detail::load_little<U>(content_.data() + offset);
  }
  [[nodiscard]] std::string text(std::size_t begin, std::size_t size) const {
    return std::string(reinterpret_cast<const char*>(content_.data()) + begin, size);
  }

  /// Position of the end record: the last one whose comment reaches exactly to the end of the file.
  [[nodiscard]] std::size_t find_end() const {
    const std::size_t size = content_.size();
    for (std::size_t back = end_size; back <= std::min<std::size_t>(size, end_size + 0xFFFF); ++back) {
      const std::size_t p = size - back;
      if (at<std::uint32_t>(p) == 0x06054b50u && at<std::uint16_t>(p + 20) == back - end_size) return p;
    }
    const bool begins_as_zip = size >= 4 && at<std::uint16_t>(0) == 0x4b50u;
    detail::fail(name_, begins_as_zip ? "the zip archive is truncated or damaged; its end record is missing"
                                      : "is not a zip archive");
  }

  void read_directory() {
    const std::size_t end = find_end();
    std::uint64_t count = at<std::uint16_t>(end + 10);
    std::uint64_t size = at<std::uint32_t>(end + 12);
    std::uint64_t offset = at<std::uint32_t>(end + 16);
    bool one_disk = at<std::uint16_t>(end + 4) == 0 && at<std::uint16_t>(end + 8) == count;
    std::uint64_t limit = end;
    if (end >= locator_size && at<std::uint32_t>(end - locator_size) == 0x07064b50u) {
      const std::uint64_t end64 = at<std::uint64_t>(end - locator_size + 8);
      limit = end - locator_size;
      if (limit < end64_size || end64 > limit - end64_size || at<std::uint32_t>(end64) != 0x06064b50u) {
        detail::fail(name_, "the zip64 end record is not where byte ", end - locator_size, " says");
      }
      count = at<std::uint64_t>(end64 + 32);
      size = at<std::uint64_t>(end64 + 40);
      offset = at<std::uint64_t>(end64 + 48);
      one_disk = at<std::uint32_t>(end64 + 16) == 0 && at<std::uint64_t>(end64 + 24) == count;
      limit = end64;
    }
    if (!one_disk) detail::fail(name_, "zip archives in several parts are not supported");
    if (offset > limit || size > limit - offset || count > size / entry_size) {
      detail::fail(name_, "the zip directory (", count, " entries, ", size, " bytes at ", offset,
                   ") does not fit into the ", content_.size(), " bytes of the file");
    }
    directory_ = static_cast<std::size_t>(offset);
    const std::size_t directory_end = static_cast<std::size_t>(offset + size);
    std::size_t p = directory_;
    std::unordered_set<std::string> names;
    entries_.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string where = sheafnn::detail::concat(name_, ": zip directory entry ", i);
      if (directory_end - p < entry_size || at<std::uint32_t>(p) != 0x02014b50u) {
        detail::fail(where, "is missing or damaged");
      }
      const std::size_t name_size = at<std::uint16_t>(p + 28);
      const std::size_t extra_size = at<std::uint16_t>(p + 30);
      const std::size_t total = entry_size + name_size + extra_size + at<std::uint16_t>(p + 32);
      if (directory_end - p < total) detail::fail(where, "reaches beyond the directory");
      ZipEntry entry;
      entry.flags = at<std::uint16_t>(p + 8);
      entry.method = at<std::uint16_t>(p + 10);
      entry.crc = at<std::uint32_t>(p + 16);
      entry.stored_size = at<std::uint32_t>(p + 20);
      entry.size = at<std::uint32_t>(p + 24);
      entry.header_offset = at<std::uint32_t>(p + 42);
      entry.name = text(p + entry_size, name_size);
      read_zip64_extra(entry, p + entry_size + name_size, extra_size, where);
      if (!names.insert(entry.name).second) {
        detail::fail(where, "repeats the name '", detail::printable(entry.name), "'");
      }
      entries_.push_back(std::move(entry));
      p += total;
    }
  }

  /// Replaces the fields that are all ones by their 64-bit values.
  void read_zip64_extra(ZipEntry& entry, std::size_t p, std::size_t extra_size, const std::string& where) const {
    std::vector<std::uint64_t*> wide;
    for (std::uint64_t* field : {&entry.size, &entry.stored_size, &entry.header_offset}) {
      if (*field == full32) wide.push_back(field);
    }
    const std::size_t end = p + extra_size;
    while (!wide.empty() && end - p >= 4) {
      const std::uint16_t id = at<std::uint16_t>(p);
      const std::size_t size = at<std::uint16_t>(p + 2);
      p += 4;
      if (size > end - p) break;
      if (id == 1) {
        if (size < 8 * wide.size()) break;
        for (std::size_t i = 0; i < wide.size(); ++i) *wide[i] = at<std::uint64_t>(p + 8 * i);
        return;
      }
      p += size;
    }
    if (!wide.empty()) detail::fail(where, "lacks the zip64 sizes it refers to");
  }

  [[nodiscard]] std::size_t data_begin(const ZipEntry& entry, const std::string& where) const {
    const std::uint64_t limit = directory_;
    if (limit < local_size || entry.header_offset > limit - local_size) {
      detail::fail(where, "begins at byte ", entry.header_offset, ", beyond the ", limit, " bytes of data");
    }
    const std::size_t p = static_cast<std::size_t>(entry.header_offset);
    const std::size_t name_size = at<std::uint16_t>(p + 26);
    const std::uint64_t begin = entry.header_offset + local_size + name_size + at<std::uint16_t>(p + 28);
    if (at<std::uint32_t>(p) != 0x04034b50u || begin > limit || text(p + local_size, name_size) != entry.name) {
      detail::fail(where, "has a damaged local header at byte ", p);
    }
    if (entry.stored_size > limit - begin) {
      detail::fail(where, "has ", entry.stored_size, " bytes by the directory, but only ", limit - begin,
                   " follow");
    }
    return static_cast<std::size_t>(begin);
  }

  [[nodiscard]] Bytes stored(const ZipEntry& entry, std::size_t begin, const std::string& where) const {
    if (entry.size != entry.stored_size) {
      detail::fail(where, "is stored, yet its sizes differ: ", entry.stored_size, " and ", entry.size);
    }
    const auto first = content_.begin() + static_cast<std::ptrdiff_t>(begin);
    return Bytes(first, first + static_cast<std::ptrdiff_t>(entry.size));
  }

  [[nodiscard]] Bytes inflated(const ZipEntry& entry, std::size_t begin, const std::string& where,
                               double memory) const {
    // A code of two bits can stand for 258 bytes; larger promises are lies, and memory grows only as data comes.
    if (entry.size / 1032 > entry.stored_size) {
      detail::fail(where, "claims that ", entry.stored_size, " bytes expand to ", entry.size,
                   ", more than deflate can");
    }
    detail::check_memory(where, static_cast<double>(entry.size), memory);
    struct Stream {
      z_stream z{};
      bool ready = inflateInit2(&z, -MAX_WBITS) == Z_OK;
      ~Stream() {
        if (ready) inflateEnd(&z);
      }
    } stream;
    if (!stream.ready) throw std::bad_alloc();
    z_stream& z = stream.z;
    constexpr std::size_t piece = std::size_t{1} << 30;  // zlib counts in 32 bits
    const std::size_t size = static_cast<std::size_t>(entry.size);
    const std::size_t input = static_cast<std::size_t>(entry.stored_size);
    std::size_t used = 0;
    std::size_t made = 0;
    Bytes out;
    int state = Z_OK;
    while (state == Z_OK) {
      // One byte more than promised, so that too much output shows.
      if (made == out.size()) out.resize(std::min(size + 1, std::max<std::size_t>(2 * made, 65536)));
      const std::size_t give = std::min(piece, input - used);
      const std::size_t room = std::min(piece, out.size() - made);
      // zlib does not write to its input; the cast bridges its old interface.
      z.next_in = const_cast<Bytef*>(content_.data() + begin + used);
      z.avail_in = static_cast<uInt>(give);
      z.next_out = out.data() + made;
      z.avail_out = static_cast<uInt>(room);
      state = inflate(&z, Z_NO_FLUSH);
      used += give - z.avail_in;
      made += room - z.avail_out;
      if (made > size) break;
    }
    if (state == Z_MEM_ERROR) throw std::bad_alloc();
    if (state != Z_STREAM_END || made != size || used != input) {
      detail::fail(where, "is corrupt; ", used, " of ", input, " compressed bytes gave ", made, " of ", size,
                   " bytes");
    }
    out.resize(size);
    return out;
  }

  [[nodiscard]] static std::uint32_t checksum(const Bytes& bytes) {
    return static_cast<std::uint32_t>(crc32_z(crc32_z(0, nullptr, 0), bytes.data(), bytes.size()));
  }

  std::string name_;
  Bytes content_;
  std::size_t directory_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace sheafnn::io
