/// \file
/// Options as texts, as checkpoints, Python and the command line have them. What an option is called and which values it
/// has: core/option.hpp.
#pragma once

#include <charconv>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/graph/feature_plan_text.hpp"

namespace sheafnn::io {

/// An option as a text. One that is not set is the text of the first value of its type.
[[nodiscard]] inline std::string option_text(bool value) { return value ? "true" : "false"; }
[[nodiscard]] inline std::string option_text(double value) { return sheafnn::detail::shortest_text(value); }
[[nodiscard]] inline std::string option_text(const FeaturePlan& value) { return to_text(value); }
[[nodiscard]] std::string option_text(std::integral auto value) { return std::to_string(value); }
[[nodiscard]] std::string option_text(NamedEnum auto value) { return std::string(to_string(value)); }
template <class T>
[[nodiscard]] std::string option_text(const std::optional<T>& value) {
  return option_text(value.value_or(T{}));
}

/// Sets an option to the value of a text.
///
/// \param key  what messages call it
/// \throws std::invalid_argument  the text is no value of its type
inline void parse_option(std::string_view key, std::string_view text, bool& value) {
  require(text == "true" || text == "false", key, text, "must be true or false");
  value = text == "true";
}
inline void parse_option(std::string_view, std::string_view text, FeaturePlan& value) {
  value = parse_feature_plan(text);
}
template <class Number>
  requires std::integral<Number> || std::floating_point<Number>
void parse_option(std::string_view key, std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), key, text,
          std::integral<Number> ? "must be a whole number" : "must be a number");
}
template <NamedEnum Enum>
void parse_option(std::string_view key, std::string_view text, Enum& value) {
  value = parse_name<Enum>(key, text);
}
template <class T>
void parse_option(std::string_view key, std::string_view text, std::optional<T>& value) {
  parse_option(key, text, value.emplace());
}

/// The texts of all options by their keys.
template <class Options>
[[nodiscard]] std::map<std::string, std::string> option_texts(const Options& options) {
  std::map<std::string, std::string> r;
  for_each_option([&](const Option& option, const auto& field) { r[option.key] = option_text(field); }, options);
  return r;
}

}  // namespace sheafnn::io
