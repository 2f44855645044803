/// \file
/// The table of epochs: our times, those of the authors' code, and the ratios.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sheafnn/core/config.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "markdown.hpp"
#include "measurement.hpp"

namespace benchmarks {

/// A graph of the table: its size, and what one epoch of the authors' code took.
///
/// Provenance: median milliseconds of one training step and one evaluation of the authors' PyTorch code (PyTorch 1.13,
/// OpenBLAS, float32) on two cores of a Xeon with AVX-512, where sgemm reached 208 GFLOP/s on one core and a copy
/// 24 GB/s. Settings as in epochs.cpp. They were measured on that machine, not on the one this runs on.
struct EpochGraph {
  std::string_view name;
  sheafnn::Index nodes, edges, features, entries, classes;
  double reference[2][3];  ///< milliseconds; [NSD, BSNN][diagonal, special orthogonal, general linear]
};
inline constexpr std::array<EpochGraph, 3> epoch_graphs = {{
    {"texas", 183, 279, 1703, 15266, 5, {{17.8, 22.6, 33.6}, {27.5, 130.4, 45.8}}},
    {"cora", 2708, 5278, 1433, 49216, 7, {{196, 347, 343}, {250, 1077, 411}}},
    {"film", 7600, 26659, 932, 40977, 5, {{475, 1110, 1035}, {551, 3818, 1486}}},
}};
inline constexpr std::array<std::string_view, 2> epoch_models = {"nsd", "bsnn"};
inline constexpr std::array<std::string_view, 3> epoch_maps = {"diagonal", "special-orthogonal", "general-linear"};

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
        const Measurement* m = find(all, sheafnn::concat(graph.name, "/", model, "/", maps));
        if (m == nullptr) {
          cells.push_back("–");
          continue;
        }
        const double ratio = (*m)["ratio"];
        cells.push_back(sheafnn::concat(figure((*m)["reference_ms"]), " → ", figure((*m)["median_ms"]), " (",
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
