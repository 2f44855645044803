/// \file
/// Kernels of the scores of attention, and of their backward pass (math: "Sheaf attention" (3.46, 3.48); one head of a node:
/// kernels/attention.hpp; for one network layers/attention_scores.hpp). Kernels of features are in attention_walks.hpp.
///
/// A score of node u is one of its incident pairs or, after the pairs of all edges, its own. Keys p and queries q have h values
/// per head, first the keys of all heads.
#pragma once

#include <cmath>
#include <cstdint>

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/attention.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::batch::detail {

/// The scores of a graph.
template <class S>
struct ScoreShape {
  GraphView<S> graph;
  Divisor heads;

  [[nodiscard]] SHEAFNN_HD Index count() const noexcept { return graph.pairs() + graph.nodes; }
  /// The number of scores of all heads of an instance.
  [[nodiscard]] SHEAFNN_HD Index numbers() const noexcept { return count() * heads; }
  [[nodiscard]] SHEAFNN_HD Index own(Index u) const noexcept { return graph.pairs() + u; }
  /// The other pair of an edge.
  [[nodiscard]] SHEAFNN_HD Index reverse(Index pair) const noexcept {
    return pair < graph.edges ? pair + graph.edges : pair - graph.edges;
  }
  /// The node that a score belongs to, and the node that it scores.
  [[nodiscard]] SHEAFNN_HD Index node(Index score) const noexcept {
    return score < graph.pairs() ? graph.edge_node[score] : score - graph.pairs();
  }
  [[nodiscard]] SHEAFNN_HD Index target(Index score) const noexcept {
    return score < graph.pairs() ? graph.edge_node[reverse(score)] : score - graph.pairs();
  }
  /// use(pair) for the arcs that leave a node.
  template <class Use>
  SHEAFNN_HD SHEAFNN_INLINE void for_pairs(Index u, const Use& use) const {
    for (std::int32_t arc = graph.offset[u]; arc < graph.offset[u + 1]; ++arc) use(Index{graph.arc_pair[arc]});
  }
};

/// The positions of the weights W and a of attention, and of log σ, among the parameters of run 0.
struct AttentionPlaces {
  Index weight = 0, vector = 0, log_scale = -1;
  Index heads = 1, width = 1, row = 0;  ///< K, g, h

  /// Entry (k, r) of a, r < 2g; entry 0 of row r of W_k.
  [[nodiscard]] SHEAFNN_HD Index vector_at(Index k, Index r) const { return vector + k * 2 * width + r; }
  [[nodiscard]] SHEAFNN_HD Index weight_at(Index k, Index r) const { return weight + (k * width + r) * row; }
};

/// Keys and queries; item: (side, k, j), group: run.
template <class S>
struct MakeKeys {
  AttentionPlaces at;
  const S* parameters;
  Index stride;
  Divisor row;
  S* keys;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index line = item / row, j = item % row, side = line / at.heads, k = line % at.heads;
    const S* own = parameters + run * stride;
    S sum = S(0);
    for (Index r = 0; r < at.width; ++r) {
      sum += own[at.vector_at(k, side * at.width + r)] * own[at.weight_at(k, r) + j];
    }
    keys[(run * 2 * at.heads + line) * row + j] = sum;
  }
};

/// s and t of a node, one after another for all heads: a team per item (node, k), lanes over what scores read; group: instance.
template <class S>
struct NodeScores {
  using Scalar = S;
  static constexpr int outputs = 2;
  Divisor heads, copies;
  Index nodes, row;
  const S *keys, *source;
  S* out;
  int lanes;

  SHEAFNN_HD void part(Index item, Index instance, int lane, S* sums) const {
    const S* key = keys + (instance / copies * 2 * heads + item % heads) * row;
    const S* x = source + (instance * nodes + item / heads) * row;
    for (Index j = lane; j < row; j += lanes) {
      sums[0] += key[j] * x[j];
      sums[1] += key[heads * row + j] * x[j];
    }
  }
  SHEAFNN_HD void finish(Index item, Index instance, const S* sums) const {
    S* to = out + (instance * nodes + item / heads) * 2 * heads + item % heads;
    to[0] = sums[0];
    to[heads] = sums[1];
  }
};

/// ε of the scores; item: (score, a Philox block of four heads), group: instance.
template <class S>
struct ScoreNoise {
  ScoreShape<S> scores;
  const Run* runs;
  Pass pass;
  std::uint32_t layer;
  Divisor blocks;
  S* noise;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index score = item / blocks, block = item % blocks, first = 4 * block;
    const GraphView<S>& graph = scores.graph;
    const Index address = score < graph.pairs() ? Index{graph.pair_arc[score]} : score;
    const Stream stream = pass.stream(runs[pass.run_of(instance)], Purpose::layer_noise, layer, instance);
    const NormalBlock<S> drawn = normals_from_words<S>(
        stream.words(static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(block)));
    S* to = noise + instance * scores.numbers() + score * scores.heads + first;
    for (Index i = 0; i < 4 && first + i < scores.heads; ++i) to[i] = drawn.value[i];
  }
};

/// What Attend and its backward pass read and write of the scores.
template <class S>
struct ScoreArrays {
  ScoreShape<S> shape;
  S *score, *share;
  const S* noise;      ///< null: none
  const S* log_scale;  ///< of run 0; null: none
  Index parameter_stride;
  Divisor copies;

  [[nodiscard]] SHEAFNN_HD S scale_of(Index run) const {
    using std::exp;
    return log_scale != nullptr ? exp(log_scale[run * parameter_stride]) : S(0);
  }
  [[nodiscard]] SHEAFNN_HD kernels::AttentionHead<S> head(Index k, Index instance) const {
    const Index first = instance * shape.numbers();
    return {shape.heads,
            k,
            score + first,
            share + first,
            noise != nullptr ? noise + first : nullptr,
            scale_of(instance / copies)};
  }
};

/// Scores of a node and their softmax; item: (node, k), group: instance.
template <class S>
struct Attend {
  ScoreArrays<S> scores;
  const S* node;     ///< s and t
  bool transported;  ///< t is stored in place of the score

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const ScoreShape<S>& shape = scores.shape;
    const Index heads = shape.heads, u = item / shape.heads, k = item % shape.heads;
    const kernels::AttentionHead<S> head = scores.head(k, instance);
    const S* of_nodes = node + instance * shape.graph.nodes * 2 * heads + k;
    const S key = of_nodes[u * 2 * heads];
    const auto for_scores = [&](const auto& use) {
      shape.for_pairs(u, use);
      use(shape.own(u));
    };
    for_scores([&](Index i) {
      S& e = head.score[i * heads + k];
      e = kernels::attention_score(key + (transported ? e : of_nodes[(shape.target(i) * 2 + 1) * heads]));
    });
    head.attend(for_scores, shape.own(u));
  }
};

/// Λ of a score; group: instance.
template <class S>
struct MeanShares {
  ScoreArrays<S> scores;
  S* mean;

  SHEAFNN_HD void operator()(Index score, Index instance) const {
    const Index heads = scores.shape.heads;
    S sum = S(0);
    for (Index k = 0; k < heads; ++k) {
      const kernels::AttentionHead<S> head = scores.head(k, instance);
      sum += head.part() * head.share_at(score);
    }
    mean[instance * scores.shape.count() + score] = sum;
  }
};

/// The KL term of a layer, the mean over copies, in parts; item: chunk of the scores of a run, group: run.
template <class S>
struct ScoreKl {
  ScoreArrays<S> scores;
  RowChunks chunks;
  double* out;
  Index stride;

  SHEAFNN_HD void operator()(Index chunk, Index run) const {
    const S* score = scores.score + run * chunks.rows;
    double sum = 0;
    for (Index i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      sum += static_cast<double>(score[i]) * static_cast<double>(score[i]);
    }
    // The means of the chunks add up to the whole mean.
    const double mean = sum / static_cast<double>(chunks.rows), scale = static_cast<double>(scores.scale_of(run));
    out[run * stride + chunk] = chunk == 0 ? kernels::attention_kl(mean, scale) : 0.5 * mean;
  }
};

/// Computes the derivatives of s + t of the scores from Λ̄, in place of shares; item: (node, k), group: instance.
template <class S>
struct AttendBackward {
  ScoreArrays<S> scores;
  const Run* runs;
  const S* mean_bar;
  S* node_bar;   ///< s̄ of all heads, then room for t̄
  S* scale_bar;  ///< derivative of log σ, per item; null: none

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const ScoreShape<S>& shape = scores.shape;
    const Index heads = shape.heads, u = item / shape.heads, k = item % shape.heads;
    const auto for_scores = [&](const auto& use) {
      shape.for_pairs(u, use);
      use(shape.own(u));
    };
    const double weight = scores.noise != nullptr ? runs[instance / scores.copies].kl_weight : 0.0;
    const S kl_share = static_cast<S>(weight / static_cast<double>(scores.copies * shape.numbers()));
    const kernels::AttentionSums<S> sums =
        scores.head(k, instance).backward(for_scores, mean_bar + instance * shape.count(), true, kl_share);
    const Index node = instance * shape.graph.nodes + u;
    node_bar[node * 2 * heads + k] = sums.key_bar;
    if (scale_bar != nullptr) scale_bar[node * heads + k] = sums.scale_bar;
  }
};

/// t̄ of a node, from the scores of all nodes that score it; item: (node, k), group: instance.
template <class S>
struct TargetBars {
  ScoreShape<S> scores;
  const S* bar;  ///< of s + t
  S* node_bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index heads = scores.heads, u = item / scores.heads, k = item % scores.heads;
    const S* of = bar + instance * scores.numbers() + k;
    S sum = of[scores.own(u) * heads];
    scores.for_pairs(u, [&](Index pair) { sum += of[scores.reverse(pair) * heads]; });
    node_bar[((instance * scores.graph.nodes + u) * 2 + 1) * heads + k] = sum;
  }
};

/// Partial sums of p̄, then q̄, h values per head, and one of log σ: item (chunk of rows, column), group: run.
template <class S>
struct KeySums {
  AttentionPlaces at;
  const S *node_bar, *source;
  const S* scaled;  ///< what q̄ is a sum of, head by head; null: it is t̄ times what scores read
  Index head_stride;
  const S* scale_bar;
  RowChunks chunks;
  Divisor row, columns;  ///< one column more where scores have noise
  S* out;
  Index out_run;

  [[nodiscard]] Index items() const noexcept { return chunks.count() * columns; }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index chunk = item / columns, column = item % columns, line = column / row, j = column % row;
    const Index heads = at.heads, first = run * chunks.rows;
    S sum = S(0);
    const auto add = [&](const auto& term) {
      SHEAFNN_UNROLL_FOUR for (Index u = chunks.begin(chunk); u < chunks.end(chunk); ++u) sum += term(first + u);
    };
    if (line == 2 * heads) {
      add([&](Index u) {
        S all = S(0);
        for (Index k = 0; k < heads; ++k) all += scale_bar[u * heads + k];
        return all;
      });
    } else if (scaled != nullptr && line >= heads) {
      const S* of = scaled + (line - heads) * head_stride + j;
      add([&](Index u) { return of[u * row]; });
    } else {
      add([&](Index u) { return node_bar[u * 2 * heads + line] * source[u * row + j]; });
    }
    out[run * out_run + item] = sum;
  }
};
/// Their sums: a team of max_lanes per column; group: run.
template <class S>
struct KeyTotals {
  using Scalar = S;
  static constexpr int outputs = 1;
  const S* in;
  Index in_run, chunks, columns;
  S* total;

  SHEAFNN_HD void part(Index column, Index run, int lane, S* sums) const {
    for (Index chunk = lane; chunk < chunks; chunk += max_lanes) {
      sums[0] += in[run * in_run + chunk * columns + column];
    }
  }
  SHEAFNN_HD void finish(Index column, Index run, const S* sums) const { total[run * columns + column] = sums[0]; }
};

/// Computes the derivative of W from p̄ and q̄; item: (k, r, j), group: run.
template <class S>
struct KeyWeightBar {
  AttentionPlaces at;
  ParameterView<S> parameters;
  const S* total;
  Index columns;
  Divisor row, width;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index line = item / row, j = item % row, k = line / width, r = line % width;
    const S *value = parameters.value + run * parameters.stride, *bar = total + run * columns + k * row + j;
    parameters.gradient[run * parameters.stride + at.weight_at(k, r) + j] =
        value[at.vector_at(k, r)] * bar[0] + value[at.vector_at(k, at.width + r)] * bar[at.heads * row];
  }
};
/// The derivative of a, ⟨W_k row r, p̄_k or q̄_k⟩, and after it of log σ: a team of max_lanes per value; group: run.
template <class S>
struct KeyVectorBar {
  using Scalar = S;
  static constexpr int outputs = 1;
  AttentionPlaces at;
  ParameterView<S> parameters;
  const Run* runs;
  const S* total;
  Index columns;
  Divisor width;

  [[nodiscard]] Index items() const noexcept { return 2 * at.heads * at.width + (at.log_scale >= 0 ? 1 : 0); }

  SHEAFNN_HD void part(Index item, Index run, int lane, S* sums) const {
    const Index line = item / width, k = line / 2, side = line % 2;
    if (k == at.heads) return;
    const S* w = parameters.value + run * parameters.stride + at.weight_at(k, item % width);
    const S* bar = total + run * columns + (side * at.heads + k) * at.row;
    for (Index j = lane; j < at.row; j += max_lanes) sums[0] += w[j] * bar[j];
  }
  SHEAFNN_HD void finish(Index item, Index run, const S* sums) const {
    using std::exp;
    S* gradient = parameters.gradient + run * parameters.stride;
    if (item < 2 * at.heads * at.width) {
      gradient[at.vector + item] = sums[0];
    } else {
      const S scale = exp(parameters.value[run * parameters.stride + at.log_scale]);
      gradient[at.log_scale] = total[run * columns + columns - 1] +
                               static_cast<S>(runs[run].kl_weight) * kernels::attention_kl_scale_bar(scale);
    }
  }
};

}  // namespace sheafnn::batch::detail
