/// \file
/// Sheaf diffusion of dense features, Z = Δ Y in three steps, W = S Y, R = L W, Z = S R, and the derivative of
/// ⟨Z̄, Δ Y⟩ with respect to the blocks of L and S (docs/math.md, "Diffusion in three steps" (3.15)).
///
/// Features are n × d' × f, channels innermost. The first D stalk coordinates are mixed by the learned blocks;
/// behind them stand the fixed filters (math: "Fixed filters"): scalar operators with diagonal deg and
/// off-diagonal +1 (low pass) or −1 (high pass), normalised by (deg + 1)^{-1/2} on both sides, or by deg^{-1/2}.
#pragma once

#include <algorithm>
#include <cmath>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/limits.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn {

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

namespace detail {

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

/// sum[i] ±= (block · x)_i, or with the transposed block, for the D learned coordinates. `Size` is the block's
/// kind (1, D or D² numbers); T is the tile of channels, x its D coordinates or where the first of them lies.
template <int D, int Size, bool Transposed, bool Subtract, class T, class S>
SHEAFNN_INLINE void add_block_times(const S* block, const T* x, T* sum) {
  SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
    const T value = x[j];
    if constexpr (Size == D * D && D > 1) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
        const T term = T(block[Transposed ? i * D + j : j * D + i]) * value;
        sum[i] = Subtract ? sum[i] - term : sum[i] + term;
      }
    } else {
      const T term = T(block[Size == 1 ? 0 : j]) * value;
      sum[j] = Subtract ? sum[j] - term : sum[j] + term;
    }
  }
}

template <int D, int Size, bool Transposed, bool Subtract, class T, class S>
SHEAFNN_INLINE void add_block_times(const S* block, const S* x, Index channels, T* sum) {
  T values[D];
  SHEAFNN_UNROLL for (int j = 0; j < D; ++j) values[j] = load<T>(x + j * channels);
  add_block_times<D, Size, Transposed, Subtract>(block, values, sum);
}

/// z[i] = (S r)_i for a tile of channels of one node.
template <class Family, class T, class S>
SHEAFNN_INLINE void scale_block(const S* scale, const T* r, T* z) {
  constexpr int D = Family::stalk_dimension;
  constexpr int size = BlockSizes<Family>::gram;
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
    if constexpr (size == D * D && D > 1) {
      z[i] = T(scale[i]) * r[0];
      SHEAFNN_UNROLL for (int j = 1; j < D; ++j) z[i] += T(scale[j * D + i]) * r[j];
    } else {
      z[i] = T(scale[size == 1 ? 0 : i]) * r[i];
    }
  }
}

/// for_tiles() over the channels, with their number as a constant where it is a pack's and rows have nothing but D
/// learned coordinates (0: elsewhere).
template <int D, class S, class Body>
SHEAFNN_INLINE void for_channels(const DiffusionShape<S>& shape, const Body& body) {
  if (shape.channels == row_lanes<S> && shape.coordinates == D) {
    body.template operator()<Pack<S, row_lanes<S>>, row_lanes<S>>(0);
  } else {
    for_tiles<S>(0, shape.channels, [&]<class T>(Index c) { body.template operator()<T, 0>(c); });
  }
}

/// W = S Y for the rows y, w of `nodes` nodes from `first` on.
template <class Family, class S>
void scale_rows(const DiffusionShape<S>& shape, const SheafBlocks<Family, S>& sheaf, Index first, Index nodes,
                const S* y, S* w) {
  constexpr int D = Family::stalk_dimension;
  const Index channels = shape.channels, row = shape.row();
  for_tiles<S>(0, channels, [&]<class T>(Index c) {
    for (Index k = 0; k < nodes; ++k) {
      T in[D], out[D];
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) in[i] = load<T>(y + k * row + i * channels + c);
      detail::scale_block<Family>(sheaf.scale(first + k), in, out);
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) store(w + k * row + i * channels + c, out[i]);
      for (Index i = D; i < shape.coordinates; ++i) {
        const Index at = k * row + i * channels + c;
        store(w + at, T(shape.inverse_root[first + k]) * load<T>(y + at));
      }
    }
  });
}

/// W = S Y: features scaled per node, as apply_laplacian() takes them.
///
/// \param y, w  n × d' × f
template <class Family, class S>
void scale_features(Execution execution, const Graph& graph, const DiffusionShape<S>& shape,
                    const SheafBlocks<Family, S>& sheaf, const S* y, S* w) {
  const Index row = shape.row();
  parallel_for(execution, graph.node_count(), 16, [&](Index begin, Index end) {
    scale_rows<Family>(shape, sheaf, begin, end - begin, y + begin * row, w + begin * row);
  });
}

/// Backwards, of a node that the pass did not compute: 0 in a tile of the rows at `at` of x_bar and r_bar, and in S̄_u.
template <class Family, class T, class S>
SHEAFNN_INLINE void clear_node(const DiffusionShape<S>& shape, Index at, S* x_bar, S* r_bar, S* scale_bar, bool add) {
  for (Index i = 0; i < shape.coordinates; ++i) {
    store(x_bar + at + i * shape.channels, T(S(0)));
    store(r_bar + at + i * shape.channels, T(S(0)));
  }
  if (is_learned<Family> && !add) std::fill_n(scale_bar, BlockSizes<Family>::gram, S(0));
}

/// A fixed filter, coordinate i of node u: deg(u) x_u ± Σ_v x_v.
template <class T, class S>
[[nodiscard]] SHEAFNN_INLINE T filtered(const DiffusionShape<S>& shape, const S* x, const std::int32_t* target,
                                        Index first, Index last, Index u, Index i) {
  const Index row = shape.row(), offset = i * shape.channels;
  const Index filter = i - (shape.coordinates - shape.filters);
  T neighbours = T(S(0));
  for (Index arc = first; arc < last; ++arc) neighbours += load<T>(x + target[arc] * row + offset);
  return T(static_cast<S>(last - first)) * load<T>(x + u * row + offset) +
         T(shape.filter_sign[filter]) * neighbours;
}

/// R = L W and Z = S R (so Z = Δ Y for W = S Y) at some nodes, handed over while they are in registers.
///
/// \param w    n × d' × f, from scale_features()
/// \param from, to  indices of `nodes`
/// \param use  called as use.template operator()<T, N>(Index index, Index i, Index c, const T* r, const T* z) for
///             every index from `from` to `to` − 1 and tile T of channels from c on: once with the N = D learned
///             coordinates (i = 0), and once with N = 1 for each fixed filter i
template <class Family, class S, class Use>
void apply_laplacian(Execution execution, const Graph& graph, const DiffusionShape<S>& shape,
                     const SheafBlocks<Family, S>& sheaf, const NodeSelection& nodes, Index from, Index to,
                     const S* w, const Use& use) {
  constexpr int D = Family::stalk_dimension;
  using Sizes = BlockSizes<Family>;
  parallel_for(execution, to - from, 16, [&](Index begin, Index end) {
    for_channels<D>(shape, [&]<class T, Index Fixed>(Index c) {
      const Index channels = Fixed > 0 ? Fixed : shape.channels, row = Fixed > 0 ? D * Fixed : shape.row();
      const Use use_here = use;
      const std::int32_t* target = graph.targets().data();
      const std::int32_t* offset = graph.offsets().data();
      const Index last_arc = graph.arc_count() - 1;
      const S* x = w + c;
      for (Index index = from + begin; index < from + end; ++index) {
        const Index u = nodes[index];
        T r[D], z[D];
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) r[i] = T(S(0));
        detail::add_block_times<D, Sizes::gram, false, false, T>(sheaf.degree_block(u), x + u * row, channels, r);
        // Neighbours are sorted: L_uv = −Q_eᵀ for those before u, −Q_e for those behind it. Their rows and
        // blocks are scattered; the next ones are prefetched while others are multiplied.
        const Index first = offset[u], last = offset[u + 1];
        Index arc = first;
        const auto add_neighbour = [&]<bool Transposed>() {
          const Index soon = std::min(arc + 6, last_arc);
          const S* ahead = x + target[soon] * row;
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) SHEAFNN_PREFETCH(ahead + i * channels);
          SHEAFNN_PREFETCH(sheaf.transport_block(graph.edge_of(soon)));
          detail::add_block_times<D, Sizes::transport, Transposed, true, T>(sheaf.transport_block(
                                                                                graph.edge_of(arc)),
                                                                            x + target[arc] * row, channels, r);
        };
        if constexpr (Sizes::transport == D * D && D > 1) {
          for (; arc < last && target[arc] < u; ++arc) add_neighbour.template operator()<true>();
        }
        for (; arc < last; ++arc) add_neighbour.template operator()<false>();
        detail::scale_block<Family>(sheaf.scale(u), r, z);
        use_here.template operator()<T, D>(index, Index{0}, c, r, z);
        for (Index i = D; i < shape.coordinates; ++i) {
          const T value = filtered<T>(shape, x, target, first, last, u, i);
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

/// Products over a tile of channels: the block `out` of `Size` numbers (1, D or D²) = (out +) Σ_c (a bᵀ + p qᵀ).
///
/// \tparam Capacity  numbers of `out` that may be overwritten, ≥ Size
template <int D, int Size, int Capacity = Size, class T, class S>
SHEAFNN_INLINE void channel_products(const T* a, const T* b, const T* p, const T* q, S* out, bool accumulate) {
  T product[Size];
  if constexpr (Size == D * D && D > 1) {
    SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) product[j * D + i] = a[i] * b[j] + p[i] * q[j];
    }
  } else {
    SHEAFNN_UNROLL for (int i = 0; i < Size; ++i) product[i] = a[i] * b[i] + p[i] * q[i];
    SHEAFNN_UNROLL for (int i = Size; i < D; ++i) product[0] += a[i] * b[i] + p[i] * q[i];
  }
  lane_sums<Size, Capacity>(product, out, accumulate);
}

/// The same for one product.
template <int D, int Size, class T, class S>
SHEAFNN_INLINE void channel_products(const T* a, const T* b, S* out, bool accumulate) {
  T product[Size];
  if constexpr (Size == D * D && D > 1) {
    SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) product[j * D + i] = a[i] * b[j];
    }
  } else {
    SHEAFNN_UNROLL for (int i = 0; i < Size; ++i) product[i] = a[i] * b[i];
    SHEAFNN_UNROLL for (int i = Size; i < D; ++i) product[0] += a[i] * b[i];
  }
  lane_sums<Size>(product, out, accumulate);
}

/// Adds the derivative of ⟨R̄, L W⟩ with respect to L_uv, R̄_u W_vᵀ + W_u R̄_vᵀ, to gradient.off_diagonal_bar.
///
/// \param w, r_bar  n × d' × f
template <class Family, class S>
void add_off_diagonal_gradient(Execution execution, const Graph& graph, const DiffusionShape<S>& shape, const S* w,
                               const S* r_bar, SheafBlocksGradient<Family, S>& gradient) {
  constexpr int D = Family::stalk_dimension;
  constexpr int size = BlockSizes<Family>::transport;
  const Index channels = shape.channels, row = shape.row();
  parallel_for(execution, graph.edge_count(), 32, [&](Index begin, Index end) {
    for_tiles<S>(0, channels, [&]<class T>(Index c) {
      const Edge* edges = graph.edges().data();
      const Index last_edge = graph.edge_count() - 1;
      const S *w_c = w + c, *r_c = r_bar + c;
      S* block = gradient.off_diagonal_bar.data();
      for (Index e = begin; e < end; ++e) {
        const Index u = edges[e].u * row, v = edges[e].v * row, ahead = edges[std::min(e + 6, last_edge)].v * row;
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
          SHEAFNN_PREFETCH(w_c + ahead + i * channels);
          SHEAFNN_PREFETCH(r_c + ahead + i * channels);
        }
        T w_u[D], w_v[D], r_u[D], r_v[D];
        load_coordinates<D>(w_c + u, channels, w_u);
        load_coordinates<D>(w_c + v, channels, w_v);
        load_coordinates<D>(r_c + u, channels, r_u);
        load_coordinates<D>(r_c + v, channels, r_v);
        channel_products<D, size>(r_u, w_v, w_u, r_v, block + e * size, true);
      }
    });
  });
}

/// What the backward pass of W = S Y, R = L W reads, n × d' × f each.
template <class S>
struct DiffusionSteps {
  const S *y, *w, *r_bar;
};

/// The derivative of ⟨R̄, L S Y⟩ in one walk over nodes: W̄ = L R̄ and Ȳ = S W̄, and the gradients of L_uv
/// (R̄_u W_vᵀ + W_u R̄_vᵀ), of D_u (R̄_u W_uᵀ) and of S_u (W̄_u Y_uᵀ, added to that of Z = S R).
///
/// \param from, to    the nodes from `from` to `to` − 1, and the edges from them to larger ones
/// \param y_bar       n × d' × f, overwritten
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
    for_tiles<S>(0, channels, [&]<class T>(Index c) {
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
        load_coordinates<D>(bar_c + u * row, channels, r_bar);
        load_coordinates<D>(w_c + u * row, channels, w);
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) w_bar[i] = T(S(0));
        detail::add_block_times<D, Sizes::gram, false, false, T>(sheaf.degree_block(u), r_bar, w_bar);
        Index arc = first;
        for (; arc < last && target[arc] < u; ++arc) {
          const Index ahead = target[std::min(arc + 6, last_arc)] * row;
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) SHEAFNN_PREFETCH(bar_c + ahead + i * channels);
          detail::add_block_times<D, Sizes::transport, true, true, T>(sheaf.transport_block(graph.edge_of(arc)),
                                                                      bar_c + target[arc] * row, channels, w_bar);
        }
        for (; arc < last; ++arc) {
          const Index e = graph.edge_of(arc);
          const Index ahead = target[std::min(arc + 6, last_arc)] * row, v = target[arc] * row;
          const Index due = edges[std::min(e + 4, last_edge)].v * row;
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
            SHEAFNN_PREFETCH(bar_c + ahead + i * channels);
            if (learned) SHEAFNN_PREFETCH(w_c + due + i * channels);
          }
          T other_bar[D], other[D];
          load_coordinates<D>(bar_c + v, channels, other_bar);
          detail::add_block_times<D, Sizes::transport, false, true, T>(sheaf.transport_block(e), other_bar, w_bar);
          if constexpr (learned) {
            load_coordinates<D>(w_c + v, channels, other);
            channel_products<D, Sizes::transport>(r_bar, other, w, other_bar, edge_bar + e * Sizes::transport,
                                                  add);
          }
        }
        detail::scale_block<Family>(sheaf.scale(u), w_bar, out);
        if constexpr (learned) {
          T y[D];
          load_coordinates<D>(steps.y + u * row + c, channels, y);
          channel_products<D, Sizes::gram>(w_bar, y, gradient.scale_bar.data() + u * Sizes::gram, true);
          channel_products<D, Sizes::gram>(r_bar, w, gradient.degree_bar.data() + u * Sizes::gram, add);
        }
        S* y_bar_u = y_bar + u * row + c;
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) store(y_bar_u + i * channels, out[i]);
        for (Index i = D; i < shape.coordinates; ++i) {
          const auto value = filtered<T>(shape, bar_c, target, first, last, u, i);
          store(y_bar_u + i * channels, T(shape.inverse_root[u]) * value);
        }
      }
    });
  });
}

}  // namespace detail

}  // namespace sheafnn
