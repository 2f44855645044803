/// \file
/// NodeEmbedding: what the diffusion layers start from, the encoder's output H or, with a second linear layer, H W₂ᵀ + 1 b₂ᵀ
/// (math: "The model").
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/layers/encoder.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"
#include "sheafnn/nn/sparse_input.hpp"

namespace sheafnn::layers {

/// Buffers and passes of the embeddings of one graph, n × h.
template <class S>
class NodeEmbedding {
 public:
  /// `input` must outlive the embedding. Unchecked: that the graph has its nodes.
  ///
  /// \param second_layer  does the encoder have a second layer?
  NodeEmbedding(const SparseInput<S>& input, const Graph& graph, const EncoderOptions& options, bool second_layer);

  /// Valid after forward().
  [[nodiscard]] MatrixView<const S> output() const noexcept { return output_; }
  /// The same without dropouts, if the last forward() computed it.
  [[nodiscard]] MatrixView<const S> clean() const noexcept { return clean_; }

  /// The masks of the two dropouts.
  [[nodiscard]] DropoutMask& entry_mask() noexcept { return encoder_.entry_mask(); }
  [[nodiscard]] DropoutMask& mask() noexcept { return encoder_.mask(); }

  /// Computes output().
  ///
  /// \param second      ignored without a second layer
  /// \param with_clean  compute clean() as well
  /// \param memory      n × h, free for others outside forward() and forward_again() … backward(); null: the embedding's own
  /// \throws std::invalid_argument  weights of another shape
  void forward(Execution execution, const LinearWeights<const S>& first, const LinearWeights<const S>& second,
               const Dropout& features, const Dropout& hidden, bool with_clean, S* memory = nullptr) {
    // What is in the memory is neither output() nor clean().
    const bool serves = hidden.active() && (features.active() || !with_clean);
    encoder_.forward(execution, first, features, hidden, with_clean, serves ? memory : nullptr);
    output_ = second_layer(execution, second, encoder_.output(), product_);
    if (!with_clean) return;
    const bool same = encoder_.clean().data() == encoder_.output().data();
    clean_ = same ? output_ : second_layer(execution, second, encoder_.clean(), clean_product_);
  }
  /// Before backward(): computes once more what was in the memory. Unchecked: the same weights.
  void forward_again(Execution execution, const LinearWeights<const S>& first) {
    encoder_.forward_again(execution, first);
  }

  /// Computes the derivatives of W₁ (overwritten) and of the other weights (added to) from the derivative of output().
  ///
  /// \param bar   n × h, may be overwritten
  /// \param work  n × h, overwritten
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const LinearWeights<const S>& second, const MatrixView<S>& bar,
                const MatrixView<S>& work, const LinearWeights<S>& first_bar, const LinearWeights<S>& second_bar);

 private:
  template <class T>
  void require_second(const LinearWeights<T>& weights) const {
    require_array(weights.weight, width_, width_, "second weight");
    require_size(weights.bias, width_, "second bias");
  }
  /// \returns x without a second layer, otherwise its product, in `out`, which is allocated where it is not
  [[nodiscard]] MatrixView<const S> second_layer(Execution execution, const LinearWeights<const S>& weights,
                                                 const MatrixView<const S>& x, Buffer<S>& out) {
    if (!second_) return x;
    const Index n = nodes_, h = width_;
    require_second(weights);
    if (out.empty()) out.resize(n * h, to_be_written);
    for (Index u = 0; u < n; ++u) std::copy_n(weights.bias.data(), h, out.data() + u * h);
    detail::multiply_dense(execution, x, weights.weight, MatrixView<S>(out.data(), n, h), true);
    return {out.data(), n, h};
  }

  Encoder<S> encoder_;
  Index nodes_, width_;
  bool second_;
  Buffer<S> product_, clean_product_, transposed_;
  MatrixView<const S> output_, clean_;
};

template <class S>
NodeEmbedding<S>::NodeEmbedding(const SparseInput<S>& input, const Graph& graph, const EncoderOptions& options,
                                bool second_layer)
    : encoder_(input, graph, options),
      nodes_(graph.node_count()),
      width_(options.width),
      second_(second_layer),
      product_(second_layer ? nodes_ * width_ : 0, to_be_written),
      transposed_(second_layer ? width_ * width_ : 0) {}

template <class S>
void NodeEmbedding<S>::backward(Execution execution, const LinearWeights<const S>& second,
                                const MatrixView<S>& bar, const MatrixView<S>& work,
                                const LinearWeights<S>& first_bar, const LinearWeights<S>& second_bar) {
  if (!second_) {
    encoder_.backward(execution, bar, first_bar);
    return;
  }
  const Index n = nodes_, h = width_;
  require_array(bar, n, h, "output_bar");
  require_array(work, n, h, "work");
  require_second(second);
  require_second(second_bar);
  detail::multiply_dense(execution, detail::transposed(encoder_.output()), bar, second_bar.weight, true);
  detail::add_column_sums(n, h, bar.data(), h, second_bar.bias.data());
  detail::transpose_into(h, h, second.weight.data(), transposed_.data(), h);
  detail::multiply_dense(execution, bar, {transposed_.data(), h, h}, work, false);
  encoder_.backward(execution, work, first_bar);
}

}  // namespace sheafnn::layers
