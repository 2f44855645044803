/// \file
/// BundleDistributions: rotations of bundles and their distributions, for map_posterior.hpp (for one network
/// layers/bundle_rotations.hpp). All layers and copies of a run share the distributions.
#pragma once

#include "sheafnn/batch/bundle_kernels.hpp"
#include "sheafnn/batch/map_posterior.hpp"
#include "sheafnn/posterior/cayley.hpp"

namespace sheafnn::batch::detail {

/// A map is the index of a rotation.
template <int D, class S>
struct BundleDistributions {
  using Posterior = CayleyPosterior<SpecialOrthogonal<D>>;
  using Raw = RawBundle<S>;
  static constexpr int raw_size = Posterior::mean_size + Posterior::spread_size, derivative_size = D * D;
  Posterior posterior;
  S unit;
  BundleMapView<D, S> maps;  ///< of the first layer; the other layers' follow
  Raw raw{};

  [[nodiscard]] SHEAFNN_HD Index nodes() const { return maps.shape.nodes; }
  [[nodiscard]] SHEAFNN_HD Index count() const { return nodes(); }
  [[nodiscard]] SHEAFNN_HD Index number_of(Index map) const { return map; }
  [[nodiscard]] SHEAFNN_HD Index address_of(Index map) const { return map; }
  [[nodiscard]] SHEAFNN_HD Index stream_of(Index layer, Index) const { return layer; }

  SHEAFNN_HD void infer(Index map, Index group, S* parameters) const {
    S values[raw_size];
    load_rotation_numbers<D, raw_size>(raw.complete(map, group), unit, values);
    posterior.activate(values, parameters);
  }
  SHEAFNN_HD void infer_backward(Index map, Index group, const S* parameters, const S* sums) const {
    S values[raw_size];
    load_rotation_numbers<D, raw_size>(raw.of(map, group), unit, values);
    S* bar = raw.bar_of(map, group);
    posterior.activate_backward(values, parameters, sums, bar);
    sheafnn::detail::scale_rotation_numbers<D>(unit, bar);
  }
  /// \param place  of the layer and instance
  SHEAFNN_HD void draw(Index place, Index map, const S* parameters, const S* noise) const {
    SquareMatrix<S, D> rotation;
    posterior.sample(parameters, noise, rotation);
    maps.store(place, map, rotation);
  }
  /// \param log_ratio  added to; null: not wanted
  SHEAFNN_HD void draw_backward(Index place, Index map, const S* parameters, const S* derivative, const S& weight,
                                S* sums, S* log_ratio) const {
    const SquareMatrix<S, D> rotation_bar = sheafnn::detail::matrix_of_rows<D>(derivative);
    const SquareMatrix<S, D> rotation = maps.rotation(place, map);
    const S* no_noise = nullptr;
    posterior.sample_backward(parameters, no_noise, rotation, rotation_bar, weight, sums);
    if (log_ratio != nullptr) *log_ratio += posterior.log_ratio(parameters, no_noise, rotation);
  }
};

}  // namespace sheafnn::batch::detail
