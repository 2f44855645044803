/// \file
/// Is the sheaf that a cooperative network has learned used? The figures of sheaf_use.hpp for maps of nodes,
/// T_u = τ_u P_u and S_u = σ_u R_u:
///
/// - spread, kl: of the distributions of the maps, both sides and all layers together
/// - turn: degrees of P_uᵀ R_v along the arcs u→v of the mean maps, all layers together
/// - permuted: node u has the maps of node π(u), scales included; every layer has a permutation of its own
/// - prior: P and R uniform, log τ and log σ ~ N(0, 1) where maps have scales
/// - identity: T = S = I
///
/// Source: math: "Cooperative sheaves", "Bayesian cooperative sheaves".
#pragma once

#include <span>
#include <vector>

#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/learned_node_maps.hpp"
#include "sheafnn/bsnn/sheaf_use.hpp"
#include "sheafnn/bsnn/given_maps_score.hpp"
#include "sheafnn/sheaf/families/conformal.hpp"

namespace sheafnn {

namespace detail {

/// Node u gets the maps of node π(u).
template <int D, class S>
[[nodiscard]] NodeMapRows<D, S> permuted_node_maps(const NodeMapRows<D, S>& rows, Index nodes,
                                                   const Stream& stream) {
  const std::vector<std::int32_t> other = permuted_nodes(nodes, stream);
  NodeMapRows<D, S> r = rows;
  for (int side = 0; side < 2; ++side) {
    for (Index u = 0; u < nodes; ++u) {
      const Index from = other[static_cast<std::size_t>(u)];
      std::copy_n(rows.rotation[side].data() + from * D * D, D * D, r.rotation[side].data() + u * D * D);
      r.log_scale[side][u] = rows.log_scale[side][from];
    }
  }
  return r;
}
/// \param rows  overwritten
template <int D, class S>
void draw_prior_node_maps(NodeMapRows<D, S>& rows, Index nodes, const Stream& stream) {
  for (int side = 0; side < 2; ++side) {
    for (Index u = 0; u < nodes; ++u) {
      const auto id = static_cast<std::uint32_t>(2 * u + side);
      const SquareMatrix<double, D> rotation = haar_rotation<double, D>(stream, id);
      for (int k = 0; k < D * D; ++k) rows.rotation[side][u * D * D + k] = static_cast<S>(rotation(k / D, k % D));
      double log_scale;
      fill_normals<1>(&log_scale, stream, id, static_cast<std::uint32_t>(haar_draws<D>));
      rows.log_scale[side][u] = static_cast<S>(log_scale);
    }
  }
}

/// Figures of the maps. \param network  after begin() and draw()
template <int D, bool Bayesian, class S>
void describe_node_maps(Network<CooperativeModel<D, Bayesian, S>>& network, SheafUse& use) {
  const Graph& graph = network.graph();
  const CooperativeOptions& architecture = network.model().options();
  std::vector<double> kappa, sigma, degrees;
  const Index different = !Bayesian || architecture.layer_learners ? architecture.layers : 1;
  for (Index l = 0; l < different; ++l) {
    const NodeMapTable out = node_map_table(network, MapSide::out, l),
                       in = node_map_table(network, MapSide::in, l);
    for (const NodeMapTable* table : {&out, &in}) {
      kappa.insert(kappa.end(), table->concentration.begin(), table->concentration.end());
      sigma.insert(sigma.end(), table->log_scale_deviation.begin(), table->log_scale_deviation.end());
    }
    if constexpr (D > 1) {
      using RowMajor = Eigen::Map<const Eigen::Matrix<double, D, D, Eigen::RowMajor>>;
      for (Index a = 0; a < graph.arc_count(); ++a) {
        if (architecture.directed && !graph.listed(a)) continue;
        const RowMajor p(out.rotation.data() + graph.source(a) * D * D),
            r(in.rotation.data() + graph.target(a) * D * D);
        degrees.push_back(degrees_of<D>(SquareMatrix<double, D>(p.transpose() * r)));
      }
    }
  }
  if constexpr (Bayesian) {
    use.kl = network.kl();
    use.spread.push_back({"kappa", sheaf_quantiles(kappa)});
    if (architecture.conformal) use.spread.push_back({"sigma", sheaf_quantiles(sigma)});
  }
  use.turn = sheaf_quantiles(degrees);
}

}  // namespace detail

/// See the file comment. A graph without edges has no figures. Without labelled nodes there is no score.
///
/// \throws std::invalid_argument  an option out of range, a node number out of range, or as predict()
template <int D, bool Bayesian, class S>
[[nodiscard]] SheafUse sheaf_use(const CooperativeModel<D, Bayesian, S>& model, const Dataset& data,
                                 std::span<const std::int32_t> nodes, const SheafUseOptions& options = {}) {
  using Rows = layers::NodeMapRows<D, S>;
  const Index n = data.graph.node_count();
  return detail::sheaf_use_of_nodes<Rows>(
      model, data, nodes, options, detail::describe_node_maps<D, Bayesian, S>,
      [](const auto& network, Index l) { return network.node_maps(l).rows(); },
      [&](const auto& network) -> detail::ChangedNodeMaps<Rows> {
        return {.permuted = [=](const Rows& rows,
                                const Stream& stream) { return detail::permuted_node_maps(rows, n, stream); },
                .drawn =
                    [=, &network](const Rows&, const Stream& stream) {
                      Rows drawn(network.node_maps(0).degrees());
                      detail::draw_prior_node_maps(drawn, n, stream);
                      return drawn;
                    },
                .identity = [&network] { return Rows(network.node_maps(0).degrees()); }};
      });
}

}  // namespace sheafnn
