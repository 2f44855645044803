/// \file
/// Labels and masks from .npz arrays, checked: shared by the loaders of datasets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "sheafnn/io/npz_keys.hpp"

namespace sheafnn::io::detail {

/// encode_labels() for readers. \throws std::runtime_error  as there
template <class Place>
[[nodiscard]] EncodedLabels read_label_texts(const std::vector<std::string>& texts, const MissingLabels& missing,
                                             std::string_view column, const Place& place, bool minus_one = true) {
  try {
    return encode_labels(texts, missing, column, place, minus_one);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(error.what());
  }
}

/// Gives a dataset labels that are integers. Class names are left out where they are 0, 1, …
template <class GraphType>
void take_labels(NodeDataset<GraphType>& data, EncodedLabels labels) {
  bool numbered = true;
  for (std::size_t c = 0; c < labels.class_names.size(); ++c)
    numbered = numbered && labels.class_names[c] == std::to_string(c);
  data.labels = std::move(labels.codes);
  data.class_count = static_cast<Index>(labels.class_names.size());
  data.class_names = numbered ? std::vector<std::string>() : std::move(labels.class_names);
}

/// Node sets from masks of shape S × n, n × S or n.
///
/// \param may_be_empty  masks may select no node
/// \param by_rows       a square matrix has one row per split; otherwise it is refused
/// \returns  S increasing lists of node numbers
[[nodiscard]] inline std::vector<std::vector<std::int32_t>> read_masks(const NpyArray& array, Index n,
                                                                       bool may_be_empty, bool by_rows) {
  const std::vector<Index>& shape = array.shape();
  const bool flat = shape.size() == 1 && shape[0] == n;
  const bool by_split = shape.size() == 2 && shape[1] == n;
  const bool by_node = !by_split && shape.size() == 2 && shape[0] == n;
  if (!flat && !by_split && !by_node) {
    fail(array.where(), "has shape ", array.shape_text(), "; masks need one row of length ", n, " per split",
         shape.size() == 1 ? " (node numbers belong under a key such as train_idx)" : "");
  }
  const Index splits = flat ? 1 : by_split ? shape[0] : shape[1];
  if (splits == 0) fail(array.where(), "has shape ", array.shape_text(), "; at least one split is needed");
  if (by_split && splits == n && n > 1 && !by_rows) {
    fail(array.where(), "has shape ", array.shape_text(), "; rows could be splits or nodes: use the key ",
         "train_masks (val_masks, test_masks), of which rows are splits");
  }
  const std::vector<double> values = array.values<double>();
  std::vector<std::vector<std::int32_t>> sets(static_cast<std::size_t>(splits));
  for (Index s = 0; s < splits; ++s) {
    std::vector<std::int32_t>& set = sets[static_cast<std::size_t>(s)];
    for (Index u = 0; u < n; ++u) {
      const double value = values[static_cast<std::size_t>(by_node ? u * splits + s : s * n + u)];
      if (value != 0 && value != 1) {
        fail(array.where(), "split ", s, ", node ", u, " has value ", value, "; a mask holds 0 and 1 only");
      }
      if (value == 1) set.push_back(static_cast<std::int32_t>(u));
    }
    if (set.empty() && !may_be_empty) fail(array.where(), "split ", s, " selects no node; at least one is needed");
  }
  return sets;
}

/// Whether an array under a key of node numbers holds masks instead: booleans, or only 0 and 1 for more than
/// two nodes.
[[nodiscard]] inline bool holds_masks(const NpyArray& array, Index n) {
  if (array.dtype().find('b') != std::string::npos) return true;
  const std::vector<Index>& shape = array.shape();
  const bool fits =
      (shape.size() == 1 && shape[0] == n) || (shape.size() == 2 && (shape[0] == n || shape[1] == n));
  if (!fits || n <= 2) return false;
  const std::vector<double> values = array.values<double>();
  return std::all_of(values.begin(), values.end(), [](double value) { return value == 0 || value == 1; });
}

/// The node set of one split from node numbers in any order.
[[nodiscard]] inline std::vector<std::vector<std::int32_t>> read_node_numbers(const NpyArray& array, Index n,
                                                                              bool may_be_empty) {
  const std::vector<Index>& shape = array.shape();
  if (!(shape.size() == 1 || (shape.size() == 2 && (shape[0] == 1 || shape[1] == 1)))) {
    fail(array.where(), "has shape ", array.shape_text(), "; expected the node numbers of one split, or masks");
  }
  std::vector<std::vector<std::int32_t>> sets(1);
  std::vector<bool> taken(static_cast<std::size_t>(n), false);
  for (const std::int64_t node : array.numbers()) {
    if (node < 0 || node >= n) {
      fail(array.where(), "holds node ", node, "; node numbers must be between 0 and ", n - 1);
    }
    if (taken[static_cast<std::size_t>(node)]) fail(array.where(), "holds node ", node, " twice");
    taken[static_cast<std::size_t>(node)] = true;
    sets[0].push_back(static_cast<std::int32_t>(node));
  }
  std::sort(sets[0].begin(), sets[0].end());
  if (sets[0].empty() && !may_be_empty) fail(array.where(), "selects no node; at least one is needed");
  return sets;
}

/// Reads the splits of an archive and checks that their sets are disjoint. Without a key of splits the result is empty.
/// The archive may lack validation and test nodes; their sets may be empty. A set in one row holds for all splits.
[[nodiscard]] inline std::vector<Split> read_splits(const NpzArchive& archive, Index n) {
  const std::vector<std::string> keys = find_set_keys(archive);
  if (keys[0].empty()) {
    const std::string& other = keys[1].empty() ? keys[2] : keys[1];
    if (other.empty()) return {};
    fail(archive.file(), "key 'train_masks' is missing (or train_mask, train_idx and the like), beside '",
         printable(other), "'");
  }
  std::vector<std::vector<std::int32_t>> sets[3];
  bool shared[3] = {};
  for (std::size_t k = 0; k < 3; ++k) {
    if (keys[k].empty()) {
      sets[k].resize(1);
      shared[k] = true;
      continue;
    }
    const NpyArray array = archive.array(keys[k]);
    const bool mask = SetKey::of(keys[k])->mask || holds_masks(array, n);
    sets[k] = mask ? read_masks(array, n, k > 0, plain_word(keys[k]).ends_with("masks"))
                   : read_node_numbers(array, n, k > 0);
    shared[k] = array.shape().size() == 1;
  }
  const std::size_t count = std::max({sets[0].size(), sets[1].size(), sets[2].size()});
  for (std::size_t k = 0; k < 3; ++k) {
    if (sets[k].size() == count) continue;
    if (!shared[k]) {
      const std::size_t most = sets[0].size() == count ? 0 : sets[1].size() == count ? 1 : 2;
      fail(archive.file(), keys[k], " has ", sets[k].size(), " splits, ", keys[most], " has ", count);
    }
    sets[k].resize(count, sets[k].front());
  }
  std::vector<Split> splits;
  for (std::size_t s = 0; s < count; ++s) {
    std::vector<std::int8_t> owner(static_cast<std::size_t>(n), -1);
    for (std::size_t k = 0; k < 3; ++k) {
      for (const std::int32_t u : sets[k][s]) {
        std::int8_t& first = owner[static_cast<std::size_t>(u)];
        if (first >= 0) {
          fail(archive.file(), keys[static_cast<std::uint8_t>(first)], " and ", keys[k],
               " overlap: both hold node ", u, " in split ", s);
        }
        first = static_cast<std::int8_t>(k);
      }
    }
    splits.push_back({std::move(sets[0][s]), std::move(sets[1][s]), std::move(sets[2][s])});
  }
  return splits;
}

}  // namespace sheafnn::io::detail
