/// \file
/// Algebra of Laplacian blocks: multiples of the identity (1 × 1), diagonals (D × 1) and dense blocks (D × D), one
/// set of functions for all, with the backward pass of each beside it. T = float, double or Pack; branch-free.
///
/// Notation: for an arc a = (u→v) of edge e, Q_a = F_aᵀ F_{rev a}; D_u = Σ_{a: u→·} F_aᵀF_a; S_u scales node u;
/// the normalised Laplacian has blocks Δ_uv = −S_u Q_a S_v and Δ_uu = S_u D_u S_u (math: "Coboundary and
/// Laplacian"). A bar (x̄, `x_bar`) is the derivative of the loss with respect to x.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace sheafnn {

/// F_aᵀF_a, without edge weight (a rotation with weight w has w² I).
template <class Family, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Gram<Family, T> gram(const typename Family::template Map<T>& map) {
  if constexpr (Family::kind == MapKind::fixed || Family::kind == MapKind::rotation) {
    return Gram<Family, T>::Constant(T(1));
  } else if constexpr (Family::kind == MapKind::diagonal) {
    return map.cwiseProduct(map);
  } else {
    return multiply_tn(map, map);
  }
}

/// Adds the derivative of ⟨gram_bar, F_aᵀF_a⟩ to map_bar: F̄ += F (Ḡ + Ḡᵀ).
template <class Family, class T>
SHEAFNN_HD SHEAFNN_INLINE void gram_backward(const typename Family::template Map<T>& map,
                                             const Gram<Family, T>& gram_bar,
                                             typename Family::template Map<T>& map_bar) {
  if constexpr (Family::kind == MapKind::diagonal) {
    for (int i = 0; i < Family::stalk_dimension; ++i) map_bar(i) += T(2) * map(i) * gram_bar(i);
  } else if constexpr (Family::kind == MapKind::dense) {
    map_bar += multiply<T>(map, SquareMatrix<T, Family::stalk_dimension>(gram_bar + gram_bar.transpose()));
  }
}

/// F_aᵀF_b.
template <class Family, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Transport<Family, T> transport(const typename Family::template Map<T>& a,
                                                                       const typename Family::template Map<T>& b) {
  if constexpr (Family::kind == MapKind::fixed) {
    return Transport<Family, T>::Constant(T(1));
  } else if constexpr (Family::kind == MapKind::diagonal) {
    return a.cwiseProduct(b);
  } else {
    return multiply_tn(a, b);
  }
}

/// Adds the derivative of ⟨transport_bar, F_aᵀF_b⟩ to a_bar and b_bar: F̄_a += F_b Q̄ᵀ, F̄_b += F_a Q̄.
template <class Family, class T>
SHEAFNN_HD SHEAFNN_INLINE void transport_backward(const typename Family::template Map<T>& a,
                                                  const typename Family::template Map<T>& b,
                                                  const Transport<Family, T>& transport_bar,
                                                  typename Family::template Map<T>& a_bar,
                                                  typename Family::template Map<T>& b_bar) {
  if constexpr (Family::kind == MapKind::diagonal) {
    a_bar += b.cwiseProduct(transport_bar);
    b_bar += a.cwiseProduct(transport_bar);
  } else if constexpr (Family::kind != MapKind::fixed) {
    a_bar += multiply_nt(b, transport_bar);
    b_bar += multiply(a, transport_bar);
  }
}

/// Left block times right block, for the kinds that occur: multiples of I and diagonals act on anything of their
/// own shape or larger.
template <class T, int R, int C, int R2, int C2>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE auto block_product(const Eigen::Matrix<T, R, C>& a,
                                                           const Eigen::Matrix<T, R2, C2>& b) {
  if constexpr (R == 1) {
    Eigen::Matrix<T, R2, C2> r;
    for (int j = 0; j < C2; ++j) {
      for (int i = 0; i < R2; ++i) r(i, j) = a(0, 0) * b(i, j);
    }
    return r;
  } else if constexpr (R2 == 1) {
    return block_product(b, a);
  } else if constexpr (C == 1) {
    static_assert(C2 == 1, "a diagonal meets a diagonal");
    return Eigen::Matrix<T, R, 1>(a.cwiseProduct(b));
  } else {
    return multiply(a, b);
  }
}

/// The transposed block (itself unless dense).
template <class T, int R, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Eigen::Matrix<T, R, C> block_transpose(const Eigen::Matrix<T, R, C>& a) {
  if constexpr (C == 1) {
    return a;
  } else {
    return a.transpose();
  }
}

/// Δ_uv = −S_u Q S_v.
template <class Family, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Transport<Family, T> off_diagonal_block(const Gram<Family, T>& scale_u,
                                                                                const Transport<Family, T>& q,
                                                                                const Gram<Family, T>& scale_v) {
  return -block_product(block_product(scale_u, q), scale_v);
}

/// Backward of off_diagonal_block: sets q_bar = −S_u T̄ S_v and the (unsymmetrised) scale derivatives
/// S̄_u = −T̄ S_v Qᵀ, S̄_v = −Qᵀ S_u T̄, reduced to the kind of S.
template <class Family, class T>
SHEAFNN_HD SHEAFNN_INLINE void off_diagonal_block_backward(const Gram<Family, T>& scale_u,
                                                           const Transport<Family, T>& q,
                                                           const Gram<Family, T>& scale_v,
                                                           const Transport<Family, T>& block_bar,
                                                           Transport<Family, T>& q_bar, Gram<Family, T>& scale_u_bar,
                                                           Gram<Family, T>& scale_v_bar) {
  const Transport<Family, T> minus = -block_bar;
  q_bar = block_product(block_product(scale_u, minus), scale_v);
  if constexpr (Family::gram_rows == 1) {
    const T inner = inner_product(minus, q);
    scale_u_bar(0, 0) = inner * scale_v(0, 0);
    scale_v_bar(0, 0) = inner * scale_u(0, 0);
  } else {
    const Transport<Family, T> qt = block_transpose(q);
    scale_u_bar = block_product(block_product(minus, scale_v), qt);
    scale_v_bar = block_product(qt, block_product(scale_u, minus));
  }
}

/// Δ_uu = S_u D_u S_u, of the kind of D.
template <class T, int R, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Eigen::Matrix<T, R, C> diagonal_block(const Eigen::Matrix<T, R, C>& scale,
                                                                              const Eigen::Matrix<T, R, C>& degree) {
  return block_product(block_product(scale, degree), scale);
}

/// Backward of diagonal_block for symmetric B̄: D̄ += S B̄ S, S̄ += B̄ S D + D S B̄ (symmetric).
template <class T, int R, int C>
SHEAFNN_HD SHEAFNN_INLINE void diagonal_block_backward(const Eigen::Matrix<T, R, C>& scale,
                                                       const Eigen::Matrix<T, R, C>& degree,
                                                       const Eigen::Matrix<T, R, C>& block_bar,
                                                       Eigen::Matrix<T, R, C>& scale_bar,
                                                       Eigen::Matrix<T, R, C>& degree_bar) {
  degree_bar += block_product(block_product(scale, block_bar), scale);
  const Eigen::Matrix<T, R, C> half = block_product(block_product(block_bar, scale), degree);
  scale_bar += half + block_transpose(half);
}

}  // namespace sheafnn
