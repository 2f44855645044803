/// \file
/// Many samples at once: out[i] is the sample of id first_id + i, whatever the batch.
///
/// Uniform, Cayley, wrapped Cauchy and angular central Gaussian samples are drawn as many side by side as a pack has lanes.
/// They agree with sample() up to rounding. A batch of packs keeps them that way: lane l of out[i] belongs to id first_id +
/// i · lanes + l. Other distributions are drawn one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/angular_central_gaussian.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/centred_cayley.hpp"
#include "sheafnn/rotation/haar_distribution.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"

namespace sheafnn::rotation {

/// The pack that batches of Scalar are drawn in.
template <class Scalar>
using BatchPack = Pack<Scalar, lanes<Scalar>>;

/// As many rotations of R^N side by side as a pack has lanes.
template <int N, class Scalar = double>
using RotationPack = SquareMatrix<BatchPack<Scalar>, N>;

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

template <class P, class Scalar, int R, int C>
[[nodiscard]] Eigen::Matrix<P, R, C> in_all_lanes(const Eigen::Matrix<Scalar, R, C>& m) {
  Eigen::Matrix<P, R, C> r;
  for (int i = 0; i < R * C; ++i) r.data()[i] = P(m.data()[i]);
  return r;
}

/// Draws one pack of samples; what does not depend on the id is prepared once.
template <class D>
struct LaneSampler;

template <int N, class Scalar>
struct LaneSampler<HaarDistribution<N, Scalar>> {
  using P = BatchPack<Scalar>;
  explicit LaneSampler(const HaarDistribution<N, Scalar>&) {}
  [[nodiscard]] SquareMatrix<P, N> operator()(const Stream& stream, const word_of_t<P>& id,
                                              std::uint32_t first_draw) const {
    return haar_rotation<P, N>(stream, id, first_draw);
  }
};

template <int N, class Scalar>
struct LaneSampler<CayleyDistribution<N, Scalar>> {
  using P = BatchPack<Scalar>;
  Scalar kappa;
  SquareMatrix<P, N> location;
  explicit LaneSampler(const CayleyDistribution<N, Scalar>& distribution)
      : kappa(distribution.concentration()), location(in_all_lanes<P>(distribution.location())) {}
  [[nodiscard]] SquareMatrix<P, N> operator()(const Stream& stream, const word_of_t<P>& id,
                                              std::uint32_t first_draw) const {
    return multiply(centred_cayley_sample<P, N>(stream, id, kappa, first_draw), location);
  }
};

template <int Q, class Scalar>
struct LaneSampler<AngularCentralGaussian<Q, Scalar>> {
  using P = BatchPack<Scalar>;
  SquareMatrix<P, Q> factor;
  explicit LaneSampler(const AngularCentralGaussian<Q, Scalar>& distribution)
      : factor(in_all_lanes<P>(distribution.factor())) {}
  [[nodiscard]] Column<P, Q> operator()(const Stream& stream, const word_of_t<P>& id,
                                        std::uint32_t first_draw) const {
    return angular_central_gaussian_sample<P, Q>(factor, stream, id, first_draw);
  }
};

template <class Scalar>
struct LaneSampler<WrappedCauchy<Scalar>> {
  using P = BatchPack<Scalar>;
  P location, kappa;
  explicit LaneSampler(const WrappedCauchy<Scalar>& distribution)
      : location(distribution.location()), kappa(distribution.concentration()) {}
  [[nodiscard]] P operator()(const Stream& stream, const word_of_t<P>& id, std::uint32_t first_draw) const {
    const P u =
        P(Scalar(6.283185307179586476925286766559)) * uniform_from_word<P>(stream.words(id, first_draw).word[0]);
    return wrapped_cauchy_from_uniform<P>(u, location, kappa);
  }
};

/// The lanes of what a LaneSampler draws, as matrices one after another; fewer of them at a batch's end.
template <class P, int R, int C>
void take_lanes(const Eigen::Matrix<P, R, C>& packs, std::span<Eigen::Matrix<scalar_of_t<P>, R, C>> out) {
  static_assert(sizeof packs == P::width * sizeof out.front(), "matrices one after another are their numbers");
  store_rows<R * C>(packs.data(), static_cast<int>(out.size()), out.front().data());
}
template <class Scalar, int W>
void take_lanes(const Pack<Scalar, W>& pack, std::span<Scalar> out) {
  Scalar values[W];
  pack.store(values);
  std::copy_n(values, out.size(), out.begin());
}

template <class D>
using SampleOf =
    std::remove_cvref_t<decltype(sample(std::declval<const D&>(), std::declval<const Stream&>(), 0u))>;
template <class D>
using SamplePackOf = std::remove_cvref_t<decltype(std::declval<const LaneSampler<D>&>()(
    std::declval<const Stream&>(), std::declval<const word_of_t<BatchPack<typename D::Scalar>>&>(), 0u))>;

/// first, first + 1, … in the lanes.
template <class P>
[[nodiscard]] SHEAFNN_INLINE word_of_t<P> consecutive_ids(std::uint32_t first) {
  std::uint32_t ids[P::width];
  for (int l = 0; l < P::width; ++l) ids[l] = first + static_cast<std::uint32_t>(l);
  return word_of_t<P>::load(ids);
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// Distributions whose samples are drawn in packs.
template <class D>
concept DrawnInPacks = requires(const D& distribution) {
  detail::LaneSampler<D>(distribution);
};

/// out[i] = the sample of id first_id + i.
///
/// \param out         e.g. a std::vector of SquareMatrix<Scalar, N>
/// \param first_draw  as for sample()
/// Takes any span.
template <class D>
void sample_many(const D& distribution, const Stream& stream, std::uint32_t first_id,
                 std::span<detail::SampleOf<D>> out, std::uint32_t first_draw = 0) {
  if constexpr (DrawnInPacks<D>) {
    using P = BatchPack<typename D::Scalar>;
    constexpr std::size_t width = P::width;
    const detail::LaneSampler<D> sampler(distribution);
    for (std::size_t i = 0; i < out.size(); i += width) {
      const auto packs =
          sampler(stream, detail::consecutive_ids<P>(first_id + static_cast<std::uint32_t>(i)), first_draw);
      detail::take_lanes(packs, out.subspan(i, std::min(width, out.size() - i)));
    }
  } else {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = sample(distribution, stream, first_id + static_cast<std::uint32_t>(i), first_draw);
    }
  }
}

/// Lane l of out[i] = the sample of id first_id + i · lanes<Scalar> + l.
///
/// \param out  e.g. a std::vector of RotationPack<N, Scalar>
/// Takes any span.
template <DrawnInPacks D>
void sample_many(const D& distribution, const Stream& stream, std::uint32_t first_id,
                 std::span<detail::SamplePackOf<D>> out, std::uint32_t first_draw = 0) {
  using P = BatchPack<typename D::Scalar>;
  const detail::LaneSampler<D> sampler(distribution);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = sampler(stream, detail::consecutive_ids<P>(first_id + static_cast<std::uint32_t>(i * P::width)),
                     first_draw);
  }
}

}  // namespace sheafnn::rotation
