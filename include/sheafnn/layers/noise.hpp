/// \file
/// Noise: where the random numbers of what a network draws come from: a stream, or explicit values.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::layers {

/// Explicit noise is row-major. For a sampled sheaf, it has one row per arc (sorted by source, target). Examples: N(0, 1)
/// numbers of a diagonal (D) or general map (D², row-major), or a uniform rotation (D × D, row-major). For a layer that
/// draws, it has a row of LayerReads::scores numbers per arc, and then a row per node. Attention has N(0, 1) numbers, random
/// phases have a uniform rotation.
template <class S>
struct Noise {
  Stream stream;
  const S* values = nullptr;
};

}  // namespace sheafnn::layers
