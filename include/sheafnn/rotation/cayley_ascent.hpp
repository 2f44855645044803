/// \file
/// Newton's method for the log likelihood of Cayley distributions, in a region in which its quadratic model is trusted.
///
/// A bar means a weighted average. The number v is 1, but 2 for N = 2. The matrices X_k are a basis of the skew ones.
/// With Z_k, the average of (U + κI) X_k (I + κU), in units of one sample's standard errors:
///
///     gradient   √(2N/v) skew(Ū) for φ,  tr Ū/√v for η = artanh κ
///     Hessian    −N/((N − 1)κv) sym(skew(Z_k)),  −√(N/2)/((N − 1)κv) tr Z_k,  (mean of tr U² − N)/((N − 1)v)
///
/// Source: math, "Fits" (2.59); Nocedal, Wright, Numerical Optimization, 4.3 (the step within a ball).
/// Unchecked: internal.
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/sample_weights.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail {

/// M, κ and Σ w log f there.
template <int N>
struct CayleyEstimate {
  SquareMatrix<double, N> location;
  double kappa = 0, likelihood = 0;
};

/// Σ w log f.
template <int N>
[[nodiscard]] double cayley_log_likelihood(const std::vector<SquareMatrix<double, N>>& samples,
                                           const SampleWeights& weights, const SquareMatrix<double, N>& location,
                                           double kappa) {
  double sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (weights.weight[i] == 0) continue;
    sum += weights.weight[i] * cayley_logpdf<double, N>(multiply_nt(samples[i], location), kappa);
  }
  return sum;
}

/// The estimate exp(X_turn) M, tanh(artanh κ + growth).
template <int N>
[[nodiscard]] CayleyEstimate<N> turned_estimate(const std::vector<SquareMatrix<double, N>>& samples,
                                                const SampleWeights& weights, const CayleyEstimate<N>& from,
                                                const rotation::RotationParameters<double, N>& turn, double growth) {
  const double rate = std::tanh(growth);
  CayleyEstimate<N> to;
  to.location = rotation::orthonormalisation_step<double, N>(
      multiply(rotation::exponential_rotation<double, N>(turn), from.location));
  to.kappa = std::max(1e-8, (from.kappa + rate) / (1 + from.kappa * rate));
  to.likelihood = to.kappa < 1 ? cayley_log_likelihood<N>(samples, weights, to.location, to.kappa) : -HUGE_VAL;
  return to;
}

/// The estimate moved by φ and η, in units of one sample's standard errors.
template <int N>
[[nodiscard]] CayleyEstimate<N> moved_estimate(const std::vector<SquareMatrix<double, N>>& samples,
                                               const SampleWeights& weights, const CayleyEstimate<N>& from,
                                               const Column<double, rotation::rotation_parameters<N> + 1>& step) {
  constexpr int turns = rotation::rotation_parameters<N>;
  constexpr double v = N == 2 ? 2 : 1;
  const double scale = (N - 1) * from.kappa / ((1 - from.kappa) * (1 + from.kappa));
  const rotation::RotationParameters<double, N> turn =
      step.template head<turns>() * (std::sqrt(N / (2 * v)) / scale);
  return turned_estimate<N>(samples, weights, from, turn, step(turns) / ((N - 1) * std::sqrt(v)));
}

/// Gradient and Hessian, in units of one sample's standard errors.
template <int N>
class CayleyCurvature {
 public:
  static constexpr int turns = rotation::rotation_parameters<N>;
  using Vector = Column<double, turns + 1>;
  /// A type that depends on N: programs that fit nothing do not compile its decomposition.
  using Symmetric = std::conditional_t<(N > 0), Eigen::MatrixXd, void>;

  CayleyCurvature(const std::vector<SquareMatrix<double, N>>& samples, const SampleWeights& weights,
                  const CayleyEstimate<N>& at) {
    using Matrix = SquareMatrix<double, N>;
    constexpr double v = N == 2 ? 2 : 1;
    std::vector<Matrix> uniform;
    Matrix mean = Matrix::Zero();
    double squares = 0;  // mean of tr U²
    for (std::size_t i = 0; i < samples.size(); ++i) {
      uniform.push_back(uniform_behind<double, N>(multiply_nt(samples[i], at.location), at.kappa));
      mean += weights.weight[i] * uniform[i];
      squares += weights.weight[i] * (uniform[i].array() * uniform[i].transpose().array()).sum();
    }
    gradient.template head<turns>() = std::sqrt(2 * N / v) * rotation::skew_parameters<double, N>(mean);
    gradient(turns) = mean.trace() / std::sqrt(v);
    const double rate = -1 / ((N - 1) * at.kappa * v);
    hessian.resize(turns + 1, turns + 1);
    for (int k = 0; k < turns; ++k) {
      const Matrix x = rotation::skew_matrix<double, N>(rotation::RotationParameters<double, N>::Unit(k));
      Matrix z = Matrix::Zero();
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const Matrix left = uniform[i] + at.kappa * Matrix::Identity();
        const Matrix right = Matrix::Identity() + at.kappa * uniform[i];
        z += weights.weight[i] * multiply(multiply(left, x), right);
      }
      hessian.col(k).template head<turns>() = N * rate * rotation::skew_parameters<double, N>(z);
      hessian(turns, k) = hessian(k, turns) = std::sqrt(N / 2.0) * rate * z.trace();
    }
    hessian(turns, turns) = (squares - N) / ((N - 1) * v);
    // Turns do not commute: away from a maximum, derivatives of the score are symmetric up to its own size.
    hessian = (0.5 * (hessian + hessian.transpose())).eval();
  }

  /// The step of at most `radius` that maximises the quadratic model.
  [[nodiscard]] Vector step(double radius) const {
    const Eigen::SelfAdjointEigenSolver<Symmetric> eigen(hessian);
    const Eigen::VectorXd& values = eigen.eigenvalues();  // increasing
    const Eigen::VectorXd along = eigen.eigenvectors().transpose() * gradient;
    const double largest = values(turns);
    const double least = std::max(0.0, largest) + 1e-14 * (1 + values.cwiseAbs().maxCoeff());
    const auto at = [&](double shift) -> Eigen::VectorXd { return along.array() / (shift - values.array()); };
    double shift = largest < 0 && at(0).norm() <= radius ? 0 : least;
    const bool ends_at_radius = at(shift).norm() > radius;
    if (ends_at_radius) {
      double low = shift, high = shift + along.norm() / radius;  // the step is within the radius
      for (int i = 0; i < 100 && high - low > 1e-10 * high; ++i) {
        shift = low + (high - low) / 2;
        (at(shift).norm() > radius ? low : high) = shift;
      }
      shift = high;
    }
    Eigen::VectorXd r = at(shift);
    // At a saddle the gradient says nothing about the way up, which is an eigenvector's.
    if (largest > 1e-8 && !ends_at_radius) {
      const double others = r.head(turns).squaredNorm();
      r(turns) = std::copysign(std::sqrt(std::max(0.0, radius * radius - others)), along(turns));
    }
    return eigen.eigenvectors() * r;
  }
  /// Newton's step in the directions in which the likelihood is curved downwards.
  [[nodiscard]] Vector last_step() const {
    const Eigen::SelfAdjointEigenSolver<Symmetric> eigen(hessian);
    const Eigen::VectorXd& values = eigen.eigenvalues();
    Eigen::VectorXd along = eigen.eigenvectors().transpose() * gradient;
    const double flat = 1e-7 * values.cwiseAbs().maxCoeff();
    for (int k = 0; k <= turns; ++k) along(k) = values(k) < -flat ? -along(k) / values(k) : 0.0;
    return eigen.eigenvectors() * along;
  }
  /// What the model says that a step adds to the likelihood.
  [[nodiscard]] double gain(const Vector& step) const {
    return gradient.dot(step) + 0.5 * step.dot(hessian * step);
  }

  Vector gradient;
  Symmetric hessian;
};

/// The share of weight at one rotation from which the likelihood has no maximum. As κ → 1 with M there, log f grows by
/// ½N(N − 1) |log(1 − κ)| at this rotation. At others it sinks by as much, or by ½(N − 2)(N − 1) |log(1 − κ)| for odd N.
template <int N>
inline constexpr double cayley_share_limit = (N % 2 == 0 ? 0.5 : (N - 2) / (2.0 * (N - 1))) - 1e-12;

/// The weight of the samples within a distance of a rotation.
template <int N>
[[nodiscard]] double weight_near(const std::vector<SquareMatrix<double, N>>& samples, const SampleWeights& weights,
                                 const SquareMatrix<double, N>& rotation, double distance) {
  double sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if ((samples[i] - rotation).norm() <= distance) sum += weights.weight[i];
  }
  return sum;
}

/// Is an ascent close to κ = 1 at samples of so much weight that the likelihood has no bound there, and so no maximum?
///
/// \param equal  distance of samples that count as one
template <int N>
[[nodiscard]] bool cayley_escapes(const std::vector<SquareMatrix<double, N>>& samples,
                                  const SampleWeights& weights, const CayleyEstimate<N>& at, double equal) {
  if (1 - at.kappa > 1e-5) return false;
  std::vector<std::pair<double, std::size_t>> near;  // distances from M, and indices of samples
  double weight = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double distance = (samples[i] - at.location).norm();
    if (weights.weight[i] == 0 || distance > 10 * (1 - at.kappa) + equal) continue;
    near.emplace_back(distance, i);
    weight += weights.weight[i];
  }
  if (weight < cayley_share_limit<N>) return false;
  std::sort(near.begin(), near.end());
  // Samples that count as one have distances from M that differ by at most `equal`: only these are compared.
  std::size_t first = 0, last = 0;
  weight = 0;
  for (const auto& [distance, i] : near) {
    while (last < near.size() && near[last].first <= distance + equal) weight += weights.weight[near[last++].second];
    while (near[first].first < distance - equal) weight -= weights.weight[near[first++].second];
    if (weight < cayley_share_limit<N> - 1e-9) continue;  // differences have rounding errors
    double same = 0;
    for (std::size_t k = first; k < last; ++k) {
      const std::size_t j = near[k].second;
      if ((samples[j] - samples[i]).norm() <= equal) same += weights.weight[j];
    }
    if (same >= cayley_share_limit<N>) return true;
  }
  return false;
}
/// Is an ascent close to κ = 1 without samples close to M? The likelihood then has a bound but no maximum.
template <int N>
[[nodiscard]] bool cayley_at_limit(const std::vector<SquareMatrix<double, N>>& samples,
                                   const SampleWeights& weights, const CayleyEstimate<N>& at) {
  return 1 - at.kappa <= 1e-5 && weight_near<N>(samples, weights, at.location, 1000 * (1 - at.kappa)) == 0;
}

/// Climbs to a local maximum, or towards κ = 1.
///
/// \param escaped   escaped(estimate): whether it is on a way without an end
/// \param most      iterations
/// \param done      iterations, added to
/// \returns  whether it ended: at a gradient of 1e-11, or where rounding hides what is left
template <int N, class Escaped>
[[nodiscard]] bool climb_cayley(const std::vector<SquareMatrix<double, N>>& samples, const SampleWeights& weights,
                                CayleyEstimate<N>& at, int most, int& done, const Escaped& escaped) {
  double radius = 1;
  CayleyCurvature<N> curvature(samples, weights, at);
  for (; most > 0; --most, ++done) {
    if (escaped(at)) return true;
    auto step = curvature.step(radius);
    const double gain = curvature.gain(step), length = curvature.gradient.norm();
    // So near, differences of the likelihood are rounding, while the gradient still has digits.
    const bool near = gain <= 1e-12 * (1 + std::abs(at.likelihood)) + 1e-15 / (1 - at.kappa);
    if (near) {
      if (length <= 1e-11) return true;
      step = curvature.last_step();
    }
    const CayleyEstimate<N> next = moved_estimate<N>(samples, weights, at, step);
    const double growth = next.likelihood - at.likelihood;
    if (near) {
      const CayleyCurvature<N> there(samples, weights, next);
      if (!(there.gradient.norm() < 0.5 * length)) return true;
      at = next;
      curvature = there;
      continue;
    }
    if (growth > 0) {
      at = next;
      curvature = CayleyCurvature<N>(samples, weights, at);
    }
    if (!(growth > 0.25 * gain)) radius = 0.25 * std::min(radius, step.norm());
    if (growth > 0.75 * gain) radius = std::min(2 * radius, 8.0);
    if (radius < 1e-13) return true;
  }
  return false;
}

}  // namespace sheafnn::detail
