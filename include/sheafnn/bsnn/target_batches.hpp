/// \file
/// The training nodes of an epoch's steps (TrainOptions::batch_size).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/splits.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::detail {

/// Groups of at most `size` nodes in an order that seed and epoch decide; the nodes of a group increase.
///
/// \param nodes  with a known target \param size  at least 1
[[nodiscard]] inline std::vector<std::vector<std::int32_t>> target_batches(std::vector<std::int32_t> nodes,
                                                                           Index size, std::uint64_t seed,
                                                                           Index epoch) {
  std::vector<std::vector<std::int32_t>> r;
  shuffle(nodes, {seed, Purpose::batch_order, static_cast<std::uint32_t>(epoch)});
  for (std::size_t begin = 0; begin < nodes.size(); begin += static_cast<std::size_t>(size)) {
    const std::size_t end = std::min(begin + static_cast<std::size_t>(size), nodes.size());
    r.emplace_back(nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                   nodes.begin() + static_cast<std::ptrdiff_t>(end));
    std::sort(r.back().begin(), r.back().end());
  }
  return r;
}

}  // namespace sheafnn::detail
