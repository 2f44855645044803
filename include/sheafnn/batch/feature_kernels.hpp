/// \file
/// Kernels of a diffusion layer that work on one node at a time: dropout, Y = (I ⊗ A) dropout(X) Bᵀ and W = S Y,
/// and their backward pass (for one network layers/feature_mixing.hpp).
///
/// Features are n × d' × f per instance, channels innermost: an item is a node and a channel, so that neighbouring
/// threads read neighbouring numbers and share the blocks they multiply with. D is the stalk dimension, d' ≥ D
/// counts the fixed filters.
///
/// Unchecked: numbers of items, runs, instances and lanes, and the room behind pointers and views; BatchNetwork and
/// BatchTrainer check what they are given.
#pragma once

#include <cmath>

#include "sheafnn/batch/graph.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/batch/sheaf_kernels.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"

namespace sheafnn::batch::detail {

/// Shape of the features and the fixed filters.
template <class S>
struct FeatureShape {
  Index nodes = 0, coordinates = 0, channels = 0;
  S filter_sign[2] = {S(0), S(0)};  ///< off-diagonal sign of the first and second fixed filter

  [[nodiscard]] SHEAFNN_HD Index row() const noexcept { return coordinates * channels; }
  [[nodiscard]] SHEAFNN_HD Index size() const noexcept { return nodes * row(); }
};

/// out = block · x; `Size` is the block's number of entries: 1, D or D² numbers.
template <int D, int Size, class S>
SHEAFNN_HD SHEAFNN_INLINE void times(const S* block, const S* x, S* out) {
  if constexpr (Size == D * D && D > 1) {
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      out[i] = block[i] * x[0];
      SHEAFNN_UNROLL for (int j = 1; j < D; ++j) out[i] += block[j * D + i] * x[j];
    }
  } else {
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[i] = block[Size == 1 ? 0 : i] * x[i];
  }
}
/// The D learned coordinates of a node at one channel.
template <int D, class S>
SHEAFNN_HD SHEAFNN_INLINE void load_stalk(const S* x, Index channels, S* out) {
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[i] = x[i * channels];
}
template <int D, class S>
SHEAFNN_HD SHEAFNN_INLINE void store_stalk(const S* values, Index channels, S* x) {
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) x[i * channels] = values[i];
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
  Index copies = 1;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    S* to = out + instance * size;
    pass.dropout<S>(runs, purpose, layer, instance)
        .for_block(item, size, in + instance / copies * size,
                   [=](Index i, S value) { to[i] = Add ? to[i] + value : value; });
  }
};

/// Bᵀ of all layers, so that neighbouring channels read neighbouring numbers; item (layer, k, c), group: run.
template <class S>
struct TransposeRight {
  static constexpr int max_layers = 64;
  Index offset[max_layers];  ///< of B in the parameters
  Index channels, layers;
  const S* parameters;
  Index parameter_stride;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index f = channels, layer = item / (f * f), k = item / f % f, c = item % f;
    out[run * layers * f * f + item] = parameters[run * parameter_stride + offset[layer] + c * f + k];
  }
};

/// X Bᵀ, Y = (I ⊗ A) X Bᵀ and W = S Y at one node and channel. item (node, channel), group: instance.
template <class Family, class S>
struct MixForward {
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  Index copies;
  const S* right;  ///< Bᵀ per run; null: X is multiplied already, or there is no B
  Index right_stride;
  const S* left;  ///< A per run; null: Y = X Bᵀ
  Index left_stride;
  const S* x;
  S* product;  ///< X Bᵀ; not written where B is null
  S* y;        ///< not written where A is null
  S* w;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    constexpr int D = Family::stalk_dimension, max_coordinates = D + 2, size = BlockSizes<Family>::gram;
    const Index f = shape.channels, u = item / f, c = item % f, d = shape.coordinates;
    const Index node = instance * shape.size() + u * shape.row(), index = node + c;
    S in[max_coordinates], mixed[max_coordinates];
    if (right != nullptr) {
      const S* b = right + instance / copies * right_stride + c;
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) in[i] = S(0);
      for (Index k = 0; k < f; ++k) {
        const S factor = b[k * f];
        SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
          if (i < d) in[i] += x[node + i * f + k] * factor;
        }
      }
    } else {
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) in[i] = i < d ? x[index + i * f] : S(0);
    }
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) mixed[i] = in[i];
    if (left != nullptr) {
      const S* a = left + instance / copies * left_stride;
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
        S sum = S(0);
        SHEAFNN_UNROLL for (int j = 0; j < max_coordinates; ++j) {
          if (i < d && j < d) sum += a[i * d + j] * in[j];
        }
        mixed[i] = sum;
      }
    }
    S scaled[max_coordinates];
    times<D, size>(sheaf.scale + (range.slot(instance) * graph.nodes + u) * size, mixed, scaled);
    SHEAFNN_UNROLL for (int i = D; i < max_coordinates; ++i) scaled[i] = graph.inverse_root[u] * mixed[i];
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (i < d) {
        if (right != nullptr) product[index + i * f] = in[i];
        if (left != nullptr) y[index + i * f] = mixed[i];
        w[index + i * f] = scaled[i];
      }
    }
  }
};

/// From Ȳ to the layer's input: P̄ = Aᵀ Ȳ, for B's gradient, and x̄ ← gain ∘ x̄ + dropout(P̄ B), gain_i = 1 + tanh
/// ε_i, with α G added where a filter's high-pass term reads X. item (node, channel), group: instance.
template <int D, class S>
struct MixBackward {
  FeatureShape<S> shape;
  const Run* runs;
  Pass pass;
  std::uint32_t layer;
  bool dropped;
  const S* right;    ///< B per run, or null
  const S* left;     ///< A per run, or null
  const S* epsilon;  ///< ε per run
  Index parameter_stride;
  const S* y_bar;
  S* p_bar;  ///< not written where A is null: it is Ȳ
  S* x_bar;
  const S* skip = nullptr;  ///< α per run; null: no such term
  Index skip_stride = 0;
  const S* g = nullptr;  ///< G

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    using std::tanh;
    const Index f = shape.channels, u = item / f, c = item % f, d = shape.coordinates;
    const Index run = pass.run_of(instance), node = instance * shape.size() + u * shape.row(), index = node + c;
    constexpr int max_coordinates = D + 2;
    S own[max_coordinates], bar[max_coordinates], input[max_coordinates];
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      own[i] = i < d ? y_bar[index + i * f] : S(0);
      input[i] = i < d ? x_bar[index + i * f] : S(0);
      bar[i] = right != nullptr ? S(0) : own[i];
    }
    if (right != nullptr) {
      const S* b = right + run * parameter_stride + c;
      for (Index k = 0; k < f; ++k) {
        const S factor = b[k * f];
        SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
          if (i < d) bar[i] += y_bar[node + i * f + k] * factor;
        }
      }
    }
    if (left != nullptr) {
      const S* a = left + run * parameter_stride;
      S before[max_coordinates], turned[max_coordinates];
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) before[i] = bar[i];
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
        bar[i] = turned[i] = S(0);
        SHEAFNN_UNROLL for (int j = 0; j < max_coordinates; ++j) {
          if (i < d && j < d) {
            bar[i] += a[j * d + i] * before[j];
            turned[i] += a[j * d + i] * own[j];
          }
        }
      }
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
        if (i < d) p_bar[index + i * f] = turned[i];
      }
    }
    const ElementDropout<S> dropout = pass.dropout<S>(runs, Purpose::layer_dropout, layer, instance);
    const S* eps = epsilon + run * parameter_stride;
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (i < d) {
        S through = dropped ? dropout(u * shape.row() + i * f + c, bar[i]) : bar[i];
        if (skip != nullptr) through += skip[run * skip_stride] * g[index + i * f];
        x_bar[index + i * f] = (S(1) + tanh(eps[i])) * input[i] + through;
      }
    }
  }
};

}  // namespace sheafnn::batch::detail
