/// \file
/// IncidenceSheaf: the restriction maps of one layer over the incident pairs of a hypergraph, built W pairs at a time. It
/// has the blocks D_v = Σ F_iᵀF_i, the node scalings S_v, and the backward pass to the maps. HypergraphMaps: what sources of
/// sheaves have for hypergraphs. Source: math: "Hypergraphs".
#pragma once

#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/layers/hypergraph_setting.hpp"
#include "sheafnn/layers/incidence_blocks.hpp"
#include "sheafnn/layers/incidence_learner.hpp"
#include "sheafnn/layers/node_scalings.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn::layers {

/// Derivatives that an IncidenceSheaf's backward pass reads and writes; layers add to them.
template <RestrictionMapFamily Family, class S>
struct IncidenceSheafGradient {
  using Sizes = BlockSizes<Family>;

  explicit IncidenceSheafGradient(const Hypergraph& hypergraph)
      : map_bar(hypergraph.pair_count() * Sizes::map),
        degree_bar(hypergraph.node_count() * Sizes::gram),
        scale_bar(hypergraph.node_count() * Sizes::gram) {}

  void clear() {
    for (Buffer<S>* buffer : {&map_bar, &degree_bar, &scale_bar}) buffer->fill(S(0));
  }

  Buffer<S> map_bar;     ///< per pair: derivative of F_i, in Eigen's order, but through D and S
  Buffer<S> degree_bar;  ///< per node: derivative of D_v but through S (the total after backward)
  Buffer<S> scale_bar;   ///< per node: derivative of S_v, not symmetrised
  Buffer<S> weight_bar;  ///< of edge weights: none
};

/// Maps of one sheaf. Unchecked: indices of nodes, pairs and blocks, and that `blocks` and gradients are of the hypergraph.
template <RestrictionMapFamily Family, class S>
class IncidenceSheaf {
  static_assert(is_learned<Family>, "a sheaf over a hypergraph needs a family with maps");

 public:
  using Sizes = BlockSizes<Family>;
  using Scalings = NodeScalings<Family, S>;
  using P = Pack<S, lanes<S>>;
  using Map = typename Family::template Map<P>;

  IncidenceSheaf(const Hypergraph& hypergraph, const IncidenceBlocks<S>& blocks, HypergraphLaplacian laplacian)
      : hypergraph_(&hypergraph),
        blocks_(&blocks),
        published_(laplacian == HypergraphLaplacian::published),
        map_(hypergraph.pair_count() * Sizes::map),
        gram_(hypergraph.pair_count() * Scalings::gram_stride),
        scalings_(hypergraph.node_count(), published_ ? Normalisation::none : Normalisation::augmented) {}

  /// F_i in Eigen's (column-major) order.
  [[nodiscard]] const S* map(Index pair) const noexcept { return map_.data() + pair * Sizes::map; }
  /// F_iᵀF_i, its triangle as NodeScalings has it.
  [[nodiscard]] const S* gram(Index pair) const noexcept { return gram_.data() + pair * Scalings::gram_stride; }
  /// The maps of a block and side; 0 in lanes without a pair.
  [[nodiscard]] Map map_of(Index block, int side) const {
    Map map;
    detail::load_rows<Sizes::map>(this->map(blocks_->first(block, side)), blocks_->count(block, side), map.data());
    return map;
  }
  /// D_v, and S_v: (D_v + I)^{-1/2}, or as published (number of hyperedges)^{-1/2} I, 0 without any.
  [[nodiscard]] const S* degree_block(Index v) const noexcept { return scalings_.degree_block(v); }
  [[nodiscard]] const S* scale(Index v) const noexcept { return scalings_.scale(v); }

  /// Stores the maps, and computes D and S.
  ///
  /// \param fill  called as fill(block, map) for every block, from any thread: sets both sides' Map
  template <class Fill>
  void build(Execution execution, const S* /*edge weights*/, bool /*keep maps*/, const Fill& fill) {
    parallel_for(execution, blocks_->block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        Map map[2];
        fill(block, map);
        for (int side = 0; side < 2; ++side) {
          const Index first = blocks_->first(block, side);
          const int count = blocks_->count(block, side);
          if (count == 0) continue;
          detail::store_rows<Sizes::map>(map[side].data(), count, map_.data() + first * Sizes::map);
          P numbers[Sizes::triangle];
          Scalings::to_triangle(sheaf::gram<Family, P>(map[side]), numbers);
          detail::store_rows<Sizes::triangle, Scalings::gram_stride>(numbers, count,
                                                                     gram_.data() + first * Scalings::gram_stride);
        }
      }
    });
    const Index n = hypergraph_->node_count();
    scalings_.build(execution, n, hypergraph_->offsets(), gram_.data());
    if (published_) set_published_scales();
  }

  /// Computes the maps' derivatives from the derivatives of D, S and the maps. Lanes without a pair get meaningless
  /// numbers.
  ///
  /// \param use  called as use(block, side, map, map_bar) for every block and side's Map and its derivative
  template <class Fill, class Use>
  void backward(Execution execution, const S* /*edge weights*/, IncidenceSheafGradient<Family, S>& gradient,
                const Fill& /*gives the maps again*/, const Use& use) const {
    scalings_.backward(execution, hypergraph_->node_count(), gradient.scale_bar.data(),
                       gradient.degree_bar.data());
    parallel_for(execution, blocks_->block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        for (int side = 0; side < 2; ++side) {
          const Map map = map_of(block, side);
          Map map_bar;
          detail::load_rows<Sizes::map>(gradient.map_bar.data() + blocks_->first(block, side) * Sizes::map,
                                        blocks_->count(block, side), map_bar.data());
          Gram<Family, P> degree_bar;
          detail::gather_rows<Sizes::gram>(gradient.degree_bar.data(), blocks_->nodes(block, side),
                                           degree_bar.data());
          gram_backward<Family, P>(map, degree_bar, map_bar);
          use(block, side, map, map_bar);
        }
      }
    });
  }

 private:
  void set_published_scales() {
    std::fill_n(scalings_.scales(), hypergraph_->node_count() * Sizes::gram, S(0));
    for (Index v = 0; v < hypergraph_->node_count(); ++v) {
      S* block = scalings_.scales() + v * Sizes::gram;
      const S value = detail::filter_scale<S>(hypergraph_->degree(v), false);
      for (int i = 0; i < Sizes::gram_rows; ++i) block[Sizes::dense_gram ? i * (Sizes::gram_rows + 1) : i] = value;
    }
  }

  const Hypergraph* hypergraph_;
  const IncidenceBlocks<S>* blocks_;
  bool published_;
  Buffer<S> map_, gram_;
  Scalings scalings_;
};

/// The sheaves of a network's layers, and the derivatives of one, which serve all in turn. Unchecked: that `blocks` are the
/// hypergraph's.
template <RestrictionMapFamily Family, class S>
class IncidenceStack {
 public:
  /// \param count  number of sheaves
  IncidenceStack(const Hypergraph& hypergraph, const IncidenceBlocks<S>& blocks, Index count,
                 HypergraphLaplacian laplacian)
      : gradient_(hypergraph) {
    for (Index s = 0; s < count; ++s) sheaves_.emplace_back(hypergraph, blocks, laplacian);
  }
  [[nodiscard]] Index count() const noexcept { return static_cast<Index>(sheaves_.size()); }
  /// Unchecked: the index of the sheaf.
  [[nodiscard]] IncidenceSheaf<Family, S>& operator[](Index s) noexcept {
    return sheaves_[static_cast<std::size_t>(s)];
  }
  /// Unchecked: as above.
  [[nodiscard]] const IncidenceSheaf<Family, S>& operator[](Index s) const noexcept {
    return sheaves_[static_cast<std::size_t>(s)];
  }
  [[nodiscard]] IncidenceSheafGradient<Family, S>& gradient() noexcept { return gradient_; }

 private:
  std::vector<IncidenceSheaf<Family, S>> sheaves_;
  IncidenceSheafGradient<Family, S> gradient_;
};

/// In the place of ArcMaps (layers/sheaf_source.hpp), for the maps of a hypergraph.
template <class S>
struct HypergraphMaps {
  using GraphType = Hypergraph;
  using Blocks = IncidenceBlocks<S>;
  using Learner = IncidenceLearner<S>;
  using Scaling = HypergraphLaplacian;
  template <class Family>
  using Stack = IncidenceStack<Family, S>;
};

}  // namespace sheafnn::layers
