/// \file
/// What the programs and docs/options.md say of the library's options, from their declarations (sheafnn/core/option.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sheafnn/bsnn/network_options.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/core/names.hpp>
#include <sheafnn/core/option.hpp>
#include <sheafnn/graph/edge_split.hpp>
#include <sheafnn/io/option_text.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace programs {

/// Names with commas between them.
template <class Array>
[[nodiscard]] std::string joined(const Array& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// "class_cycle" as "--class-cycle".
[[nodiscard]] inline std::string option_name(std::string member) {
  std::replace(member.begin(), member.end(), '_', '-');
  return "--" + member;
}

/// The name of an option on the command line, "--learner-layers"; empty: it is not available there.
[[nodiscard]] inline std::string flag_of(const sheafnn::Option& option) {
  if (option.flag == nullptr) return option_name(option.key);
  const std::string_view flag = option.flag;
  return std::string(flag.substr(flag.starts_with('!') ? 1 : 0));
}

/// A value as the command line has it: on and off, `auto` for what is not set.
template <class Field>
[[nodiscard]] std::string shown(const Field& field) {
  if constexpr (sheafnn::detail::is_optional<Field>) {
    return field ? shown(*field) : std::string(sheafnn::unset_option);
  } else if constexpr (std::is_same_v<Field, bool>) {
    return field ? "on" : "off";
  } else if constexpr (sheafnn::NamedEnum<Field>) {
    return std::string(to_string(field));
  } else if constexpr (std::is_integral_v<Field>) {
    return std::to_string(field);
  } else if constexpr (std::is_floating_point_v<Field>) {
    char text[32];
    std::snprintf(text, sizeof(text), "%g", field);
    return text;
  } else if constexpr (std::is_convertible_v<Field, std::string_view>) {
    return std::string(field);
  } else if constexpr (std::is_same_v<Field, std::vector<sheafnn::Index>>) {
    return sheafnn::io::option_text(field);
  } else {
    return "";
  }
}

/// "1 to 64", "at least 0", "above 0", "0 up to 1"; empty: all numbers.
[[nodiscard]] inline std::string range_text(const sheafnn::OptionRange& range) {
  if (std::isinf(range.least)) return "";
  const auto number = [](double value) {  // counts with all of their digits
    return value == std::floor(value) ? std::to_string(static_cast<long long>(value)) : shown(value);
  };
  const std::string least = number(range.least);
  const std::string text = std::isinf(range.most) ? (range.without_least ? "above " : "at least ") + least
                           : range.without_most   ? least + " up to " + number(range.most)
                                                  : least + " to " + number(range.most);
  return text + range.remark;
}

/// Which values an option has: names or a range.
template <class Field>
[[nodiscard]] std::string values_of(const sheafnn::Option& option) {
  if constexpr (sheafnn::detail::is_optional<Field>) {
    return values_of<typename Field::value_type>(option);
  } else if constexpr (std::is_same_v<Field, bool>) {
    return "on, off";
  } else if constexpr (sheafnn::NamedEnum<Field>) {
    return joined(names_of(Field{}));
  } else {
    return range_text(option.range);
  }
}

/// What --help says of an option.
template <class Field>
[[nodiscard]] std::string description_of(const sheafnn::Option& option) {
  const std::string values = values_of<Field>(option),
                    automatic = option.automatic == nullptr ? "" : option.automatic;
  std::string text = option.summary;
  if constexpr (sheafnn::detail::is_optional<Field>) {
    const bool number =
        std::is_arithmetic_v<typename Field::value_type> && !std::is_same_v<Field, std::optional<bool>>;
    text += (number ? ", " : ": ") + values + ", or auto (" + automatic + ")";
  } else if constexpr (sheafnn::NamedEnum<Field>) {
    text += ": " + values;
  } else if constexpr (!std::is_same_v<Field, bool>) {
    if (!values.empty()) text += ", " + values;
  }
  return text;
}

/// Members and keys of the options of networks and of a training, each with its flag.
[[nodiscard]] inline const std::vector<std::pair<std::string, std::string>>& flags_of_members() {
  static const auto list = [] {
    std::vector<std::pair<std::string, std::string>> r;
    const auto add = [&](const sheafnn::Option& option, const auto&) {
      const std::string flag = flag_of(option);
      if (flag.empty()) return;
      r.emplace_back(option.member(), flag);
      r.emplace_back(option.key, flag);
    };
    const auto add_all = [&](const auto& options) { for_each_option(add, options); };
    const sheafnn::NetworkOptions networks;
    sheafnn::for_each_kind(networks, add_all);
    add_all(sheafnn::TrainOptions());
    add_all(sheafnn::EdgeSplitOptions());
    return r;
  }();
  return list;
}

}  // namespace programs
