// Backward passes of the block algebra and the node scalings against central differences along every coordinate.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "map_kind.hpp"
#include "sheaf_block_operations.hpp"

namespace test_sheaf_derivatives {
using namespace sheaf_checks;

namespace {

struct Function {
  int inputs, outputs;
  bool polynomial;
  std::function<void(const double*, double*)> forward;
  std::function<void(const double*, const double*, double*)> backward;
};
template <class Op>
Function function_of() {
  return {Op::inputs, Op::outputs, Op::polynomial, &Op::template forward<double>, &Op::template backward<double>};
}

// ⟨out_bar, f(in)⟩ along every coordinate. The polynomials have degree at most 2 in every coordinate, so that
// central differences are exact for any step and only rounding remains; for the others the stencil of order 8 with
// h = 2e-3 truncates at h⁸ f⁽⁹⁾/630 < 1e-16 · f⁽⁹⁾/9!, below its rounding ε/h.
void check_derivatives(const Function& f, const Values& in, const Values& out_bar, const std::string& name) {
  INFO(name);
  Values in_bar(in.size());
  f.backward(in.data(), out_bar.data(), in_bar.data());
  double magnitude = 1;
  const auto value = [&](std::size_t coordinate, double change) {
    Values moved = in, out(out_bar.size());
    moved[coordinate] += change;
    f.forward(moved.data(), out.data());
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      sum += out_bar[i] * out[i];
      magnitude = std::max(magnitude, std::abs(out_bar[i] * out[i]));
    }
    return sum;
  };
  const double epsilon = std::numeric_limits<double>::epsilon();
  const double h = f.polynomial ? 1.0 : 2e-3;
  for (std::size_t i = 0; i < in.size(); ++i) {
    INFO("coordinate ", i);
    double slope = 0;
    if (f.polynomial) {
      slope = (value(i, h) - value(i, -h)) / 2;
    } else {
      const double weight[] = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
      for (int k = 0; k < 4; ++k) slope += weight[k] * (value(i, (k + 1) * h) - value(i, -(k + 1) * h)) / h;
    }
    CHECK(std::abs(slope - in_bar[i]) <= 64 * f.outputs * epsilon / h * magnitude);
  }
}

template <class Op>
void check_op(const std::string& name) {
  const Function f = function_of<Op>();
  for (std::uint32_t t = 0; t < 3; ++t)
    check_derivatives(f, normals(f.inputs, t), normals(f.outputs, 100 + t), name);
}

template <class F>
void check_family_derivatives() {
  const std::string name = std::string(F::name) + " " + std::to_string(F::stalk_dimension);
  if constexpr (test::kind_of<F> != test::MapKind::fixed) {
    if constexpr (test::kind_of<F> != test::MapKind::rotation) check_op<GramOp<F>>(name + " gram");
    check_op<TransportOp<F>>(name + " transport");
  }
  check_op<ScalingOp<F, Normalisation::augmented>>(name + " node_scaling augmented");
  check_op<ScalingOp<F, Normalisation::block>>(name + " node_scaling block");
  check_op<ScalingOp<F, Normalisation::none>>(name + " node_scaling none");
  check_op<ScalingOp<F, Normalisation::degree>>(name + " node_scaling degree");
  // Repeated eigenvalues: A = 0 and A = 2 I give multiples of the identity.
  using Op = ScalingOp<F, Normalisation::augmented>;
  const Function f = function_of<Op>();
  for (const double c : {0.0, 2.0}) {
    Values in(static_cast<std::size_t>(f.inputs), sheafnn::sheaf::BlockSizes<F>::gram_columns == 1 ? c : 0.0);
    for (int i = 0; i < sheafnn::sheaf::BlockSizes<F>::gram_rows; ++i)
      in[static_cast<std::size_t>(i * (sheafnn::sheaf::BlockSizes<F>::gram_columns == 1
                                           ? 1
                                           : sheafnn::sheaf::BlockSizes<F>::gram_rows + 1))] = c;
    check_derivatives(f, in, normals(f.outputs, 7), name + " repeated eigenvalues");
  }
}

template <int D>
void check_dimension_derivatives() {
  check_family_derivatives<Identity<D>>();
  check_family_derivatives<Diagonal<D>>();
  check_family_derivatives<SpecialOrthogonal<D>>();
  check_family_derivatives<GeneralLinear<D>>();
  check_family_derivatives<sheafnn::Conformal<D>>();
}

}  // namespace

TEST_CASE("block normalisation: the derivative of a small block in single precision is that in double") {
  const auto check = []<class F>(F, double size) {
    const auto derivative = [&]<class T>(T) {
      Gram<F, T> degree = Gram<F, T>::Zero(), scale_bar = degree, degree_bar = degree;
      for (int i = 0; i < degree.rows(); ++i) {
        for (int j = 0; j < degree.cols(); ++j) {
          degree(i, j) = static_cast<T>(size * (i == j || degree.cols() == 1 ? 2 + i : 0.5));
          scale_bar(i, j) = static_cast<T>(std::sqrt(size) * (1 + i + j));
        }
      }
      const auto scaling = sheafnn::sheaf::node_scaling<F, T>(Normalisation::block, degree, T(3));
      sheafnn::sheaf::node_scaling_backward<F, T>(Normalisation::block, scaling, scale_bar, degree_bar);
      return Gram<F, double>(degree_bar.template cast<double>());
    };
    const Gram<F, double> exact = derivative(0.0), single = derivative(0.0F);
    CHECK((single - exact).cwiseAbs().maxCoeff() <= 1e-5 * exact.cwiseAbs().maxCoeff());
  };
  for (const double size : {1.0, 1e-20, 1e-27}) {
    CAPTURE(size);
    check(GeneralLinear<2>{}, size);
    check(Diagonal<3>{}, size);
  }
}

TEST_CASE("derivatives of the block functions agree with central differences, every family, D = 1 ... 5") {
  check_dimension_derivatives<1>();
  check_dimension_derivatives<2>();
  check_dimension_derivatives<3>();
  check_dimension_derivatives<4>();
  check_dimension_derivatives<5>();
}

}  // namespace test_sheaf_derivatives
