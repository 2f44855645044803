/// \file
/// OperatorSteps: what NetworkOperator asks of the networks of a kind of model, whatever they consist of. There is one
/// training with one sample.
///
/// Unchecked: numbers of items, runs, instances and lanes, and the sizes of arrays behind pointers and views.
#pragma once

#include <memory>

#include "sheafnn/batch/network_of_parts.hpp"
#include "sheafnn/batch/network_steps.hpp"
#include "sheafnn/bsnn/forward_pass.hpp"

namespace sheafnn::batch::detail {

/// Does a pass drop anything?
struct PassDrops {
  bool input = false;   ///< features
  bool hidden = false;  ///< hidden features
};
/// The sum of the KL of a posterior's distributions, and how many there are.
struct KlSum {
  PartialRows of_pairs;
  Index pairs = 0;
};

/// Of models that bring a BatchNetwork of their own (network_of_parts.hpp).
template <class Executor, class Model>
class OperatorSteps : protected BatchNetwork<Executor, Model> {
  using Network = BatchNetwork<Executor, Model>;

 protected:
  using S = typename Model::Scalar;
  using Network::executor_, Network::parts_, Network::outside_;
  /// Are there passes from embeddings?
  static constexpr bool takes_embeddings = Network::takes_embeddings;

  OperatorSteps(Executor& executor, const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                const NodeTargetLists& targets)
      : Network(executor, model, graph, features, targets, BatchSize{}) {}

  /// \param kl  also the sum of the posterior's KL
  /// \returns X_{L+1}
  [[nodiscard]] const S* features(const Pass& pass, const PassDrops& drop, bool kl) {
    this->encode(pass, drop.input, drop.hidden);
    const S* x = this->diffuse(pass, drop.hidden);
    if (kl) this->sum_kl();
    return x;
  }
  using Network::read_out;
  [[nodiscard]] KlSum kl_sum() const { return {parts_.kl_tree.partial(), parts_.kl_count}; }
  /// KL terms of layers.
  [[nodiscard]] PartialRows kl_of_layers() const { return {}; }

  /// All gradients from the derivative of the logits.
  void backward_outputs(const Pass& pass, const PassDrops& drop, bool closed_form) {
    this->backward(pass, closed_form, drop.hidden);
    this->sum_gradients();
  }
  /// Gradients of all but encoder and readout from X̄_{L+1} in parts_.x_bar. \returns where H̄ is
  [[nodiscard]] const S* backward_features(const Pass& pass, const PassDrops& drop, bool closed_form) {
    const S* bar = this->diffuse_backward(pass, closed_form, drop.hidden, Items<RowProducts<S>>{});
    this->sum_gradients();
    return bar;
  }
};

/// Of models that consist of an encoder, sheaves, layers and a readout.
template <class Executor, LayeredModel<Executor> Model>
class OperatorSteps<Executor, Model> : protected BatchNetworkSteps<Executor, Model> {
  using Steps = BatchNetworkSteps<Executor, Model>;
  using Steps::sampled;

 protected:
  using Steps::executor_, Steps::parts_, Steps::outside_;
  using typename Steps::S;
  static constexpr bool takes_embeddings = true;

  OperatorSteps(Executor& executor, const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                const NodeTargetLists& targets)
      : Steps(executor, model, std::make_shared<typename Steps::Common>(executor, model, graph, features, 1),
              targets, BatchSize{}, true) {}

  [[nodiscard]] const S* features(const Pass& pass, const PassDrops& drop, bool kl) {
    this->encode(drop.input || drop.hidden);
    const S* x = this->diffuse(pass, drop.hidden && Steps::Parts::Layer::drops, sampled && kl);
    if (parts_.kl_rows.count() > 0) parts_.kl_of_layers_tree.run(executor_, parts_.kl_of_layers.data(), true);
    return x;
  }
  [[nodiscard]] const S* read_out(const Pass& pass, const S* x) {
    return parts_.hidden_readout.forward(executor_, pass, parts_.view, x);
  }
  [[nodiscard]] KlSum kl_sum() const {
    const Index pairs = parts_.graph.view().pairs();
    if constexpr (sampled) return {parts_.posterior->kl().partial(), pairs};
    return {{}, pairs};
  }
  [[nodiscard]] PartialRows kl_of_layers() const { return parts_.kl_of_layers_tree.partial(); }

  void backward_outputs(const Pass& pass, const PassDrops& drop, bool closed_form) {
    Steps::backward(pass, closed_form, drop.hidden);
    this->sum_gradients(sampled && !closed_form);
  }
  [[nodiscard]] const S* backward_features(const Pass& pass, const PassDrops& drop, bool closed_form) {
    parts_.clear_bars(executor_, pass);
    const S* bar = this->diffuse_backward(pass, closed_form, drop.hidden, false, Items<RowProducts<S>>{});
    this->sum_gradients(sampled && !closed_form);
    return bar;
  }
};

}  // namespace sheafnn::batch::detail
