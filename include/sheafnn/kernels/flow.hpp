/// \file
/// The right-hand side of a flow and its derivative, and the sums of a Runge–Kutta step. They are at one value or a tile T
/// of channels (math: "Continuous-time diffusion"):
///
///     K = −q act(q Z),   Z̄ = −K̄ act′(q Z),   q = ±1,   act = ELU or nothing                        (3.31)
///     X_i = X + h Σ_j a_ij K_j,   X⁺ = X + h Σ_i b_i K_i,   K̄_i = h b_i x̄⁺ + h Σ_l a_li X̄_l      (3.32, 3.34)
///
/// Unchecked: the number of terms of a sum. Takes any numbers.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/layer_end.hpp"

namespace sheafnn::kernels {

/// The right-hand side at one value.
template <class S>
struct FlowSlope {
  bool activation = true;
  S sign = S(1);  ///< q

  /// K from Z.
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const T& z) const {
    return activation ? -(T(sign) * activated(T(sign) * z, true)) : -z;
  }
  /// Z̄ from K̄.
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T backward(const T& bar, const T& z) const {
    return activated_bar(bar, T(sign) * z, activation);
  }
};

/// Largest number of stages of a step.
inline constexpr int max_stages = 6;

/// Σ_j factor_j array_j, of arrays of features; terms with a factor of 0 are left out.
template <class S>
struct StageSum {
  S factor[max_stages + 1] = {};
  const S* array[max_stages + 1] = {};
  int terms = 0;

  void add(double by, const S* values) {
    if (by == 0) return;
    factor[terms] = static_cast<S>(by);
    array[terms++] = values;
  }
  /// start + the sum. \param load  load(array_j): its value at this element
  template <class T, class Load>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T at(T start, const Load& load) const {
    for (int j = 0; j < terms; ++j) start += T(factor[j]) * load(array[j]);
    return start;
  }
};

}  // namespace sheafnn::kernels
