// Sheaf hypergraph networks: the forward pass against explicit matrices for every option, training, prediction, checkpoints,
// hypergraphs without hyperedges, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "dense_algebra.hpp"
#include "hypergraph_task.hpp"
#include "network_passes.hpp"
#include "refusal.hpp"
#include "sheafnn/graph/synthetic_hypergraph.hpp"
#include "sheafnn/hypergraph.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "temporary_folder.hpp"

namespace hypergraph_network_test {

using namespace sheafnn;
using test::message_of;
using Matrix = Eigen::MatrixXd;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

double elu_of(double x) { return x > 0 ? x : std::expm1(x); }
/// A parameter of a model, out × in; a vector is a column.
template <class Model>
Matrix parameter(const Model& model, const std::string& name) {
  const auto& parameters = model.parameters();
  const auto id = parameters.find(name);
  const auto& info = parameters.info(id);
  const auto values = parameters.get(id, parameters.values());
  Matrix r(info.shape.front(), info.size / info.shape.front());
  for (Index i = 0; i < info.size; ++i) r(i / r.cols(), i % r.cols()) = values[static_cast<std::size_t>(i)];
  return r;
}

/// The network by its formulas, with explicit block matrices: maps by Family's chart of what the learner says, X as
/// (n d) × f.
template <class Model>
class Reference {
 public:
  using Family = typename Model::Family;
  static constexpr int D = Model::stalk_dimension;

  Reference(const Model& model, const Hypergraph& hypergraph, const tiny::Task& task)
      : model_(model), hypergraph_(hypergraph), n_(hypergraph.node_count()), f_(model.options().channels) {
    x_.resize(n_, tiny::Task::features);
    for (Index i = 0; i < x_.size(); ++i) {
      x_(i / x_.cols(), i % x_.cols()) = task.dense[static_cast<std::size_t>(i)];
    }
  }
  /// n × C raw outputs of a deterministic model.
  Matrix forward() const {
    const HypergraphOptions& o = model_.options();
    Matrix h = x_ * parameter(model_, "lin1.weight").transpose();
    h.rowwise() += parameter(model_, "lin1.bias").col(0).transpose();
    h = h.unaryExpr(&elu_of);
    Matrix x = stacked(h);
    std::vector<Matrix> maps;
    for (Index l = 0; l < o.layers; ++l) {
      const std::string number = std::to_string(l);
      if (l == 0 || !o.static_sheaf) maps = learned(x, "sheaf." + number + ".weight");
      Matrix y = x;
      if (o.right_weights) y = y * parameter(model_, "right." + number).transpose();
      if (o.left_weights) y = kronecker(parameter(model_, "left." + number)) * y;
      const Matrix delta = delta_of(maps, x) * y;
      Matrix bias = Matrix::Zero(1, f_);
      if (o.bias) bias = parameter(model_, "bias." + number).transpose();
      Matrix next;
      if (o.update == HypergraphUpdate::plain) {
        next = (y - delta).rowwise() + bias.row(0);
        if (l + 1 < o.layers) next = next.unaryExpr(&elu_of);
      } else {
        const Matrix step = (delta.rowwise() + bias.row(0)).unaryExpr(&elu_of);
        const Matrix gain = (1 + parameter(model_, "eps." + number).array().tanh()).matrix().asDiagonal();
        next = kronecker(gain) * x - step;
      }
      x = next;
    }
    Matrix out = flat(x);
    for (Index i = 0; i + 1 < o.readout_layers; ++i) {
      const std::string name = "head." + std::to_string(i);
      out = (out * parameter(model_, name + ".weight").transpose()).rowwise() +
            parameter(model_, name + ".bias").col(0).transpose();
      out = out.unaryExpr([](double v) { return 0.5 * v * std::erfc(-v / std::sqrt(2.0)); });
    }
    return (out * parameter(model_, "lin2.weight").transpose()).rowwise() +
           parameter(model_, "lin2.bias").col(0).transpose();
  }

 private:
  Matrix stacked(const Matrix& rows) const {
    Matrix r(n_ * D, f_);
    for (Index u = 0; u < n_; ++u) {
      for (Index i = 0; i < D; ++i) r.row(u * D + i) = rows.block(u, i * f_, 1, f_);
    }
    return r;
  }
  Matrix flat(const Matrix& x) const {
    Matrix r(n_, D * f_);
    for (Index u = 0; u < n_; ++u) {
      for (Index i = 0; i < D; ++i) r.block(u, i * f_, 1, f_) = x.row(u * D + i);
    }
    return r;
  }
  Matrix kronecker(const Matrix& a) const {
    Matrix r = Matrix::Zero(n_ * D, n_ * D);
    for (Index u = 0; u < n_; ++u) r.block(u * D, u * D, D, D) = a;
    return r;
  }
  std::vector<Index> members(Index e) const {
    std::vector<Index> r;
    for (Index m = hypergraph_.first_member(e); m < hypergraph_.first_member(e + 1); ++m) {
      r.push_back(hypergraph_.member(m));
    }
    return r;
  }
  std::vector<Matrix> learned(const Matrix& x, const std::string& name) const {
    Matrix z = flat(x);
    if (model_.options().learner == HypergraphLearner::averaged) {
      Matrix mean = Matrix::Zero(n_, f_);
      for (Index i = 0; i < D; ++i) mean += z.middleCols(i * f_, f_) / D;
      z = mean;
    }
    const Matrix weight = parameter(model_, name);
    const PointMap<Family> chart{*model_.options().parametrisation, *model_.options().sheaf_activation};
    std::vector<Matrix> r;
    for (Index i = 0; i < hypergraph_.pair_count(); ++i) {
      Eigen::VectorXd mean = Eigen::VectorXd::Zero(z.cols());
      const std::vector<Index> of = members(hypergraph_.hyperedge(i));
      for (const Index j : of) mean += z.row(hypergraph_.node(j)).transpose() / static_cast<double>(of.size());
      Eigen::VectorXd input(2 * z.cols());
      input << z.row(hypergraph_.node(i)).transpose(), mean;
      const Eigen::VectorXd raw = weight * input;
      typename Family::template Map<double> map;
      chart.map(raw.data(), map);
      r.push_back(Family::dense(map));
    }
    return r;
  }
  /// Δ, for a non-linear one at these features.
  Matrix delta_of(const std::vector<Matrix>& maps, const Matrix& x) const {
    const HypergraphOptions& o = model_.options();
    const Index size = n_ * D;
    Matrix degree = Matrix::Identity(size, size), laplacian = Matrix::Zero(size, size);
    const auto node = [&](Index i) { return hypergraph_.node(i) * D; };
    for (Index i = 0; i < hypergraph_.pair_count(); ++i) {
      degree.block(node(i), node(i), D, D) += maps[at(i)].transpose() * maps[at(i)];
    }
    const auto add_pair = [&](Index i, Index j, double weight) {
      Matrix row = Matrix::Zero(D, size);
      row.middleCols(node(i), D) += maps[at(i)];
      row.middleCols(node(j), D) -= maps[at(j)];
      laplacian += weight * row.transpose() * row;
    };
    for (Index e = 0; e < hypergraph_.hyperedge_count(); ++e) {
      const std::vector<Index> of = members(e);
      const double count = static_cast<double>(of.size());
      if (o.laplacian == HypergraphLaplacian::nonlinear) {
        add_discrepant(maps, x, of, add_pair);
        continue;
      }
      for (const Index i : of) {
        for (const Index j : of) {
          const Matrix product = maps[at(i)].transpose() * maps[at(j)];
          auto block = laplacian.block(node(i), node(j), D, D);
          if (o.laplacian == HypergraphLaplacian::published) {
            block += (i == j ? 1 : -1) / count * product;
          } else {
            block += ((i == j ? 1 : 0) - 1 / count) * product;
          }
        }
      }
    }
    if (o.laplacian == HypergraphLaplacian::published) {
      Matrix scale = Matrix::Zero(size, size);
      for (Index i = 0; i < size; ++i) {
        const Index hyperedges = hypergraph_.degree(i / D);
        scale(i, i) = hyperedges > 0 ? 1 / std::sqrt(static_cast<double>(hyperedges)) : 0;
      }
      return Matrix::Identity(size, size) - (scale - scale * laplacian * scale);
    }
    const Matrix root = dense_algebra::inverse_root(degree);
    return root * laplacian * root;
  }
  template <class AddPair>
  void add_discrepant(const std::vector<Matrix>& maps, const Matrix& x, const std::vector<Index>& of,
                      const AddPair& add_pair) const {
    const HypergraphOptions& o = model_.options();
    if (of.size() < 2) return;
    std::size_t best[2] = {0, 1};
    double largest = -1;
    for (std::size_t p = 0; p < of.size(); ++p) {
      for (std::size_t q = p + 1; q < of.size(); ++q) {
        Matrix difference = maps[at(of[p])] * x.middleRows(hypergraph_.node(of[p]) * D, D) -
                            maps[at(of[q])] * x.middleRows(hypergraph_.node(of[q]) * D, D);
        if (!o.projection.empty()) {
          difference = (difference * Eigen::Map<const Eigen::VectorXd>(o.projection.data(), f_)).eval();
        }
        if (difference.norm() <= largest) continue;
        largest = difference.norm();
        best[0] = p;
        best[1] = q;
      }
    }
    const double count = static_cast<double>(of.size()), c = o.mediators ? 1 / (2 * count - 3) : 1 / count;
    add_pair(of[best[0]], of[best[1]], c);
    for (std::size_t k = 0; o.mediators && k < of.size(); ++k) {
      if (k == best[0] || k == best[1]) continue;
      add_pair(of[best[0]], of[k], c);
      add_pair(of[best[1]], of[k], c);
    }
  }
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  const Model& model_;
  const Hypergraph& hypergraph_;
  Index n_, f_;
  Matrix x_;
};

template <class Model>
void check_forward() {
  const tiny::HypergraphTask task;
  for (const tiny::HypergraphSetting& setting : tiny::hypergraph_settings(false)) {
    CAPTURE(setting.name);
    CAPTURE(Model::Family::name);
    Model model(setting.model, 3);
    tiny::disturb(model.parameters(), 4, 0.5);
    const Matrix expected = Reference<Model>(model, task.hypergraph, task).forward();
    Network<Model> network(model, task.hypergraph, task.sparse);
    const auto outputs = network.forward();
    double worst = 0;
    for (Index u = 0; u < outputs.rows(); ++u) {
      for (Index c = 0; c < outputs.columns(); ++c)
        worst = std::max(worst, std::abs(outputs(u, c) - expected(u, c)));
    }
    CHECK(worst <= 512 * epsilon * std::max(1.0, expected.cwiseAbs().maxCoeff()));
  }
}

}  // namespace hypergraph_network_test

TEST_CASE("hypergraph networks: forward pass against explicit matrices") {
  using namespace hypergraph_network_test;
  check_forward<SheafHyperGnn<Diagonal<1>, double>>();
  check_forward<SheafHyperGnn<Diagonal<3>, double>>();
  check_forward<SheafHyperGnn<SpecialOrthogonal<3>, double>>();
  check_forward<SheafHyperGnn<GeneralLinear<2>, double>>();
}

TEST_CASE("hypergraph networks: training, prediction and checkpoints") {
  using namespace hypergraph_network_test;
  const HypergraphDataset data = synthetic_hypergraph(
      {.nodes = 120, .classes = 3, .features = 30, .words = 6, .hyperedges = 150, .homophily = 0.9, .splits = 1});
  HypergraphOptions options{.features = data.feature_count(), .channels = 4, .classes = data.class_count};
  const TrainOptions training{.epochs = 40, .learning_rate = 0.02, .threads = 1};
  SheafHyperGnn<Diagonal<2>> model(options, 1);
  const TrainResult result = train(model, data, data.splits[0], training);
  CHECK(result.test_accuracy > 0.8);
  CHECK(result.history.back().loss < 0.5 * result.history.front().loss);

  TrainOptions threaded = training;
  threaded.threads = 3;
  SheafHyperGnn<Diagonal<2>> same(options, 1);
  CHECK(train(same, data, data.splits[0], threaded).test_nll == result.test_nll);

  options.laplacian = HypergraphLaplacian::nonlinear;
  options.projection = random_projection(options.channels);
  options.mediators = true;
  using Bayesian = BayesianSheafHyperGnn<SpecialOrthogonal<2>>;
  Bayesian sampled(options, 1);
  const TrainResult of_sampled = train(sampled, data, data.splits[0], {.epochs = 40, .learning_rate = 0.02});
  CHECK(of_sampled.test_accuracy > 0.8);
  const Prediction prediction = predict(sampled, data, {.samples = 4, .seed = 2});
  CHECK(static_cast<Index>(prediction.label.size()) == data.node_count());
  CHECK(layer_features(sampled, data).nodes == data.node_count());

  const test::TemporaryFolder folder;
  io::save_checkpoint(folder / "model.safetensors", sampled);
  const Bayesian loaded = io::load_checkpoint<Bayesian>(folder / "model.safetensors");
  CHECK(loaded.options() == sampled.options());
  CHECK(predict(loaded, data, {.samples = 4, .seed = 2}).probabilities == prediction.probabilities);
  const std::string other = message_of<std::exception>([&] {
    static_cast<void>(io::load_checkpoint<SheafHyperGnn<SpecialOrthogonal<2>>>(folder / "model.safetensors"));
  });
  CHECK(other.find("model is bshgnn in the file, but shgnn in the program") != std::string::npos);
}

TEST_CASE("hypergraph networks: a training goes on where it stopped") {
  using namespace hypergraph_network_test;
  const HypergraphDataset data =
      synthetic_hypergraph({.nodes = 60, .classes = 2, .features = 10, .words = 4, .hyperedges = 40, .splits = 1});
  const HypergraphOptions options{.features = 10, .channels = 3, .classes = 2};
  using Model = BayesianSheafHyperGnn<GeneralLinear<2>, double>;
  Model whole(options, 1), parts(options, 1);
  const TrainOptions all{.epochs = 8, .dropout = 0.3};
  const double expected = train(whole, data, data.splits[0], all).test_nll;
  TrainOptions first = all;
  first.epochs = 5;
  std::optional<TrainingState> state;
  first.on_checkpoint = [&](const TrainingState& now) { state = now; };
  train(parts, data, data.splits[0], first);
  REQUIRE(state);
  Model resumed(options, 1);
  TrainOptions second = all;
  second.resume = &*state;
  CHECK(train(resumed, data, data.splits[0], second).test_nll == expected);
}

TEST_CASE("hypergraph networks: without hyperedges, and with one node") {
  using namespace hypergraph_network_test;
  const tiny::Task task;
  const HypergraphOptions options{.features = 4, .channels = 2, .classes = 3};
  test::TrainingPass<double> pass;
  pass.labels = task.labels;
  pass.nodes = task.train;
  pass.kl_weight = 0.1;
  for (const Index hyperedges : {0, 3}) {
    const Hypergraph hypergraph(tiny::Task::nodes, hyperedges, {});
    for (const auto laplacian :
         {HypergraphLaplacian::linear, HypergraphLaplacian::published, HypergraphLaplacian::nonlinear}) {
      HypergraphOptions with = options;
      with.laplacian = laplacian;
      BayesianSheafHyperGnn<GeneralLinear<2>, double> model(with, 1);
      Network network(model, hypergraph, task.sparse);
      const test::PassResult result = test::train_pass(network, pass);
      CHECK(std::isfinite(result.loss));
      CHECK(result.kl == 0);
      CHECK(std::all_of(network.gradient().begin(), network.gradient().end(),
                        [](double g) { return std::isfinite(g); }));
    }
  }
  const Hypergraph one = hypergraph_of_members(1, std::vector<std::vector<std::int32_t>>{{0}});
  const std::vector<double> values = {1, 2, 3, 4};
  const NodeFeatures features = NodeFeatures::from_dense(std::span<const double>(values), 1, 4);
  const SheafHyperGnn<SpecialOrthogonal<2>, double> model(options, 1);
  Network network(model, one, features);
  CHECK(std::isfinite(network.forward()(0, 0)));
}

TEST_CASE("hypergraph networks: what is refused") {
  using namespace hypergraph_network_test;
  using Model = SheafHyperGnn<Diagonal<2>>;
  const HypergraphOptions valid{.features = 4, .channels = 2, .classes = 3};
  const auto refused = [&](auto change, const std::string& part) {
    HypergraphOptions options = valid;
    change(options);
    const std::string text = message_of<std::exception>([&] { static_cast<void>(Model(options)); });
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  refused([](auto& o) { o.layers = 0; }, "layers: 0");
  refused([](auto& o) { o.mediators = true; },
          "mediators: true is not allowed; an option of the nonlinear Laplacian");
  refused(
      [](auto& o) {
        o.projection = {1, 2};
      },
      "projection: 2 numbers is not allowed; an option of the nonlinear");
  refused(
      [](auto& o) {
        o.laplacian = HypergraphLaplacian::nonlinear;
        o.projection = {1};
      },
      "must be one for each of the 2 channels");
  refused([](auto& o) { o.separate_encoder = true; }, "separate_encoder");
  refused([](auto& o) { o.readout_layers = 9; }, "readout_layers: 9");

  const Model model(valid);
  const tiny::HypergraphTask task;
  const Hypergraph other(3, 0, {});
  CHECK(message_of<std::exception>([&] {
          Network<Model>(model, other, task.sparse);
        }).find("must equal the number of nodes, 3") != std::string::npos);
  Network<Model> network(model, task.hypergraph, task.sparse);
  CHECK(message_of<std::exception>([&] { network.begin({}).begin_backward(); }).find("training = true") !=
        std::string::npos);
}
