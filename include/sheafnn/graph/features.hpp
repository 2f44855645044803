/// \file
/// NodeFeatures: an n × p matrix of node features, stored by its non-zero entries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

namespace detail {

/// \throws std::invalid_argument  indicators that do not increase within [0, columns)
inline void check_indicators(std::span<const std::int32_t> indicators, Index columns) {
  for (std::size_t i = 0; i < indicators.size(); ++i) {
    const bool good =
        indicators[i] >= 0 && indicators[i] < columns && (i == 0 || indicators[i - 1] < indicators[i]);
    if (good) continue;
    throw_invalid_argument(concat("indicators[", i, "]"), indicators[i],
                           concat("must increase within [0, ", columns, ")"));
  }
}

/// Are all of them finite as numbers of type S? Without branches: rows of features are checked in every step of a training on
/// samples. Takes any numbers.
template <class S = double>
[[nodiscard]] SHEAFNN_NOINLINE inline bool all_finite(std::span<const double> values) {
  constexpr double most = std::numeric_limits<S>::max();
  int beyond = 0;
  for (const double value : values) beyond |= !(std::abs(value) <= most);
  return beyond == 0;
}
/// Do they increase within [0, columns)? Takes any numbers.
[[nodiscard]] SHEAFNN_NOINLINE inline bool increases_within(std::span<const std::int32_t> numbers, Index columns) {
  if (numbers.empty()) return true;
  int falls = 0;
  for (std::size_t i = 1; i < numbers.size(); ++i) falls |= numbers[i - 1] >= numbers[i];
  return falls == 0 && numbers.front() >= 0 && numbers.back() < columns;
}

}  // namespace detail

/// What becomes of NaN in an array of features.
enum class MissingValues : std::uint8_t {
  refuse,  ///< an error
  mark     ///< a missing value: its column has an indicator, a further column that is 1 where a value is missing
};

/// Sparse n × p matrix (CSR): row u holds the non-zero features of node u, columns increasing.
/// Dense matrices are stored the same way; their zeros are left out. After the columns of the table there may be indicators of
/// missing values (indicators()), which count among columns(). Missing values themselves are not stored.
class NodeFeatures {
 public:
  NodeFeatures() = default;

  /// Takes a row-major dense matrix; zeros are left out.
  ///
  /// \throws std::invalid_argument  wrong size, rows or columns outside 0 … 2147483647, or an entry that is infinite or,
  ///         unless missing values are marked, NaN
  static NodeFeatures from_dense(std::span<const double> values, Index rows, Index columns,
                                 MissingValues missing = MissingValues::refuse) {
    return dense(values, rows, columns, missing);
  }
  /// The same for single precision.
  static NodeFeatures from_dense(std::span<const float> values, Index rows, Index columns,
                                 MissingValues missing = MissingValues::refuse) {
    return dense(values, rows, columns, missing);
  }

  /// Takes CSR arrays without changes: offsets (rows + 1), columns increasing within a row, values.
  ///
  /// \throws std::invalid_argument  inconsistent arrays, a column outside [0, columns), or a value that is infinite or,
  ///         unless missing values are marked, NaN
  static NodeFeatures from_csr(std::vector<Index> offsets, std::vector<std::int32_t> column_of,
                               std::vector<double> values, Index columns,
                               MissingValues missing = MissingValues::refuse) {
    require_extent("columns", columns);
    require(!offsets.empty() && offsets.front() == 0 && offsets.back() == static_cast<Index>(values.size()) &&
                column_of.size() == values.size(),
            "features", values.size(), "offsets, columns and values must agree in length");
    for (std::size_t u = 0; u + 1 < offsets.size(); ++u) {
      require(offsets[u] <= offsets[u + 1] && offsets[u + 1] <= offsets.back(),
              ArgumentName({}, "features.offsets", u + 1), offsets[u + 1], "offsets must not decrease");
      const std::size_t first = static_cast<std::size_t>(offsets[u]),
                        count = static_cast<std::size_t>(offsets[u + 1]) - first;
      if (detail::increases_within(std::span(column_of).subspan(first, count), columns) &&
          detail::all_finite(std::span(values).subspan(first, count))) {
        continue;
      }
      for (Index k = offsets[u]; k < offsets[u + 1]; ++k) {
        const std::size_t i = static_cast<std::size_t>(k);
        const bool increasing = k == offsets[u] || column_of[i - 1] < column_of[i];
        const bool good = std::isfinite(values[i]) || (missing == MissingValues::mark && std::isnan(values[i]));
        if (column_of[i] < 0 || column_of[i] >= columns || !increasing || !good) {
          throw_invalid_argument(detail::concat("features[", u, "]"),
                                 detail::concat("column ", column_of[i], " with value ", values[i]),
                                 detail::concat("columns must increase within [0, ", columns,
                                                ") and values must be finite"));
        }
      }
    }
    NodeFeatures r;
    r.columns_ = columns;
    r.offset_ = std::move(offsets);
    r.column_ = std::move(column_of);
    r.value_ = std::move(values);
    if (missing == MissingValues::mark) r.mark_missing();
    return r;
  }

  /// One-hot node numbers, n × n: for graphs without features. A model trained on them fits that graph only.
  ///
  /// \throws std::invalid_argument  n outside 0 … 2147483647
  static NodeFeatures identity(Index n) {
    require_extent("nodes", n);
    NodeFeatures r;
    r.columns_ = n;
    r.value_.assign(static_cast<std::size_t>(n), 1.0);
    for (Index u = 0; u < n; ++u) {
      r.column_.push_back(static_cast<std::int32_t>(u));
      r.offset_.push_back(u + 1);
    }
    return r;
  }

  [[nodiscard]] Index rows() const noexcept { return static_cast<Index>(offset_.size()) - 1; }
  [[nodiscard]] Index columns() const noexcept { return columns_; }
  /// Columns of the table, without the indicators that follow them.
  [[nodiscard]] Index given_columns() const noexcept { return columns_ - static_cast<Index>(indicators_.size()); }
  /// Columns with missing values, in increasing order. For k such columns, the last k of columns() are the indicators.
  [[nodiscard]] std::span<const std::int32_t> indicators() const noexcept { return indicators_; }
  /// Says that the last columns are indicators of these. Unchecked: that their entries are 1, and that a row with one has
  /// no entry in the column that it indicates.
  ///
  /// \throws std::invalid_argument  the indices do not increase, or are not indices of columns before the indicators
  void set_indicators(std::vector<std::int32_t> indicators) {
    detail::check_indicators(indicators, columns_ - static_cast<Index>(indicators.size()));
    indicators_ = std::move(indicators);
  }
  /// These rows as a matrix of their own. Unchecked: their indices.
  [[nodiscard]] NodeFeatures rows_at(std::span<const Index> rows) const {
    NodeFeatures r;
    r.columns_ = columns_;
    r.indicators_ = indicators_;
    r.offset_.reserve(rows.size() + 1);
    for (const Index row : rows) {
      const std::size_t u = static_cast<std::size_t>(row);
      r.offset_.push_back(r.offset_.back() + offset_[u + 1] - offset_[u]);
    }
    r.column_.reserve(static_cast<std::size_t>(r.offset_.back()));
    r.value_.reserve(static_cast<std::size_t>(r.offset_.back()));
    for (std::size_t i = 0; i < rows.size();) {
      const std::size_t first = static_cast<std::size_t>(rows[i]);
      std::size_t past = first;
      for (; i < rows.size() && rows[i] == static_cast<Index>(past); ++i) ++past;  // rows that follow each other
      const auto copy = [&](const auto& from, auto& to) {
        to.insert(to.end(), from.begin() + offset_[first], from.begin() + offset_[past]);
      };
      copy(column_, r.column_);
      copy(value_, r.value_);
    }
    return r;
  }
  /// Number of stored (non-zero) entries.
  [[nodiscard]] Index entries() const noexcept { return static_cast<Index>(value_.size()); }
  [[nodiscard]] std::span<const Index> offsets() const noexcept { return offset_; }
  [[nodiscard]] std::span<const std::int32_t> column_of() const noexcept { return column_; }
  [[nodiscard]] std::span<const double> values() const noexcept { return value_; }

  /// Scales every row to absolute sum 1 (math: X has rows of sum 1); empty rows do not change.
  void normalise_rows() {
    for (std::size_t u = 0; u + 1 < offset_.size(); ++u) {
      const std::span<double> row(value_.data() + offset_[u], static_cast<std::size_t>(offset_[u + 1] - offset_[u]));
      double sum = 0;
      for (const double x : row) sum += std::abs(x);
      if (std::isinf(sum)) {  // of values that are all finite: of their halves, quarters, …
        for (double& x : row) x /= static_cast<double>(2 * row.size());
        sum = 0;
        for (const double x : row) sum += std::abs(x);
      }
      if (sum == 0) continue;
      for (double& x : row) x /= sum;
    }
  }

 private:
  /// So that products of two do not overflow, and 32 bits hold a number of one.
  static void require_extent(std::string_view name, Index extent) {
    require_between(name, extent, 0, std::numeric_limits<std::int32_t>::max());
  }
  template <class T>
  static NodeFeatures dense(std::span<const T> values, Index rows, Index columns, MissingValues missing) {
    require_extent("rows", rows);
    require_extent("columns", columns);
    require(static_cast<Index>(values.size()) == rows * columns, "features", values.size(),
            detail::concat("expected rows * columns = ", rows * columns, " values"));
    NodeFeatures r;
    r.columns_ = columns;
    r.offset_.reserve(static_cast<std::size_t>(rows) + 1);
    for (Index u = 0; u < rows; ++u) {
      for (Index j = 0; j < columns; ++j) {
        const T value = values[static_cast<std::size_t>(u * columns + j)];
        if (!std::isfinite(value) && !(missing == MissingValues::mark && std::isnan(value))) {
          throw_invalid_argument(detail::concat("features[", u, ", ", j, "]"), value, "features must be finite");
        }
        if (value != T(0)) {
          r.column_.push_back(static_cast<std::int32_t>(j));
          r.value_.push_back(value);
        }
      }
      r.offset_.push_back(static_cast<Index>(r.value_.size()));
    }
    if (missing == MissingValues::mark) r.mark_missing();
    return r;
  }
  /// Removes entries that are NaN, and appends indicators of the columns that have some.
  void mark_missing() {
    for (std::size_t i = 0; i < value_.size(); ++i) {
      if (std::isnan(value_[i])) indicators_.push_back(column_[i]);
    }
    if (indicators_.empty()) return;
    std::sort(indicators_.begin(), indicators_.end());
    indicators_.erase(std::unique(indicators_.begin(), indicators_.end()), indicators_.end());
    require_extent("columns with their indicators", columns_ + static_cast<Index>(indicators_.size()));
    std::vector<std::int32_t> gaps;
    std::size_t to = 0, from = 0;
    for (std::size_t u = 0; u + 1 < offset_.size(); ++u) {  // a row does not grow: a gap becomes an indicator
      gaps.clear();
      for (; static_cast<Index>(from) < offset_[u + 1]; ++from) {
        if (std::isnan(value_[from])) {
          const auto number = std::lower_bound(indicators_.begin(), indicators_.end(), column_[from]);
          gaps.push_back(static_cast<std::int32_t>(columns_ + (number - indicators_.begin())));
        } else {
          column_[to] = column_[from];
          value_[to++] = value_[from];
        }
      }
      for (const std::int32_t j : gaps) {
        column_[to] = j;
        value_[to++] = 1;
      }
    }
    columns_ += static_cast<Index>(indicators_.size());
  }

  Index columns_ = 0;
  std::vector<std::int32_t> indicators_;
  std::vector<Index> offset_ = {0};
  std::vector<std::int32_t> column_;
  std::vector<double> value_;
};

namespace detail {

/// \throws std::invalid_argument  a feature that is infinite as a number of type S
template <class S>
void require_finite_as(const NodeFeatures& features) {
  if (all_finite<S>(features.values())) return;
  std::size_t i = 0;
  for (Index u = 0; u < features.rows(); ++u) {
    for (; static_cast<Index>(i) < features.offsets()[static_cast<std::size_t>(u) + 1]; ++i) {
      const double value = features.values()[i];
      if (std::isfinite(static_cast<S>(value))) continue;
      throw_invalid_argument(concat("features[", u, ", ", features.column_of()[i], "]"), value,
                             concat("a model of this precision has numbers up to ", std::numeric_limits<S>::max()));
    }
  }
}

}  // namespace detail

}  // namespace sheafnn
