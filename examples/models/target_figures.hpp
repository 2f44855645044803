/// \file
/// Errors and intervals of predicted numbers, in the units of the files.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/uncertainty/conformal.hpp>
#include <sheafnn/uncertainty/intervals.hpp>
#include <string>
#include <vector>

#include "models/target_kind.hpp"

namespace programs {

/// How good the predictions of one target are for some nodes; NaN where none of them has a known target.
struct TargetFigures {
  double mean_error = std::numeric_limits<double>::quiet_NaN();   ///< mean absolute error
  double root_square = std::numeric_limits<double>::quiet_NaN();  ///< root of the mean squared error
  double coverage =
      std::numeric_limits<double>::quiet_NaN();             ///< share of the targets in their conformal intervals
  double width = std::numeric_limits<double>::quiet_NaN();  ///< mean width of these intervals
};

/// Figures of every target.
///
/// \param all    intervals, n × k, or empty
/// \param nodes  such as the test nodes
[[nodiscard]] inline std::vector<TargetFigures> target_figures(const TargetKind& kind, const NodeData& data,
                                                               const TargetPrediction& prediction,
                                                               const sheafnn::uncertainty::Intervals& all,
                                                               const std::vector<std::int32_t>& nodes) {
  const std::size_t k = kind.names().size();
  std::vector<TargetFigures> r(k);
  for (std::size_t c = 0; c < k; ++c) {
    std::vector<double> truth;
    sheafnn::uncertainty::Intervals own;
    double sum = 0, squares = 0;
    for (const std::int32_t u : nodes) {
      const std::size_t i = static_cast<std::size_t>(u) * k + c;
      const double y = data.targets[i];
      if (std::isnan(y)) continue;
      const double error = std::abs(y - prediction.expectations[i]);
      sum += error;
      squares += error * error;
      truth.push_back(y);
      if (all.lower.empty()) continue;
      own.lower.push_back(all.lower[i]);
      own.upper.push_back(all.upper[i]);
    }
    if (truth.empty()) continue;
    const double count = static_cast<double>(truth.size());
    r[c].mean_error = sum / count;
    r[c].root_square = std::sqrt(squares / count);
    if (own.lower.empty()) continue;
    const sheafnn::uncertainty::IntervalFigures figures = sheafnn::uncertainty::evaluate_intervals(own, truth);
    r[c].coverage = figures.coverage;
    r[c].width = figures.mean_width;
  }
  return r;
}

/// The same of all nodes.
[[nodiscard]] inline std::vector<TargetFigures> target_figures(const TargetKind& kind, const NodeData& data,
                                                               const TargetPrediction& prediction,
                                                               const sheafnn::uncertainty::Intervals& all) {
  std::vector<std::int32_t> nodes(static_cast<std::size_t>(data.node_count()));
  std::iota(nodes.begin(), nodes.end(), 0);
  return target_figures(kind, data, prediction, all, nodes);
}

/// One line, or nothing where no target is known. \param wanted  coverage of the intervals
inline void print_target_figures(const std::string& name, const TargetFigures& figures, double wanted) {
  if (std::isnan(figures.mean_error)) return;
  std::printf("%s: mean absolute error %.4g, root mean square error %.4g", name.c_str(), figures.mean_error,
              figures.root_square);
  if (!std::isnan(figures.coverage)) {
    std::printf("; %g%% intervals contain %.1f%%, mean width %.4g", 100 * wanted, 100 * figures.coverage,
                figures.width);
  }
  if (std::isinf(figures.width)) {
    std::printf(
        ". A coverage of %g%% needs %g validation nodes with a known target, as n of them allow at most n / (n + "
        "1)",
        100 * wanted, sheafnn::uncertainty::fewest_calibration_nodes(1 - wanted));
  }
  std::printf("\n");
}

}  // namespace programs
