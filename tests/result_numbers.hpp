/// \file
/// Everything in the outcome of a training but the time it took, as numbers to compare.
#pragma once

#include <cmath>
#include <vector>

#include "sheafnn/bsnn/train_options.hpp"

namespace test {

inline std::vector<double> numbers_of(const sheafnn::EpochReport& e) {
  std::vector<double> r = {static_cast<double>(e.epoch), e.loss,         e.nll, e.kl, e.kl_weight, e.validation_loss,
                           e.validation_accuracy,        e.test_accuracy};
  if (!std::isnan(e.validation_metric)) r.insert(r.end(), {e.validation_metric, e.test_metric});
  return r;
}
inline std::vector<double> numbers_of(const sheafnn::TrainResult& result) {
  std::vector<double> r = {static_cast<double>(result.best_epoch),
                           result.validation_loss,
                           result.validation_accuracy,
                           result.test_accuracy,
                           result.test_nll,
                           result.test_ece,
                           result.test_roc_auc,
                           result.test_average_precision,
                           result.test_macro_f1,
                           result.test_brier,
                           static_cast<double>(result.stop_reason)};
  for (const sheafnn::EpochReport& e : result.history) {
    const std::vector<double> own = numbers_of(e);
    r.insert(r.end(), own.begin(), own.end());
  }
  return r;
}

}  // namespace test
