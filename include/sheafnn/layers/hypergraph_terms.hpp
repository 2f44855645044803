/// \file
/// HypergraphTerms: what a Laplacian over a hypergraph adds up at a node,
///
///     (L w)_v = D̃_v w_v − Σ_{i = (v, e)} F_iᵀ m_{s(i)},   D̃_v = Σ_{i = (v, e)} a_i F_iᵀF_i,
///
/// with one vector m per hyperedge (linear) or two (non-linear), each a sum over members, and weights a_i:
///
///     linear       a_i = 1        m_e = (1/δ_e) Σ_{j ∈ e} F_j w_j
///     published    a_i = 2/δ_e    the same
///     non-linear   between the most discrepant pair (p, q) of e: a_p = a_q = c, m_{s(p)} = c F_q w_q, m_{s(q)} = c F_p w_p,
///                  c = 1/δ_e, and nothing for other members; with mediators c = 1/(2δ_e − 3), a_p = a_q = c δ_e with
///                  m = c Σ_j F_j w_j, and a_k = 2c with m = c (F_p w_p + F_q w_q) for the other members k
///
/// The most discrepant pair has the largest ‖F_p x_p − F_q x_q‖ over all entries, or with a projection r the largest (F_p
/// x_p − F_q x_q) r. Of equal pairs it is the first in (lower, higher) order of members. On a part of a hypergraph, the
/// owner of a cut hyperedge selects from rows of all members (graph/hypergraph_part.hpp). Source: Sheaf Hypergraph Networks
/// (Duta et al.), "Linear sheaf hypergraph Laplacian", "Non-linear sheaf hypergraph Laplacian"; math: "Hypergraphs".
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/hypergraph.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/hypergraph_setting.hpp"
#include "sheafnn/layers/incidence_sheaf.hpp"

namespace sheafnn::layers {

/// The terms of one layer. Unchecked: indices of pairs and nodes, sizes of arrays, that sheaves are of the hypergraph, and
/// that r has f values.
template <RestrictionMapFamily Family, class S>
class HypergraphTerms {
 public:
  using Sizes = BlockSizes<Family>;
  using Sheaf = IncidenceSheaf<Family, S>;
  static constexpr int D = Family::stalk_dimension;

  /// `hypergraph` must outlive the terms.
  HypergraphTerms(const Hypergraph& hypergraph, const HypergraphSetting& setting)
      : hypergraph_(&hypergraph),
        laplacian_(setting.laplacian),
        mediators_(setting.mediators),
        channels_(setting.channels),
        projection_(static_cast<Index>(setting.projection.size())) {
    for (Index c = 0; c < projection_.size(); ++c) {
      projection_[c] = static_cast<S>(setting.projection[static_cast<std::size_t>(c)]);
    }
    if (linear()) return;
    weight_.resize(hypergraph.pair_count());
    degree_block_.resize(hypergraph.node_count() * Sizes::gram);
    if (!nonlinear()) {
      for (Index i = 0; i < weight_.size(); ++i)
        weight_[i] = kernels::published_weight<S>(hypergraph.size(hypergraph.hyperedge(i)));
      return;
    }
    end_.resize(2 * hypergraph.hyperedge_count());
    slot_.resize(hypergraph.pair_count());
    chunks_ = std::clamp<Index>(hypergraph.hyperedge_count() / 8, 1, 32);
    candidate_.resize(chunks_ * hypergraph.largest_size() * candidate_size());
    if (hypergraph.part() == nullptr) return;
    member_.resize(static_cast<Index>(hypergraph.part()->members().numbers().node.size()) * candidate_size());
    selected_.resize(2 * hypergraph.hyperedge_count());
  }

  [[nodiscard]] bool linear() const noexcept { return laplacian_ == HypergraphLaplacian::linear; }
  /// Vectors m.
  [[nodiscard]] Index slots() const noexcept { return hypergraph_->hyperedge_count() * (nonlinear() ? 2 : 1); }
  /// s(i), or −1 where the pair has no term.
  [[nodiscard]] const std::int32_t* slot() const noexcept {
    return nonlinear() ? slot_.data() : hypergraph_->hyperedges().data();
  }
  /// a_i, but of the linear Laplacian.
  [[nodiscard]] S weight(Index pair) const noexcept { return weight_[pair]; }
  /// D̃_v.
  [[nodiscard]] const S* degree_block(const Sheaf& sheaf, Index v) const noexcept {
    return linear() ? sheaf.degree_block(v) : degree_block_.data() + v * Sizes::gram;
  }
  /// The two pairs (p, q) of a hyperedge of the non-linear Laplacian, with p first. Has −1 where it has fewer members, and for
  /// a pair of another part.
  [[nodiscard]] std::pair<Index, Index> ends(Index e) const noexcept { return {end_[2 * e], end_[2 * e + 1]}; }

  /// Selects pairs by the features x (n × D × f), and sums D̃.
  void prepare(Execution execution, const Sheaf& sheaf, const S* x) {
    if (linear()) return;
    if (nonlinear()) {
      // Hyperedges with all of their members here; then the others.
      const Index hyperedges =
          hypergraph_->part() == nullptr ? hypergraph_->hyperedge_count() : hypergraph_->part()->first_cut();
      parallel_for(execution, chunks_, 1, [&](Index begin, Index end) {
        for (Index chunk = begin; chunk < end; ++chunk) {
          S* room = candidate_.data() + chunk * hypergraph_->largest_size() * candidate_size();
          for (Index e = hyperedges * chunk / chunks_; e < hyperedges * (chunk + 1) / chunks_; ++e) {
            select(sheaf, x, e, room);
          }
        }
      });
      if (hypergraph_->part() != nullptr) select_cut(execution, *hypergraph_->part(), sheaf, x);
    }
    parallel_for(execution, hypergraph_->node_count(), 16, [&](Index begin, Index end) {
      for (Index v = begin; v < end; ++v) sum_grams(sheaf, v);
    });
  }

  /// m of all slots from w (n × D × f).
  void sum_members(Execution execution, const Sheaf& sheaf, const S* w, S* m) const {
    parallel_for(execution, hypergraph_->hyperedge_count(), 8, [&](Index begin, Index end) {
      detail::for_tiles<S>(0, channels_, [&]<class T>(auto c) {
        for (Index e = begin; e < end; ++e) {
          if (nonlinear()) {
            sum_of_ends<T>(c, sheaf, e, w, m);
          } else {
            T sum[D];
            sum_of_all<T>(c, sheaf, e, w, share(e), sum);
            detail::store_coordinates<D>(c, sum, channels_, m + e * row() + c);
          }
        }
      });
    });
    detail::sum_cut_hyperedges(*hypergraph_, m, (nonlinear() ? 2 : 1) * row());
  }

 private:
  [[nodiscard]] bool nonlinear() const noexcept { return laplacian_ == HypergraphLaplacian::nonlinear; }
  [[nodiscard]] Index row() const noexcept { return D * channels_; }
  [[nodiscard]] Index candidate_size() const noexcept { return projection_.empty() ? row() : D; }
  /// 1/δ_e.
  [[nodiscard]] S share(Index e) const noexcept { return kernels::member_share<S>(hypergraph_->size(e)); }
  /// c of the non-linear Laplacian.
  [[nodiscard]] S pair_weight(Index e) const noexcept {
    return kernels::selected_weight<S>(hypergraph_->size(e), mediators_);
  }

  /// F_i x at a tile of channels.
  template <class T, class At>
  SHEAFNN_INLINE void image(const At& c, const Sheaf& sheaf, Index pair, const S* x, T* out) const {
    T own[D];
    detail::load_coordinates<D>(c, x + hypergraph_->node(pair) * row() + c, channels_, own);
    kernels::block_times<D, Sizes::map>(sheaf.map(pair), own, out);
  }
  template <class T, class At>
  SHEAFNN_INLINE void sum_of_all(const At& c, const Sheaf& sheaf, Index e, const S* w, S factor, T* sum) const {
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] = T(S(0));
    for (Index k = hypergraph_->first_member(e); k < hypergraph_->first_member(e + 1); ++k) {
      const Index pair = hypergraph_->member(k);
      T own[D];
      detail::load_coordinates<D>(c, w + hypergraph_->node(pair) * row() + c, channels_, own);
      kernels::add_block_times<D, Sizes::map, false, false>(sheaf.map(pair), own, sum);
    }
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] = T(factor) * sum[i];
  }
  template <class T, class At>
  SHEAFNN_INLINE void sum_of_ends(const At& c, const Sheaf& sheaf, Index e, const S* w, S* m) const {
    if (hypergraph_->size(e) < 2) return;
    const S factor = pair_weight(e);
    T first[D], second[D];
    const auto image_of_end = [&](int side, T* out) SHEAFNN_INLINE_LAMBDA {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[i] = T(S(0));
      if (end_[2 * e + side] < 0) return;  // another part adds it
      image<T>(c, sheaf, end_[2 * e + side], w, out);
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[i] = T(factor) * out[i];
    };
    image_of_end(0, first);
    image_of_end(1, second);
    if (mediators_) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) first[i] = first[i] + second[i];
      sum_of_all<T>(c, sheaf, e, w, factor, second);
    }
    detail::store_coordinates<D>(c, second, channels_, m + 2 * e * row() + c);
    detail::store_coordinates<D>(c, first, channels_, m + (2 * e + 1) * row() + c);
  }

  /// Selects the pair of hyperedge e. \param room  buffer for F x of every member
  void select(const Sheaf& sheaf, const S* x, Index e, S* room) {
    const Index first = hypergraph_->first_member(e), size = hypergraph_->size(e), width = candidate_size();
    for (Index k = 0; k < size; ++k) set_candidate(sheaf, x, hypergraph_->member(first + k), room + k * width);
    auto best = most_discrepant(size, [&](Index k) { return room + k * width; });
    if (size > 1) {
      for (Index& pair : best) pair = hypergraph_->member(first + pair);
    }
    set_terms(e, best, [](Index pair) { return pair; });
  }
  /// Selects the pairs of cut hyperedges: their owners do, from the candidates of all members.
  void select_cut(Execution execution, const HypergraphPart& part, const Sheaf& sheaf, const S* x) {
    const MemberNumbers& numbers = part.numbers();
    const std::vector<Index>& pair_of_member = part.members().numbers().node;
    const Index width = candidate_size(), begin = part.first_cut();
    parallel_for(execution, static_cast<Index>(numbers.pair_of_row.size()), 16, [&](Index first, Index last) {
      for (Index row = first; row < last; ++row) {
        set_candidate(sheaf, x, numbers.pair_of_row[static_cast<std::size_t>(row)], member_.data() + row * width);
      }
    });
    detail::fetch_halo(&part.members(), member_.data(), width);
    parallel_for(execution, part.owned_end() - begin, 1, [&](Index first, Index last) {
      for (Index k = first; k < last; ++k) {
        const std::size_t from = static_cast<std::size_t>(numbers.first_row[static_cast<std::size_t>(k)]);
        const std::int32_t* row = numbers.row.data() + from;
        const auto best = most_discrepant(hypergraph_->size(begin + k),
                                          [&](Index i) { return member_.data() + row[i] * width; });
        for (std::size_t side = 0; side < 2; ++side) {
          const std::size_t of = static_cast<std::size_t>(row[best[side]]);
          selected_[2 * (begin + k) + static_cast<Index>(side)] = static_cast<double>(pair_of_member[of]);
        }
      }
    });
    detail::fetch_halo(&part.hyperedges(), selected_.data(), 2);
    for (Index e = begin; e < hypergraph_->hyperedge_count(); ++e) {
      set_terms(e, {static_cast<Index>(selected_[2 * e]), static_cast<Index>(selected_[2 * e + 1])},
                [&](Index pair) { return Index{numbers.pair[static_cast<std::size_t>(pair)]}; });
    }
  }
  /// The first two of `size` members, in the order of (lower, higher), whose candidates have the largest distance; −1 of
  /// fewer than two. \param candidate  candidate(k) has the values of member k
  template <class Candidate>
  [[nodiscard]] std::array<Index, 2> most_discrepant(Index size, const Candidate& candidate) const {
    if (size < 2) return {-1, -1};
    std::array<Index, 2> best = {0, 1};
    S largest = S(-1);
    for (Index p = 0; p < size; ++p) {
      for (Index q = p + 1; q < size; ++q) {
        const S distance = squared_distance(candidate(p), candidate(q), candidate_size());
        if (distance > largest) {
          largest = distance;
          best = {p, q};
        }
      }
    }
    return best;
  }
  /// Gives every member of hyperedge e that is here its term.
  ///
  /// \param ends    indices of p and q, or −1 for fewer than two members
  /// \param number  number(pair) is comparable with them
  template <class Number>
  void set_terms(Index e, const std::array<Index, 2>& ends, const Number& number) {
    end_[2 * e] = end_[2 * e + 1] = -1;
    for (Index k = hypergraph_->first_member(e); k < hypergraph_->first_member(e + 1); ++k) {
      const Index pair = hypergraph_->member(k);
      int end = -1;
      for (int side = 0; side < 2; ++side) {
        if (number(pair) == ends[static_cast<std::size_t>(side)]) end = side;
      }
      const auto term = ends[0] < 0 ? kernels::SelectedTerm<S>{-1, S(0)}
                                    : kernels::selected_term<S>(hypergraph_->size(e), mediators_, end);
      slot_[pair] = static_cast<std::int32_t>(term.slot < 0 ? -1 : 2 * e + term.slot);
      weight_[pair] = term.weight;
      if (end >= 0) end_[2 * e + end] = static_cast<std::int32_t>(pair);
    }
  }
  /// F_i x_v, or (F_i x_v) r = F_i (x_v r).
  void set_candidate(const Sheaf& sheaf, const S* x, Index pair, S* out) const {
    if (projection_.empty()) {
      detail::for_tiles<S>(0, channels_, [&]<class T>(auto c) {
        T value[D];
        image<T>(c, sheaf, pair, x, value);
        detail::store_coordinates<D>(c, value, channels_, out + c);
      });
      return;
    }
    const S* own = x + hypergraph_->node(pair) * row();
    S projected[D];
    for (int i = 0; i < D; ++i) {
      projected[i] = S(0);
      for (Index c = 0; c < channels_; ++c) projected[i] += own[i * channels_ + c] * projection_[c];
    }
    kernels::block_times<D, Sizes::map>(sheaf.map(pair), projected, out);
  }
  [[nodiscard]] static S squared_distance(const S* a, const S* b, Index width) {
    S sum = S(0);
    detail::for_tiles<S>(0, width, [&]<class T>(auto c) {
      const T difference = c.load(a + c) - c.load(b + c);
      sum += reduce_add(difference * difference);
    });
    return sum;
  }
  /// D̃_v from the triangles of the Gram matrices.
  void sum_grams(const Sheaf& sheaf, Index v) {
    S sum[Sizes::triangle] = {};
    for (Index i = hypergraph_->first_pair(v); i < hypergraph_->first_pair(v + 1); ++i) {
      const S* gram = sheaf.gram(i);
      for (int k = 0; k < Sizes::triangle; ++k) sum[k] += weight_[i] * gram[k];
    }
    S* block = degree_block_.data() + v * Sizes::gram;
    if constexpr (Sizes::dense_gram) {
      int k = 0;
      for (int j = 0; j < D; ++j) {
        for (int i = 0; i <= j; ++i, ++k) block[j * D + i] = block[i * D + j] = sum[k];
      }
    } else {
      std::copy_n(sum, Sizes::gram, block);
    }
  }

  const Hypergraph* hypergraph_;
  HypergraphLaplacian laplacian_;
  bool mediators_;
  Index channels_, chunks_ = 1;
  Buffer<S> projection_;
  Buffer<S> weight_, degree_block_;  ///< but of the linear Laplacian
  Buffer<std::int32_t> end_, slot_;  ///< of the non-linear one
  Buffer<S> candidate_;              ///< F x of the members of a hyperedge, per chunk of hyperedges
  Buffer<S> member_;                 ///< on a part: F x of the members of cut hyperedges
  Buffer<double> selected_;          ///< on a part: indices of p and q in the whole, of every cut hyperedge
};

}  // namespace sheafnn::layers
