/// \file
/// BundleSteps: the layers and buffers of a bundle network, and the steps of its passes. On a part of a graph (graph/graph_part.hpp)
/// all rows belong to owned nodes, except the encoder's, which has empty rows of the halo.
#pragma once

#include <algorithm>
#include <vector>

#include "sheafnn/bsnn/bundle_model.hpp"
#include "sheafnn/bsnn/pass_state.hpp"
#include "sheafnn/bsnn/seen_features.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/activated_encoder.hpp"
#include "sheafnn/layers/bundle_layer.hpp"
#include "sheafnn/layers/bundle_learner.hpp"
#include "sheafnn/layers/bundle_rotations.hpp"
#include "sheafnn/layers/dropout_layer.hpp"
#include "sheafnn/layers/heat_operator.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/readout_head.hpp"
#include "sheafnn/nn/element_runs.hpp"
#include "sheafnn/nn/sparse_input.hpp"

namespace sheafnn::detail {

/// See the file comment. Features are n × B × D × f; NetworkOfSteps says what the steps are.
template <int D, bool Bayesian, class S>
struct BundleSteps : PassState<BundleModel<D, Bayesian, S>, BundleNetworkWeights> {
  using State = PassState<BundleModel<D, Bayesian, S>, BundleNetworkWeights>;
  using State::model, State::graph, State::execution, State::weights, State::weights_bar, State::gradient,
      State::pass, State::nodes, State::sample, State::options, State::closed_form, State::kl;
  using typename State::Model;

  BundleSteps(const Model& of, const Graph& on, const NodeFeatures& features, Execution with)
      : BundleSteps(of, on, seen_features(of.options(), on, features), with) {}
  /// \param seen  the features after the model's feature plan
  BundleSteps(const Model& of, const Graph& on, const SeenFeatures& seen, Execution with)
      : State(of, on, with),
        input(seen.features),
        encoder(input, on, of.hidden_width(), Activation::gelu),
        hidden(on.own_node_count(), of.hidden_width()),
        mean(on, AdjacencyNormalisation::random_walk, false),
        heat(with, on, of.options().heat(), of.options().bundles, D * of.options().channels),
        point(*of.options().parametrisation),
        work(on.own_node_count(), 2 * std::max(of.hidden_width(), of.options().learner_width)),
        norm(on.own_node_count(), of.hidden_width()),
        output(on.own_node_count(), of.hidden_width(), of.options().classes, of.options().readout_layers - 1),
        selected(on.own_node_count() * of.hidden_width()),
        raw_bar(on.own_node_count() * of.learner().outputs) {
    const BundleOptions& o = of.options();
    const Index n = on.own_node_count();
    for (std::size_t l = 0; l < of.layout().learners.size(); ++l) learners.emplace_back(mean, of.learner());
    for (Index l = 0; l < o.layers; ++l) {
      layers.emplace_back(n, o.bundles, o.channels,
                          BundleLayerOptions{o.mixing, o.layer_norm, o.residual, o.activation});
    }
    if constexpr (Bayesian) posterior.emplace_back(n, o.bundles, *o.parametrisation, on.part());
    for (Buffer<S>* one : {&bar, &x_bar, &embedding_bar}) one->resize(on.node_count() * of.hidden_width());
    if (on.part() != nullptr) address_masks(on.part()->numbers(), seen.first_entry);
  }

  [[nodiscard]] Index layer_count() const noexcept { return static_cast<Index>(layers.size()); }
  [[nodiscard]] Index sheaf_count() const noexcept { return layer_count(); }
  /// X_{l+1}, n × h.
  [[nodiscard]] MatrixView<const S> features(Index l) const noexcept {
    return l == 0 ? hidden.output() : layers[static_cast<std::size_t>(l - 1)].output();
  }
  [[nodiscard]] FeatureView<const S> features_after(Index count) const {
    return {features(count).data(), node_count(), model.coordinates(), model.options().channels};
  }
  /// Nodes with rows: on a part of a graph the owned ones.
  [[nodiscard]] Index node_count() const noexcept { return graph.own_node_count(); }
  [[nodiscard]] MatrixView<S> matrix(Buffer<S>& buffer) const noexcept {
    return {buffer.data(), node_count(), model.hidden_width()};
  }

  void set_pass(const ForwardPass<S>& of) {
    require(!of.training || given_maps.empty(), "training", true, "given maps are for evaluations");
    Index noise = 0;
    if constexpr (Bayesian) noise = node_count() * model.options().bundles * Model::Posterior::noise_size;
    this->take_pass(of, node_count(), noise, layer_count(),
                    [&](auto& list, auto& to) { model.declare(list, to); });
  }
  /// Zeros the derivatives that backward passes add to. The encoder's weight is left out, because they overwrite its
  /// derivative.
  void clear_gradient() { clear_but(model.parameters(), {model.layout().encoder.weight}, gradient); }

  /// Computes X_1 and, for Bayesian models, the distributions of the rotations.
  void embed() {
    encoder.forward(execution, weights.encoder, pass.of_features(), pass.keeps());
    const MatrixView<const S> x(encoder.output.data(), node_count(), model.hidden_width());
    hidden.forward(execution, x, pass.of_hidden());
    if constexpr (Bayesian) {
      learn(0, 0);
      posterior[0].infer(execution, learners[0].raw(), layers[0].maps());
    }
  }
  /// X_{L+1} from X_1.
  void diffuse() {
    for (Index l = 0; l < layer_count(); ++l) {
      BundleLayer<D, S>& layer = layers[static_cast<std::size_t>(l)];
      if (!given_maps.empty()) {
        layer.maps().set_values(given_maps[static_cast<std::size_t>(l)]);
      } else if constexpr (Bayesian) {
        posterior[0].draw(execution, pass.of_sheaf(l, sample), this->explicit_noise(l, layer_count()),
                          layer.maps());
      } else {
        learn(l, sample);
        point.predict(execution, learners[static_cast<std::size_t>(l)].raw(), layer.maps());
      }
      layer.forward(execution, heat, weights.layers[static_cast<std::size_t>(l)], features(l),
                    pass.of_layer(hidden_dropouts + l, sample), pass.of_layer(l, sample));
    }
  }
  void compute_outputs() {
    diffuse();
    read_out();
  }
  void accumulate(const MatrixView<const S>& outputs_bar) {
    read_out_backward(outputs_bar);
    diffuse_backward();
    this->add_sample(bar, embedding_bar);
  }
  /// Y at the requested nodes.
  void read_out() { output.forward(execution, weights.readout, weights.output, normed(end_rows())); }
  /// Computes the derivative of X_{L+1}, in `bar`, from the derivative of Y.
  void read_out_backward(const MatrixView<const S>& outputs_bar) {
    const Index h = model.hidden_width();
    const bool normalises = model.options().layer_norm;
    const MatrixView<S> rows = nodes.all() ? matrix(bar) : MatrixView<S>(work.rows[0].data(), nodes.count(), h);
    output.backward(execution, weights.readout, weights.output, normalises ? norm.output() : last_rows,
                    outputs_bar, rows, weights_bar.readout, weights_bar.output);
    if (normalises) norm.backward(execution, weights.norm, last_rows, rows, rows, weights_bar.norm);
    if (nodes.all()) return;
    std::fill_n(bar.data(), bar.size(), S(0));
    for (Index i = 0; i < nodes.count(); ++i) std::copy_n(rows.row(i).data(), h, bar.data() + nodes[i] * h);
  }
  /// Replaces the derivative of X_{L+1} in bar by the derivative of X_1, and adds the derivatives of the weights and
  /// distributions.
  void diffuse_backward() {
    const double share = 1 / static_cast<double>(options.samples * layer_count());
    for (Index l = layer_count() - 1; l >= 0; --l) {
      const std::size_t i = static_cast<std::size_t>(l);
      layers[i].backward(execution, heat, weights.layers[i], features(l), matrix(bar), matrix(x_bar), work,
                         weights_bar.layers[i]);
      if constexpr (Bayesian) {
        if (!closed_form) kl += share * posterior[0].mean_log_ratio(execution, layers[i].maps());
        posterior[0].add_backward(execution, layers[i].maps(), closed_form ? 0.0 : options.kl_weight * share);
      } else {
        point.backward(execution, learners[i].raw(), layers[i].maps(), raw_bar_view());
        learners[i].backward(execution, weights.learners[i], features(l), raw_bar_view(), work, matrix(x_bar),
                             weights_bar.learners[i]);
      }
      std::swap(bar, x_bar);
    }
  }
  void begin_posterior([[maybe_unused]] double kl_weight) {
    if constexpr (Bayesian) posterior[0].begin_backward(execution, kl_weight);
  }
  /// Computes the derivatives of the learner's and the encoder's weights from the derivatives of X_1 and of the distributions.
  void embed_backward() {
    if constexpr (Bayesian) {
      posterior[0].end_backward(execution, learners[0].raw(), layers[0].maps(), raw_bar_view());
      learners[0].backward(execution, weights.learners[0], features(0), raw_bar_view(), work,
                           matrix(embedding_bar), weights_bar.learners[0]);
    }
    hidden.backward_in_place(execution, matrix(embedding_bar));
    encoder.backward(execution, {embedding_bar.data(), graph.node_count(), model.hidden_width()},
                     weights_bar.encoder);
  }
  [[nodiscard]] double mean_kl() {
    if constexpr (Bayesian) {
      return posterior[0].mean_kl(execution);
    } else {
      return 0;
    }
  }

  SparseInput<S> input;
  ActivatedEncoder<S> encoder;
  DropoutLayer<S> hidden;       ///< its output is X_1
  NormalisedAdjacency<S> mean;  ///< sums over neighbours, for the learners
  HeatOperator<S> heat;
  PointBundle<D, S> point;
  std::vector<VariationalBundle<D, S>> posterior;  ///< one in Bayesian models, otherwise empty
  std::vector<BundleLearner<S>> learners;          ///< one per layer; of Bayesian models one
  std::vector<BundleLayer<D, S>> layers;
  std::vector<Buffer<S>> given_maps;  ///< one array per layer; empty: the model's rotations
  BundleWorkspace<S> work;
  LayerNorm<S> norm;  ///< before the readout
  ReadoutHead<S> output;
  Buffer<S> selected;  ///< X_{L+1} at the requested nodes, unless all are requested
  MatrixView<const S> last_rows;
  Buffer<S> raw_bar, bar, x_bar, embedding_bar;

 private:
  /// Gives the nodes and features of a part of a graph the dropout masks that they have in the whole graph.
  void address_masks(const PartNumbers& part, const std::vector<Index>& first_entry) {
    const auto rows = runs_of_rows(part, model.hidden_width());
    const auto learned = runs_of_rows(part, model.learner().width);
    encoder.linear.entry_mask().set_runs(runs_of_entries(part, first_entry, input));
    hidden.mask().set_runs(rows);
    for (BundleLayer<D, S>& layer : layers) layer.for_masks([&](DropoutMask& mask) { mask.set_runs(rows); });
    for (BundleLearner<S>& learner : learners) {
      learner.for_masks([&](DropoutMask& mask) { mask.set_runs(learned); });
    }
  }
  [[nodiscard]] MatrixView<S> raw_bar_view() noexcept {
    return {raw_bar.data(), node_count(), model.learner().outputs};
  }
  /// What a learner predicts, with its dropouts.
  void learn(Index l, Index number) {
    const std::size_t i = static_cast<std::size_t>(l);
    learners[i].forward(execution, weights.learners[i], features(l), [&](Index k) {
      Dropout r = pass.of_learner(l + hidden_dropouts * k, number);
      if (pass.training) r.rate = pass.dropout;  // also in the first layer
      return r;
    });
  }
  [[nodiscard]] MatrixView<const S> end_rows() {
    last_rows = features(layer_count());
    if (nodes.all()) return last_rows;
    const Index h = model.hidden_width();
    for (Index i = 0; i < nodes.count(); ++i) {
      std::copy_n(features(layer_count()).row(nodes[i]).data(), h, selected.data() + i * h);
    }
    last_rows = {selected.data(), nodes.count(), h};
    return last_rows;
  }
  [[nodiscard]] MatrixView<const S> normed(const MatrixView<const S>& x) {
    if (!model.options().layer_norm) return x;
    norm.forward(execution, weights.norm, x);
    return norm.output();
  }
};

}  // namespace sheafnn::detail
