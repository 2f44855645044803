/// \file
/// Threads of a stand-in device. The 32 lanes of a warp run one after another, from the last to the first: most exchanges
/// hand values down, from a lane to one before it, so what a lane takes is there already, and no lane has to wait. In
/// kernels that also hand values up a lane waits until the others have come as far; each has a stack of its own, on
/// which it stays meanwhile. Most of a test's time goes into warps, so warp.cpp is compiled with more optimisation than
/// the tests.
#pragma once

#include <setjmp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "device_memory.hpp"

/// Three extents, or a place in them.
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace stand_in {

/// A kernel, whatever its parameters.
using Kernel = void (*)();

/// What a thread runs: a kernel with its arguments.
struct Code {
  Kernel kernel = nullptr;
  void (*call)(Kernel kernel, const void* arguments) = nullptr;  ///< knows the parameters
  std::vector<std::byte> arguments;
  bool exchanges = false;  ///< values in both directions
};
/// Is this a parameter of a kernel that does?
template <class Parameter>
inline constexpr bool exchanges = [] {
  if constexpr (requires { Parameter::exchanges; }) {
    return Parameter::exchanges;
  } else {
    return false;
  }
}();

/// Runs one kernel's code in 32 lanes.
class Warp {
 public:
  static constexpr unsigned size = 32;

  /// Runs `code` in the lanes of the threads `first` … of the current block, all but those behind `count` threads.
  void run(const Code& code, unsigned first, unsigned count);

  /// Of the running lane: gives its value, the first `bytes` bytes of `given`, and takes the value of the lane
  /// `delta` above it within `width` lanes, or its own where there is none.
  [[nodiscard]] std::uint64_t shuffle_down(unsigned mask, std::uint64_t given, std::size_t bytes, unsigned delta,
                                           int width);
  /// The same from any lane: `from`, modulo `width`, of the lanes that the running one is among.
  [[nodiscard]] std::uint64_t shuffle(unsigned mask, std::uint64_t given, std::size_t bytes, int from, int width);

  /// What the stacks of the lanes run: kernels, one after another.
  [[noreturn]] void run_lane();

 private:
  static constexpr unsigned any_lane = ~0U;
  /// All lanes make the same exchanges in the same order: the one that runs first sets them.
  struct Exchange {
    unsigned delta = 0;  ///< or any_lane
    int width = 0;
    std::size_t bytes = 0;
    std::array<std::uint64_t, size> given{};
  };

  /// A lane's stack, and where it goes on.
  struct Stack {
    std::unique_ptr<std::byte[]> memory;
    jmp_buf place;
  };

  /// Notes what the running lane gives. \returns the number of the exchange
  std::size_t give(unsigned mask, std::uint64_t given, std::size_t bytes, unsigned delta, int width);
  /// Runs a lane on its stack until it waits or has ended. Jumps change stacks twenty times as fast as swapcontext().
  void go_on(unsigned lane);
  void wait(unsigned lane);

  std::vector<Exchange> exchange_;        ///< more than there are, from earlier warps
  std::size_t exchanges_ = 0;             ///< of this warp, so far
  std::array<std::size_t, size> made_{};  ///< by each lane
  std::array<bool, size> ended_{};
  unsigned lane_ = 0, lanes_ = 0;
  const Code* code_ = nullptr;
  std::array<Stack, size> stack_{};
  jmp_buf caller_;
};

inline Warp warp;

/// Runs a kernel's blocks, and the warps of each, in an order that nobody should rely on.
void run_grid(const dim3& grid, const dim3& block, const Code& code);

/// Calls exchange(word, bytes) with the bytes of a value. \returns the value that it gives
template <class T, class Exchange>
T exchanged(T value, const Exchange& exchange) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = exchange(word, sizeof value);
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace stand_in

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return stand_in::exchanged(value, [=](std::uint64_t word, std::size_t bytes) {
    return stand_in::warp.shuffle_down(mask, word, bytes, delta, width);
  });
}
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  return stand_in::exchanged(value, [=](std::uint64_t word, std::size_t bytes) {
    return stand_in::warp.shuffle(mask, word, bytes, from, width);
  });
}
