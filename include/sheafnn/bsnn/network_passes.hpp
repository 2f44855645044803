/// \file
/// NetworkPasses: forward(), backward() and the accessors of every Network. The passes consist of the steps begin(), draw(),
/// accumulate() and finish_backward(), which network_of_steps.hpp defines and users call through begun_pass.hpp.
#pragma once

#include <stdexcept>
#include <string_view>
#include <utility>

#include "sheafnn/bsnn/begun_pass.hpp"
#include "sheafnn/bsnn/forward_pass.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/pass_checks.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/graph_of.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/nn/dropout_mask.hpp"

namespace sheafnn::detail {

/// Base of the specialisations of Network.
///
/// \tparam Derived  the network: BegunPass begin(pass), and the private steps draw(sample) → outputs,
///                  accumulate(outputs_bar) and finish_backward() → KL term, for its friend PassSteps. They call the
///                  protected members: begin_pass() first and begun() last in begin(), begin_draw() and end_draw()
///                  around a draw, check_accumulate() and check_finish(). They put begin_accumulate() and
///                  end_accumulate() around what adds a sample's derivatives
/// \tparam Steps    its layers and buffers, and what a pass remembers
template <class Derived, class Steps>
class NetworkPasses {
 public:
  using Model = typename Steps::Model;
  using Family = typename Model::Family;
  using S = typename Model::Scalar;

  [[nodiscard]] const Model& model() const noexcept { return steps_.model; }
  [[nodiscard]] const GraphOf<Model>& graph() const noexcept { return steps_.graph; }
  [[nodiscard]] Execution execution() const noexcept { return steps_.execution; }
  void set_execution(Execution execution) noexcept { steps_.execution = execution; }
  /// Is anything random, apart from dropout?
  [[nodiscard]] bool draws() const noexcept {
    if constexpr (requires { steps_.draws(); }) {
      return steps_.draws();
    } else {
      return Steps::is_sampled;
    }
  }
  /// The number of samples to draw: `requested`, or 1 if nothing is random. Takes any number.
  [[nodiscard]] Index sample_count(Index requested) const noexcept { return draws() ? requested : 1; }
  /// The pass of the last begin(), and the sample of the last draw.
  [[nodiscard]] const ForwardPass<S>& pass() const noexcept { return steps_.pass; }
  [[nodiscard]] Index sample() const noexcept { return steps_.sample; }
  /// Nodes of the rows of outputs.
  [[nodiscard]] const NodeSelection& nodes() const noexcept { return steps_.nodes; }
  /// Outputs of the last draw. A loss that works in place has overwritten them.
  [[nodiscard]] MatrixView<const S> outputs() const noexcept { return steps_.output.output(); }
  /// Memory for the derivative of the outputs, of their shape; any other matrix of this shape works as well.
  [[nodiscard]] MatrixView<S> output_bar() noexcept { return steps_.output.output_bar(); }
  /// Derivatives of the last backward pass, laid out like the model's parameters.
  [[nodiscard]] const Buffer<S>& gradient() const noexcept { return steps_.gradient; }
  /// gradient(), for a loss that has its own parameters and adds their derivatives between begin_backward() and
  /// finish_backward().
  [[nodiscard]] S* loss_gradient() noexcept { return steps_.gradient.data(); }

  /// Raw outputs of pass.nodes, |nodes| × C, valid until the next pass.
  ///
  /// \throws std::invalid_argument  as begin()
  /// \throws FlowError              for a flow, as FlowLayer::forward()
  MatrixView<S> forward(const ForwardPass<S>& pass = {}) {
    return derived().begin(pass).draw(pass.sample).view();
  }
  /// Computes the derivative of ⟨outputs_bar, outputs⟩ + λ KL(Q ‖ prior) with respect to every parameter, in gradient().
  ///
  /// \param outputs_bar  of the shape of the outputs
  /// \returns the KL term: kl(), plus the mean over the samples of the layers' own KL terms; 0 if nothing is random
  /// \throws std::logic_error       no forward pass with training = true came before
  /// \throws std::invalid_argument  outputs_bar of another shape, options out of range
  double backward(const MatrixView<const S>& outputs_bar, const BackwardOptions& options = {}) {
    require_kept();
    begin_backward(options);
    PassSteps::accumulate(derived(), outputs_bar);
    return PassSteps::finish_backward(derived());
  }

  /// Computes once what the next training pass and evaluations with the same parameters share. It is H with and without the
  /// pass's dropouts, and a posterior that does not depend on dropouts. begin(training, this) uses it for the training pass, and
  /// begin(evaluation, this) for an evaluation, in this network or in another one on the same graph. Unchecked: the parameters
  /// and the training pass stay the same.
  ///
  /// \throws std::invalid_argument  as begin()
  void share(const ForwardPass<S>& training) {
    steps_.share(training);
    shares_ = true;
  }
  /// Draws dropout masks of the next training pass while go_on() returns true. The pass draws the missing masks. May run in
  /// another thread during a pass of this network. Unchecked: the rates, and that `training` is the next training pass.
  template <class GoOn>
  void draw_masks_ahead(const ForwardPass<S>& training, const GoOn& go_on) {
    steps_.for_masks(training, [&](DropoutMask& mask, const Dropout& dropout) {
      if (dropout.active() && go_on()) mask.draw_ahead(dropout);
    });
  }

  /// On a part of a graph (graph/graph_part.hpp), a backward pass leaves the part's share of the derivatives, of the
  /// loss and of the KL term. This function adds them up over all parts. On a whole graph it does nothing. Takes any
  /// values.
  void sum_over_parts(double& loss, double& kl) {
    GraphPart* part = part_of(steps_.graph);
    if (part == nullptr) return;
    double numbers[] = {loss, kl};
    part->sum(steps_.gradient.view(), numbers);
    loss = numbers[0];
    kl = numbers[1];
  }

  /// KL(Q ‖ prior) of the posterior after the last begin(), a mean over incident pairs, or over nodes and sides. It is
  /// 0 for models without a posterior or without a closed form. It does not include the layers' own KL terms.
  ///
  /// \throws std::logic_error  begin() did not come before
  [[nodiscard]] double kl() {
    check_begun("kl");
    return steps_.mean_kl();
  }

  /// The sum of the KL terms of variables that the layers drew themselves in the last draw; kl() does not include it.
  ///
  /// \throws std::logic_error  no draw() of the last begin() came before
  [[nodiscard]] double kl_of_layers() const {
    check_drawn("kl_of_layers");
    double r = 0;
    if constexpr (requires { steps_.layers[0].kl(); }) {
      for (Index l = 0; l < steps_.layer_count(); ++l) r += steps_.layers[l].kl();
    }
    return r;
  }

 protected:
  template <class... Arguments>
  explicit NetworkPasses(Arguments&&... arguments) : steps_(std::forward<Arguments>(arguments)...) {}

  /// The handle of a pass whose embeddings have been computed.
  template <bool FromEmbedding = false>
  [[nodiscard]] BegunPass<Derived, FromEmbedding> begun() {
    return PassSteps::begun<FromEmbedding>(derived());
  }

  /// Draws samples 0 … count − 1 and calls use(outputs) after each.
  template <class Use>
  void draw_all(Index count, const Use& use) {
    for (Index k = 0; k < count; ++k) use(PassSteps::draw(derived(), k).view());
  }
  /// Clears the gradient and takes the options of the backward pass.
  ///
  /// \throws std::invalid_argument  options out of range
  /// \throws std::logic_error       a pass that keeps nothing
  void begin_backward(const BackwardOptions& options) {
    check_backward(options);
    if (!steps_.pass.keeps()) throw_keeps_nothing();
    steps_.options = options;
    steps_.closed_form = uses_closed_form<typename Model::Posterior>(options.kl_estimator);
    steps_.kl = 0;
    steps_.first_sample = true;
    steps_.clear_gradient();
    steps_.begin_posterior(steps_.closed_form ? options.kl_weight : 0.0);
    backward_begun_ = true;
  }

  /// Invalidates the results of the previous pass. \param shared  see begin()
  void begin_pass(const ForwardPass<S>& pass, const NetworkPasses* shared = nullptr) {
    if constexpr (!Steps::recomputes_layers) {
      if (pass.recompute_layers != 0) {
        throw_invalid_argument("recompute_layers", pass.recompute_layers,
                               concat("networks of kind ", Model::kind, " keep all layers"));
      }
      if (pass.compress_layers) {
        throw_invalid_argument("compress_layers", true,
                               concat("networks of kind ", Model::kind, " keep layers as they are computed"));
      }
    }
    require(shared == nullptr || pass.training || !pass.keep, "keep", true,
            "an evaluation that shares its first steps keeps nothing");
    if (shared != nullptr && !shared->shares_)
      throw std::logic_error("begin() with `shared` needs share() before it");
    backward_begun_ = drawn_ = false;
    if (shared != this) shares_ = false;
  }

  // The conditions that the steps of a Network place on earlier steps. \throws std::logic_error, std::invalid_argument

  void check_begun(std::string_view step) const {
    if (steps_.nodes.count() == 0) throw std::logic_error(concat(step, "() needs begin() before it"));
  }
  void check_drawn(std::string_view step) const {
    if (!drawn_) throw std::logic_error(concat(step, "() needs a draw() of this pass before it"));
  }
  /// Until the draw has ended, the layers hold nothing that a backward pass could read.
  void begin_draw(Index sample) {
    check_begun("draw");
    check_sample(steps_.pass, sample, steps_.sheaf_count());
    steps_.sample = sample;
    steps_.kept = drawn_ = false;
  }
  void end_draw() noexcept {
    steps_.kept = steps_.pass.keeps();
    drawn_ = true;
  }
  /// X_1 needs no draw.
  void check_layer_count(Index layer_count, Index layers) const {
    check_begun("features_after");
    require_between("layer_count", layer_count, 0, layers);
    if (layer_count == 0) return;
    check_drawn("features_after");
    if (layer_count < layers && steps_.pass.recompute_layers > 0 && steps_.pass.recompute_layers < layers) {
      throw std::logic_error("features_after() of inner layers needs a pass with recompute_layers = 0");
    }
    if (layer_count < layers && steps_.pass.compress_layers) {
      throw std::logic_error("features_after() of inner layers needs a pass with compress_layers = false");
    }
  }
  [[noreturn]] static void throw_keeps_nothing() {
    throw std::logic_error("a backward pass needs a draw of a pass with training = true before it");
  }
  void require_kept() const {
    if (!steps_.kept) throw_keeps_nothing();
  }
  void check_accumulate() const {
    if (!backward_begun_) throw std::logic_error("add() needs a backward pass that has not finished");
    require_kept();
  }
  /// Marks the backward pass as ended until end_accumulate(): if it fails, its inputs are overwritten and its sums incomplete.
  void begin_accumulate() noexcept { steps_.kept = backward_begun_ = false; }
  void end_accumulate() noexcept {
    steps_.first_sample = false;
    backward_begun_ = true;
  }
  /// Checks finish_backward(), and ends the backward pass.
  void check_finish() {
    if (!backward_begun_ || steps_.first_sample) {
      throw std::logic_error("finish() needs add() before it, and once");
    }
    backward_begun_ = false;
  }

  Steps steps_;

 private:
  friend struct PassSteps;
  [[nodiscard]] Derived& derived() noexcept { return static_cast<Derived&>(*this); }

  PassNumbers numbers_;
  bool backward_begun_ = false;  ///< between begin_backward() and finish_backward()
  bool drawn_ = false;           ///< has the pass drawn a sample?
  bool shares_ = false;          ///< has share() computed what the next passes may take?
};

}  // namespace sheafnn::detail
