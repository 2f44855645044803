/// \file
/// FlowStages: the arrays in which a flow evaluates the stages of its steps,
///
///     X_i = X + h Σ_{j<i} a_ij K_j,   K_i = f(X_i),
///
/// and what its backward pass reads of them (math: "Continuous-time diffusion" (3.32)).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/layers/diffusion_field.hpp"

namespace sheafnn::detail {

/// The first steps of a pass keep their stages, as many as the memory allows. The stages of all other steps are computed
/// again, in the same arrays. On a part of a graph no step keeps them: parts of different sizes would differ in which ones
/// do.
template <RestrictionMapFamily Family, class S>
class FlowStages {
 public:
  /// X_i, which the first stage does not need, and what f keeps of it.
  struct Stage {
    DiffusionField<Family, S> field;
    Buffer<S> x;
  };

  /// `graph` and `shape` must outlive it.
  ///
  /// \param stages  of a step
  /// \param memory  bytes, at most, for the stages that are kept
  FlowStages(const Graph& graph, const DiffusionShape<S>& shape, const DiffusionFieldOptions& field, int stages,
             std::size_t memory)
      : graph_(&graph), shape_(&shape), field_(field) {
    constexpr std::size_t arrays = 4;  // of a stage: x, and three of the field
    const std::size_t step = static_cast<std::size_t>(stages) * arrays * sizeof(S) *
                             static_cast<std::size_t>(std::max<Index>(size(), 1));
    if (graph.part() == nullptr) kept_steps_ = static_cast<Index>(memory / step);
  }

  /// Steps of a pass whose stages are kept.
  [[nodiscard]] Index kept_steps() const noexcept { return kept_steps_; }
  /// Stage i of step k: its own, or the stage that all steps share whose stages are not kept.
  [[nodiscard]] Stage& at(Index k, int i) {
    if (k >= kept_steps_) return stage(shared_, i);
    while (static_cast<Index>(kept_.size()) <= k) kept_.emplace_back();
    return stage(kept_[static_cast<std::size_t>(k)], i);
  }
  /// A stage for evaluations, which keep nothing.
  [[nodiscard]] Stage& any() { return stage(shared_, 0); }
  /// K_i of a step, or the derivative of its X_i.
  [[nodiscard]] S* slope(int i) {
    while (static_cast<int>(slopes_.size()) <= i) slopes_.emplace_back(size());
    return slopes_[static_cast<std::size_t>(i)].data();
  }

 private:
  using Step = std::vector<Stage>;

  [[nodiscard]] Index size() const noexcept { return graph_->node_count() * shape_->row(); }
  [[nodiscard]] Stage& stage(Step& step, int i) {
    while (static_cast<int>(step.size()) <= i) step.push_back({{*graph_, *shape_, field_}, Buffer<S>(size())});
    return step[static_cast<std::size_t>(i)];
  }

  const Graph* graph_;
  const DiffusionShape<S>* shape_;
  DiffusionFieldOptions field_;
  Index kept_steps_ = 0;
  std::vector<Step> kept_;
  Step shared_;
  std::vector<Buffer<S>> slopes_;
};

}  // namespace sheafnn::detail
