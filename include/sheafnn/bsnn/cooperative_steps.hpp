/// \file
/// CooperativeSteps: the layers and buffers of a cooperative network, and the steps that its passes are made of.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "sheafnn/bsnn/cooperative_model.hpp"
#include "sheafnn/bsnn/forward_pass.hpp"
#include "sheafnn/bsnn/pass_checks.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/layers/batch_norm.hpp"
#include "sheafnn/layers/cooperative_layer.hpp"
#include "sheafnn/layers/encoder.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/node_learner.hpp"
#include "sheafnn/layers/readout_head.hpp"
#include "sheafnn/layers/variational_node_maps.hpp"

namespace sheafnn::detail {

/// act(dropout_in(X) Wᵀ + b): an encoder with a choice of activation.
template <class S>
struct ActivatedEncoder {
  Encoder<S> linear;
  Activation activation = Activation::gelu;
  Buffer<S> output;

  ActivatedEncoder(const SparseInput<S>& input, const Graph& graph, Index width, Activation choice)
      : linear(input, graph, EncoderOptions{width, false, false}),
        activation(choice),
        output(input.rows() * width) {}
  void forward(Execution execution, const LinearWeights<const S>& weights, const Dropout& dropout) {
    linear.forward(execution, weights, dropout);
    apply_activation(execution, activation, output.size(), linear.output().data(), output.data());
  }
  /// \param bar  derivative of the output, overwritten
  void backward(Execution execution, const MatrixView<S>& bar, const LinearWeights<S>& weights_bar) {
    multiply_by_derivative(execution, activation, output.size(), linear.output().data(), bar.data());
    linear.backward(execution, bar, weights_bar);
  }
};

/// One layer with what belongs to it. Of the learners, deterministic models have a pair per layer.
template <int D, class S>
struct CooperativeStage {
  DropoutLayer<S> dropout;
  NodeMaps<D, S> maps;
  CooperativeLayer<D, S> layer;
  std::optional<LayerNorm<S>> layer_norm;
  std::optional<BatchNorm<S>> batch_norm;  ///< reads the layer's output at all nodes

  void add_norm(FeatureNorm norm, Index nodes, Index width) {
    if (norm == FeatureNorm::layer) layer_norm.emplace(nodes, width);
    if (norm == FeatureNorm::batch) batch_norm.emplace(nodes, width);
  }
  /// The features after the layer and its norm, at the nodes of the last pass.
  [[nodiscard]] FeatureView<const S> output() const noexcept {
    const FeatureView<const S> x = layer.output();
    if (!layer_norm && !batch_norm) return x;
    const MatrixView<const S> normed = layer_norm ? layer_norm->output() : batch_norm->output();
    return {normed.data(), normed.rows(), D, x.channels()};
  }
};

/// Neither copied nor moved: parts refer to each other.
template <int D, bool Bayesian, class S>
struct CooperativeSteps {
  using Model = CooperativeModel<D, Bayesian, S>;
  static constexpr bool is_sampled = Bayesian;

  /// \param given  the arcs; null: those of the graph, directed as listed where the options say so
  CooperativeSteps(const Model& of, const Graph& on, const DirectedArcs* given, const NodeFeatures& features,
                   Execution with)
      : model(of),
        graph(checked(of, on, given, features)),
        listed(given == nullptr && of.options().directed ? std::optional(listed_arcs(on)) : std::nullopt),
        arcs(given != nullptr ? given->lists()
             : listed         ? listed->lists()
                              : arc_lists(on)),
        channels(of.options().channels),
        input(of.options().normalise_features ? normalised(features) : features),
        degrees(arcs, of.options().in_degree_diagonal),
        encoder(input, on, of.hidden_width(), of.options().activation),
        output(on.node_count(), of.hidden_width(), of.options().classes, of.options().readout_layers - 1),
        maps_gradient(on.node_count()),
        execution(with) {
    const CooperativeOptions& architecture = of.options();
    const Index n = on.node_count(), h = of.hidden_width();
    const NodeLearnerOptions learner{architecture.learner, h, architecture.learner_width, of.learner_outputs(),
                                     architecture.learner_layers};
    learners.reserve(2 * of.layout().learners.size());
    for (std::size_t i = 0; i < 2 * of.layout().learners.size(); ++i) learners.emplace_back(arcs, learner);
    if constexpr (Bayesian) {
      posterior.emplace(degrees, architecture.conformal);
      if (architecture.separate_encoder) learner_encoder.emplace(input, on, h, architecture.activation);
    }
    const CooperativeLayerOptions layer{architecture.left_weights, architecture.right_weights,
                                        architecture.residual, architecture.activation};
    stages.reserve(static_cast<std::size_t>(architecture.layers));
    for (Index l = 0; l < architecture.layers; ++l) {
      stages.push_back({DropoutLayer<S>(n, h), NodeMaps<D, S>(degrees, architecture.conformal),
                        CooperativeLayer<D, S>(arcs, channels, layer), std::nullopt, std::nullopt});
      stages.back().add_norm(architecture.norm, n, h);
    }
    for (Buffer<S>* buffer : {&bar, &x_bar, &embedding_bar, &work[0], &work[1], &work[2]}) buffer->resize(n * h);
    gradient.resize(of.parameters().size());
  }
  CooperativeSteps(const CooperativeSteps&) = delete;
  CooperativeSteps& operator=(const CooperativeSteps&) = delete;

  [[nodiscard]] Index layer_count() const noexcept { return static_cast<Index>(stages.size()); }
  [[nodiscard]] FeatureView<S> view(Buffer<S>& buffer) const noexcept {
    return {buffer.data(), graph.node_count(), D, channels};
  }
  [[nodiscard]] FeatureView<const S> start_features() const noexcept {
    return {encoder.output.data(), graph.node_count(), D, channels};
  }
  /// What the learners of a Bayesian model read.
  [[nodiscard]] MatrixView<const S> learner_input() const noexcept {
    const Buffer<S>& from = learner_encoder ? learner_encoder->output : encoder.output;
    return {from.data(), graph.node_count(), model.hidden_width()};
  }

  /// Points the views at the parameters, and at the gradient before a training pass.
  void bind() {
    weights.bind(model.layout(), model.parameters(), model.parameters().values().data());
    if (pass.training) weights_bar.bind(model.layout(), model.parameters(), gradient.data());
  }
  void set_pass(const ForwardPass<S>& of) {
    check_pass(of, graph.node_count());
    if constexpr (Bayesian) {
      check_noise(of, 2 * graph.node_count() * NodeMapPosterior<D>::noise_size, layer_count());
    } else {
      require(of.noise.empty(), "noise", of.noise.size(), "nothing is random in this model");
    }
    pass = of;
    nodes = of.nodes.empty() ? NodeSelection(graph.node_count()) : NodeSelection(of.nodes);
    bind();
  }
  /// The embeddings and, of Bayesian models, the distributions.
  void embed() {
    encoder.forward(execution, weights.encoder, pass.of_features());
    if constexpr (Bayesian) {
      if (learner_encoder) learner_encoder->forward(execution, weights.learner_encoder, {});
      learn(0, 0, learner_input());
      posterior->infer(execution, learners[0].raw(), learners[1].raw());
    }
  }

  /// X_{l+1} from x = X_l; of the last layer at the requested nodes only.
  [[nodiscard]] FeatureView<const S> advance(Index l, const FeatureView<const S>& x) {
    CooperativeStage<D, S>& stage = stages[static_cast<std::size_t>(l)];
    const auto& layer_weights = weights.layers[static_cast<std::size_t>(l)];
    stage.dropout.forward(execution, x.rows(), pass.of_layer(l, sample));
    const MatrixView<const S> dropped = stage.dropout.output();
    if constexpr (Bayesian) {
      posterior->draw(execution, noise_of(l), stage.maps);
    } else {
      learn(l, l, dropped);
      predict_node_maps(execution, learner(l, 0).raw(), MapSide::out, stage.maps);
      predict_node_maps(execution, learner(l, 1).raw(), MapSide::in, stage.maps);
    }
    const NodeSelection all(graph.node_count());
    const NodeSelection& here = l + 1 < layer_count() ? all : nodes;
    stage.layer.forward(execution, layer_weights.diffusion, stage.maps, {dropped.data(), x.nodes(), D, channels},
                        pass.of_layer(most_layers + l, sample), stage.batch_norm ? all : here,
                        {view(work[0]), view(work[1])});
    const MatrixView<const S> out = stage.layer.output().rows();
    if (stage.layer_norm) stage.layer_norm->forward(execution, layer_weights.norm, out);
    if (stage.batch_norm) stage.batch_norm->forward(execution, layer_weights.norm, out, here);
    return stage.output();
  }
  /// From the derivative of X_{l+1}, in bar, to that of X_l, in bar again, and to those of weights and distributions.
  void advance_backward(Index l) {
    const std::size_t i = static_cast<std::size_t>(l);
    CooperativeStage<D, S>& stage = stages[i];
    const FeatureView<const S> out = stage.layer.output();
    if (stage.batch_norm) {
      const FeatureView<S> normed_bar(bar.data(), stage.output().nodes(), D, channels);
      stage.batch_norm->backward(execution, weights.layers[i].norm, out.rows(), normed_bar.rows(),
                                 view(x_bar).rows(), weights_bar.layers[i].norm);
      std::swap(bar, x_bar);
    }
    const FeatureView<S> out_bar(bar.data(), out.nodes(), D, channels);
    if (stage.layer_norm) {
      stage.layer_norm->backward(execution, weights.layers[i].norm, out.rows(), out_bar.rows(), out_bar.rows(),
                                 weights_bar.layers[i].norm);
    }
    stage.layer.backward(execution, weights.layers[i].diffusion, stage.maps, maps_gradient, out_bar, view(x_bar),
                         {view(work[0]), view(work[1]), view(work[2])}, weights_bar.layers[i].diffusion);
    if constexpr (Bayesian) {
      const double share = closed_form ? 0.0 : 1 / static_cast<double>(options.samples * layer_count());
      if (!closed_form) kl += share * posterior->mean_log_ratio(execution, stage.maps);
      posterior->add_backward(execution, stage.maps, maps_gradient, options.kl_weight * share);
    } else {
      NodeLearner<S>&out_learner = learner(l, 0), &in_learner = learner(l, 1);
      predict_node_maps_backward(execution, out_learner.raw(), in_learner.raw(), stage.maps, maps_gradient,
                                 out_learner.raw_bar(), in_learner.raw_bar());
      learn_backward(l, stage.dropout.output(), view(x_bar).rows(), true);
    }
    stage.dropout.backward_in_place(execution, view(x_bar).rows());
    std::swap(bar, x_bar);
  }
  /// From the derivatives of the distributions to those of the learners' weights and of what they read.
  void finish_posterior() {
    posterior->end_backward(execution, learners[0].raw(), learners[1].raw(), learners[0].raw_bar(),
                            learners[1].raw_bar());
    const bool apart = learner_encoder.has_value();
    learn_backward(0, learner_input(), view(apart ? x_bar : embedding_bar).rows(), !apart);
    if (apart) learner_encoder->backward(execution, view(x_bar).rows(), weights_bar.learner_encoder);
  }

  void clear_gradient() { gradient.fill(S(0)); }
  void begin_posterior([[maybe_unused]] double kl_weight) {
    if constexpr (Bayesian) posterior->begin_backward(execution, kl_weight);
  }
  /// KL(Q ‖ prior), the mean over nodes and sides.
  [[nodiscard]] double mean_kl() {
    if constexpr (Bayesian) {
      return posterior->mean_kl(execution);
    } else {
      return 0;
    }
  }
  void require_kept() const {
    if (!kept) throw std::logic_error("a backward pass needs a forward pass with training = true before it");
  }

  /// Most layers of a model: numbers of dropouts beyond belong to what follows the first one of each layer.
  static constexpr Index most_layers = 64;

  const Model& model;
  const Graph& graph;
  std::optional<DirectedArcs> listed;
  ArcLists arcs;
  Index channels;
  SparseInput<S> input;
  NodeDegrees<S> degrees;
  ActivatedEncoder<S> encoder;
  std::optional<ActivatedEncoder<S>> learner_encoder;
  std::vector<NodeLearner<S>> learners;  ///< of T and S in turn
  std::optional<VariationalNodeMaps<D, S>> posterior;
  std::vector<CooperativeStage<D, S>> stages;
  ReadoutHead<S> output;
  NodeMapsGradient<D, S> maps_gradient;
  CooperativeWeights<const S> weights;
  CooperativeWeights<S> weights_bar;
  Buffer<S> gradient;
  Buffer<S> bar, x_bar, embedding_bar;
  Buffer<S> work[3];
  Execution execution;
  ForwardPass<S> pass;
  NodeSelection nodes;  ///< of the rows of outputs
  Index sample = 0;     ///< that is drawn
  BackwardOptions options;
  bool kept = false;  ///< do the layers hold what a backward pass reads?
  bool closed_form = true, first_sample = true;
  double kl = 0;  ///< KL term of the backward pass

 private:
  static const Graph& checked(const Model& model, const Graph& graph, const DirectedArcs* given,
                              const NodeFeatures& features) {
    check_input(graph.node_count(), features.rows(), features.columns(), model.options().features);
    const Index nodes = given != nullptr ? given->lists().nodes : graph.node_count();
    require(nodes == graph.node_count(), "nodes of the arcs", nodes,
            concat("must equal the number of nodes, ", graph.node_count()));
    return graph;
  }
  static NodeFeatures normalised(NodeFeatures features) {
    features.normalise_rows();
    return features;
  }
  [[nodiscard]] NodeLearner<S>& learner(Index pair, int side) {
    return learners[static_cast<std::size_t>(2 * pair + side)];
  }
  /// Runs a pair of learners. \param l  layer, for the addresses of their dropouts
  void learn(Index pair, Index l, const MatrixView<const S>& x) {
    for (int side = 0; side < 2; ++side) {
      const auto dropout_of = [&](Index k) {
        Dropout r = pass.of_learner(l + most_layers * (2 * k + side), Bayesian ? 0 : sample);
        r.rate = pass.training ? model.options().learner_dropout : 0.0;
        return r;
      };
      learner(pair, side)
          .forward(execution, weights.learners[static_cast<std::size_t>(pair)][static_cast<std::size_t>(side)], x,
                   dropout_of);
    }
  }
  void learn_backward(Index pair, const MatrixView<const S>& x, const MatrixView<S>& to, bool accumulate) {
    const std::size_t i = static_cast<std::size_t>(pair);
    for (std::size_t side = 0; side < 2; ++side) {
      learner(pair, static_cast<int>(side))
          .backward(execution, weights.learners[i][side], x, to, accumulate || side > 0,
                    weights_bar.learners[i][side]);
    }
  }
  [[nodiscard]] NodeNoise<S> noise_of(Index l) const {
    NodeNoise<S> noise{{pass.of_sheaf(2 * l, sample), pass.of_sheaf(2 * l + 1, sample)}};
    if (!pass.noise.empty())
      noise.values = pass.noise[static_cast<std::size_t>(sample * layer_count() + l)].data();
    return noise;
  }
};

}  // namespace sheafnn::detail
