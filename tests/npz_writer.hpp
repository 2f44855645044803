// Writes .npy arrays and .npz archives in memory, well-formed or deliberately not, independently of the library's
// readers.
#pragma once

#include <zlib.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace test {

using Bytes = std::vector<unsigned char>;

template <class U>
void append(Bytes& to, U value, bool big_endian = false) {
  for (std::size_t i = 0; i < sizeof(U); ++i) {
    const std::size_t byte = big_endian ? sizeof(U) - 1 - i : i;
    to.push_back(static_cast<unsigned char>(static_cast<std::uint64_t>(value) >> (8 * byte)));
  }
}
inline void append(Bytes& to, const std::string& text) { to.insert(to.end(), text.begin(), text.end()); }
inline void append(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

// A .npy file with any header text.
inline Bytes npy_with_header(std::string header, const Bytes& data, int version = 1) {
  const std::size_t fixed = version == 1 ? 10 : 12;
  while ((fixed + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  Bytes r = {0x93, 'N', 'U', 'M', 'P', 'Y', static_cast<unsigned char>(version), 0};
  if (version == 1) {
    append(r, static_cast<std::uint16_t>(header.size()));
  } else {
    append(r, static_cast<std::uint32_t>(header.size()));
  }
  append(r, header);
  append(r, data);
  return r;
}

struct NpyLayout {
  std::string dtype = "<f8";
  bool fortran = false;
  int version = 1;
};

// Half-precision bits of 0 and of normal numbers with at most 11 significant bits.
inline std::uint16_t half_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (value == 0) return static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) | ((((bits >> 23) & 255u) - 112u) << 10) |
                                    ((bits >> 13) & 1023u));
}

// A .npy file from row-major values.
template <class T>
Bytes npy(const std::vector<std::size_t>& shape, const std::vector<T>& values, const NpyLayout& layout = {}) {
  std::string text =
      "{'descr': '" + layout.dtype + "', 'fortran_order': " + (layout.fortran ? "True" : "False") + ", 'shape': (";
  for (const std::size_t extent : shape) text += std::to_string(extent) + ", ";
  text += "), }";
  const char kind = layout.dtype[1];
  const char size = layout.dtype[2];
  const bool big = layout.dtype[0] == '>';
  Bytes data;
  for (std::size_t k = 0; k < values.size(); ++k) {
    std::size_t i = k;
    if (layout.fortran) {  // k counts with the first index fastest
      std::size_t rest = k;
      std::size_t stride = values.size();
      i = 0;
      for (const std::size_t extent : shape) {
        stride /= extent;
        i += rest % extent * stride;
        rest /= extent;
      }
    }
    const T v = values[i];
    if (kind == 'f') {
      if (size == '2') append(data, half_bits(static_cast<float>(v)), big);
      if (size == '4') append(data, std::bit_cast<std::uint32_t>(static_cast<float>(v)), big);
      if (size == '8') append(data, std::bit_cast<std::uint64_t>(static_cast<double>(v)), big);
    } else {
      const std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(v));
      if (size == '1') append(data, static_cast<std::uint8_t>(bits), big);
      if (size == '2') append(data, static_cast<std::uint16_t>(bits), big);
      if (size == '4') append(data, static_cast<std::uint32_t>(bits), big);
      if (size == '8') append(data, bits, big);
    }
  }
  return npy_with_header(text, data, layout.version);
}

struct ZipOptions {
  bool deflate = false;
  bool zip64_local = false;    // as NumPy does: sizes in a zip64 field of the local header
  bool zip64_central = false;  // the same in the directory, and zip64 end records
  std::uint16_t flags = 0;
  int method = -1;  // other than what `deflate` says
};

// Collects entries and writes the archive.
class ZipWriter {
 public:
  explicit ZipWriter(ZipOptions options = {}) : options_(options) {}

  ZipWriter& add(const std::string& name, const Bytes& content) {
    const std::uint32_t crc =
        static_cast<std::uint32_t>(crc32(0, content.data(), static_cast<uInt>(content.size())));
    return add_raw(name, options_.deflate ? deflated(content) : content, content.size(), crc);
  }
  // Any stored bytes, size and checksum.
  ZipWriter& add_raw(const std::string& name, const Bytes& stored, std::uint64_t size, std::uint32_t crc) {
    const std::uint64_t offset = body_.size();
    const std::uint16_t method =
        static_cast<std::uint16_t>(options_.method >= 0 ? options_.method : (options_.deflate ? 8 : 0));
    const auto common = [&](Bytes& to, bool wide, std::size_t extra) {
      append(to, std::uint16_t{45});
      append(to, options_.flags);
      append(to, method);
      append(to, std::uint32_t{0x00210000});  // 1980-01-01 00:00
      append(to, crc);
      append(to, wide ? 0xFFFFFFFFu : static_cast<std::uint32_t>(stored.size()));
      append(to, wide ? 0xFFFFFFFFu : static_cast<std::uint32_t>(size));
      append(to, static_cast<std::uint16_t>(name.size()));
      append(to, static_cast<std::uint16_t>(extra));
    };
    append(body_, std::uint32_t{0x04034b50});
    common(body_, options_.zip64_local, options_.zip64_local ? 20 : 0);
    append(body_, name);
    if (options_.zip64_local) {
      append(body_, std::uint16_t{1});
      append(body_, std::uint16_t{16});
      append(body_, size);
      append(body_, std::uint64_t{stored.size()});
    }
    append(body_, stored);

    append(directory_, std::uint32_t{0x02014b50});
    append(directory_, std::uint16_t{45});
    common(directory_, options_.zip64_central, options_.zip64_central ? 28 : 0);
    append(directory_, std::uint16_t{0});  // comment
    append(directory_, std::uint16_t{0});  // disk
    append(directory_, std::uint16_t{0});  // attributes
    append(directory_, std::uint32_t{0});
    append(directory_, options_.zip64_central ? 0xFFFFFFFFu : static_cast<std::uint32_t>(offset));
    append(directory_, name);
    if (options_.zip64_central) {
      append(directory_, std::uint16_t{1});
      append(directory_, std::uint16_t{24});
      append(directory_, size);
      append(directory_, std::uint64_t{stored.size()});
      append(directory_, offset);
    }
    ++count_;
    return *this;
  }

  [[nodiscard]] Bytes finish(const std::string& comment = "") const {
    Bytes r = body_;
    append(r, directory_);
    const std::uint64_t end64 = r.size();
    if (options_.zip64_central) {
      append(r, std::uint32_t{0x06064b50});
      append(r, std::uint64_t{44});
      append(r, std::uint32_t{45 | (45 << 16)});
      append(r, std::uint64_t{0});  // disks
      append(r, std::uint64_t{count_});
      append(r, std::uint64_t{count_});
      append(r, std::uint64_t{directory_.size()});
      append(r, std::uint64_t{body_.size()});
      append(r, std::uint32_t{0x07064b50});
      append(r, std::uint32_t{0});
      append(r, end64);
      append(r, std::uint32_t{1});
    }
    append(r, std::uint32_t{0x06054b50});
    append(r, std::uint32_t{0});  // disks
    const std::uint16_t count = options_.zip64_central ? 0xFFFF : count_;
    append(r, count);
    append(r, count);
    append(r, options_.zip64_central ? 0xFFFFFFFFu : static_cast<std::uint32_t>(directory_.size()));
    append(r, options_.zip64_central ? 0xFFFFFFFFu : static_cast<std::uint32_t>(body_.size()));
    append(r, static_cast<std::uint16_t>(comment.size()));
    append(r, comment);
    return r;
  }

  static Bytes deflated(const Bytes& content) {
    z_stream z{};
    deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    Bytes r(deflateBound(&z, static_cast<uLong>(content.size())));
    Bytes input = content;
    z.next_in = input.data();
    z.avail_in = static_cast<uInt>(input.size());
    z.next_out = r.data();
    z.avail_out = static_cast<uInt>(r.size());
    deflate(&z, Z_FINISH);
    r.resize(z.total_out);
    deflateEnd(&z);
    return r;
  }

 private:
  ZipOptions options_;
  Bytes body_, directory_;
  std::uint16_t count_ = 0;
};

}  // namespace test
