/// \file
/// SheafUse: figures that show whether a network uses its learned sheaf, and a warning if it does not. sheaf_use()
/// computes them (sheaf_use.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// Mean, spread and quantiles of a list of values; NaN if the list is empty.
struct SheafQuantiles {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double low = unknown, median = unknown, high = unknown;  ///< 5, 50 and 95 %
  double deviation = unknown;                              ///< standard deviation
};

/// Spread parameters of a posterior over all incident pairs.
struct SheafSpread {
  std::string name;  ///< the posterior's name for it: kappa, sigma, …
  SheafQuantiles values;
};

/// The loss and the accuracy with other maps in place of the model's.
struct ChangedSheafLoss {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double loss = unknown;            ///< mean over the nodes, in nats
  double rise = unknown;            ///< difference to the loss with the model's own maps
  double standard_error = unknown;  ///< standard error of the rise, from its standard deviation over the nodes
  double accuracy = unknown;        ///< share of the nodes whose most probable class is their label
};

/// See the file comment. Figures that a model does not have are NaN or empty. For cooperative networks, "incident pairs"
/// means maps of nodes, and "edges" means arcs (cooperative_sheaf_use.hpp).
struct SheafUse {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  bool bayesian = false;  ///< are the maps drawn from a posterior?
  bool of_nodes = false;  ///< do the maps belong to nodes, as in cooperative networks?
  double kl = unknown;    ///< KL(posterior ‖ prior), mean over the incident pairs; NaN without closed form
  std::vector<SheafSpread> spread;
  /// For maps with D ≥ 2 that are not diagonal: the angle in degrees of the mean transports F_uᵀF_v, or of their
  /// nearest rotations. For D ≥ 4 it is the largest angle between a vector and its image.
  SheafQuantiles turn;
  double negative =
      unknown;  ///< for diagonal maps and D = 1: share of negative entries in the mean transports

  Index nodes = 0;  ///< number of nodes in the score; 0: there is no score
  double loss = unknown;
  double accuracy = unknown;
  ChangedSheafLoss permuted;  ///< maps of other edges
  ChangedSheafLoss prior;     ///< maps drawn from the prior
  ChangedSheafLoss identity;
};

namespace detail {

/// \param values  left sorted
[[nodiscard]] inline SheafQuantiles sheaf_quantiles(std::vector<double>& values) {
  SheafQuantiles r;
  if (values.empty()) return r;
  std::sort(values.begin(), values.end());
  const double last = static_cast<double>(values.size() - 1);
  const auto at = [&](double level) {  // linear between neighbours
    const double place = level * last, below = std::floor(place);
    const std::size_t i = static_cast<std::size_t>(below);
    const double next = values[std::min(i + 1, values.size() - 1)];
    return values[i] + (place - below) * (next - values[i]);
  };
  r.low = at(0.05);
  r.median = at(0.5);
  r.high = at(0.95);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / (last + 1);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  r.deviation = std::sqrt(squares / (last + 1));
  return r;
}

}  // namespace detail

/// Is there any figure? Models without edges and fixed maps have no figures. Takes any figures.
[[nodiscard]] inline bool has_figures(const SheafUse& use) {
  return use.nodes > 0 || !use.spread.empty() || !std::isnan(use.kl) || !std::isnan(use.turn.median) ||
         !std::isnan(use.negative);
}

/// A sheaf counts as used where permuting its maps raises the loss by at least this, in nats per node, …
inline constexpr double least_sheaf_rise = 0.01;
/// … and by this many standard errors.
inline constexpr double least_sheaf_errors = 2;

/// Does permuting the maps between edges change nothing beyond noise? False without a score. Takes any figures.
[[nodiscard]] inline bool is_unused(const SheafUse& use) {
  const ChangedSheafLoss& permuted = use.permuted;
  return use.nodes > 0 &&
         (permuted.rise < least_sheaf_rise || permuted.rise < least_sheaf_errors * permuted.standard_error);
}

namespace detail {

/// Options that may make a network like this one use its sheaf. The text follows "try ".
[[nodiscard]] inline std::string what_to_try(const SheafUse& use) {
  std::vector<std::string> ways;
  if (use.bayesian) ways.emplace_back("a smaller KL weight");
  ways.emplace_back("less dropout of hidden features");
  ways.emplace_back("a smaller decay of the sheaf learner");
  if (!use.of_nodes) ways.emplace_back("a network with identity maps, which is cheaper");
  std::string r;
  for (std::size_t i = 0; i < ways.size(); ++i) r += (i == 0 ? "" : i + 1 < ways.size() ? ", " : " or ") + ways[i];
  return r;
}

}  // namespace detail

/// One sentence, with options to try, if some of several trainings of one network do not use their sheaf; else empty.
/// Trainings without a score do not count. Takes any figures.
[[nodiscard]] inline std::string warning(std::span<const SheafUse> trainings) {
  const auto scored =
      std::count_if(trainings.begin(), trainings.end(), [](const auto& use) { return use.nodes > 0; });
  const auto unused = std::count_if(trainings.begin(), trainings.end(), is_unused);
  if (unused == 0) return "";
  const SheafUse& one = *std::find_if(trainings.begin(), trainings.end(), is_unused);
  const char* between = one.of_nodes ? "nodes" : "edges";
  const std::string permuting = detail::concat("with its maps permuted between ", between, " the loss ");
  const std::string advice = "; try " + detail::what_to_try(one);
  if (trainings.size() > 1) {
    return detail::concat("the sheaf is not used in ", unused, " of ", scored, " trainings: ", permuting,
                          "rises by less than ", least_sheaf_rise, " nats or ", least_sheaf_errors,
                          " standard errors", advice);
  }
  const auto rounded = [](double nats) {  // to two digits
    const double unit = nats == 0 ? 1 : std::pow(10, std::floor(std::log10(std::abs(nats))) - 1);
    return std::round(nats / unit) * unit;
  };
  return detail::concat("the sheaf is not used: ", permuting, "changes by ", rounded(one.permuted.rise),
                        " nats (standard error ", rounded(one.permuted.standard_error), ")", advice);
}
/// The same for one training.
[[nodiscard]] inline std::string warning(const SheafUse& use) { return warning(std::span(&use, 1)); }

}  // namespace sheafnn
