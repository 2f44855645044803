/// \file
/// Errors of host entry points: messages that name the argument, its value and the limit.
#pragma once

#include <array>
#include <charconv>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace sheafnn {

namespace detail {

/// Prints a value with operator<<; floating-point numbers with as few digits as tell them from all others, so that
/// a number that is just out of range looks like it.
template <class Value>
void print(std::ostream& out, const Value& value) {
  if constexpr (std::is_floating_point_v<Value>) {
    std::array<char, 64> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    out.write(text.data(), end - text.data());
  } else {
    out << value;
  }
}

/// Concatenates its arguments for messages, printed with print().
template <class... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (print(out, parts), ...);
  return out.str();
}

}  // namespace detail

/// Throws std::invalid_argument saying "ARGUMENT: VALUE is not allowed; LIMIT".
template <class Value>
[[noreturn]] void throw_invalid_argument(std::string_view argument, const Value& value, std::string_view limit) {
  throw std::invalid_argument(detail::concat(argument, ": ", value, " is not allowed; ", limit));
}

/// Throws std::invalid_argument (see throw_invalid_argument) unless `ok`.
///
/// \param ok        the condition the argument has to fulfil
/// \param argument  its name as the caller knows it
/// \param value     its value; printed with detail::print
/// \param limit     what would have been allowed, e.g. "must be between 1 and 8"
template <class Value>
void require(bool ok, std::string_view argument, const Value& value, std::string_view limit) {
  if (!ok) throw_invalid_argument(argument, value, limit);
}

}  // namespace sheafnn
