/// \file
/// Types of edges: a sheaf learner with weights for each of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "model_gradient.hpp"
#include "refusal.hpp"
#include "sheafnn/layers/typed_learner.hpp"
#include "tiny_task.hpp"

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
  return task;
}

const std::vector<std::string> three = {"cites", "writes", "reads"};

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
    const auto set_bars = [&](auto& learner, const auto& weight) {  // of the edges of these types, 0 of the others
      sheafnn::Buffer<S> bars(blocks.block_count() * W);
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
                   bar_of(expected).of_type(static_cast<std::size_t>(t)), {z_expected.data(), n, shape.inputs}, true);
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
    equal.parameters().set(
        id, plain.parameters().get(plain.parameters().find(name), plain.parameters().values()));
  }
  CHECK(outputs(equal) == expected);
  CHECK(outputs(Model(options, 7)) != expected);
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
