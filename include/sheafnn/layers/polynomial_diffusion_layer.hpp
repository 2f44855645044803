/// \file
/// PolynomialDiffusionLayer: sheaf diffusion with a polynomial of the Laplacian,
///
///     Y = (I ⊗ A) dropout(X) Bᵀ,   Z = p(L̂) Y + α (X − ΔY/λ_max),   X' = (1 + tanh ε) ∘ X − ELU(Z),
///     L̂ = (2/λ_max) Δ − I,   p = Σ_{k=0}^{K} w_k P_k,
///
/// forwards by the basis' recurrence on the terms V_k = P_k(L̂) Y, V_{k+1} = (A_k L̂ + B_k) V_k − C_k V_{k−1}, and in
/// evaluations, which need no terms, by Clenshaw's:
///
///     b_k = w_k Y + (A_k L̂ + B_k) b_{k+1} − C_{k+1} b_{k+2},   k = K … 0,   b_0 = p(L̂) Y.
///
/// Backwards Clenshaw's recurrence runs on G = Z̄ instead of Y; each step hands its share to the blocks of Δ. All
/// recurrences run on tiles of channels, between which nothing is exchanged. On a part of a graph, every step first fetches
/// the halo's rows of the array that it applies Δ to, forwards and backwards.
/// Source: math: "Polynomial filters" (3.20); Polynomial Neural Sheaf Diffusion (arXiv 2512.00242).
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/channel_tiles.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/laplacian_rows.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/polynomial_activation.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/layers/polynomial_steps.hpp"

namespace sheafnn::layers {

/// math: "Polynomial filters" (3.20).
template <RestrictionMapFamily Family, class S>
class PolynomialDiffusionLayer : public WeightedLayer<Family, S, DiffusionWeights> {
  using Base = WeightedLayer<Family, S, DiffusionWeights>;
  using Base::graph_, Base::diffusion_, Base::setting_, Base::weights_, Base::weights_bar_, Base::nodes_,
      Base::output_;

 public:
  /// Takes any setting.
  [[nodiscard]] static bool suits(const LayerSetting& of) { return of.filter.active(); }
  /// \param graph, diffusion  must outlive the layer
  /// \param terms             `recompute` needs the spectrum of L̂ in [−1, 1]: elsewhere the recurrence run downwards
  ///                          is not stable. Of a degree up to 2 terms are kept
  /// \param workspace         shared by layers on the same graph, of the same shape, that run in turn; null: the layer's
  ///                          own.
  /// \throws std::invalid_argument  a missing filter, or one out of range; a shape of another graph or family
  /// \throws std::invalid_argument  a workspace of layers on another graph or of another shape
  PolynomialDiffusionLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const DiffusionOptions& options,
                           const PolynomialOptions& filter, FilterTerms terms = FilterTerms::keep,
                           std::shared_ptr<detail::FilterWorkspace<Family, S>> workspace = nullptr);
  PolynomialDiffusionLayer(const Graph&&, const DiffusionShape<S>&, const DiffusionOptions&,
                           const PolynomialOptions&, FilterTerms = FilterTerms::keep,
                           std::shared_ptr<detail::FilterWorkspace<Family, S>> = nullptr) = delete;
  PolynomialDiffusionLayer(const Graph&, const DiffusionShape<S>&&, const DiffusionOptions&,
                           const PolynomialOptions&, FilterTerms = FilterTerms::keep,
                           std::shared_ptr<detail::FilterWorkspace<Family, S>> = nullptr) = delete;

  /// Layer of a network.
  ///
  /// \param before  the layer before, whose workspace this layer shares; null for the first layer
  /// \throws std::invalid_argument  as above
  PolynomialDiffusionLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const LayerSetting& of,
                           const Layer<Family, S>* before)
      : PolynomialDiffusionLayer(graph, diffusion, of.diffusion, of.filter, of.terms, workspace_of(before)) {}

  /// Takes any list.
  void list_memory(std::vector<Buffer<S>*>& list) override {
    Base::list_memory(list);
    list.insert(list.end(), {&blocks_.arc, &blocks_.node, &terms_, &z_});
  }
  [[nodiscard]] DropoutMask& mask() noexcept override { return mixing_.mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override { return {.scales = true}; }
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  void forward(const LayerCall<Family, S>& call) override;
  /// Once after each forward() with training, before any other pass.
  ///
  /// \throws std::invalid_argument  see Layer; also weights of another shape
  /// \throws std::logic_error       the last pass was not a forward() with training
  void backward(const LayerBackwardCall<Family, S>& call) override;

 private:
  using Recurrence = detail::FilterRecurrence;
  using Pass = detail::FilterPass;

  template <class T>
  void check_weights(const DiffusionWeights<T>& weights, const FilterWeights<T>& filter) const {
    weights.check(setting_);
    require_size(filter.theta, filter_.degree + 1, "theta");
    if (filter_.skip != HighPassSkip::off) require_size(filter.skip, 1, "skip");
  }
  [[nodiscard]] double skip_of(const FilterWeights<const S>& filter) const {
    return filter_.skip == HighPassSkip::off ? 0.0 : static_cast<double>(filter.skip.front());
  }
  /// X where α multiplies it, else null: all else that α multiplies is part of the recurrence.
  [[nodiscard]] const S* skip_base() const { return filter_.skip == HighPassSkip::input ? input_ : nullptr; }
  static std::shared_ptr<detail::FilterWorkspace<Family, S>> workspace_of(const Layer<Family, S>* before) {
    const auto* same = dynamic_cast<const PolynomialDiffusionLayer*>(before);
    return same == nullptr ? nullptr : same->workspace_;
  }
  /// V_k, k ≥ 0, in tiles: all terms, or V_0 and the last two.
  [[nodiscard]] S* term(Index k) {
    return terms_.data() + tiles_.size() * (k == 0 || kept_ == FilterTerms::keep ? k : 1 + k % 2);
  }
  /// Y, in tiles.
  void mix(Execution execution, const DiffusionWeights<const S>& weights, const Dropout& dropout, bool keep,
           S* y) {
    mixing_.forward(execution, weights, input_, dropout, keep,
                    [&](Index first, Index nodes, const S* rows) { tiles_.put(first, nodes, rows, y); });
  }
  /// One step for a tile at the nodes of a range of chunks; `step` has the arrays of all tiles.
  template <detail::FilterPass P>
  detail::FilterSums<S> take_step(const detail::LaplacianBlocks<S>& blocks, Index tile, Index begin, Index end,
                                  detail::FilterStep<S> step, detail::FilterProducts<S> products = {}) const {
    const Index at = tile * tiles_.tile_size();
    step.x += at;
    step.previous = step.previous == nullptr ? step.x : step.previous + at;
    step.next += at;
    if (step.y != nullptr) step.y += at;
    if constexpr (P == Pass::backward) {
      for (const S** array : {&products.v, &products.v_before, &products.x_before}) *array += at;
    }
    return detail::filter_step<P>(workspace_->rows, blocks, *diffusion_, begin, end, step, products);
  }
  void add_terms(Execution execution, const Recurrence& of);
  const S* add_by_clenshaw(Execution execution, const Recurrence& of);
  const S* clenshaw_backward(Execution execution, const Recurrence& of);

  PolynomialOptions filter_;
  FilterTerms kept_ = FilterTerms::keep;
  detail::ChannelTiles<S> tiles_;
  FeatureMixing<S> mixing_;
  std::shared_ptr<detail::FilterWorkspace<Family, S>> workspace_;
  detail::LaplacianBlocks<S> blocks_;  ///< of forward(), for backward()
  Buffer<S> terms_;                    ///< V_0 … V_K, or V_0 and two of them, in tiles
  Buffer<S> z_;                        ///< Z, then G, n × d' × f
  FilterActivation<S> activation_;
  const S* input_ = nullptr;
  bool keeps_pass_ = false;  ///< do the buffers hold what backward() reads?
};

template <RestrictionMapFamily Family, class S>
PolynomialDiffusionLayer<Family, S>::PolynomialDiffusionLayer(
    const Graph& graph, const DiffusionShape<S>& diffusion, const DiffusionOptions& options,
    const PolynomialOptions& filter, FilterTerms terms,
    std::shared_ptr<detail::FilterWorkspace<Family, S>> workspace)
    : Base(graph, diffusion, {.diffusion = with_residual(options, true), .filter = filter}),
      filter_(filter),
      kept_(filter.degree > 2 ? terms : FilterTerms::keep),
      tiles_{graph.node_count(), diffusion.coordinates, diffusion.channels},
      mixing_(graph.own_node_count(), diffusion.coordinates, diffusion.channels, options.left, options.right),
      workspace_(workspace != nullptr ? std::move(workspace)
                                      : std::make_shared<detail::FilterWorkspace<Family, S>>()),
      activation_(mixing_.chunks(), tiles_, options.activation) {
  require(filter.active(), "filter.basis", to_string(filter.basis), "a polynomial layer needs a basis");
  validate(filter);
  workspace_->reserve(graph, diffusion, tiles_.size());
}

template <RestrictionMapFamily Family, class S>
void PolynomialDiffusionLayer<Family, S>::forward(const LayerCall<Family, S>& call) {
  this->begin(call);
  check_weights(weights_, call.filter);
  keeps_pass_ = false;
  input_ = call.x.data();
  if (call.training && terms_.empty()) {  // not before: networks that only evaluate do not need it
    z_.resize(output_.size());
    workspace_->reserve_backward(tiles_.groups());
    terms_.resize((kept_ == FilterTerms::keep ? std::max<Index>(filter_.degree, 1) + 1 : 3) * tiles_.size());
  }
  const Polynomial p(filter_, call.filter.theta);
  const double skip = skip_of(call.filter);
  const Recurrence recurrence(p, skip);
  const S* z = nullptr;
  workspace_->rows.build(call.execution, call.sheaf, call.training ? blocks_ : workspace_->blocks);
  if (call.training) {
    mix(call.execution, weights_, call.active_dropout(), false, term(0));
    add_terms(call.execution, recurrence);
    z = workspace_->b[0].data();
  } else {
    S* y = workspace_->y.data();
    if (call.mixing == MixedFeatures::reuse) {
      mixing_.chunks().for_each(call.execution, [&](Index, Index begin, Index end) {
        tiles_.put(begin, end - begin, mixing_.output() + begin * diffusion_->row(), y);
      });
    } else {
      mix(call.execution, weights_, Dropout{}, call.mixing == MixedFeatures::compute_and_keep, y);
    }
    z = add_by_clenshaw(call.execution, recurrence);
  }
  activation_.forward(call.execution, this->own_nodes(), weights_.epsilon, input_, skip_base(),
                      static_cast<S>(skip), z, call.training ? z_.data() : nullptr, output_.data());
  keeps_pass_ = call.training;
}

template <RestrictionMapFamily Family, class S>
void PolynomialDiffusionLayer<Family, S>::backward(const LayerBackwardCall<Family, S>& call) {
  if (!keeps_pass_) throw std::logic_error("backward: forward() must be the pass before it");
  this->check(call);
  check_weights(weights_, call.filter);
  check_weights(weights_bar_, call.filter_bar);
  const FilterWeights<const S>& filter = call.filter;
  const FilterWeights<S>& filter_bar = call.filter_bar;
  const Execution execution = call.execution;
  S* const x_bar = call.x_bar.data();
  keeps_pass_ = false;
  const Polynomial p(filter_, filter.theta);
  const double skip = skip_of(filter);
  const Recurrence recurrence(p, skip);
  activation_.backward(execution, nodes_, input_, skip_base(), call.output_bar.data(), z_.data(),
                       workspace_->y.data(), x_bar);
  const S* y_bar = clenshaw_backward(execution, recurrence);
  if constexpr (is_learned<Family>) {
    workspace_->rows.backward(execution, call.sheaf, tiles_.groups(), workspace_->blocks_bar, call.sheaf_gradient,
                              call.accumulate);
  }
  S gain[max_coordinates];
  activation_.gains(weights_.epsilon, gain);
  const auto y_bar_rows = [&](Index first, Index nodes, S* rows) {
    tiles_.take(first, nodes, y_bar, rows);
    return rows;
  };
  mixing_.backward(execution, weights_, gain, y_bar_rows, x_bar, weights_bar_);
  if (filter_.skip == HighPassSkip::input) {
    activation_.add_multiple(execution, z_.size(), static_cast<S>(skip), z_.data(), x_bar);  // X̄ += α G
  }
  detail::clear_halo(*graph_, x_bar, diffusion_->row());
  activation_.add_epsilon_bar(weights_.epsilon, weights_bar_.epsilon);
  std::array<double, static_cast<std::size_t>(max_polynomial_degree + 1)> w_bar{};
  double skip_bar = activation_.with_base();  // ⟨G, X − ΔY/λ_max⟩
  for (Index k = 0; k <= recurrence.steps(); ++k) {
    const double with_term = activation_.with_term(k);
    if (k <= filter_.degree) w_bar[static_cast<std::size_t>(k)] = with_term;
    skip_bar += recurrence.skip_share(k) * with_term;
  }
  p.backward(std::span<const double>(w_bar.data(), filter.theta.size()), filter_bar.theta);
  if (filter_.skip != HighPassSkip::off) filter_bar.skip.front() += static_cast<S>(skip_bar);
}

/// V_{k+1} = c_k ΔV_k + (B_k − A_k) V_k − C_k V_{k−1}, and in b[0] Σ_k (coefficient of P_k) V_k.
template <RestrictionMapFamily Family, class S>
void PolynomialDiffusionLayer<Family, S>::add_terms(Execution execution, const Recurrence& of) {
  const Index steps = of.steps(), row = tiles_.row();
  const NodeChunks& chunks = mixing_.chunks();
  const auto read = [&](Index k) { return term(k); };
  tiles_.for_steps(execution, chunks, graph_->part(), steps, read,
                   [&](Index, Index tile, Index k, Index from, Index to) {
                     const Index begin = chunks.begin(from), end = chunks.begin(to),
                                 at = tile * tiles_.tile_size();
                     detail::FilterStep<S> step;
                     step.of = of.upwards<S>(k);
                     step.x = term(k);
                     if (k > 0) step.previous = term(k - 1);
                     step.next = term(k + 1);
                     take_step<Pass::terms>(blocks_, tile, begin, end, step);
                     S* const z = workspace_->b[0].data() + at;
                     const S* in[max_polynomial_degree + 1];
                     S weight[max_polynomial_degree + 1];
                     if (kept_ == FilterTerms::recompute) {
                       in[0] = k == 0 ? term(0) + at : z;
                       weight[0] = k == 0 ? static_cast<S>(of.weight(0)) : S(1);
                       in[1] = term(k + 1) + at;
                       weight[1] = static_cast<S>(of.weight(k + 1));
                       detail::add_multiples(begin * row, end * row, 2, in, weight, z);
                     } else if (k + 1 == steps) {
                       for (Index i = 0; i <= steps; ++i) {
                         in[i] = term(i) + at;
                         weight[i] = static_cast<S>(of.weight(i));
                       }
                       detail::add_multiples(begin * row, end * row, steps + 1, in, weight, z);
                     }
                   });
}

/// b_k = w_k Y + (A_k L̂ + B_k) b_{k+1} − C_{k+1} b_{k+2}. \returns b_0
template <RestrictionMapFamily Family, class S>
const S* PolynomialDiffusionLayer<Family, S>::add_by_clenshaw(Execution execution, const Recurrence& of) {
  const Index last = of.steps();
  const NodeChunks& chunks = mixing_.chunks();
  S* const y = workspace_->y.data();
  // b_k, over b_{k+2}; in place of b_last = w y there is y itself.
  const auto b = [&](Index k) { return k == last ? y : workspace_->b[(last - 1 - k) % 2].data(); };
  tiles_.for_steps(
      execution, chunks, graph_->part(), last, [&](Index i) { return b(last - i); },
      [&](Index, Index tile, Index i, Index from, Index to) {
        const Index k = last - 1 - i;
        detail::FilterStep<S> step;
        step.of = of.clenshaw<S>(k);
        step.y = y;
        step.x = b(k + 1);
        if (k + 2 < last) step.previous = b(k + 2);
        step.next = b(k);
        take_step<Pass::sum>(workspace_->blocks, tile, chunks.begin(from), chunks.begin(to), step);
      });
  return b(0);
}

/// q_k = w_k G + (A_k L̂ + B_k) q_{k+1} − C_{k+1} q_{k+2}, k = K … 0, the derivatives of Δ's blocks and ⟨G, V_k⟩.
/// \returns Ȳ
template <RestrictionMapFamily Family, class S>
const S* PolynomialDiffusionLayer<Family, S>::clenshaw_backward(Execution execution, const Recurrence& of) {
  const Index last = of.steps(), row = tiles_.row();
  const NodeChunks& chunks = mixing_.chunks();
  S* const g = workspace_->y.data();
  // q_k, over q_{k+3}; in place of q_last = w G there is G itself.
  const auto q = [&](Index k) { return k == last ? g : workspace_->b[(last - 1 - k) % 3].data(); };
  // Where terms are recomputed, every other step is one of their recurrence.
  const Index turns = kept_ == FilterTerms::keep ? 1 : 2;
  const auto k_of = [&](Index turn) { return last - 1 - turn / turns; };
  const auto read = [&](Index turn) { return turn % turns == 0 ? q(k_of(turn) + 1) : term(k_of(turn)); };
  const auto take_turn = [&](Index group, Index tile, Index turn, Index from, Index to) {
    const Index k = k_of(turn), at = tile * tiles_.tile_size();
    detail::FilterStep<S> step;
    if (turn % turns == 1) {  // V_{k−1} = ((A_k L̂ + B_k) V_k − V_{k+1}) / C_k, over V_{k+1}
      if (k < 2) return;      // V_0 is known
      step.of = of.downwards<S>(k);
      step.x = term(k);
      step.previous = term(k + 1);
      step.next = term(k + 1);
      take_step<Pass::terms>(blocks_, tile, chunks.begin(from), chunks.begin(to), step);
      return;
    }
    step.of = of.clenshaw<S>(k);
    step.y = g;
    step.x = q(k + 1);
    if (k + 2 < last) step.previous = q(k + 2);
    step.next = q(k);
    if (k + 1 == last) {
      for (Index chunk = from; chunk < to; ++chunk) {
        const Index begin = chunks.begin(chunk) * row + at, end = chunks.end(chunk) * row + at;
        activation_.put_product(chunk, tile, last, detail::tile_product(begin, end, g, term(last)));
      }
    }
    const bool pair = (last - k) % 2 == 0;
    if (!pair && k > 0) {  // the next step takes the derivatives of both
      take_step<Pass::sum>(blocks_, tile, chunks.begin(from), chunks.begin(to), step);
      return;
    }
    detail::FilterProducts<S> products{term(k), term(pair ? k + 1 : k), q(pair ? k + 2 : k + 1)};
    if (pair) products.slope_before = of.clenshaw<S>(k + 1).slope;
    if constexpr (is_learned<Family>) {
      auto& bar = workspace_->blocks_bar;
      products.arc_bar = bar.arc.data() + group * graph_->arc_count() * workspace_->rows.arc_stride;
      products.node_bar = bar.node.data() + group * graph_->node_count() * workspace_->rows.node_stride;
      products.accumulate = k + 2 < last || tile > tiles_.first_tile(group);
    }
    for (Index chunk = from; chunk < to; ++chunk) {
      const auto sums =
          take_step<Pass::backward>(blocks_, tile, chunks.begin(chunk), chunks.end(chunk), step, products);
      activation_.put_product(chunk, tile, k, sums.with_v);
      if (pair) activation_.put_product(chunk, tile, k + 1, sums.with_v_before);
    }
  };
  tiles_.for_steps(execution, chunks, graph_->part(), turns * last, read, take_turn);
  return q(0);
}

}  // namespace sheafnn::layers
