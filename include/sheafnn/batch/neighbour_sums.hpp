/// \file
/// The walk along arcs: sums over a node's neighbours of their features, multiplied with a block of each edge or as they
/// are. Kernels that begin with these sums: diffusion_kernels.hpp, cooperative_kernels.hpp. Features as in
/// feature_kernels.hpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/graph.hpp"
#include "sheafnn/batch/sheaf_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/block.hpp"

namespace sheafnn::batch::detail {

/// Arcs first, first + step, … below last.
struct ArcRange {
  std::int32_t first = 0, last = 0, step = 1;
};

/// Features of an instance at some channels of any node. Whole tiles are counted instead of values.
template <bool Whole, class S>
struct ChannelReader {
  const S* first;                  ///< the channels of the first node
  std::uint32_t node, coordinate;  ///< from one to the next
  ChannelRange range;

  SHEAFNN_HD ChannelReader(const FeatureShape<S>& shape, const ChannelRange& channels, const S* features)
      : first(features),
        node(static_cast<std::uint32_t>(shape.row()) / unit),
        coordinate(shape.stride() / unit),
        range(channels) {}
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE Tile<S> operator()(std::uint32_t begin, int i) const {
    const std::uint32_t place = begin + static_cast<std::uint32_t>(i) * coordinate;
    return Whole ? WholeTile{}.load(tile_at(first, place)) : TilePart{range.count}.load(first + place);
  }

 private:
  static constexpr std::uint32_t unit = Whole ? 4 : 1;
};

/// What a walk multiplies the first `learned` of max_coordinates coordinates of neighbours with: blocks −Q_e of a sheaf. It
/// adds up the others, which fixed filters read, as they are.
template <class Family, class S>
struct SheafTransports {
  using Sizes = sheaf::BlockSizes<Family>;
  static constexpr int learned = Family::stalk_dimension, max_coordinates = learned + 2;
  SheafRange range;
  SheafView<Family, S> sheaf;

  [[nodiscard]] SHEAFNN_HD Index slot(Index instance) const { return range.slot(instance); }
  /// Q_0 of an instance.
  [[nodiscard]] SHEAFNN_HD const S* of(Index instance) const { return sheaf.transport_of(slot(instance), 0); }

  /// Q_e, or Q_eᵀ where the arc is turned. \param transport  Q_0
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE static void load(const S* transport, std::uint32_t edge, bool turned,
                                                    S (&q)[Sizes::transport]) {
    constexpr int D = learned, size = Sizes::transport;
    load_numbered_row<size>(transport, edge, q);
    if constexpr (kernels::is_dense<D, size>) {
      SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
        SHEAFNN_UNROLL for (int i = 0; i < j; ++i) {
          S &upper = q[kernels::entry<D, false>(i, j)], &lower = q[kernels::entry<D, true>(i, j)];
          const S before = upper;
          upper = turned ? lower : before;
          lower = turned ? before : lower;
        }
      }
    }
  }
  /// Adds −Q_e x, or −Q_eᵀ x where the arc is turned. \param transport  Q_0
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE static void add(const S* transport, std::uint32_t, std::uint32_t edge,
                                                   bool turned, const Tile<S>* x, Tile<S>* sums) {
    S q[Sizes::transport];
    load(transport, edge, turned, q);
    kernels::add_block_times<learned, Sizes::transport, false, true>(q, x, sums);
  }
};
/// No blocks: a walk adds up all D coordinates of neighbours as they are.
template <int D, class S>
struct NoBlocks {
  static constexpr int learned = 0, max_coordinates = D;

  [[nodiscard]] SHEAFNN_HD Index slot(Index instance) const { return instance; }
  [[nodiscard]] SHEAFNN_HD const S* of(Index) const { return nullptr; }
};

/// Is coordinate i there, of a walk with these blocks?
template <class Blocks, class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE bool has_coordinate(const FeatureShape<S>& shape, int i) {
  if constexpr (Blocks::learned == 0) {
    return true;
  } else {
    return shape.template has<Blocks::max_coordinates>(i);
  }
}

/// Adds Σ L_uv w_v over arcs of a node, at some channels: learned coordinates, then the plain sums of neighbours.
/// `features` points at the first channel of the first node, `blocks` are the instance's (Blocks::of()).
///
/// \tparam Whole  range.whole, tested outside of the loop
template <class Blocks, bool Whole, class Numbers, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_arcs(const GraphView<S>& graph, [[maybe_unused]] const Numbers& blocks,
                                               const FeatureShape<S>& shape, const ChannelRange& range,
                                               const ArcRange& arcs, const S* features, Tile<S>* sums) {
  constexpr int learned = Blocks::learned, all = Blocks::max_coordinates;
  const ChannelReader<Whole, S> value_at(shape, range, features);
  SHEAFNN_UNROLL_FOUR for (std::int32_t arc = arcs.first; arc < arcs.last; arc += arcs.step) {
    const std::uint32_t v = static_cast<std::uint32_t>(graph.target[arc]) * value_at.node;
    if constexpr (learned > 0) {
      // From the smaller endpoint (side 0) L_uv = −Q_e, from the larger one −Q_eᵀ.
      const std::uint32_t m = static_cast<std::uint32_t>(graph.edges);
      const std::uint32_t pair = static_cast<std::uint32_t>(graph.arc_pair[arc]);
      const bool turned = pair >= m;
      Tile<S> value[learned];
      SHEAFNN_UNROLL for (int j = 0; j < learned; ++j) value[j] = value_at(v, j);
      Blocks::add(blocks, m, turned ? pair - m : pair, turned, value, sums);
    }
    if (has_coordinate<Blocks>(shape, learned)) {
      SHEAFNN_UNROLL for (int i = learned; i < all; ++i) {
        if (has_coordinate<Blocks>(shape, i)) sums[i] += value_at(v, i);
      }
    }
  }
}
template <class Blocks, class Numbers, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_neighbours(const GraphView<S>& graph, const Numbers& blocks,
                                                     const FeatureShape<S>& shape, const ChannelRange& range,
                                                     const ArcRange& arcs, const S* features, Tile<S>* sums) {
  if (range.whole) {
    add_arcs<Blocks, true>(graph, blocks, shape, range, arcs, features, sums);
  } else {
    add_arcs<Blocks, false>(graph, blocks, shape, range, arcs, features, sums);
  }
}

/// Adds the values of tiles, coordinate by coordinate.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_numbers(const Tile<S> (&tiles)[Size], S* sums) {
  SHEAFNN_UNROLL for (int i = 0; i < Size; ++i)(Tile<S>::load(sums + 4 * i) + tiles[i]).store(sums + 4 * i);
}

/// The tiles of values, coordinate by coordinate.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void unpack(const S* numbers, Tile<S> (&out)[Size]) {
  SHEAFNN_UNROLL for (int i = 0; i < Size; ++i) out[i] = Tile<S>::load(numbers + 4 * i);
}

/// The sum over one segment of a high-degree node's arcs: a team, lanes over arcs, per item (segment, channels); group:
/// instance.
template <class Blocks, class S>
struct ArcSegmentSums {
  using Scalar = S;
  static constexpr int max_coordinates = Blocks::max_coordinates, outputs = 4 * max_coordinates;
  GraphView<S> graph;
  Blocks blocks;
  FeatureShape<S> shape;
  const S* features;
  S* out;  ///< segments × d' × f per instance
  int lanes;

  struct Place {
    NodeChannels at;  ///< the segment in place of the node
    ArcRange arcs;
  };
  [[nodiscard]] SHEAFNN_HD Place place(Index item, Index instance) const {
    Place r{shape.place(item, instance), {}};
    const std::int32_t first = graph.segment_arc[r.at.node], end = graph.offset[graph.segment_node[r.at.node] + 1];
    r.arcs = {first, first + GraphView<S>::segment < end ? first + GraphView<S>::segment : end, 1};
    return r;
  }

  SHEAFNN_HD void part(const Place& place, int lane, S* sums) const {
    const Index instance = place.at.instance;
    Tile<S> own[max_coordinates] = {};
    add_neighbours<Blocks>(graph, blocks.of(instance), shape, place.at.range,
                           {place.arcs.first + lane, place.arcs.last, lanes},
                           features + instance * shape.size() + place.at.channel, own);
    add_numbers(own, sums);
  }
  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    Tile<S> own[max_coordinates];
    unpack(sums, own);
    NodeChannels to = place.at;  // its element may not fit: there may be many more segments than nodes
    to.index = (to.instance * graph.segments + to.node) * shape.row() + to.channel;
    store_stalk(shape, to, own, out);
  }
};
/// The sum over a node's neighbours at some channels, for other kernels. A team adds up the arcs, or the sums of
/// ArcSegmentSums for high-degree nodes, lanes over these.
template <class Blocks, class S>
struct NeighbourSums {
  static constexpr int max_coordinates = Blocks::max_coordinates, outputs = 4 * max_coordinates;
  GraphView<S> graph;
  Blocks blocks;
  FeatureShape<S> shape;
  const S* features;                    ///< W
  const S* partial;                     ///< from ArcSegmentSums
  const std::int32_t* nodes = nullptr;  ///< items are the crowded nodes of the graph, and these; null: all others

  struct Place {
    NodeChannels at;
    Index slot = 0;
    ArcRange arcs;
    std::int32_t segment = 0, last_segment = 0;
    bool left_out = false;  ///< a crowded node, which is an item elsewhere
  };
  [[nodiscard]] SHEAFNN_HD Place place(Index item, Index instance) const {
    Place r;
    r.at = shape.place(item, instance, nodes);
    r.slot = blocks.slot(instance);
    r.arcs = {graph.offset[r.at.node], graph.offset[r.at.node + 1], 1};
    r.segment = graph.node_segment[r.at.node];
    r.last_segment = graph.node_segment[r.at.node + 1];
    r.left_out = nodes == nullptr && graph.crowded > 0 && r.arcs.last - r.arcs.first > GraphView<S>::high_degree;
    return r;
  }

  /// A lane's part of the sum over neighbours, coordinate by coordinate.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void gather(const Place& place, int lane, int lanes, S* sums) const {
    const Index instance = place.at.instance;
    Tile<S> own[max_coordinates] = {};
    if (place.left_out) return;
    if (place.segment == place.last_segment) {
      add_neighbours<Blocks>(graph, blocks.of(instance), shape, place.at.range,
                             {place.arcs.first + lane, place.arcs.last, lanes},
                             features + instance * shape.size() + place.at.channel, own);
    } else {
      NodeChannels from = place.at;
      SHEAFNN_UNROLL_FOUR for (std::int32_t s = place.segment + lane; s < place.last_segment; s += lanes) {
        from.index = (instance * graph.segments + s) * shape.row() + from.channel;
        Tile<S> part[max_coordinates];
        load_stalk(shape, from, partial, part);
        SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) own[i] += part[i];
      }
    }
    add_numbers(own, sums);
  }
};

/// What kernels with these sums, or a diffusion, have in common: a team, or a lane alone, per item (node, channels); group:
/// instance. They add finish(place, sums).
template <class Walk, class S>
struct WalkTeam {
  using Scalar = S;
  using Place = typename Walk::Place;
  static constexpr int max_coordinates = Walk::max_coordinates, outputs = 4 * max_coordinates;
  Walk diffusion;
  int lanes = 1;

  [[nodiscard]] SHEAFNN_HD Place place(Index item, Index instance) const {
    return diffusion.place(item, instance);
  }
  SHEAFNN_HD void part(const Place& place, int lane, S* sums) const { diffusion.gather(place, lane, lanes, sums); }
};

/// The sums of `features` over neighbours, after the sums over the arcs of high-degree nodes in segments.
///
/// \param segments  for these sums: segments × d' × f per instance
template <class Executor, class Blocks, class S>
[[nodiscard]] NeighbourSums<Blocks, S> begin_sums(Executor& executor, Index instances, const GraphView<S>& graph,
                                                  const Blocks& blocks, const FeatureShape<S>& shape,
                                                  const S* features, S* segments) {
  const Index items = graph.segments * shape.tiles;
  const int lanes = GraphView<S>::segment_lanes(items * instances);
  executor.launch_teams(items, instances, lanes,
                        ArcSegmentSums<Blocks, S>{graph, blocks, shape, features, segments, lanes});
  return {graph, blocks, shape, features, segments};
}
/// Launches a kernel with a diffusion, a few lanes for each node and tile of channels. Crowded nodes have warps, or warps
/// that the teams of a bundle share.
///
/// \param others  parts that share the launch
template <class Executor, class Kernel, class... Others>
void launch_diffusion(Executor& executor, Index instances, Kernel kernel, const Others&... others) {
  const auto& graph = kernel.diffusion.graph;
  const auto& shape = kernel.diffusion.shape;
  const int most = max_lanes / teams_of(kernel);
  kernel.lanes = std::min(graph.gather_lanes(shape.items() * instances), most);
  Kernel crowded = kernel;
  crowded.diffusion.nodes = graph.crowded_node;
  crowded.lanes = most;
  executor.launch_together(Teams{shape.items(), instances, kernel.lanes, kernel},
                           Teams{graph.crowded * shape.tiles, instances, most, crowded}, others...);
}

}  // namespace sheafnn::batch::detail
