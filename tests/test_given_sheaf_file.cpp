/// \file
/// Files with the maps of given sheaves: what io::write_sheaf writes, signs, tables of labels, and files that do not fit.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sheafnn/bsnn/given_posterior.hpp"
#include "sheafnn/io/given_sheaf_file.hpp"
#include "sheafnn/io/option_text.hpp"
#include "sheafnn/io/sheaf_file.hpp"
#include "sheafnn/sheaf/labelled_sheaf.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"

namespace test_given_sheaf_file {
namespace {

using sheafnn::AroundGiven;
using sheafnn::CellularSheaf;
using sheafnn::DeviationSource;
using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::GivenMaps;
using sheafnn::Index;
using sheafnn::SpecialOrthogonal;
using sheafnn::Stream;

template <class Family>
void check_same(const CellularSheaf<Family>& a, const CellularSheaf<Family>& b) {
  for (Index arc = 0; arc < a.graph().arc_count(); ++arc) CHECK(a.restriction_map(arc) == b.restriction_map(arc));
}

struct Files {
  test::TemporaryFolder folder;
  tiny::Task task;
  std::filesystem::path path = folder.path() / "sheaf.npz";

  [[nodiscard]] sheafnn::Dataset data(const std::vector<std::string>& types = {}) const {
    sheafnn::Dataset r;
    r.graph = task.graph;
    r.features = task.sparse;
    r.given_sheaf =
        std::make_shared<const sheafnn::GivenMapArrays>(sheafnn::io::read_given_sheaf(path, task.graph, types));
    return r;
  }
  template <class Call>
  [[nodiscard]] std::string message(const Call& call) const {
    try {
      call();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      const std::size_t at = text.find(path.string());
      return at == 0 ? text.substr(path.string().size() + 2) : text;
    }
    return "nothing was thrown";
  }
};

template <class Family>
void check_written() {
  const Files files;
  CellularSheaf<Family> sheaf = sheafnn::sheaf::random_sheaf<Family>(files.task.graph, Stream{.seed = 2});
  if constexpr (CellularSheaf<Family>::has_edge_weights) sheaf.set_edge_weight(3, 0.5);
  sheafnn::io::write_sheaf(files.path, sheaf);
  check_same(sheafnn::given_posterior<GivenMaps<Family>>(files.data())[0], sheaf);
  const auto around = sheafnn::given_posterior<AroundGiven<Family>>(files.data());
  CHECK(around.source() == DeviationSource::arcs);
  check_same(around.centre()[0], sheaf);
}

TEST_CASE("written sheaves are given back") {
  check_written<Diagonal<2>>();
  check_written<SpecialOrthogonal<3>>();
  check_written<GeneralLinear<2>>();
}

TEST_CASE("signs and tables of labels") {
  const Files files;
  const Index m = files.task.graph.edge_count();
  std::vector<double> signs;
  std::vector<std::int64_t> labels;
  for (Index e = 0; e < m; ++e) {
    signs.push_back(e % 3 == 0 ? -1 : 1);
    labels.push_back(e % 3 == 0 ? 1 : 0);
  }
  sheafnn::io::NpzWriter writer;
  writer.add<double>("signs", {m}, signs);
  writer.write(files.path);
  const auto around = sheafnn::given_posterior<AroundGiven<Diagonal<1>>>(files.data());
  CHECK(around.source() == DeviationSource::labels);
  CHECK(around.labels().of_edge == std::vector<std::int32_t>(labels.begin(), labels.end()));
  check_same(around.centre()[0], sheafnn::signed_sheaf(files.task.graph, signs));

  std::vector<double> table;
  for (Index i = 0; i < 3 * 2 * 4; ++i) table.push_back(tiny::number(4, i));
  sheafnn::io::NpzWriter tables;
  tables.add<std::int64_t>("edge_labels", {m}, labels);
  tables.add<double>("table", {3, 2, 2, 2}, table);
  tables.write(files.path);
  const auto given = sheafnn::given_posterior<AroundGiven<GeneralLinear<2>>>(files.data());
  CHECK(given.labels().count == 3);
  check_same(given.centre()[0],
             sheafnn::labelled_sheaf<GeneralLinear<2>>(files.task.graph,
                                                       std::vector<std::int32_t>(labels.begin(), labels.end()),
                                                       table));
  const auto by_arc =
      sheafnn::given_posterior<AroundGiven<GeneralLinear<2>>>(files.data(), DeviationSource::arcs_and_means);
  CHECK(by_arc.source() == DeviationSource::arcs_and_means);
}

TEST_CASE("tables of maps for types of edges") {
  Files files;
  const Index m = files.task.graph.edge_count();
  std::vector<std::int32_t> types;
  for (Index e = 0; e < m; ++e) types.push_back(static_cast<std::int32_t>(e % 2));
  files.task.graph.set_edge_types(types, 2);
  const std::vector<std::string> names = {"3", "7"};
  std::vector<double> table;
  for (Index i = 0; i < 3 * 2 * 4; ++i) table.push_back(tiny::number(4, i));
  const auto write = [&](Index rows, const std::vector<std::int64_t>& of_rows) {
    sheafnn::io::NpzWriter writer;
    writer.add<double>("table", {rows, 2, 2, 2},
                       std::span<const double>(table).first(static_cast<std::size_t>(8 * rows)));
    if (!of_rows.empty()) writer.add<std::int64_t>("types", {static_cast<Index>(of_rows.size())}, of_rows);
    writer.write(files.path);
    CHECK(sheafnn::io::reads_edge_types(files.path));
  };
  const auto expected = [&](const std::vector<std::int32_t>& labels) {
    return sheafnn::labelled_sheaf<GeneralLinear<2>>(files.task.graph, labels, table);
  };
  write(2, {});
  const auto given = sheafnn::given_posterior<AroundGiven<GeneralLinear<2>>>(files.data());
  CHECK(given.source() == DeviationSource::labels);
  CHECK(given.labels().count == 2);
  CHECK(given.labels().of_edge == types);
  check_same(given.centre()[0], expected(types));

  // Rows in another order, and one of a type that no edge has.
  write(3, {7, 5, 3});
  std::vector<std::int32_t> rows;
  for (const std::int32_t type : types) rows.push_back(type == 0 ? 2 : 0);
  const auto named = sheafnn::given_posterior<AroundGiven<GeneralLinear<2>>>(files.data(names));
  CHECK(named.labels().count == 3);
  CHECK(named.labels().of_edge == rows);
  check_same(named.centre()[0], expected(rows));

  const auto read = [&] { static_cast<void>(files.data(names)); };
  CHECK(files.message([&] { static_cast<void>(files.data()); }) == "types: the graph's types have no names");
  write(3, {});
  CHECK(files.message(read) ==
        "table: has 3 rows, and the graph's edges have 2 types; the key types names the type of each row");
  write(3, {7, 5, 4});
  CHECK(files.message(read) == "types: the graph's edges have a type '3', and no row is of it");
  write(3, {7, 3});
  CHECK(files.message(read) == "types: has shape (2,); expected one type for each of the 3 rows of the table");
}

TEST_CASE("files that do not fit") {
  const Files files;
  const auto read = [&] { static_cast<void>(sheafnn::io::read_given_sheaf(files.path, files.task.graph)); };
  const auto with = [&](const char* key, std::initializer_list<Index> shape, const std::vector<double>& values) {
    sheafnn::io::NpzWriter writer;
    writer.add<double>(key, shape, values);
    writer.write(files.path);
    return files.message(read);
  };
  CHECK(with("maps", {17, 1}, std::vector<double>(17)) == "maps: expected a row for each of 18 arcs of the graph");
  CHECK(with("signs", {9}, std::vector<double>(9, 2)) == "signs[0]: 2 is not allowed; must be 1 or -1");
  CHECK(with("table", {1, 2, 1}, {1, 1}) == "table: needs edge_labels, or a graph whose edges have types");
  CHECK(with("other", {1}, {1}) == "maps: is missing, and there are no signs and no table");
  CHECK(with("edge_labels", {9}, std::vector<double>(9, -1)) ==
        "edge_labels[0]: -1 is not allowed; must be between 0 and 1048575");
  const CellularSheaf<Diagonal<1>> other(sheafnn::Graph(
      7, std::vector<sheafnn::Edge>{{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}, {3, 4}, {2, 4}, {4, 5}, {0, 6}}));
  sheafnn::io::write_sheaf(files.path, other);
  CHECK(files.message(read) == "edges: edge 2 is not the graph's, 0 – 5");
  sheafnn::Dataset none;
  none.graph = files.task.graph;
  CHECK(files.message([&] { static_cast<void>(sheafnn::given_posterior<GivenMaps<Diagonal<1>>>(none)); }) ==
        "given sheaf: none is not allowed; the network needs one: its maps are not learned");
}

TEST_CASE("lists of numbers as texts") {
  std::vector<Index> widths;
  sheafnn::io::parse_option("widths", "7,16,3", widths);
  CHECK(widths == std::vector<Index>{7, 16, 3});
  CHECK(sheafnn::io::option_text(widths) == "7,16,3");
  sheafnn::io::parse_option("widths", "", widths);
  CHECK(widths.empty());
  for (const char* wrong : {",", "7,", ",7", "7,,3", "x"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(sheafnn::io::parse_option("widths", wrong, widths), std::invalid_argument);
  }
}

}  // namespace
}  // namespace test_given_sheaf_file
