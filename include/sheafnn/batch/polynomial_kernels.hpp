/// \file
/// Kernels of a polynomial filter: with V_k = P_k(L̂) Y and the high-pass features H = X − ΔY/λ_max (or Y − ΔY/λ_max),
///
///     V_{k+1} = c_k ΔV_k + (B_k − A_k) V_k − C_k V_{k−1},   Z = Σ_k w_k V_k + α H,   X' = (1 + tanh ε) ∘ X − ELU(Z),
///
/// and back from G = Z̄ with Clenshaw's recurrence (math: "Polynomial filters"; for one network
/// layers/polynomial_steps.hpp). A filter of degree 0 counts as one of degree 1 with w_1 = 0. Features as in
/// feature_kernels.hpp.
///
/// Unchecked: numbers of items, runs, instances and lanes, and the room behind pointers and views; BatchNetwork and
/// BatchTrainer check what they are given.
#pragma once

#include <cmath>

#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::batch::detail {

/// c_k = (2/λ_max) A_k, B_k − A_k and C_k of a step of the recurrence.
template <class S>
struct FilterNumbers {
  S slope = 0, own = 0, before = 0;
};

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
    double of_weights[max_polynomial_degree + 1];
    for (Index k = 0; k < terms; ++k) of_weights[k] = static_cast<double>(bar[k]);
    for (Index j = 0; j < terms; ++j) {
      double sum = 0;
      for (Index k = 0; k < terms; ++k) sum += jacobian[k * terms + j] * of_weights[k];
      bar[j] = static_cast<S>(sum);
    }
  }
};

/// out = S in at one node, D learned coordinates and the fixed filters after them; `scale` points at the node's S_u.
template <class Family, class S>
SHEAFNN_HD SHEAFNN_INLINE void scale_node(const S* scale, const S& inverse_root, const S* in, S* out) {
  constexpr int D = Family::stalk_dimension;
  times<D, BlockSizes<Family>::gram>(scale, in, out);
  SHEAFNN_UNROLL for (int i = D; i < D + 2; ++i) out[i] = inverse_root * in[i];
}

/// Step k: ΔV_k, from it V_{k+1} and its part of Z, and W_{k+1} = S V_{k+1} or, in the last step, X'. A team, or a lane
/// alone, per item (node, channel); group: instance.
template <class Family, class S>
struct FilterForward {
  using Scalar = S;
  static constexpr int max_coordinates = Diffusion<Family, S>::max_coordinates, outputs = max_coordinates;
  Diffusion<Family, S> diffusion;  ///< of W_k
  FilterNumbers<S> step;
  FilterWeightView<S> weights;
  Index k;
  const S *v, *previous;  ///< V_k, V_{k−1} (null: 0)
  const S* base;          ///< in step 0, what α multiplies besides −ΔY/λ_max; null: no high-pass term
  S* next;                ///< V_{k+1}, may be `previous`; null: not kept
  S *r, *high_pass;       ///< R_k, and H in step 0; null: not kept
  S* z;                   ///< Z so far
  S* w_next;              ///< W_{k+1}; null: this is the last step
  LayerOutput<S> output;
  int lanes;

  SHEAFNN_HD void part(Index item, Index instance, int lane, S* sums) const {
    diffusion.gather(item, instance, lane, lanes, sums);
  }
  SHEAFNN_HD void finish(Index item, Index instance, const S* sums) const {
    constexpr int size = BlockSizes<Family>::gram;
    const FeatureShape<S>& shape = diffusion.shape;
    const Index f = shape.channels, u = item / f, d = shape.coordinates, run = output.pass.run_of(instance);
    const Index index = instance * shape.size() + u * shape.row() + item % f;
    const S own_weight = weights.term(run, k), next_weight = weights.term(run, k + 1), skip = weights.skip(run);
    S diffused[max_coordinates] = {}, laplacian[max_coordinates] = {}, term[max_coordinates] = {};
    S sum[max_coordinates] = {};
    diffusion.finish(item, instance, sums, diffused, laplacian);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (i < d) {
        const Index at = index + i * f;
        const S own = v[at];
        term[i] = step.slope * laplacian[i] + step.own * own;
        if (previous != nullptr) term[i] -= step.before * previous[at];
        sum[i] = (k == 0 ? own_weight * own : z[at]) + next_weight * term[i];
        if (base != nullptr) {
          const S high = base[at] - weights.inverse_bound * laplacian[i];
          sum[i] += skip * high;
          if (high_pass != nullptr) high_pass[at] = high;
        }
        if (r != nullptr) r[at] = diffused[i];
        if (next != nullptr) next[at] = term[i];
        z[at] = sum[i];
      }
    }
    if (w_next != nullptr) {
      const S* scale = diffusion.sheaf.scale + (diffusion.range.slot(instance) * shape.nodes + u) * size;
      S scaled[max_coordinates];
      scale_node<Family>(scale, diffusion.graph.inverse_root[u], term, scaled);
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
        if (i < d) w_next[index + i * f] = scaled[i];
      }
      return;
    }
    output.store(shape, item, instance, sum);
  }
};

/// Ū_k = c_k q_{k+1}, less (α/λ_max) G for k = 0, and r̄_k = S Ū_k, at one node and channel.
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

  /// \param q, g  q_{k+1} and G, numbers of the coordinates
  SHEAFNN_HD SHEAFNN_INLINE void store(Index item, Index instance, Index run, const S* q, const S* g) const {
    const Index f = shape.channels, u = item / f, d = shape.coordinates;
    const Index index = instance * shape.size() + u * shape.row() + item % f;
    const S start = k == 0 ? -weights.skip(run) * weights.inverse_bound : S(0);
    S bar[max_coordinates], scaled[max_coordinates];
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] = i < d ? slope * q[i] + start * g[i] : S(0);
    scale_node<Family>(sheaf.scale + (range.slot(instance) * shape.nodes + u) * BlockSizes<Family>::gram,
                       graph.inverse_root[u], bar, scaled);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (i < d) {
        u_bar[index + i * f] = bar[i];
        r_bar[index + i * f] = scaled[i];
      }
    }
  }
};

/// G = −x̄ ∘ ELU′(Z), q_K = w_K G, and the cotangent of the last application of Δ. item (node, channel), group:
/// instance.
template <class Family, class S>
struct FilterActivationBackward {
  FilterCotangent<Family, S> last;
  Pass pass;
  bool activation;
  const S *z, *x_bar;
  S *g, *q;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    constexpr int max_coordinates = FilterCotangent<Family, S>::max_coordinates;
    const FeatureShape<S>& shape = last.shape;
    const Index f = shape.channels, run = pass.run_of(instance);
    const Index index = instance * shape.size() + item / f * shape.row() + item % f;
    const S weight = last.weights.term(run, last.k + 1);
    S bar[max_coordinates] = {}, first[max_coordinates] = {};
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (i < shape.coordinates) {
        const Index at = index + i * f;
        bar[i] = -x_bar[at] * (activation ? elu_derivative(z[at]) : S(1));
        first[i] = weight * bar[i];
        g[at] = bar[i];
        q[at] = first[i];
      }
    }
    last.store(item, instance, run, first, bar);
  }
};

/// Step k backwards: W̄_k = L r̄_k and q_k = ΔŪ_k + w_k G + (B_k − A_k) q_{k+1} − C_{k+1} q_{k+2}, from which comes the
/// cotangent of the application before or, for k = 0, Ȳ. A team, or a lane alone, per item (node, channel); group:
/// instance.
template <class Family, class S>
struct FilterBackward {
  using Scalar = S;
  static constexpr int max_coordinates = Diffusion<Family, S>::max_coordinates, outputs = max_coordinates;
  Diffusion<Family, S> diffusion;     ///< of r̄_k
  FilterCotangent<Family, S> before;  ///< of step k − 1, k > 0
  FilterWeightView<S> weights;
  Pass pass;
  Index k;
  S own, after_factor;     ///< B_k − A_k, C_{k+1}
  const S *g, *q, *after;  ///< G, q_{k+1}, q_{k+2} (null: 0)
  bool mixed;              ///< Ȳ has α G as well
  S* w_bar;
  S* out;  ///< q_k, may be `after`; Ȳ for k = 0
  int lanes;

  SHEAFNN_HD void part(Index item, Index instance, int lane, S* sums) const {
    diffusion.gather(item, instance, lane, lanes, sums);
  }
  SHEAFNN_HD void finish(Index item, Index instance, const S* sums) const {
    const FeatureShape<S>& shape = diffusion.shape;
    const Index f = shape.channels, run = pass.run_of(instance);
    const Index index = instance * shape.size() + item / f * shape.row() + item % f;
    const S direct = weights.term(run, k) + (k == 0 && mixed ? weights.skip(run) : S(0));
    S diffused[max_coordinates] = {}, value[max_coordinates] = {}, bar[max_coordinates] = {};
    diffusion.finish(item, instance, sums, diffused, value);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (i < shape.coordinates) {
        const Index at = index + i * f;
        bar[i] = g[at];
        value[i] += direct * bar[i] + own * q[at];
        if (after != nullptr) value[i] -= after_factor * after[at];
        w_bar[at] = diffused[i];
        out[at] = value[i];
      }
    }
    if (k > 0) before.store(item, instance, run, value, bar);
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
  Index coordinates, channels;
  RowChunks chunks;  ///< of nodes
  S* out;
  Index out_run;

  [[nodiscard]] SHEAFNN_HD Index chunk_stride() const noexcept {
    return (terms + (high_pass != nullptr ? 1 : 0)) * channels;
  }
  [[nodiscard]] Index items() const noexcept { return chunks.count() * chunk_stride(); }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index chunk = item / chunk_stride(), term = item % chunk_stride() / channels;
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
