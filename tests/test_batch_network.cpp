/// \file
/// The batch engine on the host against the networks of the CPU: batches of two runs, every family
/// and option, losses, gradients and predictions (batch_checks.hpp).
#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "batch_comparison.hpp"
#include "heavy_tailed_posterior.hpp"

namespace test_batch_network {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using namespace sheafnn::rotation;
using batch_checks::compare;
using batch_checks::relative;
using batch_checks::small_options;
using batch_checks::Step;

// Sums of some dozens of terms through two or three layers, in another order than on the CPU.
constexpr double bound = 1e-11;

}  // namespace

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: families", Model, Bsnn<Diagonal<3>, double>,
                   Bsnn<SpecialOrthogonal<3>, double>, Bsnn<GeneralLinear<2>, double>, Nsd<Diagonal<2>, double>,
                   Nsd<SpecialOrthogonal<4>, double>, Nsd<GeneralLinear<3>, double>, Bsnn<Identity<2>, double>,
                   Nsd<Identity<3>, double>) {
  compare<Model>(small_options(), {}, bound);
}

TEST_CASE("the batch engine agrees with the CPU: options of Bayesian models") {
  using Model = Bsnn<SpecialOrthogonal<2>, double>;
  ModelOptions o = small_options();
  SUBCASE("fixed filters, wide features") {
    o.add_lp = o.add_hp = true;
    o.channels = 17;
  }
  SUBCASE("ELU of the sheaf learner") { o.sheaf_activation = SheafActivation::elu; }
  SUBCASE("one sheaf for all layers, several samples") {
    o.linear = true;
    o.layers = 3;
    compare<Model>(o, {.samples = 3}, bound);
  }
  SUBCASE("no edge weights, one encoder, no dropout") {
    o.edge_weights = false;
    o.separate_encoder = false;
    compare<Model>(o, {.input_dropout = 0, .dropout = 0}, bound);
  }
  SUBCASE("degree input, second linear layer, no activation") {
    o.degree_input = true;
    o.second_linear = true;
    o.activation = false;
  }
  SUBCASE("hidden layers of the sheaf learner") {
    o.learner_layers = 3;
    o.learner_width = 6;
  }
  SUBCASE("no left weights") { o.left_weights = false; }
  SUBCASE("no right weights") { o.right_weights = false; }
  SUBCASE("no weights, degree normalisation") {
    o.left_weights = o.right_weights = false;
    o.normalisation = Normalisation::degree;
  }
  SUBCASE("Monte Carlo KL, two samples, Cayley parametrisation") {
    o.parametrisation = RotationParametrisation::cayley;
    compare<Model>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, bound);
  }
  SUBCASE("block normalisation, raw features") {
    o.normalisation = Normalisation::block;
    o.feature_treatment = sheafnn::FeatureTreatment::none;
  }
  SUBCASE("block normalisation, fixed filters") {
    o.normalisation = Normalisation::block;
    o.add_lp = o.add_hp = true;
    compare<Model>(o, {}, bound);
    o.augmented_filters = true;
  }
  SUBCASE("only hidden dropout, no KL") {
    compare<Model>(o, {.input_dropout = 0, .dropout = 0.6, .kl_weight = 0}, bound);
  }
  compare<Model>(o, {}, bound);
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: diffusion and the next layer's mixing in one kernel",
                   Model, Bsnn<Diagonal<3>, double>, Bsnn<SpecialOrthogonal<3>, double>,
                   Bsnn<GeneralLinear<2>, double>, Nsd<SpecialOrthogonal<4>, double>,
                   Nsd<GeneralLinear<3>, double>, Bsnn<Identity<2>, double>, Bsnn<Conformal<2>, double>) {
  ModelOptions o = small_options();
  o.layers = 3;
  o.linear = !Model::bayesian;  // the sheaf of the next layer must be there before its features
  SUBCASE("one quad of channels") { o.channels = 4; }
  SUBCASE("four quads, fixed filters, several samples") {
    o.channels = 16;
    o.add_lp = o.add_hp = true;
    compare<Model>(o, {.samples = 2}, bound);
  }
  SUBCASE("eight quads, no node of high degree") {
    o.channels = 32;
    compare<Model>(o, {}, bound, batch_checks::small_problem(false, 40));
  }
  SUBCASE("no left weights, one filter, no dropout") {
    o.channels = 8;
    o.left_weights = false;
    o.add_hp = true;
    compare<Model>(o, {.dropout = 0}, bound);
  }
  SUBCASE("no right weights") {
    o.channels = 12;
    o.right_weights = false;
  }
  SUBCASE("no edges, no activation") {
    o.channels = 8;
    o.activation = false;
    compare<Model>(o, {}, bound, batch_checks::small_problem(true));
  }
  compare<Model>(o, {}, bound);
}

TEST_CASE_TEMPLATE("diffusion and the next layer's mixing in one kernel are what they are in two", Model,
                   Bsnn<Diagonal<3>, double>, Bsnn<SpecialOrthogonal<3>, double>, Nsd<GeneralLinear<3>, double>,
                   Bsnn<SpecialOrthogonal<3>, float>) {
  ModelOptions o = small_options();
  o.channels = 8;
  o.layers = 3;
  o.linear = !Model::bayesian;
  o.add_lp = true;
  const batch_checks::Problem problem = batch_checks::small_problem();
  // Lanes share the sums over channels and, with fewer of them for a node of high degree, over its arcs.
  const double rounding = std::is_same_v<typename Model::Scalar, float> ? 256 * 1.2e-7 : 1e-12;
  batch::HostExecutor one, two, again(batch::HostExecutor::Order::backward);
  two.exchanges = false;
  const auto run = [&](batch::HostExecutor& executor) {
    return batch_checks::run_batch<Model>(executor, problem, o, {.samples = 2});
  };
  const batch_checks::BatchOutcome joined = run(one), apart = run(two), turned = run(again);
  CHECK(relative(joined.gradient, apart.gradient) <= rounding);
  CHECK(relative(joined.log_probabilities, apart.log_probabilities) <= rounding);
  CHECK(relative(joined.probabilities, apart.probabilities) <= rounding);
  CHECK(joined.gradient != apart.gradient);  // so they were two ways
  CHECK(joined.gradient == turned.gradient);
  CHECK(joined.probabilities == turned.probabilities);
}

TEST_CASE("the batch engine agrees with the CPU: options of deterministic models") {
  using Model = Nsd<GeneralLinear<2>, double>;
  ModelOptions o = small_options();
  o.layers = 3;
  SUBCASE("one sheaf for all layers") { o.linear = true; }
  SUBCASE("fixed filter, hidden layer of the sheaf learner") {
    o.add_hp = true;
    o.learner_layers = 1;
    o.learner_width = 4;
  }
  SUBCASE("without dropout, none normalisation") {
    o.normalisation = Normalisation::none;
    compare<Model>(o, {.input_dropout = 0.5, .dropout = 0}, bound);
  }
  SUBCASE("second linear layer, no weights of layers") {
    o.second_linear = true;
    o.left_weights = o.right_weights = false;
  }
  SUBCASE("attention maps") { o.sheaf_activation = SheafActivation::attention; }
  SUBCASE("residual maps") { o.sheaf_activation = SheafActivation::residual; }
  SUBCASE("exponential maps") {
    o.sheaf_activation = SheafActivation::exponential;
    o.layers = 1;  // the condition of maps with large exponentials grows with every layer
  }
  compare<Model>(o, {}, bound);
}

TEST_CASE("the batch engine agrees with the CPU: what the sheaf learner reads") {
  ModelOptions o = small_options();
  const batch_checks::Problem problem = batch_checks::with_arc_features(batch_checks::small_problem());
  SUBCASE("sums over stalk coordinates") { o.learner = LearnerInput::summed; }
  SUBCASE("sums as published, a hidden layer") {
    o.learner = LearnerInput::summed_published;
    o.learner_layers = 1;
    o.learner_width = 3;
    o.add_lp = true;
  }
  SUBCASE("features of arcs") { o.edge_features = 2; }
  SUBCASE("sums, features of arcs, hidden layers, a filter") {
    o.learner = LearnerInput::summed;
    o.edge_features = 2;
    o.learner_layers = 2;
    o.filter = {PolynomialBasis::legendre, 2};
  }
  compare<Bsnn<SpecialOrthogonal<2>, double>>(o, {}, bound, problem);
  compare<Nsd<GeneralLinear<2>, double>>(o, {}, bound, problem);
}

TEST_CASE("the batch engine agrees with the CPU: layer norm, hidden layers of the readout") {
  ModelOptions o = small_options();
  o.layers = 3;
  SUBCASE("layer norm") { o.layer_norm = true; }
  SUBCASE("one hidden layer of the readout") { o.readout_layers = 2; }
  SUBCASE("both, two hidden layers, a filter, wide features, no dropout") {
    o.layer_norm = true;
    o.readout_layers = 3;
    o.filter = {PolynomialBasis::chebyshev, 2};
    o.channels = 17;
    compare<Bsnn<SpecialOrthogonal<2>, double>>(o, {.dropout = 0, .samples = 3}, bound);
  }
  SUBCASE("both, many classes") {
    o.layer_norm = true;
    o.readout_layers = 2;
    o.classes = 11;
  }
  compare<Bsnn<SpecialOrthogonal<2>, double>>(o, {}, bound);
  compare<Nsd<GeneralLinear<2>, double>>(o, {.samples = 2}, bound);
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: initial residuals", Model, Bsnn<Diagonal<3>, double>,
                   Bsnn<SpecialOrthogonal<2>, double>, Nsd<GeneralLinear<2>, double>, Nsd<Diagonal<1>, double>,
                   Nsd<SpecialOrthogonal<4>, double>, Nsd<Identity<3>, double>) {
  ModelOptions o = small_options();
  o.layers = 3;
  o.residual = {ResidualForm::initial, 0.3, 1.2};
  SUBCASE("fixed filters") { o.add_lp = o.add_hp = true; }
  SUBCASE("one sheaf, no A, wide features") {
    o.linear = true;
    o.left_weights = false;
    o.channels = 8;
  }
  SUBCASE("no B, a norm, no dropout") {
    o.right_weights = false;
    o.layer_norm = true;
    compare<Model>(o, {.dropout = 0, .samples = 2}, bound);
  }
  SUBCASE("neither, other normalisation, hidden layer of the readout") {
    o.left_weights = o.right_weights = false;
    o.normalisation = Normalisation::none;
    o.readout_layers = 2;
  }
  compare<Model>(o, {.samples = 2}, bound);
}

TEST_CASE("the batch engine agrees with the CPU: initial residuals on nodes whose arcs are summed in segments") {
  ModelOptions o = small_options();
  o.residual = {ResidualForm::initial, 0.2, 0.5};
  compare<Bsnn<SpecialOrthogonal<3>, double>>(o, {}, bound, batch_checks::small_problem(false, 600));
}

TEST_CASE("the batch engine agrees with the CPU: bases of polynomial filters") {
  // All in one family: what differs between them are the numbers of the recurrence and the coefficients.
  for (std::size_t i = 1; i < names_of(PolynomialBasis()).size(); ++i) {
    CAPTURE(to_string(static_cast<PolynomialBasis>(i)));
    ModelOptions o = small_options();
    o.filter = {static_cast<PolynomialBasis>(i), 4};
    o.filter.jacobi_alpha = 0.5;
    o.filter.jacobi_beta = -0.25;
    o.filter.gegenbauer_lambda = 0.7;
    compare<Nsd<GeneralLinear<2>, double>>(o, {}, bound);
  }
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: polynomial filters", Model, Bsnn<Diagonal<3>, double>,
                   Bsnn<SpecialOrthogonal<3>, double>, Bsnn<GeneralLinear<2>, double>, Nsd<Diagonal<2>, double>,
                   Nsd<SpecialOrthogonal<4>, double>, Nsd<GeneralLinear<3>, double>, Bsnn<Identity<2>, double>,
                   Nsd<Identity<3>, double>) {
  ModelOptions o = small_options();
  o.filter = {PolynomialBasis::legendre, 3};
  o.add_lp = Model::bayesian;
  o.add_hp = Model::stalk_dimension == 3;
  compare<Model>(o, {.samples = 2}, bound);
}

TEST_CASE("the batch engine agrees with the CPU: options of polynomial filters") {
  ModelOptions o = small_options();
  o.filter = {PolynomialBasis::gegenbauer, 3};
  Step step;
  SUBCASE("degree 0") { o.filter.degree = 0; }
  SUBCASE("degree 0, no high-pass term") {
    o.filter.degree = 0;
    o.filter.skip = HighPassSkip::off;
  }
  SUBCASE("the largest degree") { o.filter = {PolynomialBasis::chebyshev_interpolation, max_polynomial_degree}; }
  SUBCASE("degree 1, free coefficients, high-pass term of the mixed features") {
    o.filter.degree = 1;
    o.filter.coefficients = PolynomialCoefficients::free;
    o.filter.skip = HighPassSkip::mixed;
  }
  SUBCASE("degree 2, no high-pass term, no weights, one sheaf") {
    o.filter.degree = 2;
    o.filter.skip = HighPassSkip::off;
    o.left_weights = o.right_weights = false;
    o.linear = true;
    o.layers = 3;
  }
  SUBCASE("no weights, mixed features, no dropout, no activation") {
    o.filter.skip = HighPassSkip::mixed;
    o.left_weights = o.right_weights = o.activation = false;
    step = {.input_dropout = 0, .dropout = 0};
  }
  SUBCASE("published interpolation, another bound, several samples") {
    o.filter.basis = PolynomialBasis::chebyshev_interpolation;
    o.filter.published = true;
    o.filter.largest_eigenvalue = 2.5;
    step.samples = 3;
  }
  SUBCASE("published Jacobi, another normalisation, wide features") {
    o.filter.basis = PolynomialBasis::jacobi;
    o.filter.published = true;
    o.normalisation = Normalisation::degree;
    o.channels = 17;
    o.right_weights = false;
  }
  compare<Bsnn<SpecialOrthogonal<2>, double>>(o, step, bound);
  compare<Nsd<GeneralLinear<2>, double>>(o, step, bound);
}

TEST_CASE("the batch engine agrees with the CPU: polynomial filters on nodes whose arcs are summed in segments") {
  ModelOptions o = small_options();
  o.filter = {PolynomialBasis::chebyshev, 2};
  o.add_lp = true;
  compare<Bsnn<SpecialOrthogonal<3>, double>>(o, {.samples = 2}, bound, batch_checks::small_problem(false, 330));
  compare<Bsnn<Diagonal<3>, double>>(o, {}, bound, batch_checks::small_problem(true));
}

TEST_CASE("the batch engine agrees with the CPU: stalks of one coordinate, graphs without edges") {
  compare<Bsnn<SpecialOrthogonal<1>, double>>(small_options(), {}, bound);
  compare<Nsd<GeneralLinear<1>, double>>(small_options(), {}, bound);
  const batch_checks::Problem edgeless = batch_checks::small_problem(true);
  compare<Bsnn<Diagonal<3>, double>>(small_options(), {}, bound, edgeless);
  compare<Nsd<SpecialOrthogonal<4>, double>>(small_options(), {}, bound, edgeless);
}

TEST_CASE("the batch engine agrees with the CPU: nodes of one, two and three segments, full ones and others") {
  const batch_checks::Problem problem =
      batch_checks::with_degrees(batch_checks::small_problem(false, 330),
                                 {{3, 28}, {9, 36}, {21, 122}, {30, 126}, {40, 250}});
  constexpr int high = batch::detail::GraphView<double>::high_degree,
                size = batch::detail::GraphView<double>::segment;
  std::vector<Index> segments;
  for (const Index u : {9, 21, 40, 164}) {
    CHECK(problem.graph.degree(u) > high);
    segments.push_back((problem.graph.degree(u) + size - 1) / size);
  }
  CHECK(problem.graph.degree(21) == size);
  CHECK(segments == std::vector<Index>{1, 1, 2, 3});
  compare<Bsnn<SpecialOrthogonal<3>, double>>(small_options(), {.samples = 2}, bound, problem);
  compare<Nsd<GeneralLinear<2>, double>>(small_options(), {}, bound, problem);
}

TEST_CASE("the batch engine agrees with the CPU: more nodes of high degree than warps are for") {
  // A ring in which every node has 34 neighbours.
  batch_checks::Problem problem = batch_checks::small_problem(false, 4200);
  std::vector<Edge> edges;
  for (std::int32_t u = 0; u < 4200; ++u) {
    for (std::int32_t k = 1; k <= 17; ++k) edges.push_back({u, (u + k) % 4200});
  }
  problem.graph = Graph(4200, edges);
  compare<Nsd<Diagonal<2>, double>>(small_options(), {}, bound, problem);
}

TEST_CASE("sums of columns of any number of rows, on one level and on two") {
  batch::HostExecutor executor;
  for (const Index rows : {Index{1}, Index{255}, Index{257}, Index{131072}, Index{140001}}) {
    CAPTURE(rows);
    constexpr Index width = 2, runs = 2;
    std::vector<double> values(static_cast<std::size_t>(runs * rows * width));
    std::vector<double> expected(static_cast<std::size_t>(runs * width));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(i % 1021);  // sums of whole numbers are exact
      expected[i / static_cast<std::size_t>(rows * width) * width + i % width] += values[i];
    }
    const batch::Array<batch::HostExecutor, double> in(executor, "test", std::span<const double>(values));
    batch::detail::ColumnTree<batch::HostExecutor, double> tree(executor, runs, rows, width);
    tree.run(executor, in.data(), false);
    for (Index run = 0; run < runs; ++run) {
      double sums[width] = {};
      for (int lane = 0; lane < batch::max_lanes; ++lane) tree.partial().add<width>(run, lane, sums);
      for (Index column = 0; column < width; ++column) {
        CHECK(sums[column] == expected[static_cast<std::size_t>(run * width + column)]);
      }
    }
  }
}

TEST_CASE(
    "the batch engine agrees with the CPU: a node whose arcs are summed in segments, many "
    "classes") {
  ModelOptions o = small_options();
  o.classes = 11;
  o.add_lp = true;
  compare<Bsnn<SpecialOrthogonal<3>, double>>(o, {.samples = 2}, bound, batch_checks::small_problem(false, 330));
}

TEST_CASE("the batch engine agrees with the CPU: a posterior without closed form, Conformal maps") {
  using Model = SheafModel<Diagonal<2>, test::HeavyTailedPosterior, double>;
  ModelOptions o = small_options();
  compare<Model>(o, {.estimator = KlEstimator::automatic}, bound);
  o.linear = true;
  compare<Model>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, bound);
  // The posterior of the family by default, with both estimators.
  compare<Bsnn<Conformal<3>, double>>(small_options(), {.estimator = KlEstimator::automatic}, bound);
  compare<Bsnn<Conformal<2>, double>>(small_options(), {.estimator = KlEstimator::monte_carlo, .samples = 2},
                                      bound);
}

TEST_CASE("the order of items and groups does not matter to the kernels") {
  using Model = Bsnn<SpecialOrthogonal<3>, double>;
  ModelOptions o = small_options();
  o.add_lp = true;
  o.second_linear = true;
  o.learner_layers = 2;
  o.layer_norm = true;
  o.readout_layers = 2;
  o.learner = LearnerInput::summed;
  SUBCASE("a polynomial filter") { o.filter = {PolynomialBasis::chebyshev_interpolation, 3}; }
  SUBCASE("initial residuals") { o.residual.form = ResidualForm::initial; }
  SUBCASE("initial residuals, layers share launches") {
    o.residual.form = ResidualForm::initial;
    o.layer_norm = false;
  }
  batch_checks::compare_orders<Model>(o);
}

TEST_CASE("the batch engine agrees with the CPU: single precision") {
  // A few hundred roundings, some of which are amplified by derivatives near 1.
  ModelOptions o = small_options();
  compare<Bsnn<SpecialOrthogonal<3>, float>>(o, {}, 512 * 1.2e-7);
  o.channels = 8;
  o.layers = 3;
  compare<Bsnn<SpecialOrthogonal<3>, float>>(o, {}, 512 * 1.2e-7);
  o = small_options();
  o.filter = {PolynomialBasis::chebyshev, 3};
  compare<Bsnn<SpecialOrthogonal<3>, float>>(o, {}, 512 * 1.2e-7);
}

TEST_CASE("batch networks refuse labels, roles, sizes and noise that do not fit") {
  using Model = Bsnn<SpecialOrthogonal<2>, double>;
  using Network = batch::BatchNetwork<batch::HostExecutor, Model>;
  batch::HostExecutor executor;
  const batch_checks::Problem& problem = batch_checks::small_problem();
  const Model model(small_options());
  const Index n = problem.graph.node_count(), classes = small_options().classes;
  const auto refused = [&](const std::string& message, const std::vector<std::int32_t>& labels,
                           const std::vector<std::uint8_t>& roles, const std::vector<double>& weights,
                           const batch::BatchSize& size) {
    std::string said = "nothing is thrown";
    try {
      Network(executor, model, problem.graph, problem.features, {labels, roles, weights}, size);
    } catch (const std::invalid_argument& error) {
      said = error.what();
    }
    CHECK(said.substr(0, message.size()) == message);
  };
  const std::vector<std::int32_t> labels(problem.labels.begin(), problem.labels.end());
  const std::vector<std::uint8_t> roles(problem.roles.begin(), problem.roles.end());
  std::vector<std::int32_t> wrong = labels;
  wrong[2] = static_cast<std::int32_t>(classes);
  refused("labels[2]: " + std::to_string(classes), wrong, roles, {}, {});
  wrong[2] = -2;
  refused("labels[2]: -2", wrong, roles, {}, {});
  wrong[2] = -1;
  std::vector<std::uint8_t> some(roles.size(), 0);
  some[2] = batch::training_node;
  refused("roles[2]: 1", wrong, some, {}, {});
  wrong.pop_back();
  refused("size of labels: " + std::to_string(n - 1), wrong, roles, {}, {});
  some.pop_back();
  refused("size of roles: " + std::to_string(n - 1), labels, some, {}, {});
  refused("size of roles: 0", labels, {}, {}, {});
  refused("size of class_weights: 1", labels, roles, {1.0}, {});
  refused("class_weights: 0", labels, roles, std::vector<double>(static_cast<std::size_t>(classes)), {});
  refused("runs: 0", labels, roles, {}, {0, 1, 1});
  refused("training_copies: 0", labels, roles, {}, {1, 0, 1});
  refused("copies: 1", labels, roles, {}, {1, 2, 1});

  Network network(executor, model, problem.graph, problem.features, {labels, roles}, {1, 2, 2});
  const Index of_copy = model.sheaf_count() * network.pairs() * Model::Posterior::noise_size;
  const std::vector<double> noise(static_cast<std::size_t>(2 * of_copy), 0.5);
  const std::span<const double> given(noise);
  CHECK_THROWS_AS(network.set_noise(given.first(noise.size() - 1)), std::invalid_argument);
  network.set_noise(given.first(static_cast<std::size_t>(of_copy)));
  CHECK_THROWS_AS(network.train_pass(false, false, KlEstimator::automatic), std::invalid_argument);
  CHECK_THROWS_AS(network.evaluate(2), std::invalid_argument);
  CHECK_THROWS_AS(network.evaluate(0), std::invalid_argument);
  CHECK_THROWS_AS(network.evaluate(32769), std::invalid_argument);
  const std::vector<double> too_many(static_cast<std::size_t>(network.parameter_count()) + 1);
  CHECK_THROWS_AS(network.parameters().upload(too_many), std::invalid_argument);
}

TEST_CASE("a network that only evaluates reads the parameters of the other one, and any epoch") {
  using Model = Bsnn<SpecialOrthogonal<2>>;
  using Network = batch::BatchNetwork<batch::HostExecutor, Model>;
  batch::HostExecutor executor;
  const batch_checks::Problem& problem = batch_checks::small_problem();
  const Model model = batch_checks::disturbed<Model>(small_options(), 0);
  const batch::NodeTargetLists targets{problem.labels, problem.roles};
  Network network(executor, model, problem.graph, problem.features, targets, {1, 1, 3});
  Network evaluating(network, model, targets, 2);
  network.parameters().upload(model.parameters().values().view());
  const auto probabilities = [&](Network& own, std::uint32_t epoch, std::uint32_t behind) {
    batch::Run run;
    run.epoch = epoch;
    network.runs().upload(std::span<const batch::Run>(&run, 1));
    own.evaluate(3, behind);  // by the other one in two rounds
    return own.output().probabilities().download();
  };
  const std::vector<double> expected = probabilities(network, 5, 0);
  CHECK(probabilities(evaluating, 5, 0) == expected);
  CHECK(probabilities(evaluating, 6, 1) == expected);
  CHECK(probabilities(evaluating, 6, 0) != expected);
  CHECK_THROWS_WITH_AS(evaluating.train_pass(false, false, KlEstimator::automatic),
                       doctest::Contains("this network only evaluates"), std::invalid_argument);
}

}  // namespace test_batch_network
