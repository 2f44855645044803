/// \file
/// How a training stops when its numbers are not finite: std::runtime_error, which names the epoch and the first quantity that is
/// not finite. Also the score of predictions that trainings report.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::detail {

/// The message about a training that diverged. \param stepped  has Adam taken a step, whose size may be the cause?
[[nodiscard]] inline std::string divergence(Index epoch, const std::string& what, bool stepped) {
  return concat(
      "training diverged in epoch ", epoch, ": ", what,
      stepped ? "; a smaller learning rate may help"
              : " before the first step; features, parameters, a decay, the KL weight or the loss may be too large");
}
/// \throws std::runtime_error  always: `quantity` is `value`, which is not finite
[[noreturn]] inline void throw_diverged(Index epoch, const std::string& quantity, double value, bool stepped) {
  throw std::runtime_error(divergence(epoch, concat(quantity, " is ", value), stepped));
}

/// Checks the objective, after the training pass. \throws std::runtime_error  a term that is not finite
inline void check_finite(const Elbo& elbo, Index epoch, bool stepped) {
  if (!std::isfinite(elbo.loss)) throw_diverged(epoch, "the loss", elbo.loss, stepped);
  if (!std::isfinite(elbo.kl)) throw_diverged(epoch, "the KL term", elbo.kl, stepped);
}
/// Names the entry of the gradient that Adam's step found not finite, or whose square is not finite.
///
/// \throws std::runtime_error  always
template <class S>
[[noreturn]] void throw_not_finite(const ParameterSet<S>& parameters, const Buffer<S>& gradient, Index epoch,
                                   bool stepped) {
  for (const ParameterInfo& info : parameters.info()) {
    for (Index i = info.offset; i < info.offset + info.size; ++i) {
      const S value = gradient[i];
      if (!std::isfinite(value)) throw_diverged(epoch, "the gradient of " + info.name, value, stepped);
      if (!std::isfinite(value * value)) {
        throw_diverged(epoch, "the square of the gradient of " + info.name, value * value, stepped);
      }
    }
  }
  throw_diverged(epoch, "a second moment of Adam", std::numeric_limits<double>::infinity(), stepped);
}
/// Checks the evaluation that follows the step. \throws std::runtime_error  a prediction that is not finite
inline void check_finite(const std::vector<double>& predictions, Index epoch) {
  for (const double p : predictions) {
    if (!std::isfinite(p)) throw_diverged(epoch, "a prediction", p, true);
  }
}

/// loss.score(predictions, nodes); NaN if there are no nodes.
template <class L>
[[nodiscard]] Score score_of(const L& loss, const MatrixView<const double>& predictions,
                             std::span<const std::int32_t> nodes) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if constexpr (spans_parts<L>) return loss.score(predictions, nodes);
  return nodes.empty() ? Score{nan, nan} : loss.score(predictions, nodes);
}

}  // namespace sheafnn::detail
