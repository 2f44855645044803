/// \file
/// NetworkOperator on the GPU against the same kernels on the host (which tests/test_batch_operator.cpp compares with the CPU's
/// networks), and its place in the order of a stream of the caller's.
#include <doctest/doctest.h>

#include <vector>

#include "given_sheaves.hpp"
#include "layer_operator_checks.hpp"
#include "models/decompositions.hpp"
#include "operator_checks.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bundle.hpp"
#include "sheafnn/convolution.hpp"
#include "sheafnn/cuda.hpp"

namespace test_device_operator {
namespace {

using namespace sheafnn;
using batch::DeviceExecutor;
using batch_checks::Problem;
using batch_checks::relative;
using batch_checks::small_options;
using layers::Activation;
using operator_checks::Call;
using operator_checks::Caller;
using operator_checks::Outcome;

// As of batches on the GPU.
constexpr double bound = 1e-11;

template <class Executor, class Model>
Outcome run_on(Executor& executor, const typename Model::Options& options, const Call& call,
               const typename Model::Posterior& posterior) {
  const Problem problem = batch_checks::small_problem();
  const Model model = batch_checks::disturbed<Model>(options, 0, posterior);
  return Caller<Executor, Model>(executor, model, problem.graph, problem.features).run(call);
}
void compare(const Outcome& own, const Outcome& expected) {
  CHECK(relative(own.outputs, expected.outputs) <= bound);
  CHECK(relative(own.kl, expected.kl) <= bound);
  CHECK(relative(own.gradient, expected.gradient) <= bound);
  CHECK(relative(own.embedding_bar, expected.embedding_bar) <= bound);
}
template <class Model>
void compare_executors(const typename Model::Options& options, const Call& call,
                       const typename Model::Posterior& posterior = {}) {
  batch::HostExecutor host;
  DeviceExecutor device;
  const Outcome expected = run_on<batch::HostExecutor, Model>(host, options, call, posterior);
  const Outcome own = run_on<DeviceExecutor, Model>(device, options, call, posterior);
  compare(own, expected);
  DeviceExecutor in_turn(0, batch::KernelStart::in_turn);
  const Outcome again = run_on<DeviceExecutor, Model>(in_turn, options, call, posterior);
  CHECK(again.gradient == own.gradient);
  CHECK(again.outputs == own.outputs);
}

}  // namespace

TEST_CASE("operators on the GPU agree with the host") {
  ModelOptions o = small_options();
  compare_executors<Bsnn<SpecialOrthogonal<3>, double>>(o, {});
  compare_executors<Nsd<SpecialOrthogonal<2>, double>>(o, {.training = false});
  o.layers = 1;
  o.separate_encoder = false;
  compare_executors<Bsnn<SpecialOrthogonal<3>, double>>(o, {.layer = Activation::elu});
  compare_executors<Nsd<SpecialOrthogonal<2>, double>>(o, {.kl_bar = 0, .layer = Activation::identity});
}

TEST_CASE("operators on the GPU agree with the host: parts of their own, given sheaves") {
  CooperativeOptions o = batch_checks::small_cooperative_options();
  o.learner = layers::NodeLearnerKind::sage_projected;
  o.learner_dropout = 0.4;
  compare_executors<Bcsnn<2, double>>(o, {});
  compare_executors<Csnn<2, double>>(o, {.training = false});
  o.layers = 1;
  compare_executors<Bcsnn<2, double>>(o, {.layer = Activation::elu});
  compare_executors<BayesianBunn<2, double>>(batch_checks::small_bundle_options(), {});
  const Problem problem = batch_checks::small_problem();
  using Maps = SpecialOrthogonal<2>;
  const auto around = given_sheaves::around_maps<Maps>(problem.graph, DeviationSource::arcs);
  compare_executors<BayesianSheafConvolutions<Maps, double>>(small_options<ConvolutionOptions>(), {}, around);
  compare_executors<Bgsnn<Maps, double>>(small_options(), {.training = false}, around);
  compare_executors<Snn<Maps, double>>(small_options(), {}, given_sheaves::maps_over<Maps>(problem.graph));
}

TEST_CASE("diffusion with maps of columns on the GPU agrees with the host") {
  using layer_operator_checks::diffuse;
  using operator_checks::numbers;
  const Graph graph = batch_checks::small_problem().graph;
  const Index n = graph.node_count(), m = graph.edge_count();
  const layer_operator_checks::DiffusionInputs given{numbers<double>(1, n * 8), numbers<double>(2, n * 8),
                                                     numbers<double>(3, 4),     numbers<double>(4, 16),
                                                     numbers<double>(5, 2),     numbers<double>(6, 8 * m),
                                                     numbers<double>(7, m)};
  const auto pass = layer_operator_checks::pass_of(true, 0.4);
  batch::HostExecutor host;
  DeviceExecutor device;
  const auto expected = diffuse<GeneralLinear<2>>(host, graph, {.channels = 4}, given, pass);
  const auto own = diffuse<GeneralLinear<2>>(device, graph, {.channels = 4}, given, pass);
  CHECK(relative(own.out, expected.out) <= bound);
  CHECK(relative(own.x_bar, expected.x_bar) <= bound);
  for (int i = 0; i < 5; ++i) CHECK(relative(own.gradient[i], expected.gradient[i]) <= bound);
}

TEST_CASE("operators on the GPU take their place in the order of the caller's stream") {
  using Model = Nsd<SpecialOrthogonal<2>, double>;
  using Array = batch::Array<DeviceExecutor, double>;
  const Problem problem = batch_checks::small_problem();
  const Model model = batch_checks::disturbed<Model>(small_options(), 0);
  const layers::ParameterSet<double>& values = model.parameters();
  DeviceExecutor device;
  Caller<DeviceExecutor, Model> caller(device, model, problem.graph, problem.features);
  const Outcome expected = caller.run({});
  // The caller's stream writes the parameters and reads the outputs; nobody waits in between.
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  std::vector<Array> given;
  std::vector<std::vector<double>> sources;
  for (std::size_t i = 0; i < values.info().size(); ++i) {
    sources.push_back(values.get(static_cast<layers::ParameterId>(i), values.values()));
    given.emplace_back(device, "test", values.info()[i].size);
  }
  device.synchronise();
  for (std::size_t i = 0; i < given.size(); ++i) {
    REQUIRE(cudaMemcpyAsync(given[i].data(), sources[i].data(), sources[i].size() * sizeof(double),
                            cudaMemcpyHostToDevice, stream) == cudaSuccess);
    caller.network.set_parameter(static_cast<layers::ParameterId>(i), given[i].data());
  }
  Array outputs(device, "test", static_cast<Index>(expected.outputs.size()));
  device.synchronise();
  device.in_order_of(stream, [&] { caller.network.forward(Call{}.pass<double>(), outputs.data(), nullptr); });
  std::vector<double> own(expected.outputs.size());
  REQUIRE(cudaMemcpyAsync(own.data(), outputs.data(), own.size() * sizeof(double), cudaMemcpyDeviceToHost, stream) ==
          cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(own == expected.outputs);
  CHECK_THROWS_AS(device.in_order_of(stream, [] { throw std::runtime_error("the work"); }), std::runtime_error);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

}  // namespace test_device_operator
