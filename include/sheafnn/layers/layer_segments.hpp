/// \file
/// LayerSegments: layers in a row that a backward pass computes again from the input of the first. They count from the last layer,
/// so only the first segment may be shorter. SegmentMemory: layers at the same place of their segments have one set of arrays in
/// turn.
#pragma once

#include <algorithm>
#include <cstddef>
#include <typeindex>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::layers {

/// Unchecked: numbers of layers, requests below 0.
struct LayerSegments {
  LayerSegments() = default;
  /// \param requested  layers of a segment; 0: one segment has all
  LayerSegments(Index layers, Index requested)
      : count(layers), length(requested == 0 ? layers : std::min(requested, layers)) {}

  /// Is there one segment? No layer is then computed again.
  [[nodiscard]] bool whole() const noexcept { return length == count; }
  /// The place of layer l in its segment; the last layer of every segment has the last place, length − 1.
  [[nodiscard]] Index place(Index l) const noexcept { return whole() ? l : length - 1 - (count - 1 - l) % length; }
  /// The first layer of the segment of layer l.
  [[nodiscard]] Index first(Index l) const noexcept { return std::max<Index>(l - place(l), 0); }
  /// Is layer l the last of its segment, but not of all?
  [[nodiscard]] bool ends_before_others(Index l) const noexcept { return l + 1 < count && place(l) == length - 1; }

  bool operator==(const LayerSegments&) const = default;

  Index count = 0, length = 0;
};

/// The arrays of a network's layers. Unchecked: numbers of layers.
template <class S>
class SegmentMemory {
 public:
  using Arrays = std::vector<Buffer<S>*>;

  /// The next layer. \param arrays  of Layer::list_memory(), which stay where they are \param kind  its class
  void add(Arrays arrays, std::type_index kind) {
    std::vector<Index> sizes;
    for (const Buffer<S>* array : arrays) sizes.push_back(array->size());
    const Index l = static_cast<Index>(layers_.size());
    layers_.push_back({std::move(arrays), std::move(sizes), kind, l, l});
  }
  [[nodiscard]] const LayerSegments& segments() const noexcept { return segments_; }
  /// \param staying  the layers at so many last places keep their outputs
  void set(const LayerSegments& segments, Index staying) {
    if (segments == segments_) return;
    for (Layer& of : layers_) {
      for (std::size_t i = 0; i < of.arrays.size(); ++i) {
        if (of.arrays[i]->empty()) of.arrays[i]->resize(of.sizes[i]);  // another layer has it
      }
    }
    segments_ = segments;
    staying_ = staying;
    for (Index l = 0; l < segments.count; ++l) {
      Layer& of = layer(l);
      of.lender = of.holder = l;
      for (Index m = l - 1; m >= 0; --m) {
        if (segments.place(m) == segments.place(l) && layer(m).kind == of.kind) of.lender = layer(m).lender;
      }
      if (of.lender == l) continue;
      for (std::size_t i = first_lent(l); i < of.arrays.size(); ++i) *of.arrays[i] = {};
    }
  }
  /// Gives layer l its arrays, before its forward().
  void take(Index l) noexcept {
    Index& holder = layer(layer(l).lender).holder;
    if (holder == l) return;
    const Arrays &from = layer(holder).arrays, &to = layer(l).arrays;
    for (std::size_t i = first_lent(l); i < to.size(); ++i) *to[i] = std::move(*from[i]);
    holder = l;
  }

 private:
  struct Layer {
    Arrays arrays;
    std::vector<Index> sizes;  ///< as the layer was made
    std::type_index kind;
    Index lender;  ///< the first layer with the same arrays
    Index holder;  ///< of a lender: which layer has them
  };
  [[nodiscard]] Layer& layer(Index l) noexcept { return layers_[static_cast<std::size_t>(l)]; }
  /// The first array that a layer does not keep.
  [[nodiscard]] std::size_t first_lent(Index l) const noexcept {
    return segments_.place(l) + staying_ < segments_.length ? 0 : 1;
  }

  std::vector<Layer> layers_;
  LayerSegments segments_;
  Index staying_ = 0;
};

}  // namespace sheafnn::layers
