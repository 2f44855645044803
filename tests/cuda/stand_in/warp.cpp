#include "warp.hpp"

namespace stand_in {

void Warp::run(const Code& code, unsigned first, unsigned count) {
  lanes_ = count < size ? count : size;
  for (unsigned lane = lanes_; lane-- > 0;) {
    lane_ = lane;
    made_ = 0;
    threadIdx = dim3(first + lane, 0, 0);
    code.call(code.kernel, code.arguments.data());
    if (lane + 1 == lanes_) exchanges_ = made_;
    if (made_ != exchanges_) stop("some lanes of a warp left before the others exchanged values");
  }
}

std::uint64_t Warp::shuffle_down(unsigned mask, std::uint64_t given, std::size_t bytes, unsigned delta,
                                 int width) {
  if (mask != 0xffffffffU) stop("an exchange of some lanes only is not provided for");
  if (width < 1 || width > 32 || (width & (width - 1)) != 0)
    stop("an exchange within a width that is no power of two");
  const bool sets = lane_ + 1 == lanes_;
  if (lanes_ != size || (!sets && made_ == exchanges_))
    stop("some lanes of a warp left before the others exchanged values");
  if (made_ == exchange_.size()) exchange_.emplace_back();
  Exchange& exchange = exchange_[made_++];
  if (sets) {
    exchange.delta = delta;
    exchange.width = width;
    exchange.bytes = bytes;
  } else if (exchange.delta != delta || exchange.width != width || exchange.bytes != bytes) {
    stop("the lanes of a warp exchange values in different calls");
  }
  exchange.given[lane_] = given;
  const unsigned w = static_cast<unsigned>(width), place = lane_ & (w - 1);
  return exchange.given[delta < w - place ? lane_ + delta : lane_];
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
