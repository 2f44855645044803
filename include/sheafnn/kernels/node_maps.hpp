/// \file
/// The maps of a cooperative sheaf at one node, T = τ P and S = σ R. Functions give what they scale with, what the node sends
/// and receives through them, and the derivatives,
///
///     τ = exp(min(log τ, ln 10)),   a = (deg⁺ τ² + 1)^{-1/2},   sent = a S x,   (Δ x)_u = diagonal x − a Tᵀ Σ sent
///
/// with T in place of both maps where they are alike (math: "Cooperative sheaves" (4.2), "Backward pass of a
/// cooperative layer" (4.8)). At a tile T of channels x are the D coordinates of the node in it. What has no channels takes
/// scalars or packs of nodes.
///
/// Unchecked: pointers to D² entries of a map, row by row, and to D tiles.
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/kernels/block.hpp"

namespace sheafnn::kernels {

/// Node maps are stored in rows, blocks in columns.
inline constexpr bool map_by_rows = true;

/// x = factor · x.
template <int D, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void scale_node(S factor, T* x) {
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) x[i] *= T(factor);
}

/// What a node sends of x: factor · S x. \param map  S
template <int D, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void send(const S* map, S factor, const T* x, T* sent) {
  block_times<D, D * D, map_by_rows>(map, x, sent);
  scale_node<D>(factor, sent);
}
/// What a node makes of x, its own, and of the sum that it has received: diagonal · x − factor · Tᵀ sum. \param map  T
template <int D, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void receive(const S* map, S factor, S diagonal, const T* x, const T* sum, T* y) {
  block_times<D, D * D, !map_by_rows>(map, sum, y);
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) y[i] = T(-factor) * y[i] + T(diagonal) * x[i];
}
/// Backwards through receive(), what a node returns of ȳ: −factor · T ȳ. \param map  T
template <int D, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void give_back(const S* map, S factor, const T* y_bar, T* returned) {
  block_times<D, D * D, map_by_rows>(map, y_bar, returned);
  scale_node<D>(-factor, returned);
}
/// Backwards through send(), x̄ − diagonal · ȳ from the sum of what was returned: factor · Sᵀ sum. \param map  S
template <int D, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void take_back(const S* map, S factor, const T* sum, T* x_bar) {
  block_times<D, D * D, !map_by_rows>(map, sum, x_bar);
  scale_node<D>(factor, x_bar);
}

/// In how many coordinates a conformal map may be varied: rotations, and its scale.
template <int D>
inline constexpr int map_variations = D*(D - 1) / 2 + 1;

/// use(k, value) for the entries of m = x yᵀ that a conformal map's derivative has: m_ij − m_ji for i < j, row by row, then
/// tr m.
template <int D, class T, class Use>
SHEAFNN_HD SHEAFNN_INLINE void for_map_products(const T* x, const T* y, const Use& use) {
  T trace = x[0] * y[0];
  SHEAFNN_UNROLL for (int i = 0, k = 0; i < D; ++i) {
    if (i > 0) trace += x[i] * y[i];
    SHEAFNN_UNROLL for (int j = i + 1; j < D; ++j, ++k) use(k, x[i] * y[j] - x[j] * y[i]);
  }
  use(map_variations<D> - 1, trace);
}

/// The logarithm of the largest scale, ten.
inline constexpr double largest_log_scale = 2.302585092994045684;
/// The logarithm of the smallest scale, 10⁻³⁰: R = T / τ in single precision, too.
inline constexpr double smallest_log_scale = -30 * largest_log_scale;

/// What the scale of one map of a node makes of the operators.
template <class T>
struct MapScaling {
  T scale;     ///< τ
  T factor;    ///< a = (deg τ² + 1)^{-1/2}
  T diagonal;  ///< a² counted τ²

  /// \param log_scale  not limited; ignored without scales (not conformal)
  /// \param degree     arcs on the map's side
  /// \param counted    arcs that the operator's diagonal counts
  SHEAFNN_HD MapScaling(bool conformal, const T& log_scale, const T& degree, const T& counted) {
    using std::exp;
    using std::sqrt;
    const T most = T(largest_log_scale), least = T(smallest_log_scale);
    const T limited = select(log_scale > most, most, select(log_scale < least, least, log_scale));
    scale = conformal ? exp(limited) : T(1);
    const T squared = scale * scale, inverse = T(1) / (degree * squared + T(1));
    factor = sqrt(inverse);
    diagonal = counted * squared * inverse;
  }
};

/// The derivatives in both maps of a node, from the values that for_map_products() gives for the two operators, summed over
/// channels. Of a map M with the derivative G, its factor included, these are m = G Mᵀ for T and m = Mᵀ G for S. They are the
/// derivatives in infinitesimal rotations from the left or from the right, and in the logarithm of the scale.
template <int D, class T>
class MapDerivatives {
 public:
  static constexpr int size = map_variations<D>;

  SHEAFNN_HD MapDerivatives() {
    for (int side = 0; side < 2; ++side) {
      factor_product_[side] = T(0);
      for (T& one : turned_[side]) one = T(0);
    }
  }
  /// Takes the derivatives of one map (T: side 0, S: 1) in an operator. \param numbers  size
  SHEAFNN_HD SHEAFNN_INLINE void add(int op, int side, const T* numbers) {
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) turned_[side][k] += numbers[k];
    factor_product_[op] += numbers[size - 1];
  }
  /// R̄ = ½ K R of T or ½ R K of S, K the antisymmetric matrix of these values.
  template <class Matrix>
  SHEAFNN_HD void rotation(int side, const Matrix& r, Matrix& r_bar) const {
    T half[D][D];
    for (int i = 0, k = 0; i < D; ++i) {
      half[i][i] = T(0);
      for (int j = i + 1; j < D; ++j, ++k) {
        half[i][j] = T(0.5) * turned_[side][k];
        half[j][i] = -half[i][j];
      }
    }
    for (int i = 0; i < D; ++i) {
      for (int j = 0; j < D; ++j) {
        T sum = T(0);
        for (int k = 0; k < D; ++k) sum += side == 0 ? half[i][k] * r(k, j) : r(i, k) * half[k][j];
        r_bar(i, j) = sum;
      }
    }
  }
  /// The derivative in log τ, of maps that have scales. a multiplies T and S of the first operator, so that a ā is the sum
  /// of the traces t₁_T + t₁_S. log τ̄ is t₁_T + t₂_T and what comes through a and the diagonal, where counted = deg:
  ///     d a / d log τ = −deg τ² a³,    d (a² counted τ²) / d log τ = 2 counted τ² a⁴.
  ///
  /// \param log_scale         not limited
  /// \param diagonal_product  ⟨ȳ, x⟩ of the operator of this side's factor
  SHEAFNN_HD SHEAFNN_INLINE T log_scale(int side, const T& log_scale, const T& scale, const T& factor,
                                        const T& degree, const T& counted, const T& diagonal_product) const {
    const T squared = scale * scale, aa = factor * factor;
    const T product = turned_[side][size - 1] +
                      (T(2) * diagonal_product * counted * aa - factor_product_[side] * degree) * squared * aa;
    return select(log_scale > T(largest_log_scale), T(0), product);
  }

 private:
  T turned_[2][size], factor_product_[2];
};

}  // namespace sheafnn::kernels
