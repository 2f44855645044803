/// \file
/// Networks with numbers of channels that fill a pack, a part of one, or one and a part of another: forward pass and
/// gradient against the references of model_gradient.hpp, and single precision against double.
#include <algorithm>
#include <cmath>

#include "model_gradient.hpp"

namespace test_channel_counts {
namespace {

using sheafnn::Index;

constexpr Index counts[] = {1, 3, 5, 8, 12, 16, 17, 20, 24, 31, 32};

sheafnn::ModelOptions options_with(Index channels) {
  sheafnn::ModelOptions options = tiny::options();
  options.channels = channels;
  return options;
}
test::TrainingPass<double> pass_of(const tiny::Task& task) {
  test::TrainingPass<double> pass;
  pass.labels = task.labels;
  pass.nodes = task.train;
  pass.seed = 9;
  pass.epoch = 10;
  pass.dropout = 0.3;
  return pass;
}

template <class Model>
void check_double() {
  const tiny::Task task;
  for (const Index channels : counts) {
    CAPTURE(Model::Family::name);
    CAPTURE(channels);
    Model model(options_with(channels), 7);
    tiny::disturb(model.parameters(), 8, 0.3);
    const test::TrainingPass<double> pass = pass_of(task);
    sheafnn::Network<Model> network(model, task.graph, task.sparse);
    const test::PassResult result = test::train_pass(network, pass);
    reference::Problem problem = model_gradient::problem_of(model, task);
    problem.seed = pass.seed;
    problem.epoch = pass.epoch;
    problem.dropout = pass.dropout;
    CHECK(model_gradient::compare_forward(result, test::last_outputs(network), problem) <= 1);

    const sheafnn::Buffer<double> gradient = network.gradient();
    const model_gradient::Comparison comparison =
        model_gradient::compare_gradient(model.parameters(), gradient,
                                         [&] { return test::train_pass(network, pass).loss; });
    INFO(comparison.where);
    CHECK(comparison.worst <= 1);
  }
}

/// Outputs and gradient of a network with the numbers of `parameters` as its own.
template <class Model>
std::vector<double> computed(const Model& model, const tiny::Task& task) {
  using S = typename Model::Scalar;
  test::TrainingPass<S> pass;
  pass.labels = task.labels;
  pass.nodes = task.train;
  pass.seed = 9;
  pass.dropout = 0.3;
  sheafnn::Network<Model> network(model, task.graph, task.sparse);
  test::train_pass(network, pass);
  std::vector<double> r = test::last_outputs(network);
  for (const S value : network.gradient()) r.push_back(static_cast<double>(value));
  return r;
}

/// Numbers are of size 1; sums of a few hundred terms and a few layers lose less than 512 units in the last place.
template <template <class, class> class Network, class Family>
void check_float() {
  const tiny::Task task;
  for (const Index channels : counts) {
    CAPTURE(Family::name);
    CAPTURE(channels);
    Network<Family, float> single(options_with(channels), 7);
    tiny::disturb(single.parameters(), 8, 0.3);
    Network<Family, double> twofold(options_with(channels), 7);
    std::copy(single.parameters().values().begin(), single.parameters().values().end(),
              twofold.parameters().values().begin());
    const std::vector<double> a = computed(single, task), b = computed(twofold, task);
    REQUIRE(a.size() == b.size());
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(b[i]));
      worst = std::isfinite(a[i]) ? std::max(worst, std::abs(a[i] - b[i])) : INFINITY;
    }
    CHECK(largest > 0.01);
    CHECK(worst <= 512 * 6e-8 * std::max(1.0, largest));
  }
}

template <class Family, class S>
using DeterministicNetwork = sheafnn::Nsd<Family, S>;

TEST_CASE("numbers of channels, double precision: forward pass and gradient") {
  check_double<sheafnn::Nsd<sheafnn::Diagonal<2>, double>>();
  check_double<sheafnn::Nsd<sheafnn::SpecialOrthogonal<3>, double>>();
  check_double<sheafnn::Nsd<sheafnn::GeneralLinear<2>, double>>();
  check_double<sheafnn::Nsd<sheafnn::GeneralLinear<5>, double>>();
}

TEST_CASE("numbers of channels: single precision is double precision, rounded") {
  check_float<DeterministicNetwork, sheafnn::Diagonal<3>>();
  check_float<DeterministicNetwork, sheafnn::SpecialOrthogonal<3>>();
  check_float<DeterministicNetwork, sheafnn::GeneralLinear<2>>();
}

}  // namespace
}  // namespace test_channel_counts
