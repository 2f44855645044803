/// \file
/// SheafLearnerInput: the first layer of a sheaf learner as one matrix over nodes,
///
///     W [x_u ‖ x_v ‖ e_a] = W_a Z_u + W_b Z_v + W_e e_a,
///
/// where x are the embeddings Z or sums of them over stalk coordinates (LearnerInput). A sum is linear, so that its weights
/// are weights of Z with equal columns. e_a are the features of arc a, where the learner reads any.
/// Source: math: "First sheaf-learner layer, cheaply".
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/layers/learner_columns.hpp"
#include "sheafnn/layers/sheaf_learner_options.hpp"
#include "sheafnn/layers/weights.hpp"

namespace sheafnn::layers {

/// Weights of the first layer, assembled for products with all nodes, and the features of arcs. Unchecked: indices of
/// outputs, blocks and chunks.
template <class S>
class SheafLearnerInput {
 public:
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;

  SheafLearnerInput() = default;
  /// \param chunks  in which a backward pass is cut
  /// \throws std::invalid_argument  options out of range, a graph whose arcs have another number of features
  SheafLearnerInput(const Graph& graph, const EdgeBlocks<S>& blocks, const SheafLearnerOptions& shape,
                    Index chunks)
      : SheafLearnerInput(shape, chunks) {
    if (has_edge_features()) load_edge_features(graph, blocks);
  }
  /// The input of a learner that reads no features of arcs.
  ///
  /// \param factor  of what it reads: 1/d' makes means of sums
  /// \throws std::invalid_argument  options out of range
  explicit SheafLearnerInput(const SheafLearnerOptions& shape, Index chunks = 1, S factor = S(1))
      : shape_((validate(shape), shape)),
        columns_(shape.first_outputs()),
        half_(shape.projection_width() / 2),
        weight_(shape.inputs * stride()),
        weight_back_(stride() * shape.inputs),
        chunks_(chunks),
        factor_(factor) {
    const LearnerColumns<Index> columns(shape);
    for (Index i = 0; i < 2 * shape.inputs; ++i) column_of_.push_back(columns.column(shape.input, i));
  }

  /// Outputs of the first layer; their number rounded up to a multiple of four; twice that number.
  [[nodiscard]] Index columns() const noexcept { return columns_; }
  [[nodiscard]] Index half() const noexcept { return half_; }
  [[nodiscard]] Index stride() const noexcept { return 2 * half_; }
  /// h × stride: source columns, then target columns; and its transpose without what fills up, 2 columns × h.
  [[nodiscard]] Buffer<S>& weight() noexcept { return weight_; }
  [[nodiscard]] const Buffer<S>& weight_back() const noexcept { return weight_back_; }

  /// Fills weight(), in which the columns of targets begin at half(), and weight_back().
  ///
  /// \throws std::invalid_argument  weights of another shape
  void assemble(const SheafLearnerWeights<const S>& weights) {
    const Index h = shape_.inputs;
    weight_.fill(S(0));
    for_weights(weights, [&](const MatrixView<const S>& matrix, Index column, bool whole_pair) {
      for (Index r = 0; r < matrix.rows(); ++r) {
        const S* in = matrix.data() + r * matrix.stride();
        for (Index half = 0; half < 2; ++half) {
          S* out = weight_.data() + half * half_ + column + r;
          S* back = weight_back_.data() + (half * columns_ + column + r) * h;
          for (Index i = 0; i < h; ++i)
            out[i * stride()] = back[i] = factor_ * in[column_of(half * h + i, whole_pair)];
        }
        if (!whole_pair)
          std::copy_n(in + shape_.pair_inputs(), count(), edge_weight_.data() + (column + r) * count());
      }
    });
  }
  /// The caller has put the derivative of the product's weights into weight(), as a 2 columns() × h matrix like
  /// weight_back(). Adds it, and the derivatives of the edge features' weights, to weights_bar.
  /// \throws std::invalid_argument  weights or derivatives of the first layer of another shape
  template <class T>
  void require_weights(const SheafLearnerWeights<T>& weights) const {
    for_weights(weights, [](const MatrixView<T>&, Index, bool) {});
  }
  void distribute(const SheafLearnerWeights<S>& weights_bar) const {
    const Index h = shape_.inputs;
    for_weights(weights_bar, [&](const MatrixView<S>& matrix, Index column, bool whole_pair) {
      for (Index r = 0; r < matrix.rows(); ++r) {
        S* out = matrix.data() + r * matrix.stride();
        for (Index half = 0; half < 2; ++half) {
          const S* in = weight_.data() + (half * columns_ + column + r) * h;
          for (Index i = 0; i < h; ++i) out[column_of(half * h + i, whole_pair)] += factor_ * in[i];
        }
        if (whole_pair) continue;
        for (Index chunk = 0; chunk < chunks_; ++chunk) {
          const S* in = edge_partial_.data() + (chunk * columns_ + column + r) * count();
          for (Index j = 0; j < count(); ++j) out[shape_.pair_inputs() + j] += in[j];
        }
      }
    });
  }

  [[nodiscard]] bool has_edge_features() const noexcept { return count() > 0; }
  /// W_e e_a of one output and W arcs.
  [[nodiscard]] P edge_term(Index output, Index block, int side) const {
    P sum = P(S(0));
    for (Index j = 0; j < count(); ++j)
      sum += P(edge_weight_[output * count() + j]) * edge_feature(block, side, j);
    return sum;
  }
  void begin_backward(Index chunk) {
    std::fill_n(edge_partial_.data() + chunk * columns_ * count(), columns_ * count(), S(0));
  }
  /// Adds the derivatives of an output of W arcs to the derivatives of its weights.
  void add_edge_bar(Index chunk, Index output, Index block, int side, const P& bar) {
    S* out = edge_partial_.data() + (chunk * columns_ + output) * count();
    for (Index j = 0; j < count(); ++j) out[j] += reduce_add(bar * edge_feature(block, side, j));
  }

 private:
  [[nodiscard]] Index count() const noexcept { return shape_.edge_features; }
  [[nodiscard]] Index column_of(Index i, bool whole_pair) const noexcept {
    return whole_pair ? i : column_of_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] P edge_feature(Index block, int side, Index j) const {
    return P::load(edge_feature_.data() + ((block * 2 + side) * count() + j) * W);
  }
  void load_edge_features(const Graph& graph, const EdgeBlocks<S>& blocks) {
    require(graph.arc_feature_count() == count(), "arc features of the graph", graph.arc_feature_count(),
            detail::concat("the sheaf learner reads ", count()));
    edge_weight_.resize(columns_ * count());
    edge_partial_.resize(chunks_ * columns_ * count());
    edge_feature_.resize(blocks.block_count() * 2 * count() * W);
    for (Index block = 0; block < blocks.block_count(); ++block) {
      for (int side = 0; side < 2; ++side) {
        for (Index j = 0; j < count(); ++j) {
          for (int lane = 0; lane < W; ++lane) {
            const Index arc = blocks.arcs(block, side)[lane];
            const double value = graph.arc_features()[static_cast<std::size_t>(arc * count() + j)];
            const S feature = static_cast<S>(value);
            if (!std::isfinite(feature)) {
              throw_invalid_argument(detail::concat("arc features[", arc, ", ", j, "]"), value,
                                     detail::concat("the model has numbers up to ",
                                                    std::numeric_limits<S>::max()));
            }
            edge_feature_[((block * 2 + side) * count() + j) * W + lane] = feature;
          }
        }
      }
    }
  }

  /// Calls body(matrix, first column, whether it reads [Z_u ‖ Z_v] whatever the others read) for all of the layer.
  template <class T, class Body>
  void for_weights(const SheafLearnerWeights<T>& weights, const Body& body) const {
    Index column = 0;
    const auto visit = [&](const MatrixView<T>& matrix, Index rows, bool whole_pair, const char* name) {
      if (rows == 0) return;
      require_array(matrix, rows, whole_pair ? 2 * shape_.inputs : shape_.first_inputs(), name);
      body(matrix, column, whole_pair);
      column += rows;
    };
    if (shape_.hidden_layers == 0) {
      visit(weights.mean, shape_.mean, false, "mean weights");
      visit(weights.spread, shape_.spread, false, "spread weights");
    } else {
      visit(weights.hidden[0], shape_.width, false, "hidden weights");
    }
    visit(weights.edge, shape_.edge_weights ? 1 : 0, true, "edge weights");
  }

  SheafLearnerOptions shape_;
  Index columns_ = 0, half_ = 0;
  std::vector<Index> column_of_;  ///< of the first layer's weights, for the 2h values of [Z_u ‖ Z_v]
  Buffer<S> weight_, weight_back_;
  Index chunks_ = 1;
  S factor_ = S(1);
  Buffer<S> edge_feature_;                ///< lanes-innermost
  Buffer<S> edge_weight_, edge_partial_;  ///< W_e, columns × features; and per chunk its derivative
};

}  // namespace sheafnn::layers
