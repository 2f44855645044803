/// \file
/// AnyTargetLoss: a loss of numbers, counts, several labels or ordered classes. It is chosen at run time and owns its
/// targets, so that a network is compiled once for all losses.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/ordinal_loss.hpp"
#include "sheafnn/bsnn/target_losses.hpp"
#include "sheafnn/core/names.hpp"

namespace sheafnn {

/// What targets are.
enum class TargetLoss : std::uint8_t {
  squared,     ///< numbers: Regression with deviation 1
  gaussian,    ///< numbers with a learned variance: Gaussian
  poisson,     ///< counts: Poisson
  multilabel,  ///< 0 and 1: Multilabel
  ordinal      ///< ordered classes, one per node: Ordinal
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(TargetLoss) {
  return std::array{"squared", "gaussian", "poisson", "multilabel", "ordinal"};
}

/// Targets of any loss, n × k values with NaN where unknown.
struct TargetNumbers {
  std::vector<double> values = {};      ///< n × k, row-major
  Index columns = 1;                    ///< k
  std::vector<double> base_rates = {};  ///< of counts: k positive numbers, or empty: all 1
  Index classes = 2;                    ///< K, number of ordered classes
};

/// See the file comment; a NodewiseLoss (loss.hpp) with an uncertain kind. Unchecked: as for Classification (losses.hpp).
class AnyTargetLoss {
  /// Calls use(loss); losses are views that cost nothing to make.
  template <class Use>
  decltype(auto) visit(const Use& use) const {
    switch (kind_) {
      case TargetLoss::squared:
        return use(Regression(numbers()));
      case TargetLoss::gaussian:
        return use(Gaussian(numbers()));
      case TargetLoss::poisson:
        return use(Poisson(numbers(), targets_.base_rates));
      case TargetLoss::multilabel:
        return use(
            Multilabel({labels_.data(), static_cast<Index>(labels_.size()) / targets_.columns, targets_.columns}));
      default:
        return use(Ordinal(std::span(classes_)));
    }
  }

 public:
  static constexpr std::string_view name = "targets";

  /// \throws std::invalid_argument  a number of values that is not a multiple of k, or a label other than 0 and 1
  /// \throws std::invalid_argument  an ordered class outside [0, K), several targets of them, or K below 2. The
  ///         loss checks the rest in validate()
  AnyTargetLoss(TargetLoss kind, TargetNumbers targets) : kind_(kind), targets_(std::move(targets)) {
    require(targets_.columns >= 1, "columns", targets_.columns, "must be at least 1");
    const std::size_t k = static_cast<std::size_t>(targets_.columns);
    require(targets_.values.size() % k == 0, "values", targets_.values.size(),
            detail::concat("must be a multiple of ", k));
    if (kind == TargetLoss::multilabel) labels_ = whole_numbers<std::int8_t>("labels", 1);
    if (kind == TargetLoss::ordinal) {
      require(targets_.columns == 1, "columns", targets_.columns, "ordered classes are one target of each node");
      require(targets_.classes >= 2, "classes", targets_.classes, "must be at least 2");
      classes_ = whole_numbers<std::int32_t>("classes", targets_.classes - 1);
    }
  }
  /// A loss of n nodes with unknown targets, which predicts.
  ///
  /// \param like  its values are not read
  /// \throws std::invalid_argument  as above
  AnyTargetLoss(TargetLoss kind, TargetNumbers like, Index nodes)
      : AnyTargetLoss(kind, with_values(std::move(like), nodes)) {}

  // Losses view the values that it owns; a vector that is moved keeps its memory.
  AnyTargetLoss(const AnyTargetLoss&) = delete;
  AnyTargetLoss& operator=(const AnyTargetLoss&) = delete;
  AnyTargetLoss(AnyTargetLoss&&) = default;
  AnyTargetLoss& operator=(AnyTargetLoss&&) = default;
  ~AnyTargetLoss() = default;

  [[nodiscard]] TargetLoss kind() const noexcept { return kind_; }
  /// C, the number of outputs per node that a network needs.
  [[nodiscard]] Index outputs() const noexcept {
    if (kind_ == TargetLoss::gaussian) return 2 * targets_.columns;
    return kind_ == TargetLoss::ordinal ? targets_.classes - 1 : targets_.columns;
  }
  /// n × k.
  [[nodiscard]] MatrixView<const double> numbers() const noexcept {
    const Index k = targets_.columns;
    return {targets_.values.data(), static_cast<Index>(targets_.values.size()) / k, k};
  }

  void validate(Index nodes, Index outputs) const {
    visit([&](const auto& own) { own.validate(nodes, outputs); });
  }
  [[nodiscard]] bool known(Index u) const {
    return visit([&](const auto& own) { return own.known(u); });
  }
  template <class S>
  double value_and_derivative(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                              std::span<const std::int32_t> nodes, double share, const MatrixView<S>& bar) const {
    return visit(
        [&](const auto& own) { return own.value_and_derivative(execution, outputs, rows, nodes, share, bar); });
  }
  template <class S>
  void node_losses(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                   std::span<const std::int32_t> nodes, std::span<double> losses) const {
    visit([&](const auto& own) { own.node_losses(execution, outputs, rows, nodes, losses); });
  }
  [[nodiscard]] double mean_loss(const NodeSelection& rows, std::span<const std::int32_t> nodes,
                                 std::span<const double> losses) const {
    return visit([&](const auto& own) { return own.mean_loss(rows, nodes, losses); });
  }
  template <class S>
  void predict(Execution execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    visit([&](const auto& own) { own.predict(execution, outputs, rows, predictions); });
  }
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    return visit([&](const auto& own) { return own.score(predictions, nodes); });
  }

  /// What predictions (n × C) mean: expected numbers or probabilities of labels, n × k; of ordered classes the
  /// probabilities, n × K.
  [[nodiscard]] std::vector<double> expectations(const MatrixView<const double>& predictions) const {
    if (kind_ == TargetLoss::ordinal) return Ordinal::probabilities(predictions);
    std::vector<double> r;
    for (Index u = 0; u < predictions.rows(); ++u) {
      for (Index c = 0; c < targets_.columns; ++c) r.push_back(predictions(u, c));
    }
    return r;
  }
  /// Standard deviations that predictions (n × C) have, n × k: of Gaussian from the moments, of Poisson √λ. Empty for other
  /// losses.
  [[nodiscard]] std::vector<double> deviations(const MatrixView<const double>& predictions) const {
    std::vector<double> r;
    if (kind_ == TargetLoss::gaussian) r = Gaussian(numbers()).variances(predictions);
    if (kind_ == TargetLoss::poisson) r = expectations(predictions);
    for (double& variance : r) variance = std::sqrt(variance);
    return r;
  }
  /// As Gaussian::intervals() and Poisson::intervals().
  ///
  /// \throws std::invalid_argument  also: another loss, which has no distribution of the numbers
  [[nodiscard]] uncertainty::Intervals intervals(std::span<const double> samples, Index sample_count,
                                                 double coverage) const {
    if (kind_ == TargetLoss::gaussian) return Gaussian(numbers()).intervals(samples, sample_count, coverage);
    if (kind_ == TargetLoss::poisson) {
      return Poisson(numbers(), targets_.base_rates).intervals(samples, sample_count, coverage);
    }
    throw_invalid_argument("loss", to_string(kind_), "gaussian and poisson have intervals of the posterior");
  }

 private:
  [[nodiscard]] static TargetNumbers with_values(TargetNumbers like, Index nodes) {
    require(nodes >= 0, "nodes", nodes, "must not be negative");
    like.values.assign(static_cast<std::size_t>(nodes * std::max<Index>(like.columns, 1)),
                       std::numeric_limits<double>::quiet_NaN());
    return like;
  }
  /// The targets as whole numbers of at most `most`, −1 where unknown.
  template <class T>
  [[nodiscard]] std::vector<T> whole_numbers(std::string_view argument, Index most) const {
    std::vector<T> r;
    r.reserve(targets_.values.size());
    for (std::size_t i = 0; i < targets_.values.size(); ++i) {
      const double x = targets_.values[i];
      if (!std::isnan(x) && !(x >= 0 && x <= static_cast<double>(most) && x == std::floor(x))) {
        throw_invalid_argument(detail::concat(argument, "[", i, "]"), x,
                               detail::concat("must be a whole number of 0 to ", most, ", or NaN where unknown"));
      }
      r.push_back(std::isnan(x) ? T(-1) : static_cast<T>(x));
    }
    return r;
  }

  TargetLoss kind_;
  TargetNumbers targets_;
  std::vector<std::int8_t> labels_;
  std::vector<std::int32_t> classes_;
};

}  // namespace sheafnn
