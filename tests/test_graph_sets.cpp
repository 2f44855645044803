/// \file
/// Sets of graphs: readers, their errors, folds.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

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
std::string error_of(const std::string& part, const std::string& text) {
  const test::TemporaryFolder folder;
  write_tu(folder, part, text);
  try {
    static_cast<void>(sheafnn::io::load_tu(folder.path()));
  } catch (const std::runtime_error& error) {
    std::string message = error.what();
    const std::string path = folder.path().string() + "/";
    for (auto at = message.find(path); at != std::string::npos; at = message.find(path))
      message.erase(at, path.size());
    return message;
  }
  return "no error";
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
}

TEST_CASE("graph sets: errors of a TU folder name file and line") {
  CHECK(error_of("graph_indicator", "1\n1\n1\n3\n3\n3\n") ==
        "T_graph_indicator.txt:4: belongs to graph 3 after graph 1; every graph needs a node");
  CHECK(
      error_of("graph_indicator", "1\n1\n2\n1\n3\n3\n") ==
      "T_graph_indicator.txt:4: belongs to graph 1 after graph 2; the nodes of a graph have to follow each other");
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
}

}  // namespace test_graph_sets
