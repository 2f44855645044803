/// \file
/// Datasets in one .npz file, with the keys under which the usual heterophilic benchmark graphs are published.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/io/masks.hpp"
#include "sheafnn/io/npz_archive.hpp"

namespace sheafnn::io {

namespace detail {

/// n × p features, dense in the file, sparse in memory.
[[nodiscard]] inline NodeFeatures read_features(const NpyArray& array) {
  const std::vector<Index>& shape = array.shape();
  if (shape.size() != 2) fail(array.where(), "has shape ", array.shape_text(), "; expected nodes x features");
  if (shape[0] == 0) fail(array.where(), "has shape ", array.shape_text(), "; the graph is empty");
  if (shape[1] == 0) fail(array.where(), "has shape ", array.shape_text(), "; at least one feature is needed");
  constexpr Index most = 2147483647;
  if (shape[0] > most || shape[1] > most) {
    fail(array.where(), "has shape ", array.shape_text(), "; at most ", most, " nodes and features are supported");
  }
  return naming_file(array.where(), [&] {
    return array.fits_float() ? NodeFeatures::from_dense(array.values<float>(), shape[0], shape[1])
                              : NodeFeatures::from_dense(array.values<double>(), shape[0], shape[1]);
  });
}

/// n labels, -1 where unknown, as a vector or as a matrix of one column or row.
[[nodiscard]] inline std::vector<std::int32_t> read_labels(const NpyArray& array, Index n) {
  const std::vector<Index>& shape = array.shape();
  const bool vector = shape.size() == 1 || (shape.size() == 2 && (shape[0] == 1 || shape[1] == 1));
  if (!vector || array.size() != n) {
    fail(array.where(), "has shape ", array.shape_text(), "; expected one label for each of the ", n, " nodes");
  }
  const std::vector<std::int64_t> values = array.values<std::int64_t>();
  std::vector<std::int32_t> labels(values.size());
  for (std::size_t u = 0; u < values.size(); ++u) {
    if (values[u] < -1 || values[u] > largest_label || values[u] >= n) {
      check_label(values[u], n, sheafnn::detail::concat(array.where(), "[", u, "]"));
    }
    labels[u] = static_cast<std::int32_t>(values[u]);
  }
  return labels;
}

/// Graph from edges of shape m × 2, or 2 × m where m ≠ 2.
[[nodiscard]] inline Graph read_edges(const NpyArray& array, Index n) {
  const std::vector<Index>& shape = array.shape();
  const bool by_edge = shape.size() == 2 && shape[1] == 2;
  const bool by_end = !by_edge && shape.size() == 2 && shape[0] == 2;
  if (!by_edge && !by_end) fail(array.where(), "has shape ", array.shape_text(), "; expected edges x 2");
  const std::vector<std::int64_t> values = array.values<std::int64_t>();
  const std::size_t m = values.size() / 2;
  std::vector<Edge> edges(m);
  for (std::size_t e = 0; e < m; ++e) {
    std::int32_t ends[2];
    for (std::size_t k = 0; k < 2; ++k) {
      const std::int64_t node = values[by_edge ? 2 * e + k : k * m + e];
      if (node < 0 || node >= n) {
        fail(array.where(), "edge ", e, " has end ", node, "; node numbers must be between 0 and ", n - 1);
      }
      ends[k] = static_cast<std::int32_t>(node);
    }
    edges[e] = {ends[0], ends[1]};
  }
  Graph graph(n, edges);
  if (graph.edge_count() == 0) fail(array.where(), "the graph has no edge between different nodes");
  return graph;
}

/// Number of classes, max + 1.
[[nodiscard]] inline Index count_classes(const std::vector<std::int32_t>& labels) {
  return Index{1} + *std::max_element(labels.begin(), labels.end());
}

/// Builds a dataset from an open archive; see load_npz.
[[nodiscard]] inline Dataset read_dataset(const NpzArchive& archive, std::string name,
                                          DatasetUse use = DatasetUse::training) {
  Dataset r = naming_file(archive.file(), [&] {
    constexpr std::string_view masks[3] = {"train_masks", "val_masks", "test_masks"};
    Dataset data;
    data.features = read_features(archive.array("node_features"));
    const Index n = data.features.rows();
    if (use != DatasetUse::prediction || archive.contains("node_labels")) {
      data.labels = read_labels(archive.array("node_labels"), n);
      data.class_count = count_classes(data.labels);
    }
    data.graph = read_edges(archive.array("edges"), n);
    if (use == DatasetUse::prediction) return data;
    const bool has_masks = std::any_of(std::begin(masks), std::end(masks),
                                       [&](std::string_view key) { return archive.contains(key); });
    if (use == DatasetUse::training && has_masks) data.splits = read_splits(archive, masks, n);
    validate(data);
    return data;
  });
  r.name = std::move(name);
  return r;
}

}  // namespace detail

/// Loads a node classification task from an .npz file. Arrays may be of any bool, integer or floating-point type,
/// in C or Fortran order, stored or deflated:
///
/// | key                                 | shape                                                              |
/// | ----------------------------------- | ------------------------------------------------------------------ |
/// | node_features                       | n × p, finite                                                      |
/// | node_labels                         | n, n × 1 or 1 × n; 0 … 65535, below n, or -1 where unknown         |
/// | edges                               | m × 2, or 2 × m where m ≠ 2; node numbers 0 … n − 1                |
/// | train_masks, val_masks, test_masks  | S × n, n × S where n ≠ S, or n; 0 and 1; disjoint                  |
///
/// The number of classes is the largest label + 1. Edges may repeat and come in either direction; self-loops are
/// left out. A file without any mask has no splits. Every split needs training nodes; val_masks and test_masks may
/// select none or be missing, and then the split has no such nodes.
///
/// \param use  for prediction, labels may be missing; masks are looked at for training only
/// \throws std::runtime_error  one line that names the file, the key, the index, the value and the limit
[[nodiscard]] inline Dataset load_npz(const std::filesystem::path& path, DatasetUse use = DatasetUse::training) {
  return detail::read_dataset(NpzArchive(path), path.stem().string(), use);
}

}  // namespace sheafnn::io
