/// \file
/// A network without edges gives on any graph what it gives on that graph's nodes alone, to the bit.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/prediction.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/io/model_tensors.hpp"
#include "worst.hpp"

namespace test_network_without_edges {
namespace {

using sheafnn::Bsnn;
using sheafnn::Dataset;
using sheafnn::Index;
using sheafnn::ModelOptions;
using sheafnn::Nsd;

Dataset with_edges() {
  sheafnn::SyntheticOptions options;
  options.nodes = 60;
  options.classes = 2;
  options.features = 20;
  options.degree = 4;
  Dataset r = sheafnn::synthetic(options);
  r.graph.set_arc_features(std::vector<double>(static_cast<std::size_t>(2 * r.graph.arc_count()), 0.5), 2);
  return r;
}
/// \param of  a dataset whose graph loses its edges
Dataset nodes_of(Dataset of) {
  of.graph = sheafnn::Graph(of.node_count(), {});
  of.graph.set_arc_features({}, 2);
  return of;
}

/// The probabilities after a short training on `trained` of `predicted`.
template <class Model, class Train, class Predict>
std::vector<double> probabilities(const ModelOptions& options, const Dataset& trained, const Dataset& predicted,
                                  const Train& train, const Predict& predict) {
  Model model(options, 3);
  train(model, trained);
  return predict(model, predicted).probabilities;
}

template <class Model>
void check(ModelOptions options) {
  const Dataset data = with_edges(), alone = nodes_of(data);
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = 4;
  options.layers = 2;
  sheafnn::TrainOptions training;
  training.epochs = 5;
  training.dropout = training.input_dropout = 0.3;
  const auto train = [&](Model& model, const Dataset& on) { sheafnn::train(model, on, on.splits[0], training); };
  const auto predict = [](const Model& model, const Dataset& on) { return sheafnn::predict(model, on); };
  const std::vector<double> seen = probabilities<Model>(options, data, data, train, predict);
  const std::vector<double> expected = probabilities<Model>(options, alone, alone, train, predict);
  CHECK(seen != expected);
  options.use_edges = false;
  CHECK(probabilities<Model>(options, data, data, train, predict) == expected);
  CHECK(probabilities<Model>(options, alone, data, train, predict) == expected);

  sheafnn::batch::HostExecutor executor;
  const auto batch_train = [&](Model& model, const Dataset& on) {
    sheafnn::batch::train(executor, model, on, on.splits[0], training);
  };
  const auto batch_predict = [&](const Model& model, const Dataset& on) {
    return sheafnn::batch::predict(executor, model, on.graph, on.features);
  };
  const auto batch = [&](const Dataset& on) {
    return probabilities<Model>(options, on, on, batch_train, batch_predict);
  };
  CHECK(batch(data) == batch(alone));
}

TEST_CASE("a network without edges sees the nodes alone") {
  SUBCASE("maps of nsd, a low and a high pass") {
    check<Nsd<sheafnn::Diagonal<2>>>({.add_lp = true, .add_hp = true, .edge_features = 2});
  }
  SUBCASE("bsnn with edge weights and degrees") {
    check<Bsnn<sheafnn::SpecialOrthogonal<2>>>({.degree_input = true});
  }
  SUBCASE("maps that are not learned") { check<Nsd<sheafnn::Identity<3>>>({}); }
  SUBCASE("a filter") {
    check<Nsd<sheafnn::Identity<3>>>({.filter = {.basis = sheafnn::PolynomialBasis::chebyshev_interpolation}});
  }
  SUBCASE("an initial residual") {
    check<Nsd<sheafnn::Identity<3>>>({.residual = {.form = sheafnn::ResidualForm::initial}});
  }
}

TEST_CASE("a network without edges has no sheaf, and its checkpoint says that it sees none") {
  const Dataset data = with_edges();
  using Model = Nsd<sheafnn::Diagonal<2>>;
  const Model model({.features = data.feature_count(), .classes = 2, .use_edges = false});
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::learned_sheaf(model, data)),
                       "use_edges: false is not allowed; a network without edges has no sheaf",
                       std::invalid_argument);
  sheafnn::io::TensorFile file = sheafnn::io::to_tensors(model);
  CHECK(file.metadata.at("use_edges") == "false");
  CHECK_FALSE(sheafnn::io::from_tensors<Model>("model", file).options().use_edges);
  file.metadata.erase("use_edges");  // a file of an older version
  CHECK(sheafnn::io::from_tensors<Model>("model", file).options().use_edges);
}

}  // namespace
}  // namespace test_network_without_edges
