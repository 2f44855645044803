/// \file
/// Numbers to learn in .npz files: arrays of n nodes, or columns of such arrays.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/text.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npz_archive.hpp"

namespace sheafnn::io::detail {

/// Reads columns of targets of n nodes from an archive.
class TargetArrays {
 public:
  TargetArrays(const NpzArchive& archive, Index n) : archive_(&archive), n_(n) {}

  /// The columns of the array of that key: one with its name, several with the names KEY_0, KEY_1, ….
  ///
  /// \throws std::runtime_error  no such key, another shape, or an infinite number
  [[nodiscard]] std::vector<std::string> names_of(const std::string& key) {
    const Index count = array(key).columns;
    if (count == 1) return {key};
    std::vector<std::string> r;
    for (Index c = 0; c < count; ++c) {
      r.push_back(sheafnn::detail::concat(key, "_", c));
      if (!archive_->contains(r.back())) continue;
      fail(archive_->file(), "column ", c, " of '", printable(key), "' is called '", printable(r.back()),
           "', and the file has such a key; rename one of them");
    }
    return r;
  }
  /// Whether a name is the name of a key, or of a column of an array. \throws as names_of(), except for the key
  [[nodiscard]] bool contains(const std::string& name) {
    return archive_->contains(name) || find_column(name).array != nullptr;
  }
  /// The targets of a name of names_of(). A key has precedence.
  ///
  /// \throws std::runtime_error  as names_of()
  [[nodiscard]] std::vector<double> column(const std::string& name) {
    const Place place = archive_->contains(name) ? Place{&array(name), 0} : find_column(name);
    const Array& from = place.array != nullptr ? *place.array : array(name);
    std::vector<double> r;
    for (Index u = 0; u < n_; ++u) {
      r.push_back(from.values[static_cast<std::size_t>(u * from.columns + place.column)]);
    }
    return r;
  }

 private:
  struct Array {
    std::vector<double> values;  ///< n × columns
    Index columns = 1;
  };
  struct Place {
    const Array* array = nullptr;  ///< null: there is no such column
    Index column = 0;
  };

  [[nodiscard]] const Array& array(const std::string& key) {
    if (const auto known = arrays_.find(key); known != arrays_.end()) return known->second;
    const NpyArray found = archive_->array(key);
    const std::vector<Index>& shape = found.shape();
    if (shape.empty() || shape.size() > 2 || shape[0] != n_ || found.size() == 0) {
      fail(found.where(), "has shape ", found.shape_text(), "; expected numbers of the ", n_, " nodes");
    }
    Array r{found.values<double>(), found.size() / n_};
    const auto infinite = std::find_if(r.values.begin(), r.values.end(), [](double y) { return std::isinf(y); });
    if (infinite != r.values.end()) {
      fail(found.where(), "[", (infinite - r.values.begin()) / r.columns,
           "] is infinite; targets are numbers, NaN where unknown");
    }
    return arrays_.emplace(key, std::move(r)).first->second;
  }
  /// KEY_c, where the array of that key has a column c of several.
  [[nodiscard]] Place find_column(const std::string& name) {
    const std::size_t at = name.rfind('_');
    Index column = -1;
    if (at == std::string::npos || !sheafnn::detail::parse_number(std::string_view(name).substr(at + 1), column) ||
        column < 0) {
      return {};
    }
    const std::string key = name.substr(0, at);
    if (!archive_->contains(key) || name != sheafnn::detail::concat(key, "_", column)) return {};
    const Array& from = array(key);
    return from.columns > 1 && column < from.columns ? Place{&from, column} : Place{};
  }

  const NpzArchive* archive_;
  Index n_;
  std::map<std::string, Array> arrays_;  ///< those that were read
};

/// The numbers to learn of n nodes under some keys: arrays of n, n × 1 or n × k values, side by side, or columns of them.
///
/// \throws std::runtime_error  as TargetArrays, a column given twice, or, unless for prediction, a key that is missing
template <class GraphType>
void take_targets(NodeDataset<GraphType>& data, const NpzArchive& archive, std::span<const std::string> keys,
                  DatasetUse use) {
  const Index n = data.features.rows();
  TargetArrays arrays(archive, n);
  std::vector<std::vector<double>> columns;
  for (const std::string& key : keys) {
    const bool known = arrays.contains(key);
    const bool whole = archive.contains(key) || (!known && use != DatasetUse::prediction);
    for (const std::string& name : whole ? arrays.names_of(key) : std::vector<std::string>{key}) {
      if (std::find(data.target_names.begin(), data.target_names.end(), name) != data.target_names.end()) {
        fail(archive.file(), "the target '", printable(name), "' is there twice");
      }
      data.target_names.push_back(name);
      columns.push_back(
          known ? arrays.column(name)
                : std::vector<double>(static_cast<std::size_t>(n), std::numeric_limits<double>::quiet_NaN()));
    }
  }
  for (Index u = 0; u < n; ++u) {
    for (const std::vector<double>& column : columns) data.targets.push_back(column[static_cast<std::size_t>(u)]);
  }
}

}  // namespace sheafnn::io::detail
