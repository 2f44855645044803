/// \file
/// Arrays in NumPy's .npy format, version 1, in memory.
///
/// Source: the format description in NumPy's documentation (numpy.lib.format).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io {

namespace detail {

/// The header, with capacity for `size` bytes after it.
[[nodiscard]] inline Bytes npy_with_header(const std::string& dtype, std::span<const Index> shape,
                                           std::size_t size) {
  std::string header = sheafnn::detail::concat("{'descr': '", dtype, "', 'fortran_order': False, 'shape': (");
  for (const Index extent : shape) header += sheafnn::detail::concat(extent, ",");
  header += "), }";
  constexpr std::size_t fixed = 10;  // magic, version, length of the header
  header.append((64 - (fixed + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  Bytes r = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  r.reserve(fixed + header.size() + size);
  append_little(r, static_cast<std::uint16_t>(header.size()));
  r.insert(r.end(), header.begin(), header.end());
  return r;
}
[[nodiscard]] constexpr char byte_order() { return std::endian::native == std::endian::big ? '>' : '<'; }
/// The type of elements T in a header, such as `<f8`.
template <class T>
[[nodiscard]] std::string npy_type() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
                std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>);
  constexpr char kind = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
  return sheafnn::detail::concat(byte_order(), kind, sizeof(T));
}

}  // namespace detail

/// A .npy file of T = float, double, std::int32_t, std::int64_t or std::uint64_t, in C order.
///
/// \param shape   at most 8 extents; empty for a single number
/// \param values  in row-major order
/// \throws std::invalid_argument  a number of values that the shape does not have, or a shape that NpyArray refuses
template <class T>
[[nodiscard]] Bytes to_npy(std::span<const Index> shape, std::span<const T> values) {
  require(shape.size() <= 8, "shape.size", shape.size(), "at most 8 extents");
  const Index size = detail::element_count("shape", shape);
  require(static_cast<Index>(values.size()) == size, "values", values.size(), sheafnn::detail::concat("the shape has ", size));
  Bytes r = detail::npy_with_header(detail::npy_type<T>(), shape, values.size_bytes());
  const std::size_t begin = r.size();
  r.resize(begin + values.size_bytes());
  if (!values.empty()) std::memcpy(r.data() + begin, values.data(), values.size_bytes());
  return r;
}

/// A .npy file of one text (dtype U, no extents), which Python reads by str(array). ASCII only.
///
/// \throws std::invalid_argument  an empty text, or another character
[[nodiscard]] inline Bytes to_npy(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  require(!text.empty() && plain, "text", detail::printable(text), "must consist of printable ASCII characters");
  Bytes r = detail::npy_with_header(sheafnn::detail::concat("<U", text.size()), {}, 4 * text.size());
  for (const char c : text) detail::append_little(r, static_cast<std::uint32_t>(c));
  return r;
}

}  // namespace sheafnn::io
