/// \file
/// Kernels of a copresheaf layer, m_u = mean over arcs a = u → v of ρ_a X̃_v and X' = X + ELU((I ⊗ A) m Bᵀ + b), and of its
/// backward pass. Source: math: "Copresheaves" (3.50, 3.51). For one network: layers/copresheaf_layer.hpp. X̃ is the input
/// after dropout. Features as in feature_kernels.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/neighbour_sums.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/layer_end.hpp"

namespace sheafnn::batch::detail {

/// What a walk multiplies the coordinates of neighbours with: ρ_a of the arcs a that leave the node or, when Transposed,
/// ρᵀ of their reverses. There are no fixed filters.
template <class Family, class S, bool Transposed>
struct ArcMaps {
  using Sizes = sheaf::BlockSizes<Family>;
  static constexpr int learned = Family::stalk_dimension, max_coordinates = learned + 2;
  SheafRange range;
  SheafView<Family, S> sheaf;

  [[nodiscard]] SHEAFNN_HD Index slot(Index instance) const { return range.slot(instance); }
  /// The first entry of the first pair's map.
  [[nodiscard]] SHEAFNN_HD const S* of(Index instance) const { return sheaf.maps_of(slot(instance)); }

  /// \param turned  the arc is side 1 of its edge
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE static void add(const S* maps, std::uint32_t edges, std::uint32_t edge,
                                                   bool turned, const Tile<S>* x, Tile<S>* sums) {
    const Index pairs = 2 * static_cast<Index>(edges);
    const S* first = maps + (turned != Transposed ? edges + edge : edge);
    S map[Sizes::map > 0 ? Sizes::map : 1];
    SHEAFNN_UNROLL for (int k = 0; k < Sizes::map; ++k) map[k] = first[k * pairs];
    kernels::add_block_times<learned, Sizes::map, Transposed, false>(map, x, sums);
  }
};

/// m from X̃.
template <class Family, class S>
struct MeanForward : WalkTeam<NeighbourSums<ArcMaps<Family, S, false>, S>, S> {
  using Team = WalkTeam<NeighbourSums<ArcMaps<Family, S, false>, S>, S>;
  using Team::max_coordinates, Team::diffusion;
  using typename Team::Place;
  S* mean;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const Tile<S> share(kernels::mean_share(diffusion.graph.degree[place.at.node]));
    Tile<S> value[max_coordinates];
    unpack(sums, value);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) value[i] = share * value[i];
    store_stalk(diffusion.shape, place.at, value, mean);
  }
};

/// What a MixForward continues with from (I ⊗ A) m Bᵀ: X' − X, which it keeps, and X'.
template <class Family, class S>
struct CopresheafEnding {
  static constexpr int max_coordinates = Family::stalk_dimension + 2;
  kernels::CopresheafEnd end;
  FeatureShape<S> shape;
  const S* x;
  const S* bias;  ///< of run 0, f values
  Index run_stride;
  LayerOutput<S> output;

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void operator()(const NodeChannels& at, const Tile<S>* y,
                                                   Tile<S>* change) const {
    const S* of_run = bias + output.pass.run_of(at.instance) * run_stride;
    const Tile<S> own_bias = TilePart{at.range.count}.load(of_run + at.channel);
    Tile<S> value[max_coordinates];
    load_stalk(shape, at, x, value);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      change[i] = end.change(y[i], own_bias);
      value[i] = end.forward(value[i], change[i]);
    }
    output.store_value(shape, at, value);
  }
};

/// Ȳ, the derivative of (I ⊗ A) m Bᵀ, from x̄'. item (node, channels), group: instance.
template <class Family, class S>
struct CopresheafEndBackward {
  FeatureShape<S> shape;
  kernels::CopresheafEnd end;
  const S *change, *output_bar;
  S* y_bar;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int max_coordinates = Family::stalk_dimension + 2;
    Tile<S> value[max_coordinates], bar[max_coordinates];
    load_stalk(shape, at, change, value);
    load_stalk(shape, at, output_bar, bar);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] = end.backward(value[i], bar[i]);
    store_stalk(shape, at, bar, y_bar);
  }
};

/// Computes P̄ = (I ⊗ A)ᵀ Ȳ from Ȳ, and each neighbour's share m̄/degree of m̄ = P̄ B. item (node, channels), group: instance.
template <class Family, class S>
struct MeanMixBackward {
  MixBackward<Family, S> mixing;
  const S* degree;
  S* share_bar;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int max_coordinates = MixBackward<Family, S>::max_coordinates;
    const Tile<S> share(kernels::mean_share(degree[at.node]));
    Tile<S> bar[max_coordinates];
    mixing.through_mixing(at, bar);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] = share * bar[i];
    store_stalk(mixing.shape, at, bar, share_bar);
  }
};

/// Computes x̄ from the nodes' m̄/degree: x̄' + the derivative of X̃ through the dropout.
template <class Family, class S>
struct MeanBackward : WalkTeam<NeighbourSums<ArcMaps<Family, S, true>, S>, S> {
  using Team = WalkTeam<NeighbourSums<ArcMaps<Family, S, true>, S>, S>;
  using Team::max_coordinates, Team::diffusion;
  using typename Team::Place;
  const Run* runs;
  Pass pass;
  std::uint32_t layer;
  bool dropped;
  S* x_bar;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    const NodeChannels& at = place.at;
    Tile<S> bar[max_coordinates], direct[max_coordinates];
    unpack(sums, bar);
    if (dropped) drop_stalk(shape, at, pass.dropout<S>(runs, Purpose::layer_dropout, layer, at.instance), bar);
    load_stalk(shape, at, static_cast<const S*>(x_bar), direct);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] += direct[i];
    store_stalk(shape, at, bar, x_bar);
  }
};

/// Adds the derivative of ρ of an arc u → v, (m̄_u/degree) X̃_vᵀ summed over channels: a team per pair, lanes over channels;
/// group: instance.
template <class Family, class S>
struct ArcMapGradient {
  using Scalar = S;
  static constexpr int outputs = sheaf::BlockSizes<Family>::map;
  GraphView<S> graph;
  SheafRange range;
  FeatureShape<S> shape;
  const S *share_bar, *x;
  S* out;  ///< BlockGradient::map
  int lanes;

  struct Place {
    S* out = nullptr;
    Index u = 0, v = 0;  ///< positions of the ends' first values in the features
  };
  [[nodiscard]] SHEAFNN_HD Place place(Index pair, Index instance) const {
    const Index base = instance * shape.size(), row = shape.row(), m = graph.edges;
    return {out + range.slot(instance) * graph.pairs() * outputs + pair, base + graph.edge_node[pair] * row,
            base + graph.edge_node[pair < m ? pair + m : pair - m] * row};
  }

  SHEAFNN_HD void part(const Place& place, int lane, S* sums) const {
    constexpr int D = Family::stalk_dimension;
    for_lane_tiles<D>(shape, lane, lanes, [&](std::uint32_t c, const auto& reader) {
      Tile<S> bar[D], other[D];
      reader.load(share_bar + place.u + c, bar);
      reader.load(x + place.v + c, other);
      kernels::add_products<D, outputs>(bar, other, sums);
    });
  }
  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    SHEAFNN_UNROLL for (int k = 0; k < outputs; ++k) place.out[k * graph.pairs()] += sums[k];
  }
};

}  // namespace sheafnn::batch::detail
