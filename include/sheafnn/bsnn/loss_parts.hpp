/// \file
/// What elbo() and train() need from losses that are divided among the parts of a graph, and from losses whose targets
/// are not nodes.
#pragma once

#include <cstdint>
#include <span>

#include "sheafnn/core/config.hpp"

namespace sheafnn {

/// A loss over the parts of a graph (graph/graph_part.hpp) says spans_parts = true. Its functions return values over
/// the nodes of all parts, except value_and_derivative(), whose values elbo() adds up; a part may have no such node.
/// All parts call its functions in the same order. Two functions are added: has_nodes(nodes), whether any part has
/// nodes, and metric(stop_on, probabilities, nodes), a metric of classes (stop_metric.hpp).
template <class L>
inline constexpr bool spans_parts = requires {
  requires L::spans_parts;
};

/// Are there nodes to compute a loss of? Takes any.
template <class L>
[[nodiscard]] bool has_nodes(const L& loss, std::span<const std::int32_t> nodes) {
  if constexpr (spans_parts<L>) {
    return loss.has_nodes(nodes);
  } else {
    return !nodes.empty();
  }
}

/// A loss whose targets are not nodes but, for example, pairs of nodes. It numbers its targets 0 … target_count() − 1.
/// Splits, predictions and scores then refer to targets, each with prediction_columns() values. Beside these two
/// functions it has name, known() and score() of a Loss (loss.hpp), and
///   - validate(model, node_count): throws std::invalid_argument unless the targets fit;
///   - prepare(model, seed): adds the loss's own parameters to the model's, where they are not there yet;
///   - Work<Model>: a type of buffers, one object for passes that follow each other;
///   - begin(network, targets, work): called before the draws of a pass, which computes the outputs of all nodes;
///   - value_and_derivative(network, outputs, targets, share, outputs_bar, work): as for a Loss, for the current
///     sample; derivatives of the loss's parameters are added to the network's gradient;
///   - predict(network, outputs, targets, predictions, work): as for a Loss.
template <class L>
inline constexpr bool has_own_targets = requires(const L& loss) {
  loss.target_count();
  loss.prediction_columns();
};

/// Number of targets of a loss, for a network with that many rows of outputs. Takes any loss.
template <class L>
[[nodiscard]] Index target_count(const L& loss, [[maybe_unused]] Index rows) {
  if constexpr (has_own_targets<L>) {
    return loss.target_count();
  } else {
    return rows;
  }
}
/// Number of predicted values per target. Takes any loss.
template <class L>
[[nodiscard]] Index prediction_columns(const L& loss, [[maybe_unused]] Index outputs) {
  if constexpr (has_own_targets<L>) {
    return loss.prediction_columns();
  } else {
    return outputs;
  }
}
/// The nodes whose outputs a pass needs for some targets; empty: all nodes. Takes any loss.
template <class L>
[[nodiscard]] std::span<const std::int32_t> nodes_of_targets(const L&, std::span<const std::int32_t> targets) {
  return has_own_targets<L> ? std::span<const std::int32_t>() : targets;
}

namespace detail {

struct NoWork {};
/// The buffers of a loss: NoWork, unless the loss has its own targets and names a type.
template <class L, class Model>
struct LossWorkOf {
  using type = NoWork;
};
template <class L, class Model>
  requires has_own_targets<L>
struct LossWorkOf<L, Model> {
  using type = typename L::template Work<Model>;
};
/// Buffers of a loss for passes that follow each other.
template <class L, class Model>
using LossWork = typename LossWorkOf<L, Model>::type;

}  // namespace detail

}  // namespace sheafnn
