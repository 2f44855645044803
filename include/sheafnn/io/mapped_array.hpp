/// \file
/// MappedArray: a .npy file in C order whose elements are read in place, without memory for the array. The operating
/// system keeps in memory what it has room for. Needs a POSIX system.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <span>
#include <string>

#include "sheafnn/core/config.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/mapped_file.hpp"
#include "sheafnn/io/npy_header.hpp"

namespace sheafnn::io {

/// See the file comment. Unchecked: indices of elements in [0, rows() · columns()), and that the file stays as it is.
class MappedArray {
 public:
  /// \throws MissingFile         no such file
  /// \throws std::runtime_error  a file that cannot be mapped or is too short; a damaged header; half precision; another
  ///                             byte order than the machine's; more than two dimensions
  explicit MappedArray(const std::filesystem::path& path)
      : name_(path.string()), header_(header_of(path)), file_(path, bytes_of(header_)) {
    if (header_.item_size > 1 && header_.big_endian != (std::endian::native == std::endian::big)) {
      detail::fail(name_, "has numbers in another byte order than this machine's; save it with '<'");
    }
    if (header_.kind == 'f' && header_.item_size == 2) {
      detail::fail(name_, "has element type float16; save it as float32");
    }
  }
  [[nodiscard]] Index rows() const noexcept { return header_.shape[0]; }
  /// 1 where the array has one dimension.
  [[nodiscard]] Index columns() const noexcept { return header_.shape.size() == 2 ? header_.shape[1] : 1; }
  [[nodiscard]] std::size_t dimensions() const noexcept { return header_.shape.size(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Are its elements integers or booleans?
  [[nodiscard]] bool whole() const noexcept { return header_.kind != 'f'; }

  /// Element i of any type.
  [[nodiscard]] double number(Index i) const noexcept {
    if (whole()) return static_cast<double>(integer(i));
    return header_.item_size == 4 ? load<float, double>(i) : load<double, double>(i);
  }
  /// Elements first, first + 1, … of any type. Unchecked: the array has as many.
  void numbers(Index first, std::span<double> out) const noexcept {
    if (!whole() && header_.item_size == 4) {
      for (std::size_t k = 0; k < out.size(); ++k) out[k] = load<float, double>(first + static_cast<Index>(k));
    } else {
      for (std::size_t k = 0; k < out.size(); ++k) out[k] = number(first + static_cast<Index>(k));
    }
  }

 protected:
  [[nodiscard]] const detail::NpyHeader& header() const noexcept { return header_; }
  /// Element i. Unchecked: whole(), and that it fits.
  [[nodiscard]] Index integer(Index i) const noexcept {
    const bool sign = header_.kind == 'i';
    switch (header_.item_size) {
      case 1:
        return sign ? load<std::int8_t, Index>(i) : load<std::uint8_t, Index>(i);
      case 2:
        return sign ? load<std::int16_t, Index>(i) : load<std::uint16_t, Index>(i);
      case 4:
        return sign ? load<std::int32_t, Index>(i) : load<std::uint32_t, Index>(i);
      default:
        return sign ? load<std::int64_t, Index>(i) : load<std::uint64_t, Index>(i);
    }
  }

 private:
  [[nodiscard]] static detail::NpyHeader header_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) detail::fail_to_open(path, "cannot be opened");
    return detail::read_rows_header(path.string(), file);
  }
  [[nodiscard]] static std::size_t bytes_of(const detail::NpyHeader& header) {
    std::size_t r = header.item_size;
    for (const Index extent : header.shape) r *= static_cast<std::size_t>(extent);
    return header.data_begin + r;
  }
  template <class Stored, class T>
  [[nodiscard]] T load(Index i) const noexcept {
    Stored r;
    std::memcpy(&r, file_.bytes().data() + header_.data_begin + static_cast<std::size_t>(i) * sizeof(Stored),
                sizeof(Stored));
    return static_cast<T>(r);
  }

  std::string name_;
  detail::NpyHeader header_;
  MappedFile file_;
};

/// A mapped array of booleans or integers. Unchecked: as MappedArray, and that integers are below 2⁶³.
class MappedMask : public MappedArray {
 public:
  /// \throws std::runtime_error  as MappedArray, or an array of fractions
  explicit MappedMask(const std::filesystem::path& path) : MappedArray(path) {
    if (!whole()) detail::fail(name(), "has no whole numbers");
  }
  /// Element i.
  [[nodiscard]] Index at(Index i) const noexcept { return integer(i); }
};

/// A mapped array of indices of nodes, columns or the like. Unchecked: as MappedMask.
class MappedNumbers : public MappedMask {
 public:
  /// \throws std::runtime_error  as MappedMask, or booleans
  explicit MappedNumbers(const std::filesystem::path& path) : MappedMask(path) {
    detail::refuse_truth_values(name(), header());
  }
};

}  // namespace sheafnn::io
