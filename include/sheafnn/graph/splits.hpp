/// \file
/// Seeded random splits of labelled nodes into training, validation and test sets; splits with exchanged sets.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/random/below.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

/// Shares of the training and the validation set; the test set gets the rest. The default is 48/32/20,
/// as in the published splits of the usual benchmark graphs.
struct SplitFractions {
  double train = 0.48;
  double validation = 0.32;
};

namespace detail {

/// What generated data is random for; the layer field of its streams.
enum class GeneratorPart : std::uint32_t {
  labels,
  degrees,
  edges,
  features,
  splits,
  frames,
  vectors,
  noise,
  hidden_map,
  transports,
  reliability
};

[[nodiscard]] inline Stream generator_stream(std::uint64_t seed, GeneratorPart part) {
  return {seed, Purpose::synthetic_graph, 0, static_cast<std::uint32_t>(part), 0};
}

/// Shuffles `items` (Fisher–Yates) with the random numbers of `stream`.
inline void shuffle(std::vector<std::int32_t>& items, const Stream& stream) {
  for (std::size_t i = items.size(); i > 1; --i) {
    const std::uint32_t word = stream.words(static_cast<std::uint32_t>(i), 0).word[0];
    std::swap(items[i - 1], items[below(word, static_cast<Index>(i))]);
  }
}

/// Labelled nodes, class by class.
///
/// \throws std::invalid_argument  a label outside [-1, class_count)
[[nodiscard]] inline std::vector<std::vector<std::int32_t>> nodes_by_class(std::span<const std::int32_t> labels,
                                                                           Index class_count) {
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  std::vector<std::vector<std::int32_t>> nodes_of(static_cast<std::size_t>(class_count));
  for (std::size_t u = 0; u < labels.size(); ++u) {
    if (labels[u] < -1 || labels[u] >= class_count) {
      throw_invalid_argument(detail::concat("labels[", u, "]"), labels[u],
                             detail::concat("must be between 0 and ", class_count - 1, ", or -1 where unknown"));
    }
    if (labels[u] == -1) continue;
    nodes_of[static_cast<std::size_t>(labels[u])].push_back(static_cast<std::int32_t>(u));
  }
  return nodes_of;
}

/// Sizes of the training, validation and test set.
using SplitSizes = std::array<Index, 3>;

/// Draws splits group by group: the nodes of a group are shuffled and cut at sizes_of(number of nodes).
///
/// \param needed  which of the training, validation and test set must not be empty
/// \param what    what messages call that which is split
/// \throws std::invalid_argument  a count outside 0 … 1000, or too few nodes for the sets that are needed
template <class SizesOf>
[[nodiscard]] std::vector<Split> cut_groups(const std::vector<std::vector<std::int32_t>>& groups, Index count,
                                            std::uint64_t seed, const std::array<bool, 3>& needed,
                                            const SizesOf& sizes_of, std::string_view what = "labelled nodes") {
  require_between("count", count, 0, 1000);
  const char* too_few = needed[1] && needed[2]   ? "too few for three non-empty sets"
                        : needed[1] || needed[2] ? "too few for two non-empty sets"
                                                 : "too few for a training set";
  std::size_t labelled = 0;
  for (const std::vector<std::int32_t>& group : groups) labelled += group.size();
  std::vector<Split> splits(static_cast<std::size_t>(count));
  for (std::size_t s = 0; s < splits.size(); ++s) {
    Split& split = splits[s];
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::vector<std::int32_t> nodes = groups[g];
      Stream stream = generator_stream(seed, GeneratorPart::splits);
      stream.epoch = static_cast<std::uint32_t>(g);
      stream.sample = static_cast<std::uint32_t>(s);
      shuffle(nodes, stream);
      const SplitSizes sizes = sizes_of(static_cast<Index>(nodes.size()));
      const auto cut1 = nodes.begin() + sizes[0];
      const auto cut2 = cut1 + sizes[1];
      split.train.insert(split.train.end(), nodes.begin(), cut1);
      split.validation.insert(split.validation.end(), cut1, cut2);
      split.test.insert(split.test.end(), cut2, nodes.end());
    }
    const std::array<std::vector<std::int32_t>*, 3> sets = {&split.train, &split.validation, &split.test};
    for (std::size_t k = 0; k < sets.size(); ++k) {
      require(!sets[k]->empty() || !needed[k], what, labelled, too_few);
      std::sort(sets[k]->begin(), sets[k]->end());
    }
  }
  return splits;
}

}  // namespace detail

/// Draws `count` independent splits, as the built-in graphs have them. Within every class the nodes are shuffled and cut at
/// the fractions, each rounded to whole nodes (random_splits() rounds them together). So each set holds every class that has
/// at least three nodes.
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
  require(fractions.train > 0 && fractions.train < 1, "fractions.train", fractions.train, "must be in (0, 1)");
  require(fractions.validation > 0 && fractions.train + fractions.validation < 1, "fractions.validation",
          fractions.validation, "must be positive and leave a share for the test set");
  const auto sizes_of = [&](Index total) -> detail::SplitSizes {
    if (total < 3) return {std::min<Index>(total, 1), 0, total - std::min<Index>(total, 1)};
    const auto share = [total](double fraction) {
      return static_cast<Index>(std::lround(fraction * static_cast<double>(total)));
    };
    const Index train = std::clamp<Index>(share(fractions.train), 1, total - 2);
    const Index validation = std::clamp<Index>(share(fractions.validation), 1, total - train - 1);
    return {train, validation, total - train - validation};
  };
  return detail::cut_groups(detail::nodes_by_class(labels, class_count), count, seed, {true, true, true},
                            sizes_of);
}

/// Options of random_splits().
struct RandomSplitOptions {
  double train = 0.6;       ///< share of the labelled nodes, positive; the three shares sum to 1
  double validation = 0.2;  ///< share; 0: no such nodes
  double test = 0.2;        ///< share; 0: no such nodes
  Index count = 10;         ///< number of splits, 0 … 1000
  bool stratified = true;   ///< the shares hold within every class, not only in total
  std::uint64_t seed = 0;   ///< same seed, same splits
};

namespace detail {

/// Sizes of three sets by the largest-remainder rule. Every share is rounded down, and the nodes left over go to the sets
/// with the largest remainders. Ties (up to rounding) go by the order of the sets. A set with share 0 gets no node. With
/// enough nodes no other set is empty (one that would be takes a node from the largest set). With fewer, one is for
/// training, the next for testing.
[[nodiscard]] inline SplitSizes largest_remainder(const std::array<double, 3>& shares, Index total) {
  SplitSizes sizes = {};
  const Index needed = std::count_if(shares.begin(), shares.end(), [](double share) { return share > 0; });
  if (total < needed) {
    for (const std::size_t k : {std::size_t{0}, std::size_t{2}, std::size_t{1}}) {
      if (shares[k] == 0 || total == 0) continue;
      sizes[k] = 1;
      --total;
    }
    return sizes;
  }
  std::array<double, 3> remainder;
  Index left = total;
  for (std::size_t k = 0; k < 3; ++k) {
    const double exact = shares[k] * static_cast<double>(total);
    sizes[k] = static_cast<Index>(exact);
    remainder[k] = shares[k] > 0 ? exact - static_cast<double>(sizes[k]) : -1;
    left -= sizes[k];
  }
  const double rounding = 1e-15 * static_cast<double>(total);
  for (; left > 0; --left) {
    const auto most =
        std::max_element(remainder.begin(), remainder.end(), [&](double a, double b) { return a + rounding < b; });
    ++sizes[static_cast<std::size_t>(most - remainder.begin())];
    *most = -1;
  }
  for (std::size_t k = 0; k < 3; ++k) {
    if (sizes[k] > 0 || shares[k] == 0) continue;
    --*std::max_element(sizes.begin(), sizes.end());
    sizes[k] = 1;
  }
  return sizes;
}

}  // namespace detail

/// Draws independent splits of the labelled nodes with sizes by the largest-remainder rule: in total, or, stratified,
/// within every class. Stratified, each set holds every class that has at least three labelled nodes. Sets with share
/// 0 are empty.
///
/// \param labels       one per node, each in [0, class_count), or -1: such nodes are in no set
/// \param class_count  number of classes
/// \param what         what messages call them
/// \throws std::invalid_argument  a label or option out of range, or too few labelled nodes to fill the other sets
[[nodiscard]] inline std::vector<Split> random_splits(std::span<const std::int32_t> labels, Index class_count,
                                                      const RandomSplitOptions& options = {},
                                                      std::string_view what = "labelled nodes") {
  const std::array<double, 3> shares = {options.train, options.validation, options.test};
  require(options.train > 0 && options.train <= 1, "train", options.train, "must be in (0, 1]");
  require(options.validation >= 0 && options.validation < 1, "validation", options.validation,
          "must be in [0, 1)");
  require(options.test >= 0 && options.test < 1, "test", options.test, "must be in [0, 1)");
  const double sum = shares[0] + shares[1] + shares[2];
  require(std::abs(sum - 1) < 1e-12, "train + validation + test", sum, "the shares must sum to 1");
  std::vector<std::vector<std::int32_t>> groups = detail::nodes_by_class(labels, class_count);
  if (!options.stratified) {
    std::vector<std::int32_t> all;
    for (const std::vector<std::int32_t>& group : groups) all.insert(all.end(), group.begin(), group.end());
    std::sort(all.begin(), all.end());
    groups = {std::move(all)};
  }
  return detail::cut_groups(
      groups, options.count, options.seed, {true, shares[1] > 0, shares[2] > 0},
      [&](Index total) { return detail::largest_remainder(shares, total); }, what);
}

/// The same for a dataset: splits of the nodes with a label or, where it has targets, with a known target; these are one
/// class.
///
/// \throws std::invalid_argument  as above
template <class GraphType>
[[nodiscard]] std::vector<Split> random_splits(const NodeDataset<GraphType>& data,
                                               const RandomSplitOptions& options = {}) {
  if (data.target_names.empty()) return random_splits(data.labels, data.class_count, options);
  return random_splits(known_targets(data), 1, options);
}

/// The same splits with the sets exchanged. A training learns from the validation nodes, is validated on the test nodes and
/// tested on the training nodes. Splits of 48/32/20 become 32/20/48, a task with fewer labels and more nodes to judge by.
///
/// \param name  what messages call the splits
/// \throws std::invalid_argument  a split without validation nodes
[[nodiscard]] inline std::vector<Split> exchange_sets(std::vector<Split> splits,
                                                      std::string_view name = "splits") {
  for (std::size_t i = 0; i < splits.size(); ++i) {
    require(!splits[i].validation.empty(), detail::concat(name, "[", i, "].validation"), 0,
            "training needs these nodes: exchanged masks train on them");
    std::swap(splits[i].train, splits[i].validation);
    std::swap(splits[i].validation, splits[i].test);
  }
  return splits;
}

}  // namespace sheafnn
