/// \file
/// Texts from outside: numbers in them, UTF-8, and what is printed of them in messages.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace sheafnn::detail {

/// Parses the whole of `text` as a number of type T; false if it is not a number or does not fit. What is too small for
/// a floating-point number is rounded.
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

/// A letter of ASCII in lower case; any other character unchanged.
[[nodiscard]] constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// A word in lower case (of ASCII) without the characters between its parts: node_id and NodeId are
/// nodeid.
[[nodiscard]] inline std::string plain_word(std::string_view text) {
  std::string r;
  for (const char c : text) {
    if (std::string_view("_-. /:").find(c) != std::string_view::npos) continue;
    r += lower(c);
  }
  return r;
}

/// Length of the UTF-8 character at the front of a text that is not empty; 0 if there is no valid character.
[[nodiscard]] inline std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Longer than necessary, surrogates, beyond U+10FFFF.
  const unsigned char second = byte(1);
  const bool bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                   (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return bad ? 0 : length;
}

/// Whether a text is UTF-8.
[[nodiscard]] inline bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// Whether a UTF-8 character is shown as itself. It is not a control character, does not change the direction of the text or
/// join lines, and has a width.
[[nodiscard]] inline bool utf8_visible(std::string_view character) noexcept {
  if (character.size() == 1) return character[0] >= ' ' && character[0] <= '~';
  if (character.size() == 2) return character >= "\xC2\xA0" && character != "\xC2\xAD";
  const bool directions = (character >= "\xE2\x80\x8B" && character <= "\xE2\x80\x8F") ||
                          (character >= "\xE2\x80\xA8" && character <= "\xE2\x80\xAE") ||
                          (character >= "\xE2\x81\xA0" && character <= "\xE2\x81\xAF");
  return !directions && character != "\xEF\xBB\xBF";
}

/// Text from outside, made fit for a one-line message: UTF-8 unchanged, a question mark for every other byte, at most
/// 60 characters.
[[nodiscard]] inline std::string printable(std::string_view text) {
  constexpr std::size_t most = 60;
  std::string r;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most) return r + "...";
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length > 0 && utf8_visible(character)) {
      r += character;
    } else {
      r += '?';
    }
    text.remove_prefix(character.size());
  }
  return r;
}

}  // namespace sheafnn::detail
