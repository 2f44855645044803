/// \file
/// Sets of graphs: readers, their errors, folds.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "refusal.hpp"
#include "sheafnn/graph/graph_set.hpp"
#include "sheafnn/io/graph_sets.hpp"
#include "temporary_folder.hpp"

namespace test_graph_sets {

using sheafnn::GraphSet;
using sheafnn::Index;

/// Three graphs of 3, 1 and 2 nodes, with one part replaced.
void write_tu(const test::TemporaryFolder& folder, const std::string& part = "", const std::string& text = "") {
  const std::vector<std::pair<std::string, std::string>> files = {{"A", "1, 2\n2, 1\n2, 3\n3, 2\n5, 6\n6, 5\n"},
                                                                  {"graph_indicator", "1\n1\n1\n2\n3\n3\n"},
                                                                  {"graph_labels", "1\n-1\n1\n"},
                                                                  {"node_labels", "7\n2\n2\n7\n7\n3\n"},
                                                                  {"node_attributes",
                                                                   "0.5, 1\n1, 2\n0, 0\n1, 1\n2, 2\n3, 1\n"}};
  for (const auto& [name, content] : files) folder.write("T_" + name + ".txt", name == part ? text : content);
}
/// The same three graphs as tables, whose rows stand in another order, with one file replaced.
void write_tables(const test::TemporaryFolder& folder, const std::string& file = "",
                  const std::string& text = "") {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"graphs.csv", "molecule,label,fold\nwater,wet,0\nneon,dry,\nhydrogen,dry,1\n"},
      {"nodes.csv",
       "atom,graph,tag,charge,mass\nh1,hydrogen,H,0,1\no,water,O,-2,16\na,water,H,1,1\nb,water,H,,1\n"
       "h2,hydrogen,H,0.5,1\nne,neon,Ne,0,20\n"},
      {"edges.csv", "source,target,bond,length\no,a,1,0.96\nb,o,2,0.97\nh1,h2,1,0.74\n"}};
  for (const auto& [name, content] : files) folder.write(name, name == file ? text : content);
}
/// The message of an error without the folder, of the reader of tables or of a TU folder.
std::string error_of(const test::TemporaryFolder& folder) {
  std::string message =
      test::message_of<std::runtime_error>([&] { static_cast<void>(sheafnn::io::load_graphs(folder.path())); });
  const std::string path = folder.path().string() + "/";
  for (auto at = message.find(path); at != std::string::npos; at = message.find(path))
    message.erase(at, path.size());
  return message;
}
std::string error_of(const std::string& part, const std::string& text) {
  const test::TemporaryFolder folder;
  part.find('.') == std::string::npos ? write_tu(folder, part, text) : write_tables(folder, part, text);
  return error_of(folder);
}

TEST_CASE("graph sets: a TU folder") {
  const test::TemporaryFolder folder;
  write_tu(folder);
  const GraphSet set = sheafnn::io::load_graphs(folder.path());
  CHECK(set.name == "T");
  CHECK(set.graph_count() == 3);
  CHECK(set.graph.edge_count() == 3);
  CHECK(set.graph.first_node(1) == 3);
  CHECK(set.graph.first_node(2) == 4);
  CHECK(set.labels == std::vector<std::int32_t>{1, 0, 1});
  CHECK(set.class_names == std::vector<std::string>{"-1", "1"});
  REQUIRE(set.feature_count() == 5);  // tags 2, 3, 7, and two attributes
  CHECK(set.features.column_of()[0] == 2);
  CHECK(set.features.column_of()[1] == 3);
  CHECK(set.features.values()[1] == 0.5);
  CHECK(set.feature_names == std::vector<std::string>{"tag=2", "tag=3", "tag=7", "", ""});
  CHECK(set.edge_feature_names.empty());
  CHECK(set.graph_names.empty());
}

TEST_CASE("graph sets: errors of a TU folder name file and line") {
  CHECK(error_of("graph_indicator", "1\n1\n1\n3\n3\n3\n") ==
        "T_graph_indicator.txt:4: belongs to graph 3 after graph 1; every graph needs a node");
  CHECK(error_of("graph_indicator", "1\n1\n2\n1\n3\n3\n") ==
        "T_graph_indicator.txt:4: belongs to graph 1 after graph 2; the nodes of a graph must follow each other");
  CHECK(error_of("graph_indicator", "") == "T_graph_indicator.txt: is empty; a set needs at least one graph");
  CHECK(error_of("graph_indicator", "2\n2\n2\n2\n2\n2\n") ==
        "T_graph_indicator.txt:1: belongs to graph 2; the first node belongs to graph 1");
  CHECK(error_of("A", "1, 2\n2, 7\n") == "T_A.txt:2: node 7; node numbers are between 1 and 6");
  CHECK(error_of("A", "1, 2\n2, x\n") == "T_A.txt:2: 'x' is not a finite number");
  CHECK(error_of("A", "1, 2\n2\n") == "T_A.txt:2: has 1 numbers; the lines before it have 2");
  CHECK(error_of("A", "1, 4\n") ==
        "T_A.txt: edge: 0-3 is not allowed; it joins graphs 0 and 1; graphs of a set are disjoint");
  CHECK(error_of("graph_labels", "1\n0\n") ==
        "T_graph_labels.txt: has 2 lines of 1 numbers; expected 3, one for each graph");
  CHECK(error_of("graph_labels", "1\n0.5\n1\n") == "T_graph_labels.txt:2: 0.5 is not a whole number");
  CHECK(error_of("node_labels", "1\n") ==
        "T_node_labels.txt: has 1 lines of 1 numbers; expected 6, one for each node");
}

TEST_CASE("graph sets: a folder of tables") {
  const test::TemporaryFolder folder;
  write_tables(folder);
  const GraphSet set = sheafnn::io::load_graphs(folder.path());
  CHECK(set.graph_count() == 3);
  CHECK(set.graph.first_node(1) == 3);
  CHECK(set.graph.first_node(2) == 4);
  CHECK(set.labels == std::vector<std::int32_t>{1, 0, 0});
  CHECK(set.class_names == std::vector<std::string>{"dry", "wet"});
  CHECK(set.folds == std::vector<std::vector<std::int32_t>>{{0}, {2}});
  // Nodes o, a, b of water, ne, h1, h2; edges of the first three.
  REQUIRE(set.graph.edge_count() == 3);
  CHECK(set.graph.edge(0) == sheafnn::Edge{0, 1});
  CHECK(set.graph.edge(1) == sheafnn::Edge{0, 2});
  CHECK(set.graph.edge(2) == sheafnn::Edge{4, 5});
  // Columns: tags H, Ne, O; charge, mass; whether the charge is missing.
  REQUIRE(set.feature_count() == 6);
  CHECK(set.features.given_columns() == 5);
  const auto row = [&](std::size_t u) {
    std::vector<double> r(6);
    for (Index k = set.features.offsets()[u]; k < set.features.offsets()[u + 1]; ++k) {
      const std::size_t i = static_cast<std::size_t>(k);
      r[static_cast<std::size_t>(set.features.column_of()[i])] = set.features.values()[i];
    }
    return r;
  };
  CHECK(row(0) == std::vector<double>{0, 0, 1, -2, 16, 0});
  CHECK(row(2) == std::vector<double>{1, 0, 0, 0, 1, 1});
  CHECK(row(3) == std::vector<double>{0, 1, 0, 0, 20, 0});
  CHECK(row(5) == std::vector<double>{1, 0, 0, 0.5, 1, 0});
  // Both arcs have the numbers of their edge.
  REQUIRE(set.graph.arc_feature_count() == 2);
  const auto numbers = [&](Index u, Index v) {
    const auto from = set.graph.arc_features().begin() + 2 * sheafnn::detail::arc_between(set.graph, u, v);
    return std::vector<double>(from, from + 2);
  };
  CHECK(numbers(0, 1) == std::vector<double>{1, 0.96});
  CHECK(numbers(0, 2) == std::vector<double>{2, 0.97});
  CHECK(numbers(2, 0) == numbers(0, 2));
  CHECK(numbers(5, 4) == std::vector<double>{1, 0.74});
  using Names = std::vector<std::string>;
  CHECK(set.feature_names == Names{"tag=H", "tag=Ne", "tag=O", "charge", "mass"});
  CHECK(set.edge_feature_names == Names{"bond", "length"});
  CHECK(set.graph_names == Names{"water", "neon", "hydrogen"});
  write_tables(folder, "edges.csv", "o,a,1,0.96\nb,o,2,0.97\nh1,h2,1,0.74\n");
  CHECK(sheafnn::io::load_graphs(folder.path()).edge_feature_names.empty());  // without a header
  write_tables(folder, "nodes.csv",
               "atom,graph,tag\nh1,hydrogen,1\no,water,8\na,water,1\nb,water,1\nh2,hydrogen,1\nne,neon,10\n");
  CHECK(sheafnn::io::load_graphs(folder.path()).feature_names == Names{"tag=1", "tag=8", "tag=10"});
  write_tables(folder, "nodes.csv", "atom,graph\nh1,hydrogen\no,water\na,water\nb,water\nh2,hydrogen\nne,neon\n");
  CHECK(sheafnn::io::load_graphs(folder.path()).feature_names == Names{"degree"});
}

TEST_CASE("graph sets: tables of nodes without names, targets, splits") {
  const test::TemporaryFolder folder;
  folder.write("graphs.tsv", "id\tenergy\tgap\tsplit\n7\t-1.5\t\ttrain\n3\t0\t2\ttest\n");
  folder.write("nodes.csv", "graph\n3\n7\n7\n");
  folder.write("edges.csv", "1 2\n2 1\n");
  const GraphSet set = sheafnn::io::load_graphs(folder.path());
  CHECK(set.labels.empty());
  CHECK(set.target_count == 2);
  REQUIRE(set.targets.size() == 4);
  CHECK(set.targets[0] == -1.5);
  CHECK(std::isnan(set.targets[1]));
  CHECK(set.targets[3] == 2);
  CHECK(set.feature_count() == 1);  // the degree
  CHECK(set.graph.edge(0) == sheafnn::Edge{0, 1});
  CHECK(set.graph.arc_feature_count() == 0);
  REQUIRE(set.splits.size() == 1);
  CHECK(set.splits[0].train == std::vector<std::int32_t>{0});
  CHECK(set.splits[0].test == std::vector<std::int32_t>{1});
}

TEST_CASE("graph sets: classes of tables are those of other formats") {
  const test::TemporaryFolder folder;
  write_tables(folder, "graphs.csv", "molecule,label\nwater,1\nneon,-1\nhydrogen,1\n");
  CHECK(sheafnn::io::load_graphs(folder.path()).class_names == std::vector<std::string>{"-1", "1"});
  write_tables(folder, "graphs.csv", "molecule,label\nwater,1\nneon,\nhydrogen,0\n");
  CHECK(sheafnn::io::load_graphs(folder.path()).labels == std::vector<std::int32_t>{1, -1, 0});
}

TEST_CASE("graph sets: errors of tables name file, line, column and value") {
  const std::string nodes = "atom,graph\no,water\na,water\nb,water\nh1,hydrogen\nh2,hydrogen\n";
  const std::pair<const char*, std::pair<std::string, const char*>> cases[] = {
      {"nodes.csv", {nodes, "graphs.csv:3: graph 'neon' has no node in nodes.csv"}},
      {"nodes.csv", {nodes + "ne,argon\n", "nodes.csv:7: column 'graph': graph 'argon' is not in graphs.csv"}},
      {"nodes.csv", {nodes + "o,neon\n", "nodes.csv:7: node 'o' was already listed in line 2"}},
      {"nodes.csv", {"atom,mass\no,1\n", "nodes.csv: has no column 'graph', which names the graph of each node"}},
      {"nodes.csv",
       {"atom,graph,mass\no,water,heavy\n", "nodes.csv:2: column 'mass': 'heavy' is not a finite number"}},
      {"nodes.csv",
       {"atom,graph,tag\no,water,\na,water,H\nb,water,H\nh1,hydrogen,H\nh2,hydrogen,H\nne,neon,Ne\n",
        "nodes.csv:2: column 'tag': is empty; every node needs a tag"}},
      {"nodes.csv",
       {"atom,graph,split\no,water,test\n", "nodes.csv: column 'split': sets of graphs belong into graphs.csv"}},
      {"nodes.csv",
       {"atom,graph,is_test\no,water,1\n",
        "nodes.csv:1: column 'is_test' looks like a part of a split, not like a feature; sets of graphs belong "
        "into graphs.csv"}},
      {"edges.csv", {"source,target\no,a\no,c\n", "edges.csv:3: node 'c' is not in nodes.csv"}},
      {"edges.csv",
       {"source,target\no,h1\n",
        "edges.csv:2: joins a node of graph 'water' and a node of graph 'hydrogen'; "
        "the graphs of a set are disjoint"}},
      {"edges.csv",
       {"source,target,bond\no,a,single\n", "edges.csv:2: column 'bond': 'single' is not a finite number"}},
      {"edges.csv",
       {"source,target,bond\no,a,1\no,a,2\n", "edges.csv:3: repeats the edge of line 2 with other numbers"}},
      {"edges.csv",
       {"graph,source,target\n1,o,a\n",
        "edges.csv: has a column 'graph', which is no number of an edge: the two "
        "nodes say which graph it is in"}},
      {"graphs.csv",
       {"molecule\nwater\nneon\nhydrogen\n",
        "graphs.csv: has neither a column 'label' nor columns of numbers to predict"}},
      {"graphs.csv",
       {"molecule,label,gap\nwater,a,1\nneon,b,2\nhydrogen,b,3\n",
        "graphs.csv: has labels and the column 'gap'; a set has one label, or numbers, per graph"}},
      {"graphs.csv",
       {"molecule,label,fold\nwater,a,1\nneon,b,0\nhydrogen,b,third\n",
        "graphs.csv:4: column 'fold': 'third' is not the number of a fold; expected 0 to 2, or nothing"}},
      {"graphs.csv",
       {"molecule,label,fold\nwater,a,2\nneon,b,0\nhydrogen,b,0\n",
        "graphs.csv: column 'fold' has no graph in fold 1; folds are numbered 0 to 2"}},
      {"graphs.csv",
       {"molecule,label,split\nwater,a,\nneon,b,test\nhydrogen,b,\n",
        "graphs.csv: column 'split' puts no graph into the set 'train'; training needs one"}},
      {"graphs.csv",
       {"molecule,label\nwater,a\nwater,b\n", "graphs.csv:3: graph 'water' was already listed in line 2"}},
      {"graphs.csv",
       {"label,gap\na,1\n",
        "graphs.csv:1: column 'label' is the first column, which holds the names of the graphs"}},
      {"graphs.csv", {"", "graphs.csv: is empty; expected a header line and one line per graph"}},
  };
  for (const auto& one : cases) {
    const std::string& text = one.second.first;
    CAPTURE(text);
    CHECK(error_of(one.first, text) == one.second.second);
  }
  CHECK(error_of("graphs.csv", "molecule,label\nwater,a\nneon,NA\nhydrogen,b\n")
            .starts_with(
                "graphs.csv:3: column 'label': label 'NA' is not allowed; it usually means a missing value"));
  const test::TemporaryFolder folder;
  CHECK(error_of(folder).ends_with(": has neither graphs.csv (or .tsv) nor NAME_graph_indicator.txt"));
  folder.write("graphs.csv", "id,label\n1,a\n");
  CHECK(error_of(folder).ends_with(": has no edges.csv (or edges.tsv)"));
}

TEST_CASE("graph sets: names are as many as what they name") {
  const test::TemporaryFolder folder;
  write_tables(folder);
  const GraphSet set = sheafnn::io::load_graphs(folder.path());
  for (const auto& [names, message] :
       {std::pair(&GraphSet::graph_names,
                  "graph_names: 1 is not allowed; must be empty, or one name for each of the 3"),
        std::pair(&GraphSet::feature_names,
                  "feature_names: 1 is not allowed; must be empty, or one name for each of the 5"),
        std::pair(&GraphSet::edge_feature_names,
                  "edge_feature_names: 1 is not allowed; must be empty, or one name for each of the 2")}) {
    GraphSet other = set;
    (other.*names) = {"one"};
    CHECK_THROWS_WITH_AS(validate(other), message, std::invalid_argument);
  }
}

TEST_CASE("graph sets: rows of features, in any order") {
  sheafnn::NodeFeatures features =
      sheafnn::NodeFeatures::from_csr({0, 2, 2, 3, 5}, {0, 2, 1, 0, 2}, {5, 1, 3, 4, 1}, 3);
  features.set_indicators({1});
  const std::vector<Index> numbers = {3, 0, 1, 2, 0};
  const sheafnn::NodeFeatures rows = features.rows_at(numbers);
  CHECK(rows.columns() == 3);
  CHECK(std::vector<Index>(rows.offsets().begin(), rows.offsets().end()) == std::vector<Index>{0, 2, 4, 4, 5, 7});
  CHECK(std::vector<std::int32_t>(rows.column_of().begin(), rows.column_of().end()) ==
        std::vector<std::int32_t>{0, 2, 0, 2, 1, 0, 2});
  CHECK(std::vector<double>(rows.values().begin(), rows.values().end()) ==
        std::vector<double>{4, 1, 5, 1, 3, 5, 1});
  CHECK(std::vector<std::int32_t>(rows.indicators().begin(), rows.indicators().end()) ==
        std::vector<std::int32_t>{1});
  CHECK(features.rows_at({}).rows() == 0);
}

TEST_CASE("graph sets: folds are disjoint, and no graph is in two sets of a split") {
  GraphSet set;
  std::vector<std::int32_t> offsets = {0};
  for (std::int32_t g = 0; g < 40; ++g) {
    offsets.push_back(g + 1);
    set.labels.push_back(g % 4 == 0 ? 1 : 0);
  }
  set.graph = sheafnn::Graph(40, {});
  set.graph.set_graphs(offsets);
  set.class_count = 2;
  set.features = sheafnn::NodeFeatures::identity(40);
  set.folds = sheafnn::stratified_folds(set, 10, 3);
  sheafnn::validate(set);
  std::vector<int> tested(40);
  const std::vector<sheafnn::Split> splits = sheafnn::fold_splits(set, set.folds);
  REQUIRE(splits.size() == 10);
  for (const sheafnn::Split& split : splits) {
    sheafnn::validate(split, 40, "split");  // disjoint
    CHECK(split.train.size() + split.validation.size() + split.test.size() == 40);
    CHECK(split.test.size() == 4);
    CHECK(split.validation.size() == 4);
    for (const std::int32_t g : split.test) ++tested[static_cast<std::size_t>(g)];
    CHECK(std::count_if(split.test.begin(), split.test.end(),
                        [&](auto g) { return set.labels[static_cast<std::size_t>(g)] == 1; }) == 1);
  }
  CHECK(std::count(tested.begin(), tested.end(), 1) == 40);
  CHECK_THROWS_AS(set.graph.set_graphs({0, 0, 40}), std::invalid_argument);
  CHECK_THROWS_AS(set.graph.set_graphs({0, 41}), std::invalid_argument);
}

TEST_CASE("graph sets: folds of a regression leave out graphs without a known target") {
  GraphSet set;
  std::vector<std::int32_t> offsets = {0};
  for (std::int32_t g = 0; g < 20; ++g) offsets.push_back(g + 1);
  set.graph = sheafnn::Graph(20, {});
  set.graph.set_graphs(offsets);
  set.features = sheafnn::NodeFeatures::identity(20);
  set.target_count = 2;
  set.targets.assign(40, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t g = 0; g < 10; ++g) set.targets[2 * g + g % 2] = 1;
  sheafnn::validate(set);
  const sheafnn::Split split = sheafnn::fold_splits(set, {{0, 1}}, 0.25).front();
  CHECK(split.train.size() == 6);
  CHECK(split.validation.size() == 2);
  for (const auto* part : {&split.train, &split.validation}) {
    CHECK(std::all_of(part->begin(), part->end(), [](std::int32_t g) { return g >= 2 && g < 10; }));
  }
  const auto folds = sheafnn::stratified_folds(set, 5, 3);
  std::vector<std::int32_t> tested;
  for (const auto& fold : folds) {
    CHECK(fold.size() == 2);
    CHECK(std::is_sorted(fold.begin(), fold.end()));
    tested.insert(tested.end(), fold.begin(), fold.end());
  }
  std::sort(tested.begin(), tested.end());
  CHECK(tested == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(sheafnn::stratified_folds(set, 5, 3) == folds);
  CHECK(sheafnn::stratified_folds(set, 5, 4) != folds);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::stratified_folds(set, 11)),
                       "folds: 11 is not allowed; must be between 2 and 10", std::invalid_argument);
  GraphSet neither = set;
  neither.targets.clear();
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::stratified_folds(neither, 5)),
                       "labels: none is not allowed; folds need classes or targets of the graphs",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::fold_splits(set, {{0, 1, 2, 3, 4, 5, 6, 7, 8}})),
                       "labelled graphs outside of a test fold: 1 is not allowed; too few for two non-empty sets",
                       std::invalid_argument);
}

}  // namespace test_graph_sets
