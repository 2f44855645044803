// Matrix Market files as graphs and features, and messages with file and line.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sheafnn/io/matrix_market.hpp"
#include "temporary_folder.hpp"

namespace test_matrix_market {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using io::MatrixEntries;

const std::string banner = "%%MatrixMarket matrix ";

MatrixEntries read(const std::string& text) {
  return io::detail::MatrixMarketReader(io::detail::LineReader("t.mtx", {text.begin(), text.end()})).read();
}
// The message of call(), or "no error".
template <class Call>
std::string message_from(const Call& call) {
  try {
    static_cast<void>(call());
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "no error";
}
std::string message_of(const std::string& text) {
  return message_from([&] { return read(text); });
}
using Entries = std::vector<std::tuple<int, int, double>>;
Entries entries(const MatrixEntries& matrix) {
  Entries r;
  for (const MatrixEntries::Entry& e : matrix.entries) r.emplace_back(e.row, e.column, e.value);
  return r;
}

}  // namespace

TEST_CASE("Matrix Market: coordinates") {
  const test::TemporaryFolder folder;
  CHECK(entries(io::read_matrix_market(
            folder.write("t.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 3\n"))) ==
        Entries{{0, 0, 3}});
  const MatrixEntries matrix = read(
      banner + "coordinate real general\n% a comment\n%\n\n 2 3  4\n2 3 -1.5e1\n1 2 +2\n\n%\n2\t1 7\n1 1 0\n");
  CHECK(matrix.rows == 2);
  CHECK(matrix.columns == 3);
  CHECK(entries(matrix) == Entries{{0, 1, 2}, {1, 0, 7}, {1, 2, -15}});  // sorted, without the zero
  CHECK(entries(read("%%matrixmarket MATRIX Coordinate Pattern General\r\n2 2 2\r\n2 1\r\n1 2\r\n")) ==
        Entries{{0, 1, 1}, {1, 0, 1}});
  CHECK(entries(read(banner + "coordinate integer symmetric\n3 3 3\n1 1 5\n3 1 2\n3 2 -4")) ==
        Entries{{0, 0, 5}, {0, 2, 2}, {1, 2, -4}, {2, 0, 2}, {2, 1, -4}});
}

TEST_CASE("Matrix Market: arrays come column by column") {
  CHECK(entries(read(banner + "array real general\n2 3\n1\n2\n3\n0\n5\n6.5\n")) ==
        Entries{{0, 0, 1}, {0, 1, 3}, {0, 2, 5}, {1, 0, 2}, {1, 2, 6.5}});
  CHECK(
      entries(read(banner + "array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n")) ==
      Entries{{0, 0, 1}, {0, 1, 2}, {0, 2, 3}, {1, 0, 2}, {1, 1, 4}, {1, 2, 5}, {2, 0, 3}, {2, 1, 5}, {2, 2, 6}});
}

TEST_CASE("Matrix Market: skew-symmetric matrices, unsigned integers and a byte order mark") {
  CHECK(entries(read(banner + "coordinate real skew-symmetric\n3 3 3\n2 2 0\n3 1 2\n3 2 -4\n")) ==
        Entries{{0, 2, -2}, {1, 2, 4}, {2, 0, 2}, {2, 1, -4}});
  CHECK(entries(read(banner + "array integer skew-symmetric\n3 3\n1\n2\n3\n")) ==
        Entries{{0, 1, -1}, {0, 2, -2}, {1, 0, 1}, {1, 2, -3}, {2, 0, 2}, {2, 1, 3}});
  CHECK(entries(read(banner + "array real skew-symmetric\n1 1\n")).empty());
  CHECK(entries(read("\xEF\xBB\xBF" + banner + "coordinate unsigned-integer symmetric\n2 2 1\n2 1 3\n")) ==
        Entries{{0, 1, 3}, {1, 0, 3}});
}

TEST_CASE("Matrix Market: graphs and features") {
  const MatrixEntries matrix =
      read(banner + "coordinate real general\n4 4 5\n1 2 3\n2 1 1\n3 3 1\n4 2 -1\n1 3 0\n");
  const Graph graph =
      io::to_graph(read(banner + "coordinate real general\n4 4 5\n1 2 -1\n2 1 -1\n3 3 1\n4 2 -1\n1 3 0\n"));
  CHECK(std::vector<Edge>(graph.edges().begin(), graph.edges().end()) == std::vector<Edge>{{0, 1}, {1, 3}});
  CHECK(graph.dropped_self_loops() == 1);
  CHECK(graph.merged_duplicates() == 0);
  CHECK(graph.listed(0));  // 0→1, 1→0, 1→3, 3→1
  CHECK(graph.listed(1));
  CHECK_FALSE(graph.listed(2));
  CHECK(graph.listed(3));
  const NodeFeatures features = io::to_features(matrix);
  CHECK(features.rows() == 4);
  CHECK(features.columns() == 4);
  CHECK(std::vector<Index>(features.offsets().begin(), features.offsets().end()) ==
        std::vector<Index>{0, 1, 2, 3, 4});
  CHECK(std::vector<double>(features.values().begin(), features.values().end()) ==
        std::vector<double>{3, 1, 1, -1});
  CHECK_THROWS_AS(static_cast<void>(io::to_graph(read(banner + "coordinate pattern general\n2 3 1\n1 2\n"))),
                  std::runtime_error);
  CHECK_THROWS_AS(static_cast<void>(io::to_graph(read(banner + "coordinate pattern general\n2 2 1\n1 1\n"))),
                  std::runtime_error);
}

TEST_CASE("Matrix Market: a graph has no weights") {
  const auto message = [](const std::string& text) {
    return message_from([&] { return io::to_graph(read(banner + text)); });
  };
  const std::string end = "; edges have no weights here: save the value 1, or a pattern";
  CHECK(message("coordinate real general\n3 3 2\n1 2 0.5\n2 3 2\n") ==
        "t.mtx: entry (1, 2) is 0.5, and entry (2, 3) is 2" + end);
  CHECK(message("coordinate integer symmetric\n3 3 2\n2 1 5\n3 1 7\n") ==
        "t.mtx: entry (1, 2) is 5, and entry (1, 3) is 7" + end);
  CHECK(message("coordinate integer general\n2 2 2\n1 2 1\n2 1 -1\n") ==
        "t.mtx: entry (1, 2) is 1, and entry (2, 1) is -1" + end);
  CHECK(message("array real general\n2 2\n0\n1\n3\n0\n") ==
        "t.mtx: entry (1, 2) is 3, and entry (2, 1) is 1" + end);
  CHECK(message("coordinate real skew-symmetric\n3 3 2\n2 1 1\n3 1 -2\n") ==
        "t.mtx: entry (1, 2) is -1, and entry (1, 3) is 2" + end);
  CHECK(message("coordinate real skew-symmetric\n3 3 2\n2 1 2\n3 1 -2\n") == "no error");
  CHECK(message("coordinate real general\n3 3 4\n1 2 0.5\n2 3 0.5\n1 3 0\n2 2 9\n") == "no error");
  CHECK(message("array integer symmetric\n2 2\n4\n3\n5\n") == "no error");
}

TEST_CASE("Matrix Market: bad files are named with line, value and limit") {
  const std::string real = banner + "coordinate real general\n";
  CHECK(message_of("") == "t.mtx: is empty; expected a line %%MatrixMarket matrix ...");
  CHECK(message_of("1 2\n") ==
        "t.mtx:1: '1 2' is not the first line of a matrix, as in %%MatrixMarket matrix "
        "coordinate real general");
  CHECK(message_of(banner + "coordinate complex general\n") ==
        "t.mtx:1: 'complex' is not supported; choose from real, integer, unsigned-integer, pattern");
  CHECK(message_of(banner + "coordinate real hermitian\n") ==
        "t.mtx:1: 'hermitian' is not supported; choose from general, symmetric, skew-symmetric");
  CHECK(message_of(banner + "coordinate pattern skew-symmetric\n") ==
        "t.mtx:1: a pattern has no signs; it is general or symmetric");
  CHECK(message_of(banner + "coordinate real skew-symmetric\n2 3 0\n") ==
        "t.mtx:2: a skew-symmetric matrix of 2 x 3 is impossible");
  CHECK(message_of(banner + "coordinate real skew-symmetric\n2 2 1\n1 2 3\n") ==
        "t.mtx:3: entry (1, 2) is above the diagonal; a skew-symmetric matrix is stored by its lower triangle");
  CHECK(message_of(banner + "coordinate real skew-symmetric\n2 2 1\n2 2 3\n") ==
        "t.mtx:3: entry (2, 2) is on the diagonal, where a skew-symmetric matrix is zero");
  CHECK(message_of(banner + "coordinate unsigned-integer general\n2 2 1\n1 2 -3\n") ==
        "t.mtx:3: '-3' is negative; the entries are of type unsigned-integer");
  CHECK(message_of(banner + "coordinate integer general\n2 2 1\n1 2 1.5\n") ==
        "t.mtx:3: '1.5' is not an integer; the entries are of type integer");
  CHECK(entries(read(banner + "coordinate integer general\n2 2 1\n1 2 -1e3\n")) ==
        entries(read(banner + "coordinate real general\n2 2 1\n1 2 -1000\n")));
  CHECK(message_of(banner + "coordinate real general\r2 2 1\r1 2 3\r") ==
        "t.mtx:1: has a carriage return that ends no line. Save the file with the line ends of Unix or "
        "Windows");
  CHECK(message_of(banner + "dense real general\n") ==
        "t.mtx:1: 'dense' is not supported; choose from coordinate, array");
  CHECK(message_of(banner + "array pattern general\n") ==
        "t.mtx:1: an array has no pattern; its entries are real or integer");
  CHECK(message_of(real + "%\n") == "t.mtx: has no line with the size of the matrix");
  CHECK(message_of(real + "2 2\n") ==
        "t.mtx:2: '2 2' is not a size; expected rows, columns and the number of entries");
  CHECK(message_of(real + "2 2 -1\n") ==
        "t.mtx:2: '2 2 -1' is not a size; expected rows, columns and the number of entries");
  CHECK(message_of(real + "0 2 0\n") ==
        "t.mtx:2: a matrix of 0 x 2 is not allowed; 1 to 2147483647 rows and columns are");
  CHECK(message_of(real + "2147483648 2 0\n").starts_with("t.mtx:2: a matrix of 2147483648 x 2 is not allowed"));
  CHECK(message_of(banner + "coordinate real symmetric\n2 3 0\n") ==
        "t.mtx:2: a symmetric matrix of 2 x 3 is impossible");
  CHECK(message_of(real + "2 2 2\n%\n1 2 3\n") == "t.mtx: holds 1 entries; line 2 promises 2");
  CHECK(message_of(real + "2 2 1\n1 2 3\n2 2 3\n") == "t.mtx:4: follows the 1 entries that line 2 promises");
  CHECK(message_of(real + "2 2 1\n1 3 3\n") == "t.mtx:3: '3' is not a column; expected 1 to 2");
  CHECK(message_of(real + "2 2 1\n0 1 3\n") == "t.mtx:3: '0' is not a row; expected 1 to 2");
  CHECK(message_of(real + "2 2 1\n1 1 nan\n") == "t.mtx:3: 'nan' is not a finite number");
  CHECK(message_of(real + "2 2 1\n1 1 ++1\n") == "t.mtx:3: '++1' is not a finite number");
  CHECK(message_of(real + "2 2 1\n1 1 +-1\n") == "t.mtx:3: '+-1' is not a finite number");
  CHECK(message_of(real + "2 2 1\n1 1\n") == "t.mtx:3: has 2 numbers; expected row, column and value");
  CHECK(message_of(real + "2 2 2\n1 2 3\n1 2 4\n") == "t.mtx: entry (1, 2) is listed twice");
  CHECK(message_of(banner + "coordinate real symmetric\n2 2 1\n1 2 3\n") ==
        "t.mtx:3: entry (1, 2) is above the diagonal; a symmetric matrix is stored by its lower triangle");
  CHECK(message_of(banner + "array real general\n1 2\n1 2\n") == "t.mtx:3: has 2 numbers; expected one");
}

TEST_CASE("Matrix Market: sizes that the file cannot hold are refused before they are allocated") {
  const std::string general = banner + "coordinate pattern general\n";
  CHECK(message_of(general + "9 9 4000000000000000000\n1 1\n") ==
        "t.mtx:2: promises 4000000000000000000 entries; the 77 bytes of the file are too few");
  CHECK(message_of(banner + "array real general\n2000000000 2000000000\n1\n")
            .find("bytes of the file are too few") != std::string::npos);
  const std::string text = general + "2147483647 2147483647 1\n1 2\n";
  const auto read_with = [&](double memory) {
    io::detail::LineReader lines("t.mtx", {text.begin(), text.end()});
    static_cast<void>(io::detail::MatrixMarketReader(std::move(lines), memory).read());
  };
  CHECK_THROWS_WITH_AS(read_with(1 << 30), "t.mtx:2: needs 16 GiB of memory; there are 1 GiB", std::runtime_error);
  CHECK_NOTHROW(read_with(1e11));
}

TEST_CASE("Matrix Market: files cut anywhere or with a changed byte load or are refused") {
  std::minstd_rand random(3);
  int loaded = 0, refused = 0;
  const auto attempt = [&](const std::string& text) {
    try {
      const MatrixEntries matrix = read(text);
      for (const MatrixEntries::Entry& e : matrix.entries) {
        CHECK((e.row >= 0 && e.row < matrix.rows && e.column >= 0 && e.column < matrix.columns));
      }
      ++loaded;
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
      ++refused;
    }
  };
  for (const std::string& text :
       {banner + "coordinate real symmetric\n% c\n4 4 4\n1 1 2.5\n3 1 -1\n4 2 10\n4 4 3\n",
        banner + "array integer general\n2 2\n10\n20\n30\n40\n"}) {
    for (std::size_t size = 0; size < text.size(); ++size) attempt(text.substr(0, size));
    for (int k = 0; k < 400; ++k) {
      std::string changed = text;
      changed[random() % text.size()] = static_cast<char>(random() % 256);
      attempt(changed);
    }
  }
  CHECK(loaded > 10);
  CHECK(refused > 100);
}

}  // namespace test_matrix_market
