/// \file
/// One case of golden/: a small model with its inputs, outputs and gradients, made by an independent
/// implementation with automatic differentiation, and the check of a model type against it.
///
/// Keys of a file: edges, n_nodes, features, labels, train_mask; config = d, f, L, lp, hp, bayes,
/// separate_encoder, edge_weights, family; kl_weight; noise.l per layer; log_probabilities, kl, loss; param.NAME
/// and grad.NAME.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "map_kind.hpp"
#include "network_passes.hpp"
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
  sheafnn::ModelOptions options = {.spread = sheafnn::SpreadRange::published};
  sheafnn::Graph graph;
  sheafnn::NodeFeatures features;
  std::vector<std::int32_t> labels, nodes;
  std::set<std::string> without_effect = {};  ///< parameters whose derivatives are 0
};

/// Reads FOLDER/NAME.npz, with all of a case but its options.
Case read_inputs(const std::string& folder, const std::string& name);
/// Reads golden/NAME.npz and checks that it is about such a model.
Case read(const std::string& name, test::MapKind kind, int dimension, bool bayesian);

/// What a model made of it.
struct Outcome {
  test::PassResult result;
  std::vector<double> log_probabilities;  ///< n × C
  std::vector<sheafnn::layers::ParameterInfo> parameters;
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

/// Numbers of a file's array.
template <class S>
std::vector<S> numbers(const Case& given, const std::string& key) {
  const std::vector<double>& values = given.file.at(key).values;
  return {values.begin(), values.end()};
}
/// The model of a case, with the file's parameters.
template <class Model>
Model model_of(const Case& given, const typename Model::Posterior& posterior = {}) {
  Model model(given.options, 0, posterior);
  auto& parameters = model.parameters();
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    parameters.set(parameters.find(info.name), numbers<typename Model::Scalar>(given, "param." + info.name));
  }
  return model;
}
/// The file's noise, layer by layer; none for deterministic models.
template <class Model>
std::vector<std::vector<typename Model::Scalar>> noise_of(const Case& given) {
  std::vector<std::vector<typename Model::Scalar>> r;
  for (Index l = 0; Model::bayesian && l < given.options.layers; ++l) {
    r.push_back(numbers<typename Model::Scalar>(given, "noise." + std::to_string(l)));
  }
  return r;
}
/// The noise that layers draw themselves, layer by layer: keys noise.l.arcs and noise.l.self; none where there are none.
template <class S>
std::vector<std::vector<S>> layer_noise_of(const Case& given) {
  std::vector<std::vector<S>> r;
  for (Index l = 0; given.file.contains("noise." + std::to_string(l) + ".arcs"); ++l) {
    r.push_back(numbers<S>(given, "noise." + std::to_string(l) + ".arcs"));
    const std::vector<S> own = numbers<S>(given, "noise." + std::to_string(l) + ".self");
    r.back().insert(r.back().end(), own.begin(), own.end());
  }
  return r;
}
/// Parameters and gradients, for compare().
///
/// \param gradient  laid out like the parameters' values
template <class S>
void store_gradients(const sheafnn::layers::ParameterSet<S>& parameters, const sheafnn::Buffer<S>& gradient,
                     Outcome& outcome) {
  outcome.parameters = parameters.info();
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    const std::vector<S> own = parameters.get(parameters.find(info.name), gradient);
    outcome.gradient[info.name].assign(own.begin(), own.end());
  }
}

void compare(const Case& expected, const Outcome& outcome, const Bounds& bounds);
void check_same(bool same, const std::string& name);

/// Checks outputs and gradients of a case, and that 1 and 2 threads give the same bits.
template <class Model>
void check(const Case& given, const Bounds& bounds, const typename Model::Posterior& posterior = {}) {
  using S = typename Model::Scalar;
  const Model model = model_of<Model>(given, posterior);
  const auto& parameters = model.parameters();
  Outcome outcome;
  const std::vector<std::vector<S>> noise = noise_of<Model>(given);
  test::TrainingPass<S> pass;
  for (const std::vector<S>& layer : noise) pass.noise.emplace_back(layer);
  const std::vector<std::vector<S>> layer_noise = layer_noise_of<S>(given);
  for (const std::vector<S>& layer : layer_noise) pass.layer_noise.emplace_back(layer);
  pass.labels = given.labels;
  pass.nodes = given.nodes;
  pass.kl_weight = given.file.at("kl_weight").values.at(0);

  sheafnn::Network<Model> network(model, given.graph, given.features, 1);
  outcome.result = test::train_pass(network, pass);
  outcome.log_probabilities = test::last_outputs(network);
  store_gradients(parameters, network.gradient(), outcome);
  compare(given, outcome, bounds);

  sheafnn::Network<Model> threaded(model, given.graph, given.features, 2);
  const bool same_loss = test::train_pass(threaded, pass).loss == outcome.result.loss;
  check_same(same_loss &&
                 std::equal(network.gradient().begin(), network.gradient().end(), threaded.gradient().begin()),
             given.name);
}
/// The same for golden/NAME.npz.
template <class Model>
void check(const std::string& name, const Bounds& bounds) {
  check<Model>(read(name, test::kind_of<typename Model::Family>, Model::stalk_dimension, Model::bayesian), bounds);
}

}  // namespace golden
