/// \file
/// OutputLayer: log-probabilities of the classes, log softmax(X W + 1 bᵀ), with the backward pass of their mean
/// negative log-likelihood (math: "The model"). X has a row for each node that is asked for.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/nn/softmax.hpp"

namespace sheafnn {

/// Buffers of the output of a network on one graph. Columns are filled up to a multiple of eight, the stride.
template <class S>
class OutputLayer {
 public:
  /// \param nodes, inputs, classes  n, width of X, and C
  /// \param weight, bias            W (inputs × C) and b (C) among the parameters
  OutputLayer(Index nodes, Index inputs, Index classes, ParameterId weight, ParameterId bias)
      : inputs_(inputs),
        classes_(classes),
        stride_((classes + 7) / 8 * 8),
        weight_id_(weight),
        bias_id_(bias),
        weight_(inputs * stride_),
        weight_bar_(inputs * stride_),
        weight_transposed_(classes * inputs),
        logits_(nodes * stride_),
        logits_bar_(nodes * stride_) {}

  /// After forward(): the node at place k, class c at [k · stride() + c].
  [[nodiscard]] const S* log_probabilities() const noexcept { return logits_.data(); }
  [[nodiscard]] Index stride() const noexcept { return stride_; }

  /// Computes log_probabilities() of some nodes from their x, one row of inputs for each.
  void forward(int threads, const ParameterSet<S>& parameters, const S* x, const NodeSelection& nodes) {
    nodes_ = nodes;
    const Index rows = nodes.count();
    const S* weight = parameters.data(weight_id_);
    const S* bias = parameters.data(bias_id_);
    for (Index i = 0; i < inputs_; ++i) {
      std::copy_n(weight + i * classes_, classes_, weight_.data() + i * stride_);
    }
    parallel_for(threads, rows, 256, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) std::copy_n(bias, classes_, logits_.data() + u * stride_);
    });
    multiply_dense<S>(threads, rows, stride_, inputs_, {x, inputs_, 1}, weight_.data(), stride_, logits_.data(),
                      stride_, true);
    log_softmax_rows(threads, rows, classes_, logits_.data(), stride_);
  }

  /// Mean negative log-likelihood of `labels` (of all nodes) over `nodes`, which must be those of forward() where
  /// that was not asked for all.
  [[nodiscard]] double loss(std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes) const {
    assert(nodes_.all() || nodes_.count() == static_cast<Index>(nodes.size()));
    return mean_negative_log_likelihood(logits_.data(), stride_, labels, nodes, !nodes_.all());
  }

  /// From share · loss() to the derivative of x (overwritten) and to those of W and b (added to).
  ///
  /// \param x         as in forward()
  /// \param gradient  laid out like the parameters
  void backward(int threads, const ParameterSet<S>& parameters, const S* x, std::span<const std::int32_t> labels,
                std::span<const std::int32_t> nodes, double share, S* x_bar, Buffer<S>& gradient) {
    const Index rows = nodes_.count();
    negative_log_likelihood_backward<S>(rows, classes_, logits_.data(), stride_, labels, nodes,
                                        static_cast<S>(share), logits_bar_.data(), !nodes_.all());
    multiply_dense<S>(threads, inputs_, stride_, rows, {x, 1, inputs_}, logits_bar_.data(), stride_,
                      weight_bar_.data(), stride_, false);
    add_rows(inputs_, classes_, weight_bar_.data(), stride_, gradient.data() + parameters.info(weight_id_).offset);
    add_column_sums(rows, classes_, logits_bar_.data(), stride_,
                    gradient.data() + parameters.info(bias_id_).offset);
    transpose_into(inputs_, classes_, parameters.data(weight_id_), weight_transposed_.data(), inputs_);
    multiply_dense<S>(threads, rows, inputs_, classes_, {logits_bar_.data(), stride_, 1},
                      weight_transposed_.data(), inputs_, x_bar, inputs_, false);
  }

 private:
  NodeSelection nodes_;  ///< of the last forward()
  Index inputs_, classes_, stride_;
  ParameterId weight_id_, bias_id_;
  Buffer<S> weight_, weight_bar_;  ///< inputs × stride
  Buffer<S> weight_transposed_;    ///< C × inputs
  Buffer<S> logits_, logits_bar_;  ///< a row of stride numbers per place, n at most
};

}  // namespace sheafnn
