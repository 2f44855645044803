/// \file
/// HypergraphLayer: a diffusion layer of sheaf hypergraph networks, with its backward pass,
///
///     Y = (I ⊗ A) dropout(X) Bᵀ
///     X' = ELU(Y − ΔY + b), in the last layer Y − ΔY + b,   or   X' = (1 + tanh ε) ∘ X − ELU(ΔY + b)
///     Δ = S L S with L of layers/hypergraph_terms.hpp; as published ΔY = Y − S Y + S L S Y
///
/// X is n × d × f. A walk over hyperedges and one over nodes apply L: 4 nnz d² f operations. Source: Sheaf Hypergraph
/// Networks (Duta et al.), "Sheaf hypergraph networks"; math: "Hypergraphs".
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/hypergraph_terms.hpp"
#include "sheafnn/layers/weights.hpp"

namespace sheafnn::layers {

/// Weights of a layer.
template <class T>
struct HypergraphLayerWeights : DiffusionWeights<T> {
  WeightVector<T> bias;  ///< b, f

  /// A = I, B random orthogonal, ε = 0, b = 0. Unchecked: sizes are at least 1.
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, const HypergraphSetting& of) {
    DiffusionWeights<T>::declare(list, of.weights());
    if (of.bias) list.vector(bias, "bias", {of.channels}, {});
  }
  /// \throws std::invalid_argument  a weight of another shape
  SHEAFNN_NOINLINE void check(const HypergraphSetting& of) const {
    DiffusionWeights<T>::check(of.weights());
    if (of.bias) require_size(bias, of.channels, "bias");
  }
};

/// What backward passes of layers overwrite; the same for all layers.
template <class S>
struct HypergraphScratch {
  Buffer<S> z_bar, r_bar;  ///< n × d × f: of Z = S R, which becomes Y's, and of R = L W
  Buffer<S> slots;         ///< m of R̄
};

/// Buffers of one layer on one hypergraph. Unchecked: that sheaves and gradients are of the hypergraph.
template <RestrictionMapFamily Family, class S>
class HypergraphLayer {
 public:
  using Sizes = BlockSizes<Family>;
  using Sheaf = IncidenceSheaf<Family, S>;
  using Gradient = IncidenceSheafGradient<Family, S>;
  static constexpr int D = Family::stalk_dimension;

  /// `hypergraph` must outlive the layer.
  HypergraphLayer(const Hypergraph& hypergraph, const HypergraphSetting& setting)
      : hypergraph_(&hypergraph),
        setting_(setting),
        mixing_(hypergraph.node_count(), D, setting.channels, setting.left, setting.right),
        terms_(hypergraph, setting),
        scaled_(hypergraph.node_count() * row()),
        diffused_(scaled_.size()),
        activated_(residual() ? scaled_.size() : 0),
        output_(scaled_.size()),
        slots_(terms_.slots() * row()),
        partial_(mixing_.chunks().count * partial_size()) {
    setting_.projection = {};  // the terms have it
  }

  [[nodiscard]] DropoutMask& mask() noexcept { return mixing_.mask(); }
  /// X' at the nodes of the last forward().
  [[nodiscard]] FeatureView<const S> output() const noexcept {
    return {output_.data(), nodes_.count(), D, setting_.channels};
  }
  /// The selected pairs, among other things.
  [[nodiscard]] const HypergraphTerms<Family, S>& terms() const noexcept { return terms_; }

  /// Computes X' at `nodes` from X (n × d × f), which must not change until backward().
  ///
  /// \param keep  keep what backward() reads
  /// \throws std::invalid_argument  features or weights of another shape
  void forward(Execution execution, const HypergraphLayerWeights<const S>& weights, const Sheaf& sheaf,
               const FeatureView<const S>& x, const NodeSelection& nodes, const Dropout& dropout, bool keep);

  /// Computes the derivatives of X, the weights and the sheaf from the derivative of X'.
  ///
  /// \param accumulate  add to the sheaf's derivatives instead of overwriting them
  /// \param output_bar  of the shape of output(); must not overlap x_bar
  /// \param x_bar       n × d × f, overwritten
  /// \param weights_bar  added to
  /// \throws std::invalid_argument  features or weights of another shape
  void backward(Execution execution, const HypergraphLayerWeights<const S>& weights, const Sheaf& sheaf,
                Gradient& gradient, bool accumulate, const FeatureView<const S>& output_bar,
                const FeatureView<S>& x_bar, HypergraphScratch<S>& scratch,
                const HypergraphLayerWeights<S>& weights_bar);

 private:
  static constexpr int gram = Sizes::gram;

  [[nodiscard]] Index row() const noexcept { return D * setting_.channels; }
  [[nodiscard]] bool residual() const noexcept { return setting_.update == HypergraphUpdate::residual; }
  [[nodiscard]] bool published() const noexcept { return setting_.laplacian == HypergraphLaplacian::published; }
  /// Does the layer end with ELU?
  [[nodiscard]] bool activates() const noexcept { return residual() || !setting_.last; }
  /// Sums of the backward pass over a chunk of nodes: Σ x x̄ per coordinate, b̄.
  [[nodiscard]] Index partial_size() const noexcept { return D + setting_.channels; }
  void gains(const HypergraphLayerWeights<const S>& weights, S* gain) const {
    for (int i = 0; residual() && i < D; ++i)
      gain[i] = kernels::gain(weights.epsilon[static_cast<std::size_t>(i)]);
  }

  /// R = L W at node v and a tile of channels.
  ///
  /// \param visit  visit(pair, slot) for the pairs of the node that have a term
  template <class T, class At, class Visit>
  SHEAFNN_INLINE void apply(const At& c, const Sheaf& sheaf, Index v, const T* w, const S* slots, T* r,
                            const Visit& visit) const {
    const Index channels = setting_.channels;
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) r[i] = T(S(0));
    kernels::add_block_times<D, gram, false, false>(terms_.degree_block(sheaf, v), w, r);
    const std::int32_t* slot = terms_.slot();
    for (Index i = hypergraph_->first_pair(v); i < hypergraph_->first_pair(v + 1); ++i) {
      if (slot[i] < 0) continue;
      T m[D];
      detail::load_coordinates<D>(c, slots + slot[i] * row() + c, channels, m);
      kernels::add_block_times<D, Sizes::map, true, true>(sheaf.map(i), m, r);
      visit(i, slot[i], m);
    }
  }
  void end_row(const HypergraphLayerWeights<const S>& weights, const Sheaf& sheaf, const S* x, const S* gain,
               Index v, S* out, bool keep);
  void begin_backward(const Sheaf& sheaf, const S* output_bar, Index begin, Index end, S* x_bar,
                      HypergraphScratch<S>& scratch, S* sums) const;
  void node_backward(const Sheaf& sheaf, Gradient& gradient, HypergraphScratch<S>& scratch, Index v) const;

  const Hypergraph* hypergraph_;
  HypergraphSetting setting_;
  FeatureMixing<S> mixing_;
  HypergraphTerms<Family, S> terms_;
  Buffer<S> scaled_, diffused_;  ///< W = S Y, R = L W
  Buffer<S> activated_;          ///< ELU(ΔY + b), of residual layers
  Buffer<S> output_;
  Buffer<S> slots_;  ///< m of W
  Buffer<S> partial_;
  NodeSelection nodes_;
  const S* input_ = nullptr;
};

template <RestrictionMapFamily Family, class S>
void HypergraphLayer<Family, S>::forward(Execution execution, const HypergraphLayerWeights<const S>& weights,
                                         const Sheaf& sheaf, const FeatureView<const S>& x,
                                         const NodeSelection& nodes, const Dropout& dropout, bool keep) {
  const Index f = setting_.channels;
  require_shape(x, hypergraph_->node_count(), D, f, "x");
  weights.check(setting_);
  nodes_ = nodes;
  input_ = x.data();
  terms_.prepare(execution, sheaf, x.data());
  mixing_.forward(execution, weights, x.data(), dropout, true, [&](Index first, Index count, const S* y) {
    detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
      for (Index k = 0; k < count; ++k) {
        T in[D], out[D];
        detail::load_coordinates<D>(c, y + k * row() + c, f, in);
        kernels::block_times<D, gram>(sheaf.scale(first + k), in, out);
        detail::store_coordinates<D>(c, out, f, scaled_.data() + (first + k) * row() + c);
      }
    });
  });
  terms_.sum_members(execution, sheaf, scaled_.data(), slots_.data());
  S gain[D];
  gains(weights, gain);
  parallel_for(execution, nodes.count(), 16, [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      end_row(weights, sheaf, x.data(), gain, nodes[k], output_.data() + k * row(), keep);
    }
  });
}

/// X' at node v.
template <RestrictionMapFamily Family, class S>
void HypergraphLayer<Family, S>::end_row(const HypergraphLayerWeights<const S>& weights, const Sheaf& sheaf,
                                         const S* x, const S* gain, Index v, S* out, bool keep) {
  const Index f = setting_.channels, at = v * row();
  detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
    T w[D], r[D], z[D], y[D];
    detail::load_coordinates<D>(c, scaled_.data() + at + c, f, w);
    apply<T>(c, sheaf, v, w, slots_.data(), r, [](Index, Index, const T*) {});
    if (keep) detail::store_coordinates<D>(c, r, f, diffused_.data() + at + c);
    kernels::block_times<D, gram>(sheaf.scale(v), r, z);
    if (published() || !residual()) detail::load_coordinates<D>(c, mixing_.output() + at + c, f, y);
    const T bias = setting_.bias ? c.load(weights.bias.data() + c) : T(S(0));
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      if (published()) z[i] = y[i] - w[i] + z[i];
      if (residual()) {
        const T step = kernels::HypergraphEnd<T>::change(z[i], bias);
        if (keep) c.store(activated_.data() + at + i * f + c, step);
        c.store(out + i * f + c, kernels::gated(T(gain[i]), c.load(x + at + i * f + c), step));
      } else {
        c.store(out + i * f + c,
                kernels::ConvolutionEnd<T>{activates()}.forward({.z = z[i], .mixed = y[i], .bias = bias}));
      }
    }
  });
}

/// Z̄ and R̄ = S Z̄ at nodes [begin, end), the direct part of X̄, and sums for ε̄ and b̄.
template <RestrictionMapFamily Family, class S>
void HypergraphLayer<Family, S>::begin_backward(const Sheaf& sheaf, const S* output_bar, Index begin, Index end,
                                                S* x_bar, HypergraphScratch<S>& scratch, S* sums) const {
  const Index f = setting_.channels;
  std::fill_n(sums, partial_size(), S(0));
  Index k = nodes_.lower_bound(begin);
  for (Index v = begin; v < end; ++v) {
    const Index at = v * row();
    if (k >= nodes_.count() || nodes_[k] != v) {
      for (S* rows : {scratch.z_bar.data(), scratch.r_bar.data(), x_bar}) std::fill_n(rows + at, row(), S(0));
      continue;
    }
    const Index from = k++ * row();
    detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
      T z_bar[D], r_bar[D], bias_bar = c.load(sums + D + c);
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
        const Index number = i * f + c;
        const T bar = c.load(output_bar + from + number);
        if (residual()) {
          c.store(x_bar + at + number, bar);
          sums[i] += reduce_add(c.load(input_ + at + number) * bar);
          z_bar[i] = kernels::HypergraphEnd<T>::change_bar(c.load(activated_.data() + at + number), bar);
          bias_bar += z_bar[i];
        } else {
          const T slope = activates() ? elu_slope(c.load(output_.data() + from + number)) : T(S(1));
          z_bar[i] = -bar * slope;
          bias_bar -= z_bar[i];
        }
      }
      c.store(sums + D + c, bias_bar);
      detail::store_coordinates<D>(c, z_bar, f, scratch.z_bar.data() + at + c);
      kernels::block_times<D, gram>(sheaf.scale(v), z_bar, r_bar);
      detail::store_coordinates<D>(c, r_bar, f, scratch.r_bar.data() + at + c);
    });
  }
}

/// Ȳ at node v, in place of Z̄, and the derivatives of its maps, D̃_v and S_v.
template <RestrictionMapFamily Family, class S>
void HypergraphLayer<Family, S>::node_backward(const Sheaf& sheaf, Gradient& gradient,
                                               HypergraphScratch<S>& scratch, Index v) const {
  const Index f = setting_.channels, at = v * row();
  S own_degree_bar[gram] = {};
  S* const degree_bar = terms_.linear() ? gradient.degree_bar.data() + v * gram : own_degree_bar;
  S* const map_bar = gradient.map_bar.data();
  detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
    T w[D], r_bar[D], z_bar[D], w_bar[D], y_bar[D];
    detail::load_coordinates<D>(c, scaled_.data() + at + c, f, w);
    detail::load_coordinates<D>(c, scratch.r_bar.data() + at + c, f, r_bar);
    detail::load_coordinates<D>(c, scratch.z_bar.data() + at + c, f, z_bar);
    T minus_w[D], minus_bar[D];
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      minus_w[i] = -w[i];
      minus_bar[i] = -r_bar[i];
    }
    apply<T>(c, sheaf, v, r_bar, scratch.slots.data(), w_bar, [&](Index pair, Index slot, const T* m_bar) {
      T m[D];
      detail::load_coordinates<D>(c, slots_.data() + slot * row() + c, f, m);
      kernels::channel_products<D, Sizes::map>(m_bar, minus_w, m, minus_bar, map_bar + pair * Sizes::map, true);
    });
    if (published()) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) w_bar[i] = w_bar[i] - z_bar[i];
    }
    kernels::block_times<D, gram>(sheaf.scale(v), w_bar, y_bar);
    if constexpr (!sheaf::is_orthogonal<Family>) {
      kernels::channel_products<D, gram>(r_bar, w, degree_bar, true);
      if (!published()) {
        T y[D], r[D];
        detail::load_coordinates<D>(c, mixing_.output() + at + c, f, y);
        detail::load_coordinates<D>(c, diffused_.data() + at + c, f, r);
        kernels::channel_products<D, gram>(z_bar, r, w_bar, y, gradient.scale_bar.data() + v * gram, true);
      }
    }
    // Y itself: + Z̄ of what is published, and − Z̄ of an update that has Y − ΔY.
    if (published() != !residual()) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) y_bar[i] =
          published() ? y_bar[i] + z_bar[i] : y_bar[i] - z_bar[i];
    }
    detail::store_coordinates<D>(c, y_bar, f, scratch.z_bar.data() + at + c);
  });
  if constexpr (!sheaf::is_orthogonal<Family>) {
    if (terms_.linear()) return;
    using Map = typename Family::template Map<S>;
    const Gram<Family, S> bar = Eigen::Map<const Gram<Family, S>>(own_degree_bar);
    for (Index i = hypergraph_->first_pair(v); i < hypergraph_->first_pair(v + 1); ++i) {
      const Gram<Family, S> weighted = terms_.weight(i) * bar;
      const Map map = Eigen::Map<const Map>(sheaf.map(i));
      Map sum = Eigen::Map<const Map>(map_bar + i * Sizes::map);
      gram_backward<Family, S>(map, weighted, sum);
      std::copy_n(sum.data(), Sizes::map, map_bar + i * Sizes::map);
    }
  }
}

template <RestrictionMapFamily Family, class S>
void HypergraphLayer<Family, S>::backward(Execution execution, const HypergraphLayerWeights<const S>& weights,
                                          const Sheaf& sheaf, Gradient& gradient, bool accumulate,
                                          const FeatureView<const S>& output_bar, const FeatureView<S>& x_bar,
                                          HypergraphScratch<S>& scratch,
                                          const HypergraphLayerWeights<S>& weights_bar) {
  const Index n = hypergraph_->node_count(), f = setting_.channels;
  require_shape(output_bar, nodes_.count(), D, f, "output_bar");
  require_shape(x_bar, n, D, f, "x_bar");
  weights.check(setting_);
  weights_bar.check(setting_);
  if (!accumulate) gradient.clear();
  S gain[D];
  gains(weights, gain);
  const NodeChunks& chunks = mixing_.chunks();
  chunks.for_each(execution, [&](Index chunk, Index begin, Index end) {
    begin_backward(sheaf, output_bar.data(), begin, end, x_bar.data(), scratch,
                   partial_.data() + chunk * partial_size());
  });
  for (Index chunk = 0; chunk < chunks.count; ++chunk) {
    const S* sums = partial_.data() + chunk * partial_size();
    for (std::size_t i = 0; residual() && i < D; ++i) {
      weights_bar.epsilon[i] += kernels::gain_slope(gain[i] - S(1)) * sums[i];
    }
    for (std::size_t c = 0; setting_.bias && c < static_cast<std::size_t>(f); ++c)
      weights_bar.bias[c] += sums[D + c];
  }
  terms_.sum_members(execution, sheaf, scratch.r_bar.data(), scratch.slots.data());
  parallel_for(execution, n, 16, [&](Index begin, Index end) {
    for (Index v = begin; v < end; ++v) node_backward(sheaf, gradient, scratch, v);
  });
  mixing_.backward(execution, weights, residual() ? gain : nullptr, scratch.z_bar.data(), x_bar.data(),
                   weights_bar);
}

}  // namespace sheafnn::layers
