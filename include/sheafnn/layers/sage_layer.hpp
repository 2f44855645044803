/// \file
/// SageLayer: the convolution Z = M X W + X V + 1 bᵀ of whole matrices, M the mean over neighbours, 0 where there are none,
/// with its backward pass. M commutes with the product, which comes first: rows of Z's width are added. Two convolutions side
/// by side, on groups of rows: sage_pair.hpp. Source: math: "Learners of node maps", "Flat bundles".
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/layers/normalised_adjacency.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/dense.hpp"

namespace sheafnn::layers {

/// Buffers on one graph. Unchecked: the shapes of views and weights.
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

}  // namespace sheafnn::layers
