/// \file
/// EpochReport: what one epoch of training showed. Kernels fill it in, too (batch/optimiser.hpp).
#pragma once

#include <limits>

#include "sheafnn/core/config.hpp"

namespace sheafnn {

/// What one epoch of training showed.
struct EpochReport {
  Index epoch = 0;                 ///< 0, 1, …
  double loss = 0;                 ///< training loss, nll + λ · kl
  double nll = 0;                  ///< mean negative log-likelihood of the training nodes, with dropout
  double kl = 0;                   ///< KL term, Elbo::kl
  double kl_weight = 0;            ///< λ
  double validation_loss = 0;      ///< mean NLL of the validation nodes; NaN without such nodes
  double validation_accuracy = 0;  ///< in [0, 1]; NaN without validation nodes
  double test_accuracy = 0;        ///< in [0, 1], NaN without test nodes; not used to choose the best epoch
  /// The metric of TrainOptions::stop_on. NaN if stop_on is the loss or the accuracy, and without validation nodes.
  double validation_metric = std::numeric_limits<double>::quiet_NaN();
  double test_metric = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace sheafnn
