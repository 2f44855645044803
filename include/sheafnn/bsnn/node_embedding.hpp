/// \file
/// NodeEmbedding: what the diffusion layers start from, the encoder's output H or, with a second linear layer, H W₂ᵀ + 1 b₂ᵀ
/// (math: "The model").
#pragma once

#include <algorithm>

#include "sheafnn/bsnn/encoder.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/nn/sparse_input.hpp"

namespace sheafnn {

/// Buffers and passes of the embeddings of one graph, n × h.
template <class S>
class NodeEmbedding {
 public:
  /// `input` must outlive the embedding.
  ///
  /// \param weight, bias  W₂ (h × h, stored transposed) and b₂, or −1 without a second layer
  NodeEmbedding(const SparseInput<S>& input, const Graph& graph, EncoderShape shape, ParameterId weight,
                ParameterId bias)
      : encoder_(input, graph, shape),
        nodes_(graph.node_count()),
        width_(shape.width),
        weight_(weight),
        bias_(bias),
        transposed_(weight >= 0 ? width_ * width_ : 0) {}

  /// Valid after forward().
  [[nodiscard]] const S* output() const noexcept { return output_; }
  /// The same without dropouts, where the last forward() was asked for it.
  [[nodiscard]] const S* clean() const noexcept { return clean_; }

  /// The masks of the two dropouts.
  [[nodiscard]] DropoutMask& entry_mask() noexcept { return encoder_.entry_mask(); }
  [[nodiscard]] DropoutMask& mask() noexcept { return encoder_.mask(); }

  /// Computes output(), and clean() if it is wanted.
  void forward(int threads, const ParameterSet<S>& parameters, const Dropout& features, const Dropout& hidden,
               bool with_clean) {
    encoder_.forward(threads, parameters, features, hidden, with_clean);
    output_ = second_layer(threads, parameters, encoder_.output(), product_);
    if (!with_clean) return;
    const bool same = encoder_.clean() == encoder_.output();
    clean_ = same ? output_ : second_layer(threads, parameters, encoder_.clean(), clean_product_);
  }

  /// From the derivative of output() to those of the weights.
  ///
  /// \param bar   n × h, may be overwritten
  /// \param work  a buffer of the same size
  void backward(int threads, const ParameterSet<S>& parameters, S* bar, S* work, Buffer<S>& gradient) {
    if (weight_ < 0) {
      encoder_.backward(threads, parameters, bar, gradient);
      return;
    }
    const Index n = nodes_, h = width_;
    multiply_dense<S>(threads, h, h, n, {encoder_.output(), 1, h}, bar, h,
                      gradient.data() + parameters.info(weight_).offset, h, true);
    add_column_sums(n, h, bar, h, gradient.data() + parameters.info(bias_).offset);
    transpose_into(h, h, parameters.data(weight_), transposed_.data(), h);
    multiply_dense<S>(threads, n, h, h, {bar, h, 1}, transposed_.data(), h, work, h, false);
    encoder_.backward(threads, parameters, work, gradient);
  }

 private:
  /// \returns x without a second layer, otherwise `out`, which takes its room when it is needed first
  [[nodiscard]] const S* second_layer(int threads, const ParameterSet<S>& parameters, const S* x, Buffer<S>& out) {
    if (weight_ < 0) return x;
    const Index n = nodes_, h = width_;
    if (out.empty()) out.resize(n * h);
    const S* bias = parameters.data(bias_);
    for (Index u = 0; u < n; ++u) std::copy_n(bias, h, out.data() + u * h);
    multiply_dense<S>(threads, n, h, h, {x, h, 1}, parameters.data(weight_), h, out.data(), h, true);
    return out.data();
  }

  Encoder<S> encoder_;
  Index nodes_, width_;
  ParameterId weight_, bias_;
  Buffer<S> product_, clean_product_, transposed_;
  const S *output_ = nullptr, *clean_ = nullptr;
};

}  // namespace sheafnn
