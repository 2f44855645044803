/// \file
/// EpochSchedule chooses the order and the threads in which a training evaluates the parameters of epoch t and computes
/// the objective of epoch t + 1. Both start from the same parameters. No schedule changes a result.
///
///   - The embeddings of both, with and without dropout, come from one walk over the features. A posterior that depends on
///     no embeddings is computed once.
///   - On small graphs the evaluation may run during the training pass, on its own network, or everything may run on one
///     thread. The schedule takes what was fastest in the last epochs.
///   - A thread that has finished its evaluation draws the dropout masks of the next epoch.
///
/// For networks that offer only whole passes, the evaluation and the objective run one after the other.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/core/fastest_variant.hpp"
#include "sheafnn/core/parallel.hpp"

namespace sheafnn::detail {

/// A network whose passes can share their steps.
template <class N>
concept SharesPasses = requires(N& network, const ForwardPass<typename N::S>& pass, bool (*go_on)()) {
  network.share(pass);
  network.begin(pass, &network);
  network.draw_masks_ahead(pass, go_on);
};

/// The schedule of networks that share nothing between passes: evaluation, then objective.
template <class Model>
class EpochSchedule {
 public:
  using S = typename Model::Scalar;

  EpochSchedule(const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features, Execution execution)
      : network_(model, graph, features, execution) {}

  /// The network that computes objectives.
  [[nodiscard]] Network<Model>& network() noexcept { return network_; }
  /// Threads of the loops of the current epoch.
  [[nodiscard]] Execution execution() const noexcept { return network_.execution(); }

  /// Runs objective(BegunPass) for the first epoch.
  template <class Objective>
  void first(const ForwardPass<S>& pass, const Objective& objective) {
    objective(network_.begin(pass));
  }
  /// Must be called when a new epoch starts, before its optimiser step.
  void begin_epoch() {}
  /// Runs evaluate(BegunPass) of the evaluation, then after(), and, while after() returns true, objective(BegunPass) of
  /// the next pass.
  ///
  /// \param next  the next training pass; null after the last epoch
  /// \returns what after() returned
  template <class Evaluate, class After, class Objective>
  bool run(const ForwardPass<S>& evaluation, const ForwardPass<S>* next, const Evaluate& evaluate,
           const After& after, const Objective& objective) {
    evaluate(network_.begin(evaluation));
    if (!after() || next == nullptr) return false;
    first(*next, objective);
    return true;
  }

 private:
  Network<Model> network_;
};

/// The schedule of networks whose passes share steps, with the same functions; see the file comment.
template <class Model>
  requires SharesPasses<Network<Model>>
class EpochSchedule<Model> {
 public:
  using S = typename Model::Scalar;

  EpochSchedule(const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features, Execution execution)
      : execution_(execution),
        variants_(variants_for(model, graph, execution)),
        fastest_(static_cast<int>(variants_.size())),
        network_(model, graph, features, execution) {
    if (variants_.size() > 1) second_network_.emplace(model, graph, features);
  }

  [[nodiscard]] Network<Model>& network() noexcept { return network_; }
  [[nodiscard]] Execution execution() const noexcept { return network_.execution(); }

  template <class Objective>
  void first(const ForwardPass<S>& pass, const Objective& objective) {
    network_.share(pass);
    objective(network_.begin(pass, &network_));
  }

  void begin_epoch() {
    start_ = Clock::now();
    variant_ = variants_[static_cast<std::size_t>(fastest_.variant())];
    network_.set_execution(variant_.execution);
  }

  template <class Evaluate, class After, class Objective>
  bool run(const ForwardPass<S>& evaluation, const ForwardPass<S>* next, const Evaluate& evaluate,
           const After& after, const Objective& objective) {
    Network<Model>* shared = nullptr;
    if (next != nullptr) {
      network_.share(*next);
      shared = &network_;
    }
    if (next == nullptr || !variant_.side_by_side) {
      evaluate(network_.begin(evaluation, shared));
      if (!run_untimed(after) || next == nullptr) return false;
      objective(network_.begin(*next, shared));
    } else {
      std::atomic<bool> objective_done = false;
      run_beside(
          execution_,
          [&] {
            evaluate(second_network_->begin(evaluation, shared));
            ForwardPass<S> coming = *next;
            ++coming.epoch;
            network_.draw_masks_ahead(coming, [&] { return !objective_done.load(std::memory_order_relaxed); });
          },
          [&] {
            objective(network_.begin(*next, shared));
            objective_done.store(true, std::memory_order_relaxed);
          });
      if (!run_untimed(after)) return false;
    }
    fastest_.record(std::chrono::duration<double>(Clock::now() - start_).count());
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// The time of after() does not count as part of an epoch.
  template <class After>
  bool run_untimed(const After& after) {
    const auto begin = Clock::now();
    const bool r = after();
    start_ += Clock::now() - begin;
    return r;
  }
  struct Variant {
    Execution execution;  ///< threads of the loops
    bool side_by_side;    ///< does the evaluation run during the training pass?
  };
  [[nodiscard]] static std::vector<Variant> variants_for(const Model& model, const GraphOf<Model>& graph,
                                                         Execution execution) {
    constexpr Index small = 1'000'000;
    // The parts of a graph take their passes one after the other, all in the same order.
    if (execution.threads() == 1 || moved_features(model, graph) > small || graph.part() != nullptr) {
      return {{execution, false}};
    }
    return {{execution, false}, {execution, true}, {1, false}};
  }

  Execution execution_;
  std::vector<Variant> variants_;
  FastestVariant fastest_;
  Network<Model> network_;
  std::optional<Network<Model>> second_network_;  ///< for evaluations during a training pass
  Variant variant_ = variants_.front();
  Clock::time_point start_{};
};

}  // namespace sheafnn::detail
