/// \file
/// Groups of the options of the program train that belong to one kind of network.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sheafnn/core/errors.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace programs {

/// The group of options that most networks share.
inline constexpr const char* model_group = "Model";

/// Checks that of a group no option was given but those that the model has.
///
/// \param app      after parsing
/// \param allowed  options of the group, with their dashes
/// \throws std::invalid_argument  naming the option and its value
inline void refuse_options(const CLI::App& app, const char* group, std::string_view model,
                           std::span<const char* const> allowed = {}) {
  for (const CLI::Option* option : app.get_option_group(group)->get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      sheafnn::throw_invalid_argument(name, option->as<std::string>(),
                                      sheafnn::detail::concat("not an option of --model ", model));
    }
  }
}

/// Lets --help say whether a flag with the names "--x,!--no-x" is on by default.
inline CLI::Option* show_default(CLI::Option* flag, const bool& field) {
  return flag->default_function([&field] { return std::string(field ? "on" : "off"); })->capture_default_str();
}

/// Names that an option is chosen from.
template <class Array>
[[nodiscard]] CLI::IsMember one_of_names(const Array& names) {
  return CLI::IsMember(std::vector<std::string>(names.begin(), names.end()));
}

}  // namespace programs
