/// \file
/// One case of golden/, golden2/ or golden3/: a small model with its inputs, outputs and gradients, made by independent
/// implementations with automatic differentiation, and the check of a network of any kind against it.
///
/// Keys of a file: edges, n_nodes, features, labels, train_mask; kl_weight; noise.l per sheaf; log_probabilities, kl,
/// loss; param.NAME and grad.NAME; config, in golden/ = d, f, L, lp, hp, bayes, separate_encoder, edge_weights, family;
/// in the other folders hidden.l, the features after l layers.
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
  bool has_features = false;  ///< hidden.l: all folders but golden/
  std::map<std::string, Array> file;
  sheafnn::ModelOptions options = {.spread = sheafnn::SpreadRange::published};
  sheafnn::Graph graph;  ///< empty where the file has no edges
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
  double output;     ///< of log-probabilities, KL and loss, relative to each; of other arrays, by distance()
  double gradient;   ///< of derivatives, relative to the tensor's largest
  double least = 0;  ///< log-probabilities below it count as this large
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
/// A model with the file's parameters.
template <class Model>
Model with_parameters(Model model, const Case& given) {
  auto& parameters = model.parameters();
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    parameters.set(parameters.find(info.name), numbers<typename Model::Scalar>(given, "param." + info.name));
  }
  return model;
}
/// The model of a case with the case's options.
template <class Model>
Model model_of(const Case& given, const typename Model::Posterior& posterior = {}) {
  return with_parameters(Model(given.options, 0, posterior), given);
}

/// The numbers that a pass takes for random ones.
template <class S>
struct Noise {
  std::vector<std::vector<S>> maps;    ///< behind the maps, sheaf by sheaf
  std::vector<std::vector<S>> layers;  ///< what layers draw themselves, layer by layer
};
/// The file's noise: keys noise.l of models that draw sheaves, and noise.l.arcs and noise.l.self where layers draw.
template <class Model>
Noise<typename Model::Scalar> noise_of(const Case& given, const Model& model) {
  using S = typename Model::Scalar;
  const auto key = [](Index l) { return "noise." + std::to_string(l); };
  Noise<S> r;
  for (Index l = 0; Model::bayesian && l < model.sheaf_count(); ++l) r.maps.push_back(numbers<S>(given, key(l)));
  for (Index l = 0; given.file.contains(key(l) + ".arcs"); ++l) {
    r.layers.push_back(numbers<S>(given, key(l) + ".arcs"));
    const std::vector<S> own = numbers<S>(given, key(l) + ".self");
    r.layers.back().insert(r.layers.back().end(), own.begin(), own.end());
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

/// Parameters, outputs of a training pass and gradients.
void compare(const Case& expected, const Outcome& outcome, const Bounds& bounds);
/// Largest |difference| / max(1, largest |expected|).
double distance(const std::vector<double>& values, const std::vector<double>& expected);
/// An array of the file, by its distance().
void compare(const Case& expected, const std::string& key, const std::vector<double>& values, double bound);
/// The features after every layer in the last pass, where the file has them.
template <class Model>
void compare_features(const Case& expected, const sheafnn::Network<Model>& network, const Bounds& bounds) {
  for (Index l = 0; expected.has_features && l <= network.model().options().layers; ++l) {
    const auto x = network.features_after(l);
    compare(expected, "hidden." + std::to_string(l), {x.data(), x.data() + x.size()}, bounds.output);
  }
}
void check_same(bool same, const std::string& name);

/// Checks a case: parameters, outputs, features and gradients of a training pass, the same bits with other threads, and
/// outputs and features of an evaluation.
///
/// \param network   of the case's model; the training pass is its last pass
/// \param threaded  the same with another number of threads
template <class Model>
void check_networks(const Case& given, const Bounds& bounds, sheafnn::Network<Model>& network,
                    sheafnn::Network<Model>& threaded, const Noise<typename Model::Scalar>& noise) {
  test::TrainingPass<typename Model::Scalar> pass;
  pass.noise = {noise.maps.begin(), noise.maps.end()};
  pass.layer_noise = {noise.layers.begin(), noise.layers.end()};
  pass.labels = given.labels;
  pass.nodes = given.nodes;
  pass.kl_weight = given.file.at("kl_weight").values.at(0);
  Outcome outcome;
  outcome.result = test::train_pass(network, pass);
  outcome.log_probabilities = test::last_outputs(network);
  store_gradients(network.model().parameters(), network.gradient(), outcome);
  compare(given, outcome, bounds);
  compare_features(given, network, bounds);

  const bool same_loss = test::train_pass(threaded, pass).loss == outcome.result.loss;
  check_same(same_loss &&
                 std::equal(network.gradient().begin(), network.gradient().end(), threaded.gradient().begin()),
             given.name);

  test::evaluate(
      threaded, 0, 0, 1, [](Index) {}, pass.noise, {}, pass.layer_noise);
  compare(given, "log_probabilities", test::last_outputs(threaded), bounds.output);
  compare_features(given, threaded, bounds);
}
/// The same with networks of 1 and 2 threads on the case's graph.
template <class Model>
void check_model(const Case& given, const Bounds& bounds, const Model& model,
                 const Noise<typename Model::Scalar>& noise) {
  sheafnn::Network<Model> network(model, given.graph, given.features, 1),
      threaded(model, given.graph, given.features, 2);
  check_networks(given, bounds, network, threaded, noise);
}
/// The same with the case's options and noise.
template <class Model>
void check(const Case& given, const Bounds& bounds, const typename Model::Posterior& posterior = {}) {
  const Model model = model_of<Model>(given, posterior);
  check_model(given, bounds, model, noise_of(given, model));
}
/// The same for golden/NAME.npz.
template <class Model>
void check(const std::string& name, const Bounds& bounds) {
  check<Model>(read(name, test::kind_of<typename Model::Family>, Model::stalk_dimension, Model::bayesian), bounds);
}

}  // namespace golden
