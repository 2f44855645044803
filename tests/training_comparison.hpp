/// \file
/// Training and prediction by the batch engine on the host against sheafnn::train and sheafnn::predict.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "batch_checks.hpp"
#include "shared_networks.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/prediction.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "temporary_folder.hpp"
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

/// From the same initial parameters by both engines: histories, results, parameters and predictions within `bound`.
///
/// \param class_weights  of the loss; empty: the dataset is trained as it is
template <class Model>
void compare_training_of(const Model& start, const TrainOptions& options, double bound,
                         const NodeDataset<GraphOf<Model>>& data, const std::vector<double>& class_weights = {}) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::Posterior::name);
  Model expected = start, model = start;
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

/// The same of a model of the karate club.
///
/// \param layers  of the model
template <class Model>
void compare_training(const TrainOptions& options, double bound, const typename Model::Posterior& posterior = {},
                      const Dataset& data = karate_club(), const std::vector<double>& class_weights = {},
                      const LayerKind& layers = {}) {
  compare_training_of(karate_model<Model>(data, 3, posterior, layers), options, bound, data, class_weights);
}

/// A batch of three seeds of a model gives the bits of three single trainings, also by way of checkpoints.
template <class Model>
void compare_seeds(const typename Model::Options& options, const NodeDataset<GraphOf<Model>>& data,
                   const typename Model::Posterior& posterior = {}) {
  std::vector<Model> models;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    models.push_back(batch_checks::made<Model>(options, seed, posterior));
  std::vector<batch::Training<Model>> trainings;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    trainings.push_back({&models[seed], &data.splits[seed], {.epochs = 30, .dropout = 0.2, .seed = seed}});
  }
  HostExecutor executor;
  const auto outcomes = batch::train_batch<HostExecutor, Model>(executor, data, trainings);
  const test::TemporaryFolder folder;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    CAPTURE(seed);
    Model alone = batch_checks::made<Model>(options, seed, posterior);
    const TrainResult one = batch::train(executor, alone, data, data.splits[seed], trainings[seed].options);
    CHECK(one.best_epoch == outcomes[seed].result.best_epoch);
    CHECK(one.test_nll == outcomes[seed].result.test_nll);
    CHECK(std::equal(alone.parameters().values().begin(), alone.parameters().values().end(),
                     models[seed].parameters().values().begin()));
    const std::string path = folder.path() / ("model" + std::to_string(seed) + ".safetensors");
    io::save_checkpoint(path, models[seed]);
    const Model loaded = io::load_checkpoint<Model>(path, posterior);
    CHECK(predict(loaded, data).probabilities == predict(models[seed], data).probabilities);
    CHECK(batch::predict(executor, loaded, data.graph, data.features).label == predict(loaded, data).label);
  }
}

}  // namespace training_comparison
