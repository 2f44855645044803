/// \file
/// Statistical tests of every sampler of the library against laws and moments that are known in closed form: chi-square
/// and Kolmogorov–Smirnov tests of marginals, z tests of moments, with fixed seeds. Writes a table in Markdown.
///
/// usage: samplers DRAWS [SEED [GROUP]]   of a group alone (see main); 100000000 draws take about twenty minutes of a core.
/// León's samples on SO(3) and SO(5), which are slow, are a tenth.
///
/// Kolmogorov–Smirnov distances are taken at the borders of the histogram's cells. Exit code 1: a p-value below 10⁻⁶,
/// which at some hundred tests happens once in ten thousand runs of correct samplers.
#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/rotation.hpp"

namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using namespace sheafnn::random;
using namespace sheafnn::rotation;

constexpr double pi = 3.14159265358979323846;

int failures = 0, tests = 0;
double least = 1;

void report(const std::string& sampler, const std::string& what, std::uint64_t draws, const char* test, double value,
            double p) {
  ++tests;
  least = std::min(least, p);
  if (!(p >= 1e-6)) ++failures;
  std::printf("| %s | %s | %.3g | %s | %.6g | %.3g |\n", sampler.c_str(), what.c_str(), static_cast<double>(draws), test,
              value, p);
  std::fflush(stdout);
}

/// P(K > x) of Kolmogorov's law.
double kolmogorov(double x) {
  if (x < 0.2) return 1;
  double sum = 0;
  for (int k = 1; k <= 100; ++k) sum += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * x * x);
  return std::clamp(sum, 0.0, 1.0);
}

/// Counts of numbers in cells of equal width.
class Histogram {
 public:
  Histogram(double low, double high, int cells = 4096)
      : low_(low), width_((high - low) / cells), scale_(cells / (high - low)), count_(static_cast<std::size_t>(cells)) {}

  void add(double x) {
    const double cell = (x - low_) * scale_;
    ++count_[cell <= 0 ? 0 : std::min(static_cast<std::size_t>(cell), count_.size() - 1)];
  }

  /// Both tests. \param cdf  distribution function
  void compare(const std::string& sampler, const std::string& what, const std::function<double(double)>& cdf) const {
    std::uint64_t draws = 0;
    for (const std::uint64_t count : count_) draws += count;
    const double n = static_cast<double>(draws);
    double square = 0, distance = 0, below = 0, expected = 0, observed = 0;
    std::uint64_t so_far = 0;
    int cells = 0;
    for (std::size_t i = 0; i < count_.size(); ++i) {
      const bool last = i + 1 == count_.size();
      const double at_end = last ? 1 : cdf(low_ + width_ * static_cast<double>(i + 1));
      so_far += count_[i];
      distance = std::max(distance, std::abs(static_cast<double>(so_far) / n - at_end));
      expected += n * (at_end - below);
      observed += static_cast<double>(count_[i]);
      below = at_end;
      if (expected < 20 || n * (1 - at_end) < 20) {  // joined with the next; what is left at the end is the last cell
        if (!last) continue;
      }
      if (expected > 0) square += (observed - expected) * (observed - expected) / expected;
      ++cells;
      expected = observed = 0;
    }
    report(sampler, what + ", " + std::to_string(cells) + " cells", draws, "chi-square", square,
           boost::math::gamma_q(0.5 * (cells - 1), 0.5 * square));
    const double scaled = std::sqrt(n) * distance;
    report(sampler, what, draws, "Kolmogorov–Smirnov", scaled, kolmogorov(scaled));
  }

 private:
  double low_, width_, scale_;
  std::vector<std::uint64_t> count_;
};

/// Mean of numbers, and its z test against what is expected.
class Mean {
 public:
  void add(double x) {
    ++count_;
    sum_ += x;
    squares_ += x * x;
  }
  void compare(const std::string& sampler, const std::string& what, double expected) const {
    const double n = static_cast<double>(count_), mean = sum_ / n;
    const double z = (mean - expected) / std::sqrt((squares_ / n - mean * mean) / n);
    report(sampler, what, count_, "z", z, std::erfc(std::abs(z) / std::sqrt(2.0)));
  }

 private:
  std::uint64_t count_ = 0;
  double sum_ = 0, squares_ = 0;
};

/// Independence of two numbers in [0, 1): chi-square over 64 × 64 cells.
class Joint {
 public:
  void add(double a, double b) { ++count_[64 * cell(a) + cell(b)]; }
  void compare(const std::string& sampler, const std::string& what) const {
    double draws = 0, square = 0;
    for (const std::uint64_t count : count_) draws += static_cast<double>(count);
    const double expected = draws / 4096;
    for (const std::uint64_t count : count_) {
      square += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
    }
    report(sampler, what + ", 64 × 64 cells", static_cast<std::uint64_t>(draws), "chi-square", square,
           boost::math::gamma_q(0.5 * 4095, 0.5 * square));
  }

 private:
  static std::size_t cell(double a) { return static_cast<std::size_t>(std::clamp(64 * a, 0.0, 63.0)); }
  std::vector<std::uint64_t> count_ = std::vector<std::uint64_t>(4096);
};

template <class S>
using Lanes = Pack<S, lanes<S>>;

/// Calls use(ids of the lanes, stream) for `draws` ids, 2³⁰ of each epoch.
template <class S, class Use>
void for_ids(std::uint64_t draws, Stream stream, const Use& use) {
  constexpr std::uint32_t W = static_cast<std::uint32_t>(lanes<S>);
  std::uint32_t id[W];
  for (std::uint64_t first = 0; first < draws; first += W) {
    stream.epoch = static_cast<std::uint32_t>(first >> 30);
    for (std::uint32_t i = 0; i < W; ++i) id[i] = static_cast<std::uint32_t>(first & 0x3fffffffu) + i;
    use(word_of_t<Lanes<S>>::load(id), stream);
  }
}
/// Calls use(lane) with the numbers of each lane, stored by store(k, pack).
template <class S, int Count, class Use>
void for_lanes(const Lanes<S> (&value)[Count], const Use& use) {
  S number[Count][lanes<S>];
  for (int k = 0; k < Count; ++k) value[k].store(number[k]);
  for (int l = 0; l < static_cast<int>(lanes<S>); ++l) {
    S of_lane[Count];
    for (int k = 0; k < Count; ++k) of_lane[k] = number[k][l];
    use(of_lane);
  }
}
template <class S, int N, class Use>
void for_matrices(const SquareMatrix<Lanes<S>, N>& packed, const Use& use) {
  S number[N * N][lanes<S>];
  for (int k = 0; k < N * N; ++k) packed(k % N, k / N).store(number[k]);
  for (int l = 0; l < static_cast<int>(lanes<S>); ++l) {
    SquareMatrix<double, N> matrix;
    for (int k = 0; k < N * N; ++k) matrix(k % N, k / N) = static_cast<double>(number[k][l]);
    use(matrix);
  }
}

/// Distribution function of a coordinate of a uniform point of S^{N−1}.
double coordinate_cdf(int n, double x) {
  x = std::clamp(x, -1.0, 1.0);
  return x < 0 ? 0.5 * boost::math::ibeta(0.5 * (n - 1), 0.5, (1 - x) * (1 + x))
               : 1 - 0.5 * boost::math::ibeta(0.5 * (n - 1), 0.5, (1 - x) * (1 + x));
}
double normal_law(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

void test_words(std::uint64_t draws, std::uint64_t seed) {
  std::vector<std::uint64_t> ones(32);
  Histogram law(0, 1);
  Joint within, next;
  double before = 0.5;
  std::uint64_t words = 0;
  for_ids<float>(draws / 4, {.seed = seed}, [&](const auto& id, const Stream& stream) {
    constexpr int W = static_cast<int>(lanes<float>);
    const auto block = stream.words(id, 0);
    std::uint32_t word[4][W];
    for (int w = 0; w < 4; ++w) block.word[w].store(word[w]);
    for (int l = 0; l < W; ++l) {
      for (int w = 0; w < 4; ++w) {
        ++words;
        for (std::size_t bit = 0; bit < 32; ++bit) ones[bit] += word[w][l] >> bit & 1u;
        law.add(word[w][l] * 0x1p-32);
      }
      within.add(word[0][l] * 0x1p-32, word[1][l] * 0x1p-32);
      next.add(before, word[0][l] * 0x1p-32);
      before = word[0][l] * 0x1p-32;
    }
  });
  law.compare("random words", "uniform on [0, 2³²)", [](double x) { return x; });
  const double n = static_cast<double>(words);
  double square = 0;
  for (const std::uint64_t one : ones) square += std::pow(static_cast<double>(one) - n / 2, 2) / (n / 4);
  report("random words", "ones at each of the 32 bits", words, "chi-square", square,
         boost::math::gamma_q(16, 0.5 * square));
  within.compare("random words", "first and second of a block");
  next.compare("random words", "first ones of neighbouring ids");
}

template <class S>
void test_numbers(std::uint64_t draws, std::uint64_t seed, const std::string& type) {
  Histogram uniform(0, 1), normal(-6.5, 6.5);
  Joint cosine_and_sine, radius_pairs;
  Mean moment[4], product, square_product, tail;
  for_ids<S>(draws / 4, {.seed = seed}, [&](const auto& id, const Stream& stream) {
    using P = Lanes<S>;
    const auto block = stream.words(id, 0);
    const NormalBlock<P> normals = normals_from_words<P>(block);
    const P number[5] = {normals.value[0], normals.value[1], normals.value[2], normals.value[3],
                         uniform_from_word<P>(block.word[0])};
    for_lanes<S, 5>(number, [&](const S(&value)[5]) {
      for (int k = 0; k < 4; ++k) {
        const double x = static_cast<double>(value[k]);
        normal.add(x);
        double power = 1;
        for (Mean& of_power : moment) of_power.add(power *= x);
        tail.add(std::abs(x) > 4 ? 1 : 0);
      }
      uniform.add(static_cast<double>(value[4]));
      const double a = static_cast<double>(value[0]), b = static_cast<double>(value[1]);
      const double c = static_cast<double>(value[2]);
      product.add(a * b);
      square_product.add((a * a - 1) * (b * b - 1));
      cosine_and_sine.add(normal_law(a), normal_law(b));
      radius_pairs.add(normal_law(b), normal_law(c));
    });
  });
  const std::string name = "normal numbers, " + type;
  uniform.compare("uniform numbers, " + type, "uniform on (0, 1)", [](double x) { return x; });
  normal.compare(name, "normal law", normal_law);
  for (int k = 0; k < 4; ++k) moment[k].compare(name, "moment " + std::to_string(k + 1), k == 1 ? 1 : k == 3 ? 3 : 0);
  tail.compare(name, "mass beyond 4", std::erfc(4 / std::sqrt(2.0)));
  product.compare(name, "E xy, both of one pair", 0);
  square_product.compare(name, "E (x² − 1)(y² − 1), both of one pair", 0);
  cosine_and_sine.compare(name, "both of one pair");
  radius_pairs.compare(name, "one of each pair");
}

/// A fixed rotation that is far from every axis.
template <int N>
SquareMatrix<double, N> fixed_rotation() {
  return haar_rotation<double, N>(Stream{.seed = 77}, 0u);
}

template <class S, int N>
void test_haar(std::uint64_t draws, std::uint64_t seed, const std::string& type) {
  const std::string name = "uniform rotations, SO(" + std::to_string(N) + "), " + type;
  const SquareMatrix<double, N> fixed = fixed_rotation<N>();
  Histogram entry(-1, 1), turned(-1, 1), angle(N == 2 ? -pi : 0, pi);
  Mean second, fourth, mixed;
  for_ids<S>(draws, {.seed = seed}, [&](const auto& id, const Stream& stream) {
    for_matrices<S, N>(haar_rotation<Lanes<S>, N>(stream, id), [&](const SquareMatrix<double, N>& r) {
      entry.add(r(N - 1, 0));
      // An entry of fixed · R · fixedᵀ: invariance from both sides.
      double sum = 0;
      for (int i = 0; i < N; ++i) {
        for (int j = 0; j < N; ++j) sum += fixed(0, i) * r(i, j) * fixed(1, j);
      }
      turned.add(sum);
      const double trace = r.trace();
      second.add(trace * trace);
      fourth.add(trace * trace * trace * trace);
      mixed.add(r(0, 0) * r(1, 1));
      if constexpr (N <= 3) angle.add(rotation_angle<double, N>(r));
    });
  });
  const auto coordinate = [](double x) { return coordinate_cdf(N, x); };
  entry.compare(name, "an entry", coordinate);
  turned.compare(name, "an entry after fixed rotations on both sides", coordinate);
  if constexpr (N <= 3) {
    angle.compare(name, "angle", [](double x) { return N == 2 ? (x + pi) / (2 * pi) : (x - std::sin(x)) / pi; });
  }
  second.compare(name, "E tr²", N == 2 ? 2 : 1);
  fourth.compare(name, "E tr⁴", N == 2 ? 6 : N == 4 ? 4 : 3);
  mixed.compare(name, "E R₁₁R₂₂", N == 2 ? 0.5 : 0);
}

template <class S>
void test_quaternions(std::uint64_t draws, std::uint64_t seed, const std::string& type) {
  const std::string name = "uniform quaternions, " + type;
  Histogram first(-1, 1), second(-1, 1);
  for_ids<S>(draws, {.seed = seed}, [&](const auto& id, const Stream& stream) {
    using P = Lanes<S>;
    const Column<P, 4> q = detail::uniform_quaternion<P>(stream.words(id, 0));
    const P number[4] = {q(0), q(1), q(2), q(3)};
    for_lanes<S, 4>(number, [&](const S(&value)[4]) {
      first.add(static_cast<double>(value[0]));
      second.add(0.5 * (static_cast<double>(value[0]) - static_cast<double>(value[1]) + static_cast<double>(value[2]) +
                        static_cast<double>(value[3])));
    });
  });
  const auto coordinate = [](double x) { return coordinate_cdf(4, x); };
  first.compare(name, "real part", coordinate);
  second.compare(name, "along (1, −1, 1, 1)/2", coordinate);
}

template <class S, int N>
void test_cayley(std::uint64_t draws, std::uint64_t seed, double kappa, const std::string& type) {
  char text[16];
  std::snprintf(text, sizeof text, "%g", kappa);
  const std::string name = "Cayley, SO(" + std::to_string(N) + "), κ = " + text + ", " + type;
  const S of_type = static_cast<S>(kappa);
  const double k = static_cast<double>(of_type);
  const double largest = N <= 3 ? std::min(pi, 200 * (1 - k)) : 0;
  Histogram angle(N == 2 ? -largest : 0, largest), behind(-1, 1);
  Mean trace, log_density;
  for_ids<S>(draws, {.seed = seed}, [&](const auto& id, const Stream& stream) {
    for_matrices<S, N>(centred_cayley_sample<Lanes<S>, N>(stream, id, of_type), [&](const SquareMatrix<double, N>& y) {
      trace.add(y.trace());
      if constexpr (N <= 3) {
        angle.add(rotation_angle<double, N>(y));
      } else {
        // The uniform rotation behind the sample.
        behind.add(moebius_inverse<double, N>(y, k)(N - 1, 0));
        log_density.add(cayley_logpdf<double, N>(y, k));
      }
    });
  });
  if (k < 0.99) trace.compare(name, "E tr", N * cayley_resultant<N>(k));  // beyond, rare large angles decide
  if constexpr (N <= 3) {
    const CayleyDistribution<N> law(identity_matrix<double, N>(), k);
    angle.compare(name, "angle", [&](double r) { return angle_cdf(law, std::clamp(r, N == 2 ? -pi : 0.0, pi)); });
  } else {
    behind.compare(name, "entry of the uniform rotation behind", [](double x) { return coordinate_cdf(N, x); });
    log_density.compare(name, "mean log density is KL to uniform", cayley_kl<N>(k));
  }
}

void test_wrapped_cauchy(std::uint64_t draws, std::uint64_t seed) {
  const WrappedCauchy<double> law(1.0, 0.6);
  Histogram angle(-pi, pi);
  Mean cosine;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const double centred = std::remainder(sample(law, {.seed = seed}, static_cast<std::uint32_t>(i)) - 1.0, 2 * pi);
    angle.add(centred);
    cosine.add(std::cos(centred));
  }
  angle.compare("wrapped Cauchy, κ = 0.6", "angle", [&](double r) { return angle_cdf(law, std::clamp(r, -pi, pi)); });
  cosine.compare("wrapped Cauchy, κ = 0.6", "E cos", 0.6);
}

template <class S, int P>
void test_angular_central_gaussian(std::uint64_t draws, std::uint64_t seed, const std::string& type) {
  const std::string name = "angular central Gaussian, S" + std::string(P == 3 ? "²" : "³") + ", " + type;
  SquareMatrix<double, P> covariance;
  for (int i = 0; i < P; ++i) {
    for (int j = 0; j < P; ++j) covariance(i, j) = i == j ? std::pow(10.0, i) : 0.5;
  }
  const AngularCentralGaussian<P, double> law(covariance);
  SquareMatrix<Lanes<S>, P> factor;
  for (int i = 0; i < P; ++i) {
    for (int j = 0; j < P; ++j) factor(i, j) = Lanes<S>(static_cast<S>(law.factor()(i, j)));
  }
  Histogram behind(-1, 1), other(-1, 1);
  for_ids<S>(draws, {.seed = seed}, [&](const auto& id, const Stream& stream) {
    const Column<Lanes<S>, P> x = angular_central_gaussian_sample<Lanes<S>, P>(factor, stream, id);
    Lanes<S> number[P];
    for (int i = 0; i < P; ++i) number[i] = x(i);
    for_lanes<S, P>(number, [&](const S(&value)[P]) {
      // L⁻¹x has a uniform direction.
      double z[P], squared = 0, sum = 0;
      for (int i = 0; i < P; ++i) {
        z[i] = static_cast<double>(value[i]);
        for (int k = 0; k < i; ++k) z[i] -= law.factor()(i, k) * z[k];
        z[i] /= law.factor()(i, i);
        squared += z[i] * z[i];
        sum += z[i];
      }
      behind.add(z[P - 1] / std::sqrt(squared));
      other.add(sum / std::sqrt(P * squared));
    });
  });
  const auto coordinate = [](double x) { return coordinate_cdf(P, x); };
  behind.compare(name, "last coordinate of the direction behind", coordinate);
  other.compare(name, "the direction behind along (1, …, 1)", coordinate);
}

void test_matrix_fisher(std::uint64_t draws, std::uint64_t seed) {
  {
    const MatrixFisherDistribution<2> law(identity_matrix<double, 2>(), 0.75);
    Histogram angle(-pi, pi, 1024);
    for (std::uint64_t i = 0; i < draws; ++i) {
      angle.add(rotation_angle<double, 2>(sample(law, {.seed = seed}, static_cast<std::uint32_t>(i))));
    }
    angle.compare("matrix Fisher (Bingham), SO(2), κ = 0.75", "angle",
                  [&](double r) { return angle_cdf(law, std::clamp(r, -pi, pi)); });
  }
  // Singular values that differ, the last negative; and far apart.
  for (const auto& s : {Column<double, 3>(3, 1.5, -1), Column<double, 3>(200, 20, 0)}) {
    char text[128];
    std::snprintf(text, sizeof text, "matrix Fisher (Bingham), SO(3), s = %g, %g, %g", s(0), s(1), s(2));
    const SquareMatrix<double, 3> left = fixed_rotation<3>();
    const MatrixFisherDistribution<3> law(SquareMatrix<double, 3>(left * s.asDiagonal()));
    const SquareMatrix<double, 3> expected = mean(law), mode = law.location();
    Histogram angle(0, pi, 512);
    Mean entry[3], log_density;
    for (std::uint64_t i = 0; i < draws; ++i) {
      const SquareMatrix<double, 3> p = sample(law, {.seed = seed}, static_cast<std::uint32_t>(i));
      angle.add(rotation_angle<double, 3>(SquareMatrix<double, 3>(p * mode.transpose())));
      for (int k = 0; k < 3; ++k) entry[k].add(p(k, (k + 1) % 3));
      if (i < draws / 10) log_density.add(logpdf(law, p));
    }
    angle.compare(text, "angle", [&](double r) { return angle_cdf(law, std::clamp(r, 0.0, pi)); });
    for (int k = 0; k < 3; ++k) {
      entry[k].compare(text, "E P" + std::to_string(k + 1) + std::to_string((k + 1) % 3 + 1), expected(k, (k + 1) % 3));
    }
    log_density.compare(text, "mean log density is KL to uniform", kl_to_uniform(law));
  }
}

template <int N>
void test_leon(std::uint64_t draws, std::uint64_t seed, double k) {
  char text[128];
  std::snprintf(text, sizeof text, "León, SO(%d), k = %g", N, k);
  const LeonCayleyDistribution<N> law(identity_matrix<double, N>(), k);
  Histogram angle(N == 2 ? -pi : 0, pi, 1024);
  Mean trace, log_density;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const SquareMatrix<double, N> p = sample(law, {.seed = seed}, static_cast<std::uint32_t>(i));
    trace.add(p.trace());
    if constexpr (N <= 3) angle.add(rotation_angle<double, N>(p));
    if constexpr (N > 3) log_density.add(logpdf(law, p));
  }
  trace.compare(text, "E tr", N * mean_resultant(law));
  if constexpr (N <= 3) {
    angle.compare(text, "angle", [&](double r) { return angle_cdf(law, std::clamp(r, N == 2 ? -pi : 0.0, pi)); });
  } else {
    log_density.compare(text, "mean log density is KL to uniform", kl_to_uniform(law));
  }
}

/// The turn from the location: angle, characters of the rotation group, and direction of the axis.
void test_isotropic_gaussian(std::uint64_t draws, std::uint64_t seed, double sigma) {
  char text[128];
  std::snprintf(text, sizeof text, "isotropic Gaussian, SO(3), σ = %g", sigma);
  const SquareMatrix<double, 3> location = fixed_rotation<3>();
  const IsotropicGaussian<3> law(location, sigma);
  const double largest = std::min(pi, 8 * sigma);
  Histogram angle(0, largest, 1024), axis(-1, 1);
  Mean character[3], log_density;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const SquareMatrix<double, 3> p = sample(law, {.seed = seed}, static_cast<std::uint32_t>(i));
    const SquareMatrix<double, 3> turn = multiply_nt(p, location);
    const double omega = rotation_angle<double, 3>(turn);
    angle.add(omega);
    for (int l = 1; l <= 3; ++l) {
      character[l - 1].add(omega > 0 ? std::sin((l + 0.5) * omega) / std::sin(0.5 * omega) : 2 * l + 1);
    }
    const RotationParameters<double, 3> along = skew_parameters<double, 3>(turn);
    axis.add((along(0) - 2 * along(1) + 2 * along(2)) / (3 * along.norm()));
    if (i < draws / 10) log_density.add(logpdf(law, p));
  }
  angle.compare(text, "angle", [&](double r) { return angle_cdf(law, std::clamp(r, 0.0, pi)); });
  axis.compare(text, "axis along (1, −2, 2)/3", [](double x) { return coordinate_cdf(3, x); });
  for (int l = 1; l <= 3; ++l) {
    character[l - 1].compare(text, "E χ" + std::to_string(l), (2 * l + 1) * std::exp(-0.5 * l * (l + 1) * law.time()));
  }
  log_density.compare(text, "mean log density is KL to uniform", kl_to_uniform(law));
}

/// In the frames of A and B, whose turns are fixed rotations. N = 2: twice the angle has a von Mises distribution.
template <int N>
void test_matrix_bingham(std::uint64_t draws, std::uint64_t seed, const detail::EigenvalueGaps<N>& a,
                         const detail::EigenvalueGaps<N>& b) {
  std::string name = "matrix Bingham, SO(" + std::to_string(N) + "), gaps";
  for (const auto* gaps : {&a, &b}) {
    for (int i = 0; i + 1 < N; ++i) {
      char text[32];
      std::snprintf(text, sizeof text, "%s %g", i > 0 ? "," : gaps == &b ? " and" : "", (*gaps)(i));
      name += text;
    }
  }
  const auto with_gaps = [](const SquareMatrix<double, N>& frame, const detail::EigenvalueGaps<N>& gaps) {
    Column<double, N> values = Column<double, N>::Zero();
    for (int i = 0; i + 1 < N; ++i) values.head(i + 1).array() += gaps(i);
    return SquareMatrix<double, N>(frame * values.asDiagonal() * frame.transpose());
  };
  const SquareMatrix<double, N> frame = fixed_rotation<N>();
  const SquareMatrix<double, N> other = frame * frame;
  const MatrixBinghamDistribution<N> law(with_gaps(frame, a), with_gaps(other, b));
  Histogram angle(-pi, pi, 1024), corner(-1, 1, 1024);
  Mean square[4], entry, log_density;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const SquareMatrix<double, N> p = sample(law, {.seed = seed}, static_cast<std::uint32_t>(i));
    const SquareMatrix<double, N> s = law.outer_frame().vectors.transpose() * p * law.inner_frame().vectors;
    for (int k = 0; k < 4; ++k) square[k].add(s(k / 2, k % 2) * s(k / 2, k % 2));
    entry.add(p(0, N - 1));
    if constexpr (N == 2) {
      angle.add(std::remainder(2 * rotation_angle<double, 2>(s), 2 * pi));
    } else {
      corner.add(s(0, 0));
    }
    if (i < draws / 10) log_density.add(logpdf(law, p));
  }
  if constexpr (N == 2) {
    const MatrixFisherDistribution<2> twice(identity_matrix<double, 2>(), 0.25 * a(0) * b(0));
    angle.compare(name, "twice the angle", [&](double r) { return angle_cdf(twice, std::clamp(r, -pi, pi)); });
  } else if (a(1) == 0 && b(1) == 0) {
    // The first row has Watson's distribution: S₁₁ has a density proportional to e^{κx²}.
    const double kappa = a(0) * b(0);
    const auto mass = [kappa](double x) {
      return detail::integrate_parts([kappa](double y) { return std::exp(kappa * (y * y - 1)); }, -1, x, 64);
    };
    const double all = mass(1);
    corner.compare(name, "S₁₁", [&](double x) { return mass(x) / all; });
  }
  for (int k = 0; k < (N == 2 ? 1 : 4); ++k) {
    square[k].compare(name, "E S" + std::to_string(k / 2 + 1) + std::to_string(k % 2 + 1) + "²",
                      law.normaliser().squares(k / 2, k % 2));
  }
  entry.compare(name, "E P1" + std::to_string(N), 0);
  log_density.compare(name, "mean log density is KL to uniform", kl_to_uniform(law));
}

/// Cayley distributions around one rotation, whose angles are a mixture of angles, and around several.
void test_mixture(std::uint64_t draws, std::uint64_t seed) {
  using Law = CayleyDistribution<3>;
  const std::vector<double> weights = {0.5, 0.3, 0.2};
  const SquareMatrix<double, 3> fixed = fixed_rotation<3>();
  for (const bool apart : {false, true}) {
    const std::string name = apart ? "mixture, Cayley, SO(3), apart" : "mixture, Cayley, SO(3), one location";
    const SquareMatrix<double, 3> second = apart ? SquareMatrix<double, 3>(fixed * fixed) : fixed;
    const Mixture<Law> law({Law(fixed, 0.2), Law(second, 0.9), Law(fixed, 0.6)}, weights);
    const SquareMatrix<double, 3> expected = mean(law);
    Histogram angle(0, pi, 1024);
    Mean entry[3], share[3];
    for (std::uint64_t i = 0; i < draws; ++i) {
      const SquareMatrix<double, 3> p = sample(law, {.seed = seed}, static_cast<std::uint32_t>(i));
      angle.add(rotation_angle<double, 3>(multiply_nt(p, fixed)));
      for (int k = 0; k < 3; ++k) entry[k].add(p(k, (k + 1) % 3));
      if (i >= draws / 10) continue;
      const std::vector<double> of = responsibilities(law, p);
      for (std::size_t k = 0; k < 3; ++k) share[k].add(of[k]);
    }
    if (!apart) {
      angle.compare(name, "angle", [&](double r) {
        double sum = 0;
        for (std::size_t k = 0; k < 3; ++k) sum += weights[k] * angle_cdf(law.components()[k], std::clamp(r, 0.0, pi));
        return sum;
      });
    }
    for (int k = 0; k < 3; ++k) {
      entry[k].compare(name, "E P" + std::to_string(k + 1) + std::to_string((k + 1) % 3 + 1), expected(k, (k + 1) % 3));
    }
    for (std::size_t k = 0; k < 3; ++k) {
      share[k].compare(name, "mean responsibility of component " + std::to_string(k + 1), weights[k]);
    }
  }
}

template <class S, int N>
void test_tangent_normal(std::uint64_t draws, std::uint64_t seed, double sigma, const std::string& type) {
  char text[128];
  std::snprintf(text, sizeof text, "tangent normal, SO(%d), σ = %g, %s", N, sigma, type.c_str());
  using P = Lanes<S>;
  const RotationParameters<P, N> deviation = RotationParameters<P, N>::Constant(P(static_cast<S>(sigma)));
  Histogram angle(N == 2 ? -pi : 0, pi);
  for_ids<S>(draws, {.seed = seed}, [&](const auto& id, const Stream& stream) {
    RotationParameters<P, N> epsilon;
    fill_normals<rotation_parameters<N>, P>(epsilon.data(), stream, id);
    for_matrices<S, N>(tangent_normal_sample<P, N>(identity_matrix<P, N>(), deviation, epsilon),
                       [&](const SquareMatrix<double, N>& y) { angle.add(rotation_angle<double, N>(y)); });
  });
  // P(|φ| ≤ x) of three numbers: Maxwell's law.
  const auto maxwell = [&](double x) { return x <= 0 ? 0.0 : boost::math::gamma_p(1.5, 0.5 * x * x / (sigma * sigma)); };
  angle.compare(text, "angle", [&](double r) {
    double sum = 0;
    for (int turn = -20; turn <= 20; ++turn) {
      const double whole = 2 * pi * turn;
      if (N == 2) sum += normal_law((whole + r) / sigma) - normal_law((whole - pi) / sigma);
      if (N == 3 && turn >= 0) sum += maxwell(whole + r) - maxwell(whole - r);
    }
    return sum;
  });
}

void test_dropout(std::uint64_t draws, std::uint64_t seed) {
  for (const double rate : {0.5, 0.1, 0.9}) {
    char text[128];
    std::snprintf(text, sizeof text, "dropout masks, rate %g", rate);
    const Index block = 1 << 20;
    std::vector<std::uint8_t> mask(static_cast<std::size_t>(Dropout::mask_size(block))), before(mask.size());
    std::vector<std::uint64_t> kept_at(128);
    std::uint64_t all = 0, kept = 0, both = 0, both_epochs = 0;
    Dropout dropout{.rate = rate, .stream = {.seed = seed, .purpose = Purpose::hidden_dropout}};
    const double keep = dropout.threshold() / 65536.0;
    for (; all < draws; all += static_cast<std::uint64_t>(block)) {
      ++dropout.stream.epoch;
      before.swap(mask);
      dropout.fill_mask(1, block, mask.data());
      for (Index e = 0; e < block; ++e) {
        const auto bit = [&](const std::vector<std::uint8_t>& bits, Index element) {
          return bits[static_cast<std::size_t>(element / 8)] >> (element % 8) & 1;
        };
        if (bit(mask, e) == 0) continue;
        ++kept;
        ++kept_at[static_cast<std::size_t>(e % 128)];
        both += static_cast<std::uint64_t>(e + 1 < block ? bit(mask, e + 1) : 0);
        both_epochs += static_cast<std::uint64_t>(all > 0 ? bit(before, e) : 0);
      }
    }
    const auto z_test = [&](const char* what, std::uint64_t count, double of, double probability, double variance) {
      const double z = (static_cast<double>(count) - of * probability) / std::sqrt(of * variance);
      report(text, what, all, "z", z, std::erfc(std::abs(z) / std::sqrt(2.0)));
    };
    const double n = static_cast<double>(all), passes = n / static_cast<double>(block), square = keep * keep;
    z_test("kept", kept, n, keep, keep * (1 - keep));
    // Neighbouring pairs overlap: the variance of their sum has the covariance of both sides.
    z_test("kept with its neighbour", both, n - passes, square, square * (1 - square) + 2 * square * keep * (1 - keep));
    if (passes > 1) {
      z_test("kept in two passes", both_epochs, n - static_cast<double>(block), square,
             square * (1 - square) + 2 * square * keep * (1 - keep));
    }
    double chi = 0;
    for (const std::uint64_t count : kept_at) {
      chi += std::pow(static_cast<double>(count) - n / 128 * keep, 2) / (n / 128 * keep * (1 - keep));
    }
    report(text, "kept at each of the 128 places of a block", all, "chi-square", chi,
           boost::math::gamma_q(64, 0.5 * chi));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t draws = argc > 1 ? static_cast<std::uint64_t>(std::strtod(argv[1], nullptr)) : 0;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  if (draws < 10000) {
    std::fprintf(stderr, "usage: samplers DRAWS [SEED [GROUP]]   at least 10000 draws\n");
    return 2;
  }
  const std::string only = argc > 3 ? argv[3] : "";
  const std::vector<std::pair<std::string, std::function<void()>>> groups = {
      {"words", [&] { test_words(draws, seed); }},
      {"numbers", [&] { test_numbers<float>(draws, seed + 1, "float"); }},
      {"numbers", [&] { test_numbers<double>(draws, seed + 2, "double"); }},
      {"quaternions", [&] { test_quaternions<float>(draws, seed + 3, "float"); }},
      {"quaternions", [&] { test_quaternions<double>(draws, seed + 4, "double"); }},
      {"uniform", [&] { test_haar<double, 2>(draws, seed + 5, "double"); }},
      {"uniform", [&] { test_haar<float, 3>(draws, seed + 6, "float"); }},
      {"uniform", [&] { test_haar<double, 3>(draws, seed + 7, "double"); }},
      {"uniform", [&] { test_haar<double, 4>(draws, seed + 8, "double"); }},
      {"uniform", [&] { test_haar<double, 5>(draws, seed + 9, "double"); }},
      {"uniform", [&] { test_haar<float, 8>(draws, seed + 10, "float"); }},
      {"cayley", [&] { test_cayley<double, 2>(draws, seed + 11, 0.7, "double"); }},
      {"cayley", [&] { test_cayley<float, 3>(draws, seed + 12, 0.7, "float"); }},
      {"cayley", [&] { test_cayley<double, 3>(draws, seed + 13, 0.999999, "double"); }},
      {"cayley", [&] { test_cayley<double, 4>(draws, seed + 14, 0.7, "double"); }},
      {"cayley", [&] { test_cayley<float, 5>(draws, seed + 15, 0.5, "float"); }},
      {"cauchy", [&] { test_wrapped_cauchy(draws, seed + 16); }},
      {"gaussian", [&] { test_angular_central_gaussian<float, 3>(draws, seed + 17, "float"); }},
      {"gaussian", [&] { test_angular_central_gaussian<double, 4>(draws, seed + 18, "double"); }},
      {"fisher", [&] { test_matrix_fisher(draws, seed + 19); }},
      {"leon2", [&] { test_leon<2>(draws, seed + 20, 1.5); }},
      {"leon3", [&] { test_leon<3>(draws / 10, seed + 21, 0.25); }},
      {"leon5", [&] { test_leon<5>(draws / 10, seed + 22, 4); }},
      {"tangent", [&] { test_tangent_normal<float, 2>(draws, seed + 23, 1, "float"); }},
      {"tangent", [&] { test_tangent_normal<double, 3>(draws, seed + 24, 1, "double"); }},
      {"dropout", [&] { test_dropout(draws, seed + 25); }},
      {"isotropic", [&] { test_isotropic_gaussian(draws, seed + 26, 0.5); }},
      {"isotropic", [&] { test_isotropic_gaussian(draws, seed + 27, 1.6); }},
      {"bingham", [&] { test_matrix_bingham<2>(draws, seed + 28, detail::EigenvalueGaps<2>(2.0), detail::EigenvalueGaps<2>(1.5)); }},
      {"bingham", [&] { test_matrix_bingham<3>(draws, seed + 29, {3, 0}, {1.5, 0}); }},
      {"bingham", [&] { test_matrix_bingham<3>(draws, seed + 30, {2, 5}, {3, 1}); }},
      {"bingham", [&] { test_matrix_bingham<3>(draws, seed + 31, {60, 1}, {0.5, 8}); }},
      {"mixture", [&] { test_mixture(draws, seed + 32); }}};
  std::printf("| sampler | what | draws | test | value | p |\n| --- | --- | --- | --- | --- | --- |\n");
  for (const auto& [name, run] : groups) {
    if (only.empty() || name == only) run();
  }
  std::printf("\n%d tests, least p-value %.3g, %d below 10⁻⁶\n", tests, least, failures);
  return failures > 0 ? 1 : 0;
}
