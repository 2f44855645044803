/// \file
/// ArraysInTurn: arrays that layers write in their forward passes. The layers of a set have the same arrays in turn, and the next
/// layer of a set overwrites them. If a backward pass is to read them, they go to 16 bits before (core/bfloat16.hpp), and the
/// backward pass takes them back from there. So a forward pass computes with all bits. A backward pass reads rounded values, except
/// the values of the last layer of each set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/core/bfloat16.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"

namespace sheafnn::layers {

/// Unchecked: indices of layers, and that layers of a set have arrays of the same sizes, whose Buffers stay where they are.
template <class S>
class ArraysInTurn {
 public:
  using Arrays = std::vector<Buffer<S>*>;

  /// The next layer. \param set  any number; layers with the same one are a set
  void add(Arrays arrays, Index set) {
    Layer of;
    for (const Buffer<S>* array : arrays) of.sizes.push_back(array->size());
    of.arrays = std::move(arrays);
    of.set = 0;
    while (of.set < sets_.size() && sets_[of.set].number != set) ++of.set;
    if (of.set == sets_.size()) {
      sets_.push_back({set, static_cast<Index>(layers_.size())});
    } else {
      for (Buffer<S>* array : of.arrays) *array = {};
    }
    layers_.push_back(std::move(of));
  }
  /// Gives every layer arrays of its own, of zeros where another layer has them, and forgets all layers.
  void end() {
    for (Layer& of : layers_) {
      for (std::size_t i = 0; i < of.arrays.size(); ++i) {
        if (of.arrays[i]->empty()) of.arrays[i]->resize(of.sizes[i]);
      }
    }
    layers_.clear();
    sets_.clear();
  }

  /// Gives layer l the arrays of its set, which it writes. Nothing happens before add().
  ///
  /// \param keep  will a backward pass restore() the arrays of layers before l?
  void take(Index l, Execution execution, bool keep) {
    if (layers_.empty()) return;
    Index& holder = holder_of(l);
    if (holder == l) return;
    if (keep && holder < l) layer(holder).compress(execution);
    hand_over(holder, l);
  }
  /// Gives layer l the arrays of its set as they were after its forward pass, except for the rounding. Unchecked: take() of the
  /// layers after it kept them
  void restore(Index l, Execution execution) {
    Index& holder = holder_of(l);
    if (holder == l) return;
    hand_over(holder, l);
    layer(l).decompress(execution);
  }

 private:
  struct Layer {
    Arrays arrays;
    std::vector<Index> sizes;    ///< of the arrays before they were shared
    std::size_t set = 0;         ///< its place in sets_
    Buffer<std::uint16_t> kept;  ///< the arrays one after another
    std::vector<Index> lengths;  ///< of the arrays in `kept`; layers allocate some arrays later than others

    void compress(Execution execution) {
      Index size = 0;
      lengths.clear();
      for (const Buffer<S>* array : arrays) {
        lengths.push_back(array->size());
        size += array->size();
      }
      if (kept.size() != size) kept.resize(size, to_be_written);
      std::uint16_t* to = kept.data();
      for (const Buffer<S>* array : arrays) {
        detail::to_bfloat16(execution, array->size(), array->data(), to);
        to += array->size();
      }
    }
    void decompress(Execution execution) {
      const std::uint16_t* from = kept.data();
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        detail::from_bfloat16(execution, lengths[i], from, arrays[i]->data());
        from += lengths[i];
      }
    }
  };
  struct Set {
    Index number;
    Index holder;  ///< which layer has the arrays
  };
  [[nodiscard]] Layer& layer(Index l) noexcept { return layers_[static_cast<std::size_t>(l)]; }
  [[nodiscard]] Index& holder_of(Index l) noexcept { return sets_[layer(l).set].holder; }
  void hand_over(Index& holder, Index l) noexcept {
    const Arrays &from = layer(holder).arrays, &to = layer(l).arrays;
    for (std::size_t i = 0; i < to.size(); ++i) *to[i] = std::move(*from[i]);
    holder = l;
  }

  std::vector<Layer> layers_;
  std::vector<Set> sets_;
};

}  // namespace sheafnn::layers
