/// \file
/// What every family of restriction maps has to fulfil, seen from outside: its blocks are the products of the
/// matrices that dense() says its maps are, derivatives against central differences through its chart, packs against
/// scalars. A new family is tested by calling check_family<Family>().
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "posterior_checks.hpp"
#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace family_checks {

using posterior_checks::Doubles;
using posterior_checks::map_numbers;
using posterior_checks::numbers;
using sheafnn::sheaf::Gram;
using sheafnn::PointMap;
using sheafnn::SquareMatrix;
using sheafnn::sheaf::Transport;

/// A block of any shape as the D × D matrix it stands for.
template <int D, int R, int C>
SquareMatrix<double, D> as_matrix(const Eigen::Matrix<double, R, C>& block) {
  if constexpr (C > 1 || D == 1) {
    return block;
  } else if constexpr (R == 1) {
    return block(0) * SquareMatrix<double, D>::Identity();
  } else {
    return block.asDiagonal();
  }
}

template <class Block>
Block block_of(std::uint64_t seed) {
  const Doubles values = numbers(seed, static_cast<int>(Block::SizeAtCompileTime));
  Block r;
  for (Eigen::Index k = 0; k < r.size(); ++k) r.data()[k] = values[std::size_t(k)];
  return r;
}

/// The products that gram() and transport() stand for, for maps that the chart makes. Bound: D terms of a product,
/// and of maps that are orthogonal to rounding.
template <class F>
void check_blocks() {
  constexpr int D = F::stalk_dimension, size = sheafnn::detail::array_size(F::coordinate_count);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    typename F::template Map<double> a, b;
    PointMap<F>().map(numbers(1000 + seed, size, 2).data(), a);
    PointMap<F>().map(numbers(2000 + seed, size, 2).data(), b);
    const SquareMatrix<double, D> dense_a = F::dense(a), dense_b = F::dense(b);
    const double bound = 16 * D * std::numeric_limits<double>::epsilon() * dense_a.norm();
    CHECK((as_matrix<D>(F::gram(a)) - dense_a.transpose() * dense_a).norm() <= bound * dense_a.norm());
    CHECK((as_matrix<D>(F::transport(a, b)) - dense_a.transpose() * dense_b).norm() <= bound * dense_b.norm());
  }
}

/// Derivatives of ⟨G, F_aᵀF_a⟩ + ⟨Q, F_aᵀF_b⟩ along every coordinate of a and b.
template <class F>
void check_derivatives() {
  constexpr int count = F::coordinate_count, size = sheafnn::detail::array_size(count);
  using Map = typename F::template Map<double>;
  const auto gram_bar = sheafnn::sheaf::block_product(block_of<Gram<F, double>>(3000), block_of<Gram<F, double>>(3000));
  const auto transport_bar = block_of<Transport<F, double>>(3001);
  const PointMap<F> point;
  for (const double scale : {0.3, 1.5}) {
    CAPTURE(scale);
    Doubles raw = numbers(3002, 2 * size, scale);
    const auto maps = [&](Map& a, Map& b) {
      point.map(static_cast<const double*>(raw.data()), a);
      point.map(static_cast<const double*>(raw.data()) + size, b);
    };
    const auto value = [&] {
      Map a, b;
      maps(a, b);
      return rotation_checks::frobenius(gram_bar, F::gram(a)) +
             rotation_checks::frobenius(transport_bar, F::transport(a, b));
    };
    Map a, b, a_bar = Map::Constant(0), b_bar = Map::Constant(0);
    maps(a, b);
    F::gram_backward(a, gram_bar, a_bar);
    F::transport_backward(a, b, transport_bar, a_bar, b_bar);
    double raw_bar[2 * size];
    point.backward(static_cast<const double*>(raw.data()), a_bar, raw_bar);
    point.backward(static_cast<const double*>(raw.data()) + size, b_bar, raw_bar + size);
    for (int k = 0; k < 2 * size; ++k) {
      if (k % size >= count) continue;  // the place of a family without coordinates
      CAPTURE(k);
      const double expected = rotation_checks::central_difference(raw[std::size_t(k)], value);
      CHECK(std::abs(raw_bar[k] - expected) <=
            4 * rotation_checks::difference_bound * std::max(1.0, std::abs(value())));
    }
  }
}

/// gram(), transport() and their adjoints on lanes of T.
template <class F, class T>
std::vector<Doubles> block_functions(const std::vector<Doubles>& lanes) {
  using Map = typename F::template Map<T>;
  constexpr int map_size = map_numbers<F>, gram_size = Gram<F, T>::SizeAtCompileTime,
                transport_size = Transport<F, T>::SizeAtCompileTime;
  T in[2 * map_size + gram_size + transport_size];
  posterior_checks::pack_lanes(lanes, in);
  const T* next = in;
  const auto take = [&](auto& to) {
    for (Eigen::Index k = 0; k < to.size(); ++k) to.data()[k] = *next++;
  };
  Map a, b, a_bar = Map::Constant(T(0)), b_bar = Map::Constant(T(0));
  Gram<F, T> gram_bar;
  Transport<F, T> transport_bar;
  take(a);
  take(b);
  take(gram_bar);
  take(transport_bar);
  posterior_checks::Results<T> results;
  const Gram<F, T> gram = F::gram(a);
  const Transport<F, T> transport = F::transport(a, b);
  F::gram_backward(a, gram_bar, a_bar);
  F::transport_backward(a, b, transport_bar, a_bar, b_bar);
  results.put(gram.data(), gram_size);
  results.put(transport.data(), transport_size);
  results.put(a_bar.data(), map_size);
  results.put(b_bar.data(), map_size);
  return results.lanes();
}

/// Every lane against double. The numbers are below 1 in size, the sums have at most 4D terms.
template <class F, class T>
void check_lanes() {
  using S = sheafnn::math::scalar_of_t<T>;
  constexpr int D = F::stalk_dimension;
  constexpr int size =
      2 * map_numbers<F> + Gram<F, double>::SizeAtCompileTime + Transport<F, double>::SizeAtCompileTime;
  std::vector<Doubles> lanes;
  for (std::uint64_t l = 0; l < 16; ++l) lanes.push_back(numbers(4000 + l, size));
  const auto results = block_functions<F, T>(lanes);
  for (std::size_t l = 0; l < results.size(); ++l) {
    CAPTURE(l);
    CHECK(posterior_checks::difference(results[l], block_functions<F, double>({lanes[l]})[0]) <=
          16 * D * static_cast<double>(std::numeric_limits<S>::epsilon()));
  }
}

template <sheafnn::RestrictionMapFamily F>
void check_family() {
  CAPTURE(F::name);
  CAPTURE(F::stalk_dimension);
  check_blocks<F>();
  check_derivatives<F>();
  check_lanes<F, float>();
  check_lanes<F, sheafnn::math::Pack<float, 16>>();
  check_lanes<F, sheafnn::math::Pack<double, 8>>();
  posterior_checks::check_packs(PointMap<F>());
  posterior_checks::check_derivatives(PointMap<F>(), 1.5);
  posterior_checks::check_extremes<float>(PointMap<F>());
}

}  // namespace family_checks
