/// \file
/// The cases of golden3/: other layers, connections, bundles and hypergraphs, from an independent implementation with automatic
/// differentiation. Keys as in golden_case.hpp; each function says what config is.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "golden_case.hpp"
#include "sheafnn/bsnn/bundle_options.hpp"
#include "sheafnn/bsnn/hypergraph_options.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/sheaf/connection.hpp"

namespace golden3 {

using sheafnn::Index;

/// golden3/NAME.npz, without the options of its network.
inline golden::Case read(const std::string& name) { return golden::read_inputs("golden3", name); }

/// Entry i of a case's config, as a count.
inline Index number(const golden::Case& given, std::size_t i) {
  return static_cast<Index>(given.file.at("config").values.at(i));
}
inline bool flag(const golden::Case& given, std::size_t i) { return given.file.at("config").values.at(i) != 0; }

/// Waves, attention and copresheaves: golden3/NAME.npz with its options. config = d, f, L, and of waves lp, hp, bayes,
/// separate_encoder, left and right weights, edge weights; of the others bayes, separate_encoder, family, and of attention normalised,
/// residual, heads, transported, random, width.
inline golden::Case layer_form(const std::string& name) {
  golden::Case r = read(name);
  sheafnn::ModelOptions& o = r.options;
  o.channels = number(r, 1);
  o.layers = number(r, 2);
  o.edge_weights = false;
  switch (static_cast<int>(r.file.at("model").values.at(0))) {
    case 3:
      REQUIRE(flag(r, 7));
      REQUIRE(!flag(r, 8));
      o.layer = sheafnn::LayerForm::wave;
      o.add_lp = flag(r, 3);
      o.add_hp = flag(r, 4);
      o.separate_encoder = flag(r, 6);
      break;
    case 4:
      o.layer = sheafnn::LayerForm::attention;
      o.separate_encoder = flag(r, 4);
      o.attention = {.heads = number(r, 8),
                     .width = number(r, 11),
                     .transported = flag(r, 9),
                     .residual = flag(r, 7),
                     .normalised = flag(r, 6),
                     .random = flag(r, 10)};
      break;
    default:
      REQUIRE(r.file.at("model").values.at(0) == 8);
      o.layer = sheafnn::LayerForm::copresheaf;
      o.separate_encoder = flag(r, 4);
  }
  for (auto& [key, array] : r.file) {
    if (key.ends_with("log_scale")) array.shape = {1};  // a scalar in the file
  }
  return r;
}

/// Directed layers: golden3/NAME.npz with its options and a directed graph. config = d, f, L, bayes, separate_encoder, family,
/// complex_relu, imaginary_weights, imaginary_start.
inline golden::Case directed(const std::string& name) {
  golden::Case r = read(name);
  const auto values = [&](const std::string& key) -> const std::vector<double>& { return r.file.at(key).values; };
  REQUIRE(values("model").at(0) == 7);
  sheafnn::ModelOptions& o = r.options;
  o.layer = sheafnn::LayerForm::directed;
  o.channels = number(r, 1);
  o.layers = number(r, 2);
  o.separate_encoder = flag(r, 4);
  o.directed = {.charge = values("q").at(0),
                .activation =
                    flag(r, 6) ? sheafnn::ComplexActivation::complex_relu : sheafnn::ComplexActivation::elu,
                .imaginary_weights = flag(r, 7),
                .imaginary_start = flag(r, 8)};
  std::vector<sheafnn::Edge> pairs;
  for (std::size_t e = 0; e < values("direction").size(); ++e) {
    const sheafnn::Edge edge{static_cast<std::int32_t>(values("edges")[2 * e]),
                             static_cast<std::int32_t>(values("edges")[2 * e + 1])};
    const double direction = values("direction")[e];
    if (direction >= 0) pairs.push_back(edge);
    if (direction <= 0) pairs.push_back({edge.v, edge.u});
  }
  r.graph = sheafnn::Graph(r.graph.node_count(), pairs);
  if (o.directed.imaginary_weights && !o.directed.imaginary_start) {
    r.without_effect = {"imag_left.0", "imag_right.0"};  // weights of an imaginary part of 0
  }
  for (auto& [key, array] : r.file) {
    if (!key.starts_with("hidden.")) continue;  // 2 × n × d × f in the file, n × d × 2f in networks
    const Index f = array.shape.at(3), rows = array.shape.at(1) * array.shape.at(2);
    std::vector<double> parts;
    for (Index row = 0; row < rows; ++row) {
      for (const Index part : {row, rows + row}) {
        parts.insert(parts.end(), array.values.data() + part * f, array.values.data() + (part + 1) * f);
      }
    }
    array.values = parts;
  }
  return r;
}

/// Networks on connections: golden3/NAME.npz with its options. config = d, f, L, lp, hp, bayes, separate_encoder, update, given,
/// family, special, gauge.
inline golden::Case connection(const std::string& name) {
  golden::Case r = read(name);
  REQUIRE(r.file.at("config").values.size() == 12);
  REQUIRE(number(r, 7) == 0);
  REQUIRE(number(r, 8) == 1);
  r.options.channels = number(r, 1);
  r.options.layers = number(r, 2);
  r.options.add_lp = flag(r, 3);
  r.options.add_hp = flag(r, 4);
  r.options.separate_encoder = flag(r, 6);
  return r;
}
/// The connection of such a case.
template <class Family>
sheafnn::CellularSheaf<Family> connection_of(const golden::Case& given) {
  return sheafnn::connection_sheaf<Family>(given.graph, given.features,
                                           {.special = flag(given, 10),
                                            .gauge = flag(given, 11) ? sheafnn::FrameGauge::pivots
                                                                     : sheafnn::FrameGauge::signs});
}

/// Options of a bundle network. config = d, B, f, L, bayes, learner, orth, normalisation, self_loops, expansion, K, mix, norm,
/// residual, act.
template <class Model>
sheafnn::BundleOptions bundle_options(const golden::Case& given) {
  using enum sheafnn::Activation;
  constexpr sheafnn::Activation activations[] = {elu, relu, gelu, tanh, identity};
  REQUIRE(given.file.at("config").values.size() == 15);
  REQUIRE(number(given, 0) == Model::stalk_dimension);
  REQUIRE(flag(given, 4) == Model::bayesian);
  sheafnn::BundleOptions r;
  r.features = given.options.features;
  r.classes = given.options.classes;
  r.feature_treatment = sheafnn::FeatureTreatment::none;
  r.bundles = number(given, 1);
  r.channels = number(given, 2);
  r.layers = number(given, 3);
  r.learner = flag(given, 5) ? sheafnn::BundleLearnerKind::sage : sheafnn::BundleLearnerKind::mlp;
  if (!flag(given, 5)) {
    r.learner_width =
        given.file.at(Model::bayesian ? "param.maps.hidden.weight" : "param.maps.0.hidden.weight").shape.at(0);
  }
  r.parametrisation = flag(given, 6) ? sheafnn::rotation::RotationParametrisation::euler
                                     : sheafnn::rotation::RotationParametrisation::householder;
  r.normalisation = static_cast<sheafnn::AdjacencyNormalisation>(number(given, 7));
  r.self_loops = flag(given, 8);
  r.expansion = static_cast<sheafnn::HeatExpansion>(number(given, 9));
  r.terms = number(given, 10);
  r.mixing = static_cast<sheafnn::BundleMixing>(number(given, 11));
  r.layer_norm = flag(given, 12);
  r.residual = flag(given, 13);
  r.activation = activations[static_cast<std::size_t>(number(given, 14))];
  return r;
}

/// The model of such a case.
template <class Model>
Model bundle_model(const golden::Case& given) {
  return golden::with_parameters(Model(bundle_options<Model>(given)), given);
}

/// Options of a hypergraph network. config = d, f, L, bayes, separate_encoder, family, learner, laplacian, mediators, projection,
/// update, static, bias.
template <class Model>
sheafnn::HypergraphOptions hypergraph_options(const golden::Case& given) {
  REQUIRE(given.file.at("model").values.at(0) == 6);
  REQUIRE(given.file.at("config").values.size() == 13);
  REQUIRE(number(given, 0) == Model::stalk_dimension);
  REQUIRE(flag(given, 3) == Model::bayesian);
  sheafnn::HypergraphOptions r;
  r.features = given.options.features;
  r.classes = given.options.classes;
  r.channels = number(given, 1);
  r.layers = number(given, 2);
  r.feature_treatment = sheafnn::FeatureTreatment::none;
  if (Model::bayesian) r.separate_encoder = flag(given, 4);
  r.learner = static_cast<sheafnn::HypergraphLearner>(number(given, 6));
  r.laplacian = static_cast<sheafnn::HypergraphLaplacian>(number(given, 7));
  r.mediators = flag(given, 8);
  if (flag(given, 9)) r.projection = given.file.at("projection").values;
  r.update = static_cast<sheafnn::HypergraphUpdate>(number(given, 10));
  r.static_sheaf = flag(given, 11);
  r.bias = flag(given, 12);
  r.spread = sheafnn::SpreadRange::published;
  r.sheaf_activation = sheafnn::SheafActivation::tanh;
  r.parametrisation = sheafnn::rotation::RotationParametrisation::householder;
  return r;
}
/// The model of such a case.
template <class Model>
Model hypergraph_model(const golden::Case& given) {
  return golden::with_parameters(Model(hypergraph_options<Model>(given)), given);
}
/// The hypergraph of such a case, from its incidence.
inline sheafnn::Hypergraph hypergraph_of(const golden::Case& given) {
  const std::vector<double>& incidence = given.file.at("incidence").values;
  std::vector<sheafnn::Incidence> pairs;
  Index hyperedges = 0;
  for (std::size_t i = 0; i < incidence.size(); i += 2) {
    pairs.push_back({static_cast<std::int32_t>(incidence[i]), static_cast<std::int32_t>(incidence[i + 1])});
    hyperedges = std::max<Index>(hyperedges, pairs.back().hyperedge + 1);
  }
  return {given.features.rows(), hyperedges, pairs};
}

}  // namespace golden3
