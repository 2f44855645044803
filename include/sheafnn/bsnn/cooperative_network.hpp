/// \file
/// Networks of cooperative models. They have the passes of every network (network.hpp), so losses, training and
/// prediction work with them.
///
///     H = act(dropout_in(X) W₁ᵀ + b₁),   X̃_l = dropout(X_l),   X_1 = H
///     T, S from learners that read X̃_l; Bayesian: drawn from Q(T, S | H), whose learners read H, or with
///     layer_learners from Q(T, S | X̃_l)
///     X_{l+1} = norm((1 + tanh ε) ∘ X̃_l − act(dropout(Δ_inᵀ Δ_out (I ⊗ A) X̃_l Bᵀ))),   Y = readout(X_{L+1})
///
/// Explicit noise (ForwardPass::noise) is one array of 2n rows per layer: n rows for the maps T, then n rows for the
/// maps S. A row has D² + 1 values: a uniform rotation in row-major order, then an N(0, 1) value for the scale.
/// Source: math: "Cooperative sheaves", "Bayesian cooperative sheaves".
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/cooperative_steps.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/bsnn/network_of_steps.hpp"

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it. After all layers
/// features_after() has X_{L+1} at nodes() only, and in a training pass before that the next layer's input X̃.
template <int D, bool Bayesian, std::floating_point Scalar>
class Network<CooperativeModel<D, Bayesian, Scalar>>
    : public detail::NetworkOfSteps<Network<CooperativeModel<D, Bayesian, Scalar>>,
                                    detail::CooperativeSteps<D, Bayesian, Scalar>> {
  using Passes = detail::NetworkOfSteps<Network, detail::CooperativeSteps<D, Bayesian, Scalar>>;
  using Passes::steps_;

 public:
  using typename Passes::Model;
  using S = Scalar;

  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, or a graph without nodes
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, Execution execution = {})
      : Passes(std::in_place, model, graph, nullptr, features, execution) {}
  Network(const Model&&, const Graph&, const NodeFeatures&, Execution = {}) = delete;  // a temporary would dangle
  Network(const Model&, const Graph&&, const NodeFeatures&, Execution = {}) = delete;
  /// A network on directed arcs, whatever the options say. The operators sum over the arcs that leave a node, and the
  /// learners over the arcs that enter it.
  ///
  /// \param graph  with the same nodes; its edges do not matter
  /// \param arcs   must outlive the network
  /// \throws std::invalid_argument  as above, or arcs with another number of nodes
  Network(const Model& model, const Graph& graph, const DirectedArcs& arcs, const NodeFeatures& features,
          Execution execution = {})
      : Passes(std::in_place, model, graph, &arcs, features, execution) {}
  Network(const Model&&, const Graph&, const DirectedArcs&, const NodeFeatures&, Execution = {}) = delete;
  Network(const Model&, const Graph&&, const DirectedArcs&, const NodeFeatures&, Execution = {}) = delete;
  Network(const Model&, const Graph&, const DirectedArcs&&, const NodeFeatures&, Execution = {}) = delete;

  /// The node maps of a layer in the last draw. \param layer  0 … layers − 1
  ///
  /// \throws std::invalid_argument  layer out of range
  /// \throws std::logic_error       draw() did not come before
  [[nodiscard]] const layers::NodeMaps<D, S>& node_maps(Index layer) const {
    require_between("layer", layer, 0, steps_.layer_count() - 1);
    this->check_drawn("node_maps");
    return steps_.stages[static_cast<std::size_t>(layer)].maps;
  }
  /// Uses these maps of all nodes, one element per layer, in place of the model's maps in later evaluations. An empty
  /// argument restores the model's maps.
  ///
  /// \throws std::invalid_argument  the number of elements differs from the number of layers, or maps of another number
  ///                                of nodes
  void give_maps(std::vector<layers::NodeMapRows<D, S>> maps) {
    const Index count = static_cast<Index>(maps.size()), n = steps_.graph.node_count();
    require(maps.empty() || count == steps_.layer_count(), "maps", count,
            detail::concat("must be 0, or one for each of ", steps_.layer_count(), " layers"));
    for (const layers::NodeMapRows<D, S>& rows : maps) {
      for (const Buffer<S>& rotations : rows.rotation) {
        require(rotations.size() == n * D * D, "numbers of a rotation per node", rotations.size(),
                detail::concat("must be ", D * D, " for each of ", n, " nodes"));
      }
    }
    steps_.given_maps = std::move(maps);
  }
  /// The distributions of a layer's maps. They come from the last begin() and are the same for all layers, or with
  /// layer_learners from the last draw. \param layer  0 … layers − 1
  ///
  /// \throws std::invalid_argument  layer out of range
  /// \throws std::logic_error       begin() or, with layer_learners, draw() did not come before
  [[nodiscard]] const layers::VariationalNodeMaps<D, S>& posterior(Index layer = 0) const requires Bayesian {
    require_between("layer", layer, 0, steps_.layer_count() - 1);
    check_posterior("posterior");
    return steps_.posteriors[steps_.pair_of(layer)];
  }

  /// KL(Q ‖ prior) after the last begin(), the mean over nodes and sides. With layer_learners it belongs to the last
  /// draw and is also a mean over layers. It is 0 for deterministic models.
  ///
  /// \throws std::logic_error  begin() or, with layer_learners, draw() did not come before
  [[nodiscard]] double kl() {
    check_posterior("kl");
    return Passes::kl();
  }

 private:
  void check_posterior(std::string_view step) const {
    this->check_begun(step);
    if (Bayesian && steps_.learns_per_layer()) this->check_drawn(step);
  }
};

}  // namespace sheafnn
