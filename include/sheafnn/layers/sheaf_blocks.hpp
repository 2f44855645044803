/// \file
/// SheafBlocks: the restriction maps of one layer and the parts of their normalised Laplacian, built W edges at a time.
/// The backward pass computes the derivatives of the maps from the derivatives of these parts.
///
/// Δ = S L S is never multiplied out: features are scaled per node, diffused with L (per edge Q_e = F_aᵀ F_rev,
/// per node D_u), and scaled again. So normalisation costs nothing per edge (math: "Diffusion in
/// three steps"). The formulas are in sheaf/blocks.hpp and sheaf/normalisation.hpp.
#pragma once

#include <memory>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/node_scalings.hpp"
#include "sheafnn/sheaf/family.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::layers {

/// Derivatives that a SheafBlocks's backward pass reads and writes. Unchecked: that `blocks` are the graph's.
template <RestrictionMapFamily Family, class S>
struct SheafBlocksGradient {
  using Sizes = BlockSizes<Family>;

  SheafBlocksGradient() = default;
  SheafBlocksGradient(const Graph& graph, const EdgeBlocks<S>& blocks)
      : off_diagonal_bar(blocks.block_count() * EdgeBlocks<S>::width * Sizes::transport),
        degree_bar(graph.node_count() * Sizes::gram),
        scale_bar(graph.node_count() * Sizes::gram),
        weight_bar(blocks.block_count() * EdgeBlocks<S>::width) {}
  /// Zeros what layers write.
  void clear() {
    for (Buffer<S>* bar : {&off_diagonal_bar, &degree_bar, &scale_bar, &map_bar}) bar->fill(S(0));
  }

  Buffer<S> off_diagonal_bar;  ///< per edge {u, v}, u < v: derivative of L_uv = −Q_e (input)
  Buffer<S> degree_bar;        ///< per node: derivative of D_u (input; the total after backward)
  Buffer<S> scale_bar;         ///< per node: derivative of S_u, not symmetrised (input)
  Buffer<S> weight_bar;        ///< lanes-innermost, per edge: derivative of w_e (output, added to)
  Buffer<S> map_bar;           ///< per arc, where layers read maps: derivative of SheafBlocks::arc_map() (input)
};

/// Maps, node scalings and the Laplacian's blocks of one sheaf. Unchecked: indices of nodes, edges and blocks, sides
/// other than 0 and 1, the sizes of arrays, and `blocks` or gradients of another graph.
template <RestrictionMapFamily Family, class S>
class SheafBlocks {
 public:
  using Sizes = BlockSizes<Family>;
  static constexpr int W = lanes<S>;
  /// Values stored per arc for its Gram matrix.
  static constexpr int arc_stride = NodeScalings<Family, S>::gram_stride;
  using P = Pack<S, W>;
  using Map = typename Family::template Map<P>;
  using Gradient = SheafBlocksGradient<Family, S>;
  /// A buffer for the Gram matrices of all arcs, used within build() only.
  using ArcGrams = Buffer<S>;

  SheafBlocks() = default;
  /// \param arc_grams  shared by sheaves that are built in turn, and made larger where it is too small; null: the sheaf's own
  /// \param has_maps   allocate memory for maps()?
  SheafBlocks(const Graph& graph, const EdgeBlocks<S>& blocks, Normalisation normalisation,
              std::shared_ptr<ArcGrams> arc_grams = nullptr, bool has_maps = true);
  SheafBlocks(const Graph&&, const EdgeBlocks<S>&, Normalisation, std::shared_ptr<ArcGrams> = nullptr,
              bool = true) = delete;
  SheafBlocks(const Graph&, const EdgeBlocks<S>&&, Normalisation, std::shared_ptr<ArcGrams> = nullptr,
              bool = true) = delete;

  /// The graph of the sheaf; null before it is set.
  [[nodiscard]] const Graph* graph() const noexcept { return graph_; }

  /// Maps of a block, lanes-innermost; entries in Eigen's (column-major) order. To be filled before or in build(). Unchecked:
  /// there is memory for them.
  [[nodiscard]] S* maps(Index block, int side) noexcept {
    return map_.data() + (block * 2 + side) * Sizes::map * W;
  }
  [[nodiscard]] const S* maps(Index block, int side) const noexcept {
    return map_.data() + (block * 2 + side) * Sizes::map * W;
  }
  [[nodiscard]] static Map load_map(const S* lanes_of_map) {
    Map map = Map::Constant(P(S(1)));
    if constexpr (Sizes::map > 0) detail::load_lanes<Sizes::map>(lanes_of_map, map.data());
    return map;
  }
  static void store_map(const Map& map, S* lanes_of_map) {
    if constexpr (Sizes::map > 0) detail::store_lanes<Sizes::map>(map.data(), lanes_of_map);
  }

  /// Which parts build() makes and backward() reads: at first blocks of the Laplacian alone.
  ///
  /// \param maps, blocks  are arc_map(), and D, S and Q, computed?
  void choose_parts(bool maps, bool blocks) {
    has_blocks_ = blocks;
    arc_map_.resize(maps ? graph_->arc_count() * Sizes::map : 0);
  }
  /// The map of an arc, in Eigen's order; see choose_parts().
  [[nodiscard]] const S* arc_map(Index arc) const noexcept { return arc_map_.data() + arc * Sizes::map; }

  /// D_u and S_u per node, Q_e = w_e² F_aᵀ F_rev per edge (a from its smaller endpoint), in Eigen's order.
  [[nodiscard]] const S* degree_block(Index u) const noexcept { return scalings_.degree_block(u); }
  [[nodiscard]] const S* scale(Index u) const noexcept { return scalings_.scale(u); }
  [[nodiscard]] const S* transport_block(Index edge) const noexcept {
    return transport_.data() + edge * Sizes::transport;
  }

  /// Adds the arrays that build() writes.
  void list_memory(std::vector<Buffer<S>*>& list) {
    scalings_.list_memory(list);
    for (Buffer<S>* array : {&map_, &transport_, &arc_map_}) list.push_back(array);
  }
  /// Computes D, S and Q from the maps.
  ///
  /// \param weight         lanes-innermost edge weights w_e, or null for 1
  /// \param keep_maps      write maps()
  /// \param fill           called as fill(block, map) for every block, from any thread: sets both sides' Map
  template <class Fill>
  void build(Execution execution, const S* weight, bool keep_maps, const Fill& fill) {
    has_derivatives_ = false;
    S* arc_grams = arc_grams_->data();
    parallel_for(execution, blocks_->block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        Map map[2];
        fill(block, map);
        const int count = blocks_->lane_count(block);
        const P square = weight != nullptr ? squared_weight(weight, block) : P(S(1));
        for (int side = 0; side < 2; ++side) {
          if (keep_maps) store_map(map[side], maps(block, side));
          if constexpr (Sizes::map > 0) {
            if (!arc_map_.empty()) {
              detail::scatter_rows<Sizes::map>(map[side].data(), blocks_->arcs(block, side), count,
                                               arc_map_.data());
            }
          }
          if (!has_blocks_) continue;
          Gram<Family, P> g = gram<Family, P>(map[side]);
          if (weight != nullptr) g = square * g;
          P numbers[Sizes::triangle];
          NodeScalings<Family, S>::to_triangle(g, numbers);
          detail::scatter_rows<Sizes::triangle, arc_stride>(numbers, blocks_->arcs(block, side), count, arc_grams);
        }
        if (!has_blocks_) continue;
        Transport<Family, P> q = transport<Family, P>(map[0], map[1]);
        if (weight != nullptr) q = square * q;
        detail::store_rows<Sizes::transport>(q.data(), count, transport_.data() + block * W * Sizes::transport);
      }
    });
    if (!has_blocks_) return;
    scalings_.build(execution, graph_->own_node_count(), graph_->offsets(), arc_grams);
  }

  /// The same for maps that have been set.
  void build(Execution execution, const S* weight) { build(execution, weight, false, stored_maps()); }

  /// On a part of a graph, after build(): copies the scalings of the halo's nodes from their owners. Layers that read the
  /// scalings of both ends of an edge need it. backward() then expects of cut edges what flows through the part's own arcs,
  /// and gives derivatives of these scalings back. Of a whole graph it does nothing.
  void fetch_scales() {
    if (graph_->part() == nullptr) return;
    detail::fetch_halo(*graph_, scalings_.scales(), Index{Sizes::gram});
    has_halo_scales_ = own_arcs_ = true;
  }
  /// On a part of a graph, backward() then expects of cut edges what flows through the part's own arcs.
  void take_own_arcs() noexcept { own_arcs_ = true; }

  /// Computes the derivatives of the maps and gradient.weight_bar (added to) from the derivatives of L's blocks and of
  /// S. Lanes without an edge get meaningless numbers.
  ///
  /// \param fill  as build() takes it: gives the same maps again
  /// \param use   called as use(block, side, map, map_bar) for every incident pair's Map and its derivative, which it may
  ///              change
  template <class Fill, class Use>
  void backward(Execution execution, const S* weight, Gradient& gradient, const Fill& fill, const Use& use) const {
    begin_backward(execution, gradient);
    parallel_for(execution, blocks_->block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) backward_block(block, weight, gradient, fill, use);
    });
  }
  // The same in steps.

  /// Adds to the derivatives of D from the derivatives of S.
  void begin_backward(Execution execution, Gradient& gradient) const {
    if (!has_blocks_) return;
    if (has_halo_scales_) detail::give_halo_back(*graph_, gradient.scale_bar.data(), Index{Sizes::gram});
    if (!own_arcs_) share_cut_edges(gradient);
    scalings_.backward(execution, graph_->own_node_count(), gradient.scale_bar.data(), gradient.degree_bar.data());
  }
  /// Can take_derivatives() be called?
  [[nodiscard]] bool can_take_derivatives() const noexcept {
    return has_blocks_ && arc_map_.empty() && graph_->part() == nullptr;
  }
  /// Puts the derivatives of D and Q in place of these blocks, until the next build(). `gradient` is then free for another
  /// sheaf before backward_block().
  void take_derivatives(Gradient& gradient) noexcept {
    std::swap(transport_, gradient.off_diagonal_bar);
    std::swap(scalings_.degree_blocks(), gradient.degree_bar);
    has_derivatives_ = true;
  }
  /// The rest of backward() at a block of edges.
  template <class Fill, class Use>
  void backward_block(Index block, const S* weight, Gradient& gradient, const Fill& fill, const Use& use) const {
    if (has_blocks_) return backward_from_blocks(block, weight, gradient, fill, use);
    Map map[2];
    fill(block, map);
    for (int side = 0; side < 2; ++side) {
      Map map_bar = load_map_bar(block, side, gradient);
      use(block, side, map[side], map_bar);
    }
  }
  /// backward() with maps().
  template <class Use>
  void backward(Execution execution, const S* weight, Gradient& gradient, const Use& use) const {
    backward(execution, weight, gradient, stored_maps(), use);
  }

 private:
  /// Gives maps() to build() and backward().
  [[nodiscard]] auto stored_maps() const noexcept {
    return [this](Index block, Map(&map)[2]) {
      for (int side = 0; side < 2; ++side) map[side] = load_map(maps(block, side));
    };
  }
  /// Leaves half of the derivatives of cut edges to the other part.
  void share_cut_edges(Gradient& gradient) const {
    if (graph_->part() == nullptr) return;
    for (const std::int32_t e : graph_->part()->numbers().cut) {
      S* block = gradient.off_diagonal_bar.data() + Index{e} * Sizes::transport;
      for (int k = 0; k < Sizes::transport; ++k) block[k] *= S(0.5);
    }
  }
  [[nodiscard]] static P squared_weight(const S* weight, Index block) {
    const P w = P::load(weight + block * W);
    return w * w;
  }

  /// The derivative of the maps of a block as far as layers read them; not where none does.
  [[nodiscard]] Map load_map_bar(Index block, int side, const Gradient& gradient) const {
    Map r = Map::Constant(P(S(0)));
    if constexpr (Sizes::map > 0) {
      detail::gather_rows<Sizes::map>(gradient.map_bar.data(), blocks_->arcs(block, side), r.data());
    }
    return r;
  }
  template <class Fill, class Use>
  void backward_from_blocks(Index block, const S* weight, Gradient& gradient, const Fill& fill,
                            const Use& use) const {
    Map map[2], map_bar[2];
    fill(block, map);
    map_derivatives(block, weight, gradient, map, map_bar);
    for (int side = 0; side < 2; ++side) use(block, side, map[side], map_bar[side]);
  }
  /// The derivatives of the maps of a block, and of its weights. Compiled once, and not for every `fill` and `use`.
  SHEAFNN_NOINLINE void map_derivatives(Index block, const S* weight, Gradient& gradient, const Map (&map)[2],
                                        Map (&map_bar)[2]) const {
    const S* const off_diagonal_bar = (has_derivatives_ ? transport_ : gradient.off_diagonal_bar).data();
    const S* const all_degree_bars = has_derivatives_ ? scalings_.degree_block(0) : gradient.degree_bar.data();
    for (Map& bar : map_bar) bar = Map::Constant(P(S(0)));
    Transport<Family, P> q_bar;
    detail::load_rows<Sizes::transport>(off_diagonal_bar + block * W * Sizes::transport,
                                        blocks_->lane_count(block), q_bar.data());
    q_bar = -q_bar;
    P weight_bar = P(S(0));
    if (weight != nullptr) {
      weight_bar = inner_product(q_bar, transport<Family, P>(map[0], map[1]));
      q_bar = squared_weight(weight, block) * q_bar;
    }
    transport_backward<Family, P>(map[0], map[1], q_bar, map_bar[0], map_bar[1]);
    for (int side = 0; side < 2; ++side) {
      Gram<Family, P> degree_bar;
      detail::gather_rows<Sizes::gram>(all_degree_bars, blocks_->nodes(block, side), degree_bar.data());
      if (weight != nullptr) weight_bar += inner_product(degree_bar, gram<Family, P>(map[side]));
      if constexpr (!is_orthogonal<Family>) {
        if (weight != nullptr) degree_bar = squared_weight(weight, block) * degree_bar;
        gram_backward<Family, P>(map[side], degree_bar, map_bar[side]);
      }
      if (!gradient.map_bar.empty()) map_bar[side] += load_map_bar(block, side, gradient);
    }
    if (weight != nullptr) {
      S* out = gradient.weight_bar.data() + block * W;
      (P::load(out) + P(S(2)) * P::load(weight + block * W) * weight_bar).store(out);
    }
  }

  const Graph* graph_ = nullptr;
  const EdgeBlocks<S>* blocks_ = nullptr;
  NodeScalings<Family, S> scalings_;
  Buffer<S> map_;
  std::shared_ptr<ArcGrams> arc_grams_;
  Buffer<S> transport_;
  Buffer<S> arc_map_;
  bool has_halo_scales_ = false;  ///< fetch_scales()
  bool own_arcs_ = false;         ///< take_own_arcs()
  bool has_blocks_ = true;        ///< choose_parts()
  bool has_derivatives_ = false;  ///< take_derivatives()
};

template <RestrictionMapFamily Family, class S>
SheafBlocks<Family, S>::SheafBlocks(const Graph& graph, const EdgeBlocks<S>& blocks, Normalisation normalisation,
                                    std::shared_ptr<ArcGrams> arc_grams, bool has_maps)
    : graph_(&graph),
      blocks_(&blocks),
      scalings_(graph.node_count(), normalisation),
      map_(has_maps ? blocks.block_count() * 2 * Sizes::map * W : 0, to_be_written),
      arc_grams_(arc_grams != nullptr ? std::move(arc_grams) : std::make_shared<ArcGrams>()),
      transport_(blocks.block_count() * W * Sizes::transport, to_be_written) {
  const Index grams = graph.arc_count() * arc_stride;
  if (arc_grams_->size() < grams) arc_grams_->resize(grams);
}

}  // namespace sheafnn::layers
