/// \file
/// Training: one of the trainings of a batch, its outcome, and the checks that the trainings of a batch belong together.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/dataset.hpp"

namespace sheafnn::batch {

/// One training of a batch. Options that shape the recorded epoch are common to all: samples, training_samples and
/// kl_estimator. So is the loss.
template <class Model>
struct Training {
  Model* model = nullptr;  ///< initial parameters; ends with the parameters of the best epoch
  const Split* split = nullptr;
  TrainOptions options = {};  ///< `threads` is not used
};

/// The outcome of a training.
struct Outcome {
  TrainResult result;  ///< epoch_seconds and train_seconds: an epoch of the batch, on average; evaluate_seconds: 0
  std::string error;   ///< why it stopped, when it diverged; the model is left as it was
};

namespace detail {

/// Node roles of the splits that occur, one row each, and the row of each training. Nodes without a label have none.
struct SplitRoles {
  std::vector<std::uint8_t> roles;
  std::vector<std::int32_t> row;
};
inline SplitRoles split_roles(const Classification& loss, std::span<const Split* const> splits) {
  const std::size_t nodes = loss.labels().size();
  SplitRoles r;
  std::vector<const Split*> known;
  for (const Split* split : splits) {
    const auto found = std::find(known.begin(), known.end(), split);
    r.row.push_back(static_cast<std::int32_t>(found - known.begin()));
    if (found != known.end()) continue;
    known.push_back(split);
    const std::size_t base = r.roles.size();
    r.roles.resize(base + nodes);
    const auto mark = [&](const std::vector<std::int32_t>& list, NodeRole role) {
      for (const std::int32_t u : list) {
        if (loss.known(u)) r.roles[base + static_cast<std::size_t>(u)] = role;
      }
    };
    mark(split->train, training_node);
    mark(split->validation, validation_node);
    mark(split->test, test_node);
  }
  return r;
}

/// Sum of the class weights of the labelled nodes of a set, and how many they are.
struct SetWeight {
  double weight = 0, nodes = 0;
};
inline SetWeight set_weight(const Classification& loss, std::span<const std::int32_t> nodes) {
  SetWeight r;
  for (const std::int32_t u : nodes) {
    if (!loss.known(u)) continue;
    const std::size_t label = static_cast<std::size_t>(loss.labels()[static_cast<std::size_t>(u)]);
    r.weight += loss.weighted() ? loss.class_weights()[label] : 1.0;
    ++r.nodes;
  }
  return r;
}

/// The loss of a dataset for models like this one.
///
/// \throws std::invalid_argument  data that are not consistent, or more classes than the model has
template <class Model>
[[nodiscard]] Classification checked_loss(const NodeDataset<GraphOf<Model>>& data,
                                          std::span<const Training<Model>> trainings) {
  validate(data);
  for (const Training<Model>& t : trainings) {
    if (t.model == nullptr) continue;  // refused later
    require(t.model->options().classes >= data.class_count, "classes", t.model->options().classes,
            sheafnn::detail::concat("the data have ", data.class_count, " classes"));
  }
  return Classification(data.labels);
}

/// Do the posteriors of two models have the same state (prior, parametrisation)? By ==, or else byte by byte; yes where the
/// options say all about them.
template <class Model>
[[nodiscard]] bool same_posterior(const Model& a, const Model& b) {
  using Q = typename Model::Posterior;
  if constexpr (std::is_empty_v<Q> || !requires { a.posterior(); }) {
    return true;
  } else if constexpr (std::equality_comparable<Q>) {
    return a.posterior() == b.posterior();
  } else {
    return std::memcmp(&a.posterior(), &b.posterior(), sizeof(Q)) == 0;
  }
}

/// Node roles of the trainings of a batch.
///
/// \throws std::invalid_argument  no training, data or options that do not fit, or trainings that do not belong
///         together
template <class Model>
[[nodiscard]] SplitRoles checked_roles(Index nodes, const Classification& loss,
                                       std::span<const Training<Model>> trainings) {
  require(!trainings.empty(), "trainings", 0, "at least one is needed");
  std::vector<const Split*> splits;
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    const Training<Model>& t = trainings[i];
    const TrainOptions &own = t.options, &common = trainings.front().options;
    require(t.model != nullptr && t.split != nullptr, sheafnn::detail::concat("trainings[", i, "]"), "null",
            "needs a model and a split");
    validate(own);
    require(!own.on_checkpoint, sheafnn::detail::concat("trainings[", i, "].on_checkpoint"), "a function",
            "the batch engine writes no checkpoints");
    require(own.resume == nullptr, sheafnn::detail::concat("trainings[", i, "].resume"), "a state",
            "the batch engine starts from the beginning");
    require(!is_metric(own.stop_on), sheafnn::detail::concat("trainings[", i, "].stop_on"), to_string(own.stop_on),
            "the batch engine chooses the best epoch by loss or accuracy");
    sheafnn::detail::check_targets(loss, nodes, t.model->options().classes, *t.split,
                                   sheafnn::detail::concat("trainings[", i, "].split"));
    static_cast<void>(uses_closed_form<typename Model::Posterior>(own.kl_estimator));
    require(own.batch_size == 0, sheafnn::detail::concat("trainings[", i, "].batch_size"), own.batch_size,
            "the batch engine takes all training nodes in one step");
    require(own.recompute_layers == 0, sheafnn::detail::concat("trainings[", i, "].recompute_layers"),
            own.recompute_layers, "the batch engine keeps all layers");
    require(!own.compress_layers, sheafnn::detail::concat("trainings[", i, "].compress_layers"),
            own.compress_layers, "the batch engine keeps layers as they are computed");
    require(own.sample_loss == SampleLoss::expected, sheafnn::detail::concat("trainings[", i, "].sample_loss"),
            to_string(own.sample_loss), "the batch engine has the expected loss only");
    require(t.model->options() == trainings.front().model->options(),
            sheafnn::detail::concat("trainings[", i, "].model"), "another architecture",
            "the models of a batch must have the same options");
    require(same_posterior(*t.model, *trainings.front().model),
            sheafnn::detail::concat("trainings[", i, "].model"), "another posterior",
            "the models of a batch must have the same posterior");
    require(own.samples == common.samples, sheafnn::detail::concat("trainings[", i, "].samples"), own.samples,
            sheafnn::detail::concat("must be ", common.samples, " as in the rest of the batch"));
    require(own.training_samples == common.training_samples,
            sheafnn::detail::concat("trainings[", i, "].training_samples"), own.training_samples,
            sheafnn::detail::concat("must be ", common.training_samples, " as in the rest of the batch"));
    require(own.kl_estimator == common.kl_estimator, sheafnn::detail::concat("trainings[", i, "].kl_estimator"),
            to_string(own.kl_estimator),
            sheafnn::detail::concat("must be ", to_string(common.kl_estimator), " as in the rest of the batch"));
    for (std::size_t j = 0; j < i; ++j) {
      require(trainings[j].model != t.model, sheafnn::detail::concat("trainings[", i, "].model"),
              sheafnn::detail::concat("the model of training ", j), "every training needs a model of its own");
    }
    splits.push_back(t.split);
  }
  return split_roles(loss, splits);
}

/// The loss of a batch, if it is one that the kernels compute.
///
/// \throws std::invalid_argument  it is not a Classification
template <class LossType>
[[nodiscard]] const Classification& classification(const LossType& loss) {
  if constexpr (std::is_same_v<LossType, Classification>) {
    return loss;
  } else {
    throw_invalid_argument("loss", LossType::name, "the batch engine trains classification only");
  }
}
/// The only outcome; an error becomes an exception.
[[nodiscard]] inline TrainResult only_result(std::vector<Outcome> outcomes) {
  if (!outcomes.front().error.empty()) throw std::runtime_error(outcomes.front().error);
  return std::move(outcomes.front().result);
}

}  // namespace detail

}  // namespace sheafnn::batch
