/// \file
/// NodeChunks: a partition of the nodes for sums over them.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"

namespace sheafnn {

/// Sums over nodes in a partition of its own, so that they do not depend on the number of threads.
struct NodeChunks {
  Index nodes = 0;
  Index count = 1;

  [[nodiscard]] Index begin(Index chunk) const noexcept { return nodes * chunk / count; }
  [[nodiscard]] Index end(Index chunk) const noexcept { return nodes * (chunk + 1) / count; }
  /// Calls body(chunk, first node, past the last node).
  template <class Body>
  void for_each(Execution execution, const Body& body) const {
    parallel_for(execution, count, 1, [&](Index from, Index to) {
      for (Index chunk = from; chunk < to; ++chunk) body(chunk, begin(chunk), end(chunk));
    });
  }
};

}  // namespace sheafnn
