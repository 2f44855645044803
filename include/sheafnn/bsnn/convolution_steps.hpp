/// \file
/// ConvolutionSteps: the layers and buffers of a network of sheaf convolutions.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "sheafnn/bsnn/convolution_model.hpp"
#include "sheafnn/bsnn/network_parts.hpp"
#include "sheafnn/bsnn/pass_state.hpp"
#include "sheafnn/bsnn/seen_features.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/activated_encoder.hpp"
#include "sheafnn/layers/readout_head.hpp"
#include "sheafnn/layers/sheaf_convolution.hpp"
#include "sheafnn/nn/element_runs.hpp"
#include "sheafnn/nn/sparse_input.hpp"

namespace sheafnn::detail {

/// Outputs of a network, which are the features of the last layer if there is no readout.
template <class S>
struct ConvolutionOutput {
  std::optional<ReadoutHead<S>> head;
  Index classes;
  Buffer<S> values, bar;  ///< without a head
  Index rows = 0;

  ConvolutionOutput(Index nodes, Index inputs, Index outputs, bool readout) : classes(outputs) {
    if (readout) {
      head.emplace(nodes, inputs, outputs, 0);
    } else {
      values.resize(nodes * outputs);
      bar.resize(nodes * outputs);
    }
  }
  [[nodiscard]] MatrixView<S> output() noexcept {
    return head ? head->output() : MatrixView<S>(values.data(), rows, classes);
  }
  [[nodiscard]] MatrixView<const S> output() const noexcept {
    return head ? head->output() : MatrixView<const S>(values.data(), rows, classes);
  }
  [[nodiscard]] MatrixView<S> output_bar() noexcept {
    return head ? head->output_bar() : MatrixView<S>(bar.data(), rows, classes);
  }
};

/// See the file comment; NetworkOfSteps says what the steps are.
template <class ModelType>
struct ConvolutionSteps : PassState<ModelType, ConvolutionWeights> {
  using State = PassState<ModelType, ConvolutionWeights>;
  using State::model, State::graph, State::execution, State::weights, State::weights_bar, State::gradient,
      State::pass, State::nodes, State::sample, State::options, State::closed_form, State::kl, State::is_sampled;
  using typename State::Model, typename State::S;
  using Family = typename Model::Family;
  using Posterior = typename Model::Posterior;
  using Layer = layers::SheafConvolution<Family, S>;
  using Source = std::conditional_t<Model::bayesian, VariationalSource<Posterior, S>, GivenSource<Family, S>>;

  ConvolutionSteps(const Model& of, const Graph& on, const NodeFeatures& given, Execution with)
      : ConvolutionSteps(of, on, seen_features(of.options(), on, given), with) {}
  /// \param seen  the features after the model's feature plan
  ConvolutionSteps(const Model& of, const Graph& on, SeenFeatures seen, Execution with)
      : State(of, on, with),
        features(std::move(seen.features)),
        input(features),
        blocks(on),
        source(on, blocks, of.posterior(), of.sheaf_count(), of.options().normalisation, of.learner()),
        output(on.node_count(), Family::stalk_dimension * of.options().widths.back(), of.options().classes,
               of.options().readout) {
    const ConvolutionOptions& architecture = of.options();
    if (architecture.encoder) encoder.emplace(input, on, start_width(), architecture.activation);
    for (Index l = 0; l < architecture.layers; ++l) {
      layers.push_back(
          std::make_unique<Layer>(on, convolution_of(architecture, l), l == 0 && !encoder ? &input : nullptr));
    }
    if (encoder) {
      embedding_bar.resize(on.node_count() * start_width());
      x_bar.resize(embedding_bar.size());
    }
    if (on.part() != nullptr) address_masks(on.part()->numbers(), seen.first_entry);
  }

  [[nodiscard]] Index layer_count() const noexcept { return static_cast<Index>(layers.size()); }
  [[nodiscard]] Layer& layer(Index l) const noexcept { return *layers[static_cast<std::size_t>(l)]; }
  /// Sheaves of a sample.
  [[nodiscard]] Index sheaf_count() const noexcept { return model.sheaf_count(); }
  [[nodiscard]] Index start_width() const noexcept {
    return Family::stalk_dimension * model.options().widths.front();
  }
  /// X_1, rows of d · c_0. Without an encoder the features are written out as dense rows when they are first needed.
  [[nodiscard]] MatrixView<const S> start() const {
    if (encoder) return {encoder->output.data(), graph.node_count(), start_width()};
    if (dense.empty()) {
      dense.resize(graph.node_count() * start_width());
      write_dense(features, dense.data());
    }
    return {dense.data(), graph.node_count(), start_width()};
  }
  /// X_{count+1}.
  [[nodiscard]] FeatureView<const S> features_after(Index count) const {
    if (count > 0) return layer(count - 1).output();
    return {start().data(), graph.node_count(), Family::stalk_dimension, model.options().widths.front()};
  }

  void set_pass(const ForwardPass<S>& of) {
    Index noise = 0;
    if constexpr (is_sampled) noise = graph.arc_count() * Posterior::noise_size;
    this->take_pass(of, graph.node_count(), noise, sheaf_count(),
                    [&](auto& list, auto& to) { model.declare(list, to); });
  }
  /// Computes X_1 and, for Bayesian models, Q(F | X_1).
  void embed() {
    if (encoder) encoder->forward(execution, weights.encoder, pass.of_features(), pass.keeps());
    if constexpr (is_sampled) {
      const bool reads = model.learner().outputs() > 0;
      source.infer(execution, {{}, weights.learners}, reads ? start() : MatrixView<const S>());
    }
  }
  [[nodiscard]] const SheafBlocks<Family, S>& sheaf_of(Index l) const noexcept {
    return source.stack()[std::min(l, source.stack().count() - 1)];
  }
  [[nodiscard]] SheafInput<S> sheaf_input(Index l) const {
    return {.sheaf = l,
            .x = {},
            .dropout = {},
            .noise = {pass.of_sheaf(l, sample), this->explicit_noise(l, sheaf_count())}};
  }
  /// X_{L+1} and the outputs.
  void compute_outputs() {
    for (Index l = 0; l < layer_count(); ++l) {
      if (l < source.stack().count()) source.build(execution, {{}, weights.learners}, sheaf_input(l));
      const FeatureView<const S> x = l == 0 && !encoder ? FeatureView<const S>() : features_after(l);
      layer(l).forward(execution, weights.layers[static_cast<std::size_t>(l)], sheaf_of(l), x,
                       l + 1 == layer_count() ? nodes : NodeSelection(graph.node_count()),
                       l == 0 && !encoder ? pass.of_features() : pass.of_layer(l, sample), pass.keeps());
    }
    const MatrixView<const S> last = layer(layer_count() - 1).output().rows();
    if (output.head) {
      output.head->forward(execution, {}, weights.output, last);
      return;
    }
    output.rows = last.rows();
    std::copy_n(last.data(), last.rows() * last.columns(), output.values.data());
  }
  /// Adds the derivatives of the weights, of Q's parameters and of X_1, from the derivative of the outputs.
  void accumulate(const MatrixView<const S>& outputs_bar) {
    const FeatureView<S> last_bar = layer(layer_count() - 1).output_bar();
    if (output.head) {
      output.head->backward(execution, {}, weights.output, layer(layer_count() - 1).output().rows(), outputs_bar,
                            last_bar.rows(), {}, weights_bar.output);
    } else {
      last_bar.rows().eigen() = outputs_bar.eigen();
    }
    for (Index l = layer_count(); l-- > 0;) {
      const std::size_t i = static_cast<std::size_t>(l);
      FeatureView<S> bar;
      if (l > 0) bar = layer(l - 1).output_bar();
      if (l == 0 && encoder)
        bar = {x_bar.data(), graph.node_count(), Family::stalk_dimension, model.options().widths.front()};
      layer(l).backward(execution, weights.layers[i], sheaf_of(l), source.gradient(), bar, weights_bar.layers[i]);
      if constexpr (is_sampled) sheaf_backward(l);
    }
    if (encoder) this->add_sample(x_bar, embedding_bar);
  }
  void sheaf_backward(Index l) requires is_sampled {
    const SheafInput<S> read = sheaf_input(l);
    const double share = 1 / static_cast<double>(options.samples * sheaf_count());
    if (!closed_form) kl += share * source.log_ratio(execution, read);
    source.backward(execution, {{}, weights.learners}, read, closed_form ? 0.0 : options.kl_weight * share, {}, {},
                    {{}, weights_bar.learners});
  }
  /// Computes the derivatives of the learner and the encoder from the sums of accumulate().
  void embed_backward() {
    if constexpr (is_sampled) {
      if (!encoder && embedding_bar.empty() && model.learner().outputs() > 0) {
        embedding_bar.resize(graph.node_count() * start_width());
      }
      source.finish_backward(execution, {{}, weights.learners}, start_bar(), {}, {{}, weights_bar.learners});
    }
    if (encoder) encoder->backward(execution, start_bar(), weights_bar.encoder);
  }
  [[nodiscard]] MatrixView<S> start_bar() {
    return embedding_bar.empty() ? MatrixView<S>()
                                 : MatrixView<S>(embedding_bar.data(), graph.node_count(), start_width());
  }

  // The members that NetworkPasses needs:

  void clear_gradient() { clear_but(model.parameters(), {model.layout().encoder.weight}, gradient); }
  void begin_posterior(double kl_weight) { source.begin_backward(execution, kl_weight); }
  [[nodiscard]] double mean_kl() {
    if constexpr (is_sampled && closed_form_kl<Posterior>) {
      return source.kl(execution);
    } else {
      return 0;
    }
  }

  NodeFeatures features;
  SparseInput<S> input;
  EdgeBlocks<S> blocks;
  std::optional<ActivatedEncoder<S>> encoder;
  Source source;
  std::vector<std::unique_ptr<Layer>> layers;
  ConvolutionOutput<S> output;
  Buffer<S> x_bar, embedding_bar;
  mutable Buffer<S> dense;

 private:
  /// Gives the nodes and features of a part of a graph the dropout masks that they have in the whole graph.
  void address_masks(const PartNumbers& part, const std::vector<Index>& first_entry) {
    const auto entries = runs_of_entries(part, first_entry, input);
    if (encoder) encoder->linear.entry_mask().set_runs(entries);
    for (Index l = 0; l < layer_count(); ++l) {
      const Index width = Family::stalk_dimension * model.options().widths[static_cast<std::size_t>(l)];
      layer(l).mask().set_runs(l == 0 && !encoder ? entries : runs_of_rows(part, width));
    }
  }
};

}  // namespace sheafnn::detail
