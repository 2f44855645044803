/// \file
/// Sheaf diffusion of dense features, Z = Δ Y, and the derivative of ⟨Z̄, Δ Y⟩ with respect to Δ's blocks.
///
/// Features are n × d' × f, channels innermost. The first D stalk coordinates are mixed by the learned blocks; behind
/// them stand the fixed filters (math: "Fixed filters"): scalar operators with diagonal deg and off-diagonal +1 (low
/// pass) or −1 (high pass), normalised by (deg + 1)^{-1/2} on both sides.
#pragma once

#include <cmath>

#include "sheafnn/bsnn/network_sheaf.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace sheafnn {

/// Shape of the features and the fixed filters of a graph.
template <class S>
struct DiffusionShape {
  DiffusionShape() = default;
  DiffusionShape(const Graph& graph, int stalk, bool lp, bool hp, Index channel_count)
      : coordinates(stalk + (lp ? 1 : 0) + (hp ? 1 : 0)),
        channels(channel_count),
        inverse_root(graph.node_count()) {
    int next = 0;
    if (lp) filter_sign[next++] = S(1);
    if (hp) filter_sign[next++] = S(-1);
    for (Index u = 0; u < graph.node_count(); ++u) {
      inverse_root[u] = S(1) / std::sqrt(static_cast<S>(graph.degree(u)) + S(1));
    }
  }
  [[nodiscard]] Index row() const noexcept { return coordinates * channels; }

  Index coordinates = 0;            ///< d' = D + number of fixed filters
  Index channels = 0;               ///< f
  S filter_sign[2] = {S(0), S(0)};  ///< off-diagonal sign of the first and second fixed filter
  Buffer<S> inverse_root;           ///< (deg u + 1)^{-1/2}
};

namespace detail {

/// sum[i] += (block · y)_i for the D learned coordinates; y points at channel c of the neighbour's first coordinate.
template <class Family, class T, class S>
SHEAFNN_INLINE void add_block_times(const S* block, const S* y, Index channels, T* sum) {
  constexpr int D = Family::stalk_dimension;
  if constexpr (BlockSizes<Family>::transport == D * D && D > 1) {
    SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
      const T value = load<T>(y + j * channels);
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] += T(block[j * D + i]) * value;
    }
  } else {
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      sum[i] += T(block[BlockSizes<Family>::transport == 1 ? 0 : i]) * load<T>(y + i * channels);
    }
  }
}
/// The same for a node's diagonal block, which is of the Gram kind.
template <class Family, class T, class S>
SHEAFNN_INLINE void add_diagonal_times(const S* block, const S* y, Index channels, T* sum) {
  constexpr int D = Family::stalk_dimension;
  constexpr int size = BlockSizes<Family>::gram;
  if constexpr (size == D * D && D > 1) {
    SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
      const T value = load<T>(y + j * channels);
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] += T(block[j * D + i]) * value;
    }
  } else {
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] += T(block[size == 1 ? 0 : i]) * load<T>(y + i * channels);
  }
}

}  // namespace detail

/// Calls use(u, i, c, value) with value = (Δ Y)[u, i, c …] of the pack or scalar type T for every node u, stalk
/// coordinate i and tile of channels from c on; so whatever follows the diffusion is done while it is in registers.
///
/// \param y    n × d' × f
/// \param use  called as use.template operator()<T>(Index u, Index i, Index c, T value)
template <class Family, class S, class Use>
void diffuse(int threads, const Graph& graph, const DiffusionShape<S>& shape, const NetworkSheaf<Family, S>& sheaf,
             const S* y, const Use& use) {
  constexpr int D = Family::stalk_dimension;
  const Index channels = shape.channels, row = shape.row();
  parallel_for(threads, graph.node_count(), 64, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      for_tiles<S>(0, channels, [&]<class T>(Index c) {
        T sum[D];
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] = T(S(0));
        detail::add_diagonal_times<Family, T>(sheaf.diagonal(u), y + u * row + c, channels, sum);
        const Index last = graph.first_arc(u + 1);
        for (Index arc = graph.first_arc(u); arc < last; ++arc) {
          // Targets are scattered; the row of an arc that is soon due is fetched while this one is multiplied.
          const S* ahead = y + graph.target(std::min(arc + 6, graph.arc_count() - 1)) * row + c;
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) SHEAFNN_PREFETCH(ahead + i * channels);
          detail::add_block_times<Family, T>(sheaf.transport_block(arc), y + graph.target(arc) * row + c, channels,
                                             sum);
        }
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) use.template operator()<T>(u, i, c, sum[i]);
        for (Index i = D; i < shape.coordinates; ++i) {
          T neighbours = T(S(0));
          for (Index arc = graph.first_arc(u); arc < graph.first_arc(u + 1); ++arc) {
            const Index v = graph.target(arc);
            neighbours += T(shape.inverse_root[v]) * load<T>(y + v * row + i * channels + c);
          }
          const S own = shape.inverse_root[u];
          const T value =
              T(own * own * static_cast<S>(graph.degree(u))) * load<T>(y + u * row + i * channels + c) +
              T(shape.filter_sign[i - D] * own) * neighbours;
          use.template operator()<T>(u, i, c, value);
        }
      });
    }
  });
}

namespace detail {

/// inner[j·D + i] = Σ_c (a[i, c] b[j, c] + p[i, c] q[j, c]) for the D learned coordinates (inner[i], i = j, when Full
/// is false).
template <int D, bool Full, class S>
SHEAFNN_INLINE void channel_products(const S* a, const S* b, const S* p, const S* q, Index channels, S* inner) {
  constexpr int size = Full ? D * D : D;
  for (int k = 0; k < size; ++k) inner[k] = S(0);
  for_tiles<S>(0, channels, [&]<class T>(Index c) {
    T left[D], other[D];
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      left[i] = load<T>(a + i * channels + c);
      other[i] = load<T>(p + i * channels + c);
    }
    SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
      const T right = load<T>(b + j * channels + c), opposite = load<T>(q + j * channels + c);
      if constexpr (Full) {
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
          inner[j * D + i] += reduce_add(left[i] * right + other[i] * opposite);
        }
      } else {
        inner[j] += reduce_add(left[j] * right + other[j] * opposite);
      }
    }
  });
}

/// Adds a block given in full (or by its diagonal) to a stored one of `Size` numbers.
template <int D, int Size, class S>
SHEAFNN_INLINE void add_as_kind(const S* block, S* out) {
  if constexpr (Size == D * D && D > 1) {
    for (int k = 0; k < D * D; ++k) out[k] += block[k];
  } else if constexpr (Size == D) {
    for (int k = 0; k < D; ++k) out[k] += block[k];
  } else {
    S sum = block[0];
    for (int k = 1; k < D; ++k) sum += block[k];
    out[0] += sum;
  }
}

}  // namespace detail

/// Adds the derivative of ⟨Z̄, Δ Y⟩ to gradient.transport_bar (per edge u < v: T̄ = Z̄_u Y_vᵀ + Y_u Z̄_vᵀ) and to
/// gradient.diagonal_bar (per node: ½ (Z̄_u Y_uᵀ + Y_u Z̄_uᵀ)), each reduced to the family's kind of block.
template <class Family, class S>
void add_block_gradient(int threads, const Graph& graph, const DiffusionShape<S>& shape, const S* y,
                        const S* z_bar, NetworkSheafGradient<Family, S>& gradient) {
  constexpr int D = Family::stalk_dimension;
  using Sizes = BlockSizes<Family>;
  constexpr bool full_transport = Sizes::transport == D * D && D > 1;
  constexpr bool full_diagonal = Sizes::gram == D * D && D > 1;
  const Index channels = shape.channels, row = shape.row();
  parallel_for(threads, graph.edge_count(), 128, [&](Index begin, Index end) {
    for (Index e = begin; e < end; ++e) {
      const Edge edge = graph.edge(e);
      S block[full_transport ? D * D : D];
      detail::channel_products<D, full_transport>(z_bar + edge.u * row, y + edge.v * row, y + edge.u * row,
                                                  z_bar + edge.v * row, channels, block);
      detail::add_as_kind<D, Sizes::transport>(block, gradient.transport_bar.data() + e * Sizes::transport);
    }
  });
  parallel_for(threads, graph.node_count(), 128, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      S block[full_diagonal ? D * D : D];
      const S* own = y + u * row;
      detail::channel_products<D, full_diagonal>(z_bar + u * row, own, own, z_bar + u * row, channels, block);
      for (S& value : block) value *= S(0.5);
      detail::add_as_kind<D, Sizes::gram>(block, gradient.diagonal_bar.data() + u * Sizes::gram);
    }
  });
}

}  // namespace sheafnn
