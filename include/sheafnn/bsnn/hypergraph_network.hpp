/// \file
/// Network of a HypergraphModel: a sheaf hypergraph network on one hypergraph. It has the passes of every Network, so
/// elbo(), train(), predict() and your own loops work with it.
///
///     H = ELU(X W₁ᵀ + b₁),  F^l from a learner that reads X_l, or drawn from Q(F | H),  X_1 = H,
///     X_{l+1} = layer_l(X_l; F^l),  Y = X_{L+1} W_outᵀ + b_out
///
/// Layers: layers/hypergraph_layer.hpp. Explicit noise (ForwardPass::noise) has a row per incident pair, sorted by node and
/// hyperedge. Source: Sheaf Hypergraph Networks (Duta et al.); math: "Hypergraphs".
#pragma once

#include <algorithm>
#include <concepts>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/hypergraph_model.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/bsnn/network_of_steps.hpp"
#include "sheafnn/bsnn/pass_state.hpp"
#include "sheafnn/bsnn/seen_features.hpp"
#include "sheafnn/layers/encoder.hpp"
#include "sheafnn/layers/incidence_sheaf.hpp"
#include "sheafnn/layers/point_source.hpp"
#include "sheafnn/layers/readout_head.hpp"
#include "sheafnn/layers/variational_source.hpp"
#include "sheafnn/nn/element_runs.hpp"

namespace sheafnn::detail {

/// All weights.
template <class T>
struct HypergraphWeights : NetworkWeights<T> {
  std::vector<HypergraphLayerWeights<T>> layers;
};

/// Layers and buffers.
template <class ModelType>
struct HypergraphSteps : PassState<ModelType, HypergraphWeights> {
  using State = PassState<ModelType, HypergraphWeights>;
  using State::model, State::graph, State::execution, State::weights, State::weights_bar, State::gradient,
      State::pass, State::nodes, State::sample, State::options, State::closed_form, State::kl, State::is_sampled;
  using typename State::Model, typename State::S;
  using Family = typename Model::Family;
  using Posterior = typename Model::Posterior;
  using Maps = HypergraphMaps<S>;
  static constexpr bool takes_embeddings = true;

  template <class P>
  struct SourceOf {
    using type = VariationalSource<P, S, Maps>;
  };
  template <class P>
    requires is_point_mass<P>
  struct SourceOf<P> {
    using type = PointSource<Family, S, Maps>;
  };

  HypergraphSteps(const Model& of, const Hypergraph& on, const NodeFeatures& features, Execution with)
      : HypergraphSteps(of, on, seen_features(of.options(), on, features), with) {}
  /// \param seen  the features after the model's feature plan
  HypergraphSteps(const Model& of, const Hypergraph& on, const SeenFeatures& seen, Execution with)
      : State(of, on, with),
        input(seen.features),
        encoder(input, on, of.layout().encoder),
        blocks(on),
        source(on, blocks, state_of(of), of.sheaf_count(), of.options().laplacian, of.layout().learner),
        output(on.node_count(), of.hidden_width(), of.options().classes, of.options().readout_layers - 1) {
    if constexpr (is_sampled) {
      if (*of.options().separate_encoder) source.add_encoder(input, on, of.layout().sheaf_encoder);
    }
    for (Index l = 0; l < layer_count(); ++l) layers.emplace_back(on, of.layer_setting(l));
    if (on.part() != nullptr) address_masks(on.part()->nodes().numbers(), seen.first_entry);
  }

  [[nodiscard]] Index layer_count() const noexcept { return model.options().layers; }
  [[nodiscard]] Index sheaf_count() const noexcept { return source.stack().count(); }
  [[nodiscard]] FeatureView<const S> start_features() const {
    return {start.data(), graph.node_count(), model.coordinates(), model.options().channels};
  }
  [[nodiscard]] FeatureView<S> view(Buffer<S>& buffer) const {
    return {buffer.data(), graph.node_count(), model.coordinates(), model.options().channels};
  }
  [[nodiscard]] SheafSourceWeights<const S> source_weights() const {
    return {weights.sheaf_encoder, weights.learners};
  }
  [[nodiscard]] SheafSourceWeights<S> source_weights_bar() const {
    return {weights_bar.sheaf_encoder, weights_bar.learners};
  }

  void set_pass(const ForwardPass<S>& of) {
    this->take_pass(of, graph.node_count(), graph.pair_count() * noise_size(), sheaf_count(),
                    [&](auto& list, auto& to) { model.declare(list, to, to.layers); });
    if (of.keeps()) {
      const Index size = graph.node_count() * model.hidden_width();
      for (Buffer<S>* buffer : {&bar, &x_bar, &embedding_bar, &scratch.z_bar, &scratch.r_bar}) {
        if (buffer->empty()) buffer->resize(size);
      }
      if (scratch.slots.empty()) {
        for (const auto& layer : layers) {
          scratch.slots.resize(std::max(scratch.slots.size(), layer.terms().slots() * model.hidden_width()));
        }
      }
    }
  }
  /// Does the learner have its own encoder?
  [[nodiscard]] bool encodes_twice() const noexcept { return *model.options().separate_encoder; }
  /// Computes H and, for Bayesian models, Q(F | H).
  void embed() {
    encoder.forward(execution, weights.encoder, pass.of_features(), pass.of_hidden());
    infer_from(encoder.output());
  }
  /// Starts from H and, for Bayesian models, computes Q(F | H). \param h  has to stay in place until the backward pass
  void infer_from(const MatrixView<const S>& h) {
    start = h;
    source.infer(execution, source_weights(), h);
  }
  /// X_{L+1} of a sample, at the requested nodes.
  void diffuse() {
    FeatureView<const S> x = start_features();
    for (Index l = 0; l < layer_count(); ++l) {
      if (l < sheaf_count()) source.build(execution, source_weights(), sheaf_input(l, x));
      const bool last = l + 1 == layer_count();
      layers[at(l)].forward(execution, weights.layers[at(l)], sheaf_of(l), x,
                            last ? nodes : NodeSelection(graph.node_count()), pass.of_layer(l, sample),
                            pass.keeps());
      x = layers[at(l)].output();
    }
  }
  [[nodiscard]] FeatureView<const S> features_after(Index count) const {
    return count == 0 ? start_features() : layers[at(count - 1)].output();
  }
  /// Where the derivative of X_{L+1} belongs.
  [[nodiscard]] FeatureView<S> last_bar() { return view(bar).first(nodes.count()); }
  /// Computes the derivative of X_1 from the derivative in last_bar(), and adds it to embedding_bar.
  void accumulate_layers(const FeatureView<S>& /*last_bar()*/, bool /*sheaf_begun*/) {
    for (Index l = layer_count(); l-- > 0;) {
      const FeatureView<const S> out = view(bar).first(layers[at(l)].output().nodes());
      const bool shares_sheaf = l + 1 < layer_count() && l + 1 >= sheaf_count();  // with the layer after it
      layers[at(l)].backward(execution, weights.layers[at(l)], sheaf_of(l), source.gradient(), shares_sheaf, out,
                             view(x_bar), scratch, weights_bar.layers[at(l)]);
      if (l < sheaf_count()) sheaf_backward(l);
      std::swap(bar, x_bar);
    }
    this->add_sample(bar, embedding_bar);
  }
  /// Computes the derivatives of the encoders' and the learner's weights from the sums over all samples.
  void embed_backward() { encoder.backward(execution, infer_backward(), weights_bar.encoder); }
  /// Computes the derivatives of H and of the learner's weights. \returns the derivative of H
  MatrixView<S> infer_backward() {
    source.finish_backward(execution, source_weights(), view(embedding_bar).rows(), view(x_bar).rows(),
                           source_weights_bar());
    return view(embedding_bar).rows();
  }

  // The members that NetworkPasses needs:

  void begin_posterior(double kl_weight) { source.begin_backward(execution, kl_weight); }
  void clear_gradient() { gradient.fill(S(0)); }
  /// KL(Q ‖ prior) per incident pair; 0 without closed form.
  [[nodiscard]] double mean_kl() {
    if constexpr (closed_form_kl<Posterior>) {
      return source.kl(execution);
    } else {
      return 0;
    }
  }

  SparseInput<S> input;
  Encoder<S> encoder;
  IncidenceBlocks<S> blocks;
  typename SourceOf<Posterior>::type source;
  std::vector<HypergraphLayer<Family, S>> layers;
  ReadoutHead<S> output;
  Buffer<S> bar, x_bar, embedding_bar;
  HypergraphScratch<S> scratch;
  MatrixView<const S> start;  ///< H

 private:
  /// Gives the nodes and features of a part of a hypergraph the dropout masks that they have in the whole.
  void address_masks(const PartNumbers& part, const std::vector<Index>& first_entry) {
    const auto rows = runs_of_rows(part, model.hidden_width());
    encoder.entry_mask().set_runs(runs_of_entries(part, first_entry, input));
    encoder.mask().set_runs(rows);
    for (auto& layer : layers) layer.mask().set_runs(rows);
    source.for_masks([&](Index, DropoutMask& mask) { mask.set_runs(rows); });
  }
  [[nodiscard]] static std::size_t at(Index layer) { return static_cast<std::size_t>(layer); }
  [[nodiscard]] const IncidenceSheaf<Family, S>& sheaf_of(Index layer) const {
    return source.stack()[std::min(layer, sheaf_count() - 1)];
  }
  static auto state_of(const Model& of) {
    if constexpr (is_sampled) {
      return of.posterior();
    } else {
      return PointMap<Family>{*of.options().parametrisation, *of.options().sheaf_activation};
    }
  }
  [[nodiscard]] SheafInput<S> sheaf_input(Index l, const FeatureView<const S>& x) const {
    return {l,
            x.rows(),
            pass.of_learner(l, sample),
            {pass.of_sheaf(l, sample), this->explicit_noise(l, sheaf_count())}};
  }
  /// Computes the derivatives of Q's parameters, or of X_l and the learner's weights, from the derivatives of a sheaf.
  void sheaf_backward(Index l) {
    const SheafInput<S> read = sheaf_input(l, start_features());
    const double share = 1 / static_cast<double>(options.samples * sheaf_count());
    if constexpr (is_sampled) {
      if (!closed_form) kl += share * source.log_ratio(execution, read);
    }
    source.backward(execution, source_weights(), read, closed_form ? 0.0 : options.kl_weight * share,
                    view(x_bar).rows(), view(bar).rows(), source_weights_bar());
  }
  /// Values of noise per pair.
  [[nodiscard]] static constexpr Index noise_size() {
    if constexpr (is_sampled) return Posterior::noise_size;
    return 0;
  }
};

}  // namespace sheafnn::detail

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the hypergraph; both must outlive it.
template <RestrictionMapFamily FamilyType, SheafSource Posterior, std::floating_point Scalar>
class Network<HypergraphModel<FamilyType, Posterior, Scalar>>
    : public detail::NetworkOfSteps<Network<HypergraphModel<FamilyType, Posterior, Scalar>>,
                                    detail::HypergraphSteps<HypergraphModel<FamilyType, Posterior, Scalar>>> {
  using Base =
      detail::NetworkOfSteps<Network, detail::HypergraphSteps<HypergraphModel<FamilyType, Posterior, Scalar>>>;
  using Base::steps_;

 public:
  using typename Base::Family, typename Base::Model;
  using S = Scalar;
  using Base::Base;

  /// A layer of the last draw; its terms() has the pairs that a non-linear Laplacian has selected.
  /// \param number  index of the layer, 0 … layers − 1
  ///
  /// \throws std::invalid_argument  number out of range
  [[nodiscard]] const layers::HypergraphLayer<Family, S>& layer(Index number) const {
    require_between("layer", number, 0, steps_.layer_count() - 1);
    return steps_.layers[static_cast<std::size_t>(number)];
  }
};

}  // namespace sheafnn
