/// \file
/// NetworkOperator on the host against the networks of the CPU: outputs, KL term, and derivatives from derivatives of the
/// outputs, of networks and of layers that read embeddings.
#include <doctest/doctest.h>

#include "operator_comparison.hpp"
#include "sheafnn/batch/connection_layers.hpp"
#include "sheafnn/batch/flow_layer.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/hypergraph_layer.hpp"
#include "sheafnn/bsnn/connection_model.hpp"
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
using operator_checks::agree;
using operator_checks::bound;
using operator_checks::Caller;
using operator_checks::on_cpu;
using operator_checks::Outcome;

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
