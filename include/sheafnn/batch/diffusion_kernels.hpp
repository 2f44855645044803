/// \file
/// Kernels of a diffusion layer that walk along edges, X' = (1 + tanh ε) ∘ X − ELU(Δ Y) in three steps W = S Y, R
/// = L W, Z = S R, and their backward pass (docs/math.md, "Diffusion in three steps"; for one network
/// layers/diffusion.hpp and layers/diffusion_layer.hpp). Features as in feature_kernels.hpp.
///
/// Unchecked: numbers of items, runs, instances and lanes, and the room behind pointers and views; BatchNetwork and
/// BatchTrainer check what they are given.
#pragma once

#include <cmath>

#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/sheaf_backward_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::batch::detail {

/// Adds Σ L_uv w_v over arcs first, first + step, … below last of a node, at one channel: D learned coordinates,
/// then the fixed filters' plain sums of neighbours. `features` points at the channel of the first node.
template <class Family, class S>
SHEAFNN_HD SHEAFNN_INLINE void add_neighbours(const GraphView<S>& graph, const S* transport,
                                              const FeatureShape<S>& shape, std::int32_t first, std::int32_t last,
                                              const S* features, S* sums, int step = 1) {
  constexpr int D = Family::stalk_dimension, size = BlockSizes<Family>::transport;
  const Index f = shape.channels, row = shape.row(), m = graph.edges;
  SHEAFNN_UNROLL_FOUR for (std::int32_t arc = first; arc < last; arc += step) {
    const Index pair = graph.arc_pair[arc];
    const S* x = features + graph.target[arc] * row;
    // From the smaller endpoint (side 0) L_uv = −Q_e, from the larger one −Q_eᵀ.
    const bool turned = pair >= m;
    const S* q = transport + (turned ? pair - m : pair) * size;
    if constexpr (size == D * D && D > 1) {
      const int across = turned ? D : 1, down = turned ? 1 : D;
      SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
        const S value = x[j * f];
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sums[i] -= q[i * across + j * down] * value;
      }
    } else {
      SHEAFNN_UNROLL for (int j = 0; j < D; ++j) sums[j] -= q[size == 1 ? 0 : j] * x[j * f];
    }
    SHEAFNN_UNROLL for (int i = D; i < D + 2; ++i) {
      if (i < shape.coordinates) sums[i] += x[i * f];
    }
  }
}

/// The sum over one segment of a high-degree node's arcs; item (segment, channel), group: instance.
template <class Family, class S>
struct SegmentNeighbours {
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  const S* features;
  S* out;  ///< segments × d' × f per instance

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    constexpr int D = Family::stalk_dimension;
    const Index f = shape.channels, segment = item / f, c = item % f;
    const std::int32_t first = graph.segment_arc[segment], end = graph.offset[graph.segment_node[segment] + 1];
    const std::int32_t last = first + GraphView<S>::segment < end ? first + GraphView<S>::segment : end;
    S sums[D + 2] = {};
    add_neighbours<Family>(graph,
                           sheaf.transport + range.slot(instance) * graph.edges * BlockSizes<Family>::transport,
                           shape, first, last, features + instance * shape.size() + c, sums);
    S* to = out + (instance * graph.segments + segment) * shape.row() + c;
    SHEAFNN_UNROLL for (int i = 0; i < D + 2; ++i) {
      if (i < shape.coordinates) to[i * f] = sums[i];
    }
  }
};

/// L at one node and channel, for other kernels: a team adds up the arcs, lanes over arcs (GraphView::gather_lanes, 1
/// on most graphs), or the sums of SegmentNeighbours for high-degree nodes. Then R = L W and Z = S R, for D learned
/// coordinates and the fixed filters after them.
template <class Family, class S>
struct Diffusion {
  using Sizes = BlockSizes<Family>;
  static constexpr int D = Family::stalk_dimension, max_coordinates = D + 2;
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  const S* features;  ///< W
  const S* partial;   ///< from SegmentNeighbours

  /// A lane's part of the sum over neighbours; item (node, channel).
  SHEAFNN_HD SHEAFNN_INLINE void gather(Index item, Index instance, int lane, int lanes, S* sums) const {
    const Index u = item / shape.channels, c = item % shape.channels;
    const std::int32_t segment = graph.node_segment[u], last_segment = graph.node_segment[u + 1];
    if (segment == last_segment) {
      add_neighbours<Family>(graph, sheaf.transport + range.slot(instance) * graph.edges * Sizes::transport, shape,
                             graph.offset[u] + lane, graph.offset[u + 1], features + instance * shape.size() + c,
                             sums, lanes);
    } else if (lane == 0) {
      const S* parts = partial + instance * graph.segments * shape.row() + c;
      for (std::int32_t s = segment; s < last_segment; ++s) {
        SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
          if (i < shape.coordinates) sums[i] += parts[s * shape.row() + i * shape.channels];
        }
      }
    }
  }
  /// R and Z from the sum.
  SHEAFNN_HD SHEAFNN_INLINE void finish(Index item, Index instance, const S* sums, S* r, S* z) const {
    const Index f = shape.channels, u = item / f, node = range.slot(instance) * graph.nodes + u;
    const S* own = features + instance * shape.size() + u * shape.row() + item % f;
    S x[D];
    load_stalk<D>(own, f, x);
    times<D, Sizes::gram>(sheaf.degree_block + node * Sizes::gram, x, r);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) r[i] += sums[i];
    times<D, Sizes::gram>(sheaf.scale + node * Sizes::gram, r, z);
    SHEAFNN_UNROLL for (int i = D; i < max_coordinates; ++i) {
      if (i < shape.coordinates) {
        r[i] = graph.degree[u] * own[i * f] + shape.filter_sign[i - D] * sums[i];
        z[i] = graph.inverse_root[u] * r[i];
      }
    }
  }
};

/// The diffusion of `features`, after sums over the arcs of high-degree nodes in segments.
///
/// \param segments  for these sums: segments × d' × f per instance
template <class Executor, class Family, class S>
[[nodiscard]] Diffusion<Family, S> begin_diffusion(Executor& executor, Index instances, const GraphView<S>& graph,
                                                   const SheafRange& range, const SheafView<Family, S>& sheaf,
                                                   const FeatureShape<S>& shape, const S* features, S* segments) {
  executor.launch(graph.segments * shape.channels, instances,
                  SegmentNeighbours<Family, S>{graph, range, sheaf, shape, features, segments});
  return {graph, range, sheaf, shape, features, segments};
}

/// What a layer ends with, for other kernels: X' = (1 + tanh ε) ∘ X − ELU(Z).
template <class S>
struct LayerOutput {
  const S* epsilon = nullptr;
  Index parameter_stride = 0;
  bool activation = true;
  const S* x = nullptr;
  S* out = nullptr;
  const Run* runs = nullptr;
  Pass pass;
  std::uint32_t next_layer = 0;
  S* dropped = nullptr;  ///< X' after the next layer's dropout; null: none

  /// At a node and channel. \param z  of the coordinates, at most Max; becomes X'
  template <int Max>
  SHEAFNN_HD SHEAFNN_INLINE void store(const FeatureShape<S>& shape, Index item, Index instance, S (&z)[Max]) const {
    using std::tanh;
    const Index f = shape.channels, u = item / f, c = item % f, d = shape.coordinates;
    const Index index = instance * shape.size() + u * shape.row() + c;
    const S* eps = epsilon + pass.run_of(instance) * parameter_stride;
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
      if (i < d) {
        z[i] = (S(1) + tanh(eps[i])) * x[index + i * f] - (activation ? elu(z[i]) : z[i]);
        out[index + i * f] = z[i];
      }
    }
    if (dropped == nullptr) return;
    const ElementDropout<S> dropout = pass.dropout<S>(runs, Purpose::layer_dropout, next_layer, instance);
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
      if (i < d) dropped[index + i * f] = dropout(u * shape.row() + i * f + c, z[i]);
    }
  }
};

/// Forward: R and X'. A team, or a lane alone, per item (node, channel); group: instance.
template <class Family, class S>
struct DiffuseForward {
  using Scalar = S;
  static constexpr int max_coordinates = Diffusion<Family, S>::max_coordinates, outputs = max_coordinates;
  Diffusion<Family, S> diffusion;  ///< of W
  S* r;
  LayerOutput<S> output;
  int lanes;

  SHEAFNN_HD void part(Index item, Index instance, int lane, S* sums) const {
    diffusion.gather(item, instance, lane, lanes, sums);
  }
  SHEAFNN_HD void finish(Index item, Index instance, const S* sums) const {
    const FeatureShape<S>& shape = diffusion.shape;
    const Index f = shape.channels, index = instance * shape.size() + item / f * shape.row() + item % f;
    S diffused[max_coordinates] = {}, value[max_coordinates] = {};
    diffusion.finish(item, instance, sums, diffused, value);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (i < shape.coordinates) r[index + i * f] = diffused[i];
    }
    output.store(shape, item, instance, value);
  }
};

/// z̄ = −x̄ ∘ ELU′(S r), r̄ = S z̄. item (node, channel), group: instance.
template <class Family, class S>
struct ActivationBackward {
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  bool activation;
  const S* r;
  const S* x_bar;
  S* z_bar;
  S* r_bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    constexpr int D = Family::stalk_dimension, size = BlockSizes<Family>::gram;
    const Index f = shape.channels, u = item / f;
    const Index index = instance * shape.size() + u * shape.row() + item % f;
    const S* scale = sheaf.scale + (range.slot(instance) * graph.nodes + u) * size;
    S in[D], z[D], bar[D];
    load_stalk<D>(r + index, f, in);
    times<D, size>(scale, in, z);
    for (int i = 0; i < D; ++i) {
      const S slope = activation ? elu_derivative(z[i]) : S(1);
      bar[i] = -x_bar[index + i * f] * slope;
    }
    store_stalk<D>(bar, f, z_bar + index);
    times<D, size>(scale, bar, in);
    store_stalk<D>(in, f, r_bar + index);
    const S root = graph.inverse_root[u];
    for (Index i = D; i < shape.coordinates; ++i) {
      const S slope = activation ? elu_derivative(root * r[index + i * f]) : S(1);
      const S value = -x_bar[index + i * f] * slope;
      z_bar[index + i * f] = value;
      r_bar[index + i * f] = root * value;
    }
  }
};

/// Backward of the three steps, which are symmetric: W̄ = L R̄ and Ȳ = S W̄. A team, or a lane alone, per item
/// (node, channel); group: instance.
template <class Family, class S>
struct DiffuseBackward {
  using Scalar = S;
  static constexpr int max_coordinates = Diffusion<Family, S>::max_coordinates, outputs = max_coordinates;
  Diffusion<Family, S> diffusion;  ///< of R̄
  S* w_bar;
  S* y_bar;
  int lanes;

  SHEAFNN_HD void part(Index item, Index instance, int lane, S* sums) const {
    diffusion.gather(item, instance, lane, lanes, sums);
  }
  SHEAFNN_HD void finish(Index item, Index instance, const S* sums) const {
    const FeatureShape<S>& shape = diffusion.shape;
    const Index f = shape.channels, index = instance * shape.size() + item / f * shape.row() + item % f;
    S diffused[max_coordinates] = {}, scaled[max_coordinates] = {};
    diffusion.finish(item, instance, sums, diffused, scaled);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (i < shape.coordinates) {
        w_bar[index + i * f] = diffused[i];
        y_bar[index + i * f] = scaled[i];
      }
    }
  }
};

/// sums += a bᵀ of one channel, reduced to the kind of block: 1, D or D² numbers.
template <int D, int Size, class S>
SHEAFNN_HD SHEAFNN_INLINE void add_products(const S* a, const S* b, S* sums) {
  SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
    if constexpr (Size == D * D && D > 1) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sums[j * D + i] += a[i] * b[j];
    } else {
      sums[Size == 1 ? 0 : j] += a[j] * b[j];
    }
  }
}

/// Features V_0, V_1, … of applications of Δ to them: the first by themselves, the others one after another.
template <class S>
struct StackedFeatures {
  const S* first = nullptr;
  const S* others = nullptr;
  Index stride = 0;  ///< of the others

  [[nodiscard]] SHEAFNN_HD const S* at(Index k) const noexcept {
    return k == 0 ? first : others + (k - 1) * stride;
  }
};

/// Derivative of L_uv per edge, R̄_u W_vᵀ + W_u R̄_vᵀ, summed over applications of Δ: a team per edge, lanes over
/// channels; group: instance.
template <class Family, class S>
struct EdgeGradient {
  using Scalar = S;
  static constexpr int outputs = BlockSizes<Family>::transport;
  GraphView<S> graph;
  SheafRange range;
  FeatureShape<S> shape;
  const S* w;
  const S* r_bar;
  S* out;    ///< BlockGradient::off_diagonal
  bool add;  ///< another layer has the same sheaf
  int lanes;
  Index applications = 1;
  Index stride = 0;  ///< of w and r_bar, from one application to the next

  SHEAFNN_HD void part(Index edge, Index instance, int lane, S* sums) const {
    constexpr int D = Family::stalk_dimension;
    const Index f = shape.channels, base = instance * shape.size();
    const Index u = base + graph.edge_node[edge] * shape.row();
    const Index v = base + graph.edge_node[graph.edges + edge] * shape.row();
    for (Index k = 0; k < applications; ++k) {
      const S *features = w + k * stride, *bar = r_bar + k * stride;
      for (Index c = lane; c < f; c += lanes) {
        S w_u[D], w_v[D], r_u[D], r_v[D];
        load_stalk<D>(features + u + c, f, w_u);
        load_stalk<D>(features + v + c, f, w_v);
        load_stalk<D>(bar + u + c, f, r_u);
        load_stalk<D>(bar + v + c, f, r_v);
        add_products<D, outputs>(r_u, w_v, sums);
        add_products<D, outputs>(w_u, r_v, sums);
      }
    }
  }
  SHEAFNN_HD void finish(Index edge, Index instance, const S* sums) const {
    S* to = out + (range.slot(instance) * graph.edges + edge) * outputs;
    for (int k = 0; k < outputs; ++k) to[k] = add ? to[k] + sums[k] : sums[k];
  }
};

/// Derivatives of D_u, R̄_u W_uᵀ, and of S_u, Z̄_u R_uᵀ + W̄_u Y_uᵀ, summed over applications of Δ: a team per node;
/// group: instance.
template <class Family, class S>
struct NodeGradient {
  using Scalar = S;
  static constexpr int size = BlockSizes<Family>::gram;
  static constexpr int outputs = 2 * size;
  SheafRange range;
  FeatureShape<S> shape;
  StackedFeatures<S> y;
  const S *w, *r, *z_bar, *r_bar, *w_bar;
  BlockGradient<S> out;
  bool add;
  int lanes;
  Index applications = 1;
  Index stride = 0;  ///< of w … w_bar, from one application to the next

  SHEAFNN_HD void part(Index u, Index instance, int lane, S* sums) const {
    constexpr int D = Family::stalk_dimension;
    const Index f = shape.channels;
    for (Index k = 0; k < applications; ++k) {
      for (Index c = lane; c < f; c += lanes) {
        const Index node = instance * shape.size() + u * shape.row() + c, index = k * stride + node;
        S a[D], b[D];
        load_stalk<D>(r_bar + index, f, a);
        load_stalk<D>(w + index, f, b);
        add_products<D, size>(a, b, sums);
        load_stalk<D>(z_bar + index, f, a);
        load_stalk<D>(r + index, f, b);
        add_products<D, size>(a, b, sums + size);
        load_stalk<D>(w_bar + index, f, a);
        load_stalk<D>(y.at(k) + node, f, b);
        add_products<D, size>(a, b, sums + size);
      }
    }
  }
  SHEAFNN_HD void finish(Index u, Index instance, const S* sums) const {
    const Index index = (range.slot(instance) * shape.nodes + u) * size;
    for (int k = 0; k < size; ++k) {
      out.degree[index + k] = add ? out.degree[index + k] + sums[k] : sums[k];
      out.scale[index + k] = add ? out.scale[index + k] + sums[size + k] : sums[size + k];
    }
  }
};

}  // namespace sheafnn::batch::detail
