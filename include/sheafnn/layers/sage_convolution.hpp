/// \file
/// SageConvolution: Y = mean over neighbours of (P W) + X V + 1 bᵀ, with P = X or, projected, P = ReLU(X W_p + 1 b_pᵀ).
///
/// The mean at a node is over the arcs that enter it, 0 where none does. It commutes with the product, which comes
/// first: rows of Y's width are added instead of rows of X's. Source: math: "Learners of node maps"; Inductive
/// Representation Learning on Large Graphs (Hamilton, Ying, Leskovec).
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/layers/dense_layer.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/dense.hpp"

namespace sheafnn {

/// Weights of a convolution, all in × out.
template <class T>
struct SageWeights {
  LinearWeights<T> neighbour;   ///< W and b
  MatrixView<T> self;           ///< V
  LinearWeights<T> projection;  ///< W_p, in × in, and b_p; empty without
};

/// Buffers of one convolution on one graph.
template <class S>
class SageConvolution {
 public:
  /// \param arcs  what it views must outlive the convolution
  SageConvolution(const ArcLists& arcs, Index inputs, Index outputs, bool projected)
      : arcs_(arcs),
        inputs_(inputs),
        outputs_(outputs),
        projected_(projected),
        product_(arcs.nodes * outputs),
        output_(arcs.nodes * outputs),
        transposed_(inputs * outputs) {
    if (!projected) return;
    projection_ = DenseLayer<S>(arcs.nodes, inputs, inputs, Activation::relu);
    projected_bar_.resize(arcs.nodes * inputs);
  }

  /// Y of the last forward(), n × outputs.
  [[nodiscard]] MatrixView<const S> output() const noexcept { return {output_.data(), arcs_.nodes, outputs_}; }

  /// Computes output() from x (n × inputs), which must not change until backward().
  ///
  /// \throws std::invalid_argument  x or weights of another shape
  void forward(Execution execution, const SageWeights<const S>& weights, const MatrixView<const S>& x) {
    check(weights);
    require_array(x, arcs_.nodes, inputs_, "x");
    if (projected_) projection_.forward(execution, weights.projection, x);
    const S* p = projected_ ? projection_.output().data() : x.data();
    const Index o = outputs_;
    detail::multiply_dense<S>(execution, arcs_.nodes, o, inputs_, {p, inputs_, 1}, weights.neighbour.weight.data(), o,
                              product_.data(), o, false);
    constexpr Index group = 64;
    parallel_for(execution, arcs_.nodes, group, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        add_mean(u, weights.neighbour.bias.data());
      }
      for (Index u = begin; u < end; u += group) {
        detail::multiply_block<S>(std::min(group, end - u), o, inputs_, {x.data() + u * inputs_, inputs_, 1},
                                  weights.self.data(), o, output_.data() + u * o, o, true);
      }
    });
  }

  /// From the derivative of output() to that of x and to those of the weights (added to).
  ///
  /// \param x           of forward()
  /// \param bar         n × outputs
  /// \param x_bar       n × inputs
  /// \param accumulate  add to x_bar instead of overwriting it
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const SageWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<const S>& bar, const MatrixView<S>& x_bar, bool accumulate,
                const SageWeights<S>& weights_bar) {
    check(weights);
    check(weights_bar);
    const Index n = arcs_.nodes, o = outputs_;
    require_array(x, n, inputs_, "x");
    require_array(bar, n, o, "output_bar");
    require_array(x_bar, n, inputs_, "x_bar");
    parallel_for(execution, n, 64, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) spread_mean(u, bar.data());
    });
    const S* p = projected_ ? projection_.output().data() : x.data();
    detail::multiply_dense<S>(execution, inputs_, o, n, {p, 1, inputs_}, product_.data(), o,
                              weights_bar.neighbour.weight.data(), o, true);
    detail::multiply_dense<S>(execution, inputs_, o, n, {x.data(), 1, inputs_}, bar.data(), o, weights_bar.self.data(),
                              o, true);
    detail::add_column_sums(n, o, bar.data(), o, weights_bar.neighbour.bias.data());
    detail::transpose_into(inputs_, o, weights.self.data(), transposed_.data(), inputs_);
    detail::multiply_dense<S>(execution, n, inputs_, o, {bar.data(), o, 1}, transposed_.data(), inputs_, x_bar.data(),
                              inputs_, accumulate);
    detail::transpose_into(inputs_, o, weights.neighbour.weight.data(), transposed_.data(), inputs_);
    S* p_bar = projected_ ? projected_bar_.data() : x_bar.data();
    detail::multiply_dense<S>(execution, n, inputs_, o, {product_.data(), o, 1}, transposed_.data(), inputs_, p_bar,
                              inputs_, !projected_);
    if (!projected_) return;
    projection_.backward(execution, weights.projection, x, {p_bar, n, inputs_}, x_bar, true, weights_bar.projection);
  }

 private:
  template <class T>
  void check(const SageWeights<T>& weights) const {
    require_array(weights.neighbour.weight, inputs_, outputs_, "neighbour weight");
    require_size(weights.neighbour.bias, outputs_, "neighbour bias");
    require_array(weights.self, inputs_, outputs_, "self weight");
  }
  /// Row u of the output becomes the mean of the neighbours' products, plus b.
  void add_mean(Index u, const S* bias) {
    const Index o = outputs_;
    const std::span<const std::int32_t> neighbours = arcs_.in.of(u);
    const S share = neighbours.empty() ? S(0) : S(1) / static_cast<S>(neighbours.size());
    detail::for_tiles<S>(0, o, [&]<class T>(Index c) {
      T sum = T(S(0));
      for (const std::int32_t v : neighbours) sum += detail::load<T>(product_.data() + static_cast<Index>(v) * o + c);
      detail::store(output_.data() + u * o + c, T(share) * sum + detail::load<T>(bias + c));
    });
  }
  /// Row u of product_ becomes its derivative.
  void spread_mean(Index u, const S* bar) {
    const Index o = outputs_;
    const std::span<const std::int32_t> neighbours = arcs_.out.of(u);
    detail::for_tiles<S>(0, o, [&]<class T>(Index c) {
      T sum = T(S(0));
      for (const std::int32_t v : neighbours) {
        const S share = S(1) / static_cast<S>(arcs_.in.degree(v));
        sum += T(share) * detail::load<T>(bar + static_cast<Index>(v) * o + c);
      }
      detail::store(product_.data() + u * o + c, sum);
    });
  }

  ArcLists arcs_;
  Index inputs_, outputs_;
  bool projected_;
  DenseLayer<S> projection_;
  Buffer<S> product_;  ///< P W, and its derivative
  Buffer<S> output_, transposed_, projected_bar_;
};

}  // namespace sheafnn
