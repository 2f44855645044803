/// \file
/// Kernels of layers with an equation at one value (kernels/layer_equation.hpp), and of their backward passes, in three
/// steps W = S Y, R = L W, Z = S R:
///
///     X' = φ(X̃, Δ X̃, X_1, X_{l−1}; θ)         Y = X̃, the input after dropout (for one network layers/laplacian_layer.hpp)
///     X' = φ(X, Y, Δ Y, X_{l−1}, b; θ)        Y = (I ⊗ A) X̃ Bᵀ, of equations that mix
///
/// Features as in feature_kernels.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/layer_equation.hpp"

namespace sheafnn::batch::detail {

/// What an equation reads besides Z, and how many weights it has.
template <class Equation>
struct EquationReads {
  static constexpr bool mixes = kernels::mixes<Equation>, with_mixed = kernels::reads_mixed<Equation>,
                        with_x = !with_mixed, with_first = kernels::reads_first<Equation>,
                        with_before = kernels::reads_before<Equation>, with_bias = kernels::has_bias<Equation>;
  static constexpr int count = kernels::weight_count<Equation>, room = kernels::weight_room<Equation>;
};

/// An equation with weights and a bias of each run. \tparam Activation  what it takes as the option `activation`
template <template <class> class EquationType, class S, class Activation = bool>
struct RunEquation : EquationReads<EquationType<S>> {
  template <class T>
  using Equation = EquationType<T>;
  const S* weights;  ///< of run 0, the d' values of one weight after another
  Index run_stride, coordinates;
  const S* bias;  ///< of run 0, f values, where it has one
  Index bias_stride;
  Activation activation;

  [[nodiscard]] static constexpr const layers::EquationWeight& weight(int k) { return Equation<S>::weights[k]; }

  /// At coordinate i, which is below d'.
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE Equation<T> at(Index run, Index i) const {
    S rates[kernels::weight_room<Equation<S>>] = {};
    kernels::rates_of<Equation<S>>(weights + run * run_stride + i, coordinates, rates);
    return kernels::equation_of<Equation<T>>(static_cast<const S*>(rates), activation);
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE const S* bias_of(Index run) const {
    return bias + run * bias_stride;
  }
};

/// The equation of the share that a layer has of the first one's input (kernels/layer_end.hpp).
template <class S>
struct ShareEquation : EquationReads<kernels::ResidualShare<S>> {
  S alpha;

  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE kernels::ResidualShare<T> at(Index, Index) const {
    return kernels::ResidualShare<T>(alpha);
  }
};

/// The features that equations read besides Z; null if an equation does not read them.
template <class S>
struct EquationInputs {
  const S *x = nullptr, *first = nullptr, *before = nullptr, *mixed = nullptr;
};

/// What an equation reads besides Z, at a node and some channels.
template <class Equation, int Max, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void load_values(const Equation& equation, const EquationInputs<S>& in,
                                                  const FeatureShape<S>& shape, const NodeChannels& at, Index run,
                                                  layers::LayerValues<Tile<S>> (&out)[Max]) {
  [[maybe_unused]] Tile<S> own[Max];
  if constexpr (Equation::with_x) {
    load_stalk(shape, at, in.x, own);
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) out[i].x = own[i];
  }
  if constexpr (Equation::with_first) {
    load_stalk(shape, at, in.first, own);
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) out[i].first = own[i];
  }
  if constexpr (Equation::with_before) {
    load_stalk(shape, at, in.before, own);
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) out[i].before = own[i];
  }
  if constexpr (Equation::with_mixed) {
    load_stalk(shape, at, in.mixed, own);
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) out[i].mixed = own[i];
  }
  if constexpr (Equation::with_bias) {
    const Tile<S> bias = TilePart{at.range.count}.load(equation.bias_of(run) + at.channel);
    SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) out[i].bias = bias;
  }
}
/// The same for one value. \param place  its position in the features
template <class Equation, class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE layers::LayerValues<S> load_value(const Equation& equation,
                                                                                 const EquationInputs<S>& in,
                                                                                 Index place, Index run,
                                                                                 Index channel) {
  layers::LayerValues<S> r{};
  if constexpr (Equation::with_x) r.x = in.x[place];
  if constexpr (Equation::with_first) r.first = in.first[place];
  if constexpr (Equation::with_before) r.before = in.before[place];
  if constexpr (Equation::with_mixed) r.mixed = in.mixed[place];
  if constexpr (Equation::with_bias) r.bias = equation.bias_of(run)[channel];
  return r;
}

/// Writes what an equation gives into an array.
template <class S>
struct StalkOutput {
  S* out;

  template <int Max>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store_value(const FeatureShape<S>& shape, const NodeChannels& at,
                                                    Tile<S> (&value)[Max]) const {
    store_stalk(shape, at, value, out);
  }
};

/// R, Z and the equation's value from W.
///
/// \tparam Output  LayerOutput or StalkOutput
/// \tparam Walk    applies Δ, as Diffusion has it
template <class Equation, class Output, class Family, class S, class Walk = Diffusion<Family, S>>
struct EquationForward : WalkTeam<Walk, S> {
  using typename WalkTeam<Walk, S>::Place;
  using WalkTeam<Walk, S>::max_coordinates, WalkTeam<Walk, S>::diffusion;
  Equation equation;
  Pass pass;
  EquationInputs<S> inputs;
  S* r;  ///< of learned maps
  S* z;  ///< null: Z is not kept
  Output output;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    Tile<S> diffused[max_coordinates], value[max_coordinates];
    layers::LayerValues<Tile<S>> values[max_coordinates] = {};
    diffusion.finish(place, sums, diffused, value);
    if constexpr (sheaf::is_learned<Family>) store_stalk(shape, place.at, diffused, r);
    if (z != nullptr) store_stalk(shape, place.at, value, z);
    const Index run = pass.run_of(place.at.instance);
    load_values(equation, inputs, shape, place.at, run, values);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (shape.template has<max_coordinates>(i)) {
        values[i].z = value[i];
        value[i] = equation.template at<Tile<S>>(run, i).forward(values[i]);
      }
    }
    output.store_value(shape, place.at, value);
  }
};

/// Computes from x̄': z̄, r̄ = S z̄, minus what X or Y gets without Δ, what is added to X̄₁, and X̄_{l−1}.
/// item (node, channels), group: instance.
template <class Equation, class Family, class S>
struct EquationBackward {
  static constexpr int max_coordinates = Family::stalk_dimension + 2;
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  Pass pass;
  Equation equation;
  EquationInputs<S> inputs;
  const S *z, *output_bar;
  S *z_bar, *r_bar, *minus_direct, *first_bar, *before_bar;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    const Index run = pass.run_of(at.instance);
    Tile<S> own[max_coordinates], value[max_coordinates], bar[max_coordinates];
    [[maybe_unused]] Tile<S> start[max_coordinates], before[max_coordinates];
    layers::LayerValues<Tile<S>> values[max_coordinates] = {};
    load_values(equation, inputs, shape, at, run, values);
    load_stalk(shape, at, z, value);
    load_stalk(shape, at, output_bar, bar);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      layers::LayerValues<Tile<S>> bars{};
      if (shape.template has<max_coordinates>(i)) {
        Tile<S> unused[Equation::room] = {};
        values[i].z = value[i];
        bars = equation.template at<Tile<S>>(run, i).backward(values[i], bar[i], unused);
      }
      own[i] = -(Equation::with_mixed ? bars.mixed : bars.x);
      bar[i] = bars.z;
      start[i] = bars.first;
      before[i] = bars.before;
    }
    store_stalk(shape, at, own, minus_direct);
    store_stalk(shape, at, bar, z_bar);
    if constexpr (Equation::with_before) store_stalk(shape, at, before, before_bar);
    if constexpr (Equation::with_first) {
      load_stalk(shape, at, static_cast<const S*>(first_bar), own);
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) start[i] += own[i];
      store_stalk(shape, at, start, first_bar);
    }
    node_times<Family>(sheaf.scale_of(range.slot(at.instance), at.node), graph.inverse_root[at.node], bar, value);
    store_stalk(shape, at, value, r_bar);
  }
};

/// Partial sums of the derivatives of the equation's rates, and of b. item (chunk of nodes, i, c), whose sums of all of
/// these lie d' f values apart; group: run. SumGradients adds up the channels c of rates, and the coordinates i of b, which
/// are therefore innermost.
template <class Equation, class S>
struct EquationSums {
  static constexpr int kinds = Equation::count + (Equation::with_bias ? 1 : 0);
  Equation equation;
  EquationInputs<S> inputs;
  const S *z, *output_bar;
  Index run_stride;  ///< of the features
  Divisor channels;
  RowChunks chunks;  ///< of nodes
  S* out;
  Index out_run;
  Divisor row;  ///< d' f

  [[nodiscard]] Index items() const noexcept { return kinds > 0 ? chunks.count() * row : 0; }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index chunk = item / row, k = item % row, end = chunks.end(chunk), width = row;
    const Index i = k / channels, c = k % channels;
    const auto at = equation.template at<S>(run, i);
    S sums[kinds > 0 ? kinds : 1] = {};
    for (Index u = chunks.begin(chunk); u < end; ++u) {
      const Index place = run * run_stride + u * width + k;
      layers::LayerValues<S> values = load_value(equation, inputs, place, run, c);
      values.z = z[place];
      S own[Equation::room] = {};
      [[maybe_unused]] const layers::LayerValues<S> bars = at.backward(values, output_bar[place], own);
      SHEAFNN_UNROLL for (int w = 0; w < Equation::count; ++w) sums[w] += own[w];
      if constexpr (Equation::with_bias) sums[Equation::count] += bars.bias;
    }
    S* const to = out + run * out_run + chunk * kinds * width;
    SHEAFNN_UNROLL for (int w = 0; w < Equation::count; ++w) to[w * width + k] = sums[w];
    if constexpr (Equation::with_bias)
      to[Equation::count * width + c * (width / channels) + i] = sums[Equation::count];
  }
};

/// Where the backward pass of a layer ends: nothing continues with the layer below.
struct NoLayerBelow {
  template <class At, class Bar>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void go_on(const At&, Bar&) const {}
};

/// Computes W̄ = L r̄ from r̄, and x̄, the derivative of X̃: S W̄ + what it gets without Δ, through the
/// dropout. Only the derivatives of learned maps need W̄.
///
/// \tparam Below  go_on(at, x̄) continues with the layer below, at the same node and channels
/// \tparam Walk   applies Δ, as Diffusion has it
template <class Below, class Family, class S, class Walk = Diffusion<Family, S>>
struct EquationDiffuseBackward : WalkTeam<Walk, S> {
  using typename WalkTeam<Walk, S>::Place;
  using WalkTeam<Walk, S>::max_coordinates, WalkTeam<Walk, S>::diffusion;
  const Run* runs;
  Pass pass;
  std::uint32_t layer;
  bool dropped;
  const S* minus_direct;
  const S* first_bar;  ///< X̄₁, added to x̄ of the first layer; null: of another one
  S *w_bar, *x_bar;
  Below below{};

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    const NodeChannels& at = place.at;
    Tile<S> diffused[max_coordinates], bar[max_coordinates], other[max_coordinates];
    diffusion.finish(place, sums, diffused, bar);
    if constexpr (sheaf::is_learned<Family>) store_stalk(shape, at, diffused, w_bar);
    load_stalk(shape, at, minus_direct, other);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] -= other[i];
    if (dropped) drop_stalk(shape, at, pass.dropout<S>(runs, Purpose::layer_dropout, layer, at.instance), bar);
    if (first_bar != nullptr) {
      load_stalk(shape, at, first_bar, other);
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] += other[i];
    }
    store_stalk(shape, at, bar, x_bar);
    below.go_on(at, bar);
  }
};

/// Computes P̄ = (I ⊗ A)ᵀ Ȳ from Ȳ, and x̄ = dropout(P̄ B) + what X gets without Y. item (node, channels), group: instance.
template <class Equation, class Family, class S>
struct EquationMixBackward {
  MixBackward<Family, S> mixing;
  const S* minus_direct;  ///< of equations that read X

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int max_coordinates = MixBackward<Family, S>::max_coordinates;
    Tile<S> bar[max_coordinates];
    mixing.through_mixing(at, bar);
    if (mixing.dropped) {
      drop_stalk(mixing.shape, at,
                 mixing.pass.template dropout<S>(mixing.runs, Purpose::layer_dropout, mixing.layer, at.instance),
                 bar);
    }
    if constexpr (Equation::with_x) {
      Tile<S> direct[max_coordinates];
      load_stalk(mixing.shape, at, minus_direct, direct);
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) bar[i] -= direct[i];
    }
    store_stalk(mixing.shape, at, bar, mixing.x_bar);
  }
};

}  // namespace sheafnn::batch::detail
