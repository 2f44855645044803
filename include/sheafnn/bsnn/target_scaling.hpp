/// \file
/// TargetScaling: numbers shifted and scaled to mean 0 and deviation 1 of the training nodes, and back; mean counts.
///
/// Losses of numbers (target_losses.hpp) start from outputs near 0 and deviations near 1. Counts stay as they are; their
/// rates are multiples of the mean count of the training nodes. Several labels and ordered classes stay as they are.
/// math: "Numbers, counts and ordered classes".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/any_target_loss.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"

namespace sheafnn {

/// See the file comment.
struct TargetScaling {
  std::vector<double> mean = {}, scale = {};  ///< k each; 0 and 1 where a loss takes targets as they are
  std::vector<double> base_rates = {};        ///< k positive mean counts for Poisson; empty for other losses

  /// Fits the scaling to the known targets of training nodes. A column of one value has the scale 1, a column of zero counts
  /// the rate 1.
  ///
  /// \param targets  n × k, NaN where unknown
  /// \throws std::invalid_argument  a node out of range, a column that no training node knows, or values whose squares double
  ///         precision does not have
  [[nodiscard]] static TargetScaling fit(TargetLoss loss, const MatrixView<const double>& targets,
                                         std::span<const std::int32_t> nodes) {
    TargetScaling r;
    const bool numbers = loss == TargetLoss::squared || loss == TargetLoss::gaussian;
    for (Index c = 0; c < targets.columns(); ++c) {
      double count = 0, sum = 0, squares = 0;
      double least = std::numeric_limits<double>::infinity(), most = -least;
      const auto for_known = [&](const auto& use) {
        for (const std::int32_t u : nodes) {
          require_between("node", Index(u), 0, targets.rows() - 1);
          if (const double y = targets(u, c); !std::isnan(y)) use(y);
        }
      };
      for_known([&](double y) {
        ++count;
        sum += y;
        least = std::min(least, y);
        most = std::max(most, y);
      });
      require(count > 0, "target", c, "it is not known of any training node");
      if (numbers) {
        require(least >= -1e150 && most <= 1e150, detail::concat("target ", c), most > 1e150 ? most : least,
                "must be between -1e150 and 1e150; scale it");
        require(least == most || most - least >= 1e-150, detail::concat("target ", c), most,
                "known values differ by less than 1e-150; scale it");
      }
      const double mean = least == most ? least : sum / count;  // which rounding would move
      for_known([&](double y) { squares += (y - mean) * (y - mean); });
      const double deviation = std::sqrt(squares / count);
      r.mean.push_back(numbers ? mean : 0.0);
      r.scale.push_back(numbers && deviation > 0 ? deviation : 1.0);
      if (loss == TargetLoss::poisson) r.base_rates.push_back(mean > 0 ? mean : 1.0);
    }
    return r;
  }

  /// (y − mean)/scale of n × k values. Unchecked: their number, a multiple of k.
  [[nodiscard]] std::vector<double> scaled(std::vector<double> values) const {
    return changed(std::move(values), [&](double y, std::size_t c) { return (y - mean[c]) / scale[c]; });
  }
  /// mean + scale · y of n × k values. Unchecked: as scaled().
  [[nodiscard]] std::vector<double> unscaled(std::vector<double> values) const {
    return changed(std::move(values), [&](double y, std::size_t c) { return y * scale[c] + mean[c]; });
  }
  /// scale · y of n × k deviations. Unchecked: as scaled().
  [[nodiscard]] std::vector<double> unscaled_deviations(std::vector<double> values) const {
    return changed(std::move(values), [&](double y, std::size_t c) { return y * scale[c]; });
  }

 private:
  template <class Change>
  [[nodiscard]] std::vector<double> changed(std::vector<double> values, const Change& change) const {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = change(values[i], i % mean.size());
    return values;
  }
};

}  // namespace sheafnn
