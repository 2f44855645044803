#include "warp.hpp"

namespace stand_in {

void Warp::begin(unsigned lane) {
  current_ = lane;
  lane_[lane].state = State::running;
  threadIdx = dim3(first_ + lane, 0, 0);
}

void Warp::resume(unsigned number) {
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

void Warp::leave() { caller_ = std::move(caller_).resume(); }

void Warp::check_exchange() const {
  for (const Lane& lane : lane_) {
    if (lane.delta != lane_[0].delta || lane.width != lane_[0].width || lane.bytes != lane_[0].bytes)
      stop("the lanes of a warp exchange values in different calls");
  }
}

void Warp::run(const std::function<void()>& code, unsigned first, unsigned count) {
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

void run_grid(const dim3& grid, const dim3& block, const std::function<void()>& code) {
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
