/// \file
/// Cooperative networks in the batch engine on the host against the CPU's: losses, gradients, predictions
/// (batch_checks.hpp) and trainings.
#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "batch_comparison.hpp"
#include "sheafnn/batch/cooperative_network.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/graph/karate.hpp"
#include "training_comparison.hpp"

namespace test_batch_cooperative {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using batch_checks::compare;
using training_comparison::compare_training_of;

// Sums of some dozens of terms through two or three layers, in another order than on the CPU.
constexpr double bound = 1e-11;

CooperativeOptions karate_options(const Dataset& data) {
  CooperativeOptions r;
  r.features = data.features.columns();
  r.classes = data.class_count;
  r.channels = 4;
  r.layers = 2;
  r.learner_width = 6;
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("cooperative networks in a batch agree with the CPU: stalk dimensions", Model, Csnn<1, double>,
                   Csnn<2, double>, Csnn<3, double>, Csnn<4, double>, Bcsnn<1, double>, Bcsnn<2, double>,
                   Bcsnn<3, double>) {
  compare<Model>(batch_checks::small_cooperative_options(), {}, bound);
}

TEST_CASE_TEMPLATE("cooperative networks in a batch agree with the CPU: options", Model, Csnn<2, double>,
                   Bcsnn<2, double>) {
  CooperativeOptions o = batch_checks::small_cooperative_options();
  SUBCASE("no weights, three layers") {
    o.left_weights = o.right_weights = false;
    o.layers = 3;
  }
  SUBCASE("A alone, wide features, no dropout") {
    o.right_weights = false;
    o.channels = 17;
    compare<Model>(o, {.input_dropout = 0, .dropout = 0}, bound);
  }
  SUBCASE("B alone, whole tiles of channels, dropout of features alone") {
    o.left_weights = false;
    o.channels = 8;
    compare<Model>(o, {.input_dropout = 0.5, .dropout = 0}, bound);
  }
  SUBCASE("no residual, many classes") {
    o.residual = false;
    o.classes = 11;
  }
  SUBCASE("no residual, the other sign") {
    o.residual = false;
    o.negate_diffused = true;
  }
  SUBCASE("rotations alone") { o.conformal = false; }
  SUBCASE("layer norm, hidden layers of the readout") {
    o.norm = FeatureNorm::layer;
    o.readout_layers = 3;
    compare<Model>(o, {.dropout = 0}, bound);
  }
  SUBCASE("batch norm, several samples, hidden layers of the readout") {
    o.norm = FeatureNorm::batch;
    o.readout_layers = 2;
    compare<Model>(o, {.samples = 2}, bound, batch_checks::small_problem(false, 330));
    compare<Model>(o, {.dropout = 0}, bound);
  }
  SUBCASE("several samples, no input dropout, no KL") {
    compare<Model>(o, {.input_dropout = 0, .kl_weight = 0, .samples = 3}, bound);
  }
  compare<Model>(o, {}, bound);
}

TEST_CASE("cooperative networks in a batch agree with the CPU: activations") {
  for (std::size_t i = 0; i < names_of(Activation()).size(); ++i) {
    CAPTURE(to_string(static_cast<Activation>(i)));
    CooperativeOptions o = batch_checks::small_cooperative_options();
    o.activation = static_cast<Activation>(i);
    compare<Csnn<2, double>>(o, {}, bound);
  }
}

TEST_CASE("cooperative networks in a batch agree with the CPU: distributions of the maps") {
  using Model = Bcsnn<3, double>;
  CooperativeOptions o = batch_checks::small_cooperative_options();
  SUBCASE("an encoder of the learners' own, several samples") {
    o.separate_encoder = true;
    compare<Model>(o, {.samples = 3}, bound);
  }
  SUBCASE("learners in every layer, several samples") {
    o.layer_learners = true;
    o.layers = 3;
    compare<Model>(o, {.samples = 3}, bound);
    compare<Model>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, bound);
  }
  SUBCASE("the KL term estimated, layer norm, three layers") {
    o.norm = FeatureNorm::layer;
    o.layers = 3;
    compare<Model>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, bound);
  }
  SUBCASE("rotations alone, the KL term estimated") {
    o.conformal = false;
    compare<Model>(o, {.estimator = KlEstimator::monte_carlo}, bound);
  }
}

TEST_CASE_TEMPLATE("cooperative networks in a batch agree with the CPU: graphs", Model, Csnn<3, double>,
                   Bcsnn<2, double>) {
  compare<Model>(batch_checks::small_cooperative_options(), {}, bound, batch_checks::small_problem(true));
  // A node whose arcs are summed in segments, with one, two and three of them.
  const auto problem =
      batch_checks::with_degrees(batch_checks::small_problem(false, 330), {{3, 28}, {21, 122}, {40, 250}});
  CHECK(problem.graph.degree(164) > 2 * batch::detail::GraphView<double>::segment);
  compare<Model>(batch_checks::small_cooperative_options(), {.samples = 2}, bound, problem);
  CooperativeOptions o = batch_checks::small_cooperative_options();
  o.norm = FeatureNorm::batch;
  o.learner = NodeLearnerKind::sage;
  o.learner_layers = 2;
  compare<Model>(o, {}, bound, batch_checks::small_problem(true));
}

TEST_CASE_TEMPLATE("cooperative networks in a batch agree with the CPU: learners that look at neighbours", Model,
                   Csnn<2, double>, Bcsnn<2, double>) {
  CooperativeOptions o = batch_checks::small_cooperative_options();
  o.learner = NodeLearnerKind::sage_projected;
  SUBCASE("one convolution") { o.learner = NodeLearnerKind::sage; }
  SUBCASE("three convolutions with norms, several samples") {
    o.learner = NodeLearnerKind::sage;
    o.learner_layers = 3;
    compare<Model>(o, {.samples = 2}, bound, batch_checks::small_problem(false, 330));
    o.layer_learners = Model::bayesian;
    compare<Model>(o, {.samples = 2}, bound);
  }
  SUBCASE("one projected convolution, no dropout") { compare<Model>(o, {.dropout = 0}, bound); }
  SUBCASE("three projected convolutions, several samples") {
    o.learner_layers = 3;
    compare<Model>(o, {.samples = 2}, bound);
    o.learner_dropout = 0;
  }
  SUBCASE("of every layer, on nodes whose arcs are summed in segments") {
    o.learner_layers = 2;
    o.layer_learners = Model::bayesian;
    compare<Model>(o, {.samples = 2}, bound, batch_checks::small_problem(false, 330));
  }
  compare<Model>(o, {}, bound);
}

TEST_CASE_TEMPLATE("cooperative networks in a batch agree with the CPU: arcs as the graph lists them", Model,
                   Csnn<2, double>, Bcsnn<3, double>) {
  CooperativeOptions o = batch_checks::small_cooperative_options();
  o.directed = true;
  // Most arcs enter one node, where they are crowded or summed in segments; no arc leaves some nodes.
  SUBCASE("learners of the nodes alone") { compare<Model>(o, {}, bound, batch_checks::small_problem(false, 330)); }
  SUBCASE("learners that look at neighbours") {
    o.learner = NodeLearnerKind::sage_projected;
    o.learner_layers = 2;
    compare<Model>(o, {.samples = 2}, bound, batch_checks::small_problem(false, 330));
  }
  SUBCASE("the diagonal of the arcs that enter") {
    o.in_degree_diagonal = true;
    o.learner = NodeLearnerKind::sage;
  }
  compare<Model>(o, {}, bound);
}

TEST_CASE("cooperative networks in a batch agree with the CPU: single precision") {
  CooperativeOptions o = batch_checks::small_cooperative_options();
  o.channels = 8;
  compare<Bcsnn<2, float>>(o, {}, 512 * 1.2e-7);
  o.norm = FeatureNorm::batch;
  o.learner = NodeLearnerKind::sage;
  o.learner_layers = 2;
  compare<Bcsnn<2, float>>(o, {}, 512 * 1.2e-7);
}

TEST_CASE_TEMPLATE("the order of items and groups does not matter to the kernels of cooperative networks", Model,
                   Csnn<3, double>, Bcsnn<3, double>) {
  CooperativeOptions o = batch_checks::small_cooperative_options();
  o.norm = FeatureNorm::layer;
  SUBCASE("convolutions") {
    o.learner = NodeLearnerKind::sage_projected;
    o.learner_layers = 2;
  }
  SUBCASE("norms over nodes") {
    o.norm = FeatureNorm::batch;
    o.learner = NodeLearnerKind::sage;
    o.learner_layers = 3;
  }
  batch_checks::compare_orders<Model>(o);
}

TEST_CASE_TEMPLATE(
    "gradients of cooperative networks in a batch are derivatives of the loss, along every coordinate", Model,
    Csnn<2, double>, Bcsnn<3, double>) {
  const Dataset data = karate_club();
  CooperativeOptions o = karate_options(data);
  o.channels = 2;
  SUBCASE("learners of the nodes alone") {}
  SUBCASE("norms over nodes") {
    o.norm = FeatureNorm::batch;
    o.learner = NodeLearnerKind::sage;
    o.learner_layers = 2;
  }
  const Model model = batch_checks::disturbed<Model>(o, 1);  // no kink of a ReLU within a step
  const std::vector<std::uint8_t> roles(data.labels.size(), batch::training_node);
  batch::HostExecutor executor;
  batch::BatchNetwork<batch::HostExecutor, Model> network(executor, model, data.graph, data.features,
                                                          {data.labels, roles}, {});
  batch::Run run;
  run.dropout = batch::DropoutRule(0.3);
  run.training_share = 1 / static_cast<double>(data.labels.size());
  run.kl_weight = 0.3;
  network.runs().upload(std::span<const batch::Run>(&run, 1));
  std::vector<double> values(model.parameters().values().begin(), model.parameters().values().end());
  const auto loss = [&] {
    network.parameters().upload(values);
    network.train_pass(false, true, KlEstimator::automatic);
    double r = batch_checks::sums(executor, network.output().nll(), 1)[0];
    if (Model::bayesian)
      r += run.kl_weight * batch_checks::sums(executor, network.kl(), 1)[0] / static_cast<double>(network.pairs());
    return r;
  };
  static_cast<void>(loss());
  const std::vector<double> gradient = network.gradient().download();
  std::vector<double> expected;
  for (double& value : values) {
    constexpr double step = 1e-5;
    const double at = value;
    value = at + step;
    const double above = loss();
    value = at - step;
    expected.push_back((above - loss()) / (2 * step));
    value = at;
  }
  CHECK(batch_checks::relative(gradient, expected) <= 1e-7);  // differences of numbers near 1, divided by 2e-5
}

TEST_CASE("training cooperative networks by the batch engine follows the CPU for twenty epochs") {
  const Dataset data = karate_club();
  CooperativeOptions o = karate_options(data);
  TrainOptions options;
  options.epochs = 20;
  options.seed = 9;
  compare_training_of(Csnn<2, double>(o, 3), options, 1e-9, data);
  compare_training_of(Csnn<3, double>(o, 3), options, 1e-9, data, {1, 2.5});
  options.kl_schedule = KlSchedule::constant;
  options.kl_maximum = 0.1;
  compare_training_of(Bcsnn<2, double>(o, 3), options, 1e-9, data);
  options.samples = options.training_samples = 2;
  o.separate_encoder = true;
  compare_training_of(Bcsnn<3, double>(o, 3), options, 1e-9, data);
  o.separate_encoder = false;
  o.layer_learners = true;
  compare_training_of(Bcsnn<2, double>(o, 3), options, 1e-9, data);
  o.norm = FeatureNorm::batch;
  o.learner = NodeLearnerKind::sage;
  o.learner_layers = 2;
  compare_training_of(Bcsnn<2, double>(o, 3), options, 1e-9, data);
  o.layer_learners = false;
  compare_training_of(Csnn<3, double>(o, 3), options, 1e-9, data);
}

TEST_CASE("three cooperative networks side by side have the bits of single ones") {
  const Dataset data = karate_club();
  training_comparison::compare_seeds<Csnn<3, double>>(karate_options(data), data);
  CooperativeOptions o = karate_options(data);
  training_comparison::compare_seeds<Bcsnn<2, double>>(o, data);
  o.layer_learners = true;
  o.learner = NodeLearnerKind::sage_projected;
  o.learner_layers = 2;
  training_comparison::compare_seeds<Bcsnn<2, double>>(o, data);
  o.norm = FeatureNorm::batch;
  o.learner = NodeLearnerKind::sage;
  training_comparison::compare_seeds<Bcsnn<2, double>>(o, data);
}

}  // namespace test_batch_cooperative
