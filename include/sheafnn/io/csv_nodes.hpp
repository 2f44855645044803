/// \file
/// Node tables: a delimited text file with one line per node that holds its name, label, place in splits and features.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/lines.hpp"
#include "sheafnn/io/masks.hpp"

namespace sheafnn::io {

/// Content of a node table.
struct NodeTable {
  std::string file;
  std::vector<std::string> names;          ///< n, all different
  std::vector<std::int32_t> labels;        ///< n, -1 where unknown; or empty: no such column
  std::vector<std::string> class_names;    ///< C
  std::vector<Split> splits;               ///< one per split column
  std::vector<std::string> split_names;    ///< of these columns
  std::vector<std::string> feature_names;  ///< p
  NodeFeatures features;                   ///< n × p
};

namespace detail {

/// What other programs write where a value is missing: as a label more likely an unknown one than a class of that name.
[[nodiscard]] inline bool means_missing(std::string_view text) {
  constexpr std::string_view known[] = {"NA", "N/A", "n/a", "<NA>", "nan", "NaN", "NAN", "NULL", "null", "?"};
  return std::find(std::begin(known), std::end(known), text) != std::end(known);
}

/// Numbers the classes that label texts name: numbers by their values, other names in the order of their bytes. An empty
/// text and -1 are unknown.
///
/// \throws std::runtime_error  a text that means a missing value, or too many classes
/// \param file        where they are from
/// \param place       place(u): file, line and, of a table, column of text u, for messages
/// \param[out] names  of the classes
/// \returns           one label per text
template <class Place>
[[nodiscard]] std::vector<std::int32_t> number_classes(const std::vector<std::string>& texts,
                                                       std::string_view file, const Place& place,
                                                       std::vector<std::string>& names) {
  const auto value = [](const std::string& text) {
    double number = 0;
    return parse_number(text, number) ? number : std::numeric_limits<double>::quiet_NaN();
  };
  const auto unknown = [&](const std::string& text) { return text.empty() || value(text) == -1; };
  for (std::size_t u = 0; u < texts.size(); ++u) {
    if (!means_missing(texts[u])) continue;
    fail(place(u), "'", texts[u],
         "' is no label; an unknown label is empty or -1, and a class needs another name");
  }
  names.clear();
  std::copy_if(texts.begin(), texts.end(), std::back_inserter(names), [&](const auto& t) { return !unknown(t); });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (std::all_of(names.begin(), names.end(), [&](const auto& name) { return std::isfinite(value(name)); })) {
    std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
      return std::pair(value(a), std::string_view(a)) < std::pair(value(b), std::string_view(b));
    });
  }
  if (static_cast<std::int64_t>(names.size()) > largest_label + 1) {
    fail(file, "names ", names.size(), " classes; at most ", largest_label + 1, " are supported");
  }
  std::unordered_map<std::string_view, std::int32_t> number;
  for (const std::string& name : names) number.emplace(name, static_cast<std::int32_t>(number.size()));
  std::vector<std::int32_t> labels;
  labels.reserve(texts.size());
  for (const std::string& text : texts) labels.push_back(unknown(text) ? -1 : number.at(text));
  return labels;
}

/// What the columns of a node table mean.
struct NodeColumns {
  enum class Role { name, label, split, feature };
  std::vector<std::string> names;
  std::vector<Role> roles;
  bool labelled = false;

  /// "split", or "split_" and a number.
  [[nodiscard]] static bool is_split(std::string_view name) {
    constexpr std::string_view stem = "split";
    if (!name.starts_with(stem)) return false;
    name.remove_prefix(stem.size());
    if (name.empty()) return true;
    return name.size() > 1 && name[0] == '_' && name.find_first_not_of("0123456789", 1) == std::string_view::npos;
  }
  NodeColumns(const CsvReader& header, const std::string& label) : names(header.fields()) {
    if (names.front() == label) {
      fail(header.where(), "column '", printable(label), "' is the first; that one holds the names of the nodes");
    }
    for (std::size_t k = 0; k < names.size(); ++k) {
      const auto same = std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(k), names[k]);
      if (k > 0 && names[k].empty()) fail(header.where(), "column ", k + 1, " has no name");
      if (same != names.begin() + static_cast<std::ptrdiff_t>(k)) {
        fail(header.where(), "columns ", same - names.begin() + 1, " and ", k + 1, " are both called '",
             printable(names[k]), "'");
      }
      roles.push_back(k == 0               ? Role::name
                      : names[k] == label  ? Role::label
                      : is_split(names[k]) ? Role::split
                                           : Role::feature);
      labelled = labelled || roles.back() == Role::label;
    }
  }
};

/// Node numbers by name.
class NodeNumbers {
 public:
  /// \param file   where the names are from
  /// \param names  they must outlive this object
  NodeNumbers(std::string file, const std::vector<std::string>& names) : file_(std::move(file)) {
    numbers_.reserve(names.size());
    for (const std::string& name : names) numbers_.emplace(name, static_cast<std::int32_t>(numbers_.size()));
  }
  /// Nodes without names: 0 … n − 1.
  NodeNumbers(std::string file, Index n) : file_(std::move(file)), numbered_(true), count_(n) {}

  /// The number of a node, or -1.
  [[nodiscard]] std::int32_t find(const std::string& name) const {
    if (!numbered_) {
      const auto found = numbers_.find(name);
      return found == numbers_.end() ? -1 : found->second;
    }
    std::int64_t number = -1;
    return parse_number(name, number) && number >= 0 && number < count_ ? static_cast<std::int32_t>(number) : -1;
  }
  [[nodiscard]] Index count() const noexcept { return numbered_ ? count_ : static_cast<Index>(numbers_.size()); }
  /// Refuses a name that find() does not know. \param note  the end of the message
  [[noreturn]] void refuse(const std::string& where, const std::string& name, std::string_view note = "") const {
    if (!numbered_) fail(where, "node '", printable(name), "' is not in ", file_, note);
    fail(where, "'", printable(name), "' is not a node; the nodes of ", file_, " are numbered 0 to ", count_ - 1, note);
  }

 private:
  std::string file_;
  bool numbered_ = false;
  Index count_ = 0;
  std::unordered_map<std::string_view, std::int32_t> numbers_;
};

/// Fills a NodeTable line by line.
class NodeTableReader {
 public:
  NodeTableReader(CsvReader& csv, const std::string& label)
      : csv_(csv), label_(label), columns_(header(csv), label) {
    table_.file = csv.file();
    for (std::size_t k = 0; k < columns_.names.size(); ++k) {
      if (columns_.roles[k] == Role::feature) table_.feature_names.push_back(columns_.names[k]);
      if (columns_.roles[k] != Role::split) continue;
      table_.splits.emplace_back();
      table_.split_names.push_back(columns_.names[k]);
    }
  }
  [[nodiscard]] NodeTable read() {
    while (csv_.next()) add_node();
    if (table_.names.empty()) fail(csv_.file(), "lists no node; the graph is empty");
    check_names();
    if (columns_.labelled) {
      const auto place = [&](std::size_t u) {
        return sheafnn::detail::concat(csv_.file(), ':', lines_[u], ": column '", printable(label_), '\'');
      };
      table_.labels = number_classes(labels_, csv_.file(), place, table_.class_names);
    }
    table_.features = NodeFeatures::from_csr(std::move(offsets_), std::move(column_of_), std::move(values_),
                                             static_cast<Index>(table_.feature_names.size()), MissingValues::mark);
    return std::move(table_);
  }

 private:
  using Role = NodeColumns::Role;

  static const CsvReader& header(CsvReader& csv) {
    if (!csv.next()) fail(csv.file(), "is empty; expected a header line and one line per node");
    return csv;
  }
  void add_node() {
    const std::vector<std::string>& fields = csv_.fields();
    if (fields.size() != columns_.names.size()) {
      fail(csv_.where(), "has ", fields.size(), " fields; the header has ", columns_.names.size());
    }
    const std::int32_t node = static_cast<std::int32_t>(table_.names.size());
    std::size_t split = 0;
    std::int32_t feature = 0;
    for (std::size_t k = 0; k < fields.size(); ++k) {
      switch (columns_.roles[k]) {
        case Role::name:
          if (fields[k].empty()) fail(csv_.where(), "the node has no name");
          table_.names.push_back(fields[k]);
          lines_.push_back(csv_.line());
          break;
        case Role::label:
          labels_.push_back(fields[k]);
          break;
        case Role::split:
          add_to_split(table_.splits[split++], node, fields[k], k);
          break;
        case Role::feature:
          add_feature(feature++, fields[k], k);
          break;
      }
    }
    offsets_.push_back(static_cast<Index>(values_.size()));
  }
  void add_to_split(Split& split, std::int32_t node, const std::string& text, std::size_t column) const {
    if (text == "train") {
      split.train.push_back(node);
    } else if (text == "validation" || text == "val") {
      split.validation.push_back(node);
    } else if (text == "test") {
      split.test.push_back(node);
    } else if (!text.empty()) {
      fail(where(column), "'", printable(text),
           "' is no set of a split; expected train, validation (or val), test or nothing");
    }
  }
  void add_feature(std::int32_t number, const std::string& text, std::size_t column) {
    double value = 0;
    const auto hint = [&] {
      return columns_.labelled
                 ? ""
                 : "; no column is called '" + printable(label_) + "' (--label names that of the labels)";
    };
    if (text.empty() || means_missing(text)) {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (!parse_number(text, value) || std::isinf(value)) {
      fail(where(column), "'", printable(text), "' is not a finite number", hint());
    }
    if (value == 0) return;
    column_of_.push_back(number);
    values_.push_back(value);
  }
  void check_names() const {
    std::unordered_map<std::string_view, std::size_t> seen;
    for (std::size_t u = 0; u < table_.names.size(); ++u) {
      const auto [first, inserted] = seen.emplace(table_.names[u], u);
      if (inserted) continue;
      fail(sheafnn::detail::concat(csv_.file(), ":", lines_[u]), "node '", printable(table_.names[u]),
           "' was already listed in line ", lines_[first->second]);
    }
  }
  /// "FILE:LINE: column 'x'".
  [[nodiscard]] std::string where(std::size_t column) const {
    return sheafnn::detail::concat(csv_.where(), ": column '", printable(columns_.names[column]), "'");
  }

  CsvReader& csv_;
  std::string label_;
  NodeColumns columns_;
  NodeTable table_;
  std::vector<Index> lines_;
  std::vector<std::string> labels_;
  std::vector<Index> offsets_ = {0};
  std::vector<std::int32_t> column_of_;
  std::vector<double> values_;
};

}  // namespace detail

/// Reads a node table: a header line, then one line per node. The first column holds the node's name, the column called
/// `label` its class, columns called split or split_0, split_1, … its set (train, validation or val, test, or nothing),
/// all others its features: finite numbers, or missing values (NodeFeatures::indicators()) where a field is empty or says NA,
/// nan, null or the like.
///
/// Classes are numbered in sorted order: by value if all are numbers, otherwise by their bytes. An empty label and
/// -1 are unknown; what else might mean a missing value, such as NA, nan, null or ?, is refused.
///
/// \throws std::runtime_error  one line that names the file, the line and the column
[[nodiscard]] inline NodeTable read_node_table(CsvReader csv, const std::string& label = "label") {
  return detail::NodeTableReader(csv, label).read();
}

}  // namespace sheafnn::io
