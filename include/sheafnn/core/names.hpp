/// \file
/// Names of the values of enumerations. An enumeration declares them once, in a function that returns all names in order:
///
///     enum class SampleLoss { expected, predictive };
///     [[nodiscard]] constexpr auto names_of(SampleLoss) { return std::array{"expected", "predictive"}; }
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// An enumeration whose values have texts: see the file comment.
template <class Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires(Enum value) {
  names_of(value).size();
};

/// Its text. Takes any value of the enumeration.
template <NamedEnum Enum>
[[nodiscard]] constexpr std::string_view to_string(Enum value) {
  return names_of(value)[static_cast<std::size_t>(value)];
}

/// The value of a text.
///
/// \throws std::invalid_argument  unknown name; names the argument and all texts
template <NamedEnum Enum>
[[nodiscard]] Enum parse_name(std::string_view argument, std::string_view text) {
  std::string choices;
  std::size_t value = 0;
  for (const std::string_view name : names_of(Enum{})) {
    if (text == name) return static_cast<Enum>(value);
    choices += (value++ == 0 ? "choose " : ", ") + std::string(name);
  }
  throw_invalid_argument(argument, text, choices);
}

}  // namespace sheafnn

namespace sheafnn::rotation {
using sheafnn::to_string;  // found by the enumerations of the namespace
}  // namespace sheafnn::rotation
namespace sheafnn::sheaf {
using sheafnn::to_string;  // found by the enumerations of the namespace
}  // namespace sheafnn::sheaf
namespace sheafnn::layers {
using sheafnn::to_string;  // found by the enumerations of the namespace
}  // namespace sheafnn::layers
namespace sheafnn::uncertainty {
using sheafnn::to_string;  // found by the enumerations of the namespace
}  // namespace sheafnn::uncertainty
