/// \file
/// Callback<R(A…)>: what a function calls with A…, of any type. The function is compiled once, and not once for every
/// body. A call through it is not inlined: it pays for bodies that do much.
#pragma once

namespace sheafnn::detail {

template <class Signature>
class Callback;

/// Refers to the body, which must outlive the callback; as an argument of a function it does. Arguments are numbers or
/// pointers.
template <class Result, class... Arguments>
class Callback<Result(Arguments...)> {
 public:
  template <class Body>
  // NOLINTNEXTLINE(google-explicit-constructor): what takes a callback takes a body
  Callback(const Body& body) noexcept
      : run_([](const void* erased, Arguments... arguments) -> Result {
          return (*static_cast<const Body*>(erased))(arguments...);
        }),
        body_(&body) {}

  Result operator()(Arguments... arguments) const { return run_(body_, arguments...); }

 private:
  Result (*run_)(const void*, Arguments...);
  const void* body_;
};

}  // namespace sheafnn::detail
