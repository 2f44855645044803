/// \file
/// What the tests of training on the GPU share: their models, and how far two loss curves are apart.
#pragma once

#include <doctest/doctest.h>

#include <cmath>

#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/cuda.hpp"
#include "worst.hpp"

namespace device_training {

using namespace sheafnn;

template <class Model>
Model model_for(const Dataset& data, std::uint64_t seed, Index channels = 8) {
  ModelOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = channels;
  options.layers = 2;
  return Model(options, seed);
}

inline double curve_difference(const TrainResult& a, const TrainResult& b, std::size_t epochs) {
  double worst = 0;
  REQUIRE(a.history.size() >= epochs);
  REQUIRE(b.history.size() >= epochs);
  for (std::size_t i = 0; i < epochs; ++i) {
    worst = test::worse(worst, std::abs(a.history[i].loss - b.history[i].loss) / std::abs(b.history[i].loss));
    worst = test::worse(worst, std::abs(a.history[i].validation_loss - b.history[i].validation_loss) /
                                   std::abs(b.history[i].validation_loss));
  }
  return worst;
}

}  // namespace device_training
