/// \file
/// IncidenceLearner: from node embeddings to raw parameters of the restriction map of every incident pair of a hypergraph,
/// with backward.
///
///     raw_i = W [φ(z_v) ‖ φ(z̄_e)] for every pair i = (v, e),   z̄_e = (1/δ_e) Σ_{u ∈ e} z_u,
///
/// where φ is the identity or the mean over stalk coordinates (HypergraphLearner). W [a ‖ b] = W_a a + W_b b is linear. Both
/// halves are products with all nodes, and the mean over a hyperedge is taken of the second one's few outputs.
/// Source: Sheaf Hypergraph Networks (Duta et al.), "Learnable sheaf Laplacian"; math: "Hypergraphs".
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/kernels/hypergraph.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/hypergraph_setting.hpp"
#include "sheafnn/layers/incidence_blocks.hpp"
#include "sheafnn/layers/sheaf_learner_input.hpp"
#include "sheafnn/layers/sheaf_learner_options.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/dense.hpp"

namespace sheafnn::layers {

/// Buffers and passes of one learner on one hypergraph. Unchecked: indices of blocks, that sides are 0 or 1, and that
/// `blocks` are the hypergraph's.
template <class S>
class IncidenceLearner {
 public:
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;

  /// `hypergraph` and `blocks` must outlive the learner. Sums over stalk coordinates are means here.
  ///
  /// \throws std::invalid_argument  options out of range
  IncidenceLearner(const Hypergraph& hypergraph, const IncidenceBlocks<S>& blocks,
                   const SheafLearnerOptions& shape)
      : hypergraph_(&hypergraph),
        blocks_(&blocks),
        shape_(shape),
        input_(shape, 1, detail::mean_factor<S>(shape)),
        half_(input_.half()),
        stride_(input_.stride()),
        projection_(hypergraph.node_count() * stride_),
        of_hyperedge_(hypergraph.hyperedge_count() * half_),
        of_pair_(hypergraph.pair_count() * half_),
        raw_(blocks.block_count() * 2 * shape.outputs() * W),
        raw_bar_(raw_.size()) {}
  IncidenceLearner(const Hypergraph&&, const IncidenceBlocks<S>&,
                   const SheafLearnerOptions&) = delete;  // dangling
  IncidenceLearner(const Hypergraph&, const IncidenceBlocks<S>&&, const SheafLearnerOptions&) = delete;

  [[nodiscard]] Index outputs() const noexcept { return shape_.outputs(); }
  /// Raw outputs, lanes-innermost: outputs() values per pair.
  [[nodiscard]] const S* raw(Index block, int side) const noexcept {
    return raw_.data() + lane_offset(block, side);
  }
  /// Their derivatives, to be filled before backward().
  [[nodiscard]] S* raw_bar(Index block, int side) noexcept { return raw_bar_.data() + lane_offset(block, side); }
  /// There are none.
  [[nodiscard]] const S* edge_weights() const noexcept { return nullptr; }
  /// Takes any.
  void set_edge_weights_bar(const Buffer<S>&) const noexcept {}

  /// Computes raw outputs from embeddings z (n × h).
  ///
  /// \throws std::invalid_argument  embeddings or weights of another shape
  void forward(Execution execution, const SheafLearnerWeights<const S>& weights, const MatrixView<const S>& z) {
    const Index n = hypergraph_->node_count();
    require_shape(z, n, shape_.inputs, "z");
    if (shape_.outputs() == 0) return;
    input_.assemble(weights);
    detail::multiply_dense(execution, z, {input_.weight().data(), shape_.inputs, stride_},
                           MatrixView<S>(projection_.data(), n, stride_), false);
    average(execution);
    parallel_for(execution, blocks_->block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        for (int side = 0; side < 2; ++side) add_halves(block, side);
      }
    });
  }

  /// Backward pass from raw_bar(); lanes without a pair are ignored.
  ///
  /// \param weights_bar  added to
  /// \param z_bar        n × h without gaps; overwritten, or added to when `accumulate`
  /// \throws std::invalid_argument  embeddings, weights or derivatives of another shape
  void backward(Execution execution, const SheafLearnerWeights<const S>&, const MatrixView<const S>& z,
                const SheafLearnerWeights<S>& weights_bar, const MatrixView<S>& z_bar, bool accumulate) {
    const Index n = hypergraph_->node_count(), columns = input_.columns();
    require_shape(z, n, shape_.inputs, "z");
    require_array(z_bar, n, shape_.inputs, "z_bar");
    input_.require_weights(weights_bar);
    parallel_for(execution, blocks_->block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        for (int side = 0; side < 2; ++side) rows_of_pairs(block, side);
      }
    });
    gather(execution);
    const MatrixView<const S> bar(projection_.data(), n, 2 * columns, stride_);
    detail::multiply_dense(execution, detail::transposed(bar), z,
                           MatrixView<S>(input_.weight().data(), 2 * columns, shape_.inputs), false);
    input_.distribute(weights_bar);
    detail::multiply_dense(execution, bar, {input_.weight_back().data(), 2 * columns, shape_.inputs}, z_bar,
                           accumulate);
  }

 private:
  [[nodiscard]] Index lane_offset(Index block, int side) const noexcept {
    return (block * 2 + side) * shape_.outputs() * W;
  }
  [[nodiscard]] S share(Index e) const noexcept { return kernels::member_share<S>(hypergraph_->size(e)); }

  /// W_b z̄_e of every hyperedge.
  void average(Execution execution) {
    parallel_for(execution, hypergraph_->hyperedge_count(), 16, [&](Index begin, Index end) {
      for (Index e = begin; e < end; ++e) {
        const Index first = hypergraph_->first_member(e), last = hypergraph_->first_member(e + 1);
        detail::for_tiles<S>(0, half_, [&]<class T>(auto c) {
          T sum = T(S(0));
          for (Index m = first; m < last; ++m) {
            sum += c.load(projection_.data() + hypergraph_->node(hypergraph_->member(m)) * stride_ + half_ + c);
          }
          c.store(of_hyperedge_.data() + e * half_ + c, T(share(e)) * sum);
        });
      }
    });
    detail::sum_cut_hyperedges(*hypergraph_, of_hyperedge_.data(), half_);
  }
  void add_halves(Index block, int side) {
    const std::int32_t *node = blocks_->nodes(block, side), *hyperedge = blocks_->hyperedges(block, side);
    S* raw = raw_.data() + lane_offset(block, side);
    for (Index column = 0; column < shape_.outputs(); column += 4) {
      P own[4], mean[4];
      detail::rows_to_lanes<4>(
          W, [&](int lane) { return projection_.data() + node[lane] * stride_ + column; }, own);
      detail::rows_to_lanes<4>(
          W, [&](int lane) { return of_hyperedge_.data() + hyperedge[lane] * half_ + column; }, mean);
      for (Index k = 0; k < std::min<Index>(4, shape_.outputs() - column); ++k) {
        (own[k] + mean[k]).store(raw + (column + k) * W);
      }
    }
  }
  /// raw_bar() of W pairs as rows.
  void rows_of_pairs(Index block, int side) {
    const Index first = blocks_->first(block, side);
    const S* bar = raw_bar_.data() + lane_offset(block, side);
    for (Index column = 0; column < half_; column += 4) {
      P value[4];
      for (Index k = 0; k < 4; ++k) {
        value[k] = column + k < shape_.outputs() ? P::load(bar + (column + k) * W) : P(S(0));
      }
      detail::lanes_to_rows<4>(value, blocks_->count(block, side),
                               [&](int lane) { return of_pair_.data() + (first + lane) * half_ + column; });
    }
  }
  /// projection_ becomes its own derivative, its second half directly after the outputs of the first.
  void gather(Execution execution) {
    parallel_for(execution, hypergraph_->hyperedge_count(), 16, [&](Index begin, Index end) {
      for (Index e = begin; e < end; ++e) {
        detail::for_tiles<S>(0, half_, [&]<class T>(auto c) {
          T sum = T(S(0));
          for (Index m = hypergraph_->first_member(e); m < hypergraph_->first_member(e + 1); ++m) {
            sum += c.load(of_pair_.data() + hypergraph_->member(m) * half_ + c);
          }
          c.store(of_hyperedge_.data() + e * half_ + c, T(share(e)) * sum);
        });
      }
    });
    detail::sum_cut_hyperedges(*hypergraph_, of_hyperedge_.data(), half_);
    parallel_for(execution, hypergraph_->node_count(), 16, [&](Index begin, Index end) {
      for (Index v = begin; v < end; ++v) {
        S* out = projection_.data() + v * stride_;
        const auto sum_into = [&](S* to, const auto& row) {
          detail::for_tiles<S>(0, half_, [&]<class T>(auto c) {
            T sum = T(S(0));
            for (Index i = hypergraph_->first_pair(v); i < hypergraph_->first_pair(v + 1); ++i)
              sum += c.load(row(i) + c);
            c.store(to + c, sum);
          });
        };
        sum_into(out, [&](Index i) { return of_pair_.data() + i * half_; });
        sum_into(out + input_.columns(),
                 [&](Index i) { return of_hyperedge_.data() + hypergraph_->hyperedge(i) * half_; });
      }
    });
  }

  const Hypergraph* hypergraph_;
  const IncidenceBlocks<S>* blocks_;
  SheafLearnerOptions shape_;
  SheafLearnerInput<S> input_;
  Index half_, stride_;   ///< outputs filled up to groups of four; two such halves
  Buffer<S> projection_;  ///< n × stride: W_a z_v, W_b z_v
  Buffer<S> of_hyperedge_, of_pair_;
  Buffer<S> raw_, raw_bar_;
};

}  // namespace sheafnn::layers
