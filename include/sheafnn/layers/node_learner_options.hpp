/// \file
/// NodeLearnerOptions: which learner of node maps (node_learner.hpp), and its sizes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/layers/limits.hpp"

namespace sheafnn::layers {

/// Which learner: see node_learner.hpp.
enum class NodeLearnerKind : std::uint8_t { mlp, sage, sage_projected };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(NodeLearnerKind) { return std::array{"mlp", "sage", "sage-projected"}; }

/// The options of a node learner.
struct NodeLearnerOptions {
  NodeLearnerKind kind = NodeLearnerKind::mlp;
  Index inputs = 0, width = 0, outputs = 0;  ///< h, g, o, each 1 … 10240; g is not used by one convolution alone
  Index layers = 1;                          ///< convolutions, at least 1; not of mlp

  friend bool operator==(const NodeLearnerOptions&, const NodeLearnerOptions&) = default;
};

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const NodeLearnerOptions& options) {
  static_assert(detail::max_learner_size == 10240);
  const auto size = [](std::string_view name, Index value) {
    require_between(name, value, 1, detail::max_learner_size);
  };
  const bool mlp = options.kind == NodeLearnerKind::mlp;
  size("learner inputs", options.inputs);
  size("learner outputs", options.outputs);
  if (!mlp) require(options.layers >= 1, "learner layers", options.layers, "must be at least 1");
  if (mlp || options.layers > 1) size("learner width", options.width);
}

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::NodeLearnerKind;

}  // namespace sheafnn
