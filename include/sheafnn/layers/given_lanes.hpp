/// \file
/// A given sheaf in the order of EdgeBlocks: maps and edge weights, lanes-innermost, in a layer's precision. GivenCentre:
/// the given maps that draws of a posterior deviate from (posterior/around_given.hpp). Blocks of a part of a graph take from
/// the sheaf over the whole what belongs to their arcs. Source: math: "Around given maps" (8.4).
#pragma once

#include <cstdint>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"
#include "sheafnn/posterior/around_given.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"

namespace sheafnn::detail {

/// maps(block, side) is where the maps of a block go. Unchecked: the sheaf is over the blocks' graph.
template <class S, class Family, class Maps>
void load_given_maps(const CellularSheaf<Family>& from, const EdgeBlocks<S>& blocks, const Maps& maps) {
  constexpr int W = EdgeBlocks<S>::width, size = BlockSizes<Family>::map;
  for (Index block = 0; block < blocks.block_count(); ++block) {
    for (int side = 0; side < 2; ++side) {
      S* to = maps(block, side);
      std::uint32_t arcs[W];
      blocks.noise_addresses(block, side, arcs);
      for (int lane = 0; lane < W; ++lane) {
        const auto& map = from.map(arcs[lane]);
        for (int k = 0; k < size; ++k) to[k * W + lane] = static_cast<S>(map.data()[k]);
      }
    }
  }
}
/// Calls use(place, edge) for all lanes, with the index of the lane's edge in the graph of a given sheaf. Unchecked: as above.
template <class S, class Use>
void for_given_edges(const Graph& given, const EdgeBlocks<S>& blocks, const Use& use) {
  constexpr int W = EdgeBlocks<S>::width;
  for (Index block = 0; block < blocks.block_count(); ++block) {
    std::uint32_t arcs[W];
    blocks.noise_addresses(block, 0, arcs);
    for (int lane = 0; lane < W; ++lane) use(block * W + lane, given.edge_of(arcs[lane]));
  }
}
/// The edge weights; empty if all are 1. Unchecked: as above.
template <class S, class Family>
[[nodiscard]] Buffer<S> given_weights(const CellularSheaf<Family>& from, const EdgeBlocks<S>& blocks) {
  Buffer<S> weights;
  if constexpr (may_have_edge_weights<Family>) {
    bool all_one = true;
    for_given_edges(from.graph(), blocks, [&](Index, Index e) { all_one = all_one && from.edge_weight(e) == 1; });
    if (all_one) return weights;
    weights.resize(blocks.block_count() * EdgeBlocks<S>::width);
    for_given_edges(from.graph(), blocks,
                    [&](Index i, Index e) { weights[i] = static_cast<S>(from.edge_weight(e)); });
  }
  return weights;
}
/// The labels of the blocks' edges. Unchecked: as above.
template <class S, class Family>
[[nodiscard]] EdgeLabels given_labels(const AroundGiven<Family>& around, const EdgeBlocks<S>& blocks) {
  const EdgeLabels& all = around.labels();
  EdgeLabels r{std::vector<std::int32_t>(static_cast<std::size_t>(blocks.edge_count())), all.count};
  for_given_edges(around.centre()[0].graph(), blocks, [&](Index i, Index e) {
    if (i < blocks.edge_count()) r.of_edge[static_cast<std::size_t>(i)] = all.of_edge[static_cast<std::size_t>(e)];
  });
  return r;
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// The centre of posteriors without a given one: draws are the maps. Takes any maps.
template <class Posterior, class S>
class GivenCentre {
 public:
  template <class GraphType, class Blocks>
  GivenCentre(const GraphType&, const Blocks&, const Posterior&) {}
  template <class Map>
  SHEAFNN_INLINE void add_to(Index, int, Map&) const {}
  template <class Map>
  [[nodiscard]] SHEAFNN_INLINE const Map& deviation(Index, int, const Map& map) const {
    return map;
  }
  template <class Map>
  [[nodiscard]] SHEAFNN_INLINE const Map& deviation_bar(Index, int, const Map& map_bar) const {
    return map_bar;
  }
};

/// The maps F⁰. Unchecked: indices of blocks, that sides are 0 or 1, and that maps are of the blocks.
template <class Family, class S>
class GivenCentre<AroundGiven<Family>, S> {
 public:
  using Blocks = SheafBlocks<Family, S>;
  using Map = typename Blocks::Map;

  /// \throws std::invalid_argument  no sheaf, or one over another graph
  GivenCentre(const Graph& graph, const EdgeBlocks<S>& blocks, const AroundGiven<Family>& around) {
    around.centre().check_count(1);
    around.centre().check_graph(graph);
    maps_.resize(blocks.block_count() * 2 * stride);
    detail::load_given_maps<S>(around.centre()[0], blocks,
                               [&](Index block, int side) { return place(block, side); });
    weights_ = detail::given_weights(around.centre()[0], blocks);
  }

  /// Lanes-innermost edge weights, null where all are 1.
  [[nodiscard]] const S* edge_weights() const noexcept { return weights_.size() == 0 ? nullptr : weights_.data(); }
  /// Replaces a deviation G by the map F: G F⁰ or F⁰ + G.
  void add_to(Index block, int side, Map& map) const {
    map = detail::Deviated<Family>::map(map, load(block, side));
  }
  /// The deviation G of a map F.
  [[nodiscard]] Map deviation(Index block, int side, const Map& map) const {
    return detail::Deviated<Family>::deviation(map, load(block, side));
  }
  /// Computes the derivative of G from the derivative of F.
  [[nodiscard]] Map deviation_bar(Index block, int side, const Map& map_bar) const {
    return detail::Deviated<Family>::deviation_bar(map_bar, load(block, side));
  }

 private:
  static constexpr Index stride = BlockSizes<Family>::map * EdgeBlocks<S>::width;
  [[nodiscard]] S* place(Index block, int side) { return maps_.data() + (block * 2 + side) * stride; }
  [[nodiscard]] Map load(Index block, int side) const {
    return Blocks::load_map(maps_.data() + (block * 2 + side) * stride);
  }

  Buffer<S> maps_, weights_;
};

}  // namespace sheafnn::layers
