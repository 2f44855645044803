/// \file
/// Loss: what a loss of node outputs provides, and walks over nodes and their targets that losses share. The library's own losses
/// are in losses.hpp.
///
/// A loss holds views of its targets, which must outlive it. Outputs are rows of C raw numbers, one for each node of a
/// NodeSelection. In all functions the loss is a mean over the nodes in `nodes` whose target is known. Source: math: "Loss" (3.35).
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>

#include "sheafnn/bsnn/loss_parts.hpp"
#include "sheafnn/bsnn/pass_checks.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/special_functions.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/softmax.hpp"

namespace sheafnn {

/// The quality of predictions of some nodes: a loss, and a score, of which larger values are better.
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
///   - score(predictions, nodes): the score of mean predictions; at least one node has a known target.
/// SampleLoss::predictive (options.hpp) also needs
///   - node_losses(execution, outputs, rows, nodes, losses): sets the loss of every node, −log of the likelihood of its
///     target. A node without target has 0. `outputs` may be overwritten;
///   - mean_loss(rows, nodes, losses): what value_and_derivative() returns if the nodes have these losses.
/// They call all functions but the first three only with arguments that check_loss() has accepted, perhaps from several
/// threads at the same time.
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

/// The further functions that SampleLoss::predictive needs.
template <class L, class S>
concept NodewiseLoss = Loss<L, S> &&
    requires(const L& loss, Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
             std::span<const std::int32_t> nodes, std::span<double> losses) {
  loss.node_losses(execution, outputs, rows, nodes, losses);
  { loss.mean_loss(rows, nodes, losses) } -> std::same_as<double>;
};

/// A loss over a model: a Loss over its scalars, or one with targets of its own.
template <class L, class Model>
concept LossOf = Loss<L, typename Model::Scalar> || has_own_targets<L>;

namespace detail {

/// Does a loss have classes and predict their probabilities, like Classification?
template <class L>
inline constexpr bool has_classes = !spans_parts<L> && requires(const L& loss) {
  loss.labels();
  loss.class_weights();
};

}  // namespace detail

/// \throws std::invalid_argument  targets that do not fit, nodes that do not increase or that `rows` lacks, or no node
///         with a target
template <class L>
void check_loss(const L& loss, Index node_count, Index outputs, const NodeSelection& rows,
                std::span<const std::int32_t> nodes) {
  loss.validate(node_count, outputs);
  require(spans_parts<L> || !nodes.empty(), "nodes", "an empty set", "a loss needs at least one node");
  detail::check_increasing(nodes, node_count, "node");
  bool known = spans_parts<L>;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Index u = nodes[i];
    require(rows.contains(u), ArgumentName({}, "nodes", i), u, "the pass computes no output of this node");
    known = known || loss.known(u);
  }
  if (!known)
    throw_invalid_argument("nodes", detail::concat(nodes.size(), " nodes"), "none of them has a known target");
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
/// Calls body(node, row) for the nodes with a known target.
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

/// How many targets for_known_targets() visits.
template <class T>
[[nodiscard]] Index known_target_count(const MatrixView<const T>& targets, const NodeSelection& rows,
                                       std::span<const std::int32_t> nodes) {
  Index count = 0;
  for_known_targets(targets, rows, nodes, [&](T, Index, Index) { ++count; });
  return count;
}

/// Sets the losses of nodes to the sums of loss(target, row, column) over their known targets.
template <class T, class EntryLoss>
void add_entry_losses(const MatrixView<const T>& targets, const NodeSelection& rows,
                      std::span<const std::int32_t> nodes, std::span<double> losses, const EntryLoss& loss) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    losses[i] = 0;
    for_known_targets(targets, rows, nodes.subspan(i, 1),
                      [&](T target, Index row, Index c) { losses[i] += loss(target, row, c); });
  }
}
/// Their mean over all of these targets.
template <class T>
[[nodiscard]] double mean_over_targets(const MatrixView<const T>& targets, const NodeSelection& rows,
                                       std::span<const std::int32_t> nodes, std::span<const double> losses) {
  const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
  return sum / static_cast<double>(known_target_count(targets, rows, nodes));
}

/// 1 − Σ (y − μ)²/Σ (y − ȳ)² over the known targets y of the nodes, with μ in the same columns of the predictions; 0 where
/// the targets do not differ. Sums are of differences from one of the numbers: where all are equal, these are exactly 0.
[[nodiscard]] inline double explained_share(const MatrixView<const double>& targets,
                                            const MatrixView<const double>& predictions,
                                            std::span<const std::int32_t> nodes) {
  double count = 0, one = 0, mean = 0, residual = 0, spread = 0;
  const NodeSelection all(targets.rows());
  for_known_targets(targets, all, nodes, [&](double y, Index u, Index c) {
    const double difference = predictions(u, c) - y;
    residual += difference * difference;
    if (count == 0) one = y;
    mean += y - one;
    ++count;
  });
  mean /= count;
  for_known_targets(targets, all, nodes, [&](double y, Index, Index) {
    const double difference = y - one - mean;
    spread += difference * difference;
  });
  return spread > 0 ? 1 - residual / spread : 0;
}

/// Checks targets, n × k; `limit` says in messages which values allowed(y) accepts.
///
/// \throws std::invalid_argument  another number of rows than nodes, or a value that is not allowed
template <class Allowed>
void check_number_targets(const MatrixView<const double>& targets, Index nodes, std::string_view limit,
                          const Allowed& allowed) {
  if (targets.rows() != nodes) {
    throw_invalid_argument("rows of targets", targets.rows(), concat("must equal the number of nodes, ", nodes));
  }
  for (Index u = 0; u < nodes; ++u) {
    for (Index c = 0; c < targets.columns(); ++c) {
      if (std::isnan(targets(u, c)) || (std::isfinite(targets(u, c)) && allowed(targets(u, c)))) continue;
      throw_invalid_argument(concat("targets(", u, ", ", c, ")"), targets(u, c),
                             concat("must be ", limit, ", or NaN where unknown"));
    }
  }
}
/// The same check for finite numbers.
inline void check_number_targets(const MatrixView<const double>& targets, Index nodes) {
  check_number_targets(targets, nodes, "finite", [](double) { return true; });
}

/// Whether any target of node u is known.
template <class T>
[[nodiscard]] bool has_known_target(const MatrixView<const T>& targets, Index u) noexcept {
  const auto row = targets.row(u);
  return std::any_of(row.begin(), row.end(), [](T target) { return is_known(target); });
}

/// Sets all elements to 0, row by row, since rows may have gaps.
template <class S>
void fill_zero(const MatrixView<S>& m) {
  for (Index i = 0; i < m.rows(); ++i) std::fill_n(m.data() + i * m.stride(), m.columns(), S(0));
}

/// Adds prediction(output, column) of every output to its node's predictions.
template <class S, class Prediction>
void add_predictions(const MatrixView<S>& outputs, const NodeSelection& rows,
                     const MatrixView<double>& predictions, const Prediction& prediction) {
  for (Index row = 0; row < outputs.rows(); ++row) {
    for (Index c = 0; c < outputs.columns(); ++c) {
      predictions(rows[row], c) += prediction(static_cast<double>(outputs(row, c)), c);
    }
  }
}

/// What losses of numbers or labels share, n × k with NaN or −1 where unknown. Own::entry(outputs, row, c, y, slope) returns
/// the loss of the target y in column c. For each output that it depends on, it calls slope(column, derivative). The derivative
/// may be given as two factors. Unchecked: as for Classification (losses.hpp).
template <class Own, class T>
class EntryLoss {
 public:
  [[nodiscard]] bool known(Index u) const noexcept { return has_known_target(targets_, u); }

  template <class S>
  double value_and_derivative(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                              std::span<const std::int32_t> nodes, double share, const MatrixView<S>& bar) const {
    fill_zero(bar);
    double sum = 0;
    const double count = static_cast<double>(known_target_count(targets_, rows, nodes)), factor = share / count;
    for_known_targets(targets_, rows, nodes, [&](T y, Index row, Index c) {
      sum += own().entry(outputs, row, c, y, [&](Index column, double slope, double other = 1) {
        bar(row, column) = static_cast<S>(factor * slope * other);
      });
    });
    return sum / count;
  }
  template <class S>
  void node_losses(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                   std::span<const std::int32_t> nodes, std::span<double> losses) const {
    add_entry_losses(targets_, rows, nodes, losses, [&](T y, Index row, Index c) {
      return own().entry(outputs, row, c, y, [](Index, double, double = 1) {});
    });
  }
  [[nodiscard]] SHEAFNN_NOINLINE double mean_loss(const NodeSelection& rows, std::span<const std::int32_t> nodes,
                                                  std::span<const double> losses) const {
    return mean_over_targets(targets_, rows, nodes, losses);
  }

 protected:
  explicit EntryLoss(const MatrixView<const T>& targets) : targets_(targets) {}

  /// The mean of loss(y, u, c) over the known targets of the nodes, and R².
  template <class LossOfEntry>
  [[nodiscard]] Score mean_score(const MatrixView<const double>& predictions, std::span<const std::int32_t> nodes,
                                 const LossOfEntry& loss) const {
    double sum = 0, count = 0;
    for_known_targets(targets_, NodeSelection(targets_.rows()), nodes, [&](T y, Index u, Index c) {
      sum += loss(y, u, c);
      ++count;
    });
    return {sum / count, explained_share(targets_, predictions, nodes)};
  }

  MatrixView<const T> targets_;

 private:
  [[nodiscard]] const Own& own() const noexcept { return static_cast<const Own&>(*this); }
};

}  // namespace detail

}  // namespace sheafnn
