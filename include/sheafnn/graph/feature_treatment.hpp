/// \file
/// FeaturePlan: what a network does to node features before it reads them, column by column. It turns
/// n × given_columns() values into n × columns(). fit_features.hpp makes it from the features of a graph; applied
/// to the features of any graph, it does the same. Source: math: "Features".
/// It throws std::invalid_argument for values that a plan cannot have, and for features with other columns.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/graph/features.hpp"

namespace sheafnn {

/// What happens to features before a network reads them.
enum class FeatureTreatment : std::uint8_t {
  automatic,  ///< rows for wide tables with few, non-negative entries (words, counts), otherwise columns
  rows,       ///< every row scaled to absolute sum 1
  columns,    ///< every column as befits its values: see FeatureColumn::Kind
  none        ///< as they are
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(FeatureTreatment) {
  return std::array{"automatic", "rows", "columns", "none"};
}

/// What happens to one column.
struct FeatureColumn {
  /// Where x is the value of a node.
  enum class Kind : std::uint8_t {
    as_is,      ///< of treatments that leave columns alone
    binary,     ///< 0 and 1, unchanged
    counts,     ///< few small counts, unchanged
    left_out,   ///< one value: 0
    centred,    ///< (x − centre)/scale
    ranked,     ///< heavy tails: the normal score of x's rank, by interpolation between quantiles
    scaled,     ///< most entries 0: x/scale
    logarithm,  ///< the same with heavy tails: sign(x) log₂(1 + |x|/scale)
  };
  /// Values between which ranks are interpolated: shares of the values, and the normal scores of these shares.
  static constexpr std::array<double, 13> levels = {0,    0.001, 0.01, 0.05, 0.1,   0.25, 0.5,
                                                    0.75, 0.9,   0.95, 0.99, 0.999, 1};
  static constexpr std::array<double, 13> scores = {-3.5,   -3.0902, -2.3263, -1.6449, -1.2816, -0.6745, 0,
                                                    0.6745, 1.2816,  1.6449,  2.3263,  3.0902,  3.5};

  Kind kind = Kind::as_is;
  double centre = 0;  ///< for unchanged columns: replacement for a missing value
  double scale = 1;
  std::vector<double> quantiles = {};  ///< of ranked columns, one per level, in order

  /// The value that a network reads in place of a known value. Takes any number.
  [[nodiscard]] double treated(double x) const {
    switch (kind) {
      case Kind::left_out:
        return 0;
      case Kind::centred:
        return bounded((x / 2 - centre / 2) / (scale / 2));  // halves: the difference may be infinite
      case Kind::ranked:
        return score(x);
      case Kind::scaled:
        return bounded(x / scale);
      case Kind::logarithm: {
        const double ratio = std::abs(x) / scale;
        const double size = std::isinf(ratio) ? std::log2(std::abs(x)) - std::log2(scale) : std::log2(1 + ratio);
        return std::copysign(size, x);
      }
      default:
        return x;
    }
  }
  /// What it reads in place of a missing value.
  [[nodiscard]] double missing() const { return is_as_is() ? centre : 0; }
  [[nodiscard]] bool is_as_is() const {
    return kind == Kind::as_is || kind == Kind::binary || kind == Kind::counts;
  }
  /// Does 0 become something else?
  [[nodiscard]] bool fills() const { return kind == Kind::centred || kind == Kind::ranked; }

  friend bool operator==(const FeatureColumn&, const FeatureColumn&) = default;

 private:
  /// Values far beyond the training's stay finite, in single precision as well.
  [[nodiscard]] static double bounded(double x) {
    constexpr double most = 1e30;
    return std::clamp(x, -most, most);
  }
  /// The score of a share of the values.
  [[nodiscard]] static double score_of_level(double level) {
    std::size_t i = 1;
    while (i + 1 < levels.size() && levels[i] < level) ++i;
    return scores[i - 1] + (scores[i] - scores[i - 1]) * (level - levels[i - 1]) / (levels[i] - levels[i - 1]);
  }
  /// The mean rank of values that are the quantiles first … last − 1.
  [[nodiscard]] static double score_of_ties(std::size_t first, std::size_t last) {
    return last - first == 1 ? scores[first] : score_of_level((levels[first] + levels[last - 1]) / 2);
  }
  [[nodiscard]] double score(double x) const {
    const auto ties = [&](double value) {
      const auto [first, last] = std::equal_range(quantiles.begin(), quantiles.end(), value);
      return score_of_ties(static_cast<std::size_t>(first - quantiles.begin()),
                           static_cast<std::size_t>(last - quantiles.begin()));
    };
    if (x <= quantiles.front()) return ties(quantiles.front());
    if (x >= quantiles.back()) return ties(quantiles.back());
    const auto above = std::lower_bound(quantiles.begin(), quantiles.end(), x);
    if (*above == x) return ties(x);
    const double low = *(above - 1), high = *above, from = ties(low), to = ties(high);
    return from + (to - from) * ((x / 2 - low / 2) / (high / 2 - low / 2));
  }
};

/// See the file comment. Adjacent columns with the same treatment form a run.
class FeaturePlan {
 public:
  /// Consecutive columns with the same treatment.
  struct Run {
    FeatureColumn column;
    Index count = 1;
    friend bool operator==(const Run&, const Run&) = default;
  };

  FeaturePlan() = default;
  /// \param treatment   rows, columns or none
  /// \param columns     of the features, without indicators of missing values
  /// \param indicators  columns with an indicator, which follow these, increasing
  /// \throws std::invalid_argument  the automatic treatment; values that are not finite; a scale that is not positive;
  ///         quantiles that do not increase; indicators of other columns, or unordered
  FeaturePlan(FeatureTreatment treatment, const std::vector<Run>& columns,
              std::vector<std::int32_t> indicators = {})
      : treatment_(treatment), indicators_(std::move(indicators)) {
    require(treatment != FeatureTreatment::automatic, "treatment", to_string(treatment),
            "a plan is one of rows, columns, none");
    for (const Run& run : columns) add(run);
    require(given_ >= 1, "columns of the plan", given_, "at least one is needed");
    detail::check_indicators(indicators_, given_);
  }

  /// Is nothing planned yet?
  [[nodiscard]] bool empty() const noexcept { return runs_.empty(); }
  /// Rows, columns or none; automatic where nothing is planned.
  [[nodiscard]] FeatureTreatment treatment() const noexcept { return treatment_; }
  /// Columns that features must have, without indicators of missing values.
  [[nodiscard]] Index given_columns() const noexcept { return given_; }
  /// Columns that a network reads: the given ones and the plan's indicators.
  [[nodiscard]] Index columns() const noexcept { return given_ + static_cast<Index>(indicators_.size()); }
  [[nodiscard]] const std::vector<Run>& runs() const noexcept { return runs_; }
  [[nodiscard]] const std::vector<std::int32_t>& indicators() const noexcept { return indicators_; }

  /// Does a network read the entries of features unchanged, apart from the scale of their rows?
  [[nodiscard]] bool keeps_entries(const NodeFeatures& features) const {
    return features.indicators().empty() && indicators_.empty() &&
           std::all_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.column.is_as_is(); });
  }

  /// What a network reads. Missing values are marked by the indicators of the features. An indicator that is not in the
  /// plan is left out.
  ///
  /// \param rows  number of rows to treat, from the first; the other rows stay empty; −1: all
  /// \returns     n × columns()
  /// \throws std::invalid_argument  features of another number of columns, or rows out of range
  [[nodiscard]] NodeFeatures apply(const NodeFeatures& features, Index rows = -1) const {
    if (rows < 0) rows = features.rows();
    require_between("rows", rows, 0, features.rows());
    if (features.given_columns() != given_) {
      throw_invalid_argument("features.columns", features.given_columns(),
                             detail::concat("the model was built for ", given_));
    }
    NodeFeatures r = keeps_entries(features) ? features : treated(features, rows);
    if (treatment_ == FeatureTreatment::rows) r.normalise_rows();
    return r;
  }

  /// One line: "2 columns centred and scaled, 3 binary as they are, 1 constant left out".
  [[nodiscard]] std::string describe() const {
    if (empty()) return "not treated yet";
    if (treatment_ != FeatureTreatment::columns) {
      return detail::concat(given_,
                            treatment_ == FeatureTreatment::rows ? " columns, rows scaled to sum 1"
                                                                 : " columns as they are",
                            of_indicators());
    }
    std::string text;
    const auto add = [&](Index count, std::string_view what) {
      if (count > 0) text += detail::concat(text.empty() ? "" : ", ", count, what);
    };
    using Kind = FeatureColumn::Kind;
    add(count(Kind::centred), " centred and scaled");
    add(count(Kind::ranked), " with heavy tails by rank");
    add(count(Kind::scaled), " of few entries scaled");
    add(count(Kind::logarithm), " of few entries by logarithm");
    add(count(Kind::counts), " of few counts as they are");
    add(count(Kind::binary), " binary as they are");
    add(count(Kind::as_is), " as they are");
    add(count(Kind::left_out), " constant left out");
    return detail::concat(given_, given_ == 1 ? " column: " : " columns: ", text, of_indicators());
  }

  friend bool operator==(const FeaturePlan&, const FeaturePlan&) = default;

 private:
  void add(const Run& run) {
    const FeatureColumn& c = run.column;
    require_between("count of columns", run.count, 1, Index{1} << 28);
    require(std::isfinite(c.centre), "centre of a column", c.centre, "must be finite");
    require(std::isfinite(c.scale) && c.scale > 0, "scale of a column", c.scale, "must be finite and positive");
    const bool ranked = c.kind == FeatureColumn::Kind::ranked;
    require(c.quantiles.size() == (ranked ? FeatureColumn::levels.size() : 0), "quantiles of a column",
            c.quantiles.size(),
            ranked ? "a column by rank has 13 quantiles" : "only columns by rank have quantiles");
    for (std::size_t i = 0; i < c.quantiles.size(); ++i) {
      const bool good = std::isfinite(c.quantiles[i]) && (i == 0 || c.quantiles[i - 1] <= c.quantiles[i]);
      require(good, "quantile of a column", c.quantiles[i], "quantiles must be finite and not decrease");
    }
    given_ += run.count;
    require_between("columns of the plan", given_, 0, Index{1} << 28);
    if (!runs_.empty() && runs_.back().column == c) {
      runs_.back().count += run.count;
    } else {
      runs_.push_back(run);
    }
  }
  [[nodiscard]] Index count(FeatureColumn::Kind kind) const {
    Index r = 0;
    for (const Run& run : runs_) r += run.column.kind == kind ? run.count : 0;
    return r;
  }
  [[nodiscard]] std::string of_indicators() const {
    if (indicators_.empty()) return "";
    return detail::concat(", ", indicators_.size(), " with missing values and an indicator of them");
  }

  [[nodiscard]] NodeFeatures treated(const NodeFeatures& features, Index rows) const {
    std::vector<const FeatureColumn*> column;
    std::vector<std::int32_t> filled;  // columns in which 0 becomes something else
    for (const Run& run : runs_) {
      for (Index k = 0; k < run.count; ++k) {
        if (run.column.fills()) filled.push_back(static_cast<std::int32_t>(column.size()));
        column.push_back(&run.column);
      }
    }
    std::vector<Index> offsets = {0};
    std::vector<std::int32_t> columns, missing;
    std::vector<double> values;
    const Index most = std::min(features.entries() + features.rows() * static_cast<Index>(filled.size()),
                                features.rows() * this->columns());
    columns.reserve(static_cast<std::size_t>(most));
    values.reserve(static_cast<std::size_t>(most));
    const auto store = [&](std::int32_t j, double value) {
      if (value == 0) return;
      columns.push_back(j);
      values.push_back(value);
    };
    constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();
    for (Index u = 0; u < features.rows(); ++u) {
      std::size_t i = static_cast<std::size_t>(features.offsets()[static_cast<std::size_t>(u)]);
      std::size_t last = static_cast<std::size_t>(features.offsets()[static_cast<std::size_t>(u) + 1]);
      if (u >= rows) i = last;
      const bool every_column = static_cast<Index>(last - i) == given_ && features.indicators().empty();
      if (every_column) {
        for (std::size_t j = 0; j < column.size(); ++j) {
          store(static_cast<std::int32_t>(j), column[j]->treated(features.values()[i + j]));
        }
        offsets.push_back(static_cast<Index>(values.size()));
        continue;
      }
      missing.clear();
      std::size_t end = last;
      for (; end > i && features.column_of()[end - 1] >= given_; --end) {
        missing.push_back(features.indicators()[static_cast<std::size_t>(features.column_of()[end - 1] - given_)]);
      }
      std::reverse(missing.begin(), missing.end());
      std::size_t f = 0, m = 0;
      while (u < rows) {
        const std::int32_t entry = i < end ? features.column_of()[i] : none;
        const std::int32_t fill = f < filled.size() ? filled[f] : none;
        const std::int32_t gap = m < missing.size() ? missing[m] : none;
        const std::int32_t j = std::min({entry, fill, gap});
        if (j == none) break;
        const FeatureColumn& of = *column[static_cast<std::size_t>(j)];
        store(j, j == gap ? of.missing() : of.treated(j == entry ? features.values()[i] : 0));
        i += j == entry ? 1 : 0;
        f += j == fill ? 1 : 0;
        m += j == gap ? 1 : 0;
      }
      for (const std::int32_t j : missing) {
        const auto found = std::lower_bound(indicators_.begin(), indicators_.end(), j);
        if (found == indicators_.end() || *found != j) continue;
        store(static_cast<std::int32_t>(given_ + (found - indicators_.begin())), 1);
      }
      offsets.push_back(static_cast<Index>(values.size()));
    }
    NodeFeatures r =
        NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), this->columns());
    r.set_indicators(indicators_);
    return r;
  }

  FeatureTreatment treatment_ = FeatureTreatment::automatic;
  std::vector<Run> runs_;
  std::vector<std::int32_t> indicators_;
  Index given_ = 0;
};

}  // namespace sheafnn
