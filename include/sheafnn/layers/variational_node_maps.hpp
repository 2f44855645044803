/// \file
/// VariationalNodeMaps: the distributions of all node maps of a Bayesian cooperative sheaf, samples of them, and the
/// derivatives of both. The samples of several layers may be drawn from the same distributions.
///
///     T_u = τ R,   R ~ C(M_u, κ_u),   log τ = min(μ_u + s_u ε, ln 10),   ε ~ N(0, 1);   S_u alike; KL: mean over the 2n maps
///
/// Source: math: "Bayesian cooperative sheaves".
#pragma once

#include <algorithm>

#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/layers/node_maps.hpp"
#include "sheafnn/layers/noise.hpp"
#include "sheafnn/layers/point_node_maps.hpp"
#include "sheafnn/posterior/node_map_posterior.hpp"

namespace sheafnn::layers {

/// The noise for the maps of one layer: a random stream for each side, or explicit noise.
template <class S>
struct NodeNoise {
  Stream stream[2];           ///< of T and of S
  const S* values = nullptr;  ///< 2n rows of D² + 1 values: of T, then of S; U row by row, ε
};

/// Distributions of the maps of n nodes. Unchecked: indices of packs, nodes and parameters, and that views, noise and
/// maps are of this graph.
template <int D, class S>
class VariationalNodeMaps {
 public:
  using Q = NodeMapPosterior<D>;
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;

  /// \param degrees  must outlive it
  /// \throws std::invalid_argument  more than 2³² nodes in the whole graph
  VariationalNodeMaps(const NodeDegrees<S>& degrees, bool conformal) : degrees_(&degrees), q_{conformal} {
    sheafnn::detail::require_noise_addresses("nodes with random maps", degrees.total_nodes);
    parameter_.resize(2 * degrees.blocks() * Q::parameter_size * W);
    gradient_.resize(2 * degrees.blocks() * Q::gradient_size * W);
    block_sum_.resize(degrees.blocks());
  }
  VariationalNodeMaps(const NodeDegrees<S>&&, bool) = delete;  // they would dangle

  /// The distributions at packs [begin, end) of nodes from raw outputs, n × 2 raw_size: the outputs for T, then the
  /// outputs for S.
  void infer(Index begin, Index end, const MatrixView<const S>& raw) {
    with_raw([&]<int K>() {
      for (Index block = begin; block < end; ++block) {
        P values[2 * max_raw], parameters[Q::parameter_size];
        load_raw<K>(raw, block, values);
        for (int side = 0; side < 2; ++side) {
          q_.activate(values + side * max_raw, parameters);
          detail::store_lanes<Q::parameter_size>(parameters, parameter(block, side));
        }
      }
    });
  }

  /// Draws the maps of a layer at packs [begin, end) of nodes.
  void draw(Index begin, Index end, const NodeNoise<S>& noise, NodeMaps<D, S>& maps) const {
    for (Index block = begin; block < end; ++block) {
      for (int side = 0; side < 2; ++side) draw_block(block, side, noise, maps);
    }
  }

  /// Starts a backward pass at packs [begin, end) of nodes with the derivative of weight · mean_kl() (0 leaves the KL
  /// term out).
  void begin_backward(Index begin, Index end, double weight) {
    const P share = P(static_cast<S>(per_map(weight)));
    for (Index block = begin; block < end; ++block) {
      for (int side = 0; side < 2; ++side) {
        P parameters[Q::parameter_size], bar[Q::gradient_size];
        for (P& one : bar) one = P(S(0));
        if (weight != 0) {
          detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
          q_.kl_backward(parameters, share, bar);
        }
        detail::store_lanes<Q::gradient_size>(bar, gradient(block, side));
      }
    }
  }
  /// Adds the derivatives through a layer's maps, and the derivatives of weight · mean_log_ratio() of these maps, at
  /// packs [begin, end) of nodes.
  void add_backward(Index begin, Index end, const NodeMaps<D, S>& maps, const NodeMapsGradient<D, S>& maps_gradient,
                    double weight) {
    const P share = P(static_cast<S>(per_map(weight)));
    for (Index block = begin; block < end; ++block) {
      typename NodeMaps<D, S>::Derivative derivative;
      maps.derivative(block, maps_gradient, derivative);
      for (int side = 0; side < 2; ++side) {
        P parameters[Q::parameter_size], bar[Q::gradient_size];
        detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
        detail::load_lanes<Q::gradient_size>(gradient(block, side), bar);
        q_.sample_backward(parameters, derivative.rotation[side], maps.log_scale(block, side),
                           derivative.rotation_bar[side], derivative.log_scale_bar[side], share, bar);
        detail::store_lanes<Q::gradient_size>(bar, gradient(block, side));
      }
    }
  }
  /// Ends the backward pass at packs [begin, end) of nodes: derivatives of the raw outputs.
  void end_backward(Index begin, Index end, const MatrixView<const S>& raw, const MatrixView<S>& raw_bar) const {
    with_raw([&]<int K>() {
      for (Index block = begin; block < end; ++block) {
        P values[2 * max_raw], parameters[Q::parameter_size], bar[Q::gradient_size], values_bar[2 * K];
        load_raw<K>(raw, block, values);
        for (int side = 0; side < 2; ++side) {
          P raw_side_bar[max_raw];
          detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
          detail::load_lanes<Q::gradient_size>(gradient(block, side), bar);
          std::fill(raw_side_bar, raw_side_bar + max_raw, P(S(0)));
          q_.activate_backward(values + side * max_raw, parameters, bar, raw_side_bar);
          std::copy_n(raw_side_bar, K, values_bar + side * K);
        }
        detail::store_rows<2 * K>(values_bar, degrees_->count(block), raw_bar.data() + block * W * 2 * K);
      }
    });
  }

  /// KL(Q ‖ prior), the mean over the nodes and the two sides; of a part of a graph its nodes' share in that.
  [[nodiscard]] double mean_kl(Execution execution) {
    return mean(execution, [&](Index block, int side) {
      P parameters[Q::parameter_size];
      detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
      return q_.kl(parameters);
    });
  }
  /// log q − log p of a layer's maps, the same mean.
  [[nodiscard]] double mean_log_ratio(Execution execution, const NodeMaps<D, S>& maps) {
    return mean(execution, [&](Index block, int side) {
      P parameters[Q::parameter_size], entries[D * D];
      detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
      const Index first = block * W;
      const MapSide which = static_cast<MapSide>(side);
      detail::load_rows<D * D>(maps.map(which, first), degrees_->count(block), entries);
      S scales[W];
      for (int lane = 0; lane < W; ++lane) scales[lane] = maps.scale(which, first + lane);
      const P inverse = P(S(1)) / P::load(scales);
      SquareMatrix<P, D> rotation;
      for (int k = 0; k < D * D; ++k) rotation(k / D, k % D) = entries[k] * inverse;
      return q_.log_ratio(parameters, rotation, maps.log_scale(block, side));
    });
  }

  /// Parameter k of NodeMapPosterior of a node's map.
  [[nodiscard]] S parameter_of(MapSide side, Index u, int k) const noexcept {
    return parameter(u / W, static_cast<int>(side))[k * W + u % W];
  }

 private:
  static constexpr int max_raw = Q::raw_size(true);

  [[nodiscard]] Index position(Index block, int side) const noexcept { return side * degrees_->blocks() + block; }
  [[nodiscard]] S* parameter(Index block, int side) noexcept {
    return parameter_.data() + position(block, side) * Q::parameter_size * W;
  }
  [[nodiscard]] const S* parameter(Index block, int side) const noexcept {
    return parameter_.data() + position(block, side) * Q::parameter_size * W;
  }
  [[nodiscard]] S* gradient(Index block, int side) noexcept {
    return gradient_.data() + position(block, side) * Q::gradient_size * W;
  }
  [[nodiscard]] const S* gradient(Index block, int side) const noexcept {
    return gradient_.data() + position(block, side) * Q::gradient_size * W;
  }
  [[nodiscard]] double per_map(double weight) const noexcept {
    return weight / static_cast<double>(2 * degrees_->total_nodes);
  }
  template <class Body>
  void with_raw(const Body& body) const {
    detail::with_raw_size<Q::raw_size(true), Q::raw_size(false)>(q_.conformal, body);
  }
  /// The raw outputs of both sides of a pack of nodes, max_raw for each; outputs that rotations alone lack are 0.
  template <int K>
  void load_raw(const MatrixView<const S>& from, Index block, P* raw) const {
    P values[2 * K];
    detail::load_rows<2 * K>(from.data() + block * W * 2 * K, degrees_->count(block), values);
    std::fill(raw, raw + 2 * max_raw, P(S(0)));
    for (int side = 0; side < 2; ++side) std::copy_n(values + side * K, K, raw + side * max_raw);
  }
  void draw_block(Index block, int side, const NodeNoise<S>& noise, NodeMaps<D, S>& maps) const {
    P parameters[Q::parameter_size], draw[Q::noise_size], log_scale;
    SquareMatrix<P, D> rotation;
    detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
    if (noise.values != nullptr) {
      P rows[Q::noise_size];
      detail::load_rows<Q::noise_size>(noise.values + (side * degrees_->nodes + block * W) * Q::noise_size,
                                       degrees_->count(block), rows);
      for (int k = 0; k < D * D; ++k) draw[k] = rows[k % D * D + k / D];
      draw[D * D] = rows[D * D];
    } else {
      std::uint32_t nodes[W];
      for (int lane = 0; lane < W; ++lane) nodes[lane] = degrees_->noise_address(block * W + lane);
      q_.draw_noise(noise.stream[side], Pack<std::uint32_t, W>::load(nodes), draw);
    }
    q_.sample(parameters, draw, rotation, log_scale);
    maps.store(block, side, rotation, log_scale);
  }
  template <class Body>
  [[nodiscard]] double mean(Execution execution, const Body& body) {
    parallel_for(execution, degrees_->blocks(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        double sum = 0;
        for (int side = 0; side < 2; ++side) {
          S value[W];
          body(block, side).store(value);
          for (int lane = 0; lane < degrees_->count(block); ++lane) sum += static_cast<double>(value[lane]);
        }
        block_sum_[block] = sum;
      }
    });
    double sum = 0;
    for (const double part : block_sum_) sum += part;
    return per_map(sum);
  }

  const NodeDegrees<S>* degrees_;
  Q q_;
  Buffer<S> parameter_, gradient_;  ///< by side, block and index, a pack each
  Buffer<double> block_sum_;
};

}  // namespace sheafnn::layers
