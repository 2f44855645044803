/// \file
/// Encoder: H = dropout(ELU(dropout_in(X) W₁ᵀ + b₁)), the networks' first layer, on sparse features (math: "The
/// model"). Used for node features and, without dropout, for the sheaf learner's own embeddings.
#pragma once

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/nn/sparse_input.hpp"

namespace sheafnn {

/// Weights of an encoder. The weight (h × p, or h × (p + 1) with degrees) is stored transposed.
struct EncoderShape {
  ParameterId weight = -1;
  ParameterId bias = -1;
  Index width = 0;         ///< h
  bool activation = true;  ///< apply ELU
  bool degrees = false;    ///< the last input is the node's degree
};

/// Buffers and passes of one encoder on one graph.
template <class S>
class Encoder {
 public:
  Encoder() = default;
  /// `input` must outlive the encoder.
  Encoder(const SparseInput<S>& input, const Graph& graph, EncoderShape shape)
      : input_(&input),
        shape_(shape),
        entries_(input.entries()),
        activated_(input.rows() * shape.width),
        mask_(input.rows() * shape.width),
        output_(input.rows() * shape.width) {
    if (!shape.degrees) return;
    degree_.resize(input.rows());
    for (Index u = 0; u < input.rows(); ++u) degree_[u] = static_cast<S>(graph.degree(u));
  }

  /// n × h, valid after forward().
  [[nodiscard]] const S* output() const noexcept {
    return output_is_activated_ ? activated_.data() : output_.data();
  }
  /// The same without dropouts, where the last forward() was asked for it.
  [[nodiscard]] const S* clean() const noexcept { return entries_dropped_ ? clean_.data() : activated_.data(); }

  /// The masks of the two dropouts.
  [[nodiscard]] DropoutMask& entry_mask() noexcept { return entries_.mask; }
  [[nodiscard]] DropoutMask& mask() noexcept { return mask_; }

  /// Computes output(); inactive dropouts are skipped.
  ///
  /// \param with_clean  compute clean() as well, in the same walk over the features
  void forward(int threads, const ParameterSet<S>& parameters, const Dropout& input_dropout,
               const Dropout& dropout, bool with_clean = false) {
    const Index width = shape_.width, n = input_->rows();
    const S* weight = parameters.data(shape_.weight);
    const S* degree_weight = weight + input_->columns() * width;
    const S* bias = parameters.data(shape_.bias);
    entries_dropped_ = input_dropout.active();
    const bool clean_apart = with_clean && entries_dropped_;
    output_is_activated_ = !dropout.active();
    factor_ = static_cast<S>(dropout.scale());
    if (dropout.active()) mask_.draw(threads, dropout);
    const auto activate = [&](Index u, S* row) {
      for_tiles<S>(0, width, [&]<class T>(Index c) {
        T value = load<T>(row + c);
        if (shape_.degrees) value += T(degree_[u]) * load<T>(degree_weight + c);
        store(row + c, shape_.activation ? elu(value) : value);
      });
    };
    const auto finish = [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        activate(u, activated_.data() + u * width);
        if (clean_apart) activate(u, clean_.data() + u * width);
      }
      if (output_is_activated_) return;
      for_tiles<S>(begin * width, end * width, [&]<class T>(Index i) {
        store(output_.data() + i, dropped(load<T>(activated_.data() + i), mask_.bits(), i, factor_));
      });
    };
    if (clean_apart && clean_.empty()) clean_.resize(n * width);
    if (const Index room = input_->work_size(width, clean_apart ? 2 : 1); work_.size() < room) work_.resize(room);
    if (!entries_dropped_) {
      input_->forward(threads, weight, bias, width, activated_.data(), work_.data(), finish);
      used_values_ = input_->values();
      return;
    }
    entries_.draw(threads, input_dropout);
    used_values_ = entries_.values.data();
    if (clean_apart) {
      input_->forward_both(threads, entries_, weight, bias, width, activated_.data(), clean_.data(), work_.data(),
                           finish);
    } else {
      input_->forward(threads, entries_, weight, bias, width, activated_.data(), work_.data(), finish);
    }
  }

  /// Writes the weight's derivatives to `gradient` and adds the bias's; `output_bar` (n × h) is overwritten.
  void backward(int threads, const ParameterSet<S>& parameters, S* output_bar, Buffer<S>& gradient) {
    const Index width = shape_.width, n = input_->rows();
    parallel_for(threads, n * width, 2048, [&](Index begin, Index end) {
      for_tiles<S>(begin, end, [&]<class T>(Index i) {
        T bar = load<T>(output_bar + i);
        if (!output_is_activated_) bar = dropped(bar, mask_.bits(), i, factor_);
        if (shape_.activation) bar *= elu_slope(load<T>(activated_.data() + i));
        store(output_bar + i, bar);
      });
    });
    S* weight_bar = gradient.data() + parameters.info(shape_.weight).offset;
    input_->backward(threads, used_values_, output_bar, width, weight_bar);
    if (shape_.degrees) {
      multiply_dense<S>(1, 1, width, n, {degree_.data(), 0, 1}, output_bar, width,
                        weight_bar + input_->columns() * width, width, false);
    }
    add_column_sums(n, width, output_bar, width, gradient.data() + parameters.info(shape_.bias).offset);
  }

 private:
  const SparseInput<S>* input_ = nullptr;
  EncoderShape shape_;
  Buffer<S> degree_;
  EntryDropout<S> entries_;  ///< stored features after dropout
  Buffer<S> activated_;      ///< ELU output, before dropout
  Buffer<S> clean_;          ///< the same for features without dropout, once it was asked for
  Buffer<S> work_;           ///< of the input layer
  DropoutMask mask_;
  Buffer<S> output_;
  const S* used_values_ = nullptr;
  S factor_ = S(1);
  bool entries_dropped_ = false, output_is_activated_ = true;
};

}  // namespace sheafnn
