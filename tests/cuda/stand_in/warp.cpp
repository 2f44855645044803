#include "warp.hpp"

#include <ucontext.h>

namespace stand_in {

void Warp::run(const Code& code, unsigned first, unsigned count) {
  lanes_ = count < size ? count : size;
  code_ = &code;
  exchanges_ = 0;
  made_.fill(0);
  ended_.fill(false);
  for (unsigned left = lanes_; left > 0;) {
    for (unsigned lane = lanes_; lane-- > 0;) {
      if (ended_[lane]) continue;
      lane_ = lane;
      threadIdx = dim3(first + lane, 0, 0);
      if (code.exchanges) {
        go_on(lane);
      } else {
        code.call(code.kernel, code.arguments.data());
        ended_[lane] = true;
      }
      if (!ended_[lane]) continue;
      --left;
      if (made_[lane] != exchanges_) stop("some lanes of a warp left before the others exchanged values");
    }
  }
}

void Warp::run_lane() {
  for (;;) {
    code_->call(code_->kernel, code_->arguments.data());
    ended_[lane_] = true;
    wait(lane_);
  }
}

void Warp::go_on(unsigned lane) {
  Stack& stack = stack_[lane];
  if (_setjmp(caller_) != 0) return;
  if (stack.memory) _longjmp(stack.place, 1);
  constexpr std::size_t bytes = std::size_t{1} << 18;
  stack.memory.reset(new std::byte[bytes]);
  ucontext_t start;
  getcontext(&start);
  start.uc_stack.ss_sp = stack.memory.get();
  start.uc_stack.ss_size = bytes;
  makecontext(
      &start, [] { warp.run_lane(); }, 0);
  setcontext(&start);
}

void Warp::wait(unsigned lane) {
  if (_setjmp(stack_[lane].place) == 0) _longjmp(caller_, 1);
}

std::size_t Warp::give(unsigned mask, std::uint64_t given, std::size_t bytes, unsigned delta, int width) {
  if (mask != 0xffffffffU) stop("an exchange of some lanes only is not provided for");
  if (width < 1 || width > 32 || (width & (width - 1)) != 0)
    stop("an exchange within a width that is no power of two");
  const bool sets = lane_ + 1 == lanes_;
  const std::size_t number = made_[lane_]++;
  if (lanes_ != size || (!sets && number == exchanges_))
    stop("some lanes of a warp left before the others exchanged values");
  if (number == exchange_.size()) exchange_.emplace_back();
  Exchange& exchange = exchange_[number];
  if (sets) {
    exchanges_ = number + 1;
    exchange.delta = delta;
    exchange.width = width;
    exchange.bytes = bytes;
  } else if (exchange.delta != delta || exchange.width != width || exchange.bytes != bytes) {
    stop("the lanes of a warp exchange values in different calls");
  }
  exchange.given[lane_] = given;
  return number;
}

std::uint64_t Warp::shuffle_down(unsigned mask, std::uint64_t given, std::size_t bytes, unsigned delta,
                                 int width) {
  const Exchange& exchange = exchange_[give(mask, given, bytes, delta, width)];
  const unsigned w = static_cast<unsigned>(width), place = lane_ & (w - 1);
  return exchange.given[delta < w - place ? lane_ + delta : lane_];
}

std::uint64_t Warp::shuffle(unsigned mask, std::uint64_t given, std::size_t bytes, int from, int width) {
  const std::size_t number = give(mask, given, bytes, any_lane, width);
  if (!code_->exchanges) stop("an exchange in both directions in a kernel whose parameters do not say so");
  const unsigned w = static_cast<unsigned>(width);
  const unsigned source = (lane_ & ~(w - 1)) + (static_cast<unsigned>(from) & (w - 1));
  wait(lane_);  // the others come as far; one that ends before is found there
  return exchange_[number].given[source];
}

void run_grid(const dim3& grid, const dim3& block, const Code& code) {
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
