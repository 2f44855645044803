/// \file
/// CopresheafLayer: message passing with a map of its own for every arc, without edge stalks,
///
///     m_u = mean over arcs a = u → v of ρ_a X̃_v, 0 without arcs,   X̃ = dropout(X)
///     X' = X + ELU((I ⊗ A) m Bᵀ + b)
///
/// with its backward pass. The map of the reverse arc is another one; with ρ_a = F_aᵀ F_rev it is the transport of a sheaf.
/// Source: math: "Copresheaves" (3.50, 3.51); Hajij et al. 2025, Copresheaf Topological Neural Networks.
#pragma once

#include <algorithm>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/layer.hpp"

namespace sheafnn::layers {

/// math: "Copresheaves" (3.50).
template <RestrictionMapFamily Family, class S>
class CopresheafLayer : public WeightedLayer<Family, S, BiasedWeights> {
  using Base = WeightedLayer<Family, S, BiasedWeights>;
  using Base::graph_, Base::diffusion_, Base::setting_, Base::weights_, Base::weights_bar_, Base::nodes_,
      Base::output_;
  using Sizes = BlockSizes<Family>;
  static constexpr int D = Family::stalk_dimension;

 public:
  static constexpr LayerForm form = LayerForm::copresheaf;

  /// Takes any setting.
  [[nodiscard]] static bool suits(const LayerSetting& of) { return of.form == form; }
  /// `graph` and `diffusion` must outlive the layer.
  ///
  /// \throws std::invalid_argument  a shape of another graph or family, fixed filters
  CopresheafLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const LayerSetting& setting)
      : Base(graph, diffusion, setting),
        dropping_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, false, false),
        mixing_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, setting.diffusion.left,
                setting.diffusion.right),
        mean_(graph.own_node_count() * diffusion.row()),
        change_(mean_.size()),
        fetched_(graph.part() != nullptr ? graph.node_count() * diffusion.row() : 0),
        partial_(mixing_.chunks().count * partial_size()) {
    this->require_no_filters(form);
    setting_.diffusion.residual = false;  // there is no ε
  }
  CopresheafLayer(const Graph&&, const DiffusionShape<S>&, const LayerSetting&) = delete;  // they would dangle
  CopresheafLayer(const Graph&, const DiffusionShape<S>&&, const LayerSetting&) = delete;

  /// Takes any list.
  void list_memory(std::vector<Buffer<S>*>& list) override {
    Base::list_memory(list);
    dropping_.list_memory(list);
    list.insert(list.end(), {&mean_, &change_, &fetched_});
  }
  [[nodiscard]] DropoutMask& mask() noexcept override { return dropping_.mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override { return {.maps = true, .blocks = false}; }

  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void forward(const LayerCall<Family, S>& call) override {
    this->begin(call);
    weights_.check(setting_);
    const Index row = diffusion_->row(), f = diffusion_->channels;
    dropping_.forward(call.execution, {}, call.x.data(), call.active_dropout(), true,
                      [&](Index first, Index count, const S* x) {
                        if (!fetched_.empty()) std::copy_n(x, count * row, fetched_.data() + first * row);
                      });
    if (!fetched_.empty()) detail::fetch_halo(*graph_, fetched_.data(), row);
    read_ = fetched_.empty() ? dropping_.output() : fetched_.data();
    const NodeSelection nodes = this->own_nodes();
    parallel_for(call.execution, nodes.count(), 16, [&](Index begin, Index end) {
      detail::for_arc_tiles<S, D>(0, f, [&]<class T>(auto c) {
        for (Index index = begin; index < end; ++index) average<T>(c, call.sheaf, nodes[index], index);
      });
    });
    const kernels::CopresheafEnd end{setting_.diffusion.activation};
    const S *const bias = weights_.bias.data(), *const x = call.x.data();
    mixing_.begin(call.execution, weights_.mixing, mean_.data(), {});
    parallel_for(call.execution, nodes.count(), 16, [&](Index begin, Index end_of_chunk) {
      mixing_.forward_rows(weights_.mixing, begin, end_of_chunk, nullptr,
                           [&](Index first, Index count, const S* y) {
                             detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
                               for (Index k = 0; k < count * diffusion_->coordinates; ++k) {
                                 const Index at = first * row + k * f + c, index = k / diffusion_->coordinates;
                                 const T change = end.change(c.load(y + k * f + c), c.load(bias + c));
                                 c.store(change_.data() + at, change);
                                 c.store(output_.data() + at,
                                         end.forward(c.load(x + (nodes[first + index] - first - index) * row + at),
                                                     change));
                               }
                             });
                           });
    });
  }
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void backward(const LayerBackwardCall<Family, S>& call) override {
    this->check(call);
    this->check_scratch(call);
    weights_.check(setting_);
    weights_bar_.mixing.check(setting_);
    const Index row = diffusion_->row(), f = diffusion_->channels;
    S *const x_bar = call.x_bar.data(), *const mean_bar = call.scratch[0].data(),
             *const to_bar = call.scratch[1].data();
    mix_backward(call, mean_bar);
    spread(call.execution, mean_bar, x_bar, to_bar);
    detail::fetch_halo(*graph_, to_bar, row);
    // The derivative of X̃ goes where m̄ was.
    parallel_for(call.execution, graph_->own_node_count(), 16, [&](Index begin, Index end) {
      detail::for_arc_tiles<S, D>(0, f, [&]<class T>(auto c) {
        for (Index u = begin; u < end; ++u) average_backward<T>(c, call, u, to_bar, mean_bar);
      });
    });
    dropping_.backward(call.execution, {}, detail::unit_gain<S>.data(), mean_bar, x_bar, {});
    detail::clear_halo(*graph_, x_bar, row);
  }

 private:
  /// Number of a chunk's sums, which are derivatives of A, B and b.
  [[nodiscard]] Index partial_size() const { return mixing_.partial_size() + diffusion_->channels; }
  /// 1/degree; 0 for degree 0.
  [[nodiscard]] S part_of(Index u) const { return kernels::mean_share(static_cast<S>(graph_->degree(u))); }
  /// m of node u, a tile of it, in row `index`.
  template <class T, class Tile>
  SHEAFNN_INLINE void average(const Tile& c, const SheafBlocks<Family, S>& sheaf, Index u, Index index) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    T sum[D], other[D];
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] = T(S(0));
    for (Index arc = graph_->first_arc(u); arc < graph_->first_arc(u + 1); ++arc) {
      detail::load_coordinates<D>(c, read_ + graph_->target(arc) * row + c, f, other);
      kernels::add_block_times<D, Sizes::map, false, false>(sheaf.arc_map(arc), other, sum);
    }
    const T part = T(part_of(u));
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] = part * sum[i];
    detail::store_coordinates<D>(c, sum, f, mean_.data() + index * row + c);
  }
  /// Derivatives of ρ of the arcs of u, and of X̃_u. \param to_bar  m̄/degree of all nodes
  template <class T, class Tile>
  SHEAFNN_INLINE void average_backward(const Tile& c, const LayerBackwardCall<Family, S>& call, Index u,
                                       const S* to_bar, S* read_bar) {
    const Index f = diffusion_->channels, row = diffusion_->row();
    T bar[D], other[D], other_bar[D], sum[D];
    detail::load_coordinates<D>(c, to_bar + u * row + c, f, bar);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) sum[i] = T(S(0));
    for (Index arc = graph_->first_arc(u); arc < graph_->first_arc(u + 1); ++arc) {
      const Index v = graph_->target(arc) * row + c;
      detail::load_coordinates<D>(c, to_bar + v, f, other_bar);
      kernels::add_block_times<D, Sizes::map, true, false>(call.sheaf.arc_map(graph_->reverse(arc)), other_bar,
                                                           sum);
      if constexpr (is_learned<Family>) {
        detail::load_coordinates<D>(c, read_ + v, f, other);
        kernels::channel_products<D, Sizes::map>(bar, other, call.sheaf_gradient.map_bar.data() + arc * Sizes::map,
                                                 call.accumulate || c > 0);
      }
    }
    detail::store_coordinates<D>(c, sum, f, read_bar + u * row + c);
  }

  /// Computes from X̄': x_bar at the nodes of the pass, m̄ in their rows, and the derivatives of the weights.
  void mix_backward(const LayerBackwardCall<Family, S>& call, S* mean_bar) {
    const Index f = diffusion_->channels, d = diffusion_->coordinates, row = diffusion_->row();
    const kernels::CopresheafEnd ending{setting_.diffusion.activation};
    const S* const output_bar = call.output_bar.data();
    S* const x_bar = call.x_bar.data();
    const NodeSelection nodes = this->own_nodes();
    const NodeChunks chunks{nodes.count(), mixing_.chunks().count};
    chunks.for_each(call.execution, [&](Index chunk, Index begin, Index end) {
      S *const partial = partial_.data() + chunk * partial_size(), *const bias_bar =
                                                                       partial + mixing_.partial_size();
      std::fill_n(partial, partial_size(), S(0));
      const auto y_bar = [&](Index first, Index count, S* rows) -> const S* {
        detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
          for (Index k = 0; k < count * d; ++k) {
            const Index at = first * row + k * f + c, u = nodes[first + k / d];
            const T bar = c.load(output_bar + at);
            const T through = ending.backward(c.load(change_.data() + at), bar);
            c.store(rows + k * f + c, through);
            c.store(x_bar + u * row + k % d * f + c, bar);
            c.store(bias_bar + c, c.load(bias_bar + c) + through);
          }
        });
        return rows;
      };
      mixing_.backward_rows(weights_.mixing, begin, end, nullptr, y_bar, mean_bar, partial);
    });
    for (Index chunk = 0; chunk < chunks.count; ++chunk) {
      const S* const partial = partial_.data() + chunk * partial_size();
      mixing_.add_partial(partial, weights_bar_.mixing);
      for (Index c = 0; c < f; ++c) {
        weights_bar_.bias[static_cast<std::size_t>(c)] += partial[mixing_.partial_size() + c];
      }
    }
  }
  /// Copies rows of the nodes of the pass to m̄/degree of all own nodes. It and x_bar are 0 where the pass computed nothing.
  void spread(Execution execution, const S* mean_bar, S* x_bar, S* to_bar) const {
    const Index row = diffusion_->row();
    parallel_for(execution, graph_->own_node_count(), 16, [&](Index begin, Index end) {
      Index index = nodes_.lower_bound(begin);
      for (Index u = begin; u < end; ++u) {
        if (index == nodes_.count() || nodes_[index] != u) {
          std::fill_n(x_bar + u * row, row, S(0));
          std::fill_n(to_bar + u * row, row, S(0));
          continue;
        }
        const S part = part_of(u), *const from = mean_bar + index++ * row;
        for (Index k = 0; k < row; ++k) to_bar[u * row + k] = part * from[k];
      }
    });
  }

  FeatureMixing<S> dropping_;  ///< X̃ = dropout(X)
  FeatureMixing<S> mixing_;    ///< (I ⊗ A) m Bᵀ at the nodes of the pass
  Buffer<S> mean_;             ///< m of these nodes
  Buffer<S> change_;           ///< X' − X of these nodes
  Buffer<S> fetched_;          ///< on a part of a graph: X̃ with the rows of the halo
  Buffer<S> partial_;          ///< per chunk of nodes: derivatives of A, B and b
  const S* read_ = nullptr;    ///< X̃ of all nodes
};

}  // namespace sheafnn::layers
