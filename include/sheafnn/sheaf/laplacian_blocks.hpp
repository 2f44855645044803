/// \file
/// Off-diagonal blocks of the normalised sheaf Laplacian.
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

}  // namespace sheafnn::sheaf
