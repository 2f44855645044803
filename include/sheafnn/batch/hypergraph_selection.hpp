/// \file
/// The non-linear Laplacian of hypergraphs for a batch of runs: the most discrepant pair of every hyperedge, and the terms
/// that follow from it. Source: math: "The non-linear Laplacian" (7.4), (7.5). For one network: layers/hypergraph_terms.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/hypergraph.hpp"
#include "sheafnn/batch/neighbour_sums.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/block.hpp"
#include "sheafnn/kernels/hypergraph.hpp"

namespace sheafnn::batch::detail {

/// The terms of a layer's Laplacian, by instance. All pointers are null where they do not depend on features. Then every
/// hyperedge has one slot, all its pairs read it, and D̃ is the sheaf's D.
template <class S>
struct IncidenceTerms {
  std::int32_t* end = nullptr;   ///< the two pairs of each hyperedge; −1 where it has fewer members
  std::int32_t* slot = nullptr;  ///< s(i) of each pair, or −1
  S* weight = nullptr;           ///< a_i of each pair
  S* degree = nullptr;           ///< D̃_v, padded rows
  bool mediators = false;

  [[nodiscard]] SHEAFNN_HD bool selected() const noexcept { return end != nullptr; }
  /// s(i), or −1.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE std::int32_t slot_of(const IncidenceView<S>& graph,
                                                                      Index instance, Index pair) const {
    return selected() ? slot[instance * graph.pairs() + pair] : graph.hyperedge[pair];
  }
};

/// F_i x of every pair; item (pair, channels), group: instance.
template <class Family, class S>
struct PairImages {
  IncidenceView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  FeatureShape<S> shape;  ///< of the images, with pairs in place of nodes
  const S* x;
  S* image;

  SHEAFNN_HD void operator()(const NodeChannels& at) const {
    constexpr int D = Family::stalk_dimension;
    const std::uint32_t f = shape.stride();
    const typename Family::template Map<S> map = sheaf.load_map(range.slot(at.instance), at.node);
    const S* from = x + (at.instance * graph.nodes + graph.edge_node[at.node]) * shape.row() + at.channel;
    Tile<S> own[D], out[D];
    at.range.choose([&](auto tile) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) own[i] = tile.load(from + static_cast<std::uint32_t>(i) * f);
    });
    kernels::block_times<D, sheaf::BlockSizes<Family>::map>(map.data(), own, out);
    at.range.choose([&](auto tile) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i)
          tile.store(out[i], image + at.index + static_cast<std::uint32_t>(i) * f);
    });
  }
};
/// The same of features that are projected on r, F_i (x r), D values; item: pair, group: instance.
template <class Family, class S>
struct ProjectedImages {
  IncidenceView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  Index channels;
  const S *projection, *x;
  S* image;

  SHEAFNN_HD void operator()(Index pair, Index instance) const {
    constexpr int D = Family::stalk_dimension;
    const typename Family::template Map<S> map = sheaf.load_map(range.slot(instance), pair);
    const S* own = x + (instance * graph.nodes + graph.edge_node[pair]) * D * channels;
    S projected[D];
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      projected[i] = S(0);
      for (Index c = 0; c < channels; ++c) projected[i] += own[i * channels + c] * projection[c];
    }
    kernels::block_times<D, sheaf::BlockSizes<Family>::map>(map.data(), projected,
                                                            image + (instance * graph.pairs() + pair) * D);
  }
};

/// For every member of a hyperedge the first of the later members that differs most from it; item: position of the
/// member, group: instance.
template <class S>
struct FarthestMembers {
  IncidenceView<S> graph;
  const S* image;
  Index width;  ///< values of a pair's image
  S* distance;  ///< squared; −1 for the last member
  std::int32_t* farthest;

  SHEAFNN_HD void operator()(Index k, Index instance) const {
    const S* first = image + instance * graph.pairs() * width;
    const std::int32_t pair = graph.member[k];
    const S* own = first + pair * width;
    S largest = S(-1);
    std::int32_t best = static_cast<std::int32_t>(k) + 1;
    for (std::int32_t q = best; q < graph.member_offset[graph.hyperedge[pair] + 1]; ++q) {
      const S* other = first + graph.member[q] * width;
      S sum = S(0);
      for (Index i = 0; i < width; ++i) sum += (own[i] - other[i]) * (own[i] - other[i]);
      if (sum > largest) {
        largest = sum;
        best = q;
      }
    }
    distance[instance * graph.pairs() + k] = largest;
    farthest[instance * graph.pairs() + k] = best;
  }
};
/// The most discrepant pair of a hyperedge, the first in the order of members, and the terms of all members; item: hyperedge,
/// group: instance.
template <class S>
struct SelectTerms {
  IncidenceView<S> graph;
  const S* distance;
  const std::int32_t* farthest;
  IncidenceTerms<S> terms;

  SHEAFNN_HD void operator()(Index e, Index instance) const {
    const Index base = instance * graph.pairs();
    const std::int32_t first = graph.member_offset[e], last = graph.member_offset[e + 1], size = last - first;
    std::int32_t* end = terms.end + (instance * graph.hyperedges + e) * 2;
    std::int32_t best[2] = {first, first + 1};
    S largest = S(-1);
    for (std::int32_t k = first; size > 1 && k < last; ++k) {
      if (distance[base + k] > largest) {
        largest = distance[base + k];
        best[0] = k;
        best[1] = farthest[base + k];
      }
    }
    for (std::int32_t k = first; k < last; ++k) {
      const Index pair = base + graph.member[k];
      kernels::SelectedTerm<S> term{-1, S(0)};
      if (size > 1) {
        term = kernels::selected_term<S>(size, terms.mediators, k == best[0] ? 0 : k == best[1] ? 1 : -1);
      }
      terms.slot[pair] = static_cast<std::int32_t>(term.slot < 0 ? -1 : 2 * e + term.slot);
      terms.weight[pair] = term.weight;
    }
    for (int side = 0; side < 2; ++side) end[side] = size > 1 ? graph.member[best[side]] : -1;
  }
};

/// D̃_v = Σ a_i F_iᵀF_i: a team per node, lanes over its pairs; group: instance.
template <class Family, class S>
struct WeightedDegrees {
  using Scalar = S;
  static constexpr int size = sheaf::BlockSizes<Family>::gram, outputs = size, row = BlockRows<Family>::gram;
  IncidenceView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  IncidenceTerms<S> terms;
  int lanes;

  SHEAFNN_HD void part(Index v, Index instance, int lane, S* sums) const {
    const S* weights = terms.weight + instance * graph.pairs();
    const S* grams = sheaf.arc_gram + range.slot(instance) * graph.pairs() * row;
    for (std::int32_t pair = graph.offset[v] + lane; pair < graph.offset[v + 1]; pair += lanes) {
      if constexpr (sheaf::is_orthogonal<Family>) {
        sums[0] += weights[pair];
      } else {
        S gram[size];
        load_row<size>(grams + pair * row, gram);
        for (int k = 0; k < size; ++k) sums[k] += weights[pair] * gram[k];
      }
    }
  }
  SHEAFNN_HD void finish(Index v, Index instance, const S* sums) const {
    store_row<size>(sums, terms.degree + (instance * graph.nodes + v) * row);
  }
};

/// The terms of a layer of all instances; none unless the Laplacian is non-linear.
template <class Executor, class Family, class S>
class BatchIncidenceTerms {
 public:
  BatchIncidenceTerms() = default;
  /// \param projection  f values, or none: norms of all entries
  BatchIncidenceTerms(Executor& executor, const IncidenceView<S>& graph, const FeatureShape<S>& shape,
                      std::span<const double> projection, bool mediators, const BatchSize& batch)
      : graph_(graph), mediators_(mediators), images_{graph.pairs(), shape.coordinates, shape.channels, {}} {
    const auto array = [&]<class T>(T, Index size) {
      return Array<Executor, T>(executor, "selected pairs", batch.instances() * size);
    };
    if (!projection.empty()) {
      const std::vector<S> numbers(projection.begin(), projection.end());
      projection_ = Array<Executor, S>(executor, "selected pairs", std::span<const S>(numbers));
    }
    width_ = projection.empty() ? shape.row() : shape.coordinates;
    require_countable("images of a layer", graph.pairs() * width_);
    end_ = array(std::int32_t{}, 2 * graph.hyperedges + 1);  // not empty without hyperedges
    for (Array<Executor, std::int32_t>* one : {&slot_, &farthest_}) *one = array(std::int32_t{}, graph.pairs());
    for (Array<Executor, S>* one : {&weight_, &distance_}) *one = array(S{}, graph.pairs());
    image_ = array(S{}, graph.pairs() * width_);
    degree_ = array(S{}, graph.nodes * BlockRows<Family>::gram);
    degree_bar_ = Array<Executor, S>(executor, "selected pairs",
                                     batch.training_instances() * graph.nodes * BlockRows<Family>::gram);
  }

  [[nodiscard]] IncidenceTerms<S> view() noexcept {
    return {end_.data(), slot_.data(), weight_.data(), degree_.data(), mediators_};
  }
  /// Derivatives of D̃, to be filled by the layer.
  [[nodiscard]] S* degree_bar() noexcept { return degree_bar_.data(); }
  /// Selects pairs by the features x of all instances, and sums up D̃; nothing of a linear Laplacian.
  void select(Executor& executor, Index instances, const SheafRange& range, const SheafView<Family, S>& sheaf,
              const S* x) {
    if (end_.size() == 0) return;
    const Index pairs = graph_.pairs();
    if (projection_.size() > 0) {
      executor.launch(pairs, instances,
                      ProjectedImages<Family, S>{graph_, range, sheaf, images_.channels, projection_.data(), x,
                                                 image_.data()});
    } else {
      executor.launch(images_.items(), instances,
                      PairImages<Family, S>{graph_, range, sheaf, images_, x, image_.data()});
    }
    executor.launch(pairs, instances,
                    FarthestMembers<S>{graph_, image_.data(), width_, distance_.data(), farthest_.data()});
    executor.launch(graph_.hyperedges, instances,
                    SelectTerms<S>{graph_, distance_.data(), farthest_.data(), view()});
    const int lanes = graph_.arc_lanes(graph_.nodes * instances);
    executor.launch_teams(graph_.nodes, instances, lanes,
                          WeightedDegrees<Family, S>{graph_, range, sheaf, view(), lanes});
  }

 private:
  IncidenceView<S> graph_{};
  bool mediators_ = false;
  FeatureShape<S> images_;
  Index width_ = 0;
  Array<Executor, S> projection_, weight_, distance_, image_, degree_, degree_bar_;
  Array<Executor, std::int32_t> end_, slot_, farthest_;
};

}  // namespace sheafnn::batch::detail
