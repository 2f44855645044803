/// \file
/// Names of classes and of features in the metadata of a checkpoint, as one comma-separated record.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/csv.hpp>
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
  if (!data.class_names.empty()) notes["class_names"] = sheafnn::io::csv_record(data.class_names);
  if (!data.feature_names.empty()) notes["feature_names"] = sheafnn::io::csv_record(data.feature_names);
  return notes;
}

/// Class names from one CSV record.
///
/// \param file  where it is from
/// \throws std::runtime_error  naming the file: a damaged record, or not `class_count` names
[[nodiscard]] inline std::vector<std::string> parse_class_names(const std::string& file, const std::string& text,
                                                                sheafnn::Index class_count) {
  sheafnn::io::CsvReader record(file + ": class_names", {text.begin(), text.end()}, ',');
  const auto count = record.next() ? static_cast<sheafnn::Index>(record.fields().size()) : 0;
  if (count != class_count) {
    sheafnn::io::detail::fail(file, "class_names has ", count, " names; there are ", class_count, " classes");
  }
  return record.fields();
}

/// The names of a checkpoint's classes; empty if it has no names.
[[nodiscard]] inline std::vector<std::string> checkpoint_class_names(
    const std::string& file, const std::map<std::string, std::string>& notes, sheafnn::Index class_count) {
  const auto found = notes.find("class_names");
  return found == notes.end() ? std::vector<std::string>() : parse_class_names(file, found->second, class_count);
}

/// The texts of a CSV record in a checkpoint's metadata; empty if there is no such entry.
///
/// \throws std::runtime_error  naming the file and the key: a damaged record
[[nodiscard]] inline std::vector<std::string> checkpoint_record(const std::string& file,
                                                                const std::map<std::string, std::string>& notes,
                                                                const std::string& key) {
  const auto found = notes.find(key);
  if (found == notes.end()) return {};
  sheafnn::io::CsvReader record(file + ": " + key, {found->second.begin(), found->second.end()}, ',');
  return record.next() ? record.fields() : std::vector<std::string>();
}
/// The names of the features of a checkpoint's training; empty if it has no names.
///
/// \throws as checkpoint_record()
[[nodiscard]] inline std::vector<std::string> checkpoint_feature_names(
    const std::string& file, const std::map<std::string, std::string>& notes) {
  return checkpoint_record(file, notes, "feature_names");
}

/// Checks by their names that a dataset has the feature columns, of nodes and of edges, that a checkpoint was trained with.
///
/// \tparam Data  a NodeDataset, or a GraphSet
/// \throws as checkpoint_record() and check_feature_names()
template <class Data>
void check_columns(const Data& data, const std::string& file, const std::map<std::string, std::string>& notes) {
  sheafnn::check_feature_names(data.feature_names, checkpoint_feature_names(file, notes));
  if constexpr (requires { data.edge_feature_names; }) {
    sheafnn::check_feature_names(data.edge_feature_names, checkpoint_record(file, notes, "edge_feature_names"),
                                 "edge feature column");
  }
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
