/// \file
/// Errors of host entry points: messages that name the argument, its value and the limit.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sheafnn {

/// Throws std::invalid_argument saying "ARGUMENT: VALUE is not allowed; LIMIT".
template <class Value>
[[noreturn]] void throw_invalid_argument(std::string_view argument, const Value& value, std::string_view limit) {
  std::ostringstream message;
  message << argument << ": " << value << " is not allowed; " << limit;
  throw std::invalid_argument(message.str());
}

/// Throws std::invalid_argument (see throw_invalid_argument) unless `ok`.
///
/// \param ok        the condition the argument has to fulfil
/// \param argument  its name as the caller knows it
/// \param value     its value; printed with operator<<
/// \param limit     what would have been allowed, e.g. "must be between 1 and 8"
template <class Value>
void require(bool ok, std::string_view argument, const Value& value, std::string_view limit) {
  if (!ok) throw_invalid_argument(argument, value, limit);
}

namespace detail {

/// Concatenates its arguments with operator<<, for error messages.
template <class... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace detail

}  // namespace sheafnn
