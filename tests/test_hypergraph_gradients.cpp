// The gradient of sheaf hypergraph networks against central differences along every coordinate, for every option alone and
// for mixtures of them, and that one thread and several give the same bits.
#include <doctest/doctest.h>

#include "hypergraph_task.hpp"
#include "model_gradient.hpp"
#include "sheafnn/bsnn/hypergraph_network.hpp"

namespace hypergraph_gradients_test {

using sheafnn::Index;

template <class Model>
void check_model() {
  const tiny::HypergraphTask task;
  for (const tiny::HypergraphSetting& setting : tiny::hypergraph_settings(Model::bayesian)) {
    CAPTURE(Model::Family::name);
    const test::PassResult result = model_gradient::check_setting<Model>(setting, task, task.hypergraph, 3);
    CHECK((result.kl > 0) == Model::bayesian);
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
