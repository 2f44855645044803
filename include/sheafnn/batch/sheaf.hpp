/// \file
/// The sheaves of all instances of a batch: arrays, building them, and the derivatives of their blocks.
#pragma once

#include <type_traits>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/sheaf_backward_kernels.hpp"
#include "sheafnn/layers/layer.hpp"

namespace sheafnn::batch::detail {

/// \tparam View  of the graph
template <class Executor, class Family, class S, class View = GraphView<S>>
class BatchSheaf {
  static constexpr bool of_edges = std::is_same_v<View, GraphView<S>>;

 public:
  using Sizes = sheaf::BlockSizes<Family>;
  using Rows = BlockRows<Family>;

  BatchSheaf() = default;
  /// \param slots           instances · sheaves
  /// \param training_slots  of training passes; 0: nothing flows back into the sheaves
  /// \param reads           do layers read blocks, and maps?
  BatchSheaf(Executor& executor, const View& graph, Index slots, Index training_slots, Normalisation normalisation,
             const layers::LayerReads& reads)
      : graph_(graph),
        normalisation_(normalisation),
        reads_blocks_(reads.blocks),
        learned_(sheaf::is_learned<Family> && training_slots > 0) {
    const auto array = [&](Index size) { return Array<Executor, S>(executor, "sheaves", slots * size); };
    const auto bar = [&](Index size) { return Array<Executor, S>(executor, "sheaves", training_slots * size); };
    constexpr bool own_gram = !sheaf::is_orthogonal<Family>;
    const Index edges = of_edges ? graph.edges : 0;
    require_countable("tiles of the edges' blocks", edges * ((Rows::transport + 3) / 4));
    map_ = array(graph.pairs() * Sizes::map);
    if (own_gram) arc_gram_ = array(graph.pairs() * Rows::gram);
    transport_ = array(edges * Rows::transport);
    degree_block_ = array(graph.nodes * Rows::gram);
    scale_ = array(graph.nodes * Rows::gram);
    eigen_ = array(graph.nodes * Sizes::eigen);
    if constexpr (sheaf::is_learned<Family>) {
      off_diagonal_bar_ = bar(edges * Rows::transport);
      degree_bar_ = bar(graph.nodes * Rows::gram);
      scale_bar_ = bar(graph.nodes * Rows::gram);
      if (reads.maps || !of_edges) map_bar_ = bar(graph.pairs() * Sizes::map);
    }
  }

  /// Do layers compute the derivatives of its blocks?
  [[nodiscard]] bool learned() const noexcept { return learned_; }
  [[nodiscard]] SheafView<Family, S> view() noexcept {
    return {graph_.nodes,      graph_.edges,         graph_.pairs(), map_.data(),  arc_gram_.data(),
            transport_.data(), degree_block_.data(), scale_.data(),  eigen_.data()};
  }
  [[nodiscard]] BlockGradient<S> gradient() noexcept {
    return {off_diagonal_bar_.data(), degree_bar_.data(), scale_bar_.data(), map_bar_.data()};
  }
  /// Zeros the derivatives.
  void clear_gradient(Executor& executor) {
    for (Array<Executor, S>* bar : {&off_diagonal_bar_, &degree_bar_, &scale_bar_, &map_bar_}) {
      if (bar->size() > 0) executor.zero(bar->data(), bar->size());
    }
  }

  /// Builds the sheaves `range` of a pass from maps.
  ///
  /// \param others  parts that share the first launch
  template <class Maps, class... Others>
  void build(Executor& executor, const Pass& pass, const SheafRange& range, const Maps& maps, const S* edge_weight,
             const Others&... others) {
    const Index groups = pass.instances() * range.count;
    if constexpr (of_edges) {
      executor.launch_together(Items{graph_.edges, groups,
                                     BuildEdges<Family, S, Maps>{graph_, range, view(), maps, edge_weight,
                                                                 pass.copies}},
                               others...);
    } else {
      executor.launch_together(Items{graph_.pairs(), groups,
                                     BuildIncidences<Family, S, Maps>{graph_, range, view(), maps}},
                               others...);
    }
    if (!reads_blocks_) return;
    const int lanes = graph_.arc_lanes(graph_.nodes * groups);
    executor.launch_teams(graph_.nodes, groups, lanes,
                          BuildNodes<Family, S>{graph_, range, view(), edge_weight, pass.copies, normalisation_,
                                                lanes});
    if constexpr (!of_edges) {
      if (graph_.pair_weight != nullptr)
        executor.launch(graph_.nodes, groups, PublishedScales<Family, S>{graph_, range, view()});
    }
  }

  /// Completes the derivatives of D_u by the derivatives of S_u.
  [[nodiscard]] Items<BackwardNodes<Family, S>> backward_nodes(const Pass& pass, const SheafRange& range) {
    return {reads_blocks_ ? graph_.nodes : 0,
            pass.instances() * range.count,
            {range, view(), gradient(), normalisation_}};
  }

 private:
  View graph_{};
  Normalisation normalisation_ = Normalisation::augmented;
  bool reads_blocks_ = true, learned_ = false;
  Array<Executor, S> map_, arc_gram_, transport_, degree_block_, scale_, eigen_;
  Array<Executor, S> off_diagonal_bar_, degree_bar_, scale_bar_, map_bar_;
};

}  // namespace sheafnn::batch::detail
