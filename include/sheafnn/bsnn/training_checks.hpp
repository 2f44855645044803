/// \file
/// check_targets(), check_state(), check_evaluated(): do a loss, a split and a state to resume fit a training?
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/loss_parts.hpp"
#include "sheafnn/bsnn/stop_on.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/bsnn/training_state.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/dataset.hpp"

namespace sheafnn {

namespace detail {

/// Checks a loss and a split of n nodes; `name` is what messages call the split.
///
/// \throws std::invalid_argument  targets that do not fit, an invalid set of the split, or a set of nodes without any
///         known target
template <class LossType>
void check_targets(const LossType& loss, Index n, Index outputs, const Split& split, std::string_view name) {
  if constexpr (!has_own_targets<LossType>) loss.validate(n, outputs);
  validate(split, n, name);
  const auto check = [&](const std::vector<std::int32_t>& nodes, const char* part) {
    if (nodes.empty()) return;
    if (std::none_of(nodes.begin(), nodes.end(), [&](std::int32_t u) { return loss.known(u); })) {
      throw_invalid_argument(concat(name, ".", part), concat(nodes.size(), " nodes"),
                             "none of them has a known target");
    }
  };
  check(split.train, "train");
  check(split.validation, "validation");
  check(split.test, "test");
}

/// Checks that a training of P parameters with `predictions` = n · C values can resume from a state.
///
/// \param validated  the split has validation nodes
/// \throws std::invalid_argument  naming the part that does not fit
inline void check_state(const TrainingState& state, const TrainOptions& options, Index parameters,
                        Index predictions, bool validated) {
  const Index epochs = static_cast<Index>(state.history.size());
  require(epochs >= 1, "resume.history", epochs, "at least one epoch is needed");
  require(epochs <= options.epochs, "epochs", options.epochs,
          concat("the training to resume has ", epochs, " epochs already"));
  require(state.best_epoch >= 0 && state.best_epoch < epochs, "resume.best_epoch", state.best_epoch,
          concat("must be between 0 and ", epochs - 1));
  require(state.seed == options.seed, "resume.seed", state.seed, concat("the options have ", options.seed));
  const auto check = [](const char* name, const std::vector<double>& values, Index size, double least) {
    require(static_cast<Index>(values.size()) == size, name, values.size(), concat("expected ", size, " numbers"));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i]) && values[i] >= least) continue;
      throw_invalid_argument(concat(name, "[", i, "]"), values[i],
                             least == 0 ? "must be finite and at least 0" : "must be finite");
    }
  };
  constexpr double any = std::numeric_limits<double>::lowest();
  check("resume.parameters", state.parameters, parameters, any);
  check("resume.first_moment", state.first_moment, parameters, any);
  check("resume.second_moment", state.second_moment, parameters, 0);  // a mean of squares
  check("resume.best_parameters", state.best_parameters, parameters, any);
  check("resume.best_predictions", state.best_predictions, predictions, any);
  for (Index t = 0; t < epochs; ++t) {
    const Index epoch = state.history[static_cast<std::size_t>(t)].epoch;
    if (epoch != t) throw_invalid_argument(concat("resume.history[", t, "].epoch"), epoch, concat("must be ", t));
  }
  require(!state.stop_on || *state.stop_on == options.stop_on, "stop_on", to_string(options.stop_on),
          concat("the training to resume chose its best epoch by ",
                 state.stop_on ? to_string(*state.stop_on) : ""));
  const bool has_metric = !std::isnan(state.history[static_cast<std::size_t>(state.best_epoch)].validation_metric);
  require(!validated || has_metric == is_metric(options.stop_on), "stop_on", to_string(options.stop_on),
          concat("the training to resume chose its best epoch by ", has_metric ? "a metric" : "loss or accuracy"));
}

/// Refuses a classification that resumes with another split. The state has probabilities of the best epoch only
/// for the nodes that were evaluated then, and 0 for other nodes.
///
/// \throws std::invalid_argument  a validation or test node without probabilities
template <class LossType>
void check_evaluated(const TrainingState& state, const LossType& loss, const Split& split, Index classes) {
  for (const auto* nodes : {&split.validation, &split.test}) {
    for (const std::int32_t u : *nodes) {
      const double* row = state.best_predictions.data() + u * classes;
      if (!loss.known(u) || std::any_of(row, row + classes, [](double p) { return p > 0; })) continue;
      throw_invalid_argument("split", concat("one with node ", u, " among the nodes to evaluate"),
                             "the training to resume had another split");
    }
  }
}

}  // namespace detail

}  // namespace sheafnn
