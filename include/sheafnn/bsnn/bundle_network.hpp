/// \file
/// Network of a BundleModel: a bundle network on one graph. It has the passes of every Network, so that elbo(), train(),
/// predict() and your loops work with it.
///
///     X_1 = dropout(GELU(dropout_in(X) W₁ᵀ + b₁)),   O^l from a learner that reads X_l; Bayesian: drawn from Q(O | X_1),
///     X_{l+1} = layer(O^l, X_l) (layers/bundle_layer.hpp),   Y = readout(LayerNorm(X_{L+1}))
///
/// Explicit noise (ForwardPass::noise) is one array per layer: n × B uniform rotations, row by row.
/// Source: math: "Flat bundles", "Bayesian bundles".
#pragma once

#include <concepts>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/bundle_model.hpp"
#include "sheafnn/bsnn/bundle_steps.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/bsnn/network_of_steps.hpp"

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it. If the expansion is
/// `spectral`, the constructor computes the eigenpairs, and throws std::runtime_error if they do not converge. On a part of a
/// graph all parts make their networks.
template <int D, bool Bayesian, std::floating_point Scalar>
class Network<BundleModel<D, Bayesian, Scalar>>
    : public detail::NetworkOfSteps<Network<BundleModel<D, Bayesian, Scalar>>,
                                    detail::BundleSteps<D, Bayesian, Scalar>> {
  using Base = detail::NetworkOfSteps<Network, detail::BundleSteps<D, Bayesian, Scalar>>;
  using Base::steps_;

 public:
  using typename Base::Model;
  using S = Scalar;
  using Base::Base;

  /// The rotations of a layer in the last draw. \param layer  0 … layers − 1
  ///
  /// \throws std::invalid_argument  layer out of range
  /// \throws std::logic_error       draw() did not come before
  [[nodiscard]] const layers::BundleMaps<D, S>& bundle_maps(Index layer) const {
    require_between("layer", layer, 0, steps_.layer_count() - 1);
    this->check_drawn("bundle_maps");
    return steps_.layers[static_cast<std::size_t>(layer)].maps();
  }
  /// Uses these rotations, n × B × D × D for every layer, in place of the model's rotations in later evaluations. An
  /// empty argument restores the model's rotations; until then begin() refuses training passes.
  ///
  /// \throws std::invalid_argument  the number of arrays differs from the number of layers, or an array has another
  ///                                size
  void give_maps(std::vector<Buffer<S>> maps) {
    const Index count = static_cast<Index>(maps.size()), size = steps_.layers.front().maps().values().size();
    require(maps.empty() || count == steps_.layer_count(), "maps", count,
            detail::concat("must be 0, or one for each of ", steps_.layer_count(), " layers"));
    for (const Buffer<S>& one : maps) require_size(one.view(), size, "numbers of the maps");
    steps_.given_maps = std::move(maps);
  }
  /// The distributions of the rotations after the last begin(); all layers share them.
  ///
  /// \throws std::logic_error  begin() did not come before
  [[nodiscard]] const layers::VariationalBundle<D, S>& posterior() const requires Bayesian {
    this->check_begun("posterior");
    return steps_.posterior.front();
  }
};

}  // namespace sheafnn
