/// \file
/// The losses of targets, compiled once for all models.
#include "models/target_loss.hpp"

#include <cstddef>
#include <sheafnn/bsnn/any_target_loss.hpp>

namespace programs {

using sheafnn::Execution;
using sheafnn::Index;
using sheafnn::MatrixView;
using sheafnn::NodeSelection;

void TargetLoss::validate(Index nodes, Index outputs) const { loss_->validate(nodes, outputs); }

bool TargetLoss::known(Index u) const { return loss_->known(u); }

double TargetLoss::value_and_derivative(Execution execution, const Outputs& outputs, const NodeSelection& rows,
                                        Nodes nodes, double share, const Outputs& bar) const {
  return loss_->value_and_derivative(execution, outputs, rows, nodes, share, bar);
}

void TargetLoss::node_losses(Execution execution, const Outputs& outputs, const NodeSelection& rows, Nodes nodes,
                             std::span<double> losses) const {
  loss_->node_losses(execution, outputs, rows, nodes, losses);
}

double TargetLoss::mean_loss(const NodeSelection& rows, Nodes nodes, std::span<const double> losses) const {
  return loss_->mean_loss(rows, nodes, losses);
}

void TargetLoss::predict(Execution execution, const Outputs& outputs, const NodeSelection& rows,
                         const MatrixView<double>& predictions) const {
  if (samples_ == nullptr) return loss_->predict(execution, outputs, rows, predictions);
  const std::size_t first = samples_->size();
  samples_->resize(first + static_cast<std::size_t>(predictions.rows() * predictions.columns()), 0.0);
  loss_->predict(execution, outputs, rows,
                 MatrixView<double>(samples_->data() + first, predictions.rows(), predictions.columns()));
}

sheafnn::Score TargetLoss::score(const MatrixView<const double>& predictions, Nodes nodes) const {
  return loss_->score(predictions, nodes);
}

}  // namespace programs
