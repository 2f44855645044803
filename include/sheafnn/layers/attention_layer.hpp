/// \file
/// AttentionLayer: diffusion with weights of attention in place of a Laplacian,
///
///     Y = (I ⊗ A) X̃ Bᵀ,   M_u = Λ_uu Â_uu Y_u + Σ over arcs u → v of Λ_uv Â_uv Y_v,   X̃ = dropout(X)
///     X' = ELU(M),   or with the option `residual`   X' = X + ELU(M − Y)
///
/// with its backward pass. Â_uv is the transport Q_uv = F_aᵀ F_rev of arc a = u → v, and Â_uu = I; with the option
/// `normalised` Â = I − Δ, which is S_u Q_uv S_v and S_u². Λ is in attention_scores.hpp; scores read X̃, of the first layer X. With
/// the option `transported` they read Â_uv x_v in place of x_v: t_uv = ⟨q, Â_uv x_v⟩.
/// With identity maps, D = 1, A = I and one head it is a layer of GAT. Source: math: "Sheaf attention" (3.46, 3.47, 3.49); Barbero et
/// al. 2022, Sheaf Attention Networks.
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/arc_transports.hpp"
#include "sheafnn/layers/attention_scores.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/node_chunks.hpp"

namespace sheafnn::layers {

/// math: "Sheaf attention" (3.47).
template <RestrictionMapFamily Family, class S>
class AttentionLayer : public WeightedLayer<Family, S, AttentionWeights>, ArcTransports<Family, S> {
  using Base = WeightedLayer<Family, S, AttentionWeights>;
  using Base::graph_, Base::diffusion_, Base::setting_, Base::weights_, Base::weights_bar_, Base::nodes_,
      Base::output_;
  using Transports = ArcTransports<Family, S>;
  using Transports::for_arcs, Transports::gather, Transports::scale, Transports::add_scale_bar,
      Transports::normalised;
  using Sizes = BlockSizes<Family>;
  static constexpr int D = Family::stalk_dimension;
  static constexpr bool learned = is_learned<Family>;

 public:
  static constexpr LayerForm form = LayerForm::attention;

  /// Takes any setting.
  [[nodiscard]] static bool suits(const LayerSetting& of) { return of.form == form; }
  /// `graph` and `diffusion` must outlive the layer.
  ///
  /// \throws std::invalid_argument  a shape of another graph or family, fixed filters, a graph that is a part of another
  AttentionLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const LayerSetting& setting)
      : Base(graph, diffusion, setting),
        Transports(graph, diffusion, setting.attention.normalised),
        dropping_(graph.node_count(), diffusion.coordinates, diffusion.channels, false, false),
        mixing_(graph.node_count(), diffusion.coordinates, diffusion.channels, setting.diffusion.left,
                setting.diffusion.right),
        scores_(graph, setting.attention, diffusion.row()),
        chunks_(detail::chunks_of_groups(graph.node_count())),
        partial_(chunks_.count * (scores_.partial_size() + 1)),
        weight_bar_(graph.arc_count() + graph.node_count()) {
    this->require_no_filters(form);
    this->require_whole_graph(form);
    setting_.diffusion.residual = false;  // there is no ε
    const Index size = graph.node_count() * diffusion.row();
    if (normalised()) {
      scaled_.resize(size);
      gathered_.resize(size);
    }
    if (normalised() && transported()) scaled_source_.resize(size);
    if (transported()) source_bar_.resize(size);
    if (residual()) change_.resize(size);
  }
  AttentionLayer(const Graph&&, const DiffusionShape<S>&, const LayerSetting&) = delete;  // they would dangle
  AttentionLayer(const Graph&, const DiffusionShape<S>&&, const LayerSetting&) = delete;

  [[nodiscard]] DropoutMask& mask() noexcept override { return dropping_.mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override {
    return {.scores = setting_.attention.random ? setting_.attention.heads : 0};
  }
  [[nodiscard]] double kl() const override { return scores_.kl(); }

  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void forward(const LayerCall<Family, S>& call) override {
    this->begin(call);
    weights_.check(setting_);
    const Execution execution = call.execution;
    const S* const x = call.x.data();
    if (call.training || call.mixing != MixedFeatures::reuse) {
      dropping_.forward(execution, {}, x, call.active_dropout(), true, [](Index, Index, const S*) {});
      mixing_.forward(execution, weights_.mixing, dropping_.output(), {}, true, [](Index, Index, const S*) {});
    }
    source_ = setting_.number == 0 ? x : dropping_.output();
    if (normalised()) detail::scale_features(execution, *graph_, *diffusion_, call.sheaf, y(), scaled_.data());
    if (normalised() && transported()) {
      detail::scale_features(execution, *graph_, *diffusion_, call.sheaf, source_, scaled_source_.data());
    }
    scores_.begin(execution, weights_, source_, call.noise);
    parallel_for(execution, graph_->node_count(), 16, [&](Index begin, Index end) {
      for_nodes(begin, end, [&](Index u, Index index) {
        if (index < 0 && !setting_.attention.random) return;  // the KL term is a mean over all scores
        if (transported()) set_transported(call.sheaf, u);
        scores_.attend(u, transported(), index >= 0);
        if (index >= 0) move_to(call, u, index);
      });
    });
  }
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void backward(const LayerBackwardCall<Family, S>& call) override {
    this->check(call);
    this->check_scratch(call);
    weights_.check(setting_);
    const Execution execution = call.execution;
    S *const x_bar = call.x_bar.data(), *const y_bar = call.scratch[0].data(),
             *const work = call.scratch[1].data();
    scores_backward(call);
    parallel_for(execution, graph_->node_count(), 16, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) move_back(call, u);
    });
    mixing_.backward(execution, weights_.mixing, nullptr, y_bar, work, weights_bar_.mixing);
    const bool of_first = setting_.number == 0;
    if (!of_first) features_backward(execution, work);
    dropping_.backward(execution, {}, residual() ? detail::unit_gain<S>.data() : nullptr, work, x_bar, {});
    if (of_first) features_backward(execution, x_bar);
    finish_weights(call.kl_weight);
  }

 private:
  [[nodiscard]] bool transported() const { return setting_.attention.transported; }
  [[nodiscard]] bool residual() const { return setting_.attention.residual; }
  [[nodiscard]] const S* y() const { return mixing_.output(); }
  /// The Y that moves along arcs, and the input of the scores. Both are scaled by S if Â is normalised.
  [[nodiscard]] const S* moved() const { return normalised() ? scaled_.data() : y(); }
  [[nodiscard]] const S* moved_source() const { return normalised() ? scaled_source_.data() : source_; }
  [[nodiscard]] S* scale_sum(Index chunk) { return partial_.data() + chunk * (scores_.partial_size() + 1); }

  /// use(u, index) for nodes [begin, end), with their index among the nodes of the pass or −1.
  template <class Use>
  void for_nodes(Index begin, Index end, const Use& use) const {
    Index index = nodes_.lower_bound(begin);
    for (Index u = begin; u < end; ++u) {
      const bool there = index < nodes_.count() && nodes_[index] == u;
      use(u, there ? index++ : Index{-1});
    }
  }
  /// Σ_k bar_k q_k scaled by S_u, a tile.
  template <class T, class Tile>
  SHEAFNN_INLINE void query_sum(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index u, const S* bar,
                                T* sum) const {
    T plain[D], query[D];
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) plain[i] = T(S(0));
    for (Index k = 0; k < scores_.heads(); ++k) {
      detail::load_coordinates<D>(c, scores_.query(k) + c, diffusion_->channels, query);
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) plain[i] += T(bar[k]) * query[i];
    }
    scale(sheaf, u, plain, sum);
  }

  /// visit(score, v, transport) for the scores of node u, where transport(x, y) sets y = Q_uv x, or x itself for v = u.
  template <class Visit>
  SHEAFNN_INLINE void for_scores(const SheafBlocks<Family, S>& sheaf, Index u, const Visit& visit) const {
    for_arcs(u, [&]<bool Before>(Index arc) {
      visit(arc, graph_->target(arc), [&](const auto* x, auto* y) {
        kernels::block_times<D, Sizes::transport, Before>(sheaf.transport_block(graph_->edge_of(arc)), x, y);
      });
    });
    visit(scores_.own(u), u, [](const auto* x, auto* y) { std::copy_n(x, D, y); });
  }
  /// t_uv of the scores of node u.
  void set_transported(const SheafBlocks<Family, S>& sheaf, Index u) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    for_scores(sheaf, u, [&](Index score, Index v, const auto& transport) {
      S* const to = scores_.transported(score);
      std::fill_n(to, scores_.heads(), S(0));
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        T x[D], transported[D], read[D], query[D];
        detail::load_coordinates<D>(c, moved_source() + v * row + c, f, x);
        transport(x, transported);
        scale(sheaf, u, transported, read);
        for (Index k = 0; k < scores_.heads(); ++k) {
          detail::load_coordinates<D>(c, scores_.query(k) + c, f, query);
          to[k] += sum_of_products(query, read);
        }
      });
    });
  }
  template <class T>
  [[nodiscard]] SHEAFNN_INLINE static S sum_of_products(const T* a, const T* b) {
    T sum = a[0] * b[0];
    SHEAFNN_UNROLL for (int i = 1; i < D; ++i) sum += a[i] * b[i];
    return reduce_add(sum);
  }
  /// X'_u.
  void move_to(const LayerCall<Family, S>& call, Index u, Index index) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    const bool activation = setting_.diffusion.activation;
    detail::for_arc_tiles<S, D>(0, f, [&]<class T>(auto c) {
      const Index in = u * row + c;
      T sum[D], m[D];
      gather(
          c, call.sheaf, u, moved(), [&](Index score, bool) { return scores_.weight(score); }, sum);
      if (normalised()) detail::store_coordinates<D>(c, sum, f, gathered_.data() + in);
      scale(call.sheaf, u, sum, m);
      for (int i = 0; i < D; ++i) {
        T out = kernels::activated(residual() ? m[i] - c.load(y() + in + i * f) : m[i], activation);
        if (residual()) {
          c.store(change_.data() + in + i * f, out);
          out += c.load(call.x.data() + in + i * f);
        }
        c.store(output_.data() + index * row + i * f + c, out);
      }
    });
  }

  /// From X̄' to M̄ scaled by S in scratch[1], in x_bar the derivative of X as far as it is added, ē, and the sums of chunks.
  void scores_backward(const LayerBackwardCall<Family, S>& call) {
    const double scores = static_cast<double>(std::max<Index>(1, weight_bar_.size() * scores_.heads()));
    const S kl_share = static_cast<S>(call.kl_weight / scores);
    chunks_.for_each(call.execution, [&](Index chunk, Index begin, Index end) {
      S *const scale_bar = scale_sum(chunk), *const partial = scale_bar + 1;
      std::fill_n(scale_bar, scores_.partial_size() + 1, S(0));
      for_nodes(begin, end, [&](Index u, Index index) {
        end_backward(call, u, index);
        if (index >= 0) weights_backward(call, u);
        scale_bar[0] += scores_.backward(u, weight_bar_.data(), index >= 0, kl_share);
        if (transported()) queries_backward(call, u, partial + scores_.heads() * diffusion_->row());
      });
    });
  }
  void end_backward(const LayerBackwardCall<Family, S>& call, Index u, Index index) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    S* const scale_bar = call.sheaf_gradient.scale_bar.data() + u * Sizes::gram;
    if constexpr (learned) {
      if (!call.accumulate) {
        std::fill_n(scale_bar, Sizes::gram, S(0));
        std::fill_n(call.sheaf_gradient.degree_bar.data() + u * Sizes::gram, Sizes::gram, S(0));
      }
    }
    detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
      const Index in = u * row + c;
      T bar[D], scaled[D];
      for (int i = 0; i < D; ++i) {
        const Index to = in + i * f;
        T out_bar = T(S(0));
        if (index >= 0) out_bar = c.load(call.output_bar.data() + index * row + i * f + c);
        c.store(call.x_bar.data() + to, residual() ? out_bar : T(S(0)));
        bar[i] = index >= 0 ? out_bar * slope(c, u, index, i) : T(S(0));
      }
      scale(call.sheaf, u, bar, scaled);
      detail::store_coordinates<D>(c, scaled, f, call.scratch[1].data() + in);
      if (index >= 0 && normalised()) add_scale_bar(call.sheaf_gradient, c, u, bar, gathered_.data() + u * row);
    });
  }
  /// The derivative of the activation at coordinate i of a node, from its value.
  template <class Tile>
  [[nodiscard]] SHEAFNN_INLINE auto slope(const Tile& c, Index u, Index index, Index i) const {
    const Index row = diffusion_->row(), at = i * diffusion_->channels + c;
    const auto value =
        residual() ? c.load(change_.data() + u * row + at) : c.load(output_.data() + index * row + at);
    return setting_.diffusion.activation ? elu_slope(value) : decltype(value)(S(1));
  }
  /// Λ̄ of the scores of u.
  void weights_backward(const LayerBackwardCall<Family, S>& call, Index u) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    for_scores(call.sheaf, u, [&](Index score, Index v, const auto& transport) {
      S sum = S(0);
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        T bar[D], w[D], moved_here[D];
        detail::load_coordinates<D>(c, call.scratch[1].data() + u * row + c, f, bar);
        detail::load_coordinates<D>(c, moved() + v * row + c, f, w);
        transport(w, moved_here);
        sum += sum_of_products(bar, moved_here);
      });
      weight_bar_[score] = sum;
    });
  }
  /// q̄_k += S_u κ̄_k and S̄_u += κ̄_k q_kᵀ, κ̄_k = ē_u^k ξ_u + Σ ē_uv^k Q_uv ξ_v with ξ what scores read.
  void queries_backward(const LayerBackwardCall<Family, S>& call, Index u, S* query_bar) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    for (Index k = 0; k < scores_.heads(); ++k) {
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        T sum[D], scaled[D], to[D];
        gather(
            c, call.sheaf, u, moved_source(), [&](Index score, bool) { return scores_.score_bar(score)[k]; }, sum);
        scale(call.sheaf, u, sum, scaled);
        S* const at = query_bar + k * row + c;
        detail::load_coordinates<D>(c, at, f, to);
        SHEAFNN_UNROLL for (int i = 0; i < D; ++i) to[i] += scaled[i];
        detail::store_coordinates<D>(c, to, f, at);
        add_scale_bar(call.sheaf_gradient, c, u, sum, scores_.query(k));
      });
    }
  }

  /// Ȳ_u in scratch[0], the derivative of what scores read of u, and of the blocks of u and of its edges to larger nodes.
  void move_back(const LayerBackwardCall<Family, S>& call, Index u) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    const S* const r_bar = call.scratch[1].data();
    detail::for_arc_tiles<S, D>(0, f, [&]<class T>(auto c) {
      const Index in = u * row + c;
      T w_bar[D], out[D];
      gather(
          c, call.sheaf, u, r_bar,
          [&](Index score, bool own) { return scores_.weight(own ? score : graph_->reverse(score)); }, w_bar);
      scale(call.sheaf, u, w_bar, out);
      add_scale_bar(call.sheaf_gradient, c, u, w_bar, y() + u * row);
      if (residual()) {
        for (int i = 0; i < D; ++i) {
          const Index at = in + i * f;
          const T value = c.load(change_.data() + at), bar = c.load(call.x_bar.data() + at);
          out[i] -= setting_.diffusion.activation ? bar * elu_slope(value) : bar;
        }
      }
      detail::store_coordinates<D>(c, out, f, call.scratch[0].data() + in);
      if (transported()) source_backward<T>(call, c, u);
      if constexpr (!learned) return;
      for (Index arc = graph_->first_arc(u); arc < graph_->first_arc(u + 1); ++arc) {
        if (graph_->target(arc) > u) edge_backward<T>(call, c, u, arc);
      }
    });
  }
  /// Of what scores of other nodes, and of u itself, read of u.
  template <class T, class Tile>
  void source_backward(const LayerBackwardCall<Family, S>& call, const Tile& c, Index u) {
    const Index f = diffusion_->channels;
    T sum[D], out[D];
    query_sum<T>(c, call.sheaf, u, scores_.score_bar(scores_.own(u)), sum);
    for_arcs(u, [&]<bool Before>(Index arc) {
      T other[D];
      query_sum<T>(c, call.sheaf, graph_->target(arc), scores_.score_bar(graph_->reverse(arc)), other);
      kernels::add_block_times<D, Sizes::transport, Before, false>(call.sheaf.transport_block(
                                                                       graph_->edge_of(arc)),
                                                                   other, sum);
    });
    scale(call.sheaf, u, sum, out);
    add_scale_bar(call.sheaf_gradient, c, u, sum, source_ + u * diffusion_->row());
    detail::store_coordinates<D>(c, out, f, source_bar_.data() + u * diffusion_->row() + c);
  }
  /// L̄_uv = −Q̄_uv of an arc u → v: −Λ_uv r̄_u w_vᵀ − Λ_vu w_u r̄_vᵀ, and the same of scores.
  template <class T, class Tile>
  void edge_backward(const LayerBackwardCall<Family, S>& call, const Tile& c, Index u, Index arc) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    const Index v = graph_->target(arc), back = graph_->reverse(arc);
    S* const block_bar = call.sheaf_gradient.off_diagonal_bar.data() + graph_->edge_of(arc) * Sizes::transport;
    const auto load = [&](const S* from, Index node, T* to) {
      detail::load_coordinates<D>(c, from + node * row + c, f, to);
    };
    const auto multiply = [](S by, T* x) { SHEAFNN_UNROLL for (int i = 0; i < D; ++i) x[i] = T(by) * x[i]; };
    T bar[D], other[D], here[D], other_bar[D];
    load(call.scratch[1].data(), u, bar);
    load(moved(), v, other);
    load(moved(), u, here);
    load(call.scratch[1].data(), v, other_bar);
    multiply(-scores_.weight(arc), bar);
    multiply(-scores_.weight(back), here);
    kernels::channel_products<D, Sizes::transport>(bar, other, here, other_bar, block_bar,
                                                   call.accumulate || c > 0);
    if (!transported()) return;
    query_sum<T>(c, call.sheaf, u, scores_.score_bar(arc), bar);
    load(moved_source(), v, other);
    load(moved_source(), u, here);
    query_sum<T>(c, call.sheaf, v, scores_.score_bar(back), other_bar);
    multiply(S(-1), bar);
    multiply(S(-1), here);
    kernels::channel_products<D, Sizes::transport>(bar, other, here, other_bar, block_bar, true);
  }

  /// Adds the derivative through the scores to rows of all nodes, and to the sums of chunks.
  void features_backward(Execution execution, S* to) {
    const Index row = diffusion_->row();
    chunks_.for_each(execution, [&](Index chunk, Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        scores_.features_backward(u, source_ + u * row, to + u * row, transported(), scale_sum(chunk) + 1);
      }
      if (transported())
        detail::add_array(1, (end - begin) * row, source_bar_.data() + begin * row, to + begin * row);
    });
  }
  void finish_weights(double kl_weight) {
    S* const total = partial_.data();
    for (Index chunk = 1; chunk < chunks_.count; ++chunk) {
      for (Index k = 0; k <= scores_.partial_size(); ++k) total[k] += scale_sum(chunk)[k];
    }
    scores_.add_scale(total[0], kl_weight, weights_bar_);
    scores_.add_partial(total + 1, weights_, weights_bar_);
  }

  FeatureMixing<S> dropping_;  ///< X̃ = dropout(X)
  FeatureMixing<S> mixing_;    ///< Y
  AttentionScores<S> scores_;
  NodeChunks chunks_;
  Buffer<S> partial_;          ///< per chunk of nodes: the derivative of log σ, and sums of p̄ and q̄
  Buffer<S> weight_bar_;       ///< Λ̄ of every score
  Buffer<S> scaled_;           ///< S Y
  Buffer<S> gathered_;         ///< M before its own S
  Buffer<S> scaled_source_;    ///< S times what scores read
  Buffer<S> source_bar_;       ///< derivative of what scores read, where it is transported
  Buffer<S> change_;           ///< ELU(M − Y)
  const S* source_ = nullptr;  ///< what scores read
};

}  // namespace sheafnn::layers
