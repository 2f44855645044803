/// \file
/// Kernels of the rotations of flat bundles and of a bundle layer's ends (formulas: kernels/block.hpp,
/// layers/bundle_layer.hpp; for one network layers/bundle_maps.hpp, bundle_rotations.hpp). Features are n × B × D × f per
/// instance. Here a node and bundle count as one, with index u · B + b, whose features are D × f.
#pragma once

#include <cstdint>

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/tile.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/layers/bundle_rotations.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::batch::detail {

/// The rotations of all instances in one layer.
template <int D, class S>
struct BundleMapView {
  static constexpr int size = D * D, row_size = padded(size);
  FeatureShape<S> shape;  ///< n · B × D × f
  S* rows = nullptr;      ///< row by row

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S* of(Index instance, Index number) const {
    return rows + (instance * shape.nodes + number) * row_size;
  }
  SHEAFNN_HD void store(Index instance, Index number, const SquareMatrix<S, D>& rotation) const {
    S map[size];
    sheafnn::detail::write_rows(rotation, map);
    store_row<size>(map, of(instance, number));
  }
  [[nodiscard]] SHEAFNN_HD SquareMatrix<S, D> rotation(Index instance, Index number) const {
    S map[size];
    load_row<size>(of(instance, number), map);
    return sheafnn::detail::matrix_of_rows<D>(map);
  }
  /// y = O x, or Oᵀ x.
  template <bool Transposed>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void rotate(const NodeChannels& at, const Tile<S>* x, Tile<S>* y) const {
    S map[size];
    load_row<size>(of(at.instance, at.node), map);
    kernels::block_times<D, size, !Transposed>(map, x, y);  // the block lies in rows
  }
};

/// R = O Z. item (index, channels), group: instance.
template <int D, class S>
struct EnterBundle {
  BundleMapView<D, S> maps;
  const S* z;
  S* rotated;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> in[D], out[D];
    load_stalk(maps.shape, at, z, in);
    maps.template rotate<false>(at, in, out);
    store_stalk(maps.shape, at, out, rotated);
  }
};
/// X' = [X +] act(Oᵀ V). item (index, channels), group: instance.
template <int D, class S>
struct LeaveBundle {
  BundleMapView<D, S> maps;
  Activation activation;
  const S* x;  ///< null: not added
  const S* v;
  S* out;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> in[D], value[D], slope;
    load_stalk(maps.shape, at, v, in);
    maps.template rotate<true>(at, in, value);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) value[i] = layers::activate_with_slope(activation, value[i], slope);
    if (x != nullptr) {
      load_stalk(maps.shape, at, x, in);
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) value[i] += in[i];
    }
    store_stalk(maps.shape, at, value, out);
  }
};
/// G = act′(Oᵀ V) ∘ X̄′ and V̄ = O G. item (index, channels), group: instance.
template <int D, class S>
struct LeaveBundleBackward {
  BundleMapView<D, S> maps;
  Activation activation;
  const S *v, *x_bar;
  S *g, *v_bar;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> in[D], value[D], slope;
    load_stalk(maps.shape, at, v, in);
    maps.template rotate<true>(at, in, value);
    load_stalk(maps.shape, at, x_bar, in);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      static_cast<void>(layers::activate_with_slope(activation, value[i], slope));
      in[i] = in[i] * slope;
    }
    store_stalk(maps.shape, at, in, g);
    maps.template rotate<false>(at, in, value);
    store_stalk(maps.shape, at, value, v_bar);
  }
};
/// Z̄ = [Z̄ +] Oᵀ R̄. item (index, channels), group: instance.
template <int D, class S>
struct EnterBundleBackward {
  BundleMapView<D, S> maps;
  const S* r_bar;
  bool add;
  S* z_bar;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    Tile<S> in[D], value[D];
    load_stalk(maps.shape, at, r_bar, in);
    maps.template rotate<true>(at, in, value);
    if (add) {
      load_stalk(maps.shape, at, z_bar, in);
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) value[i] += in[i];
    }
    store_stalk(maps.shape, at, value, z_bar);
  }
};
/// Ō = Σ_c V Gᵀ + R̄ Zᵀ of every rotation: a team, lanes over channels; group: instance. End: end(number, instance, Ō).
template <int D, class S, class End>
struct BundleGradient {
  using Scalar = S;
  static constexpr int outputs = D * D;
  FeatureShape<S> shape;
  const S *v, *g, *r_bar, *z;
  int lanes;
  End end;

  SHEAFNN_HD void part(Index number, Index instance, int lane, S* sums) const {
    const Index first = instance * shape.size() + number * shape.row();
    for_lane_tiles<D>(shape, lane, lanes, [&](std::uint32_t c, const auto& reader) {
      const Index at = first + static_cast<Index>(c);
      Tile<S> a[D], b[D], p[D], q[D];
      reader.load(g + at, a);
      reader.load(v + at, b);
      reader.load(z + at, p);
      reader.load(r_bar + at, q);
      kernels::add_products<D, outputs>(a, b, p, q, sums);  // g vᵀ in columns is v gᵀ in rows
    });
  }
  SHEAFNN_HD void finish(Index number, Index instance, const S* sums) const {
    end(number, instance, sheafnn::detail::matrix_of_rows<D>(sums));
  }
};

/// The raw values that a learner predicts, `each` of every rotation and group, and their derivatives. A group is a run, or one
/// of its copies.
template <class S>
struct RawBundle {
  Index count = 0;      ///< n · B
  Divisor bundles = 1;  ///< B
  int each = 0;
  Divisor copies = 1;       ///< groups of a run
  S* raw = nullptr;         ///< without the bias until it has been added
  const S* bias = nullptr;  ///< of run 0
  Index parameter_stride = 0;
  S* bar = nullptr;

  [[nodiscard]] SHEAFNN_HD S* of(Index number, Index group) const { return raw + (group * count + number) * each; }
  [[nodiscard]] SHEAFNN_HD S* bar_of(Index number, Index group) const {
    return bar + (group * count + number) * each;
  }
  /// Adds the bias. \returns the raw values
  SHEAFNN_HD S* complete(Index number, Index group) const {
    S* values = of(number, group);
    const S* own = bias + group / copies * parameter_stride + number % bundles * each;
    for (int k = 0; k < each; ++k) values[k] += own[k];
    return values;
  }
};
/// `Size` raw values of a rotation, of which D(D − 1)/2 are multiplied by a unit.
template <int D, int Size, class S>
SHEAFNN_HD SHEAFNN_INLINE void load_rotation_numbers(const S* raw, const S& unit, S* values) {
  SHEAFNN_UNROLL for (int k = 0; k < Size; ++k) values[k] = raw[k];
  sheafnn::detail::scale_rotation_numbers<D>(unit, values);
}

/// The rotations of a learner's raw values. item: index of the rotation, group: instance.
template <int D, class S>
struct PredictBundle {
  RawBundle<S> raw;
  BundleMapView<D, S> maps;
  PointMap<SpecialOrthogonal<D>> point;
  S unit;

  SHEAFNN_HD void operator()(Index number, Index instance) const {
    constexpr int q = rotation::rotation_parameters<D>;
    S values[q];
    load_rotation_numbers<D, q>(raw.complete(number, instance), unit, values);
    SquareMatrix<S, D> rotation;
    point.map(values, rotation);
    maps.store(instance, number, rotation);
  }
};
/// What follows BundleGradient where learners predict the rotations: the derivatives of the raw values.
template <int D, class S>
struct PredictBundleBackward {
  RawBundle<S> raw;
  PointMap<SpecialOrthogonal<D>> point;
  S unit;

  SHEAFNN_HD void operator()(Index number, Index instance, const SquareMatrix<S, D>& rotation_bar) const {
    constexpr int q = rotation::rotation_parameters<D>;
    S values[q];
    load_rotation_numbers<D, q>(raw.of(number, instance), unit, values);
    S* bar = raw.bar_of(number, instance);
    point.backward(values, rotation_bar, bar);
    sheafnn::detail::scale_rotation_numbers<D>(unit, bar);
  }
};

/// [left ‖ right] of rows of `width` values each; item: index of the pair, group: instance.
template <class S>
struct JoinRows {
  Divisor width;
  Index size;  ///< of a part
  const S *left, *right;
  S* out;
  Divisor both = 2 * width;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index c = item % both, from = instance * size + item / both * width;
    out[2 * instance * size + item] = c < width ? left[from + c] : right[from + c - width];
  }
};
/// Splits rows [left ‖ right] into their parts, the inverse of JoinRows.
template <class S>
struct SplitRows {
  Divisor width;
  Index size;
  const S* in;
  S *left, *right;
  Divisor both = 2 * width;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index c = item % both, to = instance * size + item / both * width;
    (c < width ? left[to + c] : right[to + c - width]) = in[2 * instance * size + item];
  }
};

}  // namespace sheafnn::batch::detail
