/// \file
/// NetworkPasses: what every Network has besides its equations: accessors, and forward() and backward() made of the
/// steps begin(), draw(), accumulate() and finish_backward() that a Network defines.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

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
/// \tparam Derived  the network: void begin(pass, shared), outputs draw(sample), void accumulate(outputs_bar),
///                  double finish_backward(). They call what is protected here: begin_pass() first in begin(),
///                  begin_draw() and end_draw() around a draw, check_accumulate() and check_finish()
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
  /// Is anything random, beside dropout?
  [[nodiscard]] bool draws() const noexcept {
    if constexpr (requires { steps_.draws(); }) {
      return steps_.draws();
    } else {
      return Steps::is_sampled;
    }
  }
  /// Samples that make sense: one where nothing is random. Takes any number.
  [[nodiscard]] Index sample_count(Index requested) const noexcept { return draws() ? requested : 1; }
  /// The pass of the last begin(), and the sample of the last draw.
  [[nodiscard]] const ForwardPass<S>& pass() const noexcept { return steps_.pass; }
  [[nodiscard]] Index sample() const noexcept { return steps_.sample; }
  /// Nodes of the rows of outputs.
  [[nodiscard]] const NodeSelection& nodes() const noexcept { return steps_.nodes; }
  /// Outputs of the last draw, as what followed has left them: a loss may work in place.
  [[nodiscard]] MatrixView<const S> outputs() const noexcept { return steps_.output.output(); }
  /// A matrix of the shape of the outputs, for their derivative; any other of this shape will do.
  [[nodiscard]] MatrixView<S> output_bar() noexcept { return steps_.output.output_bar(); }
  /// Derivatives of the last backward pass, laid out like the model's parameters.
  [[nodiscard]] const Buffer<S>& gradient() const noexcept { return steps_.gradient; }
  /// The same, for a loss that has parameters of its own and adds their derivatives between begin_backward() and
  /// finish_backward().
  [[nodiscard]] S* loss_gradient() noexcept { return steps_.gradient.data(); }

  /// Raw outputs of pass.nodes, |nodes| × C, valid until the next pass.
  ///
  /// \throws std::invalid_argument  as begin()
  /// \throws FlowError              of a flow, as FlowLayer::forward()
  MatrixView<S> forward(const ForwardPass<S>& pass = {}) {
    derived().begin(pass);
    return derived().draw(pass.sample);
  }
  /// The derivative of ⟨outputs_bar, outputs⟩ + λ KL(Q ‖ prior) in every parameter, into gradient().
  ///
  /// \param outputs_bar  of the shape of the outputs
  /// \returns the KL term, kl() and the mean over the samples of what layers draw themselves; 0 where nothing is random
  /// \throws std::logic_error       no forward pass with training = true came before
  /// \throws std::invalid_argument  outputs_bar of another shape, options out of range
  double backward(const MatrixView<const S>& outputs_bar, const BackwardOptions& options = {}) {
    require_kept();
    begin_backward(options);
    derived().accumulate(outputs_bar);
    return derived().finish_backward();
  }

  /// Computes once what the coming training pass and evaluations with the same parameters have in common: H with and without
  /// the pass's dropouts, and a posterior that does not depend on them. begin(pass, this) takes it for the training pass, and
  /// begin(evaluation, this) for evaluations, of this network or of others on the same graph. Unchecked: the parameters and
  /// the training pass stay the same.
  ///
  /// \throws std::invalid_argument  as begin()
  void share(const ForwardPass<S>& training) {
    steps_.share(training);
    shares_ = true;
  }
  /// Draws dropout masks of a training pass to come, as long as go_on() holds. The pass draws those that are missing. May run
  /// beside a pass of this network. Unchecked: the rates, and that it is the next training pass.
  template <class GoOn>
  void draw_masks_ahead(const ForwardPass<S>& training, const GoOn& go_on) {
    steps_.for_masks(training, [&](DropoutMask& mask, const Dropout& dropout) {
      if (dropout.active() && go_on()) mask.draw_ahead(dropout);
    });
  }

  // The same in steps, for objectives that average over samples (elbo.hpp):
  //   begin(pass); begin_backward(options); for k: draw(k), accumulate(bar of sample k); finish_backward().

  /// Draws samples 0 … count − 1 after begin(), for evaluations: use(outputs of one) is called for each.
  ///
  /// \throws std::invalid_argument  count not between 1 and 32768, or more than there is explicit noise for
  /// \throws std::logic_error       begin() did not come before
  template <class Use>
  void draw_samples(Index count, const Use& use) {
    require_between("samples", count, 1, 32768);
    for (Index k = 0; k < sample_count(count); ++k) use(derived().draw(k));
  }
  /// Clears the gradient and takes the options of the backward pass.
  ///
  /// \throws std::invalid_argument  options out of range
  /// \throws std::logic_error       begin() did not come before
  void begin_backward(const BackwardOptions& options) {
    check_backward(options);
    check_begun("begin_backward");
    steps_.options = options;
    steps_.closed_form = uses_closed_form<typename Model::Posterior>(options.kl_estimator);
    steps_.kl = 0;
    steps_.first_sample = true;
    steps_.clear_gradient();
    steps_.begin_posterior(steps_.closed_form ? options.kl_weight : 0.0);
    backward_begun_ = true;
  }
  /// Of a graph that is a part of another (graph/graph_part.hpp), finish_backward() leaves the part's own share of the
  /// derivatives, of the loss and of the KL term: this adds them up over all parts. Of a whole graph it does nothing.
  /// Takes any numbers.
  void sum_over_parts(double& loss, double& kl) {
    GraphPart* part = part_of(steps_.graph);
    if (part == nullptr) return;
    double numbers[] = {loss, kl};
    part->sum(steps_.gradient.view(), numbers);
    loss = numbers[0];
    kl = numbers[1];
  }

  /// KL(Q ‖ prior) of the posterior of the last begin(), the mean over what is drawn (incident pairs, or nodes and
  /// sides); 0 for models without, or without closed form. Without what layers draw themselves.
  ///
  /// \throws std::logic_error  begin() did not come before
  [[nodiscard]] double kl() {
    check_begun("kl");
    return steps_.mean_kl();
  }

  /// The KL terms of what the layers of the last draw have drawn themselves, their sum; kl() is without them.
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

  /// What a pass before it has left counts no longer. \param shared  see begin()
  void begin_pass(const ForwardPass<S>& pass, const NetworkPasses* shared = nullptr) {
    require(shared == nullptr || pass.training || !pass.keep, "keep", true,
            "an evaluation that shares its first steps keeps nothing");
    if (shared != nullptr && !shared->shares_)
      throw std::logic_error("begin() with `shared` needs share() before it");
    backward_begun_ = drawn_ = false;
    if (shared != this) shares_ = false;
  }

  // What the steps of a Network demand of those before them. \throws std::logic_error, std::invalid_argument

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
  /// Features after no layer need no draw.
  void check_layer_count(Index layer_count, Index layers) const {
    check_begun("features_after");
    require_between("layer_count", layer_count, 0, layers);
    if (layer_count > 0) check_drawn("features_after");
  }
  void require_kept() const {
    if (!steps_.kept)
      throw std::logic_error("a backward pass needs a forward pass with training = true before it");
  }
  void check_accumulate() const {
    if (!backward_begun_) throw std::logic_error("accumulate() needs begin_backward() before it");
    require_kept();
  }
  /// Also ends the backward pass.
  void check_finish() {
    if (!backward_begun_ || steps_.first_sample) {
      throw std::logic_error("finish_backward() needs begin_backward() and accumulate() before it");
    }
    backward_begun_ = false;
  }

  Steps steps_;

 private:
  [[nodiscard]] Derived& derived() noexcept { return static_cast<Derived&>(*this); }

  bool backward_begun_ = false;  ///< between begin_backward() and finish_backward()
  bool drawn_ = false;           ///< has the pass a draw that ended?
  bool shares_ = false;          ///< do the embeddings come from share()?
};

}  // namespace sheafnn::detail
