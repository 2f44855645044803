/// \file
/// A NetworkOperator on an executor, with what it gives, for comparisons of executors and with the networks of the CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "batch_checks.hpp"
#include "sheafnn/batch/network_operator.hpp"

namespace operator_checks {

using sheafnn::Index;
using sheafnn::layers::Activation;

/// What a pass depends on beside model, parameters and graph.
struct Call {
  double input_dropout = 0.4, dropout = 0.3, kl_bar = 0.7;
  bool training = true;
  std::optional<Activation> layer = {};  ///< of a pass from embeddings

  template <class S>
  [[nodiscard]] sheafnn::ForwardPass<S> pass() const {
    sheafnn::ForwardPass<S> r;
    r.seed = 21;
    r.epoch = 5;
    r.training = training;
    r.keep = true;
    r.input_dropout = training ? input_dropout : 0;
    r.dropout = training ? dropout : 0;
    return r;
  }
};
/// What a pass and its backward pass give; gradients in the user-visible shapes, one after another.
struct Outcome {
  std::vector<double> outputs, kl, gradient, embedding_bar;
};

/// Numbers in (−1, 1).
template <class S>
[[nodiscard]] std::vector<S> numbers(std::uint64_t seed, Index count) {
  std::vector<S> r;
  for (Index i = 0; i < count; ++i) r.push_back(static_cast<S>(tiny::number(seed, i)));
  return r;
}
template <class S>
[[nodiscard]] std::vector<double> in_doubles(const std::vector<S>& values) {
  return {values.begin(), values.end()};
}

/// Arrays of a caller, who knows nothing of the operator's.
template <class Executor, class Model>
struct Caller {
  using S = typename Model::Scalar;
  using Array = sheafnn::batch::Array<Executor, S>;
  using Operator = sheafnn::batch::NetworkOperator<Executor, Model>;

  Caller(Executor& on, const Model& of, const sheafnn::GraphOf<Model>& graph,
         const sheafnn::NodeFeatures& features)
      : executor(on), model(of), nodes(graph.node_count()), network(on, of, graph, features) {
    for (const sheafnn::layers::ParameterInfo& info : model.parameters().info()) {
      const auto id = static_cast<sheafnn::layers::ParameterId>(parameters.size());
      parameters.push_back({on, "test", model.parameters().get(id, model.parameters().values())});
      gradients.push_back({on, "test", info.size});
    }
  }
  /// A forward pass and so many backward passes, which are the same.
  [[nodiscard]] Outcome run(const Call& call, int backward_passes = 1) {
    Index width = model.options().classes;
    if constexpr (Operator::takes_embeddings) width = call.layer ? network.row() : width;
    embedding = {executor, "test", numbers<S>(31, nodes * model.hidden_width())};
    outputs = {executor, "test", nodes * width};
    outputs_bar = {executor, "test", numbers<S>(32, nodes * width)};
    embedding_bar = {executor, "test", nodes * model.hidden_width()};
    kl = {executor, "test", 1};
    kl_bar = {executor, "test", std::vector<S>{static_cast<S>(call.kl_bar)}};
    for (std::size_t i = 0; i < parameters.size(); ++i)
      network.set_parameter(static_cast<sheafnn::layers::ParameterId>(i), parameters[i].data());
    const auto pass = call.pass<S>();
    if constexpr (Operator::takes_embeddings) {
      if (call.layer) network.forward(pass, embedding.data(), *call.layer, outputs.data(), kl.data());
    }
    if (!call.layer) network.forward(pass, outputs.data(), kl.data());
    for (int i = 0; i < backward_passes; ++i) {
      network.backward(outputs_bar.data(), kl_bar.data(), call.layer ? embedding_bar.data() : nullptr);
    }
    for (std::size_t i = 0; i < gradients.size(); ++i)
      network.add_gradient(static_cast<sheafnn::layers::ParameterId>(i), gradients[i].data());
    network.store_gradients();
    Outcome r{in_doubles(outputs.download()), in_doubles(kl.download()), {}, {}};
    if (call.layer) r.embedding_bar = in_doubles(embedding_bar.download());
    for (const Array& gradient : gradients) {
      const std::vector<double> own = in_doubles(gradient.download());
      r.gradient.insert(r.gradient.end(), own.begin(), own.end());
    }
    return r;
  }

  Executor& executor;
  const Model& model;
  Index nodes;
  Operator network;
  std::vector<Array> parameters, gradients;
  Array embedding, outputs, outputs_bar, embedding_bar, kl, kl_bar;
};

}  // namespace operator_checks
