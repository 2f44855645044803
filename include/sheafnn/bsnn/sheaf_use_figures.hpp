/// \file
/// SheafUse: figures that show whether the sheaf a network has learned is used, and a warning where it is not. They are
/// computed by sheaf_use() (sheaf_use.hpp).
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// Of many values; NaN of none.
struct SheafQuantiles {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double low = unknown, median = unknown, high = unknown;  ///< 5, 50 and 95 %
  double deviation = unknown;                              ///< standard deviation
};

/// Spread parameters of a posterior over all incident pairs.
struct SheafSpread {
  std::string name;  ///< as the posterior has it: kappa, sigma, …
  SheafQuantiles values;
};

/// The loss with other maps in place of the model's.
struct ChangedSheafLoss {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double loss = unknown;            ///< mean over the nodes, in nats
  double rise = unknown;            ///< above the loss with the model's own maps
  double standard_error = unknown;  ///< of the rise, from its standard deviation over the nodes
};

/// See the file comment. What a model does not have is NaN or empty.
struct SheafUse {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  bool bayesian = false;  ///< are the maps drawn from a posterior?
  double kl = unknown;    ///< KL(posterior ‖ prior), mean over the incident pairs; NaN without closed form
  std::vector<SheafSpread> spread;
  /// Of maps with D ≥ 2 that are not diagonal: degrees by which the mean transports F_uᵀF_v turn, or their nearest
  /// rotations do. For D ≥ 4 the largest angle between a vector and its image.
  SheafQuantiles turn;
  double negative =
      unknown;  ///< of diagonal maps and D = 1: share of the mean transports' entries that are negative

  Index nodes = 0;  ///< whose loss the score is; 0: there is no score
  double loss = unknown;
  ChangedSheafLoss permuted;  ///< maps of other edges
  ChangedSheafLoss prior;     ///< maps drawn from the prior
  ChangedSheafLoss identity;
};

/// A sheaf counts as used where permuting its maps raises the loss by at least this, in nats per node, …
inline constexpr double least_sheaf_rise = 0.01;
/// … and by this many standard errors.
inline constexpr double least_sheaf_errors = 2;

/// Does permuting the maps between edges change nothing beyond noise? Not without a score. Takes any.
[[nodiscard]] inline bool is_unused(const SheafUse& use) {
  const ChangedSheafLoss& permuted = use.permuted;
  return use.nodes > 0 &&
         (permuted.rise < least_sheaf_rise || permuted.rise < least_sheaf_errors * permuted.standard_error);
}

/// One sentence where the sheaf is not used, with what to try; else empty. Takes any.
[[nodiscard]] inline std::string warning(const SheafUse& use) {
  if (!is_unused(use)) return "";
  const auto rounded = [](double nats) {  // to two digits
    const double unit = nats == 0 ? 1 : std::pow(10, std::floor(std::log10(std::abs(nats))) - 1);
    return std::round(nats / unit) * unit;
  };
  return detail::concat("the sheaf is not used: with its maps permuted between edges the loss changes by ",
                        rounded(use.permuted.rise), " nats (standard error ", rounded(use.permuted.standard_error),
                        "); try ", use.bayesian ? "a smaller KL weight, " : "",
                        "less dropout of hidden features, a smaller decay of the sheaf learner, "
                        "or identity maps, which are cheaper");
}

}  // namespace sheafnn
