/// \file
/// NetworkParts: the layers and buffers of a Network, and the checks of a pass's arguments. The members in the order of a pass:
///
///     input      X, sparse                       embedding   encoder, X → H
///     source     posterior or learners, H → F^l  layers      X_l, F^l → X_{l+1}
///     output     readout, X_{L+1} → Y            x_bar, embedding_bar   derivatives of X_l and of X_1
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/edgeless.hpp"
#include "sheafnn/bsnn/forward_pass.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/pass_state.hpp"
#include "sheafnn/bsnn/seen_features.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/complex_start.hpp"
#include "sheafnn/layers/given_source.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/node_embedding.hpp"
#include "sheafnn/layers/point_source.hpp"
#include "sheafnn/layers/readout_head.hpp"
#include "sheafnn/layers/stalk_masks.hpp"
#include "sheafnn/layers/variational_source.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/sparse_input.hpp"

namespace sheafnn::detail {

/// The sheaf source of a model: VariationalSource draws from a posterior, PointSource computes learned or fixed maps,
/// GivenSource holds maps that come with the graph.
template <class Posterior, class S>
struct SheafSourceOf {
  using type = VariationalSource<Posterior, S>;
};
template <class Posterior, class S>
  requires(is_point_mass<Posterior> || !is_learned<typename Posterior::family>)
struct SheafSourceOf<Posterior, S> {
  using type = PointSource<typename Posterior::family, S>;
};
template <class Family, class S>
struct SheafSourceOf<GivenMaps<Family>, S> {
  using type = GivenSource<Family, S>;
};

/// The graph that a network sees: the given graph, or its nodes without edges if the options say so.
struct SeenGraph {
  template <class Options>
  SeenGraph(const Options& options, const Graph& on)
      : edgeless(without_edges(options, on)), seen(edgeless ? *edgeless : on) {}

  std::unique_ptr<const Graph> edgeless;  ///< null where the graph is the one that was given
  const Graph& seen;
};

/// See the file comment. The sheaves are random if the model is Bayesian and its maps are learned.
template <class ModelType>
struct NetworkParts
    : SeenGraph,
      PassState<ModelType, NetworkWeights, ModelType::bayesian && is_learned<typename ModelType::Family>> {
  using State =
      PassState<ModelType, NetworkWeights, ModelType::bayesian && is_learned<typename ModelType::Family>>;
  using State::model, State::graph, State::weights, State::weights_bar, State::gradient, State::is_sampled;
  using typename State::Model, typename State::S;
  using Family = typename Model::Family;
  using Posterior = typename Model::Posterior;
  using Source = typename SheafSourceOf<Posterior, S>::type;
  static constexpr bool has_closed_form = is_sampled && closed_form_kl<Posterior>;
  /// Can the sheaf learner compute maps of pairs of nodes that are not edges?
  static constexpr bool has_pair_maps =
      std::is_same_v<Source, PointSource<Family, S>> || (is_sampled && !is_around_given<Posterior>);

  NetworkParts(const Model& of, const Graph& on, const NodeFeatures& features, Execution with)
      : NetworkParts(of, on, seen_features(of.options(), on, features), with) {}
  /// \param given  the features after the model's feature plan
  NetworkParts(const Model& of, const Graph& on, const SeenFeatures& given, Execution with)
      : SeenGraph(of.options(), on),
        State(of, seen, with),
        input(given.features),
        blocks(graph),
        shape(shape_of(of.options(), graph)),
        stalks(stalks_of(of.options(), graph, blocks)),
        embedding(input, graph, of.layout().encoder, of.options().second_linear),
        source(graph, blocks, source_state(of, graph, given.features), of.sheaf_count(),
               of.options().normalisation, learner_options(of)),
        layers(of, graph, shape, stalks.get()),
        output(graph.node_count(), shape.row(), of.options().classes, of.options().readout_layers - 1) {
    if constexpr (is_sampled) {
      if (*of.options().separate_encoder) source.add_encoder(input, graph, of.layout().sheaf_encoder);
    }
    if constexpr (requires { source.set_stalks(stalks.get()); }) source.set_stalks(stalks.get());
    const LayerReads reads = layers.reads();
    if (reads.maps || !reads.blocks) source.stack().choose_parts(graph, reads.maps, reads.blocks);
    if (reads.own_arcs) source.stack().take_own_arcs();
    if constexpr (requires { of.options().directed; }) {
      if (parts_of(of.options().layer) == 2) {
        complex.emplace(graph.node_count(), shape.coordinates, shape.channels,
                        of.options().directed.imaginary_start);
      }
    }
    if (reads.before) {
      for (Buffer<S>& buffer : before_bar_) buffer.resize(graph.node_count() * shape.row());
    }
    if (graph.part() != nullptr) address_masks(graph.part()->numbers(), given.first_entry);
  }

  [[nodiscard]] Index layer_count() const noexcept { return model.options().layers; }
  [[nodiscard]] Index sheaf_count() const noexcept { return source.stack().count(); }
  /// The sheaf of a layer.
  [[nodiscard]] const SheafBlocks<Family, S>& sheaf_of(Index layer) const noexcept {
    return source.stack()[std::min(layer, sheaf_count() - 1)];
  }

  /// h, the length of a node's embedding.
  [[nodiscard]] Index embedding_width() const noexcept { return model.hidden_width(); }
  /// An n × h matrix as features, n × d' × f.
  [[nodiscard]] FeatureView<const S> features_of(const MatrixView<const S>& rows) const noexcept {
    return {rows.data(), rows.rows(), shape.coordinates, shape.channels};
  }
  [[nodiscard]] FeatureView<S> view(Buffer<S>& buffer) noexcept {
    return {buffer.data(), graph.node_count(), shape.coordinates, shape.channels};
  }
  /// Working memory of n × d' × f, allocated by the first call.
  [[nodiscard]] FeatureView<S> scratch(int i) {
    take(scratch_[i]);
    return view(scratch_[i]);
  }
  /// Memory that all layers share for W and Y. Null on parts of a graph, where sharing would repeat the exchange of halos.
  [[nodiscard]] SharedRows<S>* shared_rows() noexcept {
    return graph.part() == nullptr && !layers.reads().work ? &rows_ : nullptr;
  }
  /// Declares that the shared rows no longer hold the W and Y of a layer.
  void release_rows() noexcept { rows_.owner = nullptr; }
  /// Memory for the projections of sheaf learners: the memory of W, which a layer then computes again. Null: they have their
  /// own.
  [[nodiscard]] S* learner_work() {
    const bool fits = shared_rows() != nullptr && model.layout().learner.projection_width() <= shape.row();
    return fits ? rows().scaled.data() : nullptr;
  }
  /// scratch(0) for forward and for backward passes of layers, or the memory of W or Y while no layer reads it.
  [[nodiscard]] FeatureView<S> forward_scratch() {
    return shared_rows() == nullptr ? scratch(0) : view(rows().scaled);
  }
  [[nodiscard]] FeatureView<S> backward_scratch() {
    return shared_rows() == nullptr || layers.wrapped() ? scratch(0) : view(rows().mixed);
  }
  [[nodiscard]] FeatureView<S> x_bar_view() noexcept { return view(x_bar); }
  [[nodiscard]] FeatureView<S> embedding_bar_view() noexcept { return view(embedding_bar); }
  /// Where layer l adds the derivative of the previous layer's input. Empty if no layer reads that input again.
  [[nodiscard]] FeatureView<S> before_bar_view(Index l) noexcept {
    return layers.reads().before ? view(before_bar_[l % 2]) : FeatureView<S>();
  }
  /// Is anything in a pass random, apart from dropout?
  [[nodiscard]] bool draws() const noexcept { return is_sampled || layers.reads().scores > 0; }

  /// Takes a pass. \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length
  void set_pass(const ForwardPass<S>& of) {
    require(!of.compress_layers || graph.part() == nullptr, "compress_layers", of.compress_layers,
            "parts of a graph keep layers as they are computed");
    check_layer_noise(of, layers.reads().scores * (graph.arc_count() + graph.node_count()), layer_count());
    Index noise = 0;
    if constexpr (is_sampled) noise = graph.arc_count() * Posterior::noise_size;
    this->take_pass(of, graph.node_count(), noise, sheaf_count(),
                    [&](auto& list, auto& to) { model.declare(list, to, [&](auto&) { layers.declare(list); }); });
  }
  [[nodiscard]] SheafSourceWeights<const S> source_weights() const {
    return {weights.sheaf_encoder, weights.learners};
  }
  [[nodiscard]] SheafSourceWeights<S> source_weights_bar() const {
    return {weights_bar.sheaf_encoder, weights_bar.learners};
  }

  /// Zeros the derivatives that backward passes add to. They overwrite the derivatives of the encoders' weights.
  void clear_gradient() {
    const NetworkWeights<ParameterSlot>& at = model.layout().at;
    clear_but(model.parameters(), {at.encoder.weight, at.sheaf_encoder.weight}, gradient);
  }
  /// Prepares x_bar and embedding_bar for the backward pass of a sample; layers that read X_1 add to embedding_bar. Both are
  /// one array if only one sample is added and no layer reads X_1.
  ///
  /// \returns whether x_bar is the first term of embedding_bar: see add_sample()
  bool begin_embedding_bar(Execution execution, bool first_sample) {
    const bool added = layers.reads().first, overwrites = first_sample && !added;
    if (overwrites && x_bar.empty()) std::swap(x_bar, embedding_bar);
    take(x_bar);
    if (!overwrites) take(embedding_bar);
    if (first_sample && added) clear(execution, embedding_bar);
    return overwrites;
  }
  /// Zeros X̄_{l−1} of layers that read X_{l−1}, before the backward pass of a sample.
  void clear_before_bars(Execution execution) {
    for (Buffer<S>& buffer : before_bar_) clear(execution, buffer);
  }
  /// After the backward pass of layer l: adds to x_bar what layer l + 1 contributed to the derivative of the same features. For
  /// the first layer it also adds that layer's own contribution.
  void add_before_bar(Execution execution, Index l) {
    if (!layers.reads().before) return;
    Buffer<S>& from_above = before_bar_[(l + 1) % 2];
    add_array(execution, x_bar.size(), from_above.data(), x_bar.data());
    clear(execution, from_above);
    if (l == 0) add_array(execution, x_bar.size(), before_bar_[0].data(), x_bar.data());
  }

  SparseInput<S> input;
  EdgeBlocks<S> blocks;
  DiffusionShape<S> shape;
  std::unique_ptr<const StalkMasks<S>> stalks;  ///< null if all stalks have dimension D
  NodeEmbedding<S> embedding;
  Source source;
  typename Model::Stack layers;
  ReadoutHead<S> output;
  std::optional<ComplexStart<S>> complex;  ///< X_1 of layers with complex features
  Buffer<S> x_bar, embedding_bar;          ///< derivatives of X_l, and of X_1

 private:
  [[nodiscard]] SharedRows<S>& rows() {
    rows_.take(graph.node_count() * shape.row());
    return rows_;
  }
  /// Allocates an empty buffer as n × h; the halo's rows become 0.
  void take(Buffer<S>& buffer) {
    if (!buffer.empty()) return;
    buffer.resize(graph.node_count() * shape.row(), to_be_written);
    clear_halo(graph, buffer.data(), shape.row());
  }
  static void clear(Execution execution, Buffer<S>& buffer) {
    parallel_for(execution, buffer.size(), 4096,
                 [&](Index begin, Index end) { std::fill(buffer.data() + begin, buffer.data() + end, S(0)); });
  }
  /// Gives the nodes and features of a part of a graph the dropout masks that they have in the whole graph.
  void address_masks(const PartNumbers& part, const std::vector<Index>& first_entry) {
    const auto rows = runs_of_rows(part, shape.row()), learned = runs_of_rows(part, model.layout().learner.inputs);
    embedding.entry_mask().set_runs(runs_of_entries(part, first_entry, input));
    embedding.mask().set_runs(runs_of_rows(part, embedding_width()));
    layers.for_masks([&](Index, DropoutMask& mask) { mask.set_runs(rows); });
    source.for_masks([&](Index, DropoutMask& mask) { mask.set_runs(learned); });
  }
  /// Layers with I − Δ in place of Δ average, so their fixed filters have the opposite sign.
  static DiffusionShape<S> shape_of(const typename Model::Options& options, const Graph& on) {
    DiffusionShape<S> r(on, Family::stalk_dimension, options.add_lp, options.add_hp,
                        options.channels * parts_of(options.layer), detail::has_augmented_filters(options));
    if (averages(options)) {
      for (S& sign : r.filter_sign) sign = -sign;
    }
    return r;
  }
  static std::unique_ptr<const StalkMasks<S>> stalks_of(const typename Model::Options& options, const Graph& on,
                                                        const EdgeBlocks<S>& blocks) {
    constexpr int D = Family::stalk_dimension;
    if constexpr (requires { options.edge_stalks; }) {
      if (has_own_stalks(options, D)) {
        return std::make_unique<StalkMasks<S>>(on, blocks, D, options.stalks, options.edge_stalks);
      }
    }
    return nullptr;
  }
  static auto source_state(const Model& model, [[maybe_unused]] const Graph& on,
                           [[maybe_unused]] const NodeFeatures& seen) {
    if constexpr (requires { model.posterior_of(on, seen); }) {
      return model.posterior_of(on, seen);
    } else if constexpr (is_sampled || has_given_maps<Posterior>) {
      return model.posterior();
    } else {
      return PointMap<Family>{*model.options().parametrisation, *model.options().sheaf_activation};
    }
  }
  static SheafLearnerOptions learner_options(const Model& model) { return model.layout().learner; }

  Buffer<S> scratch_[2];
  SharedRows<S> rows_;
  Buffer<S> before_bar_[2];  ///< X̄_{l−1} of layers with even and odd index l
};

}  // namespace sheafnn::detail
