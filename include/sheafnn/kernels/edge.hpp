/// \file
/// What the sheaf learner makes of an edge's two ends, and the derivatives, T a pack of edges or one of them:
///
///     h = act(p_u + p_v),   s = sigmoid(p_u + p_v),   w = s_u s_v
///
/// for the ends' projections p (math: "First sheaf-learner layer, cheaply" (3.9)). Takes any numbers.
#pragma once

#include "sheafnn/core/config.hpp"

namespace sheafnn::kernels {

/// The derivative of ω·[Z_u‖Z_v] at one end from w̄ and the sigmoids s of this end and of the other.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T edge_logit_bar(const T& weight_bar, const T& own, const T& other) {
  return weight_bar * other * own * (T(1) - own);
}

}  // namespace sheafnn::kernels
