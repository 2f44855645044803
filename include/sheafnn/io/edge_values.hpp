/// \file
/// Labels and targets of edges, from texts of the pairs that list the edges: columns of an edge list, arrays of an archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/graph/pair_types.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/masks.hpp"

namespace sheafnn::io::detail {

/// Which columns of an edge list, or keys of an archive, contain more than the edges.
struct EdgeColumnRules {
  bool types = false;           ///< column type, key edge_types: types of the edges
  std::string labels, targets;  ///< names of a column or key of labels, or else of numbers; empty: not read
  MissingLabels missing;        ///< texts that are unknown labels
  std::vector<std::string> ignored = {};  ///< columns of an edge list that are not read

  /// The name of the labels or numbers; empty: not read. \throws std::invalid_argument  both
  [[nodiscard]] const std::string& values() const {
    require(labels.empty() || targets.empty(), "edge_target", targets, "edges have labels or numbers, not both");
    return labels.empty() ? targets : labels;
  }
};

/// What these columns contain.
struct EdgeColumns {
  std::vector<std::string> type_names;   ///< sorted
  std::vector<std::int32_t> labels;      ///< m, −1 where unknown; empty: there is no such column
  std::vector<std::string> class_names;  ///< of the labels
  std::vector<double> targets;           ///< m, NaN where unknown; empty: there is no such column
};

/// A text for each pair that lists an edge.
struct PairTexts {
  std::span<const Edge> pairs;
  std::span<const std::string> texts;
  std::string name;                               ///< what messages call all of them
  std::function<std::string(std::size_t)> place;  ///< what messages call one
  std::function<std::string(std::size_t)> other;  ///< where another one is: "in line 3"
};

/// The value of every edge from the values of its pairs.
///
/// \param of_pairs  one value for each pair \param unknown  the value of an edge whose pairs have none
/// \throws std::runtime_error  an edge with two values
template <class T, class Known>
[[nodiscard]] std::vector<T> values_of_edges(const Graph& graph, const PairTexts& texts,
                                             const std::vector<T>& of_pairs, T unknown, const Known& known) {
  std::vector<T> r;
  const auto same = [&](std::size_t i, std::size_t j) { return of_pairs[i] == of_pairs[j]; };
  const auto differs = [&](std::size_t i, std::size_t first) {
    throw std::runtime_error(sheafnn::detail::concat(texts.place(i), " is '", printable(texts.texts[i]),
                                                     "', and '", printable(texts.texts[first]), "' ",
                                                     texts.other(first), ", which is the same edge"));
  };
  const auto says = [&](std::size_t i) { return known(of_pairs[i]); };
  for (const std::size_t i : sheafnn::detail::first_pairs(graph, texts.pairs, says, same, differs)) {
    r.push_back(i == sheafnn::detail::no_pair ? unknown : of_pairs[i]);
  }
  return r;
}

/// Labels of edges: encode_labels(), but the number −1 is a class.
inline void read_edge_labels(const Graph& graph, const PairTexts& texts, const MissingLabels& missing,
                             EdgeColumns& columns) {
  EncodedLabels labels =
      read_label_texts({texts.texts.begin(), texts.texts.end()}, missing, texts.name, texts.place, false);
  columns.class_names = std::move(labels.class_names);
  columns.labels =
      values_of_edges<std::int32_t>(graph, texts, labels.codes, -1, [](std::int32_t label) { return label >= 0; });
}
/// Targets of edges. \param of_pairs  NaN where unknown
inline void read_edge_targets(const Graph& graph, const PairTexts& texts, const std::vector<double>& of_pairs,
                              EdgeColumns& columns) {
  columns.targets = values_of_edges(graph, texts, of_pairs, std::numeric_limits<double>::quiet_NaN(),
                                    [](double value) { return value == value; });
}

/// Refuses labels or targets of edges that are missing. \param name  what messages call them \param column  in the file
///
/// \throws std::invalid_argument  none
template <class T>
void require_edge_values(std::string_view name, const std::string& column, const std::vector<T>& values) {
  require(!values.empty(), name, column, "the edges have no such column, or key of an .npz file");
}

/// Gives a dataset what was read of its edges.
inline void take_edge_columns(Dataset& data, EdgeColumns columns) {
  data.edge_type_names = std::move(columns.type_names);
  data.edge_labels = std::move(columns.labels);
  data.edge_class_names = std::move(columns.class_names);
  data.edge_targets = std::move(columns.targets);
}

}  // namespace sheafnn::io::detail
