/// \file
/// GivenMaps: the sheaf source of networks whose restriction maps are given instead of learned, e.g. a true, permuted or
/// trivial sheaf.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"

namespace sheafnn {

/// A point mass on given sheaves: neither their maps nor their edge weights are learned.
template <RestrictionMapFamily Family>
class GivenMaps {
 public:
  using family = Family;
  using Sheaves = std::vector<CellularSheaf<Family>>;
  static constexpr std::string_view name = "given";
  static constexpr int mean_size = 0;
  static constexpr int spread_size = 0;

  /// There are no maps, and no model can be built from them.
  GivenMaps() = default;
  /// One sheaf for all layers, or one for every sheaf of the model, in the layers' order. Takes any sheaves: the model
  /// checks their number, and its networks check their graph.
  explicit GivenMaps(std::shared_ptr<const Sheaves> sheaves) : sheaves_(std::move(sheaves)) {}
  /// The same, not shared.
  explicit GivenMaps(Sheaves sheaves) : sheaves_(std::make_shared<const Sheaves>(std::move(sheaves))) {}
  /// One sheaf for all layers.
  explicit GivenMaps(CellularSheaf<Family> sheaf) : GivenMaps(Sheaves{std::move(sheaf)}) {}

  /// The sheaves, 0 without.
  [[nodiscard]] Index count() const noexcept {
    return sheaves_ == nullptr ? 0 : static_cast<Index>(sheaves_->size());
  }
  /// Unchecked: its index, 0 … count() − 1.
  [[nodiscard]] const CellularSheaf<Family>& operator[](Index sheaf) const noexcept {
    return (*sheaves_)[static_cast<std::size_t>(sheaf)];
  }

  /// Equal maps and edge weights over equal edges? Takes any maps.
  [[nodiscard]] friend bool operator==(const GivenMaps& a, const GivenMaps& b) {
    if (a.sheaves_ == b.sheaves_) return true;
    if (a.count() != b.count()) return false;
    for (Index s = 0; s < a.count(); ++s) {
      if (!same(a[s], b[s])) return false;
    }
    return true;
  }

  /// \throws std::invalid_argument  neither one sheaf nor as many as the model has
  void check_count(Index of_model) const {
    require(count() > 0, "sheaves", count(), "a model with given maps needs a sheaf: give it as the posterior");
    require(count() == 1 || count() == of_model, "sheaves", count(),
            of_model == 1
                ? "the model has one sheaf"
                : detail::concat("must be 1, for all layers, or ", of_model, ", one per sheaf of the model"));
  }
  /// Sheaves of a part of a graph are over the whole.
  ///
  /// \throws std::invalid_argument  a sheaf over another graph than this one, or than the whole that it is a part of
  void check_graph(const Graph& graph) const;

 private:
  [[nodiscard]] static bool same(const CellularSheaf<Family>& a, const CellularSheaf<Family>& b) {
    const Graph &one = a.graph(), &other = b.graph();
    if (one.node_count() != other.node_count() || one.edge_count() != other.edge_count()) return false;
    for (Index e = 0; e < one.edge_count(); ++e) {
      if (!(one.edge(e) == other.edge(e))) return false;
      if constexpr (sheaf::may_have_edge_weights<Family>) {
        if (a.edge_weight(e) != b.edge_weight(e)) return false;
      }
    }
    for (Index arc = 0; arc < one.arc_count(); ++arc) {
      if (a.map(arc) != b.map(arc)) return false;
    }
    return true;
  }
  /// \throws std::invalid_argument  an arc of the part that the whole does not have
  static void check_arcs(const Graph& graph, const Graph& whole, std::string_view sheaf);

  std::shared_ptr<const Sheaves> sheaves_;
};

template <class Family>
inline constexpr bool is_point_mass<GivenMaps<Family>> = true;
template <class Family>
inline constexpr bool has_given_maps<GivenMaps<Family>> = true;

template <RestrictionMapFamily Family>
void GivenMaps<Family>::check_arcs(const Graph& graph, const Graph& whole, std::string_view sheaf) {
  const PartNumbers& numbers = graph.part()->numbers();
  for (Index arc = 0; arc < graph.arc_count(); ++arc) {
    const Index number = numbers.arc[arc];
    const Index u = numbers.node[static_cast<std::size_t>(graph.source(arc))],
                v = numbers.node[static_cast<std::size_t>(graph.target(arc))];
    require(number < whole.arc_count(), "arc", number,
            detail::concat("the graph of ", sheaf, " has ", whole.arc_count(), " arcs"));
    if (whole.source(number) == u && whole.target(number) == v) continue;
    throw_invalid_argument(detail::concat("arc ", number, " of ", sheaf),
                           detail::concat(whole.source(number), " – ", whole.target(number)),
                           detail::concat("the network's graph has ", u, " – ", v));
  }
}

template <RestrictionMapFamily Family>
void GivenMaps<Family>::check_graph(const Graph& graph) const {
  const GraphPart* part = graph.part();
  for (Index s = 0; s < count(); ++s) {
    const Graph& over = (*this)[s].graph();
    const auto check = [&](std::string_view what, Index found, Index expected) {
      if (found == expected) return;
      throw_invalid_argument(detail::concat(what, " of sheaves[", s, "]"), found,
                             detail::concat("the network's graph has ", expected,
                                            part == nullptr ? ""
                                                            : ": parts of a graph get a sheaf over the whole"));
    };
    if (&over == &graph && part == nullptr) continue;
    check("nodes", over.node_count(), part == nullptr ? graph.node_count() : part->numbers().total_nodes);
    check("edges", over.edge_count(), part == nullptr ? graph.edge_count() : part->numbers().total_edges);
    if (part != nullptr) {
      check_arcs(graph, over, detail::concat("sheaves[", s, "]"));
      continue;
    }
    for (Index e = 0; e < graph.edge_count(); ++e) {
      const Edge found = over.edge(e), expected = graph.edge(e);
      if (found == expected) continue;
      throw_invalid_argument(detail::concat("edge ", e, " of sheaves[", s, "]"),
                             detail::concat(found.u, " – ", found.v),
                             detail::concat("the network's graph has ", expected.u, " – ", expected.v));
    }
  }
}

}  // namespace sheafnn
