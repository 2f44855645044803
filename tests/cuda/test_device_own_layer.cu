/// \file
/// Layers from outside the library (own_layers.hpp) on the GPU: batches against the host (device_batch.hpp), and the example
/// itself.
#include "device_batch.hpp"
#include "own_layers.hpp"
#include "sheafnn/graph/karate.hpp"

namespace test_device_own_layer {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_options;

TEST_CASE("batches on the GPU agree with the host: layers of one's own") {
  ModelOptions o = small_options();
  o.layers = 3;
  o.add_lp = true;
  compare_executors<own_layers::ModelOf<DefaultPosterior<SpecialOrthogonal<3>>>>(o, {.samples = 2});
  compare_executors<own_layers::Reactions<GeneralLinear<2>>>(o, {}, batch_checks::small_problem(false, 330));
  o.channels = 8;
  o.layers = 4;
  compare_executors<own_layers::Mixed<PointMass<Diagonal<2>>>>(o, {});
}

TEST_CASE("a layer of one's own trains on the GPU as on the host, several seeds side by side") {
  using Model = own_layer::Model;
  const Dataset data = karate_club();
  const ModelOptions options{.features = data.feature_count(),
                             .channels = 8,
                             .layers = 3,
                             .classes = data.class_count};
  const auto train = [&]<class Executor>(Executor& executor) {
    std::vector<Model> models;
    for (std::uint64_t seed = 0; seed < 3; ++seed) models.emplace_back(options, seed);
    std::vector<batch::Training<Model>> trainings;
    for (Model& model : models) trainings.push_back({&model, &data.splits[0], {.epochs = 10}});
    std::vector<double> losses;
    for (const auto& outcome : batch::train_batch<Executor, Model>(executor, data, trainings)) {
      for (const EpochReport& report : outcome.result.history) losses.push_back(report.loss);
    }
    return losses;
  };
  batch::HostExecutor host;
  batch::DeviceExecutor device;
  const std::vector<double> expected = train(host), own = train(device);
  CHECK(expected.size() == 30);
  CHECK(batch_checks::relative(own, expected) <= 1e-4);  // single precision
}

}  // namespace test_device_own_layer
