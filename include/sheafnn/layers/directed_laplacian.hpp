/// \file
/// DirectedLaplacian: the Laplacian of a sheaf with a phase for the direction of every arc, on complex features,
///
///     (Δ X)_u = S_u (D_u S_u X_u − Σ over arcs a = u → v of e^{2πi q θ_a} Q_uv S_v X_v)
///
/// with θ_a = direction_of(graph, a), as a real operator on n × d' × 2f numbers: every stalk coordinate has f real parts, then f imaginary
/// parts. Blocks D_u, Q_uv and scalings S_u are the sheaf's, which are real; q = 0 is its own Laplacian on both parts. Δ is Hermitian with
/// eigenvalues in [0, 2]. Source: math: "Directed sheaves" (3.52).
///
/// Unchecked: tiles of the first f numbers of a coordinate, rows of as many numbers as features of the shape have, numbers of nodes.
#pragma once

#include <cmath>
#include <numbers>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"

namespace sheafnn::layers {

/// Works on tiles T of channels, with the real part and the imaginary part of a node's D coordinates side by side.
template <RestrictionMapFamily Family, class S>
class DirectedLaplacian {
  using Sizes = BlockSizes<Family>;
  static constexpr int D = Family::stalk_dimension;
  static constexpr bool learned = is_learned<Family>;

 public:
  /// `graph` and `shape` must outlive it. \param charge  q
  DirectedLaplacian(const Graph& graph, const DiffusionShape<S>& shape, double charge)
      : graph_(&graph), half_(shape.channels / 2), row_(shape.row()), phase_(2 * graph.arc_count()) {
    for (Index a = 0; a < graph.arc_count(); ++a) {
      const double angle = 2 * std::numbers::pi * charge * direction_of(graph, a);
      phase_[2 * a] = static_cast<S>(std::cos(angle));
      phase_[2 * a + 1] = static_cast<S>(std::sin(angle));
    }
  }

  /// Both parts of a node's coordinates, whose first number is at x.
  template <class T, class Tile>
  SHEAFNN_INLINE void load(const Tile& c, const S* x, T (&out)[2][D]) const {
    detail::load_coordinates<D>(c, x, 2 * half_, out[0]);
    detail::load_coordinates<D>(c, x + half_, 2 * half_, out[1]);
  }
  template <class T, class Tile>
  SHEAFNN_INLINE void store(const Tile& c, const T (&in)[2][D], S* x) const {
    detail::store_coordinates<D>(c, in[0], 2 * half_, x);
    detail::store_coordinates<D>(c, in[1], 2 * half_, x + half_);
  }
  /// y = S_u x.
  template <class T>
  SHEAFNN_INLINE void scale(const SheafBlocks<Family, S>& sheaf, Index u, const T (&x)[2][D], T (&y)[2][D]) const {
    for (int part = 0; part < 2; ++part) kernels::block_times<D, Sizes::gram>(sheaf.scale(u), x[part], y[part]);
  }
  /// r = D_u w_u − Σ over arcs u → v of e^{2πi q θ} Q_uv w_v.
  template <class T, class Tile>
  SHEAFNN_INLINE void apply(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index u, const S* w,
                            T (&r)[2][D]) const {
    start(c, sheaf, u, w, r);
    for_arcs(u, [&]<bool Before>(Index a) SHEAFNN_INLINE_LAMBDA {
      T other[2][D];
      load_turned(c, a, w, other);
      subtract<Before>(sheaf, a, other, r);
    });
  }
  /// w̄ = D_u r̄_u − Σ e^{2πi q θ} Q_uv r̄_v, since L is Hermitian, and adds or writes the derivatives of D_u and of Q of the edges to larger
  /// nodes. With `add` they are added.
  template <class T, class Tile>
  SHEAFNN_INLINE void apply_backward(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index u, const S* w,
                                     const S* r_bar, SheafBlocksGradient<Family, S>& gradient, bool add,
                                     T (&w_bar)[2][D]) const {
    T own[2][D], own_bar[2][D];
    load(c, w + u * row_ + c, own);
    load(c, r_bar + u * row_ + c, own_bar);
    start(c, sheaf, u, r_bar, w_bar);
    for_arcs(u, [&]<bool Before>(Index a) SHEAFNN_INLINE_LAMBDA {
      T other_bar[2][D];
      load_turned(c, a, r_bar, other_bar);
      subtract<Before>(sheaf, a, other_bar, w_bar);
      if constexpr (learned && !Before) {
        T other[2][D];
        load_turned(c, a, w, other);
        S* const edge_bar = gradient.off_diagonal_bar.data() + graph_->edge_of(a) * Sizes::transport;
        for (int part = 0; part < 2; ++part) {
          kernels::channel_products<D, Sizes::transport>(own_bar[part], other[part], own[part], other_bar[part],
                                                         edge_bar, add || part > 0);
        }
      }
    });
    add_products(own_bar, own, gradient.degree_bar, u, add);
  }
  /// block_u (+)= Σ over parts and channels of a bᵀ, for blocks as large as Gram matrices.
  template <class T>
  SHEAFNN_INLINE void add_products(const T (&a)[2][D], const T (&b)[2][D], Buffer<S>& blocks, Index u,
                                   bool add) const {
    if constexpr (learned) {
      for (int part = 0; part < 2; ++part) {
        kernels::channel_products<D, Sizes::gram>(a[part], b[part], blocks.data() + u * Sizes::gram,
                                                  add || part > 0);
      }
    }
  }

 private:
  /// Calls visit.template operator()<Before>(arc) for the arcs of node u: see detail::for_neighbours().
  template <class Visit>
  SHEAFNN_INLINE void for_arcs(Index u, const Visit& visit) const {
    detail::for_neighbours<true>(graph_->targets().data(), graph_->first_arc(u), graph_->first_arc(u + 1), u, visit);
  }
  /// r = D_u w_u.
  template <class T, class Tile>
  SHEAFNN_INLINE void start(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index u, const S* w,
                            T (&r)[2][D]) const {
    T own[2][D];
    load(c, w + u * row_ + c, own);
    for (int part = 0; part < 2; ++part) {
      kernels::block_times<D, Sizes::gram>(sheaf.degree_block(u), own[part], r[part]);
    }
  }
  /// e^{2πi q θ} times the coordinates of an arc's target.
  template <class T, class Tile>
  SHEAFNN_INLINE void load_turned(const Tile& c, Index arc, const S* x, T (&out)[2][D]) const {
    load(c, x + graph_->target(arc) * row_ + c, out);
    const T cosine = T(phase_[2 * arc]), sine = T(phase_[2 * arc + 1]);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      const T real = out[0][i], imaginary = out[1][i];
      out[0][i] = cosine * real - sine * imaginary;
      out[1][i] = sine * real + cosine * imaginary;
    }
  }
  /// sum −= Q x.
  template <bool Before, class T>
  SHEAFNN_INLINE void subtract(const SheafBlocks<Family, S>& sheaf, Index arc, const T (&x)[2][D],
                               T (&sum)[2][D]) const {
    for (int part = 0; part < 2; ++part) {
      kernels::add_block_times<D, Sizes::transport, Before, true>(sheaf.transport_block(graph_->edge_of(arc)),
                                                                  x[part], sum[part]);
    }
  }

  const Graph* graph_;
  Index half_, row_;  ///< f, and numbers of a node
  Buffer<S> phase_;   ///< of every arc: cosine and sine of 2π q θ
};

}  // namespace sheafnn::layers
