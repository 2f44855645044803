// Cooperative networks without residual against the published equations, written out here with dense matrices: a layer
// is X' = norm(act(Δ_inᵀ Δ_out Y)), as the authors' code has it. Outputs, and gradients against central differences of what
// is written out here, along every coordinate.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model_gradient.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/core/eigen.hpp"

namespace cooperative_published_test {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using sheafnn::Activation;
using sheafnn::FeatureNorm;
using sheafnn::NodeLearnerKind;

constexpr Index nodes = tiny::Task::nodes;

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::gelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Activation::elu:
      return x > 0 ? x : std::expm1(x);
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::identity:
      return x;
  }
  return std::numeric_limits<double>::quiet_NaN();
}
MatrixXd activated(Activation activation, const MatrixXd& x) {
  return x.unaryExpr([=](double value) { return activate(activation, value); });
}

/// The product of the reflections of the columns of I + (φ below the diagonal); −1 times it would change nothing.
MatrixXd householder(const VectorXd& phi, Index d) {
  MatrixXd columns = MatrixXd::Identity(d, d), r = MatrixXd::Identity(d, d);
  Index next = 0;
  for (Index i = 1; i < d; ++i) {
    for (Index j = 0; j < i; ++j) columns(i, j) = phi(next++);
  }
  for (Index j = 0; j < d; ++j) {
    const VectorXd v = columns.col(j);
    r = r * (MatrixXd::Identity(d, d) - 2 * v * v.transpose() / v.squaredNorm());
  }
  return d % 2 == 1 ? MatrixXd(-r) : r;
}

/// A⁻¹ B without pivots, which I + κ U does not need.
MatrixXd solved(MatrixXd a, MatrixXd b) {
  for (Index i = 0; i < a.rows(); ++i) {
    b.row(i) /= a(i, i);
    a.row(i) = (a.row(i) / a(i, i)).eval();
    for (Index j = 0; j < a.rows(); ++j) {
      if (j == i) continue;
      b.row(j) -= a(j, i) * b.row(i);
      a.row(j) = (a.row(j) - a(j, i) * a.row(i)).eval();
    }
  }
  return b;
}

/// A network's architecture, parameters and noise, and the task.
struct Problem {
  sheafnn::CooperativeOptions options;
  Index d = 1;
  bool bayesian = false;
  std::vector<std::pair<Index, Index>> arcs;  ///< u → v
  const sheafnn::layers::ParameterSet<double>* parameters = nullptr;
  std::vector<std::vector<double>>
      noise;  ///< per layer: of every node first T's and then S's rotation, by rows, and scale
  tiny::Task task;

  /// A parameter, by rows.
  [[nodiscard]] MatrixXd at(const std::string& name) const {
    const auto id = parameters->find(name);
    const sheafnn::layers::ParameterInfo& info = parameters->info(id);
    const std::vector<double> values = parameters->get(id, parameters->values());
    const Index rows = info.shape.front(), columns = static_cast<Index>(values.size()) / rows;
    return Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(values.data(),
                                                                                                    rows, columns);
  }
  [[nodiscard]] MatrixXd affine(const std::string& name, const MatrixXd& x) const {
    return (x * at(name + ".weight").transpose()).rowwise() + at(name + ".bias").col(0).transpose();
  }
  [[nodiscard]] MatrixXd learned(const std::string& name, const MatrixXd& x) const {
    if (options.learner == NodeLearnerKind::mlp) {
      return affine(name + ".output", activated(Activation::relu, affine(name + ".hidden", x)));
    }
    MatrixXd mean = MatrixXd::Zero(x.rows(), x.cols());
    VectorXd entering = VectorXd::Zero(x.rows());
    const MatrixXd sent = options.learner == NodeLearnerKind::sage
                              ? x
                              : activated(Activation::relu, affine(name + ".projection", x));
    for (const auto& [u, v] : arcs) {
      mean.row(v) += sent.row(u);
      entering(v) += 1;
    }
    for (Index v = 0; v < x.rows(); ++v) mean.row(v) /= std::max(entering(v), 1.0);
    return affine(name + ".neighbour", mean) + x * at(name + ".self.weight").transpose();
  }
  /// Rotations and scales of all nodes. \param side  0: T, 1: S
  [[nodiscard]] std::vector<MatrixXd> maps(const MatrixXd& raw, Index l, Index side, VectorXd& scale) const {
    const Index q = d * (d - 1) / 2;
    std::vector<MatrixXd> r;
    scale = VectorXd::Ones(nodes);
    for (Index u = 0; u < nodes; ++u) {
      MatrixXd rotation = householder(raw.row(u).head(q).array().tanh().matrix().transpose(), d);
      double logarithm = options.conformal ? raw(u, bayesian ? q + 1 : q) : 0.0;
      if (bayesian) {
        const double* given = noise[static_cast<std::size_t>(l)].data() + (side * nodes + u) * (d * d + 1);
        const double inverse = 0.95 / (1 + std::exp(-raw(u, q))) + 0.025, kappa = (1 - inverse) / (1 + inverse);
        const MatrixXd one = MatrixXd::Identity(d, d),
                       uniform = Eigen::Map<const MatrixXd>(given, d, d).transpose();
        rotation = solved(one + kappa * uniform, (uniform + kappa * one) * rotation);
        const double deviation = -raw(u, q + 2);
        logarithm += std::exp(-(deviation > 0 ? deviation : std::expm1(deviation))) * given[d * d];
      }
      scale(u) = options.conformal ? std::exp(std::min(logarithm, std::log(10.0))) : 1.0;
      r.push_back(rotation * scale(u));
    }
    return r;
  }

  /// Log-probabilities, n × C.
  [[nodiscard]] MatrixXd log_probabilities() const {
    const auto& o = options;
    const Index f = o.channels;
    MatrixXd features(nodes, o.features);
    for (Index i = 0; i < features.size(); ++i)
      features(i / o.features, i % o.features) = task.dense[static_cast<std::size_t>(i)];
    MatrixXd x = activated(o.activation, affine("lin1", features));
    const MatrixXd shared = o.separate_encoder ? activated(o.activation, affine("lin_maps", features)) : x;
    for (Index l = 0; l < o.layers; ++l) {
      const std::string number = std::to_string(l);
      const bool own = !bayesian || o.layer_learners;
      const MatrixXd& read = own ? x : shared;
      VectorXd tau, sigma;
      const std::vector<MatrixXd> t = maps(learned(own ? "out." + number : "out", read), l, 0, tau),
                                  s = maps(learned(own ? "in." + number : "in", read), l, 1, sigma);
      VectorXd leaving = VectorXd::Zero(nodes), entering = VectorXd::Zero(nodes);
      for (const auto& [u, v] : arcs) {
        leaving(u) += tau(u) * tau(u);
        entering(v) += sigma(v) * sigma(v);
      }
      const VectorXd a = (leaving.array() + 1).rsqrt(), b = (entering.array() + 1).rsqrt();
      MatrixXd out = MatrixXd::Zero(nodes * d, nodes * d), in = out;
      for (const auto& [u, v] : arcs) {
        const MatrixXd transport = t[static_cast<std::size_t>(u)].transpose() * s[static_cast<std::size_t>(v)];
        out.block(u * d, u * d, d, d).diagonal().array() += std::pow(a(u) * tau(u), 2);
        out.block(u * d, v * d, d, d) -= a(u) * a(v) * transport;
        const Index w = o.in_degree_diagonal ? v : u;
        in.block(w * d, w * d, d, d).diagonal().array() += std::pow(b(w) * sigma(w), 2);
        in.block(u * d, v * d, d, d) -= b(u) * b(v) * transport;
      }
      MatrixXd y(nodes * d, f);
      for (Index u = 0; u < nodes; ++u) {
        MatrixXd row(d, f);
        for (Index i = 0; i < d * f; ++i) row(i / f, i % f) = x(u, i);
        if (o.left_weights) row = (at("left." + number) * row).eval();
        if (o.right_weights) row = (row * at("right." + number).transpose()).eval();
        y.middleRows(u * d, d) = row;
      }
      const MatrixXd z = activated(o.activation, in * (out * y));
      for (Index u = 0; u < nodes; ++u) {
        for (Index i = 0; i < d * f; ++i) x(u, i) = z(u * d + i / f, i % f);
      }
      if (o.norm == FeatureNorm::none) continue;
      const bool of_nodes = o.norm == FeatureNorm::layer;
      if (!of_nodes) x.transposeInPlace();
      for (Index i = 0; i < x.rows(); ++i) {
        const Eigen::RowVectorXd centred = x.row(i).array() - x.row(i).mean();
        x.row(i) = centred / std::sqrt(centred.squaredNorm() / static_cast<double>(x.cols()) + 1e-5);
      }
      if (!of_nodes) x.transposeInPlace();
      const Eigen::RowVectorXd weight = at("norm." + number + ".weight").col(0).transpose(),
                               bias = at("norm." + number + ".bias").col(0).transpose();
      x = ((x.array().rowwise() * weight.array()).rowwise() + bias.array()).matrix().eval();
    }
    for (Index i = 0; i + 1 < o.readout_layers; ++i)
      x = activated(Activation::gelu, affine("head." + std::to_string(i), x));
    MatrixXd r = affine("lin2", x);
    for (Index u = 0; u < nodes; ++u) r.row(u).array() -= std::log(r.row(u).array().exp().sum());
    return r;
  }
  [[nodiscard]] double loss() const {
    const MatrixXd of_nodes = log_probabilities();
    double sum = 0;
    for (const std::int32_t u : task.train) sum -= of_nodes(u, task.labels[static_cast<std::size_t>(u)]);
    return sum / static_cast<double>(task.train.size());
  }
};

struct Setting {
  std::string name;
  sheafnn::CooperativeOptions options;
};
std::vector<Setting> settings(int dimension, bool bayesian) {
  sheafnn::CooperativeOptions plain;
  plain.features = tiny::Task::features;
  plain.classes = tiny::Task::classes;
  plain.channels = 2;
  plain.layers = 2;
  plain.learner_width = 3;
  plain.feature_treatment = sheafnn::FeatureTreatment::none;
  plain.residual = false;
  std::vector<Setting> r = {{"plain", plain}};
  const auto add = [&](const std::string& name, const std::function<void(sheafnn::CooperativeOptions&)>& change) {
    r.push_back({name, plain});
    change(r.back().options);
  };
  add("one layer", [](auto& o) { o.layers = 1; });
  add("layer norm", [](auto& o) { o.norm = FeatureNorm::layer; });
  add("batch norm", [](auto& o) { o.norm = FeatureNorm::batch; });
  add("no left weights", [](auto& o) { o.left_weights = false; });
  add("no right weights", [](auto& o) { o.right_weights = false; });
  add("no weights", [](auto& o) { o.left_weights = o.right_weights = false; });
  add("directed", [](auto& o) { o.directed = true; });
  add("in-degree diagonal", [](auto& o) { o.directed = o.in_degree_diagonal = true; });
  add("3 readout layers", [](auto& o) { o.readout_layers = 3; });
  add("17 channels", [](auto& o) {
    o.channels = 17;
    o.layers = 1;
  });
  if (dimension == 2) {
    for (const Activation activation :
         {Activation::elu, Activation::relu, Activation::tanh, Activation::sigmoid, Activation::identity}) {
      add(std::string(to_string(activation)), [=](auto& o) { o.activation = activation; });
    }
  }
  for (const NodeLearnerKind learner : {NodeLearnerKind::sage, NodeLearnerKind::sage_projected})
    add(std::string(to_string(learner)), [=](auto& o) { o.learner = learner; });
  if (dimension > 1 && !bayesian) add("no scales", [](auto& o) { o.conformal = false; });
  if (bayesian) {
    add("separate encoder", [](auto& o) { o.separate_encoder = true; });
    add("layer learners", [](auto& o) { o.layer_learners = true; });
  }
  add("all", [=](auto& o) {
    o.norm = FeatureNorm::layer;
    o.directed = true;
    o.readout_layers = 2;
    o.layers = 3;
    o.layer_learners = bayesian;
    o.learner = NodeLearnerKind::sage;
  });
  return r;
}

template <class Model>
void check_model() {
  constexpr Index d = Model::stalk_dimension;
  static const std::vector<sheafnn::Edge> list = {{0, 1}, {2, 0}, {1, 2}, {2, 1}, {3, 1},
                                                  {3, 2}, {3, 4}, {4, 2}, {5, 4}};
  const sheafnn::Graph graph(nodes, list);
  for (const Setting& setting : settings(Model::stalk_dimension, Model::bayesian)) {
    CAPTURE(Model::kind);
    CAPTURE(d);
    CAPTURE(setting.name);
    Model model(setting.options, 7);
    tiny::disturb(model.parameters(), 8, 0.3);
    Problem problem;
    problem.options = setting.options;
    problem.d = d;
    problem.bayesian = Model::bayesian;
    problem.parameters = &model.parameters();
    for (const sheafnn::Edge& edge : list) {
      problem.arcs.emplace_back(edge.u, edge.v);
      const bool twice = std::find_if(list.begin(), list.end(), [&](const sheafnn::Edge& other) {
                           return other.u == edge.v && other.v == edge.u && edge.u > edge.v;
                         }) != list.end();
      if (setting.options.directed) continue;
      problem.arcs.pop_back();
      if (twice) continue;
      problem.arcs.emplace_back(edge.u, edge.v);
      problem.arcs.emplace_back(edge.v, edge.u);
    }
    test::TrainingPass<double> pass;
    pass.labels = problem.task.labels;
    pass.nodes = problem.task.train;
    if (Model::bayesian) {
      for (Index l = 0; l < setting.options.layers; ++l) {
        std::vector<double>& noise = problem.noise.emplace_back();
        for (Index i = 0; i < 2 * nodes; ++i) {
          VectorXd phi(d * (d - 1) / 2);
          for (Index k = 0; k < phi.size(); ++k) phi(k) = 2 * tiny::number(20, (l * 2 * nodes + i) * 8 + k);
          const MatrixXd rotation = householder(phi, d);
          for (Index k = 0; k < d * d; ++k) noise.push_back(rotation(k / d, k % d));
          noise.push_back(1.5 * tiny::number(21, l * 2 * nodes + i));
        }
      }
      for (const std::vector<double>& noise : problem.noise) pass.noise.emplace_back(noise);
    }

    sheafnn::Network<Model> network(model, graph, problem.task.sparse);
    const double loss = test::train_pass(network, pass).loss;
    // Some hundred operations in a row on numbers of size 1.
    constexpr double bound = 512 * std::numeric_limits<double>::epsilon();
    const std::vector<double> outputs = test::last_outputs(network);
    const MatrixXd expected = problem.log_probabilities();
    REQUIRE(static_cast<Index>(outputs.size()) == expected.size());
    double worst = 0;
    for (Index i = 0; i < expected.size(); ++i) {
      const double value = expected(i / expected.cols(), i % expected.cols());
      worst =
          std::max(worst, std::abs(outputs[static_cast<std::size_t>(i)] - value) / std::max(1.0, std::abs(value)));
    }
    CHECK(worst <= bound);
    CHECK(std::abs(loss - problem.loss()) <= bound * std::max(1.0, loss));
    const sheafnn::Buffer<double> gradient = network.gradient();
    const model_gradient::Comparison comparison =
        model_gradient::compare_gradient(model.parameters(), gradient, [&] { return problem.loss(); });
    INFO(comparison.where);
    CHECK(comparison.worst <= 1);

    // The opposite sign, which files of version 1 have: a single layer without norm then gives the readout the negative.
    if (setting.name != "one layer") continue;
    sheafnn::CooperativeOptions negated = setting.options;
    negated.negate_diffused = true;
    Model other(negated, 7);
    std::copy_n(model.parameters().values().data(), model.parameters().size(), other.parameters().values().data());
    sheafnn::layers::ParameterSet<double>& parameters = other.parameters();
    const auto id = parameters.find("lin2.weight");
    std::vector<double> weights = parameters.get(id, parameters.values());
    for (double& weight : weights) weight = -weight;
    parameters.set(id, weights);
    sheafnn::Network<Model> opposite(other, graph, problem.task.sparse);
    test::train_pass(opposite, pass);
    CHECK(test::last_outputs(opposite) == outputs);
    const sheafnn::Buffer<double> other_gradient = opposite.gradient();
    for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
      CAPTURE(info.name);
      const auto of = parameters.find(info.name);
      std::vector<double> bar = parameters.get(of, other_gradient);
      if (info.name == "lin2.weight") {
        for (double& value : bar) value = -value;
      }
      CHECK(bar == parameters.get(of, gradient));
    }
  }
}

}  // namespace cooperative_published_test

TEST_CASE("without residual, cooperative networks compute the published equations") {
  using namespace cooperative_published_test;
  check_model<sheafnn::Csnn<1, double>>();
  check_model<sheafnn::Csnn<2, double>>();
  check_model<sheafnn::Csnn<3, double>>();
}
TEST_CASE("without residual, Bayesian cooperative networks compute the published equations") {
  using namespace cooperative_published_test;
  check_model<sheafnn::Bcsnn<2, double>>();
  check_model<sheafnn::Bcsnn<3, double>>();
}
TEST_CASE("negate_diffused belongs to layers without residual") {
  sheafnn::CooperativeOptions options;
  options.features = options.classes = 2;
  options.negate_diffused = true;
  CHECK_THROWS_WITH_AS((sheafnn::Csnn<2>(options)), doctest::Contains("negate_diffused"), std::invalid_argument);
}
