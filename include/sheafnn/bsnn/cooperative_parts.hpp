/// \file
/// CooperativeParts: the layers and buffers of a cooperative network.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/cooperative_model.hpp"
#include "sheafnn/bsnn/pass_state.hpp"
#include "sheafnn/bsnn/seen_features.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/layers/activated_encoder.hpp"
#include "sheafnn/layers/batch_norm.hpp"
#include "sheafnn/layers/cooperative_layer.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/node_chunks.hpp"
#include "sheafnn/layers/node_learner.hpp"
#include "sheafnn/layers/readout_head.hpp"
#include "sheafnn/layers/variational_node_maps.hpp"

namespace sheafnn::detail {

/// One layer with its learners, norm and buffers.
template <int D, class S>
struct CooperativeStage {
  Buffer<S> features;  ///< X̃, what the layer and its learners read
  DropoutMask mask;
  Dropout dropout;
  NodeMaps<D, S> maps;
  CooperativeLayer<D, S> layer;
  LayerNorm<S> norm;
  Buffer<S> unnormalised;         ///< input of the norm (of LayerNorm in training only); empty without norm
  Buffer<RowMoments<S>> moments;  ///< of its rows
  std::optional<BatchNorm<S>> batch;
};

/// See the file comment. Features are n × D × f.
template <int D, bool Bayesian, class S>
struct CooperativeParts : PassState<CooperativeModel<D, Bayesian, S>, CooperativeWeights> {
  using State = PassState<CooperativeModel<D, Bayesian, S>, CooperativeWeights>;
  using State::model, State::graph, State::execution, State::weights, State::weights_bar, State::gradient;
  using typename State::Model;
  using Stage = CooperativeStage<D, S>;

  /// \param given  the arcs; null: the arcs of the graph, directed as listed if the options say so
  CooperativeParts(const Model& of, const Graph& on, const DirectedArcs* given, const NodeFeatures& features,
                   Execution with)
      : CooperativeParts(of, on, given, seen_features(of.options(), on, features), with) {}
  /// \param seen  the features after the model's feature plan
  CooperativeParts(const Model& of, const Graph& on, const DirectedArcs* given, const SeenFeatures& seen,
                   Execution with)
      : State(of, checked(on, given), with),
        listed(given == nullptr && of.options().directed ? std::optional(listed_arcs(on)) : std::nullopt),
        arcs(given != nullptr ? given->lists()
             : listed         ? arc_lists(on, *listed)
                              : arc_lists(on)),
        channels(of.options().channels),
        input(seen.features),
        degrees(arcs, of.options().in_degree_diagonal),
        encoder(input, on, of.hidden_width(), of.options().activation),
        output(on.node_count(), of.hidden_width(), of.options().classes, of.options().readout_layers - 1),
        maps_gradient(on.node_count()),
        chunks(chunks_of_groups(on.own_node_count())),
        work(on.node_count() * of.hidden_width()) {
    const CooperativeOptions& architecture = of.options();
    const Index n = on.node_count(), h = of.hidden_width();
    const NodeLearnerOptions learner = node_learner(architecture, h, of.learner_outputs());
    const auto workspace = std::make_shared<NodeLearnerWorkspace<S>>(n, learner);
    learners.reserve(of.layout().learners.size());
    for (std::size_t i = 0; i < of.layout().learners.size(); ++i)
      learners.emplace_back(arcs, learner, chunks, workspace);
    if constexpr (Bayesian) {
      for (std::size_t i = 0; i < learners.size(); ++i) posteriors.emplace_back(degrees, architecture.conformal);
      if (architecture.separate_encoder) learner_encoder.emplace(input, on, h, architecture.activation);
    }
    const CooperativeLayerOptions layer{architecture.left_weights, architecture.right_weights,
                                        architecture.residual, architecture.activation,
                                        architecture.negate_diffused};
    stages.reserve(static_cast<std::size_t>(architecture.layers));
    for (Index l = 0; l < architecture.layers; ++l) {
      stages.push_back({Buffer<S>(n * h),
                        DropoutMask(n * h),
                        {},
                        NodeMaps<D, S>(degrees, architecture.conformal),
                        CooperativeLayer<D, S>(arcs, channels, layer, work),
                        LayerNorm<S>(n, h),
                        {},
                        {},
                        {}});
      if (architecture.norm == FeatureNorm::none) continue;
      stages.back().unnormalised.resize(n * h);
      if (normalises()) stages.back().moments.resize(n);
      if (architecture.norm == FeatureNorm::batch) stages.back().batch.emplace(on.own_node_count(), h, on.part());
    }
    for (Buffer<S>* buffer : {&last, &bar, &x_bar, &embedding_bar}) buffer->resize(n * h);
    const Index norm_size = normalises() ? stages.front().norm.partial_size() : 0;
    leave_size = stages.front().layer.leave_partial_size() + norm_size;
    enter_size = stages.front().layer.enter_partial_size();
    partial_size = 2 * leave_size + enter_size + learners.front().partial_size();
    partial.resize(chunks.count * partial_size);
    if (on.part() != nullptr) address_masks(on.part()->numbers(), seen.first_entry);
  }

  [[nodiscard]] Index layer_count() const noexcept { return static_cast<Index>(stages.size()); }
  [[nodiscard]] FeatureView<const S> features_of(const S* rows, Index count) const noexcept {
    return {rows, count, D, channels};
  }
  [[nodiscard]] MatrixView<S> matrix(Buffer<S>& buffer) const noexcept {
    return {buffer.data(), graph.node_count(), model.hidden_width()};
  }
  [[nodiscard]] MatrixView<S> own_rows(Buffer<S>& buffer) const noexcept {
    return {buffer.data(), graph.own_node_count(), model.hidden_width()};
  }
  /// Where the derivative of X_{L+1} belongs.
  [[nodiscard]] FeatureView<S> last_bar() noexcept { return {bar.data(), this->nodes.count(), D, channels}; }
  [[nodiscard]] bool normalises() const noexcept { return model.options().norm == FeatureNorm::layer; }
  [[nodiscard]] Stage& stage_of(Index l) noexcept { return stages[static_cast<std::size_t>(l)]; }
  [[nodiscard]] static std::pair<Index, Index> packs(Index first, Index count) noexcept {
    return {first / lanes<S>, (first + count + lanes<S> - 1) / lanes<S>};
  }
  [[nodiscard]] NodeSelection all_nodes() const noexcept { return NodeSelection(graph.node_count()); }
  [[nodiscard]] NodeSelection owned(const NodeSelection& of) const noexcept {
    return of.first(std::min(of.count(), of.lower_bound(graph.own_node_count())));
  }

  /// Zeros the derivatives that backward passes add to. They overwrite the derivatives of the encoders' weights.
  void clear_gradient() {
    const CooperativeWeights<ParameterSlot>& layout = model.layout();
    clear_but(model.parameters(), {layout.encoder.weight, layout.learner_encoder.weight}, gradient);
  }

  /// Do the learners of every layer read its features? Otherwise one pair reads X_1, or an encoder's output, for all.
  [[nodiscard]] bool learns_per_layer() const noexcept {
    if constexpr (Bayesian) {
      return model.options().layer_learners;
    } else {
      return true;
    }
  }
  /// The pair of learners of a layer, by its index in `learners` and `posteriors`.
  [[nodiscard]] std::size_t pair_of(Index l) const noexcept {
    return learns_per_layer() ? static_cast<std::size_t>(l) : 0;
  }

  /// Sets the maps of layer l at packs [begin, end) of nodes. \param noise  only Bayesian models read it
  void set_maps(Index l, Index begin, Index end, [[maybe_unused]] const NodeNoise<S>& noise) {
    NodeMaps<D, S>& maps = stage_of(l).maps;
    const MatrixView<const S> raw = learners[pair_of(l)].raw();
    if constexpr (Bayesian) {
      VariationalNodeMaps<D, S>& posterior = posteriors[pair_of(l)];
      if (learns_per_layer()) posterior.infer(begin, end, raw);
      if (given_maps.empty()) posterior.draw(begin, end, noise, maps);
    } else if (given_maps.empty()) {
      predict_node_maps<D, S>(begin, end, raw, maps);
    }
    if (!given_maps.empty()) maps.store(begin, end, given_maps[static_cast<std::size_t>(l)]);
  }

  void begin_posterior([[maybe_unused]] double kl_weight) {
    if (learns_per_layer()) return;
    if constexpr (Bayesian) {
      for_posterior([&](Index begin, Index end) { posteriors[0].begin_backward(begin, end, kl_weight); });
    }
  }
  /// KL(Q ‖ prior), the mean over nodes and sides, and over layers where each has distributions of its own.
  [[nodiscard]] double mean_kl() {
    double sum = 0;
    for (VariationalNodeMaps<D, S>& posterior : posteriors) sum += posterior.mean_kl(execution);
    return posteriors.empty() ? 0 : sum / static_cast<double>(posteriors.size());
  }
  /// Calls body(begin, end) for ranges of the packs of nodes of a posterior.
  template <class Body>
  void for_posterior(const Body& body) const {
    parallel_for(execution, degrees.blocks(), 2, body);
  }

  /// Calls body(first, count) for groups of nodes; body may read the rows of their neighbours.
  ///
  /// \param rows   n × h, not written
  /// \param reads  whether body reads the rows of neighbours
  template <class Body>
  void walk(Buffer<S>& rows, const Body& body, bool reads = true) {
    const Index n = graph.own_node_count();
    GraphPart* part = graph.part();
    if (part == nullptr || !reads) {
      for_row_groups(execution, n, body);
      return;
    }
    const Index inner = part->numbers().interior / row_group * row_group;
    part->begin_fetch(rows.data(), model.hidden_width());
    for_row_groups(execution, inner, body);
    part->end_fetch();
    parallel_for(execution, n - inner, row_group,
                 [&](Index begin, Index end) { for_row_groups(inner + begin, inner + end, body); });
  }
  /// out = dropout(in) for elements [begin, end) of n × h.
  static void drop(Index begin, Index end, const S* in, const DropoutMask& mask, const Dropout& dropout, S* out) {
    const S factor = static_cast<S>(dropout.scale());
    for_tiles<S>(begin, end,
                 [&]<class T>(auto i) { i.store(out + i, dropped(i.load(in + i), mask.bits(), i, factor)); });
  }
  /// Draws a mask immediately, or later together with others.
  void draw(DropoutMask& mask, const Dropout& dropout) {
    if (graph.part() == nullptr) {
      masks.add(mask, dropout);
    } else {
      mask.draw(execution, dropout);
    }
  }
  /// Calls begin(sums) for every chunk, and body(chunk, first, count, sums) for the groups of the chunk. Each chunk has
  /// its own sums.
  template <class Body, class Begin>
  void for_chunks(const Body& body, const Begin& begin) {
    chunks.for_each(execution, [&](Index chunk, Index from, Index to) {
      S* sums = partial.data() + chunk * partial_size;
      begin(sums);
      for_row_groups(from, to, [&](Index first, Index count) { body(chunk, first, count, sums); });
    });
  }
  /// Adds the sums [offset, offset + size) of all other chunks to the sums of the first chunk.
  [[nodiscard]] const S* sum_chunks(Index offset, Index size) {
    S* total = partial.data() + offset;
    if (chunks.count == 1) return total;
    parallel_for(execution, size, 256, [&](Index begin, Index end) {
      for (Index chunk = 1; chunk < chunks.count; ++chunk) {
        const S* one = total + chunk * partial_size;
        for_tiles<S>(begin, end,
                     [&]<class T>(auto i) { i.store(total + i, i.load(total + i) + i.load(one + i)); });
      }
    });
    return total;
  }
  /// For one pair of learners that serves all layers: computes the derivatives of its weights and of its input from the
  /// derivatives of its distributions. \param read  X_1, or the output of the learners' encoder
  void finish_posterior(const S* read) requires Bayesian {
    if (learns_per_layer()) return;
    const Index h = model.hidden_width();
    NodeLearnerPair<S>& learner = learners[0];
    for_posterior(
        [&](Index begin, Index end) { posteriors[0].end_backward(begin, end, learner.raw(), learner.raw_bar()); });
    const bool apart = learner_encoder.has_value();
    S* to = apart ? x_bar.data() : embedding_bar.data();
    learner.begin_backward();
    for (Index r = 0; r < learner.backward_rounds(); ++r) {
      if (r > 0) learner.end_backward_round(r - 1);
      for_chunks(
          [&](Index chunk, Index first, Index count, S* sums) {
            learner.backward_rows(r, chunk, first, count, read + first * h, to + first * h, !apart, sums);
          },
          [&](S* sums) {
            if (r == 0) std::fill_n(sums, learner.partial_size(), S(0));
          });
    }
    learner.add_partial(sum_chunks(0, learner.partial_size()), weights_bar.learners[0]);
    if (apart) learner_encoder->backward(execution, matrix(x_bar), weights_bar.learner_encoder);
  }

  std::optional<DirectedArcs> listed;
  ArcLists arcs;
  Index channels;
  SparseInput<S> input;
  NodeDegrees<S> degrees;
  ActivatedEncoder<S> encoder;
  std::optional<ActivatedEncoder<S>> learner_encoder;
  std::vector<NodeLearnerPair<S>> learners;  ///< one per layer, or one for all layers: learns_per_layer()
  std::vector<VariationalNodeMaps<D, S>>
      posteriors;                             ///< one per pair of learners in Bayesian models, otherwise empty
  std::vector<NodeMapRows<D, S>> given_maps;  ///< one element per layer; empty: the model's maps
  ReadoutHead<S> output;
  NodeMapsGradient<D, S> maps_gradient;
  NodeChunks chunks;
  CooperativeWorkspace<S> work;
  std::vector<Stage> stages;
  MaskDrawing masks;
  Buffer<S> last;  ///< X_{L+1} at the requested nodes
  Buffer<S> bar, x_bar, embedding_bar;
  /// Sums per chunk: [leaving a layer of even index | of odd index | entering a layer | its learners]. Even and odd
  /// layers have separate sums, because the sums of leaving layer l − 1 begin before the sums of layer l are added up.
  Buffer<S> partial;
  Index leave_size = 0, enter_size = 0, partial_size = 0;

 private:
  /// Gives the nodes and features of a part of a graph the dropout masks that they have in the whole graph.
  void address_masks(const PartNumbers& part, const std::vector<Index>& first_entry) {
    const auto rows = runs_of_rows(part, model.hidden_width());
    const auto learned = runs_of_rows(part, model.options().learner_width);
    encoder.linear.entry_mask().set_runs(runs_of_entries(part, first_entry, input));
    for (Stage& stage : stages) {
      stage.mask.set_runs(rows);
      stage.layer.mask().set_runs(rows);
    }
    for (NodeLearnerPair<S>& pair : learners) {
      pair.for_masks([&](int, Index, DropoutMask& mask) { mask.set_runs(learned); });
    }
  }
  static const Graph& checked(const Graph& graph, const DirectedArcs* given) {
    require(given == nullptr || graph.part() == nullptr, "graph", "a part of a larger one",
            "given arcs need a whole graph; on a part, the option directed takes the arcs of the graph");
    const Index nodes = given != nullptr ? given->lists().nodes : graph.node_count();
    require(nodes == graph.node_count(), "nodes of the arcs", nodes,
            concat("must equal the number of nodes, ", graph.node_count()));
    return graph;
  }
};

}  // namespace sheafnn::detail
