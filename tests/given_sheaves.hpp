/// \file
/// Sheaves and labels that tests give to networks.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/graph/graph.hpp"
#include "sheafnn/posterior/around_given.hpp"
#include "sheafnn/posterior/given_maps.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"

namespace given_sheaves {

/// Random maps; edge weights between 0.6 and 1.4, if the family has them.
template <class Family>
sheafnn::CellularSheaf<Family> sheaf_over(const sheafnn::Graph& graph, std::uint64_t seed = 4) {
  using namespace sheafnn;
  CellularSheaf<Family> r = sheaf::random_sheaf<Family, double>(graph, Stream{seed, Purpose::user});
  if constexpr (sheaf::may_have_edge_weights<Family>) {
    for (Index e = 0; e < graph.edge_count(); ++e) {
      r.set_edge_weight(e, 1 + 0.4 * std::sin(static_cast<double>(e * e + 1)));
    }
  }
  return r;
}
/// One sheaf for all layers.
template <class Family>
sheafnn::GivenMaps<Family> maps_over(const sheafnn::Graph& graph, std::uint64_t seed = 4) {
  return sheafnn::GivenMaps<Family>(sheaf_over<Family>(graph, seed));
}
/// A sheaf for every layer.
template <class Family>
sheafnn::GivenMaps<Family> maps_of_layers(const sheafnn::Graph& graph, sheafnn::Index layers) {
  std::vector<sheafnn::CellularSheaf<Family>> r;
  for (sheafnn::Index l = 0; l < layers; ++l)
    r.push_back(sheaf_over<Family>(graph, static_cast<std::uint64_t>(7 + l)));
  return sheafnn::GivenMaps<Family>(std::move(r));
}

/// Labels of the edges in no order, each of `count` often but the last one of no edge.
inline sheafnn::EdgeLabels edge_labels(const sheafnn::Graph& graph, sheafnn::Index count = 4) {
  sheafnn::EdgeLabels r;
  r.count = count;
  for (sheafnn::Index e = 0; e < graph.edge_count(); ++e)
    r.of_edge.push_back(static_cast<std::int32_t>((e * e + e / 3) % (count > 1 ? count - 1 : 1)));
  return r;
}
/// Distributions around random maps. \param source  what decides them
template <class Family>
sheafnn::AroundGiven<Family> around_maps(const sheafnn::Graph& graph, sheafnn::DeviationSource source,
                                         std::uint64_t seed = 4) {
  using sheafnn::AroundGiven;
  if (source == sheafnn::DeviationSource::labels)
    return AroundGiven<Family>(sheaf_over<Family>(graph, seed), edge_labels(graph));
  return AroundGiven<Family>(sheaf_over<Family>(graph, seed), source);
}
inline constexpr sheafnn::DeviationSource deviation_sources[] = {sheafnn::DeviationSource::arcs,
                                                                 sheafnn::DeviationSource::arcs_and_means,
                                                                 sheafnn::DeviationSource::labels};

}  // namespace given_sheaves
