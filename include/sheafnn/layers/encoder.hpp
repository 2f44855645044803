/// \file
/// Encoder: H = dropout(ELU(dropout_in(X) W₁ᵀ + b₁)), the networks' first layer, on sparse features (math: "The
/// model" (3.1)). Used for node features and, without dropout, for the sheaf learner's own embeddings.
#pragma once

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"
#include "sheafnn/nn/sparse_input.hpp"

namespace sheafnn::layers {

/// What an encoder is made of.
struct EncoderOptions {
  Index width = 0;         ///< h
  bool activation = true;  ///< apply ELU, or ReLU
  bool degrees = false;    ///< the node's degree is one more input, the last
  bool rectified = false;  ///< ReLU in place of ELU
};

/// Buffers and passes of one encoder on one graph.
template <class S>
class Encoder {
 public:
  Encoder() = default;
  /// `input` must outlive the encoder.
  ///
  /// \param graph  a Graph, or a Hypergraph
  /// \throws std::invalid_argument  width outside 1 … 2147483647, or a graph with another number of nodes
  template <class GraphType>
  Encoder(const SparseInput<S>& input, const GraphType& graph, const EncoderOptions& options);
  template <class GraphType>
  Encoder(const SparseInput<S>&&, const GraphType&, const EncoderOptions&) = delete;  // it would dangle

  /// n × h, valid after forward().
  [[nodiscard]] MatrixView<const S> output() const noexcept {
    return view(output_is_activated_ ? activated_ : output_.data());
  }
  /// The same without dropouts, if the last forward() computed it.
  [[nodiscard]] MatrixView<const S> clean() const noexcept {
    return view(entries_dropped_ ? clean_.data() : activated_);
  }

  /// The masks of the two dropouts.
  [[nodiscard]] DropoutMask& entry_mask() noexcept { return entries_.mask; }
  [[nodiscard]] DropoutMask& mask() noexcept { return mask_; }

  /// Computes output(); inactive dropouts are skipped.
  ///
  /// \param with_clean  compute clean() as well, in the same walk over the features
  /// \param memory      n × h, for ELU's values. They are output() without `dropout`, and clean() without `input_dropout`.
  ///                    Others may overwrite them before forward_again(). Null: the encoder's own
  /// \throws std::invalid_argument  weights of another shape
  void forward(Execution execution, const LinearWeights<const S>& weights, const Dropout& input_dropout = {},
               const Dropout& dropout = {}, bool with_clean = false, S* memory = nullptr);
  /// Computes what is in the memory that forward() was given once more, for backward(). Unchecked: the same weights.
  void forward_again(Execution execution, const LinearWeights<const S>& weights);

  /// Computes the derivatives of W (overwritten) and b (added to) from the derivative of output() (n × h, overwritten).
  ///
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const MatrixView<S>& bar, const LinearWeights<S>& weights_bar);

 private:
  [[nodiscard]] kernels::EncoderEnd ending() const noexcept { return {options_.activation, options_.rectified}; }
  [[nodiscard]] MatrixView<const S> view(const S* rows) const noexcept {
    return {rows, input_->rows(), options_.width};
  }
  /// ELU of the products of dropout(X), which is drawn, and of X.
  ///
  /// \param clean  not written where it is null
  /// \param again  leave what forward() has computed from them
  void activate(Execution execution, const LinearWeights<const S>& weights, S* clean, bool again = false);
  template <class T>
  [[nodiscard]] SHEAFNN_INLINE T activated(const T& value) const {
    return ending().forward(value);
  }
  template <class T>
  void require_shapes(const LinearWeights<T>& weights) const {
    require_array(weights.weight, input_->columns() + (options_.degrees ? 1 : 0), options_.width,
                  "encoder weight");
    require_size(weights.bias, options_.width, "encoder bias");
  }

  const SparseInput<S>* input_ = nullptr;
  EncoderOptions options_;
  Buffer<S> degree_;
  EntryDropout<S> entries_;  ///< stored features after dropout
  S* activated_ = nullptr;   ///< ELU output, before dropout, in its memory
  Buffer<S> own_activated_;  ///< the encoder's, allocated when first needed, as is what follows
  Buffer<S> clean_;          ///< the same for features without dropout
  Buffer<S> work_;           ///< of the input layer
  DropoutMask mask_;
  Buffer<S> output_;  ///< after dropout
  const S* used_values_ = nullptr;
  S factor_ = S(1);
  bool entries_dropped_ = false, output_is_activated_ = true, in_memory_ = false;
};

template <class S>
template <class GraphType>
Encoder<S>::Encoder(const SparseInput<S>& input, const GraphType& graph, const EncoderOptions& options)
    : input_(&input),
      options_{checked_extent("width", options.width), options.activation, options.degrees, options.rectified},
      entries_(input.entries()),
      mask_(input.rows() * options.width) {
  if (graph.node_count() != input.rows()) {
    throw_invalid_argument("nodes of the graph", graph.node_count(),
                           detail::concat("the features have ", input.rows(), " rows"));
  }
  if (!options.degrees) return;
  degree_.resize(input.rows());
  for (Index u = 0; u < input.rows(); ++u) degree_[u] = static_cast<S>(graph.degree(u));
}

template <class S>
void Encoder<S>::activate(Execution execution, const LinearWeights<const S>& weights, S* clean, bool again) {
  const Index width = options_.width;
  require_shapes(weights);
  const S* weight = weights.weight.data();
  const S* degree_weight = weight + input_->columns() * width;
  const S* bias = weights.bias.data();
  const auto activate_row = [&](Index u, S* row) {
    detail::for_tiles<S>(0, width, [&]<class T>(auto c) {
      T value = c.load(row + c);
      if (options_.degrees) value += T(degree_[u]) * c.load(degree_weight + c);
      c.store(row + c, activated(value));
    });
  };
  const auto activate_rows = [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      activate_row(u, activated_ + u * width);
      if (clean != nullptr) activate_row(u, clean + u * width);
    }
    if (again || output_is_activated_) return;
    detail::for_tiles<S>(begin * width, end * width, [&]<class T>(auto i) {
      i.store(output_.data() + i, detail::dropped(i.load(activated_ + i), mask_.bits(), i, factor_));
    });
  };
  const Index work_size = input_->work_size(width, clean != nullptr ? 2 : 1);
  if (work_.size() < work_size) work_.resize(work_size);
  if (!entries_dropped_) {
    input_->forward(execution, weight, bias, width, activated_, work_.data(), activate_rows);
  } else if (clean != nullptr) {
    input_->forward_both(execution, entries_, weight, bias, width, activated_, clean, work_.data(), activate_rows);
  } else {
    input_->forward(execution, entries_, weight, bias, width, activated_, work_.data(), activate_rows);
  }
}

template <class S>
void Encoder<S>::forward(Execution execution, const LinearWeights<const S>& weights, const Dropout& input_dropout,
                         const Dropout& dropout, bool with_clean, S* memory) {
  const Index width = options_.width, size = input_->rows() * width;
  require_shapes(weights);
  entries_dropped_ = input_dropout.active();
  const bool clean_apart = with_clean && entries_dropped_;
  output_is_activated_ = !dropout.active();
  factor_ = static_cast<S>(dropout.scale());
  if (dropout.active()) {
    mask_.draw(execution, dropout);
    if (output_.empty()) output_.resize(size, to_be_written);
  }
  if (clean_apart && clean_.empty()) clean_.resize(size, to_be_written);
  if (memory == nullptr && own_activated_.empty()) own_activated_.resize(size, to_be_written);
  in_memory_ = memory != nullptr;
  activated_ = in_memory_ ? memory : own_activated_.data();
  if (entries_dropped_) entries_.draw(execution, input_dropout);
  used_values_ = entries_dropped_ ? entries_.values.data() : input_->values();
  activate(execution, weights, clean_apart ? clean_.data() : nullptr);
}

template <class S>
void Encoder<S>::forward_again(Execution execution, const LinearWeights<const S>& weights) {
  if (in_memory_) activate(execution, weights, nullptr, true);
}

template <class S>
void Encoder<S>::backward(Execution execution, const MatrixView<S>& bar, const LinearWeights<S>& weights_bar) {
  const Index width = options_.width, n = input_->rows();
  require_shapes(weights_bar);
  require_array(bar, n, width, "output_bar");
  S* output_bar = bar.data();
  if (!output_is_activated_ || options_.activation) {
    parallel_for(execution, n * width, 2048, [&](Index begin, Index end) {
      detail::for_tiles<S>(begin, end, [&]<class T>(auto i) {
        T value = i.load(output_bar + i);
        if (!output_is_activated_) value = detail::dropped(value, mask_.bits(), i, factor_);
        if (options_.activation) value = ending().backward(i.load(activated_ + i), value);
        i.store(output_bar + i, value);
      });
    });
  }
  S* weight_bar = weights_bar.weight.data();
  input_->backward(execution, used_values_, output_bar, width, weight_bar);
  if (options_.degrees) {
    detail::multiply_dense(1, MatrixView<const S>(degree_.data(), 1, n), bar,
                           weights_bar.weight.middle_rows(input_->columns(), 1), false);
  }
  detail::add_column_sums(n, width, output_bar, width, weights_bar.bias.data());
}

}  // namespace sheafnn::layers
