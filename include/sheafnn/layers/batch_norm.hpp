/// \file
/// BatchNorm: every column of a matrix with mean 0 and variance 1 over the rows, then a scale and a shift per column,
///
///     y = w ∘ x̂ + b,  x̂ = (x − mean(x)) / √(var(x) + ε),  ε = 10⁻⁵, mean and variance over all n rows, divisor n,
///
/// with its backward pass, x̄ = w ∘ (ȳ − mean(ȳ) − x̂ mean(ȳ ∘ x̂)) / √(var(x) + ε). The rows are the nodes of a graph, all
/// of which every pass has. So evaluations use the statistics of the graph at hand, and no running averages. On a
/// part of a graph the rows are its owned nodes, and all means are taken over the rows of all parts.
/// Source: math: "Cooperative sheaves" (4.4); Batch Normalization (Ioffe, Szegedy).
#pragma once

#include <algorithm>
#include <cmath>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/node_chunks.hpp"

namespace sheafnn::layers {

/// Buffers of a normalisation of n rows of `width` values.
template <class S>
class BatchNorm {
 public:
  static constexpr double epsilon = 1e-5;

  BatchNorm() = default;
  /// \param part  null, or the part of the graph whose owned nodes are the rows; it must outlive the normalisation
  /// \throws std::invalid_argument  negative rows, or a width below 1
  BatchNorm(Index rows, Index width, GraphPart* part = nullptr)
      : part_(part),
        width_(checked_extent("width", width)),
        chunks_{checked_extent("rows", rows, 0), std::clamp<Index>(rows / 64, 1, 64)},
        output_(rows * width),
        mean_(width),
        inverse_(width),
        of_bar_(2 * width),
        partial_(chunks_.count * 2 * width),
        sum_(2 * width) {}

  /// y at the nodes of the last forward(), one row each.
  [[nodiscard]] MatrixView<const S> output() const noexcept { return {output_.data(), nodes_.count(), width_}; }

  /// Computes output() at some nodes from x (n × h), which must not change until backward().
  ///
  /// \throws std::invalid_argument  x or weights of another shape
  void forward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x,
               const NodeSelection& nodes);

  /// Computes the derivatives of x (n × h, overwritten) and of the weights (added to) from the derivative of output().
  /// On a part of a graph, the derivatives of the weights are the part's share.
  ///
  /// \param x    of forward()
  /// \param bar  of the shape of output(); may be x_bar where that has all nodes
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<const S>& bar, const MatrixView<S>& x_bar, const NormWeights<S>& weights_bar);

 private:
  /// sum_ = column sums over `count` rows. add(row, sums) adds the terms of a row to an array of Arrays · h values.
  template <int Arrays, class Add>
  void column_sums(Execution execution, Index count, const Add& add) {
    const NodeChunks chunks = {count, std::min(chunks_.count, std::max<Index>(count, 1))};
    chunks.for_each(execution, [&](Index chunk, Index begin, Index end) {
      S* sums = partial_.data() + chunk * 2 * width_;
      std::fill_n(sums, Arrays * width_, S(0));
      for (Index i = begin; i < end; ++i) add(i, sums);
    });
    for (Index k = 0; k < Arrays * width_; ++k) {
      double sum = 0;
      for (Index chunk = 0; chunk < chunks.count; ++chunk) {
        sum += static_cast<double>(partial_[chunk * 2 * width_ + k]);
      }
      sum_[k] = sum;
    }
  }
  /// The first `count` values of sum_ over all parts.
  void sum_over_parts(Index count) {
    if (part_ != nullptr) part_->sum(sum_.view().first(static_cast<std::size_t>(count)), {});
  }
  /// Rows of all parts.
  [[nodiscard]] double total_rows() const noexcept {
    return static_cast<double>(part_ == nullptr ? chunks_.nodes : part_->numbers().total_nodes);
  }

  GraphPart* part_ = nullptr;
  Index width_ = 0;
  NodeChunks chunks_;
  Buffer<S> output_;
  Buffer<S> mean_, inverse_;  ///< per column: mean and 1/√(var + ε)
  Buffer<S> of_bar_;          ///< per column: means of ȳ and of ȳ ∘ x̂
  Buffer<S> partial_;         ///< per chunk of rows
  Buffer<double> sum_;        ///< of columns, over all rows
  NodeSelection nodes_;
};

template <class S>
void BatchNorm<S>::forward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x,
                           const NodeSelection& nodes) {
  weights.check(width_);
  require_array(x, chunks_.nodes, width_, "x");
  nodes_ = nodes;
  const double n = total_rows();
  const S* first = x.data();
  column_sums<1>(  // of differences from the first row, which are of the order of the spread
      execution, chunks_.nodes, [&](Index u, S* sums) {
        const S* in = x.data() + u * width_;
        detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
          const T difference = c.load(in + c) - c.load(first + c);
          c.store(sums + c, c.load(sums + c) + difference);
        });
      });
  // Parts have first rows of their own: what they add up are sums of x itself.
  const auto offset = [&](Index c) { return chunks_.nodes > 0 ? static_cast<double>(first[c]) : 0.0; };
  if (part_ != nullptr) {
    for (Index c = 0; c < width_; ++c) sum_[c] += static_cast<double>(chunks_.nodes) * offset(c);
  }
  sum_over_parts(width_);
  for (Index c = 0; c < width_; ++c) {
    mean_[c] = n > 0 ? static_cast<S>((part_ == nullptr ? offset(c) : 0.0) + sum_[c] / n) : S(0);
  }
  column_sums<1>(execution, chunks_.nodes, [&](Index u, S* sums) {
    const S* in = x.data() + u * width_;
    detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
      const T centred = c.load(in + c) - c.load(mean_.data() + c);
      c.store(sums + c, c.load(sums + c) + centred * centred);
    });
  });
  sum_over_parts(width_);
  for (Index c = 0; c < width_; ++c) inverse_[c] = static_cast<S>(1 / std::sqrt(sum_[c] / n + epsilon));
  const S* scale = weights.scale.data();
  const S* shift = weights.shift.data();
  parallel_for(execution, nodes_.count(), 16, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const S* in = x.data() + nodes_[i] * width_;
      S* out = output_.data() + i * width_;
      detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
        const T centred = c.load(in + c) - c.load(mean_.data() + c);
        const T hat = centred * c.load(inverse_.data() + c);
        c.store(out + c, c.load(scale + c) * hat + c.load(shift + c));
      });
    }
  });
}

template <class S>
void BatchNorm<S>::backward(Execution execution, const NormWeights<const S>& weights, const MatrixView<const S>& x,
                            const MatrixView<const S>& bar, const MatrixView<S>& x_bar,
                            const NormWeights<S>& weights_bar) {
  weights.check(width_);
  weights_bar.check(width_);
  require_array(x, chunks_.nodes, width_, "x");
  require_shape(bar, nodes_.count(), width_, "output_bar");
  require_array(x_bar, chunks_.nodes, width_, "x_bar");
  const double n = total_rows();
  const auto hat_of = [&](Index u, auto c) {
    return (c.load(x.data() + u * width_ + c) - c.load(mean_.data() + c)) * c.load(inverse_.data() + c);
  };
  column_sums<2>(execution, nodes_.count(), [&](Index i, S* sums) {
    const S* from = bar.row(i).data();
    detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
      const T one = c.load(from + c);
      c.store(sums + c, c.load(sums + c) + one);
      c.store(sums + width_ + c, c.load(sums + width_ + c) + one * hat_of(nodes_[i], c));
    });
  });
  for (Index c = 0; c < width_; ++c) {
    weights_bar.shift[static_cast<std::size_t>(c)] += static_cast<S>(sum_[c]);
    weights_bar.scale[static_cast<std::size_t>(c)] += static_cast<S>(sum_[width_ + c]);
  }
  sum_over_parts(2 * width_);
  for (Index k = 0; k < 2 * width_; ++k) of_bar_[k] = static_cast<S>(sum_[k] / n);
  const S* scale = weights.scale.data();
  const S *mean_bar = of_bar_.data(), *mean_product = mean_bar + width_;
  // With ȳ = 0 at nodes that are not selected.
  const auto write = [&]<class T>(Index u, auto c, const T& one) {
    const T centred = one - c.load(mean_bar + c) - hat_of(u, c) * c.load(mean_product + c);
    c.store(x_bar.data() + u * width_ + c, c.load(scale + c) * c.load(inverse_.data() + c) * centred);
  };
  parallel_for(execution, chunks_.nodes, 16, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
        write(u, c, nodes_.all() ? c.load(bar.row(u).data() + c) : T(S(0)));
      });
    }
  });
  if (nodes_.all()) return;
  parallel_for(execution, nodes_.count(), 16, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      detail::for_tiles<S>(0, width_,
                           [&]<class T>(auto c) { write(nodes_[i], c, c.load(bar.row(i).data() + c)); });
    }
  });
}

}  // namespace sheafnn::layers
