/// \file
/// train(): Adam with two weight decays, cyclical KL annealing, early stopping on the validation nodes. A composition
/// of elbo() (elbo.hpp), Adam (nn/adam.hpp) and a loss (losses.hpp), which own loops can use as well.
///
/// Source: math: "The model", "Loss", "Optimiser"; paper, experiments.
#pragma once

#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/bsnn/training_run.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/uncertainty/metrics.hpp"

namespace sheafnn {

/// Trains `model` with any loss on the training nodes of `split` and leaves it with the parameters of the best epoch.
/// The result's accuracies are the loss's scores; test_nll is its loss on the test nodes.
///
/// \param loss  a Loss over the model's scalars (losses.hpp)
/// \throws std::invalid_argument  an option out of range, or data or targets that do not fit the model
/// \throws std::runtime_error     a diverged run: names the epoch and the first non-finite quantity
/// \throws what options.on_epoch throws; after any of these the model is as it was
template <class Model, class LossType>
  requires Loss<LossType, typename Model::Scalar> TrainResult train(Model& model, const Graph& graph,
                                                                    const NodeFeatures& features,
                                                                    const LossType& loss, const Split& split,
                                                                    const TrainOptions& options = {}) {
    validate(options);
    validate(split, graph.node_count(), "split");
    static_cast<void>(uses_closed_form<typename Model::Posterior>(options.kl_estimator));
    const NodeSelection all(graph.node_count());
    for (const auto* nodes : {&split.train, &split.validation, &split.test}) {
      check_loss(loss, graph.node_count(), model.options().classes, all, *nodes);
    }
    detail::TrainingRun<Model, LossType> run(model, graph, features, loss, split, options);
    TrainResult result = run.run();
    const MatrixView<const double> best(run.best_predictions().data(), graph.node_count(),
                                        model.options().classes);
    result.test_nll = loss.score(best, split.test).loss;
    return result;
  }

/// Trains `model` to classify the nodes of a dataset.
///
/// \throws as above
template <class Model>
TrainResult train(Model& model, const Dataset& data, const Split& split, const TrainOptions& options = {}) {
  validate(options);
  validate(data);
  validate(split, data.node_count(), data.name + ": split");
  require(model.options().classes >= data.class_count, "classes", model.options().classes,
          concat("the data have ", data.class_count, " classes"));
  static_cast<void>(uses_closed_form<typename Model::Posterior>(options.kl_estimator));
  const Classification loss(data.labels);
  detail::TrainingRun<Model, Classification> run(model, data.graph, data.features, loss, split, options);
  TrainResult result = run.run();
  const Index classes = model.options().classes;
  result.test_nll = negative_log_likelihood(run.best_predictions(), classes, data.labels, split.test);
  result.test_ece = expected_calibration_error(run.best_predictions(), classes, data.labels, split.test);
  return result;
}

}  // namespace sheafnn
