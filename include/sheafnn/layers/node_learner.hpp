/// \file
/// NodeLearner: from the features of the nodes, n × h, to the o numbers that the map of each node is made of, with its
/// backward pass. One learns the maps T of a cooperative sheaf, another S.
///
///   - mlp: ReLU(X W₁ + b₁) W₂ + b₂;
///   - sage: convolutions with the mean over neighbours (sage_convolution.hpp), between them GlobalNorm and ReLU;
///   - sage_projected: the same with projected neighbours, between them GELU and dropout.
///
/// Source: math: "Learners of node maps".
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/layers/dense_layer.hpp"
#include "sheafnn/layers/dropout_layer.hpp"
#include "sheafnn/layers/global_norm.hpp"
#include "sheafnn/layers/sage_convolution.hpp"

namespace sheafnn {

enum class NodeLearnerKind : std::uint8_t { mlp, sage, sage_projected };
inline constexpr std::array<std::string_view, 3> node_learner_names = {"mlp", "sage", "sage-projected"};
[[nodiscard]] constexpr std::string_view to_string(NodeLearnerKind kind) {
  return node_learner_names[static_cast<std::size_t>(kind)];
}

struct NodeLearnerOptions {
  NodeLearnerKind kind = NodeLearnerKind::mlp;
  Index inputs = 0, width = 0, outputs = 0;  ///< h, g, o
  Index layers = 1;                          ///< convolutions; not of mlp
};

/// Weights of a learner: the two layers of mlp, or the convolutions with the norms that follow all but the last.
template <class T>
struct NodeLearnerWeights {
  LinearWeights<T> hidden, output;
  std::vector<SageWeights<T>> convolutions;
  std::vector<NormWeights<T>> norms;
};

/// Buffers of one learner on one graph.
template <class S>
class NodeLearner {
 public:
  /// \param arcs  what it views must outlive the learner
  NodeLearner(const ArcLists& arcs, const NodeLearnerOptions& options)
      : options_(options), raw_bar_(arcs.nodes * options.outputs) {
    const Index n = arcs.nodes, g = options.width;
    if (options.kind == NodeLearnerKind::mlp) {
      dense_.emplace_back(n, options.inputs, g, Activation::relu);
      dense_.emplace_back(n, g, options.outputs);
      bar_.resize(n * g);
      return;
    }
    const bool projected = options.kind == NodeLearnerKind::sage_projected;
    convolutions_.reserve(static_cast<std::size_t>(options.layers));
    dropouts_.reserve(static_cast<std::size_t>(options.layers));
    for (Index k = 0; k < options.layers; ++k) {
      const bool last = k + 1 == options.layers;
      convolutions_.emplace_back(arcs, k == 0 ? options.inputs : g, last ? options.outputs : g, projected);
      if (last) break;
      if (projected) {
        activated_.emplace_back(n * g);
        dropouts_.emplace_back(n, g);
      } else {
        norms_.emplace_back(n, g);
      }
    }
    if (options.layers > 1) {
      bar_.resize(n * g);
      other_bar_.resize(n * g);
    }
  }

  /// The learner's numbers, n × o, after forward().
  [[nodiscard]] MatrixView<const S> raw() const noexcept {
    return convolutions_.empty() ? dense_.back().output() : convolutions_.back().output();
  }
  /// For the derivative of raw(), of the same shape.
  [[nodiscard]] MatrixView<S> raw_bar() noexcept {
    return {raw_bar_.data(), raw_bar_.size() / std::max<Index>(1, options_.outputs), options_.outputs};
  }

  /// Computes raw() from x (n × h), which must not change until backward().
  ///
  /// \param dropout_of  dropout_of(k): that of the features between convolutions k and k + 1
  /// \throws std::invalid_argument  x or weights of another shape
  template <class DropoutOf>
  void forward(Execution execution, const NodeLearnerWeights<const S>& weights, const MatrixView<const S>& x,
               const DropoutOf& dropout_of) {
    if (convolutions_.empty()) {
      dense_[0].forward(execution, weights.hidden, x);
      dense_[1].forward(execution, weights.output, dense_[0].output());
      return;
    }
    for (std::size_t k = 0; k < convolutions_.size(); ++k) {
      convolutions_[k].forward(execution, weights.convolutions[k], input(k, x));
      if (k + 1 == convolutions_.size()) break;
      const MatrixView<const S> z = convolutions_[k].output();
      if (norms_.empty()) {
        detail::apply_activation(execution, Activation::gelu, activated_[k].size(), z.data(), activated_[k].data());
        dropouts_[k].forward(execution, {activated_[k].data(), z.rows(), z.columns()},
                             dropout_of(static_cast<Index>(k)));
      } else {
        norms_[k].forward(execution, weights.norms[k], z);
      }
    }
  }

  /// From raw_bar() (overwritten) to the derivatives of x and of the weights (added to).
  ///
  /// \param x           of forward()
  /// \param accumulate  add to x_bar instead of overwriting it
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const NodeLearnerWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<S>& x_bar, bool accumulate, const NodeLearnerWeights<S>& weights_bar) {
    const Index n = x.rows(), g = options_.width;
    if (convolutions_.empty()) {
      const MatrixView<S> hidden_bar(bar_.data(), n, g);
      dense_[1].backward(execution, weights.output, dense_[0].output(), raw_bar(), hidden_bar, false,
                         weights_bar.output);
      dense_[0].backward(execution, weights.hidden, x, hidden_bar, x_bar, accumulate, weights_bar.hidden);
      return;
    }
    MatrixView<S> bar = raw_bar();
    for (std::size_t k = convolutions_.size(); k-- > 0;) {
      if (k + 1 < convolutions_.size()) {  // bar is that of what convolution k + 1 reads
        const MatrixView<const S> z = convolutions_[k].output();
        if (norms_.empty()) {
          dropouts_[k].backward_in_place(execution, bar);
          detail::multiply_by_derivative(execution, Activation::gelu, bar.rows() * bar.columns(), z.data(), bar.data());
        } else {
          norms_[k].backward(execution, weights.norms[k], z, bar, weights_bar.norms[k]);
        }
      }
      const MatrixView<S> next(k % 2 == 0 ? bar_.data() : other_bar_.data(), n, g);
      convolutions_[k].backward(execution, weights.convolutions[k], input(k, x), bar, k == 0 ? x_bar : next,
                                k == 0 && accumulate, weights_bar.convolutions[k]);
      bar = next;
    }
  }

 private:
  /// What convolution k reads.
  [[nodiscard]] MatrixView<const S> input(std::size_t k, const MatrixView<const S>& x) const noexcept {
    return k == 0 ? x : norms_.empty() ? dropouts_[k - 1].output() : norms_[k - 1].output();
  }

  NodeLearnerOptions options_;
  std::vector<DenseLayer<S>> dense_;
  std::vector<SageConvolution<S>> convolutions_;
  std::vector<GlobalNorm<S>> norms_;
  std::vector<Buffer<S>> activated_;
  std::vector<DropoutLayer<S>> dropouts_;
  Buffer<S> raw_bar_, bar_, other_bar_;
};

}  // namespace sheafnn
