/// \file
/// Fuzz target: the public functions of rotations with arbitrary arguments, finite or not: parametrisations, logarithms,
/// nearest rotations, and every distribution with its density, samples, moments, angles, divergences and fits. The first
/// byte chooses the function, the scalar and the dimension.
///
/// The program that replays the corpora has, in double and for N = 3, the parametrisations, matrices and Cayley
/// distributions without their angles: what is quick to compile.
#include <algorithm>

#include "contract.hpp"
#include "sheafnn/rotation.hpp"

namespace {

using fuzz::Choices;
using fuzz::expect;
using fuzz::keeps_contract;
using sheafnn::math::Column;
using sheafnn::rotation::RotationParameters;
using sheafnn::SquareMatrix;
using std::invalid_argument;
using std::runtime_error;

template <class S>
constexpr S epsilon = std::numeric_limits<S>::epsilon();

template <class S, int R>
Column<S, R> any_vector(Choices& choices) {
  Column<S, R> r;
  for (int i = 0; i < R; ++i) r(i) = choices.moderate<S>();
  return r;
}
template <class S, int N>
SquareMatrix<S, N> any_matrix(Choices& choices) {
  SquareMatrix<S, N> r;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) r(i, j) = choices.moderate<S>();
  }
  return r;
}
/// A rotation: any, by small angles, or by right angles.
template <class S, int N>
SquareMatrix<S, N> some_rotation(Choices& choices) {
  const int kind = choices.byte();
  RotationParameters<S, N> phi;
  for (int i = 0; i < sheafnn::rotation::rotation_parameters<N>; ++i) {
    phi(i) = kind < 128   ? 4 * choices.unit<S>()
             : kind < 160 ? choices.unit<S>() * S(1e-6)
                          : S(choices.below(9) - 4);
  }
  if (kind >= 160) phi *= S(0.785398163397448309616);
  SquareMatrix<S, N> r = sheafnn::rotation::exponential_rotation<S, N>(phi);
  for (int step = 0; step < 2; ++step) r = sheafnn::rotation::orthonormalisation_step<S, N>(r);
  return r;
}
/// A rotation, one with a little drift, or any matrix.
template <class S, int N>
SquareMatrix<S, N> some_matrix(Choices& choices) {
  const int kind = choices.byte();
  if (kind >= 240) return any_matrix<S, N>(choices);
  SquareMatrix<S, N> r = some_rotation<S, N>(choices);
  if (kind >= 200) r(choices.below(N), choices.below(N)) += choices.number<S>();
  if (kind >= 160 && kind < 200) r *= 1 + sheafnn::rotation::rotation_tolerance<S>() * choices.unit<S>();
  return r;
}
template <class S>
sheafnn::rotation::SampleOptions<S> some_options(Choices& choices) {
  sheafnn::rotation::SampleOptions<S> r;
  const int kind = choices.byte();
  if (kind > 240) r.tolerance = choices.number<S>();
  if (kind > 220 && kind <= 240) r.tolerance = S(0.01);
  return r;
}
template <class Matrix>
bool all_finite(const Matrix& m) {
  for (int i = 0; i < static_cast<int>(m.size()); ++i) {
    if (!std::isfinite(m.data()[i])) return false;
  }
  return true;
}
/// \param roundings  how many of ε it may be from orthogonal
template <class S, int N>
void expect_rotation(const SquareMatrix<S, N>& r, double roundings, const char* what) {
  const double defect = static_cast<double>(sheafnn::rotation::orthogonality_defect<S, N>(r));
  if (!(defect <= roundings * static_cast<double>(epsilon<S>))) {
    fuzz::broken(what, "orthogonal only within " + std::to_string(defect / static_cast<double>(epsilon<S>)) +
                           " epsilon");
  }
  expect(sheafnn::detail::pivoted_determinant<S, N>(r) > 0, what);
}

// ---- Parametrisations -------------------------------------------------------------------------------------------------

template <class S, int N>
void parametrisations(Choices& choices) {
  using sheafnn::rotation::RotationParametrisation;
  constexpr int P = sheafnn::rotation::rotation_parameters<N>;
  const Column<S, P> phi = any_vector<S, P>(choices);
  const SquareMatrix<S, N> cotangent = any_matrix<S, N>(choices);
  const double length = phi.template cast<double>().norm();
  for (const auto kind : {RotationParametrisation::householder, RotationParametrisation::cayley,
                          RotationParametrisation::exponential, RotationParametrisation::euler}) {
    if (kind == RotationParametrisation::euler && !sheafnn::rotation::has_euler_angles<N>) continue;
    const SquareMatrix<S, N> q = sheafnn::rotation::rotation_from_parameters<S, N>(kind, phi);
    Column<S, P> gradient = Column<S, P>::Zero();
    sheafnn::rotation::rotation_from_parameters_backward<S, N>(kind, phi, cotangent, gradient);
    constexpr double largest = static_cast<double>(std::numeric_limits<S>::max());
    const double limit = kind == RotationParametrisation::householder ? std::sqrt(largest) / 16 : largest;
    if (!(length <= limit)) continue;
    // Squarings and elimination lose up to the 16 of the lengths where the normal form takes over.
    expect_rotation<S, N>(q, 64 * N * (1 + std::min(length * length, 16.0)), "a parametrisation gives no rotation");
    if (all_finite(cotangent) && cotangent.template cast<double>().norm() < 1e3 && length < 1e3) {
      expect(all_finite(gradient), "a derivative of a parametrisation is not finite");
    }
  }
  const RotationParameters<S, N> again =
      sheafnn::rotation::skew_parameters<S, N>(sheafnn::rotation::skew_matrix<S, N>(phi));
  if (length < 1e3) expect((again - phi).norm() == 0, "skew matrices");
  // The volume of the exponential map.
  RotationParameters<S, N> slope = RotationParameters<S, N>::Zero();
  const S volume = sheafnn::rotation::exponential_log_jacobian_backward<S, N>(phi, S(1), slope);
  if (std::isfinite(length)) expect(std::isfinite(volume) && all_finite(slope), "the volume of the exponential map");
  const Column<S, P> noise = any_vector<S, P>(choices);
  const S density = sheafnn::rotation::tangent_normal_logpdf<S, N>(phi.cwiseAbs(), noise);
  const SquareMatrix<S, N> m = some_rotation<S, N>(choices);
  static_cast<void>(density);
  SquareMatrix<S, N> m_gradient = SquareMatrix<S, N>::Zero();
  const SquareMatrix<S, N> y = sheafnn::rotation::tangent_normal_sample<S, N>(m, phi, noise);
  const double moved = static_cast<double>(phi.cwiseProduct(noise).norm());
  if (std::isfinite(moved)) expect_rotation<S, N>(y, 64 * N * 20, "a normal sample in the tangent space");
  sheafnn::rotation::tangent_normal_sample_backward<S, N>(m, phi, noise, y, cotangent, m_gradient, slope);
}

// ---- Matrices ---------------------------------------------------------------------------------------------------------

template <class S, int N>
void matrices(Choices& choices) {
  const SquareMatrix<S, N> a = some_matrix<S, N>(choices);
  const auto options = some_options<S>(choices);
  keeps_contract<invalid_argument>([&] {
    expect_rotation<S, N>(sheafnn::rotation::nearest_rotation<S, N>(a), 64 * N, "the nearest rotation is none");
  });
  SquareMatrix<S, N> r;
  const bool rotation = keeps_contract<invalid_argument>([&] {
    r = sheafnn::rotation::orthonormalised<S, N>("r", a, options);
    expect_rotation<S, N>(r, 8 * N, "an orthonormalised matrix is no rotation");
  });
  keeps_contract<invalid_argument>(
      [&] { static_cast<void>(sheafnn::rotation::unit_vector<S, N>("x", a.col(0), options)); });
  if constexpr (N <= 3) {
    const S angle = sheafnn::rotation::rotation_angle<S, N>(a);
    if (rotation) expect(std::abs(angle) <= S(3.1415928), "an angle of a rotation");
  }
  if constexpr (N == 3) {
    const Column<S, 4> q = sheafnn::rotation::rotation_quaternion<S>(a);
    if (rotation) expect(std::abs(q.norm() - 1) < 64 * epsilon<S>, "a quaternion is no unit vector");
    static_cast<void>(sheafnn::rotation::quaternion_rotation<S>(any_vector<S, 4>(choices)));
  }
  keeps_contract<invalid_argument>([&] {
    const RotationParameters<S, N> phi = sheafnn::rotation::rotation_log<S, N>(a, options);
    const SquareMatrix<S, N> back = sheafnn::rotation::exponential_rotation<S, N>(phi);
    if (!(static_cast<double>((back - r).cwiseAbs().maxCoeff()) <= 256 * N * static_cast<double>(epsilon<S>))) {
      fuzz::broken("exp(log R) is not R",
                   std::to_string(static_cast<double>((back - r).cwiseAbs().maxCoeff() / epsilon<S>)) +
                       " epsilon");
    }
    static_cast<void>(sheafnn::rotation::rotation_log_jacobian<S, N>(phi));
    static_cast<void>(sheafnn::rotation::rotation_log_backward<S, N>(
        a, phi, any_vector<S, sheafnn::rotation::rotation_parameters<N>>(choices)));
  });
  keeps_contract<invalid_argument>([&] {
    static_cast<void>(sheafnn::rotation::rotation_log_jacobian<S, N>(
        any_vector<S, sheafnn::rotation::rotation_parameters<N>>(choices)));
  });
  keeps_contract<invalid_argument>([&] {
    const SquareMatrix<S, N> x = sheafnn::rotation::inverse_cayley_transform<S, N>(a);
    if (rotation) expect(all_finite(x), "an inverse Cayley transform is not finite");
  });
  // Maps of a rotation by any κ; those with 0 ≤ κ < 1 give a rotation.
  const S kappa = choices.flag() ? choices.number<S>() : std::abs(choices.unit<S>());
  const SquareMatrix<S, N> u = some_rotation<S, N>(choices);
  const SquareMatrix<S, N> y = sheafnn::rotation::moebius<S, N>(u, kappa);
  if (kappa >= 0 && kappa < 1) {
    expect_rotation<S, N>(y, 64 * N / static_cast<double>(1 - kappa), "a Moebius map gives no rotation");
  }
  static_cast<void>(sheafnn::rotation::moebius_derivative_from_noise<S, N>(u, y, kappa));
  static_cast<void>(sheafnn::rotation::moebius_derivative<S, N>(y, kappa));
  static_cast<void>(sheafnn::rotation::moebius_inverse<S, N>(a, kappa));
}

// ---- Distributions ----------------------------------------------------------------------------------------------------

template <class S>
sheafnn::Stream some_stream(Choices& choices) {
  return {choices.raw<std::uint64_t>(), sheafnn::Purpose::user, choices.byte(), 0, 0};
}

template <class S, int N, class D>
void angles(const D& distribution, Choices& choices) {
  const S r = choices.flag() ? choices.number<S>() : S(3.1415926) * choices.unit<S>();
  keeps_contract<invalid_argument>([&] {
    const S density = angle_pdf(distribution, r), below = angle_cdf(distribution, r);
    expect(density >= 0, "a density of angles is negative or not a number");
    expect(below >= 0 && below <= 1 + 64 * epsilon<S>, "a probability of angles");
  });
  keeps_contract<invalid_argument>([&] {
    const S level = choices.flag() ? choices.number<S>() : std::abs(choices.unit<S>());
    const S quantile = angle_quantile(distribution, level);
    expect(std::abs(quantile) <= S(3.1415928), "a quantile of angles");
  });
}

template <class S, int N, class D>
void use_distribution(const D& distribution, Choices& choices) {
  const auto options = some_options<S>(choices);
  const SquareMatrix<S, N> p = some_matrix<S, N>(choices);
  keeps_contract<invalid_argument>([&] {
    const S log_density = logpdf(distribution, p, options);
    expect(!std::isnan(log_density) && log_density < std::numeric_limits<S>::infinity(), "a log density");
    expect(pdf(distribution, p, options) >= 0, "a density is negative or not a number");
  });
  keeps_contract<runtime_error>([&] {
    const sheafnn::Stream stream = some_stream<S>(choices);
    expect_rotation<S, N>(sample(distribution, stream, choices.byte()), 256 * N, "a sample is no rotation");
#if !defined(SHEAFNN_FUZZ_REPLAY) || defined(SHEAFNN_FUZZ_ALL)
    std::vector<SquareMatrix<S, N>> many(static_cast<std::size_t>(choices.below(10)));
    sheafnn::rotation::sample_many(distribution, stream, choices.byte(), std::span(many));
    for (const auto& one : many) expect_rotation<S, N>(one, 1024 * N, "one of many samples is no rotation");
#endif
  });
  const S divergence = kl_to_uniform(distribution);
  expect(divergence >= -256 * epsilon<S> && !std::isnan(divergence), "a divergence is negative or not a number");
  expect(!std::isnan(entropy(distribution)), "an entropy is not a number");
  const S length = mean_resultant(distribution);
  expect(length >= -256 * epsilon<S> && length <= 1 + 256 * epsilon<S>, "the length of a mean");
  expect(all_finite(mean(distribution)), "a mean is not finite");
  if constexpr (requires { logpdf_gradient(distribution, p, options); }) {
    keeps_contract<invalid_argument>([&] { static_cast<void>(logpdf_gradient(distribution, p, options)); });
  }
  if constexpr (requires { fisher_information(distribution); }) {
    const auto information = fisher_information(distribution);
    expect(information.concentration >= 0, "an information");
  }
#if !defined(SHEAFNN_FUZZ_REPLAY) || defined(SHEAFNN_FUZZ_ALL)
  // Angles of concentrated matrix Fisher distributions are integrals of integrals, about a millisecond each and more.
  bool quick = true;
  if constexpr (requires { distribution.singular_values(); }) quick = distribution.singular_values()(0) < 1e4;
  if constexpr (N <= 3) {
    if (!quick) return;
    angles<S, N>(distribution, choices);
    keeps_contract<invalid_argument>([&] {
      std::vector<SquareMatrix<S, N>> samples(static_cast<std::size_t>(choices.below(5)));
      for (auto& one : samples) one = some_matrix<S, N>(choices);
      const double p_value =
          sheafnn::rotation::goodness_of_fit(distribution, std::span<const SquareMatrix<S, N>>(samples)).p_value;
      expect(p_value >= 0 && p_value <= 1, "a p-value");
    });
  }
#endif
}

template <class S>
S some_concentration(Choices& choices) {
  switch (choices.below(4)) {
    case 0:
      return choices.number<S>();
    case 1:
      return 1 - std::ldexp(S(1), -choices.below(64));
    case 2:
      return std::ldexp(S(1), choices.below(120) - 40);
    default:
      return std::abs(choices.unit<S>());
  }
}

template <class S, int N>
void cayley(Choices& choices) {
  keeps_contract<invalid_argument>([&] {
    const sheafnn::rotation::CayleyDistribution<N, S> first(some_matrix<S, N>(choices), some_concentration<S>(choices));
    use_distribution<S, N>(first, choices);
    const auto cotangents = sample_backward(first, some_rotation<S, N>(choices), any_matrix<S, N>(choices));
    static_cast<void>(cotangents);
    const sheafnn::rotation::CayleyDistribution<N, S> second(some_matrix<S, N>(choices),
                                                             some_concentration<S>(choices));
#if !defined(SHEAFNN_FUZZ_REPLAY) || defined(SHEAFNN_FUZZ_ALL)
    const S divergence = sheafnn::rotation::kl_divergence(first, second);
    expect(divergence >= -1024 * epsilon<S>, "a divergence is negative or not a number");
#endif
    if constexpr (N <= 3) {
      SquareMatrix<S, N> m = SquareMatrix<S, N>::Zero();
      S slope = 0;
      const S value =
          sheafnn::rotation::cayley_prior_kl_backward<S, N>(first.location(), first.concentration(), second.location(),
                                                  second.concentration(), S(1), m, slope);
      expect(value >= -1024 * epsilon<S>, "a divergence to a prior is negative or not a number");
    }
  });
}
template <class S, int N>
void leon(Choices& choices) {
  keeps_contract<invalid_argument>([&] {
    const sheafnn::rotation::LeonCayleyDistribution<N, S> one(some_matrix<S, N>(choices),
                                                              some_concentration<S>(choices));
    use_distribution<S, N>(one, choices);
  });
}
template <class S, int N>
void matrix_fisher(Choices& choices) {
  if constexpr (N <= 3) {
    keeps_contract<invalid_argument>([&] {
      if (choices.flag()) {
        use_distribution<S, N>(sheafnn::rotation::MatrixFisherDistribution<N, S>(any_matrix<S, N>(choices)), choices);
      } else {
        use_distribution<S, N>(sheafnn::rotation::MatrixFisherDistribution<N, S>(some_matrix<S, N>(choices),
                                                                       some_concentration<S>(choices)),
                               choices);
      }
    });
  } else {
    use_distribution<S, N>(sheafnn::rotation::HaarDistribution<N, S>(), choices);
  }
}

template <class S, int P>
SquareMatrix<S, P> some_covariance(Choices& choices) {
  const SquareMatrix<S, P> a = any_matrix<S, P>(choices);
  switch (choices.below(3)) {
    case 0:
      return a;
    case 1: {
      SquareMatrix<S, P> diagonal = SquareMatrix<S, P>::Zero();
      for (int i = 0; i < P; ++i) diagonal(i, i) = std::abs(a(i, i));
      return diagonal;
    }
    default:
      return a * a.transpose();
  }
}
template <class S, int P>
void central_gaussian(Choices& choices) {
  using Distribution = sheafnn::rotation::AngularCentralGaussian<P, S>;
  keeps_contract<invalid_argument>([&] {
    const Distribution first(some_covariance<S, P>(choices));
    Column<S, P> x = any_vector<S, P>(choices);
    if (choices.flag()) x.normalize();
    const auto options = some_options<S>(choices);
    keeps_contract<invalid_argument>([&] {
      expect(!std::isnan(logpdf(first, x, options)), "a log density is not a number");
      expect(pdf(first, x, options) >= 0, "a density is negative or not a number");
      static_cast<void>(logpdf_gradient(first, x, options));
    });
    const Column<S, P> drawn = sample(first, some_stream<S>(choices), choices.byte());
    expect(std::abs(drawn.norm() - 1) < 64 * epsilon<S>, "a sample is no unit vector");
    const S divergence = kl_to_uniform(first);
    expect(divergence >= -1024 * epsilon<S>, "a divergence is negative or not a number");
    static_cast<void>(sample_backward(first, any_vector<S, P>(choices), any_vector<S, P>(choices)));
    const Distribution second(some_covariance<S, P>(choices));
    expect(sheafnn::rotation::kl_divergence(first, second) >= -1024 * epsilon<S>,
           "a divergence is negative or not a number");
  });
}
template <class S>
void wrapped_cauchy(Choices& choices) {
  using Distribution = sheafnn::rotation::WrappedCauchy<S>;
  keeps_contract<invalid_argument>([&] {
    const Distribution first(choices.number<S>(), some_concentration<S>(choices));
    const S angle = choices.number<S>();
    keeps_contract<invalid_argument>([&] {
      expect(!std::isnan(logpdf(first, angle)) && pdf(first, angle) >= 0, "a density of angles");
      static_cast<void>(logpdf_gradient(first, angle));
    });
    expect(std::abs(sample(first, some_stream<S>(choices), choices.byte())) <= S(3.1415928), "a sample of angles");
    static_cast<void>(sample_gradient(first, angle));
    expect(kl_to_uniform(first) >= 0 && std::abs(mean(first)) <= S(3.1415928), "a divergence or a mean");
    angles<S, 2>(first, choices);
    const Distribution second(choices.number<S>(), some_concentration<S>(choices));
    expect(sheafnn::rotation::kl_divergence(first, second) >= -1024 * epsilon<S>,
           "a divergence is negative or not a number");
    std::vector<S> many(static_cast<std::size_t>(choices.below(6)));
    for (S& one : many) one = choices.flag() ? choices.number<S>() : 8 * choices.unit<S>();
    keeps_contract<invalid_argument>(
        [&] { static_cast<void>(sheafnn::rotation::goodness_of_fit(first, std::span<const S>(many))); });
    keeps_contract<invalid_argument, runtime_error>([&] {
      const auto fitted = sheafnn::rotation::fit<Distribution>(many);
      expect(!std::isnan(fitted.log_likelihood), "the likelihood of a fit is not a number");
    });
  });
}

// ---- Fits -------------------------------------------------------------------------------------------------------------

template <class D, class S, int N>
void fit_one(const std::vector<SquareMatrix<S, N>>& samples, const std::vector<S>& weights,
             const sheafnn::rotation::SampleOptions<S>& options) {
  keeps_contract<invalid_argument, runtime_error>([&] {
    const auto fitted = sheafnn::rotation::fit<D>(samples, weights, options);
    expect(!std::isnan(fitted.log_likelihood), "the likelihood of a fit is not a number");
    expect(fitted.effective_samples >= 0.999, "effective samples");
    const auto interval = fitted.concentration_interval();
    expect(!(interval.lower > interval.upper), "an interval");
  });
  keeps_contract<invalid_argument, runtime_error>([&] {
    const auto fitted = sheafnn::rotation::fit_moments<D>(samples, weights, options);
    expect(!std::isnan(fitted.log_likelihood), "the likelihood of a fit by moments is not a number");
  });
}
template <class S, int N>
void fits(Choices& choices) {
  const auto options = some_options<S>(choices);
  const int kind = choices.byte();
  std::vector<SquareMatrix<S, N>> samples(static_cast<std::size_t>(choices.below(10)));
  for (auto& one : samples) {
    one = kind < 128 ? some_rotation<S, N>(choices) : some_matrix<S, N>(choices);
    if (kind % 3 == 0 && &one != samples.data()) one = choices.flag() ? samples.front() : one;
  }
  std::vector<S> weights;
  if (kind % 5 == 0) {
    for (int left = choices.below(10); left > 0; --left) weights.push_back(std::abs(choices.moderate<S>()));
    if (choices.flag()) weights.resize(samples.size(), S(1));
  }
  switch (choices.below(4)) {
    case 0:
      return fit_one<sheafnn::rotation::CayleyDistribution<N, S>, S, N>(samples, weights, options);
    case 1:
      return fit_one<sheafnn::rotation::LeonCayleyDistribution<N, S>, S, N>(samples, weights, options);
    case 2:
      if constexpr (N <= 3)
        return fit_one<sheafnn::rotation::MatrixFisherDistribution<N, S>, S, N>(samples, weights, options);
      return;
    default:
      keeps_contract<invalid_argument>([&] {
        const auto table = sheafnn::rotation::compare_fits<N, S>(std::span<const SquareMatrix<S, N>>(samples), options);
        for (const auto& row : table.rows) expect(!std::isnan(row.aic), "an AIC is not a number");
      });
  }
}
template <class S, int P>
void central_gaussian_fit(Choices& choices) {
  std::vector<Column<S, P>> samples(static_cast<std::size_t>(choices.below(12)));
  for (auto& one : samples) {
    one = any_vector<S, P>(choices);
    if (choices.byte() < 250) one.normalize();
  }
  keeps_contract<invalid_argument, runtime_error>([&] {
    const auto fitted = sheafnn::rotation::fit<sheafnn::rotation::AngularCentralGaussian<P, S>>(samples);
    expect(!std::isnan(fitted.log_likelihood), "the likelihood of a fit is not a number");
  });
}

template <class S, int N>
void choose(int kind, Choices& choices) {
  switch (kind) {
    case 0:
      return parametrisations<S, N>(choices);
    case 1:
      return matrices<S, N>(choices);
    case 2:
      return cayley<S, N>(choices);
#if !defined(SHEAFNN_FUZZ_REPLAY) || defined(SHEAFNN_FUZZ_ALL)
    case 3:
      return leon<S, N>(choices);
    case 4:
      return matrix_fisher<S, N>(choices);
    case 5:
      return fits<S, N>(choices);
    case 6:
      if constexpr (N == 2) return wrapped_cauchy<S>(choices);
      if constexpr (N >= 3) return central_gaussian<S, N>(choices);
      return;
    case 7:
      if constexpr (N == 3) return central_gaussian_fit<S, 4>(choices);
      return use_distribution<S, N>(sheafnn::rotation::HaarDistribution<N, S>(), choices);
#endif
    default:
      return;
  }
}

}  // namespace

SHEAFNN_FUZZ_TARGET(rotations, 64, 1 << 18) {
  if (input.empty()) return;
  Choices choices(input.subspan(1));
#if defined(SHEAFNN_FUZZ_REPLAY) && !defined(SHEAFNN_FUZZ_ALL)
  choose<double, 3>(input[0] % 3, choices);
#else
  const int kind = input[0] % 8;
  switch (input[0] / 8 % 6) {
    case 0:
      return choose<double, 3>(kind, choices);
    case 1:
      return choose<double, 2>(kind, choices);
    case 2:
      return kind < 4 ? matrices<double, 4>(choices) : cayley<double, 4>(choices);
    case 3:
      return choose<double, 5>(kind, choices);
    case 4:
      return kind < 4 ? matrices<float, 2>(choices) : cayley<float, 2>(choices);
    default:
      return choose<float, 3>(kind, choices);
  }
#endif
}
