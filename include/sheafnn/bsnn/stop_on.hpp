/// \file
/// StopOn: the measure by which a training chooses its best epoch.
#pragma once

#include <array>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/names.hpp"

namespace sheafnn {

/// The measure by which the best epoch is chosen, computed on the validation nodes. The loss and the Brier score are
/// minimised, the others maximised. Values after `accuracy` are metrics of a Classification
/// (uncertainty/ranking_metrics.hpp).
enum class StopOn { loss, accuracy, roc_auc, average_precision, macro_f1, brier };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(StopOn) {
  return std::array{"loss", "accuracy", "roc-auc", "average-precision", "macro-f1", "brier"};
}
/// Is it neither the loss nor the accuracy, which every epoch reports?
[[nodiscard]] constexpr bool is_metric(StopOn stop_on) noexcept { return stop_on > StopOn::accuracy; }

namespace detail {

/// A metric as a score: the larger, the better.
[[nodiscard]] constexpr double metric_score(StopOn stop_on, double metric) noexcept {
  return stop_on == StopOn::brier ? -metric : metric;
}

/// Is an epoch better than the best so far? A smaller score is better, and among equal scores a smaller loss. Any score
/// is better than NaN. The first epoch is always the best so far, even if its score is infinite or NaN.
[[nodiscard]] SHEAFNN_HD constexpr bool is_better_epoch(bool first, double score, double loss, double best_score,
                                                        double best_loss) noexcept {
  const bool after_nan = !(best_score == best_score) && score == score;  // NOLINT(misc-redundant-expression)
  return first || after_nan || score < best_score || (score == best_score && loss < best_loss);
}

}  // namespace detail

}  // namespace sheafnn
