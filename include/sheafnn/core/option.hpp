/// \file
/// How an option is declared: once, next to the struct that has it. A struct of options has a function
///
///     template <class Visit, OptionsOf<TrainOptions>... Options>
///     void for_each_option(const Visit& visit, Options&... options) {
///       visit({"samples", "posterior samples averaged at evaluation", OptionRange::between(1, 1024)}, options.samples...);
///       …
///
/// that calls visit(Option, field) for each of them, or visit(Option, field, field, …) for several structs. From this function
/// follow the checks of ranges (check_ranges()), the texts of files and of Python (io/option_text.hpp), the command line of the
/// programs and docs/options.md.
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// The text of an option that is not set, a std::optional without a value.
inline constexpr std::string_view unset_option = "auto";

/// Which values an option may have.
struct OptionRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool without_least = false, without_most = false;  ///< the range excludes that end
  const char* remark = "";                           ///< that follows the range in texts

  /// Values from `least` to `most`. Takes any numbers.
  [[nodiscard]] static constexpr OptionRange between(double least, double most, const char* remark = "") {
    return {least, most, false, false, remark};
  }
  /// Finite values from `least` on. Takes any number.
  [[nodiscard]] static constexpr OptionRange at_least(double least, const char* remark = "") {
    return {.least = least, .remark = remark};
  }
  /// Above `least`, finite. Takes any number.
  [[nodiscard]] static constexpr OptionRange above(double least) {
    return {.least = least, .without_least = true};
  }
  /// Values from `least` up to but not including `most`. Takes any numbers.
  [[nodiscard]] static constexpr OptionRange below(double least, double most) {
    return {least, most, false, true, ""};
  }
};

/// The declaration of an option. Texts are written for a program's --help: no capital at the beginning, no full stop.
struct Option {
  const char* key;                  ///< its name in files and in Python
  const char* summary;              ///< what it is, in a sentence that its names or its range follow
  OptionRange range = {};           ///< of a numeric option
  const char* flag = nullptr;       ///< name on the command line, if it is not the key with dashes; "": no such option
  const char* field = nullptr;      ///< the member in C++, where that is not the key
  const char* automatic = nullptr;  ///< of a std::optional: what it is where it is not set
  const char* since = nullptr;      ///< version of the library, of an option that older files do not have

  /// The member in C++, which messages name.
  [[nodiscard]] constexpr const char* member() const { return field != nullptr ? field : key; }
};

/// Is Options, which may be const, this struct?
template <class Options, class Struct>
concept OptionsOf = std::same_as<std::remove_const_t<Options>, Struct>;

namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

[[nodiscard]] constexpr bool is_within(const OptionRange& range, double value) {
  const bool low = range.without_least ? value > range.least : value >= range.least;
  const bool high = range.without_most ? value < range.most : value <= range.most;
  return low && high;
}

/// \param value  as messages have it
/// \param real   numbers are printed as double, otherwise as Index
[[noreturn]] SHEAFNN_NOINLINE inline void refuse_number(const Option& option, const std::string& value,
                                                        bool real) {
  const OptionRange& range = option.range;
  const auto text = [&](double number) { return real ? concat(number) : concat(static_cast<Index>(number)); };
  std::string limit;
  if (std::isinf(range.most)) {
    limit = concat(real ? "finite and " : "", range.without_least ? "above " : "at least ", text(range.least));
  } else if (range.without_most) {
    limit = concat("at least ", text(range.least), " and below ", text(range.most));
  } else {
    limit = concat("between ", text(range.least), " and ", text(range.most));
  }
  throw_invalid_argument(option.member(), value, concat("must be ", limit, range.remark));
}
template <class Number>
void check_number(const Option& option, Number value) {
  const OptionRange& range = option.range;
  if (std::isinf(range.least) && std::isinf(range.most)) return;
  if (std::isfinite(static_cast<double>(value)) && is_within(range, static_cast<double>(value))) return;
  refuse_number(option, concat(value), std::is_floating_point_v<Number>);
}
inline void check_option(const Option& option, double value) { check_number(option, value); }
inline void check_option(const Option& option, Index value) { check_number(option, value); }
inline void check_option(const Option& option, int value) { check_number<Index>(option, value); }
inline void check_option(const Option& option, const std::optional<double>& value) {
  if (value) check_number(option, *value);
}
/// Options of other types have no range.
template <class Field>
void check_option(const Option&, const Field&) {}

}  // namespace detail

/// Checks every numeric option.
///
/// \throws std::invalid_argument  naming the option, its value and its range
template <class Options>
void check_ranges(const Options& options) {
  for_each_option([](const Option& option, const auto& field) { detail::check_option(option, field); }, options);
}

}  // namespace sheafnn

namespace sheafnn::layers {
using sheafnn::check_ranges;  // found by the options of the namespace
}
