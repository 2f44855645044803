/// \file
/// Sheaf diffusion of dense features, Z = Δ Y in three steps, W = S Y, R = L W, Z = S R, and the derivative of ⟨Z̄, Δ Y⟩
/// with respect to the blocks of L and S. Source: math: "Diffusion in three steps" (3.15).
///
/// Features are n × d' × f, channels innermost. The learned blocks mix the first D stalk coordinates. The fixed filters
/// (math: "Fixed filters") act on the coordinates after them. They are scalar operators with diagonal deg and off-diagonal
/// +1 (low pass) or −1 (high pass). They are normalised by (deg + 1)^{-1/2} on both sides, or by deg^{-1/2}.
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/layers/limits.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn::layers {

/// Shape of the features and the fixed filters of a graph.
template <class S>
struct DiffusionShape {
  DiffusionShape() = default;
  /// \param add_one  fixed filters are normalised by (deg + 1)^{-1/2}, otherwise by deg^{-1/2}
  /// \throws std::invalid_argument  stalk outside 1 … max_stalk_dimension, or channel_count outside 1 … max_channels
  DiffusionShape(const Graph& graph, int stalk, bool lp, bool hp, Index channel_count, bool add_one = true);
  [[nodiscard]] Index row() const noexcept { return coordinates * channels; }

  Index filters = 0;                ///< number of fixed filters
  Index coordinates = 0;            ///< d' = D + number of fixed filters
  Index channels = 0;               ///< f
  S filter_sign[2] = {S(0), S(0)};  ///< off-diagonal sign of the first and second fixed filter
  bool augmented = true;            ///< fixed filters are normalised by (deg + 1)^{-1/2}
  Buffer<S> inverse_root;           ///< that or deg^{-1/2}, 0 for 0; of a part with the whole graph's degrees
};

template <class S>
DiffusionShape<S>::DiffusionShape(const Graph& graph, int stalk, bool lp, bool hp, Index channel_count,
                                  bool add_one)
    : filters((lp ? 1 : 0) + (hp ? 1 : 0)),
      coordinates(stalk + filters),
      channels(channel_count),
      augmented(add_one),
      inverse_root(graph.node_count()) {
  require_between("stalk dimension", stalk, 1, max_stalk_dimension);
  require_between("channels", channel_count, 1, max_channels);
  int next = 0;
  if (lp) filter_sign[next++] = S(1);
  if (hp) filter_sign[next++] = S(-1);
  for (Index u = 0; u < graph.node_count(); ++u) {
    const GraphPart* part = graph.part();
    const Index degree = part == nullptr ? graph.degree(u) : part->numbers().degree[static_cast<std::size_t>(u)];
    inverse_root[u] = detail::filter_scale<S>(degree, augmented);
  }
}

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// \throws std::invalid_argument  unless the shape is one of this graph and stalk dimension
template <class S>
void require_fits(const DiffusionShape<S>& shape, const Graph& graph, int stalk) {
  if (shape.coordinates != stalk + shape.filters) {
    throw_invalid_argument("stalk coordinates of the shape", shape.coordinates,
                           concat("the stalk has ", stalk, ", and each of ", shape.filters, " fixed filters one"));
  }
  require_between("channels of the shape", shape.channels, 1, max_channels);
  if (shape.inverse_root.size() != graph.node_count()) {
    throw_invalid_argument("nodes of the shape", shape.inverse_root.size(),
                           concat("the graph has ", graph.node_count()));
  }
}
/// \throws std::invalid_argument  unless the sheaf is one over a graph with as many nodes and edges
template <class Family, class S>
void require_over(const Graph& graph, const SheafBlocks<Family, S>& sheaf) {
  const Graph* of = sheaf.graph();
  if (of == nullptr) throw_invalid_argument("sheaf", "none", "must have been made for a graph");
  if (of->node_count() == graph.node_count() && of->edge_count() == graph.edge_count()) return;
  throw_invalid_argument("sheaf", concat("one over ", of->node_count(), " nodes and ", of->edge_count(), " edges"),
                         concat("the layer's graph has ", graph.node_count(), " and ", graph.edge_count()));
}

/// for_tiles() over the channels, with their number as a constant where it is a pack's and rows have nothing but D
/// learned coordinates (0: elsewhere).
template <int D, class S, class Body>
SHEAFNN_INLINE void for_channels(const DiffusionShape<S>& shape, const Body& body) {
  if (shape.channels == row_lanes<S> && shape.coordinates == D) {
    body.template operator()<Pack<S, row_lanes<S>>, row_lanes<S>>(TileAt<Pack<S, row_lanes<S>>>(0));
  } else {
    for_arc_tiles<S, D>(0, shape.channels, [&]<class T>(auto c) { body.template operator()<T, 0>(c); });
  }
}

/// W = S Y for the rows y, w of `nodes` nodes from `first` on.
template <class Family, class S>
void scale_rows(const DiffusionShape<S>& shape, const SheafBlocks<Family, S>& sheaf, Index first, Index nodes,
                const S* y, S* w) {
  constexpr int D = Family::stalk_dimension;
  const Index channels = shape.channels, row = shape.row();
  for_tiles<S>(0, channels, [&]<class T>(auto c) {
    for (Index k = 0; k < nodes; ++k) {
      T in[D], out[D];
      load_coordinates<D>(c, y + k * row + c, channels, in);
      kernels::block_times<D, BlockSizes<Family>::gram>(sheaf.scale(first + k), in, out);
      store_coordinates<D>(c, out, channels, w + k * row + c);
      for (Index i = D; i < shape.coordinates; ++i) {
        const Index at = k * row + i * channels + c;
        c.store(w + at, T(shape.inverse_root[first + k]) * c.load(y + at));
      }
    }
  });
}

/// W = S Y of own nodes: features scaled per node, as apply_laplacian() takes them. On a part of a graph the rows of the halo are
/// fetched after it.
///
/// \param y, w  own nodes × d' × f
template <class Family, class S>
void scale_features(Execution execution, const Graph& graph, const DiffusionShape<S>& shape,
                    const SheafBlocks<Family, S>& sheaf, const S* y, S* w) {
  const Index row = shape.row();
  parallel_for(execution, graph.own_node_count(), 16, [&](Index begin, Index end) {
    scale_rows<Family>(shape, sheaf, begin, end - begin, y + begin * row, w + begin * row);
  });
}

/// Backwards, of a node that the pass did not compute. Writes 0 in a tile of the rows at `at` of x_bar and r_bar, and in S̄_u.
template <class Family, class T, bool Whole, class S>
SHEAFNN_INLINE void clear_node(const TileAt<T, Whole>& c, const DiffusionShape<S>& shape, Index at, S* x_bar,
                               S* r_bar, S* scale_bar, bool add) {
  for (Index i = 0; i < shape.coordinates; ++i) {
    c.store(x_bar + at + i * shape.channels, T(S(0)));
    c.store(r_bar + at + i * shape.channels, T(S(0)));
  }
  if (is_learned<Family> && !add) std::fill_n(scale_bar, BlockSizes<Family>::gram, S(0));
}

/// Backwards through Z = S R at node u and a tile of channels: r̄ = S z̄ and S̄_u = z̄_u r_uᵀ, where z̄_i is
/// z_bar(i, z_i) of every coordinate.
///
/// \tparam WithZ  z_bar reads z; otherwise its second argument is unspecified
/// \param r, r_bar  point at the channels of the first coordinate; r is not read where neither z nor S̄ needs it
template <class Family, bool WithZ, class T, bool Whole, class S, class ZBar>
SHEAFNN_INLINE void scaling_backward(const TileAt<T, Whole>& c, const DiffusionShape<S>& shape,
                                     const SheafBlocks<Family, S>& sheaf, Index u, const S* r, S* r_bar,
                                     S* scale_bar, bool add, const ZBar& z_bar) {
  constexpr int D = Family::stalk_dimension, gram = BlockSizes<Family>::gram;
  constexpr bool learned = is_learned<Family>;
  const Index f = shape.channels;
  T value[D], z[D], bar[D], scaled[D];
  if constexpr (WithZ || learned) load_coordinates<D>(c, r, f, value);
  if constexpr (WithZ) kernels::block_times<D, gram>(sheaf.scale(u), value, z);
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) bar[i] = z_bar(i, z[WithZ ? i : 0]);
  if constexpr (learned) kernels::channel_products<D, gram>(bar, value, scale_bar, add);
  kernels::block_times<D, gram>(sheaf.scale(u), bar, scaled);
  store_coordinates<D>(c, scaled, f, r_bar);
  const T root = T(shape.inverse_root[u]);
  for (Index i = D; i < shape.coordinates; ++i) {
    T filtered = T(S(0));
    if constexpr (WithZ) filtered = root * c.load(r + i * f);
    c.store(r_bar + i * f, root * z_bar(i, filtered));
  }
}

/// A fixed filter, coordinate i of node u: deg(u) x_u ± Σ_v x_v.
template <class T, bool Whole, class S>
[[nodiscard]] SHEAFNN_INLINE T filtered(const TileAt<T, Whole>& c, const DiffusionShape<S>& shape, const S* x,
                                        const std::int32_t* target, Index first, Index last, Index u, Index i) {
  const Index row = shape.row(), offset = i * shape.channels;
  const Index filter = i - (shape.coordinates - shape.filters);
  T neighbours = T(S(0));
  for (Index arc = first; arc < last; ++arc) neighbours += c.load(x + target[arc] * row + offset);
  return T(static_cast<S>(last - first)) * c.load(x + u * row + offset) +
         T(shape.filter_sign[filter]) * neighbours;
}

/// Calls visit.template operator()<Before>(arc) for the arcs of node u, which are sorted. The arcs to smaller nodes, where
/// L_uv = −Q_eᵀ, come first, then the arcs to larger nodes, where L_uv = −Q_e.
///
/// \tparam Sorted  false: all arcs are visited like arcs to larger nodes
template <bool Sorted, class Visit>
SHEAFNN_INLINE void for_neighbours(const std::int32_t* target, Index first, Index last, Index u,
                                   const Visit& visit) {
  Index arc = first;
  if constexpr (Sorted) {
    for (; arc < last && target[arc] < u; ++arc) visit.template operator()<true>(arc);
  }
  for (; arc < last; ++arc) visit.template operator()<false>(arc);
}
/// Asks for the D coordinates of a node at a tile of channels: rows of neighbours are scattered.
template <int D, class S>
SHEAFNN_INLINE void prefetch_coordinates(const S* x, Index channels) {
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) SHEAFNN_PREFETCH(x + i * channels);
}

/// R = L W and Z = S R (so Z = Δ Y for W = S Y) at some nodes, handed over while they are in registers.
///
/// \param w    n × d' × f, from scale_features()
/// \param from, to  indices of `nodes`
/// \param use  called as use.template operator()<T, N>(Index index, Index i, TileAt<T, …> c, const T* r, const T* z) for
///             every index from `from` to `to` − 1 and tile c of channels. It writes. It is called once with the N = D
///             learned coordinates (i = 0), and once with N = 1 for each fixed filter i
template <class Family, class S, class Use>
void apply_laplacian(Execution execution, const Graph& graph, const DiffusionShape<S>& shape,
                     const SheafBlocks<Family, S>& sheaf, const NodeSelection& nodes, Index from, Index to,
                     const S* w, const Use& use) {
  constexpr int D = Family::stalk_dimension;
  using Sizes = BlockSizes<Family>;
  parallel_for(execution, to - from, 16, [&](Index begin, Index end) {
    for_channels<D>(shape, [&]<class T, Index Fixed>(auto c) {
      const Index channels = Fixed > 0 ? Fixed : shape.channels, row = Fixed > 0 ? D * Fixed : shape.row();
      const Use use_here = use;
      const std::int32_t* target = graph.targets().data();
      const std::int32_t* offset = graph.offsets().data();
      const Index last_arc = graph.arc_count() - 1;
      const S* x = w + c;
      for (Index index = from + begin; index < from + end; ++index) {
        const Index u = nodes[index];
        const Index first = offset[u], last = offset[u + 1];
        T r[D], z[D], own[D];
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) r[i] = T(S(0));
        load_coordinates<D>(c, x + u * row, channels, own);
        kernels::add_block_times<D, Sizes::gram, false, false>(sheaf.degree_block(u), own, r);
        for_neighbours<kernels::is_dense<D, Sizes::transport>>(
            target, first, last, u, [&]<bool Before>(Index arc) SHEAFNN_INLINE_LAMBDA {
              const Index soon = std::min(arc + 6, last_arc);
              prefetch_coordinates<D>(x + target[soon] * row, channels);
              SHEAFNN_PREFETCH(sheaf.transport_block(graph.edge_of(soon)));
              T other[D];
              load_coordinates<D>(c, x + target[arc] * row, channels, other);
              kernels::add_block_times<D, Sizes::transport, Before, true>(sheaf.transport_block(
                                                                              graph.edge_of(arc)),
                                                                          other, r);
            });
        kernels::block_times<D, Sizes::gram>(sheaf.scale(u), r, z);
        use_here.template operator()<T, D>(index, Index{0}, c, r, z);
        for (Index i = D; i < shape.coordinates; ++i) {
          const T value = filtered(c, shape, x, target, first, last, u, i);
          const T scaled = T(shape.inverse_root[u]) * value;
          use_here.template operator()<T, 1>(index, i, c, &value, &scaled);
        }
      }
    });
  });
}

/// The same for all of `nodes`.
template <class Family, class S, class Use>
void apply_laplacian(Execution execution, const Graph& graph, const DiffusionShape<S>& shape,
                     const SheafBlocks<Family, S>& sheaf, const NodeSelection& nodes, const S* w, const Use& use) {
  apply_laplacian<Family>(execution, graph, shape, sheaf, nodes, Index{0}, nodes.count(), w, use);
}

/// What the backward pass of W = S Y, R = L W reads, n × d' × f each.
template <class S>
struct DiffusionSteps {
  const S *y, *w, *r_bar;
};

/// The derivative of ⟨R̄, L S Y⟩ in one walk over nodes: W̄ = L R̄ and Ȳ = S W̄. Also the gradients of L_uv (R̄_u W_vᵀ +
/// W_u R̄_vᵀ), of D_u (R̄_u W_uᵀ) and of S_u (W̄_u Y_uᵀ, added to the gradient from Z = S R).
///
/// \param from, to    the nodes from `from` to `to` − 1, and the edges from them to larger ones
/// \param y_bar       n × d' × f, overwritten; may be steps.y
/// \param accumulate  add to the gradients of L_uv and D_u instead of overwriting them
template <class Family, class S>
void apply_laplacian_backward(Execution execution, const Graph& graph, const DiffusionShape<S>& shape,
                              const SheafBlocks<Family, S>& sheaf, Index from, Index to,
                              const DiffusionSteps<S>& steps, S* y_bar, SheafBlocksGradient<Family, S>& gradient,
                              bool accumulate) {
  constexpr int D = Family::stalk_dimension;
  constexpr bool learned = is_learned<Family>;
  using Sizes = BlockSizes<Family>;
  const Index channels = shape.channels, row = shape.row();
  parallel_for(execution, to - from, 16, [&](Index begin, Index end) {
    for_arc_tiles<S, D>(0, channels, [&]<class T>(auto c) {
      const std::int32_t* target = graph.targets().data();
      const std::int32_t* offset = graph.offsets().data();
      const Index last_arc = graph.arc_count() - 1;
      const Edge* edges = graph.edges().data();
      const Index last_edge = graph.edge_count() - 1;
      const S *w_c = steps.w + c, *bar_c = steps.r_bar + c;
      S* edge_bar = gradient.off_diagonal_bar.data();
      const bool add = accumulate || c > 0;
      for (Index u = from + begin; u < from + end; ++u) {
        const Index first = offset[u], last = offset[u + 1];
        T r_bar[D], w[D], w_bar[D], out[D];
        load_coordinates<D>(c, bar_c + u * row, channels, r_bar);
        load_coordinates<D>(c, w_c + u * row, channels, w);
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) w_bar[i] = T(S(0));
        kernels::add_block_times<D, Sizes::gram, false, false>(sheaf.degree_block(u), r_bar, w_bar);
        for_neighbours<true>(target, first, last, u, [&]<bool Before>(Index arc) SHEAFNN_INLINE_LAMBDA {
          const Index e = graph.edge_of(arc), v = target[arc] * row;
          prefetch_coordinates<D>(bar_c + target[std::min(arc + 6, last_arc)] * row, channels);
          constexpr bool takes_edge = learned && !Before;
          if constexpr (takes_edge)
            prefetch_coordinates<D>(w_c + edges[std::min(e + 4, last_edge)].v * row, channels);
          T other_bar[D], other[D];
          load_coordinates<D>(c, bar_c + v, channels, other_bar);
          kernels::add_block_times<D, Sizes::transport, Before, true>(sheaf.transport_block(e), other_bar, w_bar);
          if constexpr (takes_edge) {
            load_coordinates<D>(c, w_c + v, channels, other);
            kernels::channel_products<D, Sizes::transport>(r_bar, other, w, other_bar,
                                                           edge_bar + e * Sizes::transport, add);
          }
        });
        kernels::block_times<D, Sizes::gram>(sheaf.scale(u), w_bar, out);
        if constexpr (learned) {
          T y[D];
          load_coordinates<D>(c, steps.y + u * row + c, channels, y);
          kernels::channel_products<D, Sizes::gram>(w_bar, y, gradient.scale_bar.data() + u * Sizes::gram, true);
          kernels::channel_products<D, Sizes::gram>(r_bar, w, gradient.degree_bar.data() + u * Sizes::gram, add);
        }
        S* y_bar_u = y_bar + u * row + c;
        store_coordinates<D>(c, out, channels, y_bar_u);
        for (Index i = D; i < shape.coordinates; ++i) {
          const auto value = filtered(c, shape, bar_c, target, first, last, u, i);
          c.store(y_bar_u + i * channels, T(shape.inverse_root[u]) * value);
        }
      }
    });
  });
}

}  // namespace sheafnn::detail
