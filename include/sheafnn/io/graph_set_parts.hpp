/// \file
/// Parts that the readers of sets of graphs share: features from tags and attributes, and classes from texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
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

/// Kinds of nodes.
struct NodeTags {
  std::vector<std::int64_t> numbers = {};  ///< n, or empty: nodes have no tags
  std::vector<std::string> texts = {};     ///< of the numbers 0, 1, …; empty: tags are their indices
};

/// Numeric columns next to the tags.
struct NodeAttributes {
  NodeFeatures values = {};             ///< n rows, or none
  std::vector<std::string> names = {};  ///< of the columns but indicators, or empty: unknown
};

/// The names, or none where all are unknown.
[[nodiscard]] inline std::vector<std::string> known_names(std::vector<std::string> names) {
  if (std::all_of(names.begin(), names.end(), [](const std::string& name) { return name.empty(); })) return {};
  return names;
}

/// Gives the set the features of its nodes with their names: one-hot tags, which are called tag=H, then attributes. Where
/// there are neither, the feature is the degree.
inline void take_node_features(GraphSet& set, const NodeTags& tags, NodeAttributes attributes) {
  std::vector<std::string> names;
  for (const std::int64_t tag : std::set<std::int64_t>(tags.numbers.begin(), tags.numbers.end())) {
    names.push_back("tag=" +
                    (tags.texts.empty() ? std::to_string(tag) : tags.texts[static_cast<std::size_t>(tag)]));
  }
  if (attributes.values.rows() > 0) {
    attributes.names.resize(static_cast<std::size_t>(attributes.values.given_columns()));
    std::move(attributes.names.begin(), attributes.names.end(), std::back_inserter(names));
    set.features =
        tags.numbers.empty() ? std::move(attributes.values) : beside(one_hot(tags.numbers), attributes.values);
  } else if (!tags.numbers.empty()) {
    set.features = one_hot(tags.numbers);
  } else {
    std::vector<double> degrees;
    for (Index u = 0; u < set.graph.node_count(); ++u) {
      degrees.push_back(static_cast<double>(set.graph.degree(u)));
    }
    set.features = NodeFeatures::from_dense(std::span<const double>(degrees), set.graph.node_count(), 1);
    names = {"degree"};
  }
  set.feature_names = known_names(std::move(names));
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
