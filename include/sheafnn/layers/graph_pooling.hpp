/// \file
/// GraphPooling: from a row per node to a row per graph of a disjoint union (Graph::set_graphs()), by sum, mean,
/// maximum or attention,
///
///     r_g = Σ_u α_u x_u over the nodes u of graph g,   α_u = 1, 1/n_g or exp(⟨a, x_u⟩) / Σ_v exp(⟨a, x_v⟩),
///
/// with its backward pass. Source: math: "Pooling" (3.61, 3.62).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/layers/pooling_options.hpp"

namespace sheafnn::layers {

/// Buffers of the pooling of one union. Results do not depend on the number of threads.
template <class S>
class GraphPooling {
 public:
  /// \param graph  must outlive the pooling
  /// \param width  values per row
  /// \throws std::invalid_argument  a width below 1, harmonic pooling (HarmonicPooling)
  GraphPooling(const Graph& graph, Index width, Pooling pooling)
      : graph_(&graph),
        width_(checked_extent("width", width)),
        pooling_(pooling),
        pooled_(graph.graph_count() * width),
        weight_(pooling == Pooling::attention ? graph.node_count() : 0),
        score_bar_(weight_.size()),
        largest_(pooling == Pooling::max ? pooled_.size() : 0) {
    require(pooling != Pooling::harmonic, "pooling", sheafnn::to_string(pooling), "it reads a sheaf");
  }
  GraphPooling(const Graph&&, Index, Pooling) = delete;  // it would dangle

  /// r, G × width, valid until the next pass.
  [[nodiscard]] MatrixView<const S> output() const noexcept {
    return {pooled_.data(), graph_->graph_count(), width_};
  }

  /// Computes output().
  ///
  /// \param x          n × width without gaps, in place until backward()
  /// \param attention  a, width values; only attention reads it
  /// \throws std::invalid_argument  views of another shape
  void forward(Execution execution, const MatrixView<const S>& x, std::span<const S> attention) {
    require_array(x, graph_->node_count(), width_, "x");
    if (pooling_ == Pooling::attention) require_size(attention, width_, "attention");
    parallel_for(execution, graph_->graph_count(), 1, [&](Index begin, Index end) {
      for (Index g = begin; g < end; ++g) {
        if (pooling_ == Pooling::max) {
          find_largest(x.data(), g);
        } else {
          if (pooling_ == Pooling::attention) attend(x.data(), attention.data(), g);
          add_rows(x.data(), g);
        }
      }
    });
  }

  /// Computes the derivatives of x (overwritten) and, for attention, of a (added to) from the derivative of output().
  ///
  /// \param x, attention  of forward()
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const MatrixView<const S>& x, std::span<const S> attention,
                const MatrixView<const S>& bar, const MatrixView<S>& x_bar, std::span<S> attention_bar) {
    require_array(x, graph_->node_count(), width_, "x");
    require_array(x_bar, graph_->node_count(), width_, "x_bar");
    require_array(bar, graph_->graph_count(), width_, "output_bar");
    parallel_for(execution, graph_->graph_count(), 1, [&](Index begin, Index end) {
      for (Index g = begin; g < end; ++g) {
        if (pooling_ == Pooling::max) {
          pass_to_largest(bar.data(), x_bar.data(), g);
        } else {
          share_row(x.data(), attention.data(), bar.data(), x_bar.data(), g);
        }
      }
    });
    if (pooling_ != Pooling::attention) return;
    require_size(attention, width_, "attention");
    require_size(attention_bar, width_, "attention_bar");
    parallel_for(execution, width_, 16, [&](Index begin, Index end) {  // ā = Σ_u s̄_u x_u
      detail::for_tiles<S>(begin, end, [&]<class T>(auto c) {
        T sum = c.load(attention_bar.data() + c);
        for (Index u = 0; u < graph_->node_count(); ++u)
          sum += T(score_bar_[u]) * c.load(x.data() + u * width_ + c);
        c.store(attention_bar.data() + c, sum);
      });
    });
  }

 private:
  /// ⟨a, b⟩ of two rows.
  [[nodiscard]] S product(const S* a, const S* b) const {
    S sum = S(0);
    for (Index i = 0; i < width_; ++i) sum += a[i] * b[i];
    return sum;
  }
  /// α_u of sum and mean.
  [[nodiscard]] S share(Index g) const {
    return pooling_ == Pooling::sum ? S(1)
                                    : S(1) / static_cast<S>(graph_->first_node(g + 1) - graph_->first_node(g));
  }
  [[nodiscard]] S weight(Index u, S of_all) const { return pooling_ == Pooling::attention ? weight_[u] : of_all; }

  /// α of graph g.
  void attend(const S* x, const S* attention, Index g) {
    using std::exp;
    const Index begin = graph_->first_node(g), end = graph_->first_node(g + 1);
    for (Index u = begin; u < end; ++u) weight_[u] = product(attention, x + u * width_);
    const S largest = *std::max_element(weight_.data() + begin, weight_.data() + end);
    S sum = S(0);
    for (Index u = begin; u < end; ++u) sum += weight_[u] = exp(weight_[u] - largest);
    for (Index u = begin; u < end; ++u) weight_[u] /= sum;
  }
  void add_rows(const S* x, Index g) {
    const S all = share(g);
    detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
      T sum(S(0));
      for (Index u = graph_->first_node(g); u < graph_->first_node(g + 1); ++u) {
        sum += T(weight(u, all)) * c.load(x + u * width_ + c);
      }
      c.store(pooled_.data() + g * width_ + c, sum);
    });
  }
  /// x̄_u = α_u r̄, and of attention also s̄_u a with s̄_u = α_u ⟨x_u − r, r̄⟩.
  void share_row(const S* x, const S* attention, const S* bar, S* x_bar, Index g) {
    const S all = share(g), *const row_bar = bar + g * width_;
    const bool attends = pooling_ == Pooling::attention;
    const S mean = attends ? product(pooled_.data() + g * width_, row_bar) : S(0);
    for (Index u = graph_->first_node(g); u < graph_->first_node(g + 1); ++u) {
      const S alpha = weight(u, all);
      if (attends) score_bar_[u] = alpha * (product(x + u * width_, row_bar) - mean);
      detail::for_tiles<S>(0, width_, [&]<class T>(auto c) {
        T value = T(alpha) * c.load(row_bar + c);
        if (attends) value += T(score_bar_[u]) * c.load(attention + c);
        c.store(x_bar + u * width_ + c, value);
      });
    }
  }

  /// Finds the largest value; among equal values the first node's counts.
  void find_largest(const S* x, Index g) {
    const Index begin = graph_->first_node(g), at = g * width_;
    for (Index i = 0; i < width_; ++i) {
      pooled_[at + i] = x[begin * width_ + i];
      largest_[at + i] = static_cast<std::int32_t>(begin);
    }
    for (Index u = begin + 1; u < graph_->first_node(g + 1); ++u) {
      for (Index i = 0; i < width_; ++i) {
        const S value = x[u * width_ + i];
        if (!(value > pooled_[at + i]) && !std::isnan(value)) continue;
        pooled_[at + i] = value;
        largest_[at + i] = static_cast<std::int32_t>(u);
      }
    }
  }
  void pass_to_largest(const S* bar, S* x_bar, Index g) const {
    const Index begin = graph_->first_node(g), end = graph_->first_node(g + 1), at = g * width_;
    std::fill(x_bar + begin * width_, x_bar + end * width_, S(0));
    for (Index i = 0; i < width_; ++i) x_bar[largest_[at + i] * width_ + i] = bar[at + i];
  }

  const Graph* graph_;
  Index width_;
  Pooling pooling_;
  Buffer<S> pooled_;              ///< r
  Buffer<S> weight_, score_bar_;  ///< of attention, per node: α_u, and the derivative of its score
  Buffer<std::int32_t> largest_;  ///< of maxima: the node of each
};

}  // namespace sheafnn::layers
