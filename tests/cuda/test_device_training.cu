/// \file
/// Training and prediction on the GPU against the same kernels on the host (which tests/test_batch_training.cpp
/// compares with sheafnn::train): loss curves, best epochs, predictions; the same bits from run to run. In several files,
/// which compile side by side: test_device_training_texas.cu, test_device_training_batch.cu.
#include <doctest/doctest.h>

#include "device_training.hpp"
#include "sheafnn/graph/karate.hpp"

namespace test_device_training {

using namespace sheafnn;
using device_training::compare_with_host;

TEST_CASE("training on the GPU follows the host") {
  compare_with_host<Bsnn<SpecialOrthogonal<3>, double>>(karate_club(), 1e-13);
  compare_with_host<Bsnn<SpecialOrthogonal<3>>>(karate_club(), 1e-5);
}

}  // namespace test_device_training
