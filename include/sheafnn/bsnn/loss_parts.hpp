/// \file
/// What elbo() and train() ask of losses of which a graph's parts compute one share each, and of losses whose targets are
/// no nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sheafnn/core/config.hpp"

namespace sheafnn {

/// A loss over the parts of a graph (graph/graph_part.hpp) says spans_parts = true. Its values are values of
/// all parts' nodes, except value_and_derivative(), which elbo() adds up; a part may have no such node. All parts
/// call its functions in the same order, also has_nodes(nodes): does any part have some?, and metric(stop_on,
/// probabilities, nodes), a metric of classes (stop_metric.hpp).
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

/// A loss whose targets are no nodes, but pairs of them, for example, numbers them 0 … target_count() − 1. Splits, predictions
/// and scores are then of targets, each with prediction_columns() numbers. Beside these two it has name, known() and score()
/// of a Loss (loss.hpp), and
///   - validate(model, node_count): throws std::invalid_argument unless the targets fit;
///   - prepare(model, seed): adds the loss's own parameters to the model's, where they are not there yet;
///   - Work<Model>: a type of buffers, one object for passes that follow each other;
///   - begin(network, targets, work): before the draws of a pass, which has outputs of all nodes;
///   - value_and_derivative(network, outputs, targets, share, outputs_bar, work): as for a Loss, of the sample that is drawn;
///     derivatives of the loss's parameters are added to the network's gradient;
///   - predict(network, outputs, targets, predictions, work): as for a Loss.
template <class L>
inline constexpr bool has_own_targets = requires(const L& loss) {
  loss.target_count();
  loss.prediction_columns();
};

/// How many targets a loss has, of a network with that many rows of outputs. Takes any.
template <class L>
[[nodiscard]] Index target_count(const L& loss, [[maybe_unused]] Index rows) {
  if constexpr (has_own_targets<L>) {
    return loss.target_count();
  } else {
    return rows;
  }
}
/// How many numbers it predicts for each. Takes any.
template <class L>
[[nodiscard]] Index prediction_columns(const L& loss, [[maybe_unused]] Index outputs) {
  if constexpr (has_own_targets<L>) {
    return loss.prediction_columns();
  } else {
    return outputs;
  }
}
/// The nodes whose outputs a pass needs for some targets; none: all. Takes any.
template <class L>
[[nodiscard]] std::span<const std::int32_t> nodes_of_targets(const L&, std::span<const std::int32_t> targets) {
  return has_own_targets<L> ? std::span<const std::int32_t>() : targets;
}

namespace detail {

struct NoWork {};
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
