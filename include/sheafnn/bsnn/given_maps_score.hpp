/// \file
/// The score of a network with other node maps in place of its own, for figures that show whether its sheaf is used
/// (sheaf_use.hpp). The network must accept given maps.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/sheaf_use.hpp"

namespace sheafnn::detail {

/// The maps that replace the maps of a layer.
template <class Rows>
struct ChangedNodeMaps {
  std::function<Rows(const Rows&, const Stream&)> permuted, drawn;
  std::function<Rows()> identity;
};

/// A permutation of n nodes.
[[nodiscard]] inline std::vector<std::int32_t> permuted_nodes(Index nodes, const Stream& stream) {
  std::vector<std::int32_t> r(static_cast<std::size_t>(nodes));
  std::iota(r.begin(), r.end(), 0);
  shuffle(r, stream);
  return r;
}

/// Fills in the losses of an evaluation that has begun. Unchecked: the nodes are labelled, and the options are in
/// range.
///
/// \tparam Rows    what Network::give_maps() takes for each layer
/// \param rows_of  rows_of(l): the rows of layer l in the last draw
template <class Rows, class Model, class RowsOf>
void score_given_maps(const BegunPass<Network<Model>>& pass, std::span<const std::int32_t> labels,
                      std::span<const std::int32_t> labelled, const SheafUseOptions& options,
                      const RowsOf& rows_of, const ChangedNodeMaps<Rows>& change, SheafUse& use) {
  Network<Model>& network = pass.network();
  const Index n = network.graph().node_count(), layers = network.model().options().layers,
              classes = network.model().options().classes;
  const auto losses = [&] { return NodeLosses(labels, labelled, Model::bayesian); };
  NodeLosses own = losses(), permuted = losses(), prior = losses(), identity = losses();
  const auto draw = [&](Index k, std::vector<Rows> maps, NodeLosses& to) {
    network.give_maps(std::move(maps));
    const auto outputs = pass.draw(k).view();
    log_softmax_rows(network.execution(), n, classes, outputs.data(), outputs.stride());
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
    if (Model::bayesian || k == 0) {
      draw(k, {}, own);
      maps.clear();
      for (Index l = 0; l < layers; ++l) maps.push_back(rows_of(l));
    }
    std::vector<Rows> others, drawn, trivial;
    for (Index l = 0; l < layers; ++l) {
      const Rows& of_layer = maps[static_cast<std::size_t>(l)];
      const auto stream = [&](Index part) {
        return Stream{options.seed, Purpose::user, options.epoch, static_cast<std::uint32_t>(2 * l + part),
                      static_cast<std::uint32_t>(k)};
      };
      others.push_back(change.permuted(of_layer, stream(0)));
      drawn.push_back(change.drawn(of_layer, stream(1)));
      trivial.push_back(change.identity());
    }
    if (k == 0) draw(k, std::move(trivial), identity);
    draw(k, std::move(drawn), prior);
    draw(k, std::move(others), permuted);
  }
  fill_score(own, permuted, prior, identity, use);
}

/// sheaf_use() of a network with maps of nodes.
///
/// \param describe  describe(network, use) fills in figures of the maps of the last draw
/// \param rows_of   rows_of(network, l): the rows of layer l in the last draw
/// \param changes   changes(network): ChangedNodeMaps<Rows>
/// \throws std::invalid_argument  an option out of range, a node number out of range, or as predict()
template <class Rows, class Model, class Describe, class RowsOf, class Changes>
[[nodiscard]] SheafUse sheaf_use_of_nodes(const Model& model, const Dataset& data,
                                          std::span<const std::int32_t> nodes, const SheafUseOptions& options,
                                          const Describe& describe, const RowsOf& rows_of,
                                          const Changes& changes) {
  require_between("samples", options.samples, 1, 32768);
  const Execution execution = reading_execution(model, data.graph, options.threads);
  const std::vector<std::int32_t> labelled = labelled_nodes(data.labels, nodes);
  SheafUse r;
  r.bayesian = Model::bayesian;
  r.of_nodes = true;
  if (data.graph.edge_count() == 0) return r;
  Network<Model> network(model, data.graph, data.features, execution);
  const auto pass = network.begin({.seed = options.seed, .epoch = options.epoch});
  pass.draw();
  describe(network, r);
  if (labelled.empty()) return r;
  const auto rows = [&](Index l) { return rows_of(network, l); };
  score_given_maps<Rows>(pass, data.labels, labelled, options, rows, changes(network), r);
  return r;
}

}  // namespace sheafnn::detail
