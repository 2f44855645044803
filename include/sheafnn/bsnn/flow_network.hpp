/// \file
/// Network of a FlowModel: continuous-time sheaf diffusion at work on one graph, with the passes of every Network, so
/// that elbo(), train(), predict() and own loops work with it.
///
///     H = encoder(X),  F ~ Q(F | H),  X(0) = H,  dX/dt = −ELU(Δ_F (I ⊗ A) X Bᵀ),  Y = X(T) W₂ + b₂
///
/// Source: math: "Continuous-time diffusion". The layers with their formulas are in layers/.
#pragma once

#include <algorithm>
#include <cassert>
#include <concepts>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/flow_model.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/layers/flow_layer.hpp"

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it.
template <RestrictionMapFamily FamilyType, SheafSource Posterior, std::floating_point Scalar>
class Network<FlowModel<FamilyType, Posterior, Scalar>> {
 public:
  using Model = FlowModel<FamilyType, Posterior, Scalar>;
  using Family = FamilyType;
  using S = Scalar;

  /// Allocates all buffers but those of the steps of the flow, which grow with the number of steps.
  ///
  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, or a graph without nodes
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, Execution execution = {})
      : steps_(model, graph, features, execution),
        flow_(graph, steps_.shape, model.options().integration(), model.options().field()),
        selected_(graph.node_count() * steps_.shape.row()) {}

  [[nodiscard]] const Model& model() const noexcept { return steps_.model; }
  [[nodiscard]] const Graph& graph() const noexcept { return steps_.graph; }
  [[nodiscard]] Execution execution() const noexcept { return steps_.execution; }
  void set_execution(Execution execution) noexcept { steps_.execution = execution; }
  /// Samples that make sense: one where nothing is random.
  [[nodiscard]] static Index sample_count(Index requested) noexcept { return Steps::is_sampled ? requested : 1; }
  /// Nodes of the rows of outputs.
  [[nodiscard]] const NodeSelection& nodes() const noexcept { return steps_.nodes; }
  /// Outputs of the last draw, as what followed has left them: a loss may work in place.
  [[nodiscard]] MatrixView<const S> outputs() const noexcept { return steps_.output.output(); }
  /// X(0) = H after no layer, X(T) at all nodes after the only one; of the last draw and valid until the next pass.
  [[nodiscard]] FeatureView<const S> features_after(Index layer_count) const noexcept {
    assert(layer_count == 0 || layer_count == 1);
    return layer_count == 0 ? steps_.start_features() : flow_.output();
  }
  /// A matrix of the shape of the outputs, for their derivative; any other of this shape will do.
  [[nodiscard]] MatrixView<S> output_bar() noexcept { return steps_.output.output_bar(); }
  /// Derivatives of the last backward pass, laid out like the model's parameters.
  [[nodiscard]] const Buffer<S>& gradient() const noexcept { return steps_.gradient; }
  /// The sheaf of the last draw and, of Bayesian models, the posterior it is drawn from.
  [[nodiscard]] const auto& sheaf_source() const noexcept { return steps_.source; }
  /// The flow of the last draw, with the steps that it took.
  [[nodiscard]] const FlowLayer<Family, S>& flow() const noexcept { return flow_; }
  /// Takes these steps in the passes to come, whatever the tolerances say; none: chooses them anew. With the steps of a
  /// pass, its gradient is the exact derivative of the passes to come.
  ///
  /// \throws std::invalid_argument  when a pass comes to a step that is not positive
  void set_steps(std::vector<S> sizes) { replay_ = std::move(sizes); }

  /// Raw outputs of pass.nodes, |nodes| × C, valid until the next pass.
  ///
  /// \throws std::invalid_argument  as begin()
  /// \throws std::runtime_error     as FlowLayer::forward()
  MatrixView<S> forward(const ForwardPass<S>& pass = {}) {
    begin(pass);
    return draw(pass.sample);
  }
  /// The derivative of ⟨outputs_bar, outputs⟩ + λ KL(Q ‖ prior) in every parameter, into gradient().
  ///
  /// \param outputs_bar  of the shape of the outputs
  /// \returns the KL term, per incident pair; 0 for deterministic models
  /// \throws std::logic_error       no forward pass with training = true came before
  /// \throws std::invalid_argument  outputs_bar of another shape, options out of range
  double backward(const MatrixView<const S>& outputs_bar, const BackwardOptions& options = {}) {
    steps_.require_kept();
    begin_backward(options);
    accumulate(outputs_bar);
    return finish_backward();
  }

  // The same in steps, as of every Network.

  /// Embeddings H and, of Bayesian models, the posterior Q(F | H).
  ///
  /// \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length
  void begin(const ForwardPass<S>& pass) {
    steps_.check(pass);
    steps_.bind(pass.training);
    steps_.set_pass(pass);
    steps_.embed(false);                      // H
    steps_.infer(steps_.embedding.output());  // Q(F | H)
  }

  /// Draws the sheaf of a sample and computes its outputs.
  ///
  /// \throws std::runtime_error  as FlowLayer::forward()
  MatrixView<S> draw(Index sample) {
    steps_.sample = sample;
    steps_.kept = false;
    const FeatureView<const S> start = steps_.start_features();  // X(0) = H
    steps_.build_sheaf(0, start);                                // F
    flow_.forward(execution(), weights<const S>(model().parameters().values()), steps_.sheaf_of(0), start,
                  steps_.pass.training, replay_);                                                   // X(T)
    steps_.output.forward(execution(), steps_.weights.readout, steps_.weights.output, end_rows());  // Y
    steps_.kept = steps_.pass.training;
    return steps_.output.output();
  }
  /// Draws samples 0 … count − 1 after begin(), for evaluations: use(outputs of one) is called for each.
  template <class Use>
  void draw_samples(Index count, const Use& use) {
    for (Index k = 0; k < sample_count(count); ++k) use(draw(k));
  }

  /// Clears the gradient and takes the options of the backward pass.
  void begin_backward(const BackwardOptions& options) {
    steps_.check(options);
    steps_.options = options;
    steps_.closed_form = uses_closed_form<Posterior>(options.kl_estimator);
    steps_.kl = 0;
    steps_.first_sample = true;
    steps_.clear_gradient();
    steps_.source.begin_backward(execution(), steps_.closed_form ? options.kl_weight : 0.0);
  }
  /// Backwards from the derivative of the last draw's outputs to those of the flow's weights, of Q's parameters and of
  /// H, which add up.
  void accumulate(const MatrixView<const S>& outputs_bar) {
    steps_.require_kept();
    const FeatureView<S> bar = steps_.x_bar_view();
    const MatrixView<S> rows = nodes().all() ? bar.rows() : steps_.scratch(0).first(nodes().count()).rows();
    steps_.output.backward(execution(), steps_.weights.readout, steps_.weights.output, selected_rows_, outputs_bar,
                           rows, steps_.weights_bar.readout, steps_.weights_bar.output);
    if (!nodes().all()) spread_rows(rows, bar.rows());
    flow_.backward(execution(), weights<const S>(model().parameters().values()), steps_.sheaf_of(0),
                   steps_.source.gradient(), false, bar, steps_.scratch(0), steps_.scratch(1),
                   weights<S>(steps_.gradient));
    steps_.sheaf_backward(0);
    steps_.add_embedding_bar(execution(), steps_.first_sample);
    steps_.first_sample = steps_.kept = false;
  }
  /// From what accumulate() has gathered to gradient().
  ///
  /// \returns the KL term, per incident pair
  double finish_backward() {
    if (steps_.closed_form) steps_.kl = kl();
    const FeatureView<S> bar = steps_.embedding_bar_view(), work = steps_.scratch(0);
    steps_.source.finish_backward(execution(), steps_.source_weights(), bar.rows(), work.rows(),
                                  steps_.source_weights_bar());
    steps_.embedding.backward(execution(), steps_.weights.second, bar.rows(), work.rows(),
                              steps_.weights_bar.encoder, steps_.weights_bar.second);
    return steps_.kl;
  }

  /// KL(Q ‖ prior) per incident pair of the posterior of the last begin(); 0 for models without, or without closed form.
  [[nodiscard]] double kl() {
    if constexpr (Steps::has_closed_form) {
      return steps_.source.kl(execution());
    } else {
      return 0;
    }
  }

 private:
  using Steps = detail::NetworkSteps<Model>;

  /// A and B, or their gradients, in an array laid out like the parameters.
  template <class T, class Array>
  [[nodiscard]] DiffusionWeights<T> weights(Array& array) const {
    const auto square = [&](ParameterId id) -> MatrixView<T> {
      if (id < 0) return {};
      const ParameterInfo& info = model().parameters().info(id);
      return {array.data() + info.offset, info.shape[0], info.shape[1]};
    };
    return {square(model().flow_layout().left), square(model().flow_layout().right), {}};
  }
  /// The rows of X(T) at nodes().
  [[nodiscard]] MatrixView<const S> end_rows() {
    const FeatureView<const S> end = flow_.output();
    selected_rows_ = end.rows();
    if (!nodes().all()) {
      const Index row = end.row_size();
      for (Index i = 0; i < nodes().count(); ++i) {
        std::copy_n(end.data() + nodes()[i] * row, row, selected_.data() + i * row);
      }
      selected_rows_ = {selected_.data(), nodes().count(), row};
    }
    return selected_rows_;
  }
  /// all = `rows` at nodes(), 0 at others.
  void spread_rows(const MatrixView<const S>& rows, const MatrixView<S>& all) const {
    std::fill_n(all.data(), all.rows() * all.columns(), S(0));
    for (Index i = 0; i < nodes().count(); ++i) {
      std::copy_n(rows.row(i).data(), all.columns(), all.row(nodes()[i]).data());
    }
  }

  Steps steps_;
  FlowLayer<Family, S> flow_;
  Buffer<S> selected_;  ///< X(T) at nodes()
  MatrixView<const S> selected_rows_;
  std::vector<S> replay_;
};

}  // namespace sheafnn
