/// \file
/// SheafLearnerOptions: what a sheaf learner reads, and its sizes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sheafnn/core/config.hpp"

namespace sheafnn {

/// What a sheaf learner reads of the embeddings Z (d' × f per node) of an arc's ends u and v.
enum class LearnerInput : std::uint8_t {
  concatenation,  ///< [Z_u ‖ Z_v], 2h numbers
  summed,         ///< [Σ_i Z_u,i ‖ Σ_i Z_v,i], sums over the d' stalk coordinates, 2f numbers
  /// [Z_u ‖ Z_v] as d' rows of 2f numbers, which are added up: as the published code does. For even d' it is the same for
  /// both directions of an edge.
  summed_published
};
/// Its texts, in the order of the enumeration.
inline constexpr std::array<std::string_view, 3> learner_input_names = {"concatenation", "summed", "summed-published"};
/// Its text.
[[nodiscard]] constexpr std::string_view to_string(LearnerInput input) {
  return learner_input_names[static_cast<std::size_t>(input)];
}

/// Sizes of a sheaf learner.
struct SheafLearnerOptions {
  Index inputs = 0;         ///< h, width of node embeddings
  Index mean = 0;           ///< raw outputs for the mean
  Index spread = 0;         ///< raw outputs for the spread (0: deterministic)
  Index hidden_layers = 0;  ///< with ELU, 0 … 8
  Index width = 0;          ///< of hidden layers
  bool edge_weights = false;
  LearnerInput input = LearnerInput::concatenation;
  Index channels = 0;       ///< f, of which h is a multiple; for sums
  Index edge_features = 0;  ///< numbers of the graph's arcs that are read as well

  [[nodiscard]] Index outputs() const noexcept { return mean + spread; }
  /// Columns of the weights that read a pair, edge features not counted; those of edge weights have 2h.
  [[nodiscard]] Index pair_inputs() const noexcept {
    return 2 * (input == LearnerInput::concatenation ? inputs : channels);
  }
  /// Columns of the first layer's weights.
  [[nodiscard]] Index first_inputs() const noexcept { return pair_inputs() + edge_features; }
  /// Rows of weights that read a pair.
  [[nodiscard]] Index first_outputs() const noexcept {
    return (hidden_layers == 0 ? outputs() : width) + (edge_weights ? 1 : 0);
  }
  /// Numbers of a node's projections by the first layer, as source and as target: each half is filled up to groups of four.
  [[nodiscard]] Index projection_width() const noexcept { return 2 * ((first_outputs() + 3) / 4 * 4); }
};

}  // namespace sheafnn
