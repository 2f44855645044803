/// \file
/// NodeSelection: the nodes of a graph for which something is computed.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>

#include "sheafnn/core/config.hpp"

namespace sheafnn {

/// All n nodes, or some of them in increasing order; each has a place, 0, 1, …, by which its row is found.
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
  /// The node at a place.
  [[nodiscard]] Index operator[](Index place) const noexcept { return all() ? place : list_[place]; }
  /// The place of node u, or of the first selected one behind it.
  [[nodiscard]] Index place(Index u) const noexcept {
    return all() ? u : std::lower_bound(list_, list_ + count_, u) - list_;
  }

 private:
  Index count_;
  const std::int32_t* list_ = nullptr;  ///< null: all nodes
};

}  // namespace sheafnn
