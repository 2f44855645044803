/// \file
/// HeatOptions: which function of a graph's Laplacian 𝓛 = I − Â diffuses features (heat_operator.hpp).
///
/// Source: math: "Heat on a flat bundle".
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/names.hpp"

namespace sheafnn::layers {

/// Â = D^{-1/2} A D^{-1/2}, or D^{-1} A; rows of nodes without neighbours are 0.
enum class AdjacencyNormalisation : std::uint8_t { symmetric, random_walk };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(AdjacencyNormalisation) { return std::array{"symmetric", "random-walk"}; }

/// How exp(−t𝓛) is computed, or what takes its place.
enum class HeatExpansion : std::uint8_t {
  taylor,    ///< Σ_{k ≤ K} (−t𝓛)^k / k!
  shifted,   ///< e^{−t} Σ_{k ≤ K} (tÂ)^k / k!
  spectral,  ///< V e^{−tΛ} Vᵀ with the K smallest eigenpairs of 𝓛
  limit,     ///< t → ∞: the projection on the kernel of 𝓛
  hops       ///< Σ_j softmax(a)_j Â^k, k of hop_powers
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(HeatExpansion) {
  return std::array{"taylor", "shifted", "spectral", "limit", "hops"};
}

/// The powers that HeatExpansion::hops mixes.
inline constexpr std::array<Index, 5> hop_powers = {1, 2, 4, 8, 16};

/// Most terms of a series, and most eigenpairs.
inline constexpr Index max_heat_terms = 4096;

/// How the times of the bundles start: all at t, uniform in t ± ½, or at t/B, 2t/B, …, t.
enum class HeatStart : std::uint8_t { equal, spread, range };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(HeatStart) { return std::array{"equal", "spread", "range"}; }

/// See the file comment.
struct HeatOptions {
  HeatExpansion expansion = HeatExpansion::shifted;
  AdjacencyNormalisation normalisation = AdjacencyNormalisation::symmetric;
  bool self_loops = false;  ///< A + I in place of A
  Index terms = 8;          ///< K: the degree of a series, or the number of eigenpairs, at most n
  double time = 1;          ///< t, where it is not learned, and where it starts
  bool learned = true;      ///< do the parameters have a time for every bundle?
  HeatStart start = HeatStart::equal;

  /// Does the time matter?
  [[nodiscard]] constexpr bool timed() const noexcept {
    return expansion != HeatExpansion::limit && expansion != HeatExpansion::hops;
  }
  /// Is it a sum of powers? Otherwise a decomposition of 𝓛.
  [[nodiscard]] constexpr bool is_polynomial() const noexcept {
    return expansion != HeatExpansion::spectral && expansion != HeatExpansion::limit;
  }
  /// The highest power of a sum of powers.
  [[nodiscard]] constexpr Index degree() const noexcept {
    return expansion == HeatExpansion::hops ? hop_powers.back() : terms;
  }
  /// Are they powers of −𝓛? Otherwise of Â.
  [[nodiscard]] constexpr bool of_laplacian() const noexcept { return expansion == HeatExpansion::taylor; }
  /// Are any of the coefficients of a power not 0? Takes any power.
  [[nodiscard]] constexpr bool uses(Index power) const noexcept {
    return expansion != HeatExpansion::hops ||
           std::find(hop_powers.begin(), hop_powers.end(), power) != hop_powers.end();
  }

  friend bool operator==(const HeatOptions&, const HeatOptions&) = default;
};

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::AdjacencyNormalisation;
using layers::HeatExpansion;
using layers::HeatStart;

}  // namespace sheafnn
