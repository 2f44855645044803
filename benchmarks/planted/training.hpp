/// \file
/// The definitions that networks.hpp leaves out.
#pragma once

#include <sheafnn/bsnn/cooperative_network.hpp>
#include <sheafnn/bsnn/given_sheaf.hpp>
#include <sheafnn/bsnn/learned_sheaf.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/sheaf_use.hpp>
#include <sheafnn/bsnn/trainer.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <type_traits>

#include "models/shared.hpp"
#include "planted/networks.hpp"

namespace planted {

template <class Model>
Figures train_model(Model& model, const sheafnn::Dataset& data, const Setting& setting) {
  const sheafnn::Split& split = data.splits.front();
  const sheafnn::TrainResult result = sheafnn::train(model, data, split, setting.train);
  const sheafnn::Prediction prediction = sheafnn::predict(model, data,
                                                          {.samples = setting.test_samples,
                                                           .seed = setting.train.seed,
                                                           .threads = setting.train.threads});
  const auto test = sheafnn::labelled_nodes(data.labels, split.test);
  Figures r;
  r.validation_loss = result.validation_loss;
  r.best_epoch = result.best_epoch;
  r.seconds = result.epoch_seconds * static_cast<double>(result.history.size());
  r.accuracy = sheafnn::uncertainty::accuracy(prediction.probabilities, prediction.class_count, data.labels, test);
  r.nll = sheafnn::uncertainty::negative_log_likelihood(prediction.probabilities, prediction.class_count,
                                                        data.labels, test);
  return r;
}

template <class Family, class Model>
void add_recovery(const Model& model, const sheafnn::PlantedTask<Family>& task,
                  const sheafnn::CellularSheaf<Family>& expected, const Setting& setting, Figures& r) {
  constexpr int D = Family::stalk_dimension;
  constexpr bool diagonal = std::is_same_v<Family, sheafnn::Diagonal<D>>;
  const sheafnn::Dataset& data = task.data;
  const sheafnn::SheafUse use = sheafnn::sheaf_use(model, data, data.splits.front().validation,
                                                   {.samples = 8, .threads = setting.train.threads});
  r.permuted_rise = use.permuted.rise;
  r.turn = use.turn.median;
  const sheafnn::CellularSheaf<Family> learned =
      sheafnn::learned_sheaf(model, data, {.threads = setting.train.threads});
  if constexpr (diagonal) {
    r.right_signs = right_signs(expected, learned);
  } else {
    const std::vector<Matrix<D>> transports = rotations_of(learned), truth = rotations_of(expected);
    const Alignment<D> alignment(truth, transports);
    const std::vector<Matrix<D>> target = alignment(truth);
    std::vector<double> errors, turns;
    for (std::size_t a = 0; a < target.size(); ++a) {
      errors.push_back(degrees<D>(sheafnn::math::multiply_tn(target[a], transports[a])));
      turns.push_back(degrees<D>(truth[a]));
    }
    r.transport_error = quantile(errors, 0.5);
    r.true_turn = quantile(turns, 0.5);
    if constexpr (sheafnn::sheaf::is_orthogonal<Family>) {
      r.holonomy_error = holonomy_error<D>(data.graph, truth, transports);
      if constexpr (Model::bayesian) {
        if (!task.concentration.empty()) {
          const std::vector<double> kappa =
              sheafnn::posterior_parameters(model, data, {.threads = setting.train.threads}).spread.front().values;
          std::vector<double> of_edges;
          for (Index e = 0; e < data.graph.edge_count(); ++e) {
            const Index a = data.graph.forward_arc(e);
            of_edges.push_back(kappa[static_cast<std::size_t>(a)] *
                               kappa[static_cast<std::size_t>(data.graph.reverse(a))]);
          }
          r.rank_correlation = programs::rank_correlation(of_edges, task.concentration);
          r.coverage = coverage(learned, kappa, transports, alignment(rotations_of(task.sheaf)));
        }
      }
    }
  }
  if (!use.spread.empty()) {
    r.kappa_low = use.spread.front().values.low;
    r.kappa = use.spread.front().values.median;
    r.kappa_high = use.spread.front().values.high;
  }
}

template <class Family>
Figures train_learned(std::string_view network, const sheafnn::PlantedTask<Family>& task,
                      const sheafnn::CellularSheaf<Family>& expected, const Setting& setting) {
  if (network == "given" || network == "expected") {
    sheafnn::ModelOptions options = sheafnn::without_learner(setting.model);
    sheafnn::Snn<Family> model(options, setting.train.seed,
                               sheafnn::GivenMaps(network == "given" ? task.sheaf : expected));
    return train_model(model, task.data, setting);
  }
  const auto learned = [&](auto&& model) {
    Figures r = train_model(model, task.data, setting);
    add_recovery(model, task, expected, setting, r);
    return r;
  };
  if (network == "nsd") return learned(sheafnn::Nsd<Family>(setting.model, setting.train.seed));
  return learned(sheafnn::Bsnn<Family>(setting.model, setting.train.seed));
}

template <int D>
Figures train_other(std::string_view network, const sheafnn::Dataset& data, const Setting& setting) {
  const auto trained = [&](auto&& model) { return train_model(model, data, setting); };
  if (network == "csnn") return trained(sheafnn::Csnn<D>(setting.cooperative, setting.train.seed));
  if (network == "bcsnn") return trained(sheafnn::Bcsnn<D>(setting.cooperative, setting.train.seed));
  const sheafnn::ModelOptions options = sheafnn::without_learner(setting.model);
  return trained(sheafnn::Nsd<sheafnn::Identity<D>>(options, setting.train.seed));
}

}  // namespace planted
