/// \file
/// Kernels of DiffusionOperator and LearnerOperator: between the maps of incident pairs and a caller's maps, one for each column of
/// edges, matrices row by row.
///
/// Unchecked: sizes of arrays.
#pragma once

#include "sheafnn/batch/learner_kernels.hpp"
#include "sheafnn/batch/sheaf_backward_kernels.hpp"

namespace sheafnn::batch::detail {

/// Maps of columns as maps of incident pairs.
template <class Family, class S>
struct ColumnMaps {
  using Map = typename Family::template Map<S>;
  static constexpr int size = Family::map_size, columns = Map::ColsAtCompileTime;
  const std::int32_t* column_of_pair = nullptr;
  const S* values = nullptr;

  [[nodiscard]] SHEAFNN_HD Map operator()(Index, Index, Index pair) const {
    Map r = Map::Constant(S(1));
    const S* in = values + Index{column_of_pair[pair]} * size;
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) r(k / columns, k % columns) = in[k];
    return r;
  }
  SHEAFNN_HD void store(Index pair, const Map& map, S* out) const {
    out += Index{column_of_pair[pair]} * size;
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) out[k] = map(k / columns, k % columns);
  }
};

/// Derivatives of the maps of columns and of the weights of edges from the derivatives of the blocks. item: EdgeSide.
template <class Family, class S>
struct BackwardColumnMaps {
  GraphView<S> graph;
  SheafRange range;
  SheafView<Family, S> sheaf;
  BlockGradient<S> gradient;
  ColumnMaps<Family, S> maps;
  const S* edge_weight;  ///< null: 1
  S *map_bar, *edge_weight_bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const EdgeSide at(item);
    typename Family::template Map<S> map, bar;
    S weight_bar = S(0);
    backward_side<Family, S>(graph, sheaf, gradient, range.slot(instance), at,
                             edge_weight == nullptr ? nullptr : edge_weight + at.edge, map, bar, weight_bar);
    maps.store(at.pair(graph.edges), bar, map_bar);
    if (edge_weight != nullptr && at.side == 0) edge_weight_bar[at.edge] = weight_bar;
  }
};

/// Maps of columns, and after them edge weights, from what a learner predicts. item: EdgeSide.
template <class Family, class S>
struct PredictColumns {
  Index edges;
  MeanMaps<Family, S> predicted;
  ColumnMaps<Family, S> maps;
  const S* edge_weight;  ///< null: none
  S *out, *edge_weight_out;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const EdgeSide at(item);
    const Index pair = at.pair(edges);
    maps.store(pair, predicted(instance, 0, pair), out);
    if (edge_weight != nullptr && at.side == 0) edge_weight_out[at.edge] = edge_weight[at.edge];
  }
};
/// Computes the derivatives of the learner's outputs from the derivatives of the maps. item: EdgeSide.
template <class Family, class S>
struct PredictColumnsBackward {
  Index edges;
  MeanMaps<Family, S> predicted;
  ColumnMaps<Family, S> map_bar;
  const S* edge_weight_bar;
  const S* edge_factor;  ///< null: there are no edge weights
  PairArray<S> raw_bar;
  S* edge_logit_bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    constexpr int size = PointMap<Family>::size, raw_size = sheafnn::detail::array_size(size);
    const EdgeSide at(item);
    const Index pair = at.pair(edges);
    S raw[raw_size], out[raw_size];
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) raw[k] = predicted.raw.at(instance, pair, k);
    predicted.point.backward(raw, map_bar(instance, 0, pair), out);
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) raw_bar.at(instance, pair, k) = out[k];
    if (edge_factor != nullptr) edge_logit_bar[pair] = logit_bar(edge_factor, edges, at, edge_weight_bar[at.edge]);
  }
};

}  // namespace sheafnn::batch::detail
