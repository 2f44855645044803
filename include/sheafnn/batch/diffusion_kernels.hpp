/// \file
/// Kernels of a diffusion layer that walk along edges, X' = (1 + tanh ε) ∘ X − ELU(Δ Y) in three steps W = S Y, R
/// = L W, Z = S R, and their backward pass (docs/math.md, "Diffusion in three steps"; for one network
/// layers/diffusion.hpp and layers/diffusion_layer.hpp). Features as in feature_kernels.hpp; the derivatives of the
/// sheaf's blocks: block_gradient_kernels.hpp.
///
/// Unchecked: numbers of items, runs, instances and lanes, and the room behind pointers and views; BatchNetwork and
/// BatchTrainer check what they are given.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/output_kernels.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Arcs first, first + step, … below last.
struct ArcRange {
  std::int32_t first = 0, last = 0, step = 1;
};

/// Features of an instance at some channels of any node. Whole tiles are counted instead of numbers.
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

/// Adds Σ L_uv w_v over arcs of a node, at some channels: D learned coordinates, then the fixed filters' plain sums of
/// neighbours. `features` points at the first channel of the first node, `transport` at Q_0.
///
/// \tparam Whole  range.whole, tested outside of the loop
template <class Family, bool Whole, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_arcs(const GraphView<S>& graph, const S* transport,
                                               const FeatureShape<S>& shape, const ChannelRange& range,
                                               const ArcRange& arcs, const S* features, Tile<S>* sums) {
  constexpr int D = Family::stalk_dimension, size = BlockSizes<Family>::transport;
  const std::uint32_t m = static_cast<std::uint32_t>(graph.edges);
  const ChannelReader<Whole, S> value_at(shape, range, features);
  SHEAFNN_UNROLL_FOUR for (std::int32_t arc = arcs.first; arc < arcs.last; arc += arcs.step) {
    const std::uint32_t pair = static_cast<std::uint32_t>(graph.arc_pair[arc]);
    const std::uint32_t v = static_cast<std::uint32_t>(graph.target[arc]) * value_at.node;
    // From the smaller endpoint (side 0) L_uv = −Q_e, from the larger one −Q_eᵀ.
    const bool turned = pair >= m;
    S q[size];
    load_numbered_row<size>(transport, turned ? pair - m : pair, q);
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
    Tile<S> value[D];
    SHEAFNN_UNROLL for (int j = 0; j < D; ++j) value[j] = value_at(v, j);
    kernels::add_block_times<D, size, false, true>(q, value, sums);
    if (shape.template has<D + 2>(D)) {
      SHEAFNN_UNROLL for (int i = D; i < D + 2; ++i) {
        if (shape.template has<D + 2>(i)) sums[i] += value_at(v, i);
      }
    }
  }
}
template <class Family, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_neighbours(const GraphView<S>& graph, const S* transport,
                                                     const FeatureShape<S>& shape, const ChannelRange& range,
                                                     const ArcRange& arcs, const S* features, Tile<S>* sums) {
  if (range.whole) {
    add_arcs<Family, true>(graph, transport, shape, range, arcs, features, sums);
  } else {
    add_arcs<Family, false>(graph, transport, shape, range, arcs, features, sums);
  }
}

/// Adds the numbers of tiles, coordinate by coordinate.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_numbers(const Tile<S> (&tiles)[Size], S* sums) {
  SHEAFNN_UNROLL for (int i = 0; i < Size; ++i)(Tile<S>::load(sums + 4 * i) + tiles[i]).store(sums + 4 * i);
}

/// The tiles of numbers, coordinate by coordinate.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void unpack(const S* numbers, Tile<S> (&out)[Size]) {
  SHEAFNN_UNROLL for (int i = 0; i < Size; ++i) out[i] = Tile<S>::load(numbers + 4 * i);
}

/// The sum over one segment of a high-degree node's arcs: a team, lanes over arcs, per item (segment, channels); group:
/// instance.
template <class Family, class S>
struct SegmentNeighbours {
  using Scalar = S;
  static constexpr int max_coordinates = Family::stalk_dimension + 2, outputs = 4 * max_coordinates;
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  const S* features;
  S* out;  ///< segments × d' × f per instance
  int lanes;

  struct Place {
    NodeChannels at;  ///< the segment in the place of the node
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
    add_neighbours<Family>(graph, sheaf.transport_of(range.slot(instance), 0), shape, place.at.range,
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

/// L at one node and some channels, for other kernels: a team adds up the arcs, or the sums of SegmentNeighbours for
/// high-degree nodes, lanes over these. Then R = L W and Z = S R, for D learned coordinates and the fixed filters
/// after them.
template <class Family, class S>
struct Diffusion {
  static constexpr int D = Family::stalk_dimension, max_coordinates = D + 2, outputs = 4 * max_coordinates;
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  const S* features;                    ///< W
  const S* partial;                     ///< from SegmentNeighbours
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
    r.slot = range.slot(instance);
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
      add_neighbours<Family>(graph, sheaf.transport_of(place.slot, 0), shape, place.at.range,
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
  /// R and Z from the sum.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void finish(const Place& place, const S* sums, Tile<S> (&r)[max_coordinates],
                                               Tile<S> (&z)[max_coordinates]) const {
    const std::int32_t u = place.at.node;
    Tile<S> own[max_coordinates];
    load_stalk(shape, place.at, features, own);
    node_times<Family>(sheaf.degree_block_of(place.slot, u), graph.degree[u], own, r);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      const S sign = i < D ? S(1) : shape.filter_sign[i < D ? 0 : i - D];
      r[i] += sign * Tile<S>::load(sums + 4 * i);
    }
    node_times<Family>(sheaf.scale_of(place.slot, u), graph.inverse_root[u], r, z);
  }
};

/// What kernels with a diffusion have in common: a team, or a lane alone, per item (node, channels); group: instance. They
/// add finish(place, sums), which begins with that of the diffusion.
template <class Family, class S>
struct DiffusionTeam {
  using Scalar = S;
  using Place = typename Diffusion<Family, S>::Place;
  static constexpr int max_coordinates = Diffusion<Family, S>::max_coordinates, outputs = 4 * max_coordinates;
  Diffusion<Family, S> diffusion;
  int lanes = 1;

  [[nodiscard]] SHEAFNN_HD Place place(Index item, Index instance) const {
    return diffusion.place(item, instance);
  }
  SHEAFNN_HD void part(const Place& place, int lane, S* sums) const { diffusion.gather(place, lane, lanes, sums); }
};

/// The diffusion of `features`, after sums over the arcs of high-degree nodes in segments.
///
/// \param segments  for these sums: segments × d' × f per instance
template <class Executor, class Family, class S>
[[nodiscard]] Diffusion<Family, S> begin_diffusion(Executor& executor, Index instances, const GraphView<S>& graph,
                                                   const SheafRange& range, const SheafView<Family, S>& sheaf,
                                                   const FeatureShape<S>& shape, const S* features, S* segments) {
  const Index items = graph.segments * shape.tiles;
  const int lanes = GraphView<S>::segment_lanes(items * instances);
  executor.launch_teams(items, instances, lanes,
                        SegmentNeighbours<Family, S>{graph, range, sheaf, shape, features, segments, lanes});
  return {graph, range, sheaf, shape, features, segments};
}
/// Launches a kernel with a diffusion: a few lanes for each node and tile of channels, and for those of the crowded nodes
/// warps, or warps that the teams of a bundle share.
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

/// What a layer ends with, for other kernels: X' = (1 + tanh ε) ∘ X − ELU(Z), or an X' that they have computed
/// (store_value()).
template <class S>
struct LayerOutput {
  const S* epsilon = nullptr;  ///< null with an initial residual: then only store_value()
  Index parameter_stride = 0;
  bool activation = true;
  const S* x = nullptr;
  S* out = nullptr;
  const Run* runs = nullptr;
  Pass pass;
  std::uint32_t next_layer = 0;
  S* dropped = nullptr;  ///< X' after the next layer's dropout; null: none

  /// At a node and some channels. \param z  of the coordinates, at most Max; becomes what the next layer reads, X' or what
  /// is left of it after dropout
  template <int Max>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const FeatureShape<S>& shape, const NodeChannels& at,
                                              Tile<S> (&z)[Max]) const {
    const S* eps = epsilon + pass.run_of(at.instance) * parameter_stride;
    Tile<S> own[Max];
    load_stalk(shape, at, x, own);
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
      if (shape.template has<Max>(i)) {
        z[i] = kernels::gated(Tile<S>(kernels::gain(eps[i])), own[i], kernels::activated(z[i], activation));
      }
    }
    store_value(shape, at, z);
  }
  /// From X'. \param value  becomes what the next layer reads
  template <int Max>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store_value(const FeatureShape<S>& shape, const NodeChannels& at,
                                                    Tile<S> (&value)[Max]) const {
    store_stalk(shape, at, value, out);
    if (dropped == nullptr) return;
    drop_stalk(shape, at, pass.dropout<S>(runs, Purpose::layer_dropout, next_layer, at.instance), value);
    store_stalk(shape, at, value, dropped);
  }
};

/// Forward: R and X' from W. \tparam Output  store(shape, at, z), as LayerOutput has it
template <class Family, class S, class Output = LayerOutput<S>>
struct DiffuseForward : DiffusionTeam<Family, S> {
  using typename DiffusionTeam<Family, S>::Place;
  using DiffusionTeam<Family, S>::max_coordinates, DiffusionTeam<Family, S>::diffusion;
  S* r;
  Output output;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    Tile<S> value[max_coordinates];
    if (!place.left_out) store(place, sums, value);
  }
  /// \param value  becomes what the next layer reads
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const Place& place, const S* sums,
                                              Tile<S> (&value)[max_coordinates]) const {
    Tile<S> diffused[max_coordinates];
    diffusion.finish(place, sums, diffused, value);
    store_stalk(diffusion.shape, place.at, diffused, r);
    output.store(diffusion.shape, place.at, value);
  }
};

/// x̄ of the last layer from a few logits, ȳ Wᵀ, and the first step of the layer's backward pass. item (node, channels),
/// group: instance.
template <class Family, class S>
struct EnterLayers {
  LogitsBar<S> logits;
  Pass pass;
  ActivationBackward<Family, S> layer;
  S* x_bar;

  [[nodiscard]] SHEAFNN_HD NodeChannels place(Index item, Index instance) const {
    return layer.shape.place(item, instance);
  }

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int max_coordinates = Family::stalk_dimension + 2;
    const FeatureShape<S>& shape = layer.shape;
    const int classes = static_cast<int>(logits.classes), f = static_cast<int>(shape.channels);
    const S* y_bar = logits.bar + (at.instance * shape.nodes + at.node) * classes;
    const S* w = logits.weight + pass.run_of(at.instance) * logits.parameter_stride + at.channel * classes;
    S numbers[4 * max_coordinates] = {};
    SHEAFNN_NO_UNROLL for (int k = 0; k < classes; ++k) {
      const S value = y_bar[k];
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
        SHEAFNN_UNROLL for (int c = 0; c < 4; ++c) {
          if (shape.template has<max_coordinates>(i) && c < at.range.count)
            numbers[4 * i + c] += value * w[(i * f + c) * classes + k];
        }
      }
    }
    Tile<S> bar[max_coordinates];
    unpack(numbers, bar);
    store_stalk(shape, at, bar, x_bar);
    layer.store(at, bar);
  }
};

/// Backward of the three steps, which are symmetric: W̄ = L R̄ and Ȳ = S W̄, from R̄.
template <class Family, class S>
struct DiffuseBackward : DiffusionTeam<Family, S> {
  using typename DiffusionTeam<Family, S>::Place;
  using DiffusionTeam<Family, S>::max_coordinates, DiffusionTeam<Family, S>::diffusion;
  S* w_bar;
  S* y_bar;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    Tile<S> diffused[max_coordinates], scaled[max_coordinates];
    diffusion.finish(place, sums, diffused, scaled);
    store_stalk(diffusion.shape, place.at, diffused, w_bar);
    store_stalk(diffusion.shape, place.at, scaled, y_bar);
  }
};

}  // namespace sheafnn::batch::detail
