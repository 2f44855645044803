/// \file
/// IncidenceBlocks: the incident pairs of a hypergraph in blocks of 2W, two sides of W pairs each. So the mathematics of a
/// pair's map runs on W pairs at a time. What walks EdgeBlocks walks them in the same way; a "side" is here half of a block
/// and means nothing else.
///
/// Arrays in lanes-innermost form have entry k of pair i at (i / W · K + k) · W + i mod W. Rows of pairs, as maps have
/// them, lie one after another.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/graph/hypergraph.hpp"

namespace sheafnn::layers {

/// The pairs in every lane. The last block is padded with copies of the last pair. Unchecked: indices of blocks, and that
/// sides are 0 or 1.
template <class S>
class IncidenceBlocks {
 public:
  static constexpr int width = lanes<S>;
  using P = Pack<S, width>;

  IncidenceBlocks() = default;
  explicit IncidenceBlocks(const Hypergraph& hypergraph)
      : own_pairs_(hypergraph.pair_count()),
        pair_count_(hypergraph.part() == nullptr ? own_pairs_ : hypergraph.part()->numbers().total_pairs),
        block_count_((hypergraph.pair_count() + 2 * width - 1) / (2 * width)),
        pair_(block_count_ * 2 * width),
        node_(block_count_ * 2 * width),
        hyperedge_(block_count_ * 2 * width) {
    for (Index i = 0; i < pair_.size(); ++i) {
      const Index pair = std::min(i, own_pairs_ - 1);
      pair_[i] = static_cast<std::int32_t>(pair);
      node_[i] = static_cast<std::int32_t>(hypergraph.node(pair));
      hyperedge_[i] = static_cast<std::int32_t>(hypergraph.hyperedge(pair));
    }
    if (hypergraph.part() == nullptr) return;
    address_.resize(pair_.size());
    for (Index i = 0; i < pair_.size(); ++i) {
      address_[i] = hypergraph.part()->numbers().pair[static_cast<std::size_t>(pair_[i])];
    }
  }

  /// Incident pairs of the whole hypergraph.
  [[nodiscard]] Index pair_count() const noexcept { return pair_count_; }
  [[nodiscard]] Index block_count() const noexcept { return block_count_; }
  /// Lanes of either side of a block; counts() says which are pairs.
  [[nodiscard]] int lane_count(Index) const noexcept { return width; }
  /// The first pair of a side of a block, and the number of pairs in it.
  [[nodiscard]] Index first(Index block, int side) const noexcept { return (block * 2 + side) * width; }
  [[nodiscard]] int count(Index block, int side) const noexcept {
    return static_cast<int>(std::clamp<Index>(own_pairs_ - first(block, side), 0, width));
  }
  /// Indices of the pairs, their nodes and their hyperedges.
  [[nodiscard]] const std::int32_t* arcs(Index block, int side) const noexcept {
    return pair_.data() + first(block, side);
  }
  [[nodiscard]] const std::int32_t* nodes(Index block, int side) const noexcept {
    return node_.data() + first(block, side);
  }
  [[nodiscard]] const std::int32_t* hyperedges(Index block, int side) const noexcept {
    return hyperedge_.data() + first(block, side);
  }
  /// Writes the addresses of the noise: the indices of the pairs in the whole hypergraph.
  void noise_addresses(Index block, int side, std::uint32_t* out) const noexcept {
    if (address_.empty()) {
      std::copy_n(arcs(block, side), width, out);
    } else {
      std::copy_n(address_.data() + first(block, side), width, out);
    }
  }
  /// As EdgeBlocks: pairs have 32-bit numbers.
  [[nodiscard]] const std::uint32_t* upper_addresses(Index, int) const noexcept { return nullptr; }
  [[nodiscard]] bool counts(Index block, int side, int lane) const noexcept { return lane < count(block, side); }
  /// weight in the lanes that are pairs, elsewhere 0.
  [[nodiscard]] P counted(Index block, int side, S weight) const noexcept {
    if (count(block, side) == width) return P(weight);
    S values[width];
    for (int lane = 0; lane < width; ++lane) values[lane] = counts(block, side, lane) ? weight : S(0);
    return P::load(values);
  }

 private:
  Index own_pairs_ = 0, pair_count_ = 0, block_count_ = 0;  ///< pairs that are here, and pairs of the whole
  Buffer<std::int32_t> pair_, node_, hyperedge_;
  Buffer<std::uint32_t> address_;  ///< on a part: indices of the pairs in the whole
};

}  // namespace sheafnn::layers
