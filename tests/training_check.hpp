/// \file
/// A training of a network of any kind on Zachary's karate club: it improves, goes on where it was interrupted, and gives
/// the same bits on any number of threads; prediction and layer features work as for other models.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/layer_features.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/karate.hpp"

namespace test {

/// Checks the training of networks with these options. \returns the trained model
///
/// \param posterior  nothing, or what follows options and seed when a model is made
template <class Model, class... Posterior>
Model check_training(const sheafnn::Dataset& data, const typename Model::Options& options,
                     const Posterior&... posterior) {
  using sheafnn::Index;
  sheafnn::TrainOptions how;
  how.epochs = 40;
  how.seed = 3;
  how.dropout = how.input_dropout = 0.1;
  how.kl_maximum = 0.01;  // epoch 40 has the largest weight, and distributions start far from the prior
  const auto trained = [&](int threads, const sheafnn::TrainingState* from = nullptr) {
    Model model(options, 1, posterior...);
    how.threads = threads;
    how.resume = from;
    const sheafnn::TrainResult result = sheafnn::train(model, data, data.splits[0], how);
    return std::pair(std::vector<float>(model.parameters().values().begin(), model.parameters().values().end()),
                     result);
  };
  std::optional<sheafnn::TrainingState> half;
  how.checkpoint_every = 20;
  how.on_checkpoint = [&](const sheafnn::TrainingState& state) {
    if (!half) half = state;
  };
  const auto [parameters, result] = trained(1);
  CHECK(result.history.size() == 40);
  CHECK(result.history.back().nll < 0.5 * result.history.front().nll);
  CHECK(result.validation_accuracy > 0.6);
  CHECK(trained(2).first == parameters);
  CHECK(trained(3).first == parameters);
  REQUIRE(half);
  const sheafnn::TrainingState from = *half;
  CHECK(from.history.size() == 20);
  CHECK(trained(1, &from).first == parameters);

  Model model(options, 1, posterior...);
  std::copy(parameters.begin(), parameters.end(), model.parameters().values().begin());
  const sheafnn::Prediction prediction = sheafnn::predict(model, data, {.samples = 3, .threads = 2});
  Index right = 0;
  for (Index u = 0; u < 34; ++u) {
    right += prediction.label[static_cast<std::size_t>(u)] == data.labels[static_cast<std::size_t>(u)] ? 1 : 0;
  }
  CHECK(right > 22);
  const sheafnn::LayerFeatures features = sheafnn::layer_features(model, data, {.samples = 2});
  CHECK(features.after(2).rows() == 34);
  CHECK(features.after(2).columns() == model.hidden_width());
  return model;
}

}  // namespace test
