/// \file
/// CooperativeLayout: where the parameters of each part of a cooperative network are in its ParameterSet, their initial
/// values, and CooperativeWeights: the same as the views that layers take.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/model_parameters.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/node_learner.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn {

/// Of a linear layer; the weight (out × in) is stored transposed.
struct LinearLayout {
  ParameterId weight = -1, bias = -1;
};
/// Of a normalisation.
struct NormLayout {
  ParameterId scale = -1, shift = -1;
};
/// Of a convolution of a sage learner.
struct SageLayout {
  LinearLayout neighbour, projection;
  ParameterId self = -1;
};
/// Of a learner of node maps.
struct NodeLearnerLayout {
  LinearLayout hidden, output;
  std::vector<SageLayout> convolutions;
  std::vector<NormLayout> norms;
};
/// Of a cooperative layer; −1 where the architecture leaves a weight out.
struct CooperativeLayerLayout {
  ParameterId left = -1, right = -1, epsilon = -1;
  NormLayout norm;
};
/// Of a whole network.
struct CooperativeLayout {
  LinearLayout encoder, learner_encoder, output;
  std::vector<LinearLayout> readout;                       ///< of the hidden layers of the readout
  std::vector<std::array<NodeLearnerLayout, 2>> learners;  ///< for T and for S; one pair, or one per layer
  std::vector<CooperativeLayerLayout> layers;
};

/// All weights of a network, or their gradients. \tparam T const S or S
template <class T>
struct CooperativeWeights {
  using S = std::remove_const_t<T>;
  /// Those of one layer.
  struct Layer {
    DiffusionWeights<T> diffusion;
    NormWeights<T> norm;
  };
  LinearWeights<T> encoder, learner_encoder, output;
  std::vector<LinearWeights<T>> readout;
  std::vector<std::array<NodeLearnerWeights<T>, 2>> learners;
  std::vector<Layer> layers;

  /// Views of `array`, which is laid out like the parameters. Unchecked: it has as many numbers as they, and the layout
  /// is theirs.
  void bind(const CooperativeLayout& layout, const ParameterSet<S>& parameters, T* array);
};

template <class T>
void CooperativeWeights<T>::bind(const CooperativeLayout& layout, const ParameterSet<S>& parameters, T* array) {
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
  const auto linear = [&](const LinearLayout& of) { return LinearWeights<T>{matrix(of.weight), vector(of.bias)}; };
  const auto norm = [&](const NormLayout& of) { return NormWeights<T>{vector(of.scale), vector(of.shift)}; };
  encoder = linear(layout.encoder);
  learner_encoder = linear(layout.learner_encoder);
  output = linear(layout.output);
  readout.resize(layout.readout.size());
  for (std::size_t i = 0; i < readout.size(); ++i) readout[i] = linear(layout.readout[i]);
  learners.resize(layout.learners.size());
  for (std::size_t l = 0; l < learners.size(); ++l) {
    for (std::size_t side = 0; side < 2; ++side) {
      const NodeLearnerLayout& from = layout.learners[l][side];
      NodeLearnerWeights<T>& to = learners[l][side];
      to.hidden = linear(from.hidden);
      to.output = linear(from.output);
      to.convolutions.resize(from.convolutions.size());
      for (std::size_t k = 0; k < from.convolutions.size(); ++k) {
        const SageLayout& one = from.convolutions[k];
        to.convolutions[k] = {linear(one.neighbour), matrix(one.self), linear(one.projection)};
      }
      to.norms.resize(from.norms.size());
      for (std::size_t k = 0; k < from.norms.size(); ++k) to.norms[k] = norm(from.norms[k]);
    }
  }
  layers.resize(layout.layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const CooperativeLayerLayout& from = layout.layers[l];
    layers[l] = {{matrix(from.left), matrix(from.right), vector(from.epsilon)}, norm(from.norm)};
  }
}

namespace detail {

/// Adds the parameters of a learner whose names start with `name`.
template <class S>
[[nodiscard]] NodeLearnerLayout lay_out_node_learner(const CooperativeOptions& options, const std::string& name,
                                                     Index h, Index outputs, ParameterSet<S>& parameters) {
  constexpr ParameterGroup group = ParameterGroup::sheaf_learner;
  const auto linear = [&](const std::string& of, Index rows, Index columns) {
    return LinearLayout{parameters.add(of + ".weight", {rows, columns}, group, true),
                        parameters.add(of + ".bias", {rows}, group)};
  };
  NodeLearnerLayout layout;
  const Index g = options.learner_width;
  if (options.learner == NodeLearnerKind::mlp) {
    layout.hidden = linear(name + ".hidden", g, h);
    layout.output = linear(name + ".output", outputs, g);
    return layout;
  }
  for (Index k = 0; k < options.learner_layers; ++k) {
    const bool last = k + 1 == options.learner_layers;
    const std::string of = options.learner_layers == 1 ? name : concat(name, ".", k);
    const Index in = k == 0 ? h : g, out = last ? outputs : g;
    SageLayout& one = layout.convolutions.emplace_back();
    one.neighbour = linear(of + ".neighbour", out, in);
    one.self = parameters.add(of + ".self.weight", {out, in}, group, true);
    if (options.learner == NodeLearnerKind::sage_projected) {
      one.projection = linear(of + ".projection", in, in);
    } else if (!last) {
      layout.norms.push_back(
          {parameters.add(of + ".norm.weight", {g}, group), parameters.add(of + ".norm.bias", {g}, group)});
    }
  }
  return layout;
}

/// Adds all parameters of a model, without values: ParameterSet::finish() allocates them.
///
/// \param options  resolved
/// \param d        stalk dimension
/// \param outputs  of the learners, per node
template <class S>
[[nodiscard]] CooperativeLayout lay_out(const CooperativeOptions& options, Index d, Index outputs, bool bayesian,
                                        ParameterSet<S>& parameters) {
  CooperativeLayout layout;
  const Index f = options.channels, h = d * f;
  const auto add = [&](const std::string& name, std::vector<Index> shape, bool transposed = false,
                       ParameterGroup group = ParameterGroup::network) {
    return parameters.add(name, std::move(shape), group, transposed);
  };
  layout.encoder = {add("lin1.weight", {h, options.features}, true), add("lin1.bias", {h})};
  if (options.separate_encoder) {
    layout.learner_encoder = {add("lin_maps.weight", {h, options.features}, true, ParameterGroup::sheaf_learner),
                              add("lin_maps.bias", {h}, false, ParameterGroup::sheaf_learner)};
  }
  const bool shared = bayesian && !options.layer_learners;
  for (Index l = 0; l < (shared ? 1 : options.layers); ++l) {
    const std::string number = shared ? "" : concat(".", l);
    std::array<NodeLearnerLayout, 2>& pair = layout.learners.emplace_back();
    pair[0] = lay_out_node_learner(options, "out" + number, h, outputs, parameters);
    pair[1] = lay_out_node_learner(options, "in" + number, h, outputs, parameters);
  }
  for (Index l = 0; l < options.layers; ++l) {
    CooperativeLayerLayout& layer = layout.layers.emplace_back();
    if (options.left_weights) layer.left = add(concat("left.", l), {d, d});
    if (options.right_weights) layer.right = add(concat("right.", l), {f, f});
    if (options.residual) layer.epsilon = add(concat("eps.", l), {d, 1});
    if (options.norm != FeatureNorm::none) {
      layer.norm = {add(concat("norm.", l, ".weight"), {h}), add(concat("norm.", l, ".bias"), {h})};
    }
  }
  for (Index i = 0; i + 1 < options.readout_layers; ++i) {
    layout.readout.push_back({add(concat("head.", i, ".weight"), {h, h}, true), add(concat("head.", i, ".bias"), {h})});
  }
  layout.output = {add("lin2.weight", {options.classes, h}, true), add("lin2.bias", {options.classes})};
  return layout;
}

/// Linear layers uniform in ±1/√fan_in, A_l = I, B_l random orthogonal, ε = 0, norms 1 and 0. In Bayesian models the
/// biases of κ_raw and s_raw start where the first samples stay near their means.
template <class S>
void initialise(const CooperativeOptions& options, Index d, bool bayesian, const CooperativeLayout& layout,
                std::uint64_t seed, ParameterSet<S>& parameters) {
  constexpr double raw_concentration = -4, raw_deviation = -2;
  const auto stream = [&](ParameterId id) {
    return Stream{seed, Purpose::weights, 0, static_cast<std::uint32_t>(id % 1024),
                  static_cast<std::uint32_t>(id / 1024)};
  };
  const auto uniform = [&](ParameterId id, Index fan_in) {
    if (id < 0) return;
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    S* values = parameters.data(id);
    for (Index i = 0; i < parameters.info(id).size; ++i) {
      const std::uint32_t word = stream(id).words(static_cast<std::uint32_t>(i / 4), 0).word[i % 4];
      values[i] = static_cast<S>(bound * (2 * uniform_from_word<double>(word) - 1));
    }
  };
  const auto linear = [&](const LinearLayout& of) {
    if (of.weight < 0) return;
    const Index inputs = parameters.info(of.weight).shape.back();
    uniform(of.weight, inputs);
    uniform(of.bias, inputs);
  };
  const auto ones = [&](ParameterId id) {
    if (id >= 0) std::fill_n(parameters.data(id), parameters.info(id).size, S(1));
  };
  linear(layout.encoder);
  linear(layout.learner_encoder);
  linear(layout.output);
  for (const LinearLayout& one : layout.readout) linear(one);
  for (const std::array<NodeLearnerLayout, 2>& pair : layout.learners) {
    for (const NodeLearnerLayout& learner : pair) {
      linear(learner.hidden);
      linear(learner.output);
      for (const SageLayout& one : learner.convolutions) {
        linear(one.neighbour);
        linear(one.projection);
        uniform(one.self, parameters.info(one.self).shape.back());
      }
      for (const NormLayout& one : learner.norms) ones(one.scale);
      if (!bayesian) continue;
      const ParameterId bias =
          learner.convolutions.empty() ? learner.output.bias : learner.convolutions.back().neighbour.bias;
      S* concentration = parameters.data(bias) + d * (d - 1) / 2;  // after the rotation: κ_raw, μ, s_raw
      concentration[0] = static_cast<S>(raw_concentration);
      if (options.conformal) concentration[2] = static_cast<S>(raw_deviation);
    }
  }
  for (const CooperativeLayerLayout& layer : layout.layers) {
    if (layer.left >= 0) {
      for (Index i = 0; i < d; ++i) parameters.data(layer.left)[i * d + i] = S(1);
    }
    if (layer.right >= 0) random_orthogonal(stream(layer.right), options.channels, parameters.data(layer.right));
    ones(layer.norm.scale);
  }
}

}  // namespace detail

}  // namespace sheafnn
