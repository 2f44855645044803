#include "models/planted_data.hpp"

#include <cstddef>
#include <sheafnn/io/sheaf_file.hpp>
#include <sheafnn/posterior/posterior_parameters.hpp>
#include <sheafnn/sheaf/planted_by_name.hpp>
#include <vector>

namespace programs {

sheafnn::Dataset planted_data(std::string_view name, const PlantedSettings& settings) {
  return sheafnn::with_planted_task(name, settings.stalk_dimension, settings.options, [&](const auto& task) {
    if (!settings.truth.empty()) {
      std::vector<sheafnn::NamedMatrix> columns;
      if (!task.concentration.empty()) {
        columns.push_back({"concentration", 1, {}});
        for (sheafnn::Index a = 0; a < task.data.graph.arc_count(); ++a) {
          columns[0].values.push_back(task.concentration[static_cast<std::size_t>(task.data.graph.edge_of(a))]);
        }
      }
      sheafnn::io::write_sheaf(settings.truth, task.sheaf, columns);
    }
    return task.data;
  });
}

}  // namespace programs
