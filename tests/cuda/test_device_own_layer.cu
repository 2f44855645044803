/// \file
/// Layers from outside the library (own_layers.hpp), convolutions, waves and copresheaves (mixing_layers.hpp) on the GPU: batches
/// against the host (device_batch.hpp), and the example itself.
#include "device_batch.hpp"
#include "mixing_layers.hpp"
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

TEST_CASE("batches on the GPU agree with the host: convolutions, waves, copresheaves, and waves among diffusion layers") {
  ModelOptions o = small_options();
  for (const LayerForm form : {LayerForm::convolution, LayerForm::wave, LayerForm::copresheaf}) {
    o.layer = form;
    o.layers = 3;
    compare_executors<mixing_layers::Mixing<PointMass<GeneralLinear<2>>>>(o, {}, batch_checks::small_problem(false, 330));
  }
  o.layer = LayerForm::diffusion;
  o.layers = 5;
  o.channels = 8;
  compare_executors<mixing_layers::Among<DefaultPosterior<SpecialOrthogonal<3>>>>(o, {.samples = 2});
}

TEST_CASE("a layer of one's own trains on the GPU as on the host, several seeds side by side") {
  using Model = own_layer::Model;
  const Dataset data = karate_club();
  const ModelOptions options{.features = data.feature_count(),
                             .channels = 8,
                             .layers = 3,
                             .classes = data.class_count};
  const auto train = [&](auto& executor) {
    return batch_checks::losses_side_by_side<Model>(executor, data, options, {.epochs = 10}, 0, 3);
  };
  batch::HostExecutor host;
  batch::DeviceExecutor device;
  const std::vector<double> expected = train(host), own = train(device);
  CHECK(expected.size() == 30);
  CHECK(batch_checks::relative(own, expected) <= 1e-4);  // single precision
}

}  // namespace test_device_own_layer
