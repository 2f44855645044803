/// \file
/// ModelLayout: where the parameters of each part of a network are in its ParameterSet, and NetworkWeights: the same
/// as the views that layers take, of the values or of an array laid out like them (a gradient).
#pragma once

#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/layers/diffusion_layer.hpp"
#include "sheafnn/layers/encoder.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/polynomial_activation.hpp"
#include "sheafnn/layers/sheaf_learner.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn {

/// Of an encoder. The weight (h × p, or h × (p + 1) with degrees) is stored transposed.
struct EncoderLayout : EncoderOptions {
  ParameterId weight = -1;
  ParameterId bias = -1;
};

/// Of a sheaf learner.
struct SheafLearnerLayout : SheafLearnerOptions {
  std::vector<ParameterId> hidden;  ///< width × first_inputs(), then width × width
  ParameterId mean_weight = -1;     ///< mean × (first_inputs() or width)
  ParameterId spread_weight = -1;   ///< spread × (first_inputs() or width)
  ParameterId edge_weight = -1;     ///< 1 × 2h
};

/// Of a diffusion layer; −1 where the architecture leaves a weight out.
struct DiffusionLayout {
  ParameterId left = -1;     ///< A, d' × d'
  ParameterId right = -1;    ///< B, f × f
  ParameterId epsilon = -1;  ///< ε, d'; not with an initial residual
  ParameterId norm_scale = -1, norm_shift = -1;  ///< of the layer norm, h
  bool activation = true;
};

/// Of a whole network.
struct ModelLayout {
  EncoderLayout encoder;
  ParameterId second_weight = -1, second_bias = -1;  ///< second linear layer, h × h (stored transposed) and h
  EncoderLayout sheaf_encoder;                       ///< weight −1 where the model has none
  std::vector<SheafLearnerLayout> learners;          ///< one (BSNN) or one per layer (NSD; `linear`: one)
  std::vector<DiffusionLayout> layers;
  std::vector<ParameterId> readout_weight, readout_bias;  ///< of hidden layers, h × h (stored transposed) and h
  ParameterId output_weight = -1, output_bias = -1;  ///< C × h (stored transposed) and C
  ParameterId filter_theta = -1, filter_skip = -1;   ///< of a polynomial filter, K + 1 numbers and α; −1 without
};

/// All weights of a network, or their gradients. \tparam T const S or S
template <class T>
struct NetworkWeights {
  using S = std::remove_const_t<T>;
  LinearWeights<T> encoder, second, sheaf_encoder, output;
  std::vector<SheafLearnerWeights<T>> learners;
  std::vector<DiffusionWeights<T>> layers;
  std::vector<NormWeights<T>> norms;      ///< one per layer, or none
  std::vector<LinearWeights<T>> readout;  ///< of the hidden layers
  FilterWeights<T> filter;

  /// Views of `array`, which is laid out like the parameters. Unchecked: it has as many numbers as they, and the layout
  /// is theirs.
  void bind(const ModelLayout& layout, const ParameterSet<S>& parameters, T* array);
};

template <class T>
void NetworkWeights<T>::bind(const ModelLayout& layout, const ParameterSet<S>& parameters, T* array) {
  const auto matrix = [&](ParameterId id) -> MatrixView<T> {
    if (id < 0) return {};
    const ParameterInfo& info = parameters.info(id);
    const Index rows = info.transposed ? info.size / info.shape.front() : info.shape.front();
    return {array + info.offset, rows, info.size / rows};
  };
  const auto vector = [&](ParameterId id) -> std::span<T> {
    if (id < 0) return {};
    const ParameterInfo& info = parameters.info(id);
    return {array + info.offset, static_cast<std::size_t>(info.size)};
  };
  encoder = {matrix(layout.encoder.weight), vector(layout.encoder.bias)};
  second = {matrix(layout.second_weight), vector(layout.second_bias)};
  sheaf_encoder = {matrix(layout.sheaf_encoder.weight), vector(layout.sheaf_encoder.bias)};
  output = {matrix(layout.output_weight), vector(layout.output_bias)};
  filter = {vector(layout.filter_theta), vector(layout.filter_skip)};
  learners.resize(layout.learners.size());
  for (std::size_t l = 0; l < learners.size(); ++l) {
    const SheafLearnerLayout& from = layout.learners[l];
    for (std::size_t k = 0; k < from.hidden.size(); ++k) learners[l].hidden[k] = matrix(from.hidden[k]);
    learners[l].mean = matrix(from.mean_weight);
    learners[l].spread = matrix(from.spread_weight);
    learners[l].edge = matrix(from.edge_weight);
  }
  layers.resize(layout.layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const DiffusionLayout& from = layout.layers[l];
    layers[l] = {matrix(from.left), matrix(from.right), vector(from.epsilon)};
    if (from.norm_scale < 0) continue;
    norms.resize(layers.size());
    norms[l] = {vector(from.norm_scale), vector(from.norm_shift)};
  }
  readout.resize(layout.readout_weight.size());
  for (std::size_t i = 0; i < readout.size(); ++i) {
    readout[i] = {matrix(layout.readout_weight[i]), vector(layout.readout_bias[i])};
  }
}

}  // namespace sheafnn
