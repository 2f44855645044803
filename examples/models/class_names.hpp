/// \file
/// What programs store in a checkpoint about its training, and classes numbered as a trained model does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/saved_names.hpp>
#include <string>
#include <vector>

#include "models/program.hpp"

namespace programs {

/// What a checkpoint stores about its training, in addition to the model.
///
/// \param name  of the data
[[nodiscard]] inline std::map<std::string, std::string> checkpoint_notes(const std::string& name,
                                                                         sheafnn::Index best_epoch) {
  return {{"dataset", as_utf8(name)}, {"best_epoch", std::to_string(best_epoch)}};
}
/// The same of data that have names of classes and features.
///
/// \tparam Data  a NodeDataset, or a GraphSet
template <class Data>
[[nodiscard]] std::map<std::string, std::string> checkpoint_notes(const Data& data, sheafnn::Index best_epoch) {
  std::map<std::string, std::string> notes = checkpoint_notes(data.name, best_epoch);
  notes.merge(sheafnn::io::names_of(data));
  return notes;
}

/// Renumbers the classes of a dataset as a trained model does, and says how many labels the model does not know.
///
/// \param names        names of the model's classes; empty: the classes are numbers
/// \param class_count  of the model
template <class GraphType>
void take_class_names(sheafnn::NodeDataset<GraphType>& data, std::vector<std::string> names,
                      sheafnn::Index class_count) {
  const auto numbers = [](sheafnn::Index count) {
    std::vector<std::string> r;
    for (sheafnn::Index c = 0; c < count; ++c) r.push_back(std::to_string(c));
    return r;
  };
  if (names.empty() && !data.class_names.empty()) names = numbers(class_count);
  const auto is_number = [](const std::string& name) { return sheafnn::detail::parse_decimal(name).has_value(); };
  if (data.class_names.empty() && std::all_of(names.begin(), names.end(), is_number) && !names.empty()) {
    data.class_names = numbers(data.class_count);
  }
  const auto labelled = [&] {
    return std::count_if(data.labels.begin(), data.labels.end(), [](std::int32_t label) { return label >= 0; });
  };
  const auto before = labelled();
  sheafnn::renumber_classes(data, names);
  const auto unknown = before - labelled();
  if (unknown == 0) return;
  std::printf("%s: %td of %td labels are of classes that the model does not know; they count as unknown\n",
              data.name.c_str(), static_cast<sheafnn::Index>(unknown), static_cast<sheafnn::Index>(before));
}

}  // namespace programs
