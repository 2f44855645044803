/// \file
/// The training nodes of an epoch's steps (TrainOptions::batch_size).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/splits.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::detail {

/// The nodes in a random order that depends on seed and epoch.
[[nodiscard]] inline std::vector<std::int32_t> target_order(std::vector<std::int32_t> nodes, std::uint64_t seed,
                                                            Index epoch) {
  shuffle(nodes, {seed, Purpose::batch_order, static_cast<std::uint32_t>(epoch)});
  return nodes;
}
/// The number of groups of at most `size` nodes.
[[nodiscard]] inline Index target_batch_count(const std::vector<std::int32_t>& order, Index size) {
  return (static_cast<Index>(order.size()) + size - 1) / size;
}
/// The nodes of such a group, increasing. Unchecked: the group's index.
[[nodiscard]] inline std::vector<std::int32_t> target_batch(const std::vector<std::int32_t>& order, Index size,
                                                            Index number) {
  const Index begin = number * size, end = std::min(begin + size, static_cast<Index>(order.size()));
  std::vector<std::int32_t> r(order.begin() + begin, order.begin() + end);
  std::sort(r.begin(), r.end());
  return r;
}
/// All of them, of these nodes.
[[nodiscard]] inline std::vector<std::vector<std::int32_t>> target_batches(std::vector<std::int32_t> nodes,
                                                                           Index size, std::uint64_t seed,
                                                                           Index epoch) {
  const std::vector<std::int32_t> order = target_order(std::move(nodes), seed, epoch);
  std::vector<std::vector<std::int32_t>> r;
  for (Index b = 0; b < target_batch_count(order, size); ++b) r.push_back(target_batch(order, size, b));
  return r;
}

}  // namespace sheafnn::detail
