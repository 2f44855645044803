/// \file
/// Seeded synthetic node classification tasks on hypergraphs with chosen sizes of hyperedges, homophily and feature noise.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/memory.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/graph/splits.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

/// What synthetic_hypergraph() generates. Fields that SyntheticOptions has as well mean the same.
struct SyntheticHypergraphOptions {
  Index nodes = 1000;
  Index classes = 5;
  Index features = 100;
  Index words = 10;
  Index hyperedges = 1000;  ///< E, 0 … 2³⁰
  Index least_size = 2;     ///< members of a hyperedge, 1 …
  Index largest_size = 6;   ///< … at most half of a class
  double homophily = 0.7;   ///< probability, in [0, 1], that a member is of the hyperedge's class
  double feature_noise = 0.5;
  Index splits = 10;
  std::uint64_t seed = 0;
};

namespace detail {

/// Labels, features and splits are what a graph has with these options.
[[nodiscard]] inline SyntheticOptions node_options(const SyntheticHypergraphOptions& o) {
  return {.nodes = o.nodes,
          .classes = o.classes,
          .features = o.features,
          .words = o.words,
          .degree = 0,
          .feature_noise = o.feature_noise,
          .splits = o.splits,
          .seed = o.seed};
}

}  // namespace detail

/// Checks the ranges above.
///
/// \throws std::invalid_argument  naming the option, its value and the limit
inline void validate(const SyntheticHypergraphOptions& o) {
  validate(detail::node_options(o));
  require_between("hyperedges", o.hyperedges, 0, Index{1} << 30);
  require_between("homophily", o.homophily, 0, 1);
  require(o.least_size >= 1, "least_size", o.least_size, "must be at least 1");
  require(o.largest_size >= o.least_size && o.largest_size <= std::max<Index>(1, o.nodes / o.classes / 2),
          "largest_size", o.largest_size,
          detail::concat("must be between the least size, ", o.least_size, ", and half of a class, ",
                         std::max<Index>(1, o.nodes / o.classes / 2)));
  require(static_cast<double>(o.hyperedges) * static_cast<double>(o.largest_size) < 2147483648.0, "hyperedges",
          o.hyperedges, "a hypergraph must have less than 2^31 pairs");
}

/// Generates a node classification task: every hyperedge has a class and a size, both uniform. Each of its members is of
/// that class with probability `homophily`, and otherwise any node. Labels are balanced, features are counts of words as in
/// synthetic().
///
/// \throws std::invalid_argument  an option outside its range, or a hypergraph that does not fit into memory
[[nodiscard]] inline HypergraphDataset synthetic_hypergraph(const SyntheticHypergraphOptions& options = {}) {
  validate(options);
  const SyntheticOptions of_nodes = detail::node_options(options);
  require_memory("nodes", options.nodes,
                 detail::synthetic_bytes(of_nodes) +
                     static_cast<double>(options.hyperedges * options.largest_size) * 4 * sizeof(std::int32_t));
  HypergraphDataset data;
  data.name = "synthetic hypergraph";
  data.labels = detail::synthetic_labels(of_nodes);
  data.class_count = options.classes;
  std::vector<std::vector<std::int32_t>> of_class(static_cast<std::size_t>(options.classes));
  for (std::size_t v = 0; v < data.labels.size(); ++v) {
    of_class[static_cast<std::size_t>(data.labels[v])].push_back(static_cast<std::int32_t>(v));
  }
  const Stream stream = detail::generator_stream(options.seed, detail::GeneratorPart::edges);
  std::vector<Incidence> pairs;
  std::vector<std::int32_t> members;
  for (Index e = 0; e < options.hyperedges; ++e) {
    const std::uint32_t id = static_cast<std::uint32_t>(e);
    const auto first = stream.words(id, 0);
    const std::vector<std::int32_t>& own = of_class[detail::below(first.word[0], options.classes)];
    const std::size_t size = static_cast<std::size_t>(options.least_size) +
                             detail::below(first.word[1], options.largest_size - options.least_size + 1);
    members.clear();
    // At most half of the nodes to draw from are taken: every second draw or more is new.
    for (std::uint32_t draw = 1; members.size() < size; ++draw) {
      const auto words = stream.words(id, draw);
      const bool same = random::uniform_from_word<double>(words.word[0]) < options.homophily;
      const std::int32_t v = same ? own[detail::below(words.word[1], static_cast<Index>(own.size()))]
                                  : static_cast<std::int32_t>(detail::below(words.word[1], options.nodes));
      if (std::find(members.begin(), members.end(), v) == members.end()) members.push_back(v);
    }
    for (const std::int32_t v : members) pairs.push_back({v, static_cast<std::int32_t>(e)});
  }
  data.graph = Hypergraph(options.nodes, options.hyperedges, pairs);
  data.features = detail::synthetic_features(of_nodes, data.labels);
  data.splits = make_splits(data.labels, options.classes, options.splits, {}, options.seed);
  return data;
}

}  // namespace sheafnn
