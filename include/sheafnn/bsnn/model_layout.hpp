/// \file
/// NetworkWeights: all parameters of a network, declared once, and ModelLayout: the sizes of its parts, and the places
/// of their parameters in a ParameterSet.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/layers/encoder.hpp"
#include "sheafnn/layers/polynomial_activation.hpp"
#include "sheafnn/layers/sheaf_learner.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/parameter_list.hpp"
#include "sheafnn/posterior/around_given.hpp"

namespace sheafnn {

/// Sizes of the parts of a network, from its options and its types.
struct NetworkSizes {
  Index coordinates = 0;   ///< d'
  Index hidden_width = 0;  ///< h
  Index row = 0;           ///< values per node between layers: h, or 2h for complex features
  Index learner_count = 0;
  bool bayesian = false;
  layers::EncoderOptions encoder, sheaf_encoder;
  layers::SheafLearnerOptions learner;  ///< each of them
};

/// Sizes of the parts of a network. Unchecked: the options are resolved, sizes are at least 0.
///
/// \param options       resolved
/// \param d             stalk coordinates, including fixed filters
/// \param sheaf_count   different sheaves in a forward pass
/// \param raw           raw outputs of the posterior per map
[[nodiscard]] inline NetworkSizes network_sizes(const ModelOptions& options, Index d, Index sheaf_count,
                                                const detail::RawSizes& raw, bool bayesian) {
  NetworkSizes r;
  r.coordinates = d;
  r.hidden_width = d * options.channels;
  const LayerForm form = options.layer.value_or(LayerForm::diffusion);
  r.row = r.hidden_width * layers::parts_of(form);
  r.learner_count = bayesian ? 1 : sheaf_count;
  r.bayesian = bayesian;
  const bool rectified =
      form == LayerForm::directed && options.directed.activation == ComplexActivation::complex_relu;
  r.encoder = {r.hidden_width, options.activation, false, rectified};
  r.sheaf_encoder = {r.hidden_width, options.activation, options.degree_input, rectified};
  r.learner.parts = bayesian ? 1 : layers::parts_of(form);  // a posterior reads embeddings, which are real
  r.learner.inputs = r.hidden_width * r.learner.parts;
  r.learner.input = options.learner;
  r.learner.channels = options.channels * r.learner.parts;
  r.learner.edge_features = options.edge_features;
  r.learner.types = std::max<Index>(1, static_cast<Index>(options.edge_types.size()));
  r.learner.mean = raw.mean;
  r.learner.spread = raw.spread;
  r.learner.labels = raw.labels;
  r.learner.first_dispersion = detail::first_dispersion(options.spread);
  r.learner.edge_weights = *options.edge_weights;
  if (r.learner.outputs() > 0) {
    r.learner.width = options.learner_width;
    r.learner.hidden_layers = options.learner_layers;
  }
  return r;
}

/// The weights of a readout. Unchecked: sizes are at least 1.
///
/// \param layers  the hidden layers and the last one
template <class T>
SHEAFNN_NOINLINE void declare_readout(layers::ParameterList<T>& list,
                                      std::vector<layers::LinearWeights<T>>& hidden,
                                      layers::LinearWeights<T>& output, Index layers, Index classes, Index h) {
  hidden.resize(static_cast<std::size_t>(layers - 1));
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i].declare(list, std::string("head.").append(std::to_string(i)), h, h);
  output.declare(list, "lin2", classes, h);
}

/// All weights of a network except the weights of its layers, or their gradients or places. \tparam T const S, S or
/// ParameterSlot
template <class T>
struct NetworkWeights {
  layers::LinearWeights<T> encoder, second, output;
  layers::LinearWeights<T> sheaf_encoder;                ///< only in models with a separate encoder
  std::vector<layers::SheafLearnerWeights<T>> learners;  ///< one (BSNN) or one per layer (NSD; `linear`: one)
  std::vector<layers::LinearWeights<T>> readout;         ///< of the hidden layers
  layers::FilterWeights<T> filter;

  /// Linear layers start uniform in ±1/√inputs. The order is the order of files, and selects initial values. Unchecked: the
  /// options are resolved, and the sizes follow from them.
  ///
  /// \param declare_layers  declare_layers(list) declares the weights of the layers
  template <class Layers>
  void declare(layers::ParameterList<T>& list, const ModelOptions& options, const NetworkSizes& sizes,
               const Layers& declare_layers) {
    const Index h = sizes.hidden_width, p = options.features;
    encoder.declare(list, "lin1", h, p);
    if (options.second_linear) second.declare(list, "lin12", h, h);
    list.group = layers::ParameterGroup::sheaf_learner;
    if (*options.separate_encoder) sheaf_encoder.declare(list, "lin_maps", h, p + (options.degree_input ? 1 : 0));
    learners.resize(static_cast<std::size_t>(sizes.learner_count));
    Index number = sizes.bayesian ? -1 : 0;
    for (layers::SheafLearnerWeights<T>& learner : learners) learner.declare(list, sizes.learner, number++);
    list.group = layers::ParameterGroup::network;
    declare_layers(list);
    declare_readout(list, readout, output, options.readout_layers, options.classes, sizes.row);
    filter.declare(list, options.filter);
  }
};

namespace detail {

/// The end of the names of a layer's weights.
[[nodiscard]] inline std::string layer_suffix(Index layer) {
  return std::string(".").append(std::to_string(layer));  // GCC 12 warns of "." + std::to_string(layer)
}
/// Declares the weights of layers, in order: declare(l) the weights of layer l, whose names end with its index.
/// Changes that a layer makes to the list end with the layer.
template <class T, class Declare>
void declare_in_order(ParameterList<T>& list, Index count, const Declare& declare) {
  const ParameterGroup group = list.group;
  const bool as_stored = list.as_stored;
  for (Index l = 0; l < count; ++l) {
    list.suffix = layer_suffix(l);
    declare(l);
    list.group = group;
    list.as_stored = as_stored;
  }
  list.suffix.clear();
}

}  // namespace detail

/// The weights of diffusion layers, and of the norms that follow them.
template <class T>
struct LayerWeights {
  std::vector<layers::DiffusionWeights<T>> layers;
  std::vector<layers::NormWeights<T>> norms;  ///< one per layer, or empty

  /// Unchecked: count ≥ 0.
  void declare(layers::ParameterList<T>& list, layers::LayerSetting of, Index count, bool norm) {
    layers.resize(static_cast<std::size_t>(count));
    if (norm) norms.resize(layers.size());
    detail::declare_in_order(list, count, [&](Index l) {
      layers[static_cast<std::size_t>(l)].declare(list, of);
      if (norm) norms[static_cast<std::size_t>(l)].declare_after_layer(list, of.row());
    });
  }
};

/// The sizes of a network's parts, and where their parameters are.
struct ModelLayout : NetworkSizes, LayerWeights<layers::ParameterSlot> {
  NetworkWeights<layers::ParameterSlot> at;
};

}  // namespace sheafnn
