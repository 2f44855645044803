/// \file
/// LearnerRows: derivatives of the outputs of a sheaf learner's first layer, a row for every edge, and their sums at nodes.
/// A row has the values of the arc u→v (u < v), then of its reverse, filled up to a multiple of four. Derivatives of the logits
/// of edge weights are stored separately, two for every edge.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/layers/sheaf_learner_options.hpp"

namespace sheafnn::detail {

/// out[o] = Σ_i weight[o, i] in[i]. \param weight  outputs × inputs \param in, out  lanes-innermost
template <class S>
void arc_dense(const S* weight, Index inputs, Index outputs, const S* in, S* out) {
  constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  for (Index o = 0; o < outputs; ++o) {
    P sum = P(S(0));
    for (Index i = 0; i < inputs; ++i) sum += P(weight[o * inputs + i]) * P::load(in + i * W);
    sum.store(out + o * W);
  }
}

/// Adds to in_bar and to weight_bar (summed over lanes).
template <class S>
void arc_dense_backward(const S* weight, Index inputs, Index outputs, const S* in, const S* out_bar, S* in_bar,
                        S* weight_bar) {
  constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  for (Index o = 0; o < outputs; ++o) {
    const P bar = P::load(out_bar + o * W);
    for (Index i = 0; i < inputs; ++i) {
      (P::load(in_bar + i * W) + P(weight[o * inputs + i]) * bar).store(in_bar + i * W);
      weight_bar[o * inputs + i] += reduce_add(bar * P::load(in + i * W));
    }
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Rows of one learner on one graph, in memory that has numbers() for every edge or more. Unchecked: indices of blocks and nodes,
/// and that the memory is large enough.
template <class S>
class LearnerRows {
 public:
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;

  LearnerRows() = default;
  explicit LearnerRows(const SheafLearnerOptions& of)
      : first_(of.first_numbers()),
        half_(detail::to_quads(static_cast<int>(2 * first_)) / 2),
        logits_(of.edge_weights) {}

  /// Values per row.
  [[nodiscard]] Index numbers() const noexcept { return 2 * half_; }

  /// Writes the rows of `count` edges of a block. \param bars  lanes-innermost, both sides; not in the memory
  void store(const EdgeMemory<S>& memory, Index block, int count, const S* bars) const {
    S* const out = memory.of(block);
    for (Index k = 0; k < numbers(); k += 4) {
      P bar[4];
      for (Index j = 0; j < 4; ++j) {
        const Index side = k + j < half_ ? 0 : 1, at = k + j - side * half_;
        bar[j] = at < first_ ? P::load(bars + (side * first_ + at) * W) : P(S(0));
      }
      detail::lanes_to_rows<4>(bar, count, [&](int lane) { return out + lane * numbers() + k; });
    }
  }
  /// Sums over the arcs of node u: first the values and logits of the arcs, then the values and logits of their reverse arcs.
  ///
  /// \param logits  two for every edge; not read without edge weights
  /// \param out     twice the outputs of the first layer
  void sum_at(const Graph& graph, Index u, const EdgeMemory<S>& memory, const S* logits, S* out) const {
    S* const reverse = out + first_ + (logits_ ? 1 : 0);
    if (half_ == 4) {  // of rotations and diagonal maps
      add_rows<4>(graph, u, memory, out, reverse);
    } else {
      add_rows<0>(graph, u, memory, out, reverse);
    }
    if (!logits_) return;
    S own = S(0), other = S(0);
    for (Index arc = graph.first_arc(u); arc < graph.first_arc(u + 1); ++arc) {
      const Index side = graph.target(arc) < u ? 1 : 0;
      const S* const in = logits + 2 * graph.edge_of(arc);
      own += in[side];
      other += in[1 - side];
    }
    out[first_] = own;
    reverse[first_] = other;
  }

 private:
  /// \tparam Half  half_, or 0
  template <Index Half>
  SHEAFNN_INLINE void add_rows(const Graph& graph, Index u, const EdgeMemory<S>& memory, S* out,
                               S* reverse) const {
    const Index half = Half > 0 ? Half : half_;
    const std::size_t row = static_cast<std::size_t>(2 * half),
                      block = static_cast<std::size_t>(memory.numbers * W);
    const S* const base = memory.of(0);
    detail::for_narrowing_tiles<S>(0, half, [&]<class T>(auto c) {
      T own = T(S(0)), other = T(S(0));
      for (Index arc = graph.first_arc(u); arc < graph.first_arc(u + 1); ++arc) {
        const Index to_own = graph.target(arc) < u ? half : 0;
        const std::size_t e = static_cast<std::uint32_t>(graph.edge_of(arc));
        const S* const in = base + e / W * block + e % W * row + c;
        own += detail::load<T>(in + to_own);
        other += detail::load<T>(in + half - to_own);
      }
      store_numbers(c, own, out);
      store_numbers(c, other, reverse);
    });
  }
  /// Writes a tile, but not what fills up a row.
  template <class T, bool Whole>
  void store_numbers(const detail::TileAt<T, Whole>& c, const T& numbers, S* out) const {
    constexpr Index width = sizeof(T) / sizeof(S);
    if (c + width <= first_) {
      c.store(out + c, numbers);
    } else if constexpr (width > 1) {
      detail::store_some(out + c, numbers, static_cast<int>(first_ - c));
    }
  }

  Index first_ = 0, half_ = 0;  ///< values per arc; position of the second arc's
  bool logits_ = false;         ///< has the learner edge weights?
};

}  // namespace sheafnn::layers
