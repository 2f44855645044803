/// \file
/// Directions of ascent of likelihoods whose curvature differs between directions: Fits of León and Cayley distributions.
/// Source: math, "Fits".
/// Unchecked: internal.
#pragma once

#include "sheafnn/core/small_matrix.hpp"

namespace sheafnn::detail {

/// Directions of ascent by the BFGS formula for B, the inverse of minus the Hessian (Nocedal, Wright, Numerical
/// Optimization, 6.17).
template <int P>
class QuasiNewton {
 public:
  using Vector = Column<double, P>;

  /// The direction at a point, B times the gradient there. \param scale  B = scale · I at first
  [[nodiscard]] Vector direction(const Vector& gradient, double scale) {
    const Vector change = gradient_ - gradient;
    const double along = step_.dot(change);
    if (inverse_.size() == 0) {
      inverse_ = scale * Eigen::MatrixXd::Identity(P, P);
    } else if (along > 1e-12 * step_.norm() * change.norm()) {
      const Vector image = inverse_ * change;
      inverse_ += (1 + change.dot(image) / along) / along * step_ * step_.transpose() -
                  (image * step_.transpose() + step_ * image.transpose()) / along;
    }
    gradient_ = gradient;
    return inverse_ * gradient;
  }
  /// The step that was taken from there.
  void took(const Vector& step) { step_ = step; }

 private:
  Eigen::MatrixXd inverse_;  ///< B
  Vector gradient_ = Vector::Zero(), step_ = Vector::Zero();
};

}  // namespace sheafnn::detail
