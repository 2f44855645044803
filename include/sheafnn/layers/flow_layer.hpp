/// \file
/// FlowLayer: continuous-time sheaf diffusion X(0) ↦ X(T),
///
///     dX/dt = −ELU(Δ (I ⊗ A) X Bᵀ),   0 ≤ t ≤ T,
///
/// with one sheaf for all t, and its backward pass, the adjoint of the steps that were taken (math: "Continuous-time
/// diffusion" (3.31)). Boost.Odeint makes the Dormand–Prince steps. On a part of a graph, states belong to the owned
/// nodes, and all parts take the same steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/views.hpp"
#include "sheafnn/layers/diffusion_field.hpp"
#include "sheafnn/layers/flow_odeint.hpp"
#include "sheafnn/layers/flow_options.hpp"
#include "sheafnn/layers/flow_stages.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/runge_kutta.hpp"

namespace sheafnn::layers {

/// Buffers of a flow on one graph. A pass with a gradient keeps an array of features for each step. For its first
/// steps, as many as the memory allows, it also keeps everything that backward() reads. For later steps, backward()
/// computes these arrays again. Nothing is allocated by a pass that needs no more steps than one before it. math:
/// "Continuous-time diffusion" (3.31).
template <RestrictionMapFamily Family, class S>
class FlowLayer {
 public:
  /// `graph` and `shape` must outlive the layer.
  ///
  /// \param stage_memory  largest number of bytes for the kept stages; 0: no stage is kept. On a part of a graph none
  ///                      are
  /// \throws std::invalid_argument  an option of the integration out of range, a shape of another graph or family
  FlowLayer(const Graph& graph, const DiffusionShape<S>& shape, const FlowIntegration& integration,
            const DiffusionFieldOptions& field = {}, std::size_t stage_memory = flow_stage_memory);
  FlowLayer(const Graph&&, const DiffusionShape<S>&, const FlowIntegration&, const DiffusionFieldOptions& = {},
            std::size_t = flow_stage_memory) = delete;
  FlowLayer(const Graph&, const DiffusionShape<S>&&, const FlowIntegration&, const DiffusionFieldOptions& = {},
            std::size_t = flow_stage_memory) = delete;
  FlowLayer(const FlowLayer&) = delete;
  FlowLayer& operator=(const FlowLayer&) = delete;

  /// X(T) of the last pass, n × d' × f; rows of a part's halo are 0. The output has 0 nodes before the first pass and
  /// after a pass that threw.
  [[nodiscard]] FeatureView<const S> output() const noexcept {
    return {end_, end_ == nullptr ? 0 : graph_->node_count(), shape_->coordinates, shape_->channels};
  }
  /// Sizes of the steps of the last pass, in order; their sum is T, except of steps to replay. There are no steps after
  /// a pass that threw.
  [[nodiscard]] const std::vector<S>& steps() const noexcept { return steps_; }
  /// Steps of the last pass that were tried and not accepted.
  [[nodiscard]] Index rejected_steps() const noexcept { return rejected_; }

  /// Computes output() from x = X(0), n × d' × f.
  ///
  /// \param weights  A and B; ε is ignored
  /// \param keep     keep what backward() reads
  /// \param replay   sizes of the steps to take; empty: the options choose the steps
  /// \throws std::invalid_argument  features or weights of another shape, a sheaf over another graph, a step to replay
  ///                                that is not positive
  /// \throws FlowError              the tolerances ask for more than max_steps steps, x is not finite, or X(T), of a whole
  ///                                graph, is not
  void forward(Execution execution, const DiffusionWeights<const S>& weights, const SheafBlocks<Family, S>& sheaf,
               const FeatureView<const S>& x, bool keep, std::span<const S> replay = {});

  /// Replaces the derivative of output() by the derivative of x, and computes the gradients of A and B (added to) and
  /// of the sheaf's blocks. Step sizes count as constants.
  ///
  /// \param accumulate  add to sheaf_gradient instead of overwriting it
  /// \param bar         n × d' × f, replaced
  /// \param work, more_work  two buffers of the same shape, overwritten; the three must not overlap
  /// \throws std::invalid_argument  views or weights of another shape, views that begin alike, a sheaf over another
  ///                                graph
  /// \throws std::logic_error       no forward pass with `keep` came before
  void backward(Execution execution, const DiffusionWeights<const S>& weights, const SheafBlocks<Family, S>& sheaf,
                SheafBlocksGradient<Family, S>& sheaf_gradient, bool accumulate, const FeatureView<S>& bar,
                const FeatureView<S>& work, const FeatureView<S>& more_work,
                const DiffusionWeights<S>& weights_bar);

 private:
  using State = detail::FlowState<S>;
  using Stage = typename detail::FlowStages<Family, S>::Stage;

  /// Sizes of a state for all nodes, and for the owned nodes, which are computed.
  [[nodiscard]] Index size() const noexcept { return graph_->node_count() * shape_->row(); }
  [[nodiscard]] Index own_size() const noexcept { return graph_->own_node_count() * shape_->row(); }
  template <class T>
  void check(const DiffusionWeights<T>& weights) const {
    weights.check({.diffusion = {field_.left, field_.right, true, false},
                   .coordinates = shape_->coordinates,
                   .channels = shape_->channels});
  }
  void check(const FeatureView<const S>& x, const char* name) const {
    require_shape(x, graph_->node_count(), shape_->coordinates, shape_->channels, name);
  }

  /// State k of the pass: with `keep` a separate array, otherwise one of two alternating arrays.
  [[nodiscard]] State& state(Index k) {
    const std::size_t i = static_cast<std::size_t>(keep_ ? k : k % 2);
    while (states_.size() <= i) states_.emplace_back(size());
    return states_[i];
  }
  /// Does this pass keep what backward() reads of the stages of step k?
  [[nodiscard]] bool keeps_stages(Index k) const noexcept { return keep_ && k < stages_.kept_steps(); }
  /// slope = f(X_i) for stage i of step k in a forward pass, X_i in an array of the stepper's or, for i = 0, a state. The
  /// stepper's algebra may have put off computing it.
  void evaluate_stage(Execution execution, const DiffusionWeights<const S>& weights,
                      const SheafBlocks<Family, S>& sheaf, Index k, int i, const S* x, S* slope) {
    const bool keep = keeps_stages(k), copies = keep && i > 0;
    Stage& here = keep ? stages_.at(k, i) : stages_.any();
    detail::FlowAlgebra<S>& algebra = stepper_.stepper().algebra();
    const auto prepare = [&](Index first, Index nodes) {
      for_rows(first, nodes, [&](Index begin, Index end) {
        algebra.run_deferred(begin, end);
        if (copies) std::copy(x + begin, x + end, here.x.data() + begin);
      });
    };
    here.field.evaluate(execution, weights, sheaf, copies ? here.x.data() : x, keep, prepare, slope);
    algebra.end_deferred();
  }
  /// Calls body(begin, end) with the values of each node: tiles of rows do not depend on how nodes are grouped.
  template <class Body>
  void for_rows(Index first, Index nodes, const Body& body) const {
    const Index row = shape_->row();
    for (Index u = first; u < first + nodes; ++u) body(u * row, (u + 1) * row);
  }
  /// K_1 … K_s of step k, h long, from x; with `keep`, and what backward() reads.
  void compute_stages(Execution execution, const DiffusionWeights<const S>& weights,
                      const SheafBlocks<Family, S>& sheaf, const S* x, Index k, S h, bool keep) {
    const detail::RungeKuttaTableau& method = detail::tableau(integration_.method);
    for (int i = 0; i < method.stages; ++i) {
      const detail::ArraySum<S> sum = sum_to_stage(h, i);
      Stage& here = keep ? stages_.at(k, i) : stages_.any();
      const auto prepare = [&](Index first, Index nodes) {  // X_i
        if (i == 0) return;
        for_rows(first, nodes, [&](Index begin, Index end) { sum.write_range(begin, end, x, here.x.data()); });
      };
      here.field.evaluate(execution, weights, sheaf, i == 0 ? x : here.x.data(), keep, prepare, stages_.slope(i));
    }
  }
  /// X_i − X of a step, or X⁺ − X.
  [[nodiscard]] detail::ArraySum<S> sum_to_stage(S h, int i) {
    return detail::stage_sum<S>(detail::tableau(integration_.method), static_cast<double>(h), i,
                                [&](int j) { return stages_.slope(j); });
  }

  /// One step of a method with a tableau.
  void step(Execution execution, const DiffusionWeights<const S>& weights, const SheafBlocks<Family, S>& sheaf,
            S h) {
    const Index k = static_cast<Index>(steps_.size());
    static_cast<void>(state(k + 1));
    const S* x = state(k).data();
    compute_stages(execution, weights, sheaf, x, k, h, keeps_stages(k));
    sum_to_stage(h, detail::tableau(integration_.method).stages)
        .write(execution, own_size(), x, state(k + 1).data());
    steps_.push_back(h);
  }
  /// Takes equal steps, or replays the given ones.
  void integrate_by_tableau(Execution execution, const DiffusionWeights<const S>& weights,
                            const SheafBlocks<Family, S>& sheaf, std::span<const S> replay) {
    const S equal = static_cast<S>(integration_.equal_step());
    if (replay.empty()) {
      for (Index k = 0; k < integration_.fixed_steps; ++k) step(execution, weights, sheaf, equal);
    }
    for (const S h : replay) step(execution, weights, sheaf, h);
  }
  /// Takes Dormand–Prince steps with error control, or replays the given ones.
  ///
  /// \param evaluate  evaluate(k, i, x, slope): slope = f(x), x the X_i of stage i of step k
  template <class Evaluate>
  void integrate(const Evaluate& evaluate, std::span<const S> replay);
  /// Integrates from X(0) = x to X(T), by the method of the options.
  void integrate_from(Execution execution, const DiffusionWeights<const S>& weights,
                      const SheafBlocks<Family, S>& sheaf, const S* x, std::span<const S> replay);

  const Graph* graph_;
  const DiffusionShape<S>* shape_;
  FlowIntegration integration_;
  DiffusionFieldOptions field_;
  detail::ControlledDormandPrince<S> stepper_;
  State slope_, next_slope_;   ///< f at both ends of a Dormand–Prince step
  std::vector<State> states_;  ///< X at the beginning of each step, and X(T)
  detail::FlowStages<Family, S> stages_;
  std::vector<S> steps_;
  Index rejected_ = 0;
  bool keep_ = false;  ///< do states_ hold all states of the pass?
  bool kept_ = false;  ///< has a pass ended that kept them?
  const S* end_ = nullptr;
};

template <RestrictionMapFamily Family, class S>
FlowLayer<Family, S>::FlowLayer(const Graph& graph, const DiffusionShape<S>& shape,
                                const FlowIntegration& integration, const DiffusionFieldOptions& field,
                                std::size_t stage_memory)
    : graph_(&graph),
      shape_(&shape),
      integration_(detail::checked_for<S>(integration)),
      field_(field),
      stepper_(
          detail::FlowErrorChecker<S>(integration.absolute<S>(), static_cast<S>(integration.relative_tolerance))),
      slope_(size()),
      next_slope_(size()),
      stages_(graph, shape, field, detail::tableau(integration.method).stages, stage_memory) {
  detail::require_fits(shape, graph, Family::stalk_dimension);
  steps_.reserve(64);
}

template <RestrictionMapFamily Family, class S>
void FlowLayer<Family, S>::forward(Execution execution, const DiffusionWeights<const S>& weights,
                                   const SheafBlocks<Family, S>& sheaf, const FeatureView<const S>& x, bool keep,
                                   std::span<const S> replay) {
  check(x, "x");
  check(weights);
  detail::require_over(*graph_, sheaf);
  for (std::size_t i = 0; i < replay.size(); ++i) {
    require(replay[i] > 0 && std::isfinite(replay[i]), ArgumentName({}, "replay", i), replay[i],
            "a step must be positive and finite");
  }
  keep_ = keep;
  kept_ = false;
  end_ = nullptr;
  steps_.clear();
  rejected_ = 0;
  try {
    integrate_from(execution, weights, sheaf, x.data(), replay);
  } catch (...) {
    steps_.clear();
    throw;
  }
  end_ = state(static_cast<Index>(steps_.size())).data();
  kept_ = keep;
}

template <RestrictionMapFamily Family, class S>
void FlowLayer<Family, S>::integrate_from(Execution execution, const DiffusionWeights<const S>& weights,
                                          const SheafBlocks<Family, S>& sheaf, const S* x,
                                          std::span<const S> replay) {
  State& start = state(0);
  std::copy_n(x, own_size(), start.data());
  detail::FlowAlgebra<S>& algebra = stepper_.stepper().algebra();
  algebra.execution = execution;
  algebra.count = own_size();
  algebra.part = graph_->part();
  algebra.defers = false;
  algebra.end_deferred();  // of a pass that threw
  const auto is_finite = [&](const State& x_of_t) {
    return algebra.norm_inf(x_of_t) <= std::numeric_limits<S>::max();
  };
  if (!is_finite(start)) throw FlowError("x: the flow starts from features that are not finite");
  if (integration_.method != FlowMethod::dormand_prince) {
    integrate_by_tableau(execution, weights, sheaf, replay);
  } else {
    const auto evaluate = [&](Index k, int i, const State& at, State& slope) {
      evaluate_stage(execution, weights, sheaf, k, i, at.data(), slope.data());
    };
    integrate(evaluate, replay);
  }
  // On a part of a graph this would be one more sum over all parts; what is not finite shows in the loss.
  if (graph_->part() == nullptr && !is_finite(state(static_cast<Index>(steps_.size())))) {
    throw FlowError(detail::concat("the flow to time ", integration_.time, " is not finite after ", steps_.size(),
                                   " steps: smaller steps may help"));
  }
}

template <RestrictionMapFamily Family, class S>
template <class Evaluate>
void FlowLayer<Family, S>::integrate(const Evaluate& evaluate, std::span<const S> replay) {
  // Of the time Odeint sees nothing: f does not depend on it, and a sum of rounded steps would miss T.
  S no_time = S(0);
  // A step asks for K_2 … K_6 and, for the error estimate, for f(X⁺), which is K_1 of the next step.
  int i = 0;
  const auto system = [&](const State& at, State& slope, S) {
    const Index k = static_cast<Index>(steps_.size());
    const bool ends = i == detail::tableau(FlowMethod::dormand_prince).stages;
    evaluate(ends ? k + 1 : k, ends ? 0 : i, at, slope);
    ++i;
    if (ends) stepper_.stepper().algebra().defers = false;  // what follows is the error estimate
  };
  const auto begin_step = [&] {
    i = 1;
    stepper_.stepper().algebra().defers = true;
  };
  system(state(0), slope_, no_time);
  const auto accept = [&](S h) {
    std::swap(slope_, next_slope_);
    steps_.push_back(h);
  };
  for (const S h : replay) {
    const Index k = static_cast<Index>(steps_.size());
    State& next = state(k + 1);
    begin_step();
    stepper_.stepper().do_step(system, state(k), slope_, no_time, next, next_slope_, h);
    accept(h);
  }
  if (!replay.empty()) return;
  double t = 0;
  S h = static_cast<S>(integration_.first_step);
  for (Index tried = 0; t < integration_.time; ++tried) {
    if (tried == integration_.max_steps)
      throw detail::too_many_steps(integration_, t, static_cast<Index>(steps_.size()), rejected_, h);
    const bool last = integration_.ends(t, static_cast<double>(h));
    if (last) h = static_cast<S>(integration_.time - t);
    const S taken = h;
    const Index k = static_cast<Index>(steps_.size());
    State& next = state(k + 1);
    begin_step();
    if (stepper_.try_step(system, state(k), slope_, no_time, next, next_slope_, h) ==
        boost::numeric::odeint::fail) {
      ++rejected_;
      continue;
    }
    t = last ? integration_.time : t + static_cast<double>(taken);
    accept(taken);
  }
}

template <RestrictionMapFamily Family, class S>
void FlowLayer<Family, S>::backward(Execution execution, const DiffusionWeights<const S>& weights,
                                    const SheafBlocks<Family, S>& sheaf,
                                    SheafBlocksGradient<Family, S>& sheaf_gradient, bool accumulate,
                                    const FeatureView<S>& bar, const FeatureView<S>& work,
                                    const FeatureView<S>& more_work, const DiffusionWeights<S>& weights_bar) {
  if (!kept_) throw std::logic_error("backward: a forward pass that keeps its states must come before it");
  check(bar, "bar");
  check(work, "work");
  check(more_work, "more_work");
  constexpr std::string_view apart = "must be a buffer of its own";
  require(size() == 0 || work.data() != bar.data(), "work", "bar", apart);
  require(size() == 0 || more_work.data() != bar.data(), "more_work", "bar", apart);
  require(size() == 0 || more_work.data() != work.data(), "more_work", "work", apart);
  check(weights);
  check(weights_bar);
  detail::require_over(*graph_, sheaf);
  const detail::RungeKuttaTableau& method = detail::tableau(integration_.method);
  const auto stage_bar = [&](int l) { return stages_.slope(l); };
  for (std::size_t k = steps_.size(); k-- > 0;) {
    const double h = static_cast<double>(steps_[k]);
    const Index step = static_cast<Index>(k);
    if (!keeps_stages(step)) compute_stages(execution, weights, sheaf, states_[k].data(), step, steps_[k], true);
    for (int i = method.stages; i-- > 0;) {
      const detail::ArraySum<S> sum = detail::slope_bar_sum<S>(method, h, i, bar.data(), stage_bar);  // K̄_i
      S* const x_bar = stages_.slope(i);  // X̄_i = J(X_i)ᵀ K̄_i
      stages_.at(step, i).field.backward(execution, weights, sheaf, sheaf_gradient, accumulate, sum, work.data(),
                                         x_bar, more_work.data(), weights_bar);
      accumulate = true;
    }
    detail::start_bar_sum<S>(method, stage_bar).write(execution, own_size(), bar.data(), bar.data());  // x̄
  }
  detail::clear_halo(*graph_, bar.data(), shape_->row());
}

}  // namespace sheafnn::layers
