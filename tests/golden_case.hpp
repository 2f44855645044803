/// \file
/// One case of golden/: a small model with its inputs, outputs and gradients, made by an independent implementation with
/// automatic differentiation, and the check of a model type against it.
///
/// Keys of a file: edges, n_nodes, features, labels, train_mask; config = d, f, L, lp, hp, bayes, separate_encoder,
/// edge_weights, family; kl_weight; noise.l per layer; log_probabilities, kl, loss; param.NAME and grad.NAME.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sheafnn/bsnn/network.hpp"

namespace golden {

using sheafnn::Index;

struct Array {
  std::vector<Index> shape;
  std::vector<double> values;
};

/// A file, and what follows from it.
struct Case {
  std::string name;
  std::map<std::string, Array> file;
  sheafnn::ModelOptions options;
  sheafnn::Graph graph;
  sheafnn::NodeFeatures features;
  std::vector<std::int32_t> labels, nodes;
};

/// Reads golden/NAME.npz and checks that it is about such a model.
Case read(const std::string& name, sheafnn::MapKind kind, int dimension, bool bayesian);

/// What a model made of it.
struct Outcome {
  sheafnn::PassResult result;
  std::vector<double> log_probabilities;  ///< n × C
  std::vector<sheafnn::ParameterInfo> parameters;
  std::map<std::string, std::vector<double>> gradient;  ///< by parameter, out × in
};

/// How far a scalar type may be from the golden values.
struct Bounds {
  double output;    ///< of log-probabilities, KL and loss, relative to each
  double gradient;  ///< of derivatives, relative to the tensor's largest
};
/// What is promised in double precision.
inline constexpr Bounds double_bounds{1e-10, 1e-8};
/// In single precision: a path of a few hundred operations through two layers, each with an error of ε.
inline constexpr Bounds float_bounds{64 * std::numeric_limits<float>::epsilon(),
                                     128 * std::numeric_limits<float>::epsilon()};

void compare(const Case& expected, const Outcome& outcome, const Bounds& bounds);
void check_same(bool same, const std::string& name);

/// Checks outputs and gradients of a case, and that 1 and 2 threads give the same bits.
template <class Model>
void check(const std::string& name, const Bounds& bounds) {
  using S = typename Model::Scalar;
  const Case given = read(name, Model::Family::kind, Model::stalk_dimension, Model::bayesian);
  Model model(given.options);
  auto& parameters = model.parameters();
  Outcome outcome;
  outcome.parameters = parameters.info();
  const auto convert = [](const std::vector<double>& values) {
    return std::vector<S>(values.begin(), values.end());
  };
  for (const sheafnn::ParameterInfo& info : parameters.info()) {
    parameters.set(parameters.find(info.name), convert(given.file.at("param." + info.name).values));
  }
  std::vector<std::vector<S>> noise;
  sheafnn::TrainingPass<S> pass;
  for (Index l = 0; Model::bayesian && l < given.options.layers; ++l) {
    noise.push_back(convert(given.file.at("noise." + std::to_string(l)).values));
  }
  for (const std::vector<S>& layer : noise) pass.noise.push_back(layer.data());
  pass.labels = given.labels;
  pass.nodes = given.nodes;
  pass.kl_weight = given.file.at("kl_weight").values.at(0);

  sheafnn::Network<Model> network(model, given.graph, given.features, 1);
  outcome.result = network.train_pass(parameters, pass);
  for (Index u = 0; u < given.graph.node_count(); ++u) {
    const S* row = network.log_probabilities() + u * network.class_stride();
    outcome.log_probabilities.insert(outcome.log_probabilities.end(), row, row + given.options.classes);
  }
  for (const sheafnn::ParameterInfo& info : parameters.info()) {
    const std::vector<S> gradient = parameters.get(parameters.find(info.name), network.gradient());
    outcome.gradient[info.name].assign(gradient.begin(), gradient.end());
  }
  compare(given, outcome, bounds);

  sheafnn::Network<Model> threaded(model, given.graph, given.features, 2);
  const bool same_loss = threaded.train_pass(parameters, pass).loss == outcome.result.loss;
  check_same(same_loss &&
                 std::equal(network.gradient().begin(), network.gradient().end(), threaded.gradient().begin()),
             name);
}

}  // namespace golden
