/// \file
/// TargetLoss: a loss of targets as models see it, with its functions in target_loss.cpp. The files that train models include
/// no loss of targets. How g++ fuses floating-point operations depends on what else a file compiles, and models have to
/// compute what the programs compute.
#pragma once

#include <cstdint>
#include <sheafnn/bsnn/loss.hpp>
#include <span>
#include <string_view>
#include <vector>

namespace sheafnn {
class AnyTargetLoss;
}

namespace programs {

/// A view of a sheafnn::AnyTargetLoss; a Loss (bsnn/loss.hpp) as that is, of models in single precision.
class TargetLoss {
 public:
  static constexpr std::string_view name = "targets";
  using Outputs = sheafnn::MatrixView<float>;
  using Nodes = std::span<const std::int32_t>;

  /// \param samples  where predict() writes what every sample predicts, one n × C after the other; or null
  explicit TargetLoss(const sheafnn::AnyTargetLoss& loss, std::vector<double>* samples = nullptr)
      : loss_(&loss), samples_(samples) {}

  void validate(sheafnn::Index nodes, sheafnn::Index outputs) const;
  [[nodiscard]] bool known(sheafnn::Index u) const;
  double value_and_derivative(sheafnn::Execution execution, const Outputs& outputs,
                              const sheafnn::NodeSelection& rows, Nodes nodes, double share,
                              const Outputs& bar) const;
  void node_losses(sheafnn::Execution execution, const Outputs& outputs, const sheafnn::NodeSelection& rows,
                   Nodes nodes, std::span<double> losses) const;
  [[nodiscard]] double mean_loss(const sheafnn::NodeSelection& rows, Nodes nodes,
                                 std::span<const double> losses) const;
  void predict(sheafnn::Execution execution, const Outputs& outputs, const sheafnn::NodeSelection& rows,
               const sheafnn::MatrixView<double>& predictions) const;
  [[nodiscard]] sheafnn::Score score(const sheafnn::MatrixView<const double>& predictions, Nodes nodes) const;

 private:
  const sheafnn::AnyTargetLoss* loss_;
  std::vector<double>* samples_;
};

}  // namespace programs
