/// \file
/// DirectedLaplacian: the Laplacian of a sheaf with a phase for the direction of every arc, on complex features,
///
///     (Δ X)_u = S_u (D_u S_u X_u − Σ over arcs a = u → v of e^{iφ_a} Q_uv S_v X_v)
///
/// with the phases of DirectedPhases, as a real operator on n × d' × 2f values: every stalk coordinate has f real
/// parts, then f imaginary parts. Blocks D_u, Q_uv and scalings S_u are the sheaf's, which are real; without phases
/// it is the sheaf's own Laplacian on both parts. Δ is Hermitian with eigenvalues in [0, 2]. Source: math: "Directed
/// sheaves" (3.52).
///
/// Unchecked: tiles of the first f values of a coordinate, rows of as many values as features of the shape have,
/// indices of nodes.
#pragma once

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/complex.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/directed_phases.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"

namespace sheafnn::layers {

/// Works on tiles T of channels, with the real part and the imaginary part of a node's D coordinates side by side.
template <RestrictionMapFamily Family, class S>
class DirectedLaplacian {
  using Sizes = BlockSizes<Family>;
  static constexpr int D = Family::stalk_dimension;
  static constexpr bool learned = is_learned<Family>;

 public:
  /// `graph` and `shape` must outlive it.
  DirectedLaplacian(const Graph& graph, const DiffusionShape<S>& shape, const DirectedOptions& options)
      : graph_(&graph), half_(shape.channels / 2), row_(shape.row()), phases_(graph, options) {}

  [[nodiscard]] DirectedPhases<S>& phases() noexcept { return phases_; }
  [[nodiscard]] const DirectedPhases<S>& phases() const noexcept { return phases_; }

  /// Both parts of a node's coordinates, whose first value is at x.
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
    kernels::parts_times<Sizes::gram>(sheaf.scale(u), x, y);
  }
  /// r = D_u w_u − Σ over arcs u → v of e^{iφ} Q_uv w_v.
  template <class T, class Tile>
  SHEAFNN_INLINE void apply(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index u, const S* w,
                            T (&r)[2][D]) const {
    start(c, sheaf, u, w, r);
    for_arcs(u, [&]<bool Before>(Index a) SHEAFNN_INLINE_LAMBDA {
      T other[2][D];
      subtract_neighbour<Before>(c, sheaf, a, w, other, r);
    });
  }
  /// w̄ = D_u r̄_u − Σ e^{iφ} Q_uv r̄_v, since L is Hermitian, and adds or writes the derivatives of D_u and, of the
  /// edges to larger nodes, of Q and random phases. With `add` derivatives of blocks are added; derivatives of phases
  /// are added for all tiles but the first.
  template <class T, class Tile>
  SHEAFNN_INLINE void apply_backward(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index u, const S* w,
                                     const S* r_bar, SheafBlocksGradient<Family, S>& gradient, bool add,
                                     T (&w_bar)[2][D]) {
    T own[2][D], own_bar[2][D];
    load(c, w + u * row_ + c, own);
    load(c, r_bar + u * row_ + c, own_bar);
    start(c, sheaf, u, r_bar, w_bar);
    for_arcs(u, [&]<bool Before>(Index a) SHEAFNN_INLINE_LAMBDA {
      T other_bar[2][D];
      subtract_neighbour<Before>(c, sheaf, a, r_bar, other_bar, w_bar);
      if constexpr (Before) return;
      if (!learned && !phases_.random()) return;
      T other[2][D];
      load(c, w + graph_->target(a) * row_ + c, other);
      kernels::turn<D>(T(phases_.cosine(a)), T(phases_.sine(a)), other);
      if (phases_.random()) {
        S& bar = phases_.angle_bar()[graph_->edge_of(a)];
        bar = (c > 0 ? bar : S(0)) +
              reduce_add(kernels::angle_bar<Sizes::transport>(block_of(sheaf, a), own, own_bar, other, other_bar));
      }
      if constexpr (learned) {
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
  [[nodiscard]] const S* block_of(const SheafBlocks<Family, S>& sheaf, Index arc) const {
    return sheaf.transport_block(graph_->edge_of(arc));
  }
  /// Calls visit.template operator()<Before>(arc) for the arcs of node u: see detail::for_neighbours().
  template <class Visit>
  SHEAFNN_INLINE void for_arcs(Index u, const Visit& visit) const {
    detail::for_neighbours<true>(graph_->targets().data(), graph_->first_arc(u), graph_->first_arc(u + 1), u,
                                 visit);
  }
  /// r = D_u w_u.
  template <class T, class Tile>
  SHEAFNN_INLINE void start(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index u, const S* w,
                            T (&r)[2][D]) const {
    T own[2][D];
    load(c, w + u * row_ + c, own);
    kernels::parts_times<Sizes::gram>(sheaf.degree_block(u), own, r);
  }
  /// sum −= e^{iφ} Q_uv w_v. \param other  becomes e^{iφ} w_v
  template <bool Before, class T, class Tile>
  SHEAFNN_INLINE void subtract_neighbour(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index arc, const S* w,
                                         T (&other)[2][D], T (&sum)[2][D]) const {
    load(c, w + graph_->target(arc) * row_ + c, other);
    kernels::subtract_turned<Sizes::transport, Before>(block_of(sheaf, arc), T(phases_.cosine(arc)),
                                                       T(phases_.sine(arc)), other, sum);
  }

  const Graph* graph_;
  Index half_, row_;  ///< f, and values per node
  DirectedPhases<S> phases_;
};

}  // namespace sheafnn::layers
