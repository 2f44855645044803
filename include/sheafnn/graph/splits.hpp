/// \file
/// Seeded random splits of labelled nodes into training, validation and test sets, stratified by class.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

/// Shares of the training and the validation set; the test set gets the rest. The default is that of the published
/// splits of the usual benchmark graphs, 48/32/20.
struct SplitFractions {
  double train = 0.48;
  double validation = 0.32;
};

namespace detail {

/// What generated data is random for; the layer field of its streams.
enum class GeneratorPart : std::uint32_t { labels, degrees, edges, features, splits };

[[nodiscard]] inline Stream generator_stream(std::uint64_t seed, GeneratorPart part) {
  return {seed, Purpose::synthetic_graph, 0, static_cast<std::uint32_t>(part), 0};
}

/// A word as a whole number in [0, bound); the bias is below bound / 2³².
[[nodiscard]] inline std::uint32_t below(std::uint32_t word, Index bound) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(bound)) >> 32);
}

/// Shuffles `items` (Fisher–Yates) with the random numbers of `stream`.
inline void shuffle(std::vector<std::int32_t>& items, const Stream& stream) {
  for (std::size_t i = items.size(); i > 1; --i) {
    const std::uint32_t word = stream.words(static_cast<std::uint32_t>(i), 0).word[0];
    std::swap(items[i - 1], items[below(word, static_cast<Index>(i))]);
  }
}

}  // namespace detail

/// Draws `count` independent splits. Within every class the nodes are shuffled and cut at the fractions (rounded
/// to whole nodes), so that each set holds every class that has at least three nodes.
///
/// \param labels       one per node, each in [0, class_count), or -1: such nodes are in no set
/// \param class_count  number of classes
/// \param count        number of splits, 0 … 1000
/// \param fractions    shares in (0, 1) with train + validation < 1
/// \param seed         same seed, same splits
/// \throws std::invalid_argument  an argument outside these ranges, or too few nodes to fill all three sets
[[nodiscard]] inline std::vector<Split> make_splits(std::span<const std::int32_t> labels, Index class_count,
                                                    Index count, const SplitFractions& fractions = {},
                                                    std::uint64_t seed = 0) {
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  require(count >= 0 && count <= 1000, "count", count, "must be between 0 and 1000");
  require(fractions.train > 0 && fractions.train < 1, "fractions.train", fractions.train, "must be in (0, 1)");
  require(fractions.validation > 0 && fractions.train + fractions.validation < 1, "fractions.validation",
          fractions.validation, "must be positive and leave a share for the test set");
  std::vector<std::vector<std::int32_t>> nodes_of(static_cast<std::size_t>(class_count));
  for (std::size_t u = 0; u < labels.size(); ++u) {
    if (labels[u] < -1 || labels[u] >= class_count) {
      throw_invalid_argument(detail::concat("labels[", u, "]"), labels[u],
                             detail::concat("must be between 0 and ", class_count - 1, ", or -1 where unknown"));
    }
    if (labels[u] == -1) continue;
    nodes_of[static_cast<std::size_t>(labels[u])].push_back(static_cast<std::int32_t>(u));
  }
  std::vector<Split> splits(static_cast<std::size_t>(count));
  for (std::size_t s = 0; s < splits.size(); ++s) {
    Split& split = splits[s];
    for (std::size_t c = 0; c < nodes_of.size(); ++c) {
      std::vector<std::int32_t> nodes = nodes_of[c];
      Stream stream = detail::generator_stream(seed, detail::GeneratorPart::splits);
      stream.epoch = static_cast<std::uint32_t>(c);
      stream.sample = static_cast<std::uint32_t>(s);
      detail::shuffle(nodes, stream);
      const Index total = static_cast<Index>(nodes.size());
      const auto share = [total](double fraction) {
        return static_cast<Index>(std::lround(fraction * static_cast<double>(total)));
      };
      Index train = share(fractions.train);
      Index validation = share(fractions.validation);
      if (total >= 3) {
        train = std::clamp<Index>(train, 1, total - 2);
        validation = std::clamp<Index>(validation, 1, total - train - 1);
      } else {
        train = std::min<Index>(total, 1);
        validation = 0;
      }
      const auto cut1 = nodes.begin() + train;
      const auto cut2 = cut1 + validation;
      split.train.insert(split.train.end(), nodes.begin(), cut1);
      split.validation.insert(split.validation.end(), cut1, cut2);
      split.test.insert(split.test.end(), cut2, nodes.end());
    }
    for (std::vector<std::int32_t>* set : {&split.train, &split.validation, &split.test}) {
      require(!set->empty(), "labels", labels.size(), "too few labelled nodes for three non-empty sets");
      std::sort(set->begin(), set->end());
    }
  }
  return splits;
}

}  // namespace sheafnn
