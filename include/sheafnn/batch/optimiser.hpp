/// \file
/// What an epoch does besides forward and backward passes, in the memory of the executor. Kernels set the λ and step sizes of
/// the epoch, take Adam's step, choose the best epoch, and end a training. For one model: nn/adam.hpp and bsnn/trainer.hpp.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/column_sums.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/output_kernels.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/epoch_report.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/stop_on.hpp"
#include "sheafnn/nn/adam.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::batch::detail {

/// What stopped a training early, other than patience.
enum Failure : std::int32_t {
  no_failure,
  nll_not_finite,
  kl_not_finite,
  gradient_not_finite,
  probability_not_finite
};

/// How far a training is.
struct Progress {
  std::int32_t active = 1;    ///< 0: finished
  std::int32_t improved = 0;  ///< the last epoch is the best so far
  std::int32_t failure = no_failure;
  std::int32_t failed_tensor = 0;  ///< parameter whose gradient, or its square, is not finite
  std::int64_t trained = 0;        ///< epochs whose step is done
  std::int64_t epochs = 0;         ///< done, evaluation and report included
  std::int64_t best_epoch = 0;
  double best = std::numeric_limits<double>::infinity();
  double best_loss = std::numeric_limits<double>::infinity();
};

/// λ of an epoch; 0 where the objective has no KL term.
[[nodiscard]] SHEAFNN_HD inline double kl_weight_of(const Run& run, Index epoch, bool weighs_kl) {
  return weighs_kl ? kl_weight(run.kl_schedule, run.kl_maximum, epoch) : 0.0;
}
/// Writes what the passes of an epoch read of a run: its epoch and λ.
SHEAFNN_HD inline void begin_passes(Index epoch, bool weighs_kl, Run& run) {
  run.epoch = static_cast<std::uint32_t>(epoch);
  run.kl_weight = kl_weight_of(run, epoch, weighs_kl);
}
/// Writes what the optimiser reads: its step sizes.
SHEAFNN_HD inline void begin_step(Index epoch, Run& run) {
  const double step = static_cast<double>(epoch + 1);
  run.step_rate = sheafnn::detail::AdamConstants::step_rate(run.learning_rate, step);
  run.sheaf_step_rate = sheafnn::detail::AdamConstants::step_rate(run.sheaf_learning_rate, step);
  run.root_scale = sheafnn::detail::AdamConstants::root_scale(step);
}
/// Both for the first epoch of all runs; EndStep and EndEpoch do it for the others. One item, group: run.
struct BeginTraining {
  Run* runs;
  bool weighs_kl;

  SHEAFNN_HD void operator()(Index, Index run) const {
    begin_passes(0, weighs_kl, runs[run]);
    begin_step(0, runs[run]);
  }
};

/// One step of Adam with weight decay; item: parameter, group: run.
template <class S>
struct AdamStep {
  const Run* runs;
  const Progress* progress;
  const std::uint16_t* tensor;        ///< per parameter
  const std::uint8_t* sheaf_learner;  ///< per tensor
  Index parameters;
  Index tensors;
  const S* gradient;
  S* first_moment;
  S* second_moment;
  S* value;
  std::int32_t* failed;  ///< per run and tensor: set where the gradient or its square is not finite

  SHEAFNN_HD void operator()(Index item, Index run) const {
    if (progress[run].active == 0) return;
    const Run& r = runs[run];
    const Index i = run * parameters + item;
    const int t = tensor[item];
    // All loads before the first store, which none of them waits for.
    const S raw = gradient[i];
    S first = first_moment[i], second = second_moment[i], x = value[i];
    const bool sheaf = sheaf_learner[t] != 0;
    const double decay = sheaf ? r.sheaf_decay : r.weight_decay;
    const double learning_rate = sheaf ? r.sheaf_learning_rate : r.learning_rate;
    const double step_rate = sheaf ? r.sheaf_step_rate : r.step_rate;
    const bool l2 = r.decay == WeightDecay::l2;
    const S decayed = raw + static_cast<S>(l2 ? decay : 0.0) * x;
    x *= static_cast<S>(l2 ? 1.0 : 1 - learning_rate * decay);
    sheafnn::detail::adam_step<S>(decayed, static_cast<S>(step_rate), static_cast<S>(r.root_scale), first, second,
                                  x);
    // Not finite: so is a gradient, or its square.
    if (!(second - second == S(0))) failed[run * tensors + t] = 1;  // NOLINT(misc-redundant-expression)
    first_moment[i] = first;
    second_moment[i] = second;
    value[i] = x;
  }
};

/// What a training pass leaves for the report of its epoch.
struct Losses {
  double nll = 0, kl = 0;  ///< kl: the mean over the incident pairs, and the KL terms of layers
};

/// Beside the step of an epoch: keeps its losses, for the next training pass may come before its report, and says what that
/// pass reads. A team of max_lanes for one item; group: run.
struct EndStep {
  using Scalar = double;
  static constexpr int outputs = 3;
  Run* runs;
  Progress* progress;
  bool weighs_kl;
  PartialRows nll, kl, kl_of_layers;
  Index pairs;  ///< 2m
  Losses* losses;

  SHEAFNN_HD void part(Index, Index run, int lane, double* sums) const {
    nll.add<1>(run, lane, sums);
    kl.add<1>(run, lane, sums + 1);
    kl_of_layers.add<1>(run, lane, sums + 2);
  }
  SHEAFNN_HD void finish(Index, Index run, const double* sums) const {
    Progress& p = progress[run];
    if (p.active == 0) return;
    losses[run] = {sums[0], (pairs > 0 ? sums[1] / static_cast<double>(pairs) : 0.0) + sums[2]};
    ++p.trained;
    begin_passes(p.trained, weighs_kl, runs[run]);
  }
};

/// After the evaluation of the parameters that the last step made: reports its epoch, and decides whether it is the best.
/// Ends the training, or says how large the next step is. Nothing before the first step. A team of max_lanes for one item;
/// group: run.
struct EndEpoch {
  using Scalar = double;
  /// Sums: the evaluation's columns, and how many gradients are not finite.
  static constexpr int failed_sum = evaluation_columns, outputs = failed_sum + 1;
  Run* runs;
  Progress* progress;
  bool weighs_kl;
  const Losses* losses;
  PartialRows evaluation;
  const std::int32_t* failed;
  Index tensors;
  EpochReport* history;  ///< `window` per run: epoch t is at t mod window
  Index window;

  SHEAFNN_HD void part(Index, Index run, int lane, double* sums) const {
    evaluation.add<evaluation_columns>(run, lane, sums);
    for (Index t = lane; t < tensors; t += max_lanes)
      sums[failed_sum] += failed[run * tensors + t] != 0 ? 1.0 : 0.0;
  }

  SHEAFNN_HD void finish(Index, Index run, const double* sums) const {
    Progress& p = progress[run];
    p.improved = 0;
    if (p.active == 0 || p.trained == p.epochs) return;
    const Run& r = runs[run];
    EpochReport report;
    report.epoch = p.epochs;
    report.nll = losses[run].nll;
    report.kl = losses[run].kl;
    report.kl_weight = kl_weight_of(r, p.epochs, weighs_kl);
    report.loss = report.nll + report.kl_weight * report.kl;
    report.validation_loss = sums[validation_nll] / r.validation_weight;
    report.validation_accuracy = sums[validation_correct] / r.validation_nodes;
    report.test_accuracy = sums[test_correct] / r.test_nodes;
    history[run * window + p.epochs % window] = report;
    p.failure = failure(run, report, sums, p);
    if (p.failure != no_failure) {
      p.active = 0;
      return;
    }
    const double score = r.by_accuracy != 0 ? -report.validation_accuracy : report.validation_loss;
    const bool better =
        sheafnn::detail::is_better_epoch(p.epochs == 0, score, report.validation_loss, p.best, p.best_loss);
    if (better || r.validation_nodes == 0) {
      p.best = score;
      p.best_loss = report.validation_loss;
      p.best_epoch = p.epochs;
      p.improved = 1;
    }
    if (p.epochs - p.best_epoch >= r.patience || p.epochs + 1 >= r.epochs) p.active = 0;
    ++p.epochs;
    begin_step(p.epochs, runs[run]);
  }

 private:
  SHEAFNN_HD std::int32_t failure(Index run, const EpochReport& report, const double* sums, Progress& p) const {
    if (!(report.nll - report.nll == 0)) return nll_not_finite;
    if (!(report.kl - report.kl == 0)) return kl_not_finite;
    if (sums[failed_sum] > 0) {
      Index t = 0;
      while (failed[run * tensors + t] == 0) ++t;
      p.failed_tensor = static_cast<std::int32_t>(t);
      return gradient_not_finite;
    }
    return sums[not_finite] > 0 ? probability_not_finite : no_failure;
  }
};

/// Keeps parameters and predictions of an epoch that is the best so far; item: element of either, group: run.
template <class S>
struct KeepBest {
  const Progress* progress;
  Index parameters;
  const S* value;
  S* best_value;
  Index predictions;
  const double* probability;
  double* best_probability;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    if (progress[run].improved == 0) return;
    if (item < parameters) {
      best_value[run * parameters + item] = value[run * parameters + item];
    } else {
      const Index i = run * predictions + item - parameters;
      best_probability[i] = probability[i];
    }
  }
};

/// Adam's state of all runs, and the tables that its kernels read.
template <class Executor, class S>
class BatchAdam {
 public:
  BatchAdam(Executor& executor, const layers::ParameterSet<S>& parameters, Index runs)
      : runs_(runs),
        parameters_(parameters.size()),
        first_(executor, "optimiser", runs * parameters_),
        second_(executor, "optimiser", runs * parameters_) {
    std::vector<std::uint16_t> tensor;
    std::vector<std::uint8_t> group;
    for (std::size_t t = 0; t < parameters.info().size(); ++t) {
      const layers::ParameterInfo& info = parameters.info()[t];
      tensor.insert(tensor.end(), static_cast<std::size_t>(info.size), static_cast<std::uint16_t>(t));
      group.push_back(info.group == layers::ParameterGroup::sheaf_learner ? 1 : 0);
    }
    tensor_ = Array<Executor, std::uint16_t>(executor, "optimiser", tensor);
    group_ = Array<Executor, std::uint8_t>(executor, "optimiser", group);
    failed_ = Array<Executor, std::int32_t>(executor, "optimiser", runs * group_.size());
  }

  [[nodiscard]] Items<AdamStep<S>> step(const Run* runs, const Progress* progress, const S* gradient, S* value) {
    return {parameters_,
            runs_,
            {runs, progress, tensor_.data(), group_.data(), parameters_, group_.size(), gradient, first_.data(),
             second_.data(), value, failed_.data()}};
  }
  [[nodiscard]] const std::int32_t* failed() const noexcept { return failed_.data(); }
  [[nodiscard]] Index tensors() const noexcept { return group_.size(); }

 private:
  Index runs_, parameters_;
  Array<Executor, S> first_, second_;
  Array<Executor, std::uint16_t> tensor_;
  Array<Executor, std::uint8_t> group_;
  Array<Executor, std::int32_t> failed_;
};

}  // namespace sheafnn::batch::detail
