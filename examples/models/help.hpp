/// \file
/// What programs say of their options: --help in groups, and the option that an unknown one may have meant.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <sheafnn/core/errors.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/option_texts.hpp"

namespace programs {

/// The option groups of a program, or its subcommands.
[[nodiscard]] inline std::vector<const CLI::App*> parts_of(const CLI::App& app, bool groups) {
  return app.get_subcommands([&](const CLI::App* part) { return part->get_name().empty() == groups; });
}

/// --help: every group of options under its name, with defaults in the descriptions.
class HelpFormatter : public CLI::Formatter {
 public:
  using Defaults = std::map<std::string, std::string>;

  HelpFormatter() = default;
  /// \param defaults  what to say of some options' defaults in place of their values; called for --help
  explicit HelpFormatter(std::function<Defaults()> defaults) : defaults_(std::move(defaults)) {}

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const Defaults defaults = defaults_ ? defaults_() : Defaults();
    std::string r = app->get_description() + "\n" + make_usage(app, name);
    add_group(r, *app, "Options", defaults);
    const std::vector<const CLI::App*> commands = parts_of(*app, false);
    if (!commands.empty()) r += "\nCommands:\n";
    for (const CLI::App* command : commands) add_entry(r, command->get_name(), command->get_description());
    return r;
  }

 private:
  static constexpr std::size_t column = 34, width = 110;

  /// Appends the text at this column, in lines that are not too long.
  static void add_entry(std::string& r, const std::string& name, const std::string& text) {
    std::string line = "  " + name;
    line.resize(std::max(line.size() + 1, column), ' ');
    const auto length = [](std::string_view part) {  // in characters of UTF-8
      const auto begins_one = [](char c) { return (c & 0xC0) != 0x80; };
      return static_cast<std::size_t>(std::count_if(part.begin(), part.end(), begins_one));
    };
    if (length(line) > column) {
      line.pop_back();
      r += line + "\n";
      line = std::string(column, ' ');
    }
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      const std::string word = text.substr(begin, end - begin);
      if (length(line) > column && length(line) + length(word) > width) {
        line.erase(line.find_last_not_of(' ') + 1);
        r += line + "\n";
        line = std::string(column, ' ');
      }
      line += word + " ";
      begin = end + 1;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    r += line + "\n";
  }

  /// "TEXT:{mlp,sage}" as "{mlp,sage}", "INT:INT in [1 - 5]" as "INT".
  static std::string value_of(const CLI::Option& option) {
    const std::string type = option.get_type_size() == 0 ? "" : option.get_type_name();
    if (type.empty()) return "";
    const std::size_t choices = type.find(":{"), limits = type.find(':');
    return " " + (choices != std::string::npos ? type.substr(choices + 1) : type.substr(0, limits)) +
           (option.get_expected_max() > 1 ? " ..." : "");
  }

  static void add_option(std::string& r, const CLI::Option& option, const Defaults& defaults) {
    std::string name = option.get_name(option.get_positional(), !option.get_positional());
    for (std::size_t at; (at = name.find("{false}")) != std::string::npos;) name.erase(at, 7);  // of --no-…
    std::string text = option.get_description();
    const auto add = [&](const char* what, const std::string& value) { text += " (" + (what + value) + ")"; };
    const auto others = [](const auto& options) {
      std::string list;
      for (const CLI::Option* other : options) list += (list.empty() ? "" : ", ") + other->get_name();
      return list;
    };
    if (option.get_required()) add("required", "");
    if (!option.get_needs().empty()) add("needs ", others(option.get_needs()));
    if (!option.get_excludes().empty()) add("not with ", others(option.get_excludes()));
    const auto replaced = defaults.find(option.get_name());
    const std::string value = replaced != defaults.end() ? replaced->second : option.get_default_str();
    if (!value.empty() && text.find("(default: ") == std::string::npos) add("default: ", value);
    add_entry(r, name + value_of(option), text);
  }

  static void add_group(std::string& r, const CLI::App& app, const std::string& title, const Defaults& defaults) {
    const bool is_group = app.get_parent() != nullptr && app.get_name().empty();
    const std::string about = is_group ? app.get_description() : "";
    r += "\n" + title + (about.empty() ? "" : ", " + about) + ":\n";
    for (const CLI::Option* option : app.get_options({})) {
      const bool hidden = option->get_group().empty() || (is_group && option == app.get_help_ptr());
      if (!hidden) add_option(r, *option, defaults);
    }
    for (const CLI::App* group : parts_of(app, true)) add_group(r, *group, group->get_group(), defaults);
  }

  std::function<Defaults()> defaults_;
};

namespace detail {

/// Insertions, deletions, replacements and exchanges of neighbours that make one text of another.
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

/// Does "weight-decay" have all words of "decay"?
[[nodiscard]] inline bool has_words(const std::string& name, const std::string& words) {
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find('-', begin), words.size());
    if (("-" + name + "-").find("-" + words.substr(begin, end - begin) + "-") == std::string::npos) return false;
    begin = end + 1;
  }
  return true;
}

/// The names of all options, without their dashes.
inline void collect_option_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options({})) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  for (const CLI::App* part : app.get_subcommands({})) {
    if (part->get_name().empty() || part->parsed()) collect_option_names(*part, names);
  }
}

}  // namespace detail

/// The option that "--epoch", "-epochs", "--Learning_Rate" may mean; empty: none is near. One letter that is wrong comes first,
/// then a name that begins alike, then one with the same words, then more letters that are wrong.
[[nodiscard]] inline std::string closest_option(const CLI::App& app, const std::string& given) {
  std::string name = given.substr(std::min(given.find_first_not_of('-'), given.size()));
  if (name.empty() || name.size() > 64) return "";
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::vector<std::string> options;
  detail::collect_option_names(app, options);
  for (const auto& [member, flag] : flags_of_members()) {
    const bool is_there = std::find(options.begin(), options.end(), flag.substr(2)) != options.end();
    if (is_there && option_name(member) == "--" + name) return flag;
  }
  // The kind of likeness and, within it, how many letters differ.
  const auto rank_of = [&](const std::string& option) {
    const std::size_t distance = detail::edit_distance(name, option);
    if (distance <= 1) return std::pair(0, distance);
    if (option.starts_with(name) || name.starts_with(option)) return std::pair(1, distance);
    if (detail::has_words(option, name) || detail::has_words(name, option)) return std::pair(2, std::size_t{0});
    return std::pair(distance <= name.size() / 3 ? 3 : 4, distance);
  };
  const auto best = std::min_element(options.begin(), options.end(),
                                     [&](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
  return best == options.end() || rank_of(*best).first == 4 ? "" : "--" + *best;
}

/// What is wrong with the arguments, in words for one line. An option that does not exist comes first: it may be why another
/// one is missing.
///
/// \param error  of app.parse()
[[nodiscard]] inline std::string parse_message(const CLI::App& app, const CLI::ParseError& error) {
  constexpr const char* help = "; --help lists the options";
  const std::vector<std::string> unexpected = app.remaining(true);
  for (const std::string& argument : unexpected) {
    const bool is_option = argument.size() > 1 && argument[0] == '-' &&
                           std::string_view("0123456789.").find(argument[1]) == std::string_view::npos;
    if (!is_option) continue;
    const std::string name = argument.substr(0, argument.find('='));
    const std::string closest = closest_option(app, name);
    return name + " is not an option" + (closest.empty() ? "" : "; the closest is " + closest) + help;
  }
  // A whole number that misread_number() lets pass, but not an int: "Could not convert: --threads = 99999999999".
  const std::string message = error.what();
  const std::string_view beginning = "Could not convert: ";
  const std::size_t equals = message.find(" = ");
  if (message.starts_with(beginning) && equals != std::string::npos) {
    const std::string value = message.substr(equals + 3);
    if (value.find_first_not_of("0123456789", value.find_first_not_of("+-")) == std::string::npos) {
      using Int = std::numeric_limits<int>;
      return sheafnn::detail::concat(message.substr(beginning.size(), equals - beginning.size()), ": ", value,
                                     " is not allowed; must be between ", Int::min(), " and ", Int::max(), help);
    }
  }
  if (unexpected.empty() || dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return message + help;
  const std::string &first = unexpected.front(), closest = closest_option(app, first);
  return first + " is not expected here" + (closest == "--" + first ? "; the option is " + closest : "") + help;
}

}  // namespace programs
