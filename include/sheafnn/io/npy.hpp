/// \file
/// NpyArray: an array in NumPy's .npy format, versions 1 to 3, and its conversion to plain vectors.
///
/// Source: the format description in NumPy's documentation (numpy.lib.format).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/memory.hpp"
#include "sheafnn/core/text.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npy_header.hpp"

namespace sheafnn::io {

namespace detail {

/// A shape for messages, e.g. "(183, 1703)".
[[nodiscard]] inline std::string npy_shape_text(const std::vector<Index>& shape) {
  std::string r = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) r += sheafnn::detail::concat(i > 0 ? ", " : "", shape[i]);
  return r + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace detail

/// A numeric array of any shape: bool, (u)int8 … 64, float16 … 64, either byte order, C or Fortran order.
class NpyArray {
 public:
  /// Parses the header and checks that exactly the promised number of bytes follows.
  ///
  /// \param where    what messages call the array, e.g. "texas.npz: edges"
  /// \param content  the whole .npy file
  /// \throws std::runtime_error  damaged header, unsupported element type, or wrong length
  NpyArray(std::string where, Bytes content) : where_(std::move(where)), content_(std::move(content)) {
    header_ = detail::parse_npy_header(where_, content_, content_.size());
  }
  /// A vector of elements that follow one another, without a header.
  ///
  /// \param where  what messages call it
  /// \param dtype  element type as NumPy writes it, e.g. "|i1"
  /// \throws std::runtime_error  unsupported element type, or a part of an element at the end
  [[nodiscard]] static NpyArray of_elements(std::string where, std::string dtype, Bytes elements) {
    detail::NpyHeader header;
    header.dtype = std::move(dtype);
    detail::parse_npy_dtype(where, header);
    if (elements.size() % header.item_size != 0) {
      detail::fail(where, "has ", elements.size(), " bytes; elements of type '", header.dtype, "' have ",
                   header.item_size, " each");
    }
    header.size = static_cast<Index>(elements.size() / header.item_size);
    header.shape = {header.size};
    return NpyArray(std::move(where), std::move(elements), std::move(header));
  }

  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  [[nodiscard]] const std::vector<Index>& shape() const noexcept { return header_.shape; }
  [[nodiscard]] Index size() const noexcept { return header_.size; }
  /// Element type as NumPy writes it, e.g. "<f8".
  [[nodiscard]] const std::string& dtype() const noexcept { return header_.dtype; }
  /// Whether the elements are integers or booleans.
  [[nodiscard]] bool whole_numbers() const noexcept { return header_.kind != 'f'; }
  /// Whether single precision holds every element exactly.
  [[nodiscard]] bool fits_float() const noexcept {
    return header_.kind == 'b' || header_.item_size < (header_.kind == 'f' ? 8u : 4u);
  }
  /// Shape for messages, e.g. "(183, 1703)".
  [[nodiscard]] std::string shape_text() const { return detail::npy_shape_text(header_.shape); }

  /// All elements in row-major order as T = double, float or std::int64_t.
  ///
  /// Elements are rounded to the nearest double or float. With std::int64_t every element must be a whole number.
  ///
  /// \param memory  a larger array is refused before it is allocated
  /// \throws std::runtime_error  an element that T cannot represent, named with its index, or an array too large
  template <class T>
  [[nodiscard]] std::vector<T> values(double memory = memory_limit()) const {
    detail::check_memory(where_, static_cast<double>(header_.size) * sizeof(T), memory);
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, float> || std::is_same_v<T, std::int64_t>);
    switch (header_.kind) {
      case 'b':
        return convert<T>([this](const unsigned char* p, Index i) {
          if (*p > 1) detail::fail(element(i), int{*p}, " is not a truth value, which is 0 or 1");
          return static_cast<T>(*p);
        });
      case 'i':
        switch (header_.item_size) {
          case 1:
            return whole<T, std::int8_t>();
          case 2:
            return whole<T, std::int16_t>();
          case 4:
            return whole<T, std::int32_t>();
          default:
            return whole<T, std::int64_t>();
        }
      case 'u':
        switch (header_.item_size) {
          case 1:
            return whole<T, std::uint8_t>();
          case 2:
            return whole<T, std::uint16_t>();
          case 4:
            return whole<T, std::uint32_t>();
          default:
            return whole<T, std::uint64_t>();
        }
      default:
        switch (header_.item_size) {
          case 2:
            return convert<T>([this](const unsigned char* p, Index i) {
              return from_real<T>(from_half(raw<std::uint16_t>(p)), i);
            });
          case 4:
            return real<T, float>();
          default:
            return real<T, double>();
        }
    }
  }

  /// All elements as indices of nodes, edges, columns or the like.
  ///
  /// \throws std::runtime_error  booleans, which are not indices, or as values()
  [[nodiscard]] std::vector<std::int64_t> numbers() const {
    detail::refuse_truth_values(where_, header_);
    return values<std::int64_t>();
  }

 private:
  /// Bits of an element in this machine's byte order.
  template <class U>
  [[nodiscard]] U raw(const unsigned char* p) const {
    unsigned char bytes[sizeof(U)];
    std::copy_n(p, sizeof(U), bytes);
    if (header_.big_endian != (std::endian::native == std::endian::big)) std::reverse(bytes, bytes + sizeof(U));
    U value;
    std::memcpy(&value, bytes, sizeof(U));
    return value;
  }

  [[nodiscard]] static float from_half(std::uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const int fraction = bits & 1023;
    float magnitude = 0;
    if (exponent == 31) {
      magnitude = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    } else if (exponent == 0) {
      magnitude = std::ldexp(static_cast<float>(fraction), -24);
    } else {
      magnitude = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    }
    return (bits >> 15) != 0 ? -magnitude : magnitude;
  }

  template <class T, class Source>
  [[nodiscard]] std::vector<T> whole() const {
    return convert<T>([this](const unsigned char* p, Index i) {
      const Source value = raw<Source>(p);
      if constexpr (std::is_same_v<T, std::int64_t> && std::is_same_v<Source, std::uint64_t>) {
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
          detail::fail(element(i), value, " is too large; at most 9223372036854775807 is allowed");
        }
      }
      (void)i;
      return static_cast<T>(value);
    });
  }
  template <class T, class Source>
  [[nodiscard]] std::vector<T> real() const {
    return convert<T>([this](const unsigned char* p, Index i) { return from_real<T>(raw<Source>(p), i); });
  }
  template <class T, class Source>
  [[nodiscard]] T from_real(Source value, Index i) const {
    if constexpr (std::is_same_v<T, std::int64_t>) {
      constexpr Source limit = static_cast<Source>(9223372036854775808.0);
      if (!(value >= -limit && value < limit && std::trunc(value) == value)) {
        detail::fail(element(i), value, " is not a whole number of 64 bits");
      }
    } else if constexpr (sizeof(Source) > sizeof(T)) {
      if (std::isfinite(value) && std::abs(value) > static_cast<Source>(std::numeric_limits<T>::max())) {
        detail::fail(element(i), value, " is too large for single precision");
      }
    }
    return static_cast<T>(value);
  }

  /// Applies decode(bytes, row-major number) to every element, in row-major order.
  template <class T, class Decode>
  [[nodiscard]] std::vector<T> convert(const Decode& decode) const {
    std::vector<T> r(static_cast<std::size_t>(header_.size));
    const unsigned char* data = content_.data() + header_.data_begin;
    const Index item = static_cast<Index>(header_.item_size);
    const std::vector<Index>& shape = header_.shape;
    if (!header_.fortran_order || shape.size() < 2) {
      for (Index i = 0; i < header_.size; ++i) r[static_cast<std::size_t>(i)] = decode(data + i * item, i);
      return r;
    }
    std::vector<Index> at(shape.size(), 0), stride(shape.size(), 1);
    for (std::size_t k = 1; k < shape.size(); ++k) stride[k] = stride[k - 1] * shape[k - 1];
    Index stored = 0;
    for (Index i = 0; i < header_.size; ++i) {
      r[static_cast<std::size_t>(i)] = decode(data + stored * item, i);
      for (std::size_t k = shape.size(); k-- > 0;) {
        stored += stride[k];
        if (++at[k] < shape[k]) break;
        stored -= stride[k] * shape[k];
        at[k] = 0;
      }
    }
    return r;
  }

  /// "WHERE[i, j]" of the element with row-major number i.
  [[nodiscard]] std::string element(Index i) const {
    std::string r;
    for (std::size_t k = header_.shape.size(); k-- > 0;) {
      r = sheafnn::detail::concat(i % header_.shape[k], r.empty() ? "" : ", ", r);
      i /= header_.shape[k];
    }
    return sheafnn::detail::concat(where_, "[", r, "]");
  }

  NpyArray(std::string where, Bytes content, detail::NpyHeader header)
      : where_(std::move(where)), content_(std::move(content)), header_(std::move(header)) {}

  std::string where_;
  Bytes content_;
  detail::NpyHeader header_;
};

/// Texts of a .npy array of any shape, row by row, as UTF-8.
struct NpyTexts {
  std::string where;
  std::vector<Index> shape;
  std::vector<std::string> values;
};

namespace detail {

inline void append_utf8(std::string& to, std::uint32_t c) {
  const auto last = [&](int shift) { to += static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) {
    to += static_cast<char>(c);
  } else if (c < 0x800) {
    to += static_cast<char>(0xC0 | (c >> 6));
  } else if (c < 0x10000) {
    to += static_cast<char>(0xE0 | (c >> 12));
    last(6);
  } else {
    to += static_cast<char>(0xF0 | (c >> 18));
    last(12);
    last(6);
  }
  if (c >= 0x80) last(0);
}

}  // namespace detail

/// Reads an array of texts (dtype U) or bytes (dtype S) in C order.
///
/// \param where  what messages call the array
/// \throws std::runtime_error  another element type, Fortran order of a matrix, code points that are not characters, or a wrong
///                             length
[[nodiscard]] inline NpyTexts npy_texts(std::string where, const Bytes& content) {
  const detail::NpyHeader header = detail::read_npy_header(where, content);
  const std::string_view dtype = header.dtype;
  const bool wide = dtype.size() > 2 && dtype[1] == 'U', bytes = dtype.size() > 2 && dtype[1] == 'S';
  Index width = 0;
  if (!(wide || bytes) || !sheafnn::detail::parse_number(dtype.substr(2), width) || width < 1 ||
      width > (Index{1} << 24)) {
    detail::fail(where, "has element type '", detail::printable(dtype), "'; expected texts");
  }
  const Index item = wide ? 4 * width : width, held = static_cast<Index>(content.size() - header.data_begin);
  Index size = 1, long_extents = 0;
  for (const Index extent : header.shape) {
    if (extent > 0 && size > held / extent)
      detail::fail(where, "its shape needs more than its ", held, " bytes of data");
    size *= extent;
    long_extents += extent > 1;
  }
  if (size > held / item || size * item != held) {
    detail::fail(where, "its type '", detail::printable(dtype), "' and its shape do not fit its ", held,
                 " bytes of data");
  }
  if (header.fortran_order && long_extents > 1)
    detail::fail(where, "has texts in Fortran order; save them in C order");
  NpyTexts r{std::move(where), header.shape, std::vector<std::string>(static_cast<std::size_t>(size))};
  const unsigned char* at = content.data() + header.data_begin;
  for (std::string& text : r.values) {
    for (Index k = 0; k < width; ++k, at += wide ? 4 : 1) {
      std::uint32_t c = *at;
      for (std::size_t b = 0; wide && b < 4; ++b) {
        c = (b == 0 ? 0 : c << 8) | at[dtype[0] == '>' ? b : 3 - b];
      }
      if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        detail::fail(r.where, "holds ", c, ", which is not a character");
      if (wide) {
        detail::append_utf8(text, c);
      } else {
        text += static_cast<char>(c);
      }
    }
    text.resize(text.find_last_not_of('\0') + 1);  // NumPy pads with zeros
    if (!wide && !sheafnn::detail::is_utf8(text))
      detail::fail(r.where, "holds '", detail::printable(text), "', which is not UTF-8 text");
  }
  return r;
}

/// The text of a .npy file that holds a single one (dtype U, no extents), as to_npy(text) and NumPy write it.
///
/// \param where  what messages call the array
/// \throws std::runtime_error  numbers, several texts, characters outside of ASCII, or a wrong length
[[nodiscard]] inline std::string npy_text(const std::string& where, const Bytes& content) {
  const detail::NpyHeader header = detail::read_npy_header(where, content);
  const std::string& dtype = header.dtype;
  const std::size_t bytes = content.size() - header.data_begin;
  if (dtype.size() < 3 || dtype[1] != 'U' || !header.shape.empty()) {
    detail::fail(where, "has element type '", detail::printable(dtype), "' and ", header.shape.size(),
                 " extents; expected a single text");
  }
  if (dtype.substr(2) != std::to_string(bytes / 4) || bytes % 4 != 0) {
    detail::fail(where, "its type '", detail::printable(dtype), "' does not fit its ", bytes, " bytes of data");
  }
  std::string r;
  for (std::size_t at = header.data_begin; at < content.size(); at += 4) {
    std::uint32_t c = 0;
    for (std::size_t k = 0; k < 4; ++k) c |= std::uint32_t{content[at + (dtype[0] == '>' ? 3 - k : k)]} << (8 * k);
    if (c > 127) detail::fail(where, "holds character ", c, "; only ASCII is supported");
    if (c != 0) r += static_cast<char>(c);  // NumPy pads with zeros
  }
  return r;
}

}  // namespace sheafnn::io
