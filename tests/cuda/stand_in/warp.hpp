/// \file
/// Threads of a stand-in device. The 32 lanes of a warp run one after another, from the last to the first: the only
/// exchange there is hands values down, from a lane to one before it, so what a lane takes is there already, and no
/// lane has to wait. Most of a test's time goes into that, so warp.cpp is compiled with more optimisation than the tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
};

/// Runs one kernel's code in 32 lanes.
class Warp {
 public:
  static constexpr unsigned size = 32;

  /// Runs `code` in the lanes of the threads `first` … of the current block, all but those behind `count` threads.
  void run(const Code& code, unsigned first, unsigned count);

  /// Of the running lane: gives its value, the first `bytes` bytes of `given`, and takes that of the lane `delta`
  /// above it within `width` lanes, or its own where there is none.
  [[nodiscard]] std::uint64_t shuffle_down(unsigned mask, std::uint64_t given, std::size_t bytes, unsigned delta,
                                           int width);

 private:
  /// All lanes make the same exchanges in the same order: the one that runs first sets them.
  struct Exchange {
    unsigned delta = 0;
    int width = 0;
    std::size_t bytes = 0;
    std::array<std::uint64_t, size> given{};
  };

  std::vector<Exchange> exchange_;        ///< more than there are, from earlier warps
  std::size_t made_ = 0, exchanges_ = 0;  ///< of the running lane; of the one that ran first
  unsigned lane_ = 0, lanes_ = 0;
};

inline Warp warp;

/// Runs a kernel's blocks, and the warps of each, in an order that nobody should rely on.
void run_grid(const dim3& grid, const dim3& block, const Code& code);

}  // namespace stand_in

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = stand_in::warp.shuffle_down(mask, word, sizeof value, delta, width);
  std::memcpy(&value, &word, sizeof value);
  return value;
}
