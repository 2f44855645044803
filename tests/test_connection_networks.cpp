/// \file
/// Networks on connections and with posteriors around given maps: golden3/, gradients along every coordinate, KL, refusals.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "golden3_case.hpp"
#include "model_gradient.hpp"
#include "network_passes.hpp"
#include "refusal.hpp"
#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/sheaf/connection.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "tiny_task.hpp"

namespace test_connection_networks {
namespace {

using sheafnn::AroundGiven;
using sheafnn::Bgsnn;
using sheafnn::CellularSheaf;
using sheafnn::DeviationSource;
using sheafnn::Diagonal;
using sheafnn::EdgeLabels;
using sheafnn::GeneralLinear;
using sheafnn::GivenMaps;
using sheafnn::Index;
using sheafnn::ModelOptions;
using sheafnn::Orthogonal;
using sheafnn::Snn;
using sheafnn::SpecialOrthogonal;
using sheafnn::Stream;
using test::message_of;

template <class Model>
void check(const std::string& name) {
  CAPTURE(name);
  const golden::Case given = golden3::connection(name);
  golden::check<Model>(given, golden::double_bounds,
                       typename Model::Posterior(golden3::connection_of<typename Model::Family>(given)));
}

TEST_CASE("golden: networks on connections") {
  check<Snn<Orthogonal<2>, double>>("conn_nsd_o2");
  check<Bgsnn<SpecialOrthogonal<3>, double>>("bconn_so3_lp");
  check<Bgsnn<Orthogonal<3>, double>>("bconn_so3_lp");
}

EdgeLabels labels_of(const tiny::Task& task) {
  EdgeLabels r;
  r.count = 3;
  for (Index e = 0; e < task.graph.edge_count(); ++e) r.of_edge.push_back(static_cast<std::int32_t>(e % 3));
  return r;
}

template <class Family>
void check_gradients() {
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  using Model = Bgsnn<Family, double>;
  const tiny::Task task;
  CellularSheaf<Family> sheaf = sheafnn::sheaf::random_sheaf<Family>(task.graph, Stream{.seed = 2});
  if constexpr (sheafnn::sheaf::may_have_edge_weights<Family>) {
    for (Index e = 0; e < task.graph.edge_count(); ++e) sheaf.set_edge_weight(e, 0.6 + 0.4 * tiny::number(3, e));
  }
  const AroundGiven<Family> posteriors[] = {AroundGiven<Family>(sheaf),
                                            AroundGiven<Family>(sheaf, DeviationSource::arcs_and_means),
                                            AroundGiven<Family>(sheaf, labels_of(task))};
  for (const AroundGiven<Family>& posterior : posteriors) {
    CAPTURE(to_string(posterior.source()));
    for (const sheafnn::KlEstimator estimator :
         {sheafnn::KlEstimator::closed_form, sheafnn::KlEstimator::monte_carlo}) {
      ModelOptions options = tiny::options();
      options.add_hp = estimator == sheafnn::KlEstimator::monte_carlo;
      options.separate_encoder = options.add_hp;
      Model model(options, 7, posterior);
      tiny::disturb(model.parameters(), 8, 0.3);
      test::TrainingPass<double> pass = tiny::training_pass(task);
      pass.dropout = 0.2;
      pass.kl_estimator = estimator;
      pass.samples = 2;
      sheafnn::Network<Model> network(model, task.graph, task.sparse);
      const test::PassResult result = model_gradient::check_gradient(model, network, pass);
      CHECK(result.kl > 0);
    }
  }
}

TEST_CASE("gradients of posteriors around given maps") {
  check_gradients<Diagonal<2>>();
  check_gradients<SpecialOrthogonal<3>>();
  check_gradients<Orthogonal<2>>();
  check_gradients<GeneralLinear<2>>();
}

TEST_CASE("the prior has its scale around the given maps, and means are theirs") {
  const tiny::Task task;
  using Family = GeneralLinear<2>;
  const auto sheaf = sheafnn::sheaf::random_sheaf<Family>(task.graph, Stream{.seed = 2});
  AroundGiven<Family> posterior(sheaf, labels_of(task));
  posterior.prior = {0.0, 0.5};
  Bgsnn<Family, double> model(tiny::options(), 7, posterior);
  const auto dispersion = model.parameters().find("sheaf.dispersion");
  CHECK(model.parameters().info(dispersion).shape == std::vector<Index>{3, 4});
  sheafnn::Network<Bgsnn<Family, double>> network(model, task.graph, task.sparse);
  network.begin({});
  // log σ = −ELU(3 − 0) = −3: four coordinates per map.
  const double sigma = std::exp(-3.0), ratio = sigma / 0.5;
  CHECK(network.kl() == doctest::Approx(4 * (0.5 * ratio * ratio - 0.5 - std::log(ratio))).epsilon(1e-12));
  const auto mean = sheafnn::learned_sheaf(model, task.graph, task.sparse);
  for (Index a = 0; a < task.graph.arc_count(); ++a) CHECK(mean.restriction_map(a) == sheaf.restriction_map(a));
  const auto parameters = sheafnn::posterior_parameters(model, task.graph, task.sparse);
  CHECK(parameters.find("sigma").values.front() == doctest::Approx(sigma).epsilon(1e-12));
}

TEST_CASE("posteriors around given maps that cannot be are refused") {
  const tiny::Task task;
  using Family = Diagonal<2>;
  const CellularSheaf<Family> sheaf(task.graph);
  CHECK(message_of([&] { Bgsnn<Family>(tiny::options(), 0); }) ==
        "sheaves: 0 is not allowed; a model with given maps needs a sheaf: give it as the posterior");
  CHECK(message_of([&] { AroundGiven<Family>(sheaf, DeviationSource::labels); }) ==
        "labels: 0 is not allowed; expected one for each of 9 edges");
  EdgeLabels labels = labels_of(task);
  labels.of_edge[4] = 3;
  CHECK(message_of([&] { AroundGiven<Family>(sheaf, labels); }) ==
        "labels[4]: 3 is not allowed; must be between 0 and 2");
  ModelOptions options = tiny::options();
  options.sheaf_activation = sheafnn::SheafActivation::residual;
  CHECK(message_of([&] { Bgsnn<Family>(options, 0, AroundGiven<Family>(sheaf)); }) ==
        "sheaf_activation: residual is not allowed; means are deviations from given maps: choose tanh, identity "
        "or elu");
}

}  // namespace
}  // namespace test_connection_networks
