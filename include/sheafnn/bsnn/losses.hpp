/// \file
/// Losses of node outputs: classification, multilabel classification, regression; and what an own one provides.
///
/// A loss holds views of its targets, which must outlive it. Outputs are rows of C raw numbers, one for each node of
/// a NodeSelection; in all functions the loss is a mean over those of `nodes` whose target is known.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/loss_parts.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/softmax.hpp"

namespace sheafnn {

/// What predictions of some nodes are worth: a loss, and a score, of which more is better.
struct Score {
  double loss = 0, score = 0;
};

/// What elbo() and train() need of a loss over scalars S:
///   - `name`, for messages;
///   - validate(nodes, outputs): throws std::invalid_argument unless the targets fit n nodes and C outputs;
///   - known(u): has node u a target?
///   - value_and_derivative(execution, outputs, rows, nodes, share, outputs_bar): the loss, and share times its
///     derivative in the raw outputs. `outputs` may be overwritten; outputs_bar is to be overwritten wholly;
///   - predict(execution, outputs, rows, predictions): adds to row u of predictions (n × C, double) what the raw
///     outputs predict; `outputs` may be overwritten;
///   - score(predictions, nodes): of mean predictions; of some of the nodes the target is known.
/// They call the last three only with what check_loss() has let through, with several threads perhaps at the same time.
template <class L, class S>
concept Loss = requires(const L& loss, Execution execution, const MatrixView<S>& outputs,
                        const NodeSelection& rows, std::span<const std::int32_t> nodes,
                        const MatrixView<double>& predictions) {
  { L::name } -> std::convertible_to<std::string_view>;
  loss.validate(Index{}, Index{});
  { loss.known(Index{}) } -> std::same_as<bool>;
  { loss.value_and_derivative(execution, outputs, rows, nodes, 1.0, outputs) } -> std::same_as<double>;
  loss.predict(execution, outputs, rows, predictions);
  { loss.score(predictions, nodes) } -> std::same_as<Score>;
};

/// \throws std::invalid_argument  targets that do not fit, nodes that do not increase or that `rows` lacks, or no node
///         with a target
template <class L>
void check_loss(const L& loss, Index node_count, Index outputs, const NodeSelection& rows,
                std::span<const std::int32_t> nodes) {
  loss.validate(node_count, outputs);
  require(spans_parts<L> || !nodes.empty(), "nodes", "an empty set", "a loss needs at least one node");
  bool known = spans_parts<L>;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Index u = nodes[i];
    const auto refuse = [&](const std::string& reason) {
      throw_invalid_argument(detail::concat("nodes[", i, "]"), u, reason);
    };
    if (u < 0 || u >= node_count) refuse(detail::concat("must be between 0 and ", node_count - 1));
    if (i > 0 && nodes[i - 1] >= u) refuse("node numbers must increase");
    if (!rows.contains(u)) refuse("the pass computes no output of this node");
    known = known || loss.known(u);
  }
  if (!known) throw_invalid_argument("nodes", detail::concat(nodes.size(), " nodes"), "none of them has a known target");
}

namespace detail {

/// Calls body(node, row) for the nodes.
template <class Body>
void for_rows(const NodeSelection& rows, std::span<const std::int32_t> nodes, const Body& body) {
  const bool same = static_cast<Index>(nodes.size()) == rows.count();  // both increase
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    body(static_cast<Index>(nodes[i]), same ? static_cast<Index>(i) : rows.index_of(nodes[i]));
  }
}
/// The same for those with a target.
template <class L, class Body>
void for_known(const L& loss, const NodeSelection& rows, std::span<const std::int32_t> nodes, const Body& body) {
  for_rows(rows, nodes, [&](Index u, Index row) {
    if (loss.known(u)) body(u, row);
  });
}

/// A target that is unknown is −1, or NaN.
[[nodiscard]] inline bool is_known(std::int8_t target) noexcept { return target >= 0; }
[[nodiscard]] inline bool is_known(double target) noexcept { return !std::isnan(target); }

/// Calls body(target, row, column) for the known targets (n × C) of the nodes.
template <class T, class Body>
void for_known_targets(const MatrixView<const T>& targets, const NodeSelection& rows,
                       std::span<const std::int32_t> nodes, const Body& body) {
  for_rows(rows, nodes, [&](Index u, Index row) {
    for (Index c = 0; c < targets.columns(); ++c) {
      if (is_known(targets(u, c))) body(targets(u, c), row, c);
    }
  });
}

/// How many numbers for_known_targets() visits.
template <class T>
[[nodiscard]] Index known_target_count(const MatrixView<const T>& targets, const NodeSelection& rows,
                                       std::span<const std::int32_t> nodes) {
  Index count = 0;
  for_known_targets(targets, rows, nodes, [&](T, Index, Index) { ++count; });
  return count;
}

/// Whether any target of node u is known.
template <class T>
[[nodiscard]] bool has_known_target(const MatrixView<const T>& targets, Index u) noexcept {
  const auto row = targets.row(u);
  return std::any_of(row.begin(), row.end(), [](T target) { return is_known(target); });
}

/// The numbers of the rows, and none between them: a loss may be that of some columns.
template <class S>
void fill_zero(const MatrixView<S>& m) {
  for (Index i = 0; i < m.rows(); ++i) std::fill_n(m.data() + i * m.stride(), m.columns(), S(0));
}

}  // namespace detail

/// One class per node: −log softmax(outputs)[label], weighted by class if weights are given.
///
///     Σ_u w_{y_u} (−log p(y_u | u)) / Σ_u w_{y_u}
///
/// Unchecked: of all but validate(), that check_loss() does not throw, and that views have rows of C numbers.
class Classification {
 public:
  static constexpr std::string_view name = "classification";

  /// \param labels         n classes in [0, C), −1 where unknown
  /// \param class_weights  C positive weights, or empty: all 1
  explicit Classification(std::span<const std::int32_t> labels, std::span<const double> class_weights = {})
      : labels_(labels), class_weights_(class_weights) {}

  explicit Classification(std::vector<std::int32_t>&&, std::span<const double> = {}) = delete;  // they would dangle
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
        throw_invalid_argument(detail::concat("class_weights[", c, "]"), class_weights_[c], "must be positive and finite");
      }
    }
  }
  [[nodiscard]] bool known(Index u) const noexcept { return label(u) >= 0; }

  /// Turns `outputs` into log-probabilities.
  template <class S>
  double value_and_derivative(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                              std::span<const std::int32_t> nodes, double share, const MatrixView<S>& bar) const;
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
  log_softmax_rows(execution, outputs.rows(), outputs.columns(), outputs.data(), outputs.stride());
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
    detail::for_tiles<S>(0, outputs.columns(), [&]<class T>(Index c) {
      using std::exp;
      detail::store(out + c, T(factor) * exp(detail::load<T>(log_p + c)));
    });
    if (known(u)) out[label(u)] -= factor;
  });
  return sum / total;
}

template <class S>
void Classification::predict(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                             const MatrixView<double>& predictions) const {
  log_softmax_rows(execution, outputs.rows(), outputs.columns(), outputs.data(), outputs.stride());
  detail::add_probabilities(execution, rows, outputs.columns(), outputs.data(), outputs.stride(), predictions.data());
}

/// Any number of classes per node: the mean binary cross-entropy of sigmoid(outputs) over the known entries.
/// Unchecked: as of Classification.
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
      sum += std::max(z, 0.0) - z * t + std::log1p(std::exp(-std::abs(z)));  // log(1 + e^z) − z t
      bar(row, c) = static_cast<S>(share * (sigmoid(z) - t) / static_cast<double>(count));
    });
    return sum / static_cast<double>(count);
  }
  /// Probabilities.
  template <class S>
  void predict(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    for (Index row = 0; row < outputs.rows(); ++row) {
      for (Index c = 0; c < outputs.columns(); ++c) {
        predictions(rows[row], c) += sigmoid(static_cast<double>(outputs(row, c)));
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
  MatrixView<const std::int8_t> targets_;
};

/// Real targets y ∈ R^k per node with Gaussian noise: −log N(y; μ, σ²), mean over the known numbers.
///
/// With C = k outputs they are μ, and σ is given; with C = 2k the second half are log σ, learned.
/// Unchecked: as of Classification.
class Regression {
 public:
  static constexpr std::string_view name = "regression";

  /// \param targets    n × k, NaN where unknown
  /// \param deviation  σ, where it is not learned \throws std::invalid_argument  not positive and finite
  explicit Regression(const MatrixView<const double>& targets, double deviation = 1)
      : targets_(targets), deviation_(deviation) {
    require(deviation > 0 && std::isfinite(deviation), "deviation", deviation, "must be positive and finite");
  }

  /// \throws std::invalid_argument  targets of another shape, or infinite ones
  void validate(Index nodes, Index outputs) const {
    const Index k = targets_.columns();
    if (targets_.rows() != nodes) {
      throw_invalid_argument("rows of targets", targets_.rows(),
                             detail::concat("must equal the number of nodes, ", nodes));
    }
    if (outputs != k && outputs != 2 * k) {
      throw_invalid_argument("outputs", outputs,
                             detail::concat("must be ", k, " (means), or ", 2 * k, " (means and log deviations)"));
    }
    for (Index u = 0; u < nodes; ++u) {
      for (Index c = 0; c < k; ++c) {
        if (std::isinf(targets_(u, c))) {
          throw_invalid_argument(detail::concat("targets(", u, ", ", c, ")"), targets_(u, c),
                                 "must be finite, or NaN where unknown");
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
    const double factor = share / static_cast<double>(count);
    detail::for_known_targets(targets_, rows, nodes, [&](double y, Index row, Index c) {
      const double log_sigma = log_deviation(outputs, row, c);
      const double z = (static_cast<double>(outputs(row, c)) - y) * std::exp(-log_sigma);
      sum += 0.5 * z * z + log_sigma + half_log_two_pi;
      bar(row, c) = static_cast<S>(factor * z * std::exp(-log_sigma));
      if (learns_deviation(outputs.columns())) {
        bar(row, targets_.columns() + c) = static_cast<S>(factor * (1 - z * z));
      }
    });
    return sum / static_cast<double>(count);
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
  /// Mean −log N and R² = 1 − Σ (y − μ)²/Σ (y − ȳ)² over all numbers.
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    double loss = 0, count = 0, mean = 0, residual = 0, spread = 0;
    const NodeSelection all(targets_.rows());
    const auto for_entries = [&](const auto& body) { detail::for_known_targets(targets_, all, nodes, body); };
    for_entries([&](double y, Index u, Index c) {
      const double log_sigma = log_deviation(predictions, u, c);
      const double difference = predictions(u, c) - y, z = difference * std::exp(-log_sigma);
      loss += 0.5 * z * z + log_sigma + half_log_two_pi;
      residual += difference * difference;
      mean += y;
      ++count;
    });
    mean /= count;
    for_entries([&](double y, Index, Index) { spread += (y - mean) * (y - mean); });
    return {loss / count, spread > 0 ? 1 - residual / spread : 0};
  }

 private:
  static constexpr double half_log_two_pi = 0.91893853320467274178;
  [[nodiscard]] bool learns_deviation(Index outputs) const noexcept { return outputs == 2 * targets_.columns(); }
  template <class S>
  [[nodiscard]] double log_deviation(const MatrixView<S>& outputs, Index row, Index c) const {
    return learns_deviation(outputs.columns()) ? static_cast<double>(outputs(row, targets_.columns() + c))
                                               : std::log(deviation_);
  }

  MatrixView<const double> targets_;
  double deviation_;
};

}  // namespace sheafnn
