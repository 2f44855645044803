/// \file
/// Names of classes in the metadata of a checkpoint, as one comma-separated record.
#pragma once

#include <map>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/csv.hpp>
#include <string>
#include <vector>

namespace programs {

/// What a checkpoint tells of its training beside the model.
[[nodiscard]] inline std::map<std::string, std::string> checkpoint_notes(const sheafnn::Dataset& data,
                                                                         sheafnn::Index best_epoch) {
  std::map<std::string, std::string> notes = {{"dataset", data.name}, {"best_epoch", std::to_string(best_epoch)}};
  if (!data.class_names.empty()) notes["class_names"] = sheafnn::io::csv_record(data.class_names);
  return notes;
}

/// The names of a checkpoint's classes, or none where it does not know all of them.
[[nodiscard]] inline std::vector<std::string> checkpoint_class_names(
    const std::map<std::string, std::string>& notes, sheafnn::Index class_count) {
  const auto found = notes.find("class_names");
  if (found == notes.end()) return {};
  sheafnn::io::CsvReader record("class_names", {found->second.begin(), found->second.end()}, ',');
  if (!record.next() || static_cast<sheafnn::Index>(record.fields().size()) != class_count) return {};
  return record.fields();
}

}  // namespace programs
