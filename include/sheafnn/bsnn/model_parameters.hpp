/// \file
/// The parameters of a model: which there are, and their initial values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::detail {

/// What the parameters depend on besides the options.
struct ParameterShape {
  Index coordinates = 0;   ///< d'
  Index hidden_width = 0;  ///< h
  Index sheaf_count = 0;
  Index mean = 0, spread = 0;  ///< of the posterior, raw numbers per map
  bool bayesian = false;
};

/// Adds the parameters of a sheaf learner.
template <class S>
SheafLearnerLayout lay_out_learner(const ModelOptions& options, const ParameterShape& shape, Index index,
                                   ParameterSet<S>& parameters) {
  const Index h = shape.hidden_width;
  const auto add = [&](const std::string& name, Index rows, Index columns) {
    return parameters.add(name, {rows, columns}, ParameterGroup::sheaf_learner);
  };
  const std::string sheaf = shape.bayesian ? "sheaf" : concat("sheaf.", index);
  SheafLearnerLayout layout;
  layout.inputs = h;
  layout.input = options.learner;
  layout.channels = options.channels;
  layout.edge_features = options.edge_features;
  layout.mean = shape.mean;
  layout.spread = shape.spread;
  layout.edge_weights = *options.edge_weights;
  if (layout.outputs() > 0) {
    Index inputs = layout.first_inputs();
    layout.width = options.learner_width;
    layout.hidden_layers = options.learner_layers;
    for (Index k = 0; k < options.learner_layers; ++k) {
      layout.hidden.push_back(add(concat(sheaf, ".hidden.", k, ".weight"), layout.width, inputs));
      inputs = layout.width;
    }
    if (layout.mean > 0)
      layout.mean_weight = add(sheaf + (shape.bayesian ? ".mean.weight" : ".weight"), layout.mean, inputs);
    if (layout.spread > 0) layout.spread_weight = add(sheaf + ".var.weight", layout.spread, inputs);
  }
  if (*options.edge_weights) {
    layout.edge_weight =
        add(shape.bayesian ? std::string("edge.weight") : concat("edge.", index, ".weight"), 1, 2 * h);
  }
  return layout;
}

/// Adds all parameters of a model, without values: ParameterSet::finish() allocates them.
///
/// \param options  resolved
template <class S>
[[nodiscard]] ModelLayout lay_out(const ModelOptions& options, const ParameterShape& shape,
                                  ParameterSet<S>& parameters) {
  ModelLayout layout;
  const Index h = shape.hidden_width, f = options.channels, d = shape.coordinates, p = options.features;
  const auto add = [&](std::string name, std::vector<Index> extents, bool transposed = false,
                       ParameterGroup group = ParameterGroup::network) {
    return parameters.add(std::move(name), std::move(extents), group, transposed);
  };
  layout.encoder = {{h, options.activation, false}, add("lin1.weight", {h, p}, true), add("lin1.bias", {h})};
  if (options.second_linear) {
    layout.second_weight = add("lin12.weight", {h, h}, true);
    layout.second_bias = add("lin12.bias", {h});
  }
  if (*options.separate_encoder) {
    layout.sheaf_encoder = {{h, options.activation, options.degree_input},
                            add("lin_maps.weight", {h, p + (options.degree_input ? 1 : 0)}, true,
                                ParameterGroup::sheaf_learner),
                            add("lin_maps.bias", {h}, false, ParameterGroup::sheaf_learner)};
  }
  const Index learners = shape.bayesian ? 1 : shape.sheaf_count;
  for (Index l = 0; l < learners; ++l) layout.learners.push_back(lay_out_learner(options, shape, l, parameters));
  for (Index l = 0; l < options.layers; ++l) {
    DiffusionLayout layer;
    if (options.left_weights) layer.left = add(concat("left.", l), {d, d});
    if (options.right_weights) layer.right = add(concat("right.", l), {f, f});
    if (!options.residual.initial()) layer.epsilon = add(concat("eps.", l), {d, 1});
    if (options.layer_norm) {
      layer.norm_scale = add(concat("norm.", l, ".weight"), {h});
      layer.norm_shift = add(concat("norm.", l, ".bias"), {h});
    }
    layer.activation = options.activation;
    layout.layers.push_back(layer);
  }
  for (Index i = 0; i + 1 < options.readout_layers; ++i) {
    layout.readout_weight.push_back(add(concat("head.", i, ".weight"), {h, h}, true));
    layout.readout_bias.push_back(add(concat("head.", i, ".bias"), {h}));
  }
  layout.output_weight = add("lin2.weight", {options.classes, h}, true);
  layout.output_bias = add("lin2.bias", {options.classes});
  if (options.filter.active()) {
    layout.filter_theta = add("poly.logits", {options.filter.degree + 1});
    if (options.filter.skip != HighPassSkip::off) layout.filter_skip = add("poly.skip", {1});
  }
  return layout;
}

/// Haar-distributed orthogonal n × n matrix: the rows of a normal one, orthonormalised in turn. Each is
/// projected twice, which keeps them orthogonal to rounding.
template <class S>
void random_orthogonal(const Stream& stream, Index n, S* out) {
  std::vector<double> rows(static_cast<std::size_t>(n * n));
  for (Index i = 0; i < n; ++i) {
    double* row = rows.data() + i * n;
    for (Index j = 0; j < n; ++j) fill_normals<1>(row + j, stream, static_cast<std::uint32_t>(i * n + j));
    for (Index j = 0; j < 2 * i; ++j) {
      const double* other = rows.data() + j % i * n;
      const double projection = std::inner_product(row, row + n, other, 0.0);
      for (Index k = 0; k < n; ++k) row[k] -= projection * other[k];
    }
    const double norm = std::sqrt(std::inner_product(row, row + n, row, 0.0));
    for (Index k = 0; k < n; ++k) {
      row[k] /= norm;
      out[i * n + k] = static_cast<S>(row[k]);
    }
  }
}

/// Linear layers uniform in ±1/√fan_in, A_l = I, B_l random orthogonal, ε = 0; norms 1 and 0; filters with equal coefficients, α = 0.
template <class S>
void initialise(const ModelOptions& options, const ParameterShape& shape, const ModelLayout& layout,
                std::uint64_t seed, ParameterSet<S>& parameters) {
  const auto stream = [&](ParameterId id) {
    return Stream{seed, Purpose::weights, 0, static_cast<std::uint32_t>(id % 1024),
                  static_cast<std::uint32_t>(id / 1024)};
  };
  const auto uniform = [&](ParameterId id, Index fan_in) {
    if (id < 0) return;
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    std::vector<S> values(static_cast<std::size_t>(parameters.info(id).size));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t word = stream(id).words(static_cast<std::uint32_t>(i / 4), 0).word[i % 4];
      values[i] = static_cast<S>(bound * (2 * uniform_from_word<double>(word) - 1));
    }
    parameters.set(id, values);
  };
  const Index h = shape.hidden_width, p = options.features;
  uniform(layout.encoder.weight, p);
  uniform(layout.encoder.bias, p);
  uniform(layout.second_weight, h);
  uniform(layout.second_bias, h);
  const Index sheaf_inputs = p + (options.degree_input ? 1 : 0);
  uniform(layout.sheaf_encoder.weight, sheaf_inputs);
  uniform(layout.sheaf_encoder.bias, sheaf_inputs);
  for (const SheafLearnerLayout& learner : layout.learners) {
    Index inputs = learner.first_inputs();
    for (const ParameterId id : learner.hidden) {
      uniform(id, inputs);
      inputs = learner.width;
    }
    uniform(learner.mean_weight, inputs);
    uniform(learner.spread_weight, inputs);
    uniform(learner.edge_weight, 2 * h);
  }
  for (const DiffusionLayout& layer : layout.layers) {
    if (layer.norm_scale >= 0) std::fill_n(parameters.data(layer.norm_scale), h, S(1));
    if (layer.left >= 0) {
      for (Index i = 0; i < shape.coordinates; ++i) parameters.data(layer.left)[i * shape.coordinates + i] = S(1);
    }
    if (layer.right >= 0) random_orthogonal(stream(layer.right), options.channels, parameters.data(layer.right));
  }
  for (const ParameterId id : layout.readout_weight) uniform(id, h);
  for (const ParameterId id : layout.readout_bias) uniform(id, h);
  uniform(layout.output_weight, h);
  uniform(layout.output_bias, h);
  if (layout.filter_theta >= 0) {
    for (Index j = 0; j <= options.filter.degree; ++j) {
      parameters.data(layout.filter_theta)[j] = static_cast<S>(initial_polynomial_parameter(options.filter, j));
    }
  }
}

}  // namespace sheafnn::detail
