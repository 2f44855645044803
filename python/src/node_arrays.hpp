/// \file
/// What datasets have of their nodes, from and to NumPy arrays: features, labels and splits.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/features.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace python {

using sheafnn::Index;

/// A split of masks or node numbers, which Python has made numbers.
using SplitArrays = std::tuple<Input<std::int32_t>, Input<std::int32_t>, Input<std::int32_t>>;

/// Sets features from a CSR matrix, and labels, one for each node or empty.
///
/// \throws std::invalid_argument  arrays that do not fit the number of nodes
template <class GraphType>
void set_nodes(sheafnn::NodeDataset<GraphType>& data, Index nodes, const Input<std::int64_t>& offsets,
               const Input<std::int32_t>& columns, const Input<double>& values, Index feature_count,
               const Input<std::int32_t>& labels) {
  data.features =
      sheafnn::NodeFeatures::from_csr({offsets.data(), offsets.data() + offsets.size()}, vector_of(columns),
                                      vector_of(values), feature_count, sheafnn::MissingValues::mark);
  sheafnn::require(data.features.rows() == nodes, "features", data.features.rows(),
                   sheafnn::detail::concat("must have one row for each of ", nodes, " nodes"));
  data.labels = vector_of(labels);
  sheafnn::require(data.labels.empty() || static_cast<Index>(data.labels.size()) == nodes, "labels",
                   data.labels.size(), sheafnn::detail::concat("must be one for each of ", nodes, " nodes"));
}

/// offsets, columns and values of a CSR matrix; a missing value is NaN, and indicators are left out
template <class Data>
[[nodiscard]] auto feature_arrays(const Data& data) {
  const sheafnn::NodeFeatures& x = data.features;
  const std::size_t count = static_cast<std::size_t>(x.entries());
  const std::vector<std::int64_t> offsets(x.offsets().begin(), x.offsets().end());
  std::vector<std::int32_t> columns(x.column_of().begin(), x.column_of().end());
  std::vector<double> values(x.values().begin(), x.values().end());
  const Index given = x.given_columns();
  for (std::size_t i = 0; i < count; ++i) {
    if (columns[i] < given) continue;
    columns[i] = x.indicators()[static_cast<std::size_t>(columns[i] - given)];
    values[i] = std::numeric_limits<double>::quiet_NaN();
  }
  return nb::make_tuple(to_numpy(offsets, {offsets.size()}), to_numpy(std::move(columns), {count}),
                        to_numpy(std::move(values), {count}));
}

[[nodiscard]] inline std::vector<std::int32_t> sorted(const Input<std::int32_t>& nodes) {
  std::vector<std::int32_t> r = vector_of(nodes);
  std::sort(r.begin(), r.end());
  return r;
}

/// \param count  nodes, or graphs of a GraphSet, that splits are of
template <class Data>
void take_splits(Data& data, Index count, const std::vector<SplitArrays>& splits) {
  std::vector<sheafnn::Split> r;
  for (const auto& [train, validation, test] : splits) {
    r.push_back({sorted(train), sorted(validation), sorted(test)});
    validate(r.back(), count, sheafnn::detail::concat("splits[", r.size() - 1, "]"));
  }
  data.splits = std::move(r);
}
template <class GraphType>
void set_splits(sheafnn::NodeDataset<GraphType>& data, const std::vector<SplitArrays>& splits) {
  take_splits(data, data.node_count(), splits);
}

template <class Data>
[[nodiscard]] nb::list get_splits(const Data& data) {
  nb::list r;
  const auto part = [](const std::vector<std::int32_t>& nodes) { return to_numpy(nodes, {nodes.size()}); };
  for (const sheafnn::Split& split : data.splits) {
    r.append(nb::make_tuple(part(split.train), part(split.validation), part(split.test)));
  }
  return r;
}

}  // namespace python
