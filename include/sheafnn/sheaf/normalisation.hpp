/// \file
/// Node scalings S_u of the normalised sheaf Laplacian Δ = S L S, with their derivatives.
///
/// | normalisation | S_u                  | remark                                                              |
/// | ------------- | -------------------- | ------------------------------------------------------------------- |
/// | none          | I                    | Δ = L                                                               |
/// | block         | D_u^{-1/2}           | pseudo-inverse where D_u is singular (isolated nodes, rank loss)    |
/// | augmented     | (D_u + I)^{-1/2}     | needs no invertibility; the model's default                         |
/// | degree        | (c·deg u + 1)^{-1/2} | c = D for dense Gram matrices, else 1; does not depend on the maps           |
///
/// Source: paper, "sheaf Laplacian"; math: "Coboundary and Laplacian" (1.3), "SPD inverse square root" (1.6).
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/sheaf/blocks.hpp"
#include "sheafnn/sheaf/family.hpp"
#include "sheafnn/sheaf/symmetric_eigen.hpp"

namespace sheafnn::sheaf {

/// See the table on top of this file; math: "Coboundary and Laplacian" (1.3).
enum class Normalisation { none, block, augmented, degree };

/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(Normalisation) { return std::array{"none", "block", "augmented", "degree"}; }

/// \throws std::invalid_argument  unknown name
[[nodiscard]] inline Normalisation parse_normalisation(std::string_view text) {
  return parse_name<Normalisation>("normalisation", text);
}

/// S_u and what its backward pass needs. For dense Gram matrices S = Q diag(s) Qᵀ; otherwise S alone suffices.
template <class Family, class T, bool Dense = is_dense_block<Gram<Family, T>>>
struct NodeScaling {
  Gram<Family, T> scale;  ///< S_u
};
template <class Family, class T>
struct NodeScaling<Family, T, true> {
  Gram<Family, T> scale;                             ///< S_u
  SquareMatrix<T, Family::stalk_dimension> vectors;  ///< Q
  Column<T, Family::stalk_dimension> root;           ///< s = eigenvalues of S_u
};

}  // namespace sheafnn::sheaf

namespace sheafnn::detail {

/// λ^{-1/2}, and 0 where λ does not exceed `least`.
template <class T>
SHEAFNN_HD SHEAFNN_INLINE T guarded_inverse_sqrt(const T& value, const T& least) {
  using std::sqrt;
  const auto usable = value > least;
  return select(usable, T(1) / sqrt(select(usable, value, T(1))), T(0));
}

/// What normalises fixed filters at a node, on either side: (degree + 1)^{-1/2}, or degree^{-1/2} and 0 for 0.
template <class S>
[[nodiscard]] S filter_scale(Index degree, bool augmented) {
  const S value = static_cast<S>(degree) + S(augmented ? 1 : 0);
  return value > 0 ? S(1) / std::sqrt(value) : S(0);
}

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// S_u from D_u = Σ F_aᵀF_a (weights included) and the node's number of neighbours.
/// Unchecked: that D_u is positive semidefinite and the number not negative; NaN gives NaN.
template <class Family, class T>
[[nodiscard]] SHEAFNN_HD inline NodeScaling<Family, T> node_scaling(Normalisation normalisation,
                                                                    const Gram<Family, T>& degree_block,
                                                                    const T& degree) {
  using Scalar = scalar_of_t<T>;
  constexpr int dimension = Family::stalk_dimension;
  constexpr bool dense = is_dense_block<Gram<Family, T>>;
  const Gram<Family, T> one = gram_identity<Family, T>();
  NodeScaling<Family, T> r;
  if (normalisation == Normalisation::none || normalisation == Normalisation::degree) {
    constexpr Scalar rate = dense ? Scalar(dimension) : Scalar(1);
    const T value =
        normalisation == Normalisation::none ? T(1) : detail::guarded_inverse_sqrt(T(rate) * degree + T(1), T(0));
    r.scale = block_product(Eigen::Matrix<T, 1, 1>(value), one);
    if constexpr (dense) {
      r.vectors = one;
      r.root = Column<T, dimension>::Constant(value);
    }
    return r;
  }
  const bool augmented = normalisation == Normalisation::augmented;
  if constexpr (dense) {
    const SymmetricEigen<T, dimension> eigen = symmetric_eigen(degree_block);
    T trace = eigen.values(0);
    for (int i = 1; i < dimension; ++i) trace += eigen.values(i);
    const T least = trace * T(Scalar(8 * dimension) * std::numeric_limits<Scalar>::epsilon());
    r.vectors = eigen.vectors;
    for (int i = 0; i < dimension; ++i) {
      using std::sqrt;
      const T& value = eigen.values(i);
      // Eigenvalues of D are not negative except for rounding, and 1 is added to them, not to D: next to large ones, S
      // would lose the directions in which D is small, where it is nearly 1.
      r.root(i) = augmented ? T(1) / sqrt(T(1) + select(value > T(0), value, T(0)))
                            : detail::guarded_inverse_sqrt(value, least);
    }
    for (int j = 0; j < dimension; ++j) {
      for (int i = 0; i <= j; ++i) {
        T sum = r.vectors(i, 0) * r.root(0) * r.vectors(j, 0);
        for (int k = 1; k < dimension; ++k) sum += r.vectors(i, k) * r.root(k) * r.vectors(j, k);
        r.scale(i, j) = sum;
        r.scale(j, i) = sum;
      }
    }
  } else {
    for (int i = 0; i < BlockSizes<Family>::gram_rows; ++i) {
      const T shifted = degree_block(i, 0) + T(augmented ? 1 : 0);
      r.scale(i, 0) = detail::guarded_inverse_sqrt(shifted, T(0));
    }
  }
  return r;
}

/// Adds to degree_bar the derivative of ⟨scale_bar, S_u⟩ with respect to D_u.
///
/// For a diagonal S, ∂D^{-1/2} = −½ S³; for a dense one D̄ = Q [(Qᵀ S̄ Q) ∘ K] Qᵀ with
/// K_ij = −s_i² s_j² / (s_i + s_j), finite at repeated eigenvalues. scale_bar need not be symmetric.
/// Unchecked: that it is the scaling of D_u.
template <class Family, class T>
SHEAFNN_HD inline void node_scaling_backward(Normalisation normalisation, const NodeScaling<Family, T>& scaling,
                                             const Gram<Family, T>& scale_bar, Gram<Family, T>& degree_bar) {
  if (normalisation == Normalisation::none || normalisation == Normalisation::degree) return;
  constexpr int dimension = Family::stalk_dimension;
  if constexpr (is_dense_block<Gram<Family, T>>) {
    const SquareMatrix<T, dimension> symmetric = T(0.5) * (scale_bar + scale_bar.transpose());
    SquareMatrix<T, dimension> inner = multiply(multiply_tn(scaling.vectors, symmetric), scaling.vectors);
    const T tiny = T(std::numeric_limits<scalar_of_t<T>>::min());
    for (int j = 0; j < dimension; ++j) {
      for (int i = 0; i < dimension; ++i) {
        const T product = scaling.root(i) * scaling.root(j), sum = scaling.root(i) + scaling.root(j) + tiny;
        // Without the 1 of the augmented Laplacian s may be so large that s³ overflows where s³ S̄ does not.
        inner(i, j) = normalisation == Normalisation::augmented ? inner(i, j) * (-(product * product) / sum)
                                                                : (product * inner(i, j)) * (-product / sum);
      }
    }
    degree_bar += multiply_nt(multiply(scaling.vectors, inner), scaling.vectors);
  } else {
    for (int i = 0; i < BlockSizes<Family>::gram_rows; ++i) {
      const T s = scaling.scale(i, 0);
      degree_bar(i, 0) += normalisation == Normalisation::augmented ? T(-0.5) * s * s * s * scale_bar(i, 0)
                                                                    : T(-0.5) * s * (s * (s * scale_bar(i, 0)));
    }
  }
}

}  // namespace sheafnn::sheaf

namespace sheafnn {

using sheaf::Normalisation;

}  // namespace sheafnn
