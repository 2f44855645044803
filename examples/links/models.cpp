#include "links/models.hpp"

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
  const auto train = [&](const auto& loss) {
    return sheafnn::train(model, job.links.graph, job.data.features, loss, job.links.split, job.train);
  };
  const sheafnn::MatrixView<const double> values(job.values.data(), static_cast<sheafnn::Index>(job.values.size()),
                                                 1);
  r.result = job.values.empty() ? train(sheafnn::edge_class_loss(job.links, job.class_count, job.score))
                                : train(sheafnn::edge_regression_loss(job.links, values, job.score));
  r.parameters = model.parameters().size();
  auto notes = programs::checkpoint_notes(job.data, r.result.best_epoch);
  notes.erase("class_names");  // of labels that were not read
  for (const auto& [key, text] : job.notes) notes[key] = text;
  notes["score"] = std::string(to_string(job.score));
  r.checkpoint = sheafnn::io::to_tensors(model, notes);
  return r;
}
/// Calls predict(model, score) with the model of a checkpoint.
template <class Predict>
auto with_model(const Trained& trained, const Predict& predict) {
  const auto& notes = trained.checkpoint.metadata;
  const auto found = notes.find("score");
  if (found == notes.end()) throw std::runtime_error(trained.path + ": it holds no network that predicts links");
  const auto score = sheafnn::parse_name<sheafnn::PairScore>("score", found->second);
  return trained.bayesian
             ? predict(sheafnn::io::from_tensors<Bayesian>(trained.path, trained.checkpoint), score)
             : predict(sheafnn::io::from_tensors<Deterministic>(trained.path, trained.checkpoint), score);
}

}  // namespace

Outcome train(const Job& job) {
  return job.bayesian ? train_model<Bayesian>(job) : train_model<Deterministic>(job);
}

sheafnn::LinkPrediction predict(const Trained& trained, const sheafnn::Graph& graph,
                                const sheafnn::NodeFeatures& features, std::span<const sheafnn::Edge> pairs,
                                const sheafnn::PredictOptions& options) {
  return with_model(trained, [&](const auto& model, sheafnn::PairScore score) {
    return sheafnn::predict_links(model, graph, features, pairs, score, options);
  });
}
sheafnn::EdgePrediction predict_classes(const Trained& trained, const sheafnn::Graph& graph,
                                        const sheafnn::NodeFeatures& features,
                                        std::span<const sheafnn::Edge> pairs, sheafnn::Index class_count,
                                        const sheafnn::PredictOptions& options) {
  return with_model(trained, [&](const auto& model, sheafnn::PairScore score) {
    return sheafnn::predict_edges(model, graph, features, pairs, class_count, score, options);
  });
}
sheafnn::EdgeValues predict_values(const Trained& trained, const sheafnn::Graph& graph,
                                   const sheafnn::NodeFeatures& features, std::span<const sheafnn::Edge> pairs,
                                   const sheafnn::PredictOptions& options) {
  return with_model(trained, [&](const auto& model, sheafnn::PairScore score) {
    return sheafnn::predict_edge_values(model, graph, features, pairs, 1, score, options);
  });
}

}  // namespace links_program
