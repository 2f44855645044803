/// \file
/// The steps that a polynomial filter's recurrences are made of, forwards and backwards (math: "Polynomial filters"). Each
/// walks once over the nodes: it applies Δ to a tile of channels and does everything that is done with it per node. And
/// which arrays they work in: those that the layers of a network share, and whether the terms are kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/multiply_add.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/recurrence.hpp"
#include "sheafnn/layers/channel_tiles.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/laplacian_rows.hpp"
#include "sheafnn/layers/layer_setting.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::detail {

/// Decides whether terms are kept or recomputed. They are recomputed if a layer's terms would take more than 64 MiB and the
/// spectrum of L̂ is within [−1, 1] for all maps. The downward recurrence is then as stable as the upward one.
///
/// \param term_bytes  of one term; takes any
[[nodiscard]] inline FilterTerms choose_terms(const PolynomialOptions& options, Normalisation normalisation,
                                              std::size_t term_bytes) {
  constexpr std::size_t most = std::size_t{64} << 20;
  const bool bounded = normalisation == Normalisation::augmented && options.largest_eigenvalue >= 2;
  const bool large = static_cast<std::size_t>(options.degree) * term_bytes > most;
  return bounded && large && options.degree > 2 && !options.published ? FilterTerms::recompute : FilterTerms::keep;
}

/// What the layers of one network, which run in turn, share: the places of Δ's blocks, and arrays whose contents do not
/// outlive a pass. Features are in tiles of channels.
template <RestrictionMapFamily Family, class S>
struct FilterWorkspace {
  LaplacianRows<Family, S> rows;
  LaplacianBlocks<S> blocks;            ///< of evaluations
  LaplacianBlocks<S> blocks_bar;        ///< per group of tiles: derivatives of the blocks
  Buffer<S> y;                          ///< Y of evaluations, G
  Buffer<S> b[3];                       ///< Clenshaw's b_k, b_{k+1} and, backwards, b_{k+2}
  Index coordinates = 0, channels = 0;  ///< of the layers

  /// Takes the memory of evaluations, once for all layers.
  ///
  /// \param size  of a term, values of all tiles
  /// \throws std::invalid_argument  it already serves layers on another graph, or of another shape
  void reserve(const Graph& graph, const DiffusionShape<S>& shape, Index size) {
    if (rows.is_built()) {
      require(&rows.graph() == &graph, "workspace", "of layers on another graph", "must be of layers on the same");
      require(coordinates == shape.coordinates && channels == shape.channels, "workspace",
              concat("of layers of ", coordinates, " coordinates × ", channels, " channels"),
              concat("this layer has ", shape.coordinates, " × ", shape.channels));
      return;
    }
    coordinates = shape.coordinates;
    channels = shape.channels;
    for (Buffer<S>* buffer : {&y, &b[0], &b[1]}) buffer->resize(size);
    rows = LaplacianRows<Family, S>(graph, shape);
  }
  /// Allocates the buffers of backward passes.
  void reserve_backward(Index groups) {
    if (b[2].size() != y.size()) b[2].resize(y.size());
    if (!is_learned<Family> || !blocks_bar.node.empty()) return;
    blocks_bar.arc.resize(groups * rows.graph().arc_count() * rows.arc_stride + row_lanes<S>);
    blocks_bar.node.resize(groups * rows.graph().node_count() * rows.node_stride + row_lanes<S>);
  }
};

using kernels::FilterFactors;

/// The polynomial p(L̂) − (α/λ_max) Δ, L̂ = (2/λ_max) Δ − I, and with the high-pass term `mixed` also + α. Since
/// Δ/λ_max = ½ (L̂ + 1) and L̂ = (P_1 − B_0)/A_0, all of it is a polynomial in the basis of p, with the coefficients
///     w_0 − ½ α (1 − B_0/A_0) (+ α),   w_1 − α/(2 A_0),   w_2, …, w_K.
/// In terms of Δ, with c_k = (2/λ_max) A_k,
///   V_{k+1} = c_k Δ V_k + (B_k − A_k) V_k − C_k V_{k−1},   V_0 = Y.
/// A filter of degree 0 counts as one of degree 1 with w_1 = 0.
class FilterRecurrence {
 public:
  /// \param alpha  of the high-pass term, 0 without
  FilterRecurrence(const Polynomial& p, double alpha)
      : p_(&p), alpha_(alpha), slope_(2 / p.options().largest_eigenvalue) {}

  /// Applications of Δ, max(K, 1).
  [[nodiscard]] Index steps() const noexcept { return std::max<Index>(p_->degree(), 1); }
  /// The coefficient of P_k.
  [[nodiscard]] double weight(Index k) const noexcept {
    return (k <= p_->degree() ? p_->coefficient(k) : 0) + alpha_ * skip_share(k);
  }
  /// ∂(coefficient of P_k)/∂α.
  [[nodiscard]] double skip_share(Index k) const noexcept {
    const RecurrenceStep first = step(0);
    const bool mixed = p_->options().skip == HighPassSkip::mixed;
    if (k == 0) return (mixed ? 1 : 0) - (1 - first.constant / first.slope) / 2;
    return k == 1 ? -1 / (2 * first.slope) : 0;
  }
  /// c_k, B_k − A_k and C_k.
  [[nodiscard]] double slope(Index k) const noexcept { return slope_ * step(k).slope; }
  [[nodiscard]] double own(Index k) const noexcept { return step(k).constant - step(k).slope; }
  [[nodiscard]] double before(Index k) const noexcept { return step(k).before; }

  /// The factors that give V_{k+1} from V_k and V_{k−1}.
  template <class S>
  [[nodiscard]] FilterFactors<S> upwards(Index k) const noexcept {
    return {static_cast<S>(slope(k)), static_cast<S>(own(k)), static_cast<S>(k > 0 ? -before(k) : 0), S(0)};
  }
  /// The factors that give V_{k−1} from V_k and V_{k+1}.
  template <class S>
  [[nodiscard]] FilterFactors<S> downwards(Index k) const noexcept {
    return {static_cast<S>(slope(k) / before(k)), static_cast<S>(own(k) / before(k)),
            static_cast<S>(-1 / before(k)), S(0)};
  }
  /// Step k of Clenshaw's recurrence, k = steps() − 1 … 0, on y:
  ///     b_k = c_k Δ b_{k+1} + (B_k − A_k) b_{k+1} − C_{k+1} b_{k+2} + w_k y.
  /// b_{steps()} = w y is not stored: the first step takes y in its place, and what the second one reads of it is part of
  /// `direct`.
  template <class S>
  [[nodiscard]] FilterFactors<S> clenshaw(Index k) const noexcept {
    const Index last = steps();
    double slope_k = slope(k), own_k = own(k), before_k = k + 1 < last ? -before(k + 1) : 0, direct = weight(k);
    if (k == last - 1) {
      slope_k *= weight(last);
      own_k *= weight(last);
    } else if (k == last - 2) {
      direct += before_k * weight(last);
      before_k = 0;
    }
    return {static_cast<S>(slope_k), static_cast<S>(own_k), static_cast<S>(before_k), static_cast<S>(direct)};
  }

 private:
  [[nodiscard]] RecurrenceStep step(Index k) const noexcept {
    return k < p_->degree() ? p_->step(k) : RecurrenceStep{1, 0, 0};
  }
  const Polynomial* p_;
  double alpha_, slope_;
};

/// One tile's arrays in a step, n × d' × w each: next = slope · Δx + own · x + before · previous + direct · y.
template <class S>
struct FilterStep {
  FilterFactors<S> of;
  const S *x = nullptr, *previous = nullptr, *y = nullptr;  ///< y is not read where Δ alone is applied
  S* next = nullptr;                                        ///< may be `previous`, but where x_before is read
};

/// What a step backwards adds to the derivatives of Δ's blocks. Two applications of Δ, k and k + 1, hand over their share
/// together, in step k:
///     slope · V_u x_vᵀ + slope_before · V'_u x'_vᵀ of every arc u→v, and the same with x_u and x'_u of every node.
/// Sums over channels cost more than products: both steps share them.
template <class S>
struct FilterProducts {
  const S *v = nullptr, *v_before = nullptr;  ///< V_k, V_{k+1}
  const S* x_before = nullptr;                ///< x of the step before, q_{k+2}
  S slope_before = 0;                         ///< its slope; 0: there was no step before
  S *arc_bar = nullptr, *node_bar = nullptr;
  bool accumulate = false;  ///< add to them
};

/// ⟨y, V_k⟩ and ⟨y, V_{k+1}⟩.
template <class S>
struct FilterSums {
  S with_v = 0, with_v_before = 0;
};

/// What a step does besides applying Δ.
enum class FilterPass {
  terms,    ///< nothing
  sum,      ///< adds direct · y
  backward  ///< adds direct · y, and takes the derivatives of Δ's blocks
};

/// A step at the nodes of a range. \returns sums over them, backwards
template <FilterPass Pass, RestrictionMapFamily Family, class S>
SHEAFNN_NOINLINE FilterSums<S> filter_step(const LaplacianRows<Family, S>& rows, const LaplacianBlocks<S>& blocks,
                                           const DiffusionShape<S>& shape, Index begin, Index end,
                                           const FilterStep<S>& step, const FilterProducts<S>& products = {}) {
  constexpr int D = Family::stalk_dimension;
  using Rows = LaplacianRows<Family, S>;
  using Sizes = BlockSizes<Family>;
  using T = typename ChannelTiles<S>::Tile;
  constexpr int w = ChannelTiles<S>::width;
  const TileAt<T> tile(0);
  constexpr bool backward = Pass == FilterPass::backward, learned = backward && is_learned<Family>;
  const FilterStep<S> a = step;
  const FilterProducts<S> b = products;
  const Index coordinates = shape.coordinates, row = coordinates * w;
  const std::int32_t* const target = rows.graph().targets().data();
  const std::int32_t* const offset = rows.graph().offsets().data();
  // Where a tile fills much of a processor's cache, the rows of arcs a few places on are asked for.
  constexpr Index ahead = 32;
  const bool asks = static_cast<std::size_t>(rows.graph().node_count() * row) * sizeof(S) > (std::size_t{1} << 19);
  const Index last_arc = rows.graph().arc_count() - 1;
  const auto ask_for = [&](const S* coming) SHEAFNN_INLINE_LAMBDA {
    for (Index i = 0; i < D * w; i += 64 / static_cast<Index>(sizeof(S))) SHEAFNN_PREFETCH(coming + i);
    SHEAFNN_PREFETCH(coming + D * w - 1);
  };
  const FilterFactors<T> of{T(a.of.slope), T(a.of.own), T(a.of.before), T(a.of.direct)};
  T with_v = T(S(0)), with_v_before = T(S(0));
  const auto finish = [&](Index at, const T& applied, const T& x) SHEAFNN_INLINE_LAMBDA {
    T value = of.with_previous(of(applied, x), load<T>(a.previous + at));
    if constexpr (Pass != FilterPass::terms) value = of.with_direct(value, load<T>(a.y + at));
    store(a.next + at, value);
    if constexpr (backward) {
      const T y = load<T>(a.y + at);
      with_v += y * load<T>(b.v + at);
      with_v_before += y * load<T>(b.v_before + at);
    }
  };
  for (Index u = begin; u < end; ++u) {
    const Index at = u * row, first = offset[u], last = offset[u + 1];
    T x[D], sum[D], v[D], v_before[D];
    load_coordinates<D>(tile, a.x + at, w, x);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] = T(S(0));
    kernels::add_block_times<D, Sizes::gram, false, false>(blocks.node.data() + u * Rows::node_stride, x, sum);
    if constexpr (learned) {
      T x_before[D];
      load_coordinates<D>(tile, b.v + at, w, v);
      load_coordinates<D>(tile, b.v_before + at, w, v_before);
      load_coordinates<D>(tile, b.x_before + at, w, x_before);
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
        v[i] *= of.slope;
        v_before[i] *= T(b.slope_before);
      }
      kernels::channel_products<D, Sizes::gram>(v, x, v_before, x_before, b.node_bar + u * Rows::node_stride,
                                                b.accumulate);
    }
    const S* block = blocks.arc.data() + first * Rows::arc_stride;
    for (Index arc = first; arc < last; ++arc, block += Rows::arc_stride) {
      if (asks) {
        const Index coming = target[std::min(arc + ahead, last_arc)] * row;
        ask_for(a.x + coming);
        if constexpr (learned) ask_for(b.x_before + coming);
      }
      T other[D];
      load_coordinates<D>(tile, a.x + target[arc] * row, w, other);
      kernels::add_block_times<D, Sizes::transport, false, false>(block, other, sum);
      if constexpr (learned) {
        T other_before[D];
        load_coordinates<D>(tile, b.x_before + target[arc] * row, w, other_before);
        kernels::channel_products<D, Sizes::transport, Rows::arc_stride>(v, other, v_before, other_before,
                                                                         b.arc_bar + arc * Rows::arc_stride,
                                                                         b.accumulate);
      }
    }
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) finish(at + i * w, sum[i], x[i]);
    for (Index i = D; i < coordinates; ++i) {  // fixed filters
      const Index here = at + i * w;
      T neighbours = T(S(0));
      for (Index arc = first; arc < last; ++arc) {
        neighbours += T(rows.arc_weight()[arc]) * load<T>(a.x + target[arc] * row + i * w);
      }
      const T own_x = load<T>(a.x + here);
      const S sign = shape.filter_sign[i - (coordinates - shape.filters)];
      finish(here, T(rows.node_weight()[u]) * own_x + T(sign) * neighbours, own_x);
    }
  }
  return {reduce_add(with_v), reduce_add(with_v_before)};
}

/// out = Σ_k factor_k · in_k over `count` ≥ 1 arrays, elements [begin, end), whole rows of tiles; out may be one of them.
template <class S>
void add_multiples(Index begin, Index end, Index count, const S* const* in, const S* factor, S* out) {
  using T = typename ChannelTiles<S>::Tile;
  for (Index i = begin; i < end; i += T::width) {
    T sum = T(S(0));  // not the first product: a compiler could round the sum of two products in either way
    for (Index k = 0; k < count; ++k) sum = multiply_add(T(factor[k]), load<T>(in[k] + i), sum);
    store(out + i, sum);
  }
}

/// ⟨a, b⟩ over elements [begin, end), whole rows of tiles.
template <class S>
[[nodiscard]] S tile_product(Index begin, Index end, const S* a, const S* b) {
  using T = typename ChannelTiles<S>::Tile;
  T sum = T(S(0));
  for (Index i = begin; i < end; i += T::width) sum += load<T>(a + i) * load<T>(b + i);
  return reduce_add(sum);
}

}  // namespace sheafnn::detail
