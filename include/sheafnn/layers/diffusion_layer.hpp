/// \file
/// DiffusionLayer: X' = (1 + tanh ε) ∘ X − ELU(Δ (I ⊗ A) dropout(X) Bᵀ), with its backward pass (math: "The
/// model" (3.6), "Backward pass of one diffusion step" (3.19); paper, sheaf diffusion layer).
#pragma once

#include <algorithm>
#include <string_view>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn {

/// Which parts a diffusion layer has.
struct DiffusionOptions {
  bool left = true;        ///< A, mixing stalk coordinates
  bool right = true;       ///< B, mixing channels
  bool activation = true;  ///< ELU
};

/// Whether an evaluation computes Y = (I ⊗ A) X Bᵀ, computes and keeps it for the next one with the same X, or takes
/// what the last one kept.
enum class MixedFeatures { compute, compute_and_keep, reuse };

/// Buffers of one layer on one graph. Features are n × d' × f, channels innermost. math: "The model" (3.6).
template <RestrictionMapFamily Family, class S>
class DiffusionLayer {
 public:
  DiffusionLayer() = default;
  /// `graph` and `diffusion` must outlive the layer.
  ///
  /// \throws std::invalid_argument  a shape of another graph or family
  DiffusionLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const DiffusionOptions& options = {});
  DiffusionLayer(const Graph&&, const DiffusionShape<S>&, const DiffusionOptions& = {}) = delete;  // they would dangle
  DiffusionLayer(const Graph&, const DiffusionShape<S>&&, const DiffusionOptions& = {}) = delete;

  /// X' at the nodes of the last pass, one row of d' × f each.
  [[nodiscard]] FeatureView<const S> output() const noexcept {
    return {output_.data(), nodes_.count(), diffusion_->coordinates, diffusion_->channels};
  }

  /// That of the dropout of X.
  [[nodiscard]] DropoutMask& mask() noexcept { return mixing_.mask(); }

  /// Computes output() at some nodes from x (n × d' × f), which must not change until backward().
  ///
  /// \throws std::invalid_argument  features or weights of another shape, a sheaf over another graph. Unchecked:
  ///                                `nodes` are nodes of the graph, and must outlive the pass
  void forward(Execution execution, const DiffusionWeights<const S>& weights, const SheafBlocks<Family, S>& sheaf,
               const FeatureView<const S>& x, const Dropout& dropout, const NodeSelection& nodes);

  /// Computes output() without dropout, and nothing that only backward() needs.
  ///
  /// \param mixed  reuse: after a pass with compute_and_keep
  /// \param w      a buffer of the shape of x, overwritten
  /// \throws std::invalid_argument  as forward(), or w of another shape
  void evaluate(Execution execution, const DiffusionWeights<const S>& weights, const SheafBlocks<Family, S>& sheaf,
                const FeatureView<const S>& x, const NodeSelection& nodes, MixedFeatures mixed,
                const FeatureView<S>& w);

  /// From the derivative of output() to that of the input, and to the gradients of weights (added to) and of the
  /// sheaf's blocks.
  ///
  /// \param accumulate    add to sheaf_gradient instead of overwriting it
  /// \param output_bar    of the same shape as output(); where that has all nodes, may be x_bar
  /// \param x_bar         n × d' × f, overwritten
  /// \param y_bar, r_bar  two buffers of the same shape, overwritten; y_bar may be output_bar
  /// \throws std::invalid_argument  views of another shape, a sheaf over another graph. Unchecked: sheaf_gradient is of
  ///                                the graph
  void backward(Execution execution, const DiffusionWeights<const S>& weights, const SheafBlocks<Family, S>& sheaf,
                SheafBlocksGradient<Family, S>& sheaf_gradient, bool accumulate,
                const FeatureView<const S>& output_bar, const FeatureView<S>& x_bar, const FeatureView<S>& y_bar,
                const FeatureView<S>& r_bar, const DiffusionWeights<S>& weights_bar);

 private:
  template <class T>
  void check_weights(const DiffusionWeights<T>& weights) const {
    const Index d = diffusion_->coordinates, f = diffusion_->channels;
    if (options_.left) require_array(weights.left, d, d, "left weights");
    if (options_.right) require_array(weights.right, f, f, "right weights");
    require_size(weights.epsilon, d, "epsilon");
  }
  template <class T>
  void check_features(const FeatureView<T>& x, std::string_view name) const {
    require_shape(x, graph_->node_count(), diffusion_->coordinates, diffusion_->channels, name);
  }
  void check(const DiffusionWeights<const S>& weights, const SheafBlocks<Family, S>& sheaf,
             const FeatureView<const S>& x) const {
    check_features(x, "x");
    check_weights(weights);
    detail::require_over(*graph_, sheaf);
  }

  /// w = S (I ⊗ A) dropout(X) Bᵀ.
  void mix_and_scale(Execution execution, const DiffusionWeights<const S>& weights,
                     const SheafBlocks<Family, S>& sheaf, const S* x, const Dropout& dropout, bool keep, S* w) {
    const Index row = diffusion_->row();
    mixing_.forward(execution, weights, x, dropout, keep, [&](Index first, Index nodes, const S* y) {
      detail::scale_rows<Family>(*diffusion_, sheaf, first, nodes, y, w + first * row);
    });
  }
  /// output() from X and W, whose rows of the halo are written, and R = L W where it is to be kept.
  void diffuse_and_activate(Execution execution, const DiffusionWeights<const S>& weights,
                            const SheafBlocks<Family, S>& sheaf, const S* x, S* w, bool keep) {
    const NodeSelection nodes = nodes_;
    const Index f = diffusion_->channels, row = diffusion_->row();
    S gain[max_coordinates];
    gains(weights, gain);
    S* out = output_.data();
    S* diffused = diffused_.data();
    const bool activation = options_.activation;
    detail::with_halo(*graph_, nodes, w, row, [&](Index from, Index to) {
      detail::apply_laplacian<Family>(
          execution, *graph_, *diffusion_, sheaf, nodes, from, to, w,
          [=, &gain]<class T, int N>(Index index, Index i, Index c, const T* r, const T* z) {
            const Index in = nodes[index] * row + i * f + c, at = index * row + i * f + c;
            T step[N];
            SHEAFNN_UNROLL for (int k = 0; k < N; ++k) step[k] = kernels::activated(z[k], activation);
            if (keep) {
              SHEAFNN_UNROLL for (int k = 0; k < N; ++k) detail::store(diffused + at + k * f, r[k]);
            }
            SHEAFNN_UNROLL for (int k = 0; k < N; ++k) {
              const T own = detail::load<T>(x + in + k * f);
              detail::store(out + at + k * f, kernels::gated(T(gain[i + k]), own, step[k]));
            }
          });
    });
  }

  /// 1 + tanh ε_i.
  void gains(const DiffusionWeights<const S>& weights, S* gain) const {
    const S* epsilon = weights.epsilon.data();
    for (Index i = 0; i < diffusion_->coordinates; ++i) gain[i] = kernels::gain(epsilon[i]);
  }

  /// z̄ = −x̄ ∘ ELU′(S r), r̄ = S z̄, S̄_u = z̄_u r_uᵀ, and ε̄_i = (1 − tanh² ε_i) Σ_{u, c} x x̄, where x̄ is output_bar or,
  /// at nodes that were not computed, 0.
  void backward_activation(Execution execution, const SheafBlocks<Family, S>& sheaf, const S* gain,
                           const S* output_bar, S* x_bar, S* r_bar, SheafBlocksGradient<Family, S>& sheaf_gradient,
                           bool accumulate, const DiffusionWeights<S>& weights_bar) {
    constexpr int gram = BlockSizes<Family>::gram;
    const Index f = diffusion_->channels, d = diffusion_->coordinates, row = d * f;
    const bool activation = options_.activation;
    mixing_.chunks().for_each(execution, [&](Index chunk, Index begin, Index end) {
      S* sum = partial_.data() + chunk * max_coordinates;
      std::fill_n(sum, d, S(0));
      detail::for_tiles<S>(0, f, [&]<class T>(Index c) {
        const bool add = accumulate || c > 0;
        T products[max_coordinates];
        for (Index i = 0; i < d; ++i) products[i] = T(S(0));
        Index index = nodes_.lower_bound(begin);
        for (Index u = begin; u < end; ++u) {
          const Index at = u * row + c;
          S* scale_bar = sheaf_gradient.scale_bar.data() + u * gram;
          if (index == nodes_.count() || nodes_[index] != u) {
            detail::clear_node<Family, T>(*diffusion_, at, x_bar, r_bar, scale_bar, add);
            continue;
          }
          const Index from = index++ * row + c;
          detail::scaling_backward<Family, T, true>(*diffusion_, sheaf, u, diffused_.data() + from, r_bar + at,
                                                    scale_bar, add,
                                                    [&](Index i, const T& z) SHEAFNN_INLINE_LAMBDA {
                                                      const T bar = detail::load<T>(output_bar + from + i * f);
                                                      detail::store(x_bar + at + i * f, bar);
                                                      products[i] += detail::load<T>(input_ + at + i * f) * bar;
                                                      return kernels::activated_bar(bar, z, activation);
                                                    });
        }
        for (Index i = 0; i < d; ++i) sum[i] += reduce_add(products[i]);
      });
    });
    S* out = weights_bar.epsilon.data();
    for (Index i = 0; i < d; ++i) {
      S sum = S(0);
      for (Index chunk = 0; chunk < mixing_.chunks().count; ++chunk) sum += partial_[chunk * max_coordinates + i];
      out[i] += kernels::gain_slope(gain[i] - S(1)) * sum;
    }
  }

  const Graph* graph_ = nullptr;
  const DiffusionShape<S>* diffusion_ = nullptr;
  DiffusionOptions options_;
  FeatureMixing<S> mixing_;
  Buffer<S> scaled_;    ///< W = S Y
  Buffer<S> diffused_;  ///< R = L W, before the second scaling
  Buffer<S> output_;
  Buffer<S> partial_;  ///< per chunk of nodes: Σ x x̄ of each coordinate
  const S* input_ = nullptr;
  NodeSelection nodes_;  ///< at which forward() computed output()
};

template <RestrictionMapFamily Family, class S>
DiffusionLayer<Family, S>::DiffusionLayer(const Graph& graph, const DiffusionShape<S>& diffusion,
                                          const DiffusionOptions& options)
    : graph_((detail::require_fits(diffusion, graph, Family::stalk_dimension), &graph)),
      diffusion_(&diffusion),
      options_(options),
      mixing_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, options.left, options.right),
      scaled_(graph.node_count() * diffusion.row()),
      diffused_(scaled_.size()),
      output_(scaled_.size()),
      partial_(mixing_.chunks().count * max_coordinates) {}

template <RestrictionMapFamily Family, class S>
void DiffusionLayer<Family, S>::forward(Execution execution, const DiffusionWeights<const S>& weights,
                                        const SheafBlocks<Family, S>& sheaf, const FeatureView<const S>& x,
                                        const Dropout& dropout, const NodeSelection& nodes) {
  check(weights, sheaf, x);
  input_ = x.data();
  nodes_ = nodes;
  mix_and_scale(execution, weights, sheaf, x.data(), dropout, true, scaled_.data());
  diffuse_and_activate(execution, weights, sheaf, x.data(), scaled_.data(), true);
}

template <RestrictionMapFamily Family, class S>
void DiffusionLayer<Family, S>::evaluate(Execution execution, const DiffusionWeights<const S>& weights,
                                         const SheafBlocks<Family, S>& sheaf, const FeatureView<const S>& x,
                                         const NodeSelection& nodes, MixedFeatures mixed,
                                         const FeatureView<S>& w) {
  check(weights, sheaf, x);
  check_features(w, "w");
  nodes_ = nodes;
  if (mixed == MixedFeatures::reuse) {
    detail::scale_features<Family>(execution, *graph_, *diffusion_, sheaf, mixing_.output(), w.data());
  } else {
    const bool keep = mixed == MixedFeatures::compute_and_keep;
    mix_and_scale(execution, weights, sheaf, x.data(), Dropout{}, keep, w.data());
  }
  diffuse_and_activate(execution, weights, sheaf, x.data(), w.data(), false);
}

template <RestrictionMapFamily Family, class S>
void DiffusionLayer<Family, S>::backward(Execution execution, const DiffusionWeights<const S>& weights,
                                         const SheafBlocks<Family, S>& sheaf,
                                         SheafBlocksGradient<Family, S>& sheaf_gradient, bool accumulate,
                                         const FeatureView<const S>& output_bar, const FeatureView<S>& x_bar,
                                         const FeatureView<S>& y_bar, const FeatureView<S>& r_bar,
                                         const DiffusionWeights<S>& weights_bar) {
  require_shape(output_bar, nodes_.count(), diffusion_->coordinates, diffusion_->channels, "output_bar");
  check_features(x_bar, "x_bar");
  check_features(y_bar, "y_bar");
  check_features(r_bar, "r_bar");
  check_weights(weights);
  check_weights(weights_bar);
  detail::require_over(*graph_, sheaf);
  S gain[max_coordinates];
  gains(weights, gain);
  backward_activation(execution, sheaf, gain, output_bar.data(), x_bar.data(), r_bar.data(), sheaf_gradient,
                      accumulate, weights_bar);
  const NodeSelection all(graph_->node_count());
  detail::with_halo(*graph_, all, r_bar.data(), diffusion_->row(), [&](Index from, Index to) {
    detail::apply_laplacian_backward<Family>(execution, *graph_, *diffusion_, sheaf, from, to,
                                             {mixing_.output(), scaled_.data(), r_bar.data()}, y_bar.data(),
                                             sheaf_gradient, accumulate);
  });
  detail::clear_halo(*graph_, x_bar.data(), diffusion_->row());
  mixing_.backward(execution, weights, gain, y_bar.data(), x_bar.data(), weights_bar);
}

}  // namespace sheafnn
