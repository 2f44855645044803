/// \file
/// Losses of node outputs: classification, multilabel classification, regression; counts and others are in
/// target_losses.hpp. To write your own loss, see loss.hpp.
///
/// A loss holds views of its targets, which must outlive it. Outputs are rows of C raw numbers, one for each node of a
/// NodeSelection. In all functions the loss is a mean over the nodes in `nodes` whose target is known. Source: math: "Loss" (3.35).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/loss.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/special_functions.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/softmax.hpp"

namespace sheafnn {

/// One class per node: −log softmax(outputs)[label], weighted by class if weights are given.
///
///     Σ_u w_{y_u} (−log p(y_u | u)) / Σ_u w_{y_u}
///
/// Unchecked: in all functions except validate(), check_loss() does not throw, and views have rows of C values.
class Classification {
 public:
  static constexpr std::string_view name = "classification";

  /// \param labels         n classes in [0, C), −1 where unknown
  /// \param class_weights  C positive weights, or empty: all 1
  explicit Classification(std::span<const std::int32_t> labels, std::span<const double> class_weights = {})
      : labels_(labels), class_weights_(class_weights) {}

  explicit Classification(std::vector<std::int32_t>&&,
                          std::span<const double> = {}) = delete;  // they would dangle
  Classification(std::span<const std::int32_t>, std::vector<double>&&) = delete;

  /// \throws std::invalid_argument  labels or weights of another number, or out of range; less than two classes
  void validate(Index nodes, Index outputs) const {
    require_size(labels_, nodes, "labels");
    require(outputs >= 2, "classes", outputs, "classification needs at least two");
    for (std::size_t u = 0; u < labels_.size(); ++u) {
      if (labels_[u] < -1 || labels_[u] >= outputs) {
        throw_invalid_argument(detail::concat("labels[", u, "]"), labels_[u],
                               detail::concat("must be between 0 and ", outputs - 1, ", or -1 where unknown"));
      }
    }
    if (class_weights_.empty()) return;
    require_size(class_weights_, outputs, "class_weights");
    for (std::size_t c = 0; c < class_weights_.size(); ++c) {
      if (!(class_weights_[c] > 0) || !std::isfinite(class_weights_[c])) {
        throw_invalid_argument(detail::concat("class_weights[", c, "]"), class_weights_[c],
                               "must be positive and finite");
      }
    }
  }
  [[nodiscard]] bool known(Index u) const noexcept { return label(u) >= 0; }

  /// Turns `outputs` into log-probabilities.
  template <class S>
  double value_and_derivative(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                              std::span<const std::int32_t> nodes, double share, const MatrixView<S>& bar) const;
  /// Turns `outputs` into log-probabilities.
  template <class S>
  void node_losses(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                   std::span<const std::int32_t> nodes, std::span<double> losses) const {
    layers::log_softmax_rows(execution, outputs.rows(), outputs.columns(), outputs.data(), outputs.stride());
    std::size_t i = 0;
    detail::for_rows(rows, nodes, [&](Index u, Index row) {
      losses[i++] = known(u) ? -static_cast<double>(outputs(row, label(u))) : 0;
    });
  }
  [[nodiscard]] SHEAFNN_NOINLINE double mean_loss(const NodeSelection&, std::span<const std::int32_t> nodes,
                                                  std::span<const double> losses) const {
    double sum = 0, total = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!known(nodes[i])) continue;
      sum += weight(nodes[i]) * losses[i];
      total += weight(nodes[i]);
    }
    return sum / total;
  }
  /// Probabilities.
  template <class S>
  void predict(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const;
  /// Mean negative log-likelihood and accuracy.
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    Score r;
    double total = 0, count = 0;
    for (const std::int32_t u : nodes) {
      if (!known(u)) continue;
      const std::span<const double> p = predictions.row(u);
      const double likelihood = p[static_cast<std::size_t>(label(u))];
      r.loss -= weight(u) * std::log(std::max(likelihood, std::numeric_limits<double>::min()));
      total += weight(u);
      r.score += std::max_element(p.begin(), p.end()) - p.begin() == label(u) ? 1 : 0;
      ++count;
    }
    return {r.loss / total, r.score / count};
  }

  [[nodiscard]] std::span<const std::int32_t> labels() const noexcept { return labels_; }
  [[nodiscard]] std::span<const double> class_weights() const noexcept { return class_weights_; }
  [[nodiscard]] bool weighted() const noexcept { return !class_weights_.empty(); }

 private:
  [[nodiscard]] std::int32_t label(Index u) const noexcept { return labels_[static_cast<std::size_t>(u)]; }
  [[nodiscard]] double weight(Index u) const noexcept {
    return class_weights_.empty() ? 1.0 : class_weights_[static_cast<std::size_t>(label(u))];
  }

  std::span<const std::int32_t> labels_;
  std::span<const double> class_weights_;
};

template <class S>
double Classification::value_and_derivative(Execution execution, const MatrixView<S>& outputs,
                                            const NodeSelection& rows, std::span<const std::int32_t> nodes,
                                            double share, const MatrixView<S>& bar) const {
  layers::log_softmax_rows(execution, outputs.rows(), outputs.columns(), outputs.data(), outputs.stride());
  double sum = 0, total = 0;
  detail::for_known(*this, rows, nodes, [&](Index u, Index row) {
    sum -= weight(u) * static_cast<double>(outputs(row, label(u)));
    total += weight(u);
  });
  if (static_cast<Index>(nodes.size()) < rows.count()) detail::fill_zero(bar);
  detail::for_rows(rows, nodes, [&](Index u, Index row) {
    const S factor = known(u) ? static_cast<S>(share * weight(u) / total) : S(0);
    const S* log_p = outputs.data() + row * outputs.stride();
    S* out = bar.data() + row * bar.stride();
    detail::for_narrowing_tiles<S>(0, outputs.columns(), [&]<class T>(auto c) {
      using std::exp;
      c.store(out + c, T(factor) * exp(c.load(log_p + c)));
    });
    if (known(u)) out[label(u)] -= factor;
  });
  return sum / total;
}

template <class S>
void Classification::predict(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                             const MatrixView<double>& predictions) const {
  layers::log_softmax_rows(execution, outputs.rows(), outputs.columns(), outputs.data(), outputs.stride());
  detail::add_probabilities(execution, rows, outputs.columns(), outputs.data(), outputs.stride(),
                            predictions.data());
}

/// Any number of classes per node: the mean binary cross-entropy of sigmoid(outputs) over the known entries.
/// Unchecked: as for Classification.
class Multilabel : public detail::EntryLoss<Multilabel, std::int8_t> {
 public:
  static constexpr std::string_view name = "multilabel";

  /// \param targets  n × C: 1 or 0, −1 where unknown
  explicit Multilabel(const MatrixView<const std::int8_t>& targets) : EntryLoss(targets) {}

  /// \throws std::invalid_argument  targets of another shape, or one that is neither 0, 1 nor −1
  void validate(Index nodes, Index outputs) const {
    require_shape(targets_, nodes, outputs, "targets");
    for (Index u = 0; u < nodes; ++u) {
      for (Index c = 0; c < outputs; ++c) {
        if (targets_(u, c) < -1 || targets_(u, c) > 1) {
          throw_invalid_argument(detail::concat("targets(", u, ", ", c, ")"), static_cast<int>(targets_(u, c)),
                                 "must be 0 or 1, or -1 where unknown");
        }
      }
    }
  }

  /// log(1 + e^z) − z t.
  template <class S, class Slope>
  [[nodiscard]] static double entry(const MatrixView<S>& outputs, Index row, Index c, std::int8_t t,
                                    const Slope& slope) {
    const double z = static_cast<double>(outputs(row, c));
    slope(c, layers::sigmoid(z) - t);
    return std::max(z, 0.0) - z * t + std::log1p(std::exp(-std::abs(z)));
  }
  /// Probabilities.
  template <class S>
  void predict(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    detail::add_predictions(outputs, rows, predictions, [](double z, Index) { return layers::sigmoid(z); });
  }
  /// Mean binary cross-entropy, and the share of entries on the right side of ½.
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    Score r;
    double count = 0;
    const NodeSelection all(targets_.rows());
    detail::for_known_targets(targets_, all, nodes, [&](std::int8_t t, Index u, Index c) {
      const double p = t == 1 ? predictions(u, c) : 1 - predictions(u, c);
      r.loss -= std::log(std::max(p, std::numeric_limits<double>::min()));
      r.score += p > 0.5 ? 1 : 0;
      ++count;
    });
    return {r.loss / count, r.score / count};
  }
};

/// Real targets y ∈ R^k per node with Gaussian noise: −log N(y; μ, σ²), mean over the known targets.
///
/// With C = k, the outputs are μ, and σ is given. With C = 2k, the second half of the outputs is log σ, which is
/// learned; predictions are then means of log σ over the samples. Gaussian (target_losses.hpp) predicts the moments of
/// the mixture instead. Unchecked: as for Classification.
class Regression : public detail::EntryLoss<Regression, double> {
 public:
  static constexpr std::string_view name = "regression";

  /// \param targets    n × k, NaN where unknown
  /// \param deviation  σ, if it is not learned \throws std::invalid_argument  not positive and finite
  explicit Regression(const MatrixView<const double>& targets, double deviation = 1)
      : EntryLoss(targets), deviation_(deviation) {
    require(deviation > 0 && std::isfinite(deviation), "deviation", deviation, "must be positive and finite");
  }

  /// \throws std::invalid_argument  targets of another shape, or infinite ones
  void validate(Index nodes, Index outputs) const {
    const Index k = targets_.columns();
    detail::check_number_targets(targets_, nodes);
    if (outputs != k && outputs != 2 * k) {
      throw_invalid_argument("outputs", outputs,
                             detail::concat("must be ", k, " (means), or ", 2 * k, " (means and log deviations)"));
    }
  }

  /// −log N(y; μ, σ²).
  template <class S, class Slope>
  [[nodiscard]] double entry(const MatrixView<S>& outputs, Index row, Index c, double y,
                             const Slope& slope) const {
    const double log_sigma = log_deviation(outputs, row, c), precision = std::exp(-log_sigma);
    const double z = (static_cast<double>(outputs(row, c)) - y) * precision;
    slope(c, z, precision);
    if (learns_deviation(outputs.columns())) slope(targets_.columns() + c, 1 - z * z);
    return density(z, log_sigma);
  }
  /// Means and, where they are learned, log deviations.
  template <class S>
  void predict(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    detail::add_predictions(outputs, rows, predictions, [](double z, Index) { return z; });
  }
  /// Mean −log N and R² = 1 − Σ (y − μ)²/Σ (y − ȳ)² over all known targets.
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    return mean_score(predictions, nodes, [&](double y, Index u, Index c) {
      const double log_sigma = log_deviation(predictions, u, c);
      return density((predictions(u, c) - y) * std::exp(-log_sigma), log_sigma);
    });
  }

 private:
  [[nodiscard]] bool learns_deviation(Index outputs) const noexcept { return outputs == 2 * targets_.columns(); }
  template <class S>
  [[nodiscard]] double log_deviation(const MatrixView<S>& outputs, Index row, Index c) const {
    return learns_deviation(outputs.columns()) ? static_cast<double>(outputs(row, targets_.columns() + c))
                                               : std::log(deviation_);
  }
  [[nodiscard]] static double density(double z, double log_sigma) noexcept {
    return 0.5 * z * z + log_sigma + detail::half_log_two_pi;
  }

  double deviation_;
};

}  // namespace sheafnn
