#include "links/models.hpp"

#include <map>
#include <sheafnn/bsnn/model.hpp>
#include <sheafnn/bsnn/trainer.hpp>
#include <sheafnn/io/model_tensors.hpp>
#include <sheafnn/sheaf/families.hpp>
#include <stdexcept>

#include "models/class_names.hpp"
#include "models/shared.hpp"

namespace links_program {

namespace {

using Bayesian = sheafnn::Bsnn<sheafnn::Diagonal<2>>;
using Deterministic = sheafnn::Nsd<sheafnn::Diagonal<2>>;

template <class Model>
Outcome train_model(const Job& job) {
  Model model(job.model, job.train.seed);
  Outcome r;
  r.result = sheafnn::train(model, job.links.graph, job.data.features, sheafnn::link_loss(job.links, job.score),
                            job.links.split, job.train);
  r.parameters = model.parameters().size();
  auto notes = programs::checkpoint_notes(job.data, r.result.best_epoch);
  notes.erase("class_names");  // of labels that were not read
  notes["targets"] = "links";
  notes["score"] = std::string(to_string(job.score));
  r.checkpoint = sheafnn::io::to_tensors(model, notes);
  return r;
}
template <class Model>
sheafnn::LinkPrediction predict_with(const Trained& trained, const sheafnn::Graph& graph,
                                     const sheafnn::NodeFeatures& features, std::span<const sheafnn::Edge> pairs,
                                     const sheafnn::PredictOptions& options) {
  const auto& notes = trained.checkpoint.metadata;
  const auto score = notes.find("score");
  if (score == notes.end()) throw std::runtime_error(trained.path + ": it holds no network that predicts links");
  return sheafnn::predict_links(sheafnn::io::from_tensors<Model>(trained.path, trained.checkpoint), graph,
                                features, pairs, sheafnn::parse_name<sheafnn::PairScore>("score", score->second),
                                options);
}

}  // namespace

Outcome train(const Job& job) {
  return job.bayesian ? train_model<Bayesian>(job) : train_model<Deterministic>(job);
}

sheafnn::LinkPrediction predict(const Trained& model, const sheafnn::Graph& graph,
                                const sheafnn::NodeFeatures& features, std::span<const sheafnn::Edge> pairs,
                                const sheafnn::PredictOptions& options) {
  return model.bayesian ? predict_with<Bayesian>(model, graph, features, pairs, options)
                        : predict_with<Deterministic>(model, graph, features, pairs, options);
}

}  // namespace links_program
