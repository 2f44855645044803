/// \file
/// What the sheaf sources of networks share. VariationalSource is a posterior over sheaves, for Bayesian models;
/// PointSource is a sheaf computed from each layer's features; GivenSource has maps that are given.
///
/// A source has infer(), build(), and backwards begin_backward(), backward(), finish_backward(): infer() and
/// finish_backward() once per pass, the others for every sheaf.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "sheafnn/core/views.hpp"
#include "sheafnn/layers/arrays_in_turn.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/layers/layer_segments.hpp"
#include "sheafnn/layers/noise.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"
#include "sheafnn/layers/typed_learner.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn::layers {

/// What the maps of one sheaf of a pass are made of; a source reads what concerns it.
template <class S>
struct SheafInput {
  Index sheaf = 0;        ///< index of the sheaf, from 0
  MatrixView<const S> x;  ///< PointSource: features of the layer, n × h
  Dropout dropout;        ///< PointSource: of x
  Noise<S> noise;         ///< VariationalSource
};

/// The sheaves of a network's layers and the derivatives of their blocks, one set of which serves all in turn.
/// Unchecked: their indices, and that `blocks` are the graph's.
template <RestrictionMapFamily Family, class S>
class SheafStack {
 public:
  /// \param count     number of sheaves
  /// \param has_maps  have sheaves memory for their maps?
  SheafStack(const Graph& graph, const EdgeBlocks<S>& blocks, Index count, Normalisation normalisation,
             bool has_maps = false);
  SheafStack(const SheafStack&) = delete;  // sheaves refer to the derivatives
  SheafStack& operator=(const SheafStack&) = delete;
  [[nodiscard]] Index count() const noexcept { return static_cast<Index>(sheaves_.size()); }
  [[nodiscard]] SheafBlocks<Family, S>& operator[](Index s) noexcept { return sheaves_[static_cast<std::size_t>(s)]; }
  [[nodiscard]] const SheafBlocks<Family, S>& operator[](Index s) const noexcept {
    return sheaves_[static_cast<std::size_t>(s)];
  }
  /// Decides which sheaves share arrays. Without a change nothing else is written, because another thread may draw masks.
  ///
  /// \param keep  will a backward pass follow?
  /// \param more  more(s, list) adds further arrays that sheaf s is built with
  /// \returns whether the segments changed
  template <class More>
  bool set_memory(const LayerSegments& segments, bool keep, const More& more) {
    keeps_ = keep && segments.compressed;
    if (segments == segments_) return false;
    memory_.end();
    segments_ = segments;
    for (Index s = 0; segments.shares() && s < count(); ++s) {
      std::vector<Buffer<S>*> arrays;
      (*this)[s].list_memory(arrays);
      more(s, arrays);
      memory_.add(std::move(arrays), segments.set(s));
    }
    return true;
  }
  /// Before build() of a sheaf, which overwrites the arrays of another.
  void take(Index s, Execution execution) { memory_.take(s, execution, keeps_); }
  /// Before the backward pass of a sheaf that is kept in 16 bits.
  void restore(Index s, Execution execution) { memory_.restore(s, execution); }
  [[nodiscard]] SheafBlocksGradient<Family, S>& gradient() noexcept { return gradient_; }
  /// Memory with at least this many values per edge, which build() may overwrite. It is off_diagonal_bar where that is large enough.
  /// A backward pass may write to a block of edges when the maps of the block have their derivatives.
  [[nodiscard]] EdgeMemory<S> edge_memory(Index numbers) {
    constexpr Index transport = BlockSizes<Family>::transport;
    if (numbers > transport) return {numbers, more_};
    return {transport, std::shared_ptr<Buffer<S>>(std::shared_ptr<Buffer<S>>(), &gradient_.off_diagonal_bar)};
  }
  /// See SheafBlocks::choose_parts(), of all sheaves.
  void choose_parts(const Graph& graph, bool maps, bool blocks) {
    for (SheafBlocks<Family, S>& sheaf : sheaves_) sheaf.choose_parts(maps, blocks);
    gradient_.map_bar.resize(maps && is_learned<Family> ? graph.arc_count() * BlockSizes<Family>::map : 0);
  }
  /// See SheafBlocks::take_own_arcs(), of all sheaves.
  void take_own_arcs() noexcept {
    for (SheafBlocks<Family, S>& sheaf : sheaves_) sheaf.take_own_arcs();
  }

 private:
  LayerSegments segments_;
  std::vector<SheafBlocks<Family, S>> sheaves_;
  SheafBlocksGradient<Family, S> gradient_;
  ArraysInTurn<S> memory_;
  bool keeps_ = false;  ///< are they kept in 16 bits?
  std::shared_ptr<Buffer<S>> more_ = std::make_shared<Buffer<S>>();  ///< of edge_memory()
};

template <RestrictionMapFamily Family, class S>
SheafStack<Family, S>::SheafStack(const Graph& graph, const EdgeBlocks<S>& blocks, Index count,
                                  Normalisation normalisation, bool has_maps)
    : segments_(count, 0), gradient_(graph, blocks) {
  // Derivatives of blocks are read before the next sheaf is built.
  const auto arc_grams = edge_memory(2 * SheafBlocks<Family, S>::arc_stride).buffer;
  for (Index s = 0; s < count; ++s) sheaves_.emplace_back(graph, blocks, normalisation, arc_grams, has_maps);
}

/// What sources have for the maps of a graph, one per arc. In its place HypergraphMaps has the same for the maps of a
/// hypergraph (layers/incidence_sheaf.hpp).
template <class S>
struct ArcMaps {
  using GraphType = Graph;
  using Blocks = EdgeBlocks<S>;
  using Learner = TypedLearner<S>;
  using Scaling = Normalisation;  ///< what node scalings S_u are
  template <class Family>
  using Stack = SheafStack<Family, S>;
};

}  // namespace sheafnn::layers
