/// \file
/// Off-diagonal blocks of the normalised sheaf Laplacian, with their backward pass.
///
/// For an arc a = (u→v) of edge e, Q_a = F_aᵀ F_{rev a}; S_u scales node u; Δ_uv = −S_u Q_a S_v (math: "Coboundary
/// and Laplacian"). Diagonal blocks Δ_uu = S_u D_u S_u need no family: diagonal_block() in sheaf/blocks.hpp.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/sheaf/blocks.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn::sheaf {

/// Δ_uv = −S_u Q S_v. Takes any blocks.
template <class Family, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Transport<Family, T> off_diagonal_block(const Gram<Family, T>& scale_u,
                                                                                const Transport<Family, T>& q,
                                                                                const Gram<Family, T>& scale_v) {
  return -block_product(block_product(scale_u, q), scale_v);
}

/// Backward of off_diagonal_block: sets q_bar = −S_u T̄ S_v and the (unsymmetrised) scale derivatives
/// S̄_u = −T̄ S_v Qᵀ, S̄_v = −Qᵀ S_u T̄, reduced to the shape of S. Takes any blocks.
template <class Family, class T>
SHEAFNN_HD SHEAFNN_INLINE void off_diagonal_block_backward(
    const Gram<Family, T>& scale_u, const Transport<Family, T>& q, const Gram<Family, T>& scale_v,
    const Transport<Family, T>& block_bar, Transport<Family, T>& q_bar, Gram<Family, T>& scale_u_bar,
    Gram<Family, T>& scale_v_bar) {
  const Transport<Family, T> minus = -block_bar;
  q_bar = block_product(block_product(scale_u, minus), scale_v);
  if constexpr (Gram<Family, T>::RowsAtCompileTime == 1) {
    const T inner = inner_product(minus, q);
    scale_u_bar(0, 0) = inner * scale_v(0, 0);
    scale_v_bar(0, 0) = inner * scale_u(0, 0);
  } else {
    const Transport<Family, T> qt = block_transpose(q);
    scale_u_bar = block_product(block_product(minus, scale_v), qt);
    scale_v_bar = block_product(qt, block_product(scale_u, minus));
  }
}

}  // namespace sheafnn::sheaf
