/// \file
/// Tasks with a planted sheaf for programs: compiled once, for all families and stalk dimensions.
#pragma once

#include <sheafnn/core/config.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/sheaf/planted_options.hpp>
#include <string>
#include <string_view>

namespace programs {

/// What --planted-... say.
struct PlantedSettings {
  sheafnn::PlantedOptions options;
  sheafnn::Index stalk_dimension = 3;
  std::string truth;  ///< file of the true sheaf; empty: no file
};

/// Generates a task, and writes its sheaf if that is wanted, as io::write_sheaf() does. The file has the concentration of
/// the edge of every arc, where the task has concentrations.
///
/// \param name  one of sheafnn::planted_names
/// \throws std::invalid_argument  as sheafnn::with_planted_task()
/// \throws std::runtime_error     the file cannot be written
[[nodiscard]] sheafnn::Dataset planted_data(std::string_view name, const PlantedSettings& settings);

}  // namespace programs
