/// \file
/// Matrix Market files (.mtx) as graphs and as node features. Matrices are sparse (coordinate) or dense (array); general,
/// symmetric or skew-symmetric. Entries are real, integer, unsigned-integer or pattern.
///
/// Source: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market Exchange Formats: Initial Design", NISTIR
/// 5935 (1996). Rows and columns are numbered from 1 in the file, and dense entries come column by column. The file holds
/// the lower triangle of a symmetric matrix, and of a skew-symmetric matrix the lower triangle without the diagonal.
/// Unsigned integers are of programs that came later (fast_matrix_market, scipy).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/memory.hpp"
#include "sheafnn/core/text.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/io/lines.hpp"

namespace sheafnn::io {

/// A matrix by its entries that are not zero, sorted by row and column, numbered from 0.
struct MatrixEntries {
  /// One of them.
  struct Entry {
    std::int32_t row = 0;
    std::int32_t column = 0;
    double value = 1;
  };
  std::string file;
  Index rows = 0;
  Index columns = 0;
  std::vector<Entry> entries;
  bool skew_symmetric = false;  ///< the file says so: (u, v) and (v, u) are equal up to sign
};

namespace detail {

/// See the file comment.
class MatrixMarketReader {
 public:
  /// \param memory  a matrix that takes more is refused before it is allocated
  explicit MatrixMarketReader(LineReader lines, double memory = memory_limit())
      : lines_(std::move(lines)), memory_(memory) {}

  [[nodiscard]] MatrixEntries read() {
    matrix_.file = lines_.file();
    read_banner();
    read_sizes();
    for (Index k = 0; k < stored_; ++k) {
      if (!next()) fail(lines_.file(), "holds ", k, " entries; line ", size_line_, " promises ", stored_);
      if (coordinate_) {
        read_coordinate();
      } else {
        read_array();
      }
    }
    if (next()) fail(lines_.where(), "follows the ", stored_, " entries that line ", size_line_, " promises");
    sort();
    return std::move(matrix_);
  }

 private:
  /// Splits the line at blanks.
  [[nodiscard]] std::vector<std::string_view> words() const {
    std::vector<std::string_view> r;
    constexpr std::string_view blanks = " \t";
    for (std::string_view rest = lines_.line();;) {
      const std::size_t begin = rest.find_first_not_of(blanks);
      if (begin == std::string_view::npos) return r;
      rest.remove_prefix(begin);
      r.push_back(rest.substr(0, rest.find_first_of(blanks)));
      rest.remove_prefix(r.back().size());
    }
  }
  /// The next line that is neither a comment nor blank; false at the end.
  [[nodiscard]] bool next() {
    while (lines_.next()) {
      if (lines_.line().front() == '%') continue;
      words_ = words();
      if (!words_.empty()) return true;
    }
    return false;
  }

  void read_banner() {
    if (!lines_.next()) fail(lines_.file(), "is empty; expected a line %%MatrixMarket matrix ...");
    std::string line(lines_.line());
    for (char& c : line) c = sheafnn::detail::lower(c);
    std::vector<std::string> banner;
    for (const std::string_view word : words()) {
      banner.push_back(line.substr(static_cast<std::size_t>(word.data() - lines_.line().data()), word.size()));
    }
    if (banner.size() != 5 || banner[0] != "%%matrixmarket" || banner[1] != "matrix") {
      fail(lines_.where(), "'", printable(lines_.line()),
           "' is not the first line of a matrix, as in %%MatrixMarket matrix coordinate real general");
    }
    coordinate_ = choice(banner[2], "coordinate", "array") == 0;
    pattern_ = banner[3] == "pattern";
    if (!pattern_) {
      const int type = choice(banner[3], "real", "integer", "unsigned-integer", "pattern");
      integer_ = type > 0;
      unsigned_ = type == 2;
    }
    const int symmetry = choice(banner[4], "general", "symmetric", "skew-symmetric");
    symmetric_ = symmetry > 0;
    matrix_.skew_symmetric = skew_ = symmetry == 2;
    if (pattern_ && !coordinate_) fail(lines_.where(), "an array has no pattern; its entries are real or integer");
    if (pattern_ && skew_) fail(lines_.where(), "a pattern has no signs; it is general or symmetric");
  }
  /// Which of some words a word of the banner is.
  template <class... Words>
  [[nodiscard]] int choice(const std::string& word, const Words&... known) const {
    int number = -1, k = 0;
    ((word == known ? void(number = k) : void(), ++k), ...);
    if (number < 0) {
      std::string list;
      ((list += sheafnn::detail::concat(list.empty() ? "" : ", ", known)), ...);
      fail(lines_.where(), "'", printable(word), "' is not supported; choose from ", list);
    }
    return number;
  }

  void read_sizes() {
    const std::size_t count = coordinate_ ? 3 : 2;
    if (!next()) fail(lines_.file(), "has no line with the size of the matrix");
    size_line_ = lines_.number();
    Index sizes[3] = {0, 0, 0};
    bool good = words_.size() == count;
    for (std::size_t k = 0; good && k < count; ++k) good = parse_number(words_[k], sizes[k]) && sizes[k] >= 0;
    if (!good) {
      fail(lines_.where(), "'", printable(lines_.line()), "' is not a size; expected rows, columns",
           coordinate_ ? " and the number of entries" : "");
    }
    constexpr Index most = std::numeric_limits<std::int32_t>::max();
    if (sizes[0] < 1 || sizes[1] < 1 || sizes[0] > most || sizes[1] > most) {
      fail(lines_.where(), "a matrix of ", sizes[0], " x ", sizes[1], " is not allowed; 1 to ", most,
           " rows and columns are");
    }
    matrix_.rows = sizes[0];
    matrix_.columns = sizes[1];
    if (symmetric_ && sizes[0] != sizes[1]) {
      fail(lines_.where(), "a ", symmetry(), " matrix of ", sizes[0], " x ", sizes[1], " is impossible");
    }
    const Index triangle = sizes[0] * (sizes[0] + (skew_ ? -1 : 1)) / 2;
    stored_ = coordinate_ ? sizes[2] : symmetric_ ? triangle : sizes[0] * sizes[1];
    next_row_ = skew_ ? 1 : 0;
    check_size();
  }
  [[nodiscard]] const char* symmetry() const noexcept { return skew_ ? "skew-symmetric" : "symmetric"; }
  /// No file promises more than it can hold, and no matrix is begun that does not fit into memory.
  void check_size() const {
    const Index least = coordinate_ ? 4 : 2;  // bytes of an entry with its line end, which the last may lack
    if (stored_ > (lines_.size() + 1) / least) {
      fail(lines_.where(), "promises ", stored_, " entries; the ", lines_.size(),
           " bytes of the file are too few");
    }
    const double entries = static_cast<double>(stored_) * (symmetric_ ? 2 : 1);
    check_memory(lines_.where(),
                 entries * sizeof(MatrixEntries::Entry) + static_cast<double>(matrix_.rows) * sizeof(Index),
                 memory_);
  }

  [[nodiscard]] Index parse_position(std::size_t word, const char* what, Index limit) const {
    Index number = 0;
    if (!parse_number(words_[word], number) || number < 1 || number > limit) {
      fail(lines_.where(), "'", printable(words_[word]), "' is not a ", what, "; expected 1 to ", limit);
    }
    return number - 1;
  }
  [[nodiscard]] double parse_value(std::size_t word) const {
    double value = 0;
    if (!parse_number(words_[word], value) || !std::isfinite(value)) {
      fail(lines_.where(), "'", printable(words_[word]), "' is not a finite number");
    }
    if (integer_ && value != std::trunc(value)) {
      fail(lines_.where(), "'", printable(words_[word]), "' is not an integer; the entries are of type ",
           unsigned_ ? "unsigned-integer" : "integer");
    }
    if (unsigned_ && value < 0) {
      fail(lines_.where(), "'", printable(words_[word]),
           "' is negative; the entries are of type unsigned-integer");
    }
    return value;
  }
  void check_words(std::size_t count, const char* expected) const {
    if (words_.size() == count) return;
    fail(lines_.where(), "has ", words_.size(), " numbers; expected ", expected);
  }
  void read_coordinate() {
    check_words(pattern_ ? 2 : 3, pattern_ ? "row and column" : "row, column and value");
    const Index row = parse_position(0, "row", matrix_.rows),
                column = parse_position(1, "column", matrix_.columns);
    if (symmetric_ && row < column) {
      fail(lines_.where(), "entry (", row + 1, ", ", column + 1, ") is above the diagonal; a ", symmetry(),
           " matrix is stored by its lower triangle");
    }
    const double value = pattern_ ? 1.0 : parse_value(2);
    if (skew_ && row == column && value != 0) {
      fail(lines_.where(), "entry (", row + 1, ", ", column + 1,
           ") is on the diagonal, where a skew-symmetric matrix ", "is zero");
    }
    add(row, column, value);
  }
  void read_array() {
    check_words(1, "one");
    add(next_row_, next_column_, parse_value(0));
    if (++next_row_ == matrix_.rows) {
      ++next_column_;
      next_row_ = symmetric_ ? next_column_ + (skew_ ? 1 : 0) : 0;
    }
  }
  void add(Index row, Index column, double value) {
    const std::int32_t u = static_cast<std::int32_t>(row), v = static_cast<std::int32_t>(column);
    if (value != 0) matrix_.entries.push_back({u, v, value});
    if (value != 0 && symmetric_ && u != v) matrix_.entries.push_back({v, u, skew_ ? -value : value});
  }
  void sort() {
    std::vector<MatrixEntries::Entry>& e = matrix_.entries;
    const auto position = [](const MatrixEntries::Entry& a) { return std::pair(a.row, a.column); };
    std::sort(e.begin(), e.end(), [&](const auto& a, const auto& b) { return position(a) < position(b); });
    const auto twice = std::adjacent_find(e.begin(), e.end(), [&](const auto& a, const auto& b) {
      return position(a) == position(b);
    });
    if (twice != e.end()) {
      fail(lines_.file(), "entry (", twice->row + 1, ", ", twice->column + 1, ") is listed twice");
    }
  }

  LineReader lines_;
  double memory_;
  MatrixEntries matrix_;
  std::vector<std::string_view> words_;
  bool coordinate_ = true, pattern_ = false, integer_ = false, unsigned_ = false, symmetric_ = false,
       skew_ = false;
  Index stored_ = 0;  ///< entries in the file
  Index size_line_ = 0;
  Index next_row_ = 0, next_column_ = 0;  ///< of an array
};

}  // namespace detail

/// Reads a matrix.
///
/// \throws std::runtime_error  one line that names the file, the line, the value and the limit. Also for complex and
///                             Hermitian matrices, entries listed twice, and sizes that the file or this machine's memory
///                             cannot hold
[[nodiscard]] inline MatrixEntries read_matrix_market(const std::filesystem::path& path) {
  return detail::MatrixMarketReader(detail::LineReader(path)).read();
}

/// The graph of a square matrix: an edge {u, v} for every entry (u, v) or (v, u) that is not zero, self-loops left out.
/// Edges have no weights: entries off the diagonal are all equal, in a skew-symmetric matrix up to sign.
///
/// \throws std::runtime_error  a matrix that is not square, with entries that differ, or without one off the diagonal
[[nodiscard]] inline Graph to_graph(const MatrixEntries& matrix) {
  if (matrix.rows != matrix.columns) {
    detail::fail(matrix.file, "is a matrix of ", matrix.rows, " x ", matrix.columns,
                 "; a graph needs a square one");
  }
  std::vector<Edge> edges;
  edges.reserve(matrix.entries.size());
  const MatrixEntries::Entry* first = nullptr;
  const auto weight = [&](const MatrixEntries::Entry& e) {
    return matrix.skew_symmetric ? std::abs(e.value) : e.value;
  };
  for (const MatrixEntries::Entry& e : matrix.entries) {
    edges.push_back({e.row, e.column});
    if (e.row == e.column) continue;
    if (first == nullptr) first = &e;
    if (weight(e) == weight(*first)) continue;
    detail::fail(matrix.file, "entry (", first->row + 1, ", ", first->column + 1, ") is ", first->value,
                 ", and entry (", e.row + 1, ", ", e.column + 1, ") is ", e.value,
                 "; edges have no weights here: save the value 1, or a pattern");
  }
  Graph graph = graph_of_entries(matrix.rows, std::move(edges));
  if (graph.edge_count() == 0) detail::fail(matrix.file, "the graph has no edge between different nodes");
  return graph;
}

/// Features of one node per row.
///
/// \throws std::invalid_argument  entries that are not sorted by row and column, outside the matrix, or not finite
[[nodiscard]] inline NodeFeatures to_features(const MatrixEntries& matrix) {
  require_between(matrix.file + ": rows", matrix.rows, 0, std::numeric_limits<std::int32_t>::max());
  std::vector<Index> offsets(static_cast<std::size_t>(matrix.rows) + 1, 0);
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  std::int32_t before = 0;
  for (const MatrixEntries::Entry& e : matrix.entries) {
    if (e.row < 0 || e.row >= matrix.rows || e.row < before) {
      throw_invalid_argument(sheafnn::detail::concat(matrix.file, ": row"), e.row,
                             sheafnn::detail::concat("rows must not decrease and be below ", matrix.rows));
    }
    before = e.row;
    ++offsets[static_cast<std::size_t>(e.row) + 1];
    columns.push_back(e.column);
    values.push_back(e.value);
  }
  for (std::size_t u = 1; u < offsets.size(); ++u) offsets[u] += offsets[u - 1];
  return NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), matrix.columns);
}

}  // namespace sheafnn::io
