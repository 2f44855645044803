/// \file
/// Edge lists: a delimited text file with two node names per line.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/text.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/csv_ends.hpp"
#include "sheafnn/io/csv_nodes.hpp"
#include "sheafnn/io/lines.hpp"

namespace sheafnn::io {

namespace detail {

/// The lines of an edge list, with the numbers in the columns after the two nodes.
struct EdgeList {
  std::string file;
  std::vector<Edge> edges;  ///< source and target of every line
  std::vector<Index> lines;
  std::vector<std::string> names;    ///< of the k further columns, as messages have them
  std::vector<std::string> columns;  ///< k, as the header has them; "" without a header
  std::vector<double> values;        ///< m × k
  std::vector<std::string> types;    ///< m, or empty: not read
  std::vector<std::string> texts;    ///< m, of the column with a chosen name; or empty: none

  /// "FILE:LINE" of an edge.
  [[nodiscard]] std::string where(std::size_t e) const { return sheafnn::detail::concat(file, ":", lines[e]); }
};
/// What becomes of columns of an edge list other than the ends of an edge.
enum class EdgeAttributes : std::uint8_t {
  refuse,  ///< an error, unless all edges have the same
  types,   ///< the same, but the column type: EdgeList::types
  keep     ///< finite numbers: EdgeList::values
};

/// A text of a column as a finite number.
///
/// \param column  what messages call it
/// \throws std::runtime_error  it is none
[[nodiscard]] inline double finite_number(const std::string& where, std::string_view column,
                                          const std::string& text) {
  double value = 0;
  if (!parse_number(text, value) || !std::isfinite(value)) {
    fail(where, "column ", column, ": '", printable(text), "' is not a finite number");
  }
  return value;
}

/// Reads an edge list record by record; see read_edge_list().
class EdgeListReader {
 public:
  /// \param chosen   name of the column whose texts are read, if there is such a column; empty: none
  /// \param ignored  names of columns that are not read
  EdgeListReader(CsvReader csv, const NodeNumbers& nodes, EdgeAttributes attributes = EdgeAttributes::refuse,
                 std::string chosen = {}, std::vector<std::string> ignored = {})
      : csv_(std::move(csv)),
        nodes_(nodes),
        attributes_(attributes),
        chosen_(std::move(chosen)),
        ignored_(std::move(ignored)) {
    std::string comments;
    for (const char mark : {'#', '%'}) {
      if (!nodes.any_name([&](std::string_view name) { return name.starts_with(mark); })) comments += mark;
    }
    csv_.read_as_edges(comments);
  }
  [[nodiscard]] EdgeList read() {
    for (bool first = true; csv_.next(); first = false) {
      const bool header = first && read_header();
      if (first) check_ignored(header);
      if (!header) add_edge(first);
    }
    list_.file = csv_.file();
    if (attributes_ == EdgeAttributes::types && list_.types.size() != list_.edges.size()) {
      fail(csv_.file(), "has no column 'type', which tells the types of edges");
    }
    if (std::all_of(list_.edges.begin(), list_.edges.end(), [](const Edge& e) { return e.u == e.v; })) {
      fail(csv_.file(),
           of_graph_ ? "the graph has no edge between different nodes" : "has no pair of two different nodes");
    }
    return std::move(list_);
  }
  /// The names of the nodes that edges join, each once, in the order of the file. The table of nodes does not count.
  [[nodiscard]] std::vector<std::string> read_names() {
    collects_ = true;
    static_cast<void>(read());
    return std::move(names_);
  }

  /// The lines of a file of pairs that are no edges, such as pairs to predict.
  [[nodiscard]] std::vector<Edge> read_pairs() {
    of_graph_ = false;
    return read().edges;
  }

 private:
  /// While names are collected, also of a new node.
  [[nodiscard]] std::int32_t number_of(const std::string& name) {
    if (!collects_ || name.empty()) return nodes_.find(name);
    if (numbers_.emplace(name, static_cast<std::int32_t>(names_.size())).second) names_.push_back(name);
    return numbers_.at(name);
  }
  /// A column other than the ends of an edge.
  struct Column {
    enum class Kind { ends, ignored, type, constant, number, chosen };
    Kind kind = Kind::constant;
    std::string name;  ///< for messages
    std::string value;
    Index line = 0;  ///< of that value, 0: none yet
  };

  /// Takes the first record for the names of columns, if no name is a node or number, and two names are ends of an edge. So
  /// a mistyped pair of nodes is not a header.
  [[nodiscard]] bool read_header() {
    const std::vector<std::string>& fields = csv_.fields();
    if (fields.size() > 100) return false;  // of no edge list
    std::optional<EndColumns> found;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      for (std::size_t j = i + 1; j < fields.size(); ++j) {
        if (!is_word(fields[i]) || !is_word(fields[j])) continue;
        const std::optional<EndColumns> ends = match_ends(fields[i], fields[j]);
        if (!ends || (found && ends_[0] + ends_[1] == 1)) continue;  // the first two columns have precedence
        if (found) {
          fail(csv_.where(), "'", printable(fields[ends_[0]]), "', '", printable(fields[ends_[1]]), "', '",
               printable(fields[i]), "' and '", printable(fields[j]), "' could all be the ends of edges");
        }
        found = ends;
        ends_[0] = ends->turned ? j : i;
        ends_[1] = ends->turned ? i : j;
      }
    }
    if (!found && fields.size() == 2 && is_word(fields[0]) && fields[0] == fields[1]) {
      return plain_word(fields[0]).ends_with("id") && of_affixes(plain_word(fields[0]));  // node_id twice
    }
    if (!found) return false;
    if (nodes_look_like(*found, nodes_)) {
      fail(csv_.where(), "'", printable(fields[ends_[0]]), "' and '", printable(fields[ends_[1]]),
           "' are either the names of columns or two nodes that ", nodes_.file(),
           " lacks. A header for such nodes has the names source and target");
    }
    std::size_t count = fields.size();
    while (fields[count - 1].empty()) --count;  // trailing separators
    for (std::size_t k = 0; k < count; ++k) set_column(fields[k]);
    return true;
  }
  /// Refuses names of ignored columns that the header lacks, and ends of edges.
  void check_ignored(bool header) const {
    const std::vector<std::string>& fields = csv_.fields();
    for (const std::string& name : ignored_) {
      const auto found = std::find(fields.begin(), fields.end(), name);
      if (!header || found == fields.end()) {
        fail(csv_.where(), "no column is called '", printable(name), "' (",
             caller_name::ignored_edge_columns.text(), " names the columns that are not read)");
      }
      const auto k = static_cast<std::size_t>(found - fields.begin());
      if (k == ends_[0] || k == ends_[1]) {
        fail(csv_.where(), "column '", printable(name), "' holds the ends of the edges");
      }
    }
  }
  /// Neither a node nor a number.
  [[nodiscard]] bool is_word(const std::string& field) const {
    double number = 0;
    return !field.empty() && nodes_.find(field) < 0 && !parse_number(field, number);
  }
  void set_column(const std::string& name) {
    Column column;
    const std::size_t k = columns_.size();
    const std::string plain = plain_word(name);
    using Kind = Column::Kind;
    if (k == ends_[0] || k == ends_[1]) {
      column.kind = Kind::ends;
    } else if (std::find(ignored_.begin(), ignored_.end(), name) != ignored_.end()) {
      column.kind = Kind::ignored;
    } else if (!chosen_.empty() && name == chosen_) {
      column.kind = Kind::chosen;
      for (const Column& before : columns_) {
        if (before.kind == Kind::chosen) fail(csv_.where(), "has two columns '", printable(name), "'");
      }
    } else if (attributes_ != EdgeAttributes::keep && is_type_column(name)) {
      column.kind = Kind::type;
      for (std::size_t j = 0; j < k && attributes_ == EdgeAttributes::types; ++j) {
        if (columns_[j].kind == Kind::type) refuse_second_types(csv_.where(), csv_.fields()[j], name);
      }
    } else if (plain == "id" || plain == "edgeid" || plain == "label" || plain == "unnamed0" || plain == "index" ||
               (name.empty() && k == 0)) {
      column.kind = Kind::ignored;  // of Gephi, and line numbers
    }
    column.name = name.empty() ? sheafnn::detail::concat(k + 1) : "'" + printable(name) + "'";
    if (column.kind == Kind::constant && attributes_ == EdgeAttributes::keep) {
      column.kind = Kind::number;
      list_.names.push_back(column.name);
      list_.columns.push_back(name);
    }
    columns_.push_back(std::move(column));
  }

  void add_edge(bool first) {
    const std::vector<std::string>& fields = csv_.fields();
    std::size_t count = fields.size();
    while (columns_.empty() && first && count > 2 && fields[count - 1].empty()) --count;
    while (!columns_.empty() && count > columns_.size() && fields[count - 1].empty()) --count;
    if (columns_.empty()) {
      if (count < 2) fail(csv_.where(), "has ", count, " fields; expected the names of two nodes");
      for (std::size_t k = 0; k < count; ++k) set_column("");
    }
    if (count != columns_.size()) {
      fail(csv_.where(), "has ", count, " fields; expected ",
           columns_.size() == 2 ? "the names of two nodes"
                                : sheafnn::detail::concat(columns_.size(), ", as in the lines before"),
           columns_.size() == 2 && count > 2
               ? " (edges have no weights or other attributes here: remove such columns)"
               : "");
    }
    std::int32_t ends[2];
    for (std::size_t k = 0; k < 2; ++k) {
      ends[k] = number_of(fields[ends_[k]]);
      if (ends[k] < 0) {
        nodes_.refuse(csv_.where(), fields[ends_[k]],
                      first ? " (a header names its columns by two words such as source and target)" : "");
      }
    }
    for (std::size_t k = 0; k < count; ++k) check_attribute(columns_[k], fields[k]);
    list_.edges.push_back({ends[0], ends[1]});
    list_.lines.push_back(csv_.line());
  }
  /// Attributes of edges are refused unless all edges have the same.
  void check_attribute(Column& column, const std::string& text) {
    using Kind = Column::Kind;
    if (column.kind == Kind::ends || column.kind == Kind::ignored) return;
    if (column.kind == Kind::number) {
      list_.values.push_back(finite_number(csv_.where(), column.name, text));
      return;
    }
    if (column.kind == Kind::chosen) {
      list_.texts.push_back(text);
      return;
    }
    if (column.kind == Kind::type && attributes_ == EdgeAttributes::types) {
      if (text.empty()) fail(csv_.where(), "the edge has no type");
      list_.types.push_back(text);
      return;
    }
    if (column.kind == Kind::type) {
      const std::string plain = plain_word(text);
      if (plain == "directed" || plain == "undirected" || plain == "mutual") return;
    }
    if (column.line == 0) {
      column.value = text;
      column.line = csv_.line();
      return;
    }
    if (text == column.value) return;
    const auto value = sheafnn::detail::parse_decimal(text);
    if (value && value == sheafnn::detail::parse_decimal(column.value)) return;
    const bool missing = !chosen_.empty() && list_.texts.empty();
    fail(csv_.where(), "column ", column.name, " is '", printable(text), "', and '", printable(column.value),
         "' in line ", column.line,
         missing                     ? sheafnn::detail::concat("; there is no column '", printable(chosen_), "'")
         : column.kind == Kind::type ? unread_types()
                                     : advice(column));
  }
  /// What to do about a column of values that differ.
  [[nodiscard]] std::string advice(const Column& column) const {
    if (!of_graph_) return "; pairs have no attributes: remove the column";
    const std::string remove = column.name.starts_with('\'')
                                   ? sheafnn::detail::concat(" (", caller_name::ignored_edge_columns.text(), ")")
                                   : std::string();
    return sheafnn::detail::concat("; edges have no weights or other attributes here: remove the column", remove,
                                   ", or learn it (", caller_name::edge_values.text(), ")");
  }

  CsvReader csv_;
  const NodeNumbers& nodes_;
  EdgeAttributes attributes_;
  std::string chosen_;
  std::vector<std::string> ignored_;
  std::size_t ends_[2] = {0, 1};  ///< columns of the source and the target
  std::vector<Column> columns_;
  EdgeList list_;
  bool collects_ = false;  ///< names of nodes
  bool of_graph_ = true;   ///< the lines are the edges of a graph
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

/// Reads an edge list: two node names per line, in any order, in one direction or both. The first line may be a
/// header: two of its columns are called source and target, from and to, u and v, or the like. Lines that begin
/// with # or % are comments, unless nodes have such names. Fields may be separated by blanks. Further columns are refused,
/// unless all edges have the same value there, or they are called Id, Label or Type (Directed, Undirected). Sheaves learn
/// the weights of edges. read_edge_columns() reads the column type and columns of labels and numbers.
///
/// \throws std::runtime_error  one line that names the file, the line and the node or column
[[nodiscard]] inline Graph read_edge_list(CsvReader csv, const NodeNumbers& nodes) {
  return Graph(nodes.count(), EdgeListReader(std::move(csv), nodes).read().edges);
}

}  // namespace detail

}  // namespace sheafnn::io
