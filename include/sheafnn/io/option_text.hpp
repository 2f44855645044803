/// \file
/// Options as texts, as checkpoints, Python and the command line have them. What an option is called and which values it
/// has: core/option.hpp.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/graph/feature_plan_text.hpp"
#include "sheafnn/io/csv.hpp"

namespace sheafnn::io {

namespace detail {

template <class Field>
inline constexpr bool is_number_list =
    std::same_as<Field, std::vector<double>> || std::same_as<Field, std::vector<Index>>;
/// Is an option a list of names? Its text is a record of a CSV file.
template <class Field>
inline constexpr bool is_name_list = std::same_as<Field, std::vector<std::string>>;

/// \throws std::invalid_argument  a text that is not a record
[[nodiscard]] SHEAFNN_NOINLINE inline std::vector<std::string> parse_names(std::string_view key,
                                                                           std::string_view text) {
  try {
    CsvReader record(std::string(key), {text.begin(), text.end()}, ',');
    std::vector<std::string> names;
    if (record.next()) names = record.fields();
    require(!record.next(), key, "several lines", "must be names with commas between them");
    return names;
  } catch (const std::runtime_error& error) {  // the reader's, which names the key
    throw std::invalid_argument(error.what());
  }
}

}  // namespace detail

/// An option as a text. Takes any value.
template <class Field>
[[nodiscard]] std::string option_text(const Field& value) {
  if constexpr (sheafnn::detail::is_optional<Field>) {
    return value ? option_text(*value) : std::string(unset_option);
  } else if constexpr (std::same_as<Field, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::same_as<Field, FeaturePlan>) {
    return to_text(value);
  } else if constexpr (detail::is_number_list<Field>) {
    std::string text;
    for (const auto number : value) text += (text.empty() ? "" : ",") + option_text(number);
    return text;
  } else if constexpr (detail::is_name_list<Field>) {
    return value.empty() ? std::string() : csv_record(value);
  } else if constexpr (NamedEnum<Field>) {
    return std::string(to_string(value));
  } else if constexpr (std::integral<Field>) {
    return std::to_string(value);
  } else {
    return sheafnn::detail::shortest_text(value);
  }
}

/// Sets an option to the value of a text.
///
/// \param key  what messages call it
/// \throws std::invalid_argument  the text is not a value of its type
template <class Field>
void parse_option(std::string_view key, std::string_view text, Field& value) {
  if constexpr (sheafnn::detail::is_optional<Field>) {
    value.reset();
    if (text != unset_option) parse_option(key, text, value.emplace());
  } else if constexpr (std::same_as<Field, bool>) {
    require(text == "true" || text == "false", key, text, "must be true or false");
    value = text == "true";
  } else if constexpr (std::same_as<Field, FeaturePlan>) {
    value = parse_feature_plan(text);
  } else if constexpr (detail::is_number_list<Field>) {
    const bool is_list = text.find_first_not_of("0123456789+-.e,") == std::string_view::npos && !text.ends_with(',');
    require(is_list, key, "a text of other characters", "must be numbers with commas between them");
    value.clear();
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(','), text.size());
      parse_option(key, text.substr(0, end), value.emplace_back());
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  } else if constexpr (detail::is_name_list<Field>) {
    value = detail::parse_names(key, text);
  } else if constexpr (NamedEnum<Field>) {
    value = parse_name<Field>(key, text);
  } else {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    require(error == std::errc() && end == text.data() + text.size(), key, text,
            std::integral<Field> ? "must be a whole number" : "must be a number");
  }
}

/// The texts of all options by their keys. Takes any options.
template <class Options>
[[nodiscard]] std::map<std::string, std::string> option_texts(const Options& options) {
  std::map<std::string, std::string> r;
  for_each_option([&](const Option& option, const auto& field) { r[option.key] = option_text(field); }, options);
  return r;
}

}  // namespace sheafnn::io
