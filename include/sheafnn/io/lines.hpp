/// \file
/// Text files read line by line and field by field, with messages that name file and line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/text.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io::detail {

/// Splits `text` at every `separator`; an empty text is one empty field.
[[nodiscard]] inline std::vector<std::string_view> split_fields(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t end = text.find(separator);
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

using sheafnn::detail::parse_number;

/// The lines of a text file that are not empty. Lines may end as on Unix or on Windows, and a byte order mark is skipped.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path) : LineReader(path.string(), read_file(path)) {}
  /// Takes the content of a file; `name` is what messages call it.
  LineReader(std::string name, Bytes content) : LineReader(std::move(name), std::move(content), More()) {}
  /// Appends the next piece of a file to the bytes; false at its end.
  using More = std::function<bool(Bytes&)>;
  /// Reads a file in pieces: in memory are a piece and a line.
  LineReader(std::string name, More more) : LineReader(std::move(name), first_piece(more), more) {}

  /// Moves to the next line that is not empty; false at the end of the file.
  ///
  /// \throws std::runtime_error  a carriage return inside a line
  [[nodiscard]] bool next() {
    for (;;) {
      const std::string_view rest(reinterpret_cast<const char*>(content_.data()) + begin_,
                                  content_.size() - begin_);
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos && more_) {
        content_.erase(content_.begin(), content_.begin() + static_cast<std::ptrdiff_t>(begin_));
        begin_ = 0;
        check_memory(file_, static_cast<double>(content_.size()));  // a line without an end
        if (!more_(content_)) more_ = nullptr;
        continue;
      }
      if (rest.empty()) return false;
      line_ = rest.substr(0, end);
      begin_ = std::min(begin_ + line_.size() + 1, content_.size());
      ++number_;
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      if (line_.find('\r') != std::string_view::npos) refuse_carriage_return(file_, number_);
      if (!line_.empty()) return true;
    }
  }
  [[nodiscard]] std::string_view line() const noexcept { return line_; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  /// Number of the current line, from 1.
  [[nodiscard]] Index number() const noexcept { return number_; }
  /// Bytes of the file; of one that is read in pieces, bytes in memory.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(content_.size()); }
  /// "FILE:LINE" of the current line.
  [[nodiscard]] std::string where() const { return sheafnn::detail::concat(file_, ":", number_); }

 private:
  LineReader(std::string name, Bytes content, More more)
      : file_(std::move(name)), content_(std::move(content)), more_(std::move(more)) {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    const std::string_view text(reinterpret_cast<const char*>(content_.data()), content_.size());
    if (text.starts_with(mark)) begin_ = mark.size();
  }
  [[nodiscard]] static Bytes first_piece(const More& more) {
    Bytes r;
    static_cast<void>(more(r));
    return r;
  }

  std::string file_;
  Bytes content_;
  More more_;
  std::size_t begin_ = 0;
  Index number_ = 0;
  std::string_view line_;
};

}  // namespace sheafnn::io::detail
