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
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/lines.hpp"
#include "sheafnn/io/masks.hpp"
#include "sheafnn/io/npz_keys.hpp"

namespace sheafnn::io {

/// Content of a node table.
struct NodeTable {
  std::string file;
  std::vector<Index> lines;                ///< of the rows, from 1; empty: a list of labels
  std::vector<std::string> names;          ///< n, all different
  std::vector<std::int32_t> labels;        ///< n, -1 where unknown; or empty: no such column
  std::vector<std::string> class_names;    ///< C
  std::vector<Split> splits;               ///< one per split column
  std::vector<std::string> split_names;    ///< of these columns
  std::vector<std::string> feature_names;  ///< p
  NodeFeatures features;                   ///< n × p
  std::vector<double> targets;             ///< n × k, for TableRules::targets; NaN where unknown
  std::vector<std::vector<std::string>>
      texts;                       ///< for each of TableRules::texts: n fields, or none: no such column
  std::vector<std::string> types;  ///< n fields of the column of types; empty: none, or not read

  /// n; 0 without a table. A list of labels has no names, a table without labels no labels.
  [[nodiscard]] Index node_count() const noexcept {
    return static_cast<Index>(std::max(names.size(), labels.size()));
  }
};

namespace detail {

/// Whether a column is one of splits: "split", or "split_" and a number.
[[nodiscard]] inline bool is_split_column(std::string_view name) {
  constexpr std::string_view stem = "split";
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  if (name.empty()) return true;
  return name.size() > 1 && name[0] == '_' && name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}
/// Fields of such a column, with the sets that they name: 0 training, 1 validation, 2 test.
inline constexpr std::pair<std::string_view, int> set_words[] = {{"train", 0},
                                                                 {"validation", 1},
                                                                 {"val", 1},
                                                                 {"test", 2}};

/// Whether a column of nodes or edges has their types: type, Type, TYPE and the like, by plain_word().
[[nodiscard]] inline bool is_type_column(std::string_view name) { return plain_word(name) == "type"; }
/// Refuses a second column of types. \throws std::runtime_error  always
[[noreturn]] inline void refuse_second_types(const std::string& where, const std::string& first,
                                             const std::string& second) {
  fail(where, "columns '", printable(first), "' and '", printable(second),
       "' could both tell the types; only one can be meant");
}

/// What a table of nodes does with its column of types.
enum class TypeColumn : std::uint8_t {
  other,    ///< a column like others: such tables have no types
  feature,  ///< a feature; messages about texts there say how types are read
  types     ///< NodeTable::types
};

/// How a table of nodes or graphs is read.
struct TableRules {
  std::string label = "label";            ///< column of the classes; empty: none
  MissingLabels missing = {};             ///< texts that are unknown labels
  std::vector<std::string> texts = {};    ///< columns whose fields are kept: NodeTable::texts
  std::vector<std::string> targets = {};  ///< columns of numbers to learn: NodeTable::targets
  std::vector<std::string> ignored = {};  ///< columns that are not read
  bool needs_targets = true;              ///< whether all of them have to be there
  TypeColumn types = TypeColumn::other;   ///< what becomes of a column of types
  std::string_view row = "node";          ///< what messages call a row
  bool numbered = false;  ///< a first column called as texts[0] holds these texts; rows have no names then
  /// Where sets belong, for messages.
  std::string_view sets = "a column called split (or split_0, split_1, ...) holds train, validation or test";
  std::string text_advice = "";  ///< what messages say of a feature that is a text
};

/// What the columns of a node table mean.
struct NodeColumns {
  enum class Role { name, label, split, feature, text, type, target, ignored };
  std::vector<std::string> names;
  std::vector<Role> roles;
  bool labelled = false;
  std::size_t unnamed = 0;  ///< trailing columns, which are empty

  /// A column with the name of a set or a split is not a feature. \throws std::runtime_error  for one
  static void refuse_set(const CsvReader& header, const std::string& name, const TableRules& rules) {
    if (!resembles_set_column(name)) return;
    fail(header.where(), "column '", printable(name), "' looks like a part of a split, not like a feature; ",
         rules.sets);
  }
  NodeColumns(const CsvReader& header, const TableRules& rules) : names(header.fields()) {
    const std::string& label = rules.label;
    const auto is_in = [](const std::vector<std::string>& list, const std::string& name) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    const auto is_text = [&](const std::string& name) { return is_in(rules.texts, name); };
    const auto is_ignored = [&](const std::string& name) { return is_in(rules.ignored, name); };
    const auto is_type = [&](const std::string& name) {
      return rules.types == TypeColumn::types && is_type_column(name) && name != label && !is_ignored(name) &&
             !is_in(rules.targets, name);
    };
    while (names.size() > 1 && names.back().empty()) names.pop_back();
    unnamed = header.fields().size() - names.size();
    const bool numbered = rules.numbered && names.front() == rules.texts.front();
    if (!numbered &&
        ((!label.empty() && names.front() == label) || is_text(names.front()) || is_type(names.front()) ||
         is_in(rules.targets, names.front()) || is_ignored(names.front()))) {
      fail(header.where(), "column '", printable(names.front()),
           "' is the first column, which holds the names of the ", rules.row, "s");
    }
    for (std::size_t k = 0; k < names.size(); ++k) {
      const auto same = std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(k), names[k]);
      if (k > 0 && names[k].empty()) fail(header.where(), "column ", k + 1, " has no name");
      if (same != names.begin() + static_cast<std::ptrdiff_t>(k)) {
        fail(header.where(), "columns ", same - names.begin() + 1, " and ", k + 1, " are both called '",
             printable(names[k]), "'");
      }
      const auto types = std::find(roles.begin(), roles.end(), Role::type);
      if (is_type(names[k]) && types != roles.end()) {
        refuse_second_types(header.where(), names[static_cast<std::size_t>(types - roles.begin())], names[k]);
      }
      roles.push_back(k == 0 && !numbered              ? Role::name
                      : is_ignored(names[k])           ? Role::ignored
                      : is_text(names[k])              ? Role::text
                      : is_type(names[k])              ? Role::type
                      : is_in(rules.targets, names[k]) ? Role::target
                      : names[k] == label              ? Role::label
                      : is_split_column(names[k])      ? Role::split
                                                       : Role::feature);
      if (roles.back() == Role::feature) refuse_set(header, names[k], rules);
      labelled = labelled || roles.back() == Role::label;
    }
    const auto require_columns = [&](const std::vector<std::string>& wanted, const CallerName& option,
                                     std::string_view what) {
      for (const std::string& name : wanted) {
        if (!is_in(names, name))
          fail(header.where(), "no column is called '", printable(name), "' (", option.text(),
               " names the columns ", what, ")");
      }
    };
    for (const std::string& name : rules.targets) {
      if (is_ignored(name)) {
        fail(header.where(), "column '", printable(name), "' is a target, and is not read (",
             caller_name::ignored_columns.text(), ')');
      }
    }
    if (rules.needs_targets) require_columns(rules.targets, caller_name::targets, "of targets");
    require_columns(rules.ignored, caller_name::ignored_columns, "that are not read");
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

  /// The index of a node, or -1.
  [[nodiscard]] std::int32_t find(const std::string& name) const {
    if (!numbered_) {
      const auto found = numbers_.find(name);
      return found == numbers_.end() ? -1 : found->second;
    }
    std::int64_t number = -1;
    return parse_number(name, number) && number >= 0 && number < count_ ? static_cast<std::int32_t>(number) : -1;
  }
  /// Whether any node has such a name.
  template <class Predicate>
  [[nodiscard]] bool any_name(const Predicate& predicate) const {
    return std::any_of(numbers_.begin(), numbers_.end(), [&](const auto& node) { return predicate(node.first); });
  }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  [[nodiscard]] Index count() const noexcept { return numbered_ ? count_ : static_cast<Index>(numbers_.size()); }
  /// Refuses a name that find() does not know. \param note  the end of the message
  [[noreturn]] void refuse(const std::string& where, const std::string& name, std::string_view note = "") const {
    if (!numbered_) fail(where, "node '", printable(name), "' is not in ", file_, note);
    fail(where, "'", printable(name), "' is not a node; the nodes of ", file_, " are numbered 0 to ", count_ - 1,
         note);
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
  NodeTableReader(CsvReader& csv, TableRules rules)
      : csv_(csv), rules_(std::move(rules)), columns_(header(csv, rules_), rules_) {
    table_.file = csv.file();
    table_.texts.resize(rules_.texts.size());
    for (std::size_t k = 0; k < columns_.names.size(); ++k) {
      if (columns_.roles[k] == Role::feature) table_.feature_names.push_back(columns_.names[k]);
      if (columns_.roles[k] != Role::split) continue;
      table_.splits.emplace_back();
      table_.split_names.push_back(columns_.names[k]);
    }
  }
  [[nodiscard]] NodeTable read() {
    while (csv_.next()) add_node();
    if (table_.lines.empty()) fail(csv_.file(), "lists no ", rules_.row, "; the graph is empty");
    check_names();
    if (columns_.labelled && rules_.targets.empty()) {
      const std::string column = sheafnn::detail::concat(": column '", printable(rules_.label), '\'');
      const auto place = [&](std::size_t u) {
        return sheafnn::detail::concat(csv_.file(), ':', table_.lines[u], column);
      };
      EncodedLabels labels = read_label_texts(labels_, rules_.missing, csv_.file() + column, place);
      table_.labels = std::move(labels.codes);
      table_.class_names = std::move(labels.class_names);
    }
    table_.features = NodeFeatures::from_csr(std::move(offsets_), std::move(column_of_), std::move(values_),
                                             static_cast<Index>(table_.feature_names.size()), MissingValues::mark);
    return std::move(table_);
  }

 private:
  using Role = NodeColumns::Role;

  static const CsvReader& header(CsvReader& csv, const TableRules& rules) {
    if (!csv.next()) fail(csv.file(), "is empty; expected a header line and one line per ", rules.row);
    return csv;
  }
  void add_node() {
    const std::vector<std::string>& fields = csv_.fields();
    const std::size_t count = columns_.names.size();
    const bool empty_behind =
        std::all_of(fields.begin() + static_cast<std::ptrdiff_t>(std::min(count, fields.size())), fields.end(),
                    [](const std::string& field) { return field.empty(); });
    if (fields.size() < count || !empty_behind) {
      fail(csv_.where(), "has ", fields.size(), " fields; the header has ", count,
           columns_.unnamed > 0 ? sheafnn::detail::concat(" (column ", count + 1, " has no name)") : "");
    }
    const std::int32_t node = static_cast<std::int32_t>(table_.lines.size());
    table_.lines.push_back(csv_.line());
    std::size_t split = 0;
    std::int32_t feature = 0;
    const std::size_t first_target = table_.targets.size();
    table_.targets.resize(first_target + rules_.targets.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t k = 0; k < count; ++k) {
      switch (columns_.roles[k]) {
        case Role::name:
          if (fields[k].empty()) fail(csv_.where(), "the ", rules_.row, " has no name");
          table_.names.push_back(fields[k]);
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
        case Role::text:
          table_.texts[place_of(rules_.texts, k)].push_back(fields[k]);
          break;
        case Role::type:
          table_.types.push_back(fields[k]);
          break;
        case Role::ignored:
          break;
        case Role::target:
          table_.targets[first_target + place_of(rules_.targets, k)] = target_of(fields[k], k);
          break;
      }
    }
    offsets_.push_back(static_cast<Index>(values_.size()));
  }
  void add_to_split(Split& split, std::int32_t node, const std::string& text, std::size_t column) const {
    if (text.empty()) return;
    const auto word = std::find_if(std::begin(set_words), std::end(set_words),
                                   [&](const auto& known) { return known.first == text; });
    if (word == std::end(set_words)) {
      fail(where(column), "'", printable(text),
           "' is not a set of a split; expected train, validation (or val), test or nothing");
    }
    (word->second == 0 ? split.train : word->second == 1 ? split.validation : split.test).push_back(node);
  }
  /// Where a list has the name of a column.
  [[nodiscard]] std::size_t place_of(const std::vector<std::string>& list, std::size_t column) const {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), columns_.names[column]) - list.begin());
  }
  /// Whether a text would be a number without its commas.
  [[nodiscard]] static bool has_decimal_comma(const std::string& text) {
    std::string without = text;
    double value = 0;
    return std::erase(without, ',') > 0 && parse_number(without, value);
  }
  /// A finite number, or NaN where it is missing. \param hint  the end of the message about a text that is no number
  template <class Hint>
  [[nodiscard]] double number_of(const std::string& text, std::size_t column, const Hint& hint) const {
    double value = 0;
    const bool is_number = parse_number(text, value);
    if (!is_number && (text.empty() || sheafnn::detail::means_missing(text))) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    if (!is_number || std::isinf(value)) {
      fail(where(column), "'", printable(text), "' is not a finite number",
           is_number                 ? std::string()
           : has_decimal_comma(text) ? std::string("; numbers have a decimal point, and no comma")
                                     : hint());
    }
    return value;
  }
  /// Words of --missing-labels are unknown targets too.
  [[nodiscard]] double target_of(const std::string& text, std::size_t column) const {
    const auto is_word = [&](const std::string& word) { return word == text; };
    if (rules_.missing && std::any_of(rules_.missing->begin(), rules_.missing->end(), is_word)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return number_of(text, column, [] { return std::string("; targets are numbers, empty where unknown"); });
  }
  void add_feature(std::int32_t number, const std::string& text, std::size_t column) {
    const auto hint = [&]() -> std::string {
      if (rules_.types == TypeColumn::feature && is_type_column(columns_.names[column])) {
        return sheafnn::detail::concat("; ", caller_name::node_types.text(),
                                       " reads the column as types of nodes; otherwise leave it out");
      }
      if (columns_.labelled || rules_.label.empty()) return rules_.text_advice;
      return sheafnn::detail::concat("; no column is called '", printable(rules_.label), "' (",
                                     caller_name::label.text(), " names the column of the labels)");
    };
    const double value = number_of(text, column, hint);
    if (value == 0) return;
    column_of_.push_back(number);
    values_.push_back(value);
  }
  void check_names() const {
    std::unordered_map<std::string_view, std::size_t> seen;
    for (std::size_t u = 0; u < table_.names.size(); ++u) {
      const auto [first, inserted] = seen.emplace(table_.names[u], u);
      if (inserted) continue;
      fail(sheafnn::detail::concat(csv_.file(), ":", table_.lines[u]), rules_.row, " '",
           printable(table_.names[u]), "' was already listed in line ", table_.lines[first->second]);
    }
  }
  /// "FILE:LINE: column 'x'".
  [[nodiscard]] std::string where(std::size_t column) const {
    return sheafnn::detail::concat(csv_.where(), ": column '", printable(columns_.names[column]), "'");
  }

  CsvReader& csv_;
  TableRules rules_;
  NodeColumns columns_;
  NodeTable table_;
  std::vector<std::string> labels_;
  std::vector<Index> offsets_ = {0};
  std::vector<std::int32_t> column_of_;
  std::vector<double> values_;
};

}  // namespace detail

/// Reads a node table: a header line, then one line per node. The first column holds the node's name, the column called
/// `label` its class. Columns called split or split_0, split_1, … hold its set: train, validation or val, test, or nothing.
/// All other columns hold its features. These are finite numbers, or missing values (NodeFeatures::indicators()) where a
/// field is empty or says NA, nan, null or the like. A column with the name of a set, such as is_train, test or fold, is
/// refused.
///
/// What labels mean: encode_labels().
///
/// \param missing  the texts that are unknown labels
/// \throws std::runtime_error  one line that names the file, the line and the column
[[nodiscard]] inline NodeTable read_node_table(CsvReader csv, const std::string& label = "label",
                                               const MissingLabels& missing = {}) {
  return detail::NodeTableReader(csv, {.label = label, .missing = missing}).read();
}

}  // namespace sheafnn::io
