/// \file
/// PartClassification: the loss Classification (bsnn/losses.hpp) of nodes that several ranks own,
///
///     Σ_p Σ_{u of part p} w_{y_u} (−log p(y_u | u)) / Σ_p Σ_{u of part p} w_{y_u},
///
/// of which every rank computes its own nodes' share; elbo() adds up the shares.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/stop_metric.hpp"
#include "sheafnn/distributed/distributed_data.hpp"

namespace sheafnn::distributed {

/// A Loss that spans parts (bsnn/loss_parts.hpp), of the labels of DistributedNodes, which must outlive it.
class PartClassification {
 public:
  static constexpr std::string_view name = "distributed classification";
  static constexpr bool spans_parts = true;

  /// Every rank makes it at the same time: ranks add up the weights of their training nodes.
  ///
  /// \param train          owned training nodes, on which value_and_derivative() will be asked for
  /// \param class_weights  as of Classification
  /// \throws std::invalid_argument  node numbers out of range, or no training node of any rank with a label
  PartClassification(DistributedNodes& data, std::span<const std::int32_t> train,
                     std::span<const double> class_weights = {})
      : ranks_(&data.ranks()), numbers_(&data.numbers()), loss_(data.labels(), class_weights) {
    for (const std::int32_t u : train) require_between("train", Index{u}, 0, data.numbers().own - 1);
    total_ = {weight(train)};
    ranks_->sum(std::span<double>(total_));
    require(total_[0] > 0, "train", "nodes", "none of them has a known target, on any rank");
  }

  /// \throws std::invalid_argument  as Classification
  void validate(Index nodes, Index outputs) const { loss_.validate(nodes, outputs); }
  /// Unchecked: u is a node of the part.
  [[nodiscard]] bool known(Index u) const noexcept { return loss_.known(u); }
  /// Does any rank have nodes? Takes any.
  [[nodiscard]] bool has_nodes(std::span<const std::int32_t> nodes) const {
    double count[] = {static_cast<double>(nodes.size())};
    ranks_->sum(std::span<double>(count));
    return count[0] > 0;
  }

  /// This rank's share of the mean, and share times its derivative.
  ///
  /// \throws what Classification throws
  template <class S>
  double value_and_derivative(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                              std::span<const std::int32_t> nodes, double share, const MatrixView<S>& bar) const {
    const double part = weight(nodes) / total_[0];
    if (part == 0) {
      sheafnn::detail::fill_zero(bar);
      return 0;
    }
    return part * loss_.value_and_derivative(execution, outputs, rows, nodes, share * part, bar);
  }
  /// As Classification, of this rank's nodes. Unchecked: as there.
  template <class S>
  void predict(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    loss_.predict(execution, outputs, rows, predictions);
  }
  /// Mean negative log-likelihood and accuracy of all ranks' nodes; NaN without nodes. Unchecked: as Classification.
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    double sums[] = {0, weight(nodes), 0, 0};
    for (const std::int32_t u : nodes) sums[3] += known(u) ? 1 : 0;
    if (sums[3] > 0) {
      const Score own = loss_.score(predictions, nodes);
      sums[0] = own.loss * sums[1];
      sums[2] = own.score * sums[3];
    }
    ranks_->sum(std::span<double>(sums));
    if (sums[3] == 0) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
    return {sums[0] / sums[1], sums[2] / sums[3]};
  }

  /// A metric of classes of all ranks' nodes, as sheafnn::train() computes it; NaN without labelled nodes. Rank 0 gathers C
  /// + 2 values per labelled node, in the order of the nodes' indices. So the same predictions give the same bits as in one
  /// process. Unchecked: that `stop_on` is a metric, and the shape of the predictions, n × C.
  [[nodiscard]] double metric(StopOn stop_on, const MatrixView<const double>& predictions,
                              std::span<const std::int32_t> nodes) const {
    const std::size_t classes = static_cast<std::size_t>(predictions.columns()), row = classes + 2;
    std::vector<double> own;
    for (const std::int32_t u : nodes) {
      if (!known(u)) continue;
      own.push_back(static_cast<double>(numbers_->node[static_cast<std::size_t>(u)]));
      own.push_back(loss_.labels()[static_cast<std::size_t>(u)]);
      const auto probabilities = predictions.row(u);
      own.insert(own.end(), probabilities.begin(), probabilities.end());
    }
    const std::vector<double> rows = ranks_->gather(std::span<const double>(own));
    double value = std::numeric_limits<double>::quiet_NaN();
    if (!rows.empty()) {
      std::vector<std::size_t> order(rows.size() / row);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::sort(order.begin(), order.end(),
                [&](std::size_t a, std::size_t b) { return rows[a * row] < rows[b * row]; });
      std::vector<std::int32_t> labels, numbers(order.size());
      std::vector<double> probabilities;
      for (const std::size_t i : order) {
        labels.push_back(static_cast<std::int32_t>(rows[i * row + 1]));
        const auto first = rows.begin() + static_cast<Index>(i * row) + 2;
        probabilities.insert(probabilities.end(), first, first + static_cast<Index>(classes));
      }
      std::iota(numbers.begin(), numbers.end(), 0);
      sheafnn::detail::MetricWorkspace work;
      value = sheafnn::detail::metric_of(stop_on, probabilities, predictions.columns(), labels, numbers, work);
    }
    ranks_->broadcast(std::span<double>(&value, 1));
    return value;
  }
  /// Can the nodes of all ranks be ranked? \throws std::invalid_argument  on all ranks, for a metric that ranks nodes
  ///                                               that are all of one class
  void check_stop_on(StopOn stop_on, std::span<const std::int32_t> validation) const {
    if (stop_on != StopOn::roc_auc && stop_on != StopOn::average_precision) return;
    std::int32_t least = std::numeric_limits<std::int32_t>::max(), most = -1;
    for (const std::int32_t u : validation) {
      if (!known(u)) continue;
      least = std::min(least, loss_.labels()[static_cast<std::size_t>(u)]);
      most = std::max(most, loss_.labels()[static_cast<std::size_t>(u)]);
    }
    for (const std::int32_t label : ranks_->all(least)) least = std::min(least, label);
    for (const std::int32_t label : ranks_->all(most)) most = std::max(most, label);
    require(least != most, "stop_on", to_string(stop_on), "the validation nodes are all of one class");
  }

 private:
  [[nodiscard]] double weight(std::span<const std::int32_t> nodes) const {
    double sum = 0;
    for (const std::int32_t u : nodes) {
      if (!known(u)) continue;
      sum += loss_.weighted()
                 ? loss_.class_weights()[static_cast<std::size_t>(loss_.labels()[static_cast<std::size_t>(u)])]
                 : 1;
    }
    return sum;
  }

  Communicator* ranks_;
  const PartNumbers* numbers_;
  Classification loss_;
  std::array<double, 1> total_{};  ///< weight of the training nodes of all ranks
};

}  // namespace sheafnn::distributed
