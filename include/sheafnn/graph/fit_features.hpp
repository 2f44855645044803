/// \file
/// fit_features(): the FeaturePlan of a table of features, from statistics of all nodes. Neither labels nor splits are
/// read. Statistics are sums, extremes and order statistics, which the parts of a graph can put together.
///
/// Source: math: "Features".
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph_part.hpp"

namespace sheafnn {

namespace detail {

/// Puts together the statistics of the parts of a graph; of a whole graph nothing is to be done.
class PartStatistics {
 public:
  /// \param part  null: a whole graph
  explicit PartStatistics(GraphPart* part) : part_(part) {}
  void sum(std::vector<double>& values) const {
    if (part_ != nullptr) part_->sum(std::span<double>(values), {});
  }
  void largest(std::vector<double>& values) const {
    if (part_ != nullptr) part_->largest(std::span<double>(values));
  }

 private:
  GraphPart* part_;
};

/// What one column shows.
struct ColumnStatistics {
  double known = 0, entries = 0;  ///< values that are not missing; known values that are not 0
  double least = 0, most = 0;
  double others = 0;                             ///< entries other than 1
  double fractional = 0;                         ///< entries that are negative or no whole number
  double mass = 0;                               ///< sum of absolute values
  double mean = 0, deviation = 0, kurtosis = 0;  ///< of columns of few entries: of their squares, about 0

  [[nodiscard]] double magnitude() const { return std::max(std::abs(least), std::abs(most)); }
  /// Are all values equal up to rounding?
  [[nodiscard]] bool constant() const {
    constexpr double rounding = 16 * std::numeric_limits<double>::epsilon();
    return !(most / 2 - least / 2 > rounding * (magnitude() / 2));
  }
  [[nodiscard]] bool binary() const { return others == 0; }
  /// Is at least half of it 0?
  [[nodiscard]] bool sparse() const { return 2 * entries <= known; }
};

/// Calls use(column, value) for all entries of the first `rows` rows, except indicators.
template <class Use>
void for_entries(const NodeFeatures& features, Index rows, const Use& use) {
  const std::size_t last = static_cast<std::size_t>(features.offsets()[static_cast<std::size_t>(rows)]);
  const Index columns = features.given_columns();
  for (std::size_t i = 0; i < last; ++i) {
    const std::int32_t j = features.column_of()[i];
    if (j < columns) use(static_cast<std::size_t>(j), features.values()[i]);
  }
}
/// Calls use(column) for all missing values of these rows.
template <class Use>
void for_missing(const NodeFeatures& features, Index rows, const Use& use) {
  if (features.indicators().empty()) return;
  const std::size_t last = static_cast<std::size_t>(features.offsets()[static_cast<std::size_t>(rows)]);
  const Index columns = features.given_columns();
  for (std::size_t i = 0; i < last; ++i) {
    const std::int32_t j = features.column_of()[i];
    if (j >= columns) use(static_cast<std::size_t>(features.indicators()[static_cast<std::size_t>(j - columns)]));
  }
}

/// Counts and extremes.
[[nodiscard]] inline std::vector<ColumnStatistics> count_columns(const NodeFeatures& features, Index rows,
                                                                 const PartStatistics& parts) {
  const std::size_t p = static_cast<std::size_t>(features.given_columns());
  constexpr double lowest = std::numeric_limits<double>::lowest();
  constexpr std::size_t fields = 5;
  std::vector<double> sums(fields * p + 1), extremes(2 * p, lowest);
  for_entries(features, rows, [&](std::size_t j, double x) {
    if (x == 0) return;
    double* of = sums.data() + fields * j;
    of[0] += 1;
    of[1] += x != 1 ? 1 : 0;
    of[2] += x < 0 || x != std::floor(x) ? 1 : 0;
    of[3] += std::abs(x);
    extremes[2 * j] = std::max(extremes[2 * j], -x);
    extremes[2 * j + 1] = std::max(extremes[2 * j + 1], x);
  });
  for_missing(features, rows, [&](std::size_t j) { sums[fields * j + 4] += 1; });
  sums.back() = static_cast<double>(rows);
  parts.sum(sums);
  parts.largest(extremes);
  std::vector<ColumnStatistics> r(p);
  for (std::size_t j = 0; j < p; ++j) {
    const double* of = sums.data() + fields * j;
    ColumnStatistics& c = r[j];
    c.known = sums.back() - of[4];
    c.entries = of[0];
    c.others = of[1];
    c.fractional = of[2];
    c.mass = of[3];
    if (c.entries > 0) {
      c.least = -extremes[2 * j];
      c.most = extremes[2 * j + 1];
    }
    if (c.entries < c.known) {
      c.least = std::min(c.least, 0.0);
      c.most = std::max(c.most, 0.0);
    }
  }
  return r;
}

/// Means, deviations and kurtoses: of values that are divided by the column's magnitude, so that nothing overflows.
inline void measure_columns(const NodeFeatures& features, Index rows, const PartStatistics& parts,
                            std::vector<ColumnStatistics>& columns) {
  const std::size_t p = columns.size();
  std::vector<double> middle(p);
  for_entries(features, rows, [&](std::size_t j, double x) {
    if (!columns[j].sparse()) middle[j] += x / columns[j].magnitude();
  });
  parts.sum(middle);
  for (std::size_t j = 0; j < p; ++j) middle[j] = columns[j].sparse() ? 0 : middle[j] / columns[j].known;
  std::vector<double> powers(3 * p);
  const auto add = [&](std::size_t j, double d, double times) {
    powers[3 * j] += times * d;
    powers[3 * j + 1] += times * (d * d);
    powers[3 * j + 2] += times * (d * d) * (d * d);
  };
  for_entries(features, rows, [&](std::size_t j, double x) {
    if (x != 0) add(j, x / columns[j].magnitude() - middle[j], 1);
  });
  parts.sum(powers);
  for (std::size_t j = 0; j < p; ++j) {
    ColumnStatistics& c = columns[j];
    if (c.entries == 0) continue;
    if (!c.sparse()) add(j, -middle[j], c.known - c.entries);  // the zeros
    const double count = c.sparse() ? c.entries : c.known;
    const double shift = c.sparse() ? 0 : powers[3 * j] / count;
    const double square = powers[3 * j + 1] / count - shift * shift;
    c.mean = (middle[j] + shift) * c.magnitude();
    c.deviation = std::sqrt(std::max(square, 0.0)) * c.magnitude();
    c.kurtosis = square > 0 ? powers[3 * j + 2] / count / (square * square) : 0;
  }
}

/// Values as integers in the same order.
[[nodiscard]] inline std::uint64_t ordered_bits(double x) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  return (bits & sign) != 0 ? ~bits : bits | sign;
}
[[nodiscard]] inline double of_ordered_bits(std::uint64_t ordered) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  return std::bit_cast<double>((ordered & sign) != 0 ? ordered & ~sign : ~ordered);
}

/// Order statistics of columns. \param shares  0 … 1; the smallest value that at least this share does not exceed
class Quantiles {
 public:
  Quantiles(std::vector<std::size_t> columns, std::vector<double> shares)
      : columns_(std::move(columns)), shares_(std::move(shares)) {}

  /// \param of_entries  of the entries' absolute values; else of all values
  [[nodiscard]] std::vector<std::vector<double>> find(const NodeFeatures& features, Index rows,
                                                      const PartStatistics& parts,
                                                      const std::vector<ColumnStatistics>& statistics,
                                                      bool of_entries) const {
    const std::size_t p = statistics.size(), count = columns_.size(), k = shares_.size();
    constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> place(p, nowhere);
    for (std::size_t c = 0; c < count; ++c) place[columns_[c]] = c;
    std::vector<std::vector<double>> sorted(count);
    std::vector<double> zeros(count);  // of this part
    for_entries(features, rows, [&](std::size_t j, double x) {
      if (place[j] != nowhere && x != 0) sorted[place[j]].push_back(of_entries ? std::abs(x) : x);
    });
    for (std::size_t c = 0; c < count; ++c) {
      std::sort(sorted[c].begin(), sorted[c].end());
      if (!of_entries) zeros[c] = static_cast<double>(rows) - static_cast<double>(sorted[c].size());
    }
    if (!of_entries) {
      for_missing(features, rows, [&](std::size_t j) {
        if (place[j] != nowhere) zeros[place[j]] -= 1;
      });
    }
    // Bisection over all values: what is summed are counts, so that any parts find the same.
    std::vector<std::uint64_t> low(count * k, ordered_bits(std::numeric_limits<double>::lowest())),
        high(count * k, ordered_bits(std::numeric_limits<double>::max()));
    std::vector<double> below(count * k);
    for (int step = 0; step < 64; ++step) {
      for (std::size_t i = 0; i < below.size(); ++i) {
        const double at = of_ordered_bits(low[i] + (high[i] - low[i]) / 2);
        const std::vector<double>& values = sorted[i / k];
        below[i] = static_cast<double>(std::upper_bound(values.begin(), values.end(), at) - values.begin());
        if (at >= 0) below[i] += zeros[i / k];
      }
      parts.sum(below);
      for (std::size_t i = 0; i < below.size(); ++i) {
        const ColumnStatistics& of = statistics[columns_[i / k]];
        const double all = of_entries ? of.entries : of.known;
        const double rank = std::clamp(std::ceil(shares_[i % k] * all), 1.0, all);
        const std::uint64_t middle = low[i] + (high[i] - low[i]) / 2;
        if (low[i] == high[i]) continue;
        (below[i] >= rank ? high[i] : low[i]) = below[i] >= rank ? middle : middle + 1;
      }
    }
    std::vector<std::vector<double>> r(count);
    for (std::size_t i = 0; i < high.size(); ++i) r[i / k].push_back(of_ordered_bits(high[i]) + 0.0);
    return r;
  }

 private:
  std::vector<std::size_t> columns_;
  std::vector<double> shares_;
};

/// Does a table have words, counts or the like? It is wide; its entries are few, non-negative and of similar size, whole
/// numbers or shares; and no column has most of them. Amounts are not such a table, since their rows differ in size.
[[nodiscard]] inline bool suits_rows(const NodeFeatures& features, const std::vector<ColumnStatistics>& columns) {
  constexpr std::size_t wide = 50;
  constexpr double few = 0.2, most = 0.2, similar = 10;
  if (columns.size() < wide || !features.indicators().empty()) return false;
  double entries = 0, cells = 0, mass = 0, largest = 0, squares = 0;
  for (const ColumnStatistics& c : columns) {
    if (c.least < 0 || (c.fractional > 0 && c.most > 1)) return false;
    entries += c.entries;
    cells += c.known;
    mass += c.mass;
    largest = std::max(largest, c.mass);
    squares += c.sparse() ? c.entries * c.deviation * c.deviation
                          : c.known * (c.deviation * c.deviation + c.mean * c.mean);
  }
  return entries <= few * cells && largest <= most * mass && squares * entries <= similar * mass * mass;
}

/// The kinds of columns, and all values but quantiles.
[[nodiscard]] inline FeatureColumn plan_column(const ColumnStatistics& c) {
  using Kind = FeatureColumn::Kind;
  constexpr double heavy = 10, small = 2;  // kurtosis; root mean square of counts
  FeatureColumn r;
  if (c.known == 0 || c.constant() || !(c.deviation >= std::numeric_limits<double>::min())) {
    r.kind = Kind::left_out;
  } else if (c.binary()) {
    r.kind = Kind::binary;
    r.centre = c.sparse() ? 0 : c.mean;
  } else if (c.sparse() && c.fractional == 0 && c.deviation <= small) {
    r.kind = Kind::counts;
  } else if (c.sparse()) {
    r.kind = c.kurtosis > heavy ? Kind::logarithm : Kind::scaled;
    r.scale = c.deviation;
  } else if (c.kurtosis > heavy) {
    r.kind = Kind::ranked;
  } else {
    r.kind = Kind::centred;
    r.centre = c.mean;
    r.scale = c.deviation;
  }
  return r;
}

}  // namespace detail

/// What a network does to these features, and to the features of other graphs after it; see the file comment.
///
/// \param part  null: the features belong to a whole graph. Otherwise they belong to this part, and all parts must call
///              this function, since they combine their statistics. Rows after the part's own nodes are not read
/// \throws std::invalid_argument  features without rows or columns. Unchecked: that part and features belong together
[[nodiscard]] inline FeaturePlan fit_features(const NodeFeatures& features, FeatureTreatment treatment,
                                              GraphPart* part = nullptr) {
  using Kind = FeatureColumn::Kind;
  const Index rows = part == nullptr ? features.rows() : part->numbers().own;
  require(features.rows() >= 1, "features.rows", features.rows(), "at least one is needed");
  require(features.columns() >= 1, "features.columns", features.columns(), "at least one is needed");
  const detail::PartStatistics parts(part);
  std::vector<detail::ColumnStatistics> statistics = detail::count_columns(features, rows, parts);
  detail::measure_columns(features, rows, parts, statistics);
  if (treatment == FeatureTreatment::automatic) {
    treatment = detail::suits_rows(features, statistics) ? FeatureTreatment::rows : FeatureTreatment::columns;
  }
  std::vector<FeaturePlan::Run> runs;
  std::vector<std::size_t> ranked, logarithms;
  for (std::size_t j = 0; j < statistics.size(); ++j) {
    FeatureColumn column;
    if (treatment == FeatureTreatment::columns) {
      column = detail::plan_column(statistics[j]);
      if (column.kind == Kind::ranked) ranked.push_back(j);
      if (column.kind == Kind::logarithm) logarithms.push_back(j);
    } else if (!statistics[j].sparse()) {
      column.centre = statistics[j].mean;
    }
    runs.push_back({std::move(column), 1});
  }
  if (!ranked.empty()) {
    const std::vector<double> levels(FeatureColumn::levels.begin(), FeatureColumn::levels.end());
    const auto found = detail::Quantiles(ranked, levels).find(features, rows, parts, statistics, false);
    for (std::size_t c = 0; c < ranked.size(); ++c) runs[ranked[c]].column.quantiles = found[c];
  }
  if (!logarithms.empty()) {
    const auto found = detail::Quantiles(logarithms, {0.5}).find(features, rows, parts, statistics, true);
    for (std::size_t c = 0; c < logarithms.size(); ++c) runs[logarithms[c]].column.scale = found[c].front();
  }
  return {treatment, runs, {features.indicators().begin(), features.indicators().end()}};
}

}  // namespace sheafnn
