/// \file
/// NetworkOperator on the host against the networks of the CPU: outputs, KL term, and derivatives from derivatives of the
/// outputs, of networks and of layers that read embeddings.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "operator_checks.hpp"
#include "sheafnn/batch/connection_layers.hpp"
#include "sheafnn/batch/flow_layer.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/hypergraph_layer.hpp"
#include "sheafnn/bsnn/connection_model.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/every_layer.hpp"
#include "sheafnn/flow.hpp"
#include "sheafnn/hypergraph.hpp"

namespace test_batch_operator {
namespace {

using namespace sheafnn;
using batch_checks::Problem;
using batch_checks::relative;
using batch_checks::small_options;
using layers::Activation;
using operator_checks::Call;
using operator_checks::Caller;
using operator_checks::Outcome;

// As of batches: sums of some dozens of terms through two or three layers, in another order than on the CPU.
constexpr double bound = 1e-11;

/// Numbers of the derivative of the outputs, times a sign.
template <class S>
[[nodiscard]] std::vector<S> bar_of(Index count, S sign) {
  std::vector<S> bar = operator_checks::numbers<S>(32, count);
  for (S& x : bar) x *= sign;
  return bar;
}
/// Outputs of a layer that reads embeddings, and their derivatives, by the CPU's network.
template <class Model>
Outcome layer_on_cpu(Network<Model>& network, const Model& model, Index nodes, const Call& call) {
  using S = typename Model::Scalar;
  const S sign = call.kl_bar < 0 ? S(-1) : S(1);
  Outcome r;
  const std::vector<S> embedding = operator_checks::numbers<S>(31, nodes * model.hidden_width());
  const auto pass = network.begin(call.pass<S>(), MatrixView<const S>(embedding.data(), nodes, model.hidden_width()));
  const auto sample = pass.diffuse();
  const auto x = sample.view().rows();
  std::vector<S> slopes;
  for (Index u = 0; u < x.rows(); ++u) {
    for (const S value : x.row(u)) {
      S& slope = slopes.emplace_back();
      r.outputs.push_back(static_cast<double>(layers::activate_with_slope(*call.layer, value, slope)));
    }
  }
  const std::vector<S> bar = bar_of(static_cast<Index>(slopes.size()), sign);
  auto backward = pass.begin_backward({.kl_weight = std::abs(call.kl_bar)});
  const FeatureView<S> features_bar = network.features_bar();
  for (std::size_t i = 0; i < bar.size(); ++i) features_bar.data()[i] = bar[i] * slopes[i];
  backward.add(sample, features_bar);
  std::vector<S> embedding_bar(embedding.size());
  backward.finish(MatrixView<S>(embedding_bar.data(), nodes, model.hidden_width()));
  for (S& x_bar : embedding_bar) x_bar *= sign;
  r.embedding_bar = operator_checks::in_doubles(embedding_bar);
  return r;
}
/// The same of a network.
template <class Model>
Outcome network_on_cpu(Network<Model>& network, const Model& model, Index nodes, const Call& call) {
  using S = typename Model::Scalar;
  Outcome r;
  const MatrixView<S> outputs = network.forward(call.pass<S>());
  for (Index u = 0; u < nodes; ++u) {
    for (const S value : outputs.row(u)) r.outputs.push_back(static_cast<double>(value));
  }
  const std::vector<S> bar = bar_of(nodes * model.options().classes, call.kl_bar < 0 ? S(-1) : S(1));
  network.backward(MatrixView<const S>(bar.data(), nodes, model.options().classes),
                   {.kl_weight = std::abs(call.kl_bar)});
  return r;
}
/// What an operator gives, by the CPU's network. Its KL weight is not negative: of a negative one all derivatives are the
/// negatives'.
template <class Model>
Outcome on_cpu(const Model& model, const Problem& problem, const Call& call) {
  using S = typename Model::Scalar;
  Network<Model> network(model, batch_checks::graph_of<Model>(problem), problem.features);
  const Index nodes = problem.graph.node_count();
  Outcome r;
  if constexpr (requires { network.features_bar(); }) {
    if (call.layer) r = layer_on_cpu(network, model, nodes, call);
  }
  if (!call.layer) r = network_on_cpu(network, model, nodes, call);
  r.kl = {network.kl() + network.kl_of_layers()};
  const S sign = call.kl_bar < 0 ? S(-1) : S(1);
  for (std::size_t i = 0; i < model.parameters().info().size(); ++i) {
    for (const S value : model.parameters().get(static_cast<layers::ParameterId>(i), network.gradient()))
      r.gradient.push_back(static_cast<double>(sign * value));
  }
  return r;
}

template <class Model>
void agree(const typename Model::Options& options, const Call& call = {}, double within = bound,
           const Problem& problem = batch_checks::small_problem()) {
  const Model model = batch_checks::disturbed<Model>(options, 0);
  batch::HostExecutor executor;
  Caller<batch::HostExecutor, Model> caller(executor, model, batch_checks::graph_of<Model>(problem),
                                            problem.features);
  const Outcome own = caller.run(call), expected = on_cpu(model, problem, call);
  CHECK(relative(own.outputs, expected.outputs) <= within);
  CHECK(relative(own.kl, expected.kl) <= within);
  CHECK(relative(own.gradient, expected.gradient) <= within);
  CHECK(relative(own.embedding_bar, expected.embedding_bar) <= within);
}

/// Of one layer, as networks of sheafnn.torch that read embeddings.
[[nodiscard]] ModelOptions layer_options() {
  ModelOptions r = small_options();
  r.layers = 1;
  r.separate_encoder = false;
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("operators agree with the CPU: networks", Model, Bsnn<Diagonal<3>, double>,
                   Bsnn<SpecialOrthogonal<3>, double>, Bsnn<GeneralLinear<2>, double>,
                   Nsd<SpecialOrthogonal<2>, double>, Nsd<Identity<2>, double>) {
  ModelOptions o = small_options();
  agree<Model>(o);
  agree<Model>(o, {.kl_bar = -0.3});
  agree<Model>(o, {.training = false});
  o.classes = 9;  // more than share a launch with the last layer
  agree<Model>(o, {.input_dropout = 0});
}

TEST_CASE("operators agree with the CPU: encoders, readouts, filters and norms") {
  ModelOptions o = small_options();
  o.readout_layers = 2;
  o.second_linear = true;
  o.layer_norm = true;
  agree<Nsd<SpecialOrthogonal<2>, double>>(o);
  o.separate_encoder = true;
  o.add_hp = true;
  agree<Bsnn<SpecialOrthogonal<2>, double>>(o);
}

TEST_CASE_TEMPLATE("operators agree with the CPU: layers that read embeddings", Model,
                   Bsnn<SpecialOrthogonal<3>, double>, Bsnn<Diagonal<2>, double>, Nsd<GeneralLinear<2>, double>,
                   Nsd<SpecialOrthogonal<2>, double>, Nsd<Identity<1>, double>) {
  const ModelOptions o = layer_options();
  agree<Model>(o, {.layer = Activation::identity});
  agree<Model>(o, {.kl_bar = -0.3, .training = false, .layer = Activation::elu});
}

TEST_CASE("operators agree with the CPU: every equation of a layer") {
  for (const layers::LayerForm form :
       {layers::LayerForm::convolution, layers::LayerForm::wave, layers::LayerForm::attention,
        layers::LayerForm::copresheaf, layers::LayerForm::directed}) {
    CAPTURE(static_cast<int>(form));
    ModelOptions o = small_options();
    o.layer = form;
    agree<AnyNsd<SpecialOrthogonal<2>, double>>(o);
    ModelOptions layer = layer_options();
    layer.layer = form;
    layer.attention.random = form == layers::LayerForm::attention;
    layer.directed.random = form == layers::LayerForm::directed;
    agree<AnyNsd<SpecialOrthogonal<2>, double>>(layer, {.layer = Activation::gelu});
  }
}

TEST_CASE_TEMPLATE("operators agree with the CPU: continuous time", Model, SheafFlow<Diagonal<2>, double>,
                   BayesianSheafFlow<SpecialOrthogonal<2>, double>) {
  agree<Model>(batch_checks::small_flow_options());
  agree<Model>(batch_checks::small_flow_options(), {.training = false});
}

TEST_CASE_TEMPLATE("operators agree with the CPU: hypergraphs", Model, SheafHyperGnn<Diagonal<2>, double>,
                   BayesianSheafHyperGnn<SpecialOrthogonal<2>, double>) {
  HypergraphOptions o = batch_checks::small_hypergraph_options();
  agree<Model>(o, {}, bound, batch_checks::hypergraph_problem());
  o.layers = 1;
  o.separate_encoder = false;
  agree<Model>(o, {.layer = Activation::elu}, bound, batch_checks::hypergraph_problem());
}

TEST_CASE_TEMPLATE("operators agree with the CPU: connections", Model, ConnNsd<2, double>, BconnNsd<2, double>) {
  ConnectionModelOptions o;
  static_cast<ModelOptions&>(o) = small_options();
  agree<Model>(o);
}

TEST_CASE("operators agree with the CPU in single precision") {
  agree<Bsnn<SpecialOrthogonal<3>, float>>(small_options(), {}, 1e-5);
  agree<Nsd<Diagonal<2>, float>>(layer_options(), {.layer = Activation::relu}, 1e-5);
}

TEST_CASE(
    "operators compute a forward pass again for a second backward pass, and take other parameters in the next "
    "one") {
  using Model = Bsnn<SpecialOrthogonal<2>, double>;
  const Problem problem = batch_checks::small_problem();
  const Model model = batch_checks::disturbed<Model>(small_options(), 0);
  batch::HostExecutor executor;
  Caller<batch::HostExecutor, Model> caller(executor, model, problem.graph, problem.features);
  const Outcome once = caller.run({}), twice = caller.run({}, 2);
  CHECK(twice.gradient == once.gradient);
  const Model other = batch_checks::disturbed<Model>(small_options(), 1);
  for (std::size_t i = 0; i < caller.parameters.size(); ++i) {
    caller.parameters[i].upload(
        other.parameters().get(static_cast<layers::ParameterId>(i), other.parameters().values()));
  }
  CHECK(relative(caller.run({}).gradient, on_cpu(other, problem, {}).gradient) <= bound);
}

}  // namespace test_batch_operator
