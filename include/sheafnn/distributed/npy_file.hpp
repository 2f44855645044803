/// \file
/// Ranges of .npy files: a rank reads or writes its part of an array that no rank holds as a whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/io/npy.hpp"
#include "sheafnn/io/npy_writer.hpp"

namespace sheafnn::distributed {

/// A .npy file of numbers in C order, of which ranges of rows are read.
class NpyFile {
 public:
  /// Reads the header.
  ///
  /// \throws io::MissingFile     no such file
  /// \throws std::runtime_error  a damaged header, or one whose array the file is too short for
  explicit NpyFile(const std::filesystem::path& path) : name_(path.string()), file_(path, std::ios::binary) {
    if (!file_) io::detail::fail_to_open(path, "cannot be opened");
    header_ = io::detail::read_rows_header(name_, file_);
  }

  [[nodiscard]] Index rows() const noexcept { return header_.shape[0]; }
  /// 1 where the array has one dimension.
  [[nodiscard]] Index columns() const noexcept { return header_.shape.size() == 2 ? header_.shape[1] : 1; }
  [[nodiscard]] std::size_t dimensions() const noexcept { return header_.shape.size(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Where its elements begin.
  [[nodiscard]] std::streamoff data_begin() const noexcept {
    return static_cast<std::streamoff>(header_.data_begin);
  }

  /// Rows first … first + count − 1. \tparam T  double, float or std::int64_t
  ///
  /// \throws std::runtime_error     an element that T cannot represent, or a file that cannot be read
  /// \throws std::invalid_argument  a range that the array does not have
  template <class T>
  [[nodiscard]] std::vector<T> read(Index first, Index count) {
    return array(first, count).template values<T>();
  }
  /// The same for indices of nodes, columns or the like. \throws std::runtime_error  also: booleans
  [[nodiscard]] std::vector<std::int64_t> read_numbers(Index first, Index count) {
    return array(first, count).numbers();
  }
  /// Type of the elements, as NumPy writes it, and bytes of a row.
  [[nodiscard]] const std::string& dtype() const noexcept { return header_.dtype; }
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    return static_cast<std::size_t>(columns()) * header_.item_size;
  }
  /// Appends the bytes of rows first … first + count − 1. \throws as read()
  void append_bytes(Index first, Index count, std::vector<char>& to) {
    require(first >= 0 && count >= 0 && first <= rows() - count, name_, first,
            sheafnn::detail::concat("rows ", first, " to ", first + count, " of ", rows()));
    const std::size_t begin = to.size(), bytes = static_cast<std::size_t>(count) * row_bytes();
    to.resize(begin + bytes);
    file_.seekg(data_begin() + static_cast<std::streamoff>(static_cast<std::size_t>(first) * row_bytes()));
    file_.read(to.data() + begin, static_cast<std::streamsize>(bytes));
    if (!file_) fail("cannot be read");
  }
  /// One element of an array of one dimension. \throws as read()
  [[nodiscard]] Index at(Index i) { return read_numbers(i, 1).front(); }

 private:
  [[nodiscard]] io::NpyArray array(Index first, Index count) {
    require(first >= 0 && count >= 0 && first <= rows() - count, name_, first,
            sheafnn::detail::concat("rows ", first, " to ", first + count, " of ", rows()));
    const Index numbers = count * columns();
    const std::size_t bytes = static_cast<std::size_t>(numbers) * header_.item_size;
    const Index shape[] = {numbers};
    io::Bytes content = io::detail::npy_with_header(header_.dtype, shape, bytes);
    const std::size_t begin = content.size();
    content.resize(begin + bytes);
    file_.seekg(data_begin() +
                static_cast<std::streamoff>(first * columns()) * static_cast<std::streamoff>(header_.item_size));
    file_.read(reinterpret_cast<char*>(content.data() + begin), static_cast<std::streamsize>(bytes));
    if (!file_) fail("cannot be read");
    return {sheafnn::detail::concat(name_, " from row ", first, " on"), std::move(content)};
  }
  [[noreturn]] void fail(const char* why) const { throw std::runtime_error(name_ + ": " + why); }

  std::string name_;
  std::ifstream file_;
  io::detail::NpyHeader header_;
};

namespace detail {

/// As NumPy writes it. \tparam T  std::int64_t, std::int32_t, float or double
template <class T>
[[nodiscard]] std::string npy_dtype() {
  return sheafnn::detail::concat(io::detail::byte_order(), std::is_floating_point_v<T> ? 'f' : 'i', sizeof(T));
}
/// The header of a .npy file, which comes before its elements.
template <class T>
[[nodiscard]] io::Bytes npy_header(std::span<const Index> shape) {
  return io::detail::npy_with_header(npy_dtype<T>(), shape, 0);
}

}  // namespace detail

/// Makes a .npy file of zeros, to be filled by write_rows() or write_bytes().
///
/// \param dtype  of its elements of item_size bytes, as NumPy writes it
/// \throws std::runtime_error  a file that cannot be written. Unchecked: extents of at least 0
inline void create_npy(const std::filesystem::path& path, const std::string& dtype, std::size_t item_size,
                       std::span<const Index> shape) {
  const io::Bytes header = io::detail::npy_with_header(dtype, shape, 0);
  Index size = 1;
  for (const Index extent : shape) size *= extent;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(header.data()), static_cast<std::streamsize>(header.size()));
  file.close();
  if (!file) throw std::runtime_error(path.string() + ": cannot be written");
  std::filesystem::resize_file(path, header.size() + static_cast<std::uintmax_t>(size) * item_size);
}
/// create_npy() for elements T. \tparam T  std::int64_t, std::int32_t, float or double \throws as above. Unchecked: as above
template <class T>
void create_npy(const std::filesystem::path& path, std::span<const Index> shape) {
  create_npy(path, detail::npy_dtype<T>(), sizeof(T), shape);
}
/// Writes the bytes of whole rows of a file of create_npy(), from row `first` on. Several ranks may write rows of their own
/// side by side.
///
/// \throws std::runtime_error     a file that cannot be written
/// \throws std::invalid_argument  more rows than there are
inline void write_bytes(const std::filesystem::path& path, Index first, std::span<const char> bytes) {
  const NpyFile array(path);
  const std::size_t row = std::max<std::size_t>(1, array.row_bytes());
  const Index count = static_cast<Index>(bytes.size() / row);
  require(first >= 0 && first <= array.rows() - count, array.name(), first,
          sheafnn::detail::concat("rows ", first, " to ", first + count, " of ", array.rows()));
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(array.data_begin() + static_cast<std::streamoff>(static_cast<std::size_t>(first) * row));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error(path.string() + ": cannot be written");
}
/// Writes rows of a file of create_npy(), from row `first` on. Several ranks may write rows of their own side by side.
///
/// \throws std::runtime_error     a file that cannot be written
/// \throws std::invalid_argument  more rows than there are. Unchecked: T is the type of the file
template <class T>
void write_rows(const std::filesystem::path& path, Index first, std::span<const T> values) {
  write_bytes(path, first,
              std::span<const char>(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

/// create_npy() of indices of `nodes` nodes: of 32 bits if these suffice, otherwise of 64. \throws as create_npy()
inline void create_node_numbers(const std::filesystem::path& path, Index nodes, Index count) {
  const Index shape[] = {count};
  if (nodes <= std::numeric_limits<std::int32_t>::max()) {
    create_npy<std::int32_t>(path, shape);
  } else {
    create_npy<std::int64_t>(path, shape);
  }
}
/// write_rows() into a file of create_node_numbers(). \throws as write_rows(). Unchecked: that the elements fit
inline void write_node_numbers(const std::filesystem::path& path, Index first,
                               std::span<const std::int64_t> numbers) {
  if (NpyFile(path).row_bytes() == sizeof(std::int64_t)) return write_rows(path, first, numbers);
  const std::vector<std::int32_t> narrow(numbers.begin(), numbers.end());
  write_rows<std::int32_t>(path, first, narrow);
}

}  // namespace sheafnn::distributed
