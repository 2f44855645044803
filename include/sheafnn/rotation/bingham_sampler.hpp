/// \file
/// Exact samples of the Bingham distribution, density ∝ exp(−Σ a_i x_i²) on the sphere S^{Q−1}, by rejection from
/// an angular central Gaussian one.
///
/// Source: Kent, Ganeiber, Mardia, "A new unified approach for the simulation of a wide class of directional
/// distributions", J. Comput. Graph. Stat. 27, 2018: envelope ACG with Ω = I + 2A/b, Σ 1/(b + 2a_i) = 1. More than
/// half of the proposals are accepted for Q = 4, more as it concentrates.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::detail {

/// The sampler for one vector a; see the file comment.
template <int Q>
class BinghamSampler {
 public:
  /// \param a  at least 0, with smallest entry 0
  explicit BinghamSampler(const Column<double, Q>& a) : a_(a) {
    // Convex and decreasing in b, at least 0 at b = 1: Newton's method climbs to the root.
    for (int i = 0; i < 100; ++i) {
      double value = -1, slope = 0;
      for (int j = 0; j < Q; ++j) {
        const double inverse = 1 / (b_ + 2 * a(j));
        value += inverse;
        slope -= inverse * inverse;
      }
      const double step = -value / slope;
      b_ += step;
      if (!(step > 1e-15 * b_)) break;
    }
    for (int j = 0; j < Q; ++j) deviation_(j) = 1 / std::sqrt(1 + 2 * a(j) / b_);
    log_bound_ = 0.5 * (Q - b_) + 0.5 * Q * std::log(b_ / Q);
  }

  /// A proposal from two draws, and what the logarithm of a uniform number must be below for it to be a sample.
  struct Proposal {
    Column<double, Q> x;
    double log_acceptance;
    double log_uniform;
  };
  /// A pure function of (stream, id, draw): takes draws `draw` and `draw` + 1.
  [[nodiscard]] Proposal propose(const Stream& stream, std::uint32_t id, std::uint32_t draw) const {
    static_assert(Q <= 4, "a proposal takes one block of normal numbers");
    const NormalBlock<double> normal = normals_from_words<double>(stream.words(id, draw));
    Proposal r;
    for (int j = 0; j < Q; ++j) r.x(j) = deviation_(j) * normal.value[j];
    r.x /= r.x.norm();
    const double y = a_.dot(r.x.cwiseProduct(r.x));
    r.log_uniform = std::log(uniform_from_word<double>(stream.words(id, draw + 1).word[0]));
    r.log_acceptance = log_bound_ - y + 0.5 * Q * std::log1p(2 * y / b_);
    return r;
  }

  /// A pure function of (stream, id). Attempt t takes draws first_draw + 2t and first_draw + 2t + 1.
  ///
  /// \throws std::runtime_error  all draws of the id used up (probability below 2⁻¹⁰⁰⁰)
  [[nodiscard]] Column<double, Q> operator()(const Stream& stream, std::uint32_t id,
                                             std::uint32_t first_draw) const {
    for (std::uint32_t draw = first_draw; draw + 1 < 4096; draw += 2) {
      const Proposal r = propose(stream, id, draw);
      if (r.log_uniform < r.log_acceptance) return r.x;
    }
    throw_no_proposal();
  }

  [[noreturn]] static void throw_no_proposal() {
    throw std::runtime_error("sample: no proposal was accepted before the draws of this id ended");
  }

 private:
  Column<double, Q> a_;
  Column<double, Q> deviation_;
  double b_ = 1;
  double log_bound_ = 0;
};

}  // namespace sheafnn::detail
