/// \file
/// Kernels of the maps of a cooperative sheaf, T and S at every node. They lead from what learners predict to the maps, and
/// from the derivatives of the two operators back. Formulas: kernels/node_maps.hpp. For one network: layers/node_maps.hpp,
/// point_node_maps.hpp.
#pragma once

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/tile.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/kernels/node_maps.hpp"
#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/sheaf/families/special_orthogonal.hpp"

namespace sheafnn::batch::detail {

/// The maps of one node, a row of values: T and S row by row, each padded. Then follow, for both sides, a and b, the diagonals
/// of the operators, τ and σ, log τ and log σ.
template <int D, class S>
class NodeMapRow {
 public:
  static constexpr int map_size = (D * D + 3) / 4 * 4, size = 2 * map_size + 8;
  using Matrix = SquareMatrix<S, D>;

  SHEAFNN_HD SHEAFNN_INLINE explicit NodeMapRow(S* row) : row_(row) {}

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S factor(int op) const { return number(0, op); }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S diagonal(int op) const { return number(1, op); }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S scale(int side) const { return number(2, side); }
  /// Not limited.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S log_scale(int side) const { return number(3, side); }
  [[nodiscard]] SHEAFNN_HD Matrix rotation(int side) const {
    S map[D * D];
    load(side, map);
    const S inverse = S(1) / scale(side);
    Matrix r;
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) r(k / D, k % D) = inverse * map[k];
    return r;
  }
  /// \param log_scale  ignored without scales
  SHEAFNN_HD void store(bool conformal, int side, const S& degree, const S& counted, const Matrix& rotation,
                        const S& log_scale) const {
    const kernels::MapScaling<S> scaling(conformal, log_scale, degree, counted);
    S map[D * D];
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) map[k] = scaling.scale * rotation(k / D, k % D);
    store_row<D * D>(map, row_ + side * map_size);
    number(0, side) = scaling.factor;
    number(1, side) = scaling.diagonal;
    number(2, side) = scaling.scale;
    number(3, side) = log_scale;
  }

  // The functions of the same names in kernels/node_maps.hpp, at four channels.

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void send(int op, const Tile<S>* x, Tile<S>* sent) const {
    S map[D * D];
    load(1, map);
    kernels::send<D>(map, factor(op), x, sent);
  }
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void receive(int op, const Tile<S>* x, const Tile<S>* sum, Tile<S>* y) const {
    S map[D * D];
    load(0, map);
    kernels::receive<D>(map, factor(op), diagonal(op), x, sum, y);
  }
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void give_back(int op, const Tile<S>* y_bar, Tile<S>* returned) const {
    S map[D * D];
    load(0, map);
    kernels::give_back<D>(map, factor(op), y_bar, returned);
  }
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void take_back(int op, const Tile<S>* sum, Tile<S>* x_bar) const {
    S map[D * D];
    load(1, map);
    kernels::take_back<D>(map, factor(op), sum, x_bar);
  }

 private:
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S& number(int which, int k) const {
    return row_[2 * (map_size + which) + k];
  }
  SHEAFNN_HD SHEAFNN_INLINE void load(int side, S* map) const { load_row<D * D>(row_ + side * map_size, map); }

  S* row_;
};

/// The maps of all nodes and instances.
template <int D, class S>
struct NodeMapView {
  Index nodes = 0;
  const S* degree[2] = {nullptr, nullptr};   ///< arcs that leave, and arcs that enter a node
  const S* counted[2] = {nullptr, nullptr};  ///< arcs that the diagonals of the two operators count
  bool conformal = true;                     ///< have they scales?
  S* rows = nullptr;

  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE NodeMapRow<D, S> of(Index instance, Index u) const {
    return NodeMapRow<D, S>(rows + (instance * nodes + u) * NodeMapRow<D, S>::size);
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE NodeMapRow<D, S> of(const NodeChannels& at) const {
    return of(at.instance, at.node);
  }
  SHEAFNN_HD void store(Index instance, Index u, int side, const SquareMatrix<S, D>& rotation,
                        const S& log_scale) const {
    of(instance, u).store(conformal, side, degree[side][u], counted[side][u], rotation, log_scale);
  }
};

/// A map of a node, as kernels count them: T of all nodes, then S.
struct NodeSide {
  Index node;
  int side;

  SHEAFNN_HD NodeSide(Index item, Index nodes)
      : node(item < nodes ? item : item - nodes), side(item < nodes ? 0 : 1) {}
};

/// The raw values that two learners predict, `size` per node and group, and their derivatives. A group is a run, or one of its
/// copies.
template <class S>
struct RawNodeMaps {
  Index nodes = 0;
  int size = 0;
  Divisor copies = 1;                     ///< groups of a run
  S* raw[2] = {nullptr, nullptr};         ///< of T and of S; without the bias until it has been added
  const S* bias[2] = {nullptr, nullptr};  ///< of run 0
  Index parameter_stride = 0;
  S* bar[2] = {nullptr, nullptr};

  [[nodiscard]] SHEAFNN_HD S* of(const NodeSide& at, Index group) const {
    return raw[at.side] + (group * nodes + at.node) * size;
  }
  [[nodiscard]] SHEAFNN_HD S* bar_of(const NodeSide& at, Index group) const {
    return bar[at.side] + (group * nodes + at.node) * size;
  }
  /// Adds the bias. \returns the raw values
  SHEAFNN_HD S* complete(const NodeSide& at, Index group) const {
    S* values = of(at, group);
    const S* own = bias[at.side] + group / copies * parameter_stride;
    for (int k = 0; k < size; ++k) values[k] += own[k];
    return values;
  }
};

/// The maps that learners predict. item: NodeSide, group: run.
template <int D, class S>
struct PredictNodeMaps {
  RawNodeMaps<S> raw;
  NodeMapView<D, S> maps;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const NodeSide at(item, maps.nodes);
    const S* values = raw.complete(at, run);
    SquareMatrix<S, D> rotation;
    PointMap<SpecialOrthogonal<D>>().map(values, rotation);
    maps.store(run, at.node, at.side, rotation, maps.conformal ? values[rotation::rotation_parameters<D>] : S(0));
  }
};
/// What follows NodeMapGradient where learners predict the maps: the derivatives of the raw values.
template <int D, class S>
struct PredictionGradient {
  RawNodeMaps<S> raw;

  SHEAFNN_HD void operator()(const NodeSide& at, Index run, const SquareMatrix<S, D>& rotation_bar,
                             const S& log_scale_bar) const {
    constexpr int q = rotation::rotation_parameters<D>;
    S* bar = raw.bar_of(at, run);
    PointMap<SpecialOrthogonal<D>>().backward(raw.of(at, run), rotation_bar, bar);
    if (raw.size > q) bar[q] = log_scale_bar;
  }
};

/// What the derivatives of the maps in the two operators are made of, at every node. Of x ↦ y, it is the sum received and
/// what is returned of ȳ. Also w = x̄ − diagonal ȳ, x and ȳ.
template <class S>
struct OperatorArrays {
  const S *sum[2], *returned[2], *w[2], *x[2], *bar[2];
};

/// Derivatives of both maps of a node in both operators, summed over channels: a team per node, lanes over channels; group:
/// instance. End: end(NodeSide, instance, R̄, derivative in log τ).
template <int D, class S, class End>
struct NodeMapGradient {
  using Scalar = S;
  static constexpr int size = kernels::map_variations<D>, diagonal_sums = 4 * size, outputs = diagonal_sums + 2;
  FeatureShape<S> shape;
  NodeMapView<D, S> maps;
  OperatorArrays<S> arrays;
  int lanes;
  End end;

  SHEAFNN_HD void part(Index u, Index instance, int lane, S* sums) const {
    const Index first = instance * shape.size() + u * shape.row();
    for_lane_tiles<D>(shape, lane, lanes, [&](std::uint32_t c, const auto& reader) {
      const Index at = first + static_cast<Index>(c);
      Tile<S> a[D], b[D];
      const auto add = [&](S* to) {
        kernels::for_map_products<D>(a, b, [&](int k, const Tile<S>& number) { to[k] += reduce_add(number); });
      };
      SHEAFNN_UNROLL for (int op = 0; op < 2; ++op) {
        reader.load(arrays.sum[op] + at, a);
        reader.load(arrays.returned[op] + at, b);
        add(sums + 2 * op * size);
        reader.load(arrays.w[op] + at, a);
        reader.load(arrays.x[op] + at, b);
        add(sums + (2 * op + 1) * size);
        reader.load(arrays.bar[op] + at, a);
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sums[diagonal_sums + op] += kernels::dot(a[i], b[i]);
      }
    });
  }
  SHEAFNN_HD void finish(Index u, Index instance, const S* sums) const {
    kernels::MapDerivatives<D, S> derivatives;
    SHEAFNN_UNROLL for (int op = 0; op < 2; ++op) {
      SHEAFNN_UNROLL for (int side = 0; side < 2; ++side) derivatives.add(op, side, sums + (2 * op + side) * size);
    }
    const NodeMapRow<D, S> row = maps.of(instance, u);
    for (int side = 0; side < 2; ++side) {
      SquareMatrix<S, D> rotation_bar;
      derivatives.rotation(side, row.rotation(side), rotation_bar);
      const S log_scale_bar =
          maps.conformal
              ? derivatives.log_scale(side, row.log_scale(side), row.scale(side), row.factor(side),
                                      maps.degree[side][u], maps.counted[side][u], sums[diagonal_sums + side])
              : S(0);
      end(NodeSide(side * maps.nodes + u, maps.nodes), instance, rotation_bar, log_scale_bar);
    }
  }
};

}  // namespace sheafnn::batch::detail
