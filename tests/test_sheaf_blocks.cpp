// Block algebra and node scalings: the matrix formulas, and all scalar types (float, double, packs) against each
// other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "sheaf_block_operations.hpp"

namespace test_sheaf_blocks {
using namespace sheaf_checks;

namespace {

/// Numbers of one lane after the other.
template <class T>
void set_lanes(const Values& numbers, T* x, int count) {
  constexpr int width = static_cast<int>(sizeof(T) / sizeof(scalar_of_t<T>));
  for (int lane = 0; lane < width; ++lane) {
    for (int i = 0; i < count; ++i) {
      const auto v = static_cast<scalar_of_t<T>>(numbers[static_cast<std::size_t>(lane * count + i)]);
      if constexpr (width == 1) {
        x[i] = v;
      } else {
        x[i].set_lane(lane, v);
      }
    }
  }
}
template <class T>
Values get_lanes(const T* x, int count) {
  constexpr int width = static_cast<int>(sizeof(T) / sizeof(scalar_of_t<T>));
  Values numbers;
  for (int lane = 0; lane < width; ++lane) {
    for (int i = 0; i < count; ++i) {
      if constexpr (width == 1) {
        numbers.push_back(static_cast<double>(x[i]));
      } else {
        numbers.push_back(static_cast<double>(x[i].lane(lane)));
      }
    }
  }
  return numbers;
}

/// An operation over double.
struct Operation {
  int inputs, outputs;
  void (*forward)(const double*, double*);
  void (*backward)(const double*, const double*, double*);
};

/// What a type was given and what it computed, lane after lane.
struct Computed {
  int width;
  double epsilon;
  Values in, bar, out, in_bar;
};

// Every lane with its own input. The bound: 256 ε of T times the sizes of the numbers, for at most 64 terms per entry
// and condition numbers below 100.
void compare_with_double(const std::string& name, const Operation& op, const Computed& computed) {
  INFO(name, " with ", computed.width, " lanes");
  const double bound = 256 * computed.epsilon;
  const auto inputs = static_cast<std::size_t>(op.inputs), outputs = static_cast<std::size_t>(op.outputs);
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(computed.width); ++lane) {
    Values expected(outputs), expected_bar(inputs);
    const double* const x = computed.in.data() + lane * inputs;
    op.forward(x, expected.data());
    op.backward(x, computed.bar.data() + lane * outputs, expected_bar.data());
    double size = 1, size_bar = 1;
    for (const double v : expected) size = std::max(size, std::abs(v));
    for (const double v : expected_bar) size_bar = std::max(size_bar, std::abs(v));
    for (std::size_t i = 0; i < outputs; ++i) {
      CHECK(std::abs(computed.out[lane * outputs + i] - expected[i]) <= bound * size);
    }
    for (std::size_t i = 0; i < inputs; ++i) {
      CHECK(std::abs(computed.in_bar[lane * inputs + i] - expected_bar[i]) <= bound * size_bar);
    }
  }
}

/// Random numbers for `width` lanes.
Values normals_of_lanes(int width, int count, std::uint32_t id) {
  Values numbers;
  for (int lane = 0; lane < width; ++lane) {
    const Values more = normals(count, id + static_cast<std::uint32_t>(lane));
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  return numbers;
}

// Forward and backward over T against double.
template <class Op, class T>
void check_type(const std::string& name) {
  using Scalar = scalar_of_t<T>;
  constexpr int width = static_cast<int>(sizeof(T) / sizeof(Scalar));
  T in[Op::inputs], bar[Op::outputs], out[Op::outputs], in_bar[Op::inputs];
  set_lanes(normals_of_lanes(width, Op::inputs, 400), in, Op::inputs);
  set_lanes(normals_of_lanes(width, Op::outputs, 500), bar, Op::outputs);
  Op::template forward<T>(in, out);
  Op::template backward<T>(in, bar, in_bar);
  compare_with_double(
      name, {Op::inputs, Op::outputs, &Op::template forward<double>, &Op::template backward<double>},
      {width, static_cast<double>(std::numeric_limits<Scalar>::epsilon()), get_lanes(in, Op::inputs),
       get_lanes(bar, Op::outputs), get_lanes(out, Op::outputs), get_lanes(in_bar, Op::inputs)});
}

template <class F, class T>
void check_family_type() {
  const std::string name = std::string(F::name) + " " + std::to_string(F::stalk_dimension);
  check_type<GramOp<F>, T>(name + " gram");
  check_type<TransportOp<F>, T>(name + " transport");
  check_type<ScalingOp<F, Normalisation::augmented>, T>(name + " node_scaling");
}
template <class F>
void check_family_types() {
  check_family_type<F, float>();
  check_family_type<F, Pack<float, 16>>();
  check_family_type<F, Pack<float, 8>>();
  check_family_type<F, Pack<double, 8>>();
  check_family_type<F, Pack<double, 4>>();
}

}  // namespace

TEST_CASE("block functions agree between scalars and packs of both widths") {
  check_family_types<sheafnn::Identity<3>>();
  check_family_types<sheafnn::Diagonal<3>>();
  check_family_types<sheafnn::SpecialOrthogonal<3>>();
  check_family_types<sheafnn::GeneralLinear<3>>();
  check_family_types<sheafnn::Conformal<3>>();
}

TEST_CASE_TEMPLATE("block functions are the matrix formulas", F, GeneralLinear<1>, GeneralLinear<2>,
                   GeneralLinear<3>, GeneralLinear<5>, GeneralLinear<8>) {
  constexpr int D = F::stalk_dimension;
  using M = SquareMatrix<double, D>;
  const double bound = 4 * D * D * std::numeric_limits<double>::epsilon();
  const auto matrix = [](std::uint32_t id) -> M { return Eigen::Map<const M>(normals(D * D, id).data()); };
  const auto near = [&](const M& a, const M& b) {
    return (a - b).cwiseAbs().maxCoeff() <= bound * (1 + b.cwiseAbs().maxCoeff());
  };
  const M a = matrix(1), b = matrix(2), u = symmetrised(matrix(3)), v = symmetrised(matrix(4));
  CHECK(near(gram<F, double>(a), a.transpose() * a));
  CHECK(near(transport<F, double>(a, b), a.transpose() * b));
  CHECK(near(block_product(block_product(u, a), v), u * a * v));
  CHECK(near(diagonal_block<double, D, D>(u, v), u * v * u));
  CHECK(block_transpose(a) == M(a.transpose()));
  // Multiples of I, diagonals and dense blocks meet in both orders.
  const Eigen::Matrix<double, 1, 1> c(3.0);
  const Column<double, D> d = a.col(0), e = b.col(0);
  CHECK(near(block_product(c, a), 3 * a));
  CHECK(near(block_product(a, c), 3 * a));
  CHECK(block_product(c, d) == Column<double, D>(3 * d));
  if constexpr (D > 1) CHECK(block_product(d, e) == Column<double, D>(d.cwiseProduct(e)));
}

TEST_CASE_TEMPLATE("node scalings of dense degree blocks", F, GeneralLinear<1>, GeneralLinear<2>, GeneralLinear<3>,
                   GeneralLinear<5>, GeneralLinear<8>) {
  constexpr int D = F::stalk_dimension;
  using M = SquareMatrix<double, D>;
  const double epsilon = std::numeric_limits<double>::epsilon();
  const M one = M::Identity();
  for (std::uint32_t t = 0; t < 10; ++t) {
    for (const double size : {1e-6, 1.0, 1e6}) {
      const M a = size * Eigen::Map<const M>(normals(D * D, 600 + t).data());
      const M p = a.transpose() * a;
      const auto scale = [&](Normalisation n) -> M { return node_scaling<F, double>(n, p, 3.0).scale; };
      CHECK(scale(Normalisation::none) == one);
      CHECK((scale(Normalisation::degree) - one / std::sqrt(3.0 * D + 1)).cwiseAbs().maxCoeff() <= 4 * epsilon);
      for (const Normalisation n : {Normalisation::augmented, Normalisation::block}) {
        const M shifted = n == Normalisation::augmented ? M(p + one) : p;
        const M s = scale(n);
        CHECK(s == M(s.transpose()));
        // Backward error 8 D ε ‖P‖ of the eigendecomposition, amplified by ‖S‖²; where that is too large for P to
        // have an inverse in double, S only has to stay bounded.
        const double condition = shifted.norm() * s.squaredNorm();
        if (condition * 8 * D * epsilon < 1e-3) {
          CHECK((s * shifted * s - one).cwiseAbs().maxCoeff() <= 16 * D * epsilon * condition);
        }
        CHECK(s.allFinite());
        CHECK((s * p * s).norm() <= 1.25 * std::sqrt(double(D)));
      }
    }
  }
}

TEST_CASE("block scalings are pseudo-inverses where the degree block is singular") {
  using F = GeneralLinear<3>;
  using M = SquareMatrix<double, 3>;
  const Values x = normals(3, 9), y = normals(3, 10);
  const Column<double, 3> a(x.data()), b(y.data());
  const M p = a * a.transpose() + b * b.transpose();  // rank 2
  const M s = node_scaling<F, double>(Normalisation::block, p, 2.0).scale;
  const M projector = s * p * s;
  const double bound =
      1e3 * std::numeric_limits<double>::epsilon();  // 16 D ε times a condition number of about 20
  CHECK((projector * projector - projector).cwiseAbs().maxCoeff() <= bound);
  CHECK(std::abs(projector.trace() - 2) <= bound);
  CHECK((projector * a - a).norm() <= bound * a.norm());
  CHECK(node_scaling<F, double>(Normalisation::block, M::Zero(), 0.0).scale == M(M::Zero()));
  CHECK(node_scaling<F, double>(Normalisation::augmented, M::Zero(), 0.0).scale == M(M::Identity()));
  CHECK(node_scaling<Diagonal<2>, double>(Normalisation::block, {4.0, 0.0}, 1.0).scale ==
        Column<double, 2>(0.5, 0.0));
  CHECK(node_scaling<Diagonal<2>, double>(Normalisation::degree, {4.0, 0.0}, 3.0).scale ==
        Column<double, 2>(0.5, 0.5));
  CHECK(node_scaling<SpecialOrthogonal<3>, double>(Normalisation::augmented,
                                                   Gram<SpecialOrthogonal<3>, double>(8.0), 2.0)
            .scale(0) == 1.0 / 3);
  // The backward pass stays finite there.
  M bar = M::Zero();
  node_scaling_backward<F, double>(Normalisation::block, node_scaling<F, double>(Normalisation::block, p, 2.0),
                                   M(a * b.transpose()), bar);
  CHECK(bar.allFinite());
}

TEST_CASE("augmented scalings next to large degree blocks of low rank") {
  // D = 3e6 v vᵀ in float, v = (3, 4)/5: S = I − v vᵀ + v vᵀ/√(1 + 3e6), but for rounding of D, which moves the
  // eigenvalue 1 by less than 1. Eigenvalues below some ε tr D are no rank loss here: S is at most 1 and at least that.
  using Family = sheafnn::GeneralLinear<2>;
  sheafnn::sheaf::Gram<Family, float> gram;
  gram << 9, 12, 12, 16;
  gram *= 120000.F;
  const auto scaling = sheafnn::sheaf::node_scaling<Family, float>(sheafnn::Normalisation::augmented, gram, 1.F);
  const float largest = std::max(scaling.root(0), scaling.root(1));
  CHECK(largest <= 1);
  CHECK(largest >= 0.7F);
  const double across = 16.0 / 25 + 9.0 / 25 / std::sqrt(1 + 3e6);
  CHECK(std::abs(static_cast<double>(scaling.scale(0, 0)) - across) <= 0.3 * across);
}

TEST_CASE("normalisations have names") {
  for (const Normalisation n :
       {Normalisation::none, Normalisation::block, Normalisation::augmented, Normalisation::degree}) {
    CHECK(parse_normalisation(to_string(n)) == n);
  }
  CHECK_THROWS_WITH_AS((void)parse_normalisation("half"),
                       "normalisation: half is not allowed; choose none, block, augmented, degree",
                       std::invalid_argument);
}

}  // namespace test_sheaf_blocks
