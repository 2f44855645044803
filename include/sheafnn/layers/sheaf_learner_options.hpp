/// \file
/// SheafLearnerOptions: what a sheaf learner reads, and its sizes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/layers/limits.hpp"

namespace sheafnn::layers {

/// How a sheaf learner reads the embeddings Z (d' × f per node) of an arc's ends u and v.
enum class LearnerInput : std::uint8_t {
  concatenation,  ///< [Z_u ‖ Z_v], 2h values
  summed,         ///< [Σ_i Z_u,i ‖ Σ_i Z_v,i], sums over the d' stalk coordinates, 2f values
  /// [Z_u ‖ Z_v] as d' rows of 2f values, which are added up: as the published code does. For even d' it is the same for
  /// both directions of an edge.
  summed_published
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(LearnerInput) {
  return std::array{"concatenation", "summed", "summed-published"};
}

/// Sizes of a sheaf learner, each at least 0.
struct SheafLearnerOptions {
  Index inputs = 0;         ///< h, width of node embeddings
  Index mean = 0;           ///< raw outputs for the mean
  Index spread = 0;         ///< raw outputs for the spread (0: deterministic)
  Index hidden_layers = 0;  ///< with ELU, 0 … 8
  Index width = 0;          ///< of hidden layers, at least 1 where there are any
  bool edge_weights = false;
  LearnerInput input = LearnerInput::concatenation;
  Index channels = 0;  ///< f ≥ 1, of which h is a multiple; for sums and complex embeddings
  /// 2 of complex embeddings, whose stalk coordinates have f/2 real parts, then f/2 imaginary parts. Weights read the real parts of
  /// both ends first.
  Index parts = 1;
  Index edge_features = 0;  ///< features of the graph's arcs that are read as well
  Index types = 1;          ///< of edges, each with weights of its own
  /// Rows of a table of spreads, one for each label of edges, that takes the place of the learner; 0: none.
  Index labels = 0;
  double first_dispersion = 0;  ///< initial value of such a table's entries

  [[nodiscard]] Index outputs() const noexcept { return labels > 0 ? 0 : mean + spread; }
  /// Columns of the weights that read a pair, edge features not counted; the weights for edge weights have 2h columns.
  [[nodiscard]] Index pair_inputs() const noexcept {
    return 2 * (input == LearnerInput::concatenation ? inputs : channels);
  }
  /// Columns of the first layer's weights.
  [[nodiscard]] Index first_inputs() const noexcept { return pair_inputs() + edge_features; }
  /// Outputs of the first layer for every arc, without and with the logit of the edge weight: rows of weights that read a pair.
  [[nodiscard]] Index first_numbers() const noexcept { return hidden_layers == 0 ? outputs() : width; }
  [[nodiscard]] Index first_outputs() const noexcept { return first_numbers() + (edge_weights ? 1 : 0); }
  /// Length of a node's projections by the first layer, as source and as target; each half is padded to a multiple of four.
  [[nodiscard]] Index projection_width() const noexcept { return 2 * ((first_outputs() + 3) / 4 * 4); }
};

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const SheafLearnerOptions& options) {
  const auto at_least = [](std::string_view name, Index value, Index least) {  // texts only where they are needed
    if (value < least) throw_invalid_argument(name, value, detail::concat("must be at least ", least));
  };
  at_least("learner inputs", options.inputs, 0);
  at_least("learner mean", options.mean, 0);
  at_least("learner spread", options.spread, 0);
  require_between("learner hidden_layers", options.hidden_layers, 0, max_learner_layers);
  at_least("learner width", options.width, options.hidden_layers > 0 ? 1 : 0);
  at_least("learner edge_features", options.edge_features, 0);
  at_least("learner types", options.types, 1);
  require_between("learner parts", options.parts, 1, 2);
  if (options.input == LearnerInput::concatenation && options.parts == 1) return;
  at_least("learner channels", options.channels, options.parts);
  const auto multiple = [](std::string_view name, Index value, Index of, std::string_view what) {
    if (value % of != 0) throw_invalid_argument(name, value, detail::concat("must be a multiple of the ", of, what));
  };
  multiple("learner channels", options.channels, options.parts, " parts");
  multiple("learner inputs", options.inputs, options.channels, " channels of a stalk coordinate");
}

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::LearnerInput;

}  // namespace sheafnn
