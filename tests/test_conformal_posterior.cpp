/// \file
/// Conformal maps and their posterior: a Cayley distribution of rotations times a log-normal scale.
#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "posterior_checks.hpp"
#include "sheafnn/posterior/default_posterior.hpp"
#include "sheafnn/posterior/node_map_posterior.hpp"
#include "sheafnn/posterior/normal.hpp"

namespace test_conformal_posterior {
namespace {

using namespace posterior_checks;
using sheafnn::Conformal;
using sheafnn::PointMap;

template <int D>
using Posterior = sheafnn::ConformalPosterior<Conformal<D>>;

template <int D>
void check_conformal() {
  for_parametrisations<D>([](RotationParametrisation parametrisation) {
    CAPTURE(to_string(parametrisation));
    check_packs(Posterior<D>{parametrisation});
    check_packs(PointMap<Conformal<D>>{parametrisation});
    for (const double scale : {0.3, 2.5}) {
      check_derivatives(Posterior<D>{parametrisation}, scale);
      check_derivatives(PointMap<Conformal<D>>{parametrisation}, scale);
    }
  });
  for (const sheafnn::SheafActivation activation : {sheafnn::SheafActivation::identity, sheafnn::SheafActivation::elu}) {
    Posterior<D> q;
    PointMap<Conformal<D>> point;
    q.sheaf_activation = point.sheaf_activation = activation;
    check_packs(q);
    check_derivatives(q, 0.7);
    check_derivatives(point, 0.7);
  }
  check_monte_carlo(Posterior<D>());
}

}  // namespace

TEST_CASE("conformal posterior: sizes, activations, the scalar part of KL") {
  using Q = Posterior<3>;
  CHECK(Q::mean_size == 4);
  CHECK(Q::spread_size == 2);
  CHECK(Posterior<1>::mean_size == 1);
  const double raw[] = {0.1, -0.2, 0.3, 0.5, 0.7, -0.4};
  double parameters[Q::parameter_size], rotation[Q::Rotations::parameter_size];
  Q().activate(raw, parameters);
  const double rotation_raw[] = {0.1, -0.2, 0.3, 0.7};
  Q::Rotations().activate(rotation_raw, rotation);
  for (int k = 0; k < Q::Rotations::parameter_size; ++k) CHECK(parameters[k] == rotation[k]);
  const double mu = std::tanh(0.5), sigma = std::exp(-0.4);
  CHECK(std::abs(parameters[Q::mu] - mu) <= 4 * rotation_checks::epsilon);
  CHECK(std::abs(parameters[Q::sigma] - sigma) <= 4 * rotation_checks::epsilon);
  CHECK(parameters[Q::log_sigma] == -0.4);
  const double kl =
      Q::Rotations().kl(static_cast<const double*>(rotation)) + 0.5 * (mu * mu + sigma * sigma - 1) + 0.4;
  CHECK(std::abs(Q().kl(static_cast<const double*>(parameters)) - kl) <= 16 * rotation_checks::epsilon * kl);
  // The mean map is the map of the deterministic model.
  sheafnn::SquareMatrix<double, 3> mean, point;
  Q().mean(static_cast<const double*>(parameters), mean);
  PointMap<Conformal<3>>().map(raw, point);
  CHECK((mean - point).cwiseAbs().maxCoeff() <= 4 * rotation_checks::epsilon);
}

TEST_CASE("a conformal sample is e^(μ + σε) times the rotation that the Cayley posterior draws") {
  using Q = Posterior<3>;
  const Doubles raw = numbers(700, raw_numbers<Q>);
  double parameters[Q::parameter_size], noise[Q::noise_size];
  Q().activate(raw.data(), parameters);
  Q().draw_noise(Stream{7, sheafnn::Purpose::sheaf_noise}, 3u, noise);
  sheafnn::SquareMatrix<double, 3> map, rotation;
  Q().sample(static_cast<const double*>(parameters), static_cast<const double*>(noise), map);
  Q::Rotations().sample(static_cast<const double*>(parameters), static_cast<const double*>(noise), rotation);
  const double scale = std::exp(parameters[Q::mu] + parameters[Q::sigma] * noise[9]);
  CHECK((map - scale * rotation).cwiseAbs().maxCoeff() <= 4 * rotation_checks::epsilon * scale);
  CHECK(std::abs(Conformal<3>::gram(map)(0) - scale * scale) <= 32 * rotation_checks::epsilon * scale * scale);
  for (int k = 0; k < 9; ++k) CHECK(sheafnn::noise_index<Q>(k) == (k % 3) * 3 + k / 3);
  CHECK(sheafnn::noise_index<Q>(9) == 9);
}

TEST_CASE("conformal maps and posteriors, D = 1 and 2") {
  check_conformal<1>();
  check_conformal<2>();
}
TEST_CASE("conformal maps and posteriors, D = 3") { check_conformal<3>(); }
TEST_CASE("conformal maps and posteriors, D = 4") { check_conformal<4>(); }

TEST_CASE("conformal maps of unbounded activations: the scale stays a number of float, and so do all derivatives") {
  using Q = Posterior<3>;
  for (const float mean : {-200.0f, -41.0f, 41.0f, 200.0f}) {
    CAPTURE(mean);
    for (const auto activation : {sheafnn::SheafActivation::identity, sheafnn::SheafActivation::elu}) {
      Q q;
      q.sheaf_activation = activation;
      const bool limited = activation == sheafnn::SheafActivation::identity || mean > 0;
      const double log_scale = limited ? std::copysign(40.0, double(mean)) : -1;
      const float raw[] = {0.1f, 0.2f, -0.3f, mean, 0.5f, -30.0f};
      float parameters[Q::parameter_size], noise[Q::noise_size], gradient[Q::gradient_size] = {};
      q.activate(raw, parameters);
      q.draw_noise(Stream{7, sheafnn::Purpose::sheaf_noise}, 3u, noise);
      sheafnn::SquareMatrix<float, 3> map, mean_map, map_bar = sheafnn::SquareMatrix<float, 3>::Ones();
      q.sample(static_cast<const float*>(parameters), static_cast<const float*>(noise), map);
      q.mean(static_cast<const float*>(parameters), mean_map);
      for (const auto& f : {map, mean_map}) {
        const float square = Conformal<3>::gram(f)(0);
        CHECK(std::isnormal(square));
        CHECK(std::abs(0.5 * std::log(double(square)) - log_scale) <= 1e-4);
      }
      q.sample_backward(static_cast<const float*>(parameters), static_cast<const float*>(nullptr), map, map_bar, 0.0f,
                        gradient);
      for (const float g : gradient) CHECK(std::isfinite(g));
      if (limited) CHECK(gradient[Q::mu] == 0);  // F does not depend on it
      // The deterministic map with the same raw outputs.
      PointMap<Conformal<3>> point;
      point.sheaf_activation = activation;
      float raw_bar[4];
      point.map(static_cast<const float*>(raw), map);
      CHECK(std::isnormal(Conformal<3>::gram(map)(0)));
      point.backward(static_cast<const float*>(raw), map_bar, raw_bar);
      for (const float g : raw_bar) CHECK(std::isfinite(g));
      if (limited) CHECK(raw_bar[3] == 0);
    }
  }
}

TEST_CASE("log q - log p has the mean KL where numbers come back from a map with less digits than σ") {
  using Q = Posterior<2>;
  using Node = sheafnn::NodeMapPosterior<2>;
  using Normal = sheafnn::NormalPosterior<sheafnn::Diagonal<1>>;
  const auto check = []<class S>(S, std::initializer_list<double> log_deviations) {
    for (const double log_sigma : log_deviations) {
      CAPTURE(sizeof(S));
      CAPTURE(log_sigma);
      const S sigma = std::exp(S(log_sigma));  // 0 at last
      const S parameters[Q::parameter_size] = {1, 0, 0, 1, S(0.5), S(0.5), sigma, S(log_sigma)};
      const S scale_alone[Normal::parameter_size] = {S(0.5), sigma, S(log_sigma)};
      rotation_checks::Mean edges, nodes, numbers, slope_of_mean, slope_of_deviation;
      for (std::uint32_t i = 0; i < 4000; ++i) {
        S noise[Q::noise_size], gradient[Q::gradient_size] = {}, log_scale;
        sheafnn::SquareMatrix<S, 2> map, rotation;
        const sheafnn::SquareMatrix<S, 2> none = sheafnn::SquareMatrix<S, 2>::Zero();
        Q().draw_noise(Stream{9, sheafnn::Purpose::sheaf_noise}, i, noise);
        Q().sample(parameters, static_cast<const S*>(noise), map);
        edges.add(double(Q().log_ratio(parameters, static_cast<const S*>(nullptr), map)));
        Q().sample_backward(parameters, static_cast<const S*>(nullptr), map, none, S(1), gradient);
        slope_of_mean.add(double(gradient[Q::mu]));
        slope_of_deviation.add(double(gradient[Q::sigma]));
        Node().sample(parameters, static_cast<const S*>(noise), rotation, log_scale);
        nodes.add(double(Node().log_ratio(parameters, rotation, log_scale)));
        S number_noise[1];
        Normal::Map<S> number;
        Normal().draw_noise(Stream{10, sheafnn::Purpose::sheaf_noise}, i, number_noise);
        Normal().sample(scale_alone, static_cast<const S*>(number_noise), number);
        numbers.add(double(Normal().log_ratio(scale_alone, static_cast<const S*>(nullptr), number)));
      }
      const double kl_alone = double(Normal().kl(scale_alone));
      const double rounding_alone =
          64 * double(std::numeric_limits<S>::epsilon()) * (1 + kl_alone);  // all that varies at last
      CHECK(std::abs(numbers.value() - kl_alone) <=
            rotation_checks::allowed_standard_errors * numbers.standard_error() + rounding_alone);
      const double kl = double(Q().kl(parameters));
      CHECK(double(Node().kl(parameters)) == kl);
      CHECK(edges.standard_errors_from(kl) <= rotation_checks::allowed_standard_errors);
      CHECK(nodes.standard_errors_from(kl) <= rotation_checks::allowed_standard_errors);
      S slope[Q::gradient_size] = {};
      Q().kl_backward(parameters, S(1), slope);
      // Where nothing varies but rounding.
      const double rounding = 64 * double(std::numeric_limits<S>::epsilon());
      for (const auto& [mean, expected] :
           {std::pair{slope_of_mean, slope[Q::mu]}, {slope_of_deviation, slope[Q::sigma]}}) {
        CHECK(std::abs(mean.value() - double(expected)) <=
              rotation_checks::allowed_standard_errors * mean.standard_error() + rounding);
      }
    }
  };
  check(0.0f, {-1, -8, -9, -12, -14, -16, -18, -20, -110});
  check(0.0, {-1, -20, -28, -29, -34, -36, -38, -800});
}

TEST_CASE("conformal posterior: raw outputs of ±30 stay finite") {
  const auto check = []<class T, int D>(T, std::integral_constant<int, D>) {
    for_parametrisations<D>([](RotationParametrisation parametrisation) {
      CAPTURE(to_string(parametrisation));
      check_extremes<T>(Posterior<D>{parametrisation}, [](const Doubles& parameters, double spread) {
        CHECK(parameters.back() == doctest::Approx(spread > 0 ? 1 : spread).epsilon(1e-6));
        const double kappa = parameters[D * D];
        CHECK(kappa >= 0.025 / 1.975 - 1e-6);
        CHECK(kappa <= 0.975 / 1.025 + 1e-6);
      });
      check_extremes<T>(PointMap<Conformal<D>>{parametrisation});
    });
  };
  check(0.0f, std::integral_constant<int, 1>());
  check(0.0, std::integral_constant<int, 2>());
  check(Pack<float, 16>(), std::integral_constant<int, 3>());
  check(Pack<double, 8>(), std::integral_constant<int, 4>());
}

}  // namespace test_conformal_posterior
