/// \file
/// The rotations of a bundle from the values that a learner predicts, with the backward pass. The values parametrise
/// the rotations themselves, or Cayley distributions C(M, κ) from which the rotations are drawn.
///
///     point          raw per rotation: D(D − 1)/2 values of O
///     distribution   the same of M, then κ_raw; O = (I + κU)⁻¹(U + κI) M, U uniform; KL: the mean over the n · B rotations
///
/// Rotations come from a parametrisation at the values themselves; Euler angles are 2π times them. Source: math: "Flat
/// bundles" (9.3), "Bayesian bundles" (9.8). On a part of a graph the rotations belong to owned nodes. Noise lies at their
/// indices in the whole graph, and means are the part's share. Unchecked: indices of blocks, and that views and maps are of
/// one bundle.
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/layers/bundle_maps.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/layers/noise.hpp"
#include "sheafnn/posterior/cayley.hpp"
#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::detail {

/// A point map multiplies Euler angles with π; bundles turn by 2π.
template <class S>
[[nodiscard]] S bundle_unit(rotation::RotationParametrisation parametrisation) {
  return parametrisation == rotation::RotationParametrisation::euler ? S(2) : S(1);
}
/// The D(D − 1)/2 values of a rotation, or their derivatives, times the unit.
template <int D, class T>
SHEAFNN_HD SHEAFNN_INLINE void scale_rotation_numbers(const T& unit, T* values) {
  SHEAFNN_UNROLL for (int k = 0; k < rotation::rotation_parameters<D>; ++k) values[k] = unit * values[k];
}
/// The chart from these values to the rotation.
template <int D>
[[nodiscard]] PointMap<SpecialOrthogonal<D>> bundle_point(rotation::RotationParametrisation parametrisation) {
  return {parametrisation, SheafActivation::identity};
}
/// The distribution of a rotation.
template <int D>
[[nodiscard]] CayleyPosterior<SpecialOrthogonal<D>> bundle_posterior(
    rotation::RotationParametrisation parametrisation) {
  return {parametrisation, {}, SheafActivation::identity, SpreadRange::published};
}

/// Reads the K values of every rotation of a block, the rotation's `q` multiplied by a factor, and writes derivatives back.
template <int K, int D, class S>
struct BundleRaw {
  using P = typename BundleMaps<D, S>::P;
  static constexpr int q = rotation::rotation_parameters<D>;

  static void load(const MatrixView<const S>& raw, const BundleMaps<D, S>& maps, Index block, S unit, P* values) {
    load_rows<K>(raw.data() + block * P::width * K, maps.lanes_of(block), values);
    scale_rotation_numbers<D>(P(unit), values);
  }
  static void store(P* bar, const BundleMaps<D, S>& maps, Index block, S unit, const MatrixView<S>& raw_bar) {
    scale_rotation_numbers<D>(P(unit), bar);
    store_rows<K>(bar, maps.lanes_of(block), raw_bar.data() + block * P::width * K);
  }
};

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Rotations at a learner's predictions, n × B · D(D − 1)/2.
template <int D, class S>
class PointBundle {
 public:
  explicit PointBundle(rotation::RotationParametrisation parametrisation)
      : chart_(detail::bundle_point<D>(parametrisation)), unit_(detail::bundle_unit<S>(parametrisation)) {}

  void predict(Execution execution, const MatrixView<const S>& raw, BundleMaps<D, S>& maps) const {
    parallel_for(execution, maps.blocks(), 4, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        P values[Raw::q];
        Raw::load(raw, maps, block, unit_, values);
        typename BundleMaps<D, S>::Matrix rotation;
        chart_.map(values, rotation);
        maps.store(block, rotation);
      }
    });
  }
  /// Derivatives of the predictions from the rotations' derivatives.
  void backward(Execution execution, const MatrixView<const S>& raw, const BundleMaps<D, S>& maps,
                const MatrixView<S>& raw_bar) const {
    parallel_for(execution, maps.blocks(), 4, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) {
        P values[Raw::q], bar[Raw::q];
        Raw::load(raw, maps, block, unit_, values);
        chart_.backward(values, maps.rotation_bar(block), bar);
        Raw::store(bar, maps, block, unit_, raw_bar);
      }
    });
  }

 private:
  using Raw = detail::BundleRaw<rotation::rotation_parameters<D>, D, S>;
  using P = typename BundleMaps<D, S>::P;

  PointMap<SpecialOrthogonal<D>> chart_;
  S unit_;
};

/// Distributions of the rotations of a bundle, samples of them, and the derivatives of both. The samples of several layers may
/// be drawn from the same distributions.
template <int D, class S>
class VariationalBundle {
 public:
  using Q = CayleyPosterior<SpecialOrthogonal<D>>;
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;

  /// \param part  null: of a whole graph
  /// \throws std::invalid_argument  more than 2³² rotations in the whole graph
  VariationalBundle(Index nodes, Index bundles, rotation::RotationParametrisation parametrisation,
                    const GraphPart* part = nullptr)
      : q_(detail::bundle_posterior<D>(parametrisation)),
        unit_(detail::bundle_unit<S>(parametrisation)),
        count_(nodes * bundles),
        bundles_(bundles),
        part_(part),
        parameter_(blocks() * Q::parameter_size * W),
        gradient_(blocks() * Q::gradient_size * W),
        block_sum_(blocks()) {
    if (part != nullptr)
      sheafnn::detail::require_noise_addresses("random rotations", part->numbers().total_nodes * bundles);
  }

  /// The distributions from raw numbers, n × B · (D(D − 1)/2 + 1).
  void infer(Execution execution, const MatrixView<const S>& raw, const BundleMaps<D, S>& maps) {
    for_blocks(execution, [&](Index block) {
      P values[Raw::q + 1], parameters[Q::parameter_size];
      Raw::load(raw, maps, block, unit_, values);
      q_.activate(values, parameters);
      detail::store_lanes<Q::parameter_size>(parameters, parameter(block));
    });
  }
  /// Draws the rotations of a layer. \param noise  n · B uniform rotations row by row, or null: the stream's
  void draw(Execution execution, const Stream& stream, const S* noise, BundleMaps<D, S>& maps) const {
    for_blocks(execution, [&](Index block) {
      P parameters[Q::parameter_size], uniform[Q::noise_size];
      detail::load_lanes<Q::parameter_size>(parameter(block), parameters);
      if (noise != nullptr) {
        P rows[Q::noise_size];
        detail::load_rows<Q::noise_size>(noise + block * W * Q::noise_size, maps.lanes_of(block), rows);
        SHEAFNN_UNROLL for (int k = 0; k < Q::noise_size; ++k) uniform[k] = rows[Q::noise_index(k)];
      } else {
        std::uint32_t number[W];
        for (int lane = 0; lane < W; ++lane) number[lane] = address(std::min(block * W + lane, count_ - 1));
        q_.draw_noise(stream, Pack<std::uint32_t, W>::load(number), uniform);
      }
      typename BundleMaps<D, S>::Matrix rotation;
      q_.sample(parameters, uniform, rotation);
      maps.store(block, rotation);
    });
  }

  /// Starts a backward pass with the derivative of weight · mean_kl() (0 leaves the KL term out).
  void begin_backward(Execution execution, double weight) {
    const P share = P(static_cast<S>(per_rotation(weight)));
    for_blocks(execution, [&](Index block) {
      P parameters[Q::parameter_size], bar[Q::gradient_size];
      for (P& one : bar) one = P(S(0));
      if (weight != 0) {
        detail::load_lanes<Q::parameter_size>(parameter(block), parameters);
        q_.kl_backward(parameters, share, bar);
      }
      detail::store_lanes<Q::gradient_size>(bar, gradient(block));
    });
  }
  /// Adds the derivatives through a layer's rotations, and the derivatives of weight · mean_log_ratio().
  void add_backward(Execution execution, const BundleMaps<D, S>& maps, double weight) {
    const P share = P(static_cast<S>(per_rotation(weight)));
    for_blocks(execution, [&](Index block) {
      P parameters[Q::parameter_size], bar[Q::gradient_size];
      detail::load_lanes<Q::parameter_size>(parameter(block), parameters);
      detail::load_lanes<Q::gradient_size>(gradient(block), bar);
      q_.sample_backward(parameters, static_cast<const P*>(nullptr), maps.rotation(block),
                         maps.rotation_bar(block), share, bar);
      detail::store_lanes<Q::gradient_size>(bar, gradient(block));
    });
  }
  /// Ends the backward pass: derivatives of the raw numbers.
  void end_backward(Execution execution, const MatrixView<const S>& raw, const BundleMaps<D, S>& maps,
                    const MatrixView<S>& raw_bar) const {
    for_blocks(execution, [&](Index block) {
      P values[Raw::q + 1], parameters[Q::parameter_size], bar[Q::gradient_size], values_bar[Raw::q + 1];
      Raw::load(raw, maps, block, unit_, values);
      detail::load_lanes<Q::parameter_size>(parameter(block), parameters);
      detail::load_lanes<Q::gradient_size>(gradient(block), bar);
      q_.activate_backward(values, parameters, bar, values_bar);
      Raw::store(values_bar, maps, block, unit_, raw_bar);
    });
  }

  /// KL(Q ‖ prior), the mean over the rotations.
  [[nodiscard]] double mean_kl(Execution execution) {
    return mean(execution, [&](Index block, const P* parameters) {
      static_cast<void>(block);
      return q_.kl(parameters);
    });
  }
  /// log q − log p of a layer's rotations, the same mean.
  [[nodiscard]] double mean_log_ratio(Execution execution, const BundleMaps<D, S>& maps) {
    return mean(execution, [&](Index block, const P* parameters) {
      return q_.log_ratio(parameters, static_cast<const P*>(nullptr), maps.rotation(block));
    });
  }
  /// M, column by column, and κ of a rotation, by index k.
  [[nodiscard]] S parameter_of(Index i, int k) const noexcept { return parameter(i / W)[k * W + i % W]; }

 private:
  using Raw = detail::BundleRaw<Q::mean_size + Q::spread_size, D, S>;

  [[nodiscard]] Index blocks() const noexcept { return (count_ + W - 1) / W; }
  [[nodiscard]] S* parameter(Index block) noexcept { return parameter_.data() + block * Q::parameter_size * W; }
  [[nodiscard]] const S* parameter(Index block) const noexcept {
    return parameter_.data() + block * Q::parameter_size * W;
  }
  [[nodiscard]] S* gradient(Index block) noexcept { return gradient_.data() + block * Q::gradient_size * W; }
  [[nodiscard]] const S* gradient(Index block) const noexcept {
    return gradient_.data() + block * Q::gradient_size * W;
  }
  [[nodiscard]] double per_rotation(double weight) const noexcept {
    const Index all = part_ == nullptr ? count_ : part_->numbers().total_nodes * bundles_;
    return weight / static_cast<double>(all);
  }
  /// The index of a rotation in the whole graph, at which its noise lies.
  [[nodiscard]] std::uint32_t address(Index i) const noexcept {
    if (part_ == nullptr) return static_cast<std::uint32_t>(i);
    const Index node = part_->numbers().node[static_cast<std::size_t>(i / bundles_)];
    return static_cast<std::uint32_t>(node * bundles_ + i % bundles_);
  }
  template <class Body>
  void for_blocks(Execution execution, const Body& body) const {
    parallel_for(execution, blocks(), 4, [&](Index begin, Index end) {
      for (Index block = begin; block < end; ++block) body(block);
    });
  }
  template <class Body>
  [[nodiscard]] double mean(Execution execution, const Body& body) {
    for_blocks(execution, [&](Index block) {
      P parameters[Q::parameter_size];
      detail::load_lanes<Q::parameter_size>(parameter(block), parameters);
      S value[W];
      body(block, parameters).store(value);
      double sum = 0;
      for (Index lane = 0; lane < std::min<Index>(W, count_ - block * W); ++lane)
        sum += static_cast<double>(value[lane]);
      block_sum_[block] = sum;
    });
    double sum = 0;
    for (const double part : block_sum_) sum += part;
    return per_rotation(sum);
  }

  Q q_;
  S unit_;
  Index count_, bundles_;
  const GraphPart* part_;
  Buffer<S> parameter_, gradient_;  ///< by block and index, a pack each
  Buffer<double> block_sum_;
};

}  // namespace sheafnn::layers
