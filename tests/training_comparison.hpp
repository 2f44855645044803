/// \file
/// Training and prediction by the batch engine on the host against sheafnn::train and sheafnn::predict.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "shared_networks.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/prediction.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/karate.hpp"
#include "worst.hpp"

namespace training_comparison {

using namespace sheafnn;
using batch::HostExecutor;

/// What kind of layers models have.
struct LayerKind {
  PolynomialOptions filter = {};
  ResidualOptions residual = {};
};

template <class Model>
Model karate_model(const Dataset& data, std::uint64_t seed, const typename Model::Posterior& posterior = {},
                   const LayerKind& layers = {}) {
  return Model({.features = data.features.columns(),
                .channels = 4,
                .layers = 2,
                .classes = data.class_count,
                .filter = layers.filter,
                .residual = layers.residual},
               seed, posterior);
}

/// Equal, or both NaN?
inline bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Largest relative difference of all numbers of two histories; NaN differs from everything but NaN.
inline double difference(const std::vector<EpochReport>& a, const std::vector<EpochReport>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].epoch == b[i].epoch);
    for (const double EpochReport::*field :
         {&EpochReport::loss, &EpochReport::nll, &EpochReport::kl, &EpochReport::kl_weight,
          &EpochReport::validation_loss, &EpochReport::validation_accuracy, &EpochReport::test_accuracy}) {
      if (std::isnan(a[i].*field) && std::isnan(b[i].*field)) continue;
      worst = test::worse(worst, std::abs(a[i].*field - b[i].*field) / (1e-3 + std::abs(b[i].*field)));
    }
  }
  return worst;
}

/// Both from the same initial parameters: histories, results, parameters and predictions within `bound`.
///
/// \param class_weights  of the loss; empty: the dataset is trained as it is
/// \param layers         of the models
template <class Model>
void compare_training(const TrainOptions& options, double bound, const typename Model::Posterior& posterior = {},
                      const Dataset& data = karate_club(), const std::vector<double>& class_weights = {},
                      const LayerKind& layers = {}) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::Posterior::name);
  Model expected = karate_model<Model>(data, 3, posterior, layers),
        model = karate_model<Model>(data, 3, posterior, layers);
  HostExecutor executor;
  const Split& split = data.splits.at(0);
  TrainResult right, result;
  if (class_weights.empty()) {
    right = train(expected, data, split, options);
    result = batch::train(executor, model, data, split, options);
  } else {
    const Classification loss(data.labels, class_weights);
    right = train(expected, data.graph, data.features, loss, split, options);
    result = batch::train(executor, model, data.graph, data.features, loss, split, options);
  }
  CHECK(difference(result.history, right.history) <= bound);
  CHECK(result.best_epoch == right.best_epoch);
  CHECK(result.stop_reason == right.stop_reason);
  CHECK(same(result.validation_accuracy, right.validation_accuracy));
  CHECK(same(result.test_accuracy, right.test_accuracy));
  for (const double untested : {result.test_nll, result.test_ece, right.test_nll, right.test_ece}) {
    CHECK(std::isnan(untested) == split.test.empty());
  }
  if (!split.test.empty()) {
    CHECK(std::abs(result.test_nll - right.test_nll) <= bound * right.test_nll);
    CHECK(std::abs(result.test_ece - right.test_ece) <= bound);
    CHECK(std::abs(result.test_brier - right.test_brier) <= bound);
    CHECK(same(result.test_macro_f1, right.test_macro_f1));
  }
  double worst = 0;
  for (Index i = 0; i < model.parameters().size(); ++i) {
    worst = test::worse(worst, std::abs(static_cast<double>(model.parameters().values()[i]) -
                                        static_cast<double>(expected.parameters().values()[i])));
  }
  CHECK(worst <= bound);

  const Prediction own = batch::predict(executor, model, data.graph, data.features, {.samples = 5, .seed = 8});
  const Prediction other = predict(expected, data, {.samples = 5, .seed = 8});
  CHECK(own.label == other.label);
  for (std::size_t i = 0; i < own.probabilities.size(); ++i) {
    worst = test::worse(worst, std::abs(own.probabilities[i] - other.probabilities[i]));
  }
  CHECK(worst <= bound);
}

}  // namespace training_comparison
