/// \file
/// DiffusionOperator, a diffusion layer with maps that come from outside, and LearnerOperator, a sheaf learner with its maps, in an
/// executor's memory. They are for callers whose arrays lie in the same memory, as NetworkOperator (on the CPU
/// layers/sheaf_diffusion_layer.hpp, layers/sheaf_learner.hpp). Maps are arrays of the caller with one for each column of edges,
/// matrices row by row.
///
/// Unchecked: positions of parameters, and sizes of arrays.
/// Source: math: "The model" (3.6), "Backward pass of one diffusion step".
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/diffusion_layer.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/learner_kernels.hpp"
#include "sheafnn/batch/operator_kernels.hpp"
#include "sheafnn/batch/sheaf_backward_kernels.hpp"
#include "sheafnn/batch/sheaf_learner.hpp"
#include "sheafnn/bsnn/forward_pass.hpp"
#include "sheafnn/layers/sheaf_diffusion_layer.hpp"

namespace sheafnn::batch::detail {

/// Maps of columns as maps of incident pairs.
template <class Family, class S>
struct ColumnMaps {
  using Map = typename Family::template Map<S>;
  static constexpr int size = Family::map_size, columns = Map::ColsAtCompileTime;
  const std::int32_t* column_of_pair = nullptr;
  const S* values = nullptr;

  [[nodiscard]] SHEAFNN_HD Map operator()(Index, Index, Index pair) const {
    Map r = Map::Constant(S(1));
    const S* in = values + Index{column_of_pair[pair]} * size;
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) r(k / columns, k % columns) = in[k];
    return r;
  }
  SHEAFNN_HD void store(Index pair, const Map& map, S* out) const {
    out += Index{column_of_pair[pair]} * size;
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) out[k] = map(k / columns, k % columns);
  }
};

/// Derivatives of the maps of columns and of the weights of edges from the derivatives of the blocks. item: EdgeSide.
template <class Family, class S>
struct BackwardColumnMaps {
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  BlockGradient<S> gradient;
  ColumnMaps<Family, S> maps;
  const S* edge_weight;  ///< null: 1
  S *map_bar, *edge_weight_bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const EdgeSide at(item);
    typename Family::template Map<S> map, bar;
    S weight_bar = S(0);
    backward_side<Family, S>(graph, sheaf, gradient, range.slot(instance), at,
                             edge_weight == nullptr ? nullptr : edge_weight + at.edge, map, bar, weight_bar);
    maps.store(at.pair(graph.edges), bar, map_bar);
    if (edge_weight != nullptr && at.side == 0) edge_weight_bar[at.edge] = weight_bar;
  }
};

/// Maps of columns, and after them edge weights, from what a learner predicts. item: EdgeSide.
template <class Family, class S>
struct PredictColumns {
  Index edges;
  MeanMaps<Family, S> predicted;
  ColumnMaps<Family, S> maps;
  const S* edge_weight;  ///< null: none
  S *out, *edge_weight_out;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const EdgeSide at(item);
    const Index pair = at.pair(edges);
    maps.store(pair, predicted(instance, 0, pair), out);
    if (edge_weight != nullptr && at.side == 0) edge_weight_out[at.edge] = edge_weight[at.edge];
  }
};
/// Computes the derivatives of the learner's outputs from the derivatives of the maps. item: EdgeSide.
template <class Family, class S>
struct PredictColumnsBackward {
  Index edges;
  MeanMaps<Family, S> predicted;
  ColumnMaps<Family, S> map_bar;
  const S* edge_weight_bar;
  const S* edge_factor;  ///< null: there are no edge weights
  PairArray<S> raw_bar;
  S* edge_logit_bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    constexpr int size = PointMap<Family>::size, raw_size = sheafnn::detail::array_size(size);
    const EdgeSide at(item);
    const Index pair = at.pair(edges);
    S raw[raw_size], out[raw_size];
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) raw[k] = predicted.raw.at(instance, pair, k);
    predicted.point.backward(raw, map_bar(instance, 0, pair), out);
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) raw_bar.at(instance, pair, k) = out[k];
    if (edge_factor != nullptr) edge_logit_bar[pair] = logit_bar(edge_factor, edges, at, edge_weight_bar[at.edge]);
  }
};

}  // namespace sheafnn::batch::detail

namespace sheafnn::batch {

namespace detail {

/// What both operators consist of. Neither copied nor moved.
template <class Executor, class S>
class LayerOperator {
 protected:
  /// \param parameters      declared
  /// \param column_of_arc   of every arc of the graph
  LayerOperator(Executor& executor, const layers::ParameterTable& parameters, const Graph& graph,
                std::span<const Index> column_of_arc, bool augmented_filters)
      : executor_(executor),
        caller_(parameters.info()),
        graph_(executor, graph, 0, augmented_filters),
        parameters_(executor, "parameters", parameters.size()),
        gradient_(executor, "gradients", parameters.size()),
        runs_(executor, "runs", 1) {
    static_cast<layers::ParameterTable&>(table_) = parameters;
    std::vector<std::int32_t> columns;
    for (int side = 0; side < 2; ++side) {
      for (Index e = 0; e < graph.edge_count(); ++e) {
        const Index forward = graph.forward_arc(e), arc = side == 0 ? forward : graph.reverse(forward);
        columns.push_back(static_cast<std::int32_t>(column_of_arc[static_cast<std::size_t>(arc)]));
      }
    }
    column_of_pair_ = Array<Executor, std::int32_t>(executor, "graph", columns);
  }
  LayerOperator(const LayerOperator&) = delete;
  LayerOperator& operator=(const LayerOperator&) = delete;

  /// Once all parts have reserved their partial sums.
  void finish() {
    arena_ = Array<Executor, S>(executor_, "partial sums", sums_.arena());
    ranges_ = Array<Executor, PartialSum>(executor_, "partial sums", sums_.ranges());
    view_ = {parameters_.data(), gradient_.data(), parameters_.size(), arena_.data(), sums_.arena()};
  }
  void begin(const ForwardPass<S>& pass) {
    Run run;
    run.seed = pass.seed;
    run.epoch = pass.epoch;
    run.dropout = DropoutRule(pass.training ? pass.dropout : 0.0);
    pass_ = {.training = pass.training, .keep = true};
    executor_.launch(1, 1, SetRun{run, runs_.data()});
    caller_.load(executor_, parameters_.data());
  }
  void sum_gradients() { executor_.launch_together(detail::sum_gradients(sums_, 1, view_, ranges_.data())); }
  void copy(Index size, const S* from, S* to) { executor_.launch(size, 1, CopyToInstances<S>{from, size, 1, to}); }

  Executor& executor_;
  layers::ParameterSet<S> table_;  ///< without values
  CallerArrays<S> caller_;
  BatchGraph<Executor, S> graph_;
  Array<Executor, std::int32_t> column_of_pair_;
  Array<Executor, S> parameters_, gradient_, arena_;
  Array<Executor, PartialSum> ranges_;
  Array<Executor, Run> runs_;
  PartialSums sums_;
  ParameterView<S> view_;
  Pass pass_;
};

}  // namespace detail

/// X' = (1 + tanh ε) ∘ X − ELU(Δ_F (I ⊗ A) dropout(X) Bᵀ) on one graph, with gradients in X, A, B, ε, F and edge weights.
///
/// \tparam Family  of the maps F
template <class Executor, class Family, class S>
class DiffusionOperator : private detail::LayerOperator<Executor, S> {
  using Base = detail::LayerOperator<Executor, S>;
  using Base::executor_, Base::caller_, Base::graph_, Base::runs_, Base::view_, Base::pass_, Base::sums_,
      Base::table_;

 public:
  /// Positions of parameters besides the layer's own: of maps, and of m edge weights.
  static constexpr std::size_t maps = 3, edge_weights = 4;

  /// \param parameters  of the layer, declared: A and B where the options have them, then ε
  /// \param at          their places
  /// \param weighted    do edges have weights?
  /// \throws std::invalid_argument  a graph without nodes; as Array
  DiffusionOperator(Executor& executor, const layers::ParameterTable& parameters,
                    const layers::DiffusionWeights<layers::ParameterSlot>& at,
                    const layers::SheafDiffusionOptions& options, bool weighted, const Graph& graph,
                    std::span<const Index> column_of_arc)
      : Base(executor, parameters, graph, column_of_arc, options.normalisation != Normalisation::block),
        place_{at.left, at.right, at.epsilon},
        shape_{graph.node_count(),
               Family::stalk_dimension + options.add_lp + options.add_hp,
               options.channels,
               {}},
        sheaf_(executor, graph_.view(), 1, 1, options.normalisation, layers::LayerReads{}) {
    require(graph.node_count() >= 1, "nodes of the graph", graph.node_count(), "a layer needs at least one");
    int fixed = 0;
    if (options.add_lp) shape_.filter_sign[fixed++] = S(1);
    if (options.add_hp) shape_.filter_sign[fixed++] = S(-1);
    ModelLayout layout;
    layout.layers.push_back(at);
    detail::KlRows none;
    const detail::GraphView<S> g = graph_.view();
    const BatchSize one;
    const ResidualOptions residual;
    const AttentionOptions attention;
    const DirectedOptions directed;
    layer_.emplace(detail::BatchLayerSetting<Executor, S>{0, executor, g, shape_, layout, options.activation,
                                                          options.left, options.right, filter_, residual,
                                                          attention, directed, table_, one, true, sums_, none});
    right_ = detail::RightTransposes<Executor, S>(executor, layout.layers, table_, options.channels, 1);
    scratch_ = detail::LayerScratch<Executor, S>(executor, shape_.size(), filter_.steps(), false, false, false,
                                                 false, g.walk_rows() * shape_.row());
    const auto array = [&](Index size) { return Array<Executor, S>(executor, "layers", size); };
    for (Array<Executor, S>* one_of : {&x_, &x_bar_}) *one_of = array(shape_.size());
    for (Array<Executor, S>* one_of : {&map_, &map_bar_}) *one_of = array(graph.arc_count() * Family::map_size);
    for (Array<Executor, S>* one_of : {&weight_, &weight_bar_}) *one_of = array(weighted ? graph.edge_count() : 0);
    this->finish();
  }

  /// As in NetworkOperator, by position: A, B and ε, then `maps` and `edge_weights`.
  void set_parameter(std::size_t number, const S* values) {
    if (number == maps) {
      this->copy(map_.size(), values, map_.data());
    } else if (number == edge_weights) {
      this->copy(weight_.size(), values, weight_.data());
    } else {
      caller_.set(place_[number], values);
    }
  }
  /// \param x, out  n × d' × f
  void forward(const ForwardPass<S>& pass, const S* x, S* out) {
    this->begin(pass);
    drop_ = pass.training && pass.dropout > 0;
    this->copy(shape_.size(), x, x_.data());
    compute();
    this->copy(shape_.size(), layer_->output(), out);
  }
  /// The backward pass of the last forward(); may be called again.
  ///
  /// \param out_bar, x_bar  n × d' × f; null x_bar: not wanted
  void backward(const S* out_bar, S* x_bar) {
    this->copy(shape_.size(), out_bar, x_bar_.data());
    layer_->backward(call(), false, x_bar_.data(), Items<detail::RowProducts<S>>{});
    const detail::LayerProducts<S> products = layer_->products(pass_, view_, scratch_);
    if constexpr (sheaf::is_learned<Family>) {
      executor_.launch_together(sheaf_.backward_nodes(pass_, range), products.left, products.right);
      executor_.launch(graph_.view().pairs(), 1,
                       detail::BackwardColumnMaps<Family, S>{graph_.view(), range, sheaf_.view(),
                                                             sheaf_.gradient(), column_maps(), weight(),
                                                             map_bar_.data(), weight_bar_.data()});
    } else {
      executor_.launch_together(products.left, products.right);
      if (weight_bar_.size() > 0) executor_.zero(weight_bar_.data(), weight_bar_.size());
    }
    this->sum_gradients();
    if (x_bar != nullptr) this->copy(shape_.size(), x_bar_.data(), x_bar);
  }
  /// As in NetworkOperator, by position; after backward().
  void add_gradient(std::size_t number, S* values) {
    if (number == maps) {
      this->copy(map_bar_.size(), map_bar_.data(), values);
    } else if (number == edge_weights) {
      this->copy(weight_bar_.size(), weight_bar_.data(), values);
    } else {
      caller_.add_gradient(place_[number], values);
    }
  }
  void store_gradients() { caller_.store(executor_, this->gradient_.data()); }

 private:
  static constexpr detail::SheafRange range{1, 0, 1};

  [[nodiscard]] const S* weight() const noexcept { return weight_.size() > 0 ? weight_.data() : nullptr; }
  [[nodiscard]] detail::ColumnMaps<Family, S> column_maps() const noexcept {
    return {this->column_of_pair_.data(), map_.data()};
  }
  [[nodiscard]] detail::BatchLayerCall<Executor, Family, S> call() {
    return {executor_, runs_.data(), pass_, view_,   right_, sheaf_,
            range,     scratch_,     false, nullptr, range,  x_.data()};
  }
  void compute() {
    const auto dropped = detail::dropout_part(drop_, runs_.data(), pass_, Purpose::layer_dropout, 0, x_.data(),
                                              shape_.size(), layer_->dropped_input());
    executor_.launch_together(right_.transpose(view_), dropped);
    if constexpr (sheaf::is_learned<Family>) {
      sheaf_.build(executor_, pass_, range, column_maps(), weight());
    } else {
      sheaf_.build(executor_, pass_, range, detail::FixedMaps<Family, S>{}, weight());
    }
    layer_->forward(call(), x_.data(), x_.data(), drop_, nullptr);
  }

  layers::ParameterId place_[3];
  detail::FeatureShape<S> shape_;
  detail::BatchFilter<Executor, S> filter_;  ///< none
  std::optional<detail::BatchDiffusionLayer<Executor, Family, S>> layer_;
  detail::BatchSheaf<Executor, Family, S> sheaf_;
  detail::RightTransposes<Executor, S> right_;
  detail::LayerScratch<Executor, S> scratch_;
  Array<Executor, S> x_, x_bar_, map_, map_bar_, weight_, weight_bar_;
  bool drop_ = false;
};

/// A sheaf learner on one graph. From embeddings it predicts the maps of columns and, after them, m edge weights, if it has some.
///
/// \tparam Family  of the maps
template <class Executor, class Family, class S>
class LearnerOperator : private detail::LayerOperator<Executor, S> {
  using Base = detail::LayerOperator<Executor, S>;
  using Base::executor_, Base::caller_, Base::graph_, Base::view_, Base::sums_, Base::table_;

 public:
  /// \param parameters  of the learner, declared; `at` are their places
  /// \throws std::invalid_argument  a graph without nodes; as Array
  LearnerOperator(Executor& executor, const layers::ParameterTable& parameters,
                  const layers::SheafLearnerWeights<layers::ParameterSlot>& at,
                  const layers::SheafLearnerOptions& options, const PointMap<Family>& point, const Graph& graph,
                  std::span<const Index> column_of_arc)
      : Base(executor, parameters, graph, column_of_arc, false),
        point_(point),
        size_(graph.node_count() * options.inputs),
        maps_size_(graph.arc_count() * Family::map_size),
        weights_(options.edge_weights ? graph.edge_count() : 0),
        learner_(executor, graph_.view(), options, at, table_, BatchSize{}, sums_),
        x_(executor, "embeddings", size_),
        x_bar_(executor, "embeddings", size_) {
    require(graph.node_count() >= 1, "nodes of the graph", graph.node_count(), "a learner needs at least one");
    this->finish();
  }

  /// As in NetworkOperator, by position.
  void set_parameter(std::size_t number, const S* values) {
    caller_.set(static_cast<layers::ParameterId>(number), values);
  }
  /// \param x    n × h
  /// \param out  2m × map_size, then m
  void forward(const ForwardPass<S>& pass, const S* x, S* out) {
    this->begin(pass);
    this->copy(size_, x, x_.data());
    executor_.launch_together(learner_.assemble(view_));
    learner_.project(executor_, view_, x_.data());
    executor_.launch_together(learner_.project_pairs());
    learner_.finish_hidden(executor_, view_);
    executor_.launch(graph_.view().pairs(), 1,
                     detail::PredictColumns<Family, S>{graph_.view().edges, predicted(), columns(nullptr),
                                                       weights_ > 0 ? learner_.edge_weight() : nullptr, out,
                                                       out + maps_size_});
  }
  /// The backward pass of the last forward(); may be called again.
  ///
  /// \param x_bar  n × h; null: not wanted
  void backward(const S* out_bar, S* x_bar) {
    executor_.launch(graph_.view().pairs(), 1,
                     detail::PredictColumnsBackward<Family, S>{graph_.view().edges, predicted(), columns(out_bar),
                                                               out_bar + maps_size_,
                                                               weights_ > 0 ? learner_.edge_factor() : nullptr,
                                                               learner_.raw_bar(), learner_.edge_logit_bar()});
    learner_.backward(executor_, view_, x_bar_.data(), false);
    executor_.launch_together(learner_.first_products(view_));
    this->sum_gradients();
    if (x_bar != nullptr) this->copy(size_, x_bar_.data(), x_bar);
  }
  void add_gradient(std::size_t number, S* values) {
    caller_.add_gradient(static_cast<layers::ParameterId>(number), values);
  }
  void store_gradients() { caller_.store(executor_, this->gradient_.data()); }

 private:
  [[nodiscard]] detail::ColumnMaps<Family, S> columns(const S* values) const noexcept {
    return {this->column_of_pair_.data(), values};
  }
  [[nodiscard]] detail::MeanMaps<Family, S> predicted() { return {learner_.raw(), point_}; }

  PointMap<Family> point_;
  Index size_, maps_size_, weights_;
  detail::BatchSheafLearner<Executor, S> learner_;
  Array<Executor, S> x_, x_bar_;
};

}  // namespace sheafnn::batch
