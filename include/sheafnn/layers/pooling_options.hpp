/// \file
/// Pooling: how a network makes one row of the features of a graph's nodes.
#pragma once

#include <array>

namespace sheafnn {

/// With the features x_u of the nodes u of a graph of n nodes, a row of d' × f values each. math: "Pooling".
enum class Pooling {
  sum,        ///< Σ_u x_u
  mean,       ///< Σ_u x_u / n
  max,        ///< the largest value of each coordinate and channel
  attention,  ///< Σ_u α_u x_u, α the softmax of the scores ⟨a, x_u⟩ over the nodes, a learned
  harmonic  ///< norms of each channel after low passes of the last layer's sheaf, which approach the projection on H⁰
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(Pooling) {
  return std::array{"sum", "mean", "max", "attention", "harmonic"};
}

}  // namespace sheafnn
