/// \file
/// joined(): texts and numbers as one text, without a template for each list of types.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

namespace explore {

/// A text or a number with six digits, for joined() only: it may refer to a temporary.
class Text {
 public:
  Text(const char* text) : text_(text) {}
  Text(const std::string& text) : text_(text) {}
  Text(double number) : text_(buffer_, print("%.6g", number)) {}
  Text(int number) : text_(buffer_, print("%d", number)) {}
  Text(unsigned number) : text_(buffer_, print("%u", number)) {}
  Text(long number) : text_(buffer_, print("%ld", number)) {}
  Text(long long number) : text_(buffer_, print("%lld", number)) {}
  Text(unsigned long number) : text_(buffer_, print("%lu", number)) {}
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  [[nodiscard]] std::string_view view() const { return text_; }

 private:
  template <class Number>
  std::size_t print(const char* format, Number number) {
    return static_cast<std::size_t>(std::snprintf(buffer_, sizeof buffer_, format, number));
  }

  char buffer_[32];
  std::string_view text_;
};

inline std::string joined(std::initializer_list<Text> parts) {
  std::string r;
  for (const Text& part : parts) r += part.view();
  return r;
}

}  // namespace explore
