/// \file
/// ZipArchive: reads the entries of a zip file (stored or deflated, zip64), checking everything that the file claims.
/// ZipEntryReader reads one piece by piece.
///
/// Source: PKWARE APPNOTE 6.3, sections 4.3 (records), 4.5.3 (zip64 sizes). Sizes come from the central directory.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sheafnn/core/memory.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/mapped_file.hpp"

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

/// A zip archive held in memory, or mapped.
class ZipArchive {
 public:
  /// Reads the central directory.
  ///
  /// \param name     what messages call the archive, usually its path
  /// \param content  the whole file
  /// \throws std::runtime_error  not a zip archive, or a truncated or inconsistent one
  ZipArchive(std::string name, Bytes content) : name_(std::move(name)) {
    const auto owner = std::make_shared<const Bytes>(std::move(content));
    content_ = *owner;
    owner_ = owner;
    read_directory();
  }
  /// The same of a file that is not read into memory. Unchecked: that it stays as it is.
  ZipArchive(std::string name, MappedFile file) : name_(std::move(name)) {
    const auto owner = std::make_shared<const MappedFile>(std::move(file));
    content_ = owner->bytes();
    owner_ = owner;
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
  [[nodiscard]] Bytes read(const ZipEntry& entry, double memory = memory_limit()) const;

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

  std::string name_;
  std::shared_ptr<const void> owner_;  ///< of the content
  std::span<const unsigned char> content_;
  std::size_t directory_ = 0;
  std::vector<ZipEntry> entries_;

  friend class ZipEntryReader;
};

/// Reads an entry from its beginning to its end. The archive must outlive it.
class ZipEntryReader {
 public:
  /// \throws std::runtime_error  encrypted, compressed by an unsupported method, or sizes that cannot be
  ZipEntryReader(const ZipArchive& archive, const ZipEntry& entry)
      : where_(sheafnn::detail::concat(archive.name(), ": entry '", detail::printable(entry.name), "'")),
        size_(static_cast<std::size_t>(entry.size)),
        crc_(entry.crc),
        deflated_(entry.method == 8) {
    if ((entry.flags & 0x2041u) != 0) detail::fail(where_, "is encrypted, which is not supported");
    if (entry.method != 0 && !deflated_) {
      detail::fail(where_, "uses compression method ", entry.method,
                   "; only 0 (stored) and 8 (deflated) are supported");
    }
    input_ =
        archive.content_.subspan(archive.data_begin(entry, where_), static_cast<std::size_t>(entry.stored_size));
    if (!deflated_ && entry.size != entry.stored_size) {
      detail::fail(where_, "is stored, yet its sizes differ: ", entry.stored_size, " and ", entry.size);
    }
    // A code of two bits can stand for 258 bytes; larger promises are lies.
    if (deflated_ && entry.size / 1032 > entry.stored_size) {
      detail::fail(where_, "claims that ", entry.stored_size, " bytes expand to ", entry.size,
                   ", more than deflate can");
    }
    if (deflated_ && inflateInit2(&z_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ZipEntryReader(const ZipEntryReader&) = delete;
  ZipEntryReader& operator=(const ZipEntryReader&) = delete;
  ~ZipEntryReader() {
    if (deflated_) inflateEnd(&z_);
  }

  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  /// Bytes of the content.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Fills `to` with the next bytes. At the end of the content there may be fewer; then the checksum was right.
  ///
  /// \throws std::runtime_error  truncated or corrupt
  [[nodiscard]] std::size_t read(std::span<unsigned char> to) {
    const std::size_t count = std::min(to.size(), size_ - made_);
    for (std::size_t done = 0; done < count;) {
      const std::size_t more = take(to.subspan(done, count - done));
      sum_ = crc32_z(sum_, to.data() + done, more);
      done += more;
    }
    if (made_ == size_ && !finished_) finish();
    return count;
  }

 private:
  [[noreturn]] void refuse() const {
    detail::fail(where_, "is corrupt; ", used_, " of ", input_.size(), " compressed bytes gave ", made_, " of ",
                 size_, " bytes");
  }
  /// At least one byte, or none at the end of what is compressed.
  std::size_t take(std::span<unsigned char> to) {
    constexpr std::size_t piece = std::size_t{1} << 30;  // zlib counts in 32 bits
    const std::size_t give = std::min(piece, input_.size() - used_), room = std::min(piece, to.size());
    if (!deflated_) {
      const std::size_t count = std::min(give, room);
      std::copy_n(input_.data() + used_, count, to.data());
      used_ += count;
      made_ += count;
      return count;
    }
    // zlib does not write to its input; the cast bridges its old interface.
    z_.next_in = const_cast<Bytef*>(input_.data() + used_);
    z_.avail_in = static_cast<uInt>(give);
    z_.next_out = to.data();
    z_.avail_out = static_cast<uInt>(room);
    const int state = inflate(&z_, Z_NO_FLUSH);
    if (state == Z_MEM_ERROR) throw std::bad_alloc();
    const std::size_t count = room - z_.avail_out;
    used_ += give - z_.avail_in;
    made_ += count;
    ended_ = state == Z_STREAM_END;
    if ((state != Z_OK && !ended_) || (ended_ && made_ < size_)) refuse();
    return count;
  }
  /// Refuses content after the end, compressed bytes that were not used, and another checksum.
  void finish() {
    unsigned char more[1];
    while (deflated_ && !ended_) {
      if (take(more) > 0) refuse();
    }
    if (used_ != input_.size()) refuse();
    if (const auto sum = static_cast<std::uint32_t>(sum_); sum != crc_) {
      detail::fail(where_, "is corrupt; its CRC-32 is ", sum, ", the archive promises ", crc_);
    }
    finished_ = true;
  }

  std::string where_;
  std::span<const unsigned char> input_;
  std::size_t size_, used_ = 0, made_ = 0;
  std::uint32_t crc_;
  bool deflated_, ended_ = false, finished_ = false;
  z_stream z_{};
  uLong sum_ = crc32_z(0, nullptr, 0);
};

inline Bytes ZipArchive::read(const ZipEntry& entry, double memory) const {
  ZipEntryReader reader(*this, entry);
  detail::check_memory(reader.where(), static_cast<double>(reader.size()), memory);
  return detail::naming_file(reader.where(), [&] {
    Bytes r;
    do {  // memory grows only as data comes
      const std::size_t size = r.size();
      r.resize(std::min(reader.size(), std::max<std::size_t>(2 * size, 65536)));
      static_cast<void>(reader.read(std::span(r).subspan(size)));
    } while (r.size() < reader.size());
    return r;
  });
}

}  // namespace sheafnn::io
