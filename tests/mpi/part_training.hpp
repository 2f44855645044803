/// \file
/// Whole trainings on several ranks against trainings of one process: losses, results, states, predictions, what is sent, and
/// what is refused.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "part_steps.hpp"
#include "row_volume.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/distributed.hpp"

namespace part_steps {

struct LeaveData {
  template <class Data>
  void operator()(Data&) const {}
};

/// A training with this split's sets on the ranks and in one process.
///
/// \param change  change(data) prepares the dataset
template <class Model, class Change = LeaveData>
void check_training(const typename Model::Options& architecture, const Change& change = {}) {
  auto data = dataset_of<Model>();
  change(data);
  const sheafnn::Split& split = data.splits[0];
  sheafnn::TrainOptions options{
      .epochs = 6, .patience = 4, .learning_rate = 0.02, .training_samples = 2, .seed = 4};
  options.kl_schedule = sheafnn::KlSchedule::constant;
  options.kl_maximum = 0.1;
  options.checkpoint_every = 3;
  std::vector<sheafnn::TrainingState> expected_states, states;
  options.on_checkpoint = [&](const sheafnn::TrainingState& state) { expected_states.push_back(state); };
  Model one(architecture, 2), model(architecture, 2);
  const sheafnn::TrainResult expected = sheafnn::train(one, data, split, options);

  const mpi::Partition partition = mpi::metis_partition(ranks(), data.graph);
  mpi::DistributedDataOf<Model> part(ranks(), data, partition);
  Index reported = 0;
  options.on_checkpoint = [&](const sheafnn::TrainingState& state) { states.push_back(state); };
  options.on_epoch = [&](const sheafnn::EpochReport&) { ++reported; };
  const mpi::Traffic before = ranks().traffic();
  const sheafnn::TrainResult result = mpi::train(model, part, split, options);
  const mpi::Traffic sent = ranks().traffic() - before;

  // Adam divides by roots of squares: of derivatives near 0, rounding errors are magnified.
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-8 * std::max(1.0, std::abs(b)); };
  REQUIRE(result.history.size() == expected.history.size());
  for (std::size_t t = 0; t < result.history.size(); ++t) {
    CHECK(everywhere(close(result.history[t].loss, expected.history[t].loss)));
    CHECK(everywhere(close(result.history[t].validation_loss, expected.history[t].validation_loss)));
    CHECK(everywhere(result.history[t].test_accuracy == doctest::Approx(expected.history[t].test_accuracy)));
  }
  CHECK(everywhere(result.best_epoch == expected.best_epoch));
  CHECK(everywhere(close(result.test_nll, expected.test_nll) && close(result.test_brier, expected.test_brier)));
  CHECK(reported == (ranks().is_root() ? static_cast<Index>(result.history.size()) : 0));

  // What was sent is what the formula says, over all ranks.
  const auto report = mpi::describe(data.graph, partition);
  const Index epochs = static_cast<Index>(result.history.size());
  const auto volume = mpi::training_volume(model, epochs, options);
  const mpi::Traffic formula = volume.of(report, sizeof(double));
  std::int64_t messages = 0, bytes = 0;
  for (const std::int64_t count : ranks().all(sent.messages)) messages += count;
  for (const std::int64_t count : ranks().all(sent.bytes)) bytes += count;
  CHECK(messages == formula.messages);
  CHECK(bytes == formula.bytes);
  if (ranks().size() > 1) CHECK(messages > 0);
  // Per epoch one sum of the gradient, loss and KL, and two of scores; four in the beginning, and as many of the features'
  // columns, 11 numbers of each and the number of rows; and what layers sum.
  CHECK(everywhere(sent.sums == 3 * epochs + 8 + volume.sums));
  CHECK(everywhere(sent.summed ==
                   epochs * (model.parameters().size() + 2 + 2 * 4) + 9 + 11 * 20 + 1 + volume.summed));

  // A state of either goes on on the ranks as the training went on; rank 0 has the predictions of all nodes.
  if (ranks().is_root()) {
    REQUIRE(states.size() == expected_states.size());
    for (std::size_t i = 0; i < states.size(); ++i) {
      REQUIRE(states[i].best_predictions.size() == expected_states[i].best_predictions.size());
      for (std::size_t k = 0; k < states[i].best_predictions.size(); ++k) {
        CHECK(close(states[i].best_predictions[k], expected_states[i].best_predictions[k]));
      }
    }
  }
  Model later(architecture, 2);
  options.resume = &expected_states.front();
  options.on_checkpoint = nullptr;
  const sheafnn::TrainResult gone_on = mpi::train(later, part, split, options);
  REQUIRE(gone_on.history.size() == expected.history.size());
  CHECK(everywhere(close(gone_on.history.back().loss, expected.history.back().loss)));

  const sheafnn::PredictOptions predicting{.samples = 4, .seed = 9};
  const sheafnn::Prediction whole = sheafnn::predict(model, data, predicting),
                            gathered = mpi::predict(model, part, predicting);
  if (ranks().is_root()) {
    CHECK(gathered.label == whole.label);
    for (std::size_t u = 0; u < whole.entropy.size(); ++u) {
      CHECK(close(gathered.entropy[u], whole.entropy[u]));
      CHECK(close(gathered.mutual_information[u], whole.mutual_information[u]));
    }
  } else {
    CHECK(gathered.entropy.empty());
  }

  // Ranks that do not agree are refused, by the name of what differs.
  if (ranks().size() > 1) {
    sheafnn::TrainOptions other = options;
    other.resume = nullptr;
    other.on_epoch = nullptr;
    if (ranks().rank() == ranks().size() - 1) other.dropout = 0.25;
    const std::string message =
        sheafnn::detail::concat("on rank ", ranks().size() - 1, " dropout is 0.25, on rank 0 it is 0.3");
    CHECK_THROWS_WITH_AS(static_cast<void>(mpi::train(later, part, split, other)),
                         doctest::Contains(message.c_str()), std::runtime_error);
    typename Model::Options narrow = architecture;
    if (!ranks().is_root()) {
      narrow.channels = 2;
      if constexpr (requires { narrow.projection; }) narrow.projection.clear();  // which has a number per channel
    }
    Model different(narrow, 2);
    options.resume = nullptr;
    const std::string channels =
        sheafnn::detail::concat("on rank 1 channels is 2, on rank 0 it is ", architecture.channels);
    CHECK_THROWS_WITH_AS(static_cast<void>(mpi::train(different, part, split, options)),
                         doctest::Contains(channels.c_str()), std::runtime_error);
    auto renamed = data;
    if (!ranks().is_root()) renamed.labels[1] = (renamed.labels[1] + 1) % 3;
    CHECK_THROWS_WITH_AS(mpi::require_agreement(ranks(), renamed), doctest::Contains("fingerprint of the labels"),
                         std::runtime_error);
  }
}

}  // namespace part_steps
