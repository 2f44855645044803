/// \file
/// Losses of targets that are not classes, chosen at run time, so every network is compiled once for all losses.
#pragma once

#include <cstdint>
#include <sheafnn/bsnn/losses.hpp>
#include <span>
#include <string_view>
#include <variant>

namespace python {

/// A sheafnn::Regression or a sheafnn::Multilabel; a Loss (bsnn/loss.hpp) as these are.
class TargetLoss {
 public:
  static constexpr std::string_view name = "targets";

  explicit TargetLoss(const sheafnn::Regression& loss) : loss_(loss) {}
  explicit TargetLoss(const sheafnn::Multilabel& loss) : loss_(loss) {}

  void validate(sheafnn::Index nodes, sheafnn::Index outputs) const {
    std::visit([&](const auto& own) { own.validate(nodes, outputs); }, loss_);
  }
  [[nodiscard]] bool known(sheafnn::Index u) const noexcept {
    const auto* regression = std::get_if<sheafnn::Regression>(&loss_);
    return regression != nullptr ? regression->known(u) : std::get_if<sheafnn::Multilabel>(&loss_)->known(u);
  }
  template <class S>
  double value_and_derivative(sheafnn::Execution execution, const sheafnn::MatrixView<S>& outputs,
                              const sheafnn::NodeSelection& rows, std::span<const std::int32_t> nodes,
                              double share, const sheafnn::MatrixView<S>& bar) const {
    return std::visit(
        [&](const auto& own) { return own.value_and_derivative(execution, outputs, rows, nodes, share, bar); },
        loss_);
  }
  template <class S>
  void node_losses(sheafnn::Execution execution, const sheafnn::MatrixView<S>& outputs,
                   const sheafnn::NodeSelection& rows, std::span<const std::int32_t> nodes,
                   std::span<double> losses) const {
    std::visit([&](const auto& own) { own.node_losses(execution, outputs, rows, nodes, losses); }, loss_);
  }
  [[nodiscard]] double mean_loss(const sheafnn::NodeSelection& rows, std::span<const std::int32_t> nodes,
                                 std::span<const double> losses) const {
    return std::visit([&](const auto& own) { return own.mean_loss(rows, nodes, losses); }, loss_);
  }
  template <class S>
  void predict(sheafnn::Execution execution, const sheafnn::MatrixView<S>& outputs,
               const sheafnn::NodeSelection& rows, const sheafnn::MatrixView<double>& predictions) const {
    std::visit([&](const auto& own) { own.predict(execution, outputs, rows, predictions); }, loss_);
  }
  [[nodiscard]] sheafnn::Score score(const sheafnn::MatrixView<const double>& predictions,
                                     std::span<const std::int32_t> nodes) const {
    return std::visit([&](const auto& own) { return own.score(predictions, nodes); }, loss_);
  }

 private:
  std::variant<sheafnn::Regression, sheafnn::Multilabel> loss_;
};

}  // namespace python
