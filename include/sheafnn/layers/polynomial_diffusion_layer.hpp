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
/// Backwards Clenshaw's recurrence runs on G = Z̄ instead of Y; each step hands its share to the blocks of Δ.
/// Source: math: "Polynomial filters"; Polynomial Neural Sheaf Diffusion (arXiv 2512.00242).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/diffusion_layer.hpp"
#include "sheafnn/layers/polynomial_activation.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/layers/polynomial_steps.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn {

/// What becomes of the terms V_1 … V_K between the passes.
enum class FilterTerms {
  keep,      ///< K arrays of the size of the features
  recompute  ///< V_{K−1} and V_K; the others come back from the recurrence run downwards
};

/// Which of both a network takes: terms are recomputed where those of a layer would take more than 64 MiB and the
/// spectrum of L̂ is within [−1, 1] whatever the maps are, so that running down is as stable as running up.
///
/// \param term_bytes  of one term
[[nodiscard]] inline FilterTerms choose_terms(const PolynomialOptions& options, Normalisation normalisation,
                                              std::size_t term_bytes) {
  constexpr std::size_t most = std::size_t{64} << 20;
  const bool bounded = normalisation == Normalisation::augmented && options.largest_eigenvalue >= 2;
  const bool large = static_cast<std::size_t>(options.degree) * term_bytes > most;
  return bounded && large && options.degree > 2 && !options.published ? FilterTerms::recompute : FilterTerms::keep;
}

/// Arrays that passes write and no other pass reads; layers of one network, which run in turn, share them.
template <class S>
struct FilterWorkspace {
  Buffer<S> w[2], q[2], r_bar[2];

  /// Takes the memory of evaluations, and of backward passes; once for all layers.
  void reserve(Index size) {
    for (Buffer<S>* buffer : {&w[0], &w[1], &q[0], &q[1]}) {
      if (buffer->size() != size) buffer->resize(size);
    }
  }
  void reserve_backward(Index size) {
    for (Buffer<S>& buffer : r_bar) {
      if (buffer.size() != size) buffer.resize(size);
    }
  }
};

/// Buffers of one layer on one graph. Features are n × d' × f, channels innermost.
template <RestrictionMapFamily Family, class S>
class PolynomialDiffusionLayer {
 public:
  PolynomialDiffusionLayer() = default;
  /// \param graph, diffusion  must outlive the layer
  /// \param workspace         shared by layers that run in turn; null: the layer's own
  /// \throws std::invalid_argument  a filter out of range, or none
  PolynomialDiffusionLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const DiffusionOptions& options,
                           const PolynomialOptions& filter, FilterTerms terms = FilterTerms::keep,
                           std::shared_ptr<FilterWorkspace<S>> workspace = nullptr);

  /// X' at the nodes of the last pass, one row of d' × f each.
  [[nodiscard]] FeatureView<const S> output() const noexcept {
    return {output_.data(), nodes_.count(), diffusion_->coordinates, diffusion_->channels};
  }
  /// That of the dropout of X.
  [[nodiscard]] DropoutMask& mask() noexcept { return mixing_.mask(); }

  /// Computes output() at some nodes from x (n × d' × f), which must not change until backward().
  ///
  /// \throws std::invalid_argument  features or weights of another shape
  void forward(Execution execution, const DiffusionWeights<const S>& weights, const FilterWeights<const S>& filter,
               const SheafBlocks<Family, S>& sheaf, const FeatureView<const S>& x, const Dropout& dropout,
               const NodeSelection& nodes);

  /// Computes output() without dropout, and nothing that only backward() needs.
  void evaluate(Execution execution, const DiffusionWeights<const S>& weights,
                const FilterWeights<const S>& filter, const SheafBlocks<Family, S>& sheaf,
                const FeatureView<const S>& x, const NodeSelection& nodes, MixedFeatures mixed);

  /// From the derivative of output() to that of the input, and to the gradients of weights (added to) and of the
  /// sheaf's blocks; once after each forward().
  ///
  /// \param accumulate  add to sheaf_gradient instead of overwriting it
  /// \param output_bar  of the same shape as output(); where that has all nodes, may be x_bar
  /// \param x_bar       n × d' × f, overwritten
  void backward(Execution execution, const DiffusionWeights<const S>& weights,
                const FilterWeights<const S>& filter, const SheafBlocks<Family, S>& sheaf,
                SheafBlocksGradient<Family, S>& sheaf_gradient, bool accumulate,
                const FeatureView<const S>& output_bar, const FeatureView<S>& x_bar,
                const DiffusionWeights<S>& weights_bar, const FilterWeights<S>& filter_bar);

 private:
  using Recurrence = detail::FilterRecurrence;

  template <class T>
  void check_weights(const DiffusionWeights<T>& weights, const FilterWeights<T>& filter) const {
    const Index d = diffusion_->coordinates, f = diffusion_->channels;
    if (options_.left) require_array(weights.left, d, d, "left weights");
    if (options_.right) require_array(weights.right, f, f, "right weights");
    require_size(weights.epsilon, d, "epsilon");
    require_size(filter.theta, filter_.degree + 1, "theta");
    if (filter_.skip != HighPassSkip::off) require_size(filter.skip, 1, "skip");
  }
  [[nodiscard]] double skip_of(const FilterWeights<const S>& filter) const {
    return filter_.skip == HighPassSkip::off ? 0.0 : static_cast<double>(filter.skip.front());
  }
  /// What α multiplies besides −ΔY/λ_max: X, Y or nothing.
  [[nodiscard]] const S* skip_base() const {
    return filter_.skip == HighPassSkip::off     ? nullptr
           : filter_.skip == HighPassSkip::input ? input_
                                                 : mixing_.output();
  }
  void start(const DiffusionWeights<const S>& weights, const FilterWeights<const S>& filter,
             const FeatureView<const S>& x, const NodeSelection& nodes) {
    require_shape(x, graph_->node_count(), diffusion_->coordinates, diffusion_->channels, "x");
    check_weights(weights, filter);
    input_ = x.data();
    nodes_ = nodes;
  }
  /// V_k.
  [[nodiscard]] const S* term(Index k) const { return k == 0 ? mixing_.output() : terms_.data() + room(k); }
  [[nodiscard]] S* term_room(Index k) { return terms_.data() + room(k); }
  [[nodiscard]] Index room(Index k) const { return (kept_ == FilterTerms::keep ? k - 1 : k % 2) * size_; }

  /// w = S Y.
  void mix_and_scale(Execution execution, const DiffusionWeights<const S>& weights,
                     const SheafBlocks<Family, S>& sheaf, const Dropout& dropout, S* w) {
    const Index row = diffusion_->row();
    mixing_.forward(execution, weights, input_, dropout, true, [&](Index first, Index nodes, const S* y) {
      detail::scale_rows<Family>(*diffusion_, sheaf, first, nodes, y, w + first * row);
    });
  }
  /// Applies Δ at some nodes to what w = S U came from, and does with it what `step` says.
  void apply(Execution execution, const SheafBlocks<Family, S>& sheaf, const NodeSelection& nodes, const S* w,
             detail::FilterStep<Family, S>& step) const {
    step.shape = diffusion_;
    step.sheaf = &sheaf;
    step.nodes = &nodes;
    step.y = mixing_.output();
    detail::apply_laplacian<Family>(execution, *graph_, *diffusion_, sheaf, nodes, w, step);
  }
  void add_terms(Execution execution, const SheafBlocks<Family, S>& sheaf, const Recurrence& of);
  const S* add_by_clenshaw(Execution execution, const SheafBlocks<Family, S>& sheaf, const Recurrence& of);
  const S* clenshaw_backward(Execution execution, const SheafBlocks<Family, S>& sheaf, const Recurrence& of,
                             SheafBlocksGradient<Family, S>& sheaf_gradient, bool accumulate, double skip);

  const Graph* graph_ = nullptr;
  const DiffusionShape<S>* diffusion_ = nullptr;
  DiffusionOptions options_;
  PolynomialOptions filter_;
  FilterTerms kept_ = FilterTerms::keep;
  Index size_ = 0;  ///< n · d' · f
  FeatureMixing<S> mixing_;
  std::shared_ptr<FilterWorkspace<S>> workspace_;
  Buffer<S> terms_;  ///< V_1 … V_K, or two of them
  Buffer<S> z_;      ///< Z, then G
  Buffer<S> output_;
  FilterActivation<S> activation_;
  const S* input_ = nullptr;
  NodeSelection nodes_;  ///< at which forward() computed output()
};

template <RestrictionMapFamily Family, class S>
PolynomialDiffusionLayer<Family, S>::PolynomialDiffusionLayer(const Graph& graph,
                                                              const DiffusionShape<S>& diffusion,
                                                              const DiffusionOptions& options,
                                                              const PolynomialOptions& filter, FilterTerms terms,
                                                              std::shared_ptr<FilterWorkspace<S>> workspace)
    : graph_(&graph),
      diffusion_(&diffusion),
      options_(options),
      filter_(filter),
      kept_(filter.degree > 2 ? terms : FilterTerms::keep),
      size_(graph.node_count() * diffusion.row()),
      mixing_(graph.node_count(), diffusion.coordinates, diffusion.channels, options.left, options.right),
      workspace_(workspace != nullptr ? std::move(workspace) : std::make_shared<FilterWorkspace<S>>()),
      output_(size_),
      activation_(mixing_.chunks(), diffusion.coordinates, diffusion.channels, options.activation) {
  require(filter.active(), "filter.basis", to_string(filter.basis), "a polynomial layer needs one");
  validate(filter);
  workspace_->reserve(size_);
}

template <RestrictionMapFamily Family, class S>
void PolynomialDiffusionLayer<Family, S>::forward(Execution execution, const DiffusionWeights<const S>& weights,
                                                  const FilterWeights<const S>& filter,
                                                  const SheafBlocks<Family, S>& sheaf,
                                                  const FeatureView<const S>& x, const Dropout& dropout,
                                                  const NodeSelection& nodes) {
  start(weights, filter, x, nodes);
  if (terms_.empty()) {  // not before: networks that only evaluate do without
    terms_.resize((kept_ == FilterTerms::keep ? std::max<Index>(filter_.degree, 1) : 2) * size_);
    z_.resize(size_);
    workspace_->reserve_backward(size_);
  }
  const Polynomial p(filter_, filter.theta);
  const double skip = skip_of(filter);
  mix_and_scale(execution, weights, sheaf, dropout, workspace_->w[0].data());
  add_terms(execution, sheaf, Recurrence(p, skip));
  activation_.forward(execution, nodes_, weights.epsilon, input_, skip_base(), static_cast<S>(skip), z_.data(),
                      z_.data(), output_.data());
}

template <RestrictionMapFamily Family, class S>
void PolynomialDiffusionLayer<Family, S>::evaluate(Execution execution, const DiffusionWeights<const S>& weights,
                                                   const FilterWeights<const S>& filter,
                                                   const SheafBlocks<Family, S>& sheaf,
                                                   const FeatureView<const S>& x, const NodeSelection& nodes,
                                                   MixedFeatures mixed) {
  start(weights, filter, x, nodes);
  const Polynomial p(filter_, filter.theta);
  const double skip = skip_of(filter);
  S* w = workspace_->w[0].data();
  if (mixed == MixedFeatures::reuse) {
    detail::scale_features<Family>(execution, *graph_, *diffusion_, sheaf, mixing_.output(), w);
  } else {
    mix_and_scale(execution, weights, sheaf, Dropout{}, w);
  }
  const S* z = add_by_clenshaw(execution, sheaf, Recurrence(p, skip));
  activation_.forward(execution, nodes_, weights.epsilon, input_, skip_base(), static_cast<S>(skip), z, nullptr,
                      output_.data());
}

template <RestrictionMapFamily Family, class S>
void PolynomialDiffusionLayer<Family, S>::backward(
    Execution execution, const DiffusionWeights<const S>& weights, const FilterWeights<const S>& filter,
    const SheafBlocks<Family, S>& sheaf, SheafBlocksGradient<Family, S>& sheaf_gradient, bool accumulate,
    const FeatureView<const S>& output_bar, const FeatureView<S>& x_bar, const DiffusionWeights<S>& weights_bar,
    const FilterWeights<S>& filter_bar) {
  require_shape(output_bar, nodes_.count(), diffusion_->coordinates, diffusion_->channels, "output_bar");
  require_shape(x_bar, graph_->node_count(), diffusion_->coordinates, diffusion_->channels, "x_bar");
  check_weights(weights_bar, filter_bar);
  const Polynomial p(filter_, filter.theta);
  const double skip = skip_of(filter);
  const Recurrence recurrence(p, skip);
  const S* g = z_.data();
  activation_.backward(execution, nodes_, input_, skip_base(), term(recurrence.steps()), recurrence.steps(),
                       output_bar.data(), z_.data(), x_bar.data());
  const S* y_bar = clenshaw_backward(execution, sheaf, recurrence, sheaf_gradient, accumulate, skip);
  S gain[max_coordinates];
  activation_.gains(weights.epsilon, gain);
  mixing_.backward(execution, weights, gain, y_bar, x_bar.data(), weights_bar);
  if (filter_.skip == HighPassSkip::input) {
    activation_.add_multiple(execution, size_, static_cast<S>(skip), g, x_bar.data());  // X̄ += α G
  }
  activation_.add_epsilon_bar(weights.epsilon, weights_bar.epsilon);
  std::array<double, static_cast<std::size_t>(max_polynomial_degree + 1)> w_bar{};
  for (Index k = 0; k <= filter_.degree; ++k) w_bar[static_cast<std::size_t>(k)] = activation_.with_term(k);
  p.backward(std::span<const double>(w_bar.data(), filter.theta.size()), filter_bar.theta);
  if (filter_.skip != HighPassSkip::off) {  // ᾱ = ⟨G, X − ΔY/λ_max⟩
    filter_bar.skip.front() +=
        static_cast<S>(activation_.with_base() - activation_.with_laplacian() / filter_.largest_eigenvalue);
  }
}

/// V_{k+1} = c_k ΔV_k + (B_k − A_k) V_k − C_k V_{k−1} and Z = Σ_k w_k V_k − (α/λ_max) ΔV_0, from w[0] = S Y.
template <RestrictionMapFamily Family, class S>
void PolynomialDiffusionLayer<Family, S>::add_terms(Execution execution, const SheafBlocks<Family, S>& sheaf,
                                                    const Recurrence& of) {
  const NodeSelection all(graph_->node_count());
  auto& w = workspace_->w;
  for (Index k = 0; k < of.steps(); ++k) {
    const bool last = k + 1 == of.steps();
    detail::FilterStep<Family, S> step;
    step.slope = static_cast<S>(of.slope(k));
    step.last = term(k);
    step.own = static_cast<S>(of.own(k));
    if (k > 0) {
      step.previous = term(k - 1);
      step.before = static_cast<S>(-of.before(k));
    }
    step.next = term_room(k + 1);
    step.sum = z_.data();
    step.sum_next = static_cast<S>(of.weight(k + 1));
    if (k == 0) {
      step.first = true;
      step.sum_y = static_cast<S>(of.weight(0));
      step.sum_slope = static_cast<S>(-of.skip());
    }
    if (!last) step.w = w[(k + 1) % 2].data();
    const bool here_only = last && kept_ == FilterTerms::keep;  // running downwards needs V_K at all nodes
    apply(execution, sheaf, here_only ? nodes_ : all, w[k % 2].data(), step);
  }
}

/// b_k = w_k Y + (A_k L̂ + B_k) b_{k+1} − C_{k+1} b_{k+2} − δ_{k0} (α/λ_max) ΔY, from w[0] = S Y. \returns b_0
template <RestrictionMapFamily Family, class S>
const S* PolynomialDiffusionLayer<Family, S>::add_by_clenshaw(Execution execution,
                                                              const SheafBlocks<Family, S>& sheaf,
                                                              const Recurrence& of) {
  const NodeSelection all(graph_->node_count());
  auto& [w, b, unused] = *workspace_;
  static_cast<void>(unused);
  const Index steps = of.steps();
  for (Index k = steps; k-- > 0;) {
    const Index i = steps - 1 - k;  // b_k is in b[i % 2], over b_{k+2}
    const auto from = of.clenshaw<S>(k);
    detail::FilterStep<Family, S> step;
    step.slope = i == 0 ? from.start : S(1);  // the first step's U is start · Y
    step.direct = from.direct;
    step.next = b[i % 2].data();
    if (i > 0) {
      step.last = b[(i + 1) % 2].data();
      step.own = from.own;
    }
    if (i > 1) {
      step.previous = b[i % 2].data();
      step.before = from.before;
    }
    if (k > 0) {
      const auto next = of.clenshaw<S>(k - 1);
      step.w = w[(i + 1) % 2].data();
      step.w_next = next.slope;
      step.w_y = next.start;
    }
    apply(execution, sheaf, k == 0 ? nodes_ : all, w[i % 2].data(), step);
  }
  return b[(steps - 1) % 2].data();
}

/// q_k = w_k G + (A_k L̂ + B_k) q_{k+1} − C_{k+1} q_{k+2}, k = K − 1 … 0, with −(α/λ_max) ΔG added in the last step, and
/// the derivatives with respect to S, L and D of every application of Δ. \returns Ȳ
template <RestrictionMapFamily Family, class S>
const S* PolynomialDiffusionLayer<Family, S>::clenshaw_backward(Execution execution,
                                                                const SheafBlocks<Family, S>& sheaf,
                                                                const Recurrence& of,
                                                                SheafBlocksGradient<Family, S>& sheaf_gradient,
                                                                bool accumulate, double skip) {
  auto& [w, q, r_bar] = *workspace_;
  const S* g = z_.data();
  const Index steps = of.steps();
  activation_.scale(execution, size_, of.clenshaw<S>(steps - 1).start, g, q[1].data());
  detail::scale_features<Family>(execution, *graph_, *diffusion_, sheaf, q[1].data(), r_bar[0].data());
  detail::scale_features<Family>(execution, *graph_, *diffusion_, sheaf, term(steps - 1), w[0].data());
  for (Index k = steps; k-- > 0;) {
    const Index i = steps - 1 - k;  // q_k is in q[i % 2], over q_{k+2}
    detail::FilterStepBackward<S> step;
    step.step = of.clenshaw<S>(k);
    step.v = term(k);
    step.w = w[i % 2].data();
    step.r_bar = r_bar[i % 2].data();
    step.g = g;
    if (i > 0) step.q = q[(i + 1) % 2].data();
    if (i > 1) step.after = q[i % 2].data();
    step.q_next = q[i % 2].data();
    if (k == 0 && filter_.skip == HighPassSkip::mixed) step.step.direct += static_cast<S>(skip);  // Ȳ += α G
    if (k > 0) {
      const auto next = of.clenshaw<S>(k - 1);
      step.w_next = w[(i + 1) % 2].data();
      step.r_bar_next = r_bar[(i + 1) % 2].data();
      step.w_step = next.slope;
      step.w_start = next.start;
      if (k == 1 || kept_ == FilterTerms::keep) {
        step.v_before = term(k - 1);
      } else {  // V_{k−1} = ((A_k L̂ + B_k) V_k − V_{k+1}) / C_k, over V_{k+1}
        step.v_after = term_room(k + 1);
        step.v_slope = static_cast<S>(of.slope(k) / of.before(k));
        step.v_own = static_cast<S>(of.own(k) / of.before(k));
        step.v_factor = static_cast<S>(-1 / of.before(k));
      }
    }
    detail::filter_step_backward<Family>(execution, *graph_, *diffusion_, sheaf, mixing_.chunks(), step,
                                         sheaf_gradient, accumulate || i > 0,
                                         [&](Index chunk, S with_term, S with_laplacian) {
                                           activation_.add_products(chunk, k, with_term, with_laplacian);
                                         });
  }
  return q[(steps - 1) % 2].data();
}

}  // namespace sheafnn
