/// \file
/// Sheaf diffusion of dense features, Z = Δ Y in three steps, W = S Y, R = L W, Z = S R, and the derivative of ⟨Z̄, Δ Y⟩
/// with respect to the blocks of L and S (docs/math.md, "Diffusion in three steps").
///
/// Features are n × d' × f, channels innermost. The first D stalk coordinates are mixed by the learned blocks; behind
/// them stand the fixed filters (math: "Fixed filters"): scalar operators with diagonal deg and off-diagonal +1 (low
/// pass) or −1 (high pass), normalised by (deg + 1)^{-1/2} on both sides.
#pragma once

#include <algorithm>
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

/// sum[i] ±= (block · x)_i, or with the transposed block, for the D learned coordinates. `Size` tells the block's kind (1,
/// D or D² numbers); x points at channel c of the first coordinate, T is the tile of channels.
template <int D, int Size, bool Transposed, bool Subtract, class T, class S>
SHEAFNN_INLINE void add_block_times(const S* block, const S* x, Index channels, T* sum) {
  SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
    const T value = load<T>(x + j * channels);
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

}  // namespace detail

/// W = S Y: features scaled per node, as diffuse() takes them.
///
/// \param y, w  n × d' × f
template <class Family, class S>
void scale_features(int threads, const Graph& graph, const DiffusionShape<S>& shape,
                    const NetworkSheaf<Family, S>& sheaf, const S* y, S* w) {
  constexpr int D = Family::stalk_dimension;
  const Index channels = shape.channels, row = shape.row();
  parallel_for(threads, graph.node_count(), 128, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      for_tiles<S>(0, channels, [&]<class T>(Index c) {
        T in[D], out[D];
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) in[i] = load<T>(y + u * row + i * channels + c);
        detail::scale_block<Family>(sheaf.scale(u), in, out);
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) store(w + u * row + i * channels + c, out[i]);
        for (Index i = D; i < shape.coordinates; ++i) {
          const Index place = u * row + i * channels + c;
          store(w + place, T(shape.inverse_root[u]) * load<T>(y + place));
        }
      });
    }
  });
}

/// R = L W and Z = S R (so Z = Δ Y for W = S Y), handed over while they are in registers.
///
/// \param w    n × d' × f, from scale_features()
/// \param use  called as use.template operator()<T, N>(Index u, Index i, Index c, const T* r, const T* z) for every
///             node u and tile T of channels from c on: once with the N = D learned coordinates (i = 0), and once with
///             N = 1 for each fixed filter i
template <class Family, class S, class Use>
void diffuse(int threads, const Graph& graph, const DiffusionShape<S>& shape, const NetworkSheaf<Family, S>& sheaf,
             const S* w, const Use& use) {
  constexpr int D = Family::stalk_dimension;
  using Sizes = BlockSizes<Family>;
  const Index channels = shape.channels, row = shape.row();
  parallel_for(threads, graph.node_count(), 64, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      const Index first = graph.first_arc(u), last = graph.first_arc(u + 1);
      for_tiles<S>(0, channels, [&]<class T>(Index c) {
        T r[D], z[D];
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) r[i] = T(S(0));
        detail::add_block_times<D, Sizes::gram, false, false, T>(sheaf.degree_block(u), w + u * row + c, channels,
                                                                 r);
        // Neighbours are sorted: L_uv = −Q_eᵀ for those before u, −Q_e for those behind it. Their rows are scattered; one
        // that is soon due is fetched while another is multiplied.
        Index arc = first;
        const auto prefetch = [&] {
          const S* ahead = w + graph.target(std::min(arc + 6, graph.arc_count() - 1)) * row + c;
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) SHEAFNN_PREFETCH(ahead + i * channels);
        };
        for (; arc < last && graph.target(arc) < u; ++arc) {
          prefetch();
          detail::add_block_times<D, Sizes::transport, true, true, T>(sheaf.transport_block(graph.edge_of(arc)),
                                                                      w + graph.target(arc) * row + c, channels,
                                                                      r);
        }
        for (; arc < last; ++arc) {
          prefetch();
          detail::add_block_times<D, Sizes::transport, false, true, T>(sheaf.transport_block(graph.edge_of(arc)),
                                                                       w + graph.target(arc) * row + c, channels,
                                                                       r);
        }
        detail::scale_block<Family>(sheaf.scale(u), r, z);
        use.template operator()<T, D>(u, Index{0}, c, r, z);
        for (Index i = D; i < shape.coordinates; ++i) {
          T neighbours = T(S(0));
          for (Index a = first; a < last; ++a) {
            neighbours += load<T>(w + graph.target(a) * row + i * channels + c);
          }
          const T value = T(static_cast<S>(graph.degree(u))) * load<T>(w + u * row + i * channels + c) +
                          T(shape.filter_sign[i - D]) * neighbours;
          const T scaled = T(shape.inverse_root[u]) * value;
          use.template operator()<T, 1>(u, i, c, &value, &scaled);
        }
      });
    }
  });
}

/// Products over a tile of channels: to the block `out` of `Size` numbers (1, D or D²) adds Σ_c (a bᵀ + p qᵀ).
template <int D, int Size, class T, class S>
SHEAFNN_INLINE void add_channel_products(const T* a, const T* b, const T* p, const T* q, S* out) {
  if constexpr (Size == D * D && D > 1) {
    SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[j * D + i] += reduce_add(a[i] * b[j] + p[i] * q[j]);
    }
  } else if constexpr (Size == D) {
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[i] += reduce_add(a[i] * b[i] + p[i] * q[i]);
  } else {
    T sum = a[0] * b[0] + p[0] * q[0];
    SHEAFNN_UNROLL for (int i = 1; i < D; ++i) sum += a[i] * b[i] + p[i] * q[i];
    out[0] += reduce_add(sum);
  }
}
/// The same for one product.
template <int D, int Size, class T, class S>
SHEAFNN_INLINE void add_channel_products(const T* a, const T* b, S* out) {
  if constexpr (Size == D * D && D > 1) {
    SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[j * D + i] += reduce_add(a[i] * b[j]);
    }
  } else if constexpr (Size == D) {
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[i] += reduce_add(a[i] * b[i]);
  } else {
    T sum = a[0] * b[0];
    SHEAFNN_UNROLL for (int i = 1; i < D; ++i) sum += a[i] * b[i];
    out[0] += reduce_add(sum);
  }
}
/// The first D coordinates of a node at a tile of channels; `x` points at channel c of the first one.
template <int D, class T, class S>
SHEAFNN_INLINE void load_coordinates(const S* x, Index channels, T* out) {
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[i] = load<T>(x + i * channels);
}

/// Adds the derivative of ⟨R̄, L W⟩ with respect to L_uv, R̄_u W_vᵀ + W_u R̄_vᵀ, to gradient.off_diagonal_bar.
///
/// \param w, r_bar  n × d' × f
template <class Family, class S>
void add_off_diagonal_gradient(int threads, const Graph& graph, const DiffusionShape<S>& shape, const S* w,
                               const S* r_bar, NetworkSheafGradient<Family, S>& gradient) {
  constexpr int D = Family::stalk_dimension;
  constexpr int size = BlockSizes<Family>::transport;
  const Index channels = shape.channels, row = shape.row();
  parallel_for(threads, graph.edge_count(), 128, [&](Index begin, Index end) {
    for (Index e = begin; e < end; ++e) {
      const Index u = graph.edge(e).u * row, v = graph.edge(e).v * row;
      const Index ahead = graph.edge(std::min(e + 6, graph.edge_count() - 1)).v * row;
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
        SHEAFNN_PREFETCH(w + ahead + i * channels);
        SHEAFNN_PREFETCH(r_bar + ahead + i * channels);
      }
      for_tiles<S>(0, channels, [&]<class T>(Index c) {
        T w_u[D], w_v[D], r_u[D], r_v[D];
        load_coordinates<D>(w + u + c, channels, w_u);
        load_coordinates<D>(w + v + c, channels, w_v);
        load_coordinates<D>(r_bar + u + c, channels, r_u);
        load_coordinates<D>(r_bar + v + c, channels, r_v);
        add_channel_products<D, size>(r_u, w_v, w_u, r_v, gradient.off_diagonal_bar.data() + e * size);
      });
    }
  });
}

}  // namespace sheafnn
