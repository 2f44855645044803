/// \file
/// NetworkOperator: one network on one graph in an executor's memory, for a caller with a loss and an optimiser of its own.
/// The caller's arrays lie in the same memory. On the CPU: bsnn/network.hpp. A pass is a sequence of launches: the host waits
/// for nothing.
///
///     NetworkOperator<DeviceExecutor, Model> network(executor, model, graph, features);
///     for (ParameterId id = 0; …) network.set_parameter(id, parameter[id]);
///     network.forward({.epoch = epoch, .training = true}, outputs, kl);
///     …                                                                      // outputs_bar, kl_bar: own loss
///     network.backward(outputs_bar, kl_bar);
///     for (ParameterId id = 0; …) network.add_gradient(id, gradient[id]);
///     network.store_gradients();
///
/// Source: math: "The model", "Backward pass of one diffusion step".
#pragma once

#include <utility>
#include <vector>

#include "sheafnn/batch/activated_linear.hpp"
#include "sheafnn/batch/network.hpp"
#include "sheafnn/batch/operator_kernels.hpp"
#include "sheafnn/bsnn/forward_pass.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::batch {

/// See the file comment. Neither copied nor moved. The header with the model's BatchNetwork or layers must have been included.
template <class Executor, class Model>
class NetworkOperator : private BatchNetwork<Executor, Model> {
  using Network = BatchNetwork<Executor, Model>;
  using Network::executor_, Network::parts_, Network::outside_;

 public:
  using S = typename Model::Scalar;
  /// Are there passes from embeddings?
  static constexpr bool takes_embeddings = Network::takes_embeddings;

  /// \param model     its parameters are not read
  /// \param features  n × p; of passes from embeddings they are not read
  /// \throws std::invalid_argument  features that do not fit, a graph without nodes, an option that batches lack; as Array
  NetworkOperator(Executor& executor, const Model& model, const GraphOf<Model>& graph,
                  const NodeFeatures& features)
      : NetworkOperator(executor, model, graph, features, NoTargets(graph.node_count())) {}

  /// Values per node that forward() returns for embeddings.
  [[nodiscard]] Index row() const noexcept requires takes_embeddings { return parts_.shape.row(); }

  /// The next pass reads a parameter from there, in the user-visible shape. Unchecked: the id, the size of the array.
  void set_parameter(layers::ParameterId id, const S* values) { caller_.set(id, values); }
  /// Enqueues a pass with the first sample of `pass`. backward() may follow, whatever pass.keep says. Unchecked: rates in
  /// [0, 1); sample, nodes and noise, which are not read.
  ///
  /// \param outputs  n × C, overwritten
  /// \param kl       the mean KL term of the sheaf's distributions, plus the layers' own, 0 without a closed form; null: not
  ///                 wanted
  void forward(const ForwardPass<S>& pass, S* outputs, S* kl) {
    begin(pass, nullptr);
    compute(outputs, Activation::identity);
    store_kl(kl);
  }
  /// The same for layers: act(X_{L+1}) from embeddings H that were computed elsewhere.
  ///
  /// \param embedding  n × h; stays in place until the last backward()
  /// \param outputs    n × row()
  void forward(const ForwardPass<S>& pass, const S* embedding, Activation activation, S* outputs,
               S* kl) requires takes_embeddings {
    begin(pass, embedding);
    compute(outputs, activation);
    store_kl(kl);
  }

  /// Enqueues the backward pass of the last forward(); may be called again. Unchecked: that there was one.
  ///
  /// \param outputs_bar    of the shape of the outputs
  /// \param kl_bar         the derivative of the KL term; null: 0
  /// \param embedding_bar  n × h, overwritten, after a pass from embeddings; null: not wanted
  void backward(const S* outputs_bar, const S* kl_bar, S* embedding_bar = nullptr) {
    if (!std::exchange(ready_, false)) compute(nullptr, activation_);  // parameters, run and embeddings have been set
    executor_.launch(1, 1, detail::SetKlWeight<S>{kl_bar, parts_.common->runs.data()});
    if (outside_ == nullptr) {
      parts_.output->set_bar(executor_, pass_, outputs_bar);
      Network::backward(pass_, closed_form, drop_);
      return this->sum_gradients(closed_form);
    }
    if constexpr (takes_embeddings) {
      copy(parts_.shape.size(), outputs_bar, parts_.x_bar.data());
      if (activation_ != Activation::identity) {
        executor_.launch(parts_.shape.size(), 1,
                         detail::ActivationSlopes<S>{activation_, result_, parts_.x_bar.data()});
      }
      const S* bar =
          this->diffuse_backward(pass_, closed_form, drop_, Items<detail::RowProducts<S>>{});  // no readout
      this->sum_gradients(closed_form);
      if (embedding_bar != nullptr) copy(parts_.shape.nodes * hidden_width_, bar, embedding_bar);
    }
  }
  /// store_gradients() writes the gradient of a parameter there, in the user-visible shape. Unchecked: as set_parameter().
  void add_gradient(layers::ParameterId id, S* values) { caller_.add_gradient(id, values); }
  /// Enqueues the copies of the gradients of the last backward().
  void store_gradients() { caller_.store(executor_, parts_.common->gradient.data()); }

 private:
  using Activation = layers::Activation;
  /// The KL term, where the posterior has one.
  static constexpr bool closed_form = [] {
    if constexpr (is_point_mass<typename Model::Posterior>) {
      return true;
    } else {
      return Model::Posterior::closed_form_kl;
    }
  }();

  /// Labels and roles of nodes that no training has.
  struct NoTargets {
    std::vector<std::int32_t> labels;
    std::vector<std::uint8_t> roles;
    explicit NoTargets(Index nodes)
        : labels(static_cast<std::size_t>(nodes), -1), roles(static_cast<std::size_t>(nodes)) {}
  };
  NetworkOperator(Executor& executor, const Model& model, const GraphOf<Model>& graph,
                  const NodeFeatures& features, const NoTargets& none)
      : Network(executor, model, graph, features, NodeTargetLists{none.labels, none.roles}, BatchSize{}),
        caller_(model.parameters().info()),
        hidden_width_(model.hidden_width()) {}

  /// Parameters and the record of the run.
  void begin(const ForwardPass<S>& pass, const S* embedding) {
    outside_ = embedding;
    const auto rate = [&](double of) { return pass.training ? of : 0.0; };
    Run run;
    run.seed = pass.seed;
    run.epoch = pass.epoch;
    run.input_dropout = DropoutRule(rate(pass.input_dropout));
    run.dropout = DropoutRule(rate(pass.dropout));
    drops_input_ = rate(pass.input_dropout) > 0;
    drops_hidden_ = rate(pass.dropout) > 0;
    drop_ = drops_hidden_ && Network::drops;
    pass_ = {.training = pass.training, .keep = true};
    executor_.launch(1, 1, detail::SetRun{run, parts_.common->runs.data()});
    caller_.load(executor_, parts_.common->parameters.data());
  }
  /// \param outputs  null: not wanted
  void compute(S* outputs, Activation activation) {
    activation_ = activation;
    this->encode(pass_, drops_input_, drops_hidden_);
    result_ = this->features(pass_, drop_, closed_form);
    if (closed_form) this->sum_kl();
    ready_ = true;
    if (outside_ == nullptr) {
      result_ = this->read_out(pass_, result_);
      if (outputs != nullptr) parts_.output->outputs(executor_, pass_, parts_.view, result_, outputs);
    } else if constexpr (takes_embeddings) {
      if (outputs != nullptr)
        executor_.launch(parts_.shape.size(), 1, detail::Activate<S>{activation, result_, outputs});
    }
  }
  void store_kl(S* kl) {
    if (kl == nullptr) return;
    detail::PartialRows of_pairs;
    if (closed_form) of_pairs = this->Network::kl().partial();
    executor_.launch_teams(1, 1, max_lanes, detail::KlTerm<S>{of_pairs, this->layers_kl(), this->pairs(), kl});
  }
  void copy(Index size, const S* from, S* to) {
    executor_.launch(size, 1, detail::CopyToInstances<S>{from, size, 1, to});
  }

  detail::CallerArrays<S> caller_;
  Index hidden_width_;
  Pass pass_;
  Activation activation_ = Activation::identity;
  bool drops_input_ = false, drops_hidden_ = false, drop_ = false;  ///< the last: do layers drop anything?
  bool ready_ = false;         ///< do the arrays hold what a backward pass reads?
  const S* result_ = nullptr;  ///< X_{L+1}
};

}  // namespace sheafnn::batch
