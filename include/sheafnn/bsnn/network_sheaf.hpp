/// \file
/// NetworkSheaf: the restriction maps of one layer and the blocks of their normalised Laplacian, built W edges at a
/// time, and the backward pass from block derivatives to map derivatives.
///
/// Blocks: Δ_uv = −S_u F_aᵀ F_rev S_v per arc, Δ_uu = S_u D_u S_u per node (math: "Coboundary and Laplacian",
/// "Backward pass of one diffusion step"). The formulas themselves are in sheaf/blocks.hpp and sheaf/normalisation.hpp.
#pragma once

#include "sheafnn/bsnn/edge_blocks.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/sheaf/blocks.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn {

/// Sizes of a family's blocks, as numbers per node or arc.
template <class Family>
struct BlockSizes {
  static constexpr int dimension = Family::stalk_dimension;
  static constexpr int map = Family::map_size;
  static constexpr int gram = Family::gram_rows * Family::gram_cols;
  static constexpr int transport = Family::transport_rows * Family::transport_cols;
  static constexpr bool dense_gram = Family::kind == MapKind::dense && dimension > 1;
  /// Eigenvectors and eigenvalues kept per node for the backward pass of a dense S_u.
  static constexpr int eigen = dense_gram ? dimension * dimension + dimension : 0;
};

/// Derivatives that a NetworkSheaf's backward pass reads and writes; one set serves all layers in turn.
template <RestrictionMapFamily Family, class S>
struct NetworkSheafGradient {
  using Sizes = BlockSizes<Family>;

  NetworkSheafGradient() = default;
  NetworkSheafGradient(const Graph& graph, const EdgeBlocks<S>& blocks)
      : transport_bar(graph.edge_count() * Sizes::transport),
        diagonal_bar(graph.node_count() * Sizes::gram),
        degree_bar(graph.node_count() * Sizes::gram),
        arc_scale_bar(graph.arc_count() * Sizes::gram),
        map_bar(blocks.block_count() * 2 * Sizes::map * EdgeBlocks<S>::width),
        weight_bar(blocks.block_count() * EdgeBlocks<S>::width) {}

  Buffer<S> transport_bar;  ///< per edge e = {u, v}: derivative of Δ_uv, u < v (input)
  Buffer<S> diagonal_bar;   ///< per node: derivative of Δ_uu, symmetric (input)
  Buffer<S> degree_bar;     ///< per node: derivative of D_u
  Buffer<S> arc_scale_bar;  ///< per arc: its share of the derivative of S_source
  Buffer<S> map_bar;        ///< lanes-innermost, per incident pair (output)
  Buffer<S> weight_bar;     ///< lanes-innermost, per edge: derivative of w_e (output)
};

/// Maps, node scalings and Laplacian blocks of one sheaf.
template <RestrictionMapFamily Family, class S>
class NetworkSheaf {
 public:
  using Sizes = BlockSizes<Family>;
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  using Map = typename Family::template Map<P>;
  using Gradient = NetworkSheafGradient<Family, S>;

  NetworkSheaf() = default;
  NetworkSheaf(const Graph& graph, const EdgeBlocks<S>& blocks, Normalisation normalisation)
      : graph_(&graph),
        blocks_(&blocks),
        normalisation_(normalisation),
        map_(blocks.block_count() * 2 * Sizes::map * W),
        arc_gram_(graph.arc_count() * Sizes::gram),
        degree_block_(graph.node_count() * Sizes::gram),
        scale_(graph.node_count() * Sizes::gram),
        eigen_(graph.node_count() * Sizes::eigen),
        diagonal_(graph.node_count() * Sizes::gram),
        transport_(graph.arc_count() * Sizes::transport) {}

  /// Maps of a block, lanes-innermost; entries in Eigen's (column-major) order. To be filled before build().
  [[nodiscard]] S* maps(Index block, int side) noexcept {
    return map_.data() + (block * 2 + side) * Sizes::map * W;
  }
  [[nodiscard]] const S* maps(Index block, int side) const noexcept {
    return map_.data() + (block * 2 + side) * Sizes::map * W;
  }
  [[nodiscard]] static Map load_map(const S* lanes_of_map) {
    Map map = Map::Constant(P(S(1)));
    if constexpr (Sizes::map > 0) load_lanes<Sizes::map>(lanes_of_map, map.data());
    return map;
  }
  static void store_map(const Map& map, S* lanes_of_map) {
    if constexpr (Sizes::map > 0) store_lanes<Sizes::map>(map.data(), lanes_of_map);
  }

  /// Δ_uu per node and Δ_uv per arc, row after row of numbers in Eigen's order.
  [[nodiscard]] const S* diagonal(Index u) const noexcept { return diagonal_.data() + u * Sizes::gram; }
  [[nodiscard]] const S* transport_block(Index arc) const noexcept {
    return transport_.data() + arc * Sizes::transport;
  }

  /// Computes D, S and all blocks from the maps.
  ///
  /// \param weight  lanes-innermost edge weights w_e, or null for 1
  void build(int threads, const S* weight) {
    parallel_for(threads, blocks_->block_count(), 16, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        for (int side = 0; side < 2; ++side) {
          Gram<Family, P> g = gram<Family, P>(load_map(maps(block, side)));
          if (weight != nullptr) g = squared_weight(weight, block) * g;
          scatter_rows<Sizes::gram>(g.data(), blocks_->arcs(block, side), blocks_->lane_count(block),
                                    arc_gram_.data());
        }
      }
    });
    for_node_blocks(threads, [&](Index first, int count, const std::int32_t* rows) {
      for (int i = 0; i < count; ++i) sum_arcs(arc_gram_, first + i, degree_block_);
      Gram<Family, P> degree_block;
      gather_rows<Sizes::gram>(degree_block_.data(), rows, degree_block.data());
      const NodeScaling<Family, P> scaling =
          node_scaling<Family, P>(normalisation_, degree_block, neighbours(rows));
      const Gram<Family, P> diagonal = diagonal_block(scaling.scale, degree_block);
      scatter_rows<Sizes::gram>(scaling.scale.data(), rows, count, scale_.data());
      scatter_rows<Sizes::gram>(diagonal.data(), rows, count, diagonal_.data());
      if constexpr (Sizes::dense_gram) {
        P eigen[Sizes::eigen];
        pack_eigen(scaling, eigen);
        scatter_rows<Sizes::eigen>(eigen, rows, count, eigen_.data());
      }
    });
    parallel_for(threads, blocks_->block_count(), 16, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        const Gram<Family, P> scale_u = node_scale(block, 0), scale_v = node_scale(block, 1);
        const Transport<Family, P> q = weighted_transport(block, weight);
        const Transport<Family, P> forward = off_diagonal_block<Family, P>(scale_u, q, scale_v);
        const Transport<Family, P> backward = block_transpose(forward);
        const int count = blocks_->lane_count(block);
        scatter_rows<Sizes::transport>(forward.data(), blocks_->arcs(block, 0), count, transport_.data());
        scatter_rows<Sizes::transport>(backward.data(), blocks_->arcs(block, 1), count, transport_.data());
      }
    });
  }

  /// From gradient.transport_bar and gradient.diagonal_bar to gradient.map_bar (overwritten) and gradient.weight_bar
  /// (added to). Lanes that are no edges get meaningless numbers.
  void backward(int threads, const S* weight, Gradient& gradient) const {
    parallel_for(threads, blocks_->block_count(), 16, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) backward_transport(block, weight, gradient);
    });
    for_node_blocks(threads, [&](Index first, int count, const std::int32_t* rows) {
      backward_scaling(first, count, rows, gradient);
    });
    parallel_for(threads, blocks_->block_count(), 16, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) backward_gram(block, weight, gradient);
    });
  }

 private:
  /// body(first node, count, row numbers of W lanes) for blocks of W nodes.
  template <class Body>
  void for_node_blocks(int threads, const Body& body) const {
    parallel_for(threads, graph_->node_count(), 4 * W, [&](Index begin, Index end) {
      for (Index first = begin; first < end; first += W) {
        std::int32_t rows[W];
        for (int i = 0; i < W; ++i) rows[i] = static_cast<std::int32_t>(std::min(first + i, end - 1));
        body(first, static_cast<int>(std::min<Index>(W, end - first)), rows);
      }
    });
  }
  [[nodiscard]] P neighbours(const std::int32_t* rows) const {
    S values[W];
    for (int i = 0; i < W; ++i) values[i] = static_cast<S>(graph_->degree(rows[i]));
    return P::load(values);
  }
  /// out[u] = Σ over the arcs of u.
  void sum_arcs(const Buffer<S>& arc_values, Index u, Buffer<S>& out) const {
    S sum[Sizes::gram] = {};
    for (Index arc = graph_->first_arc(u); arc < graph_->first_arc(u + 1); ++arc) {
      for (int k = 0; k < Sizes::gram; ++k) sum[k] += arc_values[arc * Sizes::gram + k];
    }
    for (int k = 0; k < Sizes::gram; ++k) out[u * Sizes::gram + k] = sum[k];
  }
  [[nodiscard]] static P squared_weight(const S* weight, Index block) {
    const P w = P::load(weight + block * W);
    return w * w;
  }
  [[nodiscard]] Gram<Family, P> node_scale(Index block, int side) const {
    Gram<Family, P> r;
    gather_rows<Sizes::gram>(scale_.data(), blocks_->nodes(block, side), r.data());
    return r;
  }
  [[nodiscard]] Transport<Family, P> weighted_transport(Index block, const S* weight) const {
    Transport<Family, P> q = transport<Family, P>(load_map(maps(block, 0)), load_map(maps(block, 1)));
    if (weight != nullptr) q = squared_weight(weight, block) * q;
    return q;
  }

  static void pack_eigen(const NodeScaling<Family, P>& scaling, P* eigen) {
    constexpr int D = Sizes::dimension;
    for (int k = 0; k < D * D; ++k) eigen[k] = scaling.vectors(k % D, k / D);
    for (int k = 0; k < D; ++k) eigen[D * D + k] = scaling.root(k);
  }

  void backward_transport(Index block, const S* weight, Gradient& gradient) const {
    const Map map_u = load_map(maps(block, 0)), map_v = load_map(maps(block, 1));
    const Gram<Family, P> scale_u = node_scale(block, 0), scale_v = node_scale(block, 1);
    const Transport<Family, P> q = weighted_transport(block, weight);
    std::int32_t edges[W];
    for (int i = 0; i < W; ++i) {
      edges[i] = static_cast<std::int32_t>(std::min<Index>(block * W + i, blocks_->edge_count() - 1));
    }
    Transport<Family, P> block_bar, q_bar;
    gather_rows<Sizes::transport>(gradient.transport_bar.data(), edges, block_bar.data());
    Gram<Family, P> scale_u_bar, scale_v_bar;
    off_diagonal_block_backward<Family, P>(scale_u, q, scale_v, block_bar, q_bar, scale_u_bar, scale_v_bar);
    const int count = blocks_->lane_count(block);
    scatter_rows<Sizes::gram>(scale_u_bar.data(), blocks_->arcs(block, 0), count, gradient.arc_scale_bar.data());
    scatter_rows<Sizes::gram>(scale_v_bar.data(), blocks_->arcs(block, 1), count, gradient.arc_scale_bar.data());
    if (weight != nullptr) {
      const P w = P::load(weight + block * W);
      S* weight_bar = gradient.weight_bar.data() + block * W;
      const P unweighted = inner_product(q_bar, transport<Family, P>(map_u, map_v));
      (P::load(weight_bar) + P(S(2)) * w * unweighted).store(weight_bar);
      q_bar = (w * w) * q_bar;
    }
    Map u_bar = Map::Constant(P(S(0))), v_bar = Map::Constant(P(S(0)));
    transport_backward<Family, P>(map_u, map_v, q_bar, u_bar, v_bar);
    S* out = gradient.map_bar.data() + block * 2 * Sizes::map * W;
    store_map(u_bar, out);
    store_map(v_bar, out + Sizes::map * W);
  }

  void backward_scaling(Index first, int count, const std::int32_t* rows, Gradient& gradient) const {
    for (int i = 0; i < count; ++i) sum_arcs(gradient.arc_scale_bar, first + i, gradient.degree_bar);
    Gram<Family, P> degree_block, diagonal_bar, scale_bar;
    Gram<Family, P> degree_bar = Gram<Family, P>::Constant(P(S(0)));
    gather_rows<Sizes::gram>(gradient.degree_bar.data(), rows, scale_bar.data());
    gather_rows<Sizes::gram>(gradient.diagonal_bar.data(), rows, diagonal_bar.data());
    gather_rows<Sizes::gram>(degree_block_.data(), rows, degree_block.data());
    NodeScaling<Family, P> scaling;
    gather_rows<Sizes::gram>(scale_.data(), rows, scaling.scale.data());
    if constexpr (Sizes::dense_gram) {
      constexpr int D = Sizes::dimension;
      P eigen[Sizes::eigen];
      gather_rows<Sizes::eigen>(eigen_.data(), rows, eigen);
      for (int k = 0; k < D * D; ++k) scaling.vectors(k % D, k / D) = eigen[k];
      for (int k = 0; k < D; ++k) scaling.root(k) = eigen[D * D + k];
    }
    diagonal_block_backward(scaling.scale, degree_block, diagonal_bar, scale_bar, degree_bar);
    node_scaling_backward<Family, P>(normalisation_, scaling, scale_bar, degree_bar);
    scatter_rows<Sizes::gram>(degree_bar.data(), rows, count, gradient.degree_bar.data());
  }

  void backward_gram(Index block, const S* weight, Gradient& gradient) const {
    for (int side = 0; side < 2; ++side) {
      Gram<Family, P> degree_bar;
      gather_rows<Sizes::gram>(gradient.degree_bar.data(), blocks_->nodes(block, side), degree_bar.data());
      if constexpr (Family::kind == MapKind::rotation) {
        if (weight != nullptr) {
          const P w = P::load(weight + block * W);
          S* weight_bar = gradient.weight_bar.data() + block * W;
          (P::load(weight_bar) + P(S(2)) * w * degree_bar(0, 0)).store(weight_bar);
        }
      } else if constexpr (Sizes::map > 0) {
        S* bar = gradient.map_bar.data() + (block * 2 + side) * Sizes::map * W;
        Map map_bar = load_map(bar);
        gram_backward<Family, P>(load_map(maps(block, side)), degree_bar, map_bar);
        store_map(map_bar, bar);
      }
    }
  }

  const Graph* graph_ = nullptr;
  const EdgeBlocks<S>* blocks_ = nullptr;
  Normalisation normalisation_ = Normalisation::augmented;
  Buffer<S> map_, arc_gram_, degree_block_, scale_, eigen_, diagonal_, transport_;
};

}  // namespace sheafnn
