/// \file
/// NegativePairs: pairs of nodes without an edge, drawn by address: each is a function of (seed, epoch, set, slot).
///
/// Uniform pairs need no rejection. The pairs u < v have ranks 0 … n(n − 1)/2 − 1, row by row. The r-th pair that is not
/// excluded has rank r + k, k being the number of excluded ranks e_0 < e_1 < … with e_j − j ≤ r. Pairs weighted by degree
/// are two arcs' sources, drawn again while they are one node or an excluded pair. math: "Links" (10.1).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <stdexcept>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/splits.hpp"
#include "sheafnn/random/below.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

/// How pairs without an edge are drawn.
enum class NegativeSampling {
  uniform,  ///< all alike
  degree    ///< a node in proportion to its degree
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(NegativeSampling) { return std::array{"uniform", "degree"}; }

/// Pairs of n nodes that are not excluded.
class NegativePairs {
 public:
  NegativePairs() = default;
  /// \param excluded   pairs that are never drawn, in any order and direction
  /// \param endpoints  of degree: the sources of the arcs, from which nodes are drawn
  /// \throws std::invalid_argument  a node out of range, or no pair that is left
  NegativePairs(Index node_count, std::span<const Edge> excluded,
                NegativeSampling sampling = NegativeSampling::uniform,
                std::span<const std::int32_t> endpoints = {})
      : nodes_(node_count), sampling_(sampling), endpoints_(endpoints.begin(), endpoints.end()) {
    for (const Graph distinct(node_count, excluded); const Edge& edge : distinct.edges()) {
      excluded_.push_back(rank_of(edge));
    }
    require(count() > 0, "node pairs without an edge", count(),
            detail::concat("none of ", rank_end(), " is left to draw"));
    require(sampling == NegativeSampling::uniform || !endpoints_.empty(), "sampling", to_string(sampling),
            "the graph has no edges, so that all degrees are 0");
    for (std::size_t i = 0; i < endpoints_.size(); ++i) {
      require(endpoints_[i] >= 0 && endpoints_[i] < node_count, ArgumentName({}, "endpoints", i), endpoints_[i],
              "must be the number of a node");
    }
  }

  /// How many pairs there are to draw from, whatever their weights.
  [[nodiscard]] Index count() const noexcept { return rank_end() - static_cast<Index>(excluded_.size()); }

  /// Pair number `slot` of a set, u < v. Pairs may repeat.
  ///
  /// \param set  < 65536, < 2³² slots each; larger values give the pairs of another address
  /// \throws std::runtime_error  of degree: no such pair among the first 8192
  [[nodiscard]] Edge draw(std::uint64_t seed, std::uint32_t epoch, std::uint32_t set, Index slot) const {
    return edge_of(draw_rank(seed, epoch, set, slot, [](Index) { return false; }));
  }

  /// Different pairs, each as likely as another of its weight.
  ///
  /// \throws std::invalid_argument  more than there are
  /// \throws std::runtime_error     as draw()
  [[nodiscard]] std::vector<Edge> draw_distinct(std::uint64_t seed, std::uint32_t set, Index number) const {
    require(number <= count(), "negatives to draw", number,
            detail::concat("there are ", count(), " pairs without an edge"));
    std::set<Index> taken;
    std::vector<Edge> pairs;
    pairs.reserve(static_cast<std::size_t>(std::max<Index>(0, number)));
    for (Index slot = 0; slot < number; ++slot) {
      Index rank = 0;
      if (sampling_ == NegativeSampling::uniform) {  // Floyd's algorithm
        const Index last = count() - number + slot;
        rank = detail::below(words(seed, 0, set, slot, 0), last + 1);
        if (taken.contains(rank)) rank = last;
        taken.insert(rank);
        rank = skip_excluded(rank);
      } else {
        rank = draw_rank(seed, 0, set, slot, [&](Index r) { return taken.contains(r); });
        taken.insert(rank);
      }
      pairs.push_back(edge_of(rank));
    }
    return pairs;
  }

 private:
  [[nodiscard]] Index rank_end() const noexcept { return nodes_ * (nodes_ - 1) / 2; }
  /// The rank of the first pair (u, u + 1) of a row.
  [[nodiscard]] Index row(Index u) const noexcept { return u * (2 * nodes_ - u - 1) / 2; }
  [[nodiscard]] Index rank_of(Edge edge) const noexcept { return row(edge.u) + edge.v - edge.u - 1; }
  [[nodiscard]] Edge edge_of(Index rank) const {
    Index low = 0, high = nodes_ - 1;  // row(low) ≤ rank < row(high)
    while (high - low > 1) {
      const Index middle = (low + high) / 2;
      (row(middle) <= rank ? low : high) = middle;
    }
    return {static_cast<std::int32_t>(low), static_cast<std::int32_t>(low + 1 + rank - row(low))};
  }
  /// The rank of the r-th pair that is not excluded.
  [[nodiscard]] Index skip_excluded(Index r) const {
    Index low = 0, high = static_cast<Index>(excluded_.size());
    while (low < high) {
      const Index middle = (low + high) / 2;
      if (excluded_[static_cast<std::size_t>(middle)] - middle <= r) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return r + low;
  }
  [[nodiscard]] static random::PhiloxBlock<std::uint32_t> words(std::uint64_t seed, std::uint32_t epoch,
                                                                std::uint32_t set, Index slot,
                                                                std::uint32_t draw) {
    const Stream stream{seed, Purpose::negative_pairs, epoch, 0, set};
    return stream.words(static_cast<std::uint32_t>(slot), draw);
  }
  template <class Taken>
  [[nodiscard]] Index draw_rank(std::uint64_t seed, std::uint32_t epoch, std::uint32_t set, Index slot,
                                const Taken& taken) const {
    if (sampling_ == NegativeSampling::uniform)
      return skip_excluded(detail::below(words(seed, epoch, set, slot, 0), count()));
    constexpr std::uint32_t attempts = 4096;
    const Index ends = static_cast<Index>(endpoints_.size());
    for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
      const auto block = words(seed, epoch, set, slot, attempt);
      for (int k = 0; k < 4; k += 2) {
        const auto node = [&](int i) { return endpoints_[detail::below(block.word[i], ends)]; };
        const auto [u, v] = std::minmax({node(k), node(k + 1)});
        if (u == v) continue;
        const Index rank = rank_of({u, v});
        if (!std::binary_search(excluded_.begin(), excluded_.end(), rank) && !taken(rank)) return rank;
      }
    }
    throw std::runtime_error(detail::concat("negatives weighted by degree: no pair without an edge among ",
                                            2 * attempts, "; uniform pairs need no such search"));
  }

  Index nodes_ = 0;
  NegativeSampling sampling_ = NegativeSampling::uniform;
  std::vector<Index> excluded_;  ///< their ranks, increasing
  std::vector<std::int32_t> endpoints_;
};

}  // namespace sheafnn
