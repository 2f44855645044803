/// \file
/// BatchSheafLearner: raw parameters of every restriction map and edge weights from node embeddings, for a batch of
/// runs. For one network, with the formulas: layers/sheaf_learner.hpp. Over a hypergraph, without edge weights and hidden
/// layers: layers/incidence_learner.hpp. A table of spreads by labels of edges may take its place
/// (layers/labelled_spread.hpp). Raw outputs are then its product with a matrix that has a 1 at the label of each pair.
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/learner_kernels.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/batch/sparse_product.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/layers/hypergraph_setting.hpp"
#include "sheafnn/layers/sheaf_learner.hpp"

namespace sheafnn::batch::detail {

/// Buffers and passes of one sheaf learner of all runs: of their embeddings, or of what each of their copies has made of them.
///
/// \tparam View  of the graph
template <class Executor, class S, class View = GraphView<S>>
class BatchSheafLearner {
  static constexpr bool of_edges = std::is_same_v<View, GraphView<S>>;

 public:
  BatchSheafLearner() = default;
  /// \param batch   how many copies of a run have inputs of their own
  /// \param labels  of the incident pairs, if there is a table: 2m rows with a 1 each; must outlive the learner
  BatchSheafLearner(Executor& executor, const View& graph, const layers::SheafLearnerOptions& shape,
                    const layers::SheafLearnerWeights<layers::ParameterSlot>& at,
                    const layers::ParameterSet<S>& parameters, const BatchSize& batch, PartialSums& sums,
                    const InputFeatures<Executor, S>* labels = nullptr)
      : graph_(graph),
        inputs_(shape.inputs),
        outputs_(shape.outputs()),
        width_(shape.width),
        runs_(batch.runs) {
    if constexpr (!of_edges) factor_ = sheafnn::detail::mean_factor<S>(shape);
    const auto numbers = [&](Index size) { return Array<Executor, S>(executor, "sheaf learner", size); };
    const auto array = [&](Index size) { return numbers(batch.instances() * size); };
    const auto bar = [&](Index size) { return numbers(batch.training_instances() * size); };
    if (labels != nullptr) {
      outputs_ = shape.spread;
      table_.emplace(executor, *labels, outputs_, parameters.info(at.spread).offset, batch, false);
      raw_ = array(graph.pairs() * outputs_);
      raw_bar_ = bar(graph.pairs() * bar_row());
      return;
    }
    hidden_layers_ = shape.hidden_layers;
    first_outputs_ = hidden_layers_ > 0 ? width_ : outputs_;
    first_.inputs = inputs_;
    first_.pair = layers::LearnerColumns<Divisor>(shape);
    first_.arc_features = shape.edge_features;
    const auto offset = [&](layers::ParameterId id) { return parameters.info(id).offset; };
    const auto add_first = [&](layers::ParameterId id, Index rows, bool whole_pair = false) {
      if (id < 0 || rows == 0) return;
      const Index columns = whole_pair ? 2 * inputs_ : shape.first_inputs();
      first_.matrix[first_.count++] = {
          offset(id), first_.columns, rows, columns, whole_pair ? LearnerInput::concatenation : shape.input,
          whole_pair, first_.entries};
      first_.columns = first_.columns + rows;
      first_.entries = first_.entries + rows * columns;
    };
    if (hidden_layers_ > 0) {
      add_first(at.hidden.front(), width_);
    } else {
      add_first(at.mean, shape.mean);
      add_first(at.spread, shape.spread);
    }
    add_first(at.edge, 1, true);
    if (first_.columns == 0) return;
    const Index pairs = graph.pairs(), q = first_.columns;
    require_countable("projections of the sheaf learner", batch.copies * graph.nodes * 2 * q);
    require_countable("weights of the sheaf learner", assembled());
    weight_ = numbers(runs_ * assembled());
    projection_ = array(graph.nodes * 2 * q);
    raw_ = array(pairs * outputs_);
    raw_bar_ = bar(pairs * bar_row());
    if (at.edge >= 0) {
      edge_factor_ = array(pairs);
      edge_logit_bar_ = bar(pairs);
      edge_weight_ = array(graph.edges);
    }
    if constexpr (!of_edges) {
      require_countable("projections of the sheaf learner", graph.hyperedges * q);
      of_hyperedge_ = array(graph.hyperedges * q);
    }
    const RowChunks nodes{batch.training_copies * graph.nodes};
    first_sums_ = sums.reserve(nodes.count(), first_.entries);
    for (int k = 0; k < first_.count; ++k) {
      const FirstWeight& w = first_.matrix[k];
      sums.assign(w.parameter, w.rows * w.columns, first_sums_ + w.offset, nodes.count(), first_.entries, 1, false,
                  static_cast<double>(factor_));
    }
    if (hidden_layers_ == 0) return;
    hidden_layer_ = batch.instances() * pairs * width_;
    hidden_ = numbers(hidden_layers_ * hidden_layer_);
    for (Array<Executor, S>& hidden_bar : hidden_bar_) hidden_bar = bar(pairs * width_);
    // Weights after the first layer read hidden outputs of all pairs.
    for (Index k = 1; k < hidden_layers_; ++k) {
      deep_.push_back({offset(at.hidden[static_cast<std::size_t>(k)]), width_, k - 1, 0, 0});
    }
    if (shape.mean > 0) deep_.push_back({offset(at.mean), shape.mean, hidden_layers_ - 1, 0, 0});
    if (shape.spread > 0) {
      deep_.push_back({offset(at.spread), shape.spread, hidden_layers_ - 1, shape.mean, 0});
    }
    const RowChunks rows{batch.training_copies * pairs};
    for (DeepWeight& w : deep_) {
      w.sums = sums.reserve(rows.count(), w.rows * width_);
      sums.assign(w.parameter, w.rows * width_, w.sums, rows.count(), w.rows * width_);
    }
  }

  /// Makes all runs read the same embeddings, n × h, from now on.
  void share_input() noexcept { shared_ = true; }

  // All arrays belong to the instances of the last project().

  /// Raw outputs, outputs() per incident pair.
  [[nodiscard]] PairArray<S> raw() noexcept { return pairs_of(raw_.data(), outputs_); }
  /// Their derivatives, to be filled before backward().
  [[nodiscard]] PairArray<S> raw_bar() noexcept {
    return {raw_bar_.data(), 1, bar_row(), graph_.pairs() * bar_row()};
  }
  /// Edge weights, m per instance; null without them. Their factors and the derivatives of ω·[Z_u‖Z_v], 2m per instance.
  [[nodiscard]] const S* edge_weight() const noexcept { return edge_weight_.data(); }
  [[nodiscard]] const S* edge_factor() const noexcept { return edge_factor_.data(); }
  [[nodiscard]] S* edge_logit_bar() noexcept { return edge_logit_bar_.data(); }

  /// The first step of a forward pass, to be launched before project().
  [[nodiscard]] Items<AssembleFirstLayer<S>> assemble(const ParameterView<S>& parameters) {
    return {assembled(), runs_, {first_, parameters.value, parameters.stride, weight_.data(), factor_}};
  }
  /// The second: projections of embeddings z (n × h per instance), which stay in place until backward(); or rows of the table.
  ///
  /// \param copies  of each run in z
  void project(Executor& executor, [[maybe_unused]] const ParameterView<S>& parameters, const S* z, Index copies = 1) {
    input_ = z;
    copies_ = copies;
    if (table_) table_->forward(executor, nullptr, parameters, false, raw_.data());
    if (first_.columns == 0) return;
    const Index q2 = 2 * first_.columns, rows = copies * graph_.nodes;
    executor.multiply(Product<S>{rows,
                                 q2,
                                 inputs_,
                                 runs_,
                                 {z, inputs_, input_run()},
                                 {weight_.data(), inputs_, assembled(), true},
                                 projection_.data(),
                                 q2,
                                 rows * q2});
    if constexpr (!of_edges) {
      sum_over_pairs(executor, graph_.hyperedges, graph_.member_offset, graph_.member, graph_.edge_node,
                     graph_.share, {projection_.data() + first_.columns, q2, graph_.nodes * q2}, of_hyperedges());
    }
  }
  /// The third: edge weights, and raw outputs or, with hidden layers, the first hidden values.
  [[nodiscard]] auto project_pairs() {
    if constexpr (of_edges) {
      return Items<ProjectPairs<S>>{first_.columns > 0 ? graph_.edges : 0,
                                    instances(),
                                    {graph_, projection_.data(), weight_.data() + 2 * first_.columns * inputs_,
                                     assembled(), copies_, first_.arc_features, first_.columns, first_outputs_,
                                     has_hidden_layers(),
                                     has_hidden_layers() ? hidden_pairs(hidden_.data()) : raw(),
                                     edge_factor_.data(), edge_weight_.data()}};
    } else {
      const Index q = first_.columns;
      return Items<ProjectIncidences<S>>{q > 0 ? graph_.pairs() : 0,
                                         instances(),
                                         {graph_,
                                          {projection_.data(), 2 * q, graph_.nodes * 2 * q},
                                          {of_hyperedge_.data(), q, graph_.hyperedges * q},
                                          outputs_,
                                          raw()}};
    }
  }
  [[nodiscard]] bool has_hidden_layers() const noexcept { return hidden_layers_ > 0; }
  /// Does project_pairs() give raw outputs? Otherwise hidden layers or a table do.
  [[nodiscard]] bool projects_raw() const noexcept { return !has_hidden_layers() && !table_; }
  /// The last, with hidden layers: from the first of them to raw outputs.
  void finish_hidden(Executor& executor, const ParameterView<S>& parameters) {
    const Index rows = copies_ * graph_.pairs(), size = graph_.pairs() * width_;
    for (const DeepWeight& w : deep_) {
      const bool last = w.input == hidden_layers_ - 1;
      S* out = last ? raw_.data() + w.column : hidden_layer(w.input + 1);
      const Index columns = last ? outputs_ : width_;
      executor.multiply(Product<S>{rows,
                                   w.rows,
                                   width_,
                                   runs_,
                                   {hidden_layer(w.input), width_, rows * width_},
                                   {parameters.value + w.parameter, width_, parameters.stride, true},
                                   out,
                                   columns,
                                   rows * columns});
      if (!last) executor.launch(size, instances(), EluInPlace<S>{out, size});
    }
  }

  /// Computes the embeddings' derivative from raw_bar() and edge_logit_bar(); first_products() must be launched after it.
  ///
  /// \param z_bar   n × h per instance; overwritten, or added to when `add`; null: not wanted
  /// \param others  parts that share a launch; they must not touch z_bar
  template <class... Others>
  void backward(Executor& executor, const ParameterView<S>& parameters, S* z_bar, bool add,
                const Others&... others) {
    const Index n = graph_.nodes, rows = copies_ * n, q = first_.columns;
    if (table_) {
      executor.launch_together(table_->column_products(raw_bar_.data()), others...);
      executor.launch_together(table_->gradient(parameters));
    } else if constexpr (sizeof...(Others) > 0) {
      if (q == 0) executor.launch_together(others...);
    }
    if (q == 0) {
      if (!add && z_bar != nullptr) executor.zero(z_bar, runs_ * rows * inputs_);
      return;
    }
    first_bar_ = hidden_layers_ > 0 ? backward_hidden(executor, parameters) : raw_bar();
    if constexpr (of_edges) {
      GatherProjections<S> gather{graph_, first_bar_,     edge_logit_bar_.data(),
                                  q,      first_outputs_, projection_.data()};
      gather.lanes = graph_.arc_lanes(gather.items() * instances());
      executor.launch_together(Teams{gather.items(), instances(), gather.lanes, gather}, others...);
    } else {
      const RunRows<const S> pairs{first_bar_.data, first_bar_.pair, first_bar_.run};
      const RunRows<S> own{projection_.data(), 2 * q, n * 2 * q}, mean{own.data + q, own.row, own.of_run};
      sum_over_pairs(executor, graph_.hyperedges, graph_.member_offset, graph_.member, nullptr, graph_.share,
                     pairs, of_hyperedges(), others...);
      sum_over_pairs(executor, n, graph_.offset, nullptr, nullptr, nullptr, pairs, own);
      sum_over_pairs(executor, n, graph_.offset, nullptr, graph_.hyperedge, nullptr,
                     {of_hyperedge_.data(), q, graph_.hyperedges * q}, mean);
    }
    if (z_bar == nullptr) return;
    executor.multiply(Product<S>{rows,
                                 inputs_,
                                 2 * q,
                                 runs_,
                                 {projection_.data(), 2 * q, rows * 2 * q},
                                 {weight_.data(), inputs_, assembled()},
                                 z_bar,
                                 inputs_,
                                 rows * inputs_,
                                 add});
  }
  /// After backward(): partial sums of the first layer's weight gradients.
  [[nodiscard]] Items<FirstLayerProducts<S>> first_products(const ParameterView<S>& parameters) const {
    const FirstLayerProducts<S> products{first_,
                                         graph_,
                                         input_,
                                         input_run(),
                                         projection_.data(),
                                         first_bar_,
                                         {copies_ * graph_.nodes},
                                         parameters.arena + first_sums_,
                                         parameters.arena_stride};
    return {products.items(), runs_, products};
  }

 private:
  /// The instances of the last project().
  [[nodiscard]] Index instances() const noexcept { return runs_ * copies_; }
  /// Distance from the embeddings of one run to the embeddings of the next.
  [[nodiscard]] Index input_run() const noexcept { return shared_ ? 0 : copies_ * graph_.nodes * inputs_; }
  /// W_b z̄_e of every hyperedge, or derivatives.
  [[nodiscard]] RunRows<S> of_hyperedges() noexcept {
    return {of_hyperedge_.data(), first_.columns, graph_.hyperedges * first_.columns};
  }
  /// Launches a SumOverPairs of all columns. \param others  parts that share the launch
  template <class... Others>
  void sum_over_pairs(Executor& executor, Index rows, const std::int32_t* offset, const std::int32_t* pair,
                      const std::int32_t* row_of, const S* factor, const RunRows<const S>& in,
                      const RunRows<S>& out, const Others&... others) {
    const Index items = rows * first_.columns;
    const int lanes = graph_.arc_lanes(items * instances());
    executor.launch_together(Teams{items, instances(), lanes,
                                   SumOverPairs<S>{offset, pair, row_of, factor, in, out, first_.columns, lanes}},
                             others...);
  }
  /// Entries of the first layer's matrices as AssembleFirstLayer writes them, per run.
  [[nodiscard]] Index assembled() const noexcept { return first_.columns * (2 * inputs_ + first_.arc_features); }
  /// A weight matrix after the first layer, rows × width, that reads hidden layer `input`. Its output is the next
  /// hidden layer, or raw outputs from `column` on.
  struct DeepWeight {
    Index parameter, rows, input, column, sums;
  };

  /// Distance between two pairs' derivatives of raw outputs, in values. They are gathered pair by pair, in whole tiles if no
  /// product reads them.
  [[nodiscard]] Index bar_row() const noexcept { return projects_raw() ? (outputs_ + 3) / 4 * 4 : outputs_; }
  /// Projected raw outputs lie entry by entry; matrix products need them pair by pair.
  [[nodiscard]] PairArray<S> pairs_of(S* data, Index count) const noexcept {
    const Index pairs = graph_.pairs();
    return projects_raw() ? PairArray<S>{data, pairs, 1, pairs * count}
                          : PairArray<S>{data, 1, count, pairs * count};
  }
  [[nodiscard]] PairArray<S> hidden_pairs(S* data) const noexcept {
    return {data, 1, width_, graph_.pairs() * width_};
  }
  [[nodiscard]] S* hidden_layer(Index layer) noexcept { return hidden_.data() + layer * hidden_layer_; }

  /// Through the layers after the first; returns the derivative of the first layer before activation.
  PairArray<S> backward_hidden(Executor& executor, const ParameterView<S>& parameters) {
    const Index rows = copies_ * graph_.pairs(), size = graph_.pairs() * width_;
    int into = 0;
    // hidden_bar_[into] holds the derivative of this layer's output, once it has one.
    Index pending = hidden_layers_;
    for (std::size_t k = deep_.size(); k-- > 0;) {
      const DeepWeight& w = deep_[k];
      const bool last = w.input == hidden_layers_ - 1;
      const bool first_of_layer = pending != w.input;
      const S* out_bar = last ? raw_bar_.data() + w.column : hidden_bar_[into].data();
      if (first_of_layer && !last) into = 1 - into;
      const Index columns = last ? outputs_ : width_;
      pending = w.input;
      const RowProducts<S> products{
          out_bar, w.rows,        columns, rows * columns, hidden_layer(w.input),     width_,
          width_,  rows * width_, {rows},  false,          parameters.arena + w.sums, parameters.arena_stride};
      executor.launch(products.items(), runs_, products);
      executor.multiply(Product<S>{rows,
                                   width_,
                                   w.rows,
                                   runs_,
                                   {out_bar, columns, rows * columns},
                                   {parameters.value + w.parameter, width_, parameters.stride},
                                   hidden_bar_[into].data(),
                                   width_,
                                   rows * width_,
                                   !first_of_layer});
      const bool complete = k == 0 || deep_[k - 1].input != w.input;
      if (complete) {
        executor.launch(size, instances(),
                        EluSlopeInPlace<S>{hidden_layer(w.input), hidden_bar_[into].data(), size});
      }
    }
    return hidden_pairs(hidden_bar_[into].data());
  }

  View graph_{};
  S factor_ = S(1);  ///< of the first layer's weights
  Index inputs_ = 0, outputs_ = 0, width_ = 0, hidden_layers_ = 0, first_outputs_ = 0, runs_ = 0, copies_ = 1;
  Index hidden_layer_ = 0;  ///< size of a hidden layer of all instances
  bool shared_ = false;     ///< do all runs read the same embeddings?
  FirstWeights first_;
  std::optional<BatchSparseProduct<Executor, S>> table_;  ///< in place of all weights
  Index first_sums_ = 0;
  const S* input_ = nullptr;
  PairArray<S> first_bar_;
  std::vector<DeepWeight> deep_;
  Array<Executor, S> weight_, projection_, raw_, raw_bar_, hidden_, hidden_bar_[2];
  Array<Executor, S> edge_factor_, edge_logit_bar_, edge_weight_;
  Array<Executor, S> of_hyperedge_;  ///< of a hypergraph
};

}  // namespace sheafnn::batch::detail
