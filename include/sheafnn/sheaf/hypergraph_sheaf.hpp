/// \file
/// HypergraphSheaf: a stalk R^D on every node and hyperedge of a hypergraph, and a restriction map F_i = F_{v⊴e} for every
/// incident pair i = (v, e). Its Laplacian is HypergraphSheafLaplacian.
///
///     (δx)_i = F_i x_v − mean over j ∈ e of F_j x_u,   L = δᵀδ = D − H B⁻¹ Hᵀ,   Δ = S L S,
///     D_v = Σ_{i ∋ v} F_iᵀF_i,   H_ve = F_iᵀ,   B = diag(δ_e), δ_e the number of members of e
///
/// A hyperedge of two members counts half of an edge; one of one member counts nothing. Source: Sheaf Hypergraph Networks
/// (Duta et al.), "Linear sheaf hypergraph Laplacian" (by nodes); math: "Hypergraphs".
#pragma once

#include <algorithm>
#include <cassert>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/eigen.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/coboundary.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::sheaf {

/// Restriction maps of one family over a hypergraph, of which it owns a share.
template <RestrictionMapFamily Family, class Scalar = double>
class HypergraphSheaf {
  static_assert(std::is_floating_point_v<Scalar>, "a sheaf's scalars are float or double");

 public:
  static constexpr int stalk_dimension = Family::stalk_dimension;
  using Map = typename Family::template Map<Scalar>;
  using DenseMap = SquareMatrix<Scalar, stalk_dimension>;

  /// The trivial sheaf: every map the identity.
  explicit HypergraphSheaf(Hypergraph hypergraph)
      : HypergraphSheaf(std::make_shared<const Hypergraph>(std::move(hypergraph))) {}
  /// As above, with a hypergraph that several sheaves share. \throws std::invalid_argument  a null pointer
  explicit HypergraphSheaf(std::shared_ptr<const Hypergraph> hypergraph) : hypergraph_(std::move(hypergraph)) {
    require(hypergraph_ != nullptr, "hypergraph", "a null pointer", "a sheaf needs a hypergraph");
    maps_.assign(static_cast<std::size_t>(hypergraph_->pair_count()), detail::identity_map<Family, Scalar>());
  }
  /// Takes all maps at once.
  ///
  /// \param maps  nnz × map_size entries, pair by pair; D × D maps row by row
  /// \throws std::invalid_argument  wrong size, or a map that set_map() refuses
  HypergraphSheaf(Hypergraph hypergraph, std::span<const Scalar> maps) : HypergraphSheaf(std::move(hypergraph)) {
    detail::check_map_numbers<Family>(maps.size(), hypergraph_->pair_count(), "incident pairs");
    for (Index i = 0; Family::map_size > 0 && i < hypergraph_->pair_count(); ++i) {
      set_map(i, detail::map_of_rows<Family>(maps.data() + i * Family::map_size));
    }
  }

  [[nodiscard]] const Hypergraph& hypergraph() const noexcept { return *hypergraph_; }
  /// nD.
  [[nodiscard]] Index node_dimension() const noexcept { return hypergraph_->node_count() * stalk_dimension; }
  /// nnz · D, the dimension of what δ maps to.
  [[nodiscard]] Index pair_dimension() const noexcept { return hypergraph_->pair_count() * stalk_dimension; }

  /// The family's own form of the map. Unchecked: the pair; an assertion says so.
  [[nodiscard]] const Map& map(Index pair) const noexcept {
    assert(0 <= pair && pair < hypergraph_->pair_count());
    return maps_[static_cast<std::size_t>(pair)];
  }
  /// F_i as a D × D matrix. Unchecked: the pair.
  [[nodiscard]] DenseMap restriction_map(Index pair) const { return Family::dense(map(pair)); }
  /// Sets the map of a pair.
  ///
  /// \throws std::invalid_argument  pair out of range, an entry that is NaN or infinite, or a map that is not of the
  ///         family (Family::validate)
  void set_map(Index pair, const Map& value) {
    detail::check_map<Family>(pair, hypergraph_->pair_count(), "pair", value);
    maps_[static_cast<std::size_t>(pair)] = value;
  }

 private:
  std::shared_ptr<const Hypergraph> hypergraph_;
  std::vector<Map> maps_;  ///< by pair
};

/// δx: every member against the mean of its hyperedge.
///
/// \param x  (nD) × f, any f
/// \returns  (nnz · D) × f
/// \throws std::invalid_argument  wrong number of rows
template <class Family, class Scalar>
[[nodiscard]] Cochain<Scalar> coboundary(const HypergraphSheaf<Family, Scalar>& sheaf,
                                         const std::type_identity_t<CochainRef<Scalar>>& x,
                                         Execution execution = {}) {
  constexpr int D = Family::stalk_dimension;
  detail::require_rows<Scalar>(x, sheaf.node_dimension(), "C0");
  const Hypergraph& hypergraph = sheaf.hypergraph();
  Cochain<Scalar> y(sheaf.pair_dimension(), x.cols());
  parallel_for(execution, hypergraph.hyperedge_count(), detail::stalk_grain, [&](Index begin, Index end) {
    for (Index e = begin; e < end; ++e) {
      Cochain<Scalar> mean = Cochain<Scalar>::Zero(D, x.cols());
      const auto for_members = [&](const auto& use) {
        for (Index m = hypergraph.first_member(e); m < hypergraph.first_member(e + 1); ++m)
          use(hypergraph.member(m));
      };
      for_members([&](Index i) {
        auto y_i = detail::stalk<D>(y, i);
        y_i = sheaf.restriction_map(i).lazyProduct(detail::stalk<D>(x, hypergraph.node(i)));
        mean += y_i;
      });
      mean /= static_cast<Scalar>(std::max<Index>(1, hypergraph.size(e)));
      for_members([&](Index i) { detail::stalk<D>(y, i) -= mean; });
    }
  });
  return y;
}

/// Δ of a hypergraph sheaf with a normalisation; `degree` counts hyperedges. A snapshot: later changes of the sheaf's maps do
/// not reach it. Symmetric and positive semidefinite; augmented, it is smaller than I. math: "Hypergraphs".
template <RestrictionMapFamily Family, class Scalar_ = double>
class HypergraphSheafLaplacian {
 public:
  using Scalar = Scalar_;
  static constexpr int stalk_dimension = Family::stalk_dimension;
  using DiagonalBlock = Gram<Family, Scalar>;

  /// \throws std::invalid_argument  maps so large that a block overflows
  explicit HypergraphSheafLaplacian(HypergraphSheaf<Family, Scalar> sheaf,
                                    Normalisation normalisation = Normalisation::none)
      : sheaf_(std::move(sheaf)) {
    const Hypergraph& hypergraph = sheaf_.hypergraph();
    for (Index v = 0; v < hypergraph.node_count(); ++v) {
      DiagonalBlock degree = DiagonalBlock::Zero();
      for (Index i = hypergraph.first_pair(v); i < hypergraph.first_pair(v + 1); ++i) {
        degree += gram<Family, Scalar>(sheaf_.map(i));
      }
      if (!degree.allFinite()) {
        throw_invalid_argument(detail::concat("maps of node ", v), detail::concat("ΣF_iᵀF_i = ", degree.sum()),
                               "it must be finite in the scalar type");
      }
      degrees_.push_back(degree);
      scales_.push_back(
          node_scaling<Family, Scalar>(normalisation, degree, static_cast<Scalar>(hypergraph.degree(v))).scale);
    }
  }

  [[nodiscard]] const HypergraphSheaf<Family, Scalar>& sheaf() const noexcept { return sheaf_; }
  /// nD.
  [[nodiscard]] Index rows() const noexcept { return sheaf_.node_dimension(); }
  [[nodiscard]] Index cols() const noexcept { return rows(); }
  /// S_v, in the kind of F_iᵀF_i. Unchecked: the node.
  [[nodiscard]] const DiagonalBlock& scale(Index node) const noexcept {
    return scales_[static_cast<std::size_t>(node)];
  }

  /// Δx, in a walk over hyperedges and one over nodes.
  ///
  /// \param x  (nD) × f, any f
  /// \throws std::invalid_argument  wrong number of rows
  [[nodiscard]] Cochain<Scalar> apply(const CochainRef<Scalar>& x, Execution execution = {}) const {
    constexpr int D = stalk_dimension;
    detail::require_rows<Scalar>(x, rows(), "C0");
    const Hypergraph& hypergraph = sheaf_.hypergraph();
    const Cochain<Scalar> w = scaled(x, execution);
    Cochain<Scalar> mean = Cochain<Scalar>::Zero(hypergraph.hyperedge_count() * D, x.cols());
    parallel_for(execution, hypergraph.hyperedge_count(), detail::stalk_grain, [&](Index begin, Index end) {
      for (Index e = begin; e < end; ++e) {
        auto own = detail::stalk<D>(mean, e);
        for (Index m = hypergraph.first_member(e); m < hypergraph.first_member(e + 1); ++m) {
          const Index i = hypergraph.member(m);
          own += sheaf_.restriction_map(i).lazyProduct(detail::stalk<D>(w, hypergraph.node(i)));
        }
        own /= static_cast<Scalar>(std::max<Index>(1, hypergraph.size(e)));
      }
    });
    Cochain<Scalar> r = Cochain<Scalar>::Zero(rows(), x.cols());
    parallel_for(execution, hypergraph.node_count(), detail::stalk_grain, [&](Index begin, Index end) {
      for (Index v = begin; v < end; ++v) {
        auto own = detail::stalk<D>(r, v);
        detail::add_block_product(degrees_[static_cast<std::size_t>(v)], detail::stalk<D>(w, v), own);
        for (Index i = hypergraph.first_pair(v); i < hypergraph.first_pair(v + 1); ++i) {
          own -=
              sheaf_.restriction_map(i).transpose().lazyProduct(detail::stalk<D>(mean, hypergraph.hyperedge(i)));
        }
      }
    });
    return scaled(r, execution);
  }

  /// Δ as a dense matrix, for small hypergraphs.
  [[nodiscard]] Cochain<Scalar> dense() const { return apply(Cochain<Scalar>::Identity(rows(), rows())); }

 private:
  /// S x.
  [[nodiscard]] Cochain<Scalar> scaled(const CochainRef<Scalar>& x, Execution execution) const {
    constexpr int D = stalk_dimension;
    Cochain<Scalar> r = Cochain<Scalar>::Zero(x.rows(), x.cols());
    parallel_for(execution, sheaf_.hypergraph().node_count(), detail::stalk_grain, [&](Index begin, Index end) {
      for (Index v = begin; v < end; ++v) {
        detail::add_block_product(scale(v), detail::stalk<D>(x, v), detail::stalk<D>(r, v));
      }
    });
    return r;
  }

  HypergraphSheaf<Family, Scalar> sheaf_;
  std::vector<DiagonalBlock> degrees_, scales_;  ///< D_v, S_v
};

/// The matrix formula of the paper, M_vv = Σ_i F_iᵀF_i/δ_e and M_uv = −Σ_e F_iᵀF_j/δ_e: another operator than δᵀδ unless all
/// hyperedges have two members, and not positive semidefinite. For comparisons, as a dense matrix.
template <class Family, class Scalar>
[[nodiscard]] Cochain<Scalar> published_laplacian(const HypergraphSheaf<Family, Scalar>& sheaf) {
  constexpr int D = Family::stalk_dimension;
  const Hypergraph& hypergraph = sheaf.hypergraph();
  Cochain<Scalar> r = Cochain<Scalar>::Zero(sheaf.node_dimension(), sheaf.node_dimension());
  for (Index e = 0; e < hypergraph.hyperedge_count(); ++e) {
    const Scalar share = Scalar(1) / static_cast<Scalar>(std::max<Index>(1, hypergraph.size(e)));
    for (Index a = hypergraph.first_member(e); a < hypergraph.first_member(e + 1); ++a) {
      for (Index b = hypergraph.first_member(e); b < hypergraph.first_member(e + 1); ++b) {
        const Index i = hypergraph.member(a), j = hypergraph.member(b);
        r.template block<D, D>(hypergraph.node(i) * D, hypergraph.node(j) * D) +=
            (i == j ? share : -share) * sheaf.restriction_map(i).transpose() * sheaf.restriction_map(j);
      }
    }
  }
  return r;
}

}  // namespace sheafnn::sheaf

namespace sheafnn {

using sheaf::HypergraphSheaf, sheaf::HypergraphSheafLaplacian;

}  // namespace sheafnn
