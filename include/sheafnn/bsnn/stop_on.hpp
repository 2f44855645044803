/// \file
/// StopOn: what a training chooses its best epoch by.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace sheafnn {

/// What the best epoch is chosen by: the smallest loss or Brier score, or the largest of the others, all of the
/// validation nodes. Those after accuracy are metrics of a Classification (uncertainty/ranking_metrics.hpp).
enum class StopOn { loss, accuracy, roc_auc, average_precision, macro_f1, brier };
/// Its texts, in the order of the enumeration.
inline constexpr std::array<std::string_view, 6> stop_on_names = {"loss",     "accuracy",
                                                                  "roc-auc",  "average-precision",
                                                                  "macro-f1", "brier"};
/// Its text.
[[nodiscard]] constexpr std::string_view to_string(StopOn stop_on) {
  return stop_on_names[static_cast<std::size_t>(stop_on)];
}
/// Is it neither the loss nor the accuracy, which every epoch reports?
[[nodiscard]] constexpr bool is_metric(StopOn stop_on) noexcept { return stop_on > StopOn::accuracy; }

}  // namespace sheafnn
