/// \file
/// Models of a family, for the files that compile them. With SHEAFNN_PROGRAM_ON_RANKS they train on the ranks of MPI.
#pragma once

#include <map>
#include <sheafnn/hypergraph.hpp>
#include <sheafnn/io/checkpoint.hpp>
#ifdef SHEAFNN_PROGRAM_ON_RANKS
#include <sheafnn/distributed.hpp>
#endif

#include "hypergraph/models.hpp"
#include "models/class_names.hpp"
#include "models/shared.hpp"

namespace hypergraph_program {

template <class Model>
sheafnn::TrainResult result_of(Model& model, const Job& job) {
#ifdef SHEAFNN_PROGRAM_ON_RANKS
  return sheafnn::distributed::train(model, *job.part, job.split, job.train);
#else
  return sheafnn::train(model, job.data, job.split, job.train);
#endif
}
template <class Model>
Outcome train_model(const Job& job) {
  Model model(job.model, job.train.seed);
  Outcome r;
  r.result = result_of(model, job);
  r.parameters = model.parameters().size();
  r.checkpoint = sheafnn::io::to_tensors(model, programs::checkpoint_notes(job.data, r.result.best_epoch));
  return r;
}
template <class Model>
sheafnn::Prediction predict_with(const Trained& trained, const sheafnn::HypergraphDataset& data,
                                 const sheafnn::PredictOptions& options) {
  return sheafnn::predict(sheafnn::io::from_tensors<Model>(trained.path, trained.checkpoint), data, options);
}

/// Of a family with its stalk dimension.
template <class Family>
constexpr Models models_of() {
  using Deterministic = sheafnn::SheafHyperGnn<Family>;
  using Bayesian = sheafnn::BayesianSheafHyperGnn<Family>;
  return {[](const Job& job) {
            return job.bayesian ? train_model<Bayesian>(job) : train_model<Deterministic>(job);
          },
          [](const Trained& model, const sheafnn::HypergraphDataset& data,
             const sheafnn::PredictOptions& options) {
            return model.bayesian ? predict_with<Bayesian>(model, data, options)
                                  : predict_with<Deterministic>(model, data, options);
          }};
}

}  // namespace hypergraph_program
