/// \file
/// PairSheaf: the restriction maps that a network's sheaf learner gives to pairs of nodes, which need not be edges. It has
/// the energies of its outputs on them, with the backward pass,
///
///     E_ec = w_e² Σ_i (F_u x_u − F_v x_v)²_ic,   F drawn from q(· ; learner(Z)_{uv}), or the learned map itself,
///
/// x_u being the row y_u read as d × f values. For an edge of the graph that the learner was trained on, it is the
/// edge's part in xᵀ L_F x = ‖δ x‖². Source: paper, "Cellular sheaves"; math: "Links" (10.3), (10.5).
///
/// Unchecked: that arrays are of the graph of pairs, and finite.
#pragma once

#include <algorithm>
#include <optional>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"
#include "sheafnn/layers/sheaf_learner.hpp"
#include "sheafnn/layers/variational_sheaf.hpp"
#include "sheafnn/posterior/point_mass.hpp"

namespace sheafnn::detail {

/// A posterior over the maps of pairs, or nothing for learned maps without a distribution.
template <class Posterior, class S>
struct PairDistribution {
  using Maps = Posterior;
  using type = VariationalSheaf<Posterior, S>;
};
template <class Family, class S>
struct PairDistribution<PointMass<Family>, S> {
  using Maps = PointMap<Family>;
  struct type {};
};

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// \tparam Posterior  a SheafPosterior of a family that is learned, or PointMass of any
template <class Posterior, class S>
class PairSheaf {
 public:
  using Family = typename Posterior::family;
  using Distribution = detail::PairDistribution<Posterior, S>;
  using Maps = typename Distribution::Maps;
  using Map = typename SheafBlocks<Family, S>::Map;
  static constexpr int D = Family::stalk_dimension;
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  static constexpr bool is_point = is_point_mass<Posterior>;

  /// `pairs` must outlive the sheaf. \param channels  f
  ///
  /// \throws std::invalid_argument  as SheafLearner
  PairSheaf(const Graph& pairs, const SheafLearnerOptions& learner, const Maps& maps, Index channels)
      : pairs_(pairs),
        channels_(channels),
        blocks_(pairs),
        maps_(maps),
        map_(blocks_.block_count() * 2 * Family::map_size * W),
        dense_(pairs.arc_count() * D * D),
        residual_(pairs.edge_count() * D * channels),
        weight_bar_(blocks_.block_count() * W) {
    if constexpr (is_learned<Family>) learner_.emplace(pairs, blocks_, learner);
    if constexpr (!is_point) distribution_ = {blocks_, maps};
  }
  PairSheaf(const PairSheaf&) = delete;
  PairSheaf& operator=(const PairSheaf&) = delete;

  /// What the learner says of the pairs. \param z  n × h
  void infer(Execution execution, const SheafLearnerWeights<const S>& weights, const MatrixView<const S>& z) {
    if constexpr (is_learned<Family>) learner_->forward(execution, weights, z);
    if constexpr (!is_point) distribution_.activate(execution, *learner_);
  }
  /// The maps of a draw; the noise of a pair is addressed by its arcs among the arcs of all pairs.
  void draw(Execution execution, const Stream& stream) {
    noise_.stream = stream;
    parallel_for(execution, blocks_.block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) draw_block(block);
    });
  }

  /// E of y (n × D f), pairs × f.
  void energies(Execution execution, const MatrixView<const S>& y, const MatrixView<S>& energy);
  /// Computes the derivatives of y, of the learner's weights (added to) and of Z (n × h, added to) from the derivative
  /// of E.
  void backward(Execution execution, const SheafLearnerWeights<const S>& weights, const MatrixView<const S>& z,
                const MatrixView<const S>& y, const MatrixView<const S>& energy_bar, const MatrixView<S>& y_bar,
                const SheafLearnerWeights<S>& weights_bar, const MatrixView<S>& z_bar);

 private:
  [[nodiscard]] S* lanes_of_map(Index block, int side) noexcept {
    return map_.data() + (block * 2 + side) * Family::map_size * W;
  }
  [[nodiscard]] S weight(Index e) const noexcept {
    const S* weights = learner_ ? learner_->edge_weights() : nullptr;
    return weights == nullptr ? S(1) : weights[e];
  }
  void draw_block(Index block) {
    Map map[2];
    if constexpr (is_point) {
      for (int side = 0; side < 2; ++side) {
        P raw[detail::array_size(Maps::size)];
        if constexpr (is_learned<Family>) detail::load_lanes<Maps::size>(learner_->raw(block, side), raw);
        maps_.map(raw, map[side]);
      }
    } else {
      distribution_.sample_block(noise_, block, map);
    }
    for (int side = 0; side < 2; ++side) {
      SheafBlocks<Family, S>::store_map(map[side], lanes_of_map(block, side));
      const math::SquareMatrix<P, D> dense = Family::dense(map[side]);  // column by column
      detail::scatter_rows<D * D, D * D>(dense.data(), blocks_.arcs(block, side), blocks_.lane_count(block),
                                         dense_.data());
    }
  }
  /// Entry (i, j) of the map of an arc.
  [[nodiscard]] S entry(Index arc, int i, int j) const noexcept { return dense_[arc * D * D + j * D + i]; }
  void backward_block(Index block, const MatrixView<const S>& y, const MatrixView<const S>& energy_bar);
  /// A D × D block in the shape that a family's blocks have: itself, its diagonal or its trace.
  template <class Block>
  [[nodiscard]] static Block reduced(const S* lanes_of_block) {
    P dense[D * D];
    detail::load_lanes<D * D>(lanes_of_block, dense);
    Block r;
    if constexpr (sheaf::is_dense_block<Block>) {
      for (int i = 0; i < D; ++i) {
        for (int j = 0; j < D; ++j) r(i, j) = dense[i * D + j];
      }
    } else if constexpr (Block::RowsAtCompileTime == D) {
      for (int i = 0; i < D; ++i) r(i, 0) = dense[i * D + i];
    } else {
      r(0, 0) = dense[0];
      for (int i = 1; i < D; ++i) r(0, 0) += dense[i * D + i];
    }
    return r;
  }

  const Graph& pairs_;
  Index channels_;
  EdgeBlocks<S> blocks_;
  Maps maps_;
  std::optional<SheafLearner<S>> learner_;
  typename Distribution::type distribution_;
  Noise<S> noise_;
  Buffer<S> map_;       ///< lanes-innermost
  Buffer<S> dense_;     ///< per arc D × D, column by column
  Buffer<S> residual_;  ///< F_u x_u − F_v x_v per pair {u, v}, u < v, D × f
  Buffer<S> weight_bar_;
};

template <class Posterior, class S>
void PairSheaf<Posterior, S>::energies(Execution execution, const MatrixView<const S>& y,
                                       const MatrixView<S>& energy) {
  const Index f = channels_;
  parallel_for(execution, pairs_.edge_count(), 64, [&](Index begin, Index end) {
    for (Index e = begin; e < end; ++e) {
      const Index arc = pairs_.forward_arc(e), back = pairs_.reverse(arc);
      const S *a = y.row(pairs_.edge(e).u).data(), *b = y.row(pairs_.edge(e).v).data();
      S *r = residual_.data() + e * D * f, *out = energy.row(e).data();
      const S square = weight(e) * weight(e);
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        T sum = T(S(0));
        for (int i = 0; i < D; ++i) {
          T difference = T(S(0));
          for (int j = 0; j < D; ++j) {
            difference +=
                T(entry(arc, i, j)) * c.load(a + j * f + c) - T(entry(back, i, j)) * c.load(b + j * f + c);
          }
          c.store(r + i * f + c, difference);
          sum += difference * difference;
        }
        c.store(out + c, T(square) * sum);
      });
    }
  });
}

template <class Posterior, class S>
void PairSheaf<Posterior, S>::backward_block(Index block, const MatrixView<const S>& y,
                                             const MatrixView<const S>& energy_bar) {
  // Derivatives of w² (x_uᵀ G_u x_u − 2 x_uᵀ T x_v + x_vᵀ G_v x_v) in G_u, G_v and T, lane by lane.
  S gram_bar[2][D * D * W] = {}, transport_bar[D * D * W] = {}, weight_bar[W] = {};
  const Index f = channels_;
  for (int lane = 0; lane < blocks_.lane_count(block); ++lane) {
    const Index e = block * W + lane;
    const S *a = y.row(pairs_.edge(e).u).data(), *b = y.row(pairs_.edge(e).v).data(),
            *bar = energy_bar.row(e).data();
    const S w = weight(e);
    for (Index c = 0; c < f; ++c) {
      const S factor = w * w * bar[c];
      for (int i = 0; i < D; ++i) {
        const S r = residual_[(e * D + i) * f + c];
        weight_bar[lane] += S(2) * w * bar[c] * r * r;
        for (int j = 0; j < D; ++j) {
          gram_bar[0][(i * D + j) * W + lane] += factor * a[i * f + c] * a[j * f + c];
          gram_bar[1][(i * D + j) * W + lane] += factor * b[i * f + c] * b[j * f + c];
          transport_bar[(i * D + j) * W + lane] -= S(2) * factor * a[i * f + c] * b[j * f + c];
        }
      }
    }
  }
  std::copy_n(weight_bar, W, weight_bar_.data() + block * W);
  Map map[2], map_bar[2];
  for (int side = 0; side < 2; ++side) {
    map[side] = SheafBlocks<Family, S>::load_map(lanes_of_map(block, side));
    map_bar[side] = Map::Constant(P(S(0)));
    if constexpr (!is_orthogonal<Family>) {
      gram_backward<Family, P>(map[side], reduced<Gram<Family, P>>(gram_bar[side]), map_bar[side]);
    }
  }
  transport_backward<Family, P>(map[0], map[1], reduced<Transport<Family, P>>(transport_bar), map_bar[0],
                                map_bar[1]);
  for (int side = 0; side < 2; ++side) {
    if constexpr (is_point) {
      P raw[detail::array_size(Maps::size)], raw_bar[detail::array_size(Maps::size)];
      detail::load_lanes<Maps::size>(learner_->raw(block, side), raw);
      maps_.backward(raw, map[side], map_bar[side], raw_bar);
      detail::store_lanes<Maps::size>(raw_bar, learner_->raw_bar(block, side));
    } else {
      distribution_.sample_backward(noise_, block, side, map[side], map_bar[side], S(0));
    }
  }
}

template <class Posterior, class S>
void PairSheaf<Posterior, S>::backward(Execution execution, const SheafLearnerWeights<const S>& weights,
                                       const MatrixView<const S>& z, const MatrixView<const S>& y,
                                       const MatrixView<const S>& energy_bar, const MatrixView<S>& y_bar,
                                       const SheafLearnerWeights<S>& weights_bar, const MatrixView<S>& z_bar) {
  const Index f = channels_;
  parallel_for(execution, pairs_.node_count(), 16, [&](Index begin, Index end) {
    for (Index arc = pairs_.first_arc(begin); arc < pairs_.first_arc(end); ++arc) {
      const Index e = pairs_.edge_of(arc);
      const S sign = arc == pairs_.forward_arc(e) ? S(2) : S(-2), factor = sign * weight(e) * weight(e);
      const S *r = residual_.data() + e * D * f, *bar = energy_bar.row(e).data();
      S* to = y_bar.row(pairs_.source(arc)).data();
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        const T scale = T(factor) * c.load(bar + c);
        for (int j = 0; j < D; ++j) {
          T sum = T(S(0));
          for (int i = 0; i < D; ++i) sum += T(entry(arc, i, j)) * c.load(r + i * f + c);
          c.store(to + j * f + c, c.load(to + j * f + c) + scale * sum);
        }
      });
    }
  });
  if constexpr (is_learned<Family>) {
    if constexpr (!is_point) distribution_.begin_backward(execution, 0);
    parallel_for(execution, blocks_.block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) backward_block(block, y, energy_bar);
    });
    if constexpr (!is_point) distribution_.end_backward(execution, *learner_);
    learner_->set_edge_weights_bar(weight_bar_);
    learner_->backward(execution, weights, z, weights_bar, z_bar, true);
  }
}

}  // namespace sheafnn::layers
