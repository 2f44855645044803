/// \file
/// Whole models against two independent references: the forward pass against dense matrices
/// (reference_network.hpp), the gradient of the loss NLL + λ·KL against central differences along every coordinate
/// of every parameter. Both for every option of the model and of a training pass: turned on alone and, up to D =
/// 3, turned off alone while all others are on.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "map_kind.hpp"
#include "network_passes.hpp"
#include "reference_network.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "tiny_setting.hpp"
#include "tiny_task.hpp"

namespace model_gradient {

using sheafnn::Buffer;
using sheafnn::Index;
using sheafnn::layers::ParameterSet;
using test::MapKind;
using test::PassResult;

/// Architecture and pass of one check.
struct Setting : tiny::SettingOf<sheafnn::ModelOptions> {
  Setting() {
    model = tiny::options();
    kl_estimator = sheafnn::KlEstimator::closed_form;
  }
};

/// All settings for a family; see the file comment.
std::vector<Setting> settings(MapKind kind, int dimension, bool bayesian);

/// The coordinate where gradient and central difference are furthest apart, in multiples of the bound.
struct Comparison {
  double worst = 0;
  std::string where;
};

/// Compares along every coordinate. `loss` computes the loss at `parameters`, which are left as they were.
///
/// The step is h = ε^{1/3} (parameters are of size 1). A difference then has a truncation error of h²/6 times the
/// third derivative and a rounding error of ε/h times the loss, both ε^{2/3} = 3.7e-11 times a size. The bound
/// allows 64 of that, 2.3e-9, times the larger of 1, |loss| and the tensor's largest derivative.
///
/// Two things vary faster than on a scale of 1: the second derivative of ELU, which jumps at 0, and D_u^{-1/2} of
/// the block normalisation where D_u is nearly singular. A difference beyond the bound is therefore taken once
/// more with h/32, whose truncation error is a thousandth, with a bound 32 times as large (7.5e-8) for its
/// rounding error. What a derivative is wrong by does not depend on h.
Comparison compare_gradient(ParameterSet<double>& parameters, const Buffer<double>& gradient,
                            const std::function<double()>& loss);
/// Checks that they agree.
void check_gradient(ParameterSet<double>& parameters, const Buffer<double>& gradient,
                    const std::function<double()>& loss);
/// Checks the gradient of a pass along every coordinate, then that `threaded` has the same bits of it and of the loss.
///
/// \param model  the networks' model
/// \returns what the pass gave
template <class Model>
PassResult check_gradient(Model& model, sheafnn::Network<Model>& network, const test::TrainingPass<double>& pass,
                          sheafnn::Network<Model>* threaded = nullptr) {
  const PassResult result = test::train_pass(network, pass);
  const Buffer<double> gradient = network.gradient();
  check_gradient(model.parameters(), gradient, [&] { return test::train_pass(network, pass).loss; });
  if (threaded != nullptr) {
    CHECK(test::train_pass(*threaded, pass).loss == result.loss);
    CHECK(std::equal(gradient.begin(), gradient.end(), threaded->gradient().begin()));
  }
  return result;
}

/// The same for a model of a setting, with disturbed parameters, and networks with one thread and with `threads`.
template <class Model, class Setting, class Task>
PassResult check_setting(const Setting& setting, const Task& task, const sheafnn::GraphOf<Model>& graph,
                         int threads) {
  CAPTURE(Model::kind);
  CAPTURE(Model::stalk_dimension);
  CAPTURE(setting.name);
  Model model(setting.model, 7);
  tiny::disturb(model.parameters(), 8, 0.3);
  sheafnn::Network<Model> network(model, graph, task.sparse, 1), threaded(model, graph, task.sparse, threads);
  return check_gradient(model, network, setting.pass(task), &threaded);
}

/// Largest error of a result against the reference, in multiples of its bound, 512 ε times the larger of 1 and the
/// value: a few hundred operations in a row, some of them (D_u^{-1/2}) with a condition of their own.
double compare_forward(const PassResult& result, const std::vector<double>& log_probabilities,
                       const reference::Problem& problem);

/// Noise behind every sampled map, one row per arc, matrices row by row.
template <class Model>
std::vector<reference::Matrix> draw_noise(const Model& model, const sheafnn::Graph& graph, std::uint64_t seed,
                                          std::uint32_t epoch, std::uint32_t first_sample, Index samples) {
  using Q = typename Model::Posterior;
  std::vector<reference::Matrix> noise;
  if constexpr (Model::bayesian && sheafnn::sheaf::is_learned<typename Model::Family>) {
    for (Index k = 0; k < samples; ++k) {
      for (Index s = 0; s < model.sheaf_count(); ++s) {
        const sheafnn::Stream stream{seed, sheafnn::Purpose::sheaf_noise, epoch, static_cast<std::uint32_t>(s),
                                     first_sample + static_cast<std::uint32_t>(k)};
        reference::Matrix& rows = noise.emplace_back(graph.arc_count(), Q::noise_size);
        for (Index a = 0; a < graph.arc_count(); ++a) {
          double draw[Q::noise_size];
          model.posterior().template draw_noise<double>(stream, static_cast<std::uint32_t>(a), draw);
          constexpr int d = Model::stalk_dimension;
          constexpr bool by_column = test::kind_of<typename Model::Family> == MapKind::rotation;
          for (int i = 0; i < Q::noise_size; ++i) rows(a, i) = draw[by_column ? i % d * d + i / d : i];
        }
      }
    }
  }
  return noise;
}

/// The reference's view of a model on a graph. Pass and noise are left to the caller.
template <class Model>
reference::Problem problem_of(const Model& model, const tiny::Task& task) {
  reference::Problem problem;
  problem.kind = test::kind_of<typename Model::Family>;
  problem.stalk_dimension = Model::stalk_dimension;
  problem.bayesian = Model::bayesian;
  problem.options = model.options();
  const auto& parameters = model.parameters();
  for (std::size_t i = 0; i < parameters.info().size(); ++i) {
    const sheafnn::layers::ParameterInfo& info = parameters.info()[i];
    const auto values = parameters.get(static_cast<sheafnn::layers::ParameterId>(i), parameters.values());
    const Index rows = info.shape.front(), columns = info.size / rows;
    reference::Matrix& matrix = problem.parameters[info.name];
    matrix.resize(rows, columns);
    for (Index k = 0; k < info.size; ++k) matrix(k / columns, k % columns) = values[static_cast<std::size_t>(k)];
  }
  problem.graph = &task.graph;
  problem.features.resize(task.nodes, task.features);
  for (Index k = 0; k < problem.features.size(); ++k) {
    problem.features(k / task.features, k % task.features) = task.dense[static_cast<std::size_t>(k)];
  }
  problem.labels = task.labels;
  problem.nodes = task.train;
  return problem;
}

/// Both checks of one model type in every setting.
template <class Model>
void check_model() {
  static_assert(std::is_same_v<typename Model::Scalar, double>);
  const tiny::Task task;
  for (const Setting& setting :
       settings(test::kind_of<typename Model::Family>, Model::stalk_dimension, Model::bayesian)) {
    CAPTURE(Model::Family::name);
    CAPTURE(Model::stalk_dimension);
    CAPTURE(Model::bayesian);
    CAPTURE(setting.name);
    Model model(setting.model, 7);
    tiny::disturb(model.parameters(), 8, 0.3);
    const test::TrainingPass<double> pass = setting.pass(task);
    sheafnn::Network<Model> network(model, task.graph, task.sparse);
    const PassResult result = test::train_pass(network, pass);

    reference::Problem problem = problem_of(model, task);
    problem.seed = pass.seed;
    problem.epoch = pass.epoch;
    problem.input_dropout = pass.input_dropout;
    problem.dropout = pass.dropout;
    problem.kl_weight = pass.kl_weight;
    problem.kl_estimator = pass.kl_estimator;
    problem.samples =
        Model::bayesian && test::kind_of<typename Model::Family> != MapKind::fixed ? pass.samples : 1;
    problem.noise = draw_noise(model, task.graph, pass.seed, pass.epoch, 0, problem.samples);
    CHECK(compare_forward(result, test::last_outputs(network), problem) <= 1);
    check_gradient(model, network, pass);
  }
}

}  // namespace model_gradient
