/// \file
/// Noise: where the random numbers of what a network draws come from: a stream, or explicit values. draw_lanes() draws from
/// a stream for arcs of very large graphs.
#pragma once

#include <cstdint>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::layers {

/// Explicit noise is row-major. For a sampled sheaf, it has one row per arc (sorted by source, target). Examples: N(0, 1)
/// entries of a diagonal (D) or general map (D², row-major), or a uniform rotation (D × D, row-major). For a layer that
/// draws, it has a row of LayerReads::scores values per arc, and then a row per node. They are N(0, 1) for attention, and a
/// uniform rotation for random phases.
template <class S>
struct Noise {
  Stream stream;
  const S* values = nullptr;
};

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// Refuses more nodes than noise has 32-bit addresses.
inline void require_noise_addresses(std::string_view what, Index count) {
  require(count <= Index{1} << 32, what, count, "their noise has 32-bit addresses: at most 2^32");
}

/// Draws K packs for W ids. draw(stream, out) draws for their lower 32 bits; it is called once for each of the different
/// upper bits, and lanes are chosen. \param upper  of every lane, or null: 0
template <int K, class S, int W, class Draw>
SHEAFNN_INLINE void draw_lanes(const Stream& stream, const std::uint32_t* upper, Pack<S, W>* out,
                               const Draw& draw) {
  if (upper == nullptr) return draw(stream, out);
  S chosen[K][W];
  for (int first = 0; first < W; ++first) {
    bool drawn = false;
    for (int lane = 0; lane < first; ++lane) drawn = drawn || upper[lane] == upper[first];
    if (drawn) continue;
    Stream of_upper = stream;
    of_upper.upper = upper[first];
    Pack<S, W> numbers[K];
    draw(of_upper, numbers);
    for (int k = 0; k < K; ++k) {
      S values[W];
      numbers[k].store(values);
      for (int lane = first; lane < W; ++lane) {
        if (upper[lane] == upper[first]) chosen[k][lane] = values[lane];
      }
    }
  }
  for (int k = 0; k < K; ++k) out[k] = Pack<S, W>::load(chosen[k]);
}

}  // namespace sheafnn::detail
