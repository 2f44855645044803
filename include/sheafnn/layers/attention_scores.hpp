/// \file
/// AttentionScores: what the attention of a node over its neighbours and itself is made of, with its backward pass. Heads k
/// have queries q and keys p, rows of h values,
///
///     p_k = W_kᵀ a_k,own,   q_k = W_kᵀ a_k,other,   s_u^k = ⟨p_k, x_u⟩,   t_v^k = ⟨q_k, x_v⟩
///     e_uv^k = LeakyReLU_0.2(s_u^k + t_uv^k) + σ ε,   Λ_uv = (1/K) Σ_k softmax over v of e_uv^k
///
/// Without transport t_uv = t_v; a layer that transports features sets t_uv itself. The noise σ ε is added with the option
/// `random`, and with it KL(N(e, σ²) ‖ N(0, 1)), the mean over all scores. A score of node u is one of its arcs or, after the
/// arcs of all nodes, its own: their index is own(u). Source: math: "Sheaf attention" (3.46, 3.48).
///
/// On a part of a graph the scores of owned nodes are computed, with t of the halo from its owners. The other scores stay 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/kernels/attention.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/layer_setting.hpp"
#include "sheafnn/layers/node_chunks.hpp"
#include "sheafnn/layers/noise.hpp"
#include "sheafnn/layers/weights.hpp"

namespace sheafnn::layers {

/// The weights of attention. \tparam T const S, S or ParameterSlot
template <class T>
struct AttentionWeights {
  DiffusionWeights<T> mixing;  ///< A and B of the layer; no ε
  WeightMatrix<T> weight;      ///< W, K g × h, head k in rows k g …
  WeightMatrix<T> vector;      ///< a, K × 2g, the half of the node itself first
  WeightVector<T> log_scale;   ///< log σ, one value; empty unless scores are random

  /// W and a uniform in ±1/√inputs, log σ = −2. Unchecked: the options are resolved.
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, LayerSetting of) {
    of.diffusion.residual = false;  // other layers of the network may have ε
    mixing.declare(list, of);
    const std::string number = std::exchange(list.suffix, "");
    const Index k = of.attention.heads, g = of.attention.width, h = of.coordinates * of.channels;
    const std::string name = "attention" + number;
    list.matrix(weight, {name, ".weight"}, k * g, h, uniform_values(h));
    list.matrix(vector, {name, ".vector"}, k, 2 * g, uniform_values(2 * g));
    if (of.attention.random) list.vector(log_scale, {name, ".log_scale"}, {1}, constant_values(-2));
    list.suffix = number;
  }
  /// \throws std::invalid_argument  a weight of another shape
  SHEAFNN_NOINLINE void check(const LayerSetting& of) const {
    mixing.check(of);
    const Index k = of.attention.heads, g = of.attention.width;
    require_array(weight, k * g, of.coordinates * of.channels, "attention weight");
    require_array(vector, k, 2 * g, "attention vector");
    if (of.attention.random) require_size(log_scale, 1, "attention scale");
  }
};

/// Buffers of one layer on one graph. Unchecked: shapes of weights and sizes of arrays, which the layer checks. Indices of
/// nodes and scores, and the order of the calls as in this class.
template <class S>
class AttentionScores {
 public:
  /// `graph` must outlive it. \param width  h
  AttentionScores(const Graph& graph, const AttentionOptions& options, Index width)
      : graph_(&graph),
        heads_(options.heads),
        width_(width),
        random_(options.random),
        keys_(options.heads * width),
        queries_(keys_.size()),
        own_(graph.node_count() * options.heads),
        other_(own_.size()),
        score_((graph.arc_count() + graph.node_count()) * options.heads),
        share_(score_.size()),
        mean_(graph.arc_count() + graph.node_count()),
        noise_(options.random ? score_.size() : 0) {}

  [[nodiscard]] Index heads() const noexcept { return heads_; }
  /// Scores of all nodes, in the whole graph if this is a part.
  [[nodiscard]] Index total() const noexcept {
    const GraphPart* part = graph_->part();
    if (part == nullptr) return graph_->arc_count() + graph_->node_count();
    return 2 * part->numbers().total_edges + part->numbers().total_nodes;
  }
  /// The index of a node's score of itself.
  [[nodiscard]] Index own(Index u) const noexcept { return graph_->arc_count() + u; }
  /// q_k.
  [[nodiscard]] const S* query(Index k) const noexcept { return queries_.data() + k * width_; }
  /// Λ of a score.
  [[nodiscard]] S weight(Index score) const noexcept { return mean_[score]; }
  /// Where t_uv^k of a score is, K values, to be set before attend() where features are transported.
  [[nodiscard]] S* transported(Index score) noexcept { return score_.data() + score * heads_; }
  /// After backward(): ē of a score, K values.
  [[nodiscard]] const S* score_bar(Index score) const noexcept { return share_.data() + score * heads_; }

  /// Keys, queries and s, t of a pass. \param x  own nodes × h \param transported  t is not read
  void begin(Execution execution, const AttentionWeights<const S>& weights, const S* x, bool transported,
             const Noise<S>& noise) {
    const Index g = weights.vector.columns() / 2;
    for (Index k = 0; k < heads_; ++k) {
      S *const key = keys_.data() + k * width_, *const query = queries_.data() + k * width_;
      std::fill_n(key, width_, S(0));
      std::fill_n(query, width_, S(0));
      for (Index r = 0; r < g; ++r) {
        const S* row = weights.weight.row(k * g + r).data();
        const S a = weights.vector(k, r), b = weights.vector(k, g + r);
        for (Index j = 0; j < width_; ++j) key[j] += a * row[j];
        for (Index j = 0; j < width_; ++j) query[j] += b * row[j];
      }
    }
    parallel_for(execution, graph_->own_node_count(), 16, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        for (Index k = 0; k < heads_; ++k) {
          own_[u * heads_ + k] = dot(keys_.data() + k * width_, x + u * width_);
          other_[u * heads_ + k] = dot(query(k), x + u * width_);
        }
      }
    });
    if (!transported) detail::fetch_halo(*graph_, other_.data(), heads_);
    if (!random_) return;
    scale_ = std::exp(weights.log_scale[0]);
    set_noise(execution, noise);
  }
  /// Scores of node u and, where it is wanted, its Λ. \param transported  t_uv have been set
  void attend(Index u, bool transported, bool wanted) {
    for (Index k = 0; k < heads_; ++k) {
      const S key = own_[u * heads_ + k];
      const auto set = [&](Index score, Index v) {
        S& e = score_[score * heads_ + k];
        e = kernels::attention_score(key + (transported ? e : other_[v * heads_ + k]));
      };
      for (Index arc = graph_->first_arc(u); arc < graph_->first_arc(u + 1); ++arc) set(arc, graph_->target(arc));
      set(own(u), u);
    }
    if (!wanted) return;
    for_scores(u, [&](Index score) { mean_[score] = S(0); });
    for (Index k = 0; k < heads_; ++k) {
      const kernels::AttentionHead<S> of = head(k);
      of.attend([&](const auto& use) { for_scores(u, use); }, own(u));
      for_scores(u, [&](Index score) { mean_[score] += of.part() * of.share_at(score); });
    }
  }
  /// The mean over all scores of ½(e² + σ² − 1) − log σ; 0 where they are not random. On a part of a graph, its share.
  [[nodiscard]] double kl() const {
    if (!random_) return 0;
    double sum = 0;
    for (const S e : score_) sum += static_cast<double>(e) * static_cast<double>(e);  // 0 unless owned
    return own_share() *
           kernels::attention_kl(sum / static_cast<double>(own_count() * heads_), static_cast<double>(scale_));
  }

  /// Computes ē from the derivatives of Λ at node u. \param bar  of every score; u's are read
  /// \param wanted  had the pass Λ of u?
  /// \param kl_share  weight of kl() / the number of scores
  /// \returns the derivative of log σ without kl()'s part
  S backward(Index u, const S* bar, bool wanted, S kl_share) {
    S scale_bar = S(0);
    for (Index k = 0; k < heads_; ++k) {
      const kernels::AttentionSums<S> sums =
          head(k).backward([&](const auto& use) { for_scores(u, use); }, bar, wanted, kl_share);
      scale_bar += sums.scale_bar;
      own_[u * heads_ + k] = sums.key_bar;  // s̄ in place of s
    }
    return scale_bar;
  }
  /// Derivatives of log σ from sums of what backward() returns.
  void add_scale(S sum, double kl_weight, const AttentionWeights<S>& weights_bar) const {
    if (random_)
      weights_bar.log_scale[0] +=
          sum + static_cast<S>(kl_weight * own_share()) * kernels::attention_kl_scale_bar(scale_);
  }
  /// Room of one chunk of nodes in `partial`: sums of p̄ and q̄.
  [[nodiscard]] Index partial_size() const noexcept { return 2 * heads_ * width_; }
  /// t̄ of all nodes, in place of t, from ē of all arcs that end at a node. Sums of the halo go to their owners.
  void add_arcs(Execution execution) {
    parallel_for(execution, graph_->node_count(), 16, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        for (Index k = 0; k < heads_; ++k) {
          S bar = share_[own(u) * heads_ + k];
          for (Index arc = graph_->first_arc(u); arc < graph_->first_arc(u + 1); ++arc) {
            bar += share_[graph_->reverse(arc) * heads_ + k];
          }
          other_[u * heads_ + k] = bar;
        }
      }
    });
    detail::give_halo_back(*graph_, other_.data(), heads_);
  }
  /// Adds Σ_k s̄_u^k p_k + t̄_u^k q_k to the row x_bar of node u, and s̄ x_u, t̄ x_u to the sums of p̄, q̄. Without transport
  /// add_arcs() came before; with it the layer has q̄ and its part of x̄.
  void features_backward(Index u, const S* x, S* x_bar, bool transported, S* partial) const {
    for (Index k = 0; k < heads_; ++k) {
      add_products(own_[u * heads_ + k], keys_.data() + k * width_, x, x_bar, partial + k * width_);
      if (transported) continue;
      add_products(other_[u * heads_ + k], query(k), x, x_bar, partial + (heads_ + k) * width_);
    }
  }
  /// Adds to the derivatives of W and a from sums of p̄ and q̄.
  void add_partial(const S* partial, const AttentionWeights<const S>& weights,
                   const AttentionWeights<S>& weights_bar) const {
    const Index g = weights.vector.columns() / 2;
    for (Index k = 0; k < heads_; ++k) {
      const S *const key_bar = partial + k * width_, *const query_bar = partial + (heads_ + k) * width_;
      for (Index r = 0; r < g; ++r) {
        const S* row = weights.weight.row(k * g + r).data();
        S* row_bar = weights_bar.weight.row(k * g + r).data();
        const S a = weights.vector(k, r), b = weights.vector(k, g + r);
        for (Index j = 0; j < width_; ++j) row_bar[j] += a * key_bar[j] + b * query_bar[j];
        weights_bar.vector(k, r) += dot(row, key_bar);
        weights_bar.vector(k, g + r) += dot(row, query_bar);
      }
    }
  }

 private:
  [[nodiscard]] kernels::AttentionHead<S> head(Index k) {
    return {heads_, k, score_.data(), share_.data(), random_ ? noise_.data() : nullptr, scale_};
  }
  /// use(score) for the arcs of u and its score of itself.
  template <class Use>
  void for_scores(Index u, const Use& use) const {
    for (Index arc = graph_->first_arc(u); arc < graph_->first_arc(u + 1); ++arc) use(arc);
    use(own(u));
  }
  /// Scores of this process's nodes, and their share of all.
  [[nodiscard]] Index own_count() const {
    const Index nodes = graph_->own_node_count();
    return graph_->first_arc(nodes) + nodes;
  }
  [[nodiscard]] double own_share() const {
    return static_cast<double>(own_count()) / static_cast<double>(total());
  }
  /// The index of a score in the whole graph, at which its noise lies.
  [[nodiscard]] Index address(Index score) const {
    if (graph_->part() == nullptr) return score;
    const PartNumbers& part = graph_->part()->numbers();
    const Index node = score - graph_->arc_count();
    return node < 0 ? part.arc[score] : 2 * part.total_edges + part.node[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] S dot(const S* a, const S* b) const {
    S sum = S(0);
    detail::for_tiles<S>(0, width_, [&]<class T>(auto i) { sum += reduce_add(i.load(a + i) * i.load(b + i)); });
    return sum;
  }
  /// x_bar += bar row, sum += bar x.
  void add_products(S bar, const S* row, const S* x, S* x_bar, S* sum) const {
    detail::for_tiles<S>(0, width_, [&]<class T>(auto i) {
      i.store(x_bar + i, i.load(x_bar + i) + T(bar) * i.load(row + i));
      i.store(sum + i, i.load(sum + i) + T(bar) * i.load(x + i));
    });
  }
  /// Noise of all scores, W scores at a time. Score i of the whole graph is number i of the stream, its heads are draws.
  void set_noise(Execution execution, const Noise<S>& noise) {
    if (noise.values != nullptr) {
      std::copy_n(noise.values, noise_.size(), noise_.data());
      return;
    }
    constexpr int W = lanes<S>;
    using P = Pack<S, W>;
    using Word = random::word_of_t<P>;
    const Index count = noise_.size() / heads_;
    parallel_for(execution, (count + W - 1) / W, 16, [&](Index begin, Index end) {
      for (Index first = begin * W; first < end * W && first < count; first += W) {
        std::uint32_t ids[W], upper[W];
        bool wide = false;
        for (int lane = 0; lane < W; ++lane) {
          const Index number = address(std::min(first + lane, count - 1));
          ids[lane] = static_cast<std::uint32_t>(number);
          upper[lane] = static_cast<std::uint32_t>(number >> 32);
          wide = wide || upper[lane] != 0;
        }
        for (Index k = 0; k < heads_; k += 4) {
          P block[4];
          detail::draw_lanes<4>(noise.stream, wide ? upper : nullptr, block,
                                [&](const Stream& stream, P* out) SHEAFNN_INLINE_LAMBDA {
                                  fill_normals<4>(out, stream, Word::load(ids), static_cast<std::uint32_t>(k / 4));
                                });
          for (Index i = 0; i < 4 && k + i < heads_; ++i) {
            S values[W];
            block[i].store(values);
            for (Index lane = 0; lane < W && first + lane < count; ++lane) {
              noise_[(first + lane) * heads_ + k + i] = values[lane];
            }
          }
        }
      }
    });
  }

  const Graph* graph_;
  Index heads_, width_;
  bool random_;
  Buffer<S> keys_, queries_;  ///< p_k and q_k
  Buffer<S> own_, other_;     ///< s and t, K values per node; after backward() s̄, after add_arcs() t̄
  Buffer<S> score_;           ///< e without noise, K values per score
  Buffer<S> share_;           ///< softmax of each head; after backward() ē
  Buffer<S> mean_;            ///< Λ
  Buffer<S> noise_;           ///< ε
  S scale_ = S(0);            ///< σ
};

}  // namespace sheafnn::layers
