/// \file
/// Kernels of the sheaf learner: from node projections to raw outputs per incident pair, edge weights, and back
/// (math: "First sheaf-learner layer, cheaply"; for one network layers/sheaf_learner.hpp).
#pragma once

#include <cmath>

#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/graph.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::batch {

/// K numbers of each incident pair of each run: number k of pair p at data + run · run_stride + k · entry + p ·
/// pair.
template <class S>
struct PairArray {
  S* data = nullptr;
  Index entry = 0, pair = 0, run = 0;

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S& at(Index r, Index p, Index k) const {
    return data[r * run + k * entry + p * pair];
  }
};

/// The matrices that read [Z_u ‖ Z_v]: rows [begin, begin + rows) of the learner's first layer.
struct FirstWeight {
  Index parameter = 0;  ///< offset of a rows × 2h matrix
  Index begin = 0, rows = 0;
};
/// At most a mean, a spread and an edge weight.
struct FirstWeights {
  FirstWeight matrix[3];
  int count = 0;
  Index columns = 0;  ///< q, all rows
};

/// The first layer as one matrix, 2q × h: rows of W_a, then rows of W_b. item: entry, group: run.
template <class S>
struct AssembleFirstLayer {
  FirstWeights weights;
  Index inputs;  ///< h
  const S* parameters;
  Index parameter_stride;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index i = item % inputs, row = item / inputs;
    const Index half = row / weights.columns, r = row % weights.columns;
    for (int k = 0; k < weights.count; ++k) {
      const FirstWeight& w = weights.matrix[k];
      if (r < w.begin || r >= w.begin + w.rows) continue;
      out[run * 2 * weights.columns * inputs + item] =
          parameters[run * parameter_stride + w.parameter + (r - w.begin) * 2 * inputs + half * inputs + i];
    }
  }
};

/// Adds node projections per incident pair: raw outputs, or ELU of the first hidden layer; and edge weights
/// w_e = sigmoid(ω·[Z_u‖Z_v]) sigmoid(ω·[Z_v‖Z_u]). item: edge, group: run.
template <class S>
struct ProjectPairs {
  GraphView<S> graph;
  const S* projection;  ///< n × 2q per run
  Index columns;        ///< q
  Index outputs;        ///< of them raw or hidden outputs
  bool hidden;          ///< apply ELU
  PairArray<S> out;
  S* edge_factor;  ///< 2m per run; null without edge weights
  S* edge_weight;  ///< m per run

  SHEAFNN_HD void operator()(Index edge, Index run) const {
    const S* rows = projection + run * graph.nodes * 2 * columns;
    const Index u = graph.edge_node[edge], v = graph.edge_node[graph.edges + edge];
    const S* end[2] = {rows + u * 2 * columns, rows + v * 2 * columns};
    S weight = S(1);
    for (int side = 0; side < 2; ++side) {
      const S* from = end[side];
      const S* to = end[1 - side] + columns;
      const Index pair = side * graph.edges + edge;
      for (Index k = 0; k < outputs; ++k) {
        const S value = from[k] + to[k];
        out.at(run, pair, k) = hidden ? elu(value) : value;
      }
      if (edge_factor == nullptr) continue;
      const S factor = sigmoid(from[columns - 1] + to[columns - 1]);
      edge_factor[run * graph.pairs() + pair] = factor;
      weight *= factor;
    }
    if (edge_factor != nullptr) edge_weight[run * graph.edges + edge] = weight;
  }
};

/// ELU in place; item: number, group: run.
template <class S>
struct EluInPlace {
  S* values;
  Index run_stride;
  SHEAFNN_HD void operator()(Index item, Index run) const {
    S& value = values[run * run_stride + item];
    value = elu(value);
  }
};
/// bar ∘ ELU′ in place, from ELU's value; item: number, group: run.
template <class S>
struct EluSlopeInPlace {
  const S* values;
  S* bar;
  Index run_stride;
  SHEAFNN_HD void operator()(Index item, Index run) const {
    bar[run * run_stride + item] *= elu_slope(values[run * run_stride + item]);
  }
};

/// Derivative of the projections: per node, the sum over its arcs (W_a's part) and over the reverse arcs (W_b's).
/// A team per (node, column), lanes over arcs; group: run.
template <class S>
struct GatherProjections {
  using Scalar = S;
  static constexpr int outputs = 2;
  GraphView<S> graph;
  PairArray<S> first_bar;   ///< derivative of the first layer before activation
  const S* edge_logit_bar;  ///< per pair and run, the last column; null without edge weights
  Index columns, raw_columns;
  S* out;  ///< n × 2q per run
  int lanes;

  SHEAFNN_HD void part(Index item, Index run, int lane, S* sums) const {
    const Index u = item / columns, k = item % columns, last = graph.offset[u + 1];
    for (Index arc = graph.offset[u] + lane; arc < last; arc += lanes) {
      const Index pair = graph.arc_pair[arc];
      const Index reverse = pair < graph.edges ? pair + graph.edges : pair - graph.edges;
      if (k < raw_columns) {
        sums[0] += first_bar.at(run, pair, k);
        sums[1] += first_bar.at(run, reverse, k);
      } else {
        sums[0] += edge_logit_bar[run * graph.pairs() + pair];
        sums[1] += edge_logit_bar[run * graph.pairs() + reverse];
      }
    }
  }
  SHEAFNN_HD void finish(Index item, Index run, const S* sums) const {
    S* row = out + (run * graph.nodes + item / columns) * 2 * columns + item % columns;
    row[0] = sums[0];
    row[columns] = sums[1];
  }
};

/// Partial sums of the first layer's weight gradients: item (chunk of nodes, row r, input t of 2h), group: run.
template <class S>
struct FirstLayerProducts {
  const S* z;  ///< n × h per run
  const S* projection_bar;
  Index inputs, columns;
  RowChunks chunks;
  S* out;
  Index out_run;

  [[nodiscard]] SHEAFNN_HD Index chunk_stride() const noexcept { return columns * 2 * inputs; }
  [[nodiscard]] Index items() const noexcept { return chunks.count() * chunk_stride(); }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index chunk = item / chunk_stride(), k = item % chunk_stride();
    const Index r = k / (2 * inputs), t = k % (2 * inputs);
    const S* left = projection_bar + run * chunks.rows * 2 * columns + (t / inputs) * columns + r;
    const S* right = z + run * chunks.rows * inputs + t % inputs;
    const Index end = chunks.end(chunk);
    S sum = S(0);
    for (Index u = chunks.begin(chunk); u < end; ++u) sum += left[u * 2 * columns] * right[u * inputs];
    out[run * out_run + item] = sum;
  }
};

}  // namespace sheafnn::batch
