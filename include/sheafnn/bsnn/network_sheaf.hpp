/// \file
/// NetworkSheaf: the restriction maps of one layer and what their normalised Laplacian is made of, built W edges at a
/// time, and the backward pass from the derivatives of these parts to those of the maps.
///
/// Δ = S L S is never multiplied out: features are scaled per node, diffused with L (per edge Q_e = F_aᵀ F_rev, per node
/// D_u), and scaled again, so that normalisation costs nothing per edge (docs/math.md, "Diffusion in three steps").
/// The formulas are in sheaf/blocks.hpp and sheaf/normalisation.hpp.
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
      : off_diagonal_bar(graph.edge_count() * Sizes::transport),
        degree_bar(graph.node_count() * Sizes::gram),
        scale_bar(graph.node_count() * Sizes::gram),
        map_bar(blocks.block_count() * 2 * Sizes::map * EdgeBlocks<S>::width),
        weight_bar(blocks.block_count() * EdgeBlocks<S>::width) {}

  /// Zeros the derivatives that layers add to.
  void clear() {
    off_diagonal_bar.fill(S(0));
    degree_bar.fill(S(0));
    scale_bar.fill(S(0));
  }

  Buffer<S> off_diagonal_bar;  ///< per edge {u, v}, u < v: derivative of L_uv = −Q_e (input)
  Buffer<S> degree_bar;        ///< per node: derivative of D_u (input; the total after backward)
  Buffer<S> scale_bar;         ///< per node: derivative of S_u, not symmetrised (input)
  Buffer<S> map_bar;           ///< lanes-innermost, per incident pair (output)
  Buffer<S> weight_bar;        ///< lanes-innermost, per edge: derivative of w_e (output, added to)
};

/// Maps, node scalings and the Laplacian's blocks of one sheaf.
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
        transport_(graph.edge_count() * Sizes::transport) {}

  /// Maps of a block, lanes-innermost; entries in Eigen's (column-major) order. To be filled before or in build().
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

  /// D_u and S_u per node, Q_e = w_e² F_aᵀ F_rev per edge (a from its smaller endpoint), in Eigen's order.
  [[nodiscard]] const S* degree_block(Index u) const noexcept { return degree_block_.data() + u * Sizes::gram; }
  [[nodiscard]] const S* scale(Index u) const noexcept { return scale_.data() + u * Sizes::gram; }
  [[nodiscard]] const S* transport_block(Index edge) const noexcept {
    return transport_.data() + edge * Sizes::transport;
  }

  /// Computes D, S and Q from the maps.
  ///
  /// \param weight  lanes-innermost edge weights w_e, or null for 1
  /// \param fill    called as fill(block) before a block is read, from any thread: writes its maps(), while they are
  ///                near
  template <class Fill>
  void build(int threads, const S* weight, const Fill& fill) {
    parallel_for(threads, blocks_->block_count(), 16, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        fill(block);
        const int count = blocks_->lane_count(block);
        const Map map[2] = {load_map(maps(block, 0)), load_map(maps(block, 1))};
        const P square = weight != nullptr ? squared_weight(weight, block) : P(S(1));
        for (int side = 0; side < 2; ++side) {
          Gram<Family, P> g = gram<Family, P>(map[side]);
          if (weight != nullptr) g = square * g;
          scatter_rows<Sizes::gram>(g.data(), blocks_->arcs(block, side), count, arc_gram_.data());
        }
        Transport<Family, P> q = transport<Family, P>(map[0], map[1]);
        if (weight != nullptr) q = square * q;
        store_rows<Sizes::transport>(q.data(), count, transport_.data() + block * W * Sizes::transport);
      }
    });
    for_node_blocks(threads, [&](Index first, int count) {
      for (int i = 0; i < count; ++i) sum_arcs(first + i);
      Gram<Family, P> degree_block;
      load_rows<Sizes::gram>(degree_block_.data() + first * Sizes::gram, count, degree_block.data());
      const NodeScaling<Family, P> scaling =
          node_scaling<Family, P>(normalisation_, degree_block, neighbours(first, count));
      store_rows<Sizes::gram>(scaling.scale.data(), count, scale_.data() + first * Sizes::gram);
      if constexpr (Sizes::dense_gram) {
        P eigen[Sizes::eigen];
        pack_eigen(scaling, eigen);
        store_rows<Sizes::eigen>(eigen, count, eigen_.data() + first * Sizes::eigen);
      }
    });
  }

  /// The same for maps that are there.
  void build(int threads, const S* weight) {
    build(threads, weight, [](Index) {});
  }

  /// From the derivatives of L's blocks and of S to gradient.map_bar (overwritten) and gradient.weight_bar (added to).
  /// Lanes that are no edges get meaningless numbers.
  void backward(int threads, const S* weight, Gradient& gradient) const {
    for_node_blocks(threads, [&](Index first, int count) { backward_scaling(first, count, gradient); });
    parallel_for(threads, blocks_->block_count(), 16, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) backward_block(block, weight, gradient);
    });
  }

 private:
  /// body(first node, count) for blocks of W nodes.
  template <class Body>
  void for_node_blocks(int threads, const Body& body) const {
    parallel_for(threads, graph_->node_count(), 4 * W, [&](Index begin, Index end) {
      for (Index first = begin; first < end; first += W) {
        body(first, static_cast<int>(std::min<Index>(W, end - first)));
      }
    });
  }
  [[nodiscard]] P neighbours(Index first, int count) const {
    S values[W] = {};
    for (int i = 0; i < count; ++i) values[i] = static_cast<S>(graph_->degree(first + i));
    return P::load(values);
  }
  /// D_u = Σ over the arcs of u.
  void sum_arcs(Index u) {
    S sum[Sizes::gram] = {};
    for (Index arc = graph_->first_arc(u); arc < graph_->first_arc(u + 1); ++arc) {
      for (int k = 0; k < Sizes::gram; ++k) sum[k] += arc_gram_[arc * Sizes::gram + k];
    }
    for (int k = 0; k < Sizes::gram; ++k) degree_block_[u * Sizes::gram + k] = sum[k];
  }
  [[nodiscard]] static P squared_weight(const S* weight, Index block) {
    const P w = P::load(weight + block * W);
    return w * w;
  }

  static void pack_eigen(const NodeScaling<Family, P>& scaling, P* eigen) {
    constexpr int D = Sizes::dimension;
    for (int k = 0; k < D * D; ++k) eigen[k] = scaling.vectors(k % D, k / D);
    for (int k = 0; k < D; ++k) eigen[D * D + k] = scaling.root(k);
  }

  /// Adds to gradient.degree_bar what comes through S_u.
  void backward_scaling(Index first, int count, Gradient& gradient) const {
    Gram<Family, P> scale_bar, degree_bar;
    load_rows<Sizes::gram>(gradient.scale_bar.data() + first * Sizes::gram, count, scale_bar.data());
    load_rows<Sizes::gram>(gradient.degree_bar.data() + first * Sizes::gram, count, degree_bar.data());
    NodeScaling<Family, P> scaling;
    load_rows<Sizes::gram>(scale_.data() + first * Sizes::gram, count, scaling.scale.data());
    if constexpr (Sizes::dense_gram) {
      constexpr int D = Sizes::dimension;
      P eigen[Sizes::eigen];
      load_rows<Sizes::eigen>(eigen_.data() + first * Sizes::eigen, count, eigen);
      for (int k = 0; k < D * D; ++k) scaling.vectors(k % D, k / D) = eigen[k];
      for (int k = 0; k < D; ++k) scaling.root(k) = eigen[D * D + k];
    }
    node_scaling_backward<Family, P>(normalisation_, scaling, scale_bar, degree_bar);
    store_rows<Sizes::gram>(degree_bar.data(), count, gradient.degree_bar.data() + first * Sizes::gram);
  }

  void backward_block(Index block, const S* weight, Gradient& gradient) const {
    const Map map[2] = {load_map(maps(block, 0)), load_map(maps(block, 1))};
    Map map_bar[2] = {Map::Constant(P(S(0))), Map::Constant(P(S(0)))};
    Transport<Family, P> q_bar;
    load_rows<Sizes::transport>(gradient.off_diagonal_bar.data() + block * W * Sizes::transport,
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
      gather_rows<Sizes::gram>(gradient.degree_bar.data(), blocks_->nodes(block, side), degree_bar.data());
      if constexpr (Family::kind == MapKind::rotation) {
        weight_bar += degree_bar(0, 0);
      } else if constexpr (Sizes::map > 0) {
        gram_backward<Family, P>(map[side], degree_bar, map_bar[side]);
      }
      store_map(map_bar[side], gradient.map_bar.data() + (block * 2 + side) * Sizes::map * W);
    }
    if (weight != nullptr) {
      S* out = gradient.weight_bar.data() + block * W;
      (P::load(out) + P(S(2)) * P::load(weight + block * W) * weight_bar).store(out);
    }
  }

  const Graph* graph_ = nullptr;
  const EdgeBlocks<S>* blocks_ = nullptr;
  Normalisation normalisation_ = Normalisation::augmented;
  Buffer<S> map_, arc_gram_, degree_block_, scale_, eigen_, transport_;
};

}  // namespace sheafnn
