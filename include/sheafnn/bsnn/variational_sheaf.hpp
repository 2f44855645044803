/// \file
/// VariationalSheaf: the posterior distribution over a graph's restriction maps, W edges at a time: parameters
/// from the sheaf learner, reparametrised samples into a NetworkSheaf, the KL term, and the backward pass of each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sheafnn/bsnn/edge_blocks.hpp"
#include "sheafnn/bsnn/network_sheaf.hpp"
#include "sheafnn/bsnn/posterior.hpp"
#include "sheafnn/bsnn/sheaf_learner.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"

namespace sheafnn {

/// Where the noise of a sampled sheaf comes from: a stream, or explicit values.
///
/// Explicit noise is row-major, one row per arc (sorted by source, target): N(0,1) numbers of a diagonal (D) or
/// general map (D², row-major), or a uniform rotation (D × D, row-major).
template <class S>
struct SheafNoise {
  Stream stream;
  const S* values = nullptr;
};

template <RestrictionMapFamily Family, class S>
class VariationalSheaf {
 public:
  using Q = Posterior<Family>;
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  using Map = typename Family::template Map<P>;

  VariationalSheaf() = default;
  VariationalSheaf(const EdgeBlocks<S>& blocks, RotationParametrisation parametrisation)
      : blocks_(&blocks),
        parametrisation_(parametrisation),
        parameter_(blocks.block_count() * 2 * Q::parameter_size * W),
        scale_(blocks.block_count() * 2 * Q::scale_size * W),
        gradient_(blocks.block_count() * 2 * Q::gradient_size * W),
        block_sum_(blocks.block_count()) {}

  /// Parameters of all incident pairs from the learner's raw outputs.
  void activate(int threads, const SheafLearner<S>& learner) {
    for_incident_pairs(threads, [&](Index block, int side) {
      P raw[raw_size], parameters[Q::parameter_size];
      load_lanes<raw_size>(learner.raw(block, side), raw);
      Q::activate(raw, parametrisation_, parameters);
      store_lanes<Q::parameter_size>(parameters, parameter(block, side));
      if constexpr (Q::scale_size > 0) {
        P scales[Q::scale_size];
        Q::scales(parameters, scales);
        store_lanes<Q::scale_size>(scales, scale_.data() + (block * 2 + side) * Q::scale_size * W);
      }
    });
  }

  /// Draws the maps of one block of edges; for NetworkSheaf::build().
  void sample_block(const SheafNoise<S>& noise, Index block, Map (&map)[2]) const {
    P draw[2][Q::noise_size];
    for (int side = 0; side < 2; ++side) {
      prefetch_lanes<Q::location_size>(parameter(block, side));
      prefetch_lanes<Q::scale_size>(scale_.data() + (block * 2 + side) * Q::scale_size * W);
      if (noise.values != nullptr) gather_explicit(noise.values, blocks_->arcs(block, side), draw[side]);
    }
    if (noise.values == nullptr) draw_both(noise.stream, block, draw);
    for (int side = 0; side < 2; ++side) {
      P parameters[Q::location_size], scales[Q::scale_size > 0 ? Q::scale_size : 1];
      load_lanes<Q::location_size>(parameter(block, side), parameters);
      load_lanes<Q::scale_size>(scale_.data() + (block * 2 + side) * Q::scale_size * W, scales);
      Q::sample_scaled(parameters, scales, draw[side], map[side]);
    }
  }
  /// The same, written to `sheaf`.
  void sample_block(const SheafNoise<S>& noise, Index block, NetworkSheaf<Family, S>& sheaf) const {
    Map map[2];
    sample_block(noise, block, map);
    for (int side = 0; side < 2; ++side) NetworkSheaf<Family, S>::store_map(map[side], sheaf.maps(block, side));
  }

  /// KL(posterior ‖ prior), averaged over the 2m incident pairs.
  [[nodiscard]] double mean_kl(int threads) {
    return mean_over_pairs(threads, [&](Index block, int side) {
      P parameters[Q::parameter_size];
      load_lanes<Q::parameter_size>(parameter(block, side), parameters);
      return Q::kl(parameters);
    });
  }
  /// log q − log p of the maps in `sheaf`, averaged over the incident pairs.
  [[nodiscard]] double monte_carlo_kl(int threads, const NetworkSheaf<Family, S>& sheaf) {
    return mean_over_pairs(threads, [&](Index block, int side) {
      P parameters[Q::parameter_size];
      load_lanes<Q::parameter_size>(parameter(block, side), parameters);
      return Q::monte_carlo_kl(parameters, NetworkSheaf<Family, S>::load_map(sheaf.maps(block, side)));
    });
  }

  /// Starts a backward pass with the derivative of weight · mean_kl (0 leaves the KL term out).
  void begin_backward(int threads, double weight) {
    const P share = P(static_cast<S>(per_pair(weight)));
    for_incident_pairs(threads, [&](Index block, int side) {
      P parameters[Q::parameter_size], bar[Q::gradient_size];
      load_lanes<Q::parameter_size>(parameter(block, side), parameters);
      for (int k = 0; k < Q::gradient_size; ++k) bar[k] = P(S(0));
      if (weight != 0) Q::kl_backward(parameters, share, bar);
      store_lanes<Q::gradient_size>(bar, gradient(block, side));
    });
  }
  /// Adds the derivative through the maps of `sheaf`, and of monte_carlo_weight · monte_carlo_kl.
  void sample_backward(int threads, const NetworkSheaf<Family, S>& sheaf,
                       const NetworkSheafGradient<Family, S>& sheaf_gradient, double monte_carlo_weight) {
    const S share = pair_share(monte_carlo_weight);
    for_incident_pairs(threads, [&](Index block, int side) {
      const Map map_bar = NetworkSheaf<Family, S>::load_map(sheaf_gradient.map_bar.data() +
                                                            (block * 2 + side) * Q::noise_size * W);
      sample_backward(block, side, NetworkSheaf<Family, S>::load_map(sheaf.maps(block, side)), map_bar, share);
    });
  }
  /// The same for one block and side; `share` is pair_share(monte_carlo_weight).
  void sample_backward(Index block, int side, const Map& map, const Map& map_bar, S share) {
    P parameters[Q::parameter_size], bar[Q::gradient_size];
    load_lanes<Q::location_size>(parameter(block, side), parameters);
    load_lanes<Q::gradient_size>(gradient(block, side), bar);
    Q::sample_backward(parameters, map, map_bar, P(share), bar);
    store_lanes<Q::gradient_size>(bar, gradient(block, side));
  }
  /// The weight of one incident pair in `weight` times a mean over all of them.
  [[nodiscard]] S pair_share(double weight) const noexcept { return static_cast<S>(per_pair(weight)); }
  /// Ends the backward pass: derivatives of the raw outputs, into the learner.
  void end_backward(int threads, SheafLearner<S>& learner) const {
    for_incident_pairs(threads, [&](Index block, int side) {
      P raw[raw_size], parameters[Q::parameter_size], bar[Q::gradient_size], raw_bar[raw_size];
      load_lanes<raw_size>(learner.raw(block, side), raw);
      load_lanes<Q::parameter_size>(parameter(block, side), parameters);
      load_lanes<Q::gradient_size>(gradient(block, side), bar);
      Q::activate_backward(raw, parametrisation_, parameters, bar, raw_bar);
      store_lanes<raw_size>(raw_bar, learner.raw_bar(block, side));
    });
  }

 private:
  static constexpr int raw_size = Q::mean_size + Q::spread_size;
  static_assert(Q::noise_size == Family::map_size);

  [[nodiscard]] S* parameter(Index block, int side) noexcept {
    return parameter_.data() + (block * 2 + side) * Q::parameter_size * W;
  }
  [[nodiscard]] const S* parameter(Index block, int side) const noexcept {
    return parameter_.data() + (block * 2 + side) * Q::parameter_size * W;
  }
  [[nodiscard]] S* gradient(Index block, int side) noexcept {
    return gradient_.data() + (block * 2 + side) * Q::gradient_size * W;
  }
  [[nodiscard]] const S* gradient(Index block, int side) const noexcept {
    return gradient_.data() + (block * 2 + side) * Q::gradient_size * W;
  }
  [[nodiscard]] double per_pair(double weight) const noexcept {
    return weight / static_cast<double>(std::max<Index>(1, 2 * blocks_->edge_count()));
  }

  template <class Body>
  void for_incident_pairs(int threads, const Body& body) const {
    parallel_for(threads, blocks_->block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        body(block, 0);
        body(block, 1);
      }
    });
  }
  template <class Body>
  [[nodiscard]] double mean_over_pairs(int threads, const Body& body) {
    parallel_for(threads, blocks_->block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        double sum = 0;
        for (int side = 0; side < 2; ++side) {
          S value[W];
          body(block, side).store(value);
          for (int lane = 0; lane < blocks_->lane_count(block); ++lane) sum += static_cast<double>(value[lane]);
        }
        block_sum_[block] = sum;
      }
    });
    double sum = 0;
    for (const double part : block_sum_) sum += part;
    return per_pair(sum);
  }

  /// The noise of both sides in packs of twice the width, whose halves hide each other's latency.
  void draw_both(const Stream& stream, Index block, P (&draw)[2][Q::noise_size]) const {
    std::uint32_t arcs[2 * W];
    for (int side = 0; side < 2; ++side) std::copy_n(blocks_->arcs(block, side), W, arcs + side * W);
    Pack<S, 2 * W> both[Q::noise_size];
    Q::draw_noise(stream, Pack<std::uint32_t, 2 * W>::load(arcs), both);
    for (int k = 0; k < Q::noise_size; ++k) {
      S values[2 * W];
      both[k].store(values);
      for (int side = 0; side < 2; ++side) draw[side][k] = P::load(values + side * W);
    }
  }
  static void gather_explicit(const S* values, const std::int32_t* arcs, P* draw) {
    if constexpr (Family::kind == MapKind::rotation) {
      constexpr int D = Family::stalk_dimension;
      P rows[D * D];
      gather_rows<D * D>(values, arcs, rows);
      for (int k = 0; k < D * D; ++k) draw[k] = rows[(k % D) * D + k / D];
    } else {
      gather_rows<Q::noise_size>(values, arcs, draw);
    }
  }

  const EdgeBlocks<S>* blocks_ = nullptr;
  RotationParametrisation parametrisation_ = RotationParametrisation::householder;
  Buffer<S> parameter_, scale_, gradient_;
  Buffer<double> block_sum_;
};

/// The identity family has nothing to sample.
template <int D, class S>
class VariationalSheaf<Identity<D>, S> {
 public:
  VariationalSheaf() = default;
  VariationalSheaf(const EdgeBlocks<S>&, RotationParametrisation) {}
  void activate(int, const SheafLearner<S>&) {}
  void sample_block(const SheafNoise<S>&, Index, typename NetworkSheaf<Identity<D>, S>::Map (&map)[2]) const {
    for (auto& one : map) one = NetworkSheaf<Identity<D>, S>::load_map(nullptr);
  }
  [[nodiscard]] double mean_kl(int) { return 0; }
  [[nodiscard]] double monte_carlo_kl(int, const NetworkSheaf<Identity<D>, S>&) { return 0; }
  void begin_backward(int, double) {}
  void sample_backward(int, const NetworkSheaf<Identity<D>, S>&, const NetworkSheafGradient<Identity<D>, S>&,
                       double) {}
  void end_backward(int, SheafLearner<S>&) const {}
};

}  // namespace sheafnn
