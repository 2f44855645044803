/// \file
/// AttentionLayer: diffusion with weights of attention in place of a Laplacian,
///
///     Y = (I ⊗ A) X̃ Bᵀ,   M_u = Λ_uu Â_uu Y_u + Σ over arcs u → v of Λ_uv Â_uv Y_v,   X̃ = dropout(X)
///     X' = ELU(M),   or with the option `residual`   X' = X + ELU(M − Y)
///
/// with its backward pass. Â_uv is the transport Q_uv = F_aᵀ F_rev of arc a = u → v, and Â_uu = I. With the option
/// `normalised` Â = I − Δ, which is S_u Q_uv S_v and S_u². Λ is in attention_scores.hpp. Scores read X̃, of the first layer X.
/// With the option `transported` they read Â_uv x_v in place of x_v: t_uv = ⟨q, Â_uv x_v⟩.
/// With identity maps, D = 1, A = I and one head it is a layer of GAT. On a part of a graph, arcs from owned nodes are
/// computed. What they add to derivatives at nodes of the halo goes to the owners. Source: math: "Sheaf attention" (3.46,
/// 3.47, 3.49); Barbero et al. 2022, Sheaf Attention Networks.
#pragma once

#include <algorithm>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/attention_scores.hpp"
#include "sheafnn/layers/attention_transports.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/node_chunks.hpp"

namespace sheafnn::layers {

/// math: "Sheaf attention" (3.47).
template <RestrictionMapFamily Family, class S>
class AttentionLayer : public WeightedLayer<Family, S, AttentionWeights>, AttentionTransports<Family, S> {
  using Base = WeightedLayer<Family, S, AttentionWeights>;
  using Base::graph_, Base::diffusion_, Base::setting_, Base::weights_, Base::weights_bar_, Base::nodes_,
      Base::output_;
  using Transports = AttentionTransports<Family, S>;
  using Transports::for_terms, Transports::gather, Transports::scale, Transports::add_scale_bar,
      Transports::normalised, Transports::transported, Transports::moved, Transports::moved_source,
      Transports::query_sum, Transports::moved_back, Transports::source_back, Transports::scores;
  using Sizes = BlockSizes<Family>;
  static constexpr int D = Family::stalk_dimension;
  static constexpr bool learned = is_learned<Family>;

 public:
  static constexpr LayerForm form = LayerForm::attention;

  /// Takes any setting.
  [[nodiscard]] static bool suits(const LayerSetting& of) { return of.form == form; }
  /// `graph` and `diffusion` must outlive the layer.
  ///
  /// \throws std::invalid_argument  a shape of another graph or family, fixed filters
  AttentionLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const LayerSetting& setting)
      : Base(graph, diffusion, setting),
        Transports(graph, diffusion, setting.attention),
        dropping_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, false, false),
        mixing_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, setting.diffusion.left,
                setting.diffusion.right),
        chunks_(detail::chunks_of_groups(graph.own_node_count())),
        partial_(chunks_.count * (scores().partial_size() + 1)),
        weight_bar_(graph.arc_count() + graph.node_count()) {
    this->require_no_filters(form);
    setting_.diffusion.residual = false;  // there is no ε
    const Index size = graph.node_count() * diffusion.row();
    if (normalised()) gathered_.resize(size);
    if (transported()) source_bar_.resize(size);
    if (residual()) change_.resize(size);
  }
  AttentionLayer(const Graph&&, const DiffusionShape<S>&, const LayerSetting&) = delete;  // they would dangle
  AttentionLayer(const Graph&, const DiffusionShape<S>&&, const LayerSetting&) = delete;

  /// Without what scores keep. Takes any list.
  void list_memory(std::vector<Buffer<S>*>& list) override {
    Base::list_memory(list);
    dropping_.list_memory(list);
    mixing_.list_memory(list);
    list.insert(list.end(), {&gathered_, &source_bar_, &change_});
  }
  [[nodiscard]] DropoutMask& mask() noexcept override { return dropping_.mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override {
    return {.scores = setting_.attention.random ? setting_.attention.heads : 0, .own_arcs = true};
  }
  [[nodiscard]] double kl() const override { return scores().kl(); }

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
    Transports::move(call, y(), source_);
    scores().begin(execution, weights_, source_, transported(), call.noise);
    parallel_for(execution, graph_->own_node_count(), 16, [&](Index begin, Index end) {
      for_nodes(begin, end, [&](Index u, Index index) {
        if (index < 0 && !setting_.attention.random) return;  // the KL term is a mean over all scores
        if (transported()) Transports::set_transported(call.sheaf, u);
        scores().attend(u, transported(), index >= 0);
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
    if (graph_->part() != nullptr) give_back(call);
    parallel_for(execution, graph_->own_node_count(), 16, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) move_back(call, u);
    });
    mixing_.backward(execution, weights_.mixing, nullptr, y_bar, work, weights_bar_.mixing);
    const bool of_first = setting_.number == 0;
    if (!of_first) features_backward(execution, work);
    dropping_.backward(execution, {}, residual() ? detail::unit_gain<S>.data() : nullptr, work, x_bar, {});
    if (of_first) features_backward(execution, x_bar);
    detail::clear_halo(*graph_, x_bar, diffusion_->row());
    finish_weights(call.kl_weight);
  }

 private:
  [[nodiscard]] bool residual() const { return setting_.attention.residual; }
  [[nodiscard]] kernels::AttentionEnd end() const { return {setting_.diffusion.activation, residual()}; }
  [[nodiscard]] const S* y() const { return mixing_.output(); }
  [[nodiscard]] S* scale_sum(Index chunk) { return partial_.data() + chunk * (scores().partial_size() + 1); }

  /// use(u, index) for nodes [begin, end), with their index among the nodes of the pass or −1.
  template <class Use>
  void for_nodes(Index begin, Index end, const Use& use) const {
    Index index = nodes_.lower_bound(begin);
    for (Index u = begin; u < end; ++u) {
      const bool there = index < nodes_.count() && nodes_[index] == u;
      use(u, there ? index++ : Index{-1});
    }
  }
  /// X'_u.
  void move_to(const LayerCall<Family, S>& call, Index u, Index index) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    const kernels::AttentionEnd end = this->end();
    detail::for_arc_tiles<S, D>(0, f, [&]<class T>(auto c) {
      const Index in = u * row + c;
      T sum[D], m[D];
      gather(
          c, call.sheaf, u, moved(), [&](Index score, bool) { return scores().weight(score); }, sum);
      if (normalised()) detail::store_coordinates<D>(c, sum, f, gathered_.data() + in);
      scale(call.sheaf, u, sum, m);
      for (int i = 0; i < D; ++i) {
        T y_i = T(S(0)), x_i = T(S(0));
        if (residual()) {
          y_i = c.load(y() + in + i * f);
          x_i = c.load(call.x.data() + in + i * f);
        }
        const T change = end.change(m[i], y_i);
        if (residual()) c.store(change_.data() + in + i * f, change);
        c.store(output_.data() + index * row + i * f + c, end.forward(x_i, change));
      }
    });
  }

  /// Computes from X̄': M̄ scaled by S in scratch[1], ē, the sums of chunks, and in x_bar the derivative of the added X.
  void scores_backward(const LayerBackwardCall<Family, S>& call) {
    const S kl_share = static_cast<S>(call.kl_weight / static_cast<double>(scores().total() * scores().heads()));
    chunks_.for_each(call.execution, [&](Index chunk, Index begin, Index end) {
      S *const scale_bar = scale_sum(chunk), *const partial = scale_bar + 1;
      std::fill_n(scale_bar, scores().partial_size() + 1, S(0));
      for_nodes(begin, end, [&](Index u, Index index) {
        end_backward(call, u, index);
        if (index >= 0) weights_backward(call, u);
        scale_bar[0] += scores().backward(u, weight_bar_.data(), index >= 0, kl_share);
        if (transported())
          Transports::queries_backward(call.sheaf, call.sheaf_gradient, u,
                                       partial + scores().heads() * diffusion_->row());
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
        bar[i] = index >= 0 ? end().backward(kept(c, u, index, i), out_bar) : T(S(0));
      }
      scale(call.sheaf, u, bar, scaled);
      detail::store_coordinates<D>(c, scaled, f, call.scratch[1].data() + in);
      if (index >= 0 && normalised()) add_scale_bar(call.sheaf_gradient, c, u, bar, gathered_.data() + u * row);
    });
  }
  /// What end_backward() reads at coordinate i of a node: the change of X, or X'.
  template <class Tile>
  [[nodiscard]] SHEAFNN_INLINE auto kept(const Tile& c, Index u, Index index, Index i) const {
    const Index row = diffusion_->row(), at = i * diffusion_->channels + c;
    return residual() ? c.load(change_.data() + u * row + at) : c.load(output_.data() + index * row + at);
  }
  /// Λ̄ of the scores of u.
  void weights_backward(const LayerBackwardCall<Family, S>& call, Index u) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    for_terms(call.sheaf, u, [&](Index score, Index v, const auto& transport) {
      S sum = S(0);
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        T bar[D], w[D], moved_here[D];
        detail::load_coordinates<D>(c, call.scratch[1].data() + u * row + c, f, bar);
        detail::load_coordinates<D>(c, moved() + v * row + c, f, w);
        transport(w, moved_here);
        sum += Transports::sum_of_products(bar, moved_here);
      });
      weight_bar_[score] = sum;
    });
  }
  /// On a part of a graph, the sums moved_back() and source_back() at nodes of the halo belong to the owners. They are added
  /// to the owners' rows of scratch[0] and source_bar_, which begin with 0.
  void give_back(const LayerBackwardCall<Family, S>& call) {
    const Index own = graph_->own_node_count(), f = diffusion_->channels, row = diffusion_->row();
    S *const y_bar = call.scratch[0].data(), *const r_bar = call.scratch[1].data();
    detail::clear_halo(*graph_, r_bar, row);
    std::fill_n(y_bar, own * row, S(0));
    if (transported()) std::fill_n(source_bar_.data(), own * row, S(0));
    parallel_for(call.execution, graph_->node_count() - own, 16, [&](Index begin, Index end) {
      for (Index u = own + begin; u < own + end; ++u) {
        detail::for_arc_tiles<S, D>(0, f, [&]<class T>(auto c) {
          T sum[D];
          moved_back(call.sheaf, c, u, r_bar, sum);
          detail::store_coordinates<D>(c, sum, f, y_bar + u * row + c);
          if (!transported()) return;
          source_back(call.sheaf, c, u, sum);
          detail::store_coordinates<D>(c, sum, f, source_bar_.data() + u * row + c);
        });
      }
    });
    detail::give_halo_back(*graph_, y_bar, row);
    if (transported()) detail::give_halo_back(*graph_, source_bar_.data(), row);
  }
  /// On a part of a graph, sum += what give_back() has added to a row.
  template <class T, class Tile>
  SHEAFNN_INLINE void add_given(const Tile& c, const S* row, T* sum) const {
    if (graph_->part() == nullptr) return;
    T given[D];
    detail::load_coordinates<D>(c, row + c, diffusion_->channels, given);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] += given[i];
  }
  /// Ȳ_u in scratch[0], the derivative of what scores read of u, and of the blocks of u and of its edges to larger nodes.
  void move_back(const LayerBackwardCall<Family, S>& call, Index u) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    detail::for_arc_tiles<S, D>(0, f, [&]<class T>(auto c) {
      const Index in = u * row + c;
      T w_bar[D], out[D];
      moved_back(call.sheaf, c, u, call.scratch[1].data(), w_bar);
      add_given(c, call.scratch[0].data() + u * row, w_bar);
      scale(call.sheaf, u, w_bar, out);
      add_scale_bar(call.sheaf_gradient, c, u, w_bar, y() + u * row);
      if (residual()) {
        for (int i = 0; i < D; ++i) {
          const Index at = in + i * f;
          const T value = c.load(change_.data() + at), bar = c.load(call.x_bar.data() + at);
          out[i] -= end().backward(value, bar);
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
  /// Adds the derivative of what the scores of other nodes, and of u itself, read of u.
  template <class T, class Tile>
  void source_backward(const LayerBackwardCall<Family, S>& call, const Tile& c, Index u) {
    S* const row = source_bar_.data() + u * diffusion_->row();
    T sum[D], out[D];
    source_back(call.sheaf, c, u, sum);
    add_given(c, row, sum);
    scale(call.sheaf, u, sum, out);
    add_scale_bar(call.sheaf_gradient, c, u, sum, source_ + u * diffusion_->row());
    detail::store_coordinates<D>(c, out, diffusion_->channels, row + c);
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
    multiply(-scores().weight(arc), bar);
    multiply(-scores().weight(back), here);
    kernels::channel_products<D, Sizes::transport>(bar, other, here, other_bar, block_bar,
                                                   call.accumulate || c > 0);
    if (!transported()) return;
    query_sum(c, call.sheaf, u, scores().score_bar(arc), bar);
    load(moved_source(), v, other);
    load(moved_source(), u, here);
    query_sum(c, call.sheaf, v, scores().score_bar(back), other_bar);
    multiply(S(-1), bar);
    multiply(S(-1), here);
    kernels::channel_products<D, Sizes::transport>(bar, other, here, other_bar, block_bar, true);
  }

  /// Adds the derivative through the scores to rows of all nodes, and to the sums of chunks.
  void features_backward(Execution execution, S* to) {
    const Index row = diffusion_->row();
    if (!transported()) scores().add_arcs(execution);
    chunks_.for_each(execution, [&](Index chunk, Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        scores().features_backward(u, source_ + u * row, to + u * row, transported(), scale_sum(chunk) + 1);
      }
      if (transported())
        detail::add_array(1, (end - begin) * row, source_bar_.data() + begin * row, to + begin * row);
    });
  }
  void finish_weights(double kl_weight) {
    S* const total = partial_.data();
    for (Index chunk = 1; chunk < chunks_.count; ++chunk) {
      for (Index k = 0; k <= scores().partial_size(); ++k) total[k] += scale_sum(chunk)[k];
    }
    scores().add_scale(total[0], kl_weight, weights_bar_);
    scores().add_partial(total + 1, weights_, weights_bar_);
  }

  FeatureMixing<S> dropping_;  ///< X̃ = dropout(X)
  FeatureMixing<S> mixing_;    ///< Y
  NodeChunks chunks_;
  Buffer<S> partial_;          ///< per chunk of nodes: the derivative of log σ, and sums of p̄ and q̄
  Buffer<S> weight_bar_;       ///< Λ̄ of every score
  Buffer<S> gathered_;         ///< M before its own S
  Buffer<S> source_bar_;       ///< derivative of what scores read, where it is transported
  Buffer<S> change_;           ///< ELU(M − Y)
  const S* source_ = nullptr;  ///< what scores read
};

}  // namespace sheafnn::layers
