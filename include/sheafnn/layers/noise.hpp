/// \file
/// Noise: where the random numbers of what a network draws come from: a stream, or explicit values.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::layers {

/// Explicit noise is row-major. Of a sampled sheaf it has one row per arc (sorted by source, target), e.g. N(0, 1) numbers of
/// a diagonal (D) or general map (D², row-major), or a uniform rotation (D × D, row-major). Of a layer that draws it has a
/// row of LayerReads::scores numbers per arc, and then one per node: N(0, 1) numbers of attention, a uniform rotation of random phases.
template <class S>
struct Noise {
  Stream stream;
  const S* values = nullptr;
};

}  // namespace sheafnn::layers
