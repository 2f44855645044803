/// \file
/// NodeLearnerOptions: which learner of node maps (node_learner.hpp), and its sizes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// Which learner: see node_learner.hpp.
enum class NodeLearnerKind : std::uint8_t { mlp, sage, sage_projected };
/// Its texts, in the order of the enumeration.
inline constexpr std::array<std::string_view, 3> node_learner_names = {"mlp", "sage", "sage-projected"};
/// Its text.
[[nodiscard]] constexpr std::string_view to_string(NodeLearnerKind kind) {
  return node_learner_names[static_cast<std::size_t>(kind)];
}

/// What a node learner is made of.
struct NodeLearnerOptions {
  NodeLearnerKind kind = NodeLearnerKind::mlp;
  Index inputs = 0, width = 0, outputs = 0;  ///< h, g, o, each at least 1; g is not used by one convolution alone
  Index layers = 1;                          ///< convolutions, at least 1; not of mlp
};

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const NodeLearnerOptions& options) {
  const auto positive = [](std::string_view name, Index value) {
    require(value >= 1, name, value, "must be at least 1");
  };
  const bool mlp = options.kind == NodeLearnerKind::mlp;
  positive("learner inputs", options.inputs);
  positive("learner outputs", options.outputs);
  if (!mlp) positive("learner layers", options.layers);
  if (mlp || options.layers > 1) positive("learner width", options.width);
}

}  // namespace sheafnn
