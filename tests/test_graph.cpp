// Graphs, their statistics, splits, the karate club and synthetic datasets.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/graph.hpp"
#include "temporary_folder.hpp"

namespace test_graph {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using namespace sheafnn::rotation;

std::vector<Edge> edges_of(const Graph& graph) { return {graph.edges().begin(), graph.edges().end()}; }

// Everything a graph promises about its arrays.
void check_consistent(const Graph& graph) {
  const Index n = graph.node_count();
  REQUIRE(graph.arc_count() == 2 * graph.edge_count());
  REQUIRE(static_cast<Index>(graph.offsets().size()) == n + 1);
  CHECK(graph.first_arc(0) == 0);
  CHECK(graph.first_arc(n) == graph.arc_count());
  Index degrees = 0;
  for (Index u = 0; u < n; ++u) {
    degrees += graph.degree(u);
    for (Index arc = graph.first_arc(u); arc < graph.first_arc(u + 1); ++arc) {
      CHECK(graph.source(arc) == u);
      CHECK(graph.target(arc) != u);
      if (arc > graph.first_arc(u)) CHECK(graph.target(arc - 1) < graph.target(arc));
      const Index back = graph.reverse(arc);
      CHECK(graph.source(back) == graph.target(arc));
      CHECK(graph.target(back) == u);
      CHECK(graph.reverse(back) == arc);
      const Edge edge = graph.edge(graph.edge_of(arc));
      CHECK(std::min(u, graph.target(arc)) == edge.u);
      CHECK(std::max(u, graph.target(arc)) == edge.v);
      CHECK(graph.edge_of(back) == graph.edge_of(arc));
    }
  }
  CHECK(degrees == graph.arc_count());
  for (Index e = 0; e < graph.edge_count(); ++e) {
    CHECK(graph.source(graph.forward_arc(e)) == graph.edge(e).u);
    CHECK(graph.target(graph.forward_arc(e)) == graph.edge(e).v);
    if (e > 0) CHECK(graph.edge(e - 1) < graph.edge(e));
  }
}

}  // namespace

TEST_CASE("Graph: merges duplicates and directions, drops loops, keeps isolated nodes") {
  const std::vector<Edge> pairs = {{3, 1}, {0, 1}, {1, 3}, {2, 2}, {0, 1}, {1, 0}, {4, 0}, {4, 4}};
  const Graph graph(6, pairs);
  CHECK(graph.node_count() == 6);
  CHECK(edges_of(graph) == std::vector<Edge>{{0, 1}, {0, 4}, {1, 3}});
  CHECK(graph.dropped_self_loops() == 2);
  CHECK(graph.merged_duplicates() == 3);
  CHECK(graph.degree(2) == 0);
  CHECK(graph.degree(5) == 0);
  const std::vector<std::int32_t> targets(graph.targets().begin(), graph.targets().end());
  CHECK(targets == std::vector<std::int32_t>{1, 4, 0, 3, 1, 0});
  check_consistent(graph);
  // Which arcs the pairs are.
  std::vector<Edge> listed;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    if (graph.listed(a))
      listed.push_back(
          {graph.sources()[static_cast<std::size_t>(a)], graph.targets()[static_cast<std::size_t>(a)]});
  }
  CHECK(listed == std::vector<Edge>{{0, 1}, {1, 0}, {1, 3}, {3, 1}, {4, 0}});
}

TEST_CASE("Graph: the order of the pairs does not matter") {
  const Dataset data = synthetic({.nodes = 60, .classes = 3, .degree = 7, .seed = 3});
  std::vector<Edge> pairs = edges_of(data.graph);
  std::reverse(pairs.begin(), pairs.end());
  for (std::size_t i = 0; i < pairs.size(); i += 2) std::swap(pairs[i].u, pairs[i].v);
  const Graph other(60, pairs);
  CHECK(edges_of(other) == edges_of(data.graph));
  CHECK(std::equal(other.reverses().begin(), other.reverses().end(), data.graph.reverses().begin()));
  check_consistent(other);
  // The complete graph.
  pairs.clear();
  for (std::int32_t u = 0; u < 12; ++u) {
    for (std::int32_t v = 0; v < u; ++v) pairs.push_back({u, v});
  }
  const Graph complete(12, pairs);
  CHECK(complete.edge_count() == 66);
  check_consistent(complete);
}

TEST_CASE("Graph: some graphs of a union are the graph of their pairs") {
  // Graphs 0 … 4 with 4, 1, 3, 2 and 5 nodes, of which the second and the fourth have no edges.
  const std::vector<std::int32_t> offsets = {0, 4, 5, 8, 10, 15};
  const std::vector<Edge> pairs = {{1, 0}, {0, 3}, {3, 0}, {2, 3}, {7, 5}, {5, 6}, {14, 10}, {11, 10}, {12, 13}};
  Graph whole(15, pairs);
  whole.set_graphs(offsets);
  const auto same = [](const auto& a, const auto& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  for (const std::vector<std::int32_t>& graphs :
       std::vector<std::vector<std::int32_t>>{{0, 1, 2, 3, 4}, {0}, {1}, {4}, {0, 2}, {1, 2, 4}, {3, 4}, {}}) {
    std::vector<Edge> moved;
    std::int32_t nodes = 0;
    std::vector<std::int32_t> first = {0};
    for (const std::int32_t g : graphs) {
      const std::size_t of = static_cast<std::size_t>(g);
      for (const Edge& e : pairs) {
        const std::int32_t by = nodes - offsets[of];
        if (e.u >= offsets[of] && e.u < offsets[of + 1]) moved.push_back({e.u + by, e.v + by});
      }
      nodes += offsets[of + 1] - offsets[of];
      first.push_back(nodes);
    }
    const Graph some = whole.of_graphs(graphs), expected(nodes, moved);
    check_consistent(some);
    CHECK(some.node_count() == nodes);
    CHECK(some.graph_count() == static_cast<Index>(graphs.size()));
    for (std::size_t g = 0; g < first.size(); ++g) CHECK(some.first_node(static_cast<Index>(g)) == first[g]);
    CHECK(same(some.offsets(), expected.offsets()));
    CHECK(same(some.sources(), expected.sources()));
    CHECK(same(some.targets(), expected.targets()));
    CHECK(same(some.reverses(), expected.reverses()));
    CHECK(edges_of(some) == edges_of(expected));
    for (Index a = 0; a < some.arc_count(); ++a) {
      CHECK(some.edge_of(a) == expected.edge_of(a));
      CHECK(some.listed(a) == expected.listed(a));
    }
    for (Index e = 0; e < some.edge_count(); ++e) CHECK(some.forward_arc(e) == expected.forward_arc(e));
  }
  for (const std::vector<std::int32_t>& graphs :
       std::vector<std::vector<std::int32_t>>{{-1}, {5}, {1, 1}, {2, 0}}) {
    CHECK_THROWS_AS(static_cast<void>(whole.of_graphs(graphs)), std::invalid_argument);
  }
}

TEST_CASE("Graph: features of arcs") {
  const std::vector<Edge> edges = {{0, 1}, {1, 2}};
  Graph graph(3, edges);
  const std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8};
  graph.set_arc_features(values, 2);
  CHECK(graph.arc_feature_count() == 2);
  struct Case {
    std::size_t values;
    Index count;
    const char* message;
  };
  const Case cases[] = {
      {8, 1, "arc features: 8 is not allowed; expected arcs * count = 4 * 1"},
      {0, -1, "arc features: 0 is not allowed; expected arcs * count = 4 * -1"},
      {0, Index{1} << 62, "arc features: 0 is not allowed; expected arcs * count = 4 * 4611686018427387904"},
      {4, (Index{1} << 62) + 1, "arc features: 4 is not allowed; expected arcs * count = 4 * 4611686018427387905"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.message);
    CHECK_THROWS_WITH_AS(graph.set_arc_features(std::span(values).first(c.values), c.count), c.message,
                         std::invalid_argument);
  }
  CHECK(graph.arc_feature_count() == 2);
  graph.set_arc_features({}, 0);
  CHECK(graph.arc_features().empty());
}

TEST_CASE("Graph: empty graphs and bad node numbers") {
  CHECK(Graph().node_count() == 0);
  CHECK(Graph().arc_count() == 0);
  check_consistent(Graph(0, {}));
  check_consistent(Graph(5, {}));
  const auto build = [](Index n, const std::vector<Edge>& pairs) { Graph graph(n, pairs); };
  CHECK_THROWS_WITH_AS(build(3, {{0, 1}, {1, 3}}),
                       "edges[1]: 3 is not allowed; a node number must be between 0 and 2", std::invalid_argument);
  CHECK_THROWS_WITH_AS(build(3, {{-1, 1}}), "edges[0]: -1 is not allowed; a node number must be between 0 and 2",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(build(0, {{0, 0}}), "edges[0]: 0 is not allowed; a graph without nodes has no edges",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(build(-1, {}), "node_count: -1 is not allowed; must be between 0 and 2147483647",
                       std::invalid_argument);
  CHECK_THROWS_AS(build(Index{1} << 31, {}), std::invalid_argument);
}

TEST_CASE("statistics: degrees, homophily, components") {
  const std::vector<Edge> pairs = {{4, 1}, {1, 6}, {0, 5}, {5, 2}, {2, 0}};
  const Graph graph(8, pairs);
  const DegreeSummary degrees = degree_summary(graph);
  CHECK(degrees.minimum == 0);
  CHECK(degrees.maximum == 2);
  CHECK(degrees.mean == 1.25);
  CHECK(degrees.isolated == 2);
  const Components components = connected_components(graph);
  CHECK(components.count == 4);
  CHECK(components.component_of == std::vector<std::int32_t>{0, 1, 0, 2, 1, 0, 1, 3});
  CHECK(edge_homophily(graph, std::vector<std::int32_t>{0, 1, 0, 0, 1, 0, 2, 0}) == 0.8);
  CHECK(edge_homophily(graph, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7}) == 0);

  CHECK_THROWS_WITH_AS(static_cast<void>(edge_homophily(graph, std::vector<std::int32_t>{0, 1})),
                       "labels: 2 is not allowed; expected one label for each of the 8 nodes",
                       std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(edge_homophily(Graph(2, {}), std::vector<std::int32_t>{0, 1})),
                  std::invalid_argument);
  CHECK(degree_summary(Graph()).mean == 0);
  CHECK(connected_components(Graph()).count == 0);
  CHECK(connected_components(Graph(3, {})).component_of == std::vector<std::int32_t>{0, 1, 2});
  // A long path needs no recursion.
  std::vector<Edge> path;
  for (std::int32_t u = 0; u < 200000; ++u) path.push_back({u, u + 1});
  CHECK(connected_components(Graph(200001, path)).count == 1);
}

TEST_CASE("karate club: the published facts") {
  const Dataset data = karate_club();
  validate(data);
  CHECK(data.node_count() == 34);
  CHECK(data.graph.edge_count() == 78);
  CHECK(data.graph.merged_duplicates() == 0);
  CHECK(data.class_count == 2);
  CHECK(std::count(data.labels.begin(), data.labels.end(), 0) == 17);
  const std::vector<Index> degrees = {16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2,  2,
                                      2,  2, 3,  2, 2, 2, 5, 3, 3, 2, 4, 3, 4, 4, 6, 12, 17};
  for (Index u = 0; u < 34; ++u) CHECK(data.graph.degree(u) == degrees[static_cast<std::size_t>(u)]);
  CHECK(edge_homophily(data.graph, data.labels) == 67.0 / 78.0);
  CHECK(connected_components(data.graph).count == 1);
  // 45 triangles.
  std::set<std::pair<Index, Index>> known;
  for (const Edge& e : data.graph.edges()) known.insert({e.u, e.v});
  Index triangles = 0;
  for (const Edge& e : data.graph.edges()) {
    for (Index w = e.v + 1; w < 34; ++w) {
      if (known.contains({e.u, w}) && known.contains({e.v, w})) ++triangles;
    }
  }
  CHECK(triangles == 45);
  CHECK(data.features.rows() == 34);
  CHECK(data.features.columns() == 34);
  for (std::size_t u = 0; u < 34; ++u) {
    CHECK(data.features.column_of()[u] == static_cast<std::int32_t>(u));
    CHECK(data.features.values()[u] == 1);
  }
  REQUIRE(data.splits.size() == 10);
  for (const Split& split : data.splits) {
    CHECK(split.train.size() == 20);
    CHECK(split.validation.size() == 6);
    CHECK(split.test.size() == 8);
  }
}

TEST_CASE("make_splits: stratified, seeded, covering") {
  std::vector<std::int32_t> labels;
  for (int u = 0; u < 200; ++u) labels.push_back(u < 100 ? 0 : u < 197 ? 1 : 2);  // 100, 97 and 3 nodes
  const std::vector<Split> splits = make_splits(labels, 4, 3, {}, 7);
  REQUIRE(splits.size() == 3);
  for (const Split& split : splits) {
    std::vector<std::int32_t> all;
    for (const auto* set : {&split.train, &split.validation, &split.test}) {
      CHECK(std::is_sorted(set->begin(), set->end()));
      all.insert(all.end(), set->begin(), set->end());
      for (std::int32_t c = 0; c < 3; ++c) {
        const auto in_class = [&](std::int32_t u) { return labels[static_cast<std::size_t>(u)] == c; };
        CHECK(std::any_of(set->begin(), set->end(), in_class));
      }
    }
    std::sort(all.begin(), all.end());
    REQUIRE(all.size() == 200);
    for (std::int32_t u = 0; u < 200; ++u) CHECK(all[static_cast<std::size_t>(u)] == u);
    // 48 + 47 + 1, 32 + 31 + 1, the rest.
    CHECK(split.train.size() == 96);
    CHECK(split.validation.size() == 64);
  }
  CHECK(splits[0].train != splits[1].train);
  CHECK(make_splits(labels, 4, 3, {}, 7)[2].test == splits[2].test);
  CHECK(make_splits(labels, 4, 2, {}, 7)[1].test == splits[1].test);
  CHECK(make_splits(labels, 4, 3, {}, 8)[2].test != splits[2].test);
  // Every node takes its turn: over 400 splits of 20 %, 4 standard errors around 80 test sets of each node.
  std::vector<int> turns(200, 0);
  for (const Split& split : make_splits(labels, 3, 400, {}, 1)) {
    for (const std::int32_t u : split.test) ++turns[static_cast<std::size_t>(u)];
  }
  for (std::size_t u = 0; u < 197; ++u) CHECK(std::abs(turns[u] - 80) <= 4 * std::sqrt(400 * 0.2 * 0.8) + 4);

  CHECK_THROWS_WITH_AS(static_cast<void>(make_splits(labels, 2, 1)),
                       "labels[197]: 2 is not allowed; must be between 0 and 1, or -1 where unknown",
                       std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(make_splits(labels, 3, -1)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(make_splits(labels, 3, 1, {.train = 0.7, .validation = 0.3})),
                  std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(make_splits(labels, 3, 1, {.train = 0, .validation = 0.3})),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(make_splits(std::vector<std::int32_t>{0, 1}, 2, 1)),
                       "labelled nodes: 2 is not allowed; too few for three non-empty sets",
                       std::invalid_argument);
}

TEST_CASE("make_splits: nodes without a label are in no set, and change nothing for the others") {
  std::vector<std::int32_t> labels, some;
  std::vector<std::int32_t> number;  // in `labels`, of the labelled nodes of `some`
  for (std::int32_t u = 0; u < 60; ++u) {
    labels.push_back(u % 3);
    if (u % 4 == 1) some.push_back(-1);
    number.push_back(static_cast<std::int32_t>(some.size()));
    some.push_back(u % 3);
  }
  const Split whole = make_splits(labels, 3, 1, {}, 5)[0], split = make_splits(some, 3, 1, {}, 5)[0];
  const auto renumbered = [&](std::vector<std::int32_t> nodes) {
    for (std::int32_t& u : nodes) u = number[static_cast<std::size_t>(u)];
    return nodes;
  };
  CHECK(split.train == renumbered(whole.train));
  CHECK(split.validation == renumbered(whole.validation));
  CHECK(split.test == renumbered(whole.test));

  CHECK(labelled_nodes(some, std::vector<std::int32_t>{3, 1, 0, 7}) == std::vector<std::int32_t>{3, 0, 7});
  CHECK_THROWS_WITH_AS(static_cast<void>(make_splits(std::vector<std::int32_t>(9, -1), 3, 1)),
                       "labelled nodes: 0 is not allowed; too few for three non-empty sets",
                       std::invalid_argument);
  some[2] = -2;
  CHECK_THROWS_AS(static_cast<void>(make_splits(some, 3, 1)), std::invalid_argument);
}

TEST_CASE("exchange_sets: every set serves another purpose, and thrice is never") {
  const std::vector<Split> splits = {{{0, 3}, {1}, {2, 4, 5}}, {{1}, {0, 2}, {}}};
  const std::vector<Split> exchanged = exchange_sets(splits);
  REQUIRE(exchanged.size() == 2);
  CHECK(exchanged[0].train == splits[0].validation);
  CHECK(exchanged[0].validation == splits[0].test);
  CHECK(exchanged[0].test == splits[0].train);
  CHECK(exchanged[1].train == splits[1].validation);
  CHECK(exchanged[1].validation.empty());
  CHECK(exchanged[1].test == splits[1].train);
  const Split again = exchange_sets(exchange_sets({exchanged[0]}))[0];
  CHECK(again.train == splits[0].train);
  CHECK(again.validation == splits[0].validation);
  CHECK(again.test == splits[0].test);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(exchange_sets(exchanged)),
      "splits[1].validation: 0 is not allowed; training needs these nodes: exchanged masks train on them",
      std::invalid_argument);
}

TEST_CASE("random_splits: sizes by the largest remainder, in every class or in total") {
  using detail::largest_remainder;
  using Sizes = detail::SplitSizes;
  const std::array<double, 3> shares = {0.6, 0.2, 0.2};
  CHECK(largest_remainder(shares, 100) == Sizes{60, 20, 20});
  CHECK(largest_remainder(shares, 11) == Sizes{7, 2, 2});   // 6.6, 2.2, 2.2
  CHECK(largest_remainder(shares, 13) == Sizes{8, 3, 2});   // 7.8, 2.6, 2.6: a tie
  CHECK(largest_remainder(shares, 17) == Sizes{10, 4, 3});  // 10.2, 3.4, 3.4
  CHECK(largest_remainder(shares, 3) == Sizes{1, 1, 1});    // 1.8, 0.6, 0.6
  CHECK(largest_remainder(shares, 2) == Sizes{1, 0, 1});
  CHECK(largest_remainder(shares, 1) == Sizes{1, 0, 0});
  CHECK(largest_remainder(shares, 0) == Sizes{0, 0, 0});
  CHECK(largest_remainder({0.98, 0.01, 0.01}, 10) == Sizes{8, 1, 1});
  CHECK(largest_remainder({0.01, 0.01, 0.98}, 4) == Sizes{1, 1, 2});
  // Ties although 0.92 · 20 is above 18.4 in binary, and 0.07 · 50 above 3.5.
  CHECK(largest_remainder({0.01, 0.07, 0.92}, 20) == Sizes{1, 2, 17});  // 0.2, 1.4, 18.4
  CHECK(largest_remainder({0.01, 0.07, 0.92}, 50) == Sizes{1, 3, 46});  // 0.5, 3.5, 46
  CHECK(largest_remainder({0.7, 0.1, 0.2}, 8) == Sizes{6, 1, 1});       // 5.6, 0.8, 1.6
  // A share of 0 gets no node, however few there are.
  CHECK(largest_remainder({0.8, 0.2, 0}, 12) == Sizes{10, 2, 0});  // 9.6, 2.4
  CHECK(largest_remainder({0.99, 0.01, 0}, 2) == Sizes{1, 1, 0});
  CHECK(largest_remainder({0.8, 0, 0.2}, 2) == Sizes{1, 0, 1});
  CHECK(largest_remainder({0.8, 0.2, 0}, 1) == Sizes{1, 0, 0});
  CHECK(largest_remainder({1, 0, 0}, 2) == Sizes{2, 0, 0});

  // 50, 30, 17 and 3 nodes; every fifth node more has no label.
  std::vector<std::int32_t> labels;
  for (int u = 0; u < 100; ++u) {
    labels.push_back(u < 50 ? 0 : u < 80 ? 1 : u < 97 ? 2 : 3);
    if (u % 5 == 0) labels.push_back(-1);
  }
  const auto count = [&](const std::vector<std::int32_t>& set, std::int32_t label) {
    return std::count_if(set.begin(), set.end(),
                         [&](auto u) { return labels[static_cast<std::size_t>(u)] == label; });
  };
  const std::vector<Split> stratified = random_splits(labels, 4, {.count = 5, .seed = 3});
  const std::vector<Split> total = random_splits(labels, 4, {.count = 5, .stratified = false, .seed = 3});
  REQUIRE(stratified.size() == 5);
  bool uneven = false;
  for (std::size_t s = 0; s < 5; ++s) {
    for (const Split& split : {stratified[s], total[s]}) {
      validate(split, static_cast<Index>(labels.size()), "split");
      CHECK(split.train.size() + split.validation.size() + split.test.size() == 100);
      for (const auto* set : {&split.train, &split.validation, &split.test}) CHECK(count(*set, -1) == 0);
    }
    CHECK(total[s].train.size() == 60);
    CHECK(total[s].validation.size() == 20);
    for (std::int32_t c = 0; c < 4; ++c) {
      const Sizes expected[] = {{30, 10, 10}, {18, 6, 6}, {10, 4, 3}, {1, 1, 1}};
      const Sizes& sizes = expected[static_cast<std::size_t>(c)];
      CHECK(count(stratified[s].train, c) == sizes[0]);
      CHECK(count(stratified[s].validation, c) == sizes[1]);
      CHECK(count(stratified[s].test, c) == sizes[2]);
      uneven = uneven || count(total[s].train, c) != sizes[0];
    }
  }
  CHECK(uneven);
  CHECK(stratified[0].train != stratified[1].train);
  CHECK(random_splits(labels, 4, {.count = 2, .seed = 3})[1].test == stratified[1].test);
  CHECK(random_splits(labels, 4, {.count = 2, .seed = 4})[1].test != stratified[1].test);
  CHECK(random_splits(labels, 4, {.count = 0}).empty());
  CHECK(random_splits(labels, 4).size() == 10);

  const auto refused = [&](const RandomSplitOptions& options, const char* message) {
    CHECK_THROWS_WITH_AS(static_cast<void>(random_splits(labels, 4, options)), message, std::invalid_argument);
  };
  refused({.train = 0.5, .validation = 0.25, .test = 0.125},
          "train + validation + test: 0.875 is not allowed; the shares must sum to 1");
  refused({.train = 0, .validation = 0.8}, "train: 0 is not allowed; must be in (0, 1]");
  refused({.validation = -0.2, .test = 0.6}, "validation: -0.2 is not allowed; must be in [0, 1)");
  refused({.test = 1}, "test: 1 is not allowed; must be in [0, 1)");
  refused({.count = 1001}, "count: 1001 is not allowed; must be between 0 and 1000");
  CHECK_THROWS_WITH_AS(static_cast<void>(random_splits(std::vector<std::int32_t>{0, 1, -1, 1}, 2)),
                       "labelled nodes: 3 is not allowed; too few for three non-empty sets",
                       std::invalid_argument);
}

TEST_CASE("random_splits: without validation or test nodes") {
  const std::vector<std::int32_t> labels = {0, 1, 0, 1, -1, 0, 1, 0, 1, 0, 1};
  for (const bool stratified : {false, true}) {
    const Split no_test =
        random_splits(labels, 2, {.train = 0.8, .test = 0, .count = 1, .stratified = stratified})[0];
    CHECK(no_test.train.size() == 8);
    CHECK(no_test.validation.size() == 2);
    CHECK(no_test.test.empty());
    const Split neither =
        random_splits(labels, 2,
                      {.train = 1, .validation = 0, .test = 0, .count = 1, .stratified = stratified})[0];
    CHECK(neither.train == labelled_nodes(labels, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
    CHECK(neither.validation.empty());
    CHECK(neither.test.empty());
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(random_splits(std::vector<std::int32_t>{-1, 0, -1}, 1,
                                                       {.train = 0.8, .validation = 0})),
                       "labelled nodes: 1 is not allowed; too few for two non-empty sets", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(random_splits(std::vector<std::int32_t>{-1}, 1,
                                                       {.train = 1, .validation = 0, .test = 0})),
                       "labelled nodes: 0 is not allowed; too few for a training set", std::invalid_argument);
}

TEST_CASE("datasets: labels may be unknown, but not out of range") {
  Dataset data = synthetic({.nodes = 30, .classes = 3});
  data.name = "toy";
  data.labels[4] = data.labels[7] = -1;
  CHECK_NOTHROW(validate(data));
  for (const std::int32_t label : {-2, 3}) {
    data.labels[4] = label;
    CHECK_THROWS_WITH_AS(validate(data),
                         sheafnn::detail::concat("toy: labels[4]: ", label,
                                                 " is not allowed; must be between 0 and 2, or -1 where unknown")
                             .c_str(),
                         std::invalid_argument);
  }
}

TEST_CASE("homophily leaves out edges to nodes without a label") {
  const Graph path(4, std::vector<Edge>{{0, 1}, {1, 2}, {2, 3}});
  CHECK(edge_homophily(path, std::vector<std::int32_t>{0, 0, 1, 1}) == 2.0 / 3);
  CHECK(edge_homophily(path, std::vector<std::int32_t>{0, 0, 1, -1}) == 0.5);
  CHECK(edge_homophily(path, std::vector<std::int32_t>{1, 1, -1, -1}) == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(edge_homophily(path, std::vector<std::int32_t>{0, -1, 1, -1})),
                       "edges between labelled nodes: 0 is not allowed; homophily needs at least one",
                       std::invalid_argument);
}

TEST_CASE("synthetic: a graph that no memory holds is refused before anything is allocated") {
  const SyntheticOptions huge{.nodes = 2147483647, .features = 10000000, .words = 1000, .degree = 0};
  CHECK(sheafnn::detail::synthetic_bytes(huge) > 1e13);
  try {
    static_cast<void>(synthetic(huge));
    FAIL("no error");
  } catch (const std::invalid_argument& error) {
    CHECK(std::string(error.what())
              .starts_with("nodes: 2147483647 is not allowed; needs 11.8 TiB of memory; there are "));
  }
  // The estimate is below what the result holds.
  const SyntheticOptions options{.nodes = 500, .classes = 3, .features = 40, .words = 5, .degree = 4, .splits = 2};
  const Dataset data = synthetic(options);
  double held = static_cast<double>(4 * data.labels.size() + 8 * data.features.offsets().size() +
                                    12 * static_cast<std::size_t>(data.features.entries()) +
                                    4 * data.graph.offsets().size() + 32 * data.graph.sources().size());
  for (const Split& split : data.splits) held += 4.0 * static_cast<double>(split.train.size() + split.test.size());
  CHECK(sheafnn::detail::synthetic_bytes(options) < held);
  CHECK(sheafnn::detail::synthetic_bytes(options) > held / 4);

  CHECK(memory_limit() > 1 << 20);
  CHECK(memory_text(12) == "12 bytes");
  CHECK(memory_text(1.5 * 1024 * 1024) == "1.5 MiB");
  CHECK_NOTHROW(require_memory("x", 3, 100, 100));
  CHECK_THROWS_WITH_AS(require_memory("x", 3, 4096, 2048),
                       "x: 3 is not allowed; needs 4 KiB of memory; there are 2 KiB", std::invalid_argument);
}

TEST_CASE("memory limit: the least of the control groups that a process is in") {
  const test::TemporaryFolder root;
  const auto write = [&](const std::string& folder, const std::string& file, std::string_view text) {
    std::filesystem::create_directories(root / folder);
    root.write(folder + '/' + file, text);
  };
  const auto limit = [&](const char* groups) {
    std::istringstream lines(groups);
    return sheafnn::detail::memory_limit_of_groups(lines, root.path().string());
  };
  const double none = std::numeric_limits<double>::infinity();
  CHECK(limit("") == none);
  CHECK(limit("0::/a/b\n") == none);

  write("a", "memory.max", "3000");
  write("a/b", "memory.max", "max");
  write("c", "memory.max", "1000");
  CHECK(limit("0::/a/b\n") == 3000);  // of the group around it
  CHECK(limit("0::/a\n") == 3000);
  CHECK(limit("0::/\n") == none);
  CHECK(limit("1:cpu:/c\n0::/a/b") == 3000);  // c is no group of memory, and the last line has no end
  write("a/b", "memory.max", "2000");
  CHECK(limit("0::/a/b\n") == 2000);
  CHECK(limit("0::/elsewhere/b\n") == none);

  write("memory/d", "memory.limit_in_bytes", "1500");
  CHECK(limit("4:cpu,memory:/d/e\n0::/\n") == 1500);
  CHECK(limit("4:memory:/d\n0::/a/b\n") == 1500);
  CHECK(limit("4:cpu:/d\n0::/a/b\n") == 2000);
  write("memory", "memory.limit_in_bytes", "1200");
  CHECK(limit("4:memory:/of the host\n") == 1200);  // a container sees its own group as the root
  CHECK(limit("no group\n:\n") == 1200);
}

TEST_CASE("synthetic: same seed, same dataset; another seed, another") {
  const SyntheticOptions options{.nodes = 300, .classes = 4, .features = 40, .degree = 5, .seed = 11};
  const Dataset a = synthetic(options);
  const Dataset b = synthetic(options);
  CHECK(edges_of(a.graph) == edges_of(b.graph));
  CHECK(a.labels == b.labels);
  CHECK(std::equal(a.features.values().begin(), a.features.values().end(), b.features.values().begin(),
                   b.features.values().end()));
  CHECK(std::equal(a.features.column_of().begin(), a.features.column_of().end(), b.features.column_of().begin()));
  CHECK(a.splits[9].test == b.splits[9].test);
  SyntheticOptions other = options;
  other.seed = 12;
  const Dataset c = synthetic(other);
  CHECK(edges_of(a.graph) != edges_of(c.graph));
  CHECK(a.labels != c.labels);
  check_consistent(a.graph);
  validate(a);
}

TEST_CASE("synthetic: edges, homophily and classes as requested") {
  for (const double homophily : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    for (const double degree_noise : {0.0, 1.0}) {
      const Dataset data = synthetic({.nodes = 5000,
                                      .classes = 4,
                                      .degree = 8,
                                      .homophily = homophily,
                                      .degree_noise = degree_noise,
                                      .seed = 5});
      validate(data);
      const double m = static_cast<double>(data.graph.edge_count());
      CHECK(m == 20000);
      CHECK(data.graph.merged_duplicates() == 0);
      CHECK(data.graph.dropped_self_loops() == 0);
      const double error = std::abs(edge_homophily(data.graph, data.labels) - homophily);
      CHECK(error <= 4 * std::sqrt(homophily * (1 - homophily) / m));  // 4 standard errors; exact at 0 and 1
      std::vector<Index> degree_of_class(4, 0);
      for (std::size_t u = 0; u < 5000; ++u) {
        degree_of_class[static_cast<std::size_t>(data.labels[u])] += data.graph.degree(static_cast<Index>(u));
      }
      for (std::int32_t c = 0; c < 4; ++c) {
        CHECK(std::count(data.labels.begin(), data.labels.end(), c) == 1250);
        // A class gets a quarter of the 2m ends: at most two per edge, so that the variance is at most 4m · 3/16.
        const double share = static_cast<double>(degree_of_class[static_cast<std::size_t>(c)]);
        CHECK(std::abs(share - m / 2) <= 4 * std::sqrt(m * 0.75));
      }
    }
  }
}

TEST_CASE("synthetic: which classes the other edges join") {
  for (const double cycle : {0.0, 0.4, 1.0}) {
    CAPTURE(cycle);
    const Dataset data =
        synthetic({.nodes = 4000, .classes = 4, .degree = 12, .homophily = 0, .class_cycle = cycle, .seed = 2});
    Index count[4][4] = {};
    for (const Edge& e : data.graph.edges()) {
      const auto a = data.labels[static_cast<std::size_t>(e.u)];
      const auto b = data.labels[static_cast<std::size_t>(e.v)];
      ++count[std::min(a, b)][std::max(a, b)];
    }
    for (int a = 0; a < 4; ++a) {
      for (int b = a + 1; b < 4; ++b) {
        // Four of the six pairs of classes are next to each other.
        const double m = 24000, share = (1 - cycle) / 6 + (b - a == 2 ? 0 : cycle / 4);
        CHECK(std::abs(static_cast<double>(count[a][b]) - m * share) <= 4 * std::sqrt(m * share * (1 - share)));
      }
    }
  }
}

TEST_CASE("synthetic: degree noise spreads the degrees") {
  const double n = 20000;
  for (const double spread : {0.0, 0.3, 0.6}) {
    const Dataset data =
        synthetic({.nodes = 20000, .classes = 5, .degree = 20, .degree_noise = spread, .seed = 1});
    double squares = 0;
    for (Index u = 0; u < 20000; ++u) squares += std::pow(static_cast<double>(data.graph.degree(u)) - 20, 2);
    // Poisson around a log-normal mean: variance 20 + 20² (exp(spread²) − 1). The standard error of the variance
    // follows from the fourth moment, here bounded by the moment of the log-normal part and the Poisson part. Merged
    // duplicates of hubs shift it by less than 2 %.
    const double factor = std::exp(spread * spread);
    const double variance = 20 + 400 * (factor - 1);
    const double kurtosis = std::pow(factor, 4) + 2 * std::pow(factor, 3) + 3 * std::pow(factor, 2);
    const double standard_error = variance * std::sqrt(kurtosis / n);
    CHECK(std::abs(squares / n - variance) <= 4 * standard_error + 0.02 * variance);
  }
}

TEST_CASE("synthetic: features tell the class as far as noise allows") {
  for (const double noise : {0.0, 0.25, 1.0}) {
    const Dataset data =
        synthetic({.nodes = 3000, .classes = 3, .features = 31, .words = 8, .feature_noise = noise});
    double typical = 0, total = 0;
    for (std::size_t u = 0; u < 3000; ++u) {
      double row = 0;
      for (Index k = data.features.offsets()[u]; k < data.features.offsets()[u + 1]; ++k) {
        const std::size_t i = static_cast<std::size_t>(k);
        row += data.features.values()[i];
        if (data.features.column_of()[i] % 3 == data.labels[u]) typical += data.features.values()[i];
      }
      CHECK(row == 8);
      total += row;
    }
    // A word of the whole vocabulary of 31 is typical by chance: 11/31, 10/31 and 10/31, a third on average.
    const double expected = 1 - noise + noise / 3;
    CHECK(std::abs(typical / total - expected) <= 4 * std::sqrt(expected * (1 - expected) / total));
  }
}

TEST_CASE("synthetic: dense, tiny and large graphs finish") {
  validate(synthetic({.nodes = 6, .classes = 2, .features = 2, .degree = 1}));
  const Dataset dense = synthetic({.nodes = 200, .classes = 2, .degree = 90, .homophily = 0.5, .degree_noise = 2});
  CHECK(dense.graph.edge_count() == 9000);
  CHECK(synthetic({.nodes = 100, .degree = 0}).graph.edge_count() == 0);
  CHECK(synthetic({.nodes = 200000, .features = 5, .words = 1, .degree = 10, .splits = 0}).graph.edge_count() ==
        1000000);
}

TEST_CASE("synthetic: options out of range are named") {
  const auto message = [](const SyntheticOptions& options) {
    try {
      static_cast<void>(synthetic(options));
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(message({.nodes = 14}) == "nodes: 14 is not allowed; must be between three per class, 15, and 2147483647");
  CHECK(message({.classes = 1}) == "classes: 1 is not allowed; must be between 2 and 1000");
  CHECK(message({.features = 4}) ==
        "features: 4 is not allowed; must be between the number of classes, 5, and 10000000");
  CHECK(message({.words = 0}) == "words: 0 is not allowed; must be between 1 and 1000");
  CHECK(message({.degree = -1}) == "degree: -1 is not allowed; must be finite and not negative");
  CHECK(message({.degree = nan}) == "degree: nan is not allowed; must be finite and not negative");
  CHECK(message({.homophily = 1.5}) == "homophily: 1.5 is not allowed; must be between 0 and 1");
  CHECK(message({.homophily = nan}) == "homophily: nan is not allowed; must be between 0 and 1");
  CHECK(message({.class_cycle = -1}) == "class_cycle: -1 is not allowed; must be between 0 and 1");
  CHECK(message({.feature_noise = -0.1}) == "feature_noise: -0.1 is not allowed; must be between 0 and 1");
  CHECK(message({.degree_noise = 3}) == "degree_noise: 3 is not allowed; must be between 0 and 2");
  CHECK(message({.splits = 1001}) == "splits: 1001 is not allowed; must be between 0 and 1000");
  CHECK(message({.nodes = 100, .classes = 2, .degree = 30, .homophily = 1}) ==
        "degree: 30 is not allowed; with this homophily a mean degree of at most 24.5 fits these classes");
  // 5 pairs of neighbouring classes of 20 nodes each: 2000 pairs of nodes, half of them 20 a node.
  CHECK(message({.nodes = 100, .degree = 21, .homophily = 0, .class_cycle = 1}) ==
        "degree: 21 is not allowed; with this homophily a mean degree of at most 20 fits these classes");
  CHECK(synthetic({.nodes = 100, .degree = 20, .homophily = 0, .class_cycle = 1}).graph.edge_count() == 1000);
  CHECK(message({.nodes = 1000000000, .degree = 1000}) ==
        "degree: 1000 is not allowed; a graph must have less than 2^30 edges");
}

}  // namespace test_graph
