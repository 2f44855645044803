/// \file
/// Network of a BundleModel: a bundle network at work on one graph, with the passes of every Network, so that elbo(), train(),
/// predict() and own loops work with it.
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

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it.
template <int D, bool Bayesian, std::floating_point Scalar>
class Network<BundleModel<D, Bayesian, Scalar>>
    : public detail::NetworkPasses<Network<BundleModel<D, Bayesian, Scalar>>,
                                   detail::BundleSteps<D, Bayesian, Scalar>> {
  using Passes = detail::NetworkPasses<Network, detail::BundleSteps<D, Bayesian, Scalar>>;
  using Passes::steps_;

 public:
  using typename Passes::Model;
  using S = Scalar;

  /// With the expansion `spectral`, eigenpairs are computed here.
  ///
  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, a graph without nodes, or one that is a
  ///                                part of another
  /// \throws std::runtime_error     eigenpairs that do not converge
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, Execution execution = {})
      : Passes(model, graph, features, execution) {}
  Network(const Model&&, const Graph&, const NodeFeatures&, Execution = {}) = delete;  // they would dangle
  Network(const Model&, const Graph&&, const NodeFeatures&, Execution = {}) = delete;

  /// X_{l+1}, features after this many layers l, at all nodes; of the last draw and valid until the next pass. Coordinates
  /// are those of all bundles, B · D.
  ///
  /// \param layer_count  0 … layers of the model
  /// \throws std::invalid_argument  layer_count out of range
  /// \throws std::logic_error       begin() or, for a layer, draw() did not come before
  [[nodiscard]] FeatureView<const S> features_after(Index layer_count) const {
    this->check_layer_count(layer_count, steps_.layer_count());
    const MatrixView<const S> x = steps_.features(layer_count);
    return {x.data(), x.rows(), steps_.model.coordinates(), steps_.model.options().channels};
  }
  /// The rotations of a layer in the last draw. \param layer  0 … layers − 1
  ///
  /// \throws std::invalid_argument  layer out of range
  /// \throws std::logic_error       draw() did not come before
  [[nodiscard]] const layers::BundleMaps<D, S>& bundle_maps(Index layer) const {
    require_between("layer", layer, 0, steps_.layer_count() - 1);
    this->check_drawn("bundle_maps");
    return steps_.layers[static_cast<std::size_t>(layer)].maps();
  }
  /// Takes these rotations, n × B × D × D for every layer, in place of the model's in the evaluations to come; none: takes
  /// the model's again.
  ///
  /// \throws std::invalid_argument  another number of them than the model has layers, or of another size
  void give_maps(std::vector<Buffer<S>> maps) {
    const Index count = static_cast<Index>(maps.size()), size = steps_.layers.front().maps().values().size();
    require(maps.empty() || count == steps_.layer_count(), "maps", count,
            detail::concat("must be 0, or one for each of ", steps_.layer_count(), " layers"));
    for (const Buffer<S>& one : maps) require_size(one.view(), size, "numbers of the maps");
    steps_.given_maps = std::move(maps);
  }
  /// The distributions of the rotations of the last begin(), the same for all layers.
  ///
  /// \throws std::logic_error  begin() did not come before
  [[nodiscard]] const layers::VariationalBundle<D, S>& posterior() const requires Bayesian {
    this->check_begun("posterior");
    return steps_.posterior.front();
  }

  /// X_1 and, of Bayesian models, Q(O | X_1).
  ///
  /// \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length, or training with given
  ///                                maps
  void begin(const ForwardPass<S>& pass) {
    require(!pass.training || steps_.given_maps.empty(), "training", true, "given maps are for evaluations");
    this->begin_pass(pass);
    steps_.set_pass(pass);
    steps_.embed();
  }

  /// Draws the rotations of a sample and computes its outputs.
  ///
  /// \throws std::invalid_argument  a sample outside 0 … 32767, or one that there is no explicit noise for
  /// \throws std::logic_error       begin() did not come before
  MatrixView<S> draw(Index sample) {
    this->begin_draw(sample);
    steps_.diffuse();
    steps_.read_out();
    this->end_draw();
    return steps_.output.output();
  }
  /// Backwards from the derivative of the last draw's outputs to those of the layers' weights, of Q's parameters and of
  /// X_1, which add up.
  ///
  /// \throws std::invalid_argument  outputs_bar of another shape
  /// \throws std::logic_error       no begin_backward(), or no draw() of a pass with training = true came before
  void accumulate(const MatrixView<const S>& outputs_bar) {
    this->check_accumulate();
    steps_.read_out_backward(outputs_bar);
    steps_.diffuse_backward();
    if (steps_.first_sample) {
      std::swap(steps_.bar, steps_.embedding_bar);
    } else {
      detail::add_array(steps_.execution, steps_.bar.size(), steps_.bar.data(), steps_.embedding_bar.data());
    }
    steps_.first_sample = steps_.kept = false;
  }
  /// From what accumulate() has gathered to gradient().
  ///
  /// \returns the KL term, the mean over nodes and bundles
  /// \throws std::logic_error  no begin_backward() or no accumulate() came before
  double finish_backward() {
    this->check_finish();
    if (Bayesian && steps_.closed_form) steps_.kl = steps_.mean_kl();
    steps_.embed_backward();
    return steps_.kl;
  }
};

}  // namespace sheafnn
