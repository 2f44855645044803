/// \file
/// synthetic(): a seeded node classification task with chosen homophily, degree spread and feature noise. Labels
/// are balanced. An edge joins two nodes of one class with probability `homophily`. Features are n × p word counts.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/memory.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/splits.hpp"
#include "sheafnn/random/below.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

/// What synthetic() generates.
struct SyntheticOptions {
  Index nodes = 1000;          ///< n, 3 · classes … 2³¹ − 1
  Index classes = 5;           ///< C, 2 … 1000; class sizes differ by one node at most
  Index features = 100;        ///< p, C … 10⁷; word j of the vocabulary is typical of class j mod C
  Index words = 10;            ///< drawn words per node, 1 … 1000
  double degree = 6;           ///< mean degree: the graph has exactly round(n · degree / 2) edges
  double homophily = 0.3;      ///< probability, in [0, 1], that an edge joins two nodes of one class
  double class_cycle = 0;      ///< probability, in [0, 1], that another edge joins a class and the next one
  double feature_noise = 0.5;  ///< probability, in [0, 1], that a word is drawn from the whole vocabulary
  double degree_noise = 0.5;   ///< standard deviation, in [0, 2], of the logarithm of a node's expected degree
  Index splits = 10;           ///< stratified splits of 48/32/20, 0 … 1000
  std::uint64_t seed = 0;      ///< same options and seed, same dataset
};

/// Checks the ranges above, and that the requested graph fills at most half of the pairs of either kind.
///
/// \throws std::invalid_argument  naming the option, its value and the limit
inline void validate(const SyntheticOptions& o) {
  require_between("classes", o.classes, 2, 1000);
  require(o.nodes >= 3 * o.classes && o.nodes <= 2147483647, "nodes", o.nodes,
          detail::concat("must be between three per class, ", 3 * o.classes, ", and 2147483647"));
  require(o.features >= o.classes && o.features <= 10000000, "features", o.features,
          detail::concat("must be between the number of classes, ", o.classes, ", and 10000000"));
  require_between("words", o.words, 1, 1000);
  require_between("homophily", o.homophily, 0, 1);
  require_between("class_cycle", o.class_cycle, 0, 1);
  require_between("feature_noise", o.feature_noise, 0, 1);
  require_between("degree_noise", o.degree_noise, 0, 2);
  require_between("splits", o.splits, 0, 1000);
  require(o.degree >= 0 && std::isfinite(o.degree), "degree", o.degree, "must be finite and not negative");
  const double n = static_cast<double>(o.nodes);
  const double edges = n * o.degree / 2;
  require(edges < 1073741824.0, "degree", o.degree, "a graph must have less than 2^30 edges");
  const double classes = static_cast<double>(o.classes);
  const double same_pairs = n * (n / classes - 1) / 2;
  const double other_pairs = n * (n - 1) / 2 - same_pairs;
  // Pairs of a class and the next one. With two classes these are all pairs of different classes, otherwise a share of
  // 2/(C − 1).
  const double next_share = std::min(1.0, 2 / (classes - 1));
  const double crowding = o.class_cycle / next_share + 1 - o.class_cycle;
  const double fraction =
      std::max(o.homophily * edges / same_pairs, (1 - o.homophily) * crowding * edges / other_pairs);
  require(fraction <= 0.5, "degree", o.degree,
          detail::concat("with this homophily a mean degree of at most ", o.degree * 0.5 / fraction,
                         " fits these classes"));
}

namespace detail {

/// Picks members of a class with probability proportional to their weights in constant time (Walker's alias
/// method).
class ClassSampler {
 public:
  /// \param members  the nodes of the class
  /// \param weight   positive weights of all nodes
  ClassSampler(const std::vector<std::int32_t>& members, const std::vector<double>& weight)
      : slots_(members.size()) {
    double total = 0;
    for (const std::int32_t u : members) total += weight[static_cast<std::size_t>(u)];
    std::vector<std::size_t> poor, rich;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const double keep =
          weight[static_cast<std::size_t>(members[i])] / total * static_cast<double>(members.size());
      slots_[i] = {keep, members[i], members[i]};
      (keep < 1 ? poor : rich).push_back(i);
    }
    while (!poor.empty() && !rich.empty()) {
      const std::size_t i = poor.back();
      const std::size_t j = rich.back();
      poor.pop_back();
      slots_[i].alias = slots_[j].member;
      slots_[j].keep -= 1 - slots_[i].keep;
      if (slots_[j].keep < 1) {
        rich.pop_back();
        poor.push_back(j);
      }
    }
    // What rounding left over is its own alias.
  }

  [[nodiscard]] std::int32_t weighted(std::uint32_t word0, std::uint32_t word1) const {
    const Slot& slot = slots_[below(word0, static_cast<Index>(slots_.size()))];
    return uniform_from_word<double>(word1) < slot.keep ? slot.member : slot.alias;
  }
  [[nodiscard]] std::int32_t uniform(std::uint32_t word) const {
    return slots_[below(word, static_cast<Index>(slots_.size()))].member;
  }

 private:
  struct Slot {
    double keep = 1;
    std::int32_t member = 0;
    std::int32_t alias = 0;
  };
  std::vector<Slot> slots_;
};

/// Set of node pairs with open addressing; much faster and smaller than a general hash set.
class PairSet {
 public:
  explicit PairSet(std::size_t count) : slots_(std::bit_ceil(count + count / 2 + 2)) {
    shift_ = 64 - std::countr_zero(slots_.size());
  }
  /// \returns whether the pair was new
  bool insert(std::int32_t u, std::int32_t v) {
    const std::uint64_t key = key_of(u, v);
    std::uint64_t& slot = slots_[slot_of(key)];
    if (slot == key) return false;
    slot = key;
    return true;
  }
  [[nodiscard]] bool contains(std::int32_t u, std::int32_t v) const {
    const std::uint64_t key = key_of(u, v);
    return slots_[slot_of(key)] == key;
  }

 private:
  // The larger number is positive, so that 0 can mark a free slot.
  [[nodiscard]] static std::uint64_t key_of(std::int32_t u, std::int32_t v) {
    return (static_cast<std::uint64_t>(std::min(u, v)) << 32) | static_cast<std::uint64_t>(std::max(u, v));
  }
  /// The slot of the key, or the free slot that it would take.
  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const {
    std::size_t slot = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
    while (slots_[slot] != 0 && slots_[slot] != key) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  std::vector<std::uint64_t> slots_;
  int shift_ = 0;
};

/// Balanced labels in random order.
[[nodiscard]] inline std::vector<std::int32_t> synthetic_labels(const SyntheticOptions& o) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(o.nodes));
  for (std::size_t u = 0; u < labels.size(); ++u) {
    labels[u] = static_cast<std::int32_t>(u % static_cast<std::size_t>(o.classes));
  }
  shuffle(labels, generator_stream(o.seed, GeneratorPart::labels));
  return labels;
}

/// Distinct edges. A coin with probability `homophily` decides whether an edge stays within a class. Its classes are as
/// synthetic() says; its ends are drawn by weight until the pair is new.
[[nodiscard]] inline std::vector<Edge> synthetic_edges(const SyntheticOptions& o,
                                                       const std::vector<std::int32_t>& labels) {
  const Stream degrees = generator_stream(o.seed, GeneratorPart::degrees);
  const Stream stream = generator_stream(o.seed, GeneratorPart::edges);
  std::vector<double> weight(labels.size(), 1.0);
  std::vector<std::vector<std::int32_t>> members(static_cast<std::size_t>(o.classes));
  for (std::size_t u = 0; u < labels.size(); ++u) {
    double z = 0;
    fill_normals<1, double>(&z, degrees, static_cast<std::uint32_t>(u));
    weight[u] = std::exp(o.degree_noise * z);
    members[static_cast<std::size_t>(labels[u])].push_back(static_cast<std::int32_t>(u));
  }
  std::vector<ClassSampler> sampler;
  sampler.reserve(members.size());
  for (const std::vector<std::int32_t>& m : members) sampler.emplace_back(m, weight);

  const std::size_t count = static_cast<std::size_t>(std::llround(static_cast<double>(o.nodes) * o.degree / 2));
  std::vector<Edge> edges;
  edges.reserve(count);
  PairSet known(count);
  // Hubs that are already joined to all nodes could stall the weighted draw. After a number of tries the ends are drawn
  // uniformly, which succeeds about every second time because at most half of the pairs are taken.
  constexpr std::uint32_t weighted_tries = 64;
  constexpr std::uint32_t max_tries = 2000;
  for (std::size_t e = 0; e < count; ++e) {
    const std::uint32_t id = static_cast<std::uint32_t>(e);
    bool same = false;
    bool placed = false;
    for (std::uint32_t attempt = 0; !placed; ++attempt) {
      require(attempt < max_tries, "degree", o.degree, "these classes cannot hold so many edges");
      const PhiloxBlock<std::uint32_t> choice = stream.words(id, 2 * attempt);
      if (attempt == 0) same = uniform_from_word<double>(choice.word[0]) < o.homophily;
      const std::size_t c = below(choice.word[1], o.classes);
      // Another class: the next one, or a uniform one, by a shift of 1 … C − 1.
      const bool next = uniform_from_word<double>(choice.word[3]) < o.class_cycle;
      const std::size_t step = same ? 0 : next ? 1 : 1 + below(choice.word[2], o.classes - 1);
      const ClassSampler& first = sampler[c];
      const ClassSampler& second = sampler[(c + step) % static_cast<std::size_t>(o.classes)];
      const PhiloxBlock<std::uint32_t> ends = stream.words(id, 2 * attempt + 1);
      const bool weighted = attempt < weighted_tries;
      const std::int32_t u = weighted ? first.weighted(ends.word[0], ends.word[1]) : first.uniform(ends.word[0]);
      const std::int32_t v = weighted ? second.weighted(ends.word[2], ends.word[3]) : second.uniform(ends.word[2]);
      placed = u != v && known.insert(u, v);
      if (placed) edges.push_back({u, v});
    }
  }
  return edges;
}

/// Word counts: each word of a node comes from its class's share of the vocabulary or, with probability
/// `feature_noise`, from the whole.
[[nodiscard]] inline NodeFeatures synthetic_features(const SyntheticOptions& o,
                                                     const std::vector<std::int32_t>& labels) {
  const Stream stream = generator_stream(o.seed, GeneratorPart::features);
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  std::vector<std::int32_t> drawn(static_cast<std::size_t>(o.words));
  for (std::size_t u = 0; u < labels.size(); ++u) {
    const Index label = labels[u];
    const Index typical = (o.features - label + o.classes - 1) / o.classes;
    PhiloxBlock<std::uint32_t> block{};
    for (std::size_t k = 0; k < drawn.size(); ++k) {
      if (k % 2 == 0) block = stream.words(static_cast<std::uint32_t>(u), static_cast<std::uint32_t>(k / 2));
      const std::uint32_t coin = block.word[2 * (k % 2)];
      const std::uint32_t word = block.word[2 * (k % 2) + 1];
      drawn[k] = static_cast<std::int32_t>(uniform_from_word<double>(coin) < o.feature_noise
                                               ? static_cast<Index>(below(word, o.features))
                                               : label + o.classes * static_cast<Index>(below(word, typical)));
    }
    std::sort(drawn.begin(), drawn.end());
    for (std::size_t k = 0; k < drawn.size(); ++k) {
      if (k > 0 && drawn[k] == drawn[k - 1]) {
        values.back() += 1;
      } else {
        columns.push_back(drawn[k]);
        values.push_back(1);
      }
    }
    offsets.push_back(static_cast<Index>(values.size()));
  }
  return NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), o.features);
}

/// Bytes that the generated graph, its features and its splits take at least.
[[nodiscard]] inline double synthetic_bytes(const SyntheticOptions& o) {
  const double n = static_cast<double>(o.nodes), edges = n * o.degree / 2;
  // A word is a column and a value, unless it is drawn twice; an edge is one in the list and two arcs of four arrays.
  const double node = sizeof(std::int32_t) * static_cast<double>(2 + o.splits) + sizeof(Index);
  const double words = std::min(static_cast<double>(o.words), static_cast<double>(o.features) / 2);
  return n * (node + 0.5 * words * (sizeof(double) + sizeof(std::int32_t))) +
         edges * static_cast<double>(2 * sizeof(Edge) + 8 * sizeof(std::int32_t));
}

}  // namespace detail

/// Generates a node classification task in time proportional to its edges, nodes and words.
///
/// Labels are balanced. A node's expected degree is `degree` times a log-normal factor of spread `degree_noise`. Every edge
/// joins two nodes of one class with probability `homophily`. A share `class_cycle` of the other edges joins a uniformly
/// chosen class and the next class. The rest joins two uniformly chosen different classes. Features are counts of `words`
/// words (sparse, not negative, every row sums to `words`).
///
/// \throws std::invalid_argument  an option outside its range (see SyntheticOptions), or a graph that does not fit into
///         memory
[[nodiscard]] inline Dataset synthetic(const SyntheticOptions& options = {}) {
  validate(options);
  require_memory("nodes", options.nodes, detail::synthetic_bytes(options));
  Dataset data;
  data.name = "synthetic";
  data.labels = detail::synthetic_labels(options);
  data.class_count = options.classes;
  data.graph = Graph(options.nodes, detail::synthetic_edges(options, data.labels));
  data.features = detail::synthetic_features(options, data.labels);
  data.splits = make_splits(data.labels, options.classes, options.splits, {}, options.seed);
  return data;
}

}  // namespace sheafnn
