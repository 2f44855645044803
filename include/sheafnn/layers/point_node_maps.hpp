/// \file
/// The node maps that learners predict: P = rotation(tanh raw), τ = exp(min(raw, ln 10)), with the backward pass.
///
/// Raw outputs per node: D(D − 1)/2 values of the rotation and, with scales, the logarithm of the scale. Source: math:
/// "Cooperative sheaves".
///
/// Unchecked: indices of packs; views and gradients belong to the maps' graph.
#pragma once

#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/layers/node_maps.hpp"
#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/sheaf/families/special_orthogonal.hpp"

namespace sheafnn::detail {

/// Calls body.template operator()<K>() for the number K of raw outputs with and without scales.
template <int With, int Without, class Body>
void with_raw_size(bool conformal, const Body& body) {
  if (conformal) {
    body.template operator()<With>();
  } else if constexpr (Without > 0) {
    body.template operator()<Without>();
  }
}

/// Raw outputs per node of deterministic maps.
template <int D>
[[nodiscard]] constexpr int point_node_map_size(bool conformal) {
  return rotation_parameters<D> + (conformal ? 1 : 0);
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Sets the maps of packs [begin, end) of nodes. \param raw  n × 2 point_node_map_size: the outputs for T, then the
/// outputs for S
template <int D, class S>
void predict_node_maps(Index begin, Index end, const MatrixView<const S>& raw, NodeMaps<D, S>& maps) {
  constexpr int q = rotation::rotation_parameters<D>;
  using P = typename NodeMaps<D, S>::P;
  const NodeDegrees<S>& degrees = maps.degrees();
  detail::with_raw_size<q + 1, q>(maps.conformal(), [&]<int K>() {
    for (Index block = begin; block < end; ++block) {
      P values[2 * K];
      detail::load_rows<2 * K>(raw.data() + block * P::width * 2 * K, degrees.count(block), values);
      for (int side = 0; side < 2; ++side) {
        const P* of_side = values + side * K;
        SquareMatrix<P, D> rotation;
        PointMap<SpecialOrthogonal<D>>().map(of_side, rotation);
        maps.store(block, side, rotation, K > q ? of_side[K - 1] : P(S(0)));
      }
    }
  });
}
/// Sets the maps of all nodes.
template <int D, class S>
void predict_node_maps(Execution execution, const MatrixView<const S>& raw, NodeMaps<D, S>& maps) {
  parallel_for(execution, maps.degrees().blocks(), 2,
               [&](Index begin, Index end) { predict_node_maps<D, S>(begin, end, raw, maps); });
}

/// Computes the derivatives of the raw outputs from the derivatives of the operators, for packs [begin, end) of nodes.
template <int D, class S>
void predict_node_maps_backward(Index begin, Index end, const MatrixView<const S>& raw, const NodeMaps<D, S>& maps,
                                const NodeMapsGradient<D, S>& gradient, const MatrixView<S>& raw_bar) {
  constexpr int q = rotation::rotation_parameters<D>;
  using P = typename NodeMaps<D, S>::P;
  const NodeDegrees<S>& degrees = maps.degrees();
  detail::with_raw_size<q + 1, q>(maps.conformal(), [&]<int K>() {
    for (Index block = begin; block < end; ++block) {
      typename NodeMaps<D, S>::Derivative derivative;
      maps.derivative(block, gradient, derivative);
      const Index at = block * P::width * 2 * K;
      P values[2 * K], bar[2 * K];
      detail::load_rows<2 * K>(raw.data() + at, degrees.count(block), values);
      for (int side = 0; side < 2; ++side) {
        P* side_bar = bar + side * K;
        PointMap<SpecialOrthogonal<D>>().backward(values + side * K, derivative.rotation_bar[side], side_bar);
        if (K > q) side_bar[K - 1] = derivative.log_scale_bar[side];
      }
      detail::store_rows<2 * K>(bar, degrees.count(block), raw_bar.data() + at);
    }
  });
}
/// The same for all nodes.
template <int D, class S>
void predict_node_maps_backward(Execution execution, const MatrixView<const S>& raw, const NodeMaps<D, S>& maps,
                                const NodeMapsGradient<D, S>& gradient, const MatrixView<S>& raw_bar) {
  parallel_for(execution, maps.degrees().blocks(), 2, [&](Index begin, Index end) {
    predict_node_maps_backward<D, S>(begin, end, raw, maps, gradient, raw_bar);
  });
}

}  // namespace sheafnn::layers
