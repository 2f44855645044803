/// \file
/// Header of NumPy's .npy format: element type, memory order and shape.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <istream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io::detail {

/// What the header of a .npy file says, checked against the length of the file.
struct NpyHeader {
  std::string dtype;          ///< as written, e.g. "<f8"
  char kind = 'f';            ///< 'b' booleans, 'i' and 'u' integers, 'f' floating point
  std::size_t item_size = 8;  ///< bytes
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<Index> shape;
  Index size = 1;              ///< number of elements
  std::size_t data_begin = 0;  ///< where the elements begin
};

/// Reads the Python dictionary literal {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }.
class NpyHeaderParser {
 public:
  NpyHeaderParser(std::string_view where, std::string_view text) : where_(where), text_(text) {}

  [[nodiscard]] NpyHeader parse() {
    bool seen[3] = {false, false, false};
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !seen[0]) {
        if (peek() == '[') fail(where_, "is a structured array; only plain numeric arrays are supported");
        header_.dtype = quoted();
        seen[0] = true;
      } else if (key == "fortran_order" && !seen[1]) {
        header_.fortran_order = truth();
        seen[1] = true;
      } else if (key == "shape" && !seen[2]) {
        header_.shape = tuple();
        seen[2] = true;
      } else {
        damaged();
      }
      if (peek() != '}') expect(',');
    }
    if (!(seen[0] && seen[1] && seen[2]) || peek() != '\0') damaged();
    return header_;
  }

 private:
  [[noreturn]] void damaged() const {
    fail(where_, "its .npy header is damaged near character ", at_, ": ", printable(text_));
  }
  /// Next character that is not white space; 0 at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) damaged();
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') damaged();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) damaged();
    std::string r(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return r;
  }
  bool truth() {
    peek();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    damaged();
  }
  std::vector<Index> tuple() {
    std::vector<Index> r;
    expect('(');
    while (!accept(')')) {
      r.push_back(number());
      accept('L');  // Python 2 marked long numbers
      if (peek() != ')') expect(',');
    }
    return r;
  }
  Index number() {
    constexpr Index most = std::numeric_limits<Index>::max();
    const char first = peek();
    if (first < '0' || first > '9') damaged();
    Index r = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const Index digit = text_[at_] - '0';
      if (r > (most - digit) / 10) damaged();
      r = 10 * r + digit;
    }
    return r;
  }

  std::string_view where_;
  std::string_view text_;
  std::size_t at_ = 0;
  NpyHeader header_;
};

/// Splits an element type such as "<f8" into byte order, kind and size.
inline void parse_npy_dtype(std::string_view where, NpyHeader& header) {
  const std::string_view dtype = header.dtype;
  std::string_view rest = dtype;
  if (!rest.empty() && std::string_view("<>|=").find(rest.front()) != std::string_view::npos) {
    header.big_endian = rest.front() == '>';
    rest.remove_prefix(1);
  }
  if (!rest.empty() && rest.front() == 'O') {
    fail(where, "holds Python objects (dtype object); save it as an array of numbers");
  }
  constexpr std::string_view known[] = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"};
  if (std::find(std::begin(known), std::end(known), rest) == std::end(known)) {
    fail(where, "has element type '", printable(dtype),
         "'; supported are bool, int8 to int64, uint8 to uint64 and float16 to float64");
  }
  header.kind = rest[0];
  header.item_size = static_cast<std::size_t>(rest[1] - '0');
}

/// Reads the header of a .npy file as it is: shape, order, and an element type of any kind.
///
/// \throws std::runtime_error  no header, or a damaged one
[[nodiscard]] inline NpyHeader read_npy_header(std::string_view where, const Bytes& content) {
  constexpr unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (content.size() < 10 || !std::equal(std::begin(magic), std::end(magic), content.begin())) {
    fail(where, "is not a .npy array; its magic number is missing");
  }
  const int version = content[6];
  if (version < 1 || version > 3) fail(where, "has .npy format version ", version, "; 1 to 3 are supported");
  const std::size_t length_size = version == 1 ? 2 : 4;
  const std::size_t begin = 8 + length_size;
  if (content.size() < begin) fail(where, "its .npy header is truncated");
  const std::size_t length = version == 1 ? load_little<std::uint16_t>(content.data() + 8)
                                          : load_little<std::uint32_t>(content.data() + 8);
  if (length > content.size() - begin) fail(where, "its .npy header is truncated");
  const std::string_view text(reinterpret_cast<const char*>(content.data()) + begin, length);
  NpyHeader header = NpyHeaderParser(where, text).parse();
  header.data_begin = begin + length;
  return header;
}

/// Reads the header of a whole .npy file of numbers.
///
/// \param content  the file, or its beginning with the header
/// \param bytes    of the file
/// \throws std::runtime_error  see NpyArray
[[nodiscard]] inline NpyHeader parse_npy_header(std::string_view where, const Bytes& content, std::size_t bytes) {
  NpyHeader header = read_npy_header(where, content);
  parse_npy_dtype(where, header);

  // The product of the extents is bounded even where an extent is 0, so that users can multiply without care.
  if (header.shape.size() > 64) fail(where, "has ", header.shape.size(), " dimensions; at most 64 are supported");
  constexpr Index most = std::numeric_limits<Index>::max() / 16;
  Index bound = 1;
  for (const Index extent : header.shape) {
    if (std::max<Index>(extent, 1) > most / bound) fail(where, "has an impossible shape; its size overflows");
    bound *= std::max<Index>(extent, 1);
    header.size *= extent;
  }
  const std::size_t expected = static_cast<std::size_t>(header.size) * header.item_size;
  if (expected != bytes - header.data_begin) {
    fail(where, "its shape and type need ", expected, " bytes of data, but ", bytes - header.data_begin,
         " are there");
  }
  return header;
}

/// Refuses booleans, which are not indices. \throws std::runtime_error  naming the array
inline void refuse_truth_values(std::string_view where, const NpyHeader& header) {
  if (header.kind == 'b') fail(where, "holds truth values; whole numbers are needed");
}

/// Refuses an order in which rows are not contiguous. \throws std::runtime_error  naming the array
inline void refuse_fortran_order(std::string_view where, const NpyHeader& header) {
  if (header.fortran_order && header.shape.size() > 1) fail(where, "is in Fortran order; save it in C order");
}

/// Reads the header of a .npy file of numbers whose rows are read one by one: in C order, with one or two dimensions.
///
/// \param file  open, in binary; its position afterwards is anywhere
/// \throws std::runtime_error  a damaged header, another order or shape, or one whose array the file is too short for
[[nodiscard]] inline NpyHeader read_rows_header(std::string_view where, std::istream& file) {
  Bytes begin(65536);
  file.read(reinterpret_cast<char*>(begin.data()), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  file.clear();
  NpyHeader header = read_npy_header(where, begin);
  parse_npy_dtype(where, header);
  refuse_fortran_order(where, header);
  if (header.shape.empty() || header.shape.size() > 2) fail(where, "must have one or two dimensions");
  file.seekg(0, std::ios::end);
  double needed = static_cast<double>(header.item_size);
  for (const Index extent : header.shape) needed *= static_cast<double>(extent);
  if (static_cast<double>(file.tellg()) < static_cast<double>(header.data_begin) + needed)
    fail(where, "is shorter than its header says");
  return header;
}

}  // namespace sheafnn::io::detail
