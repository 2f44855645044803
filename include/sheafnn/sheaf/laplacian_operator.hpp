/// \file
/// LaplacianOperator: Δ + shift·I as a matrix-free operator for Eigen's iterative solvers and Spectra-style
/// solvers.
///
///     Eigen::ConjugateGradient<Operator, Eigen::Lower | Eigen::Upper, Eigen::IdentityPreconditioner> solver(op);
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SparseCore>
#include <cassert>
#include <cmath>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/sheaf/laplacian.hpp"

namespace sheafnn::sheaf {

template <RestrictionMapFamily Family, class Scalar = double>
class LaplacianOperator;

}  // namespace sheafnn::sheaf

/// Eigen sees the operator as a sparse matrix it cannot look into.
template <class Family, class Scalar>
struct Eigen::internal::traits<sheafnn::sheaf::LaplacianOperator<Family, Scalar>>
    : Eigen::internal::traits<Eigen::SparseMatrix<Scalar>> {};

namespace sheafnn::sheaf {

/// x ↦ Δx + shift·x. Refers to a Laplacian that has to outlive it.
template <RestrictionMapFamily Family, class Scalar_>
class LaplacianOperator : public Eigen::EigenBase<LaplacianOperator<Family, Scalar_>> {
 public:
  using Laplacian = SheafLaplacian<Family, Scalar_>;
  using Scalar = Scalar_;
  using RealScalar = Scalar;
  using StorageIndex = int;
  enum { ColsAtCompileTime = Eigen::Dynamic, MaxColsAtCompileTime = Eigen::Dynamic, IsRowMajor = false };

  /// \param shift    added on the diagonal; a positive one makes the operator positive definite
  /// \param execution  how many threads a product may use
  /// \throws std::invalid_argument  a shift that is not finite
  explicit LaplacianOperator(const Laplacian& laplacian, Scalar shift = 0, Execution execution = {})
      : laplacian_(&laplacian), shift_(shift), execution_(execution) {
    require(std::isfinite(shift), "shift", shift, "must be finite");
  }
  LaplacianOperator(const Laplacian&&, Scalar = 0, Execution = {}) = delete;  // it would dangle

  [[nodiscard]] Eigen::Index rows() const noexcept { return laplacian_->rows(); }
  [[nodiscard]] Eigen::Index cols() const noexcept { return laplacian_->rows(); }

  /// Lazy product for Eigen's solvers and expressions. \throws std::invalid_argument  as apply(), when it is evaluated
  template <class Rhs>
  [[nodiscard]] Eigen::Product<LaplacianOperator, Rhs, Eigen::AliasFreeProduct> operator*(
      const Eigen::MatrixBase<Rhs>& x) const {
    return {*this, x.derived()};
  }

  /// y = (Δ + shift·I) x for solvers in Spectra's style. Unchecked: that both have rows() entries and do not overlap.
  void perform_op(const Scalar* x, Scalar* y) const {
    const Eigen::Map<const Cochain<Scalar>> input(x, rows(), 1);
    Eigen::Map<Cochain<Scalar>> output(y, rows(), 1);
    apply(input, output);
  }

  /// y = (Δ + shift·I) x, x and y (nD) × f. \throws std::invalid_argument  as SheafLaplacian::apply()
  void apply(const CochainRef<Scalar>& x, Eigen::Ref<Cochain<Scalar>> y) const {
    laplacian_->apply(x, y, execution_);
    if (shift_ != 0) y += shift_ * x;
  }

 private:
  const Laplacian* laplacian_;
  Scalar shift_;
  Execution execution_;
};

}  // namespace sheafnn::sheaf

/// How Eigen evaluates the product of the operator and a dense matrix or vector.
template <class Family, class Scalar, class Rhs, int ProductType>
struct Eigen::internal::generic_product_impl<sheafnn::sheaf::LaplacianOperator<Family, Scalar>, Rhs, Eigen::SparseShape,
                                             Eigen::DenseShape, ProductType>
    : Eigen::internal::generic_product_impl_base<
          sheafnn::sheaf::LaplacianOperator<Family, Scalar>, Rhs,
          Eigen::internal::generic_product_impl<sheafnn::sheaf::LaplacianOperator<Family, Scalar>, Rhs,
                                                Eigen::SparseShape, Eigen::DenseShape, ProductType>> {
  template <class Destination>
  static void scaleAndAddTo(Destination& y, const sheafnn::sheaf::LaplacianOperator<Family, Scalar>& op, const Rhs& x,
                            const Scalar& factor) {
    const sheafnn::Cochain<Scalar> input = x;
    sheafnn::Cochain<Scalar> output(input.rows(), input.cols());
    op.apply(input, output);
    y += factor * output;
  }
};
