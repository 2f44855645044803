/// \file
/// Epochs on the CPU, as the page of documentation has them.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sheafnn/core/errors.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "epoch_graphs.hpp"

namespace benchmarks {

/// Milliseconds by "GRAPH/MODEL/MAPS", from the rows "| texas | THEIRS → OURS (RATIO×) | …" of the page. Rows and
/// cells that are missing or written otherwise are left out.
///
/// \throws std::runtime_error  a page that cannot be read
[[nodiscard]] inline std::map<std::string, double> cpu_epochs(const std::filesystem::path& page) {
  const std::string arrow = "→";
  std::ifstream in(page);
  if (!in) throw std::runtime_error(page.string() + ": cannot be read");
  std::map<std::string, double> r;
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> cells;
    for (std::size_t begin = 0; begin < line.size();) {
      const std::size_t end = std::min(line.find('|', begin), line.size());
      cells.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
    for (const EpochGraph& graph : epoch_graphs) {
      if (cells.size() < 2 || cells[1] != sheafnn::detail::concat(" ", graph.name, " ")) continue;
      for (std::size_t i = 0; i < 6 && i + 2 < cells.size(); ++i) {
        const std::size_t place = cells[i + 2].find(arrow);
        if (place == std::string::npos) continue;
        const double value = std::strtod(cells[i + 2].c_str() + place + arrow.size(), nullptr);
        if (value > 0)
          r.emplace(sheafnn::detail::concat(graph.name, "/", epoch_models[i / 3], "/", epoch_maps[i % 3]), value);
      }
    }
  }
  return r;
}

}  // namespace benchmarks
