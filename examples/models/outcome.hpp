/// \file
/// TrainOutcome of a trained model, whichever engine trained it.
#pragma once

#include <cstdint>
#include <map>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/model_tensors.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/class_names.hpp"
#include "models/registry.hpp"

namespace programs {

/// A prediction with the noise of the best epoch. \param train  with the training's own seed
[[nodiscard]] inline sheafnn::PredictOptions best_epoch_options(const sheafnn::TrainOptions& train,
                                                                sheafnn::Index best_epoch) {
  return {.samples = train.samples,
          .seed = train.seed,
          .epoch = static_cast<std::uint32_t>(best_epoch),
          .threads = train.threads};
}

/// The parts of an outcome that do not depend on what was learned.
template <class Model>
[[nodiscard]] TrainOutcome outcome_of_model(const Model& model, const Keep& keep,
                                            const std::map<std::string, std::string>& notes) {
  TrainOutcome r;
  r.parameters = model.parameters().size();
  std::get<typename Model::Options>(r.resolved) = model.options();
  if (keep.model) r.checkpoint = sheafnn::io::to_tensors(model, notes);
  return r;
}

/// \param predict  predict() gives the predictions with the noise of the best epoch, as the table has them. It is called
///                 where there are labelled test nodes or predictions are to be kept
template <class Model, class Predict>
[[nodiscard]] TrainOutcome outcome_of(const Model& model, sheafnn::Index best_epoch, const Predict& predict,
                                      const NodeData& data, const sheafnn::Split& split, const Keep& keep) {
  TrainOutcome r = outcome_of_model(model, keep, checkpoint_notes(data, best_epoch));
  const std::vector<std::int32_t> test = sheafnn::labelled_nodes(data.labels, split.test);
  if (test.empty() && !keep.prediction) return r;
  sheafnn::Prediction prediction = predict();
  if (!test.empty()) {
    r.reliability = sheafnn::uncertainty::reliability_diagram(prediction.probabilities, prediction.class_count,
                                                              data.labels, test);
    r.confusion = sheafnn::uncertainty::confusion_matrix(prediction.probabilities, prediction.class_count,
                                                         data.labels, test);
  }
  if (keep.prediction) r.prediction = std::move(prediction);
  return r;
}
/// The outcome of a training on targets, without their predictions.
template <class Model>
[[nodiscard]] TrainOutcome outcome_of_targets(const Model& model, sheafnn::Index best_epoch, const NodeData& data,
                                              const Keep& keep) {
  std::map<std::string, std::string> notes = checkpoint_notes(data, best_epoch);
  notes.erase("class_names");  // of labels that were not read
  return outcome_of_model(model, keep, notes);
}

}  // namespace programs
