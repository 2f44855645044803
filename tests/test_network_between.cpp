/// \file
/// The layers of a network between computations of one's own: from given embeddings to features and back, to the bit as the
/// network does it; evaluations that a backward pass follows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "hypergraph_task.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/hypergraph_network.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/graph/graph_of.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "tiny_task.hpp"

namespace test_network_between {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::sheaf;

template <class Model>
struct Task {
  static constexpr bool on_hypergraph = std::is_same_v<GraphOf<Model>, Hypergraph>;
  std::conditional_t<on_hypergraph, tiny::HypergraphTask, tiny::Task> task;
  Model model;

  using Options = typename Model::Options;

  explicit Task(Options options = {}) : model(complete(options), 3) {}

  Options complete(Options options) const {
    options.features = task.sparse.columns();
    options.classes = 3;
    options.channels = 2;
    options.layers = 2;
    options.separate_encoder = false;
    return options;
  }
  const GraphOf<Model>& graph() const {
    if constexpr (on_hypergraph) {
      return task.hypergraph;
    } else {
      return task.graph;
    }
  }
};

/// All numbers of a matrix, row by row.
template <class T>
std::vector<double> numbers(const MatrixView<T>& view) {
  std::vector<double> r;
  for (Index i = 0; i < view.rows(); ++i) {
    for (Index j = 0; j < view.columns(); ++j) r.push_back(view(i, j));
  }
  return r;
}

template <class Model>
void check() {
  Task<Model> of;
  const GraphOf<Model>& graph = of.graph();
  Network<Model> whole(of.model, graph, of.task.sparse), between(of.model, graph, of.task.sparse);
  const ForwardPass<double> pass{.seed = 4, .epoch = 2, .training = true};
  whole.forward(pass);
  const std::vector<double> h = numbers(whole.features_after(0).rows());
  const Index n = graph.node_count(), width = of.model.hidden_width();
  const auto first = between.begin(pass, MatrixView<const double>(h.data(), n, width));
  const auto sample = first.diffuse();
  CHECK(numbers(sample.view().rows()) == numbers(whole.features_after(2).rows()));
  CHECK(between.kl() == whole.kl());

  // With ⟨Y⟩ as the loss, the derivative of X_3 has the sums of the readout's columns.
  std::vector<double> ones(static_cast<std::size_t>(n * 3), 1.0);
  whole.backward(MatrixView<const double>(ones.data(), n, 3), {.kl_weight = 0.5});
  const auto& parameters = of.model.parameters();
  const ParameterId last = parameters.find("lin2.weight");
  const std::vector<double> weight = parameters.get(last, parameters.values());
  std::vector<double> bar(static_cast<std::size_t>(n * width));
  for (Index i = 0; i < n * width; ++i) {
    for (Index c = 0; c < 3; ++c) {
      bar[static_cast<std::size_t>(i)] += weight[static_cast<std::size_t>(c * width + i % width)];
    }
  }
  auto backward = first.begin_backward({.kl_weight = 0.5});
  backward.add(sample, {bar.data(), n, of.model.coordinates(), of.model.options().channels});
  std::vector<double> h_bar(bar.size());
  backward.finish(MatrixView<double>(h_bar.data(), n, width));
  for (const ParameterInfo& info : parameters.info()) {
    if (info.name.starts_with("lin")) continue;
    CAPTURE(info.name);
    double worst = 0;
    for (Index i = info.offset; i < info.offset + info.size; ++i) {
      worst = std::max(worst, std::abs(whole.gradient()[i] - between.gradient()[i]));
    }
    CHECK(worst <= 1e-13);  // sums of a few hundred products
  }
  CHECK(*std::max_element(h_bar.begin(), h_bar.end()) > 0);

  // The derivative of X_3 may be written where the network wants it.
  const std::vector<double> gradient(between.gradient().data(),
                                     between.gradient().data() + between.gradient().size());
  const auto second = between.begin(pass, MatrixView<const double>(h.data(), n, width));
  const auto again = second.diffuse();
  auto from_own = second.begin_backward({.kl_weight = 0.5});
  const FeatureView<double> own = between.features_bar();
  std::copy(bar.begin(), bar.end(), own.data());
  from_own.add(again, own);
  std::vector<double> own_h_bar(bar.size());
  from_own.finish(MatrixView<double>(own_h_bar.data(), n, width));
  CHECK(std::equal(gradient.begin(), gradient.end(), between.gradient().data()));
  CHECK(own_h_bar == h_bar);

  // Refused.
  CHECK_THROWS_AS(between.begin(pass, MatrixView<const double>(h.data(), n, width - 1)), std::invalid_argument);
  const auto third = between.begin(pass, MatrixView<const double>(h.data(), n, width));
  const auto last_sample = third.diffuse();
  auto refused = third.begin_backward();
  CHECK_THROWS_AS(refused.add(last_sample, {bar.data(), n - 1, of.model.coordinates(), 2}), std::invalid_argument);
  refused.add(last_sample, {bar.data(), n, of.model.coordinates(), 2});
  CHECK_THROWS_AS(refused.finish(MatrixView<double>(h_bar.data(), n - 1, width)), std::invalid_argument);
}

}  // namespace

TEST_CASE("layers between computations of one's own") {
  check<Nsd<SpecialOrthogonal<2>, double>>();
  check<Bsnn<SpecialOrthogonal<2>, double>>();
  check<Csnn<2, double>>();
  check<Bcsnn<2, double>>();
  check<SheafHyperGnn<SpecialOrthogonal<2>, double>>();
  check<BayesianSheafHyperGnn<SpecialOrthogonal<2>, double>>();
}

TEST_CASE_TEMPLATE("a separate encoder reads features", Model, Bsnn<SpecialOrthogonal<2>, double>,
                   BayesianSheafHyperGnn<SpecialOrthogonal<2>, double>) {
  Task<Model> of;
  auto options = of.model.options();
  options.separate_encoder = true;
  const Model model(options);
  Network<Model> network(model, of.graph(), of.task.sparse);
  const std::vector<double> h(static_cast<std::size_t>(of.graph().node_count() * model.hidden_width()));
  CHECK_THROWS_WITH_AS(network.begin({}, MatrixView<const double>(h.data(), of.graph().node_count(),
                                                                  model.hidden_width())),
                       "separate_encoder: true is not allowed; it reads features", std::invalid_argument);
}

TEST_CASE("an evaluation that a backward pass follows") {
  Task<Bsnn<SpecialOrthogonal<2>, double>> of;
  Network network(of.model, of.task.graph, of.task.sparse);
  const std::vector<double> plain = numbers(network.forward({.seed = 4, .epoch = 2}));
  std::vector<double> ones(plain.size(), 1.0);
  const MatrixView<const double> bar(ones.data(), of.task.graph.node_count(), 3);
  CHECK_THROWS_AS(network.backward(bar), std::logic_error);
  CHECK(numbers(network.forward({.seed = 4, .epoch = 2, .keep = true})) == plain);
  network.backward(bar);
  CHECK(network.gradient()[of.model.parameters().info(of.model.parameters().find("lin2.bias")).offset] ==
        doctest::Approx(static_cast<double>(of.task.graph.node_count())));
}

}  // namespace test_network_between
