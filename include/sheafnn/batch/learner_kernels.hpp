/// \file
/// Kernels of the sheaf learner: from node projections to raw outputs per incident pair, edge weights, and back. Source:
/// math: "First sheaf-learner layer, cheaply". For one network: layers/sheaf_learner.hpp. Over a hypergraph,
/// raw_i = W_a z_v + W_b z̄_e: layers/incidence_learner.hpp, math: "Hypergraphs".
#pragma once

#include <cstdint>

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/graph.hpp"
#include "sheafnn/batch/hypergraph.hpp"
#include "sheafnn/batch/tile.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/layers/learner_columns.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::batch::detail {

/// K values of each incident pair of each run or instance: value k of pair p at data + run · run_stride + k · entry + p ·
/// pair.
template <class S>
struct PairArray {
  S* data = nullptr;
  Index entry = 0, pair = 0, run = 0;

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S& at(Index r, Index p, Index k) const {
    return data[r * run + k * entry + p * pair];
  }
};

/// A matrix of the learner's first layer: its rows [begin, begin + rows).
struct FirstWeight {
  Index parameter = 0;  ///< offset of a rows × columns matrix
  Index begin = 0, rows = 0;
  Divisor columns = 0;  ///< of the pair's inputs and, after them, of the features of its arc
  LearnerInput input = LearnerInput::concatenation;  ///< what it reads of [Z_u ‖ Z_v]
  bool whole_pair = false;                           ///< column i multiplies entry i of [Z_u ‖ Z_v]
  Index offset = 0;                                  ///< of the matrix in one that has all rows, one after another
};
/// At most a mean, a spread and an edge weight, which reads [Z_u ‖ Z_v], whatever mean and spread read.
struct FirstWeights {
  FirstWeight matrix[3];
  int count = 0;
  Divisor columns = 0;  ///< q, all rows
  Divisor entries = 0;  ///< of all matrices
  Divisor inputs = 0;   ///< h
  layers::LearnerColumns<Divisor> pair;
  Divisor arc_features = 0;  ///< features of each arc that are read as well, apart from the edge weight

  [[nodiscard]] SHEAFNN_HD const FirstWeight& of_row(Index r) const {
    int k = 0;
    while (k + 1 < count && r >= matrix[k + 1].begin) ++k;
    return matrix[k];
  }
  /// Columns of a matrix that read the pair.
  [[nodiscard]] SHEAFNN_HD Index pair_columns(const FirstWeight& w) const {
    return 2 * (w.input == LearnerInput::concatenation ? inputs : pair.channels);
  }
  /// The column that entry i of [Z_u ‖ Z_v] is multiplied with.
  [[nodiscard]] SHEAFNN_HD Index column(const FirstWeight& w, Index i) const {
    return w.whole_pair ? i : pair.column(w.input, i);
  }
};

/// The first layer as one matrix, 2q × h: rows of W_a, then rows of W_b; after it W_e, q × arc features. item: entry,
/// group: run.
template <class S>
struct AssembleFirstLayer {
  FirstWeights weights;
  const S* parameters;
  Index parameter_stride;
  S* out;
  S factor = S(1);  ///< of the weights

  [[nodiscard]] SHEAFNN_HD Index pair_entries() const noexcept { return 2 * weights.columns * weights.inputs; }
  [[nodiscard]] SHEAFNN_HD Index size() const noexcept {
    return pair_entries() + weights.columns * weights.arc_features;
  }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index edge_item = item - pair_entries();
    const Index row = edge_item < 0 ? item / weights.inputs : edge_item / weights.arc_features;
    const Index r = row % weights.columns;
    const FirstWeight& w = weights.of_row(r);
    Index column = weights.pair_columns(w);
    if (edge_item < 0) {
      column = weights.column(w, row / weights.columns * weights.inputs + item % weights.inputs);
    } else {
      column += edge_item % weights.arc_features;
    }
    const S* from = parameters + run * parameter_stride + w.parameter + (r - w.begin) * w.columns;
    out[run * size() + item] = column < w.columns ? factor * from[column] : S(0);
  }
};

/// Adds node projections per incident pair, and W_e e_a of the arc's features: raw outputs, or ELU of the first hidden
/// layer; and edge weights w_e = sigmoid(ω·[Z_u‖Z_v]) sigmoid(ω·[Z_v‖Z_u]). item: edge, group: instance.
template <class S>
struct ProjectPairs {
  static constexpr bool both_pairs = true;  ///< of an edge are an item
  GraphView<S> graph;
  const S* projection;  ///< n × 2q per instance
  const S* arc_weight;  ///< W_e
  Index arc_weight_run;
  Divisor copies;  ///< of a run
  Index arc_features;
  Index columns;  ///< q
  Index outputs;  ///< of them raw or hidden outputs
  bool hidden;    ///< apply ELU
  PairArray<S> out;
  S* edge_factor;  ///< 2m per instance; null without edge weights
  S* edge_weight;  ///< m per instance

  SHEAFNN_HD void operator()(Index edge, Index instance) const {
    const S* rows = projection + instance * graph.nodes * 2 * columns;
    const Index u = graph.edge_node[edge], v = graph.edge_node[graph.edges + edge];
    const S* end[2] = {rows + u * 2 * columns, rows + v * 2 * columns};
    S weight = S(1);
    for (int side = 0; side < 2; ++side) {
      const S* from = end[side];
      const S* to = end[1 - side] + columns;
      const Index pair = side * graph.edges + edge;
      for (Index k = 0; k < outputs; ++k) {
        S value = from[k] + to[k];
        const S* w = arc_weight + instance / copies * arc_weight_run + k * arc_features;
        for (Index j = 0; j < arc_features; ++j) value += w[j] * graph.pair_feature[j * graph.pairs() + pair];
        out.at(instance, pair, k) = hidden ? layers::elu(value) : value;
      }
      if (edge_factor == nullptr) continue;
      const S factor = layers::sigmoid(from[columns - 1] + to[columns - 1]);
      edge_factor[instance * graph.pairs() + pair] = factor;
      weight *= factor;
    }
    if (edge_factor != nullptr) edge_weight[instance * graph.edges + edge] = weight;
  }
};

/// ELU in place; item: element, group: instance.
template <class S>
struct EluInPlace {
  S* values;
  Index stride;
  SHEAFNN_HD void operator()(Index item, Index instance) const {
    S& value = values[instance * stride + item];
    value = layers::elu(value);
  }
};
/// bar ∘ ELU′ in place, from ELU's value; item: element, group: instance.
template <class S>
struct EluSlopeInPlace {
  const S* values;
  S* bar;
  Index stride;
  SHEAFNN_HD void operator()(Index item, Index instance) const {
    bar[instance * stride + item] *= layers::elu_slope(values[instance * stride + item]);
  }
};

/// Derivative of the projections: per node, the sum over its arcs (W_a's part) and over the reverse arcs (W_b's).
/// A team per (node, four columns), lanes over arcs; group: instance.
template <class S>
struct GatherProjections {
  using Scalar = S;
  static constexpr int outputs = 8;
  GraphView<S> graph;
  PairArray<S> first_bar;   ///< derivative of the first layer before activation
  const S* edge_logit_bar;  ///< per pair and instance, the last column; null without edge weights
  Divisor columns;
  Index raw_columns;
  S* out;  ///< n × 2q per instance
  /// Tiles of columns; the last one is the edge weight's, where there is one.
  Divisor tiles = (raw_columns + 3) / 4 + (columns > raw_columns ? 1 : 0);
  int lanes = max_lanes;

  [[nodiscard]] Index items() const noexcept { return graph.nodes * tiles; }

  struct Place {
    Index instance = 0, row = 0, column = 0;
    ChannelRange range;
    std::int32_t first = 0, last = 0;  ///< arcs
  };
  [[nodiscard]] SHEAFNN_HD Place place(Index item, Index instance) const {
    const Index u = item / tiles, k = item % tiles * 4, left = raw_columns - k;
    Place r{instance, instance * graph.nodes + u,
            k,        {static_cast<int>(left < 4 ? left : 4), first_bar.pair % 4 == 0},
            0,        0};
    if (left <= 0) {  // the edge weight's column
      r.column = raw_columns;
      r.range = {1, false};
    }
    r.first = graph.offset[u];
    r.last = graph.offset[u + 1];
    return r;
  }

  SHEAFNN_HD void part(const Place& at, int lane, S* sums) const {
    const bool raw = at.column < raw_columns;
    const S* bar = raw ? first_bar.data + at.instance * first_bar.run + at.column
                       : edge_logit_bar + at.instance * graph.pairs();
    const Index row = raw ? first_bar.pair : 1;
    SHEAFNN_UNROLL_FOUR for (std::int32_t arc = at.first + lane; arc < at.last; arc += lanes) {
      const Index pair = graph.arc_pair[arc];
      const Index reverse = pair < graph.edges ? pair + graph.edges : pair - graph.edges;
      const Tile<S> own = at.range.load(bar + pair * row), other = at.range.load(bar + reverse * row);
      (Tile<S>::load(sums) + own).store(sums);
      (Tile<S>::load(sums + 4) + other).store(sums + 4);
    }
  }
  SHEAFNN_HD void finish(const Place& at, const S* sums) const {
    S* row = out + at.row * 2 * columns + at.column;
    SHEAFNN_UNROLL for (int c = 0; c < 4; ++c) {
      if (c < at.range.count) {
        row[c] = sums[c];
        row[columns + c] = sums[4 + c];
      }
    }
  }
};

/// Partial sums of the first layer's weight gradients over the nodes of all copies: item (chunk of nodes, entry of the
/// matrices), group: run.
template <class S>
struct FirstLayerProducts {
  FirstWeights weights;
  GraphView<S> graph;
  const S* z;   ///< n × h per instance
  Index z_run;  ///< from one run to the next; 0: all runs read the same
  const S* projection_bar;
  PairArray<S> first_bar;  ///< derivative of the first layer before activation
  RowChunks chunks;
  S* out;
  Index out_run;

  [[nodiscard]] Index items() const noexcept { return chunks.count() * weights.entries; }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index chunk = item / weights.entries, k = item % weights.entries;
    int m = 0;
    while (m + 1 < weights.count && k >= weights.matrix[m + 1].offset) ++m;
    const FirstWeight& w = weights.matrix[m];
    const Index row = w.begin + (k - w.offset) / w.columns, column = (k - w.offset) % w.columns;
    const Index begin = chunks.begin(chunk), end = chunks.end(chunk), pair_columns = weights.pair_columns(w);
    out[run * out_run + item] = column < pair_columns ? pair_sum(run, w, row, column, begin, end)
                                                      : arc_sum(run, row, column - pair_columns, begin, end);
  }

 private:
  /// Over the nodes, and the entries of [Z_u ‖ Z_v] that are multiplied with the column.
  [[nodiscard]] SHEAFNN_HD S pair_sum(Index run, const FirstWeight& w, Index row, Index column, Index begin,
                                      Index end) const {
    const Divisor& h = weights.inputs;
    const Index q = weights.columns;
    const layers::LearnerColumns<Divisor>::Numbers numbers(weights.pair, w.input, column);
    S sum = S(0);
    for (Index j = 0; j < (w.whole_pair ? 1 : numbers.count()); ++j) {
      const Index i = w.whole_pair ? column : numbers[j];
      const S* left = projection_bar + run * chunks.rows * 2 * q + i / h * q + row;
      const S* right = z + run * z_run + i % h;
      SHEAFNN_UNROLL_FOUR for (Index u = begin; u < end; ++u) sum += left[u * 2 * q] * right[u * h];
    }
    return sum;
  }
  /// Over the arcs of the nodes, with a feature of each.
  [[nodiscard]] SHEAFNN_HD S arc_sum(Index run, Index row, Index feature, Index begin, Index end) const {
    const Index nodes = graph.nodes, first = run * (chunks.rows / nodes);  // instance of the run's first copy
    S sum = S(0);
    for (Index copy = begin / nodes, u = begin % nodes; begin < end; ++copy, u = 0) {
      const Index last = u + end - begin < nodes ? u + end - begin : nodes;
      for (Index arc = graph.offset[u]; arc < graph.offset[last]; ++arc) {
        const Index pair = graph.arc_pair[arc];
        sum += first_bar.at(first + copy, pair, row) * graph.pair_feature[feature * graph.pairs() + pair];
      }
      begin += last - u;
    }
    return sum;
  }
};

/// Rows of a matrix of each run: entry c of row r at data + run · of_run + r · row + c.
template <class S>
struct RunRows {
  S* data = nullptr;
  Index row = 0, of_run = 0;

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S& at(Index run, Index r, Index c) const {
    return data[run * of_run + r * row + c];
  }
};

/// For every node or hyperedge the sum of rows over its pairs, times its factor. A team per (row of `out`, column), lanes
/// over pairs; group: run.
template <class S>
struct SumOverPairs {
  using Scalar = S;
  static constexpr int outputs = 1;
  const std::int32_t* offset;  ///< first pair of each row of `out`
  const std::int32_t* pair;    ///< the pair at a position of the list; null: the position itself
  const std::int32_t* row_of;  ///< of a pair: its row of `in`; null: itself
  const S* factor;             ///< per row of `out`; null: 1
  RunRows<const S> in;
  RunRows<S> out;
  Divisor columns;
  int lanes;

  SHEAFNN_HD void part(Index item, Index run, int lane, S* sums) const {
    const Index row = item / columns, column = item % columns;
    SHEAFNN_UNROLL_FOUR for (std::int32_t k = offset[row] + lane; k < offset[row + 1]; k += lanes) {
      const std::int32_t i = pair != nullptr ? pair[k] : k;
      sums[0] += in.at(run, row_of != nullptr ? row_of[i] : i, column);
    }
  }
  SHEAFNN_HD void finish(Index item, Index run, const S* sums) const {
    const Index row = item / columns;
    out.at(run, row, item % columns) = factor != nullptr ? factor[row] * sums[0] : sums[0];
  }
};

/// The raw outputs of a pair; item: pair, group: run.
template <class S>
struct ProjectIncidences {
  static constexpr bool both_pairs = false;
  IncidenceView<S> graph;
  RunRows<const S> of_node, of_hyperedge;
  Index outputs;
  PairArray<S> out;

  SHEAFNN_HD void operator()(Index pair, Index run) const {
    for (Index k = 0; k < outputs; ++k) {
      out.at(run, pair, k) =
          of_node.at(run, graph.edge_node[pair], k) + of_hyperedge.at(run, graph.hyperedge[pair], k);
    }
  }
};

}  // namespace sheafnn::batch::detail
