/// \file
/// Kernels of a directed layer and of its backward pass (math: "Directed sheaves" (3.52, 3.54, 3.56)). The three steps are
/// W = S Y, R = L W and Z = S R, with L_uv = −e^{iφ_a} Q_uv of an arc a = u → v. The equations at a node are in
/// kernels/complex.hpp, the phases in directed_phases.hpp; layers/directed_layer.hpp is for one network.
///
/// Features are n × D × 2f per instance, and a coordinate has f real parts, then f imaginary parts. They are features with
/// 2D coordinates and f channels, and an item is a node and four of the f channels.
#pragma once

#include <cstdint>

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/directed_phases.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/neighbour_sums.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/complex.hpp"

namespace sheafnn::batch::detail {

/// Copies coordinates 2i + part to [part][i], or back.
template <int D, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void split_parts(const Tile<S>* in, Tile<S> (&out)[2][D]) {
  SHEAFNN_UNROLL for (int k = 0; k < 2 * D; ++k) out[k % 2][k / 2] = in[k];
}
template <int D, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void join_parts(const Tile<S> (&in)[2][D], Tile<S>* out) {
  SHEAFNN_UNROLL for (int k = 0; k < 2 * D; ++k) out[k] = in[k % 2][k / 2];
}
/// Both parts of a node's coordinates. \param shape  2D coordinates, f channels
template <int D, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void load_parts(const FeatureShape<S>& shape, const NodeChannels& at,
                                                 const S* features, Tile<S> (&out)[2][D]) {
  Tile<S> own[2 * D];
  load_stalk(shape, at, features, own);
  split_parts<D>(own, out);
}
template <int D, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store_parts(const FeatureShape<S>& shape, const NodeChannels& at,
                                                  const Tile<S> (&values)[2][D], S* features) {
  Tile<S> own[2 * D];
  join_parts<D>(values, own);
  store_stalk(shape, at, own, features);
}
/// out = block · x for a node's block, a row of an array of D_u or S_u.
template <class Family, class S, int D>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void node_times_parts(const S* row, const Tile<S> (&x)[2][D],
                                                       Tile<S> (&out)[2][D]) {
  constexpr int size = sheaf::BlockSizes<Family>::gram;
  S block[size];
  load_row<size>(row, block);
  kernels::parts_times<size>(block, x, out);
}

/// What a walk multiplies the coordinates of neighbours with: −e^{iφ_a} Q_uv.
template <class Family, class S>
struct TurnedTransports {
  using Transports = SheafTransports<Family, S>;
  static constexpr int D = Family::stalk_dimension, learned = 2 * D, max_coordinates = learned;
  Transports transports;
  PhaseView<S> phases;

  /// The arrays of an instance.
  struct Numbers {
    const S* transport;
    PhaseView<S> phases;
  };
  [[nodiscard]] SHEAFNN_HD Index slot(Index instance) const { return transports.slot(instance); }
  [[nodiscard]] SHEAFNN_HD Numbers of(Index instance) const {
    return {transports.of(instance), phases.of(instance)};
  }

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE static void add(const Numbers& of, std::uint32_t, std::uint32_t edge,
                                                   bool turned, const Tile<S>* x, Tile<S>* sums) {
    constexpr int size = Transports::Sizes::transport;
    Tile<S> value[2][D], sum[2][D];
    split_parts<D>(x, value);
    split_parts<D>(sums, sum);
    S phase[2], q[size];
    of.phases.load(edge, phase);
    Transports::load(of.transport, edge, turned, q);
    kernels::subtract_turned<size, false>(q, Tile<S>(phase[0]), Tile<S>(turned ? -phase[1] : phase[1]), value,
                                          sum);
    join_parts<D>(sum, sums);
  }
};

/// L at one node and some channels: the sum over neighbours, then R = L W.
template <class Family, class S>
struct DirectedDiffusion : NeighbourSums<TurnedTransports<Family, S>, S> {
  using Sums = NeighbourSums<TurnedTransports<Family, S>, S>;
  using Sums::shape, Sums::features, Sums::blocks;
  using typename Sums::Place;
  static constexpr int D = Family::stalk_dimension;

  [[nodiscard]] SHEAFNN_HD const S* scale_of(const Place& place) const {
    return blocks.transports.sheaf.scale_of(place.slot, place.at.node);
  }
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void finish(const Place& place, const S* sums, Tile<S> (&r)[2][D]) const {
    Tile<S> own[2][D], total[2 * D], sum[2][D];
    load_parts<D>(shape, place.at, features, own);
    node_times_parts<Family>(blocks.transports.sheaf.degree_block_of(place.slot, place.at.node), own, r);
    unpack(sums, total);
    split_parts<D>(total, sum);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      r[0][i] += sum[0][i];
      r[1][i] += sum[1][i];
    }
  }
};
template <class Family, class S>
using DirectedTeam = WalkTeam<DirectedDiffusion<Family, S>, S>;

/// A matrix of each part; null: none. Both are the same one unless the imaginary part has weights of its own.
template <class S>
struct PartMatrices {
  const S *real, *imaginary;  ///< of run 0
  Index stride;               ///< from one run to the next

  [[nodiscard]] SHEAFNN_HD const S* of(int part, Index run) const {
    return (part == 0 ? real : imaginary) + run * stride;
  }
};
/// The sizes of features: as 2D coordinates of f channels, and as D coordinates of 2f.
template <class S>
struct PartShapes {
  FeatureShape<S> parts, whole;

  /// A node's features times B of each part, at some channels of it: Σ_k x[k] b[k, c].
  template <bool Aligned, int D>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void multiply_right(const NodeChannels& at, const S* features,
                                                       const PartMatrices<S>& b, Index run,
                                                       Tile<S> (&out)[2][D]) const {
    Tile<S> product[2 * D];
    if (b.real == nullptr) {
      load_stalk(parts, at, features, product);
      split_parts<D>(product, out);
      return;
    }
    multiply_row<Aligned>(parts, at, features, b.of(0, run) + at.channel, product);
    split_parts<D>(product, out);
    if (b.imaginary == b.real) return;
    Tile<S> other[2][D];
    multiply_row<Aligned>(parts, at, features, b.of(1, run) + at.channel, product);
    split_parts<D>(product, other);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[1][i] = other[1][i];
  }
  /// A of each part or, when Transposed, Aᵀ times the coordinates of a node.
  template <bool Transposed, int D>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void multiply_left(const PartMatrices<S>& a, Index run,
                                                      const Tile<S> (&in)[2][D], Tile<S> (&out)[2][D]) const {
    SHEAFNN_UNROLL for (int part = 0; part < 2; ++part) {
      if (a.real != nullptr) {
        detail::multiply_left<Transposed>(whole, a.of(part, run), in[part], out[part]);
      } else {
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[part][i] = in[part][i];
      }
    }
  }
};

/// X̃ Bᵀ, Y = (I ⊗ A) X̃ Bᵀ of each part, and W = S Y. item (node, channels), group: instance.
template <class Family, class S>
struct DirectedMixForward {
  static constexpr int D = Family::stalk_dimension;
  SheafRange range;
  SheafView<Family, S> sheaf;
  PartShapes<S> shape;
  Pass pass;
  PartMatrices<S> right, left;  ///< Bᵀ and A
  const S* x;
  S* product;  ///< not written where B is null
  S* y;        ///< not written where A is null
  S* w;

  [[nodiscard]] SHEAFNN_HD NodeChannels place(Index item, Index instance) const {
    return shape.parts.place(item, instance);
  }

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    const Index run = pass.run_of(at.instance);
    Tile<S> in[2][D], mixed[2][D], scaled[2][D];
    shape.template multiply_right<true>(at, x, right, run, in);
    if (right.real != nullptr) store_parts<D>(shape.parts, at, in, product);
    shape.template multiply_left<false>(left, run, in, mixed);
    if (left.real != nullptr) store_parts<D>(shape.parts, at, mixed, y);
    node_times_parts<Family>(sheaf.scale_of(range.slot(at.instance), at.node), mixed, scaled);
    store_parts<D>(shape.parts, at, scaled, w);
  }
};

/// R and X' = (1 + tanh ε) ∘ X − act(Z) from W.
template <class Family, class S>
struct DirectedForward : DirectedTeam<Family, S> {
  using typename DirectedTeam<Family, S>::Place;
  using DirectedTeam<Family, S>::diffusion;
  static constexpr int D = Family::stalk_dimension, gram = sheaf::BlockSizes<Family>::gram;
  kernels::DirectedEnd end;
  const S* epsilon;  ///< of run 0
  Index parameter_stride;
  const S* x;
  S* r;
  LayerOutput<S> output;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    const S* eps = epsilon + output.pass.run_of(place.at.instance) * parameter_stride;
    Tile<S> diffused[2][D], value[2][D], joined[2 * D];
    S scale[gram];
    diffusion.finish(place, sums, diffused);
    store_parts<D>(shape, place.at, diffused, r);
    load_parts<D>(shape, place.at, x, value);
    load_row<gram>(diffusion.scale_of(place), scale);
    end.forward<gram>(
        scale, [=](int i) { return kernels::gain(eps[i]); }, diffused, value);
    join_parts<D>(value, joined);
    output.store_value(shape, place.at, joined);
  }
};

/// Computes Z̄ and R̄ = S Z̄ from X̄'. item (node, channels), group: instance.
template <class Family, class S>
struct DirectedEndBackward {
  static constexpr int D = Family::stalk_dimension, gram = sheaf::BlockSizes<Family>::gram;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  kernels::DirectedEnd end;
  const S *r, *output_bar;
  S *z_bar, *r_bar;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    const S* row = sheaf.scale_of(range.slot(at.instance), at.node);
    Tile<S> bar[2][D], in[2][D];
    S scale[gram];
    load_parts<D>(shape, at, output_bar, bar);
    load_parts<D>(shape, at, r, in);
    load_row<gram>(row, scale);
    end.backward<gram>(scale, in, bar);
    store_parts<D>(shape, at, bar, z_bar);
    node_times_parts<Family>(row, bar, in);
    store_parts<D>(shape, at, in, r_bar);
  }
};

/// Computes W̄ = L R̄, since L is Hermitian, and Ȳ = S W̄.
template <class Family, class S>
struct DirectedDiffuseBackward : DirectedTeam<Family, S> {
  using typename DirectedTeam<Family, S>::Place;
  using DirectedTeam<Family, S>::diffusion;
  static constexpr int D = Family::stalk_dimension;
  S *w_bar, *y_bar;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    Tile<S> diffused[2][D], scaled[2][D];
    diffusion.finish(place, sums, diffused);
    node_times_parts<Family>(diffusion.scale_of(place), diffused, scaled);
    store_parts<D>(diffusion.shape, place.at, diffused, w_bar);
    store_parts<D>(diffusion.shape, place.at, scaled, y_bar);
  }
};

/// Computes P̄ = (I ⊗ A)ᵀ Ȳ of each part, and x̄ = (1 + tanh ε) ∘ x̄' + dropout(P̄ B). item (node, channels), group: instance.
template <class Family, class S>
struct DirectedMixBackward {
  static constexpr int D = Family::stalk_dimension;
  PartShapes<S> shape;
  const Run* runs;
  Pass pass;
  std::uint32_t layer;
  bool dropped;
  PartMatrices<S> right, left;  ///< B and A
  const S* epsilon;             ///< of run 0
  Index parameter_stride;
  const S* y_bar;
  S* p_bar;  ///< not written where A is null: it is Ȳ
  S* x_bar;

  [[nodiscard]] SHEAFNN_HD NodeChannels place(Index item, Index instance) const {
    return shape.parts.place(item, instance);
  }

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    const Index run = pass.run_of(at.instance);
    const S* eps = epsilon + run * parameter_stride;
    Tile<S> before[2][D], bar[2][D], joined[2 * D], direct[2 * D];
    if (left.real != nullptr) {
      load_parts<D>(shape.parts, at, y_bar, before);
      shape.template multiply_left<true>(left, run, before, bar);
      store_parts<D>(shape.parts, at, bar, p_bar);
    }
    shape.template multiply_right<false>(at, y_bar, right, run, before);
    shape.template multiply_left<true>(left, run, before, bar);
    join_parts<D>(bar, joined);
    if (dropped) {
      drop_stalk(shape.parts, at, pass.dropout<S>(runs, Purpose::layer_dropout, layer, at.instance), joined);
    }
    load_stalk(shape.parts, at, static_cast<const S*>(x_bar), direct);
    SHEAFNN_UNROLL for (int k = 0; k < 2 * D; ++k) joined[k] += kernels::gain(eps[k / 2]) * direct[k];
    store_stalk(shape.parts, at, joined, x_bar);
  }
};

/// Derivative of L_uv without its phase per edge, Re(R̄_u (e^{iφ} W_v)* + W_u (e^{iφ} R̄_v)*), and of random φ: a team per edge,
/// lanes over channels; group: instance.
template <class Family, class S>
struct DirectedEdgeGradient {
  using Scalar = S;
  static constexpr int D = Family::stalk_dimension, size = sheaf::BlockSizes<Family>::transport,
                       outputs = size + 1;
  GraphView<S> graph;
  TurnedTransports<Family, S> blocks;
  FeatureShape<S> shape;
  const S *w, *r_bar;
  S* out;        ///< BlockGradient::off_diagonal; null: the maps are not learned
  S* angle_bar;  ///< m per instance; null: phases are not random
  bool add;      ///< to `out`: another layer has the same sheaf
  int lanes;

  struct Place {
    Index instance = 0, edge = 0;
    Index u = 0, v = 0;  ///< positions of the ends' first values in the features
  };
  [[nodiscard]] SHEAFNN_HD Place place(Index edge, Index instance) const {
    const Index base = instance * shape.size(), row = shape.row();
    return {instance, edge, base + graph.edge_node[edge] * row, base + graph.edge_node[graph.edges + edge] * row};
  }

  SHEAFNN_HD void part(const Place& place, int lane, S* sums) const {
    const auto numbers = blocks.of(place.instance);
    S phase[2], q[size];
    numbers.phases.load(static_cast<std::uint32_t>(place.edge), phase);
    load_row<size>(blocks.transports.sheaf.transport_of(blocks.slot(place.instance), place.edge), q);
    const Tile<S> cosine(phase[0]), sine(phase[1]);
    for_lane_tiles<2 * D>(shape, lane, lanes, [&](std::uint32_t c, const auto& reader) {
      Tile<S> in[2 * D], w_u[2][D], w_v[2][D], r_u[2][D], r_v[2][D];
      const auto load = [&](const S* features, Tile<S>(&to)[2][D]) {
        reader.load(features + c, in);
        split_parts<D>(in, to);
      };
      load(w + place.u, w_u);
      load(w + place.v, w_v);
      load(r_bar + place.u, r_u);
      load(r_bar + place.v, r_v);
      kernels::turn<D>(cosine, sine, w_v);
      kernels::turn<D>(cosine, sine, r_v);
      if constexpr (sheaf::is_learned<Family>) {
        SHEAFNN_UNROLL for (int part = 0; part < 2; ++part) {
          kernels::add_products<D, size>(r_u[part], w_v[part], w_u[part], r_v[part], sums);
        }
      }
      if (angle_bar == nullptr) return;
      sums[size] += kernels::dot(kernels::angle_bar<size>(q, w_u, r_u, w_v, r_v), Tile<S>(S(1)));
    });
  }
  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (sheaf::is_learned<Family> && out != nullptr) {
      store_sums<size>(sums, add,
                       out + (blocks.slot(place.instance) * graph.edges + place.edge) *
                                 BlockRows<Family>::transport);
    }
    if (angle_bar != nullptr) angle_bar[place.instance * graph.edges + place.edge] = sums[size];
  }
};

}  // namespace sheafnn::batch::detail
