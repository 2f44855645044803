/// \file
/// ArcTransports: weighted sums, over the arcs of a node, of the features that the transports Q_uv = F_aᵀ F_rev of a
/// sheaf carry to it. Every arc has a weight. If transports are blocks of I − Δ, they are scaled by S on both sides
/// (math: "Sheaf attention" (3.47)).
///
/// Unchecked: indices of nodes, and rows of as many values as features of the shape have.
#pragma once

#include <algorithm>

#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"

namespace sheafnn::layers {

/// Works on tiles T of channels.
template <RestrictionMapFamily Family, class S>
class ArcTransports {
  using Sizes = BlockSizes<Family>;
  static constexpr int D = Family::stalk_dimension;

 public:
  /// `graph` and `shape` must outlive it. \param normalised  are transports scaled by S?
  ArcTransports(const Graph& graph, const DiffusionShape<S>& shape, bool normalised)
      : arcs_(&graph), channels_(shape.channels), row_(shape.row()), normalised_(normalised) {}

  [[nodiscard]] bool normalised() const noexcept { return normalised_; }
  /// Calls visit.template operator()<Before>(arc) for the arcs of node u: see detail::for_neighbours().
  template <class Visit>
  SHEAFNN_INLINE void for_arcs(Index u, const Visit& visit) const {
    detail::for_neighbours<true>(arcs_->targets().data(), arcs_->first_arc(u), arcs_->first_arc(u + 1), u, visit);
  }
  /// Calls visit(number, v, transport) for the arcs u → v of node u and for the node itself, whose index follows the arcs.
  /// transport(x, y) sets y = Q_uv x, or x itself for v = u.
  template <class Visit>
  SHEAFNN_INLINE void for_terms(const SheafBlocks<Family, S>& sheaf, Index u, const Visit& visit) const {
    for_arcs(u, [&]<bool Before>(Index arc) {
      visit(arc, arcs_->target(arc), [&](const auto* x, auto* y) {
        kernels::block_times<D, Sizes::transport, Before>(sheaf.transport_block(arcs_->edge_of(arc)), x, y);
      });
    });
    visit(arcs_->arc_count() + u, u, [](const auto* x, auto* y) { std::copy_n(x, D, y); });
  }
  /// ⟨a, b⟩ over the coordinates and channels of a tile.
  template <class T>
  [[nodiscard]] SHEAFNN_INLINE static S sum_of_products(const T* a, const T* b) {
    T sum = a[0] * b[0];
    SHEAFNN_UNROLL for (int i = 1; i < D; ++i) sum += a[i] * b[i];
    return reduce_add(sum);
  }
  /// sum = weight(u's number, true) w_u + Σ over arcs a = u → v of weight(a, false) Q_uv w_v. The index of a node follows all
  /// arcs.
  template <class T, class Tile, class Weight>
  SHEAFNN_INLINE void gather(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index u, const S* w,
                             const Weight& weight, T* sum) const {
    const S own = weight(arcs_->arc_count() + u, true);
    detail::load_coordinates<D>(c, w + u * row_ + c, channels_, sum);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] = T(own) * sum[i];
    for_arcs(u, [&]<bool Before>(Index arc) SHEAFNN_INLINE_LAMBDA {
      T other[D];
      detail::load_coordinates<D>(c, w + arcs_->target(arc) * row_ + c, channels_, other);
      const T share = T(weight(arc, false));
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) other[i] = share * other[i];
      kernels::add_block_times<D, Sizes::transport, Before, false>(sheaf.transport_block(arcs_->edge_of(arc)),
                                                                   other, sum);
    });
  }
  /// y = S_u x where transports are scaled, otherwise x.
  template <class T>
  SHEAFNN_INLINE void scale(const SheafBlocks<Family, S>& sheaf, Index u, const T* x, T* y) const {
    if (normalised_) {
      kernels::block_times<D, Sizes::gram>(sheaf.scale(u), x, y);
    } else {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) y[i] = x[i];
    }
  }
  /// The same backwards, for y = S_u x and a row x: S̄_u += ȳ xᵀ.
  template <class T, class Tile>
  SHEAFNN_INLINE void add_scale_bar(SheafBlocksGradient<Family, S>& gradient, const Tile& c, Index u,
                                    const T* y_bar, const S* x) const {
    if constexpr (is_learned<Family>) {
      if (!normalised_) return;
      T value[D];
      detail::load_coordinates<D>(c, x + c, channels_, value);
      kernels::channel_products<D, Sizes::gram>(y_bar, value, gradient.scale_bar.data() + u * Sizes::gram, true);
    }
  }

 private:
  const Graph* arcs_;
  Index channels_, row_;
  bool normalised_;
};

}  // namespace sheafnn::layers
