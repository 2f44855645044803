/// \file
/// Network of a FlowModel: continuous-time sheaf diffusion on one graph. It has the passes of every Network, so elbo(),
/// train(), predict() and your own loops work with it.
///
///     H = encoder(X),  F ~ Q(F | H),  X(0) = H,  dX/dt = −ELU(Δ_F (I ⊗ A) X Bᵀ),  Y = X(T) W_outᵀ + b_out
///
/// Source: math: "Continuous-time diffusion". The layers with their formulas are in layers/.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/flow_model.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/layers/flow_layer.hpp"

namespace sheafnn::detail {

/// Layers and buffers, with the flow in place of layers.
template <class Model>
struct FlowSteps : NetworkSteps<Model> {
  using Base = NetworkSteps<Model>;
  using S = typename Model::Scalar;
  static constexpr bool takes_embeddings = false, recomputes_layers = false;

  FlowSteps(const Model& of, const Graph& on, const NodeFeatures& features, Execution with)
      : Base(of, on, features, with),
        flow(this->graph, this->shape, of.options().integration(), of.options().field()),
        selected(on.node_count() * this->shape.row()) {}

  [[nodiscard]] FeatureView<const S> features_after(Index count) const {
    return count == 0 ? this->start_features() : flow.output();
  }
  /// Draws the sheaf of a sample and computes its outputs. \throws FlowError  as FlowLayer::forward()
  void compute_outputs() {
    const FeatureView<const S> start = this->start_features();  // X(0) = H
    this->build_sheaf(0, start);                                // F
    flow.forward(this->execution, this->layers.weights, this->sheaf_of(0), start, this->pass.keeps(),
                 replay);                                                                            // X(T)
    this->output.forward(this->execution, this->weights.readout, this->weights.output, end_rows());  // Y
  }
  /// Adds to the derivatives of the flow's weights, of Q's parameters and of H.
  void accumulate(const MatrixView<const S>& outputs_bar) {
    const bool first = this->begin_embedding_bar(this->execution, this->first_sample);
    const FeatureView<S> bar = this->x_bar_view();
    const MatrixView<S> rows = this->nodes.all() ? bar.rows() : this->last_bar().rows();
    this->output.backward(this->execution, this->weights.readout, this->weights.output, selected_rows, outputs_bar,
                          rows, this->weights_bar.readout, this->weights_bar.output);
    if (!this->nodes.all()) spread_rows(rows, bar.rows());
    flow.backward(this->execution, this->layers.weights, this->sheaf_of(0), this->source.gradient(), false, bar,
                  this->scratch(0), this->scratch(1), this->layers.weights_bar);
    this->sheaf_backward(0);
    this->add_sample(this->x_bar, this->embedding_bar, first);
  }

  FlowLayer<typename Model::Family, S> flow;
  std::vector<S> replay;  ///< steps to take; empty: the flow chooses them

 private:
  /// The rows of X(T) at the requested nodes.
  [[nodiscard]] MatrixView<const S> end_rows() {
    const FeatureView<const S> end = flow.output();
    selected_rows = end.rows();
    if (!this->nodes.all()) {
      const Index row = end.row_size();
      for (Index i = 0; i < this->nodes.count(); ++i) {
        std::copy_n(end.data() + this->nodes[i] * row, row, selected.data() + i * row);
      }
      selected_rows = {selected.data(), this->nodes.count(), row};
    }
    return selected_rows;
  }
  /// all = `rows` at the requested nodes, 0 at others.
  void spread_rows(const MatrixView<const S>& rows, const MatrixView<S>& all) const {
    std::fill_n(all.data(), all.rows() * all.columns(), S(0));
    for (Index i = 0; i < this->nodes.count(); ++i) {
      std::copy_n(rows.row(i).data(), all.columns(), all.row(this->nodes[i]).data());
    }
  }

  Buffer<S> selected;  ///< X(T) at these nodes
  MatrixView<const S> selected_rows;
};

}  // namespace sheafnn::detail

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it. features_after(1) is
/// X(T) at all nodes.
template <RestrictionMapFamily FamilyType, SheafSource Posterior, std::floating_point Scalar>
class Network<FlowModel<FamilyType, Posterior, Scalar>>
    : public detail::NetworkOfSteps<Network<FlowModel<FamilyType, Posterior, Scalar>>,
                                    detail::FlowSteps<FlowModel<FamilyType, Posterior, Scalar>>> {
  using Passes = detail::NetworkOfSteps<Network, detail::FlowSteps<FlowModel<FamilyType, Posterior, Scalar>>>;
  using Passes::steps_;

 public:
  using typename Passes::Family, typename Passes::Model;
  using S = Scalar;
  using Passes::Passes;

  /// The flow of the last draw, with the steps that it took.
  [[nodiscard]] const layers::FlowLayer<Family, S>& flow() const noexcept { return steps_.flow; }
  /// Uses these steps in later passes, whatever the tolerances say. An empty argument lets each pass choose its steps
  /// again. With the steps of an earlier pass, the gradient of that pass is the exact derivative of the later passes.
  ///
  /// \throws std::invalid_argument  a step that is not positive and finite
  void set_steps(std::vector<S> sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      require(sizes[i] > 0 && std::isfinite(sizes[i]), ArgumentName({}, "sizes", i), sizes[i],
              "a step must be positive and finite");
    }
    steps_.replay = std::move(sizes);
  }
};

}  // namespace sheafnn
