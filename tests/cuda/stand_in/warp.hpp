/// \file
/// Threads of a stand-in device: the 32 lanes of a warp are fibers, which change over where they exchange values. Most of
/// a test's time goes into that, so warp.cpp is compiled with more optimisation than the tests.
#pragma once

#include <array>
#include <boost/context/fiber.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#include "device_memory.hpp"

/// Three extents, or a place in them.
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace stand_in {

/// Runs one kernel's code in 32 lanes. The fibers are kept for the next warp.
class Warp {
 public:
  static constexpr unsigned size = 32;

  /// Runs `code` in the lanes of the threads `first` … of the current block, all but those behind `count` threads.
  void run(const std::function<void()>& code, unsigned first, unsigned count);

  /// Of the running lane: gives its value, and takes that of the lane `delta` above it within `width` lanes, or its
  /// own where there is none.
  template <class T>
  [[nodiscard]] T shuffle_down(unsigned mask, T value, unsigned delta, int width) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
    if (mask != 0xffffffffU) stop("an exchange of some lanes only is not provided for");
    if (width < 1 || width > 32 || (width & (width - 1)) != 0)
      stop("an exchange within a width that is no power of two");
    const unsigned own = current_, round = round_, w = static_cast<unsigned>(width);
    Lane& lane = lane_[own];
    std::memcpy(&lane.given[round], &value, sizeof value);
    lane.delta = delta;
    lane.width = w;
    lane.bytes = sizeof value;
    lane.state = State::waiting;
    leave();
    const unsigned from = own % w + delta < w ? own + delta : own;
    std::memcpy(&value, &lane_[from].given[round], sizeof value);
    return value;
  }

 private:
  enum class State { running, waiting, finished };
  struct Lane {
    State state = State::running;
    std::array<std::uint64_t, 2> given{};  ///< one for every other exchange: others may not have read the last one
    unsigned delta = 0, width = 0;
    std::size_t bytes = 0;
  };

  void begin(unsigned lane);
  void resume(unsigned number);
  void leave();
  void check_exchange() const;

  std::array<Lane, size> lane_;
  std::array<boost::context::fiber, size> fiber_;
  const std::function<void()>* code_ = nullptr;
  boost::context::fiber caller_;
  unsigned current_ = 0, first_ = 0, lanes_ = 0, started_ = 0, round_ = 0;
};

inline Warp& warp = *new Warp;  // never destroyed: its fibers would be unwound after main()

/// Runs a kernel's blocks, and the warps of each, in an order that nobody should rely on.
void run_grid(const dim3& grid, const dim3& block, const std::function<void()>& code);

}  // namespace stand_in

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return stand_in::warp.shuffle_down(mask, value, delta, width);
}
