/// \file
/// NodeMaps: the conformal maps of a cooperative sheaf, T_u = τ_u P_u and S_u = σ_u R_u at every node u with rotations
/// P_u, R_u, and what its two operators scale with,
///
///     τ = exp(min(log τ, ln 10)),   a_u = (deg⁺_u τ_u² + 1)^{-1/2},   b_u = (deg⁻_u σ_u² + 1)^{-1/2};
///
/// with the derivatives in rotations and logarithms of scales. Source: math: "Cooperative sheaves".
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/kernels/node_maps.hpp"

namespace sheafnn::layers {

/// The two maps of a node: T, through which it receives, and S, through which it sends.
enum class MapSide : std::uint8_t { out, in };

/// Degrees of the nodes, padded to whole packs with zeros. Unchecked: indices of operators and blocks.
template <class S>
struct NodeDegrees {
  Index nodes = 0;
  Buffer<S> of[2];  ///< arcs that leave (MapSide::out) and enter (MapSide::in)
  bool in_degree_diagonal = false;
  Index total_nodes = 0;          ///< of the whole graph, if this is a part of one
  Buffer<std::uint32_t> address;  ///< on a part: indices of the nodes in the whole, padded as the degrees

  /// \param counts_entering  the diagonal of the second operator counts the arcs that enter a node
  explicit NodeDegrees(const ArcLists& arcs, bool counts_entering = false)
      : nodes(arcs.nodes), in_degree_diagonal(counts_entering), total_nodes(arcs.total_nodes()) {
    for (int side = 0; side < 2; ++side) {
      of[side].resize((nodes + lanes<S> - 1) / lanes<S> * lanes<S>);
      const NeighbourLists& lists = side == 0 ? arcs.out : arcs.in;
      for (Index u = 0; u < nodes; ++u) of[side][u] = static_cast<S>(lists.degree(u));
    }
    if (arcs.part == nullptr) return;
    address.resize(of[0].size());
    for (Index u = 0; u < nodes; ++u)
      address[u] = static_cast<std::uint32_t>(arcs.part->numbers().node[static_cast<std::size_t>(u)]);
  }
  /// What the diagonal of an operator counts: the arcs that leave a node, or the arcs that enter it.
  [[nodiscard]] const Buffer<S>& counted(int op) const noexcept { return of[in_degree_diagonal ? op : 0]; }
  /// Where the noise of a node's maps lies: its index in the whole graph.
  [[nodiscard]] std::uint32_t noise_address(Index u) const noexcept {
    return address.empty() ? static_cast<std::uint32_t>(u) : address[u];
  }
  /// Nodes in packs.
  [[nodiscard]] Index blocks() const noexcept { return of[0].size() / lanes<S>; }
  [[nodiscard]] int count(Index block) const noexcept {
    return static_cast<int>(std::min<Index>(lanes<S>, nodes - block * lanes<S>));
  }
};

/// Derivatives in the maps by what the operators multiply with them, as many values as a map may be varied in; see
/// cooperative_diffusion.hpp and kernels::MapDerivatives. Unchecked: the number of nodes.
template <int D, class S>
struct NodeMapsGradient {
  static constexpr int size = kernels::map_variations<D>;
  /// [operator][side], n × size: with the factor of the operator.
  Buffer<S> map[2][2];
  Buffer<S> diagonal[2];  ///< [operator], n: ⟨ȳ_u, x_u⟩
  Index nodes;            ///< n

  explicit NodeMapsGradient(Index node_count) : nodes(node_count) {
    const Index padded = (nodes + lanes<S> - 1) / lanes<S> * lanes<S>;
    for (int op = 0; op < 2; ++op) {
      for (Buffer<S>& one : map[op]) one.resize(nodes * size);
      diagonal[op].resize(padded);
    }
  }
};

/// What the maps of n nodes are made of, apart from their graph. Unchecked: their count.
template <int D, class S>
struct NodeMapRows {
  Buffer<S> rotation[2];   ///< [side], n × D², row by row
  Buffer<S> log_scale[2];  ///< [side], n, padded to whole packs; not limited

  /// Identity maps.
  explicit NodeMapRows(const NodeDegrees<S>& degrees) {
    for (int side = 0; side < 2; ++side) {
      rotation[side].resize(degrees.nodes * D * D);
      log_scale[side].resize(degrees.blocks() * lanes<S>);
      for (Index i = 0; i < rotation[side].size(); ++i) rotation[side][i] = i % (D * D) % (D + 1) == 0 ? S(1) : S(0);
      std::fill_n(log_scale[side].data(), log_scale[side].size(), S(0));
    }
  }
};

/// Maps of n nodes. Unchecked: indices of nodes, operators and blocks, and gradients of other graphs.
template <int D, class S>
class NodeMaps {
 public:
  static constexpr int W = lanes<S>;
  static constexpr int size = D * D;
  using P = Pack<S, W>;
  using Matrix = SquareMatrix<P, D>;
  static constexpr double largest_log_scale = kernels::largest_log_scale,
                          smallest_log_scale = kernels::smallest_log_scale;

  /// \param degrees    must outlive the maps
  /// \param conformal  have they scales? Otherwise τ = σ = 1
  NodeMaps(const NodeDegrees<S>& degrees, bool conformal) : degrees_(&degrees), conformal_(conformal) {
    for (int side = 0; side < 2; ++side) {
      map_[side].resize(degrees.nodes * size);
      for (Buffer<S>* one : {&scale_[side], &log_scale_[side], &factor_[side], &diagonal_[side]}) {
        one->resize(degrees.blocks() * W);
      }
    }
  }

  NodeMaps(const NodeDegrees<S>&&, bool) = delete;  // they would dangle

  [[nodiscard]] const NodeDegrees<S>& degrees() const noexcept { return *degrees_; }
  [[nodiscard]] Index node_count() const noexcept { return degrees_->nodes; }
  [[nodiscard]] bool conformal() const noexcept { return conformal_; }
  /// T_u or S_u, D × D row by row.
  [[nodiscard]] const S* map(MapSide side, Index u) const noexcept { return map_[int(side)].data() + u * size; }
  /// τ_u or σ_u.
  [[nodiscard]] S scale(MapSide side, Index u) const noexcept { return scale_[int(side)][u]; }
  /// a_u or b_u: of the first operator and of the second.
  [[nodiscard]] S factor(int op, Index u) const noexcept { return factor_[op][u]; }
  /// What the operators multiply x_u with: a² deg⁺ τ² and b² deg⁺ σ², or b² deg⁻ σ² with in_degree_diagonal.
  [[nodiscard]] S diagonal(int op, Index u) const noexcept { return diagonal_[op][u]; }
  /// The logarithm of the scales of a pack of nodes, before it is limited.
  [[nodiscard]] P log_scale(Index block, int side) const noexcept {
    return P::load(log_scale_[side].data() + block * W);
  }

  /// Sets one side of a pack of nodes. \param log_scale  not limited; ignored without scales
  void store(Index block, int side, const Matrix& rotation, const P& log_scale) {
    const Index first = block * W;
    const kernels::MapScaling<P> scaling(conformal_, log_scale, P::load(degrees_->of[side].data() + first),
                                         P::load(degrees_->counted(side).data() + first));
    scaling.scale.store(scale_[side].data() + first);
    log_scale.store(log_scale_[side].data() + first);
    scaling.factor.store(factor_[side].data() + first);
    scaling.diagonal.store(diagonal_[side].data() + first);
    P entries[size];
    for (int k = 0; k < size; ++k) entries[k] = scaling.scale * rotation(k / D, k % D);
    detail::store_rows<size>(entries, degrees_->count(block), map_[side].data() + first * size);
  }

  /// Sets packs [begin, end) of nodes.
  void store(Index begin, Index end, const NodeMapRows<D, S>& rows) {
    for (Index block = begin; block < end; ++block) {
      for (int side = 0; side < 2; ++side) {
        P entries[size];
        detail::load_rows<size>(rows.rotation[side].data() + block * W * size, degrees_->count(block), entries);
        Matrix rotation;
        for (int k = 0; k < size; ++k) rotation(k / D, k % D) = entries[k];
        store(block, side, rotation, P::load(rows.log_scale[side].data() + block * W));
      }
    }
  }
  /// The rows of the maps of every node.
  [[nodiscard]] NodeMapRows<D, S> rows() const {
    NodeMapRows<D, S> r(*degrees_);
    for (int side = 0; side < 2; ++side) {
      for (Index i = 0; i < map_[side].size(); ++i) r.rotation[side][i] = map_[side][i] / scale_[side][i / size];
      r.log_scale[side] = log_scale_[side];
    }
    return r;
  }

  /// The rotations of a pack of nodes, and the derivatives in them and in the logarithms of the scales.
  struct Derivative {
    Matrix rotation[2], rotation_bar[2];
    P log_scale_bar[2];
  };
  void derivative(Index block, const NodeMapsGradient<D, S>& gradient, Derivative& out) const {
    constexpr int count_of_map = NodeMapsGradient<D, S>::size;
    const Index first = block * W;
    const int count = degrees_->count(block);
    kernels::MapDerivatives<D, P> sums;
    for (int op = 0; op < 2; ++op) {
      for (int side = 0; side < 2; ++side) {
        P g[count_of_map];
        detail::load_rows<count_of_map>(gradient.map[op][side].data() + first * count_of_map, count, g);
        sums.add(op, side, g);
      }
    }
    for (int side = 0; side < 2; ++side) {
      P map[size];
      detail::load_rows<size>(map_[side].data() + first * size, count, map);
      const P scale = P::load(scale_[side].data() + first), inverse = P(S(1)) / scale;
      Matrix& rotation = out.rotation[side];
      for (int k = 0; k < size; ++k) rotation(k / D, k % D) = inverse * map[k];
      sums.rotation(side, rotation, out.rotation_bar[side]);
      out.log_scale_bar[side] =
          conformal_ ? sums.log_scale(side, log_scale(block, side), scale, P::load(factor_[side].data() + first),
                                      P::load(degrees_->of[side].data() + first),
                                      P::load(degrees_->counted(side).data() + first),
                                      P::load(gradient.diagonal[side].data() + first))
                     : P(S(0));
    }
  }

 private:
  const NodeDegrees<S>* degrees_;
  bool conformal_;
  Buffer<S> map_[2];  ///< n × D², row by row
  Buffer<S> scale_[2], log_scale_[2], factor_[2], diagonal_[2];
};

}  // namespace sheafnn::layers
