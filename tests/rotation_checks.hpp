/// \file
/// What several tests of rotations share: random matrices, lanes, central differences, means with standard errors
/// and the Kolmogorov–Smirnov distance.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "shared_rotations.hpp"
#include "sheafnn/core/eigen.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"

namespace rotation_checks {

inline constexpr double epsilon = std::numeric_limits<double>::epsilon();

template <class T>
inline constexpr int lane_count = 1;
template <class T, int W>
inline constexpr int lane_count<sheafnn::math::Pack<T, W>> = W;

/// Sets lane l of a pack, or the one value of a scalar.
template <class T>
void set_lane(T& target, int l, double value) {
  if constexpr (std::is_arithmetic_v<T>) {
    target = static_cast<T>(value);
  } else {
    target.set_lane(l, static_cast<sheafnn::math::scalar_of_t<T>>(value));
  }
}
template <class T>
double get_lane(const T& source, int l) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(source);
  } else {
    return static_cast<double>(source.lane(l));
  }
}

/// Turn by `angle` in the plane of the first two axes.
template <int N>
sheafnn::SquareMatrix<double, N> turn(double angle) {
  sheafnn::SquareMatrix<double, N> r = sheafnn::SquareMatrix<double, N>::Identity();
  r(0, 0) = r(1, 1) = std::cos(angle);
  r(1, 0) = std::sin(angle);
  r(0, 1) = -r(1, 0);
  return r;
}

/// Matrix of T whose lane l is entry-wise values[l].
template <class T, int R, int C>
Eigen::Matrix<T, R, C> from_lanes(const std::vector<Eigen::Matrix<double, R, C>>& values) {
  Eigen::Matrix<T, R, C> r;
  for (int l = 0; l < lane_count<T>; ++l) {
    for (int j = 0; j < C; ++j) {
      for (int i = 0; i < R; ++i) set_lane(r(i, j), l, values[static_cast<std::size_t>(l)](i, j));
    }
  }
  return r;
}
template <class T, int R, int C>
Eigen::Matrix<double, R, C> one_lane(const Eigen::Matrix<T, R, C>& m, int l) {
  Eigen::Matrix<double, R, C> r;
  for (int j = 0; j < C; ++j) {
    for (int i = 0; i < R; ++i) r(i, j) = get_lane(m(i, j), l);
  }
  return r;
}

/// Entries uniform on (−scale, scale), rounded to float so that every scalar type starts from the same numbers.
template <int R, int C>
Eigen::Matrix<double, R, C> random_matrix(std::mt19937& engine, double scale = 1) {
  std::uniform_real_distribution<double> uniform(-scale, scale);
  Eigen::Matrix<double, R, C> r;
  for (int j = 0; j < C; ++j) {
    for (int i = 0; i < R; ++i) r(i, j) = static_cast<double>(static_cast<float>(uniform(engine)));
  }
  return r;
}

/// ⟨A, B⟩.
template <class A, class B>
double frobenius(const A& a, const B& b) {
  return (a.array() * b.array()).sum();
}

/// Step of central differences: balances truncation h² and rounding ε/h, both then ε^{2/3}.
inline constexpr double difference_step = 6.0554544523933395e-06;  // ε^{1/3}
/// Their error for a function of unit size whose third derivatives are at most about 50.
inline constexpr double difference_bound = 64 * difference_step * difference_step;

/// (f(x + h) − f(x − h))/2h, where h moves one number of the caller's.
template <class F>
double central_difference(double& x, const F& f) {
  const double saved = x;
  volatile double above = saved + difference_step;
  volatile double below = saved - difference_step;
  x = above;
  const double high = f();
  x = below;
  const double low = f();
  x = saved;
  return (high - low) / (above - below);
}

/// Mean of independent numbers and its standard error.
class Mean {
 public:
  void add(double x) {
    ++count_;
    const double delta = x - mean_;
    mean_ += delta / count_;
    squares_ += delta * (x - mean_);
  }
  [[nodiscard]] double value() const { return mean_; }
  [[nodiscard]] double standard_error() const { return std::sqrt(squares_ / (count_ - 1) / count_); }
  /// How many standard errors the mean is away from `expected`.
  [[nodiscard]] double standard_errors_from(double expected) const {
    return std::abs(mean_ - expected) / standard_error();
  }

 private:
  double count_ = 0, mean_ = 0, squares_ = 0;
};

/// Standard errors a random mean may be off: with fixed seeds a test is right or wrong once and for all; a right
/// one exceeds 5 with probability 6e-7.
inline constexpr double allowed_standard_errors = 5;

/// √n · sup |F_n − F|, the Kolmogorov–Smirnov statistic of `sample` (sorted here) against the distribution
/// function F.
template <class F>
double kolmogorov_smirnov(std::vector<double> sample, const F& distribution) {
  std::sort(sample.begin(), sample.end());
  const double n = static_cast<double>(sample.size());
  double worst = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double value = distribution(sample[i]);
    const double below = static_cast<double>(i) / n;
    worst = std::max({worst, value - below, below + 1 / n - value});
  }
  return std::sqrt(n) * worst;
}
/// Exceeded with probability 2 exp(−2 · 2.7²) = 9e-7.
inline constexpr double allowed_kolmogorov_smirnov = 2.7;

/// Distribution function on [begin, end] of a density given up to a factor, by the trapezoidal rule on 20 000
/// cells.
class TabulatedDistribution {
 public:
  template <class Density>
  TabulatedDistribution(double begin, double end, const Density& density) : begin_(begin), end_(end) {
    const double width = (end - begin) / cells;
    double last = density(begin);
    for (int i = 1; i <= cells; ++i) {
      const double next = density(begin + i * width);
      sums_.push_back(sums_.back() + (last + next) / 2 * width);
      last = next;
    }
  }
  [[nodiscard]] double integral() const { return sums_.back(); }
  [[nodiscard]] double operator()(double x) const {
    const double position = std::clamp((x - begin_) / (end_ - begin_), 0.0, 1.0) * cells;
    const std::size_t cell = std::min(static_cast<std::size_t>(position), static_cast<std::size_t>(cells - 1));
    const double part = position - static_cast<double>(cell);
    return (sums_[cell] + part * (sums_[cell + 1] - sums_[cell])) / integral();
  }

 private:
  static constexpr int cells = 20000;
  double begin_, end_;
  std::vector<double> sums_ = {0.0};
};

}  // namespace rotation_checks
