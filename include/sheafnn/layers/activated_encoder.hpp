/// \file
/// ActivatedEncoder: H = act(dropout_in(X) Wᵀ + b) on sparse features, an Encoder with a choice of activation, with its backward
/// pass. Unchecked: what Encoder checks, and that a pass came before.
#pragma once

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/layers/encoder.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::detail {

/// act(dropout_in(X) Wᵀ + b): an encoder with a choice of activation.
template <class S>
struct ActivatedEncoder {
  Encoder<S> linear;
  Activation activation = Activation::gelu;
  Buffer<S> output;
  Buffer<S> slope;  ///< derivative of the activation; allocated when first needed, as is what follows
  Buffer<S> clean;  ///< the output without dropout

  ActivatedEncoder(const SparseInput<S>& input, const Graph& graph, Index width, Activation choice)
      : linear(input, graph, EncoderOptions{width, false, false}),
        activation(choice),
        output(input.rows() * width) {}
  /// \param training    keep what backward() reads
  /// \param with_clean  compute `clean` as well
  void forward(Execution execution, const LinearWeights<const S>& weights, const Dropout& dropout, bool training,
               bool with_clean = false) {
    linear.forward(execution, weights, dropout, {}, with_clean);
    if (training && slope.empty()) slope.resize(output.size());
    if (with_clean && clean.empty()) clean.resize(output.size());
    with_activation(activation, [&]<Activation A>() {
      parallel_for(execution, output.size(), 2048, [&](Index begin, Index end) {
        activate_numbers<A>(begin, end, linear.output().data(), output.data(), training ? slope.data() : nullptr);
        if (with_clean) activate_numbers<A>(begin, end, linear.clean().data(), clean.data(), nullptr);
      });
    });
  }
  /// \param bar  derivative of the output, overwritten
  void backward(Execution execution, const MatrixView<S>& bar, const LinearWeights<S>& weights_bar) {
    parallel_for(execution, output.size(), 2048, [&](Index begin, Index end) {
      for_tiles<S>(begin, end, [&]<class T>(auto i) {
        i.store(bar.data() + i, i.load(bar.data() + i) * i.load(slope.data() + i));
      });
    });
    linear.backward(execution, bar, weights_bar);
  }

 private:
  template <Activation A>
  static void activate_numbers(Index begin, Index end, const S* z, S* y, S* derivative) {
    for_tiles<S>(begin, end, [&]<class T>(auto i) {
      T at;
      i.store(y + i, activate_with_slope<A>(i.load(z + i), at));
      if (derivative != nullptr) i.store(derivative + i, at);
    });
  }
};

}  // namespace sheafnn::detail
