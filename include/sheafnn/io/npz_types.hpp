/// \file
/// Types of edges and nodes, and labels and targets of edges, in .npz files; and arrays of strings or numbers as strings.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/pair_types.hpp"
#include "sheafnn/io/edge_values.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "sheafnn/io/npz_keys.hpp"

namespace sheafnn::io {

/// Which types, and which labels or targets of edges, a reader of .npz files reads.
struct ReadTypes {
  bool edges = false;  ///< under the key edge_types (or edge_type)
  bool nodes = false;  ///< under the key node_types (or node_type)
  /// Key of labels, or else of numbers, of the listed edges: Dataset::edge_labels, Dataset::edge_targets; empty: not read.
  std::string edge_labels = {}, edge_target = {};
};

namespace detail {

/// The texts of an array: `count` numbers or texts, as a vector or as a matrix of one column or row. Numbers have the
/// fewest digits that give them; the text of NaN is empty.
///
/// \param entry, whole  what messages call an entry and what it is of: "label", "nodes"
[[nodiscard]] inline std::vector<std::string> entry_texts(const NpzArchive& archive, std::string_view key,
                                                          Index count, std::string_view entry,
                                                          std::string_view whole) {
  const auto check_shape = [&](const std::string& where, const std::vector<Index>& shape) {
    const bool vector = shape.size() == 1 || (shape.size() == 2 && (shape[0] == 1 || shape[1] == 1));
    const Index size = std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
    if (vector && size == count) return;
    fail(where, "has shape ", npy_shape_text(shape), "; expected one ", entry, " for each of the ", count, " ",
         whole);
  };
  if (archive.holds_texts(key)) {
    NpyTexts texts = archive.texts(key);
    check_shape(texts.where, texts.shape);
    return std::move(texts.values);
  }
  const NpyArray array = archive.array(key);
  check_shape(array.where(), array.shape());
  std::vector<std::string> texts;
  texts.reserve(static_cast<std::size_t>(count));
  const auto add = [&](const auto& values) {
    for (const auto value : values) {
      if constexpr (std::is_floating_point_v<std::remove_const_t<decltype(value)>>) {
        if (std::isnan(value)) {
          texts.emplace_back();
          continue;
        }
      }
      char text[32];
      texts.emplace_back(std::begin(text), std::to_chars(std::begin(text), std::end(text), value).ptr);
    }
  };
  const bool real = array.dtype().find('f') != std::string::npos;
  if (!real) add(array.values<std::int64_t>());
  if (real && array.fits_float()) add(array.values<float>());
  if (real && !array.fits_float()) add(array.values<double>());
  return texts;
}

[[nodiscard]] inline Index entry_count(const NpzArchive& archive, const std::string& key) {
  return archive.holds_texts(key) ? static_cast<Index>(archive.texts(key).values.size())
                                  : archive.array(key).size();
}

/// The texts of types, none of them empty.
///
/// \param of  "edge" or "node"
/// \throws std::runtime_error  another shape, or a type that is missing
[[nodiscard]] inline std::vector<std::string> type_texts(const NpzArchive& archive, const std::string& key,
                                                         Index count, std::string_view of) {
  std::vector<std::string> r = entry_texts(archive, key, count, "type", of == "edge" ? "edges" : "nodes");
  const auto empty = std::find(r.begin(), r.end(), "");
  if (empty == r.end()) return r;
  fail(archive.file(), printable(key), "[", empty - r.begin(), "]: the ", of, " has no type");
}

/// Refuses an array of edges where a matrix lists them. \param pairs  null: a matrix
inline void require_pairs(const NpzArchive& archive, const std::string& key, const std::vector<Edge>* pairs) {
  if (pairs != nullptr) return;
  fail(archive.file(), "'", printable(key), "' needs a list of edges, m x 2; the file has a matrix");
}

/// Reads labels or targets of edges: an array of a text or number for each pair of the list. NaN and an empty text are
/// unknown. Without the key there are none.
///
/// \param pairs  that list the edges; null: a matrix lists them
/// \throws std::runtime_error  naming the file, the key and the pair: another shape, an edge with two values, an infinite
///                             number, encode_labels()
inline void read_edge_values(const NpzArchive& archive, const Graph& graph, const std::vector<Edge>* pairs,
                             const EdgeColumnRules& rules, EdgeColumns& columns) {
  const std::string& key = rules.values();
  if (key.empty() || !archive.contains(key)) return;
  require_pairs(archive, key, pairs);
  const bool labels = !rules.labels.empty();
  const auto count = static_cast<Index>(pairs->size());
  const std::vector<std::string> values = entry_texts(archive, key, count, labels ? "label" : "number", "edges");
  const std::string name = sheafnn::detail::concat(archive.file(), ": ", printable(key));
  const PairTexts texts{*pairs, values, name,
                        [&](std::size_t i) { return sheafnn::detail::concat(name, "[", i, "]"); },
                        [](std::size_t i) { return sheafnn::detail::concat("at ", i); }};
  if (labels) return read_edge_labels(graph, texts, rules.missing, columns);
  const std::vector<double> numbers = archive.array(key).values<double>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isinf(numbers[i]))
      fail(texts.place(i), "is infinite; numbers of edges are finite, or NaN where unknown");
  }
  read_edge_targets(graph, texts, numbers, columns);
}

/// Gives a graph the types of its edges.
///
/// \param pairs  that list the edges; null: a matrix lists them
/// \param rules  where they read no types, types of all pairs that differ are refused, except for a key that they name
/// \param names  of the types, sorted
/// \throws std::runtime_error  naming the file, the key and the edge
inline void read_edge_types(const NpzArchive& archive, Graph& graph, const std::vector<Edge>* pairs,
                            const EdgeColumnRules& rules, std::vector<std::string>& names) {
  const std::string key = find_key(archive, edge_type_keys);
  const bool read = rules.types;
  if (!read && key == rules.values()) return;
  if (key.empty()) {
    if (read) fail(archive.file(), "has no key 'edge_types' (or edge_type), which tells the types of edges");
    return;
  }
  if (pairs == nullptr && !read) return;
  require_pairs(archive, key, pairs);
  const auto count = static_cast<Index>(pairs->size());
  if (!read && entry_count(archive, key) != count) return;  // no types of these edges
  const std::vector<std::string> types = type_texts(archive, key, count, "edge");
  const auto said = [&](std::size_t i) { return sheafnn::detail::concat("'", printable(types[i]), "'"); };
  if (read) {
    names = sheafnn::detail::set_pair_types(graph, *pairs, types, [&](std::size_t i, std::size_t first) {
      fail(archive.file(), printable(key), "[", i, "]: the edge has the type ", said(i), ", and ", said(first),
           " at ", first);
    });
    return;
  }
  const auto other = std::find_if(types.begin(), types.end(), [&](const auto& type) { return type != types[0]; });
  if (other == types.end()) return;
  const auto i = static_cast<std::size_t>(other - types.begin());
  fail(archive.file(), printable(key), "[", i, "] is ", said(i), ", and ", said(0), " at 0", unread_types(),
       "; otherwise remove the key");
}

/// Gives a graph the types of its nodes. \throws as read_edge_types()
inline void read_node_types(const NpzArchive& archive, Graph& graph, std::vector<std::string>& names) {
  const std::string key = find_key(archive, node_type_keys);
  if (key.empty()) fail(archive.file(), "has no key 'node_types' (or node_type), which tells the types of nodes");
  const std::vector<std::int32_t> types =
      sheafnn::detail::numbered_names(type_texts(archive, key, graph.node_count(), "node"), names);
  graph.set_node_types(types, static_cast<Index>(names.size()));
}

}  // namespace detail

}  // namespace sheafnn::io
