/// \file
/// A task whose graph, features, labels and true sheaf are in a file.
#pragma once

#include <filesystem>
#include <sheafnn/io/datasets.hpp>
#include <sheafnn/io/npz_archive.hpp>
#include <sheafnn/sheaf/planted_task.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

namespace planted {

/// Reads a dataset and the rotation R_u of every node, F_{u⊴e} = R_u: the array `frames`, n × 3 × 3.
///
/// \throws std::runtime_error  what io::load_npz() refuses, no split, no array `frames`, one of another shape, or a
///                             matrix that is no rotation in single precision
[[nodiscard]] inline sheafnn::PlantedTask<sheafnn::SpecialOrthogonal<3>> task_of_file(
    const std::filesystem::path& path) {
  using Family = sheafnn::SpecialOrthogonal<3>;
  using sheafnn::Index;
  sheafnn::Dataset data = sheafnn::io::load_npz(path);
  const sheafnn::io::NpyArray array = sheafnn::io::NpzArchive(path).array("frames");
  if (data.splits.empty()) sheafnn::io::detail::fail(path.string(), "has no split; planted_sheaves needs one");
  const Index n = data.node_count();
  if (array.shape() != std::vector<Index>{n, 3, 3}) {
    sheafnn::io::detail::fail(array.where(), "has shape ", array.shape_text(), "; expected ", n, " x 3 x 3");
  }
  const std::vector<double> values = array.values<double>();
  std::vector<Family::Map<double>> frames;
  for (Index u = 0; u < n; ++u) {
    const Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> frame(values.data() + 9 * u);
    try {
      Family::validate<float>(u, frame.cast<float>());
    } catch (const std::invalid_argument& e) {
      sheafnn::io::detail::fail(array.where(), e.what());
    }
    frames.push_back(Family::nearest<double>(frame));
  }
  sheafnn::CellularSheaf<Family> sheaf(data.graph);
  for (Index a = 0; a < data.graph.arc_count(); ++a) {
    sheaf.set_map(a, frames[static_cast<std::size_t>(data.graph.source(a))]);
  }
  return {std::move(data), std::move(sheaf), {}};
}

}  // namespace planted
