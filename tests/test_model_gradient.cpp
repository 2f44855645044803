/// \file
/// What test_gradients_*.cpp share: the settings they walk through, the comparisons, and checks that these
/// comparisons notice an error.
#include <algorithm>
#include <cmath>

#include "map_kind.hpp"
#include "model_gradient.hpp"
#include "worst.hpp"

namespace model_gradient {
namespace {

using sheafnn::Normalisation;
using sheafnn::rotation::RotationParametrisation;

/// An option: how to turn it on and off.
struct Option {
  std::string name;
  std::function<void(Setting&)> on, off;
};

std::vector<Option> options_of(MapKind kind, int dimension, bool bayesian) {
  const bool rotations = kind == MapKind::rotation;
  const bool sampled = bayesian && kind != MapKind::fixed;
  std::vector<Option> r;
  const auto flag = [&](std::string name, bool sheafnn::ModelOptions::*member, bool on) {
    r.push_back(
        {std::move(name), [=](Setting& s) { s.model.*member = on; }, [=](Setting& s) { s.model.*member = !on; }});
  };
  const auto choice = [&](std::string name, auto on, auto off) { r.push_back({std::move(name), on, off}); };
  flag("add_lp", &sheafnn::ModelOptions::add_lp, true);
  flag("add_hp", &sheafnn::ModelOptions::add_hp, true);
  choice(
      "feature_treatment", [](Setting& s) { s.model.feature_treatment = sheafnn::FeatureTreatment::rows; },
      [](Setting& s) { s.model.feature_treatment = sheafnn::FeatureTreatment::none; });
  flag("second_linear", &sheafnn::ModelOptions::second_linear, true);
  flag("linear", &sheafnn::ModelOptions::linear, true);
  flag("no left_weights", &sheafnn::ModelOptions::left_weights, false);
  flag("no right_weights", &sheafnn::ModelOptions::right_weights, false);
  flag("no activation", &sheafnn::ModelOptions::activation, false);
  flag("layer_norm", &sheafnn::ModelOptions::layer_norm, true);
  choice(
      "3 readout layers", [](Setting& s) { s.model.readout_layers = 3; },
      [](Setting& s) { s.model.readout_layers = 1; });
  choice(
      "no gate but an initial residual",
      [](Setting& s) { s.model.residual = {.form = sheafnn::ResidualForm::initial, .alpha = 0.3, .theta = 0.9}; },
      [](Setting& s) { s.model.residual = {}; });
  choice(
      "no weights and activation but an initial residual, one sheaf",
      [](Setting& s) {
        s.model.residual.form = sheafnn::ResidualForm::initial;
        s.model.linear = true;
        s.model.left_weights = s.model.right_weights = s.model.activation = false;
      },
      [](Setting&) {});
  if (rotations) {
    choice(
        "edge_weights", [](Setting& s) { s.model.edge_weights = true; },
        [](Setting& s) { s.model.edge_weights = false; });
  }
  if (sampled) {
    choice(
        "separate_encoder", [](Setting& s) { s.model.separate_encoder = true; },
        [](Setting& s) { s.model.separate_encoder = s.model.degree_input = false; });
    choice(
        "degree_input", [](Setting& s) { s.model.separate_encoder = s.model.degree_input = true; },
        [](Setting& s) { s.model.degree_input = false; });
    choice(
        "Monte Carlo KL", [](Setting& s) { s.kl_estimator = sheafnn::KlEstimator::monte_carlo; },
        [](Setting& s) { s.kl_estimator = sheafnn::KlEstimator::closed_form; });
    choice(
        "3 samples", [](Setting& s) { s.samples = 3; }, [](Setting& s) { s.samples = 1; });
  }
  if (kind != MapKind::fixed) {
    const auto layers = [](Index count) {
      return [count](Setting& s) {
        s.model.learner_layers = count;
        s.model.learner_width = 3;
      };
    };
    const auto activation = [&](const std::string& name, sheafnn::SheafActivation a) {
      choice(
          name, [=](Setting& s) { s.model.sheaf_activation = a; },
          [](Setting& s) { s.model.sheaf_activation = sheafnn::SheafActivation::tanh; });
    };
    activation("identity of the sheaf learner", sheafnn::SheafActivation::identity);
    activation("ELU of the sheaf learner", sheafnn::SheafActivation::elu);
    if (kind == MapKind::dense || kind == MapKind::diagonal) {
      activation("residual maps", sheafnn::SheafActivation::residual);
    }
    if (kind == MapKind::dense && dimension > 1) activation("exponential", sheafnn::SheafActivation::exponential);
    if (bayesian) {
      choice(
          "published range of spread", [](Setting& s) { s.model.spread = sheafnn::SpreadRange::published; },
          [](Setting& s) { s.model.spread = sheafnn::SpreadRange::concentrated; });
    }
    const auto input = [&](const std::string& name, sheafnn::LearnerInput i) {
      choice(
          name, [=](Setting& s) { s.model.learner = i; },
          [](Setting& s) { s.model.learner = sheafnn::LearnerInput::concatenation; });
    };
    input("learner of sums as published", sheafnn::LearnerInput::summed_published);
    input("learner of sums", sheafnn::LearnerInput::summed);
    choice(
        "edge features", [](Setting& s) { s.model.edge_features = tiny::Task::arc_features; },
        [](Setting& s) { s.model.edge_features = 0; });
    if (kind == MapKind::dense && !bayesian && dimension > 1) {
      const auto attend = [](Setting& s) {
        s.model.sheaf_activation = sheafnn::SheafActivation::attention;
        s.model.normalisation = Normalisation::augmented;
      };
      choice("no activation but attention", attend, attend);
    }
    choice("1 hidden learner layer", layers(1), layers(0));
    choice("2 hidden learner layers", layers(2), layers(1));
  }
  choice(
      "input dropout", [](Setting& s) { s.input_dropout = 0.4; }, [](Setting& s) { s.input_dropout = 0; });
  choice(
      "dropout", [](Setting& s) { s.dropout = 0.3; }, [](Setting& s) { s.dropout = 0; });
  const auto normalisation = [&](Normalisation n) {
    choice(
        "normalisation " + std::string(to_string(n)), [=](Setting& s) { s.model.normalisation = n; },
        [](Setting& s) { s.model.normalisation = Normalisation::augmented; });
  };
  normalisation(Normalisation::none);
  normalisation(Normalisation::degree);
  normalisation(Normalisation::block);
  if (rotations) {
    const auto parametrisation = [&](RotationParametrisation p) {
      choice(
          "parametrisation " + std::string(to_string(p)), [=](Setting& s) { s.model.parametrisation = p; },
          [](Setting& s) { s.model.parametrisation = RotationParametrisation::householder; });
    };
    if (dimension == 2 || dimension == 3) parametrisation(RotationParametrisation::euler);
    parametrisation(RotationParametrisation::exponential);
    parametrisation(RotationParametrisation::cayley);
  }
  return r;
}

}  // namespace

std::vector<Setting> settings(MapKind kind, int dimension, bool bayesian) {
  const std::vector<Option> options = options_of(kind, dimension, bayesian);
  Setting plain;
  plain.name = "plain";
  plain.model.feature_treatment = sheafnn::FeatureTreatment::none;
  plain.model.edge_weights = false;
  plain.model.separate_encoder = false;
  Setting full = plain;
  full.name = "everything";
  for (const Option& option : options) {
    // What takes parts away would leave the others less to do.
    if (!option.name.starts_with("no ") && option.name != "linear") option.on(full);
  }
  std::vector<Setting> r = {plain, full};
  for (const Option& option : options) {
    Setting& with = r.emplace_back(plain);
    with.name = option.name + " alone";
    option.on(with);
    if (dimension > 3) continue;
    Setting& without = r.emplace_back(full);
    const bool was_on = !option.name.starts_with("no ") && option.name != "linear";
    without.name = "everything " + std::string(was_on ? "but " : "and ") + option.name;
    (was_on ? option.off : option.on)(without);
  }
  return r;
}

Comparison compare_gradient(ParameterSet<double>& parameters, const Buffer<double>& gradient,
                            const std::function<double()>& loss) {
  static const double step = std::cbrt(std::numeric_limits<double>::epsilon());
  const double size = std::max(1.0, std::abs(loss()));
  const auto difference = [&](double& x, double h) {
    const double saved = x;
    volatile double above = saved + h, below = saved - h;
    x = above;
    const double high = loss();
    x = below;
    const double low = loss();
    x = saved;
    return (high - low) / (above - below);
  };
  Comparison r;
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    double largest = size;
    for (Index i = 0; i < info.size; ++i) largest = std::max(largest, std::abs(gradient[info.offset + i]));
    const double bound = 64 * step * step * largest;
    for (Index i = 0; i < info.size; ++i) {
      double& x = parameters.values()[info.offset + i];
      const double derivative = gradient[info.offset + i];
      double expected = difference(x, step);
      double error = std::abs(derivative - expected) / bound;
      if (!(error <= 1)) {
        expected = difference(x, step / 32);
        error = std::abs(derivative - expected) / (32 * bound);
      }
      if (!(error <= r.worst)) {
        r.worst = test::worse(error, r.worst);
        r.where = info.name + "[" + std::to_string(i) + "]: derivative " + std::to_string(derivative) +
                  ", central difference " + std::to_string(expected);
      }
    }
  }
  return r;
}

void check_gradient(ParameterSet<double>& parameters, const Buffer<double>& gradient,
                    const std::function<double()>& loss) {
  const Comparison comparison = compare_gradient(parameters, gradient, loss);
  INFO(comparison.where);
  CHECK(comparison.worst <= 1);
}

double compare_forward(const PassResult& result, const std::vector<double>& log_probabilities,
                       const reference::Problem& problem) {
  const reference::Result expected = reference::forward(problem);
  const double bound = 512 * std::numeric_limits<double>::epsilon();
  double worst = 0;
  const auto compare = [&](double value, reference::Real exact) {
    const double error =
        static_cast<double>(std::abs(value - exact) / (bound * std::max(reference::Real(1), std::abs(exact))));
    worst = test::worse(error, worst);
  };
  compare(result.nll, expected.nll);
  compare(result.kl, expected.kl);
  compare(result.loss, expected.loss);
  for (Index u = 0; u < expected.log_probabilities.rows(); ++u) {
    for (Index c = 0; c < expected.log_probabilities.cols(); ++c) {
      compare(log_probabilities.at(static_cast<std::size_t>(u * expected.log_probabilities.cols() + c)),
              expected.log_probabilities(u, c));
    }
  }
  return worst;
}

TEST_CASE("model comparisons notice an error in any tensor and any output") {
  using Model = sheafnn::Bsnn<sheafnn::Diagonal<1>, double>;
  const tiny::Task task;
  Model model(tiny::options(), 7);
  ParameterSet<double>& parameters = model.parameters();
  tiny::disturb(parameters, 8, 0.3);
  test::TrainingPass<double> pass;
  pass.labels = task.labels;
  pass.nodes = task.train;
  pass.kl_weight = 0.3;
  sheafnn::Network<Model> network(model, task.graph, task.sparse);
  const PassResult result = test::train_pass(network, pass);
  Buffer<double> gradient = network.gradient();
  const std::vector<double> log_probabilities = test::last_outputs(network);

  const auto loss = [&] { return test::train_pass(network, pass).loss; };
  const Buffer<double> before = parameters.values();
  CHECK(compare_gradient(parameters, gradient, loss).worst <= 1);
  CHECK(std::equal(before.begin(), before.end(), parameters.values().begin()));
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    CAPTURE(info.name);
    double& entry = gradient[info.offset + info.size / 2];
    const double right = entry;
    for (const double wrong :
         {right + 4e-7 * std::max(1.0, result.loss), -right, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
      if (std::abs(wrong - right) < 3e-7) continue;
      entry = wrong;
      const Comparison comparison = compare_gradient(parameters, gradient, loss);
      CHECK_FALSE(comparison.worst <= 1);
      CHECK(comparison.where.starts_with(info.name + "["));
    }
    entry = right;
  }

  reference::Problem problem = problem_of(model, task);
  problem.kl_weight = pass.kl_weight;
  problem.noise = draw_noise(model, task.graph, 0, 0, 0, 1);
  const auto forward = [&](const PassResult& values, const std::vector<double>& outputs) {
    return compare_forward(values, outputs, problem);
  };
  CHECK(forward(result, log_probabilities) <= 1);
  for (double PassResult::*member : {&PassResult::nll, &PassResult::kl, &PassResult::loss}) {
    PassResult wrong = result;
    wrong.*member += 1e-12;
    CHECK_FALSE(forward(wrong, log_probabilities) <= 1);
  }
  std::vector<double> wrong = log_probabilities;
  wrong[3 * static_cast<std::size_t>(task.classes) + 2] *= 1 + 1e-12;
  CHECK_FALSE(forward(result, wrong) <= 1);
}

}  // namespace model_gradient
