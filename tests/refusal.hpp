/// \file
/// What calls are refused with.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace test {

/// The message of the error that a call throws, or "nothing was thrown".
template <class Error = std::invalid_argument>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace test
