/// \file
/// Kernels of a diffusion layer that work on one node at a time: dropout, Y = (I ⊗ A) dropout(X) Bᵀ and W = S Y. Also their
/// backward passes, and the backward pass of the activation. For one network: layers/feature_mixing.hpp.
///
/// Features are n × d' × f per instance, channels innermost. An item is a node and four channels, so that neighbouring
/// threads read neighbouring values and share the blocks they multiply with. D is the stalk dimension, d' ≥ D counts the
/// fixed filters. Positions within an instance have 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/graph.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/batch/sheaf_kernels.hpp"
#include "sheafnn/batch/tile.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"

namespace sheafnn::batch::detail {

/// A node and up to four channels of an instance.
struct NodeChannels {
  Index instance = 0;
  std::int32_t node = 0, channel = 0;  ///< the first channel
  std::uint32_t element = 0;           ///< position of the first channel and coordinate within the instance
  Index index = 0;                     ///< the same within all instances
  ChannelRange range;
};

/// Shape of the features and the fixed filters.
template <class S>
struct FeatureShape {
  Index nodes = 0, coordinates = 0, channels = 0;
  S filter_sign[2] = {S(0), S(0)};     ///< off-diagonal sign of the first and second fixed filter
  Divisor tiles = (channels + 3) / 4;  ///< of channels, of a node

  [[nodiscard]] SHEAFNN_HD Index row() const noexcept { return coordinates * channels; }
  [[nodiscard]] SHEAFNN_HD Index size() const noexcept { return nodes * row(); }
  /// The number of items of a kernel whose items are nodes and channels.
  [[nodiscard]] SHEAFNN_HD Index items() const noexcept { return nodes * tiles; }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE std::uint32_t stride() const noexcept {
    return static_cast<std::uint32_t>(channels);
  }
  /// Is there a coordinate i? \tparam Max  two more than the learned ones, which always exist
  template <int Max>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE bool has(int i) const noexcept {
    return i < Max - 2 || i < static_cast<int>(coordinates);
  }

  /// Where an item of such a kernel is.
  ///
  /// \param nodes_of  the node at each index; null: it is its own
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE NodeChannels place(Index item, Index instance,
                                                                    const std::int32_t* nodes_of = nullptr) const {
    const std::uint32_t i = static_cast<std::uint32_t>(item), number = tiles.quotient(i), f = stride();
    const std::uint32_t node = nodes_of != nullptr ? static_cast<std::uint32_t>(nodes_of[number]) : number;
    const std::uint32_t c = 4 * (i - number * tiles.value()), left = f - c;
    NodeChannels r;
    r.instance = instance;
    r.node = static_cast<std::int32_t>(node);
    r.channel = static_cast<std::int32_t>(c);
    r.element = node * static_cast<std::uint32_t>(row()) + c;
    r.index = instance * size() + static_cast<Index>(r.element);
    r.range = {static_cast<int>(left < 4 ? left : 4), f % 4 == 0};
    return r;
  }
};

/// out = block · x for a node's block, a row of an array of D_u or S_u; the fixed filters' coordinates are multiplied by
/// a number.
template <class Family, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void node_times(const S* row, const S& filters, const Tile<S>* x, Tile<S>* out) {
  constexpr int D = Family::stalk_dimension, size = sheaf::BlockSizes<Family>::gram;
  S block[size];
  load_row<size>(row, block);
  kernels::block_times<D, size>(block, x, out);
  SHEAFNN_UNROLL for (int i = D; i < D + 2; ++i) out[i] = filters * x[i];
}

/// use(i, address) for the coordinates that exist.
template <int Max, class S, class Number, class Use>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void for_coordinates(const FeatureShape<S>& shape, Number* first,
                                                      const Use& use) {
  SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
    if (shape.template has<Max>(i)) use(i, first + static_cast<std::uint32_t>(i) * shape.stride());
  }
}
/// The coordinates of a node, at most Max, at some channels; 0 where there are fewer.
template <int Max, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void load_stalk(const FeatureShape<S>& shape, const NodeChannels& at,
                                                 const S* features, Tile<S> (&out)[Max]) {
  SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) out[i] = Tile<S>(S(0));
  at.range.choose([&](auto range) {
    for_coordinates<Max>(shape, features + at.index, [&](int i, const S* from) { out[i] = range.load(from); });
  });
}
template <int Max, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store_stalk(const FeatureShape<S>& shape, const NodeChannels& at,
                                                  const Tile<S> (&values)[Max], S* features) {
  at.range.choose([&](auto range) {
    for_coordinates<Max>(shape, features + at.index, [&](int i, S* to) { range.store(values[i], to); });
  });
}

/// What becomes of a node's coordinates by dropout: the coordinates of one channel after another, which share Philox
/// blocks. First come the bits, in loops that stay short.
template <int Max, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void drop_stalk(const FeatureShape<S>& shape, const NodeChannels& at,
                                                 ElementDropout<S> dropout, Tile<S> (&values)[Max]) {
  static_assert(4 * Max <= 64);
  const int coordinates = static_cast<int>(shape.coordinates);
  std::uint64_t kept = 0;
  SHEAFNN_NO_UNROLL for (int c = 0; c < at.range.count; ++c) {
    std::uint32_t element = at.element + static_cast<std::uint32_t>(c);
    SHEAFNN_NO_UNROLL for (int i = 0; i < coordinates; ++i, element += shape.stride()) {
      if (dropout.keeps(static_cast<Index>(element))) kept |= std::uint64_t{1} << (4 * i + c);
    }
  }
  SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
    S value[4];
    SHEAFNN_UNROLL for (int c = 0; c < 4; ++c) {
      value[c] = (kept >> (4 * i + c) & 1U) != 0 ? values[i].lane(c) * dropout.scale() : S(0);
    }
    values[i] = Tile<S>::load(value);
  }
}

/// out = dropout(in), or out += dropout(in) when Add; item: a Philox block, group: instance. `copies`
/// instances share `in`.
template <class S, bool Add = false>
struct ApplyDropout {
  const Run* runs;
  Pass pass;
  Purpose purpose;
  std::uint32_t layer;
  const S* in;
  Index size;  ///< of an instance
  S* out;
  Divisor copies = 1;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    S* to = out + instance * size;
    pass.dropout<S>(runs, purpose, layer, instance)
        .for_block(item, size, in + instance / copies * size,
                   [=](Index i, S value) { to[i] = Add ? to[i] + value : value; });
  }
};

/// The launch of an ApplyDropout over instances of `size` values; nothing unless `drop`.
///
/// \param copies  instances that share `in`
template <bool Add = false, class S>
[[nodiscard]] Items<ApplyDropout<S, Add>> dropout_part(bool drop, const Run* runs, const Pass& pass, Purpose purpose,
                                                       std::size_t layer, const S* in, Index size, S* out,
                                                       Index copies = 1) {
  return {drop ? sheafnn::detail::dropout_blocks(size) : 0,
          pass.instances(),
          {runs, pass, purpose, static_cast<std::uint32_t>(layer), in, size, out, copies}};
}

/// Adds Σ_k value[k] b[k, c] of each coordinate, over four k and at four channels c; b points at the first of both.
///
/// \tparam Aligned  rows of b may be read as whole tiles
template <bool Aligned, int Max, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void add_tile_product(const FeatureShape<S>& shape, const Tile<S> (&value)[Max],
                                                       const S* b, Tile<S> (&out)[Max]) {
  SHEAFNN_UNROLL for (int k = 0; k < 4; ++k) {
    const S* from = b + static_cast<std::uint32_t>(k) * shape.stride();
    const Tile<S> factor = Aligned ? WholeTile{}.load(from) : TilePart{}.load(from);
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
      if (shape.template has<Max>(i)) out[i] += value[i].lane(k) * factor;
    }
  }
}
/// Σ_k row[k] b[k, c] of each coordinate at some channels c; b points at the first of them.
///
/// \tparam Aligned  rows of b may be read as whole tiles where rows of features are
template <bool Aligned, int Max, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void multiply_row(const FeatureShape<S>& shape, const NodeChannels& at,
                                                   const S* features, const S* b, Tile<S> (&out)[Max]) {
  const std::uint32_t f = shape.stride();
  const S* row = features + at.index - at.channel;
  SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) out[i] = {};
  if (at.range.whole) {
    for (std::uint32_t first = 0; first < f; first += 4) {
      Tile<S> value[Max];
      for_coordinates<Max>(shape, row + first, [&](int i, const S* from) { value[i] = WholeTile{}.load(from); });
      add_tile_product<Aligned>(shape, value, b + first * f, out);
    }
  } else {
    SHEAFNN_NO_UNROLL for (std::uint32_t k = 0; k < f; ++k) {
      const Tile<S> factor = TilePart{at.range.count}.load(b + k * f);
      SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
        if (shape.template has<Max>(i)) out[i] += row[static_cast<std::uint32_t>(i) * f + k] * factor;
      }
    }
  }
}

/// A or, when Transposed, Aᵀ of d' × d' values times the coordinates of a node.
template <bool Transposed, int Max, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void multiply_left(const FeatureShape<S>& shape, const S* a,
                                                    const Tile<S> (&in)[Max], Tile<S> (&out)[Max]) {
  const int d = static_cast<int>(shape.coordinates);
  SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) {
    out[i] = {};
    SHEAFNN_UNROLL for (int j = 0; j < Max; ++j) {
      if (shape.template has<Max>(i) && shape.template has<Max>(j)) {
        out[i] += a[Transposed ? j * d + i : i * d + j] * in[j];
      }
    }
  }
}

/// What a layer continues with from Y at a node and some channels, before it reads neighbours: W = S Y.
template <class Family, class S>
struct SheafScaling {
  static constexpr int max_coordinates = Family::stalk_dimension + 2;
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void operator()(const NodeChannels& at, const Tile<S>* y, Tile<S>* w) const {
    node_times<Family>(sheaf.scale_of(range.slot(at.instance), at.node), graph.inverse_root[at.node], y, w);
  }
};

/// Does a Scaling end a layer that has A_β = (1 − β) I + β A, with its `beta`, and B_β alike? It writes all but X Bᵀ itself.
template <class Scaling>
inline constexpr bool ends_layer = requires {
  requires Scaling::ends_layer;
};

/// X Bᵀ, Y = (I ⊗ A) X Bᵀ and W = S Y, or what another Scaling makes of Y. item (node, channels), group: instance.
template <class Family, class S, class Scaling = SheafScaling<Family, S>>
struct MixForward {
  static constexpr int max_coordinates = Scaling::max_coordinates;
  Scaling scaling;
  FeatureShape<S> shape;
  Divisor copies;
  const S* right;  ///< Bᵀ per run; null: X is multiplied already, or there is no B
  Index right_stride;
  const S* left;  ///< A per run; null: Y = X Bᵀ
  Index left_stride;
  const S* x;
  S* product;  ///< X Bᵀ; not written where B is null
  S* y;        ///< not written where A is null
  S* w;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> in[max_coordinates];
    if (right != nullptr) {
      multiply_row<true>(shape, at, x, right_at(at), in);
      if constexpr (ends_layer<Scaling>) {
        Tile<S> own[max_coordinates];
        load_stalk(shape, at, x, own);
        map_identity(scaling.beta, own, in);
      }
    } else {
      load_stalk(shape, at, x, in);
    }
    store(at, in);
  }
  /// Bᵀ of the run at some channels.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE const S* right_at(const NodeChannels& at) const {
    return right + at.instance / copies * right_stride + at.channel;
  }
  /// Continues from X Bᵀ at a node and some channels, or from X if there is no B.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const NodeChannels& at, const Tile<S> (&in)[max_coordinates]) const {
    Tile<S> mixed[max_coordinates], scaled[max_coordinates];
    if (right != nullptr) store_stalk(shape, at, in, product);
    if (left != nullptr) {
      multiply_left<false>(shape, left + at.instance / copies * left_stride, in, mixed);
      if constexpr (ends_layer<Scaling>) map_identity(scaling.beta, in, mixed);
      if constexpr (!ends_layer<Scaling>) store_stalk(shape, at, mixed, y);
    } else {
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) mixed[i] = in[i];
    }
    scaling(at, mixed, scaled);
    if constexpr (!ends_layer<Scaling>) store_stalk(shape, at, scaled, w);
  }
};

/// z̄ = −x̄ ∘ ELU′(S r), r̄ = S z̄. item (node, channels), group: instance.
template <class Family, class S>
struct ActivationBackward {
  static constexpr int max_coordinates = Family::stalk_dimension + 2;
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  bool activation;
  const S *r, *x_bar;
  S *z_bar, *r_bar;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> bar[max_coordinates];
    load_stalk(shape, at, x_bar, bar);
    store(at, bar);
  }
  /// Replaces x̄ at a node and some channels by z̄.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const NodeChannels& at, Tile<S> (&bar)[max_coordinates]) const {
    store(at, bar, [this](const Tile<S>& x, const Tile<S>& own) SHEAFNN_INLINE_LAMBDA {
      return kernels::activated_bar(x, own, activation);
    });
  }
  /// The same of another activation. \param derivative  derivative(x̄, z) = z̄
  template <class Derivative>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const NodeChannels& at, Tile<S> (&bar)[max_coordinates],
                                              const Derivative& derivative) const {
    const S* scale = sheaf.scale_of(range.slot(at.instance), at.node);
    const S root = graph.inverse_root[at.node];
    Tile<S> in[max_coordinates], z[max_coordinates];
    load_stalk(shape, at, r, in);
    node_times<Family>(scale, root, in, z);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] = derivative(bar[i], z[i]);
    store_stalk(shape, at, bar, z_bar);
    node_times<Family>(scale, root, bar, in);
    store_stalk(shape, at, in, r_bar);
  }
};

/// Computes the derivative of the layer's input from Ȳ: P̄ = Aᵀ Ȳ, for B's gradient, and x̄ ← gain ∘ x̄ + dropout(P̄ B), where
/// gain_i = 1 + tanh ε_i. If a filter's high-pass term reads X, α G is added. If the layer below needs only x̄ at the same node
/// and channels, its first step follows. item (node, channels), group: instance.
template <class Family, class S>
struct MixBackward {
  static constexpr int max_coordinates = Family::stalk_dimension + 2;
  FeatureShape<S> shape;
  const Run* runs;
  Pass pass;
  std::uint32_t layer;
  bool dropped;
  const S* right;    ///< B per run, or null
  const S* left;     ///< A per run, or null
  const S* epsilon;  ///< ε per run, or null: no residual
  Index parameter_stride;
  const S* y_bar;
  S* p_bar;  ///< not written where A is null: it is Ȳ
  S* x_bar;
  const S* skip = nullptr;  ///< α per run; null: no such term
  Index skip_stride = 0;
  const S* g = nullptr;  ///< G
  bool go_on = false;    ///< with the layer below
  ActivationBackward<Family, S> below{};

  /// P̄ B, from Ȳ; writes P̄. \tparam Identity  with A_β and B_β
  template <bool Identity = false>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void through_mixing(const NodeChannels& at, Tile<S> (&bar)[max_coordinates],
                                                       const S& beta = S(1)) const {
    const Index run = pass.run_of(at.instance);
    Tile<S> own[max_coordinates];
    load_stalk(shape, at, y_bar, own);
    if (right != nullptr) {
      multiply_row<false>(shape, at, y_bar, right + run * parameter_stride + at.channel, bar);
      if constexpr (Identity) map_identity(beta, own, bar);
    } else {
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] = own[i];
    }
    if (left != nullptr) {
      const S* a = left + run * parameter_stride;
      Tile<S> before[max_coordinates], turned[max_coordinates];
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) before[i] = bar[i];
      multiply_left<true>(shape, a, before, bar);
      multiply_left<true>(shape, a, own, turned);
      if constexpr (Identity) {
        map_identity(beta, before, bar);
        map_identity(beta, own, turned);
      }
      store_stalk(shape, at, turned, p_bar);
    }
  }

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    const Index run = pass.run_of(at.instance);
    Tile<S> bar[max_coordinates], input[max_coordinates];
    through_mixing(at, bar);
    load_stalk(shape, at, static_cast<const S*>(x_bar), input);
    if (dropped) drop_stalk(shape, at, pass.dropout<S>(runs, Purpose::layer_dropout, layer, at.instance), bar);
    if (skip != nullptr) {
      Tile<S> high[max_coordinates];
      load_stalk(shape, at, g, high);
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] += skip[run * skip_stride] * high[i];
    }
    if (epsilon != nullptr) {
      const S* eps = epsilon + run * parameter_stride;
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
        if (shape.template has<max_coordinates>(i)) bar[i] += kernels::gain(eps[i]) * input[i];
      }
    }
    store_stalk(shape, at, bar, x_bar);
    if (go_on) below.store(at, bar);
  }
};

}  // namespace sheafnn::batch::detail
