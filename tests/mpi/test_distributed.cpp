/// \file
/// Training on several ranks against one process: losses, gradients, whole trainings, predictions, and what is sent.
/// Runs on any number of ranks (CMakeLists.txt).
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "network_passes.hpp"
#include "own_layers.hpp"
#include "part_steps.hpp"
#include "part_training.hpp"
#include "row_volume.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/distributed.hpp"
#include "sheafnn/every_layer.hpp"
#include "sheafnn/flow.hpp"
#include "sheafnn/layers.hpp"
#include "tiny_task.hpp"

namespace test_distributed {

using namespace part_steps;
using sheafnn::Bsnn;
using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::Nsd;
using sheafnn::SpecialOrthogonal;

template <class Model>
std::vector<Setting> settings() {
  const sheafnn::ModelOptions plain = {.features = 20, .channels = 3, .layers = 2, .classes = 3};
  std::vector<Setting> r = {{"plain", plain}};
  auto add = [&](const char* name, auto&& change) {
    Setting setting{name, plain};
    change(setting);
    r.push_back(setting);
  };
  add("filters, norm, second layer", [](Setting& s) {
    s.model.add_lp = s.model.add_hp = s.model.layer_norm = s.model.second_linear = true;
    s.model.readout_layers = 2;
    s.model.layers = 3;
  });
  add("one sheaf, deep learner of arc features", [](Setting& s) {
    s.model.linear = true;
    s.model.learner_layers = 2;
    s.model.learner_width = 5;
    if (sheafnn::sheaf::is_learned<typename Model::Family>) s.model.edge_features = 2;
  });
  add("Chebyshev filter", [](Setting& s) {
    s.model.filter.basis = sheafnn::PolynomialBasis::chebyshev;
    s.model.channels = 5;  // two tiles
  });
  add("Legendre filter of degree 4, fixed filters, one sheaf", [](Setting& s) {
    s.model.filter.basis = sheafnn::PolynomialBasis::legendre;
    s.model.filter.degree = 4;
    s.model.filter.skip = sheafnn::HighPassSkip::mixed;
    s.model.linear = s.model.add_lp = s.model.add_hp = s.model.layer_norm = true;
  });
  add("initial residual, fixed filters", [](Setting& s) {
    s.model.residual.form = sheafnn::ResidualForm::initial;
    s.model.layers = 3;
    s.model.add_lp = s.model.add_hp = true;
  });
  if (Model::bayesian) {
    add("filter of degree 1, samples", [](Setting& s) {
      s.model.filter.basis = sheafnn::PolynomialBasis::jacobi;
      s.model.filter.degree = 1;
      s.samples = 2;
    });
    add("samples, Monte Carlo", [](Setting& s) {
      s.samples = 2;
      s.kl_estimator = sheafnn::KlEstimator::monte_carlo;
      s.model.learner = sheafnn::LearnerInput::summed;
    });
  }
  return r;
}

TEST_CASE("steps of deterministic networks are those of one process") {
  check_steps<Nsd<Diagonal<2>, double>>(settings<Nsd<Diagonal<2>, double>>());
  check_steps<Nsd<SpecialOrthogonal<3>, double>>(settings<Nsd<SpecialOrthogonal<3>, double>>());
  check_steps<Nsd<GeneralLinear<2>, double>>(settings<Nsd<GeneralLinear<2>, double>>());
  check_steps<Nsd<sheafnn::Identity<2>, double>>(settings<Nsd<sheafnn::Identity<2>, double>>());
  check_steps<Nsd<sheafnn::Conformal<2>, double>>(settings<Nsd<sheafnn::Conformal<2>, double>>());
}
TEST_CASE("steps of Bayesian networks are those of one process") {
  check_steps<Bsnn<Diagonal<2>, double>>(settings<Bsnn<Diagonal<2>, double>>());
  check_steps<Bsnn<SpecialOrthogonal<3>, double>>(settings<Bsnn<SpecialOrthogonal<3>, double>>());
  check_steps<Bsnn<GeneralLinear<2>, double>>(settings<Bsnn<GeneralLinear<2>, double>>());
  check_steps<Bsnn<sheafnn::Conformal<2>, double>>(settings<Bsnn<sheafnn::Conformal<2>, double>>());
  using Tangent =
      sheafnn::SheafModel<SpecialOrthogonal<2>, sheafnn::TangentNormalPosterior<SpecialOrthogonal<2>>, double>;
  check_steps<Tangent>(settings<Tangent>());
}

/// A deterministic network with layers from outside the library.
TEST_CASE("steps of networks with a layer of one's own are those of one process") {
  const sheafnn::ModelOptions plain = {.features = 20, .channels = 3, .layers = 3, .classes = 3};
  sheafnn::ModelOptions more = plain;
  more.add_lp = more.add_hp = more.layer_norm = true;
  const std::vector<Setting> both = {{"own layer", plain}, {"own layer, filters, norm", more}};
  check_steps<own_layers::Reactions<SpecialOrthogonal<3>>>(both);
  check_steps<own_layers::Reactions<sheafnn::Identity<2>>>(both);
  check_steps<own_layers::Mixed<sheafnn::PointMass<SpecialOrthogonal<2>>>>(both);
}

TEST_CASE("steps of other layers equal the steps of one process") {
  const auto setting = [](const char* name, sheafnn::LayerForm form) {
    Setting r{name, {.features = 20, .channels = 3, .layers = 3, .classes = 3}};
    r.model.layer = form;
    r.dropout = 0.3;
    return r;
  };
  std::vector<Setting> all = {setting("convolution", sheafnn::LayerForm::convolution),
                              setting("wave", sheafnn::LayerForm::wave),
                              setting("copresheaf", sheafnn::LayerForm::copresheaf)};
  for (std::size_t i = 0; i < 2; ++i) all[i].model.add_lp = all[i].model.add_hp = true;
  const auto attention = [&](const char* name, const sheafnn::AttentionOptions& options) {
    all.push_back(setting(name, sheafnn::LayerForm::attention));
    all.back().model.attention = options;
  };
  attention("attention", {.heads = 2, .width = 3});
  attention("transported residual attention", {.heads = 3, .width = 2, .transported = true, .residual = true});
  attention("normalised random attention", {.heads = 5, .width = 2, .normalised = true, .random = true});
  attention("all of it, one sheaf",
            {.heads = 2, .width = 2, .transported = true, .residual = true, .normalised = true, .random = true});
  all.back().model.linear = true;
  all.back().samples = 2;
  const auto directed = [&](const char* name, const sheafnn::DirectedOptions& options) {
    all.push_back(setting(name, sheafnn::LayerForm::directed));
    all.back().model.directed = options;
  };
  directed("directed", {.charge = 0.2, .imaginary_weights = true});
  directed("random phases", {.charge = 0.1, .imaginary_start = false, .random = true});
  all.back().samples = 2;
  check_steps<sheafnn::AnyNsd<SpecialOrthogonal<3>, double>>(all);
  check_steps<sheafnn::AnyBsnn<GeneralLinear<2>, double>>(all);
}

/// Settings of cooperative networks.
std::vector<SettingOf<sheafnn::CooperativeOptions>> cooperative_settings(bool bayesian) {
  const sheafnn::CooperativeOptions plain = {
      .features = 20, .channels = 3, .layers = 3, .classes = 3, .learner_width = 5};
  std::vector<SettingOf<sheafnn::CooperativeOptions>> r = {{"mlp", plain}};
  r.push_back({"sage, layer norm", plain});
  r.back().model.learner = sheafnn::NodeLearnerKind::sage;
  r.back().model.learner_layers = 3;
  r.back().model.norm = sheafnn::FeatureNorm::layer;
  r.push_back({"batch norm", plain});
  r.back().model.norm = sheafnn::FeatureNorm::batch;
  r.back().samples = bayesian ? 2 : 1;
  r.push_back({"directed sage", plain});
  r.back().model.learner = sheafnn::NodeLearnerKind::sage;
  r.back().model.learner_layers = 2;
  r.back().model.directed = r.back().model.in_degree_diagonal = true;
  r.push_back({"projected sage", plain});
  r.back().model.learner = sheafnn::NodeLearnerKind::sage_projected;
  r.back().model.learner_layers = 2;
  if (!bayesian) return r;
  r.back().samples = 2;
  r.back().model.layer_learners = true;
  r.push_back({"encoder of its own, Monte Carlo", plain});
  r.back().kl_estimator = sheafnn::KlEstimator::monte_carlo;
  r.back().model.separate_encoder = true;
  return r;
}
TEST_CASE("steps of cooperative networks are those of one process") {
  check_steps<sheafnn::Csnn<2, double>>(cooperative_settings(false));
  check_steps<sheafnn::Bcsnn<2, double>>(cooperative_settings(true));
}

/// Settings of networks of continuous time.
std::vector<SettingOf<sheafnn::FlowOptions>> flow_settings(bool bayesian) {
  const sheafnn::FlowOptions plain = {.features = 20, .channels = 3, .classes = 3, .time = 2};
  std::vector<SettingOf<sheafnn::FlowOptions>> r = {{"Dormand-Prince", plain}};
  auto add = [&](const char* name, auto&& change) {
    SettingOf<sheafnn::FlowOptions> setting{name, plain};
    change(setting.model);
    r.push_back(setting);
  };
  add("Dormand-Prince, a first step that is rejected, fixed filters", [](sheafnn::FlowOptions& o) {
    o.absolute_tolerance = o.relative_tolerance = 1e-5;
    o.first_step = 2;
    o.add_lp = o.add_hp = o.negate_inside = true;
  });
  add("Runge-Kutta, deep learner of arc features, second layer", [](sheafnn::FlowOptions& o) {
    o.method = sheafnn::FlowMethod::runge_kutta;
    o.fixed_steps = 3;
    o.learner_layers = 2;
    o.learner_width = 5;
    o.edge_features = 2;
    o.second_linear = true;
  });
  add("Euler, no weights", [](sheafnn::FlowOptions& o) {
    o.method = sheafnn::FlowMethod::euler;
    o.fixed_steps = 4;
    o.left_weights = o.right_weights = false;
  });
  if (!bayesian) return r;
  r[0].samples = r[2].samples = 2;
  r[2].kl_estimator = sheafnn::KlEstimator::monte_carlo;
  return r;
}
TEST_CASE("steps of networks of continuous time are those of one process") {
  check_steps<sheafnn::SheafFlow<Diagonal<2>, double>>(flow_settings(false));
  check_steps<sheafnn::BayesianSheafFlow<GeneralLinear<2>, double>>(flow_settings(true));
}

TEST_CASE("the comparison sees every rule that is broken") {
  using Model = Bsnn<GeneralLinear<2>, double>;
  Setting setting = settings<Model>().front();
  check_faults(Model(setting.model, 7), setting, test::faults);
  setting.model.add_lp = true;
  setting.model.filter.basis = sheafnn::PolynomialBasis::chebyshev;
  check_faults(Model(setting.model, 7), setting, test::filter_faults);
  const auto cooperative = cooperative_settings(true);
  const auto check_cooperative = [&](const auto& of, const auto& faults) {
    check_faults(sheafnn::Bcsnn<2, double>(of.model, 7), of, faults);
  };
  check_cooperative(cooperative[1], test::cooperative_faults);  // sage
  check_cooperative(cooperative[2], test::batch_norm_faults);
  check_cooperative(cooperative[3], test::directed_faults);
  using Flow = sheafnn::BayesianSheafFlow<GeneralLinear<2>, double>;
  check_faults(Flow(flow_settings(true)[1].model, 7), flow_settings(true)[1], test::flow_faults);
  using Layers = sheafnn::AnyBsnn<GeneralLinear<2>, double>;
  setting = settings<Model>().front();
  setting.model.layer = sheafnn::LayerForm::attention;
  setting.model.attention = {.heads = 2, .width = 2, .transported = true, .random = true};
  check_faults(Layers(setting.model, 7), setting, test::attention_faults);
  setting.model.layer = sheafnn::LayerForm::directed;
  setting.model.directed.random = true;
  check_faults(Layers(setting.model, 7), setting, test::faults);
}

TEST_CASE("partitions and what they cost") {
  const sheafnn::Dataset data = dataset();
  const sheafnn::Graph& graph = data.graph;
  for (const int parts : {1, 2, 5, 8}) {
    const mpi::Partition random = scattered_partition(graph.node_count(), parts);
    for (const mpi::Partition& partition :
         {mpi::contiguous_partition(graph, parts), mpi::metis_partition(graph, parts), random}) {
      const mpi::PartitionReport report = mpi::describe(graph, partition);
      Index cut = 0, nodes = 0, arcs = 0, sent = 0, received = 0;
      for (const sheafnn::Edge& edge : graph.edges()) {
        cut +=
            partition.owner[static_cast<std::size_t>(edge.u)] != partition.owner[static_cast<std::size_t>(edge.v)]
                ? 1
                : 0;
      }
      for (int p = 0; p < parts; ++p) {
        const mpi::LocalPart part = mpi::local_part(graph, partition, p);
        const mpi::PartitionReport::Part& figures = report.parts[static_cast<std::size_t>(p)];
        CHECK(figures.own == part.numbers.own);
        CHECK(figures.interior == part.numbers.interior);
        CHECK(figures.halo == part.graph.node_count() - part.numbers.own);
        CHECK(figures.neighbours == static_cast<Index>(part.neighbours.size()));
        for (const mpi::Neighbour& neighbour : part.neighbours) {
          sent += static_cast<Index>(neighbour.sent.size());
          received += neighbour.count;
        }
        nodes += figures.own;
        arcs += figures.arcs;
        for (Index u = 0; u < part.numbers.own;
             ++u) {  // an owned node has all of its arcs, in the same order of ends
          CHECK(part.graph.degree(u) == graph.degree(part.numbers.node[static_cast<std::size_t>(u)]));
        }
        for (Index arc = 0; arc < part.graph.arc_count(); ++arc) {
          const Index of = part.numbers.arc[arc];
          CHECK(graph.source(of) == part.numbers.node[static_cast<std::size_t>(part.graph.source(arc))]);
          CHECK(graph.target(of) == part.numbers.node[static_cast<std::size_t>(part.graph.target(arc))]);
          CHECK(graph.listed(of) == part.graph.listed(arc));
        }
      }
      CHECK(report.cut == cut);
      CHECK(nodes == graph.node_count());
      CHECK(arcs == graph.arc_count());
      CHECK(sent == report.halo());
      CHECK(received == report.halo());
      CHECK(report.imbalance() >= 1);
    }
    CHECK(mpi::describe(graph, mpi::metis_partition(graph, parts)).cut <= mpi::describe(graph, random).cut);
    CHECK(mpi::describe(graph, mpi::contiguous_partition(graph, parts)).imbalance() < 1.2);
  }
  CHECK_THROWS_WITH_AS(mpi::validate(mpi::Partition{2, {0, 0, 0}}, 3), doctest::Contains("part 1 without nodes"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(mpi::validate(mpi::Partition{2, {0, 2, 1}}, 3), doctest::Contains("partition.owner[1]: 2"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::contiguous_partition(graph, 91)), doctest::Contains("parts: 91"),
                       std::invalid_argument);
}

TEST_CASE("parts know degrees of the whole graph") {
  const sheafnn::Dataset data = dataset();
  const sheafnn::DirectedArcs arcs = sheafnn::listed_arcs(data.graph);
  const mpi::DistributedData part(ranks(), data, random_partition(data.node_count(), 4));
  const sheafnn::PartNumbers& numbers = part.numbers();
  bool known = true;
  for (std::size_t u = 0; u < numbers.node.size(); ++u) {
    known = known && numbers.degree[u] == data.graph.degree(numbers.node[u]) &&
            numbers.in_degree[u] == arcs.lists().in.degree(numbers.node[u]);
  }
  CHECK(everywhere(known));
}

TEST_CASE("masks of a part have the bits of the whole") {
  const sheafnn::layers::Dropout dropout{0.4, {3, sheafnn::Purpose::layer_dropout, 1, 2, 0}};
  const Index width = 13;
  sheafnn::layers::ElementRuns runs;
  std::vector<Index> elements;
  for (const Index u : {40, 41, 42, 3, 7, 90, 0, 1, 500, 499}) {
    runs.add(u * width, width);
    for (Index c = 0; c < width; ++c) elements.push_back(u * width + c);
  }
  REQUIRE(runs.count() == static_cast<Index>(elements.size()));
  const Index count = runs.count() + 5;
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(sheafnn::layers::Dropout::mask_size(count)), 0xff);
  for (const int threads : {1, 3}) {
    runs.fill_mask(threads, dropout, count, mask.data());
    for (Index i = 0; i < count; ++i) {
      const bool kept = (mask[static_cast<std::size_t>(i / 8)] >> (i % 8) & 1) != 0;
      const std::size_t k = static_cast<std::size_t>(i);
      CHECK(kept == (i < runs.count() && dropout.keeps(elements[k])));
    }
  }
}

TEST_CASE("ranks that do not agree in types are refused, by the name of what differs") {
  if (ranks().size() == 1) return;
  const auto n = static_cast<std::size_t>(dataset().node_count()),
             m = static_cast<std::size_t>(dataset().graph.edge_count());
  // Types 0, 1, 0, 1, …, of which the other ranks have one changed or renamed.
  const auto typed = [&](const std::vector<std::string>& edges, const std::vector<std::string>& nodes,
                         std::size_t edge, std::size_t node) {
    sheafnn::Dataset data = dataset();
    std::vector<std::int32_t> of_edges(m), of_nodes(n);
    for (std::size_t e = 0; e < m; ++e) of_edges[e] = static_cast<std::int32_t>((e + (e == edge ? 1 : 0)) % 2);
    for (std::size_t u = 0; u < n; ++u) of_nodes[u] = static_cast<std::int32_t>((u + (u == node ? 1 : 0)) % 2);
    data.graph.set_edge_types(of_edges, 2);
    data.graph.set_node_types(of_nodes, 2);
    data.edge_type_names = edges;
    data.node_type_names = nodes;
    return data;
  };
  const std::vector<std::string> edges = {"cites", "writes"}, nodes = {"author", "paper"};
  const sheafnn::Dataset first = typed(edges, nodes, m, n);
  mpi::require_agreement(ranks(), first);
  const auto check = [&](const sheafnn::Dataset& other, const std::string& message) {
    CHECK_THROWS_WITH_AS(mpi::require_agreement(ranks(), ranks().is_root() ? first : other),
                         doctest::Contains(message.c_str()), std::runtime_error);
  };
  check(typed({"cites", "reads"}, nodes, m, n),
        "on rank 1 edge types is cites,reads, on rank 0 it is cites,writes");
  check(typed(edges, nodes, 0, n), "on rank 1 fingerprint of the edge types is ");
  check(typed(edges, {"author", "venue"}, m, n),
        "on rank 1 node types is author,venue, on rank 0 it is author,paper");
  check(typed(edges, nodes, m, 3), "on rank 1 fingerprint of the node types is ");
  check(dataset(), "on rank 1 edge types is , on rank 0 it is cites,writes");

  // Options of types, before a training begins.
  const sheafnn::Dataset data = dataset();
  mpi::DistributedData part(ranks(), data, mpi::metis_partition(ranks(), data.graph));
  sheafnn::ModelOptions architecture = {.features = 20, .channels = 3, .layers = 2, .classes = 3};
  architecture.edge_types = edges;
  architecture.edge_stalks = {2, ranks().is_root() ? 2 : 1};
  Nsd<Diagonal<2>, double> model(architecture, 2);
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::train(model, part, data.splits[0], {.epochs = 1})),
                       doctest::Contains("on rank 1 edge_stalks is 2,1, on rank 0 it is 2,2"), std::runtime_error);
}

TEST_CASE("a training of Bayesian networks is that of one process") {
  check_training<Bsnn<SpecialOrthogonal<3>, double>>({.features = 20, .channels = 3, .layers = 2, .classes = 3});
}
TEST_CASE("a training of deterministic networks is that of one process") {
  check_training<Nsd<Diagonal<2>, double>>({.features = 20, .channels = 3, .layers = 2, .classes = 3});
}
TEST_CASE("a training with types of edges and nodes is that of one process") {
  const sheafnn::ModelOptions plain = {.features = 20, .channels = 3, .layers = 2, .classes = 3};
  check_training<Nsd<GeneralLinear<2>, double>>(with_types(plain), add_types);
  check_training<Bsnn<Diagonal<2>, double>>(with_types(plain), add_types);
  sheafnn::ModelOptions filters = with_types(plain);
  filters.add_lp = filters.add_hp = filters.linear = true;
  filters.edge_features = 2;
  filters.filter.basis = sheafnn::PolynomialBasis::chebyshev;
  check_training<Nsd<Diagonal<2>, double>>(filters, add_types);
}
TEST_CASE("a training with a polynomial filter is that of one process") {
  sheafnn::ModelOptions architecture = {.features = 20, .channels = 5, .layers = 2, .classes = 3};
  architecture.add_lp = true;
  architecture.filter.basis = sheafnn::PolynomialBasis::chebyshev;
  check_training<Nsd<Diagonal<2>, double>>(architecture);
  architecture.linear = true;
  check_training<Bsnn<SpecialOrthogonal<3>, double>>(architecture);
}

TEST_CASE("a training of a deep network is that of one process") {
  sheafnn::ModelOptions architecture = {.features = 20, .channels = 5, .layers = 6, .classes = 3};
  architecture.residual = {.form = sheafnn::ResidualForm::initial, .alpha = 0.2, .theta = 1};
  check_training<Nsd<Diagonal<2>, double>>(architecture);
}

TEST_CASE("a training of other layers is the training of one process") {
  sheafnn::ModelOptions architecture = {.features = 20, .channels = 3, .layers = 2, .classes = 3};
  architecture.layer = sheafnn::LayerForm::attention;
  architecture.attention = {.heads = 2, .width = 3};
  check_training<sheafnn::AnyNsd<SpecialOrthogonal<3>, double>>(architecture);
  architecture.attention = {.heads = 2, .width = 3, .transported = true, .random = true};
  check_training<sheafnn::AnyNsd<SpecialOrthogonal<3>, double>>(architecture);
  architecture.layer = sheafnn::LayerForm::directed;
  check_training<sheafnn::AnyNsd<SpecialOrthogonal<3>, double>>(architecture);
}

TEST_CASE("a training with a layer of one's own is that of one process") {
  check_training<own_layers::Reactions<Diagonal<2>>>({.features = 20, .channels = 5, .layers = 2, .classes = 3});
}

TEST_CASE("a training that stops on a metric of classes is that of one process") {
  using Model = Nsd<Diagonal<2>, double>;
  const sheafnn::ModelOptions architecture = {.features = 20, .channels = 3, .layers = 2, .classes = 3};
  sheafnn::Dataset data = dataset();
  sheafnn::Split& split = data.splits[0];
  mpi::DistributedData part(ranks(), data, random_partition(data.node_count(), 3));
  sheafnn::TrainOptions options{.epochs = 6, .patience = 2, .learning_rate = 0.05, .seed = 4};
  for (const sheafnn::StopOn metric : {sheafnn::StopOn::roc_auc, sheafnn::StopOn::average_precision,
                                       sheafnn::StopOn::macro_f1, sheafnn::StopOn::brier}) {
    CAPTURE(sheafnn::to_string(metric));
    options.stop_on = metric;
    Model one(architecture, 2), model(architecture, 2);
    const sheafnn::TrainResult expected = sheafnn::train(one, data, split, options),
                               result = mpi::train(model, part, split, options);
    CHECK(everywhere(result.best_epoch == expected.best_epoch));
    REQUIRE(result.history.size() == expected.history.size());
    for (std::size_t t = 0; t < result.history.size(); ++t) {
      const double apart =
          std::max(std::abs(result.history[t].validation_metric - expected.history[t].validation_metric),
                   std::abs(result.history[t].test_metric - expected.history[t].test_metric));
      CHECK(everywhere(apart < 1e-9));
    }
  }
  // Nodes of one class cannot be ranked; all ranks say so, ranks without validation nodes as well.
  const auto other = [&](std::int32_t u) { return data.labels[static_cast<std::size_t>(u)] != 1; };
  split.validation.erase(std::remove_if(split.validation.begin(), split.validation.end(), other),
                         split.validation.end());
  REQUIRE(!split.validation.empty());
  options.stop_on = sheafnn::StopOn::roc_auc;
  Model model(architecture, 2);
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::train(model, part, split, options)),
                       doctest::Contains(
                           "stop_on: roc-auc is not allowed; the validation nodes are all of one class"),
                       std::invalid_argument);
}

TEST_CASE("parts of a graph refuse layers in 16 bits") {
  sheafnn::Dataset data = dataset();
  mpi::DistributedData part(ranks(), data, random_partition(data.node_count(), 3));
  sheafnn::AnyNsd<SpecialOrthogonal<3>, double> model({.features = 20, .channels = 3, .classes = 3}, 2);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(mpi::train(model, part, data.splits[0], {.epochs = 3, .compress_layers = true})),
      "compress_layers: true is not allowed; parts of a graph keep layers as they are computed",
      std::invalid_argument);
}

TEST_CASE("a training on several ranks that computes layers again has the same bits") {
  sheafnn::Dataset data = dataset();
  mpi::DistributedData part(ranks(), data, random_partition(data.node_count(), 3));
  const auto check = [&]<class Model>(const std::function<void(sheafnn::ModelOptions&)>& change) {
    sheafnn::ModelOptions architecture{.features = 20, .channels = 3, .layers = 5, .classes = 3};
    change(architecture);
    const auto trained = [&](Index recompute) {
      Model model(architecture, 2);
      static_cast<void>(
          mpi::train(model, part, data.splits[0], {.epochs = 3, .recompute_layers = recompute, .seed = 4}));
      const auto values = model.parameters().values().view();
      return std::vector<double>(values.begin(), values.end());
    };
    CHECK(everywhere(trained(2) == trained(0)));
  };
  using Bayesian = sheafnn::AnyBsnn<GeneralLinear<2>, double>;
  using Deterministic = sheafnn::AnyNsd<SpecialOrthogonal<3>, double>;
  check.operator()<Bayesian>([](sheafnn::ModelOptions&) {});
  check.operator()<Deterministic>([](sheafnn::ModelOptions&) {});
  check.operator()<Deterministic>(
      [](sheafnn::ModelOptions& of) { of.residual.form = sheafnn::ResidualForm::initial; });
  check.operator()<Deterministic>(
      [](sheafnn::ModelOptions& of) { of.filter = {.basis = sheafnn::PolynomialBasis::legendre, .degree = 4}; });
  for (const sheafnn::LayerForm form : {sheafnn::LayerForm::wave, sheafnn::LayerForm::attention,
                                        sheafnn::LayerForm::copresheaf, sheafnn::LayerForm::directed}) {
    CAPTURE(to_string(form));
    check.operator()<Deterministic>([&](sheafnn::ModelOptions& of) {
      of.layer = form;
      of.attention.normalised = of.attention.transported = true;
    });
  }
}

TEST_CASE("a training of cooperative networks is that of one process") {
  sheafnn::CooperativeOptions architecture = {.features = 20, .channels = 3, .layers = 2, .classes = 3};
  architecture.learner = sheafnn::NodeLearnerKind::sage_projected;
  architecture.learner_layers = 2;
  architecture.learner_width = 5;
  check_training<sheafnn::Csnn<2, double>>(architecture);
  architecture.learner = sheafnn::NodeLearnerKind::sage;
  architecture.norm = sheafnn::FeatureNorm::batch;
  architecture.directed = true;
  check_training<sheafnn::Bcsnn<2, double>>(architecture);
}

TEST_CASE("a training of networks of continuous time is that of one process") {
  sheafnn::FlowOptions architecture = {.features = 20, .channels = 3, .classes = 3};
  architecture.method = sheafnn::FlowMethod::runge_kutta;
  architecture.fixed_steps = 2;
  check_training<sheafnn::BayesianSheafFlow<GeneralLinear<2>, double>>(architecture);
  architecture.method = sheafnn::FlowMethod::euler;
  check_training<sheafnn::SheafFlow<Diagonal<2>, double>>(architecture);
}

TEST_CASE("a flow whose steps are chosen sends what its steps say") {
  using Model = sheafnn::SheafFlow<Diagonal<2>, double>;
  const sheafnn::Dataset data = dataset();
  const mpi::Partition partition = mpi::metis_partition(ranks(), data.graph);
  mpi::DistributedData part(ranks(), data, partition);
  sheafnn::FlowOptions options = flow_settings(false)[1].model;
  const Model model(options, 7);
  sheafnn::Network<Model> network(model, part.graph(), part.features());
  mpi::Traffic before = ranks().traffic();
  static_cast<void>(network.forward({.seed = 5, .training = true}));
  std::fill_n(network.output_bar().data(), part.numbers().own * model.options().classes, 0.5);
  network.backward(network.output_bar());
  const mpi::Traffic sent = ranks().traffic() - before;
  const Index accepted = static_cast<Index>(network.flow().steps().size()),
              rejected = network.flow().rejected_steps();
  CHECK(rejected > 0);
  CHECK(everywhere(sent.sums == 1 + accepted + rejected));
  const std::vector<double> steps = network.flow().steps();
  std::vector<double> of_root = steps;
  ranks().broadcast(std::span<double>(of_root));
  CHECK(everywhere(steps == of_root));
  const Index flow = mpi::flow_exchanges(options.method, accepted, rejected, true);
  const mpi::RowVolume volume{flow + 2,
                              flow * model.hidden_width() + 2 * model.layout().learner.projection_width()};
  const mpi::Traffic formula = volume.of(mpi::describe(data.graph, partition), sizeof(double));
  std::int64_t messages = 0, bytes = 0;
  for (const std::int64_t count : ranks().all(sent.messages)) messages += count;
  for (const std::int64_t count : ranks().all(sent.bytes)) bytes += count;
  CHECK(messages == formula.messages);
  CHECK(bytes == formula.bytes);
  // A training that chooses its steps equals the training of one process, too.
  const sheafnn::TrainOptions training{.epochs = 4, .learning_rate = 0.02, .seed = 4};
  Model one(options, 7), on_ranks(options, 7);
  const sheafnn::TrainResult expected = sheafnn::train(one, data, data.splits[0], training),
                             result = mpi::train(on_ranks, part, data.splits[0], training);
  for (std::size_t t = 0; t < 4; ++t)
    CHECK(everywhere(std::abs(result.history[t].loss - expected.history[t].loss) < 1e-8));
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::training_volume(model, 1, {})),
                       doctest::Contains("method: dormand-prince is not allowed"), std::invalid_argument);
}

/// A folder's dataset, read as a whole.
sheafnn::Dataset whole_folder(const std::filesystem::path& folder) {
  mpi::NpyFile indptr(folder / "indptr.npy"), indices(folder / "indices.npy"), features(folder / "features.npy"),
      labels(folder / "labels.npy");
  const Index n = indptr.rows() - 1;
  const auto offsets = indptr.read<std::int64_t>(0, n + 1),
             targets = indices.read<std::int64_t>(0, indices.rows());
  std::vector<sheafnn::Edge> pairs;
  for (Index u = 0; u < n; ++u) {
    for (Index k = offsets[static_cast<std::size_t>(u)]; k < offsets[static_cast<std::size_t>(u + 1)]; ++k) {
      pairs.push_back(
          {static_cast<std::int32_t>(u), static_cast<std::int32_t>(targets[static_cast<std::size_t>(k)])});
    }
  }
  sheafnn::Dataset r;
  r.graph = sheafnn::Graph(n, pairs);
  CHECK(r.graph.arc_count() == indices.rows());
  const std::vector<double> dense = features.read<double>(0, n);
  r.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(dense), n, features.columns());
  const auto classes = labels.read<std::int64_t>(0, n);
  r.labels.assign(classes.begin(), classes.end());
  r.class_count = 1 + *std::max_element(r.labels.begin(), r.labels.end());
  r.splits.resize(1);
  std::vector<std::int32_t>* const sets[] = {&r.splits[0].train, &r.splits[0].validation, &r.splits[0].test};
  const char* names[] = {"train_mask.npy", "val_mask.npy", "test_mask.npy"};
  for (int k = 0; k < 3; ++k) {
    const auto mask = mpi::NpyFile(folder / names[k]).read<std::int64_t>(0, n);
    for (Index u = 0; u < n; ++u) {
      if (mask[static_cast<std::size_t>(u)] != 0) sets[k]->push_back(static_cast<std::int32_t>(u));
    }
  }
  return r;
}

TEST_CASE("a folder that every rank reads its own rows of") {
  // The same folder on all ranks.
  std::string name =
      std::filesystem::temp_directory_path() / sheafnn::detail::concat("sheafnn_folder_", std::random_device{}());
  ranks().broadcast(name);
  const std::filesystem::path folder = name;
  const mpi::FolderOptions size{
      .nodes = 101, .reach = 5, .density = 0.7, .features = 6, .classes = 3, .range = 7, .seed = 2};
  mpi::write_synthetic_folder(ranks(), folder, size);
  const sheafnn::Dataset data = whole_folder(folder);
  sheafnn::validate(data);
  const double edges = 101 * 5 * 0.7;
  CHECK(std::abs(static_cast<double>(data.graph.edge_count()) - edges) < 5 * std::sqrt(edges * 0.3));

  using Model = Nsd<Diagonal<2>, double>;
  const sheafnn::ModelOptions architecture = {.features = 6, .channels = 3, .layers = 2, .classes = 3};
  const sheafnn::TrainOptions options{.epochs = 4, .learning_rate = 0.02};
  Model one(architecture, 2), model(architecture, 2);
  const sheafnn::TrainResult expected = sheafnn::train(one, data, data.splits[0], options);
  mpi::FolderPiece read = mpi::read_folder(ranks(), folder);
  mpi::DistributedData part(ranks(), std::move(read.piece));
  CHECK(part.class_count() == data.class_count);
  bool both_ways = true;
  for (Index arc = 0; arc < part.graph().arc_count(); ++arc) both_ways = both_ways && part.graph().listed(arc);
  CHECK(everywhere(both_ways));
  const sheafnn::TrainResult result = mpi::train_owned(model, part, read.own, options);
  for (std::size_t t = 0; t < 4; ++t) {
    CHECK(everywhere(std::abs(result.history[t].loss - expected.history[t].loss) < 1e-8));
    CHECK(everywhere(std::abs(result.history[t].validation_loss - expected.history[t].validation_loss) < 1e-8));
  }
  CHECK(everywhere(std::abs(result.test_nll - expected.test_nll) < 1e-8));
  // Rows are read, and none of them twice.
  Index own = 0;
  for (const std::int64_t count : ranks().all(static_cast<std::int64_t>(part.numbers().own))) own += count;
  CHECK(own == 101);

  // The folder sorted by the parts of METIS: the same training but for random numbers, of which there are none here.
  const int parts = 2 * ranks().size();
  const mpi::FolderPartition made = mpi::partition_folder(ranks(), folder, folder / "sorted", parts, 8);
  const mpi::Partition metis = mpi::metis_partition(data.graph, parts);
  CHECK(made.cut == mpi::describe(data.graph, metis).cut);
  mpi::FolderPiece sorted = mpi::read_folder(ranks(), folder / "sorted");
  CHECK(everywhere(sorted.by_parts));
  mpi::DistributedData sorted_part(ranks(), std::move(sorted.piece));
  bool moved = true;
  for (Index u = 0; u < sorted_part.numbers().own; ++u) {
    const std::size_t i = static_cast<std::size_t>(u), before = static_cast<std::size_t>(sorted.original[i]);
    moved = moved && metis.owner[before] / 2 == ranks().rank() && sorted_part.labels()[i] == data.labels[before] &&
            sorted_part.graph().degree(u) == data.graph.degree(sorted.original[i]);
  }
  CHECK(everywhere(moved));
  Model renumbered(architecture, 2);
  sheafnn::TrainOptions certain = options;
  certain.dropout = certain.input_dropout = 0;
  Model plain(architecture, 2);
  const sheafnn::TrainResult of_whole = sheafnn::train(plain, data, data.splits[0], certain),
                             of_sorted = mpi::train_owned(renumbered, sorted_part, sorted.own, certain);
  for (std::size_t t = 0; t < 4; ++t) {
    CHECK(everywhere(std::abs(of_sorted.history[t].loss - of_whole.history[t].loss) < 1e-8));
    CHECK(everywhere(std::abs(of_sorted.history[t].validation_loss - of_whole.history[t].validation_loss) < 1e-8));
  }
  // Sorted twice, it still knows the first numbers; another number of ranks than parts has ranges of equal work.
  static_cast<void>(
      mpi::partition_folder(ranks(), folder / "sorted", folder / "twice", 2 * ranks().size() + 1, 8));
  const mpi::FolderPiece twice = mpi::read_folder(ranks(), folder / "twice");
  CHECK(everywhere(twice.by_parts == (ranks().size() == 1)));
  moved = true;
  for (std::size_t i = 0; i < twice.original.size(); ++i)
    moved = moved && twice.piece.labels[i] == data.labels[static_cast<std::size_t>(twice.original[i])];
  CHECK(everywhere(moved));
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::partition_folder(ranks(), folder, folder, parts)),
                       doctest::Contains("must be another folder"), std::invalid_argument);

  // The same graph from its edges, in any order, both directions, some twice.
  if (ranks().is_root()) {
    std::ofstream file(folder / "edges.txt");
    for (Index e = data.graph.edge_count() - 1; e >= 0; --e) {
      const sheafnn::Edge edge = data.graph.edge(e);
      file << edge.v << ' ' << edge.u << '\n';
      if (e % 3 == 0) file << edge.u << ' ' << edge.v << '\n' << edge.u << ' ' << edge.u << '\n';
    }
  }
  mpi::convert_edges(ranks(), folder / "edges.txt", folder / "converted", 101, 9);
  for (const char* file : {"indptr.npy", "indices.npy"}) {
    mpi::NpyFile a(folder / file), b(folder / "converted" / file);
    REQUIRE(a.rows() == b.rows());
    CHECK(a.read<std::int64_t>(0, a.rows()) == b.read<std::int64_t>(0, b.rows()));
  }

  // An arc without its reverse, and other rows that are not in order.
  static_cast<void>(ranks().all<std::int32_t>(0));

  const auto write = [&](std::int64_t target) {
    if (ranks().is_root())
      mpi::write_node_numbers(folder / "indices.npy", 0, std::span<const std::int64_t>(&target, 1));
    static_cast<void>(ranks().all<std::int32_t>(0));
  };
  if (ranks().size() == 1) {
    write(0);
    CHECK_THROWS_WITH_AS(static_cast<void>(mpi::read_folder(ranks(), folder)),
                         doctest::Contains("node 0 has a self-loop"), std::runtime_error);
    write(101);
    CHECK_THROWS_WITH_AS(static_cast<void>(mpi::read_folder(ranks(), folder)),
                         doctest::Contains("has a neighbour 101; there are 101 nodes"), std::runtime_error);
  }
  static_cast<void>(ranks().all<std::int32_t>(0));
  if (ranks().is_root()) std::filesystem::remove_all(folder);
}

TEST_CASE("sums do not depend on how they are cut into messages") {
  for (const std::size_t count : {1U, 5U, 64U}) {
    std::vector<double> values;
    std::vector<float> floats(3, static_cast<float>(ranks().rank() + 1));
    double more[] = {std::ldexp(1.0, 60 * (ranks().rank() % 2)), 0.1};
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(tiny::number(static_cast<std::uint64_t>(ranks().rank()), static_cast<Index>(i)));
    std::vector<double> expected(count);
    double first = 0, second = 0;
    for (int rank = 0; rank < ranks().size(); ++rank) {
      for (std::size_t i = 0; i < count; ++i)
        expected[i] += tiny::number(static_cast<std::uint64_t>(rank), static_cast<Index>(i));
      first += std::ldexp(1.0, 60 * (rank % 2));
      second += 0.1;
    }
    ranks().sum(std::span<double>(values), more);
    CHECK(everywhere(values == expected && more[0] == first && more[1] == second));
    ranks().sum(std::span<float>(floats));
    CHECK(everywhere(floats[2] == static_cast<float>(ranks().size() * (ranks().size() + 1) / 2)));
  }
}

TEST_CASE("training in clusters") {
  if (!ranks().is_root()) return;  // on one machine
  using Model = Bsnn<SpecialOrthogonal<3>, double>;
  sheafnn::Dataset data = dataset();
  const sheafnn::Split& split = data.splits[0];
  sheafnn::ModelOptions architecture = {.features = 20, .channels = 3, .layers = 2, .classes = 3};
  architecture.edge_features = 2;
  sheafnn::TrainOptions options{.epochs = 5, .learning_rate = 0.02, .seed = 4};
  const mpi::Partition parts = mpi::metis_partition(data.graph, 6);
  // All parts in one step: the training of the whole graph, to the bit.
  Model one(architecture, 2), all(architecture, 2);
  const sheafnn::TrainResult expected = sheafnn::train(one, data, split, options);
  const sheafnn::TrainResult got = mpi::train_in_clusters(all, data, parts, 6, split, options);
  REQUIRE(got.history.size() == expected.history.size());
  for (std::size_t t = 0; t < got.history.size(); ++t) {
    CHECK(got.history[t].loss == expected.history[t].loss);
    CHECK(got.history[t].validation_loss == expected.history[t].validation_loss);
  }
  CHECK(got.test_nll == expected.test_nll);
  CHECK(std::equal(all.parameters().values().begin(), all.parameters().values().end(),
                   one.parameters().values().begin()));
  using Directed = sheafnn::Csnn<2, double>;
  const sheafnn::CooperativeOptions of_arcs = {
      .features = 20, .channels = 3, .layers = 2, .classes = 3, .directed = true};
  Directed whole(of_arcs, 2), clustered(of_arcs, 2);
  CHECK(sheafnn::train(whole, data, split, options).history.back().loss ==
        mpi::train_in_clusters(clustered, data, parts, 6, split, options).history.back().loss);
  // Every part is seen once in an epoch, in another order in each.
  std::set<std::vector<std::vector<bool>>> orders;
  for (Index epoch = 0; epoch < 8; ++epoch) {
    std::vector<int> seen(6);
    const auto batches = mpi::detail::batches(6, 4, 7, epoch, true);
    CHECK(batches.size() == 2);
    for (const auto& batch : batches) {
      for (std::size_t p = 0; p < 6; ++p) seen[p] += batch[p] ? 1 : 0;
    }
    CHECK(seen == std::vector<int>(6, 1));
    orders.insert(batches);
  }
  CHECK(orders.size() > 1);
  // A few parts in a step: as many steps more; it learns.
  options.epochs = 25;
  Model few(architecture, 2);
  const sheafnn::TrainResult result = mpi::train_in_clusters(few, data, parts, 2, split, options);
  CHECK(result.history.back().nll < 0.8 * result.history.front().nll);
  CHECK(result.validation_accuracy > 0.5);
  // The last epoch ends a training, also where patience would.
  sheafnn::TrainOptions impatient{.epochs = 200, .patience = 1, .learning_rate = 0.05};
  Model until(architecture, 2), last(architecture, 2);
  impatient.epochs = static_cast<Index>(sheafnn::train(until, data, split, impatient).history.size());
  REQUIRE(impatient.epochs < 200);
  CHECK(mpi::train_in_clusters(last, data, parts, 6, split, impatient).stop_reason == sheafnn::StopReason::epochs);
  // The second step of the first epoch comes after the first.
  const sheafnn::TrainOptions too_fast{.epochs = 1, .learning_rate = 1e200};
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::train_in_clusters(few, data, parts, 1, split, too_fast)),
                       doctest::Contains("a smaller learning rate may help"), std::runtime_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi::train_in_clusters(few, data, parts, 7, split, options)),
                       doctest::Contains("parts_per_step: 7 is not allowed; must be between 1 and 6"),
                       std::invalid_argument);
}

TEST_CASE("owned nodes that make no split are refused") {
  const sheafnn::Dataset data = dataset();
  mpi::DistributedData part(ranks(), data, mpi::contiguous_partition(data.graph, ranks().size()));
  using Model = Nsd<Diagonal<2>, double>;
  Model model({.features = 20, .channels = 3, .layers = 2, .classes = 3}, 2);
  sheafnn::Split split;
  for (std::int32_t u = 0; u < part.numbers().own; ++u) {
    const bool known = part.labels()[static_cast<std::size_t>(u)] >= 0;
    (known ? split.train : split.validation).push_back(u);
  }
  const auto refused = [&](const char* message) {
    CHECK_THROWS_WITH_AS(static_cast<void>(mpi::train_owned(model, part, split, {.epochs = 2})),
                         doctest::Contains(message), std::invalid_argument);
  };
  refused("split.validation: 13 nodes is not allowed; none of them has a known target");
  split.validation = split.train;  // what is wrong on all ranks, all find
  refused("is not allowed; a node may appear only once in the sets of a split");
  std::reverse(split.train.begin(), split.train.end());
  split.validation.clear();
  refused("split.train: an unsorted set is not allowed; node numbers must increase");
  split.train = {static_cast<std::int32_t>(part.numbers().own)};  // in the halo, or no node
  refused("split.train: ");
}

/// The first layer is a polynomial filter, the others are diffusion layers.
template <class Family, class S>
using FirstFilter = sheafnn::LayerWhere<sheafnn::layers::PolynomialDiffusionLayer<Family, S>,
                                        [](const sheafnn::layers::LayerSetting& of) { return of.number == 0; }>;
template <class Family, class S>
using OtherDiffusion = sheafnn::LayerWhere<sheafnn::layers::DiffusionLayer<Family, S>,
                                           [](const sheafnn::layers::LayerSetting& of) { return of.number != 0; }>;

TEST_CASE("layers with other derivatives of edges between parts are refused beside each other") {
  const sheafnn::Dataset data = dataset();
  mpi::DistributedData part(ranks(), data, mpi::contiguous_partition(data.graph, ranks().size()));
  using Family = sheafnn::Identity<2>;
  using Model = sheafnn::SheafModel<Family, sheafnn::PointMass<Family>, double,
                                    sheafnn::LayerKinds<FirstFilter, OtherDiffusion>>;
  const Model model({.features = 20,
                     .channels = 3,
                     .layers = 3,
                     .classes = 3,
                     .filter = {.basis = sheafnn::PolynomialBasis::chebyshev, .degree = 2}},
                    1);
  const auto stack = [&](const sheafnn::Graph& graph) {
    const sheafnn::layers::DiffusionShape<double> shape(graph, 2, false, false, 3);
    static_cast<void>(sheafnn::detail::LayerStack<Family, double>(model, graph, shape));
  };
  stack(data.graph);
  CHECK_THROWS_WITH_AS(stack(part.graph()),
                       doctest::Contains(
                           "layer: 2 is not allowed; on parts of a graph it cannot stand beside layers "
                           "with attention or a filter"),
                       std::invalid_argument);
}

TEST_CASE("a network on arcs of its own is refused on a part of a graph") {
  const sheafnn::Dataset data = dataset();
  mpi::DistributedData part(ranks(), data, mpi::contiguous_partition(data.graph, ranks().size()));
  using Model = sheafnn::Csnn<2, double>;
  const Model model({.features = 20, .channels = 3, .layers = 2, .classes = 3}, 1);
  const sheafnn::DirectedArcs arcs = sheafnn::listed_arcs(part.graph());
  CHECK_THROWS_WITH_AS(sheafnn::Network<Model>(model, part.graph(), arcs, part.features()),
                       doctest::Contains(
                           "graph: a part of a larger one is not allowed; given arcs need a whole graph"),
                       std::invalid_argument);
}

}  // namespace test_distributed

int main(int argc, char** argv) {
  return sheafnn::distributed::run(argc, argv, [&] {
    doctest::Context context(argc, argv);
    std::ostringstream output;
    const bool root = test_distributed::ranks().is_root();
    if (!root) context.setCout(&output);
    const int status = context.run();
    if (!root && status != 0) std::printf("rank %d:\n%s", test_distributed::ranks().rank(), output.str().c_str());
    return status;
  });
}
