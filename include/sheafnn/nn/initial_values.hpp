/// \file
/// InitialValues: how a parameter starts, as part of its declaration (nn/parameter_list.hpp). Values are functions of the
/// stream alone, so that a seed gives the same ones everywhere.
///
/// Unchecked: given values are finite, indices and extents fit the parameter, and functions are not null.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::layers {

/// Fills the values of a parameter, row by row, from a stream of its own. They are 0 before; null: they stay so.
using InitialValues = std::function<void(const Stream&, std::span<double>)>;

/// Parameters that all start at the same value.
[[nodiscard]] SHEAFNN_NOINLINE inline InitialValues constant_values(double value) {
  return [value](const Stream&, std::span<double> values) {
    for (double& one : values) one = value;
  };
}
/// Values uniform in ±1/√inputs. Unchecked: inputs ≥ 1.
[[nodiscard]] SHEAFNN_NOINLINE inline InitialValues uniform_values(Index inputs) {
  return [inputs](const Stream& stream, std::span<double> values) {
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t word = stream.words(static_cast<std::uint32_t>(i / 4), 0).word[i % 4];
      values[i] = bound * (2 * uniform_from_word<double>(word) - 1);
    }
  };
}
/// The n × n identity.
[[nodiscard]] SHEAFNN_NOINLINE inline InitialValues identity_values(Index n) {
  return [n](const Stream&, std::span<double> values) {
    for (Index i = 0; i < n; ++i) values[static_cast<std::size_t>(i * n + i)] = 1;
  };
}
/// A Haar-distributed orthogonal n × n matrix: the rows of a normal one, orthonormalised in turn. Each is projected twice,
/// which keeps them orthogonal to rounding.
[[nodiscard]] SHEAFNN_NOINLINE inline InitialValues orthogonal_values(Index n) {
  return [n](const Stream& stream, std::span<double> values) {
    for (Index i = 0; i < n; ++i) {
      double* row = values.data() + i * n;
      for (Index j = 0; j < n; ++j) fill_normals<1>(row + j, stream, static_cast<std::uint32_t>(i * n + j));
      for (Index j = 0; j < 2 * i; ++j) {
        const double* other = values.data() + j % i * n;
        const double projection = std::inner_product(row, row + n, other, 0.0);
        for (Index k = 0; k < n; ++k) row[k] -= projection * other[k];
      }
      const double norm = std::sqrt(std::inner_product(row, row + n, row, 0.0));
      for (Index k = 0; k < n; ++k) row[k] /= norm;
    }
  };
}
/// Others times a factor.
[[nodiscard]] inline InitialValues scaled_values(InitialValues others, double factor) {
  return [others = std::move(others), factor](const Stream& stream, std::span<double> values) {
    others(stream, values);
    for (double& one : values) one *= factor;
  };
}
/// The values of `others`, replaced at some indices.
[[nodiscard]] inline InitialValues replaced_values(InitialValues others,
                                                   std::vector<std::pair<Index, double>> at) {
  return [others = std::move(others), at = std::move(at)](const Stream& stream, std::span<double> values) {
    others(stream, values);
    for (const auto& [index, value] : at) values[static_cast<std::size_t>(index)] = value;
  };
}

}  // namespace sheafnn::layers
