/// \file
/// Models of a family, for the files that compile them. With SHEAFNN_PROGRAM_ON_RANKS they train on the ranks of MPI.
#pragma once

#include <cstdint>
#include <map>
#include <sheafnn/hypergraph.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <vector>
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

template <class Model>
std::vector<double> outputs_of(const Trained& trained, const sheafnn::HypergraphDataset& data,
                               std::uint64_t seed) {
  const auto model = sheafnn::io::from_tensors<Model>(trained.path, trained.checkpoint);
  sheafnn::Network<Model> network(model, data.graph, data.features);
  const auto outputs = network.forward({.seed = seed});
  std::vector<double> r;
  for (sheafnn::Index u = 0; u < outputs.rows(); ++u) {
    for (sheafnn::Index c = 0; c < outputs.columns(); ++c) r.push_back(outputs(u, c));
  }
  return r;
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
          },
          [](const Trained& model, const sheafnn::HypergraphDataset& data, std::uint64_t seed) {
            return model.bayesian ? outputs_of<Bayesian>(model, data, seed)
                                  : outputs_of<Deterministic>(model, data, seed);
          }};
}

}  // namespace hypergraph_program
