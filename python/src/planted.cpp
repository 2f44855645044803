/// \file
/// Tasks with a planted sheaf, and their truth as arrays.
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/sheaf/planted_by_name.hpp>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "module.hpp"

namespace python {

namespace {

using sheafnn::Index;

/// A task without its family, for use after the interpreter's lock is held again.
struct AnyTask {
  sheafnn::Dataset data;
  std::string family;
  std::size_t dimension = 0;
  bool diagonal = false;
  std::vector<double> maps;  ///< 2m × D × D, or 2m × D
  std::vector<double> concentration;
};

template <class Family>
[[nodiscard]] AnyTask without_family(sheafnn::PlantedTask<Family>&& task) {
  AnyTask r{std::move(task.data),
            std::string(Family::name),
            Family::stalk_dimension,
            Family::map_size == Family::stalk_dimension,
            {},
            std::move(task.concentration)};
  for (Index a = 0; a < r.data.graph.arc_count(); ++a) {
    const auto& map = task.sheaf.map(a);
    for (Index i = 0; i < map.rows(); ++i) {
      for (Index j = 0; j < map.cols(); ++j) r.maps.push_back(map(i, j));
    }
  }
  return r;
}

/// \returns  the dataset, the name of the family, the maps of the arcs and the edges' concentration
[[nodiscard]] nb::tuple planted(const std::string& name, Index stalk_dimension, Index nodes, Index classes,
                                double degree, double spread, double curvature, double neighbour_share,
                                double noise, Index hidden_columns, double least_concentration,
                                double most_concentration, Index splits, std::uint64_t seed) {
  AnyTask task;
  {
    const GilRelease release;
    const sheafnn::PlantedOptions options = {nodes,
                                             classes,
                                             degree,
                                             spread,
                                             curvature,
                                             neighbour_share,
                                             noise,
                                             hidden_columns,
                                             least_concentration,
                                             most_concentration,
                                             splits,
                                             seed};
    task = sheafnn::with_planted_task(name, stalk_dimension, options,
                                      [](auto&& made) { return without_family(std::move(made)); });
  }
  const std::size_t arcs = static_cast<std::size_t>(task.data.graph.arc_count()), d = task.dimension;
  const std::size_t edges = task.concentration.size();
  auto maps =
      task.diagonal ? to_numpy(std::move(task.maps), {arcs, d}) : to_numpy(std::move(task.maps), {arcs, d, d});
  auto concentration = to_numpy(std::move(task.concentration), {edges});
  return nb::make_tuple(std::move(task.data), task.family, maps, concentration);
}

}  // namespace

void bind_planted(nb::module_& module) { module.def("planted", &planted); }

}  // namespace python
