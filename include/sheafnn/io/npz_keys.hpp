/// \file
/// Under which keys people save the parts of a dataset in .npz files. Capitals and the characters between
/// words do not count: train_mask, trainMask and TRAIN-MASK are one key.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/core/caller.hpp"
#include "sheafnn/core/text.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npz_archive.hpp"

namespace sheafnn::io::detail {

/// Spellings of the keys, as plain_word() has them; the first is the one in the benchmark graphs. Keys that end in
/// "data" begin the three parts of a sparse matrix: …_data, …_indices, …_indptr.
inline constexpr std::string_view feature_keys[] = {
    "nodefeatures", "nodefeature", "nodefeats",      "nodefeat",     "features", "feature", "feats",
    "feat",         "x",           "nodeattributes", "nodeattr",     "attr",     "attrs",   "attributes",
    "attrmatrix",   "attrdata",    "attrmatrixdata", "featuresdata", "featdata"};
inline constexpr std::string_view label_keys[] = {"nodelabels", "nodelabel", "labels", "label",
                                                  "y",          "target",    "targets"};
inline constexpr std::string_view edge_keys[] = {"edges",         "edge",         "edgeindex",
                                                 "edgelist",      "adj",          "adjacency",
                                                 "adjdata",       "adjmatrix",    "adjacencymatrix",
                                                 "adjmatrixdata", "adjacencydata"};
/// Keys of the incident pairs (node, hyperedge) of a hypergraph.
inline constexpr std::string_view incidence_keys[] = {"incidence",      "incidences", "incidentpairs",
                                                      "hyperedgeindex", "hyperedges", "hyperedgelist",
                                                      "hyperincidence"};
/// What edges may carry and sheaves learn themselves.
inline constexpr std::string_view edge_attribute_keys[] = {"edgeweight",    "edgeweights", "weight",
                                                           "weights",       "edgeattr",    "edgeattrs",
                                                           "edgefeat",      "edgefeats",   "edgefeatures",
                                                           "edgeattributes"};

/// Keys of the types of edges and nodes. PyTorch Geometric calls them edge_type and node_type.
inline constexpr std::string_view edge_type_keys[] = {"edgetypes", "edgetype", "etypes", "etype"};
inline constexpr std::string_view node_type_keys[] = {"nodetypes", "nodetype", "ntypes", "ntype"};

/// What messages say of types of edges, in any file, that differ and are not read.
[[nodiscard]] inline std::string unread_types() {
  return sheafnn::detail::concat("; ", caller_name::edge_types.text(),
                                 " gives each type weights of the sheaf learner");
}

using sheafnn::detail::plain_word;

/// The key of an archive that equals one of several spellings; empty if there is no such key.
///
/// \throws std::runtime_error  the archive has two such keys
[[nodiscard]] inline std::string find_key(const NpzArchive& archive, std::span<const std::string_view> spellings) {
  std::string found;
  for (const std::string& name : archive.names()) {
    if (std::find(spellings.begin(), spellings.end(), plain_word(name)) == spellings.end()) continue;
    if (!found.empty()) {
      fail(archive.file(), "has both '", printable(found), "' and '", printable(name), "'; only one can be meant");
    }
    found = name;
  }
  return found;
}

/// Which set of a split a key names.
struct SetKey {
  std::size_t set = 0;  ///< 0: training, 1: validation, 2: test
  bool mask = false;    ///< it says that it holds masks; otherwise node numbers or masks

  /// Empty if the key names no set.
  [[nodiscard]] static std::optional<SetKey> of(std::string_view key) {
    constexpr std::string_view lists[] = {"",   "idx",  "index", "indices", "indexes", "inds", "ind",  "ids",
                                          "id", "node", "nodes", "nodeids", "nodeidx", "set",  "split"};
    const std::string plain = plain_word(key);
    for (std::size_t set = 0; set < 3; ++set) {
      for (const std::string_view word : words(set)) {
        const auto joined = [&](std::string_view kind) {
          return plain.size() == word.size() + kind.size() &&
                 ((plain.starts_with(word) && plain.ends_with(kind)) ||
                  (plain.starts_with(kind) && plain.ends_with(word)));
        };
        if (joined("mask") || joined("masks")) return SetKey{set, true};
        if (std::any_of(std::begin(lists), std::end(lists), joined)) return SetKey{set, false};
      }
    }
    return std::nullopt;
  }
  /// What a set is called.
  [[nodiscard]] static std::span<const std::string_view> words(std::size_t set) {
    static constexpr std::string_view all[3][4] = {{"train", "training", "trn", "tr"},
                                                   {"val", "valid", "validation", "dev"},
                                                   {"test", "testing", "tst", "te"}};
    return all[set];
  }
};

/// The words of a name, in lower case: runs of letters, parted before a capital that follows a small letter. All that is not
/// ASCII counts as a letter.
[[nodiscard]] inline std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  char before = ' ';
  for (const char c : name) {
    const auto is_capital = [](char x) { return x >= 'A' && x <= 'Z'; };
    const auto is_small = [](char x) { return (x >= 'a' && x <= 'z') || static_cast<unsigned char>(x) >= 0x80; };
    const bool capital = is_capital(c), letter = capital || is_small(c);
    const bool inside = is_capital(before) || (is_small(before) && !capital);
    if (letter && !inside) words.emplace_back();
    if (letter) words.back() += sheafnn::detail::lower(c);
    before = c;
  }
  return words;
}

/// Whether a column of a node table has the name of a set or a split. The last meaningful word is train, test, fold, mask or
/// the like, as in is_train, trainIdx, TEST and cv_fold_3, but not in test_score.
[[nodiscard]] inline bool resembles_set_column(std::string_view name) {
  constexpr std::string_view passed[] = {"idx",   "index", "indices", "id",        "ids",    "ind",  "inds",
                                         "node",  "nodes", "flag",    "indicator", "member", "data", "sample",
                                         "group", "part",  "is",      "in",        "label"};
  constexpr std::string_view heads[] = {"set",       "sets",       "subset", "subsets", "split", "splits",
                                        "mask",      "masks",      "fold",   "folds",   "kfold", "kfolds",
                                        "train",     "training",   "test",   "testing", "valid", "validation",
                                        "partition", "partitions", "holdout"};
  constexpr std::string_view alone[] = {"val", "dev", "trn",
                                        "tr",  "tst", "te"};  // values and deviations elsewhere
  const auto one_of = [](std::string_view word, const auto& list) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
  };
  const auto set = [&](std::string_view word) {
    return one_of(word, heads) || one_of(word, alone) || SetKey::of(word);
  };
  const auto joined = [&](std::string_view word) {
    if (word.starts_with("is") && set(word.substr(2))) return true;
    return !one_of(word, alone) && set(word);
  };
  std::vector<std::string> words = words_of(name);
  const auto passes = [&](const std::string& word) { return word.size() == 1 || one_of(word, passed); };
  while (!words.empty() && passes(words.back())) words.pop_back();
  if (words.empty()) return false;
  if (joined(words.back())) return true;
  return one_of(words.back(), alone) && std::all_of(words.begin(), words.end(), [&](const std::string& word) {
           return passes(word) || set(word);
         });
}

/// Whether a key has to do with splits.
[[nodiscard]] inline bool resembles_split(std::string_view key) {
  if (resembles_set_column(key)) return true;
  const std::string plain = plain_word(key);
  for (const std::string_view part : {"mask", "split", "fold"}) {
    if (plain.find(part) != std::string::npos) return true;
  }
  std::string word;
  const auto is_set = [&] {
    for (std::size_t set = 0; set < 3; ++set) {
      const auto words = SetKey::words(set);
      if (std::find(words.begin(), words.end(), word) != words.end()) return true;
    }
    return false;
  };
  for (const char c : key) {
    const char small = sheafnn::detail::lower(c);
    if (small >= 'a' && small <= 'z') {
      word += small;
    } else {
      if (is_set()) return true;
      word.clear();
    }
  }
  return is_set();
}

/// The keys of the training, validation and test nodes of an archive, each empty if it is missing.
///
/// \throws std::runtime_error  two keys of one set, or a key that has to do with splits and names no set
[[nodiscard]] inline std::vector<std::string> find_set_keys(const NpzArchive& archive) {
  std::vector<std::string> keys(3);
  for (const std::string& name : archive.names()) {
    const std::optional<SetKey> found = SetKey::of(name);
    if (!found) {
      if (!resembles_split(name)) continue;
      fail(archive.file(), "key '", printable(name),
           "' is not a known set of a split. The known sets are train_masks, ",
           "val_masks and test_masks (or train_mask, train_idx and the like). Remove the key, or draw splits (",
           caller_name::make_splits.text(), ')');
    }
    std::string& key = keys[found->set];
    if (!key.empty()) {
      fail(archive.file(), "has both '", printable(key), "' and '", printable(name), "'; only one can be meant");
    }
    key = name;
  }
  return keys;
}

}  // namespace sheafnn::io::detail
