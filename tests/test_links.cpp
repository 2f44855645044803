/// \file
/// Splits of edges: sizes, no leak into the graph, the features and the negatives; negative pairs against enumeration; ranks;
/// trainings, predictions and checkpoints of links; refused inputs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheafnn/bsnn/edge_prediction.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/cooperative.hpp"
#include "sheafnn/graph/edge_split.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "sheafnn/uncertainty/link_ranks.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"

namespace test_links {
namespace {

using sheafnn::Edge;
using sheafnn::EdgeTargets;
using sheafnn::Graph;
using sheafnn::Index;
using sheafnn::NegativePairs;
using sheafnn::NegativeSampling;
using sheafnn::PairScore;

/// A random graph with one feature per arc, the arc's number, and directions.
Graph random_graph(Index n, double density, std::uint64_t seed = 1) {
  std::vector<Edge> edges;
  for (std::int32_t u = 0; u < n; ++u) {
    for (std::int32_t v = u + 1; v < n; ++v) {
      const double draw = tiny::number(seed, u * n + v);
      if (draw < 2 * density - 1) edges.push_back((u + v) % 2 == 0 ? Edge{u, v} : Edge{v, u});
    }
  }
  Graph graph(n, edges);
  std::vector<double> features;
  for (Index arc = 0; arc < graph.arc_count(); ++arc) features.push_back(static_cast<double>(arc));
  graph.set_arc_features(features, 1);
  return graph;
}
Edge sorted(Edge e) { return {std::min(e.u, e.v), std::max(e.u, e.v)}; }
std::set<Edge> set_of(std::span<const Edge> edges) {
  std::set<Edge> r;
  for (const Edge e : edges) r.insert(sorted(e));
  return r;
}

/// How many targets are edges of the graph that the network sees.
Index seen_targets(const EdgeTargets& targets) {
  const std::set<Edge> seen = set_of(targets.graph.edges());
  return std::ranges::count_if(targets.pairs, [&](Edge pair) { return seen.contains(sorted(pair)); });
}

TEST_CASE("no target is in the graph that the network sees, and no negative is an edge") {
  const Graph graph = random_graph(40, 0.2);
  for (const NegativeSampling sampling : {NegativeSampling::uniform, NegativeSampling::degree}) {
    const EdgeTargets links = split_links(graph, {.negatives = 1.5, .sampling = sampling, .seed = 4});
    validate(links);
    CHECK(seen_targets(links) == 0);
    EdgeTargets leaking = links;  // the check finds a leak
    leaking.graph = graph;
    CHECK(seen_targets(leaking) == std::ranges::count(links.labels, 1));
    validate(links.split, links.count(), "split");
    const std::set<Edge> whole = set_of(graph.edges()), seen = set_of(links.graph.edges());
    std::set<Edge> positive, fixed;
    for (Index t = 0; t < links.count(); ++t) {
      const Edge pair = sorted(links.pairs[static_cast<std::size_t>(t)]);
      const bool link = links.labels[static_cast<std::size_t>(t)] == 1;
      CHECK(link == whole.contains(pair));
      const std::int32_t e = links.edges[static_cast<std::size_t>(t)];
      CHECK((link ? graph.edge(e) == pair : e == -1));
      if (link) CHECK(positive.insert(pair).second);
      if (!link && t < links.first_fresh) CHECK(fixed.insert(pair).second);
    }
    CHECK(positive.size() + seen.size() == whole.size());
    // Shares, and 1.5 negatives for each link of a set.
    for (const auto& [set, share] : {std::pair{links.split.train, 0.2}, std::pair{links.split.validation, 0.1},
                                     std::pair{links.split.test, 0.1}}) {
      const double ones = static_cast<double>(std::count_if(set.begin(), set.end(), [&](auto t) {
        return links.labels[static_cast<std::size_t>(t)] == 1;
      }));
      CHECK(std::abs(ones - share * static_cast<double>(whole.size())) <= 1);
      CHECK(static_cast<double>(set.size()) - ones == std::round(1.5 * ones));
    }
    // Every epoch has others; never an edge, nor a pair of validation or test.
    std::set<Edge> drawn;
    for (std::uint32_t epoch = 0; epoch < 50; ++epoch) {
      for (Index t = links.first_fresh; t < links.count(); ++t) {
        const Edge pair = links.pair(t, epoch);
        CHECK_FALSE(whole.contains(pair));
        CHECK_FALSE(fixed.contains(pair));
        drawn.insert(pair);
      }
    }
    CHECK(drawn.size() > 3 * static_cast<std::size_t>(links.count() - links.first_fresh));
    CHECK(links.pair(0, 5) == links.pairs[0]);
    const EdgeTargets again = split_links(graph, {.negatives = 1.5, .sampling = sampling, .seed = 4});
    CHECK(again.pairs == links.pairs);
    CHECK(again.pair(links.first_fresh, 7) == links.pair(links.first_fresh, 7));
    CHECK(split_links(graph, {.negatives = 1.5, .sampling = sampling, .seed = 5}).pairs != links.pairs);
  }
}

TEST_CASE("the seen graph has its own degrees, directions and arc features") {
  const Graph graph = random_graph(30, 0.3);
  const EdgeTargets links = split_links(graph, {.seed = 2});
  const std::set<Edge> seen = set_of(links.graph.edges());
  for (Index u = 0; u < graph.node_count(); ++u) {
    Index degree = 0;
    for (const Edge e : seen) degree += e.u == u || e.v == u ? 1 : 0;
    CHECK(links.graph.degree(u) == degree);
  }
  CHECK(links.graph.merged_duplicates() == 0);
  for (Index arc = 0, whole = 0; arc < links.graph.arc_count(); ++arc) {
    while (graph.source(whole) != links.graph.source(arc) || graph.target(whole) != links.graph.target(arc))
      ++whole;
    CHECK(links.graph.arc_features()[static_cast<std::size_t>(arc)] == static_cast<double>(whole));
    CHECK(links.graph.listed(arc) == graph.listed(whole));
  }
}

TEST_CASE("what a network says does not depend on edges that are targets") {
  // Two graphs that differ in target edges alone give the same seen graph, hence the same outputs, degrees as an input included.
  const Graph graph = random_graph(30, 0.3);
  const EdgeTargets links = split_links(graph, {.seed = 2});
  std::vector<Edge> fewer(links.graph.edges().begin(), links.graph.edges().end());
  const Graph bare(30, fewer);
  std::vector<double> x;
  for (Index i = 0; i < 90; ++i) x.push_back(tiny::number(3, i));
  const auto features = sheafnn::NodeFeatures::from_dense(std::span<const double>(x), 30, 3);
  using Model = sheafnn::Bsnn<sheafnn::Diagonal<2>>;
  Model model(
      {.features = 3, .channels = 2, .layers = 2, .classes = 4, .separate_encoder = true, .degree_input = true},
      1);
  sheafnn::add_pair_head(model, {.score = PairScore::energy});
  const auto a = sheafnn::predict_links(model, links.graph, features, links.pairs, PairScore::energy);
  const auto b = sheafnn::predict_links(model, bare, features, links.pairs, PairScore::energy);
  CHECK(a.link == b.link);
  const auto c = sheafnn::predict_links(model, graph, features, links.pairs, PairScore::energy);  // the whole graph would say more
  CHECK(a.link != c.link);
}

TEST_CASE("labels of edges are split class by class, and targets may stay") {
  const Graph graph = random_graph(40, 0.3);
  std::vector<std::int32_t> labels;
  for (Index e = 0; e < graph.edge_count(); ++e)
    labels.push_back(static_cast<std::int32_t>(e % 7 == 0 ? 1 : e % 7 == 1 ? -1 : 0));
  const EdgeTargets hidden = split_edges(graph, labels, 2, {.seed = 3});
  const double ones = static_cast<double>(std::count(labels.begin(), labels.end(), 1));
  const auto count = [&](const std::vector<std::int32_t>& set, int label) {
    return static_cast<double>(std::count_if(set.begin(), set.end(), [&](auto t) {
      return hidden.labels[static_cast<std::size_t>(t)] == label;
    }));
  };
  CHECK(std::abs(count(hidden.split.train, 1) - 0.2 * ones) <= 1);
  CHECK(std::abs(count(hidden.split.test, 1) - 0.1 * ones) <= 1);
  CHECK(count(hidden.split.train, -1) == 0);
  CHECK(hidden.graph.edge_count() + hidden.count() == graph.edge_count());
  CHECK(seen_targets(hidden) == 0);
  for (Index t = 0; t < hidden.count(); ++t) {
    CHECK(hidden.labels[static_cast<std::size_t>(t)] ==
          labels[static_cast<std::size_t>(hidden.edges[static_cast<std::size_t>(t)])]);
  }
  const EdgeTargets kept =
      split_edges(graph, labels, 2, {.message = 0, .train = 0.8, .keep_targets = true, .seed = 3});
  CHECK(kept.graph.edge_count() == graph.edge_count());
  CHECK(seen_targets(kept) == kept.count());
  CHECK(split_edges(graph, {}, 0, {.seed = 3}).labels.empty());
}

TEST_CASE("negative pairs are all pairs without an edge, equally often, or by degree") {
  const Graph graph = random_graph(9, 0.5);
  const NegativePairs pairs(9, graph.edges());
  CHECK(pairs.count() == 36 - graph.edge_count());
  std::set<Edge> all;
  for (const Edge e : pairs.draw_distinct(7, 1, pairs.count())) {
    CHECK(e.u < e.v);
    CHECK(all.insert(e).second);
  }
  for (const Edge e : graph.edges()) CHECK_FALSE(all.contains(e));
  constexpr Index draws = 40'000;
  std::map<Edge, double> count;
  for (Index slot = 0; slot < draws; ++slot) ++count[pairs.draw(3, 2, 0, slot)];
  const double p = 1 / static_cast<double>(pairs.count());
  CHECK(count.size() == static_cast<std::size_t>(pairs.count()));
  for (const auto& [e, times] : count) CHECK(std::abs(times - draws * p) <= 5 * std::sqrt(draws * p * (1 - p)));
  // By degree: in proportion to d_u d_v.
  const NegativePairs weighted(9, graph.edges(), NegativeSampling::degree, graph.sources());
  std::map<Edge, double> by_degree;
  for (Index slot = 0; slot < draws; ++slot) ++by_degree[weighted.draw(3, 2, 0, slot)];
  double sum = 0;
  for (const Edge e : all) sum += static_cast<double>(graph.degree(e.u) * graph.degree(e.v));
  for (const Edge e : all) {
    const double q = static_cast<double>(graph.degree(e.u) * graph.degree(e.v)) / sum;
    CHECK(std::abs(by_degree[e] - draws * q) <= 5 * std::sqrt(draws * q * (1 - q)) + 1e-9);
  }
  CHECK(sheafnn::detail::high_product(~0ULL, ~0ULL) == ~0ULL - 1);
  CHECK(sheafnn::detail::high_product(1ULL << 63, 6) == 3);
  // Many nodes: ranks beyond 2³².
  const NegativePairs large(200'000, std::vector<Edge>{{0, 1}, {199'998, 199'999}});
  for (Index slot = 0; slot < 100; ++slot) {
    const Edge e = large.draw(1, 0, 0, slot);
    CHECK((0 <= e.u && e.u < e.v && e.v < 200'000));
  }
}

TEST_CASE("ranks: ties count half, Hits@k and MRR") {
  const std::vector<double> links = {3, 2, 0}, negatives = {2, 1, 2, 0.5};
  const auto ranks = sheafnn::uncertainty::link_ranks(links, negatives);
  CHECK(ranks == std::vector<double>{1, 2, 5});
  CHECK(sheafnn::uncertainty::hits_at(ranks, 1) == doctest::Approx(1.0 / 3));
  CHECK(sheafnn::uncertainty::hits_at(ranks, 2) == doctest::Approx(2.0 / 3));
  CHECK(sheafnn::uncertainty::mean_reciprocal_rank(ranks) == doctest::Approx((1 + 0.5 + 0.2) / 3));
  CHECK_THROWS_AS(static_cast<void>(sheafnn::uncertainty::hits_at({}, 1)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::uncertainty::hits_at(ranks, 0)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(
                      sheafnn::uncertainty::link_ranks(std::vector<double>{std::nan("")}, negatives)),
                  std::invalid_argument);
}

/// Nodes with a group, 0 or 1, and a place on a circle, both among noisy features. Nodes of different groups are linked
/// where their places are near to each other once the places of group 1 are turned by a quarter.
struct PlantedTask {
  static constexpr Index n = 120;
  Graph graph;
  sheafnn::NodeFeatures features;

  explicit PlantedTask(std::uint64_t seed) {
    std::vector<double> x, angle;
    for (Index u = 0; u < n; ++u) {
      const double turn = 3.14159265358979 * tiny::number(seed, u);
      angle.push_back(turn + (u % 2 == 1 ? 1.5707963 : 0));
      x.insert(x.end(), {std::cos(turn), std::sin(turn), u % 2 == 0 ? 1.0 : 0.0, u % 2 == 0 ? 0.0 : 1.0});
      for (std::size_t i = x.size() - 4; i < x.size(); ++i)
        x[i] += 0.1 * tiny::number(seed + 50, static_cast<Index>(i));
    }
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < n; ++u) {
      for (std::int32_t v = u + 1; v < n; v += 2) {
        if (std::cos(angle[static_cast<std::size_t>(u)] - angle[static_cast<std::size_t>(v)]) > 0.9)
          edges.push_back({u, v});
      }
    }
    graph = Graph(n, edges);
    features = sheafnn::NodeFeatures::from_dense(std::span<const double>(x), n, 4);
  }
};

template <class Model>
double test_auc(std::uint64_t seed, PairScore score, int threads = 1, std::vector<double>* parameters = nullptr,
                Index epochs = 120) {
  const PlantedTask task(seed);
  const EdgeTargets links = split_links(task.graph, {.seed = seed});
  Model model({.features = 4,
               .channels = 8,
               .layers = 2,
               .classes = 8,
               .feature_treatment = sheafnn::FeatureTreatment::none},
              seed);
  const auto loss = sheafnn::link_loss(links, score);
  const auto result = sheafnn::train(model, links.graph, task.features, loss, links.split,
                                     {.epochs = epochs,
                                      .stop_on = sheafnn::StopOn::roc_auc,
                                      .learning_rate = 0.02,
                                      .weight_decay = 0,
                                      .sheaf_decay = 0,
                                      .input_dropout = 0,
                                      .dropout = 0,
                                      .seed = seed,
                                      .threads = threads});
  if (parameters != nullptr)
    parameters->assign(model.parameters().values().begin(), model.parameters().values().end());
  return result.test_roc_auc;
}

TEST_CASE("planted links: the sheaf's energy finds them, and is ahead of the dot product") {
  using Model = sheafnn::Nsd<sheafnn::GeneralLinear<2>>;
  double energy = 0, dot = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    energy += test_auc<Model>(seed, PairScore::energy) / 3;
    dot += test_auc<Model>(seed, PairScore::dot) / 3;
  }
  CHECK(energy > 0.85);
  CHECK(energy > dot + 0.03);
}

TEST_CASE("trainings have the same bits for any number of threads") {
  for (const PairScore score : {PairScore::dot, PairScore::bilinear, PairScore::energy}) {
    std::vector<double> one, three;
    using Model = sheafnn::Bsnn<sheafnn::Diagonal<2>>;
    test_auc<Model>(1, score, 1, &one, 6);
    test_auc<Model>(1, score, 3, &three, 6);
    CHECK(one == three);
  }
}

TEST_CASE("checkpoints keep the parameters of a score") {
  using Model = sheafnn::Bsnn<sheafnn::Diagonal<2>>;
  const tiny::Task task;
  Graph graph = task.graph;
  graph.set_arc_features({}, 0);
  auto options = tiny::options();
  options.classes = 4;
  const std::vector<Edge> pairs = {{0, 1}, {2, 6}};
  const test::TemporaryFolder folder;
  for (const PairScore score : {PairScore::dot, PairScore::bilinear, PairScore::energy}) {
    Model model(options, 3);
    sheafnn::add_pair_head(model, {.score = score}, 1);
    tiny::disturb(model.parameters(), 5, 0.3);
    sheafnn::io::save_checkpoint(folder.path() / "model.safetensors", model);
    const Model loaded = sheafnn::io::load_checkpoint<Model>(folder.path() / "model.safetensors");
    const auto a = sheafnn::predict_links(model, graph, task.sparse, pairs, score, {.samples = 4});
    const auto b = sheafnn::predict_links(loaded, graph, task.sparse, pairs, score, {.samples = 4});
    CHECK(a.link == b.link);
    CHECK(a.mutual_information == b.mutual_information);
    CHECK(a.mutual_information[0] > 0);  // the outputs are random
    CHECK(a.link[static_cast<std::size_t>(a.ranking[0])] >= a.link[static_cast<std::size_t>(a.ranking[1])]);
  }
}

TEST_CASE("a training goes on as if it had never stopped") {
  using Model = sheafnn::Nsd<sheafnn::GeneralLinear<2>>;
  const PlantedTask task(1);
  const EdgeTargets links = split_links(task.graph);
  const auto loss = sheafnn::link_loss(links);
  sheafnn::TrainingState state;
  sheafnn::TrainOptions options{.epochs = 4};
  options.on_checkpoint = [&](const sheafnn::TrainingState& s) { state = s; };
  const sheafnn::ModelOptions of{.features = 4, .channels = 4, .layers = 2, .classes = 4};
  Model first(of, 1), second(of, 1), whole(of, 1);
  sheafnn::train(first, links.graph, task.features, loss, links.split, options);
  options.epochs = 8;
  const sheafnn::TrainingState half = state;
  const auto expected = sheafnn::train(whole, links.graph, task.features, loss, links.split, options);
  options.resume = &half;
  const auto result = sheafnn::train(second, links.graph, task.features, loss, links.split, options);
  CHECK(result.test_nll == expected.test_nll);
  CHECK(std::equal(whole.parameters().values().begin(), whole.parameters().values().end(),
                   second.parameters().values().begin()));
}

TEST_CASE("classes, signs and numbers of edges are learned; batches of targets") {
  using Model = sheafnn::Bsnn<sheafnn::Diagonal<2>>;
  const PlantedTask task(2);
  const Graph graph = random_graph(PlantedTask::n, 0.08);
  std::vector<std::int32_t> sign;
  std::vector<double> value;
  for (const Edge e : graph.edges()) {
    sign.push_back((e.u + e.v) % 2);  // of the groups, which the features tell
    value.push_back(e.u % 2 + e.v % 2);
  }
  const sheafnn::TrainOptions options{
      .epochs = 150, .learning_rate = 0.03, .weight_decay = 0, .input_dropout = 0, .dropout = 0};
  const sheafnn::ModelOptions of{.features = 4,
                                 .channels = 4,
                                 .layers = 1,
                                 .classes = 6,
                                 .feature_treatment = sheafnn::FeatureTreatment::none};
  const EdgeTargets targets = split_edges(graph, sign, 2, {.seed = 1});
  for (const PairScore score : {PairScore::bilinear, PairScore::energy}) {
    Model model(of, 2);
    auto with = options;
    with.batch_size = 40;
    with.epochs = 60;
    const auto result = sheafnn::train(model, targets.graph, task.features,
                                       sheafnn::edge_class_loss(targets, 2, score), targets.split, with);
    CAPTURE(to_string(score));
    CHECK(result.test_accuracy > 0.9);
    CHECK(result.test_roc_auc > 0.95);
    const auto prediction = sheafnn::predict_edges(model, targets.graph, task.features, targets.pairs, 2, score);
    Index right = 0;
    for (const std::int32_t t : targets.split.test) {
      right +=
          prediction.label[static_cast<std::size_t>(t)] == targets.labels[static_cast<std::size_t>(t)] ? 1 : 0;
    }
    CHECK(static_cast<double>(right) > 0.9 * static_cast<double>(targets.split.test.size()));
  }
  const EdgeTargets numbers = split_edges(graph, {}, 0, {.seed = 1});
  std::vector<double> of_targets;
  for (const std::int32_t e : numbers.edges) of_targets.push_back(value[static_cast<std::size_t>(e)]);
  Model model(of, 2);
  const auto loss =
      sheafnn::edge_regression_loss(numbers,
                                    sheafnn::MatrixView<const double>(of_targets.data(), numbers.count(), 1),
                                    PairScore::bilinear, 0.3);
  const auto result = sheafnn::train(model, numbers.graph, task.features, loss, numbers.split, options);
  CHECK(result.test_accuracy > 0.8);  // R²
  const auto prediction = sheafnn::predict_edge_values(model, numbers.graph, task.features, numbers.pairs);
  CHECK(prediction.mean.size() == numbers.pairs.size());
  CHECK(*std::min_element(prediction.variance.begin(), prediction.variance.end()) >= 0);
}

TEST_CASE("other kinds of networks have the scores without maps") {
  const PlantedTask task(1);
  const EdgeTargets links = split_links(task.graph);
  using Model = sheafnn::Csnn<2>;
  Model model({.features = 4, .channels = 4, .layers = 1, .classes = 4}, 1);
  const auto loss = sheafnn::link_loss(links, PairScore::bilinear);
  const auto result = sheafnn::train(model, links.graph, task.features, loss, links.split, {.epochs = 3});
  CHECK(std::isfinite(result.test_nll));
  CHECK_THROWS_WITH_AS(sheafnn::add_pair_head(model, {.score = PairScore::energy}),
                       doctest::Contains("no sheaf learner for pairs"), std::invalid_argument);
}

TEST_CASE("what is refused") {
  const Graph graph = random_graph(20, 0.3);
  const auto throws = [](const char* text, const auto& call) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains(text), std::invalid_argument);
  };
  throws("must sum to 1", [&] { static_cast<void>(split_links(graph, {.message = 0.5})); });
  throws("training needs targets", [&] { static_cast<void>(split_links(graph, {.message = 0.8, .train = 0})); });
  throws("edges to split: 1", [&] { static_cast<void>(split_links(Graph(3, std::vector<Edge>{{0, 1}}))); });
  throws("keep_targets", [&] { static_cast<void>(split_links(graph, {.keep_targets = true})); });
  throws("between 0 and 1000", [&] { static_cast<void>(split_links(graph, {.negatives = -1})); });
  throws("pairs without an edge", [&] { static_cast<void>(split_links(graph, {.negatives = 100})); });
  throws("is left to draw", [&] { static_cast<void>(split_links(random_graph(8, 1.1))); });
  throws("labels", [&] { static_cast<void>(split_edges(graph, std::vector<std::int32_t>{1}, 2)); });

  using Model = sheafnn::Nsd<sheafnn::GeneralLinear<2>>;
  Model model({.features = 3, .channels = 2, .layers = 1, .classes = 3}, 1);
  throws("multiple of the stalk dimension", [&] { sheafnn::add_pair_head(model, {.score = PairScore::energy}); });
  std::vector<double> x(60, 0.5);
  const auto features = sheafnn::NodeFeatures::from_dense(std::span<const double>(x), 20, 3);
  const std::vector<Edge> pair = {{0, 1}}, loop = {{2, 2}}, outside = {{0, 20}};
  throws("no parameter of that name",
         [&] { static_cast<void>(predict_links(model, graph, features, pair, PairScore::dot)); });
  sheafnn::add_pair_head(model, {.score = PairScore::dot});
  sheafnn::add_pair_head(model, {.score = PairScore::dot});  // they are there
  throws("two different nodes",
         [&] { static_cast<void>(predict_links(model, graph, features, loop, PairScore::dot)); });
  throws("must be below 20",
         [&] { static_cast<void>(predict_links(model, graph, features, outside, PairScore::dot)); });
  throws("other shapes",
         [&] { sheafnn::add_pair_head(model, {.score = PairScore::dot, .scores = 3, .temperature = false}); });
  Model with({.features = 3, .channels = 2, .layers = 1, .classes = 4, .edge_features = 1}, 1);
  throws("pairs have no features", [&] { sheafnn::add_pair_head(with, {.score = PairScore::energy}); });
  const EdgeTargets links = split_links(graph);
  sheafnn::Network<Model> network(model, links.graph, features);
  const auto loss = sheafnn::link_loss(links, PairScore::dot);
  const std::vector<std::int32_t> wrong = {0, links.split.test.back() + 1000};
  throws("targets[1]", [&] { sheafnn::elbo(network, {.training = true}, loss, wrong); });
}

}  // namespace
}  // namespace test_links
