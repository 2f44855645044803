/// \file
/// Networks on hypergraphs, on several ranks against one process: steps, trainings, partitions, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "faulty_exchange.hpp"
#include "hypergraph_task.hpp"
#include "part_steps.hpp"
#include "part_training.hpp"
#include "sheafnn/hypergraph.hpp"

namespace test_distributed_hypergraphs {
namespace {

using namespace part_steps;
using sheafnn::BayesianSheafHyperGnn;
using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::HypergraphLaplacian;
using sheafnn::HypergraphOptions;
using sheafnn::SheafHyperGnn;
using sheafnn::SpecialOrthogonal;

/// The settings of tests/hypergraph_task.hpp on the dataset of these tests.
template <class Model>
std::vector<SettingOf<HypergraphOptions>> settings() {
  std::vector<SettingOf<HypergraphOptions>> r;
  for (const tiny::HypergraphSetting& of : tiny::hypergraph_settings(Model::bayesian)) {
    r.push_back({of.name, of.model, of.input_dropout, of.dropout, of.kl_estimator, of.samples});
    r.back().model.features = 20;
    r.back().model.classes = 3;
  }
  return r;
}

TEST_CASE("steps of networks on hypergraphs are the steps of one process") {
  check_steps<SheafHyperGnn<Diagonal<2>, double>>(settings<SheafHyperGnn<Diagonal<2>, double>>());
  check_steps<SheafHyperGnn<GeneralLinear<2>, double>>(settings<SheafHyperGnn<GeneralLinear<2>, double>>());
}
TEST_CASE("steps of Bayesian networks on hypergraphs are the steps of one process") {
  check_steps<BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>>(
      settings<BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>>());
}

HypergraphOptions architecture(HypergraphLaplacian laplacian, bool mediators = false,
                               std::vector<double> projection = {}) {
  return {.features = 20,
          .channels = 3,
          .layers = 2,
          .classes = 3,
          .laplacian = laplacian,
          .mediators = mediators,
          .projection = std::move(projection)};
}

TEST_CASE("a training of networks on hypergraphs is the training of one process") {
  check_training<SheafHyperGnn<Diagonal<2>, double>>(architecture(HypergraphLaplacian::linear));
  check_training<SheafHyperGnn<Diagonal<2>, double>>(
      architecture(HypergraphLaplacian::nonlinear, true, {0.3, -0.8, 0.5}));
}
TEST_CASE("a training of Bayesian networks on hypergraphs is the training of one process") {
  check_training<BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>>(
      architecture(HypergraphLaplacian::nonlinear));
  check_training<BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>>(
      architecture(HypergraphLaplacian::published));
}

TEST_CASE("one part of a hypergraph has the bits of the whole") {
  mpi::Communicator alone(MPI_COMM_SELF);
  const sheafnn::HypergraphDataset data = hypergraph_dataset();
  mpi::DistributedHypergraph part(alone, data, mpi::metis_partition(data.graph, 1));
  CHECK(part.graph().hyperedge_count() == data.graph.hyperedge_count() - 1);  // without the empty one
  CHECK(std::equal(part.graph().nodes().begin(), part.graph().nodes().end(), data.graph.nodes().begin()));
  const mpi::PartClassification loss(part, data.splits[0].train);
  using Model = BayesianSheafHyperGnn<GeneralLinear<2>, double>;
  for (const auto& setting : settings<Model>()) {
    CAPTURE(setting.name);
    const Model model(setting.model, 7);
    const Step expected = step(model, data.graph, data.features, sheafnn::Classification(data.labels),
                               data.splits[0].train, setting),
               got = step(model, part.graph(), part.features(), loss, data.splits[0].train, setting);
    CHECK(got.elbo.loss == expected.elbo.loss);
    CHECK(got.elbo.kl == expected.elbo.kl);
    CHECK(got.gradient == expected.gradient);
  }
}

TEST_CASE("of members that differ equally, all ranks select the members that one process selects") {
  // Three kinds of nodes: each hyperedge has several pairs with the largest discrepancy.
  sheafnn::HypergraphDataset data = hypergraph_dataset();
  std::vector<double> features;
  for (Index u = 0; u < data.node_count(); ++u) {
    for (Index j = 0; j < 3; ++j) features.push_back(j == u % 3 ? 1.0 : 0.0);
  }
  data.features = sheafnn::NodeFeatures::from_dense(features, data.node_count(), 3);
  using Model = SheafHyperGnn<Diagonal<2>, double>;
  SettingOf<HypergraphOptions> setting{"equal members", architecture(HypergraphLaplacian::nonlinear), 0.0, 0.0};
  setting.model.features = 3;
  setting.model.feature_treatment = sheafnn::FeatureTreatment::none;
  const Model model(setting.model, 7);
  const Step expected =
      step(model, data.graph, data.features, sheafnn::Classification(data.labels), data.splits[0].train, setting);
  mpi::DistributedHypergraph part(ranks(), data, random_partition(data.node_count(), 6));
  const std::vector<std::int32_t> train = part.owned(data.splits[0].train);
  const mpi::PartClassification loss(part, train);
  CHECK(everywhere(difference(model, step(model, part.graph(), part.features(), loss, train, setting), expected) <
                   1e-12));
}

TEST_CASE("ranks without hyperedges, and a hyperedge of all nodes") {
  sheafnn::HypergraphDataset data = hypergraph_dataset();
  std::vector<std::int32_t> all(static_cast<std::size_t>(data.node_count()));
  std::iota(all.begin(), all.end(), 0);
  using Lists = std::vector<std::vector<std::int32_t>>;
  for (const Lists& hyperedges : {Lists{}, Lists{{0, 1}}, Lists{{4}, {}}, Lists{{3, 8, 13, 88}, all, {0}}}) {
    CAPTURE(hyperedges.size());
    data.graph = sheafnn::hypergraph_of_members(data.node_count(), hyperedges);
    for (const HypergraphLaplacian laplacian : {HypergraphLaplacian::linear, HypergraphLaplacian::nonlinear}) {
      using Model = BayesianSheafHyperGnn<Diagonal<2>, double>;
      const SettingOf<HypergraphOptions> setting{"few hyperedges", architecture(laplacian)};
      const Model model(setting.model, 7);
      const Step expected = step(model, data.graph, data.features, sheafnn::Classification(data.labels),
                                 data.splits[0].train, setting);
      for (const mpi::Partition& partition :
           {mpi::metis_partition(ranks(), data.graph), random_partition(data.node_count(), 6)}) {
        mpi::DistributedHypergraph part(ranks(), data, partition);
        const std::vector<std::int32_t> train = part.owned(data.splits[0].train);
        const mpi::PartClassification loss(part, train);
        CHECK(everywhere(
            difference(model, step(model, part.graph(), part.features(), loss, train, setting), expected) < 1e-12));
      }
    }
  }
}

TEST_CASE("networks on hypergraphs in single precision have the same bits on all ranks") {
  const sheafnn::HypergraphDataset data = hypergraph_dataset();
  mpi::DistributedHypergraph part(ranks(), data, random_partition(data.node_count(), 5));
  using Model = BayesianSheafHyperGnn<Diagonal<2>>;
  Model one(architecture(HypergraphLaplacian::nonlinear), 2), model = one;
  const sheafnn::TrainOptions options{.epochs = 4, .learning_rate = 0.02, .seed = 4};
  const sheafnn::TrainResult expected = sheafnn::train(one, data, data.splits[0], options),
                             result = mpi::train(model, part, data.splits[0], options);
  CHECK(everywhere(std::abs(result.history.back().loss - expected.history.back().loss) < 1e-4));
  std::vector<float> of_root(model.parameters().values().begin(), model.parameters().values().end());
  ranks().broadcast(std::span<float>(of_root));
  CHECK(everywhere(std::equal(of_root.begin(), of_root.end(), model.parameters().values().begin())));
}

/// A rule that is broken, of the exchange of nodes (0), hyperedges (1) or members (2).
struct BrokenRule {
  test::Fault fault;
  int exchange;
  const char* text;
};
constexpr BrokenRule broken_rules[] = {
    {test::Fault::lost_sums, 1, "sums over members are not given to the hyperedges' owners"},
    {test::Fault::stale_halo, 1, "sums over members are not fetched"},
    {test::Fault::own_sizes, 1, "hyperedges have the sizes that they have in the part"},
    {test::Fault::stale_halo, 2, "owners select without the members of other parts"},
    {test::Fault::own_noise, 2, "noise at the part's own numbers of pairs"},
    {test::Fault::own_masks, 0, "dropout at the part's own numbers of nodes"},
    {test::Fault::no_sum, 0, "gradients are not added up"}};

TEST_CASE("the comparison sees every rule of hypergraphs that is broken") {
  using Model = BayesianSheafHyperGnn<Diagonal<2>, double>;
  const SettingOf<HypergraphOptions> setting{"non-linear", architecture(HypergraphLaplacian::nonlinear)};
  const sheafnn::HypergraphDataset data = hypergraph_dataset();
  const mpi::Partition partition = random_partition(data.node_count(), 2);
  mpi::DistributedHypergraph part(ranks(), data, partition);
  const std::vector<std::int32_t> train = part.owned(data.splits[0].train);
  const mpi::PartClassification loss(part, train);
  mpi::LocalHypergraph own = mpi::local_part(data.graph, partition, ranks().rank());
  const sheafnn::NodeFeatures features = mpi::part_features(data.features, own.numbers);
  mpi::RowExchange nodes(ranks(), own.numbers, {}),
      hyperedges(ranks(), own.hyperedges.numbers, own.hyperedges.neighbours),
      members(ranks(), own.members.numbers, own.members.neighbours);
  Model model(setting.model, 7);
  tiny::disturb(model.parameters(), 8, 0.2);
  const Step expected =
      step(model, data.graph, data.features, sheafnn::Classification(data.labels), data.splits[0].train, setting);
  const auto apart = [&](sheafnn::GraphPart& of_nodes, sheafnn::GraphPart& of_hyperedges,
                         sheafnn::GraphPart& of_members, const sheafnn::MemberNumbers& numbers) {
    const sheafnn::HypergraphPart joined(of_nodes, of_hyperedges, of_members, numbers);
    sheafnn::Hypergraph graph = own.graph;
    graph.set_part(&joined);
    return difference(model, step(model, graph, features, loss, train, setting), expected);
  };
  CHECK(everywhere(apart(nodes, hyperedges, members, own.of_members) < 1e-12));
  for (const BrokenRule& rule : broken_rules) {
    const std::string text = rule.text;
    CAPTURE(text);
    mpi::RowExchange* exchanges[] = {&nodes, &hyperedges, &members};
    test::FaultyExchange faulty(*exchanges[rule.exchange], rule.fault);
    sheafnn::GraphPart* parts[] = {&nodes, &hyperedges, &members};
    parts[rule.exchange] = &faulty;
    sheafnn::MemberNumbers numbers = own.of_members;
    if (rule.fault == test::Fault::own_noise) std::iota(numbers.pair.begin(), numbers.pair.end(), 0U);
    const double found = apart(*parts[0], *parts[1], *parts[2], numbers);
    CAPTURE(found);
    if (ranks().size() > 1) CHECK_FALSE(everywhere(found < 1e-6));
  }
}

TEST_CASE("partitions of a hypergraph and what they cost") {
  const sheafnn::Hypergraph graph = hypergraph_dataset().graph;
  for (const int parts : {1, 2, 5, 8}) {
    const mpi::Partition random = scattered_partition(graph.node_count(), parts);
    for (const mpi::Partition& partition :
         {mpi::contiguous_partition(graph, parts), mpi::metis_partition(graph, parts), random}) {
      const mpi::HypergraphPartitionReport report = mpi::describe(graph, partition);
      std::vector<int> owners(static_cast<std::size_t>(graph.hyperedge_count()));
      std::vector<Index> seen(owners.size());
      std::vector<bool> has_pair(static_cast<std::size_t>(graph.pair_count()));
      Index nodes = 0, cut = 0, sent[2] = {}, received[2] = {};
      for (int p = 0; p < parts; ++p) {
        const mpi::LocalHypergraph part = mpi::local_part(graph, partition, p);
        const mpi::PartitionReport::Part &figures = report.parts[static_cast<std::size_t>(p)],
                                         &members = report.members.parts[static_cast<std::size_t>(p)];
        const sheafnn::PartNumbers& numbers = part.hyperedges.numbers;
        CHECK(figures.own == part.numbers.own);
        CHECK(figures.arcs == part.graph.pair_count());
        CHECK(figures.halo == part.graph.hyperedge_count() - numbers.own);
        CHECK(members.halo == static_cast<Index>(part.members.numbers.node.size()) - part.members.numbers.own);
        Index interior = 0, from[2] = {};
        for (Index u = 0; u < part.numbers.own; ++u) {
          bool is_cut = false;
          for (Index i = part.graph.first_pair(u); i < part.graph.first_pair(u + 1); ++i)
            is_cut = is_cut || part.graph.hyperedge(i) >= numbers.interior;
          interior += is_cut ? 0 : 1;
        }
        CHECK(figures.interior == interior);
        for (int kind = 0; kind < 2; ++kind) {
          for (const mpi::Neighbour& neighbour : (kind == 0 ? part.hyperedges : part.members).neighbours) {
            sent[kind] += static_cast<Index>(neighbour.sent.size());
            received[kind] += neighbour.count;
            from[kind] += neighbour.count > 0 ? 1 : 0;
          }
        }
        CHECK(figures.neighbours == from[0]);
        CHECK(members.neighbours == from[1]);
        nodes += part.numbers.own;
        cut += numbers.own - numbers.interior;
        for (Index e = 0; e < part.graph.hyperedge_count(); ++e) {
          const Index of = numbers.node[static_cast<std::size_t>(e)];
          const Index here = part.graph.size(e);  // without a part set: the members that are here
          CHECK(numbers.degree[static_cast<std::size_t>(e)] == graph.size(of));
          CHECK((here == graph.size(of)) == (e < numbers.interior));
          CHECK(here > 0);
          seen[static_cast<std::size_t>(of)] += here;
          owners[static_cast<std::size_t>(of)] += e < numbers.own ? 1 : 0;
        }
        for (Index i = 0; i < part.graph.pair_count(); ++i) {
          const Index of = part.of_members.pair[static_cast<std::size_t>(i)];
          CHECK_FALSE(has_pair[static_cast<std::size_t>(of)]);
          has_pair[static_cast<std::size_t>(of)] = true;
          CHECK(graph.node(of) == part.numbers.node[static_cast<std::size_t>(part.graph.node(i))]);
          CHECK(graph.hyperedge(of) == numbers.node[static_cast<std::size_t>(part.graph.hyperedge(i))]);
        }
        // An owner has the rows of all members of a cut hyperedge, in their order.
        for (Index e = numbers.interior; e < numbers.own; ++e) {
          const Index of = numbers.node[static_cast<std::size_t>(e)];
          const std::size_t k = static_cast<std::size_t>(e - numbers.interior);
          REQUIRE(part.of_members.first_row[k + 1] - part.of_members.first_row[k] == graph.size(of));
          for (Index j = 0; j < graph.size(of); ++j) {
            const std::int32_t row =
                part.of_members.row[static_cast<std::size_t>(part.of_members.first_row[k] + j)];
            CHECK(part.members.numbers.node[static_cast<std::size_t>(row)] ==
                  graph.member(graph.first_member(of) + j));
          }
        }
        for (std::size_t row = 0; row < part.of_members.pair_of_row.size(); ++row) {
          const std::size_t pair = static_cast<std::size_t>(part.of_members.pair_of_row[row]);
          CHECK(part.members.numbers.node[row] == Index{part.of_members.pair[pair]});
        }
      }
      CHECK(nodes == graph.node_count());
      CHECK(cut == report.cut);
      CHECK(std::find(has_pair.begin(), has_pair.end(), false) == has_pair.end());
      for (Index e = 0; e < graph.hyperedge_count(); ++e) {
        CHECK(seen[static_cast<std::size_t>(e)] == graph.size(e));
        CHECK(owners[static_cast<std::size_t>(e)] == (graph.size(e) > 0 ? 1 : 0));
      }
      CHECK(sent[0] == report.halo());
      CHECK(received[0] == report.halo());
      CHECK(sent[1] == report.members.halo());
      CHECK(received[1] == report.members.halo());
      CHECK(report.imbalance() >= 1);
    }
    CHECK(mpi::describe(graph, mpi::metis_partition(graph, parts)).halo() <= mpi::describe(graph, random).halo());
    CHECK(mpi::describe(graph, mpi::contiguous_partition(graph, parts)).imbalance() < 1.3);
  }
  // As many parts as nodes, of which METIS would leave some empty.
  mpi::validate(mpi::metis_partition(graph, 90), 90);
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::metis_partition(graph, 91)), doctest::Contains("parts: 91"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::describe(graph, mpi::Partition{2, {0, 1}})),
                       doctest::Contains("partition.owner: 2 is not allowed; expected one number for each of 90"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::local_part(graph, mpi::contiguous_partition(graph, 2), 2)),
                       doctest::Contains("rank: 2"), std::invalid_argument);
}

TEST_CASE("hypergraphs on ranks: what is refused") {
  const sheafnn::HypergraphDataset data = hypergraph_dataset();
  const int parts = ranks().size() + 1;
  CHECK_THROWS_WITH_AS(mpi::DistributedHypergraph(ranks(), data, mpi::contiguous_partition(data.graph, parts)),
                       doctest::Contains(sheafnn::detail::concat("partition.parts: ", parts,
                                                                 " is not allowed; must be the number of ranks, ",
                                                                 ranks().size())
                                             .c_str()),
                       std::invalid_argument);
  mpi::require_agreement(ranks(), data);
  if (ranks().size() == 1) return;
  sheafnn::HypergraphDataset other = data;
  if (!ranks().is_root()) {
    std::vector<sheafnn::Incidence> pairs;
    for (Index i = 0; i < data.graph.pair_count(); ++i) {
      pairs.push_back({static_cast<std::int32_t>((data.graph.node(i) + 1) % data.node_count()),
                       static_cast<std::int32_t>(data.graph.hyperedge(i))});
    }
    other.graph = sheafnn::Hypergraph(data.node_count(), data.graph.hyperedge_count(), pairs);
  }
  CHECK_THROWS_WITH_AS(mpi::require_agreement(ranks(), other),
                       doctest::Contains("on rank 1 fingerprint of the incident pairs is "), std::runtime_error);
  mpi::DistributedHypergraph part(ranks(), data, mpi::metis_partition(ranks(), data.graph));
  HypergraphOptions options = architecture(HypergraphLaplacian::nonlinear);
  options.mediators = !ranks().is_root();
  SheafHyperGnn<Diagonal<2>, double> model(options, 2);
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::train(model, part, data.splits[0], {.epochs = 1})),
                       doctest::Contains("on rank 1 mediators is true, on rank 0 it is false"),
                       std::runtime_error);
}

}  // namespace
}  // namespace test_distributed_hypergraphs
