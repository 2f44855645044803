/// \file
/// The steps that a polynomial filter's recurrences are made of, and their backward pass: in each, one application of
/// Δ = S L S and everything that is done with it per node, in one walk over the nodes
/// (math: "Polynomial filters").
#pragma once

#include <algorithm>

#include "sheafnn/core/parallel.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"

namespace sheafnn::detail {

/// One step of Clenshaw's recurrence on y,
///   b_k = ΔU_k + own · b_{k+1} + before · b_{k+2} + direct · y,   U_k = slope · b_{k+1} + start · y.
template <class S>
struct ClenshawStep {
  S own = 0, before = 0, direct = 0, slope = 0, start = 0;
};

/// The numbers of p(L̂) Y − (α/λ_max) ΔY, L̂ = (2/λ_max) Δ − I, as polynomials in Δ: with c_k = (2/λ_max) A_k,
///   V_{k+1} = c_k Δ V_k + (B_k − A_k) V_k − C_k V_{k−1},   V_0 = Y.
/// A filter of degree 0 counts as one of degree 1 with w_1 = 0, so that ΔY is always there.
class FilterRecurrence {
 public:
  FilterRecurrence(const Polynomial& p, double skip)
      : p_(&p), skip_(skip / p.options().largest_eigenvalue), slope_(2 / p.options().largest_eigenvalue) {}

  /// Applications of Δ, max(K, 1).
  [[nodiscard]] Index steps() const noexcept { return std::max<Index>(p_->degree(), 1); }
  /// w_k.
  [[nodiscard]] double weight(Index k) const noexcept { return k <= p_->degree() ? p_->coefficient(k) : 0; }
  /// c_k, B_k − A_k and C_k.
  [[nodiscard]] double slope(Index k) const noexcept { return slope_ * step(k).slope; }
  [[nodiscard]] double own(Index k) const noexcept { return step(k).constant - step(k).slope; }
  [[nodiscard]] double before(Index k) const noexcept { return step(k).before; }
  /// α/λ_max.
  [[nodiscard]] double skip() const noexcept { return skip_; }

  /// Step k of Clenshaw's recurrence, k = steps() − 1 … 0. b_{steps()} = w y is no array: it is part of `direct` and
  /// `start` of the two steps that read it.
  template <class S>
  [[nodiscard]] ClenshawStep<S> clenshaw(Index k) const noexcept {
    const Index last = steps();
    double own_k = own(k), before_k = k + 1 < last ? -before(k + 1) : 0, direct = weight(k), slope_k = slope(k);
    double start = k == 0 ? -skip_ : 0;
    if (k == last - 1) {
      direct += own_k * weight(last);
      start += slope_k * weight(last);
      own_k = slope_k = 0;
    } else if (k == last - 2) {
      direct += before_k * weight(last);
      before_k = 0;
    }
    return {static_cast<S>(own_k), static_cast<S>(before_k), static_cast<S>(direct), static_cast<S>(slope_k),
            static_cast<S>(start)};
  }

 private:
  [[nodiscard]] RecurrenceStep step(Index k) const noexcept {
    return k < p_->degree() ? p_->step(k) : RecurrenceStep{1, 0, 0};
  }
  const Polynomial* p_;
  double skip_, slope_;
};

/// What apply_laplacian() does with Z = ΔU at a node u of a step:
///   next = slope · Z + own · last + before · previous + direct · y,
///   sum  = sum (or, first, sum_y · y) + sum_slope · Z + sum_next · next,
///   w    = S (w_next · next + w_y · y).
/// Arrays are n × d' × f; those that are null are not read or written. `next` may be `previous`.
template <class Family, class S>
struct FilterStep {
  const DiffusionShape<S>* shape = nullptr;
  const SheafBlocks<Family, S>* sheaf = nullptr;
  const NodeSelection* nodes = nullptr;
  const S *last = nullptr, *previous = nullptr, *y = nullptr;
  S *next = nullptr, *sum = nullptr, *w = nullptr;
  S slope = 1, own = 0, before = 0, direct = 0;
  S sum_y = 0, sum_slope = 0, sum_next = 0;
  S w_next = 1, w_y = 0;
  bool first = false;

  template <class T, int N>
  SHEAFNN_INLINE void operator()(Index index, Index i, Index c, const T*, const T* z) const {
    constexpr int D = Family::stalk_dimension;
    const Index u = (*nodes)[index], f = shape->channels, at = u * shape->row() + i * f + c;
    T scaled[N];
    SHEAFNN_UNROLL for (int k = 0; k < N; ++k) {
      const Index here = at + k * f;
      const T own_y = load<T>(y + here);
      T value = T(slope) * z[k] + T(direct) * own_y;
      if (last != nullptr) value += T(own) * load<T>(last + here);
      if (previous != nullptr) value += T(before) * load<T>(previous + here);
      if (sum != nullptr) {
        const T before_it = first ? T(sum_y) * own_y : load<T>(sum + here);
        store(sum + here, before_it + T(sum_slope) * z[k] + T(sum_next) * value);
      }
      store(next + here, value);
      scaled[k] = T(w_next) * value + T(w_y) * own_y;
    }
    if (w == nullptr) return;
    if constexpr (N == D) {
      if (i < D) {
        T out[D];
        scale_block<Family>(sheaf->scale(u), scaled, out);
        SHEAFNN_UNROLL for (int k = 0; k < D; ++k) store(w + at + k * f, out[k]);
        return;
      }
    }
    SHEAFNN_UNROLL for (int k = 0; k < N; ++k) store(w + at + k * f, T(shape->inverse_root[u]) * scaled[k]);
  }
};

/// One step backwards. With Ū = slope · q_{k+1} + start · g and r̄ = S Ū,
///   q_k = ΔŪ + own · q_{k+1} + before · q_{k+2} + direct · g,
/// the derivatives of ⟨Ū, ΔV_k⟩ with respect to S, L and D, ⟨g, V_k⟩ and ⟨g, ΔV_k⟩, and for the next step
/// S (w_step · q_k + w_start · g) and S V_{k−1}, with V_{k−1} either read or computed from V_k and V_{k+1}:
///   V_{k−1} = v_slope · ΔV_k + v_own · V_k + v_after · V_{k+1}.
template <class S>
struct FilterStepBackward {
  ClenshawStep<S> step;
  const S *v = nullptr, *w = nullptr, *r_bar = nullptr;  ///< V_k, S V_k, S Ū
  const S *q = nullptr, *after = nullptr, *g = nullptr;  ///< q_{k+1}, q_{k+2} (null: 0), g
  S* q_next = nullptr;                                   ///< q_k; may be `after`
  S *w_next = nullptr, *r_bar_next = nullptr;            ///< of the next step; null after the last one
  const S* v_before = nullptr;                           ///< V_{k−1}; null: computed
  S* v_after = nullptr;                                  ///< V_{k+1}, becomes V_{k−1} where that is computed
  S w_step = 0, w_start = 0;
  S v_slope = 0, v_own = 0, v_factor = 0;
};

/// \param use_sums    called as use_sums(chunk, ⟨g, V_k⟩, ⟨g, ΔV_k⟩) for every chunk of nodes, from any thread; it adds
/// \param accumulate  add to the gradients of S, L and D instead of overwriting them
template <class Family, class S, class UseSums>
void filter_step_backward(Execution execution, const Graph& graph, const DiffusionShape<S>& shape,
                          const SheafBlocks<Family, S>& sheaf, const NodeChunks& chunks,
                          const FilterStepBackward<S>& of, SheafBlocksGradient<Family, S>& gradient,
                          bool accumulate, const UseSums& use_sums) {
  constexpr int D = Family::stalk_dimension;
  constexpr bool learned = is_learned<Family>;
  using Sizes = BlockSizes<Family>;
  const Index f = shape.channels, row = shape.row();
  chunks.for_each(execution, [&](Index chunk, Index begin, Index end) {
    for_tiles<S>(0, f, [&]<class T>(Index c) {
      const FilterStepBackward<S> a = of;
      const std::int32_t* target = graph.targets().data();
      const std::int32_t* offset = graph.offsets().data();
      const Index last_arc = graph.arc_count() - 1;
      const S *w_c = a.w + c, *bar_c = a.r_bar + c;
      S* edge_bar = gradient.off_diagonal_bar.data();
      const bool add = accumulate || c > 0;
      T with_v = T(S(0)), with_z = T(S(0));
      // At one coordinate of a node: z = ΔV_k, d = ΔŪ; sets what the next step's w and r̄ are S times of.
      const auto advance = [&](Index at, const T& z, const T& d, T& w_next, T& bar_next) SHEAFNN_INLINE_LAMBDA {
        const T g = load<T>(a.g + at), v = load<T>(a.v + at);
        T q = d + T(a.step.direct) * g;
        if (a.q != nullptr) q += T(a.step.own) * load<T>(a.q + at);
        if (a.after != nullptr) q += T(a.step.before) * load<T>(a.after + at);
        store(a.q_next + at, q);
        with_v += g * v;
        with_z += g * z;
        if (a.w_next == nullptr) return;
        bar_next = T(a.w_step) * q + T(a.w_start) * g;
        if (a.v_before != nullptr) {
          w_next = load<T>(a.v_before + at);
        } else {
          w_next = T(a.v_slope) * z + T(a.v_own) * v + T(a.v_factor) * load<T>(a.v_after + at);
          store(a.v_after + at, w_next);
        }
      };
      for (Index u = begin; u < end; ++u) {
        const Index first = offset[u], last = offset[u + 1], at = u * row + c;
        T r_bar[D], w[D], w_bar[D], r[D];
        load_coordinates<D>(bar_c + u * row, f, r_bar);
        load_coordinates<D>(w_c + u * row, f, w);
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) w_bar[i] = r[i] = T(S(0));
        add_block_times<D, Sizes::gram, false, false, T>(sheaf.degree_block(u), r_bar, w_bar);
        add_block_times<D, Sizes::gram, false, false, T>(sheaf.degree_block(u), w, r);
        Index arc = first;
        const auto neighbour = [&]<bool Transposed>() SHEAFNN_INLINE_LAMBDA {
          const Index e = graph.edge_of(arc), v = target[arc] * row;
          const Index soon = target[std::min(arc + 6, last_arc)] * row;
          T other_bar[D], other[D];
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
            SHEAFNN_PREFETCH(bar_c + soon + i * f);
            SHEAFNN_PREFETCH(w_c + soon + i * f);
          }
          load_coordinates<D>(bar_c + v, f, other_bar);
          load_coordinates<D>(w_c + v, f, other);
          add_block_times<D, Sizes::transport, Transposed, true, T>(sheaf.transport_block(e), other_bar, w_bar);
          add_block_times<D, Sizes::transport, Transposed, true, T>(sheaf.transport_block(e), other, r);
          if constexpr (learned && !Transposed) {
            channel_products<D, Sizes::transport>(r_bar, other, w, other_bar, edge_bar + e * Sizes::transport,
                                                  add);
          }
        };
        for (; arc < last && target[arc] < u; ++arc) neighbour.template operator()<true>();
        for (; arc < last; ++arc) neighbour.template operator()<false>();
        T z[D], d[D], w_next[D], bar_next[D];
        scale_block<Family>(sheaf.scale(u), r, z);
        scale_block<Family>(sheaf.scale(u), w_bar, d);
        if constexpr (learned) {
          T v[D], u_bar[D];
          load_coordinates<D>(a.v + at, f, v);
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
            u_bar[i] = T(a.step.start) * load<T>(a.g + at + i * f);
            if (a.q != nullptr) u_bar[i] += T(a.step.slope) * load<T>(a.q + at + i * f);
          }
          channel_products<D, Sizes::gram>(u_bar, r, w_bar, v, gradient.scale_bar.data() + u * Sizes::gram, add);
          channel_products<D, Sizes::gram>(r_bar, w, gradient.degree_bar.data() + u * Sizes::gram, add);
        }
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) advance(at + i * f, z[i], d[i], w_next[i], bar_next[i]);
        if (a.w_next != nullptr) {
          T out[D];
          scale_block<Family>(sheaf.scale(u), w_next, out);
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) store(a.w_next + at + i * f, out[i]);
          scale_block<Family>(sheaf.scale(u), bar_next, out);
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) store(a.r_bar_next + at + i * f, out[i]);
        }
        for (Index i = D; i < shape.coordinates; ++i) {
          const T root = T(shape.inverse_root[u]);
          advance(at + i * f, root * filtered<T>(shape, w_c, target, first, last, u, i),
                  root * filtered<T>(shape, bar_c, target, first, last, u, i), w_next[0], bar_next[0]);
          if (a.w_next == nullptr) continue;
          store(a.w_next + at + i * f, root * w_next[0]);
          store(a.r_bar_next + at + i * f, root * bar_next[0]);
        }
      }
      use_sums(chunk, reduce_add(with_v), reduce_add(with_z));
    });
  });
}

}  // namespace sheafnn::detail
