/// \file
/// Both engines train models with every posterior that is not the paper's: other priors, tangent normal, conformal.
#include <doctest/doctest.h>

#include <cmath>

#include "rotation_checks.hpp"
#include "sheafnn/posterior/tangent_normal.hpp"
#include "training_comparison.hpp"

namespace test_batch_posteriors {
namespace {

using namespace training_comparison;

/// Trains SheafModel<Posterior::family, Posterior>. The engines sum in other orders; differences grow with the steps
/// of Adam, which divide by small gradients.
template <class Posterior>
void check_training(const Posterior& posterior, KlEstimator estimator = KlEstimator::automatic) {
  TrainOptions options;
  options.epochs = 20;
  options.seed = 9;
  options.kl_schedule = KlSchedule::constant;
  options.kl_maximum = 0.1;
  options.training_samples = 2;
  options.kl_estimator = estimator;
  compare_training<SheafModel<typename Posterior::family, Posterior, double>>(options, 1e-11, posterior);
}

template <int D>
CayleyPrior<D> prior() {
  return {rotation_checks::turn<D>(0.7), 0.5};
}

}  // namespace

TEST_CASE("both engines train tangent normal posteriors") {
  check_training(TangentNormalPosterior<SpecialOrthogonal<3>, CayleyPrior<3>>{{}, prior<3>()});
}

TEST_CASE("both engines train Cayley posteriors with Cayley priors, in closed form and without") {
  using Q = CayleyPosterior<SpecialOrthogonal<3>, CayleyPrior<3>>;
  check_training(Q{{}, prior<3>()}, KlEstimator::closed_form);
  check_training(Q{{}, prior<3>()}, KlEstimator::monte_carlo);
  using Without = CayleyPosterior<SpecialOrthogonal<4>, CayleyPrior<4>>;
  check_training(Without{{}, prior<4>()});
  CHECK_THROWS_WITH_AS(check_training(Without{{}, prior<4>()}, KlEstimator::closed_form),
                       doctest::Contains("kl_estimator"), std::invalid_argument);
}

TEST_CASE("both engines train normal posteriors with normal priors, and conformal ones") {
  check_training(NormalPosterior<Diagonal<2>, NormalPrior<2>>{NormalPrior<2>(0.5, 0.3)});
  check_training(ConformalPosterior<Conformal<2>>(), KlEstimator::monte_carlo);
}

TEST_CASE("a prior's state reaches the loss") {
  const Dataset data = karate_club();
  const auto first_kl = [&](const NormalPrior<2>& prior) {
    using Q = NormalPosterior<Diagonal<2>, NormalPrior<2>>;
    auto model = karate_model<SheafModel<Diagonal<2>, Q, double>>(data, 3, Q{prior});
    TrainOptions options;
    options.epochs = 1;
    return train(model, data, data.splits.at(0), options).history.at(0).kl;
  };
  // KL to N(μ₀, σ₀²) less KL to N(0, 1), of the same posterior: about ½ (μ₀² + 1)/σ₀² − ½ + log σ₀ per coordinate
  // where μ = 0 and σ = 1, as they nearly are at first.
  const double difference = first_kl({3.0, 0.5}) - first_kl({});
  CHECK(difference == doctest::Approx(2 * (0.5 * 10 / 0.25 - 0.5 + std::log(0.5))).epsilon(0.1));
}

}  // namespace test_batch_posteriors
