/// \file
/// Types of edges and nodes: a sheaf learner with weights for each type, and stalks with dimensions of their own.
#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model_gradient.hpp"
#include "refusal.hpp"
#include "sheafnn/io/option_text.hpp"
#include "sheafnn/layers/typed_learner.hpp"
#include "tiny_task.hpp"

namespace types {
namespace {

using model_gradient::Setting;
using sheafnn::Index;
using S = double;

/// The tiny task whose edges have the types 0, 1, 2, 0, …; and node types.
tiny::Task typed_task() {
  tiny::Task task;
  std::vector<std::int32_t> types;
  for (Index e = 0; e < task.graph.edge_count(); ++e) types.push_back(static_cast<std::int32_t>(e * e % 3));
  task.graph.set_edge_types(types, 3);
  const std::vector<std::int32_t> nodes = {0, 1, 2, 1, 0, 2, 1};
  task.graph.set_node_types(nodes, 3);
  return task;
}

const std::vector<std::string> three = {"cites", "writes", "reads"};
/// Of nodes of the tiny task: 1, 3, 2, 3, …; of edges 3, 2, 1.
void set_stalks(sheafnn::ModelOptions& options) {
  options.edge_types = three;
  options.edge_stalks = {3, 2, 1};
  options.node_types = {"author", "paper", "venue"};
  options.stalks = {1, 3, 2};
}

template <int D>
using Dense = sheafnn::Nsd<sheafnn::GeneralLinear<D>, double>;
template <int D>
using Random = sheafnn::Bsnn<sheafnn::Diagonal<D>, double>;

}  // namespace

TEST_CASE("every edge has the outputs and the gradients of the learner of its type") {
  const tiny::Task task = typed_task();
  const sheafnn::layers::EdgeBlocks<S> blocks(task.graph);
  for (const Index hidden : {0, 2}) {
    CAPTURE(hidden);
    sheafnn::layers::SheafLearnerOptions shape;
    shape.inputs = 4;
    shape.mean = 3;
    shape.spread = 2;
    shape.hidden_layers = hidden;
    shape.width = hidden > 0 ? 5 : 0;
    shape.edge_weights = true;
    shape.edge_features = tiny::Task::arc_features;
    sheafnn::layers::SheafLearnerOptions typed = shape;
    typed.types = 3;
    sheafnn::layers::ParameterSet<S> parameters;
    sheafnn::layers::SheafLearnerWeights<sheafnn::layers::ParameterSlot> slots;
    sheafnn::layers::ParameterList<sheafnn::layers::ParameterSlot> list(parameters);
    slots.declare(list, typed, 1);
    CHECK(parameters.info().front().name ==
          (hidden > 0 ? "sheaf.1.type0.hidden.0.weight" : "sheaf.1.type0.weight"));
    CHECK(parameters.info().back().name == "edge.1.type2.weight");
    parameters.initialise(3);
    sheafnn::layers::SheafLearnerWeights<const S> weights;
    sheafnn::layers::ParameterList<const S> views(parameters, parameters.values().data());
    weights.declare(views, typed, 1);

    const Index n = task.graph.node_count(), outputs = shape.outputs();
    std::vector<S> z;
    for (Index i = 0; i < n * shape.inputs; ++i) z.push_back(tiny::number(5, i));
    const sheafnn::MatrixView<const S> zs(z.data(), n, shape.inputs);
    constexpr int W = sheafnn::lanes<S>;
    sheafnn::Buffer<S> bars;
    const auto set_bars = [&](auto& learner, const auto& weight) {  // of the edges of these types, 0 of the others
      bars.resize(blocks.block_count() * W);
      for (Index e = 0; e < task.graph.edge_count(); ++e) {
        const S factor = weight(task.graph.edge_types()[static_cast<std::size_t>(e)]);
        bars[e] = factor * tiny::number(7, e);
        for (int side = 0; side < 2; ++side) {
          for (Index k = 0; k < outputs; ++k) {
            learner.raw_bar(e / W, side)[k * W + e % W] = factor * tiny::number(6, (e * 2 + side) * outputs + k);
          }
        }
      }
      learner.set_edge_weights_bar(bars);
    };
    sheafnn::layers::TypedLearner<S> learner(task.graph, blocks, typed);
    sheafnn::Buffer<S> gradient(parameters.size()), expected(parameters.size()), z_bar(n * shape.inputs),
        z_expected(n * shape.inputs);
    const auto bar_of = [&](sheafnn::Buffer<S>& array) {
      sheafnn::layers::SheafLearnerWeights<S> r;
      sheafnn::layers::ParameterList<S> bars(parameters, array.data());
      r.declare(bars, typed, 1);
      return r;
    };
    learner.forward(sheafnn::Execution(2), weights, zs);
    set_bars(learner, [](std::int32_t) { return S(1); });
    learner.backward(sheafnn::Execution(2), weights, zs, bar_of(gradient), {z_bar.data(), n, shape.inputs}, false);
    for (std::int32_t t = 0; t < 3; ++t) {
      sheafnn::layers::SheafLearner<S> one(task.graph, blocks, shape);
      one.forward({}, weights.of_type(static_cast<std::size_t>(t)), zs);
      for (Index e = 0; e < task.graph.edge_count(); ++e) {
        if (task.graph.edge_types()[static_cast<std::size_t>(e)] != t) continue;
        CHECK(learner.edge_weights()[e] == one.edge_weights()[e]);
        for (int side = 0; side < 2; ++side) {
          for (Index k = 0; k < outputs; ++k) {
            CHECK(learner.raw(e / W, side)[k * W + e % W] == one.raw(e / W, side)[k * W + e % W]);
          }
        }
      }
      set_bars(one, [&](std::int32_t type) { return type == t ? S(1) : S(0); });
      one.backward({}, weights.of_type(static_cast<std::size_t>(t)), zs,
                   bar_of(expected).of_type(static_cast<std::size_t>(t)), {z_expected.data(), n, shape.inputs},
                   true);
    }
    for (Index i = 0; i < gradient.size(); ++i) CHECK(gradient[i] == doctest::Approx(expected[i]).epsilon(1e-12));
    for (Index i = 0; i < z_bar.size(); ++i) CHECK(z_bar[i] == doctest::Approx(z_expected[i]).epsilon(1e-12));
  }
}

TEST_CASE_TEMPLATE("gradients with edge types, along every coordinate", Model,
                   sheafnn::Nsd<sheafnn::GeneralLinear<2>, double>,
                   sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>, double>) {
  const tiny::Task task = typed_task();
  Setting setting;
  setting.model.edge_types = three;
  setting.name = "plain";
  model_gradient::check_setting<Model>(setting, task, task.graph, 2);
  setting.name = "hidden layers, features of arcs and dropout";
  setting.model.learner_layers = 1;
  setting.model.learner_width = 3;
  setting.model.edge_features = tiny::Task::arc_features;
  setting.dropout = 0.3;
  model_gradient::check_setting<Model>(setting, task, task.graph, 3);
}

TEST_CASE("one type, and equal weights of all types, give the network without types to the bit") {
  using Model = sheafnn::Nsd<sheafnn::GeneralLinear<2>, double>;
  const tiny::Task task = typed_task();
  sheafnn::ModelOptions options = tiny::options();
  const Model plain(options, 7);
  const auto outputs = [&](const Model& model) {
    sheafnn::Network<Model> network(model, task.graph, task.sparse);
    test::train_pass(network, tiny::training_pass(task));
    return test::last_outputs(network);
  };
  const std::vector<double> expected = outputs(plain);
  options.edge_types = {"only"};
  const Model one(options, 7);
  CHECK(one.parameters().info().size() == plain.parameters().info().size());
  CHECK(outputs(one) == expected);

  options.edge_types = three;
  Model equal(options, 1);
  for (std::size_t i = 0; i < equal.parameters().info().size(); ++i) {
    std::string name = equal.parameters().info()[i].name;
    if (const std::size_t at = name.find(".type"); at != std::string::npos) name.erase(at, 6);
    const auto id = static_cast<sheafnn::layers::ParameterId>(i);
    equal.parameters().set(id, plain.parameters().get(plain.parameters().find(name), plain.parameters().values()));
  }
  CHECK(outputs(equal) == expected);
  CHECK(outputs(Model(options, 7)) != expected);
}

TEST_CASE("a graph of some edges keeps types, and names of types are read back from their text") {
  const tiny::Task task = typed_task();
  std::vector<std::int8_t> kept(9, 1);
  kept[0] = kept[4] = 0;
  const sheafnn::Graph graph = sheafnn::detail::graph_of_edges(task.graph, kept);
  std::vector<std::int32_t> expected;
  for (std::size_t e = 0; e < 9; ++e) {
    if (kept[e] != 0) expected.push_back(task.graph.edge_types()[e]);
  }
  CHECK(std::equal(expected.begin(), expected.end(), graph.edge_types().begin(), graph.edge_types().end()));
  CHECK(std::equal(graph.node_types().begin(), graph.node_types().end(), task.graph.node_types().begin()));
  const std::vector<std::string> names = {"a,b", "c \"d\"", "e"};
  std::vector<std::string> read;
  sheafnn::io::parse_option("edge_types", sheafnn::io::option_text(names), read);
  CHECK(read == names);
  sheafnn::io::parse_option("edge_types", sheafnn::io::option_text(std::vector<std::string>()), read);
  CHECK(read.empty());
  CHECK(test::message_of([&] {
          sheafnn::io::parse_option("edge_types", "\"a", read);
        }).starts_with("edge_types:1: a quoted field begins here"));
}

TEST_CASE("types that do not fit are refused") {
  using Model = sheafnn::Nsd<sheafnn::GeneralLinear<2>, double>;
  tiny::Task task = typed_task();
  sheafnn::ModelOptions options = tiny::options();
  const auto message = [](const auto& call) { return test::message_of(call); };
  options.edge_types = {"a", "b"};
  const Model two(options);
  CHECK(message([&] { sheafnn::Network<Model>(two, task.graph, task.sparse); }) ==
        "edge types of the graph: 3 is not allowed; the sheaf learner has weights for 2");
  options.edge_types = {"a", "a"};
  CHECK(message([&] { Model{options}; }) == "edge_types: 'a' is not allowed; types need names that differ");
  const std::vector<std::int32_t> wrong(9, 3);
  CHECK(message([&] { task.graph.set_edge_types(wrong, 3); }) ==
        "edge types[0]: 3 is not allowed; must be between 0 and 2");
  CHECK(message([&] { task.graph.set_edge_types(std::vector<std::int32_t>(8), 3); }) ==
        "edge types: 8 is not allowed; expected one per edge, 9");
  CHECK(task.graph.edge_type_count() == 3);
}

TEST_CASE("maps are d_e x d_v, and the Laplacian is of the sheaf with these stalks") {
  const tiny::Task task = typed_task();
  sheafnn::ModelOptions options = tiny::options();
  set_stalks(options);
  const Dense<3> model(options, 7);
  sheafnn::Network<Dense<3>> network(model, task.graph, task.sparse);
  test::train_pass(network, tiny::training_pass(task));
  const auto& source = network.sheaf_source();
  const auto& sheaf = source.stack()[0];
  const sheafnn::layers::EdgeBlocks<S> blocks(task.graph);
  const Index n = task.graph.node_count(), m = task.graph.edge_count();
  std::vector<Index> column = {0}, row = {0};
  for (Index u = 0; u < n; ++u) {
    column.push_back(column.back() + options.stalks[static_cast<std::size_t>(task.graph.node_types()[u])]);
  }
  for (Index e = 0; e < m; ++e) {
    row.push_back(row.back() + options.edge_stalks[static_cast<std::size_t>(task.graph.edge_types()[e])]);
  }
  const auto size = [](const std::vector<Index>& of, Index i) { return of[i + 1] - of[i]; };
  Eigen::MatrixXd delta = Eigen::MatrixXd::Zero(row.back(), column.back());  // of the smaller stalks
  constexpr int W = sheafnn::lanes<S>;
  for (Index e = 0; e < m; ++e) {
    sheafnn::GeneralLinear<3>::Map<sheafnn::math::Pack<S, W>> map[2];
    source.map_block(0, e / W, map);
    const Index ends[] = {task.graph.edge(e).u, task.graph.edge(e).v};
    for (int side = 0; side < 2; ++side) {
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
          S values[W];
          map[side](i, j).store(values);
          const S value = values[e % W];
          if (i < size(row, e) && j < size(column, ends[side])) {
            CHECK(value != 0);
            delta(row[e] + i, column[ends[side]] + j) = side == 0 ? value : -value;
          } else {
            CHECK(value == 0);
          }
        }
      }
    }
  }
  const Eigen::MatrixXd laplacian = delta.transpose() * delta;
  const auto check_block = [&](const S* block, const Eigen::MatrixXd& expected, S idle) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 3; ++i) {
        const bool inside = i < expected.rows() && j < expected.cols();
        CHECK(std::abs(block[j * 3 + i] - (inside ? expected(i, j) : i == j ? idle : 0)) < 1e-12);
      }
    }
  };
  for (Index u = 0; u < n; ++u) {
    const Eigen::MatrixXd d = laplacian.block(column[u], column[u], size(column, u), size(column, u));
    check_block(sheaf.degree_block(u), d, 0);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(d + Eigen::MatrixXd::Identity(d.rows(), d.cols()));
    check_block(sheaf.scale(u), eigen.operatorInverseSqrt(), 1);
  }
  for (Index e = 0; e < m; ++e) {
    const Index u = task.graph.edge(e).u, v = task.graph.edge(e).v;
    check_block(sheaf.transport_block(e), -laplacian.block(column[u], column[v], size(column, u), size(column, v)),
                0);
  }
  for (Index layer = 0; layer <= options.layers; ++layer) {
    const auto x = network.features_after(layer);
    for (Index r = 0; r < x.nodes(); ++r) {
      const Index u = layer == options.layers ? network.nodes()[r] : r;
      for (Index k = 0; k < 3 * options.channels; ++k) {
        if (k >= size(column, u) * options.channels) CHECK(x.rows().row(r).data()[k] == 0);
      }
    }
  }
}

TEST_CASE("stalks of dimension 2 in a network of dimension 3 give the network of dimension 2") {
  const tiny::Task task = typed_task();
  const auto compare = [&]<class Large, class Small>(bool outputs) {
    sheafnn::ModelOptions options = tiny::options();
    const Index f = options.channels;
    Small small(options, 7);
    tiny::disturb(small.parameters(), 8, 0.3);
    options.node_types = options.edge_types = three;
    options.edge_types = {"only"};
    options.stalks = {2, 2, 2};
    options.edge_stalks = {2};
    tiny::Task one = task;
    one.graph.set_edge_types(std::vector<std::int32_t>(9), 1);
    Large large(options, 3);
    tiny::disturb(large.parameters(), 9, 0.3);  // what is absent stays here
    // Number k of one of some stalks' parts of 2s numbers, as a number of parts of 3s.
    const auto wide = [](Index k, Index s) { return k / (2 * s) * 3 * s + k % (2 * s); };
    const auto& parameters = large.parameters();
    std::vector<bool> present(static_cast<std::size_t>(parameters.size()));
    constexpr Index entries = Small::Family::coordinate_count;
    for (const auto& info : small.parameters().info()) {
      const auto& to = parameters.info(parameters.find(info.name));
      const Index rows = info.shape.front(), columns = info.size / rows, wide_columns = to.size / to.shape.front();
      for (Index k = 0; k < info.size; ++k) {
        Index r = k / columns, c = k % columns;
        const bool learner = info.name.starts_with("sheaf");
        if (info.name.starts_with("left") || info.name.starts_with("eps")) {
          r = wide(r, 1), c = columns > 1 ? wide(c, 1) : c;
        } else if (learner) {
          r = entries == 4 ? wide(r, 1) : r;
          c = wide(c, f);
        } else if (info.name.starts_with("lin2.weight")) {
          c = wide(c, f);
        }
        // Weights in × out lie in columns of what files have.
        const Index at = info.transposed ? c * to.shape.front() + r : r * wide_columns + c;
        const Index from = info.transposed ? k % columns * rows + k / columns : k;
        large.parameters().values()[to.offset + at] = small.parameters().values()[info.offset + from];
        present[static_cast<std::size_t>(to.offset + at)] = true;
      }
    }
    sheafnn::Network<Small> expected(small, task.graph, task.sparse);
    sheafnn::Network<Large> network(large, one.graph, task.sparse);
    const test::PassResult is = test::train_pass(network, tiny::training_pass(task)),
                           should = test::train_pass(expected, tiny::training_pass(task));
    CHECK(is.kl == doctest::Approx(should.kl).epsilon(1e-12));
    Index idle = 0;
    for (Index i = 0; i < parameters.size(); ++i) {
      if (present[static_cast<std::size_t>(i)]) continue;
      ++idle;
      CHECK(network.gradient()[i] == 0);
    }
    CHECK(idle > 0);
    if (!outputs) return;
    const std::vector<double> y = test::last_outputs(network), z = test::last_outputs(expected);
    for (std::size_t i = 0; i < z.size(); ++i) CHECK(y[i] == doctest::Approx(z[i]).epsilon(1e-12));
  };
  compare.template operator()<Dense<3>, Dense<2>>(true);
  compare.template operator()<Random<3>, Random<2>>(false);  // the noise of other dimensions is other noise
}

TEST_CASE_TEMPLATE("gradients with stalks of their own, along every coordinate", Model, Dense<3>, Random<3>) {
  const tiny::Task task = typed_task();
  Setting setting;
  set_stalks(setting.model);
  const auto check = [&](const char* name) {
    setting.name = name;
    model_gradient::check_setting<Model>(setting, task, task.graph, 3);
  };
  check("plain");
  setting.model.add_lp = setting.model.add_hp = true;
  setting.model.residual.form = sheafnn::ResidualForm::initial;
  setting.model.sheaf_activation = sheafnn::SheafActivation::residual;
  setting.dropout = 0.3;
  setting.kl_estimator = sheafnn::KlEstimator::monte_carlo;
  check("fixed filters, initial residual, residual maps, dropout, Monte Carlo KL");
  setting.model.residual = {};
  setting.model.filter.basis = sheafnn::PolynomialBasis::chebyshev;
  setting.model.filter.degree = 3;
  setting.model.normalisation = sheafnn::Normalisation::degree;
  setting.model.sheaf_activation = sheafnn::SheafActivation::tanh;
  check("polynomial filter, maps that are no residual");
}

TEST_CASE("networks with stalks of their own refuse what they do not have") {
  const auto refused = [](const auto& change) {
    sheafnn::ModelOptions options = tiny::options();
    set_stalks(options);
    change(options);
    return test::message_of([&] { Dense<3>{options}; });
  };
  const std::string begin = "stalks: a dimension below the stalk dimension is not allowed; ";
  CHECK(refused([](auto& o) { o.layer_norm = true; }) == begin + "layer_norm would count absent coordinates");
  CHECK(refused([](auto& o) { o.normalisation = sheafnn::Normalisation::block; }) ==
        begin + "blocks D_u have no full rank: use normalisation augmented");
  CHECK(refused([](auto& o) { o.sheaf_activation = sheafnn::SheafActivation::exponential; }) ==
        begin + "with the sheaf activation exponential, entries of a map depend on absent entries");
  CHECK(refused([](auto& o) { o.stalks = {1, 4, 2}; }) == "stalks: 4 is not allowed; must be between 1 and 3");
  CHECK(refused([](auto& o) { o.stalks = {1}; }) ==
        "stalks: 1 is not allowed; expected one for each of the 3 node_types");
  sheafnn::ModelOptions options = tiny::options();
  set_stalks(options);
  CHECK(test::message_of([&] { sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>, double>{options}; }) ==
        begin + "blocks of special-orthogonal maps are no such maps: use diagonal or general linear maps");
  options.stalks = options.edge_stalks = {3, 3, 3};  // all have D
  CHECK(test::message_of([&] { sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>, double>{options}; }) ==
        "nothing was thrown");
  tiny::Task task = typed_task();
  task.graph.set_node_types({}, 0);
  set_stalks(options);
  const Dense<3> model(options);
  CHECK(test::message_of([&] { sheafnn::Network<Dense<3>>(model, task.graph, task.sparse); }) ==
        "node types of the graph: 0 is not allowed; the network has stalks for 3");
}

}  // namespace types
