/// \file
/// What a model has learned and predicts on a graph as one .npz file, for other programs: numpy.load("learned.npz").
///
/// The arrays of sheaf_file.hpp: the learned sheaf and, of Bayesian models, the spread of its posterior. Of cooperative
/// models the arrays of node_maps_file.hpp, of bundle networks the arrays of bundle_file.hpp. And
///
/// | key                | shape           | what                                                                    |
/// | ------------------ | --------------- | ----------------------------------------------------------------------- |
/// | model              | text            | bsnn, nsd, or another of network_kinds                                  |
/// | normalisation      | text            | of the model's Laplacian; cooperative models have none to choose        |
/// | layer_embeddings   | (L + 1) × n × h | features after 0 … L diffusion layers, h = d' · f (layer_features.hpp)  |
/// | embeddings         | n × h           | the last of them, which the output layer reads                          |
/// | probabilities      | n × C           | predicted class probabilities, the mean over the samples                |
/// | entropy            | n               | of these distributions, in nats                                         |
/// | mutual_information | n               | epistemic part of the entropy, in nats; 0 of deterministic models       |
/// | labels             | n               | class, −1 where unknown; left out where the dataset has no labels       |
/// | class_names        | any             | their names, a CSV record in UTF-8, as bytes; left out where there are none |
/// | sheaf_use          | text            | figures of the training (sheaf_use_text.hpp); only in files of programs |
///
/// Features and probabilities are means over the same posterior samples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sheafnn/bsnn/layer_features.hpp"
#include "sheafnn/bsnn/learned_bundle.hpp"
#include "sheafnn/bsnn/learned_node_maps.hpp"
#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/io/bundle_file.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/node_maps_file.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "sheafnn/io/sheaf_file.hpp"

namespace sheafnn::io {

/// Adds the features of the nodes after every layer, in single precision.
///
/// \throws std::invalid_argument  keys that are taken, or more than 4 GiB in all
inline void add_layer_features(NpzWriter& writer, const LayerFeatures& features) {
  const Index row = features.coordinates * features.channels;
  const std::vector<float> values(features.values.begin(), features.values.end());
  writer.add<float>("layer_embeddings", {features.layers + 1, features.nodes, row}, values);
  const std::size_t last = static_cast<std::size_t>(features.nodes * row);
  writer.add<float>("embeddings", {features.nodes, row}, std::span(values).last(last));
}

/// Adds a prediction of every node. \throws std::invalid_argument  as above
inline void add_prediction(NpzWriter& writer, const Prediction& prediction) {
  const Index n = static_cast<Index>(prediction.label.size());
  writer.add<double>("probabilities", {n, prediction.class_count}, prediction.probabilities);
  writer.add<double>("entropy", {n}, prediction.entropy);
  writer.add<double>("mutual_information", {n}, prediction.mutual_information);
}

/// Adds names as a CSV record in UTF-8, one number for each byte. Takes any names.
///
/// \throws std::invalid_argument  as NpzWriter::add()
inline void add_names(NpzWriter& writer, std::string_view key, const std::vector<std::string>& names) {
  const std::string text = csv_record(names);
  const std::vector<std::int32_t> bytes(reinterpret_cast<const unsigned char*>(text.data()),
                                        reinterpret_cast<const unsigned char*>(text.data()) + text.size());
  writer.add<std::int32_t>(key, {static_cast<Index>(bytes.size())}, bytes);
}
/// Adds the labels of a dataset and their names.
///
/// \tparam Data  a NodeDataset, or what has its labels
/// \throws std::invalid_argument  as above
template <class Data>
void add_labels(NpzWriter& writer, const Data& data) {
  if (!data.labels.empty()) writer.add<std::int32_t>("labels", {data.node_count()}, data.labels);
  if (!data.class_names.empty()) add_names(writer, "class_names", data.class_names);
}

namespace detail {

/// Adds the learned maps: a sheaf with maps per incident pair, …
template <class Model>
void add_maps(NpzWriter& writer, const Model& model, const Dataset& data, const LearnedSheafOptions& options) {
  const CellularSheaf<typename Model::Family> sheaf = learned_sheaf(model, data, options);
  if constexpr (has_sheaf_posterior<Model>) {
    add_sheaf(writer, sheaf, posterior_parameters(model, data, options).spread);
  } else {
    add_sheaf(writer, sheaf);
  }
}
/// … rotations per node and bundle, …
template <int D, bool Bayesian, class S>
void add_maps(NpzWriter& writer, const BundleModel<D, Bayesian, S>& model, const Dataset& data,
              const LearnedSheafOptions& options) {
  add_bundle(writer, learned_bundle(model, data, {.layer = options.layer, .threads = options.threads}), data.graph);
}
/// … or maps per node.
template <int D, bool Bayesian, class S>
void add_maps(NpzWriter& writer, const CooperativeModel<D, Bayesian, S>& model, const Dataset& data,
              const LearnedSheafOptions& options) {
  add_node_maps(writer, learned_node_maps(model, data, {.layer = options.layer, .threads = options.threads}),
                data.graph, model.options().directed);
}

}  // namespace detail

/// Everything above of a model on a dataset.
///
/// \param options  samples of prediction and features
/// \param layer    of the maps, where layers differ (LearnedSheafOptions, LearnedNodeMapsOptions)
/// \throws std::invalid_argument  what learned_sheaf() and predict() throw; more than 4 GiB in all
template <class Model>
[[nodiscard]] NpzWriter learned_arrays(const Model& model, const Dataset& data, const PredictOptions& options = {},
                                       Index layer = 0) {
  NpzWriter writer;
  detail::add_maps(writer, model, data, {.layer = layer, .threads = options.threads});
  writer.add("model", Model::kind);
  if constexpr (requires { model.options().normalisation; }) {
    writer.add("normalisation", to_string(model.options().normalisation));
  }
  add_layer_features(writer, layer_features(model, data,
                                            {.samples = options.samples,
                                             .seed = options.seed,
                                             .epoch = options.epoch,
                                             .threads = options.threads}));
  add_prediction(writer, predict(model, data, options));
  add_labels(writer, data);
  return writer;
}

/// Writes them: to a temporary file first, which then takes the place of `path`.
///
/// \throws std::invalid_argument  as above
/// \throws std::runtime_error     the file cannot be written; an old one is left as it was
template <class Model>
void write_learned(const std::filesystem::path& path, const Model& model, const Dataset& data,
                   const PredictOptions& options = {}, Index layer = 0) {
  learned_arrays(model, data, options, layer).write(path);
}

}  // namespace sheafnn::io
