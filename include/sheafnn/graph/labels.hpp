/// \file
/// Labels as people write them: which texts name a class, which are unknown, which are refused. Readers of
/// files, programs and Python share this rule.
///
/// - An empty text and the number -1 are unknown.
/// - Words that other programs write for a missing value, such as NA, nan, None or ?, are refused. Only the caller can know
///   whether such a text is an unknown label or a class. MissingLabels says which texts are unknown instead.
/// - Where all known labels are numbers, classes are their values: 1, 1.0 and 01 are one class. Otherwise classes
///   are texts.
/// - Many different numbers that are not whole are a target of regression, and refused.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sheafnn/core/caller.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/text.hpp"

namespace sheafnn {

/// The texts that mean an unknown label, besides an empty text and -1; every other text is then a class, also NA or
/// nan. Without a value, no text is unknown, and words that mean a missing value are refused.
using MissingLabels = std::optional<std::vector<std::string>>;

/// Labels as class numbers.
struct EncodedLabels {
  std::vector<std::int32_t> codes;       ///< n, each in [0, C), or -1 where unknown
  std::vector<std::string> class_names;  ///< C, sorted: by value if all are numbers, otherwise by their bytes
};

/// Largest number of classes.
inline constexpr Index largest_class_count = 65536;
/// Labels with more different numbers that are not all whole are a target of regression.
inline constexpr std::size_t most_fractions = 20;

namespace detail {

/// Blanks that are removed around texts: the blanks of ASCII, and the no-break space.
inline constexpr std::string_view blanks = " \t\r\n\v\f", fixed_blank = "\xC2\xA0";

/// A text without blanks around it.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) noexcept {
  for (;;) {
    const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
    text.remove_prefix(begin);
    text = text.substr(0, text.find_last_not_of(blanks) + 1);
    const bool front = text.starts_with(fixed_blank), back = text.ends_with(fixed_blank);
    if (!front && !back) return text;
    if (front) text.remove_prefix(fixed_blank.size());
    if (back && !text.empty()) text.remove_suffix(fixed_blank.size());
  }
}

/// What programs write where a value is missing, in lower case, without brackets and with single blanks between
/// words.
inline constexpr std::string_view missing_words[] = {
    // pandas, R, Excel, SQL, Stata, SPSS, SAS, MATLAB, Julia, JavaScript, Weka
    "na", "n/a", "#n/a", "#n/a n/a", "#na", "n.a.", "n.a", "n. a.", "n/d", "n.d.", "nan", "nan(ind)", "nan(snan)",
    "1.#qnan", "1.#snan", "1.#ind", "nat", "pd.na", "pd.nat", "np.nan", "na character", "na integer", "na real",
    "none", "null", "nil", "\\n", "sysmis", "missing", "missing value", "unknown", "unk", "undefined", "undef",
    "unlabeled", "unlabelled", "not labeled", "not labelled", "no label", "not available", "not applicable",
    "not known", "not specified", "unspecified", "not assigned", "unassigned", "no data", "nodata", "no value",
    "no answer",
    // Signs
    "?", "??", "???", "-", "--", "---", ".", "..", "...", "*", "**", "***", "#", "/", "_", "\xE2\x80\x93",
    "\xE2\x80\x94", "\xE2\x88\x92", "\xE2\x80\xA6",
    // Errors of spreadsheets
    "#value!", "#ref!", "#div/0!", "#null!", "#num!", "#name?", "#error!", "#spill!", "#calc!", "#field!",
    "#busy!", "#blocked!", "#unknown!", "#connect!", "#getting data", "err:502", "err:504", "err:508"};

/// What programs write for an infinite number, in the same form.
inline constexpr std::string_view infinite_words[] = {"inf", "infinity", "infty", "1.#inf", "\xE2\x88\x9E"};

/// Whether a text is one of these words, in any case, also in brackets or with a sign.
template <std::size_t N>
[[nodiscard]] bool is_word_of(std::string_view text, const std::string_view (&words)[N]) {
  text = trimmed(text);
  if (text.size() > 24) return false;
  for (const std::string_view pair : {"<>", "()", "[]", "{}"}) {
    if (text.size() > 2 && text.front() == pair[0] && text.back() == pair[1])
      text = trimmed(text.substr(1, text.size() - 2));
  }
  std::string word;
  bool letters = false;
  for (const char c : text) {
    word += lower(c);
    letters = letters || (word.back() >= 'a' && word.back() <= 'z');
  }
  std::string_view stem = word;
  if (letters) {
    for (char& c : word) c = c == '_' || (c == '-' && &c != word.data()) ? ' ' : c;
    stem = trimmed(word);
    if (stem.size() > 1 && (stem[0] == '-' || stem[0] == '+')) stem.remove_prefix(1);  // -nan, +inf
  }
  return std::find(std::begin(words), std::end(words), stem) != std::end(words);
}
/// Whether a text usually means that a value is missing.
[[nodiscard]] inline bool means_missing(std::string_view text) {
  const std::string_view word = trimmed(text);
  if (word.size() == 2 && word[0] == '.' && std::isalpha(static_cast<unsigned char>(word[1])) != 0)
    return true;  // Stata
  return is_word_of(text, missing_words);
}

/// A decimal number without rounding: ±0.DIGITS × 10^exponent, with neither a first nor a last digit 0.
struct Decimal {
  bool negative = false;
  std::int64_t exponent = 0;
  std::string digits;

  [[nodiscard]] bool whole() const noexcept { return exponent >= static_cast<std::int64_t>(digits.size()); }
  friend bool operator==(const Decimal&, const Decimal&) = default;
  friend bool operator<(const Decimal& a, const Decimal& b) {
    if (a.digits.empty() || b.digits.empty()) return a.sign() < b.sign();
    if (a.negative != b.negative) return a.negative;
    const auto size = [](const Decimal& d) { return std::tie(d.exponent, d.digits); };
    return a.negative ? size(b) < size(a) : size(a) < size(b);
  }

 private:
  [[nodiscard]] int sign() const noexcept { return digits.empty() ? 0 : negative ? -1 : 1; }
};

/// The number of a text, if a double can represent it.
[[nodiscard]] inline std::optional<Decimal> parse_decimal(std::string_view text) {
  text = trimmed(text);
  double rounded = 0;
  if (!parse_number(text, rounded) || !std::isfinite(rounded)) return std::nullopt;
  Decimal r;
  if (text[0] == '+' || text[0] == '-') {
    r.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const std::size_t e = text.find_first_of("eE");
  std::int64_t exponent = 0;
  if (e != std::string_view::npos && !parse_number(text.substr(e + 1), exponent)) exponent = INT64_MIN / 2;
  exponent = std::clamp(exponent, INT64_MIN / 2, INT64_MAX / 2);
  bool fraction = false;
  for (const char c : text.substr(0, e)) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    if (!fraction) ++exponent;
    if (c == '0' && r.digits.empty()) --exponent;  // of no weight
    if (c != '0' || !r.digits.empty()) r.digits += c;
  }
  r.digits.resize(r.digits.find_last_not_of('0') + 1);
  if (r.digits.empty()) return Decimal();
  r.exponent = exponent;
  return r;
}

/// The number that a text such as 0,25 is where the comma is the decimal sign.
[[nodiscard]] inline std::optional<Decimal> parse_decimal_comma(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos || text.find('.') != std::string_view::npos) return std::nullopt;
  std::string point(text);
  point[comma] = '.';
  return parse_decimal(point);
}

}  // namespace detail

/// Encodes labels as class numbers; see the file comment.
///
/// \param missing  the texts that are unknown, compared without the blanks around them, and by value where they are numbers
/// \param column   what messages call all labels, e.g. "nodes.csv: column 'label'"
/// \param place    place(u): what messages call text u, e.g. "labels[3]"
/// \param minus_one  whether the number -1 is unknown, and other negative whole numbers are errors; otherwise they are classes
/// \throws std::invalid_argument  a word that means a missing value, many numbers that are not whole, or more
///                                classes than largest_class_count
template <class Place>
[[nodiscard]] EncodedLabels encode_labels(std::span<const std::string> texts, const MissingLabels& missing,
                                          std::string_view column, const Place& place, bool minus_one = true) {
  std::set<std::string_view> unknown = {""};
  std::set<detail::Decimal> unknown_numbers;
  if (minus_one) unknown_numbers.insert(detail::Decimal{true, 1, "1"});  // -1
  if (missing) {
    for (const std::string& word : *missing) {
      unknown.insert(detail::trimmed(word));
      if (std::optional<detail::Decimal> value = detail::parse_decimal(word))
        unknown_numbers.insert(*std::move(value));
    }
  }
  // Every different text is examined once.
  constexpr std::int32_t none = -1;
  std::unordered_map<std::string_view, std::int32_t> number_of;
  std::vector<std::string_view> known;
  std::vector<std::optional<detail::Decimal>> values;
  std::vector<std::int32_t> text_of(texts.size(), none);
  for (std::size_t u = 0; u < texts.size(); ++u) {
    const auto [found, inserted] = number_of.emplace(texts[u], static_cast<std::int32_t>(known.size()));
    if (inserted) {
      const std::string_view text = detail::trimmed(texts[u]);
      std::optional<detail::Decimal> value = detail::parse_decimal(text);
      if (unknown.contains(text) || (value && unknown_numbers.contains(*value))) {
        found->second = none;
        continue;
      }
      if (!missing && (detail::means_missing(text) || detail::is_word_of(text, detail::infinite_words))) {
        throw_invalid_argument(place(u), detail::concat("label '", detail::printable(texts[u]), "'"),
                               detail::concat("it usually means a missing value. Leave an unknown label empty",
                                              minus_one ? ", or write -1" : "",
                                              ". Or give the words for an unknown label in ",
                                              detail::caller_name::missing_labels.text(),
                                              "; all other words are classes then"));
      }
      known.push_back(texts[u]);
      values.push_back(std::move(value));
    }
    text_of[u] = found->second;
  }

  std::set<detail::Decimal> numbers;
  std::size_t fractions = 0;
  for (std::size_t t = 0; t < values.size(); ++t) {
    const std::optional<detail::Decimal> value = values[t] ? values[t] : detail::parse_decimal_comma(known[t]);
    if (value && numbers.insert(*value).second && !value->whole()) ++fractions;
  }
  const bool numeric = std::all_of(values.begin(), values.end(), [](const auto& v) { return v.has_value(); });
  if ((numeric && fractions > 0 ? numbers.size() : fractions) > most_fractions) {
    throw_invalid_argument(
        column, detail::concat(numbers.size(), " different numbers, of which ", fractions, " are not whole,"),
        detail::concat("they look like a continuous target; classes are texts or whole numbers, or at most ",
                       most_fractions, " different numbers"));
  }

  for (std::size_t t = 0; numeric && minus_one && t < values.size(); ++t) {
    if (!values[t]->negative || !values[t]->whole()) continue;
    const auto first = std::find(text_of.begin(), text_of.end(), static_cast<std::int32_t>(t));
    throw_invalid_argument(place(static_cast<std::size_t>(first - text_of.begin())),
                           detail::concat("label ", detail::printable(known[t])),
                           detail::concat("numbers must be at least 0, or -1 where unknown (",
                                          detail::caller_name::missing_labels.text(),
                                          ": other words for unknown labels)"));
  }

  EncodedLabels r;
  std::vector<std::int32_t> code_of(known.size());
  if (numeric) {
    std::map<detail::Decimal, std::string_view> names;  // the shortest text of every value
    const auto rank = [](std::string_view text) { return std::pair(text.size(), text); };
    for (std::size_t t = 0; t < known.size(); ++t) {
      const std::string_view text = detail::trimmed(known[t]);
      const auto [found, inserted] = names.emplace(*values[t], text);
      if (!inserted && rank(text) < rank(found->second)) found->second = text;
    }
    std::map<detail::Decimal, std::int32_t> code;
    for (const auto& [value, name] : names) {
      code.emplace(value, static_cast<std::int32_t>(code.size()));
      r.class_names.emplace_back(name);
    }
    for (std::size_t t = 0; t < known.size(); ++t) code_of[t] = code.at(*values[t]);
  } else {
    r.class_names.assign(known.begin(), known.end());
    std::sort(r.class_names.begin(), r.class_names.end());
    for (std::size_t t = 0; t < known.size(); ++t) {
      const auto found = std::lower_bound(r.class_names.begin(), r.class_names.end(), known[t]);
      code_of[t] = static_cast<std::int32_t>(found - r.class_names.begin());
    }
  }
  if (static_cast<Index>(r.class_names.size()) > largest_class_count) {
    throw_invalid_argument(column, detail::concat(r.class_names.size(), " classes"),
                           detail::concat("at most ", largest_class_count, " are supported"));
  }
  r.codes = std::move(text_of);
  for (std::int32_t& code : r.codes) code = code == none ? -1 : code_of[static_cast<std::size_t>(code)];
  return r;
}

}  // namespace sheafnn
