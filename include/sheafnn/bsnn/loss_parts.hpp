/// \file
/// What elbo() and train() ask of losses of which a graph's parts compute one share each.
#pragma once

#include <cstdint>
#include <span>

namespace sheafnn {

/// A loss over the parts of a graph (graph/graph_part.hpp) says spans_parts = true. Its values, but not that of
/// value_and_derivative(), which elbo() adds up, are those of all parts' nodes; of these a part may have none. All parts
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

}  // namespace sheafnn
