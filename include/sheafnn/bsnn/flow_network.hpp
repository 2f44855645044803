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
#include <stdexcept>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/flow_model.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/layers/flow_layer.hpp"

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it.
template <RestrictionMapFamily FamilyType, SheafSource Posterior, std::floating_point Scalar>
class Network<FlowModel<FamilyType, Posterior, Scalar>>
    : public detail::NetworkPasses<Network<FlowModel<FamilyType, Posterior, Scalar>>,
                                   detail::NetworkSteps<FlowModel<FamilyType, Posterior, Scalar>>> {
  using Passes = detail::NetworkPasses<Network, detail::NetworkSteps<FlowModel<FamilyType, Posterior, Scalar>>>;
  using Passes::steps_;

 public:
  using typename Passes::Family, typename Passes::Model;
  using S = Scalar;

  /// Allocates all buffers except the buffers of the flow's steps, which grow with the number of steps.
  ///
  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, or a graph without nodes
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, Execution execution = {})
      : Passes(model, graph, features, execution),
        flow_(steps_.graph, steps_.shape, model.options().integration(), model.options().field()),
        selected_(graph.node_count() * steps_.shape.row()) {}
  Network(const Model&&, const Graph&, const NodeFeatures&, Execution = {}) = delete;  // they would dangle
  Network(const Model&, const Graph&&, const NodeFeatures&, Execution = {}) = delete;

  /// Features of the last draw, valid until the next pass: X(0) = H for layer_count = 0, X(T) at all nodes for
  /// layer_count = 1.
  ///
  /// \throws std::invalid_argument  layer_count neither 0 nor 1
  /// \throws std::logic_error       begin() or, for X(T), draw() did not come before
  [[nodiscard]] FeatureView<const S> features_after(Index layer_count) const {
    this->check_layer_count(layer_count, 1);
    return layer_count == 0 ? steps_.start_features() : flow_.output();
  }
  /// The sheaf of the last draw and, for Bayesian models, the posterior it is drawn from.
  [[nodiscard]] const auto& sheaf_source() const noexcept { return steps_.source; }
  /// The flow of the last draw, with the steps that it took.
  [[nodiscard]] const layers::FlowLayer<Family, S>& flow() const noexcept { return flow_; }
  /// Uses these steps in later passes, whatever the tolerances say. An empty argument lets each pass choose its steps
  /// again. With the steps of an earlier pass, the gradient of that pass is the exact derivative of the later passes.
  ///
  /// \throws std::invalid_argument  a step that is not positive and finite
  void set_steps(std::vector<S> sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      require(sizes[i] > 0 && std::isfinite(sizes[i]), ArgumentName({}, "sizes", i), sizes[i],
              "a step must be positive and finite");
    }
    replay_ = std::move(sizes);
  }

  /// Computes embeddings H and, for Bayesian models, the posterior Q(F | H).
  ///
  /// \param shared  null, or a network of the same model that has computed them: share(). May be this one
  /// \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length
  /// \throws std::logic_error       share() did not come before
  BegunPass<Network> begin(const ForwardPass<S>& pass, Network* shared = nullptr) {
    this->begin_pass(pass, shared);
    steps_.check(pass);
    steps_.bind(pass.keeps());
    steps_.set_pass(pass);
    if (shared == nullptr) {
      steps_.embed();                           // H
      steps_.infer(steps_.embedding.output());  // Q(F | H)
    } else {
      steps_.take(shared->steps_);
    }
    return this->begun();
  }

 private:
  friend struct detail::PassSteps;

  /// Draws the sheaf of a sample and computes its outputs. \throws FlowError  as FlowLayer::forward()
  MatrixView<S> draw(Index sample) {
    this->begin_draw(sample);
    const FeatureView<const S> start = steps_.start_features();  // X(0) = H
    steps_.build_sheaf(0, start);                                // F
    flow_.forward(steps_.execution, steps_.layers.weights, steps_.sheaf_of(0), start, steps_.pass.keeps(),
                  replay_);                                                                              // X(T)
    steps_.output.forward(steps_.execution, steps_.weights.readout, steps_.weights.output, end_rows());  // Y
    this->end_draw();
    return steps_.output.output();
  }
  /// Adds to the derivatives of the flow's weights, of Q's parameters and of H.
  void accumulate(const MatrixView<const S>& outputs_bar) {
    this->check_accumulate();
    const bool overwrites = steps_.begin_embedding_bar(steps_.execution, steps_.first_sample);
    const FeatureView<S> bar = steps_.x_bar_view();
    const MatrixView<S> rows =
        steps_.nodes.all() ? bar.rows() : steps_.scratch(0).first(steps_.nodes.count()).rows();
    steps_.output.backward(steps_.execution, steps_.weights.readout, steps_.weights.output, selected_rows_,
                           outputs_bar, rows, steps_.weights_bar.readout, steps_.weights_bar.output);
    if (!steps_.nodes.all()) spread_rows(rows, bar.rows());
    flow_.backward(steps_.execution, steps_.layers.weights, steps_.sheaf_of(0), steps_.source.gradient(), false,
                   bar, steps_.scratch(0), steps_.scratch(1), steps_.layers.weights_bar);
    steps_.sheaf_backward(0);
    steps_.add_embedding_bar(steps_.execution, overwrites);
    steps_.first_sample = steps_.kept = false;
  }
  /// Completes gradient() from the sums of accumulate(). \returns the KL term, per incident pair
  double finish_backward() {
    this->check_finish();
    if (steps_.closed_form) steps_.kl = steps_.mean_kl();
    steps_.embed_backward();
    return steps_.kl;
  }
  /// The rows of X(T) at steps_.nodes.
  [[nodiscard]] MatrixView<const S> end_rows() {
    const FeatureView<const S> end = flow_.output();
    selected_rows_ = end.rows();
    if (!steps_.nodes.all()) {
      const Index row = end.row_size();
      for (Index i = 0; i < steps_.nodes.count(); ++i) {
        std::copy_n(end.data() + steps_.nodes[i] * row, row, selected_.data() + i * row);
      }
      selected_rows_ = {selected_.data(), steps_.nodes.count(), row};
    }
    return selected_rows_;
  }
  /// all = `rows` at nodes(), 0 at others.
  void spread_rows(const MatrixView<const S>& rows, const MatrixView<S>& all) const {
    std::fill_n(all.data(), all.rows() * all.columns(), S(0));
    for (Index i = 0; i < steps_.nodes.count(); ++i) {
      std::copy_n(rows.row(i).data(), all.columns(), all.row(steps_.nodes[i]).data());
    }
  }

  layers::FlowLayer<Family, S> flow_;
  Buffer<S> selected_;  ///< X(T) at nodes()
  MatrixView<const S> selected_rows_;
  std::vector<S> replay_;
};

}  // namespace sheafnn
