/// \file
/// Fuzz target: one training step of networks on graphs, features, labels, options and noise that the bytes choose, in
/// float and in double: graphs with isolated nodes and self-loops, features of zero and of 1e±30, labels that are unknown
/// or no class, options out of range.
#include <algorithm>
#include <optional>

#include "contract.hpp"
#include "network_passes.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace {

using fuzz::Choices;
using sheafnn::Index;

/// What both scalars get.
struct Task {
  sheafnn::Graph graph;
  sheafnn::NodeFeatures features;
  std::vector<std::int32_t> labels, nodes;
  sheafnn::ModelOptions options;
  double input_dropout = 0, dropout = 0, kl_weight = 0;
  sheafnn::KlEstimator estimator = sheafnn::KlEstimator::automatic;
  Index samples = 1;
  std::uint64_t seed = 0;
  std::vector<double> disturbance;  ///< added to parameters
  int noise = 0;                    ///< 0 none, 1 of the right size, else of another
  std::vector<double> noise_values;
  bool moderate = true;  ///< nothing is so large that rounding or overflow is expected
};

sheafnn::ModelOptions some_options(Choices& c, Index features) {
  sheafnn::ModelOptions o;
  const auto pick = [&](Index usual, Index odd) { return c.byte() < 250 ? usual : odd; };
  o.features = pick(features, features + 1);
  o.classes = pick(2 + c.below(3), c.below(2));
  o.channels = pick(1 + c.below(4), c.below(2) * 1025);
  o.layers = pick(1 + c.below(3), c.below(2) * 65);
  const int flags = c.byte(), more = c.byte();
  o.feature_treatment = (flags & 1) != 0 ? sheafnn::FeatureTreatment::rows : sheafnn::FeatureTreatment::none;
  o.add_lp = (flags & 2) != 0;
  o.add_hp = (flags & 4) != 0;
  if ((flags & 8) != 0) o.edge_weights = (flags & 16) != 0;
  if ((flags & 32) != 0) o.separate_encoder = (flags & 64) != 0;
  o.degree_input = (flags & 128) != 0;
  o.second_linear = (more & 1) != 0;
  o.linear = (more & 2) != 0;
  o.left_weights = (more & 4) == 0;
  o.right_weights = (more & 8) == 0;
  o.activation = (more & 16) == 0;
  o.layer_norm = (more & 32) != 0;
  if ((more & 64) != 0) {
    o.learner_layers = pick(c.below(3), -1);
    o.learner_width = pick(c.below(4), 1025);
    o.readout_layers = pick(1 + c.below(2), 9);
    o.learner =
        static_cast<sheafnn::LearnerInput>(c.below(static_cast<int>(names_of(sheafnn::layers::LearnerInput()).size())));
    o.sheaf_activation =
        static_cast<sheafnn::SheafActivation>(c.below(static_cast<int>(names_of(sheafnn::SheafActivation()).size())));
    o.normalisation =
        static_cast<sheafnn::Normalisation>(c.below(static_cast<int>(names_of(sheafnn::sheaf::Normalisation()).size())));
    o.parametrisation = static_cast<sheafnn::rotation::RotationParametrisation>(c.below(4));
  }
  if ((more & 128) != 0) {
    o.filter.basis = static_cast<sheafnn::PolynomialBasis>(
        c.below(static_cast<int>(names_of(sheafnn::layers::PolynomialBasis()).size())));
    o.filter.degree = pick(c.below(5), 65);
    o.filter.coefficients = static_cast<sheafnn::PolynomialCoefficients>(
        c.below(static_cast<int>(names_of(sheafnn::layers::PolynomialCoefficients()).size())));
    o.filter.skip =
        static_cast<sheafnn::HighPassSkip>(c.below(static_cast<int>(names_of(sheafnn::layers::HighPassSkip()).size())));
    o.filter.published = c.flag();
    if (c.byte() > 200) o.filter.jacobi_alpha = c.number<double>();
    if (c.byte() > 200) o.filter.gegenbauer_lambda = c.number<double>();
    if (c.byte() > 200) o.filter.largest_eigenvalue = c.number<double>();
    if (!o.filter.active()) {
      if (c.flag()) o.residual.form = sheafnn::ResidualForm::initial;
      o.residual.alpha = c.byte() < 240 ? std::abs(c.unit<double>()) : c.number<double>();
      o.residual.theta = c.byte() < 240 ? std::abs(c.unit<double>()) : c.number<double>();
    }
  }
  return o;
}

/// \throws std::invalid_argument  what the library refuses
Task some_task(Choices& c) {
  Task t;
  const Index n = c.byte() < 250 ? 1 + c.below(10) : 0;
  std::vector<sheafnn::Edge> edges(static_cast<std::size_t>(c.below(20)));
  for (sheafnn::Edge& e : edges) {
    const auto end = [&] {
      return static_cast<std::int32_t>(c.byte() % (n + (c.byte() > 252 ? 1 : 0) + (n == 0 ? 1 : 0)));
    };
    e = {end(), end()};
  }
  const Index p = 1 + c.below(4);
  t.options = some_options(c, p);
  for (const double parameter : {1 + t.options.filter.jacobi_alpha, 1 + t.options.filter.jacobi_beta,
                                 t.options.filter.gegenbauer_lambda, t.options.filter.largest_eigenvalue}) {
    t.moderate = t.moderate && parameter > 0.1 && parameter < 10;
  }
  std::vector<double> dense(static_cast<std::size_t>(n * p));
  const int scale = c.byte();
  for (double& x : dense) {
    x = scale < 180   ? c.unit<double>()
        : scale < 190 ? c.unit<double>() * 1e30
        : scale < 200 ? c.unit<double>() * 1e-30
                      : c.moderate<double>();
    if (c.byte() < 60) x = 0;
    t.moderate = t.moderate && std::abs(x) < 1e3 && (x == 0 || std::abs(x) > 1e-3);
  }
  for (Index u = 0; u < n; ++u) {
    t.labels.push_back(c.byte() < 250 ? static_cast<std::int32_t>(c.below(3)) - 1 + (t.options.classes > 2 ? 1 : 0)
                                      : static_cast<std::int32_t>(c.byte()) - 5);
    if (c.byte() < 200) t.nodes.push_back(static_cast<std::int32_t>(u));
  }
  if (c.byte() > 252 && !t.nodes.empty()) t.nodes.push_back(t.nodes.front());
  // Without normalisation, layer after layer multiplies features by squares of features.
  t.moderate =
      t.moderate && (t.options.normalisation != sheafnn::Normalisation::none ||
                     (t.options.sheaf_activation == sheafnn::SheafActivation::tanh && !t.options.filter.active()));
  // exp of large outputs is infinite.
  t.moderate = t.moderate && t.options.sheaf_activation != sheafnn::SheafActivation::exponential;
  t.input_dropout = c.byte() < 220 ? c.below(2) * 0.4 : c.number<double>();
  t.dropout = c.byte() < 220 ? c.below(2) * 0.3 : c.number<double>();
  t.kl_weight = c.byte() < 230 ? c.below(2) * 0.5 : c.number<double>();
  t.moderate = t.moderate && std::abs(t.kl_weight) < 1e3;
  t.estimator = static_cast<sheafnn::KlEstimator>(c.below(3));
  t.samples = c.byte() < 250 ? 1 + c.below(2) : 0;
  t.seed = c.raw<std::uint32_t>();
  const int disturbed = c.byte();
  for (int left = disturbed < 200 ? 0 : c.below(16); left > 0; --left) {
    t.disturbance.push_back(disturbed < 240 ? c.unit<double>() : c.number<double>());
    t.moderate = t.moderate && std::abs(t.disturbance.back()) <= 1;
  }
  t.noise = c.byte() < 160 ? 0 : 1 + c.below(2);
  for (int left = c.below(8); t.noise > 0 && left > 0; --left) {
    t.noise_values.push_back(c.byte() < 240 ? c.unit<double>() : c.number<double>());
    t.moderate = t.moderate && std::abs(t.noise_values.back()) <= 1;
  }
  // What readers and users make of them: both refuse what is not finite.
  const std::vector<double> arcs(edges.size(), 0.5);
  t.graph = sheafnn::Graph(n, edges);
  t.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(dense), n, p);
  if (t.options.edge_features == 0 && scale % 16 == 3) {
    t.options.edge_features = 1;
    t.graph.set_arc_features(std::vector<double>(static_cast<std::size_t>(t.graph.arc_count()), 0.5), 1);
  }
  return t;
}

struct Step {
  bool done = false;
  double objective = 0;
  std::string refusal;  ///< why, if it is not done
};

template <class Model>
Step train_step(const Task& t) {
  using S = typename Model::Scalar;
  Step step;
  fuzz::keeps_contract<std::invalid_argument>([&] {
    Model model(t.options, t.seed);
    for (std::size_t i = 0; i < t.disturbance.size() && model.parameters().size() > 0; ++i) {
      const Index k = static_cast<Index>(i * 7919) % model.parameters().size();
      model.parameters().values()[k] += static_cast<S>(t.disturbance[i]);
    }
    sheafnn::Network<Model> network(model, t.graph, t.features);
    std::vector<std::vector<S>> noise;
    test::TrainingPass<S> pass;
    if constexpr (Model::bayesian) {
      if (t.noise > 0) {
        const Index size = t.graph.arc_count() * Model::Posterior::noise_size + (t.noise > 1 ? 1 : 0);
        for (Index k = 0; k < std::max<Index>(t.samples, 1) * model.sheaf_count(); ++k) {
          auto& one = noise.emplace_back(static_cast<std::size_t>(size), S(0.25));
          for (std::size_t i = 0; i < one.size() && i < t.noise_values.size(); ++i) {
            one[i] = static_cast<S>(t.noise_values[i]);
          }
        }
        for (const auto& one : noise) pass.noise.push_back(one);
      }
    }
    pass.labels = t.labels;
    pass.nodes = t.nodes;
    pass.seed = t.seed;
    pass.input_dropout = t.input_dropout;
    pass.dropout = t.dropout;
    pass.kl_weight = t.kl_weight;
    pass.kl_estimator = t.estimator;
    pass.samples = t.samples;
    const test::PassResult result = test::train_pass(network, pass);
    step = {true, result.loss};
    const auto gradient = network.gradient();
    fuzz::expect(gradient.size() == model.parameters().size(), "training step: size of the gradient");
    const bool finite = std::all_of(gradient.begin(), gradient.end(), [](S x) { return std::isfinite(x); });
    if (t.moderate) {
      fuzz::expect(std::isfinite(result.loss), "training step: a loss of moderate input is not finite");
      fuzz::expect(finite, "training step: a gradient of moderate input is not finite");
      fuzz::expect(result.nll >= 0, "training step: a negative log-likelihood below 0");
    }
    // An evaluation: log-probabilities of every node sum to 1.
    const Index drawn = test::evaluate(network, t.seed, 0, 2, [&](Index) {
      const auto outputs = network.outputs();
      for (Index u = 0; t.moderate && u < outputs.rows(); ++u) {
        double sum = 0;
        for (const S x : outputs.row(u)) sum += std::exp(static_cast<double>(x));
        fuzz::expect(std::abs(sum - 1) < 1e-4, "training step: probabilities do not sum to 1");
      }
    });
    fuzz::expect(drawn >= 1, "training step: no sample");
  }, &step.refusal);
  return step;
}

template <template <class, class> class Kind, class Family>
void both_scalars(const Task& t) {
  const Step narrow = train_step<Kind<Family, float>>(t), wide = train_step<Kind<Family, double>>(t);
  // Features that are infinite in float are refused there; their rows are scaled in double before.
  sheafnn::NodeFeatures input = t.features;
  if (t.options.feature_treatment == sheafnn::FeatureTreatment::rows) input.normalise_rows();
  const bool fits = std::all_of(input.values().begin(), input.values().end(),
                                [](double x) { return std::isfinite(static_cast<float>(x)); });
  if (narrow.done != (wide.done && fits)) {
    fuzz::broken("training step: refused in one precision only", narrow.refusal + wide.refusal);
  }
}
template <class Family, class S>
using Bayesian = sheafnn::Bsnn<Family, S>;
template <class Family, class S>
using Deterministic = sheafnn::Nsd<Family, S>;

}  // namespace

SHEAFNN_FUZZ_TARGET(training_step, 1 << 12, 1 << 24) {
  if (input.empty()) return;
  Choices choices(input.subspan(1));
  std::optional<Task> task;
  if (!fuzz::keeps_contract<std::invalid_argument>([&] { task = some_task(choices); })) return;
  switch (input[0] % 3) {
    case 0:
      return both_scalars<Bayesian, sheafnn::Diagonal<2>>(*task);
    case 1:
      return both_scalars<Deterministic, sheafnn::GeneralLinear<2>>(*task);
    default:
      return both_scalars<Bayesian, sheafnn::SpecialOrthogonal<3>>(*task);
  }
}
