/// \file
/// Checks that every posterior of restriction maps has to pass: packs against scalars, single against double
/// precision, derivatives against central differences, Monte Carlo KL against its closed form, extreme raw outputs;
/// and the same of the point maps of deterministic models.
///
/// A new posterior is tested by calling check_packs, check_derivatives, check_extremes and, where it has a closed
/// form, check_monte_carlo.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace posterior_checks {

using Doubles = std::vector<double>;
using sheafnn::math::Pack;
using sheafnn::rotation::RotationParametrisation;
using sheafnn::Stream;

/// Numbers in (−scale, scale), exact in single precision.
inline Doubles numbers(std::uint64_t seed, int count, double scale = 1) {
  Doubles r;
  for (int i = 0; i < count; ++i)
    r.push_back(static_cast<double>(static_cast<float>(scale * tiny::number(seed, i))));
  return r;
}

/// Entry i of lane l from lanes[l][i].
template <class T>
void pack_lanes(const std::vector<Doubles>& lanes, T* out) {
  for (std::size_t i = 0; i < lanes[0].size(); ++i) {
    for (int l = 0; l < rotation_checks::lane_count<T>; ++l) {
      rotation_checks::set_lane(out[i], l, lanes[static_cast<std::size_t>(l)][i]);
    }
  }
}

/// Results of all lanes, lane by lane.
template <class T>
class Results {
 public:
  void put(const T* values, int count) {
    for (int l = 0; l < rotation_checks::lane_count<T>; ++l) {
      for (int i = 0; i < count; ++i) {
        lanes_[static_cast<std::size_t>(l)].push_back(rotation_checks::get_lane(values[i], l));
      }
    }
  }
  [[nodiscard]] const std::vector<Doubles>& lanes() const { return lanes_; }

 private:
  std::vector<Doubles> lanes_ = std::vector<Doubles>(static_cast<std::size_t>(rotation_checks::lane_count<T>));
};

/// Numbers of a map as it is stored.
template <class Family>
inline constexpr int map_numbers = Family::template Map<double>::SizeAtCompileTime;
template <class Q>
inline constexpr int raw_numbers = Q::mean_size + Q::spread_size;

/// The noise that log_ratio() and sample_backward() get: none unless they ask for it.
template <class Q, class T>
const T* noise_again(const T* noise) {
  return sheafnn::needs_noise<Q> ? noise : nullptr;
}

/// The largest difference of two lanes, relative where the second is above 1.
inline double difference(const Doubles& a, const Doubles& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = test::worse(worst, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  }
  return worst;
}

/// Every function of a posterior on lanes of T: raw outputs and a map's derivative in, all results out. Lane l draws
/// the noise of arc 40 + l.
template <class T, class Q>
std::vector<Doubles> all_functions(const Q& q, const std::vector<Doubles>& raw_lanes,
                                   const std::vector<Doubles>& bar_lanes) {
  using S = sheafnn::math::scalar_of_t<T>;
  using Family = typename Q::family;
  constexpr int raw_size = raw_numbers<Q>, map_size = map_numbers<Family>;
  T raw[raw_size], parameters[Q::parameter_size], noise[Q::noise_size];
  typename Family::template Map<T> map_bar, mean, map;
  pack_lanes(raw_lanes, raw);
  pack_lanes(bar_lanes, map_bar.data());
  Results<T> results;
  q.activate(raw, parameters);
  results.put(parameters, Q::parameter_size);
  q.mean(parameters, mean);
  results.put(mean.data(), map_size);
  T gradient[Q::gradient_size];
  for (T& g : gradient) g = T(S(0.25));
  if constexpr (Q::closed_form_kl) {
    const T kl = q.kl(parameters);
    results.put(&kl, 1);
    q.kl_backward(parameters, T(S(0.75)), gradient);
    results.put(gradient, Q::gradient_size);
  }
  sheafnn::random::word_of_t<T> arc{};
  if constexpr (std::is_arithmetic_v<T>) {
    arc = 40;
  } else {
    for (int l = 0; l < rotation_checks::lane_count<T>; ++l) arc.set_lane(l, static_cast<std::uint32_t>(40 + l));
  }
  q.draw_noise(Stream{3, sheafnn::Purpose::sheaf_noise}, arc, noise);
  results.put(noise, Q::noise_size);
  q.sample(parameters, noise, map);
  results.put(map.data(), map_size);
  const T estimate = q.log_ratio(parameters, noise_again<Q>(noise), map);
  results.put(&estimate, 1);
  q.sample_backward(parameters, noise_again<Q>(noise), map, map_bar, T(S(0.5)), gradient);
  results.put(gradient, Q::gradient_size);
  T raw_bar[raw_size];
  q.activate_backward(raw, parameters, gradient, raw_bar);
  results.put(raw_bar, raw_size);
  return results.lanes();
}

/// Both functions of a point map, in the same way.
template <class T, class Family>
std::vector<Doubles> all_functions(const sheafnn::PointMap<Family>& point, const std::vector<Doubles>& raw_lanes,
                                   const std::vector<Doubles>& bar_lanes) {
  constexpr int size = Family::coordinate_count, array = sheafnn::detail::array_size(size);
  T raw[array], raw_bar[array];  // one number even where there are no raw outputs
  for (T& x : raw_bar) x = T(0);
  typename Family::template Map<T> map, map_bar;
  pack_lanes(raw_lanes, raw);
  pack_lanes(bar_lanes, map_bar.data());
  Results<T> results;
  point.map(raw, map);
  results.put(map.data(), map_numbers<Family>);
  point.backward(raw, map_bar, raw_bar);
  results.put(raw_bar, size);
  return results.lanes();
}

/// Bounds of check_packs, in ε of the type.
struct PackBounds {
  double pack = 256;    ///< packs against scalars, which have other elementary functions
  double single = 512;  ///< float against double
};

/// Packs against scalars of the same type, and single against double precision, in lane 0, whose noise is the noise of
/// the scalar's arc; and every lane bit by bit against a pack that has its raw outputs in all lanes.
template <class Q>
void check_packs(const Q& q, int raw_size, int map_size, const PackBounds& bounds) {
  std::vector<Doubles> raw, bar;
  for (std::uint64_t l = 0; l < 16; ++l) {
    raw.push_back(numbers(100 + l, raw_size, 2));
    bar.push_back(numbers(200 + l, map_size));
  }
  const auto check = [&]<class P>(P) {
    using S = typename P::value_type;
    const auto packs = all_functions<P>(q, raw, bar);
    for (std::size_t l = 0; l < static_cast<std::size_t>(P::width); ++l) {
      CAPTURE(l);
      const auto scalar = all_functions<S>(q, {raw[l]}, {bar[l]});
      const auto turned = all_functions<P>(q, std::vector<Doubles>(16, raw[l]), std::vector<Doubles>(16, bar[l]));
      CHECK(difference(turned[0], scalar[0]) <=
            bounds.pack * static_cast<double>(std::numeric_limits<S>::epsilon()));
      CHECK(turned[l] == packs[l]);
    }
  };
  check(Pack<float, 16>());
  check(Pack<double, 8>());
  const auto in_float = all_functions<float>(q, {raw[0]}, {bar[0]});
  const auto in_double = all_functions<double>(q, {raw[0]}, {bar[0]});
  CHECK(difference(in_float[0], in_double[0]) <=
        bounds.single * static_cast<double>(std::numeric_limits<float>::epsilon()));
}
template <sheafnn::SheafPosterior Q>
void check_packs(const Q& q, const PackBounds& bounds = {}) {
  using Family = typename Q::family;
  CAPTURE(Q::name);
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  check_packs(q, raw_numbers<Q>, map_numbers<Family>, bounds);
}
template <class Family>
void check_packs(const sheafnn::PointMap<Family>& point, const PackBounds& bounds = {}) {
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  check_packs(point, Family::coordinate_count, map_numbers<Family>, bounds);
}

/// What a posterior's function is made of: ⟨B, F⟩ · sample + c · log_ratio + w · KL, as a function of the raw outputs
/// at fixed noise.
struct Weights {
  double sample, log_ratio, kl;
};

/// Derivatives along every raw output, of samples, log_ratio and KL one by one and together.
///
/// \param scale  the raw outputs are in (−scale, scale)
template <sheafnn::SheafPosterior Q>
void check_derivatives(const Q& q, double scale) {
  using Family = typename Q::family;
  using Map = typename Family::template Map<double>;
  CAPTURE(Q::name);
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  CAPTURE(scale);
  constexpr int raw_size = raw_numbers<Q>;
  Doubles raw = numbers(300, raw_size, scale);
  const Doubles bar = numbers(301, map_numbers<Family>);
  double noise[Q::noise_size];
  q.draw_noise(Stream{7, sheafnn::Purpose::sheaf_noise}, 5u, noise);
  for (const Weights& weights : {Weights{1, 0, 0}, {0, 0.5, 0}, {0, 0, 0.75}, {1, 0.5, 0.75}}) {
    if (!Q::closed_form_kl && weights.kl != 0 && weights.sample == 0) continue;
    CAPTURE(weights.sample);
    CAPTURE(weights.log_ratio);
    CAPTURE(weights.kl);
    Map map_bar;
    for (int k = 0; k < map_numbers<Family>; ++k) map_bar.data()[k] = weights.sample * bar[std::size_t(k)];
    const auto value = [&] {
      double parameters[Q::parameter_size];
      Map map;
      q.activate(raw.data(), parameters);
      q.sample(parameters, noise, map);
      double r = rotation_checks::frobenius(map_bar, map) +
                 weights.log_ratio * q.log_ratio(parameters, noise_again<Q>(noise), map);
      if constexpr (Q::closed_form_kl) r += weights.kl * q.kl(parameters);
      return r;
    };
    double parameters[Q::parameter_size], gradient[Q::gradient_size] = {}, raw_bar[raw_size];
    Map map;
    q.activate(raw.data(), parameters);
    q.sample(parameters, noise, map);
    if constexpr (Q::closed_form_kl) q.kl_backward(parameters, weights.kl, gradient);
    q.sample_backward(parameters, noise_again<Q>(noise), map, map_bar, weights.log_ratio, gradient);
    q.activate_backward(raw.data(), parameters, gradient, raw_bar);
    const double bound = rotation_checks::difference_bound * std::max(1.0, std::abs(value())) * 4;
    for (int k = 0; k < raw_size; ++k) {
      CAPTURE(k);
      const double expected = rotation_checks::central_difference(raw[std::size_t(k)], value);
      CHECK(std::abs(raw_bar[k] - expected) <= bound);
    }
  }
}

/// Derivatives of ⟨B, F⟩ along every raw output of a point map.
template <class Family>
void check_derivatives(const sheafnn::PointMap<Family>& point, double scale) {
  constexpr int size = Family::coordinate_count;
  using Map = typename Family::template Map<double>;
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  CAPTURE(to_string(point.parametrisation));
  CAPTURE(scale);
  Doubles raw = numbers(300, size, scale);
  const Doubles bar = numbers(301, map_numbers<Family>);
  Map map_bar;
  for (int k = 0; k < map_numbers<Family>; ++k) map_bar.data()[k] = bar[std::size_t(k)];
  double raw_bar[sheafnn::detail::array_size(size)];
  point.backward(static_cast<const double*>(raw.data()), map_bar, raw_bar);
  for (int k = 0; k < size; ++k) {
    CAPTURE(k);
    const double expected = rotation_checks::central_difference(raw[std::size_t(k)], [&] {
      Map map;
      point.map(static_cast<const double*>(raw.data()), map);
      return rotation_checks::frobenius(map_bar, map);
    });
    // Euler angles turn by π tanh: their third derivatives are π³ times as large.
    CHECK(std::abs(raw_bar[k] - expected) <= rotation_checks::difference_bound * 32);
  }
}

/// The mean of log_ratio over samples, by the double version.
template <sheafnn::SheafPosterior Q>
rotation_checks::Mean mean_log_ratio(const Q& q, const double* parameters, std::uint32_t samples = 20000) {
  rotation_checks::Mean mean;
  for (std::uint32_t i = 0; i < samples; ++i) {
    double noise[Q::noise_size];
    typename Q::family::template Map<double> map;
    q.draw_noise(Stream{8, sheafnn::Purpose::sheaf_noise}, i, noise);
    q.sample(parameters, static_cast<const double*>(noise), map);
    mean.add(q.log_ratio(parameters, noise_again<Q>(static_cast<const double*>(noise)), map));
  }
  return mean;
}

/// The mean of log_ratio over samples is the KL divergence in closed form; without parameters (SO(1)) both are 0.
template <sheafnn::SheafPosterior Q>
void check_monte_carlo(const Q& q) {
  using Family = typename Q::family;
  CAPTURE(Q::name);
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  for (const double scale : {0.5, 3.0}) {
    CAPTURE(scale);
    const Doubles raw = numbers(400, raw_numbers<Q>, scale);
    double parameters[Q::parameter_size];
    q.activate(raw.data(), parameters);
    const rotation_checks::Mean mean = mean_log_ratio(q, parameters);
    const double exact = q.kl(static_cast<const double*>(parameters));
    if (sheafnn::sheaf::is_orthogonal<Family> && Family::stalk_dimension == 1) {
      CHECK(exact == 0);
      CHECK(mean.value() == 0);
    } else {
      CHECK(exact > 0);
      CHECK(mean.standard_errors_from(exact) <= rotation_checks::allowed_standard_errors);
      CHECK(mean.standard_error() < 0.05 * std::max(1.0, exact));
    }
  }
}

/// ∫ q log(q/p) for q = N(μ, σ²), p = N(μ₀, σ₀²), by the trapezoidal rule, which converges exponentially for them.
inline double integrated_normal_kl(double mu, double sigma, double prior_mu = 0, double prior_sigma = 1) {
  constexpr int cells = 4000;
  const double width = 24.0 * sigma / cells;
  double sum = 0;
  for (int i = 0; i <= cells; ++i) {
    const double z = mu - 12 * sigma + i * width, e = (z - mu) / sigma, f = (z - prior_mu) / prior_sigma;
    const double log_q = -0.5 * e * e - std::log(sigma), log_p = -0.5 * f * f - std::log(prior_sigma);
    sum += width * std::exp(log_q) / std::sqrt(2 * std::acos(-1.0)) * (log_q - log_p);  // both less log √2π
  }
  return sum;
}

/// Raw outputs far out: all results finite.
template <class T, class Q>
void check_finite(const Q& q, const Doubles& raw, int map_size) {
  const auto results =
      all_functions<T>(q, std::vector<Doubles>(16, raw), std::vector<Doubles>(16, numbers(500, map_size)));
  bool finite = true;
  for (const Doubles& lane : results) {
    for (const double x : lane) finite = finite && std::isfinite(x);
  }
  CHECK(finite);
}

/// The same for raw outputs of −30, 0 and 30 for the mean and for the spread.
///
/// \param check  called with (parameters of one pair, in double; raw output of the spread)
template <class T, sheafnn::SheafPosterior Q, class Check>
void check_extremes(const Q& q, const Check& check) {
  using Family = typename Q::family;
  CAPTURE(Q::name);
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  CAPTURE(sizeof(sheafnn::math::scalar_of_t<T>));
  for (const double mean : {-30.0, 0.0, 30.0}) {
    for (const double spread : {-30.0, 0.0, 30.0}) {
      CAPTURE(mean);
      CAPTURE(spread);
      Doubles raw(std::size_t(raw_numbers<Q>), mean);
      std::fill(raw.begin() + Q::mean_size, raw.end(), spread);
      check_finite<T>(q, raw, map_numbers<Family>);
      T packed[raw_numbers<Q>], parameters[Q::parameter_size];
      pack_lanes(std::vector<Doubles>(16, raw), packed);
      q.activate(packed, parameters);
      Doubles last;
      for (const T& p : parameters) {
        last.push_back(rotation_checks::get_lane(p, rotation_checks::lane_count<T> - 1));
      }
      check(last, spread);
    }
  }
}
template <class T, sheafnn::SheafPosterior Q>
void check_extremes(const Q& q) {
  check_extremes<T>(q, [](const Doubles&, double) {});
}
template <class T, class Family>
void check_extremes(const sheafnn::PointMap<Family>& point) {
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  for (const double x : {-30.0, 0.0, 30.0}) {
    CAPTURE(x);
    check_finite<T>(point, Doubles(std::size_t(Family::coordinate_count), x), map_numbers<Family>);
  }
}

/// Calls body(parametrisation) with all that exist for D × D rotations.
template <int D, class Body>
void for_parametrisations(const Body& body) {
  body(RotationParametrisation::householder);
  body(RotationParametrisation::cayley);
  body(RotationParametrisation::exponential);
  if (sheafnn::rotation::has_euler_angles<D>) body(RotationParametrisation::euler);
}

}  // namespace posterior_checks
