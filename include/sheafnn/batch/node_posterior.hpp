/// \file
/// NodeMapDistributions: the maps of cooperative sheaves and their distributions, for map_posterior.hpp (for one network
/// layers/variational_node_maps.hpp).
#pragma once

#include "sheafnn/batch/map_posterior.hpp"
#include "sheafnn/batch/node_map_kernels.hpp"
#include "sheafnn/posterior/node_map_posterior.hpp"

namespace sheafnn::batch::detail {

/// A map is the index of a NodeSide.
template <int D, class S>
struct NodeMapDistributions {
  using Posterior = NodeMapPosterior<D>;
  using Raw = RawNodeMaps<S>;
  static constexpr int derivative_size = D * D + 1;  ///< the last: in log τ
  Posterior posterior;
  NodeMapView<D, S> maps;  ///< of the first layer; the other layers' follow
  Raw raw{};

  [[nodiscard]] SHEAFNN_HD Index nodes() const { return maps.nodes; }
  [[nodiscard]] SHEAFNN_HD Index count() const { return 2 * nodes(); }
  [[nodiscard]] SHEAFNN_HD NodeSide side_of(Index map) const { return {map, nodes()}; }
  [[nodiscard]] SHEAFNN_HD Index number_of(const NodeSide& at) const { return at.side * nodes() + at.node; }
  [[nodiscard]] SHEAFNN_HD Index address_of(Index map) const { return side_of(map).node; }
  [[nodiscard]] SHEAFNN_HD Index stream_of(Index layer, Index map) const { return 2 * layer + side_of(map).side; }

  SHEAFNN_HD void infer(Index map, Index group, S* parameters) const {
    posterior.activate(raw.complete(side_of(map), group), parameters);
  }
  SHEAFNN_HD void infer_backward(Index map, Index group, const S* parameters, const S* sums) const {
    const NodeSide at = side_of(map);
    posterior.activate_backward(raw.of(at, group), parameters, sums, raw.bar_of(at, group));
  }
  /// \param place  of the layer and instance
  SHEAFNN_HD void draw(Index place, Index map, const S* parameters, const S* noise) const {
    const NodeSide at = side_of(map);
    SquareMatrix<S, D> rotation;
    S log_scale;
    posterior.sample(parameters, noise, rotation, log_scale);
    maps.store(place, at.node, at.side, rotation, log_scale);
  }
  /// \param log_ratio  added to; null: not wanted
  SHEAFNN_HD void draw_backward(Index place, Index map, const S* parameters, const S* derivative, const S& weight,
                                S* sums, S* log_ratio) const {
    const NodeSide at = side_of(map);
    const NodeMapRow<D, S> row = maps.of(place, at.node);
    const SquareMatrix<S, D> rotation_bar = sheafnn::detail::matrix_of_rows<D>(derivative);
    const SquareMatrix<S, D> rotation = row.rotation(at.side);
    const S log_scale = row.log_scale(at.side);
    posterior.sample_backward(parameters, rotation, log_scale, rotation_bar, derivative[D * D], weight, sums);
    if (log_ratio != nullptr) *log_ratio += posterior.log_ratio(parameters, rotation, log_scale);
  }
};

}  // namespace sheafnn::batch::detail
