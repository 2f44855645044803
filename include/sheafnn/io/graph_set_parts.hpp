/// \file
/// Parts that the readers of sets of graphs share: features from tags and attributes, and classes from texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/graph/graph_set.hpp"
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/io/masks.hpp"

namespace sheafnn::io::detail {

/// Both tables side by side. Unchecked: the left one has no indicators of missing values.
[[nodiscard]] inline NodeFeatures beside(const NodeFeatures& left, const NodeFeatures& right) {
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  for (Index u = 0; u < left.rows(); ++u) {
    Index shift = 0;
    for (const NodeFeatures* table : {&left, &right}) {
      for (Index k = table->offsets()[static_cast<std::size_t>(u)];
           k < table->offsets()[static_cast<std::size_t>(u) + 1]; ++k) {
        columns.push_back(static_cast<std::int32_t>(table->column_of()[static_cast<std::size_t>(k)] + shift));
        values.push_back(table->values()[static_cast<std::size_t>(k)]);
      }
      shift = table->columns();
    }
    offsets.push_back(static_cast<Index>(columns.size()));
  }
  NodeFeatures r = NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values),
                                          left.columns() + right.columns());
  std::vector<std::int32_t> indicators(right.indicators().begin(), right.indicators().end());
  for (std::int32_t& column : indicators) column += static_cast<std::int32_t>(left.columns());
  r.set_indicators(std::move(indicators));
  return r;
}

/// Features of nodes: one-hot tags, then attributes; the degree where there are neither.
[[nodiscard]] inline NodeFeatures features_of_graphs(const Graph& graph, const std::vector<std::int64_t>& tags,
                                                     const NodeFeatures& attributes) {
  if (!tags.empty() && attributes.rows() > 0) return beside(one_hot(tags), attributes);
  if (!tags.empty()) return one_hot(tags);
  if (attributes.rows() > 0) return attributes;
  std::vector<double> degrees;
  for (Index u = 0; u < graph.node_count(); ++u) degrees.push_back(static_cast<double>(graph.degree(u)));
  return NodeFeatures::from_dense(std::span<const double>(degrees), graph.node_count(), 1);
}

/// Classes of graphs from their texts.
///
/// \param missing  texts that are unknown labels
/// \param place    place(g) is where the text of graph g is
template <class Place>
void take_graph_labels(GraphSet& set, const std::vector<std::string>& texts, const std::string& where,
                       const Place& place, const MissingLabels& missing = std::vector<std::string>{}) {
  // In sets of graphs -1 is a class: files write the two classes of MUTAG as 1 and -1.
  EncodedLabels labels = read_label_texts(texts, missing, where, place);
  std::set<std::string_view> names;
  bool negative = false;
  for (const std::string& text : texts) {
    negative = negative || sheafnn::detail::trimmed(text) == "-1";
    names.insert(sheafnn::detail::trimmed(text));
  }
  names.erase("");  // unknown
  if (negative && names == std::set<std::string_view>{"-1", "1"}) {
    for (std::size_t g = 0; g < texts.size(); ++g) {
      const std::string_view text = sheafnn::detail::trimmed(texts[g]);
      labels.codes[g] = text.empty() ? -1 : text == "1" ? 1 : 0;
    }
    labels.class_names = {"-1", "1"};
  }
  set.labels = std::move(labels.codes);
  set.class_count = static_cast<Index>(labels.class_names.size());
  set.class_names = std::move(labels.class_names);
}

}  // namespace sheafnn::io::detail
