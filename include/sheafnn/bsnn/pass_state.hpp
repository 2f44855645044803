/// \file
/// PassState: the state that the steps of every network share: model, graph, weights, gradient and the current pass.
#pragma once

#include <utility>

#include "sheafnn/bsnn/forward_pass.hpp"
#include "sheafnn/bsnn/pass_checks.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph_of.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/parameter_list.hpp"

namespace sheafnn::detail {

/// It is neither copied nor moved, since a network's parts refer to each other.
///
/// \tparam Weights  Weights<T>: all weights, views of T
/// \tparam Sampled  are sheaves random?
template <class ModelType, template <class> class Weights, bool Sampled = ModelType::bayesian>
struct PassState {
  using Model = ModelType;
  using S = typename Model::Scalar;
  static constexpr bool is_sampled = Sampled;
  /// May a pass begin with embeddings from outside? Steps that allow it hide this.
  static constexpr bool takes_embeddings = false;
  /// May backward passes compute layers again (ForwardPass::recompute_layers)? As above.
  static constexpr bool recomputes_layers = false;
  /// May passes share embeddings with passes of other networks? As above.
  static constexpr bool shares_embeddings = false;

  PassState(const Model& of, const GraphOf<Model>& on, Execution with) : model(of), graph(on), execution(with) {
    gradient.resize(of.parameters().size());
  }
  PassState(const PassState&) = delete;
  PassState& operator=(const PassState&) = delete;

  /// Checks and takes a pass. Points the weights at the parameters, and at the gradient before a training pass.
  ///
  /// \param node_count         number of nodes with rows
  /// \param noise_size, count  values of explicit noise per sheaf, and number of sheaves, for models that sample
  /// \param declare            declare(list, weights) for both
  /// \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length
  template <class Declare>
  void take_pass(const ForwardPass<S>& of, Index node_count, Index noise_size, Index count,
                 const Declare& declare) {
    check_pass(of, node_count);
    if constexpr (is_sampled) {
      check_noise(of, noise_size, count);
    } else {
      require(of.noise.empty(), "noise", of.noise.size(), "no sheaf is random in this model");
    }
    kept = false;  // buffers of an earlier draw belong to another pass
    pass = of;
    nodes = of.nodes.empty() ? NodeSelection(node_count) : NodeSelection(of.nodes);
    point_at(model.parameters(), model.parameters().values().data(), bound_,
             [&](ParameterList<const S>& list) { declare(list, weights); });
    if (!pass.keeps()) return;
    point_at(model.parameters(), gradient.data(), bound_gradient_,
             [&](ParameterList<S>& list) { declare(list, weights_bar); });
  }
  /// The explicit noise of a sheaf of the current sample; null if the pass has none.
  [[nodiscard]] const S* explicit_noise(Index sheaf, Index count) const {
    return pass.noise.empty() ? nullptr : pass.noise[static_cast<std::size_t>(sample * count + sheaf)].data();
  }
  /// total = bar for the first sample, total += bar for the others. Leaves the values of `bar` undefined.
  void add_sample(Buffer<S>& bar, Buffer<S>& total, bool first) {
    if (first) {
      std::swap(bar, total);
    } else {
      add_array(execution, bar.size(), bar.data(), total.data());
    }
  }
  void add_sample(Buffer<S>& bar, Buffer<S>& total) { add_sample(bar, total, first_sample); }
  /// Must the closed form of the KL term be computed after the last sample?
  [[nodiscard]] bool ends_with_kl() const noexcept { return closed_form; }
  /// The KL term at the end of a backward pass.
  [[nodiscard]] double total_kl() const noexcept { return kl; }

  const Model& model;
  const GraphOf<Model>& graph;
  Execution execution;
  Weights<const S> weights;
  Weights<S> weights_bar;
  Buffer<S> gradient;
  ForwardPass<S> pass;
  NodeSelection nodes;  ///< nodes of the rows of outputs
  Index sample = 0;     ///< sample of the current draw
  BackwardOptions options;
  bool kept = false;  ///< do the layers hold everything that a backward pass reads?
  bool closed_form = true, first_sample = true;
  double kl = 0;  ///< KL term of the backward pass

 private:
  const S *bound_ = nullptr, *bound_gradient_ = nullptr;  ///< where the views point
};

}  // namespace sheafnn::detail
