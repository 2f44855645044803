/// \file
/// The library's options on the command line, from their declarations (sheafnn/core/option.hpp).
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/core/names.hpp>
#include <sheafnn/core/option.hpp>
#include <sheafnn/graph/feature_treatment.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "models/option_texts.hpp"

namespace programs {

/// Sets a field to the value of a text of the command line.
///
/// \returns  whether it is a value; anything but a name of an enumeration throws
/// \throws std::invalid_argument  naming the flag and the names
template <class Field>
bool set_field(const std::string& flag, const std::string& text, Field& field) {
  if constexpr (sheafnn::detail::is_optional<Field>) {
    field.reset();
    return text == sheafnn::unset_option || set_field(flag, text, field.emplace());
  } else if constexpr (sheafnn::NamedEnum<Field>) {
    field = sheafnn::parse_name<Field>(flag, text);
    return true;
  } else if constexpr (std::is_same_v<Field, bool>) {
    return CLI::detail::lexical_cast(text == "auto" ? "off" : text, field);
  } else if constexpr (std::is_same_v<Field, std::vector<sheafnn::Index>>) {
    sheafnn::io::parse_option(flag, text, field);
    return true;
  } else {
    return CLI::detail::lexical_cast(text, field);
  }
}

/// Can an option of this type be given on the command line? Plans and lists of numbers or names cannot.
template <class Field>
inline constexpr bool has_text_flag =
    !std::same_as<Field, sheafnn::FeaturePlan> && !std::same_as<Field, std::vector<double>> &&
    !sheafnn::io::detail::is_name_list<Field>;

/// Adds one option to a group of the command line. A bool has one flag that sets it and another flag that clears it.
template <class Field>
void add_flag(CLI::App& group, const sheafnn::Option& option, Field& field) {
  const std::string flag = flag_of(option), text = description_of<Field>(option);
  if constexpr (std::is_same_v<Field, bool>) {
    const bool only_off = option.flag != nullptr && *option.flag == '!';
    const std::string names = only_off ? option.flag : flag + ",!--no-" + flag.substr(2);
    group.add_flag(names, field, only_off ? "switches this off: " + text : text)
        ->default_function([&field] { return shown(field); })
        ->capture_default_str();
  } else if constexpr (std::is_arithmetic_v<Field>) {
    group.add_option(flag, field, text)->capture_default_str();
  } else if constexpr (has_text_flag<Field>) {
    const auto set = [flag, &field](const CLI::results_t& texts) { return set_field(flag, texts.front(), field); };
    auto* added = group.add_option(flag, CLI::callback_t(set), text, true, [&field] { return shown(field); });
    added->type_name("TEXT");
    if constexpr (std::same_as<Field, std::optional<bool>>) added->check(CLI::IsMember({"auto", "on", "off"}));
  }
}

/// Adds the options of a struct to a group of the command line. A flag that exists already, of another struct, sets the
/// fields of both.
///
/// \param wanted  wanted(key) says which
template <class Options, class Wanted>
void add_flags(CLI::App& app, CLI::App& group, Options& options, const Wanted& wanted) {
  const auto add = [&](const sheafnn::Option& option, auto& field) {
    const std::string flag = flag_of(option);
    if (flag.empty() || !wanted(std::string_view(option.key))) return;
    if constexpr (has_text_flag<std::remove_reference_t<decltype(field)>>) {
      if (CLI::Option* const shared = app.get_option_no_throw(flag)) {
        shared->each([flag, &field](const std::string& text) { set_field(flag, text, field); });
        return;
      }
    }
    add_flag(group, option, field);
  };
  for_each_option(add, options);
}

/// Does the command line say what this option is? \param app  after parsing; a program without the option says nothing
[[nodiscard]] inline bool is_given(const CLI::App& app, const std::string& flag) {
  const auto count = [&](const std::string& name) {
    const CLI::Option* const option = app.get_option_no_throw(name);
    return option == nullptr ? 0 : option->count();
  };
  // With its older spelling.
  return count(flag) > 0 || (flag == "--feature-treatment" && count("--normalise-features") > 0);
}

/// Refuses an option by the name that was typed, --activation or --no-activation.
///
/// \throws std::invalid_argument  always
[[noreturn]] inline void refuse_given(const CLI::Option& option, const std::string& why) {
  const std::string value = option.as<std::string>();
  const bool off = value == "false" && option.get_lnames().size() > 1;
  sheafnn::throw_invalid_argument(off ? "--" + option.get_lnames().back() : option.get_name(), value, why);
}

/// Checks that no option of a group was given but these.
///
/// \param group  after parsing
/// \throws std::invalid_argument  naming the option, its value and why it is refused
inline void refuse_others(const CLI::App& group, const std::vector<std::string>& allowed, const std::string& why) {
  for (const CLI::Option* option : group.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    refuse_given(*option, why);
  }
}

/// Checks that no option of a network or of its training was given with --load, except the options that predictions take.
///
/// \param groups   of the command line, after parsing: options of networks, of their training and of what is held out
/// \param options  further ones
/// \throws std::invalid_argument  naming the option and its value
inline void refuse_beside_load(const std::vector<const CLI::App*>& groups,
                               const std::vector<const CLI::Option*>& options = {}) {
  constexpr const char* why = "the network of --load is trained already";
  for (const CLI::App* group : groups) refuse_others(*group, {"--samples", "--seed", "--threads"}, why);
  for (const CLI::Option* option : options) {
    if (option->count() > 0) refuse_given(*option, why);
  }
}

/// Sets the options that the command line does not, as in `from`. \param app  after parsing
template <class Options>
void set_others(const CLI::App& app, const Options& from, Options& to) {
  const auto set = [&](const sheafnn::Option& option, auto& field, const auto& value) {
    const std::string flag = flag_of(option);
    if (!flag.empty() && app.get_option_no_throw(flag) != nullptr && !is_given(app, flag)) field = value;
  };
  for_each_option(set, to, from);
}

/// A value as reports have it.
template <class Field>
[[nodiscard]] nlohmann::ordered_json json_of(const Field& field) {
  if constexpr (sheafnn::detail::is_optional<Field>) {
    return field ? json_of(*field) : nlohmann::ordered_json(sheafnn::unset_option);
  } else if constexpr (std::is_arithmetic_v<Field>) {
    return field;
  } else {
    return shown(field);
  }
}

/// What reports call an option: a network of layers has names as in files, others as on the command line.
template <class Options>
[[nodiscard]] std::string report_name(const sheafnn::Option& option) {
  if constexpr (std::same_as<Options, sheafnn::ModelOptions>) return option.key;
  std::string name = flag_of(option).substr(2);
  if (name.starts_with("no-")) name.erase(0, 3);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// The options that the command line has.
template <class Options>
[[nodiscard]] nlohmann::ordered_json options_json(const Options& options) {
  nlohmann::ordered_json r;
  const auto add = [&](const sheafnn::Option& option, const auto& field) {
    if (!flag_of(option).empty()) r[report_name<Options>(option)] = json_of(field);
  };
  for_each_option(add, options);
  return r;
}

}  // namespace programs
