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
class Multilabel {
 public:
  static constexpr std::string_view name = "multilabel";

  /// \param targets  n × C: 1 or 0, −1 where unknown
  explicit Multilabel(const MatrixView<const std::int8_t>& targets) : targets_(targets) {}

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
  [[nodiscard]] bool known(Index u) const noexcept { return detail::has_known_target(targets_, u); }

  template <class S>
  double value_and_derivative(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                              std::span<const std::int32_t> nodes, double share, const MatrixView<S>& bar) const {
    detail::fill_zero(bar);
    double sum = 0;
    const Index count = detail::known_target_count(targets_, rows, nodes);
    detail::for_known_targets(targets_, rows, nodes, [&](std::int8_t t, Index row, Index c) {
      const double z = static_cast<double>(outputs(row, c));
      sum += entropy(z, t);
      bar(row, c) = static_cast<S>(share * (layers::sigmoid(z) - t) / static_cast<double>(count));
    });
    return sum / static_cast<double>(count);
  }
  template <class S>
  void node_losses(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                   std::span<const std::int32_t> nodes, std::span<double> losses) const {
    detail::add_entry_losses(targets_, rows, nodes, losses, [&](std::int8_t t, Index row, Index c) {
      return entropy(static_cast<double>(outputs(row, c)), t);
    });
  }
  [[nodiscard]] SHEAFNN_NOINLINE double mean_loss(const NodeSelection& rows, std::span<const std::int32_t> nodes,
                                                  std::span<const double> losses) const {
    return detail::mean_over_targets(targets_, rows, nodes, losses);
  }
  /// Probabilities.
  template <class S>
  void predict(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    for (Index row = 0; row < outputs.rows(); ++row) {
      for (Index c = 0; c < outputs.columns(); ++c) {
        predictions(rows[row], c) += layers::sigmoid(static_cast<double>(outputs(row, c)));
      }
    }
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

 private:
  /// log(1 + e^z) − z t.
  [[nodiscard]] static double entropy(double z, std::int8_t t) {
    return std::max(z, 0.0) - z * t + std::log1p(std::exp(-std::abs(z)));
  }

  MatrixView<const std::int8_t> targets_;
};

/// Real targets y ∈ R^k per node with Gaussian noise: −log N(y; μ, σ²), mean over the known targets.
///
/// With C = k, the outputs are μ, and σ is given. With C = 2k, the second half of the outputs is log σ, which is
/// learned; predictions are then means of log σ over the samples. Gaussian (target_losses.hpp) predicts the moments of
/// the mixture instead. Unchecked: as for Classification.
class Regression {
 public:
  static constexpr std::string_view name = "regression";

  /// \param targets    n × k, NaN where unknown
  /// \param deviation  σ, if it is not learned \throws std::invalid_argument  not positive and finite
  explicit Regression(const MatrixView<const double>& targets, double deviation = 1)
      : targets_(targets), deviation_(deviation) {
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
  [[nodiscard]] bool known(Index u) const noexcept { return detail::has_known_target(targets_, u); }

  template <class S>
  double value_and_derivative(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                              std::span<const std::int32_t> nodes, double share, const MatrixView<S>& bar) const {
    detail::fill_zero(bar);
    double sum = 0;
    const Index count = detail::known_target_count(targets_, rows, nodes);
    const double factor = share / static_cast<double>(count);
    detail::for_known_targets(targets_, rows, nodes, [&](double y, Index row, Index c) {
      const double log_sigma = log_deviation(outputs, row, c);
      const double z = residual_of(outputs, y, row, c);
      sum += 0.5 * z * z + log_sigma + detail::half_log_two_pi;
      bar(row, c) = static_cast<S>(factor * z * std::exp(-log_sigma));
      if (learns_deviation(outputs.columns())) {
        bar(row, targets_.columns() + c) = static_cast<S>(factor * (1 - z * z));
      }
    });
    return sum / static_cast<double>(count);
  }
  template <class S>
  void node_losses(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                   std::span<const std::int32_t> nodes, std::span<double> losses) const {
    detail::add_entry_losses(targets_, rows, nodes, losses, [&](double y, Index row, Index c) {
      const double z = residual_of(outputs, y, row, c);
      return 0.5 * z * z + log_deviation(outputs, row, c) + detail::half_log_two_pi;
    });
  }
  [[nodiscard]] SHEAFNN_NOINLINE double mean_loss(const NodeSelection& rows, std::span<const std::int32_t> nodes,
                                                  std::span<const double> losses) const {
    return detail::mean_over_targets(targets_, rows, nodes, losses);
  }
  /// Means and, where they are learned, log deviations.
  template <class S>
  void predict(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    for (Index row = 0; row < outputs.rows(); ++row) {
      for (Index c = 0; c < outputs.columns(); ++c) {
        predictions(rows[row], c) += static_cast<double>(outputs(row, c));
      }
    }
  }
  /// Mean −log N and R² = 1 − Σ (y − μ)²/Σ (y − ȳ)² over all known targets.
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    double loss = 0, count = 0;
    const NodeSelection all(targets_.rows());
    detail::for_known_targets(targets_, all, nodes, [&](double y, Index u, Index c) {
      const double log_sigma = log_deviation(predictions, u, c);
      const double z = (predictions(u, c) - y) * std::exp(-log_sigma);
      loss += 0.5 * z * z + log_sigma + detail::half_log_two_pi;
      ++count;
    });
    return {loss / count, detail::explained_share(targets_, predictions, nodes)};
  }

 private:
  [[nodiscard]] bool learns_deviation(Index outputs) const noexcept { return outputs == 2 * targets_.columns(); }
  template <class S>
  [[nodiscard]] double log_deviation(const MatrixView<S>& outputs, Index row, Index c) const {
    return learns_deviation(outputs.columns()) ? static_cast<double>(outputs(row, targets_.columns() + c))
                                               : std::log(deviation_);
  }

  /// (μ − y)/σ.
  template <class S>
  [[nodiscard]] double residual_of(const MatrixView<S>& outputs, double y, Index row, Index c) const {
    return (static_cast<double>(outputs(row, c)) - y) * std::exp(-log_deviation(outputs, row, c));
  }

  MatrixView<const double> targets_;
  double deviation_;
};

}  // namespace sheafnn
