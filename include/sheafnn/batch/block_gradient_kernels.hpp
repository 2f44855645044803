/// \file
/// Kernels that make the derivatives of the Laplacian's blocks: Q_e per edge, and D_u, S_u per node. They read the
/// features of a diffusion layer and their derivatives (math: "Diffusion in three steps").
#pragma once

#include <cstdint>

#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/sheaf_backward_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/block.hpp"

namespace sheafnn::batch::detail {

/// Features V_0, V_1, … to which Δ is applied: a separate array for V_0, and one array for all others.
template <class S>
struct StackedFeatures {
  const S* first = nullptr;
  const S* others = nullptr;
  Index stride = 0;  ///< of V_1, V_2, …

  [[nodiscard]] SHEAFNN_HD const S* at(Index k) const noexcept {
    return k == 0 ? first : others + (k - 1) * stride;
  }
};

/// The learned coordinates at the channels that a lane of a team comes to.
template <int D, class Range, class S>
struct StalkReader {
  std::uint32_t channels;  ///< f
  Range range;

  /// `features` points at the first of the channels.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void load(const S* features, Tile<S> (&out)[D]) const {
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      out[i] = range.load(features + static_cast<std::uint32_t>(i) * channels);
    }
  }
};
/// use(first channel, StalkReader) for every `lanes`-th tile of channels starting at tile `lane`.
template <int D, class S, class Use>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void for_lane_tiles(const FeatureShape<S>& shape, int lane, int lanes,
                                                     const Use& use) {
  const std::uint32_t f = shape.stride(), step = 4 * static_cast<std::uint32_t>(lanes);
  std::uint32_t c = 4 * static_cast<std::uint32_t>(lane);
  if (f % 4 == 0) {
    SHEAFNN_NO_UNROLL for (; c < f; c += step) use(c, StalkReader<D, WholeTile, S>{f, {}});
  } else {
    SHEAFNN_NO_UNROLL for (; c < f; c += step) {
      use(c, StalkReader<D, TilePart, S>{f, {static_cast<int>(f - c < 4 ? f - c : 4)}});
    }
  }
}
/// Lanes of such a team: the smallest power of two that covers the tiles, at most max_lanes.
template <class S>
[[nodiscard]] int tile_lanes(const FeatureShape<S>& shape) noexcept {
  int lanes = 1;
  while (lanes < shape.tiles && lanes < max_lanes) lanes *= 2;
  return lanes;
}

/// A block's row becomes the sums or, with `add`, becomes larger by them.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store_sums(const S* sums, bool add, S* to) {
  S total[Size] = {};
  if (add) load_row<Size>(to, total);
  SHEAFNN_UNROLL for (int k = 0; k < Size; ++k) total[k] += sums[k];
  store_row<Size>(total, to);
}

/// Derivative of L_uv per edge, R̄_u W_vᵀ + W_u R̄_vᵀ, summed over applications of Δ: a team per edge, lanes over
/// channels; group: instance.
template <class Family, class S>
struct EdgeGradient {
  using Scalar = S;
  static constexpr int outputs = sheaf::BlockSizes<Family>::transport;
  GraphView<S> graph;
  SheafRange range;
  FeatureShape<S> shape;
  const S* w;
  const S* r_bar;
  S* out;    ///< BlockGradient::off_diagonal
  bool add;  ///< another layer has the same sheaf
  int lanes;
  Index applications = 1;
  Index stride = 0;  ///< of w and r_bar, from one application to the next

  struct Place {
    Index row = 0;       ///< of `out`
    Index u = 0, v = 0;  ///< positions of the ends' first values in the features
  };
  [[nodiscard]] SHEAFNN_HD Place place(Index edge, Index instance) const {
    const Index base = instance * shape.size(), row = shape.row();
    return {range.slot(instance) * graph.edges + edge, base + graph.edge_node[edge] * row,
            base + graph.edge_node[graph.edges + edge] * row};
  }

  SHEAFNN_HD void part(const Place& place, int lane, S* sums) const {
    constexpr int D = Family::stalk_dimension;
    SHEAFNN_NO_UNROLL for (Index k = 0; k < applications; ++k) {
      const S *features = w + k * stride, *bar = r_bar + k * stride;
      for_lane_tiles<D>(shape, lane, lanes, [&](std::uint32_t c, const auto& reader) {
        Tile<S> w_u[D], w_v[D], r_u[D], r_v[D];
        reader.load(features + place.u + c, w_u);
        reader.load(features + place.v + c, w_v);
        reader.load(bar + place.u + c, r_u);
        reader.load(bar + place.v + c, r_v);
        kernels::add_products<D, outputs>(r_u, w_v, w_u, r_v, sums);
      });
    }
  }
  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    store_sums<outputs>(sums, add, out + place.row * BlockRows<Family>::transport);
  }
};

/// Derivatives of D_u, R̄_u W_uᵀ, and of S_u, Z̄_u R_uᵀ + W̄_u Y_uᵀ, summed over applications of Δ: a team per node;
/// group: instance.
template <class Family, class S>
struct NodeGradient {
  using Scalar = S;
  static constexpr int size = sheaf::BlockSizes<Family>::gram;
  static constexpr int outputs = 2 * size;
  SheafRange range;
  FeatureShape<S> shape;
  StackedFeatures<S> y;
  const S *w, *r, *z_bar, *r_bar, *w_bar;
  BlockGradient<S> out;
  bool add;
  int lanes;
  Index applications = 1;
  Index stride = 0;  ///< of w … w_bar, from one application to the next

  SHEAFNN_HD void part(Index u, Index instance, int lane, S* sums) const {
    constexpr int D = Family::stalk_dimension;
    const Index first = instance * shape.size() + u * shape.row();
    SHEAFNN_NO_UNROLL for (Index k = 0; k < applications; ++k) {
      for_lane_tiles<D>(shape, lane, lanes, [&](std::uint32_t c, const auto& reader) {
        const Index node = first + static_cast<Index>(c), index = k * stride + node;
        Tile<S> a[D], b[D];
        reader.load(r_bar + index, a);
        reader.load(w + index, b);
        kernels::add_products<D, size>(a, b, sums);
        reader.load(z_bar + index, a);
        reader.load(r + index, b);
        kernels::add_products<D, size>(a, b, sums + size);
        reader.load(w_bar + index, a);
        reader.load(y.at(k) + node, b);
        kernels::add_products<D, size>(a, b, sums + size);
      });
    }
  }
  SHEAFNN_HD void finish(Index u, Index instance, const S* sums) const {
    const Index row = (range.slot(instance) * shape.nodes + u) * BlockRows<Family>::gram;
    store_sums<size>(sums, add, out.degree + row);
    store_sums<size>(sums + size, add, out.scale + row);
  }
};

/// What the derivatives of a sheaf's blocks are made of, for several applications of Δ one after another.
template <class S>
struct DiffusionArrays {
  const S *w, *r, *z_bar, *r_bar, *w_bar;
};

/// Launches the derivatives of a sheaf's blocks.
///
/// \param y       what the applications of Δ had
/// \param stride  of `arrays`, from one application to the next
/// \param others  parts that share the launch
template <class Family, class Executor, class S, class... Others>
void launch_block_gradients(Executor& executor, Index instances, const GraphView<S>& graph,
                            const SheafRange& range, const FeatureShape<S>& shape, const StackedFeatures<S>& y,
                            const DiffusionArrays<S>& arrays, const BlockGradient<S>& out, bool add,
                            Index applications, Index stride, const Others&... others) {
  const int lanes = tile_lanes(shape);
  executor.launch_together(Teams{graph.edges, instances, lanes,
                                 EdgeGradient<Family, S>{graph, range, shape, arrays.w, arrays.r_bar,
                                                         out.off_diagonal, add, lanes, applications, stride}},
                           Teams{shape.nodes, instances, lanes,
                                 NodeGradient<Family, S>{range, shape, y, arrays.w, arrays.r, arrays.z_bar,
                                                         arrays.r_bar, arrays.w_bar, out, add, lanes, applications,
                                                         stride}},
                           others...);
}

}  // namespace sheafnn::batch::detail
