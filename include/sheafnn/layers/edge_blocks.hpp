/// \file
/// EdgeBlocks: the edges of a graph in blocks of W, so that per-arc mathematics runs on W edges at a time.
///
/// Arrays that such code walks are stored lanes-innermost. Entry k of side s of edge e lies at ((e / W · 2 + s) · K + k) · W
/// + e mod W, side 0 being the arc u→v (u < v) and side 1 its reverse.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/graph/graph.hpp"

namespace sheafnn::layers {

/// Node and arc indices of every lane. The last block is filled up with copies of the last edge; lane_count()
/// is the number of lanes of a block that are edges. Unchecked: indices of blocks, and that sides are 0 or 1.
template <class S>
class EdgeBlocks {
 public:
  static constexpr int width = lanes<S>;
  using P = Pack<S, width>;

  EdgeBlocks() = default;
  explicit EdgeBlocks(const Graph& graph);

  [[nodiscard]] Index edge_count() const noexcept { return edge_count_; }
  [[nodiscard]] Index block_count() const noexcept { return block_count_; }
  [[nodiscard]] int lane_count(Index block) const noexcept {
    return static_cast<int>(std::min<Index>(width, edge_count_ - block * width));
  }
  /// Endpoints (side 0: u, side 1: v) of the edges in a block.
  [[nodiscard]] const std::int32_t* nodes(Index block, int side) const noexcept {
    return node_[side].data() + block * width;
  }
  /// Arcs that leave these endpoints.
  [[nodiscard]] const std::int32_t* arcs(Index block, int side) const noexcept {
    return arc_[side].data() + block * width;
  }

  /// Writes the addresses of these arcs' noise, or their lower 32 bits: their indices in the whole graph.
  void noise_addresses(Index block, int side, std::uint32_t* out) const noexcept {
    if (is_part()) {
      std::copy_n(address_[side].data() + block * width, width, out);
    } else {
      std::copy_n(arcs(block, side), width, out);
    }
  }
  /// The upper 20 bits of these addresses; null where all are 0, as of less than 2³² arcs.
  [[nodiscard]] const std::uint32_t* upper_addresses(Index block, int side) const noexcept {
    return upper_[side].empty() ? nullptr : upper_[side].data() + block * width;
  }
  /// Incident pairs of the whole graph.
  [[nodiscard]] Index pair_count() const noexcept { return pair_count_; }
  /// Do these blocks belong to a part of a graph (GraphPart)? Then every incident pair counts where its node is owned.
  [[nodiscard]] bool is_part() const noexcept { return own_nodes_ >= 0; }
  [[nodiscard]] bool counts(Index block, int side, int lane) const noexcept {
    return !is_part() || nodes(block, side)[lane] < own_nodes_;
  }
  /// weight in the lanes that count, elsewhere 0.
  [[nodiscard]] P counted(Index block, int side, S weight) const noexcept {
    if (!is_part()) return P(weight);
    S values[width];
    for (int lane = 0; lane < width; ++lane) values[lane] = counts(block, side, lane) ? weight : S(0);
    return P::load(values);
  }

 private:
  Index edge_count_ = 0;
  Index block_count_ = 0;
  Index pair_count_ = 0;
  Index own_nodes_ = -1;  ///< of a part; −1: of a whole graph
  Buffer<std::int32_t> node_[2];
  Buffer<std::int32_t> arc_[2];
  Buffer<std::uint32_t> address_[2];  ///< of a part: noise addresses, lower 32 bits
  Buffer<std::uint32_t> upper_[2];    ///< upper bits, where the part has 64-bit arc indices
};

template <class S>
EdgeBlocks<S>::EdgeBlocks(const Graph& graph)
    : edge_count_(graph.edge_count()),
      block_count_((graph.edge_count() + width - 1) / width),
      pair_count_(graph.arc_count()) {
  for (int side = 0; side < 2; ++side) {
    node_[side].resize(block_count_ * width, to_be_written);
    arc_[side].resize(block_count_ * width, to_be_written);
  }
  for (Index i = 0; i < block_count_ * width; ++i) {
    const Index e = std::min(i, edge_count_ - 1);
    const Index forward = graph.forward_arc(e);
    node_[0][i] = graph.edge(e).u;
    node_[1][i] = graph.edge(e).v;
    arc_[0][i] = static_cast<std::int32_t>(forward);
    arc_[1][i] = static_cast<std::int32_t>(graph.reverse(forward));
  }
  if (graph.part() == nullptr) return;
  const PartNumbers& part = graph.part()->numbers();
  pair_count_ = 2 * part.total_edges;
  own_nodes_ = part.own;
  for (int side = 0; side < 2; ++side) {
    address_[side].resize(block_count_ * width, to_be_written);
    if (part.arc.wide()) upper_[side].resize(block_count_ * width, to_be_written);
    for (Index i = 0; i < block_count_ * width; ++i) {
      address_[side][i] = part.arc.lower(arc_[side][i]);
      if (part.arc.wide()) upper_[side][i] = part.arc.upper(arc_[side][i]);
    }
  }
}

}  // namespace sheafnn::layers

namespace sheafnn::layers {

/// Memory with this many values per edge, in blocks of W edges. It may belong to others.
template <class S>
struct EdgeMemory {
  Index numbers = 0;
  std::shared_ptr<Buffer<S>> buffer = std::make_shared<Buffer<S>>();

  /// The memory of a block. Unchecked: its index.
  [[nodiscard]] S* of(Index block) const noexcept {
    return buffer->data() + block * numbers * EdgeBlocks<S>::width;
  }
  /// Makes the buffer larger where it is too small.
  void take(const EdgeBlocks<S>& blocks) const {
    const Index size = blocks.block_count() * EdgeBlocks<S>::width * numbers;
    if (buffer->size() < size) buffer->resize(size, to_be_written);
  }
};

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// Reads K packs that lie one after another.
template <int K, int W, class S>
SHEAFNN_INLINE void load_lanes(const S* base, Pack<S, W>* out) {
  // One by one, not as a copy of an array: they are to stay in registers.
  [=]<int... k>(std::integer_sequence<int, k...>) SHEAFNN_INLINE_LAMBDA {
    ((out[k] = Pack<S, W>::load(base + k * W)), ...);
  }
  (std::make_integer_sequence<int, K>{});
}

/// Writes K packs one after another.
template <int K, int W, class S>
SHEAFNN_INLINE void store_lanes(const Pack<S, W>* in, S* base) {
  [=]<int... k>(std::integer_sequence<int, k...>) SHEAFNN_INLINE_LAMBDA { (in[k].store(base + k * W), ...); }
  (std::make_integer_sequence<int, K>{});
}

/// Asks for K packs that are read soon.
template <int K, class S>
SHEAFNN_INLINE void prefetch_lanes(const S* base) {
  for (int k = 0; k < K; ++k) SHEAFNN_PREFETCH(base + k * lanes<S>);
}

}  // namespace sheafnn::detail
