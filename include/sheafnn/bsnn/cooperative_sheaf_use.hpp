/// \file
/// Is the sheaf that a cooperative network has learned used? The figures of sheaf_use.hpp for maps of nodes,
/// T_u = τ_u P_u and S_u = σ_u R_u:
///
///   spread, kl  of the distributions of the maps, both sides and all layers together
///   turn        degrees of P_uᵀ R_v along the arcs u→v of the mean maps, all layers together
///   permuted    node u has the maps of node π(u), scales included; every layer has a permutation of its own
///   prior       P and R uniform, log τ and log σ ~ N(0, 1) where maps have scales
///   identity    T = S = I
///
/// Source: math: "Cooperative sheaves", "Bayesian cooperative sheaves".
#pragma once

#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/learned_node_maps.hpp"
#include "sheafnn/bsnn/sheaf_use.hpp"
#include "sheafnn/sheaf/families/conformal.hpp"

namespace sheafnn {

namespace detail {

/// Node u gets the maps of node π(u).
template <int D, class S>
[[nodiscard]] NodeMapRows<D, S> permuted_node_maps(const NodeMapRows<D, S>& rows, Index nodes,
                                                   const Stream& stream) {
  std::vector<std::int32_t> other(static_cast<std::size_t>(nodes));
  std::iota(other.begin(), other.end(), 0);
  shuffle(other, stream);
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

/// See the file comment. Graphs without edges have no figures, and without labelled nodes there is no score.
///
/// \throws std::invalid_argument  an option out of range, a node number out of range, or as predict()
template <int D, bool Bayesian, class S>
[[nodiscard]] SheafUse sheaf_use(const CooperativeModel<D, Bayesian, S>& model, const Dataset& data,
                                 std::span<const std::int32_t> nodes, const SheafUseOptions& options = {}) {
  using Rows = layers::NodeMapRows<D, S>;
  require_between("samples", options.samples, 1, 32768);
  require(options.threads >= 0, "threads", options.threads,
          "must be at least 0 (0: as many as the graph is worth)");
  const std::vector<std::int32_t> labelled = labelled_nodes(data.labels, nodes);
  SheafUse r;
  r.bayesian = Bayesian;
  r.of_nodes = true;
  if (data.graph.edge_count() == 0) return r;
  const Index n = data.graph.node_count(), layers = model.options().layers, classes = model.options().classes;
  Network<CooperativeModel<D, Bayesian, S>> network(model, data.graph, data.features,
                                                    options.threads > 0 ? options.threads
                                                                        : suggested_threads(model, data.graph));
  ForwardPass<S> pass;
  pass.seed = options.seed;
  pass.epoch = options.epoch;
  network.begin(pass);
  network.draw(0);
  detail::describe_node_maps(network, r);
  if (labelled.empty()) return r;
  const auto losses = [&] { return detail::NodeLosses(data.labels, labelled, Bayesian); };
  detail::NodeLosses own = losses(), permuted = losses(), prior = losses(), identity = losses();
  const auto draw = [&](Index k, std::vector<Rows> maps, detail::NodeLosses& to) {
    network.give_maps(std::move(maps));
    const MatrixView<S> outputs = network.draw(k);
    layers::log_softmax_rows(network.execution(), n, classes, outputs.data(), outputs.stride());
    Prediction prediction;
    prediction.class_count = classes;
    for (Index u = 0; u < n; ++u) {
      for (Index c = 0; c < classes; ++c)
        prediction.probabilities.push_back(std::exp(static_cast<double>(outputs(u, c))));
    }
    to.add(prediction);
  };
  std::vector<Rows> maps;  // the model's own
  for (Index k = 0; k < options.samples; ++k) {
    if (Bayesian || k == 0) {
      draw(k, {}, own);
      maps.clear();
      for (Index l = 0; l < layers; ++l) maps.push_back(network.node_maps(l).rows());
    }
    std::vector<Rows> others, drawn, trivial;
    for (Index l = 0; l < layers; ++l) {
      const layers::NodeDegrees<S>& degrees = network.node_maps(l).degrees();
      const auto stream = [&](Index part) {
        return Stream{options.seed, Purpose::user, options.epoch, static_cast<std::uint32_t>(2 * l + part),
                      static_cast<std::uint32_t>(k)};
      };
      others.push_back(detail::permuted_node_maps(maps[static_cast<std::size_t>(l)], n, stream(0)));
      trivial.emplace_back(degrees);
      drawn.emplace_back(degrees);
      detail::draw_prior_node_maps(drawn.back(), n, stream(1));
    }
    if (k == 0) draw(k, std::move(trivial), identity);
    draw(k, std::move(drawn), prior);
    draw(k, std::move(others), permuted);
  }
  detail::fill_score(own, permuted, prior, identity, r);
  return r;
}

}  // namespace sheafnn
