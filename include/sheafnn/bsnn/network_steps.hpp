/// \file
/// NetworkSteps: the steps of the passes of a Network, and what a pass remembers between them. The equations are in
/// network.hpp, the order of the calls in network_of_steps.hpp:
///
///     begin():  embed()               H = encoder(X)                    embed_backward()
///               infer_from(H)         Q(F | H), X_1 = H                 infer_backward()
///     draw():   build_sheaf(l, x)     F^{l+1} ~ Q, or learner_l(x)      sheaf_backward(l)
///               apply_layer(l, x)     X_{l+2} = layer_l(x = X_{l+1})    apply_layer_backward(l, bar)
///
/// NetworkOfSteps::draw() then computes the readout. The steps on the right are the backward pass. add() takes the last two for
/// one sample, from the last layer to the first. finish() takes the first two for all samples together.
#pragma once

#include <utility>

#include "sheafnn/bsnn/network_parts.hpp"

namespace sheafnn::detail {

/// See the file comment. Unchecked: what NetworkPasses checks before it calls a step.
template <class ModelType>
struct NetworkSteps : NetworkParts<ModelType> {
  using Model = ModelType;
  using Parts = NetworkParts<Model>;
  using S = typename Model::Scalar;
  using Parts::execution, Parts::pass, Parts::nodes, Parts::sample, Parts::options, Parts::closed_form,
      Parts::first_sample, Parts::kl;

  /// \param features  NodeFeatures, or SeenFeatures
  template <class Features>
  NetworkSteps(const Model& of, const Graph& over, const Features& features, Execution on)
      : Parts(of, over, features, on) {}

  // Forward pass. Layers count from 0, so layer l reads X_{l+1} and F^{l+1} of the equations (network.hpp).

  /// H = encoder(X), with the pass's dropouts. \param with_clean  also without dropouts
  void embed(bool with_clean = false) {
    this->embedding.forward(execution, this->weights.encoder, this->weights.second, pass.of_features(),
                            pass.of_hidden(), with_clean, encoder_memory());
  }
  /// Q(F | H), for H = `from`.
  void infer_from(const MatrixView<const S>& from) {
    start_from(from);
    this->source.infer(execution, this->source_weights(), start, encoder_memory());
  }
  /// X_1 = H as features, n × d' × f.
  [[nodiscard]] FeatureView<const S> start_features() const {
    return this->complex ? this->complex->output() : this->features_of(start);
  }

  /// The equations of the layers: draws the sheaves of a sample and computes X_{L+1} at the requested nodes.
  void diffuse() {
    FeatureView<const S> x = start_features();  // X_1 = H
    for (Index l = 0; l < this->layer_count(); ++l) {
      if (l < this->sheaf_count()) build_sheaf(l, x);  // F^{l+1}
      x = apply_layer(l, x);                           // X_{l+2}
    }
  }
  /// F^{l+1}: drawn from Q, or computed from x = X_{l+1}.
  void build_sheaf(Index l, const FeatureView<const S>& x) {
    this->source.build(execution, this->source_weights(), sheaf_input(l, x));
    if (this->layers.reads().scales) this->source.stack()[l].fetch_scales();
  }
  /// X_{l+2} from x = X_{l+1}; the last layer for the requested nodes only.
  FeatureView<const S> apply_layer(Index l, const FeatureView<const S>& x) {
    const bool last = l + 1 == this->layer_count(), keeps_mixed = l == 0 && !this->layers.segments().shares();
    this->layers.take_memory(l, execution, pass.keeps());
    this->release_rows();  // the layer may overwrite them; one that keeps its W and Y there becomes their owner
    this->layers[l].forward({.execution = execution,
                             .sheaf = this->sheaf_of(l),
                             .x = x,
                             .first = start_features(),
                             .nodes = last ? nodes : all_nodes(),
                             .dropout = pass.of_layer(l, sample),
                             .training = pass.keeps(),
                             .mixing = keeps_mixed ? first_mixing : MixedFeatures::compute,
                             .scratch = this->forward_scratch(),
                             .filter = this->weights.filter,
                             .before = l > 1 ? this->layers[l - 2].output() : start_features(),
                             .noise = layer_noise(l),
                             .rows = this->shared_rows()});
    return this->layers[l].output();
  }

  /// X_{count+1}, after all layers at the requested nodes.
  [[nodiscard]] FeatureView<const S> features_after(Index count) const {
    return count == 0 ? start_features() : this->layers[count - 1].output();
  }
  void infer_from_encoder() { infer_from(this->embedding.output()); }

  // Backward pass:

  /// Where the derivative of X_{L+1} belongs.
  [[nodiscard]] FeatureView<S> last_bar() { return this->scratch(0).first(nodes.count()); }
  /// Where the readout writes the derivative of X_{L+1}: over X_{L+1} itself, if the pass and the layers allow it.
  [[nodiscard]] FeatureView<S> bar_from_outputs() {
    const FeatureView<S> place = last_place();
    return place.data() != nullptr && this->output.works_in_place() ? place.first(nodes.count()) : last_bar();
  }
  /// Computes the derivative of X_1 from the derivative of X_{L+1}, and adds it over the samples.
  ///
  /// \param bar          derivative of X_{L+1} at the requested nodes, overwritten
  /// \param sheaf_begun  has a step after the layers already written to the derivative of the last sheaf?
  void accumulate_layers(FeatureView<S> bar, bool sheaf_begun) {
    sheaf_gradient_begun = sheaf_begun;
    const bool first = this->begin_embedding_bar(execution, first_sample);
    this->clear_before_bars(execution);
    const LayerSegments& segments = this->layers.segments();
    for (Index l = this->layer_count(); l-- > 0;) {
      if (segments.ends_before_others(l)) apply_layers_again(segments.first(l), l);
      if (segments.compressed) restore_layer(l);
      apply_layer_backward(l, bar);
      if (l < this->sheaf_count()) sheaf_backward(l);
      this->add_before_bar(execution, l);
      bar = this->x_bar_view();
    }
    this->add_sample(this->x_bar, this->embedding_bar, first);
  }
  /// Computes the layers of a segment again, and their sheaves, but not one that all layers share.
  void apply_layers_again(Index first, Index last) {
    for (Index l = first; l <= last; ++l) {
      const FeatureView<const S> x = features_after(l);
      if (this->sheaf_count() > 1) build_sheaf(l, x);
      apply_layer(l, x);
    }
  }
  /// Brings back what a layer and its sheaf kept in 16 bits.
  void restore_layer(Index l) {
    this->layers.restore_memory(l, execution);
    if (l < this->sheaf_count() && this->sheaf_count() > 1) this->source.restore(l, execution);
  }
  /// Computes the derivatives of X_{l+1} (in x_bar), of the layer's weights and of its sheaf's blocks. Reads the
  /// derivative of X_{l+2}, which is overwritten.
  void apply_layer_backward(Index l, const FeatureView<S>& bar) {
    const bool last = l + 1 == this->layer_count();
    // This sheaf has derivatives already: from a step after the layers (pair_head.hpp) or, where layers share one
    // sheaf, from the layer above.
    bool shares_sheaf = last ? sheaf_gradient_begun : l + 1 >= this->sheaf_count();
    if (!shares_sheaf && this->layers.reads().maps && this->layers.reads().blocks) {
      this->source.gradient().clear();  // a layer overwrites the derivatives of maps, or of blocks
      shares_sheaf = true;
    }
    kl_of_layers += sample_share() * this->layers[l].kl();
    this->layers[l].backward(
        {.execution = execution,
         .sheaf = this->sheaf_of(l),
         .sheaf_gradient = this->source.gradient(),
         .accumulate = shares_sheaf,
         .output_bar = bar,
         .x_bar = this->x_bar_view(),
         .first_bar = this->embedding_bar_view(),
         .scratch = {this->backward_scratch(), this->layers.reads().work ? this->scratch(1) : FeatureView<S>()},
         .filter = this->weights.filter,
         .filter_bar = this->weights_bar.filter,
         .before_bar = this->before_bar_view(l),
         .kl_weight = sample_share() * options.kl_weight});
    this->release_rows();
  }
  /// Computes the derivatives of Q's parameters, or of X_{l+1} and the learner's weights, from the derivatives of
  /// the blocks of F^{l+1}.
  void sheaf_backward(Index l) {
    const SheafInput<S> read = sheaf_input(l, start_features());  // not X_{l+1}: the source has kept what it needs of it
    const double share = sample_share() / static_cast<double>(this->sheaf_count());
    if constexpr (Parts::is_sampled) {
      if (!closed_form) kl += share * this->source.log_ratio(execution, read);
    }
    this->source.backward(execution, this->source_weights(), read, closed_form ? 0.0 : options.kl_weight * share,
                          this->x_bar_view().rows(), this->backward_scratch().rows(), this->source_weights_bar());
    if constexpr (!Parts::is_sampled) {
      if (l + 1 == this->sheaf_count() && std::exchange(learner_bar_begun, false)) {
        add_array(execution, learner_bar.size(), learner_bar.data(), this->x_bar_view().data());
      }
    }
  }

  void begin_posterior(double kl_weight) {
    kl_of_layers = 0;
    learner_bar_begun = false;
    this->source.begin_backward(execution, kl_weight, pass.overwrites);
  }
  /// Computes the derivatives of Q's parameters and of H from the derivatives of all drawn variables, summed over the
  /// samples.
  ///
  /// \returns the derivative of H
  MatrixView<S> infer_backward() {
    const S* more = std::exchange(learner_bar_begun, false) ? learner_bar.data() : nullptr;
    const MatrixView<S> bar = this->complex ? this->complex->backward(execution, this->embedding_bar.data())
                                            : this->embedding_bar_view().rows();
    this->source.finish_backward(execution, this->source_weights(), bar, embedding_work(),
                                 this->source_weights_bar(), more);
    if (this->stalks) this->stalks->mask(execution, all_nodes(), bar, bar, this->shape.channels);
    return bar;
  }
  /// Calls infer_backward(), then computes the derivatives of the encoders' weights.
  void embed_backward() {
    const MatrixView<S> bar = infer_backward();
    this->embedding.forward_again(execution, this->weights.encoder);
    this->embedding.backward(execution, this->weights.second, bar, embedding_work(), this->weights_bar.encoder,
                             this->weights_bar.second);
  }
  /// KL(Q ‖ prior) per incident pair; 0 without closed form.
  [[nodiscard]] double mean_kl() {
    if constexpr (Parts::has_closed_form) {
      return this->source.kl(execution);
    } else {
      return 0;
    }
  }

  /// See PassState.
  [[nodiscard]] double total_kl() const noexcept { return kl + kl_of_layers; }
  /// The weight of one sample in the objective.
  [[nodiscard]] double sample_share() const { return 1 / static_cast<double>(options.samples); }

  // The other members that NetworkPasses and NetworkOfSteps need, and the steps of passes that share embeddings:

  static constexpr bool takes_embeddings = true, shares_embeddings = true, recomputes_layers = true;
  /// Does the learner have its own encoder?
  [[nodiscard]] bool encodes_twice() const { return *this->model.options().separate_encoder; }
  void set_pass(const ForwardPass<S>& of) {
    Parts::set_pass(of);
    this->layers.set_memory(of.recompute_layers, of.compress_layers, execution);
    this->source.set_memory(of.recompute_layers, of.compress_layers, of.keeps());
    this->source.work_in(this->learner_work());
    first_mixing = MixedFeatures::compute;  // an exception may have ended draw_samples()
  }

  /// See NetworkPasses.
  void share(const ForwardPass<S>& of) {
    set_pass(of);
    for_masks(of, [](DropoutMask& mask, const Dropout& dropout) {
      if (dropout.active()) mask.take_ahead();
    });
    embed(true);
    if (shares_posterior()) infer_from({});
  }
  /// Takes H and Q(F | H) of a pass from the results of share(). \param shared  steps whose share() was called;
  /// may be these steps
  void take(NetworkSteps& shared) {
    const MatrixView<const S> from = pass.training ? shared.embedding.output() : shared.embedding.clean();
    if constexpr (Parts::is_sampled) {
      if (shared.shares_posterior()) {
        start_from(from);
        this->source.take(shared.source);
        return;
      }
    }
    infer_from(from);
  }
  /// Calls use(mask, dropout) for the dropouts of a training pass, with its first sample.
  template <class Use>
  void for_masks(const ForwardPass<S>& of, const Use& use) {
    use(this->embedding.entry_mask(), of.of_features());
    use(this->embedding.mask(), of.of_hidden());
    this->layers.for_masks([&](Index l, DropoutMask& mask) { use(mask, of.of_layer(l, 0)); });
    this->source.for_masks([&](Index sheaf, DropoutMask& mask) { use(mask, of.of_learner(sheaf, 0)); });
  }

  MatrixView<const S> start;                            ///< H
  MixedFeatures first_mixing = MixedFeatures::compute;  ///< of the first layer in evaluations
  bool sheaf_gradient_begun = false;  ///< has a step after the layers already written to the last sheaf's derivative?
  bool learner_bar_begun = false;     ///< does learner_bar hold a derivative?
  Buffer<S> masked_start;             ///< H with 0 in the coordinates that a node's stalk does not have
  Buffer<S> learner_bar;    ///< derivative of the input of the last sheaf's learner, which LastLearner adds
  double kl_of_layers = 0;  ///< KL term of variables that layers draw, the mean over samples

 private:
  /// The memory of X_{L+1} if the pass may overwrite it and no layer's backward pass reads it; otherwise empty.
  [[nodiscard]] FeatureView<S> last_place() {
    if constexpr (requires { this->layers[0].output_place(); }) {
      if (pass.overwrites && pass.keeps() && this->shared_rows() != nullptr) {
        return this->layers[this->layer_count() - 1].output_place();
      }
    }
    return {};
  }
  /// last_place() as memory for the encoders. Their values are needed before X_{L+1} exists, and embed_backward() computes them
  /// again. Null where that costs more time than the memory is worth.
  [[nodiscard]] S* encoder_memory() {
    constexpr Index large = Index{2} << 20;  // bytes
    const bool worth = this->graph.node_count() * this->embedding_width() * Index{sizeof(S)} > large &&
                       this->input.entries() <= this->graph.arc_count() &&
                       this->embedding_width() == this->shape.row();
    return worth ? last_place().data() : nullptr;
  }
  /// X_1 = H, or its complex form.
  void start_from(const MatrixView<const S>& from) {
    start = from;
    if (this->stalks && from.rows() > 0) {
      if (masked_start.empty()) masked_start.resize(from.rows() * from.columns());
      const MatrixView<S> present(masked_start.data(), from.rows(), from.columns());
      this->stalks->mask(execution, all_nodes(), from, present, this->shape.channels);
      start = present;
    }
    if (this->complex && from.rows() > 0) this->complex->forward(execution, from.data());
  }
  [[nodiscard]] NodeSelection all_nodes() const { return NodeSelection(this->graph.node_count()); }
  /// A buffer of n × h.
  [[nodiscard]] MatrixView<S> embedding_work() {
    return {this->backward_scratch().data(), this->graph.node_count(), this->embedding_width()};
  }
  /// Is the posterior independent of embeddings with dropout, because its learner has a separate encoder?
  [[nodiscard]] bool shares_posterior() const {
    if constexpr (Parts::is_sampled) {
      return this->source.has_encoder();
    } else {
      return false;
    }
  }
  [[nodiscard]] SheafInput<S> sheaf_input(Index l, const FeatureView<const S>& x) const {
    SheafInput<S> r{.sheaf = l,
                    .x = x.rows(),
                    .dropout = pass.of_learner(l, sample),
                    .noise = {pass.of_sheaf(l, sample)}};
    r.noise.values = this->explicit_noise(l, this->sheaf_count());
    return r;
  }
  [[nodiscard]] Noise<S> layer_noise(Index l) const {
    Noise<S> r{pass.of_layer_noise(l, sample)};
    if (!pass.layer_noise.empty()) {
      r.values = pass.layer_noise[static_cast<std::size_t>(sample * this->layer_count() + l)].data();
    }
    return r;
  }
};

/// The learner of the last sheaf, for maps of pairs of nodes (layers/pair_sheaf.hpp), between a draw and its backward pass.
template <class Steps>
class LastLearner {
 public:
  using S = typename Steps::S;

  explicit LastLearner(Steps& steps) : steps_(steps) {}
  /// The learner's input, n × h.
  [[nodiscard]] MatrixView<const S> input() const {
    if constexpr (Steps::is_sampled) {
      return steps_.source.learner_input();
    } else {
      const Index l = steps_.sheaf_count() - 1;
      return l == 0 ? steps_.start : steps_.layers[l - 1].output().rows();
    }
  }
  /// The derivative of input(), to which callers add; the network's backward pass continues from it.
  [[nodiscard]] MatrixView<S> input_bar() const {
    if (!std::exchange(steps_.learner_bar_begun, true)) {
      steps_.learner_bar.resize(steps_.graph.node_count() * steps_.shape.row());
      steps_.learner_bar.fill(S(0));
    }
    return steps_.view(steps_.learner_bar).rows();
  }
  [[nodiscard]] const auto& weights() const { return steps_.weights.learners.back(); }
  /// The derivative of the learner's weights, to which callers add.
  [[nodiscard]] const auto& weights_bar() const { return steps_.weights_bar.learners.back(); }

 private:
  Steps& steps_;
};

}  // namespace sheafnn::detail
