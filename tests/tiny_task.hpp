/// \file
/// A node classification task so small that every derivative can be checked, and parameters to try a model with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/random/stream.hpp"

namespace tiny {

using sheafnn::Index;

/// Number i of a fixed sequence, uniform in (−1, 1).
inline double number(std::uint64_t seed, Index i) {
  const sheafnn::Stream stream{seed, sheafnn::Purpose::user};
  return 2 * sheafnn::random::uniform_from_word<double>(stream.words(static_cast<std::uint32_t>(i), 0).word[0]) - 1;
}

/// Seven nodes, the last without edges; nine edges, more than a pack has lanes, two or more at every other node,
/// so that D_u of dense maps is regular. Node 4 has no features.
struct Task {
  static constexpr Index nodes = 7, features = 4, classes = 3, arc_features = 2;

  sheafnn::Graph graph;
  std::vector<double> dense;  ///< nodes × features
  sheafnn::NodeFeatures sparse;
  std::vector<std::int32_t> labels = {0, 1, 2, 1, 0, 2, 1};
  std::vector<std::int32_t> train = {0, 1, 3, 4, 5, 6};

  explicit Task(std::uint64_t seed = 1) {
    const sheafnn::Edge edges[] = {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}, {3, 4}, {2, 4}, {4, 5}, {0, 5}};
    graph = sheafnn::Graph(nodes, edges);
    std::vector<double> of_arcs;
    for (Index i = 0; i < graph.arc_count() * arc_features; ++i) of_arcs.push_back(number(seed + 100, i));
    graph.set_arc_features(of_arcs, arc_features);
    dense.assign(static_cast<std::size_t>(nodes * features), 0.0);
    for (Index i = 0; i < nodes * features; ++i) {
      const double value = number(seed, i);
      if (i / features != 4 && value > -0.6) dense[static_cast<std::size_t>(i)] = value;
    }
    sparse = sheafnn::NodeFeatures::from_dense(std::span<const double>(dense), nodes, features);
  }
};

/// Moves all parameters by up to `distance`, so that none stays at a special value.
template <class S>
void disturb(sheafnn::layers::ParameterSet<S>& parameters, std::uint64_t seed, double distance) {
  for (Index i = 0; i < parameters.size(); ++i)
    parameters.values()[i] += static_cast<S>(distance * number(seed, i));
}

/// Options for the task with two channels and two layers, and rows scaled to sum 1.
inline sheafnn::ModelOptions options() {
  sheafnn::ModelOptions options;
  options.features = Task::features;
  options.classes = Task::classes;
  options.channels = 2;
  options.layers = 2;
  options.feature_treatment = sheafnn::FeatureTreatment::rows;
  return options;
}

}  // namespace tiny
