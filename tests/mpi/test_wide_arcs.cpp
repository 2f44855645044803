/// \file
/// Parts of graphs with more than 2³² arcs: a small part with numbers of arcs as in such a graph.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "part_steps.hpp"
#include "sheafnn/every_layer.hpp"
#include "sheafnn/graph/selected_graphs.hpp"
#include "sheafnn/layers/noise.hpp"

namespace test_wide_arcs {
namespace {

using namespace part_steps;
using Model = sheafnn::AnyBsnn<sheafnn::SpecialOrthogonal<2>, double>;

constexpr Index two_32 = Index{1} << 32;

/// The numbers, raised by `shift`, in 64 bits.
sheafnn::PartNumbers widened(sheafnn::PartNumbers numbers, Index shift) {
  sheafnn::ArcNumbers wide;
  wide.resize(numbers.arc.size(), true);
  for (Index arc = 0; arc < wide.size(); ++arc) wide.set(arc, numbers.arc[arc] + shift);
  numbers.arc = std::move(wide);
  return numbers;
}

/// Learned maps, attention and directed phases, all of them random.
std::vector<Setting> settings() {
  Setting maps{"random maps", {.features = 20, .channels = 3, .layers = 2, .classes = 3}};
  maps.samples = 2;
  maps.kl_estimator = sheafnn::KlEstimator::monte_carlo;
  Setting attention = maps, directed = maps;
  attention.name = "random attention";
  attention.model.layer = sheafnn::LayerForm::attention;
  attention.model.attention = {.heads = 2, .width = 2, .transported = true, .random = true};
  directed.name = "random phases";
  directed.model.layer = sheafnn::LayerForm::directed;
  directed.model.directed.random = true;
  return {maps, attention, directed};
}

/// This rank's part of dataset(), and steps on it.
struct OwnPart {
  sheafnn::Dataset data = dataset();
  mpi::Partition partition = random_partition(data.node_count(), 2);
  mpi::DistributedData part{ranks(), data, partition};
  mpi::LocalPart own = mpi::local_part(data.graph, partition, ranks().rank());
  sheafnn::NodeFeatures features = mpi::part_features(data.features, own.numbers);
  std::vector<std::int32_t> train = part.owned(data.splits[0].train);

  Step step_with(const Model& model, const Setting& setting, const sheafnn::PartNumbers& numbers) {
    mpi::RowExchange exchange(ranks(), numbers, own.neighbours);
    sheafnn::Graph graph = own.graph;
    graph.set_part(&exchange);
    return step(model, graph, features, mpi::PartClassification(part, train), train, setting);
  }
  /// The same in one process, whose part is the whole graph.
  Step step_of_whole(const Model& model, const Setting& setting, Index shift) const {
    const mpi::Partition one{1, std::vector<std::int32_t>(static_cast<std::size_t>(data.node_count()))};
    mpi::LocalPart whole = mpi::local_part(data.graph, one, 0);
    static_cast<void>(mpi::part_features(data.features, whole.numbers));  // numbers of stored features
    sheafnn::detail::AloneGraphPart alone(widened(whole.numbers, shift));
    sheafnn::Graph graph = data.graph;
    graph.set_part(&alone);
    return step(model, graph, data.features, sheafnn::Classification(data.labels), data.splits[0].train, setting);
  }
};

}  // namespace

TEST_CASE("a part with arcs of 64 bits has the bits of 32") {
  OwnPart part;
  for (const Setting& setting : settings()) {
    CAPTURE(setting.name);
    Model model(setting.model, 7);
    tiny::disturb(model.parameters(), 8, 0.2);
    const Step narrow = part.step_with(model, setting, part.own.numbers),
               wide = part.step_with(model, setting, widened(part.own.numbers, 0));
    CHECK(everywhere(narrow.gradient == wide.gradient && narrow.elbo.loss == wide.elbo.loss &&
                     narrow.elbo.kl == wide.elbo.kl));
  }
}

TEST_CASE("noise of arcs beyond 2^32 does not depend on the ranks, and has its own numbers") {
  OwnPart part;
  for (const Setting& setting : settings()) {
    CAPTURE(setting.name);
    Model model(setting.model, 7);
    tiny::disturb(model.parameters(), 8, 0.2);
    const Step narrow = part.step_of_whole(model, setting, 0);
    CHECK(difference(model, narrow,
                     step(model, part.data.graph, part.data.features, sheafnn::Classification(part.data.labels),
                          part.data.splits[0].train, setting)) < 1e-12);
    for (const Index shift : {two_32 - 101, 5 * two_32}) {  // packs with two upper parts; the lower parts of 0
      const Step whole = part.step_of_whole(model, setting, shift);
      CHECK(difference(model, whole, narrow) > 1e-3);
      const double apart =
          difference(model, part.step_with(model, setting, widened(part.own.numbers, shift)), whole);
      CAPTURE(apart);
      CHECK(everywhere(apart < 1e-12));
    }
  }
}

TEST_CASE("every lane of a pack draws at its own upper bits") {
  using P = sheafnn::math::Pack<double, 8>;
  constexpr int draws = 6;
  const sheafnn::Stream stream{5, sheafnn::Purpose::sheaf_noise, 3, 1, 2};
  std::uint32_t lower[P::width], upper[P::width];
  for (std::uint32_t lane = 0; lane < P::width; ++lane) {
    lower[lane] = 4'000'000'000U + 7 * lane;
    upper[lane] = lane * lane % 5 << 16;
  }
  P numbers[draws];
  sheafnn::detail::draw_lanes<draws>(stream, upper, numbers, [&](const sheafnn::Stream& of_upper, P* out) {
    sheafnn::fill_normals<draws>(out, of_upper, sheafnn::random::word_of_t<P>::load(lower));
  });
  for (int k = 0; k < draws; ++k) {
    double values[P::width];
    numbers[k].store(values);
    for (int lane = 0; lane < P::width; ++lane) {
      const auto words = stream.words(lower[lane], static_cast<std::uint32_t>(k / 4), upper[lane]);
      CHECK(values[lane] ==
            doctest::Approx(sheafnn::normals_from_words<double>(words).value[k % 4]).epsilon(1e-14));
    }
  }
}

TEST_CASE("a part of a graph with more than 2^32 arcs") {
  // Nodes 7, 8 and 9; 8 and 9 are here, and the arcs before theirs are many.
  const Index first = 3 * two_32 - 1;
  mpi::OwnRows rows;
  rows.total_nodes = 10;
  rows.total_edges = 2 * two_32;
  rows.node = {8, 9};
  rows.first_arc = {first, first + 2};
  rows.offset = {0, 2, 3};
  rows.target = {7, 9, 8};
  const auto owner = [](Index u) { return u == 7 ? 0 : 1; };
  const std::vector<mpi::HaloArc> entering = mpi::halo_arcs(rows, 1, owner);
  REQUIRE(entering.size() == 1);
  const std::vector<Index> number = {first - 1};
  const mpi::LocalPart part = mpi::part_of_rows(rows, entering, number);
  REQUIRE(part.numbers.arc.wide());
  for (Index arc = 0; arc < part.graph.arc_count(); ++arc) {
    const Index u = part.numbers.node[static_cast<std::size_t>(part.graph.source(arc))],
                v = part.numbers.node[static_cast<std::size_t>(part.graph.target(arc))];
    CHECK(part.numbers.arc[arc] == (u == 7 ? first - 1 : u == 9 ? first + 2 : v == 7 ? first : first + 1));
  }
  rows.total_edges = two_32 / 2;
  CHECK_FALSE(mpi::part_of_rows(rows, entering, number).numbers.arc.wide());
  rows.total_edges = (Index{1} << 51) + 1;
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::part_of_rows(rows, entering, number)),
                       "edges: 2251799813685249 is not allowed; arcs have 52-bit addresses: at most 2^51",
                       std::invalid_argument);
}

}  // namespace test_wide_arcs
