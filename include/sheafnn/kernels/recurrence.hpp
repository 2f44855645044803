/// \file
/// One step of a polynomial filter's three-term recurrence at one coordinate of a node (math: "Polynomial filters"),
///
///     V_{k+1} = c_k ΔV_k + (B_k − A_k) V_k − C_k V_{k−1},
///
/// and of Clenshaw's, which adds w_k Y. Takes any numbers.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/multiply_add.hpp"

namespace sheafnn::kernels {

/// slope · Δx + own · x + before · (the array before x) + direct · y. T is a scalar or a tile of channels.
template <class T>
struct FilterFactors {
  T slope = T(0), own = T(0), before = T(0), direct = T(0);

  /// The part of x. \param diffused  Δx
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T operator()(const T& diffused, const T& x) const {
    return detail::multiply_add(slope, diffused, own * x);
  }
  /// A sum and the part of the array before x.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T with_previous(const T& sum, const T& previous) const {
    return detail::multiply_add(before, previous, sum);
  }
  /// A sum and the part of y.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T with_direct(const T& sum, const T& y) const {
    return detail::multiply_add(direct, y, sum);
  }
};

}  // namespace sheafnn::kernels
