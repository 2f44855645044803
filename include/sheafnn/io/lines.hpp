/// \file
/// Text files read line by line and field by field, with messages that name file and line.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
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

/// Parses the whole of `text` as a number of type T; false where it is none or does not fit. What is too small for a
/// floating-point number is rounded.
template <class T>
[[nodiscard]] bool parse_number(std::string_view text, T& value) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);  // not known to from_chars
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {  // from_chars() does not say on which side
      std::istringstream in{std::string(text)};
      in.imbue(std::locale::classic());
      in.exceptions(std::ios::badbit);  // without memory: an exception
      T nearest = 1;
      in >> nearest;
      if (!(std::abs(nearest) < 1)) return false;
      value = nearest;
      return true;
    }
  }
  return error == std::errc();
}

/// The lines of a text file that are not empty; line ends may be those of Unix or Windows.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path) : LineReader(path.string(), read_file(path)) {}
  /// Takes the content of a file; `name` is what messages call it.
  LineReader(std::string name, Bytes content) : file_(std::move(name)), content_(std::move(content)) {}

  /// Moves to the next line that is not empty; false at the end of the file.
  [[nodiscard]] bool next() {
    while (begin_ < content_.size()) {
      const std::string_view rest(reinterpret_cast<const char*>(content_.data()) + begin_,
                                  content_.size() - begin_);
      line_ = rest.substr(0, rest.find('\n'));
      begin_ += line_.size() + 1;
      ++number_;
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      if (!line_.empty()) return true;
    }
    return false;
  }
  [[nodiscard]] std::string_view line() const noexcept { return line_; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  /// Number of the current line, from 1.
  [[nodiscard]] Index number() const noexcept { return number_; }
  /// Bytes of the file.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(content_.size()); }
  /// "FILE:LINE" of the current line.
  [[nodiscard]] std::string where() const { return sheafnn::detail::concat(file_, ":", number_); }

 private:
  std::string file_;
  Bytes content_;
  std::size_t begin_ = 0;
  Index number_ = 0;
  std::string_view line_;
};

}  // namespace sheafnn::io::detail
