/// \file
/// Arrays of NumPy's .npy format in pieces. NpyStream reads one of an archive. NpyStreamWriter writes a file whose number of
/// rows is known at its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npy.hpp"
#include "sheafnn/io/npy_header.hpp"
#include "sheafnn/io/npy_writer.hpp"
#include "sheafnn/io/zip.hpp"

namespace sheafnn::io {

/// The elements of an array, from the first to the last, in the order of the file.
class NpyStream {
 public:
  /// \param where  what messages call the array
  /// \throws std::runtime_error  as NpyArray and ZipEntryReader
  NpyStream(std::string where, std::unique_ptr<ZipEntryReader> entry)
      : where_(std::move(where)), entry_(std::move(entry)), ahead_(std::min<std::size_t>(entry_->size(), 65536)) {
    static_cast<void>(entry_->read(ahead_));
    header_ = detail::parse_npy_header(where_, ahead_, entry_->size());
    at_ = header_.data_begin;
  }

  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  [[nodiscard]] const std::vector<Index>& shape() const noexcept { return header_.shape; }
  [[nodiscard]] std::string shape_text() const { return detail::npy_shape_text(header_.shape); }
  /// Are the rows of the array not contiguous?
  [[nodiscard]] bool fortran_order() const noexcept { return header_.fortran_order && header_.shape.size() > 1; }
  /// Refuses fortran_order(). \throws std::runtime_error  naming the array
  void require_rows() const { detail::refuse_fortran_order(where_, header_); }
  /// Number of elements that have not been read yet.
  [[nodiscard]] Index left() const noexcept { return header_.size - next_; }

  /// The next elements, at most `count`, as an array of one dimension. \throws std::runtime_error  as ZipEntryReader
  [[nodiscard]] NpyArray next(Index count) {
    const Index first = next_, numbers = std::min(count, left());
    Bytes bytes(static_cast<std::size_t>(numbers) * header_.item_size);
    read(bytes);
    next_ += numbers;
    return NpyArray::of_elements(sheafnn::detail::concat(where_, " from number ", first, " on"), header_.dtype,
                                 std::move(bytes));
  }
  /// Skips elements. \throws std::runtime_error  as next()
  void skip(Index count) {
    constexpr Index piece = 1 << 17;
    for (Index left = count; left > 0; left -= piece) static_cast<void>(next(std::min(piece, left)));
  }

 private:
  void read(std::span<unsigned char> to) {
    const std::size_t ready = std::min(to.size(), ahead_.size() - at_);
    std::copy_n(ahead_.begin() + static_cast<std::ptrdiff_t>(at_), ready, to.begin());
    at_ += ready;
    if (ready < to.size()) static_cast<void>(entry_->read(to.subspan(ready)));
  }

  std::string where_;
  std::unique_ptr<ZipEntryReader> entry_;
  Bytes ahead_;  ///< the beginning of the file, with the header
  std::size_t at_ = 0;
  detail::NpyHeader header_;
  Index next_ = 0;
};

/// A new .npy file of elements T, which is complete after finish(). \tparam T  as of to_npy()
template <class T>
class NpyStreamWriter {
 public:
  /// \param columns  of a row; −1: the array has one dimension
  /// \throws std::runtime_error  the file cannot be written. Unchecked: columns ≥ −1
  explicit NpyStreamWriter(const std::filesystem::path& path, Index columns = -1)
      : name_(path.string()), columns_(columns), file_(path, std::ios::binary | std::ios::trunc) {
    const Bytes header = header_of(std::numeric_limits<Index>::max() / 2 / std::max<Index>(columns, 1));
    header_size_ = header.size();
    put(std::span<const unsigned char>(header));
  }
  /// Appends elements. \throws std::runtime_error  the file cannot be written
  void write(std::span<const T> numbers) {
    put(std::span(reinterpret_cast<const unsigned char*>(numbers.data()), numbers.size_bytes()));
    count_ += static_cast<Index>(numbers.size());
  }
  /// Writes the number of rows. Unchecked: that rows are whole. \throws std::runtime_error  the file cannot be written
  void finish() {
    Bytes header = header_of(columns_ < 0 ? count_ : columns_ == 0 ? 0 : count_ / columns_);
    header.back() = ' ';
    header.resize(header_size_, ' ');
    header.back() = '\n';
    const std::size_t text = header_size_ - 10;  // after magic number, version and this length
    header[8] = static_cast<unsigned char>(text & 0xff);
    header[9] = static_cast<unsigned char>(text >> 8);
    file_.seekp(0);
    put(std::span<const unsigned char>(header));
    file_.close();
    if (!file_) fail();
  }

 private:
  [[nodiscard]] Bytes header_of(Index rows) const {
    const Index shape[] = {rows, columns_};
    return detail::npy_with_header(detail::npy_type<T>(), std::span(shape).first(columns_ < 0 ? 1 : 2), 0);
  }
  void put(std::span<const unsigned char> bytes) {
    file_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file_) fail();
  }
  [[noreturn]] void fail() const { detail::fail(name_, "cannot be written; ", detail::system_reason()); }

  std::string name_;
  Index columns_, count_ = 0;
  std::ofstream file_;
  std::size_t header_size_ = 0;
};

}  // namespace sheafnn::io
