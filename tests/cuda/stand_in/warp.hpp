/// \file
/// Threads of a stand-in device: the 32 lanes of a warp are fibers, which change over where they exchange values.
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
  void run(const std::function<void()>& code, unsigned first, unsigned count) {
    code_ = &code;
    first_ = first;
    lanes_ = count < size ? count : size;
    started_ = 0;
    // A fiber runs one lane after another until one waits; the next fiber goes on. So either fiber i has lane i, all
    // of them waiting, or there was no exchange and nothing is left to do.
    for (unsigned i = 0; started_ < lanes_; ++i) resume(i);
    for (;;) {
      unsigned waiting = 0;
      for (unsigned i = 0; i < lanes_; ++i) waiting += lane_[i].state == State::waiting ? 1 : 0;
      if (waiting == 0) return;
      if (waiting != size) stop("some lanes of a warp left before the others exchanged values");
      check_exchange();
      round_ ^= 1;
      for (unsigned i = 0; i < size; ++i) {
        begin(i);
        resume(i);
      }
    }
  }

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

  void begin(unsigned lane) {
    current_ = lane;
    lane_[lane].state = State::running;
    threadIdx = dim3(first_ + lane, 0, 0);
  }
  void resume(unsigned number) {
    boost::context::fiber& fiber = fiber_[number];
    if (!fiber) {
      fiber = boost::context::fiber([this](boost::context::fiber&& caller) {
        caller_ = std::move(caller);
        for (;;) {
          while (started_ < lanes_) {
            begin(started_++);
            (*code_)();
            lane_[current_].state = State::finished;
          }
          leave();
        }
        return std::move(caller_);
      });
    }
    fiber = std::move(fiber).resume();
  }
  void leave() { caller_ = std::move(caller_).resume(); }

  void check_exchange() const {
    for (const Lane& lane : lane_) {
      if (lane.delta != lane_[0].delta || lane.width != lane_[0].width || lane.bytes != lane_[0].bytes)
        stop("the lanes of a warp exchange values in different calls");
    }
  }

  std::array<Lane, size> lane_;
  std::array<boost::context::fiber, size> fiber_;
  const std::function<void()>* code_ = nullptr;
  boost::context::fiber caller_;
  unsigned current_ = 0, first_ = 0, lanes_ = 0, started_ = 0, round_ = 0;
};

inline Warp& warp = *new Warp;  // never destroyed: its fibers would be unwound after main()

/// Runs a kernel's blocks, and the warps of each, in an order that nobody should rely on.
inline void run_grid(const dim3& grid, const dim3& block, const std::function<void()>& code) {
  gridDim = grid;
  blockDim = block;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y;
  // A step that shares no factor with the number of blocks reaches all of them.
  constexpr std::uint64_t step = 7919;
  const std::uint64_t stride = blocks % step == 0 ? 1 : step;
  std::uint64_t place = blocks / 2;
  for (std::uint64_t i = 0; i < blocks; ++i, place = (place + stride) % blocks) {
    blockIdx = dim3(static_cast<unsigned>(place % grid.x), static_cast<unsigned>(place / grid.x), 0);
    const unsigned warps = (block.x + Warp::size - 1) / Warp::size;
    for (unsigned w = warps; w-- > 0;) warp.run(code, w * Warp::size, block.x - w * Warp::size);
  }
}

}  // namespace stand_in

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return stand_in::warp.shuffle_down(mask, value, delta, width);
}
