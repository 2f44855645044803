// Jacobi eigendecomposition of small symmetric matrices against Eigen's, on matrices that are hard for it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

// core/eigen.hpp goes before other parts of Eigen.
// clang-format off
#include "dense_algebra.hpp"
#include "sheafnn/core/eigen.hpp"
// clang-format on

#include "sheafnn/random/stream.hpp"
#include "sheafnn/sheaf/symmetric_eigen.hpp"

namespace test_symmetric_eigen {
using namespace sheafnn;
using namespace sheafnn::math;
using namespace sheafnn::sheaf;
using Dense = Eigen::MatrixXd;

namespace {

Dense random_matrix(int n, std::uint32_t id) {
  double values[64];
  fill_normals<64>(values, Stream{.seed = 11}, id);
  return Eigen::Map<Dense>(values, n, n);
}

// Symmetric matrices: random, repeated and nearly repeated eigenvalues, graded, singular, diagonal, zero, extreme
// scale.
std::vector<Dense> hard_matrices(int n) {
  std::vector<Dense> r;
  for (std::uint32_t t = 0; t < 60; ++t) {
    const Dense g = random_matrix(n, t);
    const Dense q = dense_algebra::orthonormal(g);
    const Dense noise = random_matrix(n, 1000 + t);
    for (int kind = 0; kind < 10; ++kind) {
      Eigen::VectorXd d(n);
      for (int i = 0; i < n; ++i) {
        const double z = noise(i, 0);
        const double choices[] = {z,                       // anything
                                  i < n / 2 ? 1.0 : 2.0,   // two clusters
                                  i < n - 1 ? 1.0 : -3.0,  // one cluster
                                  1 + 1e-8 * z,            // nearly equal
                                  1 + 1e-15 * z,           // equal up to rounding
                                  std::exp(8 * z),         // widely spread
                                  std::pow(10.0, -2 * i),  // graded
                                  i == 0 ? 1.0 : 0.0,      // rank one
                                  (i % 2 == 0 ? 1 : -1) *
                                      (1 + 1e-4 * z),        // two opposite, nearly repeated clusters
                                  i % 3 == 0 ? 1.0 : 1e-9};  // interleaved clusters
        d(i) = choices[kind];
      }
      r.push_back(q * d.asDiagonal() * q.transpose());
    }
    r.push_back(g.transpose() * g);
    r.push_back(1e-6 * (g + g.transpose()));
    r.push_back(1e12 * g.transpose() * g);
    r.push_back(1e-150 * (g + g.transpose()));
    r.push_back(1e-310 * (g + g.transpose()));
    r.push_back(1e150 * (g + g.transpose()));
    r.push_back(Dense(noise.col(0).asDiagonal()) + 1e-162 * (g + g.transpose()));
    r.push_back(1e-162 * (g + g.transpose()));
    r.back()(0, 0) = 1;
  }
  r.push_back(Dense::Zero(n, n));
  r.push_back(Dense::Identity(n, n));
  r.push_back(Dense::Ones(n, n));
  for (Dense& p : r) p = (0.5 * (p + p.transpose())).eval();
  return r;
}

// Errors in units of 8 N ε ‖P‖: Jacobi's backward error is a small multiple of ε per sweep and coordinate.
void check_decomposition(const Dense& p, const Dense& q, const Eigen::VectorXd& values, double epsilon) {
  const double n = static_cast<double>(p.rows());
  const double scale = std::max(p.cwiseAbs().maxCoeff(), std::numeric_limits<double>::min());
  const double bound = 8 * n * epsilon;
  const Dense unit = p / scale;
  const Eigen::VectorXd unit_values = values / scale;
  CHECK((q.transpose() * q - Dense::Identity(p.rows(), p.rows())).cwiseAbs().maxCoeff() <= bound);
  CHECK((q * unit_values.asDiagonal() * q.transpose() - unit).cwiseAbs().maxCoeff() <=
        bound * std::max(unit.norm(), 1.0));
  Eigen::VectorXd sorted = unit_values;
  std::sort(sorted.begin(), sorted.end());
  const Eigen::VectorXd reference = dense_algebra::spectrum(unit);
  CHECK((sorted - reference).cwiseAbs().maxCoeff() <= bound * std::max(unit.norm(), 1.0));
}

template <int N, class T>
void check_scalar() {
  for (const Dense& p : hard_matrices(N)) {
    const SquareMatrix<T, N> input = p.cast<T>();
    const double size = static_cast<double>(input.cwiseAbs().maxCoeff());
    if (!std::isfinite(size * size) || (sizeof(T) == 4 && (size > 1e30 || size < 1e-30))) continue;
    const SymmetricEigen<T, N> r = symmetric_eigen(input);
    check_decomposition(input.template cast<double>(), r.vectors.template cast<double>(),
                        r.values.template cast<double>(), static_cast<double>(std::numeric_limits<T>::epsilon()));
  }
}

template <int N, class T, int W>
void check_pack() {
  const std::vector<Dense> all = hard_matrices(N);
  for (std::size_t first = 0; first + W <= 120; first += W) {
    SquareMatrix<Pack<T, W>, N> p;
    for (int lane = 0; lane < W; ++lane) {
      for (int i = 0; i < N * N; ++i) {
        p.data()[i].set_lane(lane, static_cast<T>(all[first + static_cast<std::size_t>(lane)].data()[i]));
      }
    }
    const auto r = symmetric_eigen(p);
    for (int lane = 0; lane < W; ++lane) {
      Dense input(N, N), q(N, N);
      Eigen::VectorXd values(N);
      for (int i = 0; i < N * N; ++i) input.data()[i] = static_cast<double>(p.data()[i].lane(lane));
      for (int i = 0; i < N * N; ++i) q.data()[i] = static_cast<double>(r.vectors.data()[i].lane(lane));
      for (int i = 0; i < N; ++i) values(i) = static_cast<double>(r.values(i).lane(lane));
      const double size = input.cwiseAbs().maxCoeff();
      if (sizeof(T) == 4 && (size > 1e30 || size < 1e-30)) continue;
      check_decomposition(input, q, values, static_cast<double>(std::numeric_limits<T>::epsilon()));
    }
  }
}

}  // namespace

TEST_CASE("symmetric_eigen decomposes hard matrices to rounding") {
  check_scalar<1, double>();
  check_scalar<2, double>();
  check_scalar<3, double>();
  check_scalar<4, double>();
  check_scalar<5, double>();
  check_scalar<6, double>();
  check_scalar<7, double>();
  check_scalar<8, double>();
}

TEST_CASE("symmetric_eigen in single precision and over packs") {
  check_scalar<2, float>();
  check_scalar<3, float>();
  check_scalar<5, float>();
  check_scalar<8, float>();
  check_pack<2, float, 16>();
  check_pack<3, float, 8>();
  check_pack<3, double, 8>();
  check_pack<4, double, 4>();
  check_pack<6, double, 8>();
}

}  // namespace test_symmetric_eigen
