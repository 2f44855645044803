/// \file
/// Kernels of a polynomial filter: with V_k = P_k(L̂) Y and the high-pass features H = X − ΔY/λ_max (or Y − ΔY/λ_max),
///
///     V_{k+1} = c_k ΔV_k + (B_k − A_k) V_k − C_k V_{k−1},   Z = Σ_k w_k V_k + α H,   X' = (1 + tanh ε) ∘ X − ELU(Z),
///
/// and back from G = Z̄ with Clenshaw's recurrence (math: "Polynomial filters"; for one network
/// layers/polynomial_steps.hpp). A filter of degree 0 counts as one of degree 1 with w_1 = 0. Features as in
/// feature_kernels.hpp.
#pragma once

#include <cmath>

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/kernels/recurrence.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"

namespace sheafnn::batch::detail {

using kernels::FilterFactors;

/// w and α of every run, as kernels read them.
template <class S>
struct FilterWeightView {
  const S* values = nullptr;  ///< w_0 … w_K, α per run; α = 0 without the high-pass term
  Index terms = 1;            ///< K + 1
  S inverse_bound = 0;        ///< 1 / λ_max

  [[nodiscard]] SHEAFNN_HD S term(Index run, Index k) const {
    return k < terms ? values[run * (terms + 1) + k] : S(0);
  }
  [[nodiscard]] SHEAFNN_HD S skip(Index run) const { return values[run * (terms + 1) + terms]; }
};

/// w and α from what is learned; item: k, or K + 1 for α; group: run.
template <class S>
struct FilterCoefficients {
  Index terms;             ///< K + 1
  bool softmax;            ///< w = softmax(θ)
  const double* jacobian;  ///< interpolation: ∂w_k/∂γ_j, terms × terms; else null
  const S* theta;
  const S* skip;  ///< null: α = 0
  Index parameter_stride;
  S* out;  ///< terms + 1 per run

  SHEAFNN_HD void operator()(Index item, Index run) const {
    using std::exp;
    const S* in = theta + run * parameter_stride;
    double value = 0;
    if (item == terms) {
      value = skip != nullptr ? static_cast<double>(skip[run * parameter_stride]) : 0.0;
    } else if (jacobian != nullptr) {
      for (Index j = 0; j < terms; ++j) value += jacobian[item * terms + j] * static_cast<double>(in[j]);
    } else if (softmax) {
      double largest = static_cast<double>(in[0]), sum = 0;
      for (Index j = 1; j < terms; ++j) {
        largest = static_cast<double>(in[j]) > largest ? static_cast<double>(in[j]) : largest;
      }
      for (Index j = 0; j < terms; ++j) sum += exp(static_cast<double>(in[j]) - largest);
      value = exp(static_cast<double>(in[item]) - largest) / sum;
    } else {
      value = static_cast<double>(in[item]);
    }
    out[run * (terms + 1) + item] = static_cast<S>(value);
  }
};

/// θ̄ from w̄, in place; one item, group: run.
template <class S>
struct FilterGradient {
  FilterWeightView<S> weights;
  const double* jacobian;  ///< of an interpolation; null: softmax
  S* theta_bar;
  Index parameter_stride;

  SHEAFNN_HD void operator()(Index, Index run) const {
    S* bar = theta_bar + run * parameter_stride;
    const Index terms = weights.terms;
    if (jacobian == nullptr) {
      double mean = 0;
      for (Index k = 0; k < terms; ++k) {
        mean += static_cast<double>(weights.term(run, k)) * static_cast<double>(bar[k]);
      }
      for (Index k = 0; k < terms; ++k) {
        bar[k] = static_cast<S>(static_cast<double>(weights.term(run, k)) * (static_cast<double>(bar[k]) - mean));
      }
      return;
    }
    double of_weights[layers::max_polynomial_degree + 1];
    for (Index k = 0; k < terms; ++k) of_weights[k] = static_cast<double>(bar[k]);
    for (Index j = 0; j < terms; ++j) {
      double sum = 0;
      for (Index k = 0; k < terms; ++k) sum += jacobian[k * terms + j] * of_weights[k];
      bar[j] = static_cast<S>(sum);
    }
  }
};

/// Step k: ΔV_k from W_k, from it V_{k+1} and its part of Z, and W_{k+1} = S V_{k+1} or, in the last step, X'.
template <class Family, class S>
struct FilterForward : DiffusionTeam<Family, S> {
  using typename DiffusionTeam<Family, S>::Place;
  using DiffusionTeam<Family, S>::max_coordinates, DiffusionTeam<Family, S>::diffusion;
  FilterFactors<S> step;
  FilterWeightView<S> weights;
  Index k;
  const S *v, *previous;  ///< V_k, V_{k−1} (null: 0)
  const S* base;          ///< in step 0, what α multiplies besides −ΔY/λ_max; null: no high-pass term
  S* next;                ///< V_{k+1}, may be `previous`; null: not kept
  S *r, *high_pass;       ///< R_k, and H in step 0; null: not kept
  S* z;                   ///< Z so far
  S* w_next;              ///< W_{k+1}; null: this is the last step
  LayerOutput<S> output;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    const NodeChannels& at = place.at;
    const Index run = output.pass.run_of(at.instance);
    const S own_weight = weights.term(run, k), next_weight = weights.term(run, k + 1), skip = weights.skip(run);
    Tile<S> diffused[max_coordinates], laplacian[max_coordinates], own[max_coordinates], other[max_coordinates];
    Tile<S> term[max_coordinates], sum[max_coordinates];
    diffusion.finish(place, sums, diffused, laplacian);
    if (r != nullptr) store_stalk(shape, at, diffused, r);
    load_stalk(shape, at, v, own);
    const FilterFactors<Tile<S>> factors{step.slope, step.own, step.before, step.direct};
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) term[i] = factors(laplacian[i], own[i]);
    if (previous != nullptr) {
      load_stalk(shape, at, previous, other);
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) term[i] = factors.with_previous(term[i], other[i]);
    }
    if (k == 0) {
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) sum[i] = own_weight * own[i];
    } else {
      load_stalk(shape, at, static_cast<const S*>(z), sum);
    }
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) sum[i] += next_weight * term[i];
    if (base != nullptr) {
      load_stalk(shape, at, base, other);
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
        other[i] -= weights.inverse_bound * laplacian[i];
        sum[i] += skip * other[i];
      }
      if (high_pass != nullptr) store_stalk(shape, at, other, high_pass);
    }
    if (next != nullptr) store_stalk(shape, at, term, next);
    store_stalk(shape, at, sum, z);
    if (w_next != nullptr) {
      Tile<S> scaled[max_coordinates];
      node_times<Family>(diffusion.sheaf().scale_of(place.slot, at.node), diffusion.graph.inverse_root[at.node],
                         term, scaled);
      store_stalk(shape, at, scaled, w_next);
      return;
    }
    output.store(shape, at, sum);
  }
};

/// Ū_k = c_k q_{k+1}, minus (α/λ_max) G for k = 0, and r̄_k = S Ū_k, at one node and some channels.
template <class Family, class S>
struct FilterCotangent {
  static constexpr int max_coordinates = Family::stalk_dimension + 2;
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  FilterWeightView<S> weights;
  Index k;
  S slope;  ///< c_k
  S *u_bar, *r_bar;

  /// \param q, g  q_{k+1} and G, values of the coordinates
  SHEAFNN_HD SHEAFNN_INLINE void store(const NodeChannels& at, Index run, const Tile<S>* q,
                                       const Tile<S>* g) const {
    const S start = k == 0 ? -weights.skip(run) * weights.inverse_bound : S(0);
    Tile<S> bar[max_coordinates], scaled[max_coordinates];
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] = slope * q[i] + start * g[i];
    node_times<Family>(sheaf.scale_of(range.slot(at.instance), at.node), graph.inverse_root[at.node], bar, scaled);
    store_stalk(shape, at, bar, u_bar);
    store_stalk(shape, at, scaled, r_bar);
  }
};

/// G = −x̄ ∘ ELU′(Z), q_K = w_K G, and the cotangent of the last application of Δ. item (node, channels), group:
/// instance.
template <class Family, class S>
struct FilterActivationBackward {
  FilterCotangent<Family, S> last;
  Pass pass;
  bool activation;
  const S *z, *x_bar;
  S *g, *q;

  [[nodiscard]] SHEAFNN_HD NodeChannels place(Index item, Index instance) const {
    return last.shape.place(item, instance);
  }

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int max_coordinates = FilterCotangent<Family, S>::max_coordinates;
    const FeatureShape<S>& shape = last.shape;
    const Index run = pass.run_of(at.instance);
    const S weight = last.weights.term(run, last.k + 1);
    Tile<S> bar[max_coordinates], sum[max_coordinates], first[max_coordinates];
    load_stalk(shape, at, x_bar, bar);
    load_stalk(shape, at, z, sum);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      bar[i] = kernels::activated_bar(bar[i], sum[i], activation);
      first[i] = weight * bar[i];
    }
    store_stalk(shape, at, bar, g);
    store_stalk(shape, at, first, q);
    last.store(at, run, first, bar);
  }
};

/// Step k backwards from r̄_k: W̄_k = L r̄_k and q_k = ΔŪ_k + w_k G + (B_k − A_k) q_{k+1} − C_{k+1} q_{k+2}, from which
/// comes the cotangent of the application before or, for k = 0, Ȳ.
template <class Family, class S>
struct FilterBackward : DiffusionTeam<Family, S> {
  using typename DiffusionTeam<Family, S>::Place;
  using DiffusionTeam<Family, S>::max_coordinates, DiffusionTeam<Family, S>::diffusion;
  FilterCotangent<Family, S> before;  ///< of step k − 1, k > 0
  FilterWeightView<S> weights;
  Pass pass;
  Index k;
  S own, after_factor;     ///< B_k − A_k, −C_{k+1}
  const S *g, *q, *after;  ///< G, q_{k+1}, q_{k+2} (null: 0)
  bool mixed;              ///< Ȳ has α G as well
  S* w_bar;
  S* out;  ///< q_k, may be `after`; Ȳ for k = 0

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    const NodeChannels& at = place.at;
    const Index run = pass.run_of(at.instance);
    const S direct = weights.term(run, k) + (k == 0 && mixed ? weights.skip(run) : S(0));
    Tile<S> diffused[max_coordinates], value[max_coordinates], bar[max_coordinates], other[max_coordinates];
    diffusion.finish(place, sums, diffused, value);
    store_stalk(shape, at, diffused, w_bar);
    load_stalk(shape, at, g, bar);
    load_stalk(shape, at, q, other);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) value[i] += direct * bar[i] + own * other[i];
    if (after != nullptr) {
      load_stalk(shape, at, after, other);
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) value[i] += after_factor * other[i];
    }
    store_stalk(shape, at, value, out);
    if (k > 0) before.store(at, run, value, bar);
  }
};

/// Partial sums of w̄_k = ⟨G, V_k⟩ and of ᾱ = ⟨G, H⟩ over chunks of nodes: item (chunk, term, channel), group: run.
template <class S>
struct FilterProducts {
  const S* g;
  StackedFeatures<S> v;
  const S* high_pass;  ///< null: no high-pass term
  Index terms;         ///< K + 1
  Index run_stride;    ///< of all of them
  Index coordinates;
  Divisor channels;
  RowChunks chunks;  ///< of nodes
  S* out;
  Index out_run;
  Divisor chunk_stride = (terms + (high_pass != nullptr ? 1 : 0)) * channels;

  [[nodiscard]] Index items() const noexcept { return chunks.count() * chunk_stride; }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index chunk = item / chunk_stride, term = item % chunk_stride / channels;
    const Index shift = run * run_stride + item % channels, row = coordinates * channels, end = chunks.end(chunk);
    const S* left = g + shift;
    const S* right = (term < terms ? v.at(term) : high_pass) + shift;
    S sum = S(0);
    for (Index u = chunks.begin(chunk); u < end; ++u) {
      for (Index i = 0; i < coordinates; ++i) sum += left[u * row + i * channels] * right[u * row + i * channels];
    }
    out[run * out_run + item] = sum;
  }
};

}  // namespace sheafnn::batch::detail
