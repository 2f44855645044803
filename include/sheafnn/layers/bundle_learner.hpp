/// \file
/// BundleLearner: from the features of the nodes, n × h, to the o values that the rotations of a node are made of:
///
///   - mlp: GELU(X W₁ + b₁) W₂ + b₂;
///   - sage: convolutions with the mean over neighbours (SageLayer), between them GELU and dropout;
///   - sage_residual: E = GELU(X W₁ + b₁), then for every block E ← E + dropout(FF([N ‖ mean over neighbours of N])) with
///     N = LayerNorm(E) and a FeedForward. The end is LayerNorm(E) W₂ + b₂. Dropout also follows the first GELU.
///
/// Source: math: "Flat bundles"; Bundle Neural Networks (Bamberger et al.). The last is the GraphSAGE of A Critical Look at
/// the Evaluation of GNNs under Heterophily (Platonov et al.). The learners of maps of cooperative networks:
/// node_learner.hpp.
#pragma once

#include <optional>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/layers/feed_forward.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/normalised_adjacency.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/dense.hpp"

namespace sheafnn::layers {

/// The convolution Z = M X W + X V + 1 bᵀ of whole matrices, M the mean over neighbours, 0 where there are none, with its
/// backward pass. M commutes with the product, which comes first: rows of Z's width are added. Two convolutions side by side,
/// on groups of rows: sage_pair.hpp. Unchecked: the shapes of views and weights.
template <class S>
class SageLayer {
 public:
  SageLayer(Index nodes, Index inputs, Index outputs)
      : nodes_(nodes),
        inputs_(inputs),
        outputs_(outputs),
        product_(nodes * outputs),
        z_(nodes * outputs),
        transposed_(inputs * outputs) {}

  /// Z of the last forward(), n × outputs.
  [[nodiscard]] MatrixView<const S> output() const noexcept { return {z_.data(), nodes_, outputs_}; }

  /// \param mean  M
  void forward(Execution execution, const NormalisedAdjacency<S>& mean, const SageWeights<const S>& weights,
               const MatrixView<const S>& x) {
    const MatrixView<S> product(product_.data(), nodes_, outputs_), z(z_.data(), nodes_, outputs_);
    parallel_for(execution, nodes_, 64, [&](Index begin, Index end) {
      const Index count = end - begin;
      detail::multiply_block(x.middle_rows(begin, count), weights.neighbour.weight,
                             product.middle_rows(begin, count), false);
      detail::multiply_block_from(x.middle_rows(begin, count), weights.self,
                                  {weights.neighbour.bias.data(), count, outputs_, 0, 1},
                                  z.middle_rows(begin, count));
    });
    mean.multiply(execution, false, product, z, true);
  }
  /// Derivatives from the derivative of output(): G = Mᵀ Z̄, W̄ += Xᵀ G, V̄ += Xᵀ Z̄, b̄ += Z̄ᵀ 1, X̄ (+)= G Wᵀ + Z̄ Vᵀ.
  void backward(Execution execution, const NormalisedAdjacency<S>& mean, const SageWeights<const S>& weights,
                const MatrixView<const S>& x, const MatrixView<const S>& bar, const MatrixView<S>& x_bar,
                bool accumulate, const SageWeights<S>& weights_bar) {
    const MatrixView<S> g(product_.data(), nodes_, outputs_);
    mean.multiply(execution, true, bar, g, false);
    detail::multiply_dense(execution, detail::transposed(x), g, weights_bar.neighbour.weight, true);
    detail::multiply_dense(execution, detail::transposed(x), bar, weights_bar.self, true);
    detail::add_column_sums(nodes_, outputs_, bar.data(), bar.stride(), weights_bar.neighbour.bias.data());
    add_input_bar(execution, weights.neighbour.weight, g, x_bar, accumulate);
    add_input_bar(execution, weights.self, bar, x_bar, true);
  }

 private:
  void add_input_bar(Execution execution, const MatrixView<const S>& weight, const MatrixView<const S>& bar,
                     const MatrixView<S>& x_bar, bool accumulate) {
    detail::transpose_into(inputs_, outputs_, weight.data(), transposed_.data(), inputs_);
    detail::multiply_dense(execution, bar, MatrixView<const S>(transposed_.data(), outputs_, inputs_), x_bar,
                           accumulate);
  }

  Index nodes_, inputs_, outputs_;
  Buffer<S> product_;  ///< X W, backwards G
  Buffer<S> z_;
  Buffer<S> transposed_;  ///< of W and of V
};

/// Buffers that the layers and learners of a network share, since only one of them works at a time. Unchecked: sizes.
template <class S>
struct BundleWorkspace {
  Buffer<S> rows[3];

  /// \param width  2 · max(g, h) of the learners and layers
  BundleWorkspace(Index nodes, Index width) {
    for (Buffer<S>& one : rows) one.resize(nodes * width);
  }
};

/// Unchecked: shapes of views and weights, which the layers that it is made of check.
template <class S>
class BundleLearner {
 public:
  /// \param mean  over neighbours; must outlive it
  BundleLearner(const NormalisedAdjacency<S>& mean, const BundleLearnerOptions& options)
      : options_(options), mean_(&mean) {
    const Index n = mean.nodes(), g = options.width;
    switch (options.kind) {
      case BundleLearnerKind::mlp:
        forward_.emplace_back(n, options.inputs, g, options.outputs);
        return;
      case BundleLearnerKind::sage:
        for (Index k = 0; k < options.layers; ++k) {
          const bool last = k + 1 == options.layers;
          convolutions_.emplace_back(n, k == 0 ? options.inputs : g, last ? options.outputs : g);
          if (last) break;
          kept_.emplace_back(n * g);
          dropouts_.emplace_back(n, g);
        }
        return;
      case BundleLearnerKind::sage_residual:
        first_.emplace(n, options.inputs, g, Activation::gelu);
        last_.emplace(n, g, options.outputs);
        for (Index k = 0; k <= options.layers; ++k) {
          kept_.emplace_back(n * g);
          norms_.emplace_back(n, g);
          dropouts_.emplace_back(n, g);
          if (k == options.layers) break;
          pairs_.emplace_back(n * 2 * g);
          forward_.emplace_back(n, 2 * g, g, g);
        }
    }
  }

  /// The learner's predictions, n × o.
  [[nodiscard]] MatrixView<const S> raw() const noexcept {
    return last_                   ? last_->output()
           : convolutions_.empty() ? forward_.back().output()
                                   : convolutions_.back().output();
  }

  /// Calls use(mask) for the masks of all dropouts, whose rows have g values.
  template <class Use>
  void for_masks(const Use& use) {
    for (FeedForward<S>& one : forward_) use(one.mask());
    for (DropoutLayer<S>& one : dropouts_) use(one.mask());
  }

  /// Computes raw() from x, which must not change until backward().
  ///
  /// \param dropout_of  dropout_of(k): dropout k, 0 … 2 · layers
  template <class DropoutOf>
  void forward(Execution execution, const BundleLearnerWeights<const S>& weights, const MatrixView<const S>& x,
               const DropoutOf& dropout_of) {
    if (options_.kind == BundleLearnerKind::mlp) {
      forward_[0].forward(execution, weights.ends, x, dropout_of(0));
    } else if (options_.kind == BundleLearnerKind::sage) {
      for (std::size_t k = 0; k < convolutions_.size(); ++k) {
        convolutions_[k].forward(execution, *mean_, weights.convolutions[k],
                                 k == 0 ? x : dropouts_[k - 1].output());
        if (k + 1 == convolutions_.size()) break;
        detail::apply_activation(execution, Activation::gelu, kept_[k].size(), convolutions_[k].output().data(),
                                 kept_[k].data());
        dropouts_[k].forward(execution, rows(kept_[k]), dropout_of(static_cast<Index>(k)));
      }
    } else {
      residual_forward(execution, weights, x, dropout_of);
    }
  }
  /// x_bar += the derivative of x, and adds the weights' derivatives. \param raw_bar  of raw(), n × o, overwritten
  void backward(Execution execution, const BundleLearnerWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<S>& raw_bar, BundleWorkspace<S>& work, const MatrixView<S>& x_bar,
                const BundleLearnerWeights<S>& weights_bar) {
    const Index n = mean_->nodes(), g = options_.width;
    if (options_.kind == BundleLearnerKind::mlp) {
      forward_[0].backward(execution, weights.ends, x, raw_bar, {work.rows[0].data(), n, g}, x_bar, true,
                           weights_bar.ends);
    } else if (options_.kind == BundleLearnerKind::sage) {
      MatrixView<S> bar = raw_bar;
      for (std::size_t k = convolutions_.size(); k-- > 0;) {
        if (k == 0) {
          convolutions_[0].backward(execution, *mean_, weights.convolutions[0], x, bar, x_bar, true,
                                    weights_bar.convolutions[0]);
          break;
        }
        const MatrixView<S> before(work.rows[k % 2].data(), n, g);
        convolutions_[k].backward(execution, *mean_, weights.convolutions[k], dropouts_[k - 1].output(), bar,
                                  before, false, weights_bar.convolutions[k]);
        dropouts_[k - 1].backward_in_place(execution, before);
        detail::multiply_by_derivative(execution, Activation::gelu, n * g, convolutions_[k - 1].output().data(),
                                       before.data());
        bar = before;
      }
    } else {
      residual_backward(execution, weights, x, raw_bar, work, x_bar, weights_bar);
    }
  }

 private:
  [[nodiscard]] MatrixView<const S> rows(const Buffer<S>& of) const noexcept {
    return {of.data(), mean_->nodes(), options_.width};
  }
  [[nodiscard]] MatrixView<const S> pair(std::size_t k) const noexcept {
    return {pairs_[k].data(), mean_->nodes(), 2 * options_.width};
  }

  template <class DropoutOf>
  void residual_forward(Execution execution, const BundleLearnerWeights<const S>& weights,
                        const MatrixView<const S>& x, const DropoutOf& dropout_of) {
    const Index n = mean_->nodes(), g = options_.width;
    first_->forward(execution, weights.ends.hidden, x);
    dropouts_[0].forward(execution, first_->output(), dropout_of(0));
    detail::copy_rows(execution, dropouts_[0].output(), MatrixView<S>(kept_[0].data(), n, g));
    for (std::size_t k = 0; k < forward_.size(); ++k) {
      norms_[k].forward(execution, weights.norms[k], rows(kept_[k]));
      detail::copy_rows(execution, norms_[k].output(), MatrixView<S>(pairs_[k].data(), n, g, 2 * g));
      mean_->multiply(execution, false, norms_[k].output(), MatrixView<S>(pairs_[k].data() + g, n, g, 2 * g),
                      false);
      forward_[k].forward(execution, weights.blocks[k], pair(k), dropout_of(static_cast<Index>(2 * k + 1)));
      dropouts_[k + 1].forward(execution, forward_[k].output(), dropout_of(static_cast<Index>(2 * k + 2)));
      detail::copy_rows(execution, rows(kept_[k]), MatrixView<S>(kept_[k + 1].data(), n, g));
      detail::add_array(execution, n * g, dropouts_[k + 1].output().data(), kept_[k + 1].data());
    }
    norms_.back().forward(execution, weights.norms.back(), rows(kept_.back()));
    last_->forward(execution, weights.ends.output, norms_.back().output());
  }
  void residual_backward(Execution execution, const BundleLearnerWeights<const S>& weights,
                         const MatrixView<const S>& x, const MatrixView<S>& raw_bar, BundleWorkspace<S>& work,
                         const MatrixView<S>& x_bar, const BundleLearnerWeights<S>& weights_bar) {
    const Index n = mean_->nodes(), g = options_.width;
    // Ē; the derivative of a block's output, then of N; FeedForward's own, then the derivative of the pair.
    Buffer<S>&kept = work.rows[0], &inner = work.rows[1], &outer = work.rows[2];
    const MatrixView<S> e_bar(kept.data(), n, g), one(inner.data(), n, g), other(inner.data() + n * g, n, g);
    const MatrixView<S> pair_bar(outer.data(), n, 2 * g);
    last_->backward(execution, weights.ends.output, norms_.back().output(), raw_bar, e_bar, false,
                    weights_bar.ends.output);
    norms_.back().backward(execution, weights.norms.back(), rows(kept_.back()), e_bar, e_bar,
                           weights_bar.norms.back());
    for (std::size_t k = forward_.size(); k-- > 0;) {
      detail::copy_rows(execution, e_bar, one);
      dropouts_[k + 1].backward_in_place(execution, one);
      forward_[k].backward(execution, weights.blocks[k], pair(k), one, other, pair_bar, false,
                           weights_bar.blocks[k]);
      const MatrixView<const S> means(pair_bar.data() + g, n, g, 2 * g);
      mean_->multiply(execution, true, means, one, false);
      detail::copy_rows<true>(execution, MatrixView<const S>(pair_bar.data(), n, g, 2 * g), one);
      norms_[k].backward(execution, weights.norms[k], rows(kept_[k]), one, one, weights_bar.norms[k]);
      detail::add_array(execution, n * g, one.data(), e_bar.data());
    }
    dropouts_[0].backward_in_place(execution, e_bar);
    first_->backward(execution, weights.ends.hidden, x, e_bar, x_bar, true, weights_bar.ends.hidden);
  }

  BundleLearnerOptions options_;
  const NormalisedAdjacency<S>* mean_;
  std::vector<FeedForward<S>> forward_;  ///< of mlp, or of the blocks
  std::vector<SageLayer<S>> convolutions_;
  std::optional<DenseLayer<S>> first_, last_;  ///< of sage_residual
  std::vector<Buffer<S>> kept_;  ///< GELU of Z after each convolution but the last; E before every block
  std::vector<LayerNorm<S>> norms_;
  std::vector<Buffer<S>> pairs_;  ///< [N ‖ mean of N]
  std::vector<DropoutLayer<S>> dropouts_;
};

}  // namespace sheafnn::layers
