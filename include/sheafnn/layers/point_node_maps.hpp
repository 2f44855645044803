/// \file
/// The node maps that learners predict: P = rotation(tanh raw), τ = exp(min(raw, ln 10)), with the backward pass.
///
/// Raw outputs per node: D(D − 1)/2 numbers of the rotation and, with scales, the logarithm of the scale. Source: math:
/// "Cooperative sheaves".
#pragma once

#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/layers/node_maps.hpp"
#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/sheaf/families/special_orthogonal.hpp"

namespace sheafnn {

namespace detail {

/// Calls body.template operator()<K>() for the number K of raw outputs with and without scales.
template <int With, int Without, class Body>
void with_raw_size(bool conformal, const Body& body) {
  if (conformal) {
    body.template operator()<With>();
  } else if constexpr (Without > 0) {
    body.template operator()<Without>();
  }
}

}  // namespace detail

/// Raw outputs per node of deterministic maps.
template <int D>
[[nodiscard]] constexpr int point_node_map_size(bool conformal) {
  return rotation_parameters<D> + (conformal ? 1 : 0);
}

/// Sets one side of the maps. \param raw  n × point_node_map_size
template <int D, class S>
void predict_node_maps(Execution execution, const MatrixView<const S>& raw, MapSide side, NodeMaps<D, S>& maps) {
  constexpr int q = rotation_parameters<D>;
  using P = typename NodeMaps<D, S>::P;
  const NodeDegrees<S>& degrees = maps.degrees();
  detail::with_raw_size<q + 1, q>(maps.conformal(), [&]<int K>() {
    parallel_for(execution, degrees.blocks(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        P values[K];
        detail::load_rows<K>(raw.data() + block * P::width * K, degrees.count(block), values);
        SquareMatrix<P, D> rotation;
        PointMap<SpecialOrthogonal<D>>().map(values, rotation);
        maps.store(block, static_cast<int>(side), rotation, K > q ? values[K - 1] : P(S(0)));
      }
    });
  });
}

/// From the derivatives of the operators to those of both sides' raw outputs.
template <int D, class S>
void predict_node_maps_backward(Execution execution, const MatrixView<const S>& out_raw,
                                const MatrixView<const S>& in_raw, const NodeMaps<D, S>& maps,
                                const NodeMapsGradient<D, S>& gradient, const MatrixView<S>& out_raw_bar,
                                const MatrixView<S>& in_raw_bar) {
  constexpr int q = rotation_parameters<D>;
  using P = typename NodeMaps<D, S>::P;
  const NodeDegrees<S>& degrees = maps.degrees();
  detail::with_raw_size<q + 1, q>(maps.conformal(), [&]<int K>() {
    parallel_for(execution, degrees.blocks(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        typename NodeMaps<D, S>::Derivative derivative;
        maps.derivative(block, gradient, derivative);
        for (int side = 0; side < 2; ++side) {
          const MatrixView<const S>& raw = side == 0 ? out_raw : in_raw;
          const MatrixView<S>& raw_bar = side == 0 ? out_raw_bar : in_raw_bar;
          P values[K], bar[K];
          detail::load_rows<K>(raw.data() + block * P::width * K, degrees.count(block), values);
          PointMap<SpecialOrthogonal<D>>().backward(values, derivative.rotation_bar[side], bar);
          if (K > q) bar[K - 1] = derivative.log_scale_bar[side];
          detail::store_rows<K>(bar, degrees.count(block), raw_bar.data() + block * P::width * K);
        }
      }
    });
  });
}

}  // namespace sheafnn
