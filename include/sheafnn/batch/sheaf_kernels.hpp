/// \file
/// Kernels of the sheaf: maps per edge (sampled from the posterior, or deterministic) and the blocks of the
/// Laplacian made of them; backward: sheaf_backward_kernels.hpp. They call the functions that the CPU networks run
/// on packs: posterior/, sheaf/family.hpp, sheaf/normalisation.hpp.
///
/// The arrays of a sheaf: maps per incident pair, entry by entry. Q_e = w_e² F_aᵀ F_rev per edge and D_u, S_u per node are whole
/// blocks, padded rows (tile.hpp), which the diffusion reads whole. Sheaf s of instance i is group i · sheaves + s.
#pragma once

#include "sheafnn/batch/graph.hpp"
#include "sheafnn/batch/hypergraph.hpp"
#include "sheafnn/batch/learner_kernels.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/batch/tile.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"
#include "sheafnn/posterior/around_given.hpp"
#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"
#include "sheafnn/sheaf/family.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::batch::detail {

/// Which sheaf of which instance a group of a launch is: sheaves [first, first + count) of every instance.
struct SheafRange {
  Index sheaves = 1;  ///< of an instance; 0: all instances have the same sheaves
  Index first = 0;
  Divisor count = 1;

  [[nodiscard]] SHEAFNN_HD Index instance(Index group) const noexcept { return group / count; }
  [[nodiscard]] SHEAFNN_HD Index sheaf(Index group) const noexcept { return first + group % count; }
  [[nodiscard]] SHEAFNN_HD Index slot(Index group) const noexcept {
    return instance(group) * sheaves + sheaf(group);
  }
};

/// Distance from one block to the next, in values.
template <class Family>
struct BlockRows {
  static constexpr int gram = padded(sheaf::BlockSizes<Family>::gram),
                       transport = padded(sheaf::BlockSizes<Family>::transport);
};

/// The arrays of all sheaves; offsets by slot.
template <class Family, class S>
struct SheafView {
  using Sizes = sheaf::BlockSizes<Family>;
  using Rows = BlockRows<Family>;
  using Map = typename Family::template Map<S>;

  Index nodes, edges, pairs;
  S* map;           ///< pairs × map, entry by entry
  S* arc_gram;      ///< a row for each pair, by arc; families whose Gram matrices depend on the map
  S* transport;     ///< m rows
  S* degree_block;  ///< n rows
  S* scale;         ///< n rows
  S* eigen;         ///< n × eigen

  [[nodiscard]] SHEAFNN_HD S* transport_of(Index slot, Index edge) const {
    return transport + (slot * edges + edge) * Rows::transport;
  }
  [[nodiscard]] SHEAFNN_HD S* degree_block_of(Index slot, Index u) const {
    return degree_block + (slot * nodes + u) * Rows::gram;
  }
  [[nodiscard]] SHEAFNN_HD S* scale_of(Index slot, Index u) const {
    return scale + (slot * nodes + u) * Rows::gram;
  }

  [[nodiscard]] SHEAFNN_HD S* maps_of(Index slot) const { return map + slot * pairs * Sizes::map; }
  [[nodiscard]] SHEAFNN_HD Map load_map(Index slot, Index pair) const {
    Map r = Map::Constant(S(1));
    const S* in = maps_of(slot) + pair;
    SHEAFNN_UNROLL for (int k = 0; k < Sizes::map; ++k) r.data()[k] = in[k * pairs];
    return r;
  }
  SHEAFNN_HD void store_map(Index slot, Index pair, const Map& value) const {
    S* out = maps_of(slot) + pair;
    SHEAFNN_UNROLL for (int k = 0; k < Sizes::map; ++k) out[k * pairs] = value.data()[k];
  }
};

/// K values in a row, as a block.
template <class Block, class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Block load_block(const S* numbers) {
  Block r;
  for (int k = 0; k < static_cast<int>(Block::SizeAtCompileTime); ++k) r.data()[k] = numbers[k];
  return r;
}
template <class Block, class S>
SHEAFNN_HD SHEAFNN_INLINE void store_block(const Block& block, S* numbers) {
  for (int k = 0; k < static_cast<int>(Block::SizeAtCompileTime); ++k) numbers[k] = block.data()[k];
}
/// A padded row as a block.
template <class Block, class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Block load_padded(const S* row) {
  Block r;
  load_row<static_cast<int>(Block::SizeAtCompileTime)>(row, r.data());
  return r;
}
template <class Block, class S>
SHEAFNN_HD SHEAFNN_INLINE void store_padded(const Block& block, S* row) {
  store_row<static_cast<int>(Block::SizeAtCompileTime)>(block.data(), row);
}

/// Maps that are given, and the same for all runs.
template <class Family, class S>
struct StoredMaps {
  using Map = typename Family::template Map<S>;
  const S* map = nullptr;  ///< map × 2m per sheaf: entry by entry
  Index pairs = 0;

  SHEAFNN_HD Map operator()(Index, Index sheaf, Index pair) const {
    constexpr int size = sheaf::BlockSizes<Family>::map;
    Map r = Map::Constant(S(1));
    const S* in = map + sheaf * size * pairs + pair;
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) r.data()[k] = in[k * pairs];
    return r;
  }
};

/// The centre of distributions without a given one: what is drawn is the map (for one network layers/given_lanes.hpp).
template <class Q, class S>
struct CentreMaps {
  template <class Map>
  SHEAFNN_HD SHEAFNN_INLINE void add_to(Index, Map&) const {}
  template <class Map>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE const Map& deviation(Index, const Map& map) const {
    return map;
  }
  template <class Map>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE const Map& deviation_bar(Index, const Map& map_bar) const {
    return map_bar;
  }
};
/// The given maps F⁰ of the incident pairs.
template <class Q, class S>
  requires sheafnn::detail::is_deviation<Q>
struct CentreMaps<Q, S> {
  using Family = typename Q::family;
  using Map = typename Family::template Map<S>;
  using Deviated = sheafnn::detail::Deviated<Family>;
  StoredMaps<Family, S> given;

  SHEAFNN_HD SHEAFNN_INLINE void add_to(Index pair, Map& map) const {
    map = Deviated::map(map, given(0, 0, pair));
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Map deviation(Index pair, const Map& map) const {
    return Deviated::deviation(map, given(0, 0, pair));
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Map deviation_bar(Index pair, const Map& map_bar) const {
    return Deviated::deviation_bar(map_bar, given(0, 0, pair));
  }
};

/// The number of raw outputs of a distribution that no learner predicts and that are 0: the outputs of its mean, or none.
template <class Q>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE int missing_outputs(const Q& posterior) {
  if constexpr (sheafnn::detail::is_deviation<Q>) {
    return posterior.learned_mean ? 0 : Q::mean_size;
  } else {
    return 0;
  }
}
/// The raw outputs of an incident pair.
template <class Q, class S>
SHEAFNN_HD SHEAFNN_INLINE void load_raw(const Q& posterior, const PairArray<S>& raw, Index run, Index pair,
                                        S* out) {
  const int missing = missing_outputs(posterior);
  SHEAFNN_UNROLL for (int k = 0; k < Q::mean_size + Q::spread_size; ++k) {
    out[k] = k < missing ? S(0) : raw.at(run, pair, k - missing);
  }
}

/// Posterior parameters from raw outputs, and KL(posterior ‖ prior) per incident pair. item: pair, group: run.
template <class Q, class S>
struct ActivatePairs {
  PairArray<S> raw, parameters;
  Q posterior;
  S* kl;  ///< 2m per run; not written without a closed form
  Index pairs;

  SHEAFNN_HD void operator()(Index pair, Index run) const {
    constexpr int raw_size = Q::mean_size + Q::spread_size;
    S in[raw_size], out[Q::parameter_size];
    load_raw(posterior, raw, run, pair, in);
    posterior.activate(in, out);
    for (int k = 0; k < Q::parameter_size; ++k) parameters.at(run, pair, k) = out[k];
    if constexpr (Q::closed_form_kl) kl[run * pairs + pair] = posterior.kl(out);
  }
};

/// Project, and ActivatePairs of the pairs of its item, one or both of an edge; item: of Project, group: run.
template <class Q, class S, class Project = ProjectPairs<S>>
struct ProjectPosterior {
  Project project;
  ActivatePairs<Q, S> activate;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    project(item, run);
    activate(item, run);
    if constexpr (Project::both_pairs) activate(project.graph.edges + item, run);
  }
};

/// Maps drawn from the posterior. \tparam View  of the graph
template <class Q, class S, class View = GraphView<S>>
struct SampledMaps {
  using Map = typename Q::template Map<S>;
  View graph;
  const Run* runs;
  Pass pass;
  PairArray<S> parameters;
  Q posterior;
  const S* noise;  ///< explicit noise instead of the stream's (see Noise): [sample][sheaf][arc]; or null
  Index sheaves;
  CentreMaps<Q, S> centre;

  SHEAFNN_HD Map operator()(Index instance, Index sheaf, Index pair) const {
    const Index run = pass.run_of(instance);
    S in[Q::sample_size], draw[Q::noise_size];
    SHEAFNN_UNROLL for (int k = 0; k < Q::sample_size; ++k) in[k] = parameters.at(run, pair, k);
    draw_noise(instance, sheaf, pair, draw);
    Map map;
    posterior.sample(in, draw, map);
    centre.add_to(pair, map);
    return map;
  }
  /// The random numbers that a map is made of.
  SHEAFNN_HD void draw_noise(Index instance, Index sheaf, Index pair, S* draw) const {
    const Index run = pass.run_of(instance);
    const std::int32_t arc = graph.pair_arc[pair];
    if (noise != nullptr) {
      const Index sample = static_cast<Index>(pass.first_sample) + instance % pass.copies;
      const S* row = noise + ((sample * sheaves + sheaf) * graph.pairs() + arc) * Q::noise_size;
      for (int k = 0; k < Q::noise_size; ++k) draw[k] = row[noise_index<Q>(k)];
    } else {
      posterior.draw_noise(pass.stream(runs[run], Purpose::sheaf_noise, static_cast<std::uint32_t>(sheaf),
                                       instance),
                           static_cast<std::uint32_t>(arc), draw);
    }
  }
};

/// Deterministic maps of raw outputs.
template <class Family, class S>
struct MeanMaps {
  using Map = typename Family::template Map<S>;
  PairArray<S> raw;
  PointMap<Family> point;

  SHEAFNN_HD Map operator()(Index instance, Index, Index pair) const {
    constexpr int size = PointMap<Family>::size;
    S in[sheafnn::detail::array_size(size)];
    for (int k = 0; k < size; ++k) in[k] = raw.at(instance, pair, k);
    Map map;
    point.map(in, map);
    return map;
  }
};

/// The identity, for families without learned maps.
template <class Family, class S>
struct FixedMaps {
  using Map = typename Family::template Map<S>;
  SHEAFNN_HD Map operator()(Index, Index, Index) const { return Map::Constant(S(1)); }
};

/// Maps and Q_e of every edge; item: edge, group: a sheaf of an instance.
template <class Family, class S, class Maps>
struct BuildEdges {
  using Sizes = sheaf::BlockSizes<Family>;
  using Map = typename Family::template Map<S>;
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  Maps maps;
  const S* edge_weight;  ///< m per run; null for 1
  Divisor copies;

  SHEAFNN_HD void operator()(Index edge, Index group) const {
    const Index instance = range.instance(group), slot = range.slot(group), m = graph.edges;
    const S weight = edge_weight != nullptr ? edge_weight[instance / copies * m + edge] : S(1);
    Map map[2];
    SHEAFNN_UNROLL for (int side = 0; side < 2; ++side) {
      const Index pair = side * m + edge;
      map[side] = maps(instance, range.sheaf(group), pair);
      sheaf.store_map(slot, pair, map[side]);
      if constexpr (!sheaf::is_orthogonal<Family>) {
        const sheaf::Gram<Family, S> g = weight * weight * sheaf::gram<Family, S>(map[side]);
        store_padded(g, sheaf.arc_gram + (slot * 2 * m + graph.pair_arc[pair]) * BlockRows<Family>::gram);
      }
    }
    sheaf::Transport<Family, S> q = sheaf::transport<Family, S>(map[0], map[1]);
    if (edge_weight != nullptr) q *= weight * weight;
    store_padded(q, sheaf.transport_of(slot, edge));
  }
};

/// Maps of every pair of a hypergraph, and Gram matrices with its weight; item: pair, group: a sheaf of an instance.
template <class Family, class S, class Maps>
struct BuildIncidences {
  using Map = typename Family::template Map<S>;
  IncidenceView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  Maps maps;

  SHEAFNN_HD void operator()(Index pair, Index group) const {
    const Index slot = range.slot(group);
    const Map map = maps(range.instance(group), range.sheaf(group), pair);
    sheaf.store_map(slot, pair, map);
    if constexpr (!sheaf::is_orthogonal<Family>) {
      sheaf::Gram<Family, S> g = sheaf::gram<Family, S>(map);
      if (graph.pair_weight != nullptr) g *= graph.pair_weight[pair];
      store_padded(g, sheaf.arc_gram + (slot * sheaf.pairs + pair) * BlockRows<Family>::gram);
    }
  }
};

/// S_v of the published Laplacian of a hypergraph; item: node, group: a sheaf of an instance.
template <class Family, class S>
struct PublishedScales {
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;

  SHEAFNN_HD void operator()(Index v, Index group) const {
    const sheaf::Gram<Family, S> scale = sheaf::gram_identity<Family, S>() * graph.inverse_root[v];
    store_padded(scale, sheaf.scale_of(range.slot(group), v));
  }
};

/// D_u = Σ F_aᵀF_a and S_u: a team per node, lanes over its arcs; group: a sheaf of an instance.
template <class Family, class S>
struct BuildNodes {
  using Scalar = S;
  using Sizes = sheaf::BlockSizes<Family>;
  static constexpr int outputs = Sizes::gram;
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  const S* edge_weight;
  Divisor copies;
  Normalisation normalisation;
  int lanes;

  SHEAFNN_HD void part(Index u, Index group, int lane, S* sums) const {
    const Index m = graph.edges, last = graph.offset[u + 1];
    if constexpr (sheaf::is_orthogonal<Family>) {
      if (edge_weight == nullptr) return;
      const S* weights = edge_weight + range.instance(group) / copies * m;
      SHEAFNN_UNROLL_FOUR for (Index arc = graph.offset[u] + lane; arc < last; arc += lanes) {
        const Index pair = graph.arc_pair[arc];
        const S w = weights[pair < m ? pair : pair - m];
        sums[0] += w * w;
      }
    } else {
      constexpr int row = BlockRows<Family>::gram;
      const S* grams = sheaf.arc_gram + range.slot(group) * sheaf.pairs * row;
      SHEAFNN_UNROLL_FOUR for (Index arc = graph.offset[u] + lane; arc < last; arc += lanes) {
        S numbers[Sizes::gram];
        load_row<Sizes::gram>(grams + arc * row, numbers);
        for (int k = 0; k < Sizes::gram; ++k) sums[k] += numbers[k];
      }
    }
  }

  SHEAFNN_HD void finish(Index u, Index group, const S* sums) const {
    sheaf::Gram<Family, S> degree_block = load_block<sheaf::Gram<Family, S>>(sums);
    if constexpr (sheaf::is_orthogonal<Family>) {
      if (edge_weight == nullptr) degree_block(0, 0) = graph.degree[u];
    }
    const sheaf::NodeScaling<Family, S> scaling =
        sheaf::node_scaling<Family, S>(normalisation, degree_block, graph.degree[u]);
    const Index slot = range.slot(group), index = slot * graph.nodes + u;
    store_padded(degree_block, sheaf.degree_block_of(slot, u));
    store_padded(scaling.scale, sheaf.scale_of(slot, u));
    if constexpr (Sizes::dense_gram) {
      store_block(scaling.vectors, sheaf.eigen + index * Sizes::eigen);
      store_block(scaling.root, sheaf.eigen + index * Sizes::eigen + Sizes::gram);
    }
  }
};

}  // namespace sheafnn::batch::detail
