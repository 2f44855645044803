/// \file
/// NetworkOperator of networks whose batches have parts of their own, and of networks on given sheaves, on the host against
/// the CPU's.
#include <doctest/doctest.h>

#include "given_sheaves.hpp"
#include "operator_comparison.hpp"
#include "sheafnn/batch/bundle_network.hpp"
#include "sheafnn/batch/convolution_network.hpp"
#include "sheafnn/batch/cooperative_network.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/given_sheaf.hpp"
#include "sheafnn/bundle.hpp"
#include "sheafnn/convolution.hpp"

namespace test_batch_operator_parts {
namespace {

using namespace sheafnn;
using batch_checks::small_bundle_options;
using batch_checks::small_cooperative_options;
using batch_checks::small_options;
using batch_checks::small_problem;
using given_sheaves::around_maps;
using given_sheaves::deviation_sources;
using given_sheaves::maps_of_layers;
using given_sheaves::maps_over;
using layers::Activation;
using layers::NodeLearnerKind;
using operator_checks::agree;
using operator_checks::bound;

}  // namespace

TEST_CASE_TEMPLATE("operators agree with the CPU: cooperative networks", Model, Csnn<2, double>, Csnn<3, double>,
                   Bcsnn<2, double>, Bcsnn<3, double>) {
  CooperativeOptions o = small_cooperative_options();
  agree<Model>(o);
  agree<Model>(o, {.kl_bar = -0.3});
  agree<Model>(o, {.training = false});
  o.norm = FeatureNorm::batch;
  o.readout_layers = 2;
  o.classes = 9;
  agree<Model>(o, {.input_dropout = 0});
}

TEST_CASE_TEMPLATE("operators agree with the CPU: learners of cooperative networks, and their dropout", Model,
                   Csnn<2, double>, Bcsnn<2, double>) {
  CooperativeOptions o = small_cooperative_options();
  o.learner = NodeLearnerKind::sage_projected;
  o.learner_layers = 3;
  o.learner_dropout = 0.4;
  SUBCASE("one pair of learners, or one per layer") {}
  SUBCASE("learners of every layer, a norm") {
    if (Model::bayesian) o.layer_learners = true;
    o.norm = FeatureNorm::layer;
  }
  SUBCASE("an encoder of their own") {
    if (Model::bayesian) o.separate_encoder = true;
  }
  SUBCASE("directed arcs, sage") {
    o.directed = true;
    o.learner = NodeLearnerKind::sage;
  }
  agree<Model>(o);
  agree<Model>(o, {.training = false});
  agree<Model>(o, {.dropout = 0});
}

TEST_CASE_TEMPLATE("operators agree with the CPU: cooperative layers that read embeddings", Model, Csnn<2, double>,
                   Csnn<3, double>, Bcsnn<2, double>) {
  CooperativeOptions o = small_cooperative_options();
  o.layers = 1;
  agree<Model>(o, {.layer = Activation::identity});
  o.learner = NodeLearnerKind::sage_projected;
  o.learner_dropout = 0.4;
  o.norm = FeatureNorm::layer;
  agree<Model>(o, {.layer = Activation::gelu});
  agree<Model>(o, {.kl_bar = -0.3, .training = false, .layer = Activation::elu});
}

TEST_CASE_TEMPLATE("operators agree with the CPU: bundles", Model, Bunn<2, double>, BayesianBunn<2, double>,
                   BayesianBunn<3, double>) {
  BundleOptions o = small_bundle_options();
  agree<Model>(o);
  agree<Model>(o, {.kl_bar = -0.3});
  agree<Model>(o, {.training = false});
  o.learner = BundleLearnerKind::sage_residual;
  o.mixing = BundleMixing::feed_forward;
  o.layer_norm = true;
  o.readout_layers = 2;
  agree<Model>(o);
  agree<Model>(o, {.training = false});
}

TEST_CASE_TEMPLATE("operators agree with the CPU: given sheaves", Family, Diagonal<2>, SpecialOrthogonal<3>,
                   GeneralLinear<2>) {
  const batch_checks::Problem problem = small_problem();
  ConvolutionOptions o = small_options<ConvolutionOptions>();
  agree<SheafConvolutions<Family, double>>(o, {}, bound, problem, maps_over<Family>(problem.graph));
  agree<SheafConvolutions<Family, double>>(o, {.training = false}, bound, problem,
                                           maps_of_layers<Family>(problem.graph, o.layers));
  agree<Snn<Family, double>>(small_options(), {}, bound, problem, maps_over<Family>(problem.graph));
  for (const DeviationSource source : deviation_sources) {
    CAPTURE(to_string(source));
    const AroundGiven<Family> around = around_maps<Family>(problem.graph, source);
    agree<BayesianSheafConvolutions<Family, double>>(o, {}, bound, problem, around);
    agree<BayesianSheafConvolutions<Family, double>>(o, {.kl_bar = -0.3, .training = false}, bound, problem,
                                                     around);
    agree<Bgsnn<Family, double>>(small_options(), {}, bound, problem, around);
    agree<Bgsnn<Family, double>>(small_options(), {.training = false}, bound, problem, around);
  }
}

TEST_CASE("operators agree with the CPU in single precision: parts of their own") {
  const batch_checks::Problem problem = small_problem();
  agree<Csnn<2, float>>(small_cooperative_options(), {}, 1e-5);
  agree<Bcsnn<2, float>>(small_cooperative_options(), {}, 1e-5);
  agree<BayesianBunn<2, float>>(small_bundle_options(), {}, 1e-5);
  agree<SheafConvolutions<Diagonal<2>, float>>(small_options<ConvolutionOptions>(), {}, 1e-5, problem,
                                               maps_over<Diagonal<2>>(problem.graph));
}

}  // namespace test_batch_operator_parts
