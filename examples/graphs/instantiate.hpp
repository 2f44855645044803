/// \file
/// Models of a family, for the files that compile them.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <sheafnn/bsnn/pooled_network.hpp>
#include <sheafnn/bsnn/trainer.hpp>
#include <sheafnn/io/model_tensors.hpp>
#include <string>
#include <vector>

#include "graphs/models.hpp"
#include "models/class_names.hpp"
#include "models/shared.hpp"

namespace graph_program {

template <class Model>
Outcome train_model(const Job& job) {
  const sheafnn::GraphSet& set = job.set;
  Model model(job.model, job.train.seed);
  Outcome r;
  const auto train = [&](const auto& loss) {
    return sheafnn::train(model, set.graph, set.features, loss, job.split, job.train);
  };
  r.result = set.targets.empty() ? train(sheafnn::Classification(set.labels))
                                 : train(sheafnn::Regression(set.target_matrix()));
  r.parameters = model.parameters().size();
  std::map<std::string, std::string> notes = programs::checkpoint_notes(set, r.result.best_epoch);
  if (job.model.edge_features > 0 && !set.edge_feature_names.empty()) {
    notes["edge_feature_names"] = sheafnn::io::csv_record(set.edge_feature_names);
  }
  r.checkpoint = sheafnn::io::to_tensors(model, notes);
  return r;
}
template <class Model>
sheafnn::Prediction predict_with(const Trained& trained, const sheafnn::GraphSet& set,
                                 const sheafnn::PredictOptions& options) {
  const Model model = sheafnn::io::from_tensors<Model>(trained.path, trained.checkpoint);
  return sheafnn::predict(model, set.graph, set.features, options);
}
template <class Model>
std::vector<double> sample_numbers_with(const Trained& trained, const sheafnn::GraphSet& set,
                                        const sheafnn::PredictOptions& options) {
  const Model model = sheafnn::io::from_tensors<Model>(trained.path, trained.checkpoint);
  const sheafnn::Index outputs = model.options().classes;
  const std::vector<double> unknown(static_cast<std::size_t>(set.graph_count() * outputs),
                                    std::numeric_limits<double>::quiet_NaN());
  const sheafnn::Regression loss({unknown.data(), set.graph_count(), outputs});
  return sheafnn::sample_targets(model, set.graph, set.features, loss, options);
}

/// The entry of a family with its stalk dimension.
template <class Family>
constexpr ModelEntry entry_of() {
  using Deterministic = sheafnn::PooledModel<sheafnn::Nsd<Family>>;
  using Bayesian = sheafnn::PooledModel<sheafnn::Bsnn<Family>>;
  return {Family::name, Deterministic::stalk_dimension,
          [](const Job& job) {
            return job.bayesian ? train_model<Bayesian>(job) : train_model<Deterministic>(job);
          },
          [](const Trained& model, const sheafnn::GraphSet& set, const sheafnn::PredictOptions& options) {
            return model.bayesian ? predict_with<Bayesian>(model, set, options)
                                  : predict_with<Deterministic>(model, set, options);
          },
          [](const Trained& model, const sheafnn::GraphSet& set, const sheafnn::PredictOptions& options) {
            return model.bayesian ? sample_numbers_with<Bayesian>(model, set, options)
                                  : sample_numbers_with<Deterministic>(model, set, options);
          }};
}

}  // namespace graph_program
