/// \file
/// What every fuzz target needs: its registration, the contract, and numbers and choices made from bytes.
///
/// A target calls the library with what some bytes say and keeps to the contract: a result within its stated accuracy, or
/// the documented exception. What breaks it ends the program with a message. On top of that, no input may take longer than
/// a second of processor time for each kilobyte, nor more memory than the multiple that its target states.
///
/// Each file of targets is compiled in two ways: with clang's libFuzzer (run.sh), and into one program that replays the
/// corpora and mutations of them (replay.cpp), where SHEAFNN_FUZZ_REPLAY is defined.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fuzz {

using Input = std::span<const std::uint8_t>;

/// Called for each kind of breach of a survey.
inline void (*on_breach)() = [] {};

/// Thrown in a survey, see broken().
struct Broken {};

/// Ends the program: the contract is broken. With SHEAFNN_FUZZ_SURVEY in the environment it goes on with the next input,
/// and says each kind of breach once.
[[noreturn]] inline void broken(const char* what, const std::string& detail = "") {
  static const bool survey = std::getenv("SHEAFNN_FUZZ_SURVEY") != nullptr;
  static std::set<std::string> said;
  if (!survey || said.insert(what).second) {
    std::fprintf(stderr, "contract broken: %s%s%s\n", what, detail.empty() ? "" : ": ", detail.c_str());
    if (survey) on_breach();
  }
  if (survey) throw Broken();
  std::abort();
}
inline void expect(bool holds, const char* what) {
  if (!holds) broken(what);
}
/// A message of an exception is one line, and not an empty one.
inline void expect_message(const char* message) {
  expect(message != nullptr && *message != '\0', "an exception without a message");
  if (std::strpbrk(message, "\n\r") != nullptr) broken("a message of several lines", message);
}

/// Runs `body`; it may throw only what is listed, with a message. \returns whether it threw nothing
/// \param said  where the message goes
template <class... Documented, class Body>
bool keeps_contract(const Body& body, std::string* said = nullptr) {
  try {
    body();
    return true;
  } catch (const std::exception& error) {
    const bool documented = (... || (dynamic_cast<const Documented*>(&error) != nullptr));
    if (!documented) broken("an exception that is not documented", error.what());
    expect_message(error.what());
    if (said != nullptr) *said = error.what();
    return false;
  }
}

/// Heap memory in use, and the most since begin_memory(); see memory.hpp.
struct Memory {
  static inline std::size_t used = 0, peak = 0;
  static void add(std::size_t bytes) {
    used += bytes;
    if (used > peak) peak = used;
  }
  static void remove(std::size_t bytes) { used -= bytes < used ? bytes : used; }
};

/// Calls `target` and checks time and memory.
///
/// \param multiple  bytes of memory for each byte of the input, on top of `fixed`
/// \param fixed     what any input may take: tables, windows of zlib, stacks of parsers
inline void run(void (*target)(Input), Input input, double multiple, double fixed) {
  try {
    const std::size_t before = Memory::peak = Memory::used;
    const std::clock_t start = std::clock();
    target(input);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const double kilobytes = static_cast<double>(input.size()) / 1024;
    if (seconds > 1 + kilobytes) broken("too slow", std::to_string(seconds) + " s");
    const double bytes = static_cast<double>(Memory::peak - before);
    if (bytes > fixed + multiple * static_cast<double>(input.size())) {
      broken("too much memory", std::to_string(bytes) + " bytes for " + std::to_string(input.size()));
    }
  } catch (const Broken&) {
  }
}

/// A target as replay.cpp knows it.
struct Target {
  std::string_view name;
  void (*run)(Input);
};
inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

/// Choices and numbers from the bytes of an input, zeros behind its end.
class Choices {
 public:
  explicit Choices(Input input) : rest_(input) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t r = rest_.front();
    rest_ = rest_.subspan(1);
    return r;
  }
  template <class T>
  T raw() {
    unsigned char bytes[sizeof(T)];
    for (unsigned char& b : bytes) b = byte();
    T r;
    std::memcpy(&r, bytes, sizeof(T));
    return r;
  }
  bool flag() { return (byte() & 1) != 0; }
  /// 0 … count − 1.
  int below(int count) { return byte() % count; }
  /// A number of any kind: special values, sizes of all orders, and any bits.
  template <class S>
  S number() {
    using Limits = std::numeric_limits<S>;
    const std::uint8_t kind = byte();
    const S sign = (kind & 128) != 0 ? S(-1) : S(1);
    switch (kind & 15) {
      case 0:
        return sign * S(0);
      case 1:
        return sign;
      case 2:
        return sign * Limits::infinity();
      case 3:
        return Limits::quiet_NaN();
      case 4:
        return sign * Limits::max();
      case 5:
        return sign * Limits::min();
      case 6:
        return sign * Limits::denorm_min();
      case 7:
        return sign * (1 - Limits::epsilon());
      case 8:
        return sign * S(1e30);
      case 9:
        return sign * S(1e-30);
      case 10:
        return sign * std::ldexp(S(1), static_cast<int>(static_cast<std::int8_t>(byte())));
      case 11:
        return raw<S>();
      case 12:
        return sign * S(3.1415926535897932384626433832795) * S(byte() % 9) / S(4);
      default:
        return unit<S>();
    }
  }
  /// In [−1, 1].
  template <class S>
  S unit() {
    return static_cast<S>(raw<std::int16_t>()) / S(32768);
  }
  /// As number(), or, of every 16 choices but one, moderate: within ±8.
  template <class S>
  S moderate() {
    return byte() < 16 ? number<S>() : 8 * unit<S>();
  }
  [[nodiscard]] Input rest() const { return rest_; }

 private:
  Input rest_;
};

/// The input as text.
[[nodiscard]] inline std::string text_of(Input input) {
  return std::string(reinterpret_cast<const char*>(input.data()), input.size());
}

}  // namespace fuzz

/// Defines the target NAME: SHEAFNN_FUZZ_TARGET(NAME, memory per byte of input, memory of any input) { … } with the
/// bytes in `input`.
#if defined(SHEAFNN_FUZZ_REPLAY)
#define SHEAFNN_FUZZ_TARGET(name, multiple, fixed)                                              \
  static void fuzz_##name(fuzz::Input input);                                                   \
  static const bool registered_##name =                                                         \
      (fuzz::targets().push_back(                                                               \
           {#name, [](fuzz::Input input) { fuzz::run(fuzz_##name, input, multiple, fixed); }}), \
       true);                                                                                   \
  static void fuzz_##name(fuzz::Input input)
#else
#include "memory.hpp"
#define SHEAFNN_FUZZ_TARGET(name, multiple, fixed)                                    \
  static void fuzz_##name(fuzz::Input input);                                         \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    fuzz::run(fuzz_##name, fuzz::Input(data, size), multiple, fixed);                 \
    return 0;                                                                         \
  }                                                                                   \
  static void fuzz_##name(fuzz::Input input)
#endif
