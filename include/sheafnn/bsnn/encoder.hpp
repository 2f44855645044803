/// \file
/// Encoder: H = dropout(ELU(dropout_in(X) W₁ᵀ + b₁)), the networks' first layer, on sparse features (math: "The
/// model"). Used for node features and, without dropout, for the sheaf learner's own embeddings.
#pragma once

#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/dropout.hpp"
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
        mask_(Dropout::mask_size(input.rows() * shape.width)),
        output_(input.rows() * shape.width) {
    if (!shape.degrees) return;
    degree_.resize(input.rows());
    for (Index u = 0; u < input.rows(); ++u) degree_[u] = static_cast<S>(graph.degree(u));
  }

  /// n × h, valid after forward().
  [[nodiscard]] const S* output() const noexcept {
    return output_is_activated_ ? activated_.data() : output_.data();
  }

  /// Computes output(); inactive dropouts are skipped.
  void forward(int threads, const ParameterSet<S>& parameters, const Dropout& input_dropout,
               const Dropout& dropout) {
    const Index width = shape_.width, n = input_->rows();
    const S* weight = parameters.data(shape_.weight);
    const S* degree_weight = weight + input_->columns() * width;
    const S* bias = parameters.data(shape_.bias);
    output_is_activated_ = !dropout.active();
    factor_ = static_cast<S>(dropout.scale());
    if (dropout.active()) dropout.fill_mask(threads, n * width, mask_.data());
    const auto activate = [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        for_tiles<S>(0, width, [&]<class T>(Index c) {
          const Index place = u * width + c;
          T value = load<T>(activated_.data() + place);
          if (shape_.degrees) value += T(degree_[u]) * load<T>(degree_weight + c);
          if (shape_.activation) value = elu(value);
          store(activated_.data() + place, value);
          if (!output_is_activated_) store(output_.data() + place, dropped(value, mask_.data(), place, factor_));
        });
      }
    };
    if (input_dropout.active()) {
      entries_.draw(threads, input_dropout);
      input_->forward(threads, entries_, weight, bias, width, activated_.data(), activate);
      used_values_ = entries_.values.data();
    } else {
      input_->forward(threads, weight, bias, width, activated_.data(), activate);
      used_values_ = input_->values();
    }
  }

  /// Writes the weight's derivatives to `gradient` and adds the bias's; `output_bar` (n × h) is overwritten.
  void backward(int threads, const ParameterSet<S>& parameters, S* output_bar, Buffer<S>& gradient) {
    const Index width = shape_.width, n = input_->rows();
    parallel_for(threads, n * width, 2048, [&](Index begin, Index end) {
      for_tiles<S>(begin, end, [&]<class T>(Index i) {
        T bar = load<T>(output_bar + i);
        if (!output_is_activated_) bar = dropped(bar, mask_.data(), i, factor_);
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
  Buffer<std::uint8_t> mask_;
  Buffer<S> output_;
  const S* used_values_ = nullptr;
  S factor_ = S(1);
  bool output_is_activated_ = true;
};

}  // namespace sheafnn
