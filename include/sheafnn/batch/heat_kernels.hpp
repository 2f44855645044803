/// \file
/// Kernels of a heat operator, Y = Σ_k c_k M^k X with coefficients of every bundle, and of its backward pass (formulas:
/// kernels/heat.hpp; for one network layers/heat_operator.hpp). Rows are n × (B · row) per instance, the values of bundle b
/// at [b · row, (b + 1) · row).
#pragma once

#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/sage.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/heat.hpp"
#include "sheafnn/layers/heat_options.hpp"

namespace sheafnn::batch::detail {

/// The weights of an operator in run 0, its coefficients and their derivatives.
template <class S>
struct HeatView {
  static constexpr int hop_count = static_cast<int>(layers::hop_powers.size());
  bool of_laplacian = false;
  Index degree = 0, bundles = 0;
  double fixed_time = 0;    ///< where there is no learned time
  const double* eigenvalue = nullptr;  ///< λ_j, with j in place of k; null: a sum of powers
  const S* time = nullptr;  ///< B values; null: not learned
  const S* hops = nullptr;  ///< B × hop_count; null: a series
  Index parameter_stride = 0;
  Index power[hop_count] = {};
  double* value = nullptr;  ///< c_k by run, bundle and k
  double* bar = nullptr;    ///< their derivatives

  [[nodiscard]] SHEAFNN_HD Index of_bundle(Index run, Index bundle) const {
    return (run * bundles + bundle) * (degree + 1);
  }
  [[nodiscard]] SHEAFNN_HD const S* hops_of(Index run, Index bundle) const {
    return hops + run * parameter_stride + bundle * hop_count;
  }
  [[nodiscard]] SHEAFNN_HD double time_of(Index run, Index bundle) const {
    if (time == nullptr) return fixed_time;
    const double t = static_cast<double>(time[run * parameter_stride + bundle]);
    return t > 0 ? t : 0;
  }
};

/// The coefficients. item: bundle, group: run.
template <class S>
struct SetHeat {
  HeatView<S> heat;

  SHEAFNN_HD void operator()(Index bundle, Index run) const {
    double* value = heat.value + heat.of_bundle(run, bundle);
    if (heat.hops == nullptr) {
      kernels::series_coefficients(heat.of_laplacian, heat.time_of(run, bundle), heat.degree,
                                   [&](Index k, double c) { value[k] = c; });
      return;
    }
    constexpr int count = HeatView<S>::hop_count;
    double share[count];
    kernels::hop_shares<count>(heat.hops_of(run, bundle), share);
    for (Index k = 0; k <= heat.degree; ++k) value[k] = 0;
    for (int j = 0; j < count; ++j) value[heat.power[j]] = share[j];
  }
};
/// Derivatives of the weights from the derivatives of the coefficients, the values of a bundle one after another. item:
/// bundle, group: run.
template <class S>
struct HeatGradient {
  HeatView<S> heat;
  S* out;
  Index out_run;

  SHEAFNN_HD void operator()(Index bundle, Index run) const {
    const double *value = heat.value + heat.of_bundle(run, bundle), *bar = heat.bar + heat.of_bundle(run, bundle);
    if (heat.hops == nullptr) {
      const bool moves = heat.time[run * heat.parameter_stride + bundle] > S(0);
      const auto value_of = [&](Index k) { return value[k]; };
      const auto bar_of = [&](Index k) { return bar[k]; };
      const auto lambda = [&](Index j) { return heat.eigenvalue[j]; };
      const double sum = heat.eigenvalue != nullptr
                             ? kernels::spectral_time_bar(heat.degree + 1, lambda, value_of, bar_of)
                             : kernels::series_time_bar(heat.of_laplacian, heat.degree, value_of, bar_of);
      out[run * out_run + bundle] = moves ? static_cast<S>(sum) : S(0);
      return;
    }
    constexpr int count = HeatView<S>::hop_count;
    double share[count];
    kernels::hop_shares<count>(heat.hops_of(run, bundle), share);
    S* to = out + run * out_run + bundle * count;
    kernels::hop_logits_bar<count>(
        share, [&](int j) { return bar[heat.power[j]]; },
        [&](int j, double number) { to[j] = static_cast<S>(number); });
  }
};

/// Where a term M^k X goes, and how it is read by the next one: Â_uv = l_u r_v.
template <class S>
struct HeatTerm {
  HeatView<S> heat;
  FeatureShape<S> shape;  ///< n × 1 × h
  Divisor row, copies;
  const S* right;  ///< r of every node
  Index k;
  bool used;  ///< is any c_k not 0?
  S* term;    ///< M^k X
  S* scaled;  ///< r ∘ M^k X; null: no term follows
  S* sum;     ///< += c_k M^k X; with k = 0 it is overwritten

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const NodeChannels& at, const Tile<S>& value) const {
    const Tile<S> own[1] = {value};
    store_stalk(shape, at, own, term);
    if (scaled != nullptr) {
      const Tile<S> sent[1] = {Tile<S>(right[at.node]) * value};
      store_stalk(shape, at, sent, scaled);
    }
    if (!used && k > 0) return;
    Tile<S> total[1] = {Tile<S>(S(0))};
    if (k > 0) load_stalk(shape, at, sum, total);
    if (used) total[0] += factors(at) * value;
    store_stalk(shape, at, total, sum);
  }

 private:
  /// c_k of the bundles that the channels belong to.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE Tile<S> factors(const NodeChannels& at) const {
    const double* value = heat.value + heat.of_bundle(at.instance / copies, 0) + k;
    S factor[4] = {};
    for (int c = 0; c < at.range.count; ++c) {
      factor[c] = static_cast<S>(value[(Index{at.channel} + c) / row * (heat.degree + 1)]);
    }
    return Tile<S>::load(factor);
  }
};
/// The term X. item (node, channels), group: instance.
template <class S>
struct FirstHeatTerm {
  HeatTerm<S> to;
  const S* x;

  [[nodiscard]] SHEAFNN_HD NodeChannels place(Index item, Index instance) const {
    return to.shape.place(item, instance);
  }
  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> value[1];
    load_stalk(to.shape, at, x, value);
    to.store(at, value[0]);
  }
};
/// The term M^k X from the term before.
template <class S>
struct NextHeatTerm : RowTeam<S> {
  using typename RowTeam<S>::Place;
  using RowTeam<S>::diffusion;
  HeatTerm<S> to;
  const S* left;    ///< l of every node
  bool self_loops;  ///< has Â the diagonal, too?
  const S *before, *before_scaled;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    Tile<S> sum[1], own[1];
    unpack(sums, sum);
    if (self_loops) {
      load_stalk(to.shape, place.at, before_scaled, own);
      sum[0] += own[0];
    }
    Tile<S> value = Tile<S>(left[place.at.node]) * sum[0];
    if (to.heat.of_laplacian) {
      load_stalk(to.shape, place.at, before, own);
      value = value - own[0];
    }
    to.store(place.at, value);
  }
};

/// Partial sums of ⟨with, term⟩_b over chunks of a run's rows. item (chunk, bundle), group: run.
template <class S>
struct HeatProducts {
  RowChunks chunks;
  Divisor bundles;
  Index row;
  const S *term, *with;
  Index size;  ///< of a run
  double* out;
  Index out_run;

  [[nodiscard]] Index items() const noexcept { return chunks.count() * bundles; }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index chunk = item / bundles, width = bundles * row, end = chunks.end(chunk);
    const Index first = run * size + item % bundles * row;
    double sum = 0;
    for (Index u = chunks.begin(chunk); u < end; ++u) {
      for (Index c = 0; c < row; ++c) {
        const Index at = first + u * width + c;
        sum += static_cast<double>(term[at]) * static_cast<double>(with[at]);
      }
    }
    out[run * out_run + item] = sum;
  }
};
/// c̄_k from these sums. A team per (k, bundle), lanes over chunks; group: run.
template <class S>
struct HeatSums {
  using Scalar = double;
  static constexpr int outputs = 1;
  HeatView<S> heat;
  Divisor bundles;
  Index chunks;
  const double* in;  ///< by k, chunk and bundle
  Index in_run;
  int lanes;

  SHEAFNN_HD void part(Index item, Index run, int lane, double* sums) const {
    const double* first = in + run * in_run + item / bundles * chunks * bundles + item % bundles;
    for (Index chunk = lane; chunk < chunks; chunk += lanes) sums[0] += first[chunk * bundles];
  }
  SHEAFNN_HD void finish(Index item, Index run, const double* sums) const {
    heat.bar[heat.of_bundle(run, item % bundles) + item / bundles] = sums[0];
  }
};

}  // namespace sheafnn::batch::detail
