/// \file
/// The two operators of a cooperative sheaf, Y ↦ Δ_inᵀ Δ_out Y, as loops over nodes, with their backward passes.
///
///     (Δ_out y)_u  = d_u y_u − a_u T_uᵀ Σ_{v: u→v} a_v S_v y_v,     d_u = a_u² deg⁺_u τ_u²
///     (Δ_inᵀ z)_u  = e_u z_u − b_u T_uᵀ Σ_{v: u→v} b_v S_v z_v,     e_u = b_u² deg⁺_u σ_u²
///
/// or e_u = b_u² deg⁻_u σ_u². Each is a product at the nodes, a sum over neighbours without weights, and a product at
/// the nodes. Features are n × D × f, channels innermost.
/// Source: math: "Cooperative sheaves" (4.2), "Backward pass of a cooperative layer" (4.8).
#pragma once

#include <algorithm>

#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/kernels/node_maps.hpp"
#include "sheafnn/layers/node_maps.hpp"

namespace sheafnn::detail {

/// K sums over the channels of a node, gathered tile by tile.
template <int K, class S>
class ChannelSums {
 public:
  using P = Pack<S, row_lanes<S>>;
  SHEAFNN_INLINE ChannelSums() {
    SHEAFNN_UNROLL for (int k = 0; k < K; ++k) wide_[k] = P(S(0));
    SHEAFNN_UNROLL for (int k = 0; k < K; ++k) narrow_[k] = S(0);
  }
  template <class T>
  SHEAFNN_INLINE void add(int k, const T& value) {
    if constexpr (std::is_same_v<T, P>) {
      wide_[k] += value;
    } else {
      narrow_[k] += reduce_add(value);
    }
  }
  SHEAFNN_INLINE void store(S* out) const {
    lane_sums<K>(wide_, out, false);
    SHEAFNN_UNROLL for (int k = 0; k < K; ++k) out[k] += narrow_[k];
  }

 private:
  P wide_[K];
  S narrow_[K];
};

/// out = Σ over the neighbours of their rows, at tile c of channels; `x` points at the tile's values of node 0. The rows
/// of arcs a few places on are asked for: which ones they are is known long before they are needed.
template <int D, class T, bool Whole, class S>
SHEAFNN_INLINE void sum_neighbours(const TileAt<T, Whole>& c, const NeighbourLists& lists, Index nodes, Index u,
                                   const S* x, Index channels, T* out) {
  constexpr Index ahead = 24;
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[i] = T(S(0));
  const Index end = lists.offset[u + 1], last = lists.offset[nodes] - 1;
  for (Index k = lists.offset[u]; k < end; ++k) {
    const S* coming = x + static_cast<Index>(lists.node[std::min(k + ahead, last)]) * D * channels;
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) SHEAFNN_PREFETCH(coming + i * channels);
    const S* row = x + static_cast<Index>(lists.node[k]) * D * channels;
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[i] += c.load(row + i * channels);
  }
}

/// Sends through S: rows [first, first + nodes) of `sent` are factor(op) S_u x_u, x the rows of these nodes.
template <int D, class S>
SHEAFNN_NOINLINE void send(const NodeMaps<D, S>& maps, int op, Index first, Index nodes, Index channels,
                           const S* x, S* sent) {
  const Index row = D * channels;
  for (Index u = first; u < first + nodes; ++u, x += row) {
    const S* map = maps.map(MapSide::in, u);
    const S factor = maps.factor(op, u);
    for_tiles<S>(0, channels, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
      T in[D], out[D];
      load_coordinates<D>(c, x + c, channels, in);
      kernels::send<D>(map, factor, in, out);
      store_coordinates<D>(c, out, channels, sent + u * row + c);
    });
  }
}

/// What node u makes of x, its own, and of the sum that it has received: diagonal x − factor Tᵀ sum.
template <int D, class S>
struct Receiver {
  const S* map;
  S factor, diagonal;

  SHEAFNN_INLINE Receiver(const NodeMaps<D, S>& maps, int op, Index u)
      : map(maps.map(MapSide::out, u)), factor(maps.factor(op, u)), diagonal(maps.diagonal(op, u)) {}
  template <class T>
  SHEAFNN_INLINE void operator()(const T* x, const T* sum, T* y) const {
    kernels::receive<D>(map, factor, diagonal, x, sum, y);
  }
};

/// Receives through T at node u: for tiles c of channels use.template operator()<T>(c, sum, y), y the operator's value
/// and sum what the neighbours have sent.
template <int D, class S, class Use>
SHEAFNN_INLINE void receive(const NodeMaps<D, S>& maps, int op, const NeighbourLists& lists, Index u,
                            Index channels, const S* x, const S* sent, const Use& use) {
  const Receiver<D, S> receiver(maps, op, u);
  const Index nodes = maps.node_count();
  for_tiles<S>(0, channels, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
    T sum[D], own[D], y[D];
    sum_neighbours<D>(c, lists, nodes, u, sent + c, channels, sum);
    load_coordinates<D>(c, x + u * D * channels + c, channels, own);
    receiver(own, sum, y);
    use.template operator()<T>(c, sum, y);
  });
}

/// The sums of NodeMapsGradient at one node: Σ m_ij − m_ji and Σ tr m over the channels, m = x yᵀ, and one more.
template <int D, class S>
class MapSums {
 public:
  static constexpr int size = NodeMapsGradient<D, S>::size;
  template <class T>
  SHEAFNN_INLINE void add(const T* x, const T* y) {
    kernels::for_map_products<D>(x, y, [&](int k, const T& number) SHEAFNN_INLINE_LAMBDA { sums_.add(k, number); });
  }
  template <class T>
  SHEAFNN_INLINE void add_extra(const T& value) {
    sums_.add(size, value);
  }
  /// \returns the extra sum
  SHEAFNN_INLINE S store(S* out) const {
    S all[(size + 4) / 4 * 4];
    sums_.store(all);
    std::copy_n(all, size, out);
    return all[size];
  }

 private:
  ChannelSums<size + 1, S> sums_;
};

/// Backwards through receive() at node u: ȳ ↦ r = −factor T ȳ, in `returned`, and the derivative in T, G with
/// G Tᵀ = s rᵀ for the sum s that the node received. ȳ is bar.template operator()<T>(c, ȳ) for tiles of channels.
template <int D, class S, class Bar>
SHEAFNN_INLINE void receive_backward(const NodeMaps<D, S>& maps, int op, Index u, Index channels, const S* sums,
                                     S* returned, NodeMapsGradient<D, S>& gradient, const Bar& bar) {
  const S* map = maps.map(MapSide::out, u);
  const S factor = maps.factor(op, u);
  const Index at = u * D * channels;
  MapSums<D, S> total;
  for_tiles<S>(0, channels, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
    T y_bar[D], sum[D], back[D];
    bar.template operator()<T>(c, y_bar);
    load_coordinates<D>(c, sums + at + c, channels, sum);
    kernels::give_back<D>(map, factor, y_bar, back);
    store_coordinates<D>(c, back, channels, returned + at + c);
    total.add(sum, back);
  });
  total.store(gradient.map[op][0].data() + u * MapSums<D, S>::size);
}

/// Backwards through the operator at node u: x̄ = diagonal ȳ + w, w = factor Sᵀ t, t the sum of what was returned over
/// the arcs that enter u. Also the derivatives in the diagonal and in S, G with Sᵀ G = w xᵀ.
/// own_of.template operator()<T>(c, x) gives x, and use.template operator()<T>(c, x̄) takes x̄, for tiles of channels.
template <int D, class S, class Own, class Use>
SHEAFNN_INLINE void send_backward(const NodeMaps<D, S>& maps, int op, const NeighbourLists& entering, Index u,
                                  Index channels, const Own& own_of, const S* y_bar, const S* returned,
                                  NodeMapsGradient<D, S>& gradient, const Use& use) {
  const S* map = maps.map(MapSide::in, u);
  const S factor = maps.factor(op, u), diagonal = maps.diagonal(op, u);
  const Index nodes = maps.node_count();
  const Index at = u * D * channels;
  MapSums<D, S> total;
  for_tiles<S>(0, channels, [&]<class T>(auto c) SHEAFNN_INLINE_LAMBDA {
    T t[D], own[D], bar[D], w[D];
    sum_neighbours<D>(c, entering, nodes, u, returned + c, channels, t);
    own_of.template operator()<T>(c, own);
    load_coordinates<D>(c, y_bar + at + c, channels, bar);
    kernels::take_back<D>(map, factor, t, w);
    total.add(w, own);
    T product = own[0] * bar[0];
    SHEAFNN_UNROLL for (int i = 1; i < D; ++i) product += own[i] * bar[i];
    total.add_extra(product);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) w[i] += T(diagonal) * bar[i];
    use.template operator()<T>(c, w);
  });
  gradient.diagonal[op][u] = total.store(gradient.map[op][1].data() + u * MapSums<D, S>::size);
}

}  // namespace sheafnn::detail
