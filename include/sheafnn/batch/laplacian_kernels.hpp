/// \file
/// Kernels of a layer with an equation at a number, X' = φ(X̃, Δ X̃, X_1; θ) (kernels/layer_equation.hpp), and of its backward
/// pass, in three steps W = S X̃, R = L W, Z = S R (for one network layers/laplacian_layer.hpp). X̃ is the input after dropout.
/// Features as in feature_kernels.hpp.
///
/// Unchecked: numbers of items, runs, instances and lanes, and the sizes of arrays behind pointers and views.
/// BatchNetwork and BatchTrainer check their arguments.
#pragma once

#include <cstdint>

#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/layer_equation.hpp"

namespace sheafnn::batch::detail {

/// An equation with weights of each run.
template <template <class> class EquationType, class S>
struct WeightedEquation {
  template <class T>
  using Equation = EquationType<T>;
  static constexpr int count = kernels::weight_count<Equation<S>>, room = kernels::weight_room<Equation<S>>;
  static constexpr bool with_first = kernels::reads_first<Equation<S>>;
  const S* weights;  ///< of run 0, the d' numbers of one weight after another
  Index run_stride, coordinates;

  /// At coordinate i, which is below d'.
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE Equation<T> at(Index run, Index i) const {
    S rates[room] = {};
    kernels::rates_of<Equation<S>>(weights + run * run_stride + i, coordinates, rates);
    return Equation<T>(static_cast<const S*>(rates));
  }
};

/// The equation of the share that a layer has of the first one's input (kernels/layer_end.hpp).
template <class S>
struct ShareEquation {
  static constexpr bool with_first = true;
  S alpha;

  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE kernels::ResidualShare<T> at(Index, Index) const {
    return kernels::ResidualShare<T>(alpha);
  }
};

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

/// R, Z and the equation's value from W. \tparam Output  LayerOutput or StalkOutput
template <class Equation, class Output, class Family, class S>
struct EquationForward : DiffusionTeam<Family, S> {
  using typename DiffusionTeam<Family, S>::Place;
  using DiffusionTeam<Family, S>::max_coordinates, DiffusionTeam<Family, S>::diffusion;
  Equation equation;
  Pass pass;
  const S *x, *first;  ///< X̃, X₁
  S* r;                ///< of learned maps
  S* z;                ///< null: Z is not kept
  Output output;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const FeatureShape<S>& shape = diffusion.shape;
    Tile<S> diffused[max_coordinates], value[max_coordinates], own[max_coordinates], start[max_coordinates] = {};
    diffusion.finish(place, sums, diffused, value);
    if constexpr (sheaf::is_learned<Family>) store_stalk(shape, place.at, diffused, r);
    if (z != nullptr) store_stalk(shape, place.at, value, z);
    load_stalk(shape, place.at, x, own);
    if constexpr (Equation::with_first) load_stalk(shape, place.at, first, start);
    const Index run = pass.run_of(place.at.instance);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (shape.template has<max_coordinates>(i)) {
        value[i] = equation.template at<Tile<S>>(run, i).forward({own[i], value[i], start[i]});
      }
    }
    output.store_value(shape, place.at, value);
  }
};

/// From x̄': z̄, r̄ = S z̄, minus what X̃ gets without Δ, and what is added to X̄₁. item (node, channels), group: instance.
template <class Equation, class Family, class S>
struct EquationBackward {
  static constexpr int max_coordinates = Family::stalk_dimension + 2;
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;
  Pass pass;
  Equation equation;
  const S *x, *z, *first, *output_bar;
  S *z_bar, *r_bar, *minus_direct, *first_bar;

  [[nodiscard]] SHEAFNN_HD NodeChannels place(Index item, Index instance) const {
    return shape.place(item, instance);
  }

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    const Index run = pass.run_of(at.instance);
    Tile<S> own[max_coordinates], value[max_coordinates], start[max_coordinates] = {}, bar[max_coordinates];
    load_stalk(shape, at, x, own);
    load_stalk(shape, at, z, value);
    if constexpr (Equation::with_first) load_stalk(shape, at, first, start);
    load_stalk(shape, at, output_bar, bar);
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) {
      if (shape.template has<max_coordinates>(i)) {
        Tile<S> unused[Equation::room] = {};
        const layers::LayerValues<Tile<S>> bars =
            equation.template at<Tile<S>>(run, i).backward({own[i], value[i], start[i]}, bar[i], unused);
        own[i] = -bars.x;
        bar[i] = bars.z;
        start[i] = bars.first;
      }
    }
    store_stalk(shape, at, own, minus_direct);
    store_stalk(shape, at, bar, z_bar);
    if constexpr (Equation::with_first) {
      load_stalk(shape, at, static_cast<const S*>(first_bar), own);
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) start[i] += own[i];
      store_stalk(shape, at, start, first_bar);
    }
    node_times<Family>(sheaf.scale_of(range.slot(at.instance), at.node), graph.inverse_root[at.node], bar, value);
    store_stalk(shape, at, value, r_bar);
  }
};

/// Partial sums of the derivatives of the equation's rates: item (chunk of nodes, i, c), whose sums of all rates lie d' f
/// numbers apart; group: run. SumGradients adds up the channels c.
template <class Equation, class S>
struct EquationSums {
  Equation equation;
  const S *x, *z, *first, *output_bar;
  Index run_stride;  ///< of the four
  Divisor channels;
  RowChunks chunks;  ///< of nodes
  S* out;
  Index out_run;
  Divisor row;  ///< d' f

  [[nodiscard]] Index items() const noexcept { return Equation::count > 0 ? chunks.count() * row : 0; }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index chunk = item / row, k = item % row, end = chunks.end(chunk), width = row;
    const auto at = equation.template at<S>(run, k / channels);
    S sums[Equation::room] = {};
    for (Index u = chunks.begin(chunk); u < end; ++u) {
      const Index place = run * run_stride + u * width + k;
      layers::LayerValues<S> values{x[place], z[place], S(0)};
      if constexpr (Equation::with_first) values.first = first[place];
      S own[Equation::room] = {};
      static_cast<void>(at.backward(values, output_bar[place], own));
      SHEAFNN_UNROLL for (int w = 0; w < Equation::count; ++w) sums[w] += own[w];
    }
    S* const to = out + run * out_run + chunk * Equation::count * width + k;
    SHEAFNN_UNROLL for (int w = 0; w < Equation::count; ++w) to[w * width] = sums[w];
  }
};

/// Where the backward pass of a layer ends: nothing goes on with the layer below.
struct NoLayerBelow {
  template <class At, class Bar>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void go_on(const At&, Bar&) const {}
};

/// From r̄: W̄ = L r̄, for the derivatives of learned maps only, and x̄, the derivative of X̃, S W̄ + what it gets without Δ, through the
/// dropout.
///
/// \tparam Below  go_on(at, x̄) goes on with the layer below, at the same node and channels
template <class Below, class Family, class S>
struct EquationDiffuseBackward : DiffusionTeam<Family, S> {
  using typename DiffusionTeam<Family, S>::Place;
  using DiffusionTeam<Family, S>::max_coordinates, DiffusionTeam<Family, S>::diffusion;
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

}  // namespace sheafnn::batch::detail
