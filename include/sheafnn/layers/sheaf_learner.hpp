/// \file
/// SheafLearner: from node embeddings to raw parameters of every restriction map and to edge weights, with
/// backward.
///
///     raw_a = W [Z_u ‖ Z_v] for every arc a = (u→v), optionally through hidden layers with ELU; sums of Z's coordinates
///             instead, and features of the arc as well, if the options say so (LearnerInput)
///     w_e = sigmoid(ω·[Z_u‖Z_v]) · sigmoid(ω·[Z_v‖Z_u])
///
/// The first layer is W_a Z_u + W_b Z_v: a projection per node, then one addition per arc (math: "First
/// sheaf-learner layer, cheaply" (3.9)). Source: paper, "sheaf learner".
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/kernels/edge.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/learner_rows.hpp"
#include "sheafnn/layers/sheaf_learner_input.hpp"
#include "sheafnn/layers/sheaf_learner_options.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dense.hpp"

namespace sheafnn::layers {

/// Buffers and passes of one sheaf learner on one graph. Unchecked: indices of blocks, sides 0 or 1, the size of the
/// derivatives of edge weights, and that `blocks` belong to the graph.
template <class S>
class SheafLearner {
 public:
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;

  SheafLearner() = default;
  /// `graph` and `blocks` must outlive the learner.
  ///
  /// \throws std::invalid_argument  options out of range, a graph whose arcs have another number of features
  SheafLearner(const Graph& graph, const EdgeBlocks<S>& blocks, const SheafLearnerOptions& shape);
  SheafLearner(const Graph&&, const EdgeBlocks<S>&, const SheafLearnerOptions&) = delete;  // they would dangle
  SheafLearner(const Graph&, const EdgeBlocks<S>&&, const SheafLearnerOptions&) = delete;

  /// Works in the memory of another learner from now on, with the same graph and shape. Their passes alternate:
  /// forward() of one ends what the other has between raw_bar() and backward(). Unchecked: graph, shape and order.
  void share_work(const SheafLearner& other) { work_ = other.work_; }
  /// Values per edge that raw_bar() takes.
  [[nodiscard]] Index raw_bar_numbers() const noexcept {
    return shape_.hidden_layers > 0 ? 2 * shape_.outputs() : rows_.numbers();
  }
  /// Keeps raw_bar() in this memory from now on, enlarged if it is too small. Unchecked: at least raw_bar_numbers() values
  /// per edge, which nothing else uses between raw_bar() and the end of backward().
  ///
  /// \param overwrites_factors  may backward() overwrite what it reads, because every one has a forward() of its own?
  void set_raw_bar(const EdgeMemory<S>& memory, bool overwrites_factors) {
    overwrites_factors_ = overwrites_factors;
    work_->raw_bar = memory;
    work_->raw_bar.take(*blocks_);
  }
  /// Adds what forward() writes and backward() reads.
  void list_memory(std::vector<Buffer<S>*>& list) {
    list.insert(list.end(), {&raw_, &hidden_, &edge_factor_, &edge_weight_});
  }
  /// Keeps projections of nodes in this memory, n × projection_width(), during forward() and backward(); null: in its own.
  void work_in(S* memory) noexcept { work_->projection = memory; }

  [[nodiscard]] bool has_edge_weights() const noexcept { return shape_.edge_weights; }
  [[nodiscard]] Index outputs() const noexcept { return shape_.outputs(); }
  /// Raw outputs, lanes-innermost: outputs() values per incident pair.
  [[nodiscard]] const S* raw(Index block, int side) const noexcept {
    return raw_.data() + lane_offset(block, side);
  }
  /// Their derivatives, to be filled before backward(), which overwrites them.
  [[nodiscard]] S* raw_bar(Index block, int side) noexcept {
    return work_->raw_bar.of(block) + side * shape_.outputs() * W;
  }
  /// Edge weights, lanes-innermost, one per edge; null without them.
  [[nodiscard]] const S* edge_weights() const noexcept {
    return has_edge_weights() ? edge_weight_.data() : nullptr;
  }
  /// Their derivatives, one per edge and lane that is none, to be set before backward(), and to stay in place until its end.
  void set_edge_weights_bar(const Buffer<S>& bar) { edge_weight_bar_ = bar.data(); }

  /// Computes raw outputs and edge weights from embeddings z (n × h).
  ///
  /// \throws std::invalid_argument  embeddings or weights of another shape
  void forward(Execution execution, const SheafLearnerWeights<const S>& weights, const MatrixView<const S>& z);

  /// Backward pass from raw_bar() and edge_weights_bar(); lanes without an edge are ignored.
  ///
  /// \param weights_bar  added to
  /// \param z_bar     n × h without gaps; overwritten, or added to when `accumulate`
  /// \throws std::invalid_argument  embeddings, weights or derivatives of another shape
  void backward(Execution execution, const SheafLearnerWeights<const S>& weights, const MatrixView<const S>& z,
                const SheafLearnerWeights<S>& weights_bar, const MatrixView<S>& z_bar, bool accumulate);

 private:
  [[nodiscard]] Index lane_offset(Index block, int side) const noexcept {
    return (block * 2 + side) * shape_.outputs() * W;
  }
  /// Size of a block's outputs in any layer, and what backward_chunk() works in.
  [[nodiscard]] Index room() const noexcept { return std::max({shape_.width, shape_.outputs(), Index{1}}) * W; }
  [[nodiscard]] Index scratch_size() const noexcept { return 4 * room(); }
  [[nodiscard]] S* hidden(std::size_t layer, Index block, int side) noexcept {
    return hidden_.data() +
           ((static_cast<Index>(layer) * blocks_->block_count() + block) * 2 + side) * shape_.width * W;
  }
  /// Number of weights after the first layer (only with hidden layers).
  [[nodiscard]] Index deep_weights() const noexcept {
    return (shape_.hidden_layers - 1) * shape_.width * shape_.width + shape_.outputs() * shape_.width;
  }

  [[nodiscard]] std::size_t hidden_layers() const { return static_cast<std::size_t>(shape_.hidden_layers); }
  /// The memory of projections.
  [[nodiscard]] S* take_projection() {
    if (work_->projection != nullptr) return work_->projection;
    Buffer<S>& own = work_->own_projection;
    if (own.empty()) own.resize(graph_->node_count() * stride_);
    return work_->projection = own.data();
  }
  /// The memory of rows_: without hidden layers in place of raw_bar().
  [[nodiscard]] const EdgeMemory<S>& row_memory() const noexcept {
    return hidden_layers() > 0 ? work_->row_bar : work_->raw_bar;
  }

  /// Checks the weights after the first layer.
  template <class T>
  void require_deep(const SheafLearnerWeights<T>& weights) const {
    const Index width = shape_.width, mean = shape_.mean, spread = shape_.spread;
    for (std::size_t k = 1; k < hidden_layers(); ++k)
      require_array(weights.hidden[k], width, width, "hidden weights");
    if (hidden_layers() > 0 && mean > 0) require_array(weights.mean, mean, width, "mean weights");
    if (hidden_layers() > 0 && spread > 0) require_array(weights.spread, spread, width, "spread weights");
  }

  /// Four columns of the node projections, added per arc: W lanes of (W_a Z_u + W_b Z_v)[column …].
  void projected(const std::int32_t* from, const std::int32_t* to, Index column, P* sum) const {
    const S* source = work_->projection + column;
    const S* target = source + half_;
    P other[4];
    detail::rows_to_lanes<4>(
        W, [&](int lane) { return source + from[lane] * stride_; }, sum);
    detail::rows_to_lanes<4>(
        W, [&](int lane) { return target + to[lane] * stride_; }, other);
    SHEAFNN_UNROLL for (int k = 0; k < 4; ++k) sum[k] += other[k];
  }

  void forward_block(const SheafLearnerWeights<const S>& weights, Index block, int side) {
    const std::int32_t* from = blocks_->nodes(block, side);
    const std::int32_t* to = blocks_->nodes(block, 1 - side);
    S* raw = raw_.data() + lane_offset(block, side);
    const bool deep = shape_.hidden_layers > 0;
    const Index first = deep ? shape_.width : shape_.outputs();
    S* out_of_first = deep ? hidden(0, block, side) : raw;
    for (Index column = 0; column < columns_; column += 4) {
      P sum[4];
      projected(from, to, column, sum);
      for (Index k = column; k < std::min(column + 4, columns_); ++k) {
        P value = sum[k - column];
        if (k < first) {
          if (input_.has_edge_features()) value += input_.edge_term(k, block, side);
          (deep ? elu(value) : value).store(out_of_first + k * W);
        } else {
          sigmoid(value).store(edge_factor_.data() + (block * 2 + side) * W);
        }
      }
    }
    if (deep) {
      S* in = out_of_first;
      for (std::size_t layer = 1; layer < hidden_layers(); ++layer) {
        S* out = hidden(layer, block, side);
        detail::arc_dense(weights.hidden[layer].data(), shape_.width, shape_.width, in, out);
        for (Index k = 0; k < shape_.width; ++k) elu(P::load(out + k * W)).store(out + k * W);
        in = out;
      }
      if (shape_.mean > 0) detail::arc_dense(weights.mean.data(), shape_.width, shape_.mean, in, raw);
      if (shape_.spread > 0) {
        detail::arc_dense(weights.spread.data(), shape_.width, shape_.spread, in, raw + shape_.mean * W);
      }
    }
  }

  void clear_idle_lanes() {
    if (blocks_->block_count() == 0) return;
    const Index last = blocks_->block_count() - 1;
    for (int lane = blocks_->lane_count(last); lane < W; ++lane) {
      for (int side = 0; side < 2; ++side) {
        for (Index k = 0; k < shape_.outputs(); ++k) raw_bar(last, side)[k * W + lane] = S(0);
      }
    }
  }

  /// Derivatives of the first layer's outputs for a chunk of blocks, as rows by edges.
  void backward_chunk(const SheafLearnerWeights<const S>& weights, Index chunk) {
    const Index begin = blocks_->block_count() * chunk / chunks_;
    const Index end = blocks_->block_count() * (chunk + 1) / chunks_;
    const Index first = shape_.first_numbers();
    S* const scratch = scratch_.data() + chunk * scratch_size();
    S* const bars = scratch + 2 * room();  // of both sides
    S* partial = partial_.data() + chunk * (shape_.hidden_layers == 0 ? 0 : deep_weights());
    if (shape_.hidden_layers > 0) std::fill_n(partial, deep_weights(), S(0));
    input_.begin_backward(chunk);
    for (Index block = begin; block < end; ++block) {
      for (int side = 0; side < 2; ++side) {
        S* const bar = bars + side * first * W;
        std::copy_n(shape_.hidden_layers > 0
                        ? backward_hidden(weights, block, side, partial, scratch, scratch + room())
                        : raw_bar(block, side),
                    first * W, bar);
        if (input_.has_edge_features()) {
          for (Index at = 0; at < first; ++at) input_.add_edge_bar(chunk, at, block, side, P::load(bar + at * W));
        }
      }
      const int count = blocks_->lane_count(block);
      rows_.store(row_memory(), block, count, bars);
      if (has_edge_weights()) edge_logits_backward(block, count);
    }
  }
  void edge_logits_backward(Index block, int count) {
    const S* const factors = edge_factor_.data() + block * 2 * W;
    const P factor[2] = {P::load(factors), P::load(factors + W)}, bar = P::load(edge_weight_bar_ + block * W);
    const P logits[2] = {kernels::edge_logit_bar(bar, factor[0], factor[1]),
                         kernels::edge_logit_bar(bar, factor[1], factor[0])};
    detail::store_rows<2>(logits, count, edge_logit_bars() + block * 2 * W);
  }
  /// Derivatives of the logits of edge weights, two for every edge.
  [[nodiscard]] S* edge_logit_bars() noexcept {
    return (overwrites_factors_ ? edge_factor_ : edge_logit_bar_).data();
  }

  /// Backward through the layers after the first; returns the derivative of the first layer's pre-activation.
  const S* backward_hidden(const SheafLearnerWeights<const S>& weights, Index block, int side, S* partial, S* a,
                           S* b) {
    std::size_t layer = hidden_layers() - 1;
    const S* in = hidden(layer, block, side);
    S* in_bar = a;
    std::fill_n(in_bar, shape_.width * W, S(0));
    S* weight_bar = partial + static_cast<Index>(layer) * shape_.width * shape_.width;
    if (shape_.mean > 0) {
      detail::arc_dense_backward(weights.mean.data(), shape_.width, shape_.mean, in, raw_bar(block, side), in_bar,
                                 weight_bar);
    }
    if (shape_.spread > 0) {
      detail::arc_dense_backward(weights.spread.data(), shape_.width, shape_.spread, in,
                                 raw_bar(block, side) + shape_.mean * W, in_bar,
                                 weight_bar + shape_.mean * shape_.width);
    }
    while (true) {
      for (Index k = 0; k < shape_.width; ++k) {
        (P::load(in_bar + k * W) * elu_slope(P::load(in + k * W))).store(in_bar + k * W);
      }
      if (layer == 0) return in_bar;
      S* next_bar = in_bar == a ? b : a;
      std::fill_n(next_bar, shape_.width * W, S(0));
      const S* below = hidden(layer - 1, block, side);
      detail::arc_dense_backward(weights.hidden[layer].data(), shape_.width, shape_.width, below, in_bar, next_bar,
                                 partial + static_cast<Index>(layer - 1) * shape_.width * shape_.width);
      in = below;
      in_bar = next_bar;
      --layer;
    }
  }

  void sum_deep_gradients(const SheafLearnerWeights<S>& weights_bar) const {
    if (shape_.hidden_layers == 0) return;
    for (Index chunk = 0; chunk < chunks_; ++chunk) {
      const S* partial = partial_.data() + chunk * deep_weights();
      const auto add = [&](const MatrixView<S>& matrix, Index size) {
        S* out = matrix.data();
        for (Index i = 0; i < size; ++i) out[i] += partial[i];
        partial += size;
      };
      for (std::size_t layer = 1; layer < hidden_layers(); ++layer) {
        add(weights_bar.hidden[layer], shape_.width * shape_.width);
      }
      if (shape_.mean > 0) add(weights_bar.mean, shape_.mean * shape_.width);
      if (shape_.spread > 0) add(weights_bar.spread, shape_.spread * shape_.width);
    }
  }

  /// The projection becomes its own derivative: per node, the sum over its arcs (source part) and reverse arcs.
  void gather_projection_bar(Execution execution) {
    parallel_for(execution, graph_->node_count(), 16, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        rows_.sum_at(*graph_, u, row_memory(), edge_logit_bars(), work_->projection + u * stride_);
      }
    });
  }

  const Graph* graph_ = nullptr;
  const EdgeBlocks<S>* blocks_ = nullptr;
  SheafLearnerOptions shape_;
  LearnerRows<S> rows_;
  Index chunks_ = 1;
  SheafLearnerInput<S> input_;
  Index columns_ = 0;            ///< outputs of the first layer
  Index half_ = 0, stride_ = 0;  ///< columns_ rounded up to a multiple of four; twice that
  /// What is needed while a pass computes, but not between forward() and the caller's work for backward().
  struct Work {
    S* projection = nullptr;
    Buffer<S> own_projection;
    EdgeMemory<S> raw_bar;
    EdgeMemory<S> row_bar;  ///< of learners with hidden layers
  };
  std::shared_ptr<Work> work_;
  Buffer<S> raw_, hidden_, edge_factor_, edge_weight_;
  Buffer<S> edge_logit_bar_;  ///< where they do not overwrite edge_factor_; allocated when first needed
  bool overwrites_factors_ = false;
  const S* edge_weight_bar_ = nullptr;
  Buffer<S> partial_, scratch_;
};

template <class S>
SheafLearner<S>::SheafLearner(const Graph& graph, const EdgeBlocks<S>& blocks, const SheafLearnerOptions& shape)
    : graph_(&graph),
      blocks_(&blocks),
      shape_(shape),
      rows_(shape),
      chunks_(std::clamp<Index>(blocks.block_count() / 4, 1, 32)),
      input_(graph, blocks, shape, chunks_),
      columns_(input_.columns()),
      half_(input_.half()),
      stride_(input_.stride()),
      work_(std::make_shared<Work>()),
      raw_(blocks.block_count() * 2 * shape_.outputs() * W, to_be_written),
      hidden_(shape_.hidden_layers * blocks.block_count() * 2 * shape_.width * W),
      edge_factor_(has_edge_weights() ? blocks.block_count() * 2 * W : 0),
      edge_weight_(has_edge_weights() ? blocks.block_count() * W : 0),
      partial_(shape_.hidden_layers == 0 ? 0 : chunks_ * deep_weights()),
      scratch_(chunks_ * scratch_size()) {
  work_->raw_bar.numbers = raw_bar_numbers();
  work_->raw_bar.take(blocks);
}

template <class S>
void SheafLearner<S>::forward(Execution execution, const SheafLearnerWeights<const S>& weights,
                              const MatrixView<const S>& z) {
  require_shape(z, graph_->node_count(), shape_.inputs, "z");
  if (columns_ == 0) return;
  require_deep(weights);
  input_.assemble(weights);
  S* const projection = take_projection();
  const Index own = graph_->own_node_count();
  detail::multiply_dense(execution, z.middle_rows(0, own), {input_.weight().data(), shape_.inputs, stride_},
                         MatrixView<S>(projection, own, stride_), false);
  detail::fetch_halo(*graph_, projection, stride_);
  parallel_for(execution, blocks_->block_count(), 2, [&](Index begin, Index end) {
    for (Index block = begin; block < end; ++block) {
      for (int side = 0; side < 2; ++side) forward_block(weights, block, side);
      if (has_edge_weights()) {
        const S* factor = edge_factor_.data() + block * 2 * W;
        (P::load(factor) * P::load(factor + W)).store(edge_weight_.data() + block * W);
      }
    }
  });
}

template <class S>
void SheafLearner<S>::backward(Execution execution, const SheafLearnerWeights<const S>& weights,
                               const MatrixView<const S>& z, const SheafLearnerWeights<S>& weights_bar,
                               const MatrixView<S>& z_bar, bool accumulate) {
  require_shape(z, graph_->node_count(), shape_.inputs, "z");
  require_array(z_bar, graph_->node_count(), shape_.inputs, "z_bar");
  if (columns_ == 0) {
    if (!accumulate) std::fill_n(z_bar.data(), graph_->node_count() * shape_.inputs, S(0));
    return;
  }
  require_deep(weights);
  require_deep(weights_bar);
  input_.require_weights(weights_bar);
  clear_idle_lanes();
  if (has_edge_weights() && !overwrites_factors_ && edge_logit_bar_.empty()) {
    edge_logit_bar_.resize(edge_factor_.size(), to_be_written);
  }
  if (hidden_layers() > 0) {
    work_->row_bar.numbers = rows_.numbers();
    work_->row_bar.take(*blocks_);
  }
  parallel_for(execution, chunks_, 1, [&](Index begin, Index end) {
    for (Index chunk = begin; chunk < end; ++chunk) backward_chunk(weights, chunk);
  });
  sum_deep_gradients(weights_bar);
  S* const projection = take_projection();
  gather_projection_bar(execution);
  detail::give_halo_back(*graph_, projection, stride_);
  if (!accumulate) detail::clear_halo(*graph_, z_bar.data(), shape_.inputs);
  const Index own = graph_->own_node_count();
  const MatrixView<const S> bar(projection, own, 2 * columns_, stride_);
  detail::multiply_dense(execution, detail::transposed(bar), z.middle_rows(0, own),
                         MatrixView<S>(input_.weight().data(), 2 * columns_, shape_.inputs), false);
  input_.distribute(weights_bar);
  detail::multiply_dense(execution, bar, {input_.weight_back().data(), 2 * columns_, shape_.inputs},
                         z_bar.middle_rows(0, own), accumulate);
}

}  // namespace sheafnn::layers
