/// \file
/// Layers from outside the library (own_layers.hpp) in the batch engine on the host: against the networks of the CPU,
/// gradients along every coordinate, and trainings against sheafnn::train.
#include <doctest/doctest.h>

#include <type_traits>

#include "batch_comparison.hpp"
#include "batch_gradient.hpp"
#include "own_layers.hpp"
#include "training_comparison.hpp"

namespace test_batch_own_layer {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using batch_checks::compare;
using batch_checks::relative;
using batch_checks::small_options;
using batch_checks::small_problem;
using batch_checks::Step;
using own_layers::AverageLayer, own_layers::Mixed, own_layers::ModelOf, own_layers::Reactions;

constexpr double bound = 1e-11;  // as in test_batch_network.cpp

template <class Family, class S>
using Near = LayerWhere<DiffusionLayer<Family, S>, [](const LayerSetting& of) { return of.number == 0; }>;

}  // namespace

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: an equation of one's own", Model,
                   ModelOf<DefaultPosterior<SpecialOrthogonal<3>>>, ModelOf<DefaultPosterior<Diagonal<2>>>,
                   Reactions<GeneralLinear<2>>, Reactions<Identity<2>>) {
  ModelOptions o = small_options();
  SUBCASE("several samples, a node of high degree") {}
  SUBCASE("fixed filters, a norm, whole tiles") {
    o.add_lp = o.add_hp = o.layer_norm = true;
    o.channels = 8;
    o.layers = 3;
  }
  SUBCASE("no edges, no dropout") {
    compare<Model>(o, {.input_dropout = 0, .dropout = 0}, bound, small_problem(true));
  }
  compare<Model>(o, {.samples = 2}, bound, small_problem(false, 330));
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: layers of one's own among the library's", Model,
                   Mixed<DefaultPosterior<SpecialOrthogonal<2>>>, Mixed<PointMass<Diagonal<3>>>,
                   Mixed<PointMass<Identity<2>>>) {
  ModelOptions o = small_options();
  o.layers = 4;  // the last one is of one's own
  SUBCASE("one sheaf for all layers") { o.linear = true; }
  SUBCASE("the last layer is the library's") {
    o.layers = 5;
    o.channels = 8;
  }
  SUBCASE("the library's at one place, and an equation without weights") {
    using Two = ModelOf<typename Model::Posterior, LayerKinds<Near, AverageLayer>>;
    compare<Two>(o, {}, bound);
  }
  SUBCASE("a norm, no right weights, no dropout") {
    o.layer_norm = true;
    o.right_weights = false;
    compare<Model>(o, {.dropout = 0}, bound);
  }
  compare<Model>(o, {.samples = 2}, bound);
}

TEST_CASE_TEMPLATE("gradients of layers of one's own in the batch engine, along every coordinate", Model,
                   Reactions<GeneralLinear<2>>, Mixed<DefaultPosterior<SpecialOrthogonal<2>>>) {
  ModelOptions options = tiny::options();
  options.add_lp = true;
  options.layers = 3;
  batch_checks::compare_gradient<Model>(options);
}

TEST_CASE("training by the batch engine follows the CPU: layers of one's own") {
  TrainOptions options;
  options.epochs = 20;
  training_comparison::compare_training<ModelOf<DefaultPosterior<SpecialOrthogonal<3>>>>(options, 1e-11);
  training_comparison::compare_training<Reactions<Diagonal<2>>>(options, 1e-11);
  options.samples = options.training_samples = 2;
  training_comparison::compare_training<Mixed<DefaultPosterior<Diagonal<2>>>>(options, 1e-11);
}

TEST_CASE("a batch of three seeds of a layer of one's own: three single trainings, and checkpoints") {
  using Model = own_layer::Model;
  const Dataset data = karate_club();
  const ModelOptions options{.features = data.feature_count(),
                             .channels = 8,
                             .layers = 3,
                             .classes = data.class_count};
  training_comparison::compare_seeds<Model>(options, data);
}

TEST_CASE("the batch engine refuses a filter or an initial residual of some layers") {
  batch::HostExecutor executor;
  const batch_checks::Problem problem = small_problem();
  const auto run = [&]<class Model>(std::type_identity<Model>, const ModelOptions& o) {
    static_cast<void>(batch_checks::run_batch<Model>(executor, problem, o, Step{}));
  };
  ModelOptions o = small_options();
  o.residual.form = ResidualForm::initial;
  using Anchored = ModelOf<PointMass<Diagonal<2>>, LayerKinds<own_layers::AnchorLayer, InitialResidualLayer>>;
  CHECK_THROWS_WITH_AS(run(std::type_identity<Anchored>(), o),
                       "residual.form: initial is not allowed; in batches all layers have it, or none",
                       std::invalid_argument);
  o.residual = {};
  o.filter.basis = PolynomialBasis::chebyshev;
  using Placed = ModelOf<PointMass<Diagonal<2>>, LayerKinds<Near, PolynomialDiffusionLayer>>;
  CHECK_THROWS_WITH_AS(run(std::type_identity<Placed>(), o),
                       "filter.basis: chebyshev is not allowed; in batches all layers have it, or none",
                       std::invalid_argument);
}

}  // namespace test_batch_own_layer
