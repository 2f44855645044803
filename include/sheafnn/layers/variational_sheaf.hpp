/// \file
/// VariationalSheaf: the posterior distribution over a graph's restriction maps, W edges at a time. It has parameters from
/// the sheaf learner, reparametrised samples into a SheafBlocks, the KL term, and the backward pass of each. The same over
/// the restriction maps of a hypergraph, 2W incident pairs at a time (layers/incidence_blocks.hpp).
///
///     Q(F | H) = Π_a q(F_a; θ_a),   θ_a = activate(learner(H)_a),   F_a = sample(θ_a, noise_a),
///     KL = 1/(2m) Σ_a KL(q(·; θ_a) ‖ prior),   sums and products over the 2m incident pairs a
///
/// Source: math: "Posteriors".
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/layers/noise.hpp"
#include "sheafnn/layers/sheaf_source.hpp"
#include "sheafnn/layers/stalk_masks.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"

namespace sheafnn::layers {

/// Posterior of every incident pair. Unchecked: indices of blocks and sides, that learner, sheaf and noise are of this
/// graph, and that weights are finite. Raw outputs that are not finite give maps that are not finite.
///
/// \tparam Blocks  EdgeBlocks<S>, or IncidenceBlocks<S>: indices of arcs are then indices of incident pairs
template <SheafPosterior Posterior, class S, class Blocks = EdgeBlocks<S>>
class VariationalSheaf {
 public:
  using Q = Posterior;
  using Family = typename Q::family;
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  using Map = typename Family::template Map<P>;

  VariationalSheaf() = default;
  VariationalSheaf(const Blocks& blocks, const Posterior& posterior)
      : blocks_(&blocks),
        q_(posterior),
        parameter_(blocks.block_count() * 2 * Q::parameter_size * W),
        block_sum_(blocks.block_count()) {}

  /// Stalks with dimensions of their own, which must outlive this; null: all have D. Entries that maps do not have are no
  /// part of the KL term. Unchecked: can_leave_out.
  void set_stalks(const StalkMasks<S>* stalks) noexcept { stalks_ = stalks; }

  /// Parameters of all incident pairs from raw outputs of the mean and the spread, or of the spread alone, where the
  /// posterior needs no mean.
  ///
  /// \param learner  SheafLearner, or LabelledSpread
  template <class Learner>
  void activate(Execution execution, const Learner& learner) {
    for_incident_pairs(execution, [&](Index block, int side) {
      P raw[raw_size], parameters[Q::parameter_size];
      load_raw(learner.outputs(), learner.raw(block, side), raw);
      q_.activate(raw, parameters);
      if constexpr (can_leave_out<Q>) {
        for (int k = 0; stalks_ != nullptr && k < Q::mean_size; ++k) {
          q_.leave_out(k, stalks_->template present<Family>(block, side, k), parameters);
        }
      }
      detail::store_lanes<Q::parameter_size>(parameters, parameter(block, side));
    });
  }

  /// Draws the maps of one block of edges; for SheafBlocks::build().
  void sample_block(const Noise<S>& noise, Index block, Map (&map)[2]) const {
    for (int side = 0; side < 2; ++side) detail::prefetch_lanes<Q::sample_size>(parameter(block, side));
    P noise_of[2][Q::noise_size];
    draw_both(noise, block, noise_of);
    for (int side = 0; side < 2; ++side) {
      P parameters[Q::sample_size];
      detail::load_lanes<Q::sample_size>(parameter(block, side), parameters);
      q_.sample(parameters, noise_of[side], map[side]);
    }
  }

  /// The posterior's means of one block of edges.
  void mean_block(Index block, Map (&map)[2]) const {
    for (int side = 0; side < 2; ++side) {
      P parameters[Q::parameter_size];
      detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
      q_.mean(parameters, map[side]);
    }
  }
  /// Parameters of a block of edges, lanes-innermost: parameter_size values per incident pair.
  [[nodiscard]] const S* parameter(Index block, int side) const noexcept {
    return parameter_.data() + (block * 2 + side) * Q::parameter_size * W;
  }

  /// KL(posterior ‖ prior), averaged over the incident pairs; on a part of a graph its own pairs' share in that.
  [[nodiscard]] double mean_kl(Execution execution) requires Q::closed_form_kl {
    return mean_over_pairs(execution, [&](Index block, P(&value)[2]) {
      for (int side = 0; side < 2; ++side) {
        P parameters[Q::parameter_size];
        detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
        value[side] = q_.kl(parameters);
      }
    });
  }
  /// log q − log p of maps that were drawn with this noise, averaged over the incident pairs.
  ///
  /// \param fill  called as fill(block, map) for every block, from any thread: sets both sides' Map
  template <class Fill>
  [[nodiscard]] double monte_carlo_kl(Execution execution, const Noise<S>& noise, const Fill& fill) {
    return mean_over_pairs(execution, [&](Index block, P(&value)[2]) {
      Map map[2];
      fill(block, map);
      for (int side = 0; side < 2; ++side) {
        P parameters[Q::parameter_size], draw[Q::noise_size];
        detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
        value[side] = q_.log_ratio(parameters, draw_again(noise, block, side, draw), map[side]);
      }
    });
  }

  /// Starts a backward pass with the derivative of weight · mean_kl (0 leaves the KL term out).
  void begin_backward(Execution execution, double weight) {
    const S share = pair_share(weight);
    const Index size = blocks_->block_count() * 2 * Q::gradient_size * W;
    if (gradient_.size() < size) gradient_.resize(size, to_be_written);
    for_incident_pairs(execution, [&](Index block, int side) {
      P bar[Q::gradient_size];
      begin_backward(block, side, share, bar);
      detail::store_lanes<Q::gradient_size>(bar, gradient(block, side));
    });
  }
  /// Adds the derivative through the maps of one block and side, which were drawn with this noise, and of
  /// monte_carlo_weight · monte_carlo_kl; `share` is pair_share(monte_carlo_weight).
  void sample_backward(const Noise<S>& noise, Index block, int side, const Map& map, const Map& map_bar, S share) {
    P bar[Q::gradient_size];
    detail::load_lanes<Q::gradient_size>(gradient(block, side), bar);
    sample_backward(noise, block, side, map, map_bar, share, bar);
    detail::store_lanes<Q::gradient_size>(bar, gradient(block, side));
  }
  /// The weight of one incident pair in `weight` times a mean over all of them.
  [[nodiscard]] S pair_share(double weight) const noexcept { return static_cast<S>(per_pair(weight)); }
  /// Ends the backward pass: derivatives of the raw outputs, into the learner.
  template <class Learner>
  void end_backward(Execution execution, Learner& learner) const {
    for_incident_pairs(execution, [&](Index block, int side) {
      P bar[Q::gradient_size];
      detail::load_lanes<Q::gradient_size>(gradient(block, side), bar);
      end_backward(learner, block, side, bar);
    });
  }

  // The same of one block and side, with the derivatives in `bar`.

  /// \param share  pair_share(weight)
  void begin_backward(Index block, int side, S share, P (&bar)[Q::gradient_size]) const {
    for (int k = 0; k < Q::gradient_size; ++k) bar[k] = P(S(0));
    if constexpr (Q::closed_form_kl) {
      if (share == S(0)) return;
      P parameters[Q::parameter_size];
      detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
      q_.kl_backward(parameters, blocks_->counted(block, side, share), bar);
    }
  }
  void sample_backward(const Noise<S>& noise, Index block, int side, const Map& map, const Map& map_bar, S share,
                       P (&bar)[Q::gradient_size]) const {
    P parameters[Q::parameter_size], draw[Q::noise_size];
    detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
    q_.sample_backward(parameters, draw_again(noise, block, side, draw), map, map_bar,
                       blocks_->counted(block, side, share), bar);
  }
  template <class Learner>
  void end_backward(Learner& learner, Index block, int side, const P (&bar)[Q::gradient_size]) const {
    P raw[raw_size], parameters[Q::parameter_size], raw_bar[raw_size];
    load_raw(learner.outputs(), learner.raw(block, side), raw);
    detail::load_lanes<Q::parameter_size>(parameter(block, side), parameters);
    q_.activate_backward(raw, parameters, bar, raw_bar);
    if constexpr (can_leave_out<Q>) {
      for (int k = 0; stalks_ != nullptr && k < Q::mean_size; ++k) {
        const P present = stalks_->template present<Family>(block, side, k);
        raw_bar[k] *= present;
        raw_bar[Q::mean_size + k] *= present;
      }
    }
    if (raw_size == Q::spread_size || learner.outputs() == raw_size) {
      detail::store_lanes<raw_size>(raw_bar, learner.raw_bar(block, side));
    } else {
      detail::store_lanes<Q::spread_size>(raw_bar + Q::mean_size, learner.raw_bar(block, side));
    }
  }
  /// Calls body(block) for all blocks, from any thread.
  template <class Body>
  void for_blocks(Execution execution, const Body& body) const {
    parallel_for(execution, blocks_->block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) body(block);
    });
  }

 private:
  static constexpr int raw_size = Q::mean_size + Q::spread_size;

  static void load_raw(Index outputs, const S* from, P (&raw)[raw_size]) {
    if (raw_size == Q::spread_size || outputs == raw_size) {
      detail::load_lanes<raw_size>(from, raw);
      return;
    }
    for (int k = 0; k < Q::mean_size; ++k) raw[k] = P(S(0));
    detail::load_lanes<Q::spread_size>(from, raw + Q::mean_size);
  }
  [[nodiscard]] S* parameter(Index block, int side) noexcept {
    return parameter_.data() + (block * 2 + side) * Q::parameter_size * W;
  }
  [[nodiscard]] S* gradient(Index block, int side) noexcept {
    return gradient_.data() + (block * 2 + side) * Q::gradient_size * W;
  }
  [[nodiscard]] const S* gradient(Index block, int side) const noexcept {
    return gradient_.data() + (block * 2 + side) * Q::gradient_size * W;
  }
  [[nodiscard]] double per_pair(double weight) const noexcept {
    return weight / static_cast<double>(std::max<Index>(1, blocks_->pair_count()));
  }

  template <class Body>
  void for_incident_pairs(Execution execution, const Body& body) const {
    for_blocks(execution, [&](Index block) {
      body(block, 0);
      body(block, 1);
    });
  }
  template <class Body>
  [[nodiscard]] double mean_over_pairs(Execution execution, const Body& body) {
    parallel_for(execution, blocks_->block_count(), 2, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        double sum = 0;
        P of_pairs[2];
        body(block, of_pairs);
        for (int side = 0; side < 2; ++side) {
          S value[W];
          of_pairs[side].store(value);
          for (int lane = 0; lane < blocks_->lane_count(block); ++lane) {
            if (blocks_->counts(block, side, lane)) sum += static_cast<double>(value[lane]);
          }
        }
        block_sum_[block] = sum;
      }
    });
    double sum = 0;
    for (const double part : block_sum_) sum += part;
    return per_pair(sum);
  }

  /// The noise of both sides; from a stream in packs of twice the width, whose halves hide each other's latency.
  void draw_both(const Noise<S>& noise, Index block, P (&draw)[2][Q::noise_size]) const {
    if (noise.values != nullptr) {
      for (int side = 0; side < 2; ++side) gather_explicit(noise.values, blocks_->arcs(block, side), draw[side]);
      return;
    }
    std::uint32_t arcs[2 * W];
    for (int side = 0; side < 2; ++side) blocks_->noise_addresses(block, side, arcs + side * W);
    std::uint32_t upper[2 * W];
    const bool wide = blocks_->upper_addresses(block, 0) != nullptr;
    for (int side = 0; wide && side < 2; ++side) {
      std::copy_n(blocks_->upper_addresses(block, side), W, upper + side * W);
    }
    Pack<S, 2 * W> both[Q::noise_size];
    draw_stream(noise.stream, arcs, wide ? upper : nullptr, both);
    for (int k = 0; k < Q::noise_size; ++k) {
      S values[2 * W];
      both[k].store(values);
      for (int side = 0; side < 2; ++side) draw[side][k] = P::load(values + side * W);
    }
  }
  /// The noise of one side for backward passes; null if the posterior needs none.
  const P* draw_again([[maybe_unused]] const Noise<S>& noise, [[maybe_unused]] Index block,
                      [[maybe_unused]] int side, [[maybe_unused]] P (&draw)[Q::noise_size]) const {
    if constexpr (needs_noise<Q>) {
      if (noise.values != nullptr) {
        gather_explicit(noise.values, blocks_->arcs(block, side), draw);
      } else {
        std::uint32_t ids[W];
        blocks_->noise_addresses(block, side, ids);
        draw_stream(noise.stream, ids, blocks_->upper_addresses(block, side), draw);
      }
      return draw;
    } else {
      return nullptr;
    }
  }
  template <int Width>
  SHEAFNN_INLINE void draw_stream(const Stream& stream, const std::uint32_t* ids, const std::uint32_t* upper,
                                  Pack<S, Width>* draw) const {
    const auto draw_all = [&](const Stream& of_ids, Pack<S, Width>* out) SHEAFNN_INLINE_LAMBDA {
      q_.draw_noise(of_ids, Pack<std::uint32_t, Width>::load(ids), out);
    };
    detail::draw_lanes<Q::noise_size>(stream, upper, draw, draw_all);
  }
  static void gather_explicit(const S* values, const std::int32_t* arcs, P* draw) {
    P rows[Q::noise_size];
    detail::gather_rows<Q::noise_size>(values, arcs, rows);
    for (int k = 0; k < Q::noise_size; ++k) draw[k] = rows[noise_index<Q>(k)];
  }

  const Blocks* blocks_ = nullptr;
  const StalkMasks<S>* stalks_ = nullptr;
  [[no_unique_address]] Posterior q_{};
  Buffer<S> parameter_;
  Buffer<S> gradient_;  ///< in the parameters
  Buffer<double> block_sum_;
};

}  // namespace sheafnn::layers
