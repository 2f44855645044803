/// \file
/// What the command-line programs share: one-line errors with exit code 2, and output that is checked.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <sheafnn/core/caller.hpp>
#include <sheafnn/io/csv.hpp>
#include <sheafnn/io/file.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/help.hpp"
#include "models/interruption.hpp"

namespace programs {

inline constexpr int exit_bad_input = 2;

/// Brings what was printed to standard output.
///
/// \throws std::runtime_error  it is full or closed: what should have been seen was not
inline void flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const std::string reason =
      errno != 0 ? std::error_code(errno, std::generic_category()).message() : "it is full or closed";
  throw std::runtime_error("standard output cannot be written; " + reason);
}

/// The arguments of main() after the program's name.
[[nodiscard]] inline std::vector<std::string> arguments(int argc, char** argv) {
  return std::vector<std::string>(argv + std::min(argc, 1), argv + argc);
}

/// Refuses empty arguments, which no option takes but --missing-labels. Where CLI11 expects an option, it takes an empty
/// argument for the name of a group of options, sometimes endlessly.
///
/// \throws std::runtime_error  naming its place
inline void refuse_empty_arguments(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].empty() || (i > 0 && arguments[i - 1] == "--missing-labels")) continue;
    const std::string behind = i > 0 ? " (behind " + arguments[i - 1] + ")" : "";
    throw std::runtime_error("argument " + std::to_string(i + 1) + behind + " is empty; --help lists the options");
  }
}

/// What is wrong with the text of a number of one of CLI11's types INT, UINT and FLOAT, or nothing. It takes 010 for 8, in
/// octal, and what is too large or, without a sign, -1 for the largest number. Its ranges let nan through.
[[nodiscard]] inline std::string misread_number(std::string_view type, const std::string& text) {
  const std::string refused = text + " is not allowed; ";
  if (type.starts_with("FLOAT")) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    const bool whole = end != text.c_str() && *end == '\0';
    return !whole || std::isnan(number) ? refused + "must be a number" : "";
  }
  const bool is_signed = type.starts_with("INT");
  if (text == "-0") return refused + "0 has no sign";
  if (!is_signed && text.starts_with('-')) return refused + "must be at least 0";
  const std::string_view digits =
      std::string_view(text).substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  const bool whole = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!whole) return refused + "must be a whole number";
  if (digits.size() > 1 && digits.front() == '0') return refused + "a number has no leading zeros";
  std::uint64_t number = 0;
  const std::uint64_t most =
      is_signed ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::uint64_t>::max();
  const bool fits = std::from_chars(digits.data(), digits.data() + digits.size(), number).ec == std::errc();
  return fits && number <= most ? "" : refused + "must be at most " + std::to_string(most);
}

/// The check that a number is between two limits, whose error reads like the library's. Anything but a number is left to
/// misread_number().
///
/// \tparam T  Index or double
template <class T>
[[nodiscard]] CLI::Validator between(T least, T most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        T value{};
        if (!CLI::detail::lexical_cast(text, value) || !(value < least || value > most)) return "";
        return sheafnn::detail::concat(text, " is not allowed; must be between ", least, " and ", most);
      },
      "");
}

/// Adds misread_number() to the checks of all options that are numbers.
inline void refuse_misread_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (!type.starts_with("INT") && !type.starts_with("UINT") && !type.starts_with("FLOAT")) continue;
    option->check([type](const std::string& text) { return misread_number(type, text); });
  }
  for (CLI::App* group : app.get_subcommands(std::function<bool(CLI::App*)>())) refuse_misread_numbers(*group);
}

/// A text with U+FFFD in place of every byte that is not UTF-8, which names of files may have.
[[nodiscard]] inline std::string as_utf8(std::string_view text) {
  std::string r;
  while (!text.empty()) {
    const std::size_t length = sheafnn::io::detail::utf8_length(text);
    r += length > 0 ? text.substr(0, length) : "\xEF\xBF\xBD";
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return r;
}

/// A message "learning_rate: 0 is not allowed; …" with the option that sets the member, "--lr", in its place. Other
/// characters do not change.
[[nodiscard]] inline std::string in_options(const CLI::App& app, const std::string& message) {
  const std::size_t end = message.find(": ");
  if (end == std::string::npos || message.find(": ", end + 1) < message.find(" is not allowed; ")) return message;
  const std::string member = message.substr(0, end);
  std::vector<std::string> options = {option_name(member)};
  for (const auto& [name, flag] : flags_of_members()) {
    if (name == member) options.push_back(flag);
  }
  const auto found = std::find_if(options.begin(), options.end(), [&](const std::string& option) {
    return app.get_option_no_throw(option) != nullptr;
  });
  return found == options.end() ? message : *found + message.substr(end);
}

/// Runs steps one after another, even if earlier steps failed. If one file cannot be written, the other results are
/// still saved.
class Attempts {
 public:
  template <class Step>
  void make(const Step& step) {
    try {
      step();
    } catch (const std::exception& error) {
      if (failed()) return;
      first_ = std::current_exception();
      message_ = error.what();
    }
  }
  [[nodiscard]] bool failed() const noexcept { return first_ != nullptr; }
  /// The message of the first step that failed; empty: no step failed.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  /// Throws what the first threw that failed.
  void rethrow() const {
    if (failed()) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
  std::string message_;
};

/// Parses the arguments, runs `body`, and turns errors into one line on stderr and exit code 2. A body may return an
/// exit code of its own; after Interrupted it is 128 + the signal. A closed pipe and a file that grows too large are errors
/// like others and end nothing by a signal.
///
/// \param read_arguments  returns the arguments; may throw
template <class ReadArguments, class Body>
int run_program_with(CLI::App& app, const ReadArguments& read_arguments, const Body& body) {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  sheafnn::set_caller(sheafnn::Caller::program);
  try {
    refuse_misread_numbers(app);
    if (dynamic_cast<const HelpFormatter*>(app.get_formatter().get()) == nullptr) {
      app.formatter(std::make_shared<HelpFormatter>());
    }
    std::vector<std::string> arguments = read_arguments();
    refuse_empty_arguments(arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) throw;
      const int code = app.exit(error);  // --help
      std::cout.flush();
      flush_output();
      return code;
    }
    int code = 0;
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
    } else {
      code = body();
    }
    flush_output();
    return code;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), parse_message(app, error).c_str());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory; a smaller graph, fewer channels or layers may fit\n",
                 app.get_name().c_str());
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), in_options(app, error.what()).c_str());
  } catch (const Interrupted& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), error.what());
  }
  return exit_bad_input;
}

template <class Body>
int run_program(CLI::App& app, int argc, char** argv, const Body& body) {
  return run_program_with(
      app, [&] { return arguments(argc, argv); }, body);
}

/// Checks, before anything costly is done, that a file can be put there.
///
/// \param file  empty: nothing is to be written
/// \throws std::runtime_error  naming option and file, and why it cannot
inline void require_writable(const char* option, const std::filesystem::path& file) {
  if (file.empty()) return;
  try {
    sheafnn::io::require_writable(file);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string(option) + ": " + error.what());
  }
}

/// The target of a path after all symbolic links; it need not exist.
[[nodiscard]] inline std::filesystem::path resolved(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path target = sheafnn::io::detail::without_links(file);
  return std::filesystem::weakly_canonical(std::filesystem::absolute(target, error), error);
}

/// An option and the file that it names; empty: no file.
struct NamedFile {
  const char* option;
  std::filesystem::path file;
};

/// Checks that no file is written twice, and none over an input: a file, or a folder whose data files they are.
///
/// \throws std::runtime_error  naming both options and the file
inline void require_apart(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  const auto is_data = [](const std::string& name) {
    for (const char* start : {"edges.", "nodes.", "graphs.", "hyperedges.", "labels.", "features.", "out1_"}) {
      if (name.starts_with(start)) return true;
    }
    for (const char* end :
         {"_A.txt", "_graph_indicator.txt", "_labels.txt", "_attributes.txt"}) {  // sets of graphs
      if (name.ends_with(end)) return true;
    }
    return name.find("_split_") != std::string::npos;
  };
  std::map<std::filesystem::path, const char*> taken;  // by the option
  for (const NamedFile& output : outputs) {
    if (output.file.empty()) continue;
    const std::filesystem::path path = resolved(output.file);
    const auto refuse = [&](const char* option, const char* why) {
      throw std::runtime_error(std::string(output.option) + ": " + output.file.string() + " " + why + " " +
                               option);
    };
    for (const NamedFile& input : inputs) {
      if (input.file.empty() || !std::filesystem::exists(input.file)) continue;
      if (path == resolved(input.file)) refuse(input.option, "is the file of");
      if (path.parent_path() == resolved(input.file / ".") && std::filesystem::is_directory(input.file) &&
          is_data(path.filename().string()) && std::filesystem::exists(path)) {
        refuse(input.option, "is a file of");
      }
    }
    const auto [other, is_free] = taken.emplace(path, output.option);
    if (!is_free) refuse(other->second, "is the file of");
  }
}

}  // namespace programs
