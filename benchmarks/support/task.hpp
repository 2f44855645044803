/// \file
/// Data to measure with: a public graph from a folder, or a synthetic twin of exactly its size.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/npz.hpp>
#include <string>

#include "epoch_graphs.hpp"
#include "twin.hpp"

namespace benchmarks {

/// A graph of the table from the folder in the environment variable SHEAFNN_DATA (NAME.npz), or else its
/// twin.
[[nodiscard]] inline sheafnn::Dataset load_task(const EpochGraph& graph) {
  if (const char* folder = std::getenv("SHEAFNN_DATA"); folder != nullptr && *folder != '\0') {
    const std::filesystem::path file = std::filesystem::path(folder) / (std::string(graph.name) + ".npz");
    if (std::filesystem::exists(file)) return sheafnn::io::load_npz(file);
  }
  return twin(graph);
}

}  // namespace benchmarks
