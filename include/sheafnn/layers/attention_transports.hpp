/// \file
/// AttentionTransports: the features that a layer of attention carries along arcs, Y and, with the option `transported`, what scores
/// read, t_uv = ⟨q, Â_uv x_v⟩. Both are scaled by S if Â is normalised. On a part of a graph the rows of the halo are
/// fetched. Source: math: "Sheaf attention" (3.46, 3.47, 3.49).
///
/// Unchecked: indices of nodes, rows of as many values as features of the shape have, the order of the calls of a pass.
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/layers/attention_scores.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"

namespace sheafnn::layers {

/// Weighted sums, over the arcs of a node, of the features that the transports Q_uv = F_aᵀ F_rev of a sheaf carry to it. Every
/// arc has a weight. If transports are blocks of I − Δ, they are scaled by S on both sides. Works on tiles T of channels.
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

/// Works on tiles T of channels.
template <RestrictionMapFamily Family, class S>
class AttentionTransports : public ArcTransports<Family, S> {
  using Base = ArcTransports<Family, S>;
  using Sizes = BlockSizes<Family>;
  static constexpr int D = Family::stalk_dimension;

 public:
  using Base::add_scale_bar, Base::for_arcs, Base::for_terms, Base::gather, Base::normalised, Base::scale;

  /// `graph` and `shape` must outlive it.
  AttentionTransports(const Graph& graph, const DiffusionShape<S>& shape, const AttentionOptions& options)
      : Base(graph, shape, options.normalised),
        scores_(graph, options, shape.row()),
        over_(&graph),
        shape_(&shape),
        transported_(options.transported) {
    if (!normalised() && graph.part() == nullptr) return;
    moved_rows_.resize(graph.node_count() * shape.row());
    if (transported_) source_rows_.resize(moved_rows_.size());
  }

  [[nodiscard]] AttentionScores<S>& scores() noexcept { return scores_; }
  [[nodiscard]] const AttentionScores<S>& scores() const noexcept { return scores_; }
  [[nodiscard]] bool transported() const noexcept { return transported_; }
  /// Y as it moves along arcs, and the input of the scores likewise.
  [[nodiscard]] const S* moved() const noexcept { return moved_; }
  [[nodiscard]] const S* moved_source() const noexcept { return moved_source_; }
  /// Takes the features of a pass. \param y, source  own nodes × d' f; source is what scores read
  void move(const LayerCall<Family, S>& call, const S* y, const S* source) {
    moved_ = moved_of(call, y, moved_rows_);
    moved_source_ = transported_ ? moved_of(call, source, source_rows_) : source;
  }

  /// Σ_k bar_k q_k scaled by S_u, a tile.
  template <class T, class Tile>
  SHEAFNN_INLINE void query_sum(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index u, const S* bar,
                                T* sum) const {
    T plain[D], query[D];
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) plain[i] = T(S(0));
    for (Index k = 0; k < scores_.heads(); ++k) {
      detail::load_coordinates<D>(c, scores_.query(k) + c, shape_->channels, query);
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) plain[i] += T(bar[k]) * query[i];
    }
    scale(sheaf, u, plain, sum);
  }
  /// t_uv of the scores of node u.
  void set_transported(const SheafBlocks<Family, S>& sheaf, Index u) {
    const Index f = shape_->channels, row = shape_->row();
    for_terms(sheaf, u, [&](Index score, Index v, const auto& transport) {
      S* const to = scores_.transported(score);
      std::fill_n(to, scores_.heads(), S(0));
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        T x[D], transported[D], read[D], query[D];
        detail::load_coordinates<D>(c, moved_source_ + v * row + c, f, x);
        transport(x, transported);
        scale(sheaf, u, transported, read);
        for (Index k = 0; k < scores_.heads(); ++k) {
          detail::load_coordinates<D>(c, scores_.query(k) + c, f, query);
          to[k] += Base::sum_of_products(query, read);
        }
      });
    });
  }
  /// q̄_k += S_u κ̄_k and S̄_u += κ̄_k q_kᵀ, κ̄_k = ē_u^k ξ_u + Σ ē_uv^k Q_uv ξ_v with ξ what scores read.
  void queries_backward(const SheafBlocks<Family, S>& sheaf, SheafBlocksGradient<Family, S>& gradient, Index u,
                        S* query_bar) const {
    const Index f = shape_->channels, row = shape_->row();
    for (Index k = 0; k < scores_.heads(); ++k) {
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        T sum[D], scaled[D], to[D];
        gather(
            c, sheaf, u, moved_source_, [&](Index score, bool) { return scores_.score_bar(score)[k]; }, sum);
        scale(sheaf, u, sum, scaled);
        S* const at = query_bar + k * row + c;
        detail::load_coordinates<D>(c, at, f, to);
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) to[i] += scaled[i];
        detail::store_coordinates<D>(c, to, f, at);
        add_scale_bar(gradient, c, u, sum, scores_.query(k));
      });
    }
  }
  /// Backwards, before the scaling of node u: Λ_uu r̄_u + Σ over arcs u → v of Λ_vu Q_uv r̄_v.
  template <class T, class Tile>
  SHEAFNN_INLINE void moved_back(const SheafBlocks<Family, S>& sheaf, const Tile& c, Index u, const S* r_bar,
                                 T* sum) const {
    gather(
        c, sheaf, u, r_bar,
        [&](Index score, bool own) { return scores_.weight(own ? score : over_->reverse(score)); }, sum);
  }
  /// The same of what scores of other nodes, and of u itself, read of u.
  template <class T, class Tile>
  SHEAFNN_INLINE void source_back(const SheafBlocks<Family, S>& sheaf, const Tile& c, Index u, T* sum) const {
    query_sum(c, sheaf, u, scores_.score_bar(scores_.own(u)), sum);
    for_arcs(u, [&]<bool Before>(Index arc) {
      T other[D];
      query_sum(c, sheaf, over_->target(arc), scores_.score_bar(over_->reverse(arc)), other);
      kernels::add_block_times<D, Sizes::transport, Before, false>(sheaf.transport_block(over_->edge_of(arc)),
                                                                   other, sum);
    });
  }

 private:
  /// x where it is, or S x and the rows of the halo in `rows`.
  [[nodiscard]] const S* moved_of(const LayerCall<Family, S>& call, const S* x, Buffer<S>& rows) const {
    if (rows.empty()) return x;
    const Index row = shape_->row();
    if (normalised()) {
      detail::scale_features(call.execution, *over_, *shape_, call.sheaf, x, rows.data());
    } else {
      parallel_for(call.execution, over_->own_node_count(), 64, [&](Index begin, Index end) {
        std::copy_n(x + begin * row, (end - begin) * row, rows.data() + begin * row);
      });
    }
    detail::fetch_halo(*over_, rows.data(), row);
    return rows.data();
  }

  AttentionScores<S> scores_;
  const Graph* over_;
  const DiffusionShape<S>* shape_;
  bool transported_;
  Buffer<S> moved_rows_, source_rows_;  ///< where rows are scaled or fetched
  const S *moved_ = nullptr, *moved_source_ = nullptr;
};

}  // namespace sheafnn::layers
