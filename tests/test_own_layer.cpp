/// \file
/// Kinds of layers written from outside the library, as equations and by hand: gradients along every coordinate, alone, with
/// norms and mixed with the library's layers; threads; checkpoints; options that no kind suits.
#include <doctest/doctest.h>

#include <cmath>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/layers.hpp>
#include <sheafnn/sheaf/planted.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "model_gradient.hpp"
#include "own_layers.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace own_network {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"
#include "../examples/own_network.cpp"
#pragma GCC diagnostic pop
}  // namespace own_network

namespace test_own_layer {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using own_layers::AnchorLayer, own_layers::AverageLayer, own_layers::Mixed, own_layers::ModelOf;

// The layer of examples/own_layer.cpp by hand.
template <class T>
struct HandWeights {
  WeightVector<T> gamma, rho;  // of layer l, in checkpoints: gamma.l and rho.l
  void declare(ParameterList<T>& list, const LayerSetting& of) {
    list.vector(gamma, "gamma", {of.coordinates}, constant_values(0.5));
    list.vector(rho, "rho", {of.coordinates}, constant_values(0));
  }
};

template <class Family, class S>
class HandLayer final : public WeightedLayer<Family, S, HandWeights> {
 public:
  HandLayer(const Graph& graph, const DiffusionShape<S>& shape, const LayerSetting& of)
      : HandLayer::WeightedLayer(graph, shape, of),
        dropping_(graph.own_node_count(), shape.row()),
        laplacian_(graph, shape),
        z_(graph.node_count() * shape.row()),
        direct_(z_.size()) {}
  DropoutMask& mask() noexcept override { return dropping_.mask(); }

  void forward(const LayerCall<Family, S>& call) override {
    this->begin(call);
    dropping_.forward(call.execution, this->own(call.x).rows(), call.active_dropout());
    laplacian_.forward(call, dropping_.output(), this->at_nodes(z_));
    for_numbers(call.execution, [&](Index i, Index at, Index from) {
      const S x = dropping_.output().data()[from], gamma = std::tanh(this->weights_.gamma[i]);
      this->output_[at] = x - gamma * z_[at] + std::tanh(this->weights_.rho[i]) * (x - x * x * x);
    });
  }
  void backward(const LayerBackwardCall<Family, S>& call) override {
    this->check(call);
    for_numbers(call.execution, [&](Index i, Index at, Index from) {
      const S x = dropping_.output().data()[from], bar = call.output_bar.data()[at], z = z_[at];
      const S gamma = std::tanh(this->weights_.gamma[i]), rho = std::tanh(this->weights_.rho[i]);
      this->weights_bar_.gamma[i] -= (1 - gamma * gamma) * bar * z;
      this->weights_bar_.rho[i] += (1 - rho * rho) * bar * (x - x * x * x);
      direct_[at] = bar * (1 + rho * (1 - 3 * x * x));
      z_[at] = -gamma * bar;  // the derivative of z in its place
    });
    laplacian_.backward(call, this->at_nodes(z_), call.x_bar);
    for_numbers(call.execution, [&](Index, Index at, Index from) { call.x_bar.data()[from] += direct_[at]; });
    dropping_.backward_in_place(call.execution, this->own(call.x_bar).rows());
  }

 private:
  // body(i, number of the output, number of X) for all numbers of coordinate i, each coordinate by one thread.
  template <class Body>
  void for_numbers(Execution execution, const Body& body) const {
    const Index d = this->diffusion_->coordinates, f = this->diffusion_->channels;
    const NodeSelection nodes = this->own_nodes();
    parallel_for(execution, d, 1, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        for (Index k = 0; k < nodes.count(); ++k) {
          for (Index c = 0; c < f; ++c) body(i, (k * d + i) * f + c, (nodes[k] * d + i) * f + c);
        }
      }
    });
  }
  DropoutLayer<S> dropping_;
  LaplacianStep<Family, S> laplacian_;
  Buffer<S> z_, direct_;
};
/// What a layer may do wrong, or differently, when it declares its weights.
template <template <class> class WeightsType>
struct Declaring {
  template <class Family, class S>
  class Kind final : public WeightedLayer<Family, S, WeightsType> {
   public:
    Kind(const Graph& graph, const DiffusionShape<S>& shape, const LayerSetting& of)
        : Kind::WeightedLayer(graph, shape, of) {}
    DropoutMask& mask() noexcept override { return mask_; }
    void forward(const LayerCall<Family, S>&) override {}
    void backward(const LayerBackwardCall<Family, S>&) override {}

   private:
    DropoutMask mask_;
  };
};
template <class T>
struct NamedTwice {
  WeightVector<T> gamma, rho;
  void declare(ParameterList<T>& list, const LayerSetting&) {
    list.vector(gamma, "gamma", {1}, constant_values(1));
    list.vector(rho, "gamma", {1}, constant_values(1));
  }
};
template <class T>
struct OfLearner {
  WeightVector<T> gamma;
  void declare(ParameterList<T>& list, const LayerSetting&) {
    list.group = ParameterGroup::sheaf_learner;
    list.vector(gamma, "gamma", {1}, constant_values(1));
  }
};
template <class Family, class S>
using TwiceNamed = Declaring<NamedTwice>::Kind<Family, S>;
template <class Family, class S>
using SlowLayer = Declaring<OfLearner>::Kind<Family, S>;

/// Compares derivatives of the loss with differences, of all nodes' outputs and of some, and the derivatives on two
/// threads with the derivatives on one.
///
/// \param own  names of parameters none of whose derivatives may be 0
template <class Model>
void check_gradient(const ModelOptions& options, double dropout,
                    const std::vector<std::string>& own = {"gamma.1", "rho.1"}) {
  const tiny::Task task;
  Model model(options, 3);
  tiny::disturb(model.parameters(), 4, 0.3);
  for (const bool some : {false, true}) {
    CAPTURE(some);
    test::TrainingPass<double> pass{.labels = task.labels, .nodes = task.train, .seed = 5, .dropout = dropout};
    pass.kl_weight = 0.2;
    pass.only_nodes = some;
    Network network(model, task.graph, task.sparse), threaded(model, task.graph, task.sparse, 2);
    const auto loss = [&] { return test::train_pass(network, pass).loss; };
    static_cast<void>(loss());
    const Buffer<double> gradient = network.gradient();
    CHECK(test::train_pass(threaded, pass).loss == loss());
    CHECK(std::equal(gradient.begin(), gradient.end(), threaded.gradient().begin()));
    const auto comparison = model_gradient::compare_gradient(model.parameters(), gradient, loss);
    INFO(comparison.where);
    CHECK(comparison.worst <= 1);
    for (const std::string& name : own) {
      const ParameterInfo& info = model.parameters().info(model.parameters().find(name));
      for (Index i = 0; i < info.size; ++i) CHECK(gradient[info.offset + i] != 0);
    }
  }
}

}  // namespace

TEST_CASE("own layer: gradients of whole models along every coordinate, and threads") {
  ModelOptions options = tiny::options();
  check_gradient<ModelOf<PointMass<GeneralLinear<2>>>>(options, 0.3);
  options.add_lp = options.layer_norm = true;
  check_gradient<ModelOf<DefaultPosterior<SpecialOrthogonal<3>>>>(options, 0);
  check_gradient<ModelOf<PointMass<GeneralLinear<2>>, LayerKinds<HandLayer>>>(options, 0.3);
  options.linear = true;
  options.layers = 4;
  check_gradient<Mixed<PointMass<Diagonal<2>>>>(options, 0.3, {"kappa.1", "tau.1", "kappa.3", "tau.3"});
  check_gradient<Mixed<DefaultPosterior<SpecialOrthogonal<2>>>>(options, 0, {"kappa.1", "tau.3"});
  options.layers = 3;
  check_gradient<ModelOf<PointMass<Identity<2>>>>(options, 0.3);
  check_gradient<ModelOf<PointMass<Diagonal<2>>, LayerKinds<AverageLayer>>>(options, 0.3, {});
}

TEST_CASE("own layer: an equation is the layer that is written by hand") {
  const tiny::Task task;
  ModelOptions options = tiny::options();
  options.add_hp = true;
  options.channels = 19;  // whole packs and the rest
  const auto gradient = [&]<class Kinds>(std::type_identity<Kinds>) {
    ModelOf<DefaultPosterior<SpecialOrthogonal<3>>, Kinds> model(options, 3);
    tiny::disturb(model.parameters(), 4, 0.3);
    Network network(model, task.graph, task.sparse);
    const test::TrainingPass<double> pass{.labels = task.labels, .nodes = task.train, .seed = 5, .dropout = 0.3};
    static_cast<void>(test::train_pass(network, pass));
    return std::vector<double>(network.gradient().begin(), network.gradient().end());
  };
  const std::vector<double> own = gradient(std::type_identity<LayerKinds<own_layers::ReactionLayer>>());
  const std::vector<double> expected = gradient(std::type_identity<LayerKinds<HandLayer>>());
  REQUIRE(own.size() == expected.size());
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    worst = test::worse(worst, std::abs(own[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  CHECK(worst <= 1e-13 * largest);  // sums in other orders
}

TEST_CASE("own network: kinds of the library at places of one's own") {
  using Kinds = LayerKinds<own_network::Far, own_network::Near>;
  ModelOptions options = tiny::options();
  options.layers = 3;
  options.filter = {.basis = PolynomialBasis::legendre, .degree = 3};
  check_gradient<ModelOf<DefaultPosterior<SpecialOrthogonal<3>>, Kinds>>(options, 0,
                                                                         {"poly.logits", "eps.0", "eps.2"});
  check_gradient<ModelOf<PointMass<Diagonal<2>>, Kinds>>(options, 0.3, {"poly.logits", "eps.0", "eps.2"});

  // Where a filter is off, its layers are refused.
  options.filter = {};
  using Mixed = ModelOf<PointMass<Diagonal<2>>, Kinds>;
  const tiny::Task task;
  const Mixed model(options);
  CHECK_THROWS_AS(Network(model, task.graph, task.sparse), std::invalid_argument);
}

TEST_CASE("own layer: parameters are named as they are declared, and checkpoints hold them") {
  using Model = ModelOf<PointMass<Diagonal<2>>>;
  const Model fresh(tiny::options(), 3);
  for (const auto& [name, value] : {std::pair{"gamma.0", 0.5}, {"gamma.1", 0.5}, {"rho.0", 0.0}}) {
    const ParameterInfo& info = fresh.parameters().info(fresh.parameters().find(name));
    CHECK(info.shape == std::vector<Index>{2});
    for (Index i = 0; i < 2; ++i) CHECK(fresh.parameters().values()[info.offset + i] == value);
  }
  Model model = fresh;
  tiny::disturb(model.parameters(), 4, 0.3);
  const test::TemporaryFolder folder;
  const std::string path = folder.path() / "own.safetensors";
  io::save_checkpoint(path, model);
  const Model loaded = io::load_checkpoint<Model>(path);
  CHECK(std::equal(model.parameters().values().begin(), model.parameters().values().end(),
                   loaded.parameters().values().begin()));
  const tiny::Task task;
  Network before(model, task.graph, task.sparse), after(loaded, task.graph, task.sparse);
  static_cast<void>(before.forward({}));
  static_cast<void>(after.forward({}));
  CHECK(test::last_outputs(before) == test::last_outputs(after));
  // Weights of other layers are not taken for it.
  CHECK_THROWS_AS(static_cast<void>(io::load_checkpoint<Nsd<Diagonal<2>, double>>(path)), std::runtime_error);
}

TEST_CASE("own layer: options that no kind of the model suits are refused") {
  using Model = ModelOf<PointMass<Diagonal<2>>>;
  ModelOptions options = tiny::options();
  options.filter.basis = PolynomialBasis::chebyshev;
  CHECK_THROWS_WITH_AS(Model{options},
                       "filter.basis: chebyshev is not allowed; the model's LayerKinds have no layer with it",
                       std::invalid_argument);
  options.filter = {};
  options.residual.form = ResidualForm::initial;
  CHECK_THROWS_WITH_AS(Model{options},
                       "residual.form: initial is not allowed; the model's LayerKinds have no layer with it",
                       std::invalid_argument);
  using Seconds = ModelOf<PointMass<Diagonal<2>>, LayerKinds<AnchorLayer>>;
  CHECK_THROWS_WITH_AS(Seconds{tiny::options()},
                       "layer: 0 is not allowed; none of the model's LayerKinds suits it", std::invalid_argument);
}

TEST_CASE("own layer: two parameters of one name, or one without a name, are refused") {
  using Twice = ModelOf<PointMass<Diagonal<2>>, LayerKinds<TwiceNamed>>;
  CHECK_THROWS_WITH_AS(
      Twice{tiny::options()},
      "name of a parameter: gamma.0 is not allowed; the model has a parameter of that name already",
      std::invalid_argument);
  ParameterTable table;
  CHECK_THROWS_AS(table.add("", {1}, ParameterGroup::network), std::invalid_argument);
}

TEST_CASE("own layer: the group that a layer declares its weights in ends with the layer") {
  using Model = ModelOf<PointMass<Diagonal<2>>, LayerKinds<SlowLayer>>;
  const Model model(tiny::options());
  const auto group = [&](const char* name) {
    return model.parameters().info(model.parameters().find(name)).group;
  };
  CHECK(group("gamma.0") == ParameterGroup::sheaf_learner);
  CHECK(group("gamma.1") == ParameterGroup::sheaf_learner);
  CHECK(group("lin2.weight") == ParameterGroup::network);
}

TEST_CASE("own layer: a network follows its model to other arrays of parameters") {
  using Model = ModelOf<PointMass<Diagonal<2>>>;
  const tiny::Task task;
  Model model(tiny::options(), 3);
  Network network(model, task.graph, task.sparse);
  static_cast<void>(network.forward({}));
  const double* const before = model.parameters().values().data();
  Model other(tiny::options(), 9);
  Network expected(other, task.graph, task.sparse);
  static_cast<void>(expected.forward({}));
  const auto outputs = test::last_outputs(expected);
  model = Model(other);
  REQUIRE(model.parameters().values().data() != before);
  static_cast<void>(network.forward({}));
  CHECK(test::last_outputs(network) == outputs);
}

}  // namespace test_own_layer
