/// \file
/// DiffusionOperator on an executor, with what it gives, for comparisons of executors and with the CPU's layer.
#pragma once

#include <cstddef>
#include <vector>

#include "operator_checks.hpp"
#include "sheafnn/batch/layer_operators.hpp"
#include "sheafnn/layers/sheaf_diffusion_layer.hpp"

namespace layer_operator_checks {

using sheafnn::Index;
using S = double;

/// Columns in the reverse order of arcs.
inline std::vector<Index> reversed_columns(const sheafnn::Graph& graph) {
  std::vector<Index> r;
  for (Index arc = graph.arc_count(); arc-- > 0;) r.push_back(arc);
  return r;
}
inline sheafnn::ForwardPass<S> pass_of(bool training, double dropout) {
  sheafnn::ForwardPass<S> r;
  r.seed = 21;
  r.epoch = 5;
  r.training = training;
  r.dropout = dropout;
  return r;
}
/// A layer's parameters and where they are.
struct Declared {
  sheafnn::layers::ParameterSet<S> parameters;
  sheafnn::layers::DiffusionWeights<sheafnn::layers::ParameterSlot> at;

  explicit Declared(const sheafnn::layers::SheafDiffusionOptions& options, Index coordinates) {
    sheafnn::layers::LayerSetting setting;
    setting.diffusion = {options.left, options.right, options.activation};
    setting.coordinates = coordinates;
    setting.channels = options.channels;
    sheafnn::layers::ParameterList<sheafnn::layers::ParameterSlot> list(parameters);
    at.declare(list, setting);
    parameters.finish();
  }
};

/// Features, the derivative of the output, and parameters by position; empty: there is none.
struct DiffusionInputs {
  std::vector<S> x, out_bar, left, right, epsilon, maps, weights;
};
struct Diffused {
  std::vector<S> out, x_bar, gradient[5];
};

/// A forward pass and two backward passes, which are the same. Columns are in the reverse order of arcs.
template <class Family, class Executor>
Diffused diffuse(Executor& executor, const sheafnn::Graph& graph,
                 const sheafnn::layers::SheafDiffusionOptions& options, const DiffusionInputs& given,
                 const sheafnn::ForwardPass<S>& pass) {
  using Array = sheafnn::batch::Array<Executor, S>;
  const Declared declared(options, Family::stalk_dimension + options.add_lp + options.add_hp);
  sheafnn::batch::DiffusionOperator<Executor, Family, S> op(executor, declared.parameters, declared.at, options,
                                                            !given.weights.empty(), graph,
                                                            reversed_columns(graph));
  std::vector<Array> arrays, gradients;
  for (const std::vector<S>* one : {&given.left, &given.right, &given.epsilon, &given.maps, &given.weights}) {
    arrays.emplace_back(executor, "test", *one);
    gradients.emplace_back(executor, "test", static_cast<Index>(one->size()));
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].size() > 0) op.set_parameter(i, arrays[i].data());
  }
  const Index size = static_cast<Index>(given.x.size());
  Array in(executor, "test", given.x), out(executor, "test", size), bar(executor, "test", given.out_bar),
      in_bar(executor, "test", size);
  op.forward(pass, in.data(), out.data());
  for (int i = 0; i < 2; ++i) op.backward(bar.data(), in_bar.data());
  Diffused r;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].size() > 0) op.add_gradient(i, gradients[i].data());
  }
  op.store_gradients();
  for (std::size_t i = 0; i < gradients.size(); ++i) r.gradient[i] = gradients[i].download();
  r.out = out.download();
  r.x_bar = in_bar.download();
  return r;
}

}  // namespace layer_operator_checks
