/// \file
/// DirectedLayer: diffusion of complex features by a Laplacian with a phase for the direction of every arc,
///
///     Y = (I ⊗ A) Re X̃ Bᵀ + i (I ⊗ A') Im X̃ B'ᵀ,   X' = (1 + tanh ε) ∘ X − act(Δ Y),   X̃ = dropout(X)
///
/// with its backward pass. Features are n × d' × 2f: every stalk coordinate has f real parts, then f imaginary parts.
/// A' = A and B' = B unless the option `imaginary_weights` is on. Without phases, on real features, it is a
/// DiffusionLayer. Source: math: "Directed sheaves" (3.54, 3.56, 3.57); Sheaves reloaded: Directed sheaf neural
/// networks, ICLR 2026.
#pragma once

#include <algorithm>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/kernels/complex.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/directed_laplacian.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/node_chunks.hpp"

namespace sheafnn::layers {

/// math: "Directed sheaves" (3.54).
template <RestrictionMapFamily Family, class S>
class DirectedLayer : public WeightedLayer<Family, S, DirectedWeights> {
  using Base = WeightedLayer<Family, S, DirectedWeights>;
  using Base::graph_, Base::diffusion_, Base::setting_, Base::weights_, Base::weights_bar_, Base::nodes_,
      Base::output_;
  static constexpr int D = Family::stalk_dimension, gram = BlockSizes<Family>::gram;

 public:
  static constexpr LayerForm form = LayerForm::directed;

  /// Takes any setting.
  [[nodiscard]] static bool suits(const LayerSetting& of) { return of.form == form; }
  /// `graph` and `diffusion` must outlive the layer. \param diffusion  has 2f channels
  ///
  /// \throws std::invalid_argument  a shape of another graph or family, or of an odd number of channels, fixed filters
  DirectedLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const LayerSetting& setting)
      : Base(graph, diffusion, setting),
        laplacian_(graph, diffusion, setting.directed),
        end_{setting.diffusion.activation, setting.directed.activation},
        dropping_(graph.own_node_count(), D, diffusion.channels, false, false),
        mixing_{{graph.own_node_count(), D, half(), setting.diffusion.left, setting.diffusion.right},
                {graph.own_node_count(), D, half(), setting.diffusion.left, setting.diffusion.right}},
        chunks_(detail::chunks_of_groups(graph.own_node_count())),
        parts_(output_.size()),
        mixed_(output_.size()),
        scaled_(output_.size()),
        diffused_(output_.size()),
        partial_(chunks_.count * D) {
    this->require_no_filters(form);
    require(diffusion.channels % 2 == 0, "channels of the shape", diffusion.channels,
            "complex features have an even number");
    setting_.channels = half();
  }
  DirectedLayer(const Graph&&, const DiffusionShape<S>&, const LayerSetting&) = delete;  // they would dangle
  DirectedLayer(const Graph&, const DiffusionShape<S>&&, const LayerSetting&) = delete;

  /// Takes any list.
  void list_memory(std::vector<Buffer<S>*>& list) override {
    Base::list_memory(list);
    dropping_.list_memory(list);
    list.insert(list.end(), {&parts_, &mixed_, &scaled_, &diffused_});
  }
  [[nodiscard]] DropoutMask& mask() noexcept override { return dropping_.mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override {
    return {.scores = setting_.directed.random ? DirectedPhases<S>::noise_size : 0};
  }
  [[nodiscard]] double kl() const override { return laplacian_.phases().kl(); }

  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void forward(const LayerCall<Family, S>& call) override {
    this->begin(call);
    weights_.check(setting_);
    input_ = call.x.data();
    if (setting_.directed.random) laplacian_.phases().draw(call.execution, weights_.concentration[0], call.noise);
    if (call.training || call.mixing != MixedFeatures::reuse) mix(call);
    detail::scale_features(call.execution, *graph_, *diffusion_, call.sheaf, mixed_.data(), scaled_.data());
    S gain[D];
    gains(gain);
    detail::with_halo(*graph_, nodes_, scaled_.data(), row(), [&](Index from, Index to) {
      parallel_for(call.execution, to - from, 16,
                   [&](Index begin, Index end) { diffuse(call, gain, from + begin, from + end); });
    });
  }
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void backward(const LayerBackwardCall<Family, S>& call) override {
    this->check(call);
    this->check_scratch(call);
    weights_.check(setting_);
    weights_bar_.check(setting_);
    S gain[D];
    gains(gain);
    end_backward(call, gain);
    S *const y_bar = call.scratch[0].data(), *const r_bar = call.scratch[1].data();
    detail::with_halo(*graph_, NodeSelection(graph_->node_count()), r_bar, row(), [&](Index from, Index to) {
      parallel_for(call.execution, to - from, 16, [&](Index begin, Index end) {
        diffuse_backward(call, from + begin, from + end, r_bar, y_bar);
      });
    });
    if (setting_.directed.random) {
      weights_bar_.concentration[0] += laplacian_.phases().backward(call.execution, call.kl_weight);
    }
    mix_backward(call.execution, y_bar, r_bar);
    dropping_.backward(call.execution, {}, gain, y_bar, call.x_bar.data(), {});
    detail::clear_halo(*graph_, call.x_bar.data(), row());
  }

 private:
  /// f, and values per node.
  [[nodiscard]] Index half() const noexcept { return diffusion_->channels / 2; }
  [[nodiscard]] Index row() const noexcept { return diffusion_->row(); }
  [[nodiscard]] const auto& weights_of(int part) const { return part == 0 ? weights_.real : weights_.imaginary; }
  /// Memory for the values of one part alone, n × D × f.
  [[nodiscard]] S* part_in(S* parts, int part) const { return parts + part * graph_->node_count() * D * half(); }
  /// 1 + tanh ε_i.
  void gains(S* gain) const {
    for (Index i = 0; i < D; ++i) gain[i] = kernels::gain(weights_.real.epsilon[static_cast<std::size_t>(i)]);
  }
  /// Copies `count` nodes' values of a part from features at `complex` to `real`, of f channels.
  void take_part(Index count, int part, const S* complex, S* real) const {
    for (Index k = 0; k < count * D; ++k)
      std::copy_n(complex + (2 * k + part) * half(), half(), real + k * half());
  }
  /// The other way.
  void put_part(Index count, int part, const S* real, S* complex) const {
    for (Index k = 0; k < count * D; ++k)
      std::copy_n(real + k * half(), half(), complex + (2 * k + part) * half());
  }

  /// X' of the nodes with indices [begin, end).
  void diffuse(const LayerCall<Family, S>& call, const S* gain, Index begin, Index end) {
    detail::for_tiles<S>(0, half(), [&]<class T>(auto c) {
      T r[2][D], x[2][D];
      for (Index index = begin; index < end; ++index) {
        const Index u = nodes_[index], at = index * row() + c;
        laplacian_.apply(c, call.sheaf, u, scaled_.data(), r);
        laplacian_.store(c, r, diffused_.data() + at);
        laplacian_.load(c, input_ + u * row() + c, x);
        end_.template forward<gram>(
            call.sheaf.scale(u), [=](int i) SHEAFNN_INLINE_LAMBDA { return gain[i]; }, r, x);
        laplacian_.store(c, x, output_.data() + at);
      }
    });
  }
  /// Ȳ of nodes [begin, end) and the derivatives of blocks and phases. \param r_bar  from end_backward()
  void diffuse_backward(const LayerBackwardCall<Family, S>& call, Index begin, Index end, const S* r_bar,
                        S* y_bar) {
    detail::for_tiles<S>(0, half(), [&]<class T>(auto c) {
      T w_bar[2][D], bar[2][D], y[2][D];
      for (Index u = begin; u < end; ++u) {
        laplacian_.apply_backward(c, call.sheaf, u, scaled_.data(), r_bar, call.sheaf_gradient,
                                  call.accumulate || c > 0, w_bar);
        laplacian_.load(c, mixed_.data() + u * row() + c, y);
        laplacian_.add_products(w_bar, y, call.sheaf_gradient.scale_bar, u, true);
        laplacian_.scale(call.sheaf, u, w_bar, bar);
        laplacian_.store(c, bar, y_bar + u * row() + c);
      }
    });
  }

  /// Y.
  void mix(const LayerCall<Family, S>& call) {
    dropping_.forward(call.execution, {}, call.x.data(), call.active_dropout(), true,
                      [](Index, Index, const S*) {});
    const S* const x = dropping_.output();
    for (int part = 0; part < 2; ++part) {
      S* const own = part_in(parts_.data(), part);
      mixing_[part].forward(
          call.execution, weights_of(part), own, {}, false,
          [=, this](Index first, Index count, const S* y) {
            put_part(count, part, y, mixed_.data() + first * row());
          },
          [=, this](Index first, Index count) {
            take_part(count, part, x + first * row(), own + first * D * half());
          });
    }
  }
  /// Computes the derivatives of A and B from Ȳ and, in place of Ȳ, the derivative of X̃. \param work  overwritten
  void mix_backward(Execution execution, S* y_bar, S* work) {
    for (int part = 0; part < 2; ++part) {
      S* const own_bar = part_in(work, part);
      mixing_[part].backward(
          execution, weights_of(part), nullptr,
          [=, this](Index first, Index count, S* rows) -> const S* {
            take_part(count, part, y_bar + first * row(), rows);
            return rows;
          },
          own_bar, part == 0 ? weights_bar_.real : weights_bar_.imaginary);
    }
    parallel_for(execution, graph_->own_node_count(), 64, [&](Index begin, Index end) {
      for (int part = 0; part < 2; ++part) {
        put_part(end - begin, part, part_in(work, part) + begin * D * half(), y_bar + begin * row());
      }
    });
  }

  /// Computes from X̄': r̄ = S z̄ with z̄ = −act′(z) X̄' in scratch[1], X̄' in x_bar, S̄_u = z̄_u r_uᵀ, and ε̄. At nodes
  /// that the pass did not compute X̄' is 0.
  void end_backward(const LayerBackwardCall<Family, S>& call, const S* gain) {
    S *const x_bar = call.x_bar.data(), *const r_bar = call.scratch[1].data();
    const S* const output_bar = call.output_bar.data();
    chunks_.for_each(call.execution, [&](Index chunk, Index begin, Index end) {
      S* const sum = partial_.data() + chunk * D;
      std::fill_n(sum, D, S(0));
      detail::for_tiles<S>(0, half(), [&]<class T>(auto c) {
        const bool add = call.accumulate || c > 0;
        T products[D], r[2][D], x[2][D], bar[2][D], scaled[2][D];
        for (T& one : products) one = T(S(0));
        Index index = nodes_.lower_bound(begin);
        for (Index u = begin; u < end; ++u) {
          const Index in = u * row() + c;
          if (index == nodes_.count() || nodes_[index] != u) {
            for (Index part = 0; part < 2; ++part) {
              detail::clear_node<Family>(c, *diffusion_, in + part * half(), x_bar, r_bar,
                                         call.sheaf_gradient.scale_bar.data() + u * gram, add);
            }
            continue;
          }
          const Index at = index++ * row() + c;
          laplacian_.load(c, diffused_.data() + at, r);
          laplacian_.load(c, input_ + in, x);
          laplacian_.load(c, output_bar + at, bar);
          laplacian_.store(c, bar, x_bar + in);
          SHEAFNN_UNROLL for (int i = 0; i < D; ++i) { products[i] += x[0][i] * bar[0][i] + x[1][i] * bar[1][i]; }
          end_.template backward<gram>(call.sheaf.scale(u), r, bar);
          laplacian_.add_products(bar, r, call.sheaf_gradient.scale_bar, u, add);
          laplacian_.scale(call.sheaf, u, bar, scaled);
          laplacian_.store(c, scaled, r_bar + in);
        }
        for (int i = 0; i < D; ++i) sum[i] += reduce_add(products[i]);
      });
    });
    for (Index i = 0; i < D; ++i) {
      S sum = S(0);
      for (Index chunk = 0; chunk < chunks_.count; ++chunk) sum += partial_[chunk * D + i];
      weights_bar_.real.epsilon[static_cast<std::size_t>(i)] += kernels::gain_slope(gain[i] - S(1)) * sum;
    }
  }

  DirectedLaplacian<Family, S> laplacian_;
  kernels::DirectedEnd end_;
  FeatureMixing<S> dropping_;   ///< X̃ = dropout(X)
  FeatureMixing<S> mixing_[2];  ///< (I ⊗ A) X Bᵀ of the two parts
  NodeChunks chunks_;
  Buffer<S> parts_;     ///< X̃, the real parts of all nodes and then the imaginary parts
  Buffer<S> mixed_;     ///< Y
  Buffer<S> scaled_;    ///< W = S Y
  Buffer<S> diffused_;  ///< R = L W at the nodes of the pass
  Buffer<S> partial_;   ///< per chunk of nodes: Σ x x̄' of each coordinate
  const S* input_ = nullptr;
};

}  // namespace sheafnn::layers
