/// \file
/// Posteriors over restriction maps: KL terms against integrals and samples, derivatives against central
/// differences, scalars against packs, extreme raw outputs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "map_kind.hpp"
#include "rotation_checks.hpp"
#include "sheafnn/bsnn/posterior.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace {

using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::Index;
using test::MapKind;
using sheafnn::Pack;
using sheafnn::Posterior;
using sheafnn::RotationParametrisation;
using sheafnn::SpecialOrthogonal;
using sheafnn::Stream;

using Doubles = std::vector<double>;

/// Numbers in (−scale, scale), exact in single precision.
Doubles numbers(std::uint64_t seed, int count, double scale = 1) {
  Doubles r;
  for (int i = 0; i < count; ++i)
    r.push_back(static_cast<double>(static_cast<float>(scale * tiny::number(seed, i))));
  return r;
}

/// Entry i of lane l from lanes[l][i], and back.
template <class T, std::size_t N>
void pack_lanes(const std::vector<Doubles>& lanes, T (&out)[N]) {
  for (std::size_t i = 0; i < lanes[0].size(); ++i) {
    for (int l = 0; l < rotation_checks::lane_count<T>; ++l) {
      rotation_checks::set_lane(out[i], l, lanes[static_cast<std::size_t>(l)][i]);
    }
  }
}
template <class T>
Doubles lane_of(const T* values, int count, int l) {
  Doubles r;
  for (int i = 0; i < count; ++i) r.push_back(rotation_checks::get_lane(values[i], l));
  return r;
}

/// Every function of Posterior<Family> on lanes of T: raw outputs, noise stream, a map's derivative and a Monte
/// Carlo weight in, all results out, lane by lane.
template <class Family, class T>
std::vector<Doubles> all_functions(const std::vector<Doubles>& raw_lanes, const std::vector<Doubles>& bar_lanes,
                                   RotationParametrisation parametrisation, double monte_carlo_weight) {
  using Q = Posterior<Family>;
  using S = sheafnn::scalar_of_t<T>;
  constexpr int lanes = rotation_checks::lane_count<T>;
  constexpr int raw_size = Q::mean_size + Q::spread_size;
  T raw[raw_size], parameters[Q::parameter_size], noise[Q::noise_size], bar[Q::noise_size];
  pack_lanes(raw_lanes, raw);
  pack_lanes(bar_lanes, bar);
  typename Q::template Map<T> map_bar, mean, map;
  for (int k = 0; k < Q::noise_size; ++k) map_bar.data()[k] = bar[k];
  std::vector<Doubles> out(static_cast<std::size_t>(lanes));
  const auto put = [&](const T* values, int count) {
    for (int l = 0; l < lanes; ++l) {
      const Doubles one = lane_of(values, count, l);
      out[static_cast<std::size_t>(l)].insert(out[static_cast<std::size_t>(l)].end(), one.begin(), one.end());
    }
  };
  Q::mean_map(raw, parametrisation, mean);
  put(mean.data(), Q::noise_size);
  T mean_raw_bar[raw_size];  // longer than needed: without parameters (D = 1) it stays as it is
  for (T& x : mean_raw_bar) x = T(S(0));
  Q::mean_map_backward(raw, parametrisation, map_bar, mean_raw_bar);
  put(mean_raw_bar, Q::mean_size);
  Q::activate(raw, parametrisation, parameters);
  put(parameters, Q::parameter_size);
  const T kl = Q::kl(parameters);
  put(&kl, 1);
  T gradient[Q::gradient_size];
  for (T& g : gradient) g = T(S(0.25));
  Q::kl_backward(parameters, T(static_cast<S>(0.75)), gradient);
  put(gradient, Q::gradient_size);
  // Lane l draws the noise of arc 40 + l.
  sheafnn::word_of_t<T> arc{};
  if constexpr (std::is_arithmetic_v<T>) {
    arc = 40;
  } else {
    for (int l = 0; l < lanes; ++l) arc.set_lane(l, static_cast<std::uint32_t>(40 + l));
  }
  Q::template draw_noise<T>(Stream{3, sheafnn::Purpose::sheaf_noise}, arc, noise);
  put(noise, Q::noise_size);
  Q::sample(parameters, noise, map);
  put(map.data(), Q::noise_size);
  const T estimate = Q::monte_carlo_kl(parameters, map);
  put(&estimate, 1);
  Q::sample_backward(parameters, map, map_bar, T(static_cast<S>(monte_carlo_weight)), gradient);
  put(gradient, Q::gradient_size);
  T raw_bar[raw_size];
  Q::activate_backward(raw, parametrisation, parameters, gradient, raw_bar);
  put(raw_bar, raw_size);
  return out;
}

/// Packs against scalars of the same type, and single against double precision, in lane 0, whose noise is that of
/// the scalar's arc.
template <class Family>
void check_packs(RotationParametrisation parametrisation) {
  using Q = Posterior<Family>;
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  CAPTURE(to_string(parametrisation));
  constexpr int raw_size = Q::mean_size + Q::spread_size;
  std::vector<Doubles> raw, bar;
  for (std::uint64_t l = 0; l < 16; ++l) {
    raw.push_back(numbers(100 + l, raw_size, 2));
    bar.push_back(numbers(200 + l, Q::noise_size));
  }
  const auto difference = [](const Doubles& a, const Doubles& b) {
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      worst = test::worse(worst, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
    }
    return worst;
  };
  const auto check = [&]<class P>(P) {
    using S = typename P::value_type;
    const auto packs = all_functions<Family, P>(raw, bar, parametrisation, 0.5);
    // Without a stream's part the scalar of every lane; with it lane 0 only. So: every lane in lane 0's place in
    // turn.
    for (std::size_t l = 0; l < static_cast<std::size_t>(P::width); ++l) {
      std::vector<Doubles> turned_raw(16, raw[l]), turned_bar(16, bar[l]);
      const auto scalar = all_functions<Family, S>({raw[l]}, {bar[l]}, parametrisation, 0.5);
      const auto turned = all_functions<Family, P>(turned_raw, turned_bar, parametrisation, 0.5);
      CHECK(difference(turned[0], scalar[0]) <= 256 * static_cast<double>(std::numeric_limits<S>::epsilon()));
      // The same inputs in lane l, noise of arc 40 + l: the same as in the pack of different lanes, bit by bit.
      CHECK(turned[l] == packs[l]);
    }
  };
  check(Pack<float, 16>());
  check(Pack<double, 8>());
  const auto in_float = all_functions<Family, float>({raw[0]}, {bar[0]}, parametrisation, 0.5);
  const auto in_double = all_functions<Family, double>({raw[0]}, {bar[0]}, parametrisation, 0.5);
  CHECK(difference(in_float[0], in_double[0]) <= 512 * static_cast<double>(std::numeric_limits<float>::epsilon()));
}

template <class Family>
void check_packs_of_rotations() {
  check_packs<Family>(RotationParametrisation::householder);
  check_packs<Family>(RotationParametrisation::cayley);
  check_packs<Family>(RotationParametrisation::exponential);
  if (sheafnn::has_euler_angles<Family::stalk_dimension>) check_packs<Family>(RotationParametrisation::euler);
}

/// Derivatives of ⟨B, z⟩ + c · (log q − log p)(z) + 0.75 KL, as a function of the raw outputs at fixed noise, and
/// of ⟨B, mean map⟩.
template <class Family>
void check_derivatives(RotationParametrisation parametrisation, double scale) {
  using Q = Posterior<Family>;
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  CAPTURE(to_string(parametrisation));
  CAPTURE(scale);
  constexpr int raw_size = Q::mean_size + Q::spread_size;
  Doubles raw = numbers(300, raw_size, scale);
  const Doubles bar = numbers(301, Q::noise_size);
  typename Q::template Map<double> map_bar;
  for (int k = 0; k < Q::noise_size; ++k) map_bar.data()[k] = bar[static_cast<std::size_t>(k)];
  double noise[Q::noise_size];
  Q::template draw_noise<double>(Stream{7, sheafnn::Purpose::sheaf_noise}, 5u, noise);
  for (const double weight : {0.0, 0.5}) {
    CAPTURE(weight);
    const auto value = [&] {
      double parameters[Q::parameter_size];
      typename Q::template Map<double> map;
      Q::activate(raw.data(), parametrisation, parameters);
      Q::sample(parameters, noise, map);
      return rotation_checks::frobenius(map_bar, map) + weight * Q::monte_carlo_kl(parameters, map) +
             0.75 * Q::kl(parameters);
    };
    double parameters[Q::parameter_size], gradient[Q::gradient_size] = {}, raw_bar[raw_size];
    typename Q::template Map<double> map;
    Q::activate(raw.data(), parametrisation, parameters);
    Q::sample(parameters, noise, map);
    Q::kl_backward(parameters, 0.75, gradient);
    Q::sample_backward(parameters, map, map_bar, weight, gradient);
    Q::activate_backward(raw.data(), parametrisation, parameters, gradient, raw_bar);
    // Sizes: the value itself, and squares of noise up to 3 behind the second and third derivatives of normal
    // samples.
    const double bound = rotation_checks::difference_bound * std::max(1.0, std::abs(value())) * 4;
    for (int k = 0; k < raw_size; ++k) {
      CAPTURE(k);
      const double expected = rotation_checks::central_difference(raw[static_cast<std::size_t>(k)], value);
      CHECK(std::abs(raw_bar[k] - expected) <= bound);
    }
  }
  double mean_bar[Q::mean_size + 1];
  Q::mean_map_backward(raw.data(), parametrisation, map_bar, mean_bar);
  for (int k = 0; k < Q::mean_size; ++k) {
    CAPTURE(k);
    const double expected = rotation_checks::central_difference(raw[static_cast<std::size_t>(k)], [&] {
      typename Q::template Map<double> map;
      Q::mean_map(raw.data(), parametrisation, map);
      return rotation_checks::frobenius(map_bar, map);
    });
    // Euler angles turn by π tanh: their third derivatives are π³ times as large.
    CHECK(std::abs(mean_bar[k] - expected) <= rotation_checks::difference_bound * 32);
  }
}

template <class Family>
void check_all_derivatives() {
  constexpr int D = Family::stalk_dimension;
  for (const double scale : {0.3, 2.5}) {
    check_derivatives<Family>(RotationParametrisation::householder, scale);
    if (test::kind_of<Family> != MapKind::rotation) continue;
    check_derivatives<Family>(RotationParametrisation::cayley, scale);
    check_derivatives<Family>(RotationParametrisation::exponential, scale);
    if (sheafnn::has_euler_angles<D>) check_derivatives<Family>(RotationParametrisation::euler, scale);
  }
}

/// The mean of log q − log p over samples is the KL divergence.
template <class Family>
void check_monte_carlo() {
  using Q = Posterior<Family>;
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  for (const double scale : {0.5, 3.0}) {
    CAPTURE(scale);
    const Doubles raw = numbers(400, Q::mean_size + Q::spread_size, scale);
    double parameters[Q::parameter_size];
    Q::activate(raw.data(), RotationParametrisation::householder, parameters);
    rotation_checks::Mean mean;
    for (std::uint32_t i = 0; i < 20000; ++i) {
      double noise[Q::noise_size];
      typename Q::template Map<double> map;
      Q::template draw_noise<double>(Stream{8, sheafnn::Purpose::sheaf_noise}, i, noise);
      Q::sample(parameters, noise, map);
      mean.add(Q::monte_carlo_kl(parameters, map));
    }
    const double exact = Q::kl(parameters);
    if (test::kind_of<Family> == MapKind::rotation && Family::stalk_dimension == 1) {
      CHECK(exact == 0);
      CHECK(mean.value() == 0);
    } else {
      CHECK(exact > 0);
      CHECK(mean.standard_errors_from(exact) <= rotation_checks::allowed_standard_errors);
      CHECK(mean.standard_error() < 0.05 * std::max(1.0, exact));
    }
  }
}

/// ∫ q log(q/p) for q = N(μ, σ²), p = N(0, 1), by the trapezoidal rule, which converges exponentially for them.
double integrated_kl(double mu, double sigma) {
  constexpr int cells = 4000;
  const double width = 24.0 * sigma / cells;
  double sum = 0;
  for (int i = 0; i <= cells; ++i) {
    const double z = mu - 12 * sigma + i * width, e = (z - mu) / sigma;
    const double log_q = -0.5 * e * e - std::log(sigma), log_p = -0.5 * z * z;  // both less log √2π
    sum += width * std::exp(log_q) / std::sqrt(2 * std::acos(-1.0)) * (log_q - log_p);
  }
  return sum;
}

/// Raw outputs far out: everything finite, probabilities and rotations where they belong.
template <class Family, class T>
void check_extremes(RotationParametrisation parametrisation) {
  using Q = Posterior<Family>;
  using S = sheafnn::scalar_of_t<T>;
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  CAPTURE(sizeof(S));
  CAPTURE(to_string(parametrisation));
  constexpr int raw_size = Q::mean_size + Q::spread_size;
  constexpr int lanes = rotation_checks::lane_count<T>;
  for (const double mean : {-30.0, 0.0, 30.0}) {
    for (const double spread : {-30.0, 0.0, 30.0}) {
      CAPTURE(mean);
      CAPTURE(spread);
      Doubles raw(static_cast<std::size_t>(raw_size), mean);
      std::fill(raw.begin() + Q::mean_size, raw.end(), spread);
      const std::vector<Doubles> raw_lanes(16, raw), bar_lanes(16, numbers(500, Q::noise_size));
      const auto results = all_functions<Family, T>(raw_lanes, bar_lanes, parametrisation, 0.5);
      bool finite = true;
      for (int l = 0; l < lanes; ++l) {
        for (const double x : results[static_cast<std::size_t>(l)]) finite = finite && std::isfinite(x);
      }
      CHECK(finite);
      T packed[raw_size], parameters[Q::parameter_size];
      pack_lanes(raw_lanes, packed);
      Q::activate(packed, parametrisation, parameters);
      const double last = rotation_checks::get_lane(parameters[Q::parameter_size - 1], lanes - 1);
      if constexpr (test::kind_of<Family> == MapKind::rotation) {
        // γ' ∈ [0.025, 0.975], so κ ∈ [0.0127, 0.9513].
        CHECK(last >= 0.025 / 1.975 - 1e-6);
        CHECK(last <= 0.975 / 1.025 + 1e-6);
      } else {
        CHECK(last == doctest::Approx(spread > 0 ? 1 : spread).epsilon(1e-6));  // log σ = −ELU(−raw)
      }
    }
  }
}

}  // namespace

TEST_CASE("sizes of posteriors, D = 1 included") {
  CHECK(Posterior<Diagonal<3>>::mean_size == 3);
  CHECK(Posterior<Diagonal<3>>::spread_size == 3);
  CHECK(Posterior<GeneralLinear<3>>::mean_size == 9);
  CHECK(Posterior<SpecialOrthogonal<1>>::mean_size == 0);
  CHECK(Posterior<SpecialOrthogonal<1>>::spread_size == 1);
  CHECK(Posterior<SpecialOrthogonal<4>>::mean_size == 6);
  CHECK(Posterior<SpecialOrthogonal<4>>::spread_size == 1);
  CHECK(Posterior<sheafnn::Identity<2>>::mean_size + Posterior<sheafnn::Identity<2>>::spread_size == 0);
}

TEST_CASE("activations: μ = tanh, log σ = −ELU(−raw), κ from γ' = 0.95 sigmoid + 0.025") {
  const double raw[] = {0.5, -2, 1.5, -0.7};
  double parameters[4];
  Posterior<Diagonal<2>>::activate(raw, RotationParametrisation::householder, parameters);
  const double expected[] = {std::tanh(0.5), std::tanh(-2.0), 1 - std::exp(-1.5), -0.7};
  for (int k = 0; k < 4; ++k) CHECK(std::abs(parameters[k] - expected[k]) <= 4 * rotation_checks::epsilon);
  const double zero[] = {0.0, 0.0};
  double cayley[5];
  Posterior<SpecialOrthogonal<2>>::activate(zero, RotationParametrisation::householder, cayley);
  CHECK(std::abs(cayley[4] - 1.0 / 3) <= 4 * rotation_checks::epsilon);  // γ' = 1/2
  CHECK(cayley[0] == -1);  // Householder at φ = 0 is −I for even D
}

TEST_CASE("KL of normal posteriors against the integral") {
  for (const double mu : {-0.9, 0.0, 0.4}) {
    for (const double log_sigma : {-2.0, -0.5, 0.0, 0.7}) {
      const double parameters[] = {mu, log_sigma};
      const double exact = integrated_kl(mu, std::exp(log_sigma));
      CHECK(std::abs(Posterior<Diagonal<1>>::kl(parameters) - exact) <=
            64 * rotation_checks::epsilon * (1 + exact));
    }
  }
  const double standard[] = {0, 0, 0, 0};
  CHECK(Posterior<Diagonal<2>>::kl(standard) == 0);
  // Independent entries add up.
  const double pair[] = {0.3, -0.8, -1, 0.25};
  const double first[] = {0.3, -1}, second[] = {-0.8, 0.25};
  CHECK(std::abs(Posterior<Diagonal<2>>::kl(pair) - Posterior<Diagonal<1>>::kl(first) -
                 Posterior<Diagonal<1>>::kl(second)) <= 4 * rotation_checks::epsilon);
}

TEST_CASE("general maps are filled row by row") {
  const double parameters[] = {1, 2, 3, 4, 0, 0, 0, 0}, noise[] = {0.5, 0, 0, -1};
  sheafnn::SquareMatrix<double, 2> map;
  Posterior<GeneralLinear<2>>::sample(parameters, noise, map);
  CHECK(map == (sheafnn::SquareMatrix<double, 2>() << 1.5, 2, 3, 3).finished());
}

TEST_CASE("packs, scalars and precisions agree: normal posteriors") {
  check_packs<Diagonal<1>>(RotationParametrisation::householder);
  check_packs<Diagonal<4>>(RotationParametrisation::householder);
  check_packs<GeneralLinear<1>>(RotationParametrisation::householder);
  check_packs<GeneralLinear<3>>(RotationParametrisation::householder);
}

TEST_CASE("packs, scalars and precisions agree: Cayley posteriors") {
  check_packs_of_rotations<SpecialOrthogonal<1>>();
  check_packs_of_rotations<SpecialOrthogonal<2>>();
  check_packs_of_rotations<SpecialOrthogonal<3>>();
  check_packs_of_rotations<SpecialOrthogonal<5>>();
}

TEST_CASE("derivatives of samples, KL and its Monte Carlo form against central differences") {
  check_all_derivatives<Diagonal<1>>();
  check_all_derivatives<Diagonal<5>>();
  check_all_derivatives<GeneralLinear<2>>();
  check_all_derivatives<GeneralLinear<3>>();
  check_all_derivatives<SpecialOrthogonal<1>>();
  check_all_derivatives<SpecialOrthogonal<2>>();
  check_all_derivatives<SpecialOrthogonal<3>>();
  check_all_derivatives<SpecialOrthogonal<4>>();
  check_all_derivatives<SpecialOrthogonal<5>>();
}

TEST_CASE("the Monte Carlo form of the KL term has the KL divergence as its mean") {
  check_monte_carlo<Diagonal<1>>();
  check_monte_carlo<Diagonal<2>>();
  check_monte_carlo<Diagonal<3>>();
  check_monte_carlo<Diagonal<4>>();
  check_monte_carlo<GeneralLinear<1>>();
  check_monte_carlo<GeneralLinear<2>>();
  check_monte_carlo<GeneralLinear<3>>();
  check_monte_carlo<GeneralLinear<4>>();
  check_monte_carlo<SpecialOrthogonal<1>>();
  check_monte_carlo<SpecialOrthogonal<2>>();
  check_monte_carlo<SpecialOrthogonal<3>>();
  check_monte_carlo<SpecialOrthogonal<4>>();
}

TEST_CASE("raw outputs of ±30 stay finite") {
  check_extremes<Diagonal<2>, float>(RotationParametrisation::householder);
  check_extremes<Diagonal<2>, Pack<float, 16>>(RotationParametrisation::householder);
  check_extremes<GeneralLinear<2>, double>(RotationParametrisation::householder);
  for (const auto parametrisation : {RotationParametrisation::householder, RotationParametrisation::cayley,
                                     RotationParametrisation::exponential, RotationParametrisation::euler}) {
    check_extremes<SpecialOrthogonal<2>, float>(parametrisation);
    check_extremes<SpecialOrthogonal<3>, Pack<float, 16>>(parametrisation);
    check_extremes<SpecialOrthogonal<3>, Pack<double, 8>>(parametrisation);
  }
}
