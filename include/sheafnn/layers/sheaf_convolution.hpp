/// \file
/// SheafConvolution: X' = act(Q (I ⊗ A) dropout(X) Bᵀ + b), Q = I − Δ, from c to c' channels, with its backward pass.
///
/// Mixing is one product per node, of its row of X with W, W_{(j,k),(i,l)} = A_ij B_lk; without A, of every stalk coordinate
/// with Bᵀ. The first layer of a network may read sparse features. Shapes: X n × d × c, A d × d, B c' × c, b c'. On a part of a graph
/// rows of the halo are computed from what the part has; only what LaplacianStep reads of them has meaning.
/// Source: Sheaf Neural Networks (Hansen and Gebhart, arXiv 2012.06333); math: "Convolutions on given sheaves".
#pragma once

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/dense_layer.hpp"
#include "sheafnn/layers/laplacian_step.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"
#include "sheafnn/nn/sparse_input.hpp"

namespace sheafnn::layers {

/// What a convolution is made from.
struct SheafConvolutionOptions {
  Index inputs = 0, outputs = 0;  ///< channels c, c'
  bool left = true;               ///< A
  bool bias = true;               ///< b
  Activation activation = Activation::relu;
};

/// Weights of a convolution. B lies in × out, the transpose of what files have. Unchecked: sizes of at least 1.
template <class T>
struct SheafConvolutionWeights {
  WeightMatrix<T> left;   ///< A, d × d
  WeightMatrix<T> right;  ///< Bᵀ, c × c'
  WeightVector<T> bias;   ///< b, c'

  /// A = I, B random orthogonal where it is square, else uniform in ±1/√c, b = 0.
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, const SheafConvolutionOptions& of, Index d) {
    if (of.left) list.matrix(left, "left", d, d, identity_values(d));
    list.matrix(right, "right", of.outputs, of.inputs,
                of.inputs == of.outputs ? orthogonal_values(of.inputs) : uniform_values(of.inputs), true);
    if (of.bias) list.vector(bias, "bias", {of.outputs}, {});
  }
};

/// The mixing of coordinates and channels as one matrix, W, (d c) × (d c'). Unchecked: sizes and shapes, which
/// SheafConvolution checks.
template <class S>
class KroneckerWeights {
 public:
  KroneckerWeights() = default;
  /// \param wanted  false: none
  KroneckerWeights(bool wanted, Index d, Index inputs, Index outputs)
      : d_(d), in_(inputs), out_(outputs), values_(wanted ? d * inputs * d * outputs : 0), bar_(values_.size()) {}

  [[nodiscard]] MatrixView<const S> values() const noexcept { return {values_.data(), d_ * in_, d_ * out_}; }
  /// Must be filled before distribute().
  [[nodiscard]] MatrixView<S> bar() noexcept { return {bar_.data(), d_ * in_, d_ * out_}; }

  /// \param left  A; empty: I
  void assemble(const MatrixView<const S>& left, const MatrixView<const S>& right) {
    for_blocks([&](Index i, Index j, Index k) {
      const S a = left.empty() ? S(i == j ? 1 : 0) : left(i, j);
      S* to = values_.data() + ((j * in_ + k) * d_ + i) * out_;
      for (Index c = 0; c < out_; ++c) to[c] = a * right(k, c);
    });
  }
  /// Adds the derivatives of A and B. \param left_bar  empty with A = I
  void distribute(const MatrixView<const S>& left, const MatrixView<const S>& right, const MatrixView<S>& left_bar,
                  const MatrixView<S>& right_bar) const {
    for_blocks([&](Index i, Index j, Index k) {
      const S a = left.empty() ? S(i == j ? 1 : 0) : left(i, j);
      const S* from = bar_.data() + ((j * in_ + k) * d_ + i) * out_;
      S sum = S(0);
      for (Index c = 0; c < out_; ++c) {
        sum += from[c] * right(k, c);
        right_bar(k, c) += a * from[c];
      }
      if (!left_bar.empty()) left_bar(i, j) += sum;
    });
  }

 private:
  template <class Use>
  void for_blocks(const Use& use) const {
    for (Index i = 0; i < d_; ++i) {
      for (Index j = 0; j < d_; ++j) {
        for (Index k = 0; k < in_; ++k) use(i, j, k);
      }
    }
  }
  Index d_ = 0, in_ = 0, out_ = 0;
  Buffer<S> values_, bar_;
};

/// Buffers and passes of one convolution on one graph.
template <RestrictionMapFamily Family, class S>
class SheafConvolution {
 public:
  static constexpr int D = Family::stalk_dimension;
  using Blocks = SheafBlocks<Family, S>;

  /// `graph` must outlive the layer, which must stay in place.
  ///
  /// \param features  what the layer reads in place of dense rows; null: it gets dense rows
  /// \throws std::invalid_argument  channels out of range
  SheafConvolution(const Graph& graph, const SheafConvolutionOptions& options,
                   const SparseInput<S>* features = nullptr)
      : graph_(&graph),
        options_(options),
        shape_(graph, D, false, false, options.outputs),
        step_(graph, shape_),
        sparse_(features),
        entries_(features == nullptr ? 0 : features->entries()),
        mask_(features == nullptr ? graph.node_count() * D * options.inputs : 0),
        dropped_(features == nullptr ? graph.node_count() * D * options.inputs : 0),
        mixed_(graph.node_count() * shape_.row()),
        output_(mixed_.size()),
        slope_(mixed_.size()),
        mixed_bar_(mixed_.size()),
        scratch_(mixed_.size()),
        work_(features == nullptr ? 0 : features->work_size(shape_.row(), 1)),
        zero_(shape_.row()),
        matrix_(joint(), D, options.inputs, options.outputs),
        transposed_(joint() ? D * options.inputs * shape_.row() : options.inputs * options.outputs) {}
  SheafConvolution(const SheafConvolution&) = delete;
  SheafConvolution& operator=(const SheafConvolution&) = delete;

  /// X' at the nodes of the last pass.
  [[nodiscard]] FeatureView<const S> output() const noexcept {
    return {output_.data(), nodes_.count(), D, options_.outputs};
  }
  /// Memory for the derivative of output(), of its shape.
  [[nodiscard]] FeatureView<S> output_bar() noexcept {
    return {scratch_.data(), nodes_.count(), D, options_.outputs};
  }
  /// The mask of the dropout of X.
  [[nodiscard]] DropoutMask& mask() noexcept { return sparse_ == nullptr ? mask_ : entries_.mask; }

  /// Computes output().
  ///
  /// \param x         n × d × c, not read where the layer reads sparse features; stays in place until backward()
  /// \param nodes     at which the output is wanted; their list stays in place until backward()
  /// \param training  will backward() follow?
  /// \throws std::invalid_argument  features or weights of another shape, a sheaf over another graph
  void forward(Execution execution, const SheafConvolutionWeights<const S>& weights, const Blocks& sheaf,
               const FeatureView<const S>& x, const NodeSelection& nodes, const Dropout& dropout, bool training) {
    check(weights);
    detail::require_over(*graph_, sheaf);
    nodes_ = nodes;
    mix(execution, weights, x, dropout);
    const LayerCall<Family, S> call{.execution = execution,
                                    .sheaf = sheaf,
                                    .x = view(mixed_),
                                    .first = {},
                                    .nodes = nodes,
                                    .training = training,
                                    .scratch = view(scratch_)};
    step_.begin(call);
    step_.scale(call, mixed_.data());
    const S *const y = mixed_.data(), *const bias = options_.bias ? weights.bias.data() : zero_.data();
    S* const slope = slope_.data();
    with_activation(options_.activation, [&]<Activation A>() {
      step_.diffuse(call, y, output_.data(),
                    [=]<class T>(const auto& c, Index in, Index, const T& z) SHEAFNN_INLINE_LAMBDA {
                      T derivative;
                      const T value =
                          activate_with_slope<A>(kernels::convolved<T>(
                                                     {.z = z, .mixed = c.load(y + in), .bias = c.load(bias + c)}),
                                                 derivative);
                      if (training) c.store(slope + in, derivative);
                      return value;
                    });
    });
  }

  /// Computes the derivatives of x, of the weights (added to) and of the sheaf's blocks from the derivative of output()
  /// in output_bar().
  ///
  /// \param x_bar  n × d × c, overwritten; empty: not wanted
  /// \throws std::invalid_argument  weights or x_bar of another shape
  void backward(Execution execution, const SheafConvolutionWeights<const S>& weights, const Blocks& sheaf,
                SheafBlocksGradient<Family, S>& sheaf_gradient, const FeatureView<S>& x_bar,
                const SheafConvolutionWeights<S>& weights_bar) {
    check(weights);
    check(weights_bar);
    const Index f = options_.outputs, row = shape_.row();
    const Index count = nodes_.lower_bound(graph_->own_node_count());  // rows of own nodes
    // D = act′ ∘ X̄′;  b̄ = Σ D;  Ȳ = D − Δ D.
    S* const bar = scratch_.data();
    parallel_for(execution, count, 16, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const S* slope = slope_.data() + nodes_[i] * row;
        detail::for_tiles<S>(0, row, [&]<class T>(auto c) {
          c.store(bar + i * row + c, c.load(bar + i * row + c) * -c.load(slope + c));
        });
      }
    });
    if (options_.bias) {
      for (Index c = 0; c < f; ++c) zero_[c] = S(0);
      detail::add_column_sums(count * D, f, bar, f, zero_.data());
      for (Index c = 0; c < f; ++c) {
        weights_bar.bias[static_cast<std::size_t>(c)] -= zero_[c];
        zero_[c] = S(0);
      }
    }
    const FeatureView<S> y_bar = view(mixed_bar_);
    step_.backward({.execution = execution,
                    .sheaf = sheaf,
                    .sheaf_gradient = sheaf_gradient,
                    .output_bar = {bar, nodes_.count(), D, f},
                    .x_bar = y_bar,
                    .first_bar = {},
                    .scratch = {view(output_), view(diffused())}},
                   {bar, nodes_.count(), D, f}, y_bar);
    for (Index i = 0; i < count; ++i) {
      S* to = y_bar.data() + nodes_[i] * row;
      detail::for_tiles<S>(0, row,
                           [&]<class T>(auto c) { c.store(to + c, c.load(to + c) - c.load(bar + i * row + c)); });
    }
    mix_backward(execution, weights, x_bar, weights_bar);
  }

 private:
  [[nodiscard]] FeatureView<S> view(Buffer<S>& buffer) const noexcept {
    return {buffer.data(), graph_->node_count(), D, options_.outputs};
  }
  /// A buffer for the backward pass, allocated when first needed.
  [[nodiscard]] Buffer<S>& diffused() {
    if (diffused_.empty()) diffused_.resize(mixed_.size());
    return diffused_;
  }
  /// Is a node's row mixed at once, or each of its coordinates?
  [[nodiscard]] bool joint() const noexcept { return options_.left || (sparse_ != nullptr && D > 1); }
  template <class T>
  void check(const SheafConvolutionWeights<T>& weights) const {
    if (options_.left) require_array(weights.left, D, D, "left weights");
    require_array(weights.right, options_.inputs, options_.outputs, "right weights");
    if (options_.bias) require_size(weights.bias, options_.outputs, "bias");
  }
  [[nodiscard]] MatrixView<const S> left_of(const SheafConvolutionWeights<const S>& weights) const {
    return options_.left ? weights.left : MatrixView<const S>();
  }
  /// Rows of X and Y as the product takes them.
  [[nodiscard]] MatrixView<const S> rows_of(const S* x, Index width) const {
    const Index n = graph_->node_count();
    return joint() ? MatrixView<const S>(x, n, D * width) : MatrixView<const S>(x, n * D, width);
  }

  /// Y = (I ⊗ A) dropout(X) Bᵀ.
  void mix(Execution execution, const SheafConvolutionWeights<const S>& weights, const FeatureView<const S>& x,
           const Dropout& dropout) {
    if (joint()) matrix_.assemble(left_of(weights), weights.right);
    const MatrixView<const S> matrix = joint() ? matrix_.values() : weights.right;
    is_dropped_ = dropout.active();
    if (sparse_ != nullptr) {
      if (is_dropped_) {
        entries_.draw(execution, dropout);
        sparse_->forward(execution, entries_, matrix.data(), zero_.data(), shape_.row(), mixed_.data(),
                         work_.data());
      } else {
        sparse_->forward(execution, matrix.data(), zero_.data(), shape_.row(), mixed_.data(), work_.data());
      }
      return;
    }
    require_shape(x, graph_->node_count(), D, options_.inputs, "x");
    input_ = x.data();
    if (is_dropped_) {
      mask_.draw(execution, dropout);
      factor_ = static_cast<S>(dropout.scale());
      parallel_for(execution, dropped_.size(), 2048, [&](Index begin, Index end) {
        detail::for_tiles<S>(begin, end, [&]<class T>(auto i) {
          i.store(dropped_.data() + i, detail::dropped(i.load(x.data() + i), mask_.bits(), i, factor_));
        });
      });
      input_ = dropped_.data();
    }
    const MatrixView<const S> y = rows_of(mixed_.data(), options_.outputs);
    detail::multiply_dense(execution, rows_of(input_, options_.inputs), matrix,
                           MatrixView<S>(mixed_.data(), y.rows(), y.columns()), false);
  }
  /// Computes the derivatives from Ȳ, which is in mixed_bar_.
  void mix_backward(Execution execution, const SheafConvolutionWeights<const S>& weights,
                    const FeatureView<S>& x_bar, const SheafConvolutionWeights<S>& weights_bar) {
    const MatrixView<const S> y_bar = rows_of(mixed_bar_.data(), options_.outputs);
    if (sparse_ != nullptr) {
      Buffer<S>& own = transposed_;  // of the shape of the weights
      const MatrixView<S> matrix_bar =
          joint() ? matrix_.bar() : MatrixView<S>(own.data(), options_.inputs, options_.outputs);
      sparse_->backward(execution, is_dropped_ ? entries_.values.data() : sparse_->values(), mixed_bar_.data(),
                        shape_.row(), matrix_bar.data());
      if (!joint()) detail::add_array(execution, own.size(), own.data(), weights_bar.right.data());
    } else {
      const auto x = detail::transposed(rows_of(input_, options_.inputs));
      if (joint()) {
        detail::multiply_dense(execution, x, y_bar, matrix_.bar(), false);
      } else {
        detail::multiply_dense(execution, x, y_bar, weights_bar.right, true);
      }
    }
    if (joint()) {
      matrix_.distribute(left_of(weights), weights.right, options_.left ? weights_bar.left : MatrixView<S>(),
                         weights_bar.right);
    }
    if (sparse_ != nullptr || x_bar.data() == nullptr) return;
    require_shape(x_bar, graph_->node_count(), D, options_.inputs, "x_bar");
    const MatrixView<const S> matrix = joint() ? matrix_.values() : weights.right;
    detail::transpose_into(matrix.rows(), matrix.columns(), matrix.data(), transposed_.data(), matrix.rows());
    const MatrixView<const S> x = rows_of(x_bar.data(), options_.inputs);
    detail::multiply_dense(execution, y_bar, {transposed_.data(), matrix.columns(), matrix.rows()},
                           MatrixView<S>(x_bar.data(), x.rows(), x.columns()), false);
    if (!is_dropped_) return;
    parallel_for(execution, x_bar.size(), 2048, [&](Index begin, Index end) {
      detail::for_tiles<S>(begin, end, [&]<class T>(auto i) {
        i.store(x_bar.data() + i, detail::dropped(i.load(x_bar.data() + i), mask_.bits(), i, factor_));
      });
    });
  }

  const Graph* graph_;
  SheafConvolutionOptions options_;
  DiffusionShape<S> shape_;
  LaplacianStep<Family, S> step_;
  const SparseInput<S>* sparse_;
  EntryDropout<S> entries_;
  DropoutMask mask_;
  Buffer<S> dropped_;              ///< dropout(X)
  Buffer<S> mixed_;                ///< Y
  Buffer<S> output_, slope_;       ///< X′ at the nodes, and act′ at all
  Buffer<S> mixed_bar_, scratch_;  ///< Ȳ, and the derivative of the output
  Buffer<S> diffused_;
  Buffer<S> work_, zero_;
  KroneckerWeights<S> matrix_;
  Buffer<S> transposed_;
  const S* input_ = nullptr;
  NodeSelection nodes_;
  S factor_ = S(1);
  bool is_dropped_ = false;
};

}  // namespace sheafnn::layers
