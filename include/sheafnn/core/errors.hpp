/// \file
/// Errors of host entry points: messages that name the argument, its value and the limit.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace sheafnn {

namespace detail {

/// Prints a value with operator<<; true and false in words; floating-point numbers as they were typed. So a value that is
/// just out of range looks like it. Numbers have the fewest digits that give them up to rounding, and six digits where more
/// than twelve would be needed.
template <class Value>
void print(std::ostream& out, const Value& value) {
  if constexpr (std::is_floating_point_v<Value>) {
    using Limits = std::numeric_limits<Value>;
    constexpr int few = 6, most = std::max(few, Limits::digits10 - 3);
    std::array<char, 64> text;
    const auto write = [&](int digits) {
      return std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr;
    };
    if (std::isnan(value)) {  // without a sign, which means nothing
      out << "nan";
      return;
    }
    char* end = nullptr;
    bool same = false;
    for (int digits = few; digits <= most && !same; ++digits) {
      end = write(digits);
      Value shown = 0;
      std::from_chars(text.data(), end, shown);
      same = std::abs(shown - value) <= 4 * Limits::epsilon() * std::abs(value);
    }
    if (!same) end = write(few);
    out.write(text.data(), end - text.data());
  } else if constexpr (std::is_same_v<Value, bool>) {
    out << (value ? "true" : "false");
  } else {
    out << value;
  }
}

/// A part of a message, of any type that print() prints. Refers to the value.
class MessagePart {
 public:
  explicit MessagePart(const char* text) : MessagePart(std::string_view(text)) {}
  explicit MessagePart(std::string_view text) : text_(text) {}
  explicit MessagePart(const std::string& text) : text_(text) {}
  template <class Value>
  explicit MessagePart(const Value& value)
      : value_(&value),
        print_([](std::ostream& out, const void* v) { print(out, *static_cast<const Value*>(v)); }) {}

  void append_to(std::ostream& out) const {
    if (print_ == nullptr) {
      out << text_;
    } else {
      print_(out, value_);
    }
  }

 private:
  std::string_view text_;
  const void* value_ = nullptr;
  void (*print_)(std::ostream&, const void*) = nullptr;
};

[[nodiscard]] inline std::string concat_parts(std::initializer_list<MessagePart> parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());  // numbers look alike in files and messages, whatever the program's locale is
  out.exceptions(std::ios::badbit);   // without memory: an exception instead of a truncated text
  for (const MessagePart& part : parts) part.append_to(out);
  return out.str();
}

/// Concatenates its arguments for messages, printed with print().
template <class... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
  return concat_parts({MessagePart(parts)...});
}

}  // namespace detail

/// What messages call an argument, "logpdf: p", or one of its elements, "fit: samples[3]". A check of every element
/// costs no text: it is made for a message only. Takes any texts, which must live as long as the name.
class ArgumentName {
 public:
  // Most names are a text. NOLINTBEGIN(google-explicit-constructor)
  ArgumentName(const char* name) : argument_(name) {}
  ArgumentName(std::string_view name) : argument_(name) {}
  ArgumentName(const std::string& name) : argument_(name) {}
  // NOLINTEND(google-explicit-constructor)
  ArgumentName(std::string_view function, std::string_view argument, std::size_t index)
      : function_(function), argument_(argument), index_(index), has_index_(true) {}

  friend std::ostream& operator<<(std::ostream& out, const ArgumentName& name) {
    if (!name.function_.empty()) out << name.function_ << ": ";
    out << name.argument_;
    if (name.has_index_) out << '[' << name.index_ << ']';
    return out;
  }

 private:
  std::string_view function_, argument_;
  std::size_t index_ = 0;
  bool has_index_ = false;
};

/// \throws std::invalid_argument  saying "ARGUMENT: VALUE is not allowed; LIMIT"
template <class Value>
[[noreturn]] void throw_invalid_argument(const ArgumentName& argument, const Value& value,
                                         std::string_view limit) {
  throw std::invalid_argument(detail::concat(argument, ": ", value, " is not allowed; ", limit));
}

/// \throws std::invalid_argument  (see throw_invalid_argument) unless `ok`
///
/// \param ok        the condition the argument has to fulfil
/// \param argument  its name as the caller knows it. In loops an ArgumentName with an index: a text made for every
///                  element takes longer than the check.
/// \param value     its value; printed with detail::print
/// \param limit     what would have been allowed, e.g. "must be between 1 and 8"
template <class Value>
void require(bool ok, const ArgumentName& argument, const Value& value, std::string_view limit) {
  if (!ok) throw_invalid_argument(argument, value, limit);
}

/// \throws std::invalid_argument  unless least ≤ value ≤ most; NaN is not
template <class Value>
void require_between(std::string_view argument, const Value& value, const std::type_identity_t<Value>& least,
                     const std::type_identity_t<Value>& most) {
  if (value >= least && value <= most) return;
  throw_invalid_argument(argument, value, detail::concat("must be between ", least, " and ", most));
}

}  // namespace sheafnn
