/// \file
/// Delimited text: records of fields as RFC 4180 describes them, read with file and line for messages, and written.
///
/// Fields are separated by one character, which a first line such as sep=; may declare. A field in double quotes may
/// hold separators, line ends and, doubled, double quotes; blanks around a field without quotes do not belong to
/// it. Lines end as on Unix or Windows; empty lines are skipped, and so is a byte order mark. The text has to be
/// UTF-8.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/text.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io {

namespace detail {

using sheafnn::detail::utf8_length;

/// The separator: the comma, semicolon or tab, whichever occurs most often outside quotes. It is counted in the first line
/// that is neither blank nor, by its first character, a comment. If the line has no such character, the separator is the
/// blank if `blanks` is set and a blank occurs between other characters. Otherwise it is the comma.
[[nodiscard]] inline char guess_separator(std::string_view text, std::string_view comments = "",
                                          bool blanks = false) noexcept {
  constexpr std::string_view candidates = ",;\t", space = " \t\r";
  for (;;) {  // to the first line that counts
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return ',';
    if (comments.find(text[first]) == std::string_view::npos) {
      const std::size_t before = text.substr(0, first).rfind('\n');
      text.remove_prefix(before == std::string_view::npos ? 0 : before + 1);
      break;
    }
    text.remove_prefix(std::min(text.find('\n', first), text.size()));
  }
  std::size_t counts[candidates.size()] = {};
  bool quoted = false, gap = false, blank_within = false, begun = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n') break;
    const bool is_blank = space.find(c) != std::string_view::npos;
    blank_within = blank_within || (gap && !is_blank);
    begun = begun || !is_blank;
    gap = is_blank && begun;
    const std::size_t k = candidates.find(c);
    if (k != std::string_view::npos) ++counts[k];
  }
  const std::size_t* const most = std::max_element(counts, counts + candidates.size());
  if (*most == 0 && blanks && blank_within) return ' ';
  return candidates[static_cast<std::size_t>(most - counts)];
}

}  // namespace detail

/// Reads records one by one.
class CsvReader {
 public:
  /// Opens a file. The separator of .tsv files is the tab; for other files it is what the first line looks like: comma,
  /// semicolon or tab.
  ///
  /// \throws std::runtime_error  the file cannot be read or is not UTF-8
  explicit CsvReader(const std::filesystem::path& path)
      : CsvReader(path.string(), read_file(path), path.extension() == ".tsv" ? '\t' : '\0') {}
  /// Takes the content of a file.
  ///
  /// \param name       what messages call it
  /// \param separator  between fields; 0: what the first line looks like
  /// \throws std::runtime_error  it is not UTF-8
  CsvReader(std::string name, Bytes content, char separator)
      : name_(std::move(name)), content_(std::move(content)) {
    if (rest().starts_with("\xEF\xBB\xBF")) at_ = 3;
    check_utf8();
    if (separator == '\0') separator = declared_separator();
    guessed_ = separator == '\0';
    separator_ = guessed_ ? detail::guess_separator(rest()) : separator;
  }

  /// For edge lists, before the first record: lines that begin with one of `comments` are skipped. If the first line has no
  /// separator, fields are separated by any number of blanks. Takes any characters.
  void read_as_edges(std::string comments) {
    comments_ = std::move(comments);
    if (guessed_) separator_ = detail::guess_separator(rest(), comments_, true);
  }

  /// Moves to the next record that is not an empty line; false at the end of the text.
  ///
  /// \throws std::runtime_error  a quote that is not closed or not allowed there, or a carriage return inside a line
  [[nodiscard]] bool next() {
    while (at_ < content_.size()) {
      if (skip_comment()) continue;
      begin_ = line_;
      fields_.clear();
      bool quoted = false;
      do {
        quoted = read_field() || quoted;
      } while (next_field());
      if (at_ < content_.size()) end_line();
      if (fields_.size() > 1 || quoted || !fields_.front().empty()) return true;
    }
    return false;
  }
  [[nodiscard]] const std::vector<std::string>& fields() const noexcept { return fields_; }
  [[nodiscard]] const std::string& file() const noexcept { return name_; }
  /// Number of the line where the record begins.
  [[nodiscard]] Index line() const noexcept { return begin_; }
  /// "FILE:LINE" of the record.
  [[nodiscard]] std::string where() const { return sheafnn::detail::concat(name_, ":", begin_); }

 private:
  [[nodiscard]] std::string_view rest() const noexcept {
    return std::string_view(reinterpret_cast<const char*>(content_.data()), content_.size()).substr(at_);
  }
  [[nodiscard]] bool accept(char c) noexcept {
    if (at_ >= content_.size() || content_[at_] != static_cast<unsigned char>(c)) return false;
    ++at_;
    return true;
  }
  /// The separator of a first line such as sep=; which spreadsheets write, whose line it skips; otherwise 0.
  [[nodiscard]] char declared_separator() noexcept {
    std::string_view line = rest().substr(0, rest().find('\n'));
    const std::size_t size = line.size();
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() == 7 && line.front() == '"' && line.back() == '"') line = line.substr(1, 5);
    if (line.size() != 5 || !(line.starts_with("sep=") || line.starts_with("SEP="))) return '\0';
    const char told = line[4];
    if (std::string_view(",;\t|: ").find(told) == std::string_view::npos) return '\0';
    at_ = std::min(at_ + size + 1, content_.size());
    ++line_;
    return told;
  }
  /// Skips a line that is a comment. \returns whether there was one
  [[nodiscard]] bool skip_comment() noexcept {
    if (comments_.empty()) return false;
    const std::string_view text = rest();
    const std::size_t first = std::min(text.find_first_not_of(" \t"), text.size() - 1);
    if (comments_.find(text[first]) == std::string::npos) return false;
    at_ += std::min(text.find('\n'), text.size());
    if (at_ < content_.size()) end_line();
    return true;
  }
  /// Skips the separator after a field. \returns whether another field follows
  [[nodiscard]] bool next_field() noexcept {
    if (separator_ != ' ') return accept(separator_);
    const std::size_t before = at_;
    while (accept(' ') || accept('\t')) {
    }
    const std::string_view text = rest();
    return at_ > before && !text.empty() && text[0] != '\n' && !text.starts_with("\r\n") && text != "\r";
  }
  /// Only the end of the line may follow a record.
  void end_line() {
    static_cast<void>(accept('\r'));
    static_cast<void>(accept('\n'));
    ++line_;
  }
  [[nodiscard]] bool blank(char c) const noexcept {
    return (c == ' ' || c == '\t') && (c != separator_ || c == ' ');
  }
  [[nodiscard]] bool ends_field(char c) const noexcept {
    return c == separator_ || c == '\n' || (separator_ == ' ' && c == '\t');
  }

  void check_utf8() const {
    Index line = 1;
    for (std::string_view text = rest(); !text.empty();) {
      const std::size_t length = detail::utf8_length(text);
      if (length == 0 || text[0] == '\0') {
        detail::fail(sheafnn::detail::concat(name_, ":", line),
                     "is not UTF-8 text; save the file in that encoding");
      }
      if (text[0] == '\n') ++line;
      text.remove_prefix(length);
    }
  }

  /// Reads up to the next separator or the line's end. \returns whether the field is quoted
  bool read_field() {
    const Index first_line = line_;
    while (at_ < content_.size() && blank(static_cast<char>(content_[at_]))) ++at_;
    std::string& field = fields_.emplace_back();
    const bool quoted = accept('"');
    if (quoted) read_quoted(field, first_line);
    const std::string_view text = rest();
    std::size_t end = 0;
    while (end < text.size() && !ends_field(text[end])) ++end;
    at_ += end;
    std::string_view tail = text.substr(0, end);
    if (tail.ends_with('\r') && (at_ == content_.size() || content_[at_] == '\n')) tail.remove_suffix(1);
    while (!tail.empty() && blank(tail.back())) tail.remove_suffix(1);
    if (tail.find('\r') != std::string_view::npos) detail::refuse_carriage_return(name_, line_);
    if ((quoted && !tail.empty()) || tail.find('"') != std::string_view::npos) refuse_quote(tail, quoted);
    field += tail;
    return quoted;
  }
  [[noreturn]] void refuse_quote(std::string_view text, bool quoted) const {
    const std::string where = sheafnn::detail::concat(name_, ":", line_);
    if (quoted) {
      detail::fail(where, "'", detail::printable(text),
                   "' follows a closing quote; a quote inside a quoted field is ", "written twice");
    }
    detail::fail(where, "field ", fields_.size(), " has a quote inside: '", detail::printable(text),
                 "'; such a field stands in quotes, with the quote inside written twice");
  }
  /// The rest of a field whose opening quote has been read.
  void read_quoted(std::string& field, Index first_line) {
    for (;;) {
      const std::string_view text = rest();
      const std::size_t end = text.find('"');
      if (end == std::string_view::npos) {
        detail::fail(sheafnn::detail::concat(name_, ":", first_line),
                     "a quoted field begins here and is not closed");
      }
      line_ += std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
      field += text.substr(0, end);
      at_ += end + 1;
      if (!accept('"')) return;
      field += '"';
    }
  }

  std::string name_;
  Bytes content_;
  std::size_t at_ = 0;
  char separator_ = ',';
  bool guessed_ = false;
  std::string comments_;
  Index line_ = 1;   ///< of at_
  Index begin_ = 1;  ///< of the record
  std::vector<std::string> fields_;
};

/// A field as a comma-separated file has it: in quotes where necessary. Takes any text.
[[nodiscard]] inline std::string csv_field(std::string_view text) {
  const bool blanks = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!blanks && !text.empty() && text.find_first_of(",;\t\"\r\n") == std::string_view::npos)
    return std::string(text);
  std::string r = "\"";
  for (const char c : text) r.append(c == '"' ? 2 : 1, c);
  return r + '"';
}
/// A record without its line end. Takes any fields.
[[nodiscard]] inline std::string csv_record(std::span<const std::string> fields) {
  std::string r;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) r += ',';
    r += csv_field(fields[i]);
  }
  return r;
}

}  // namespace sheafnn::io
