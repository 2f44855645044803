/// \file
/// NodeSelection: the nodes of a graph for which something is computed.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>

#include "sheafnn/core/config.hpp"

namespace sheafnn {

/// All n nodes, or some of them in increasing order; each has an index 0, 1, …, which is its row.
/// Unchecked: node numbers, numbers and indices, and the order of a list; assertions say so.
class NodeSelection {
 public:
  /// All nodes.
  explicit NodeSelection(Index nodes = 0) noexcept : count_(nodes) {}
  /// The nodes of a strictly increasing list, not empty, which must outlive the selection.
  explicit NodeSelection(std::span<const std::int32_t> nodes) noexcept
      : count_(static_cast<Index>(nodes.size())), list_(nodes.data()) {
    assert(!nodes.empty() && std::is_sorted(nodes.begin(), nodes.end(), [](auto a, auto b) { return a <= b; }));
  }

  [[nodiscard]] Index count() const noexcept { return count_; }
  [[nodiscard]] bool all() const noexcept { return list_ == nullptr; }
  /// The node of an index.
  [[nodiscard]] Index operator[](Index index) const noexcept { return all() ? index : list_[index]; }
  /// The index of node u, or of the first selected one after it.
  [[nodiscard]] Index lower_bound(Index u) const noexcept {
    return all() ? u : std::lower_bound(list_, list_ + count_, u) - list_;
  }
  /// The index of a selected node.
  [[nodiscard]] Index index_of(Index u) const noexcept {
    const Index r = lower_bound(u);
    assert(contains(u));
    return r;
  }
  /// The first `number` nodes.
  [[nodiscard]] NodeSelection first(Index number) const noexcept {
    NodeSelection r = *this;
    r.count_ = number;
    return r;
  }
  /// Takes any u.
  [[nodiscard]] bool contains(Index u) const noexcept {
    if (all()) return 0 <= u && u < count_;
    const Index r = lower_bound(u);
    return r < count_ && list_[r] == u;
  }

 private:
  Index count_;
  const std::int32_t* list_ = nullptr;  ///< null: all nodes
};

}  // namespace sheafnn
