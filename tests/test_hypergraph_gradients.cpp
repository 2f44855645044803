// The gradient of sheaf hypergraph networks against central differences along every coordinate, for every option alone and
// for mixtures of them, and that one thread and several give the same bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hypergraph_task.hpp"
#include "model_gradient.hpp"
#include "sheafnn/bsnn/hypergraph_network.hpp"

namespace hypergraph_gradients_test {

using sheafnn::Index;

template <class Model>
void check_model() {
  const tiny::HypergraphTask task;
  for (const tiny::HypergraphSetting& setting : tiny::hypergraph_settings(Model::bayesian)) {
    CAPTURE(Model::kind);
    CAPTURE(Model::Family::name);
    CAPTURE(Model::stalk_dimension);
    CAPTURE(setting.name);
    Model model(setting.model, 7);
    sheafnn::layers::ParameterSet<double>& parameters = model.parameters();
    tiny::disturb(parameters, 8, 0.3);
    test::TrainingPass<double> pass;
    pass.labels = task.labels;
    pass.nodes = task.train;
    pass.seed = 9;
    pass.epoch = 10;
    pass.input_dropout = setting.input_dropout;
    pass.dropout = setting.dropout;
    pass.kl_weight = 0.3;
    pass.kl_estimator = setting.kl_estimator;
    pass.samples = setting.samples;
    pass.only_nodes = setting.only_nodes;
    sheafnn::Network<Model> network(model, task.hypergraph, task.sparse, 1);
    const test::PassResult result = test::train_pass(network, pass);
    CHECK((result.kl > 0) == Model::bayesian);

    sheafnn::Network<Model> threaded(model, task.hypergraph, task.sparse, 3);
    CHECK(test::train_pass(threaded, pass).loss == result.loss);
    CHECK(std::equal(network.gradient().begin(), network.gradient().end(), threaded.gradient().begin()));

    const sheafnn::Buffer<double> gradient = network.gradient();
    const model_gradient::Comparison comparison = model_gradient::compare_gradient(parameters, gradient, [&] {
      return test::train_pass(network, pass).loss;
    });
    CAPTURE(comparison.where);
    CHECK(comparison.worst <= 1);
  }
}

}  // namespace hypergraph_gradients_test

TEST_CASE("hypergraph networks: gradients") {
  using namespace hypergraph_gradients_test;
  using namespace sheafnn;
  check_model<SheafHyperGnn<Diagonal<1>, double>>();
  check_model<SheafHyperGnn<Diagonal<3>, double>>();
  check_model<SheafHyperGnn<SpecialOrthogonal<2>, double>>();
  check_model<SheafHyperGnn<SpecialOrthogonal<3>, double>>();
  check_model<SheafHyperGnn<GeneralLinear<2>, double>>();
  check_model<SheafHyperGnn<GeneralLinear<3>, double>>();
  check_model<SheafHyperGnn<Conformal<2>, double>>();
}
TEST_CASE("Bayesian hypergraph networks: gradients") {
  using namespace hypergraph_gradients_test;
  using namespace sheafnn;
  check_model<BayesianSheafHyperGnn<Diagonal<2>, double>>();
  check_model<BayesianSheafHyperGnn<SpecialOrthogonal<3>, double>>();
  check_model<BayesianSheafHyperGnn<GeneralLinear<2>, double>>();
  check_model<BayesianSheafHyperGnn<Conformal<2>, double>>();
}
