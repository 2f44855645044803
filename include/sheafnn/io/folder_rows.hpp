/// \file
/// FolderRows: a node classification task in a folder of .npy arrays, of which only the rows that are asked for are read.
/// With train_on_samples() (bsnn/sampled_training.hpp) the graph may be larger than memory. In memory are the labels
/// and the split, 4 bytes a node each.
///
/// The arrays are listed in distributed/graph_folder.hpp, with which ranks of MPI read their own rows of such a folder.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph_rows.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/graph_folder_files.hpp"
#include "sheafnn/io/mapped_array.hpp"

namespace sheafnn::io {

/// See the file comment. Rows are checked when they are read.
class FolderRows final : public GraphRows {
 public:
  /// \throws MissingFile         no such folder, or one without a file
  /// \throws std::runtime_error  a file that is damaged or of another shape, type or length than the others. Or a label or a
  ///                             mask out of range, a node in two masks, or more than 2³¹ − 1 nodes or columns. Or an
  ///                             edge in one direction only, among the first four of at most 1000 nodes
  explicit FolderRows(const std::filesystem::path& folder) : graph_(folder) {
    const Index nodes = node_count();
    constexpr Index most = std::numeric_limits<std::int32_t>::max();
    if (nodes > most) detail::fail(graph_.indptr.name(), nodes, " nodes; at most ", most, " are supported");
    if (std::filesystem::exists(folder / "features.npy")) {
      dense_.emplace(folder / "features.npy");
      if (dense_->rows() != nodes) detail::fail(dense_->name(), dense_->rows(), " rows; must be ", nodes);
      features_ = dense_->columns();
    } else {
      const MappedNumbers columns = numbers(folder / "features_columns.npy", 1);
      features_ = columns.at(0);
      MappedNumbers entries = numbers(folder / "features_indices.npy");
      const Index count = entries.rows();
      sparse_.emplace(numbers(folder / "features_indptr.npy", nodes + 1), std::move(entries),
                      detail::open_numbers<MappedArray>(folder / "features_values.npy", count));
      detail::check_ends(sparse_->indptr, sparse_->indices);
    }
    if (features_ < 0 || features_ > most)
      detail::fail(folder.string(), features_, " columns of features; must be between 0 and ", most);
    check_directions();
    read_labels(folder);
    read_masks(folder);
  }

  [[nodiscard]] Index node_count() const override { return graph_.nodes(); }
  /// M, of undirected edges.
  [[nodiscard]] Index edge_count() const { return graph_.indices.rows() / 2; }
  [[nodiscard]] Index feature_count() const override { return features_; }
  [[nodiscard]] std::span<const std::int32_t> labels() const override { return labels_; }
  [[nodiscard]] Index class_count() const override { return classes_; }
  /// The nodes of the three masks.
  [[nodiscard]] const Split& split() const noexcept { return split_; }

  /// \throws std::runtime_error  offsets that decrease or are out of range
  [[nodiscard]] Index degree(Index u) const override {
    const auto [begin, end] = row_of(graph_.indptr, graph_.indices, u);
    return end - begin;
  }
  /// \throws std::runtime_error  a number that is not another node's, or neighbours that do not increase
  [[nodiscard]] Index neighbour(Index u, Index k) const override {
    const Index place = graph_.indptr.at(u) + k, v = graph_.indices.at(place);
    detail::check_neighbour(graph_.indices.name(), u, v, k > 0 ? graph_.indices.at(place - 1) : Index{-1},
                            node_count());
    return v;
  }
  /// \throws std::runtime_error  a value that is not finite, or columns that are out of range or do not increase
  void append_features(Index u, std::vector<std::int32_t>& columns, std::vector<double>& values) const override {
    const auto check = [&](const std::string& name, Index column, double value) {
      if (!std::isfinite(value)) {
        detail::fail(name, "node ", u, " has the value ", value, " in column ", column, "; features are finite");
      }
    };
    if (dense_) {
      std::size_t to = values.size();
      values.resize(to + static_cast<std::size_t>(features_));
      columns.resize(values.size());
      const std::span<double> row = std::span(values).subspan(to);
      dense_->numbers(u * features_, row);
      if (!sheafnn::detail::all_finite(row)) {
        for (Index j = 0; j < features_; ++j) check(dense_->name(), j, row[static_cast<std::size_t>(j)]);
      }
      for (std::size_t j = 0; j < row.size(); ++j) {  // without branches: the next number overwrites a 0
        columns[to] = static_cast<std::int32_t>(j);
        values[to] = row[j];
        to += row[j] != 0 ? 1 : 0;
      }
      values.resize(to);
      columns.resize(to);
      return;
    }
    const auto [begin, end] = row_of(sparse_->indptr, sparse_->indices, u);
    Index last = -1;
    for (Index k = begin; k < end; ++k) {
      const Index column = sparse_->indices.at(k);
      if (column <= last || column >= features_) {
        detail::fail(sparse_->indices.name(), "node ", u, " has a column ", column,
                     "; columns must increase and be below ", features_);
      }
      const double value = sparse_->values.number(k);
      check(sparse_->values.name(), last = column, value);
      if (value == 0) continue;
      columns.push_back(static_cast<std::int32_t>(column));
      values.push_back(value);
    }
  }

 private:
  struct SparseFeatures {
    MappedNumbers indptr, indices;
    MappedArray values;
    SparseFeatures(MappedNumbers&& of_rows, MappedNumbers&& columns, MappedArray&& numbers)
        : indptr(std::move(of_rows)), indices(std::move(columns)), values(std::move(numbers)) {}
  };

  [[nodiscard]] static MappedNumbers numbers(const std::filesystem::path& path, Index rows = -1) {
    return detail::open_numbers<MappedNumbers>(path, rows);
  }
  [[nodiscard]] static std::pair<Index, Index> row_of(const MappedNumbers& offsets, const MappedNumbers& entries,
                                                      Index u) {
    const Index begin = offsets.at(u), end = offsets.at(u + 1);
    detail::check_offsets(offsets.name(), u, begin, end, entries.rows());
    return {begin, end};
  }
  /// Refuses an arc whose other direction is missing, among the first four arcs of at most 1000 nodes. To check all arcs
  /// would read the whole graph.
  void check_directions() const {
    for (Index u = 0, step = 1 + node_count() / 1000; u < node_count(); u += step) {
      for (Index k = 0, count = std::min<Index>(degree(u), 4); k < count; ++k) {
        const Index v = neighbour(u, k), end = degree(v);
        Index low = 0;
        for (Index high = end; low < high;) {
          const Index middle = low + (high - low) / 2;
          neighbour(v, middle) < u ? low = middle + 1 : high = middle;
        }
        if (low < end && neighbour(v, low) == u) continue;
        detail::fail(graph_.indices.name(), "node ", u, " has the neighbour ", v, ", and node ", v,
                     " lacks the neighbour ", u, "; every edge must be listed in both directions");
      }
    }
  }
  void read_labels(const std::filesystem::path& folder) {
    const MappedNumbers labels = numbers(folder / "labels.npy", node_count());
    labels_.reserve(static_cast<std::size_t>(node_count()));
    for (Index u = 0; u < node_count(); ++u) {
      const Index label = labels.at(u);
      if (label < -1 || label >= 1'000'000'000) {
        detail::fail(labels.name(), "entry ", u, " is ", label,
                     "; a label is -1 or a number of a class, below 1000000000");
      }
      labels_.push_back(static_cast<std::int32_t>(label));
      classes_ = std::max(classes_, label + 1);
    }
  }
  void read_masks(const std::filesystem::path& folder) {
    std::vector<bool> taken(static_cast<std::size_t>(node_count()));
    const auto read = [&](const char* name, std::vector<std::int32_t>& nodes) {
      const MappedMask mask = detail::open_numbers<MappedMask>(folder / name, node_count());
      for (Index u = 0; u < node_count(); ++u) {
        const Index in = mask.at(u);
        if (in != 0 && in != 1) detail::fail(mask.name(), "entry ", u, " is ", in, "; must be 0 or 1");
        if (in == 0) continue;
        if (taken[static_cast<std::size_t>(u)]) detail::fail(mask.name(), "node ", u, " is in another mask, too");
        taken[static_cast<std::size_t>(u)] = true;
        nodes.push_back(static_cast<std::int32_t>(u));
      }
    };
    read("train_mask.npy", split_.train);
    if (std::filesystem::exists(folder / "val_mask.npy")) read("val_mask.npy", split_.validation);
    if (std::filesystem::exists(folder / "test_mask.npy")) read("test_mask.npy", split_.test);
  }

  detail::GraphFiles<MappedNumbers> graph_;
  std::optional<MappedArray> dense_;
  std::optional<SparseFeatures> sparse_;
  Index features_ = 0, classes_ = 1;
  std::vector<std::int32_t> labels_;
  Split split_;
};

}  // namespace sheafnn::io
