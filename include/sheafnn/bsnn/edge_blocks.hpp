/// \file
/// EdgeBlocks: the edges of a graph in blocks of W, so that per-arc mathematics runs on W edges at a time.
///
/// Arrays that such code walks are stored lanes-innermost: entry k of side s of edge e lies at
/// ((e / W · 2 + s) · K + k) · W + e mod W, side 0 being the arc u→v (u < v) and side 1 its reverse.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/graph/graph.hpp"

namespace sheafnn {

/// Node and arc numbers of every lane. The last block is filled up with copies of the last edge; lane_count() tells
/// how many lanes of a block are edges.
template <class S>
class EdgeBlocks {
 public:
  static constexpr int width = lanes<S>;
  using P = Pack<S, width>;

  EdgeBlocks() = default;
  explicit EdgeBlocks(const Graph& graph)
      : edge_count_(graph.edge_count()), block_count_((graph.edge_count() + width - 1) / width) {
    for (int side = 0; side < 2; ++side) {
      node_[side].resize(block_count_ * width);
      arc_[side].resize(block_count_ * width);
    }
    for (Index i = 0; i < block_count_ * width; ++i) {
      const Index e = std::min(i, edge_count_ - 1);
      const Index forward = graph.forward_arc(e);
      node_[0][i] = graph.edge(e).u;
      node_[1][i] = graph.edge(e).v;
      arc_[0][i] = static_cast<std::int32_t>(forward);
      arc_[1][i] = static_cast<std::int32_t>(graph.reverse(forward));
    }
  }

  [[nodiscard]] Index edge_count() const noexcept { return edge_count_; }
  [[nodiscard]] Index block_count() const noexcept { return block_count_; }
  [[nodiscard]] int lane_count(Index block) const noexcept {
    return static_cast<int>(std::min<Index>(width, edge_count_ - block * width));
  }
  /// Endpoints (side 0: u, side 1: v) of the edges in a block.
  [[nodiscard]] const std::int32_t* nodes(Index block, int side) const noexcept {
    return node_[side].data() + block * width;
  }
  /// Arcs leaving those endpoints.
  [[nodiscard]] const std::int32_t* arcs(Index block, int side) const noexcept {
    return arc_[side].data() + block * width;
  }

 private:
  Index edge_count_ = 0;
  Index block_count_ = 0;
  Buffer<std::int32_t> node_[2];
  Buffer<std::int32_t> arc_[2];
};

/// Reads entry k of rows[lane] (row stride K) into lane `lane` of out[k]: array of structures to lanes.
template <int K, int W, class S>
SHEAFNN_INLINE void gather_rows(const S* base, const std::int32_t* rows, Pack<S, W>* out) {
  alignas(64) S buffer[K > 0 ? K * W : 1];
  for (int lane = 0; lane < W; ++lane) {
    const S* row = base + static_cast<Index>(rows[lane]) * K;
    SHEAFNN_UNROLL for (int k = 0; k < K; ++k) buffer[k * W + lane] = row[k];
  }
  SHEAFNN_UNROLL for (int k = 0; k < K; ++k) out[k] = Pack<S, W>::load(buffer + k * W);
}

/// Writes lane `lane` of in[k] to entry k of rows[lane] (row stride K), for the first `count` lanes.
template <int K, int W, class S>
SHEAFNN_INLINE void scatter_rows(const Pack<S, W>* in, const std::int32_t* rows, int count, S* base) {
  alignas(64) S buffer[K > 0 ? K * W : 1];
  SHEAFNN_UNROLL for (int k = 0; k < K; ++k) in[k].store(buffer + k * W);
  for (int lane = 0; lane < count; ++lane) {
    S* row = base + static_cast<Index>(rows[lane]) * K;
    SHEAFNN_UNROLL for (int k = 0; k < K; ++k) row[k] = buffer[k * W + lane];
  }
}

/// Reads `count` ≤ W consecutive rows of K numbers into the first lanes of out[k]; the other lanes become 0.
template <int K, int W, class S>
SHEAFNN_INLINE void load_rows(const S* rows, int count, Pack<S, W>* out) {
  alignas(64) S buffer[K > 0 ? K * W : 1];
  if (count < W) {
    std::fill_n(buffer, K * W, S(0));
    for (int lane = 0; lane < count; ++lane) {
      for (int k = 0; k < K; ++k) buffer[k * W + lane] = rows[lane * K + k];
    }
  } else {
    for (int lane = 0; lane < W; ++lane) {
      SHEAFNN_UNROLL for (int k = 0; k < K; ++k) buffer[k * W + lane] = rows[lane * K + k];
    }
  }
  SHEAFNN_UNROLL for (int k = 0; k < K; ++k) out[k] = Pack<S, W>::load(buffer + k * W);
}
/// Writes the first `count` lanes of in[k] as consecutive rows of K numbers.
template <int K, int W, class S>
SHEAFNN_INLINE void store_rows(const Pack<S, W>* in, int count, S* rows) {
  alignas(64) S buffer[K > 0 ? K * W : 1];
  SHEAFNN_UNROLL for (int k = 0; k < K; ++k) in[k].store(buffer + k * W);
  for (int lane = 0; lane < count; ++lane) {
    SHEAFNN_UNROLL for (int k = 0; k < K; ++k) rows[lane * K + k] = buffer[k * W + lane];
  }
}

/// Reads K packs that lie one after another.
template <int K, int W, class S>
SHEAFNN_INLINE void load_lanes(const S* base, Pack<S, W>* out) {
  SHEAFNN_UNROLL for (int k = 0; k < K; ++k) out[k] = Pack<S, W>::load(base + k * W);
}
/// Writes K packs one after another.
template <int K, int W, class S>
SHEAFNN_INLINE void store_lanes(const Pack<S, W>* in, S* base) {
  SHEAFNN_UNROLL for (int k = 0; k < K; ++k) in[k].store(base + k * W);
}

}  // namespace sheafnn
