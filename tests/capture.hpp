/// \file
/// CAPTURE of doctest without its code: there each use is a class of its own with a virtual table, in a template once
/// for every instantiation. Here it is one function for every type of value. The output is the same. The expression is
/// evaluated where it stands, and not after a failure; what it refers to is printed as it is then.
///
/// Only for the precompiled header: without it, doctest's CAPTURE does as well.
#pragma once

#include <doctest/doctest.h>

#include <ostream>

namespace test {

/// Prints NAME := VALUE with the failures of its lifetime. Refers to the value.
class Captured final : public doctest::detail::ContextScopeBase {
 public:
  template <class Value>
  Captured(const char* name, const Value& value)
      : name_(name), value_(&value), text_of_([](const void* v) {
          return doctest::toString(*static_cast<const Value*>(v));
        }) {}
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() override { destroy(); }

  void stringify(std::ostream* out) const override { *out << name_ << " := " << text_of_(value_); }

 private:
  const char* name_;
  const void* value_;
  doctest::String (*text_of_)(const void*);
};

}  // namespace test

#undef CAPTURE
#define CAPTURE(expression) \
  TEST_CAPTURE(expression, DOCTEST_ANONYMOUS(captured_value_), DOCTEST_ANONYMOUS(captured_))
#define TEST_CAPTURE(expression, value, captured) \
  const auto& value = expression;                 \
  const test::Captured captured(#expression, value)
