/// \file
/// Everything in the outcome of a training but the time it took, as numbers to compare.
#pragma once

#include <vector>

#include "sheafnn/bsnn/train_options.hpp"

namespace test {

inline std::vector<double> numbers_of(const sheafnn::EpochReport& e) {
  return {static_cast<double>(e.epoch), e.loss,         e.nll, e.kl, e.kl_weight, e.validation_loss,
          e.validation_accuracy,        e.test_accuracy};
}
inline std::vector<double> numbers_of(const sheafnn::TrainResult& result) {
  std::vector<double> r = {static_cast<double>(result.best_epoch),
                           result.validation_loss,
                           result.validation_accuracy,
                           result.test_accuracy,
                           result.test_nll,
                           result.test_ece,
                           static_cast<double>(result.stop_reason)};
  for (const sheafnn::EpochReport& e : result.history) {
    const std::vector<double> own = numbers_of(e);
    r.insert(r.end(), own.begin(), own.end());
  }
  return r;
}

}  // namespace test
