/// \file
/// The table of epochs: our times, the times of the authors' code, and the ratios.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <sheafnn/core/errors.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "epoch_graphs.hpp"
#include "figures.hpp"
#include "markdown.hpp"

namespace benchmarks {

/// Markdown table of the measurements "GRAPH/MODEL/MAPS", cells "theirs → ours (ratio)" in milliseconds, with the
/// geometric mean and the smallest of the ratios below. Cells that were not measured are dashes.
[[nodiscard]] inline std::string epoch_table(const std::vector<Measurement>& all) {
  std::string text = head({"", "NSD diag", "NSD SO", "NSD general", "BSNN diag", "BSNN SO", "BSNN general"});
  double log_sum = 0, least = std::numeric_limits<double>::infinity();
  int count = 0;
  for (const EpochGraph& graph : epoch_graphs) {
    std::vector<std::string> cells = {std::string(graph.name)};
    for (const std::string_view model : epoch_models) {
      for (const std::string_view maps : epoch_maps) {
        const Measurement* m = find(all, sheafnn::detail::concat(graph.name, "/", model, "/", maps));
        if (m == nullptr) {
          cells.push_back("–");
          continue;
        }
        const double ratio = (*m)["ratio"];
        cells.push_back(sheafnn::detail::concat(figure((*m)["reference_ms"]), " → ", figure((*m)["median_ms"]), " (",
                                        figure(ratio), "×)"));
        log_sum += std::log(ratio);
        least = std::min(least, ratio);
        ++count;
      }
    }
    text += row(cells);
  }
  if (count > 0) {
    text += format("\nGeometric mean of the ratios %s, smallest %s (%d cells).\n",
                   figure(std::exp(log_sum / static_cast<double>(count))).c_str(), figure(least).c_str(), count);
  }
  return text;
}

}  // namespace benchmarks
