/// \file
/// LayerSegments: which layers of a network have one set of arrays in turn (layers/arrays_in_turn.hpp). Layers in a row form a
/// segment, whose layers a backward pass computes again from the input of the first. Segments count from the last layer, so only
/// the first may be shorter. Or all layers share one set, and what a backward pass reads of them is kept in 16 bits.
#pragma once

#include <algorithm>

#include "sheafnn/core/config.hpp"

namespace sheafnn::layers {

/// Unchecked: numbers of layers, requests below 0, and a request beside compression.
struct LayerSegments {
  LayerSegments() = default;
  /// \param requested   layers of a segment; 0: one segment has all
  /// \param compresses  are layers kept in 16 bits?
  LayerSegments(Index layers, Index requested, bool compresses = false)
      : count(layers), length(requested == 0 ? layers : std::min(requested, layers)), compressed(compresses) {}

  /// Is there one segment? No layer is then computed again.
  [[nodiscard]] bool whole() const noexcept { return length == count; }
  /// Do layers share arrays?
  [[nodiscard]] bool shares() const noexcept { return compressed || !whole(); }
  /// The place of layer l in its segment; the last layer of every segment has the last place, length − 1.
  [[nodiscard]] Index place(Index l) const noexcept { return whole() ? l : length - 1 - (count - 1 - l) % length; }
  /// The set of arrays of layer l.
  [[nodiscard]] Index set(Index l) const noexcept { return compressed ? 0 : place(l); }
  /// The first layer of the segment of layer l.
  [[nodiscard]] Index first(Index l) const noexcept { return std::max<Index>(l - place(l), 0); }
  /// Is layer l the last of its segment, but not of all?
  [[nodiscard]] bool ends_before_others(Index l) const noexcept { return l + 1 < count && place(l) == length - 1; }

  bool operator==(const LayerSegments&) const = default;

  Index count = 0, length = 0;
  bool compressed = false;
};

}  // namespace sheafnn::layers
