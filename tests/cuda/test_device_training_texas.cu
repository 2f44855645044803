/// \file
/// Training on the GPU against the host (device_training.hpp), on a graph as large as texas.
#include <doctest/doctest.h>

#include "device_training.hpp"
#include "sheafnn/graph/synthetic.hpp"

namespace test_device_training_texas {
namespace {

using namespace sheafnn;
using device_training::compare_with_host;

Dataset texas_sized() {
  SyntheticOptions options;
  options.nodes = 183;
  options.classes = 5;
  options.features = 1703;
  options.degree = 3;
  options.seed = 5;
  return synthetic(options);
}

}  // namespace

TEST_CASE("training on the GPU follows the host on a larger graph") {
  compare_with_host<Nsd<GeneralLinear<2>>>(texas_sized(), 1e-5);
  compare_with_host<Bsnn<Diagonal<2>>>(texas_sized(), 1e-5);
}

}  // namespace test_device_training_texas
