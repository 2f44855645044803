/// \file
/// Names of classes and of feature columns in the metadata of a checkpoint, each list as one comma-separated record.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io {

/// The names of classes and of feature columns that data have, as further metadata of save_checkpoint(). Takes any data.
///
/// \tparam Data  a NodeDataset, or a GraphSet
template <class Data>
[[nodiscard]] std::map<std::string, std::string> names_of(const Data& data) {
  std::map<std::string, std::string> r;
  if (!data.class_names.empty()) r["class_names"] = csv_record(data.class_names);
  if (!data.feature_names.empty()) r["feature_names"] = csv_record(data.feature_names);
  return r;
}

/// The texts of a comma-separated record in the metadata of a checkpoint; empty if there is no such entry.
///
/// \param file      where the metadata are from, for messages
/// \param metadata  CheckpointInfo::metadata
/// \throws std::runtime_error  naming the file and the key: a damaged record
[[nodiscard]] inline std::vector<std::string> saved_names(const std::string& file,
                                                          const std::map<std::string, std::string>& metadata,
                                                          const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  CsvReader record(file + ": " + key, {found->second.begin(), found->second.end()}, ',');
  return record.next() ? record.fields() : std::vector<std::string>();
}

/// The names of a model's classes, in the order of its probabilities; empty if the file has no names.
///
/// \param class_count  of the model
/// \throws std::runtime_error  as saved_names(), and another number of names
[[nodiscard]] inline std::vector<std::string> saved_class_names(const std::string& file,
                                                                const std::map<std::string, std::string>& metadata,
                                                                Index class_count) {
  const std::string key = "class_names";
  std::vector<std::string> names = saved_names(file, metadata, key);
  if (metadata.contains(key) && static_cast<Index>(names.size()) != class_count) {
    detail::fail(file, key, " has ", names.size(), " names; there are ", class_count, " classes");
  }
  return names;
}

/// Checks by their names that data have the feature columns, of nodes and of edges, that a checkpoint was trained with.
///
/// \tparam Data  a NodeDataset, or a GraphSet
/// \throws as saved_names() and check_feature_names()
template <class Data>
void check_columns(const Data& data, const std::string& file, const std::map<std::string, std::string>& metadata) {
  check_feature_names(data.feature_names, saved_names(file, metadata, "feature_names"));
  if constexpr (requires { data.edge_feature_names; }) {
    check_feature_names(data.edge_feature_names, saved_names(file, metadata, "edge_feature_names"),
                        "edge feature column");
  }
}

}  // namespace sheafnn::io
