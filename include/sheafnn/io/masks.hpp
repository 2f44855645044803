/// \file
/// Labels and masks from .npz arrays, checked: shared by the loaders of datasets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npz_archive.hpp"

namespace sheafnn::io::detail {

/// Largest label a file may use.
inline constexpr std::int64_t largest_label = largest_class_count - 1;

/// Checks one label of a graph with n nodes; `where` names it in the message.
inline void check_label(std::int64_t label, Index n, std::string_view where) {
  const std::int64_t limit = std::min<std::int64_t>(largest_label, n - 1);
  if (label < -1 || label > limit) {
    fail(where, "label ", label, " is not allowed; labels of ", n, " nodes must be between 0 and ", limit,
         ", or -1 where unknown");
  }
}

/// Node sets from masks of shape S × n, n × S (where n ≠ S) or n.
///
/// \param may_be_empty  masks may select no node
/// \returns  S increasing lists of node numbers
[[nodiscard]] inline std::vector<std::vector<std::int32_t>> read_masks(const NpyArray& array, Index n,
                                                                       bool may_be_empty) {
  const std::vector<Index>& shape = array.shape();
  const bool flat = shape.size() == 1 && shape[0] == n;
  const bool by_split = shape.size() == 2 && shape[1] == n;
  const bool by_node = !by_split && shape.size() == 2 && shape[0] == n;
  if (!flat && !by_split && !by_node) {
    fail(array.where(), "has shape ", array.shape_text(), "; masks need one row of length ", n, " per split");
  }
  const Index splits = flat ? 1 : by_split ? shape[0] : shape[1];
  if (splits == 0) fail(array.where(), "has shape ", array.shape_text(), "; at least one split is needed");
  const std::vector<std::int64_t> values = array.values<std::int64_t>();
  std::vector<std::vector<std::int32_t>> sets(static_cast<std::size_t>(splits));
  for (Index s = 0; s < splits; ++s) {
    std::vector<std::int32_t>& set = sets[static_cast<std::size_t>(s)];
    for (Index u = 0; u < n; ++u) {
      const std::int64_t value = values[static_cast<std::size_t>(by_node ? u * splits + s : s * n + u)];
      if (value != 0 && value != 1) {
        fail(array.where(), "split ", s, ", node ", u, " has value ", value, "; a mask holds 0 and 1 only");
      }
      if (value == 1) set.push_back(static_cast<std::int32_t>(u));
    }
    if (set.empty() && !may_be_empty) fail(array.where(), "split ", s, " selects no node; at least one is needed");
  }
  return sets;
}

/// Where an archive lacks one of three keys of masks: refuses a key that may be meant to be it. Otherwise a misspelt
/// name would give an empty set.
///
/// \throws std::runtime_error  the archive lacks one of them and has another key with "mask" in its name
inline void check_mask_keys(const NpzArchive& archive, const std::string_view (&keys)[3]) {
  const auto has = [&](std::string_view key) { return archive.contains(key); };
  if (std::all_of(std::begin(keys), std::end(keys), has)) return;
  for (const std::string& name : archive.names()) {
    const bool known = std::find(std::begin(keys), std::end(keys), name) != std::end(keys);
    if (known || name.find("mask") == std::string::npos) continue;
    fail(archive.file(), "key '", printable(name), "' is no mask of a split; those are ", keys[0], ", ", keys[1],
         " and ", keys[2]);
  }
}

/// Reads the splits of an archive from three keys (training, validation, test) and checks that their sets are
/// disjoint. The archive may lack the last two; sets of validation and test nodes may be empty.
[[nodiscard]] inline std::vector<Split> read_splits(const NpzArchive& archive, const std::string_view (&keys)[3],
                                                    Index n) {
  check_mask_keys(archive, keys);
  std::vector<std::vector<std::int32_t>> sets[3];
  for (std::size_t k = 0; k < 3; ++k) {
    if (k > 0 && !archive.contains(keys[k])) {
      sets[k].resize(sets[0].size());
      continue;
    }
    sets[k] = read_masks(archive.array(keys[k]), n, k > 0);
    if (sets[k].size() != sets[0].size()) {
      fail(archive.file(), keys[k], " has ", sets[k].size(), " splits, ", keys[0], " has ", sets[0].size());
    }
  }
  std::vector<Split> splits;
  for (std::size_t s = 0; s < sets[0].size(); ++s) {
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
